//! A network of crosspoint-buffered routers, from event to event.
//!
//! A router has a queue for each pair of an input and an output; it is written by its input alone and read by its output alone. A packet
//! moves as a whole: it goes only into queues that have room for all of it (virtual cut-through), and once its head has left, its flits
//! follow one a cycle. So the times of head and tail are those of all flits, and only they are computed.
//!
//! A multicast is written into all of the next router's queues that lead to its terminals, when all of them have room. Its copies then go
//! on for themselves, each with the terminals behind its queue. No packet holds anything while it waits for something that another waiting
//! packet holds: a head waits only for queues further on, and no chain of queues leads back. So multicasts cannot block each other for
//! ever. Which networks and routings are so is found in [`kasuri_network::multicast`]; others are refused.
//!
//! Synchronisation packets end in a table of the router that counts on which inputs they have come; when all have come, one leaves by
//! each output, or on a tree by the link up until all participants are below. In multistage networks a participant may enter the next round
//! when the present one has ended for it, so that its packet overtakes the end of the round elsewhere, but by one round only: the table has
//! two rows. On a tree none overtakes.

mod synchronise;
mod target;

use kasuri_model::engine::EngineError;
use kasuri_model::refusal::Refusal;
use kasuri_model::router::{CrosspointArbiter, CrosspointParameters};
use kasuri_network::id::ChannelId;
use kasuri_network::multicast::{self, GROUP, Tables};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::routing::Routing;
use std::collections::VecDeque;
pub(crate) use target::Target;

/// Picoseconds.
pub(crate) type Time = u64;

/// Identifiers of synchronisations.
const SYNCHRONISATIONS: usize = 128;

/// What happens in the network at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A head may now leave by this channel.
    Ready(u32),
    /// A tail has left by this channel, and (0: none) the queue numbered one less has so many flits less.
    Left { channel: u32, queue: u32, flits: u32 },
    /// A tail has left a terminal's queue.
    Gone { terminal: u32 },
    /// A queue into which a terminal's packets are written has room again.
    Room { terminal: u32 },
    /// A tail has arrived at a terminal.
    Arrived { terminal: u32, flight: u32, hops: u32 },
}

/// A packet in the network, with all of its copies.
#[derive(Clone, Debug)]
struct Flight<T> {
    target: Target,
    flits: u32,
    copies: u32,
    injected: Time,
    load: T,
}

/// A copy that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    flight: u32,
    /// When its head may leave.
    ready: Time,
    hops: u32,
    /// The terminals of the packet's group that it is for.
    terminals: u64,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Flits that it holds or has promised to hold.
    flits: u32,
}

/// A terminal's packets to the network, which leave in order. What will be given to it is promised before, both its place here and its
/// place in the queues of the first router.
#[derive(Clone, Debug, Default)]
struct SendQueue {
    waiting: VecDeque<Waiting>,
    /// Flits that it holds or has promised to hold.
    flits: u32,
    /// By output of the first router: flits of packets that have not left.
    promised: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Router(u32, u32),
    Terminal(u32),
}

#[derive(Debug)]
struct Channel {
    from: Place,
    to: Place,
    free_at: Time,
    /// The source that may go first.
    first: u32,
    /// Synchronisation packets that the router itself sends.
    own: VecDeque<Waiting>,
    flits: u64,
}

/// Sizes and times of the routers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// A cycle, in which a channel carries a flit.
    pub(crate) cycle: Time,
    /// Flits of a router's queue.
    pub(crate) queue: u32,
    /// Flits of a terminal's queues to and from the network.
    pub(crate) send: u32,
    pub(crate) receive: u32,
    pub(crate) parameters: CrosspointParameters,
}

/// What crosses the network, by number, and the numbers that are unused.
struct Flights<T> {
    records: Vec<Option<Flight<T>>>,
    unused: Vec<u32>,
}

