//! The event loop: messages as fluid flows.
//!
//! A terminal sends its messages one after the other. Each takes the way that the routing gives it and flows at the rate of its
//! sharing until its last flit has gone; rates change only when a flow begins or ends. So time goes from event to event, and an
//! event costs as much as the flows whose rates it changes.

use crate::graph::Graph;
use crate::heap::Heap;
use crate::paths::{Paths, Request};
use crate::sharing::Sharing;
use crate::sources::{Drawn, Sources};
use crate::statistics::{Arrival, Statistics};
use kasuri_model::engine::{Command, Controller, EngineError, Interval, Outcome, Phase, Status};
use kasuri_model::id::{ChannelId, TerminalId};
use kasuri_model::scenario::Scenario;

/// Flows that end within this part of the present time of each other end together: what separates them is rounding.
const SIMULTANEOUS: f64 = 1e-12;

/// Intervals between two checks of all rates in a `paranoid` run.
const CHECK_PERIOD: u64 = 64;

/// The message that a terminal sends at present.
#[derive(Clone, Copy, Debug)]
struct Message {
    drawn: Drawn,
    begun: f64,
    /// Cycles from the end of the transfer to the arrival of the last flit.
    head_latency: f64,
    /// Flits that the counters hold already.
    counted: f64,
    hops: u32,
}

/// A running simulation. Flow number t is the message of terminal t.
pub(crate) struct Fluid<'a> {
    scenario: &'a Scenario,
    graph: Graph,
    sharing: Box<dyn Sharing>,
    by_equal_shares: bool,
    with_latency: bool,
    now: f64,
    sources: Sources,
    paths: Paths,
    messages: Vec<Option<Message>>,
    serials: Vec<u32>,
    /// When idle terminals have something to send.
    wakes: Heap,
    statistics: Statistics,
    /// Messages of a closed workload that have not arrived.
    to_come: Option<u64>,
    completion: Vec<f64>,
    /// Messages on their way.
    live: u64,
    /// Draining: measured messages on their way, and queues whose next message is measured.
    outstanding: u64,
    flit_hops: f64,
    rounds: u64,
    /// Channels below this number begin or end at terminals.
    first_router_channel: u32,
}

impl<'a> Fluid<'a> {
    pub(crate) fn new(scenario: &'a Scenario, sharing: Box<dyn Sharing>, by_equal_shares: bool, with_latency: bool) -> Self {
        let network = &scenario.network;
        let terminals = network.terminal_count() as usize;
        let channels = network.channel_count() as usize;
        let bandwidth = (0..channels as u32).map(|channel| 1.0 / f64::from(network.link(ChannelId(channel)).period)).collect();
        let sources = Sources::new(scenario);
        let mut wakes = Heap::new(terminals);
        for terminal in 0..terminals as u32 {
            if let Some(next) = sources.next(TerminalId(terminal)) {
                wakes.set(terminal, next);
            }
        }
        Self {
            scenario,
            graph: Graph::new(bandwidth, terminals),
            sharing,
            by_equal_shares,
            with_latency,
            now: 0.0,
            sources,
            paths: Paths::new(scenario),
            messages: vec![None; terminals],
            serials: vec![0; terminals],
            wakes,
            statistics: Statistics::new(terminals, channels),
            to_come: closed_messages(scenario),
            completion: vec![0.0; terminals],
            live: 0,
            outstanding: 0,
            flit_hops: 0.0,
            rounds: 0,
            first_router_channel: network.router_channels().next().map_or(channels as u32, |channel| channel.0),
        }
    }

    pub(crate) fn run(mut self, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        loop {
            let begin = self.now.ceil() as u64;
            let end = begin.saturating_add(controller.interval_cycles().max(1)).min(self.scenario.max_cycles.max(begin + 1));
            self.advance(end)?;
            let interval = self.close_interval(begin);
            match controller.interval_ended(&interval) {
                Command::Continue => {}
                Command::Clear => self.statistics.clear(Phase::WarmUp, interval.end_cycle),
                Command::Measure => self.statistics.clear(Phase::Measuring, interval.end_cycle),
                Command::Drain => self.drain(Phase::Draining, interval.end_cycle),
                Command::Empty => {
                    self.drain(Phase::Emptying, interval.end_cycle);
                    self.sources.closed = true;
                }
                Command::End(status) => return Ok(self.outcome(status)),
            }
            if interval.end_cycle >= self.scenario.max_cycles {
                return Ok(self.outcome(Status::MaxCycles));
            }
        }
    }

    /// Goes from event to event until `end`, or until nothing is left to wait for.
    fn advance(&mut self, end: u64) -> Result<(), EngineError> {
        while !self.is_over() {
            let ending = self.graph.next_end().map_or(f64::INFINITY, |(time, _)| time);
            let waking = self.wakes.first().map_or(f64::INFINITY, |(time, _)| time);
            let next = ending.min(waking);
            if next >= end as f64 {
                self.now = end as f64;
                return Ok(());
            }
            self.now = next.max(self.now);
            self.end_flows()?;
            self.wake_terminals()?;
            self.graph.share(&mut *self.sharing, self.now);
            self.rounds += 1;
            if self.scenario.paranoid && self.rounds % CHECK_PERIOD == 0 && !self.graph.is_fair(self.by_equal_shares) {
                let what = "a flow does not have the rate that its sharing defines".to_owned();
                return Err(EngineError::Unbalanced { cycle: self.now as u64, what });
            }
        }
        Ok(())
    }

