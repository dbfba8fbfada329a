//! The Cenju-4 from event to event: processors, Senders and Receivers of all nodes on a network of crosspoint-buffered routers.
//!
//! Times are whole picoseconds. The parts of a node work side by side and each does one thing at a time: the processor of each task runs
//! its program (`processor`), the Sender reads headers and makes packets (`sender`), the Receiver writes memory (`receiver`). What they do
//! to memories and tables is the model's (`kasuri_workload::endpoint::cenju4`).

mod link;
mod operating_system;
mod processor;
mod receiver;
mod sender;
mod standstill;
#[cfg(test)]
mod tests;

use crate::crosspoint::{self, Crosspoint, Sizes, Time};
use crate::endpoint::TimedEndpoint;
use crate::endpoint::cenju4::link::Links;
use crate::endpoint::cenju4::processor::Processor;
use crate::endpoint::cenju4::receiver::Receiver;
use crate::endpoint::cenju4::sender::Sender;
use crate::state::statistics::Counter;
use kasuri_model::engine::{Command, Controller, EngineError, Interval, OperatingSystems, Outcome, Status, Totals};
use kasuri_model::scenario::Scenario;
use kasuri_network::registry::Member;
use kasuri_workload::endpoint::cenju4::node::{Node, Packet};
use kasuri_workload::endpoint::cenju4::{Cenju4, Machine};
use kasuri_workload::timeline::Span;
use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

pub(super) const ENTRY: TimedEndpoint = TimedEndpoint { name: Cenju4::NAME, run };

/// Events between two checks of the network's books in a `paranoid` run.
const CHECK_PERIOD: u64 = 997;

fn run(scenario: &Scenario, machine: &dyn Any, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
    let machine = machine.downcast_ref::<Machine>().expect("the table's name is that of this type");
    Simulation::new(scenario, machine)?.run(controller)
}

/// What happens at a time. The order is that in which things at the same time are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Network(crosspoint::Event),
    /// The Receiver has looked a packet's task up.
    Looked {
        node: u32,
        flight: u32,
    },
    /// The Receiver has written a packet.
    Written {
        node: u32,
    },
    /// A packet's effect is to be seen.
    Effect {
        node: u32,
        flight: u32,
    },
    /// The Sender has read a header.
    HeaderRead {
        node: u32,
    },
    /// The Sender has made a packet.
    Made {
        node: u32,
    },
    /// The Sender may make another packet.
    Idle {
        node: u32,
    },
    /// The operating system gives a set of control registers to another task.
    Switch {
        node: u32,
        set: u32,
    },
    /// The operating system has brought a page that the Sender (0) or the Receiver (1) has missed.
    Page {
        node: u32,
        cid: u8,
        address: u64,
        receiver: bool,
    },
    /// A processor goes on with its program.
    Processor {
        node: u32,
        task: u32,
    },
}

/// What the network carries for a packet.
#[derive(Clone, Debug)]
struct Load {
    packet: Rc<Packet>,
    parcel: u64,
    created: Time,
    /// Of a synchronisation, its identifier.
    sid: Option<u8>,
}

/// One node in time.
struct Station {
    node: Node,
    processors: Vec<Processor>,
    sender: Sender,
    receiver: Receiver,
    /// When its last packet arrived.
    last_arrival: Time,
    accepted_flits: u64,
    /// Interrupts of which the processor knows.
    served: usize,
}

/// The constants in picoseconds. Many fields, because each is a part of its own of what takes time.
#[derive(Clone, Copy, Debug)]
struct Times {
    cache: Time,
    snoop: Time,
    memory: Time,
    beat: Time,
    node_table: Time,
    packet: Time,
    receiver: Time,
    line: Time,
    atomic: Time,
    notice: Time,
    poll: Time,
    pointer: Time,
    system_call: Time,
    interrupt: Time,
    page_fault: Time,
    word_copy: Time,
}

/// A running machine.
struct Simulation<'a> {
    scenario: &'a Scenario,
    machine: &'a Machine,
    times: Times,
    cycle: Time,
    network: Crosspoint<Load>,
    stations: Vec<Station>,
    agenda: BinaryHeap<Reverse<(Time, u64, Event)>>,
    scheduled: u64,
    now: Time,
    parcels: u64,
    unfinished: usize,
    statistics: Statistics,
    systems: Systems,
    timeline: Vec<Span>,
    /// Where channels have errors.
    links: Option<Links>,
}

/// The operating systems of all nodes.
#[derive(Default)]
struct Systems {
    done: OperatingSystems,
    /// Nodes that have been told something just now.
    interrupted: Vec<u32>,
}

struct Statistics {
    packet_latency: Counter,
    network_latency: Counter,
    hops: Counter,
    arrived: Totals,
    accepted_flits: u64,
    packets: u64,
}

