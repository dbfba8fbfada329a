//! Machines of network interfaces at the level of packets: routers store and forward them through queues without bounds.
//!
//! A channel carries one packet at a time for as long as its flits take; what waits for it stands in one queue, first come, first
//! served. Only between a router and its terminal there is back-pressure: a parcel that has crossed that channel keeps it until the
//! interface begins to work on it. Open traffic beside the machine takes turns with it where both leave a terminal, and is taken at once where it
//! arrives. Times are whole cycles.

mod background;
mod flights;
pub(crate) mod machine;
mod outcome;

use crate::paths::{Paths, Request, Walk};
use background::OpenTraffic;
use flights::{Flight, Flights, Load};
use kasuri_model::engine::{Command, Controller, EngineError, Outcome, Status};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::routing::VirtualChannels;
use kasuri_workload::endpoint::Endpoint;
use kasuri_workload::endpoint::running::{Effect, MachinePacket, RunningMachine};
use outcome::Counts;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Runs the scenario's machine.
pub(crate) fn run<'a>(
    scenario: &'a Scenario,
    (machine, nodes): (&dyn Endpoint, Box<dyn RunningMachine + 'a>),
    latency: bool,
    controller: &mut dyn Controller,
) -> Result<Outcome, EngineError> {
    Packets::new(scenario, machine.class_channels(), nodes, latency).run(controller)
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
    /// A terminal has open traffic to send.
    Created(u32),
}

/// What is to happen when. Of one time what was noted first comes first.
#[derive(Debug, Default)]
struct Events {
    due: BinaryHeap<Reverse<(u64, u64, Event)>>,
    noted: u64,
}

impl Events {
    fn note(&mut self, time: u64, event: Event) {
        self.noted += 1;
        self.due.push(Reverse((time, self.noted, event)));
    }

    fn next_time(&self) -> Option<u64> {
        self.due.peek().map(|next| next.0.0)
    }

    /// Takes the next event that is due by now.
    fn take(&mut self, now: u64) -> Option<Event> {
        let &Reverse((_, _, event)) = self.due.peek().filter(|next| next.0.0 <= now)?;
        self.due.pop();
        Some(event)
    }
}

struct Packets<'a> {
    scenario: &'a Scenario,
    /// Of each part of the machine: the virtual channels of its packets, and of the replies.
    channels_of_parts: Vec<[VirtualChannels; 2]>,
    /// Does a head take time through routers and channels?
    latency: bool,
    nodes: Box<dyn RunningMachine + 'a>,
    effects: Vec<Effect>,
    open: OpenTraffic,
    paths: Paths,
    /// Packets that each terminal has sent.
    serials: Vec<u32>,
    channels: Vec<Channel>,
    flights: Flights,
    events: Events,
    now: u64,
    counts: Counts,
}

impl<'a> Packets<'a> {
    fn new(
        scenario: &'a Scenario,
        channels_of_parts: Vec<[VirtualChannels; 2]>,
        nodes: Box<dyn RunningMachine + 'a>,
        latency: bool,
    ) -> Self {
        let network = &scenario.network;
        let terminals = network.terminal_count() as usize;
        Self {
            scenario,
            channels_of_parts,
            latency,
            nodes,
            effects: Vec::new(),
            open: OpenTraffic::new(scenario),
            paths: Paths::new(scenario),
            serials: vec![0; terminals],
            channels: vec![Channel::default(); network.channel_count() as usize],
            flights: Flights::default(),
            events: Events::default(),
            now: 0,
            counts: Counts::new(scenario),
        }
    }