/// The network. `T` is what its user wants to know of a packet again when it arrives.
pub(crate) struct Crosspoint<T> {
    sizes: Sizes,
    ports: u32,
    tables: Tables,
    channels: Vec<Channel>,
    /// By router and input; `u32::MAX` where nothing is connected. Then by router and output.
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    /// By router, input and output.
    queues: Vec<Queue>,
    /// By terminal: to the network, and flits promised from it.
    send: Vec<SendQueue>,
    receive: Vec<u32>,
    /// By router: when its table can be accessed again; by router and identifier: inputs on which packets of this round and of the next
    /// have come.
    table_free: Vec<Time>,
    table: Vec<[u32; 2]>,
    flights: Flights<T>,
    /// What will happen: the user takes it away and gives it back at its time.
    pub(crate) schedule: Vec<(Time, Event)>,
    /// A defect that was found.
    pub(crate) broken: Option<String>,
    /// Flits that crossed a router.
    pub(crate) flit_hops: u64,
}

const NONE: u32 = u32::MAX;

impl<T: Clone> Crosspoint<T> {
    /// An empty network.
    ///
    /// # Errors
    /// Packets have several ways or could wait for each other for ever, or a router has too many ports.
    pub(crate) fn new(network: &Network, routing: &dyn Routing, sizes: Sizes) -> Result<Self, EngineError> {
        let tables = Tables::new(network, routing).map_err(refuse)?;
        let (routers, ports) = (network.router_count(), tables.ports());
        let place = |endpoint| match endpoint {
            Endpoint::Router(router, port) => Place::Router(router.0, u32::from(port)),
            Endpoint::Terminal(terminal) => Place::Terminal(terminal.0),
        };
        let (mut inputs, mut outputs) = (vec![NONE; (routers * ports) as usize], vec![NONE; (routers * ports) as usize]);
        let mut channels = Vec::new();
        for number in 0..network.channel_count() {
            let (from, to) = (place(network.source(ChannelId(number))), place(network.destination(ChannelId(number))));
            if let Place::Router(router, port) = from {
                outputs[(router * ports + port) as usize] = number;
            }
            if let Place::Router(router, port) = to {
                inputs[(router * ports + port) as usize] = number;
            }
            channels.push(Channel { from, to, free_at: 0, first: 0, own: VecDeque::new(), flits: 0 });
        }
        let terminals = network.terminal_count() as usize;
        let identifiers = if terminals <= GROUP { SYNCHRONISATIONS } else { 0 };
        Ok(Self {
            sizes,
            ports,
            tables,
            channels,
            inputs,
            outputs,
            queues: vec![Queue::default(); (routers * ports * ports) as usize],
            send: vec![SendQueue { promised: vec![0; ports as usize], ..SendQueue::default() }; terminals],
            receive: vec![0; terminals],
            table_free: vec![0; routers as usize],
            table: vec![[0; 2]; routers as usize * identifiers],
            flights: Flights { records: Vec::new(), unused: Vec::new() },
            schedule: Vec::new(),
            broken: None,
            flit_hops: 0,
        })
    }

    /// Has a terminal's queue to the network room for a packet, and have the queues of the first router into which it will be written, apart
    /// from what was promised to others?
    pub(crate) fn can_promise(&self, terminal: u32, target: Target, flits: u32) -> bool {
        let send = &self.send[terminal as usize];
        let Place::Router(router, input) = self.channels[terminal as usize].to else { return false };
        let has_room = |output: u32| {
            let held = self.queues[self.queue_number(router, input, output) as usize].flits;
            held + send.promised[output as usize] + flits <= self.sizes.queue
        };
        send.flits + flits <= self.sizes.send && bits(self.first_outputs(terminal, target)).all(has_room)
    }

    /// Promises this room to a packet that will be given to [`Crosspoint::inject`].
    pub(crate) fn promise(&mut self, terminal: u32, target: Target, flits: u32) {
        let outputs = self.first_outputs(terminal, target);
        let send = &mut self.send[terminal as usize];
        send.flits += flits;
        bits(outputs).for_each(|output| send.promised[output as usize] += flits);
    }

    /// Holds this room in the first router for nobody, as though other packets had filled it.
    #[cfg(test)]
    pub(crate) fn hold(&mut self, terminal: u32, target: Target, flits: u32) {
        let outputs = self.first_outputs(terminal, target);
        bits(outputs).for_each(|output| self.send[terminal as usize].promised[output as usize] += flits);
    }