    fn end_flows(&mut self) -> Result<(), EngineError> {
        let limit = self.now * (1.0 + SIMULTANEOUS);
        while let Some((time, flow)) = self.graph.next_end() {
            if time > limit {
                break;
            }
            self.settle(flow, 0.0);
            self.graph.end_first();
            self.arrive(TerminalId(flow));
            self.begin_next(TerminalId(flow))?;
        }
        Ok(())
    }

    fn wake_terminals(&mut self) -> Result<(), EngineError> {
        while let Some((time, terminal)) = self.wakes.first() {
            if time > self.now {
                break;
            }
            self.wakes.pop();
            if self.messages[terminal as usize].is_none() {
                self.begin_next(TerminalId(terminal))?;
            }
        }
        Ok(())
    }

    /// The transfer of a terminal's message has ended.
    fn arrive(&mut self, source: TerminalId) {
        let message = self.messages[source.index()].take().expect("a flow that ends belongs to a message");
        let arrival = self.now + message.head_latency;
        let created = message.drawn.created;
        let latency = arrival - created as f64;
        self.statistics.arrive(&Arrival { created, latency, network_latency: arrival - message.begun, hops: message.hops });
        self.live -= 1;
        self.outstanding -= u64::from(self.statistics.counting.phase == Phase::Draining && self.statistics.counting.covers(created));
        self.flit_hops += f64::from(message.drawn.flits) * f64::from(message.hops);
        let destination = message.drawn.destination;
        if let Some(to_come) = &mut self.to_come {
            *to_come -= 1;
            let completion = &mut self.completion[destination.index()];
            *completion = completion.max(arrival);
        }
        if !message.drawn.is_reply && self.scenario.classes[message.drawn.class].reply.is_some() {
            let at = arrival.ceil() as u64;
            self.sources.reply(self.scenario, destination, source, message.drawn.class, at);
            self.sleep(destination);
        }
    }

    /// Begins the next message of an idle terminal, or puts it to sleep until there is one.
    fn begin_next(&mut self, source: TerminalId) -> Result<(), EngineError> {
        let Some(drawn) = self.sources.draw(self.scenario, source, self.now) else {
            self.sleep(source);
            return Ok(());
        };
        // The queue goes on waiting if its next message is measured too.
        let until = self.statistics.counting.rates_until.unwrap_or(0);
        self.outstanding += u64::from(!drawn.is_reply && self.sources.has_next_before(source, drawn.class, until));
        let class = &self.scenario.classes[drawn.class];
        let available = match &class.reply {
            Some(reply) if drawn.is_reply => reply.virtual_channels,
            _ => class.virtual_channels,
        };
        let serial = self.serials[source.index()];
        self.serials[source.index()] += 1;
        let request = Request { source, destination: drawn.destination, serial, available };
        let graph = &self.graph;
        self.paths.find(self.scenario, &request, &|channel| graph.flows_on(channel))?;
        let head_latency = if self.with_latency { self.paths.head_latency(&self.scenario.network, drawn.flits) } else { 0.0 };
        let hops = self.paths.channels.len() as u32 - 1;
        let skipped = self.unshared_channels();
        self.graph.begin(source.0, &self.paths.channels[skipped..], f64::from(drawn.flits), self.now);
        self.messages[source.index()] = Some(Message { drawn, begun: self.now, head_latency, counted: 0.0, hops });
        self.live += 1;
        Ok(())
    }

    /// How many channels at the beginning of the way just found limit no message: a terminal has one message under way, so its
    /// injection channel is all its own, and no slower than the ejection channel if that is as slow.
    fn unshared_channels(&self) -> usize {
        let way = &self.paths.channels;
        let period = |channel: u32| self.scenario.network.link(ChannelId(channel)).period;
        usize::from(period(way[0]) <= period(way[way.len() - 1]))
    }

    /// An idle terminal wakes when its next message is created.
    fn sleep(&mut self, terminal: TerminalId) {
        if self.messages[terminal.index()].is_none()
            && let Some(next) = self.sources.next(terminal)
        {
            self.wakes.set(terminal.0, next.max(self.now));
        }
    }

    /// Adds the flits that have moved since the last time to the counters; `left` have not moved yet.
    fn settle(&mut self, flow: u32, left: f64) {
        let Some(message) = &mut self.messages[flow as usize] else { return };
        let moved = f64::from(message.drawn.flits) - left - message.counted;
        message.counted += moved;
        self.statistics.moved += moved;
        if self.statistics.counting.rates {
            self.statistics.injected[flow as usize] += moved;
            self.statistics.accepted[message.drawn.destination.index()] += moved;
            // The terminals' own channels carry what the terminals send and receive.
            for channel in self.graph.channels_of(flow).filter(|&channel| channel >= self.first_router_channel) {
                self.statistics.channels[channel as usize] += moved;
            }
        }
    }

