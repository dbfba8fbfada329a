//! What is counted while a simulation runs.

use crate::record::packet::Packet;
use crate::state::interval_parts::Parts;
use crate::state::share::Share;
pub(crate) use kasuri_model::counter::Counter;
use kasuri_model::engine::{Background, Counting, Interval, Phase};
use kasuri_network::memory::Column;
use kasuri_network::network::Network;

/// By packet, what else than its creation decides whether it is measured. Empty where nothing does.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// Packets of classes before this one are the background, which is not measured among the others.
    pub(crate) first_class: u8,
    /// Do those count that waited for their source?
    pub(crate) measures_waiting: bool,
    /// Where those that waited for their source count: was it created before the measurement and drawn during it?
    pub(crate) waited: Vec<bool>,
    /// Where there are answers: the creation of the packet that it answers, of an answer.
    pub(crate) asked: Vec<u64>,
}

impl Origins {
    /// The cycle that decides whether a packet is measured: its creation or, of an answer, that of the packet that it answers.
    #[inline(always)]
    pub(crate) fn decisive(&self, record: &Packet, packet: u32) -> u64 {
        if record.is_reply { self.asked.get(packet as usize).copied().unwrap_or(record.created) } else { record.created }
    }

    #[inline(always)]
    pub(crate) fn has_waited(&self, packet: u32) -> bool {
        self.waited.get(packet as usize).is_some_and(|&waited| waited)
    }

    /// Notes of a packet that gets its number whether it has waited since before the measurement.
    #[cold]
    pub(crate) fn note_waited(&mut self, packet: u32, waited: bool) {
        if self.waited.len() <= packet as usize {
            self.waited.resize(packet as usize + 1, false);
        }
        self.waited[packet as usize] = waited;
    }

    /// What is known of a packet, for the tile that it goes to: the cycle that decides of an answer, and whether it has waited.
    pub(crate) fn of(&self, record: &Packet, packet: u32) -> (Option<u64>, bool) {
        (record.is_reply.then(|| self.decisive(record, packet)), self.has_waited(packet))
    }

    /// Notes what is known of a packet that comes from another tile.
    pub(crate) fn note(&mut self, packet: u32, (asked, waited): (Option<u64>, bool)) {
        if let Some(asked) = asked {
            self.note_answer(packet, asked);
        }
        if self.measures_waiting {
            self.note_waited(packet, waited);
        }
    }

    /// Notes the cycle that decides of an answer.
    pub(crate) fn note_answer(&mut self, packet: u32, asked: u64) {
        if self.asked.len() <= packet as usize {
            self.asked.resize(packet as usize + 1, 0);
        }
        self.asked[packet as usize] = asked;
    }
}

/// How full the routers of a tile have been found.
pub(crate) struct Occupancy {
    /// By router: the sum over samples of the flits in its buffers.
    pub(crate) flits: Vec<u64>,
    pub(crate) samples: u64,
}

/// What has begun in a tile less what has ended in it: only the sum over all tiles says how much there is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balance {
    /// Live packets that draining waits for.
    pub(crate) draining_live: i64,
    /// Flits in buffers and on channels.
    pub(crate) flits_inside: i64,
    /// Flits of packets that have come to the head of a queue, and have not arrived.
    pub(crate) flits_in_flight: i64,
}

/// All counters of a tile. Many fields, because each is another quantity of a row.
pub(crate) struct Statistics {
    pub(crate) counting: Counting,
    /// Are flits counted as delivered with the tail of their packet? They are if links fail during the run: only then is it known that the
    /// packet has arrived whole, and a count that is corrected later would depend on where intervals end.
    pub(crate) counts_whole_packets: bool,
    pub(crate) packet_latency: Counter,
    pub(crate) network_latency: Counter,
    pub(crate) flit_latency: Counter,
    pub(crate) hops: Counter,
    /// By terminal of the tile.
    pub(crate) accepted: Column<u64>,
    /// The sum of all terminals, up to the end of the last interval.
    pub(crate) counted_accepted: u64,
    /// Of these, flits that terminals have sent to themselves.
    pub(crate) to_self: u64,
    /// By port: flits sent on the channel that leaves by it.
    pub(crate) sent: Column<u64>,
    pub(crate) occupancy: Occupancy,
    /// The present interval.
    pub(crate) interval: Interval,
    /// Of intervals that have ended within windows.
    pub(crate) parts: Parts,
    /// What is counted of the background.
    pub(crate) background: Background,
    pub(crate) flit_hops: u64,
    pub(crate) balance: Balance,
}

