//! The machine while it runs: its nodes, the agenda of what happens, and what is counted.

use super::event::{Event, Load, Times, picoseconds};
use super::link::Links;
use super::processor::Processor;
use super::receiver::Receiver;
use super::sender::Sender;
use crate::crosspoint::{self, Crosspoint, Sizes, Time};
use crate::state::statistics::Counter;
use kasuri_model::engine::{Command, Controller, EngineError, Interval, OperatingSystems, Outcome, Status, Totals};
use kasuri_model::scenario::Scenario;
use kasuri_workload::endpoint::cenju4::Machine;
use kasuri_workload::endpoint::cenju4::node::Node;
use kasuri_workload::timeline::Span;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events between two checks of the network's books in a `paranoid` run.
const CHECK_PERIOD: u64 = 997;

impl<'a> Simulation<'a> {
    pub(super) fn new(scenario: &'a Scenario, machine: &'a Machine) -> Result<Self, EngineError> {
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

    pub(super) fn schedule(&mut self, time: Time, event: Event) {
        self.scheduled += 1;
        self.agenda.push(Reverse((time, self.scheduled, event)));
    }

    /// Puts on the agenda what the network has scheduled.
    pub(super) fn collect(&mut self) {
        let mut events = std::mem::take(&mut self.network.schedule);
        for (time, event) in events.drain(..) {
            self.schedule(time, Event::Network(event));
        }
        self.network.schedule = events;
    }

    pub(super) fn run(mut self, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        let mut begin = 0;
        loop {
            let end = (begin + controller.interval_cycles().max(1)).min(self.scenario.max_cycles.max(begin + 1));
            let limit = end.saturating_mul(self.cycle);
            let goes_on = |next: &Reverse<(Time, u64, Event)>| next.0.0 < limit && !controller.should_stop();
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

    pub(super) fn happen(&mut self, event: Event) -> Result<(), EngineError> {
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

    pub(super) fn unbalanced(&self, what: String) -> EngineError {
        EngineError::Unbalanced { cycle: self.now / self.cycle, what }
    }

    /// At the end nothing is left anywhere.
    pub(super) fn check_end(&self) -> Result<(), EngineError> {
        self.network.check().map_err(|what| self.unbalanced(what))?;
        if !self.network.is_empty() {
            return Err(self.unbalanced("packets are left in the network although nothing is to happen".to_owned()));
        }
        Ok(())
    }

    /// Notes what a part of a node did, if a timeline is wanted.
    pub(super) fn note(&mut self, name: &'static str, node: u32, part: &'static str, parcel: u64, begin: Time, end: Time) {
        if self.scenario.timeline {
            let ns = |time: Time| time as f64 / 1000.0;
            self.timeline.push(Span { name, node, part, parcel, flits: 0, begin_ns: ns(begin), end_ns: ns(end) });
        }
    }

    pub(super) fn interval(&mut self, begin: u64, end: u64) -> Interval {
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

    pub(super) fn outcome(self, status: Status, end: u64) -> Outcome {
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

/// One node in time.
pub(super) struct Station {
    pub(super) node: Node,
    pub(super) processors: Vec<Processor>,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// When its last packet arrived.
    pub(super) last_arrival: Time,
    pub(super) accepted_flits: u64,
    /// Interrupts of which the processor knows.
    pub(super) served: usize,
}

/// A running machine.
pub(super) struct Simulation<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) machine: &'a Machine,
    pub(super) times: Times,
    pub(super) cycle: Time,
    pub(super) network: Crosspoint<Load>,
    pub(super) stations: Vec<Station>,
    pub(super) agenda: BinaryHeap<Reverse<(Time, u64, Event)>>,
    pub(super) scheduled: u64,
    pub(super) now: Time,
    pub(super) parcels: u64,
    pub(super) unfinished: usize,
    pub(super) statistics: Statistics,
    pub(super) systems: Systems,
    pub(super) timeline: Vec<Span>,
    /// Where channels have errors.
    pub(super) links: Option<Links>,
}

/// The operating systems of all nodes.
#[derive(Default)]
pub(super) struct Systems {
    pub(super) done: OperatingSystems,
    /// Nodes that have been told something just now.
    pub(super) interrupted: Vec<u32>,
}

pub(super) struct Statistics {
    pub(super) packet_latency: Counter,
    pub(super) network_latency: Counter,
    pub(super) hops: Counter,
    pub(super) arrived: Totals,
    pub(super) accepted_flits: u64,
    pub(super) packets: u64,
}
