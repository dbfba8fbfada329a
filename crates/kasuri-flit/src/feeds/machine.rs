//! Network interfaces of a machine on routers with virtual channels: what the machine knows ([`RunningMachine`]) as a feed.
//!
//! A packet that has reached its interface stays in the buffer at the end of the channel until the interface begins to work on it. Then
//! the places of its flits become free, one in each cycle, and their credits go back to the router. So an interface that is busy holds
//! up the packets behind.

use crate::record::drawn::{Attempt, Drawn};
use crate::record::event::HeadAtRouter;
use crate::record::tag::Tag;
use crate::state::feed::{Arrival, Ask, EdgeMessage, Left, Next, OneQueue, PacketFeed, Report};
use crate::state::queues::Queues;
use kasuri_model::engine::EngineError;
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;

use kasuri_network::network::Network;
use kasuri_workload::endpoint::running::{Effect, MachinePacket, RunningMachine, Work};
use std::collections::VecDeque;

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
    network: &'a Network,
    /// The class of the first part's packets; those of the others follow.
    first_class: u8,
    nodes: Box<dyn RunningMachine + 'a>,
    /// The classes of its packets: of each part one.
    classes: usize,
    effects: Vec<Effect>,
    /// By terminal: packets to send, with the cycle in which they were made.
    queues: Vec<VecDeque<(MachinePacket, u64)>>,
    /// What was drawn and has not arrived, by the record that its packet names.
    parcels: Vec<MachinePacket>,
    unused_parcels: Vec<u32>,
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
        let machine = scenario.endpoint.as_deref()?;
        let nodes = machine.begin()?;
        let terminals = scenario.network.terminal_count() as usize;
        Some(Self {
            network: &scenario.network,
            first_class: scenario.classes.len() as u8,
            nodes,
            classes: machine.class_channels().len(),
            effects: Vec::new(),
            queues: vec![VecDeque::new(); terminals],
            parcels: Vec::new(),
            unused_parcels: Vec::new(),
            held: Vec::new(),
            unused: Vec::new(),
            leaving: vec![VecDeque::new(); terminals],
            active: Vec::new(),
        })
    }

    /// How many classes its packets have.
    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    /// Does what the nodes have asked for.
    fn answer(&mut self, now: u64, queues: &mut Queues) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send(parcel) => {
                    let source = parcel.source;
                    self.queues[source.index()].push_back((parcel, now));
                    queues.wake(source.0);
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

    /// Frees a place of each packet that leaves its buffer: of a terminal one at most.
    fn free_places(&mut self, queues: &mut Queues) {
        let leaving = &mut self.leaving;
        self.active.retain(|&terminal| {
            let packets = &mut leaving[terminal as usize];
            let Some(first) = packets.front_mut() else { return false };
            queues.freed.push(first.slot);
            first.flits -= 1;
            if first.flits == 0 {
                packets.pop_front();
            }
            !packets.is_empty()
        });
    }

    /// The next packet of a terminal.
    fn draw(&mut self, terminal: u32) -> Option<Drawn> {
        let (parcel, created) = self.queues[terminal as usize].pop_front()?;
        let record = self.unused_parcels.pop().unwrap_or(self.parcels.len() as u32);
        if record as usize == self.parcels.len() {
            self.parcels.push(parcel);
        } else {
            self.parcels[record as usize] = parcel;
        }
        Some(Drawn {
            created,
            asked: created,
            destination: parcel.destination,
            flits: parcel.flits,
            class: self.first_class + parcel.part,
            is_reply: parcel.is_reply,
            again: Attempt::First,
            tag: Tag::of_record(record),
        })
    }
}

