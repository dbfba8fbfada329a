//! Machines of network interfaces at the depth of packets: routers store and forward them through queues without bounds.
//!
//! A channel carries one packet at a time for as long as its flits take; what waits for it stands in one queue, first come, first
//! served. Only between a router and its terminal there is back-pressure: a packet that has crossed that channel keeps it until the
//! interface begins to work on it. Times are whole cycles.

use crate::paths::{Paths, Request, Walk};
use crate::statistics::{Arrival, Statistics};
use kasuri_model::engine::{Command, Controller, EngineError, Interfaces, Interval, Outcome, Status};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::ChannelId;
use kasuri_workload::endpoint::dsm::nodes::{Effect, Nodes};
use kasuri_workload::endpoint::dsm::{Machine, Parcel};
use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What refines the answer of the flit engine and has no meaning for whole packets in queues without bounds.
const NOT_MODELLED: &[&str] = &[
    "router.switching",
    "router.virtual_channels",
    "router.buffer_flits",
    "router.credit_delay",
    "router.vc_allocator",
    "router.switch_allocator",
    "router.vc_release",
];

/// The scenario's machine, if it has one whose packets this engine can carry.
pub(crate) fn machine(scenario: &Scenario) -> Option<&Machine> {
    let machine: &dyn Any = scenario.endpoint.as_deref()?;
    machine.downcast_ref()
}

/// Runs the scenario's machine.
pub(crate) fn run(scenario: &Scenario, machine: &Machine, latency: bool, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
    Packets::new(scenario, machine, latency).run(controller)
}

/// A packet under way.
#[derive(Debug)]
struct Flight {
    parcel: Parcel,
    created: u64,
    /// When it began to cross its first channel.
    begun: u64,
    /// Its channels from the injection to the ejection, and the place of the one that it crosses or waits for.
    way: Vec<u32>,
    place: usize,
    flits: u32,
}

/// A channel and what waits for it.
#[derive(Clone, Debug, Default)]
struct Channel {
    queue: VecDeque<u32>,
    /// A packet crosses it, or stands at its end before an interface.
    taken: bool,
    flits: u64,
}

/// What happens at a time, in the order in which it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A channel may take the next packet.
    Free(u32),
    /// A packet has come to the end of its channel.
    Reached(u32),
}

struct Packets<'a> {
    scenario: &'a Scenario,
    machine: &'a Machine,
    nodes: Nodes<'a>,
    effects: Vec<Effect>,
    paths: Paths,
    latency: bool,
    channels: Vec<Channel>,
    flights: Vec<Flight>,
    free: Vec<u32>,
    serials: Vec<u32>,
    agenda: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    now: u64,
    live: u64,
    last_arrival: Vec<u64>,
    statistics: Statistics,
    accepted: Vec<u64>,
    accepted_in_interval: u64,
}

impl<'a> Packets<'a> {
    fn new(scenario: &'a Scenario, machine: &'a Machine, latency: bool) -> Self {
        let network = &scenario.network;
        let terminals = network.terminal_count() as usize;
        Self {
            scenario,
            machine,
            nodes: Nodes::new(machine),
            effects: Vec::new(),
            paths: Paths::new(scenario),
            latency,
            channels: vec![Channel::default(); network.channel_count() as usize],
            flights: Vec::new(),
            free: Vec::new(),
            serials: vec![0; terminals],
            agenda: BinaryHeap::new(),
            scheduled: 0,
            now: 0,
            live: 0,
            last_arrival: vec![0; terminals],
            statistics: Statistics::new(terminals),
            accepted: vec![0; terminals],
            accepted_in_interval: 0,
        }
    }