/// Nanoseconds as picoseconds.
fn picoseconds(ns: f64) -> Time {
    // Checked to be 0 to 10^9 ns.
    (ns * 1000.0).round() as Time
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario, machine: &'a Machine) -> Result<Self, EngineError> {
        let constants = &machine.constants;
        let longest = constants.longest_packet();
        let cycle = picoseconds(scenario.units.cycle_ns.unwrap_or_default()).max(1);
        let sizes = Sizes {
            cycle,
            queue: scenario.router.buffer_flits,
            send: longest * constants.send_queue_packets,
            receive: longest * constants.receive_queue_packets,
            parameters: scenario.router.crosspoint,
        };
        let stations = machine.nodes.iter().zip(&machine.programs).map(|(node, programs)| Station {
            node: node.clone(),
            processors: programs.iter().map(Processor::new).collect(),
            sender: Sender::new(constants, programs),
            receiver: Receiver::default(),
            last_arrival: 0,
            accepted_flits: 0,
            served: 0,
        });
        let stations = stations.collect::<Vec<Station>>();
        let mut simulation = Self {
            scenario,
            machine,
            times: Times::of(constants),
            cycle,
            network: Crosspoint::new(&scenario.network, &*scenario.routing, sizes)?,
            stations,
            agenda: BinaryHeap::new(),
            scheduled: 0,
            now: 0,
            parcels: 0,
            unfinished: machine.programs.iter().map(Vec::len).sum(),
            statistics: Statistics {
                packet_latency: Counter::new(),
                network_latency: Counter::new(),
                hops: Counter::new(),
                arrived: Totals::default(),
                accepted_flits: 0,
                packets: 0,
            },
            systems: Systems::default(),
            timeline: Vec::new(),
            links: Links::new(constants, &scenario.streams),
        };
        for (node, programs) in machine.programs.iter().enumerate() {
            for task in 0..programs.len() {
                simulation.schedule(0, Event::Processor { node: node as u32, task: task as u32 });
            }
        }
        Ok(simulation)
    }

    fn schedule(&mut self, time: Time, event: Event) {
        self.scheduled += 1;
        self.agenda.push(Reverse((time, self.scheduled, event)));
    }

    /// Puts on the agenda what the network has scheduled.
    fn collect(&mut self) {
        let mut events = std::mem::take(&mut self.network.schedule);
        for (time, event) in events.drain(..) {
            self.schedule(time, Event::Network(event));
        }
        self.network.schedule = events;
    }

    fn run(mut self, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        let mut begin = 0;
        loop {
            let end = (begin + controller.interval_cycles().max(1)).min(self.scenario.max_cycles.max(begin + 1));
            let limit = end.saturating_mul(self.cycle);
            let goes_on = |next: &Reverse<(Time, u64, Event)>| next.0.0 < limit && !controller.wants_end();
            while let Some(&Reverse((time, _, event))) = self.agenda.peek().filter(|next| goes_on(next)) {
                self.agenda.pop();
                self.now = time;
                self.happen(event)?;
            }
            let interval = self.interval(begin, end);
            let over = self.agenda.is_empty();
            if over && self.scenario.paranoid {
                self.check_end()?;
            }
            match controller.interval_ended(&interval) {
                Command::End(status) => return Ok(self.outcome(status, end)),
                // Nothing will ever happen again, but a program waits.
                _ if over => return Ok(self.outcome(Status::Deadlock, end)),
                _ if end >= self.scenario.max_cycles => return Ok(self.outcome(Status::MaxCycles, end)),
                _ => {}
            }
            // Over a time in which nothing happens, but not beyond what the controller has to see.
            let next = self.agenda.peek().map_or(end, |next| next.0.0 / self.cycle);
            begin = end.max(next.min(self.scenario.max_cycles.saturating_sub(1)));
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), EngineError> {
        match event {
            Event::Network(crosspoint::Event::Arrived { terminal, flight, hops }) => self.arrive(terminal, flight, hops),
            Event::Network(crosspoint::Event::Gone { terminal }) => self.gone(terminal),
            Event::Network(crosspoint::Event::Room { terminal }) => self.make_packet(terminal),
            Event::Network(event) => self.network.happen(event, self.now),
            Event::Looked { node, flight } => self.look_up(node, flight),
            Event::Written { node } => self.written(node),
            Event::Effect { node, flight } => self.effect(node, flight),
            Event::HeaderRead { node } => self.header_read(node),
            Event::Made { node } => self.made(node),
            Event::Idle { node } => self.idle(node),
            Event::Switch { node, set } => self.switch_task(node, set),
            Event::Page { node, cid, address, receiver } => self.page_is_there(node, cid, address, receiver),
            Event::Processor { node, task } => self.resume(node, task)?,
        }
        self.serve_interrupts();
        self.collect();
        if (self.scenario.paranoid && self.scheduled.is_multiple_of(CHECK_PERIOD)) || self.network.broken.is_some() {
            self.network.check().map_err(|what| self.unbalanced(what))?;
        }
        Ok(())
    }

    fn unbalanced(&self, what: String) -> EngineError {
        EngineError::Unbalanced { cycle: self.now / self.cycle, what }
    }

    /// At the end nothing is left anywhere.
    fn check_end(&self) -> Result<(), EngineError> {
        self.network.check().map_err(|what| self.unbalanced(what))?;
        if !self.network.is_empty() {
            return Err(self.unbalanced("packets are left in the network although nothing is to happen".to_owned()));
        }
        Ok(())
    }

    /// Notes what a part of a node did, if a timeline is wanted.
    fn note(&mut self, name: &'static str, node: u32, part: &'static str, parcel: u64, begin: Time, end: Time) {
        if self.scenario.timeline {
            let ns = |time: Time| time as f64 / 1000.0;
            self.timeline.push(Span { name, node, part, parcel, flits: 0, begin_ns: ns(begin), end_ns: ns(end) });
        }
    }

    fn interval(&mut self, begin: u64, end: u64) -> Interval {
        let arrived = std::mem::take(&mut self.statistics.arrived);
        let accepted_flits = std::mem::take(&mut self.statistics.accepted_flits);
        Interval {
            end_cycle: end,
            cycles: end - begin,
            arrived,
            accepted_flits,
            completed: self.unfinished == 0 && self.agenda.is_empty(),
            ..Interval::default()
        }
    }

    fn outcome(self, status: Status, end: u64) -> Outcome {
        let standstill = if status == Status::Deadlock { self.standstill() } else { Vec::new() };
        let cycles = if status == Status::MaxCycles { end } else { self.now.div_ceil(self.cycle) };
        let in_cycles = |time: Time| time as f64 / self.cycle as f64;
        let ends = self.stations.iter().flat_map(|station| station.processors.iter().filter_map(Processor::ended));
        let stamps =
            self.stations.iter().flat_map(|station| &station.processors).filter_map(|processor| processor.stamps.get(self.machine.warmup));
        let begin = if self.machine.warmup == 0 { 0 } else { stamps.max().copied().unwrap_or(0) };
        let completed = status == Status::Completed;
        let channel_flits = self.network.channel_flits();
        let accepted_flits = self.stations.iter().map(|station| station.accepted_flits).collect();
        let end = || {
            let last_arrivals = self.stations.iter().map(|station| station.last_arrival.div_ceil(self.cycle)).collect();
            (in_cycles(ends.max().unwrap_or(0).saturating_sub(begin)), last_arrivals)
        };
        let statistics = &self.statistics;
        let latencies = [&statistics.packet_latency, &statistics.network_latency, &statistics.hops];
        Outcome {
            standstill,
            link_errors: self.links.map(|links| links.found),
            operating_systems: Some(self.systems.done),
            timeline: self.timeline,
            router_occupancy: vec![0.0; self.scenario.network.router_count() as usize],
            flit_hops: self.network.flit_hops,
            ..Outcome::new(status)
                .after(cycles)
                .with_packets(latencies.map(|values| values.distribution()))
                .with_flits(channel_flits, accepted_flits)
                .completed(completed.then(end))
        }
    }
}