    fn run(mut self, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        self.nodes.start(&mut self.effects);
        self.answer()?;
        self.start_open_traffic();
        let mut begin = 0u64;
        loop {
            let end = begin.saturating_add(controller.interval_cycles().max(1)).min(self.scenario.max_cycles.max(begin + 1));
            while let Some(time) = self.next_time().filter(|&time| time < end && !self.is_over() && !controller.should_stop()) {
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

    /// All programs have ended and none of their packets is left.
    fn is_over(&self) -> bool {
        self.nodes.unfinished() == 0 && self.flights.parcels == 0
    }

    fn next_time(&self) -> Option<u64> {
        [self.events.next_time(), self.nodes.next_due()].into_iter().flatten().min()
    }

    /// Everything of one time: first the packets, then the nodes, until nothing more is due.
    fn happen(&mut self) -> Result<(), EngineError> {
        while let Some(event) = self.events.take(self.now) {
            match event {
                Event::Free(channel) => {
                    self.channels[channel as usize].taken = false;
                    self.transfer(channel)?;
                }
                Event::Reached(flight) => self.reached(flight)?,
                Event::Created(terminal) => self.created(TerminalId(terminal))?,
            }
        }
        self.nodes.proceed(self.now, &mut self.effects);
        self.answer()
    }

    /// Does what the nodes ask for.
    fn answer(&mut self) -> Result<(), EngineError> {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send(parcel) => self.send(parcel)?,
                Effect::Taken { node, name } => {
                    self.flights.end(name);
                    // The next one comes after everything that is due now, so that all are treated alike.
                    self.events.note(self.now, Event::Free(self.scenario.network.ejection_channel(node).0));
                }
            }
        }
        self.effects = effects;
        Ok(())
    }

    /// A parcel joins the queue of its source.
    fn send(&mut self, parcel: MachinePacket) -> Result<(), EngineError> {
        let available = self.channels_of_parts[usize::from(parcel.part)][usize::from(parcel.is_reply)];
        let path = self.path([parcel.source, parcel.destination], available)?;
        let name = self.flights.begin(Flight::new(Load::Parcel(parcel), self.now, path, parcel.flits));
        self.join(name)
    }

    /// The channels of the next packet between these terminals, from the injection to the ejection.
    fn path(&mut self, [source, destination]: [TerminalId; 2], available: VirtualChannels) -> Result<Vec<u32>, EngineError> {
        let serial = self.serials[source.index()];
        self.serials[source.index()] += 1;
        let mut walk = [Walk::new(Request { source, destination, serial, available }, Vec::new())];
        let channels = &self.channels;
        let waiting = |channel: u32| channels[channel as usize].queue.len() as u32 + u32::from(channels[channel as usize].taken);
        self.paths.find(self.scenario, &mut walk, &waiting)?;
        let [walk] = walk;
        Ok(walk.channels)
    }

    /// A packet joins the queue of its next channel.
    fn join(&mut self, name: u32) -> Result<(), EngineError> {
        let flight = &self.flights[name];
        let channel = flight.path[flight.place];
        if let (Load::Parcel(parcel), true) = (&flight.load, flight.is_at_last()) {
            self.nodes.come(parcel.destination, self.now);
        }
        self.channels[channel as usize].queue.push_back(name);
        self.transfer(channel)
    }

    /// Lets the next packet cross a channel, if it is free.
    fn transfer(&mut self, channel: u32) -> Result<(), EngineError> {
        if self.channels[channel as usize].taken {
            return Ok(());
        }
        let name = match self.open.at(channel) {
            None => self.channels[channel as usize].queue.pop_front(),
            Some(terminal) => self.next_of(terminal)?,
        };
        if let Some(name) = name {
            self.cross(channel, name);
        }
        Ok(())
    }

    /// A packet begins to cross a channel.
    fn cross(&mut self, channel: u32, name: u32) {
        let record = &mut self.channels[channel as usize];
        let flight = &mut self.flights[name];
        (record.taken, record.flits) = (true, record.flits + u64::from(flight.flits));
        if flight.place == 0 {
            flight.begun = Some(self.now);
        }
        let period = u64::from(self.scenario.network.link(ChannelId(channel)).period);
        let (flits, begun) = (u64::from(flight.flits), self.now);
        let head = if self.latency { self.paths.head_cycles(&self.scenario.network, &flight.path, flight.place) } else { period };
        // The interface holds the channel to it until it takes the packet.
        if !(flight.is_at_last() && flight.is_parcel()) {
            self.events.note(begun + flits * period, Event::Free(channel));
        }
        self.events.note(begun + (flits - 1) * period + head, Event::Reached(name));
    }

    /// A packet has come to the end of its channel: to the next router, before the interface, or to its terminal.
    fn reached(&mut self, name: u32) -> Result<(), EngineError> {
        let flight = &mut self.flights[name];
        if !flight.is_at_last() {
            let (router, _) = self.scenario.network.input_port(ChannelId(flight.path[flight.place]));
            self.counts.passes(self.scenario, flight.class(self.scenario.classes.len()), router);
            flight.place += 1;
            return self.join(name);
        }
        flight.has_arrived = true;
        self.counts.accept(flight);
        match flight.load {
            Load::Parcel(parcel) => {
                self.counts.of_user(self.scenario, flight.class(self.scenario.classes.len()), flight, self.now);
                self.counts.parcel_arrived(&parcel, flight, self.now);
                self.nodes.arrive(parcel, name, self.now, &mut self.effects);
            }
            Load::Open { source, drawn } => self.open_arrived(name, source, &drawn),
        }
        Ok(())
    }

    /// The invariants: what is under way is in a queue, on a channel or before an interface.
    fn check(&self) -> Result<(), EngineError> {
        let unbalanced = |what: String| Err(EngineError::Unbalanced { cycle: self.now, what });
        if let Some(what) = self.nodes.broken() {
            return unbalanced(what.to_owned());
        }
        if let Some(what) = self.flights.broken() {
            return unbalanced(what);
        }
        let sent: u64 = self.channels.iter().take(self.serials.len()).map(|channel| channel.flits).sum();
        let (accepted, crossing) = (self.counts.accepted.iter().sum::<u64>(), self.flights.flits_in_network());
        if sent != accepted + crossing {
            return unbalanced(format!("{sent} flits were sent, {accepted} have arrived, {crossing} are under way"));
        }
        Ok(())
    }
}