    /// Lets go of it.
    #[cfg(test)]
    pub(crate) fn let_go(&mut self, terminal: u32, target: Target, flits: u32) {
        let outputs = self.first_outputs(terminal, target);
        bits(outputs).for_each(|output| self.send[terminal as usize].promised[output as usize] -= flits);
    }

    /// Puts a packet, to which room was promised, into a terminal's queue.
    pub(crate) fn inject(&mut self, terminal: u32, target: Target, flits: u32, load: T, now: Time) {
        let flight = self.begin(Flight { target, flits, copies: 1, injected: now, load });
        let waiting = Waiting { flight, ready: now, hops: 0, terminals: target.place().1 };
        self.send[terminal as usize].waiting.push_back(waiting);
        self.try_send(terminal, now);
    }

    /// The outputs of a terminal's first router in whose queues its packets are written, a bit each.
    fn first_outputs(&self, terminal: u32, target: Target) -> u32 {
        match self.channels[terminal as usize].to {
            Place::Router(router, input) => self.next_outputs(router, input, target, target.place().1),
            Place::Terminal(_) => 0,
        }
    }

    /// A packet that has arrived, and when its head entered the network.
    pub(crate) fn load(&self, flight: u32) -> (&T, u32, Time) {
        let flight = self.flights.records[flight as usize].as_ref().expect("a flight lives until its last copy is taken");
        (&flight.load, flight.flits, flight.injected)
    }

    /// A terminal has taken a copy of a packet: its place in the queue is free. What is known of it stays until [`Crosspoint::end_copy`].
    pub(crate) fn take(&mut self, terminal: u32, flight: u32, now: Time) {
        let flits = self.load(flight).1;
        self.receive[terminal as usize] -= flits;
        let terminals = self.send.len() as u32;
        self.try_send(terminals + terminal, now);
    }

    /// Flits that each channel has carried.
    pub(crate) fn channel_flits(&self) -> Vec<u64> {
        self.channels.iter().map(|channel| channel.flits).collect()
    }

    /// Is nothing in it?
    pub(crate) fn is_empty(&self) -> bool {
        self.flights.unused.len() == self.flights.records.len()
    }

    /// Something that was scheduled happens. What concerns terminals, its user knows.
    pub(crate) fn happen(&mut self, event: Event, now: Time) {
        match event {
            Event::Ready(channel) => self.try_send(channel, now),
            Event::Left { channel, queue, flits } => {
                if let Place::Terminal(terminal) = self.channels[channel as usize].from {
                    self.send[terminal as usize].flits -= flits;
                    self.schedule.push((now, Event::Gone { terminal }));
                } else if queue > 0 {
                    self.queues[queue as usize - 1].flits -= flits;
                    let input = self.inputs[((queue - 1) / self.ports) as usize];
                    if let Place::Terminal(terminal) = self.channels[input as usize].from {
                        self.schedule.push((now, Event::Room { terminal }));
                    }
                    self.try_send(input, now);
                }
                self.try_send(channel, now);
            }
            Event::Gone { .. } | Event::Room { .. } | Event::Arrived { .. } => {}
        }
    }

    fn begin(&mut self, flight: Flight<T>) -> u32 {
        match self.flights.unused.pop() {
            Some(place) => {
                self.flights.records[place as usize] = Some(flight);
                place
            }
            None => {
                self.flights.records.push(Some(flight));
                self.flights.records.len() as u32 - 1
            }
        }
    }

    /// A copy of a packet is gone.
    pub(crate) fn end_copy(&mut self, number: u32) {
        let flight = self.flights.records[number as usize].as_mut().expect("a flight lives until its last copy is taken");
        flight.copies -= 1;
        if flight.copies == 0 {
            self.flights.records[number as usize] = None;
            self.flights.unused.push(number);
        }
    }

