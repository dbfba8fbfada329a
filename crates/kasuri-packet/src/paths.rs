//! Which of several links a packet takes: hashed, drawn, or in turn.

use super::{Options, Spray};
use crate::packets::Packet;
use crate::wiring::{Choice, Wiring};
use kasuri_network::rng::{Purpose, Stream, Streams, split_mix};
use std::collections::BTreeMap;

/// How switches take links in turn, as the runs of uet-htsim show it.
///
/// A switch has one counter for whatever it chooses among several links. A round has as many packets as the choice at hand has links; the
/// order of the links is drawn anew when a packet begins a round. A ToR has one order for all its links up; the switches above have one for
/// each host to which packets go, and draw anew only that of the packet that begins the round. So where the packets of several hosts
/// alternate in step, some take the same link time and again: a pod that sends as much as its links up carry loses up to a fifth.
#[derive(Debug)]
struct Turns {
    /// How many packets of the round each switch has had.
    counters: Vec<u32>,
    /// Of each ToR.
    tors: Vec<Vec<u16>>,
    /// Of each switch above and host, if it has been asked for.
    hosts: BTreeMap<(u32, u32), Vec<u16>>,
}

impl Turns {
    fn new(wiring: &Wiring) -> Self {
        Self { counters: vec![0; wiring.switches() as usize], tors: vec![Vec::new(); wiring.tors() as usize], hosts: BTreeMap::new() }
    }

    /// The link that a packet takes of `count`.
    fn next(&mut self, switch: u32, count: u32, destination: u32, drawn: &mut Stream) -> u32 {
        let order = match self.tors.get_mut(switch as usize) {
            Some(order) => order,
            None => self.hosts.entry((switch, destination)).or_default(),
        };
        let counter = &mut self.counters[switch as usize];
        let is_new = order.is_empty();
        if is_new {
            order.extend((0..count).map(|link| link as u16));
        }
        if is_new || *counter >= count {
            // Fisher and Yates.
            for place in (1..order.len()).rev() {
                order.swap(place, drawn.below(place as u32 + 1) as usize);
            }
        }
        if *counter >= count {
            *counter = 0;
        }
        *counter += 1;
        u32::from(order[*counter as usize - 1])
    }
}

/// The choices of all switches.
#[derive(Debug)]
pub(crate) struct Paths {
    spray: Spray,
    /// Path numbers of a flow.
    numbers: u32,
    hash_key: u64,
    order_key: u64,
    /// What is hashed of each flow.
    ids: Vec<u32>,
    drawn: Stream,
    turns: Turns,
}

impl Paths {
    pub(crate) fn new(options: &Options, wiring: &Wiring, ids: Vec<u32>) -> Self {
        let streams = Streams::new(options.seed);
        let key = streams.key(Purpose::Routing);
        Self {
            spray: options.spray,
            numbers: options.paths,
            hash_key: key,
            order_key: split_mix(key ^ 1),
            ids,
            drawn: streams.get(Purpose::Routing, 0),
            turns: Turns::new(wiring),
        }
    }

    /// The path number of a packet of data: the flow takes all in turn, from a place that is drawn anew each round.
    #[inline]
    pub(crate) fn number(&self, flow: u32, packet: u32) -> u16 {
        if self.numbers == 1 {
            return 0;
        }
        let round = u64::from(packet / self.numbers);
        let drawn = split_mix(self.order_key ^ split_mix(u64::from(flow) << 32 | round)) as u32;
        ((packet ^ drawn) & (self.numbers - 1)) as u16
    }

    /// The port that a packet takes of those that lead to its destination.
    #[inline]
    pub(crate) fn choose(&mut self, switch: u32, choice: Choice, packet: &Packet) -> u32 {
        if choice.count == 1 {
            return choice.first;
        }
        let link = match self.spray {
            Spray::Random if !packet.acknowledges => self.drawn.below(choice.count),
            Spray::RoundRobin if !packet.acknowledges => self.turns.next(switch, choice.count, packet.destination, &mut self.drawn),
            _ => self.hashed(switch, choice.count, packet),
        };
        choice.first + link
    }

    /// Flow, path number and switch decide, each direction of a flow apart.
    fn hashed(&self, switch: u32, count: u32, packet: &Packet) -> u32 {
        let flow = u64::from(self.ids[packet.flow as usize]) << 17 | u64::from(packet.path) << 1 | u64::from(packet.acknowledges);
        let hash = split_mix(flow ^ split_mix(self.hash_key ^ u64::from(switch)));
        ((u128::from(hash) * u128::from(count)) >> 64) as u32
    }
}