impl Times {
    fn of(constants: &Cenju4) -> Self {
        Self {
            cache: picoseconds(constants.cache_ns),
            snoop: picoseconds(constants.snoop_ns),
            memory: picoseconds(constants.memory_ns),
            beat: picoseconds(constants.beat_ns),
            node_table: picoseconds(constants.node_table_ns),
            packet: picoseconds(constants.packet_ns),
            receiver: picoseconds(constants.receiver_ns),
            line: picoseconds(constants.line_ns),
            atomic: picoseconds(constants.atomic_ns),
            notice: picoseconds(constants.notice_ns),
            poll: picoseconds(constants.poll_ns),
            pointer: picoseconds(constants.pointer_ns),
            system_call: picoseconds(constants.system_call_ns),
            interrupt: picoseconds(constants.interrupt_ns),
            page_fault: picoseconds(constants.page_fault_ns),
            word_copy: picoseconds(constants.word_copy_ns),
        }
    }

    /// A read of main memory of so many double words.
    fn memory_read(&self, words: u64) -> Time {
        self.memory + words * self.beat
    }

    /// A system call that writes an entry of a table, two double words.
    fn registration(&self) -> Time {
        self.system_call + self.memory_read(2)
    }

    /// The walk through the segment table and the page table for so many translations.
    fn table_walks(&self, misses: u32) -> Time {
        2 * Time::from(misses) * self.memory_read(1)
    }
}