    fn run(mut self, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        self.nodes.start(&mut self.effects);
        self.answer()?;
        let mut begin = 0u64;
        loop {
            let end = begin.saturating_add(controller.interval_cycles().max(1)).min(self.scenario.max_cycles.max(begin + 1));
            while let Some(time) = self.next_time().filter(|&time| time < end && !self.is_over()) {
                self.now = time;
                self.happen()?;
            }
            if self.scenario.paranoid {
                self.check()?;
            }
            let interval = self.interval(begin, end);
            let stuck = self.next_time().is_none();
            match controller.interval_ended(&interval) {
                Command::End(status) => return Ok(self.outcome(status, end)),
                // Nothing will ever happen again, but a program waits.
                _ if stuck => return Ok(self.outcome(Status::Deadlock, end)),
                _ if end >= self.scenario.max_cycles => return Ok(self.outcome(Status::MaxCycles, end)),
                _ => {}
            }
            // Over a time in which nothing happens, but not beyond what the controller has to see.
            begin = end.max(self.next_time().unwrap_or(end).min(self.scenario.max_cycles.saturating_sub(1)));
        }
    }

    /// All programs have ended and no packet is left.
    fn is_over(&self) -> bool {
        self.nodes.are_done() && self.live == 0
    }

    fn next_time(&self) -> Option<u64> {
        let packet = self.agenda.peek().map(|next| next.0.0);
        [packet, self.nodes.next_due()].into_iter().flatten().min()
    }

    /// Everything of one time: first the packets, then the nodes, until nothing more is due.
    fn happen(&mut self) -> Result<(), EngineError> {
        while let Some(&Reverse((_, _, event))) = self.agenda.peek().filter(|next| next.0.0 <= self.now) {
            self.agenda.pop();
            match event {
                Event::Free(channel) => {
                    self.channels[channel as usize].taken = false;
                    self.transfer(channel);
                }
                Event::Reached(flight) => self.reached(flight),
            }
        }
        self.nodes.proceed(self.now, &mut self.effects);
        self.answer()
    }

    fn schedule(&mut self, time: u64, event: Event) {
        self.scheduled += 1;
        self.agenda.push(Reverse((time, self.scheduled, event)));
    }