    fn is_over(&self) -> bool {
        match self.statistics.counting.phase {
            Phase::WarmUp | Phase::Measuring => self.to_come == Some(0),
            Phase::Draining => self.outstanding == 0,
            Phase::Emptying => self.live == 0 && !self.sources.has_replies(),
        }
    }

    fn drain(&mut self, phase: Phase, now: u64) {
        self.statistics.counting.drain(phase, now);
        let measured = |message: &&Message| self.statistics.counting.covers(message.drawn.created);
        let live = self.messages.iter().flatten().filter(measured).count() as u64;
        self.outstanding =
            live + self.sources.waiting(self.statistics.counting.measured_from, self.statistics.counting.rates_until.unwrap_or(now));
    }

    fn close_interval(&mut self, begin: u64) -> Interval {
        let now = self.now.ceil() as u64;
        let mut interval = Interval {
            end_cycle: now,
            cycles: now - begin,
            backlog_cycles: self.sources.backlog_cycles(now),
            completed: self.to_come == Some(0),
            ..Interval::default()
        };
        for flow in 0..self.messages.len() as u32 {
            let left = self.graph.left(flow, self.now);
            self.settle(flow, left);
            if let Some(message) = &self.messages[flow as usize] {
                interval.in_flight_flits += left.ceil() as u64;
                interval.in_flight_age += left.ceil() as u64 * now.saturating_sub(message.drawn.created);
            }
        }
        let statistics = &mut self.statistics;
        interval.arrived = std::mem::take(&mut statistics.arrived);
        interval.accepted_flits = std::mem::take(&mut statistics.moved).round() as u64;
        interval.injected_flits = interval.accepted_flits;
        interval.counted = statistics.counted;
        interval.counted_accepted_flits = statistics.accepted.iter().sum::<f64>().round() as u64;
        interval.counted_cycles = statistics.counting.rate_cycles(now);
        interval.outstanding_packets = match statistics.counting.phase {
            Phase::Draining => self.outstanding,
            Phase::Emptying => self.live,
            Phase::WarmUp | Phase::Measuring => 0,
        };
        interval
    }

    /// Flits on each channel while rates were counted.
    fn channel_flits(&self) -> Vec<u64> {
        let network = &self.scenario.network;
        let mut flits = self.statistics.channels.clone();
        for terminal in (0..network.terminal_count()).map(TerminalId) {
            flits[network.injection_channel(terminal).index()] = self.statistics.injected[terminal.index()];
            flits[network.ejection_channel(terminal).index()] = self.statistics.accepted[terminal.index()];
        }
        flits.iter().map(|flits| flits.round() as u64).collect()
    }

    fn outcome(self, status: Status) -> Outcome {
        let statistics = &self.statistics;
        let now = self.now.ceil() as u64;
        let whole = |flits: &[f64]| flits.iter().map(|flits| flits.round() as u64).collect();
        let completed = self.to_come == Some(0);
        let cycles = |times: &[f64]| -> Vec<u64> { times.iter().map(|time| time.round() as u64).collect() };
        Outcome {
            status,
            cycles: now,
            warmup_cycles: statistics.counting.rates_from,
            measured_cycles: statistics.counting.rate_cycles(now),
            packet_latency: statistics.latency.distribution(),
            network_latency: statistics.network_latency.distribution(),
            flit_latency: kasuri_model::engine::Distribution::default(),
            hops: statistics.hops.distribution(),
            injected_flits: whole(&statistics.injected),
            accepted_flits: whole(&statistics.accepted),
            channel_flits: self.channel_flits(),
            router_occupancy: Vec::new(),
            completion_cycles: if completed { cycles(&self.completion) } else { Vec::new() },
            completion_time: completed.then(|| self.completion.iter().fold(0.0f64, |last, &time| last.max(time)).round() as u64),
            deadlock: Vec::new(),
            flit_hops: self.flit_hops as u64,
            not_modelled: NOT_MODELLED.iter().map(|&key| key.to_owned()).collect(),
            formulas: None,
        }
    }
}

/// What refines the answer of the flit engine and has no meaning for flows.
const NOT_MODELLED: &[&str] = &[
    "router.virtual_channels",
    "router.buffer_flits",
    "router.credit_delay",
    "router.vc_allocator",
    "router.switch_allocator",
    "router.vc_release",
];

/// Messages of a closed workload, replies included; `None` for open traffic.
fn closed_messages(scenario: &Scenario) -> Option<u64> {
    let terminals = scenario.network.terminal_count();
    let of_class = |class: &kasuri_model::scenario::TrafficClass| {
        let senders = (0..terminals).filter(|&terminal| !class.pattern.is_silent(TerminalId(terminal))).count() as u64;
        class.packets_per_terminal.map(|count| senders * count * if class.reply.is_some() { 2 } else { 1 })
    };
    scenario.classes.iter().map(of_class).sum()
}