impl PacketFeed for Interfaces<'_> {
    fn start(&mut self, queues: &mut Queues) {
        self.nodes.start(&mut self.effects);
        self.answer(0, queues);
    }

    fn next_packet(&mut self, ask: Ask<'_>) -> Next {
        // All parts share a queue.
        if ask.queue.is_some_and(|queue| !queue.has(self.first_class)) {
            return Next::Nothing;
        }
        Next::or_later(self.draw(ask.terminal), || false)
    }

    fn next_passing(&mut self, terminal: u32, queue: Option<OneQueue<'_>>) -> Option<Drawn> {
        let is_other = queue.is_some_and(|queue| !queue.has(self.first_class));
        let is_answer = || self.queues[terminal as usize].front().is_some_and(|(parcel, _)| parcel.is_reply);
        if !is_other && is_answer() { self.draw(terminal) } else { None }
    }

    fn tail_left(&mut self, _left: &Left) -> bool {
        true
    }

    fn on_head_at_router(&mut self, head: &HeadAtRouter) {
        if head.class >= self.first_class && self.network.ejection_port(head.destination).0 == head.router {
            self.nodes.come(head.destination, head.now);
        }
    }

    fn take_message(&mut self, message: &EdgeMessage, _queues: &mut Queues) {
        if let EdgeMessage::HeadAtRouter(head) = message {
            self.on_head_at_router(head);
        }
    }

    fn wants_head_events(&self) -> bool {
        true
    }

    /// The packet stands in a sink's slot before the interface.
    fn packet_arrived(&mut self, arrival: &Arrival<'_>, _queues: &mut Queues) {
        let parcel = self.parcels[arrival.tag.record as usize];
        self.unused_parcels.push(arrival.tag.record);
        let held = Held { slot: arrival.slot, flits: arrival.record.flits };
        let name = self.unused.pop().unwrap_or(self.held.len() as u32);
        if name as usize == self.held.len() {
            self.held.push(held);
        } else {
            self.held[name as usize] = held;
        }
        self.nodes.arrive(parcel, name, arrival.now, &mut self.effects);
    }

    fn proceeds(&self) -> bool {
        true
    }

    fn proceed(&mut self, now: u64, queues: &mut Queues) {
        self.nodes.proceed(now, &mut self.effects);
        self.answer(now, queues);
        self.free_places(queues);
    }

    fn next_due(&self, now: u64, limit: u64) -> Result<u64, EngineError> {
        let due = self.nodes.next_due().ok_or_else(|| {
            let unfinished = self.nodes.unfinished();
            let reason = format!("{unfinished} of its programs never end: everything waits for something that does not happen");
            EngineError::from(Refusal::new("workload", reason))
        })?;
        Ok(due.clamp(now, limit.max(now)))
    }

    fn is_idle(&self) -> bool {
        self.active.is_empty() && self.effects.is_empty()
    }

    fn will_free_sink(&self) -> bool {
        self.nodes.next_due().is_some()
    }

    fn ends(&self) -> bool {
        true
    }

    fn outstanding(&self) -> i64 {
        self.nodes.unfinished() as i64
    }

    fn held_flits(&self, slots: usize) -> Option<Vec<u32>> {
        let mut flits = vec![0; slots];
        let unused: std::collections::BTreeSet<u32> = self.unused.iter().copied().collect();
        let waiting = (0..self.held.len() as u32).filter(|name| !unused.contains(name)).map(|name| self.held[name as usize]);
        for held in waiting.chain(self.leaving.iter().flatten().copied()) {
            flits[held.slot as usize] += u32::from(held.flits);
        }
        Some(flits)
    }

    fn broken(&self, _now: u64) -> Option<String> {
        self.nodes.broken().map(str::to_owned)
    }

    /// What the interfaces did until the last answer, or until now where the run ended before.
    fn report(&mut self, report: &mut Report) {
        let last = self.nodes.last();
        let work = self.nodes.work(if report.completed { last } else { report.now });
        let Work { answered, busy, awaited, translations, switches, switch_cycles } = work;
        report.ended = Some(last);
        let first = usize::from(self.first_class);
        report.class_ends.extend((0..self.classes()).map(|part| (first + part, self.nodes.end_of(part))));
        report.translations.extend((first..).zip(translations));
        report.interfaces = Some(kasuri_model::engine::Interfaces { answered, busy, awaited, switches, switch_cycles });
    }
}
