//! Network interfaces of a distributed shared memory on routers with virtual channels.
//!
//! A packet that has reached its interface stays in the buffer at the end of the channel until the interface begins to work on it. Then
//! the places of its flits become free, one in each cycle, and their credits go back to the router. So an interface that is busy holds
//! up the packets behind.

use crate::source::Drawn;
use crate::state::NONE;
use crate::users::AccessId;
use kasuri_model::engine::EngineError;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use kasuri_workload::endpoint::dsm::nodes::{Effect, Nodes};
use kasuri_workload::endpoint::dsm::{Machine, Parcel};
use std::any::Any;
use std::collections::VecDeque;

/// The machine of a scenario, if it is one whose packets go through these routers.
pub(crate) fn machine(scenario: &Scenario) -> Option<&Machine> {
    let machine: &dyn Any = scenario.endpoint.as_deref()?;
    machine.downcast_ref()
}

/// A packet in the buffer before an interface.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// The sink's slot, and the flits whose credits have not gone back.
    slot: u32,
    flits: u16,
}

/// The interfaces of all terminals.
#[derive(Debug)]
pub(crate) struct Interfaces<'a> {
    machine: &'a Machine,
    pub(crate) nodes: Nodes<'a>,
    effects: Vec<Effect>,
    /// By terminal: packets to send, with the cycle in which they were made.
    queues: Vec<VecDeque<(Parcel, u64)>>,
    /// What was drawn last, and what each packet is, by its number.
    drawn: Option<Parcel>,
    parcels: Vec<Option<Parcel>>,
    /// Packets before interfaces, by the name that the nodes know.
    held: Vec<Held>,
    unused: Vec<u32>,
    /// By terminal: packets whose credits go back, and the terminals that have some.
    leaving: Vec<VecDeque<Held>>,
    active: Vec<u32>,
}

impl<'a> Interfaces<'a> {
    /// The interfaces of a scenario's machine, if it has one.
    pub(crate) fn new(scenario: &'a Scenario) -> Option<Self> {
        let machine = machine(scenario)?;
        let terminals = scenario.network.terminal_count() as usize;
        Some(Self {
            machine,
            nodes: Nodes::new(machine),
            effects: Vec::new(),
            queues: vec![VecDeque::new(); terminals],
            drawn: None,
            parcels: Vec::new(),
            held: Vec::new(),
            unused: Vec::new(),
            leaving: vec![VecDeque::new(); terminals],
            active: Vec::new(),
        })
    }

    /// Lets the programs begin.
    pub(crate) fn start(&mut self, wake: impl FnMut(u32)) {
        self.nodes.start(&mut self.effects);
        self.answer(0, wake);
    }

    /// Lets the nodes answer to what has happened before cycle `now`. `wake` is told of terminals that have something to send,
    /// `free` of the sinks' slots in which a place has become free: of a terminal one at most.
    pub(crate) fn proceed(&mut self, now: u64, wake: impl FnMut(u32), mut free: impl FnMut(u32)) {
        self.nodes.proceed(now, &mut self.effects);
        self.answer(now, wake);
        let leaving = &mut self.leaving;
        self.active.retain(|&terminal| {
            let packets = &mut leaving[terminal as usize];
            let Some(first) = packets.front_mut() else { return false };
            free(first.slot);
            first.flits -= 1;
            if first.flits == 0 {
                packets.pop_front();
            }
            !packets.is_empty()
        });
    }

    fn answer(&mut self, now: u64, mut wake: impl FnMut(u32)) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send(parcel) => {
                    let source = parcel.source();
                    self.queues[source.index()].push_back((parcel, now));
                    wake(source.0);
                }
                Effect::Taken { node, name } => {
                    let packets = &mut self.leaving[node.index()];
                    if packets.is_empty() {
                        self.active.push(node.0);
                    }
                    packets.push_back(self.held[name as usize]);
                    self.unused.push(name);
                }
            }
        }
    }

    /// The next packet of a terminal.
    pub(crate) fn draw(&mut self, terminal: u32) -> Option<Drawn> {
        let (parcel, created) = self.queues[terminal as usize].pop_front()?;
        self.drawn = Some(parcel);
        let (destination, flits) = (parcel.destination(), self.machine.constants.flits(&parcel));
        Some(Drawn {
            created,
            asked: created,
            destination,
            flits,
            class: 0,
            is_reply: parcel.is_reply,
            access: AccessId::default(),
            message: NONE,
        })
    }

    /// The packet drawn last has got this number.
    pub(crate) fn name_packet(&mut self, packet: u32) {
        let packet = packet as usize;
        self.parcels.resize(self.parcels.len().max(packet + 1), None);
        self.parcels[packet] = self.drawn.take();
    }

    /// The tail of a packet has arrived in cycle `now`: the packet stands in a sink's slot before the interface.
    pub(crate) fn packet_arrived(&mut self, packet: u32, slot: u32, flits: u16, now: u64) {
        let Some(parcel) = self.parcels[packet as usize].take() else { return };
        let held = Held { slot, flits };
        let name = self.unused.pop().unwrap_or(self.held.len() as u32);
        if name as usize == self.held.len() {
            self.held.push(held);
        } else {
            self.held[name as usize] = held;
        }
        self.nodes.arrive(parcel, name, now, &mut self.effects);
    }

    /// Have all programs ended and all requests been answered?
    pub(crate) fn are_done(&self) -> bool {
        self.nodes.are_done()
    }

    /// Does nothing happen before a packet moves, or the next thing is due?
    pub(crate) fn are_idle(&self) -> bool {
        self.active.is_empty() && self.effects.is_empty()
    }

    /// The next cycle from `now` on in which something is due, at most `limit`.
    ///
    /// # Errors
    /// Nothing ever will be: the programs wait for each other.
    pub(crate) fn next_due(&self, now: u64, limit: u64) -> Result<u64, EngineError> {
        let due = self.nodes.next_due().ok_or_else(|| EngineError::Option {
            key: "workload".to_owned(),
            problem: format!("{} of its programs never end: everything waits for something that does not happen", self.nodes.unfinished()),
        })?;
        Ok(due.clamp(now, limit.max(now)))
    }

    /// By sink's slot, counted from the first: flits in buffers before interfaces whose packets have arrived.
    pub(crate) fn held_flits(&self, slots: usize) -> Vec<u32> {
        let mut flits = vec![0; slots];
        let unused: std::collections::BTreeSet<u32> = self.unused.iter().copied().collect();
        let waiting = (0..self.held.len() as u32).filter(|name| !unused.contains(name)).map(|name| self.held[name as usize]);
        for held in waiting.chain(self.leaving.iter().flatten().copied()) {
            flits[held.slot as usize] += u32::from(held.flits);
        }
        flits
    }

    /// What the interfaces did until the last answer, or until `now` where the run ended before.
    pub(crate) fn outcome(&self, now: Option<u64>) -> kasuri_model::engine::Interfaces {
        let (busy, awaited) = self.nodes.rates(now.unwrap_or(self.nodes.last));
        kasuri_model::engine::Interfaces { answered: self.nodes.answered, busy, awaited }
    }

    /// A packet has come to the router of its destination.
    pub(crate) fn come(&mut self, destination: TerminalId, now: u64) {
        self.nodes.come(destination, now);
    }
}