    /// Does what the nodes ask for.
    fn answer(&mut self) -> Result<(), EngineError> {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send(parcel) => self.send(parcel)?,
                Effect::Taken { node, name } => {
                    self.free.push(name);
                    self.live -= 1;
                    // The next one comes after everything that is due now, so that all are treated alike.
                    self.schedule(self.now, Event::Free(self.scenario.network.ejection_channel(node).0));
                }
            }
        }
        self.effects = effects;
        Ok(())
    }

    /// A packet joins the queue of its source.
    fn send(&mut self, parcel: Parcel) -> Result<(), EngineError> {
        let (source, destination) = (parcel.source(), parcel.destination());
        let serial = self.serials[source.index()];
        self.serials[source.index()] += 1;
        let available = self.machine.networks[usize::from(parcel.is_reply)];
        let mut walk = [Walk::new(Request { source, destination, serial, available }, Vec::new())];
        let channels = &self.channels;
        let waiting = |channel: u32| channels[channel as usize].queue.len() as u32 + u32::from(channels[channel as usize].taken);
        self.paths.find(self.scenario, &mut walk, &waiting)?;
        let [walk] = walk;
        let flits = self.machine.constants.flits(&parcel);
        let flight = Flight { parcel, created: self.now, begun: self.now, way: walk.channels, place: 0, flits };
        let name = match self.free.pop() {
            Some(name) => {
                self.flights[name as usize] = flight;
                name
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        };
        self.live += 1;
        self.join(name);
        Ok(())
    }

    /// A packet joins the queue of its next channel.
    fn join(&mut self, name: u32) {
        let flight = &self.flights[name as usize];
        let channel = flight.way[flight.place];
        if flight.place + 1 == flight.way.len() {
            self.nodes.come(flight.parcel.destination(), self.now);
        }
        self.channels[channel as usize].queue.push_back(name);
        self.transfer(channel);
    }

    /// Lets the first packet in a channel's queue cross it, if it is free.
    fn transfer(&mut self, channel: u32) {
        let record = &mut self.channels[channel as usize];
        if record.taken {
            return;
        }
        let Some(name) = record.queue.pop_front() else { return };
        let flight = &mut self.flights[name as usize];
        (record.taken, record.flits) = (true, record.flits + u64::from(flight.flits));
        let is_last = flight.place + 1 == flight.way.len();
        if flight.place == 0 {
            flight.begun = self.now;
        }
        let period = u64::from(self.scenario.network.link(ChannelId(channel)).period);
        let (flits, begun) = (u64::from(flight.flits), self.now);
        let head = if self.latency { self.paths.head_cycles(&self.scenario.network, &flight.way, flight.place) } else { period };
        // The interface holds the channel to it until it takes the packet.
        if !is_last {
            self.schedule(begun + flits * period, Event::Free(channel));
        }
        self.schedule(begun + (flits - 1) * period + head, Event::Reached(name));
    }

    /// A packet has come to the end of its channel: to the next router, or before the interface.
    fn reached(&mut self, name: u32) {
        let flight = &mut self.flights[name as usize];
        if flight.place + 1 < flight.way.len() {
            flight.place += 1;
            self.join(name);
            return;
        }
        let terminal = flight.parcel.destination();
        let hops = flight.way.len() as u16 - 1;
        self.statistics.arrive(&Arrival {
            created: flight.created as f64,
            asked: flight.created,
            begun: flight.begun as f64,
            time: self.now as f64,
            hops,
        });
        self.accepted[terminal.index()] += u64::from(flight.flits);
        self.accepted_in_interval += u64::from(flight.flits);
        self.last_arrival[terminal.index()] = self.now;
        self.nodes.arrive(flight.parcel, name, self.now, &mut self.effects);
    }

    /// The books: what is under way is in a queue, on a channel or before an interface.
    fn check(&self) -> Result<(), EngineError> {
        let unbalanced = |what: String| Err(EngineError::Unbalanced { cycle: self.now, what });
        if let Some(what) = &self.nodes.broken {
            return unbalanced(what.clone());
        }
        let held = (self.flights.len() - self.free.len()) as u64;
        if held != self.live {
            return unbalanced(format!("{} packets are under way, {held} are found", self.live));
        }
        Ok(())
    }

    fn interval(&mut self, begin: u64, end: u64) -> Interval {
        self.statistics.settle();
        let accepted_flits = std::mem::take(&mut self.accepted_in_interval);
        Interval {
            end_cycle: end,
            cycles: end - begin,
            arrived: std::mem::take(&mut self.statistics.arrived),
            injected_flits: accepted_flits,
            accepted_flits,
            completed: self.is_over(),
            ..Interval::default()
        }
    }

    fn outcome(mut self, status: Status, end: u64) -> Outcome {
        self.statistics.settle();
        let completed = status == Status::Completed;
        let cycles = if completed { self.now } else { end };
        let stands =
            (status == Status::Deadlock).then(|| format!("{} programs wait for answers that nobody will send", self.nodes.unfinished()));
        let (busy, awaited) = self.nodes.rates(if completed { self.nodes.last } else { cycles });
        let terminals = self.accepted.len();
        let channel_flits: Vec<u64> = self.channels.iter().map(|channel| channel.flits).collect();
        let routers = |way: &ChannelId| self.scenario.network.ejected_terminal(*way).is_none();
        let into_routers = (0..channel_flits.len() as u32).map(ChannelId).filter(routers);
        Outcome {
            status,
            cycles,
            warmup_cycles: 0,
            measured_cycles: cycles,
            packet_latency: self.statistics.latency.distribution(),
            network_latency: self.statistics.network_latency.distribution(),
            flit_latency: Default::default(),
            hops: self.statistics.hops.distribution(),
            injected_flits: channel_flits[..terminals].to_vec(),
            accepted_flits: self.accepted,
            self_flits: None,
            flit_hops: into_routers.map(|channel| channel_flits[channel.index()]).sum(),
            channel_flits,
            router_occupancy: Vec::new(),
            completion_cycles: if completed { self.last_arrival } else { Vec::new() },
            completion_time: completed.then_some(self.nodes.last as f64),
            deadlock: Vec::new(),
            standstill: stands.into_iter().collect(),
            prediction: None,
            link_errors: None,
            not_modelled: NOT_MODELLED.iter().map(|&key| key.to_owned()).collect(),
            users: Vec::new(),
            background: None,
            formulas: None,
            timeline: Vec::new(),
            interfaces: Some(Interfaces { answered: self.nodes.answered, busy, awaited }),
        }
    }
}