    /// The queues of a router into which a copy for these terminals is written; none if it ends in the table.
    fn next_outputs(&self, router: u32, input: u32, target: Target, terminals: u64) -> u32 {
        match target {
            Target::Unicast(_) | Target::Multicast { .. } => self.tables.outputs(router, input, target.place().0, terminals),
            Target::Synchronisation { .. } => 0,
        }
    }

    fn queue_number(&self, router: u32, input: u32, output: u32) -> u32 {
        (router * self.ports + input) * self.ports + output
    }

    fn has_room(&self, router: u32, input: u32, outputs: u32, flits: u32) -> bool {
        bits(outputs).all(|output| self.queues[self.queue_number(router, input, output) as usize].flits + flits <= self.sizes.queue)
    }

    /// The copy at the head of one of a router's sources: the queues of an output, then the router itself.
    fn head(&self, channel: u32, source: u32) -> Option<Waiting> {
        let channel = &self.channels[channel as usize];
        match channel.from {
            Place::Terminal(_) => None,
            Place::Router(..) if source == self.ports => channel.own.front().copied(),
            Place::Router(router, output) => self.queues[self.queue_number(router, source, output) as usize].waiting.front().copied(),
        }
    }

    /// Sends a packet by a channel, if it is free and its terminal or one of its router's sources has one for which there is room.
    fn try_send(&mut self, channel: u32, now: Time) {
        if channel == NONE || self.channels[channel as usize].free_at > now {
            return;
        }
        if let Place::Terminal(terminal) = self.channels[channel as usize].from {
            let first = self.send[terminal as usize].waiting.front().copied();
            if let Some(waiting) = first.filter(|waiting| self.has_next_room(channel, self.next_queues(channel, waiting), waiting)) {
                self.send(channel, 0, waiting, now);
            }
            return;
        }
        let sources = self.ports + 1;
        let first = match self.sizes.parameters.arbiter {
            CrosspointArbiter::RoundRobin => self.channels[channel as usize].first,
            CrosspointArbiter::Rotating => (now / self.sizes.cycle % Time::from(sources)) as u32,
            CrosspointArbiter::FirstCome | CrosspointArbiter::Fixed => 0,
        };
        let mut able = (0..sources).filter_map(|step| self.able(channel, (first + step) % sources, now));
        let chosen = match self.sizes.parameters.arbiter {
            CrosspointArbiter::FirstCome => able.min_by_key(|(_, waiting)| waiting.ready),
            _ => able.next(),
        };
        if let Some((source, waiting)) = chosen {
            self.channels[channel as usize].first = (source + 1) % sources;
            self.send(channel, source, waiting, now);
        }
    }

    /// The copy that one of a router's sources could send now.
    fn able(&self, channel: u32, source: u32, now: Time) -> Option<(u32, Waiting)> {
        let waiting = self.head(channel, source).filter(|waiting| waiting.ready <= now)?;
        self.has_next_room(channel, self.next_queues(channel, &waiting), &waiting).then_some((source, waiting))
    }

    /// The queues at the end of a channel into which a copy is written, a bit each.
    fn next_queues(&self, channel: u32, waiting: &Waiting) -> u32 {
        match self.channels[channel as usize].to {
            Place::Router(router, input) => self.next_outputs(router, input, self.flight(waiting).target, waiting.terminals),
            Place::Terminal(_) => 1,
        }
    }

    /// Is there room for a copy in these queues at the end of a channel?
    fn has_next_room(&self, channel: u32, queues: u32, waiting: &Waiting) -> bool {
        let flits = self.flight(waiting).flits;
        match self.channels[channel as usize].to {
            Place::Router(router, input) => self.has_room(router, input, queues, flits),
            Place::Terminal(terminal) => self.receive[terminal as usize] + flits <= self.sizes.receive,
        }
    }

    fn flight(&self, waiting: &Waiting) -> &Flight<T> {
        self.flights.records[waiting.flight as usize].as_ref().expect("what waits is alive")
    }