impl Statistics {
    /// Bytes of all counters of a tile of so many ports, and of its part of the copies that the outcome has.
    pub(crate) fn bytes(network: &Network, share: &Share, ports: usize) -> usize {
        let (terminals, routers) = (share.terminals.len(), share.routers.len());
        let channels = network.channel_count() as usize * routers / (network.router_count() as usize).max(1);
        4 * Counter::BYTES + 8 * (3 * terminals + channels + ports + 2 * routers)
    }

    /// Of a tile with so many ports.
    pub(crate) fn new(share: &Share, ports: u32, counts_whole_packets: bool) -> Self {
        Self {
            counting: Counting::default(),
            counts_whole_packets,
            packet_latency: Counter::new(),
            network_latency: Counter::new(),
            flit_latency: Counter::new(),
            hops: Counter::new(),
            accepted: Column::filled(share.terminals.len(), 0),
            to_self: 0,
            counted_accepted: 0,
            sent: Column::filled(ports as usize, 0),
            occupancy: Occupancy { flits: vec![0; share.routers.len()], samples: 0 },
            interval: Interval::default(),
            parts: Parts::default(),
            background: Background::default(),
            flit_hops: 0,
            balance: Balance::default(),
        }
    }

    /// Counts a packet whose tail arrived in cycle `now`; `counted` among those that are measured.
    pub(crate) fn count_packet(&mut self, packet: &Packet, counted: bool, now: u64) {
        let (latency, network_latency) = (now - packet.created, now - packet.injected);
        let add = |totals: &mut kasuri_model::engine::Totals| {
            totals.packets += 1;
            totals.packet_latency += latency;
            totals.network_latency += network_latency;
            totals.hops += u64::from(packet.hops);
        };
        add(&mut self.interval.arrived);
        self.interval.accepted_flits += u64::from(packet.flits) * u64::from(self.counts_whole_packets);
        if counted {
            add(&mut self.interval.counted);
            self.packet_latency.record(latency);
            self.network_latency.record(network_latency);
            self.hops.record(u64::from(packet.hops));
        }
    }

    /// Adds what another tile has counted, but for what belongs to a terminal, a port or a router.
    pub(crate) fn absorb(&mut self, other: &Self) {
        let own = [&mut self.packet_latency, &mut self.network_latency, &mut self.flit_latency, &mut self.hops];
        let its = [&other.packet_latency, &other.network_latency, &other.flit_latency, &other.hops];
        own.into_iter().zip(its).for_each(|(counter, other)| counter.absorb(other));
        self.to_self += other.to_self;
        self.background.absorb(&other.background);
        self.flit_hops += other.flit_hops;
    }

    /// Throws everything away and starts a phase in cycle `now`.
    pub(crate) fn clear(&mut self, phase: Phase, now: u64) {
        self.counting.clear(phase, now);
        for counter in [&mut self.packet_latency, &mut self.network_latency, &mut self.flit_latency, &mut self.hops] {
            counter.clear();
        }
        self.accepted.iter_mut().for_each(|flits| *flits = 0);
        self.to_self = 0;
        self.counted_accepted = 0;
        self.background = Background::default();
        self.sent.iter_mut().for_each(|flits| *flits = 0);
        self.occupancy.flits.fill(0);
        self.occupancy.samples = 0;
        self.interval.counted = Default::default();
    }
}