    fn send(&mut self, number: u32, source: u32, waiting: Waiting, now: Time) {
        let Waiting { flight, hops, .. } = waiting;
        let (target, flits) = (self.flight(&waiting).target, self.flight(&waiting).flits);
        let end = now + Time::from(flits) * self.sizes.cycle;
        let channel = &mut self.channels[number as usize];
        channel.free_at = end;
        channel.flits += u64::from(flits);
        let (from, to) = (channel.from, channel.to);
        let queue = match from {
            Place::Terminal(terminal) => {
                let outputs = self.first_outputs(terminal, target);
                let queue = &mut self.send[terminal as usize];
                queue.waiting.pop_front();
                bits(outputs).for_each(|output| queue.promised[output as usize] -= flits);
                if let Some(flight) = &mut self.flights.records[flight as usize] {
                    flight.injected = now;
                }
                0
            }
            Place::Router(..) if source == self.ports => {
                channel.own.pop_front();
                0
            }
            Place::Router(router, output) => {
                let queue = self.queue_number(router, source, output);
                self.queues[queue as usize].waiting.pop_front();
                queue + 1
            }
        };
        self.flit_hops += if matches!(from, Place::Router(..)) { u64::from(flits) } else { 0 };
        self.schedule.push((end, Event::Left { channel: number, queue, flits }));
        match (to, target) {
            (Place::Terminal(terminal), _) => {
                if !target.is_for(terminal, waiting.terminals) {
                    self.broken = Some(format!("a packet comes to terminal {terminal} that is for others"));
                }
                self.receive[terminal as usize] += flits;
                self.schedule.push((end, Event::Arrived { terminal, flight, hops }));
            }
            (Place::Router(router, input), Target::Synchronisation { sid, terminals }) => {
                self.synchronise(router, input, sid, terminals, waiting, now);
            }
            (Place::Router(router, input), _) => self.enter(router, input, target, waiting, now),
        }
    }

    /// Writes a packet into the queues of a router.
    fn enter(&mut self, router: u32, input: u32, target: Target, waiting: Waiting, now: Time) {
        let parameters = &self.sizes.parameters;
        let cycles = if matches!(target, Target::Multicast { .. }) { parameters.multicast_latency } else { parameters.latency };
        let ready = now + Time::from(cycles) * self.sizes.cycle;
        let outputs = self.next_outputs(router, input, target, waiting.terminals);
        if outputs == 0 {
            self.broken = Some(format!("a packet at router {router} leads to none of its terminals"));
            return;
        }
        let flight = self.flights.records[waiting.flight as usize].as_mut().expect("what waits is alive");
        flight.copies += outputs.count_ones() - 1;
        let flits = flight.flits;
        for output in bits(outputs) {
            let number = self.queue_number(router, input, output) as usize;
            let terminals = waiting.terminals & self.tables.behind(router, input, output, target.place().0);
            let queue = &mut self.queues[number];
            queue.flits += flits;
            queue.waiting.push_back(Waiting { ready, hops: waiting.hops + 1, terminals, ..waiting });
            self.schedule.push((ready, Event::Ready(self.outputs[(router * self.ports + output) as usize])));
        }
    }

    /// Checks that no queue holds more than it can, nor less than what waits in it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let length = |waiting: &Waiting| self.flights.records[waiting.flight as usize].as_ref().map_or(0, |flight| flight.flits);
        for (number, queue) in self.queues.iter().enumerate() {
            let waiting: u32 = queue.waiting.iter().map(length).sum();
            if waiting > queue.flits || queue.flits > self.sizes.queue {
                return Err(format!("queue {number} has promised room for {} flits, and {waiting} wait in it", queue.flits));
            }
        }
        if let Some(terminal) = self.receive.iter().position(|&flits| flits > self.sizes.receive) {
            return Err(format!("terminal {terminal} has promised room for {} flits", self.receive[terminal]));
        }
        match &self.broken {
            Some(problem) => Err(problem.clone()),
            None => Ok(()),
        }
    }
}

fn refuse(refusal: multicast::Refusal) -> EngineError {
    let multicast::Refusal { section, key, problem } = refusal;
    Refusal::new(format!("{section}.{key}"), problem).into()
}

/// The numbers of the bits that are set.
fn bits(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |bit| mask & 1 << bit != 0)
}

#[cfg(test)]
mod tests;
