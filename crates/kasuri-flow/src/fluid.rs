//! The event loop: messages as fluid flows.
//!
//! A terminal sends its messages one after the other. Each takes the way that the routing gives it and flows at the rate of its
//! sharing until its last flit has gone; rates change only when a flow begins or ends. So time goes from event to event, and an
//! event costs as much as the flows whose rates it changes.

use crate::ahead::{self, Ahead, Prepared};
use crate::graph::{Bandwidth, Graph};
use crate::heap::Heap;
use crate::paths::{Paths, Request, Walk};
use crate::sharing::Sharing;
use crate::sources::{Drawn, Sources};
use crate::statistics::{Arrival, Statistics};
use kasuri_model::engine::{Command, Controller, EngineError, Interval, Outcome, Phase, Status, UserOutcome};
use kasuri_model::id::{ChannelId, TerminalId};
use kasuri_model::memory::{fetch_ahead, filled};
use kasuri_model::network::{Link, Network};
use kasuri_model::routing::VirtualChannels;
use kasuri_model::scenario::Scenario;
use kasuri_model::workload::agenda::Agenda;
use kasuri_model::workload::{self, Token};

/// Flows that end within this part of the present time of each other end together: what separates them is rounding.
const SIMULTANEOUS: f64 = 1e-12;

/// Intervals between two checks of all rates in a `paranoid` run.
const CHECK_PERIOD: u64 = 64;

/// The message that a terminal sends at present. 40 bytes.
#[derive(Clone, Copy, Debug)]
struct Message {
    created: u64,
    begun: f64,
    /// Flits that the counters hold already.
    counted: f64,
    destination: TerminalId,
    /// 0: there is none.
    flits: u32,
    /// Cycles from the end of the transfer to the arrival of the last flit.
    head_latency: f32,
    hops: u16,
    class: u8,
    is_reply: bool,
}

impl Message {
    const NONE: Self = Self {
        created: 0,
        begun: 0.0,
        counted: 0.0,
        destination: TerminalId(0),
        flits: 0,
        head_latency: 0.0,
        hops: 0,
        class: 0,
        is_reply: false,
    };

    fn is_there(&self) -> bool {
        self.flits > 0
    }
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
    /// A closed workload in place of the sources or, where there are users, beside them.
    agenda: Option<Agenda<'a>>,
    /// Do its messages follow each other whatever else happens, so that what a round of them brings about need not be told?
    rounds_follow: bool,
    /// The classes of open traffic; those of the workload's messages follow.
    open_classes: u8,
    /// By part of a workload of users: messages that have not arrived, and when the last one has. Empty without users.
    parts: Vec<(u64, f64)>,
    /// By terminal: the closed workload's name of its message; empty without one.
    tokens: Box<[Token]>,
    paths: Paths,
    ahead: Ahead,
    /// Flows that end at the present moment.
    ending: Vec<u32>,
    messages: Box<[Message]>,
    /// When idle terminals have something to send.
    wakes: Heap,
    /// Terminals that have something to send at the present moment.
    waking: Vec<u32>,
    statistics: Statistics,
    /// By class whose it is, and what each user had; empty without users.
    user_of_class: Vec<usize>,
    users: Vec<UserOutcome>,
    /// Messages of a closed workload that have not arrived.
    to_come: Option<u64>,
    completion: Box<[f64]>,
    /// Batches: have all messages of some terminal arrived, and does the controller know?
    first_finished: bool,
    first_told: bool,
    /// When the last message of a closed workload joined its queue, and the cycle in which that counts.
    joined: (f64, u64),
    /// Messages on their way.
    live: u64,
    /// Draining: measured messages on their way, and queues whose next message is measured.
    outstanding: u64,
    flit_hops: f64,
    rounds: u64,
}

impl<'a> Fluid<'a> {
    pub(crate) fn new(scenario: &'a Scenario, sharing: Box<dyn Sharing>, by_equal_shares: bool, with_latency: bool) -> Self {
        let (network, users) = (&scenario.network, scenario.users.as_deref());
        let terminals = network.terminal_count() as usize;
        // A terminal has one message under way, so its injection channel is all its own.
        let first = if injection_is_no_limit(network) { terminals as u32 } else { 0 };
        let channels = first..network.channel_count();
        let mut graph = Graph::new(bandwidth(network, channels.clone()), channels, terminals as u32, terminals, sharing.by_count());
        if scenario.routing.observes_congestion() {
            graph.list_all();
        }
        let agenda = Agenda::of(scenario);
        // Who looks at the flows under way sees those that have begun before.
        let follows = scenario.classes.is_empty() && !scenario.routing.observes_congestion();
        Self {
            scenario,
            graph,
            sharing,
            by_equal_shares,
            with_latency,
            now: 0.0,
            sources: Sources::new(scenario),
            rounds_follow: follows && agenda.as_ref().is_some_and(Agenda::follows),
            agenda,
            open_classes: scenario.classes.len() as u8,
            parts: users
                .and(scenario.workload.as_ref())
                .map(|closed| closed.parts.iter().map(|part| (part.messages, 0.0)).collect())
                .unwrap_or_default(),
            tokens: filled(if scenario.workload.is_some() { terminals } else { 0 }, 0),
            paths: Paths::new(scenario),
            ahead: Ahead::new(terminals, may_look_ahead(scenario)),
            ending: Vec::new(),
            messages: filled(terminals, Message::NONE),
            wakes: Heap::new(terminals),
            waking: Vec::new(),
            statistics: Statistics::new(terminals),
            user_of_class: users
                .map(|users| (0..scenario.channels_of_classes().len()).filter_map(|class| users.of_class(class)).collect())
                .unwrap_or_default(),
            users: vec![UserOutcome::default(); users.map_or(0, |users| users.users.len())],
            to_come: closed_messages(scenario),
            completion: filled(if scenario.is_closed() { terminals } else { 0 }, 0.0),
            first_finished: false,
            first_told: false,
            joined: (0.0, 0),
            live: 0,
            outstanding: 0,
            flit_hops: 0.0,
            rounds: 0,
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
                Command::Clear => self.clear(Phase::WarmUp, interval.end_cycle),
                Command::Measure | Command::MeasureWaiting => self.clear(Phase::Measuring, interval.end_cycle),
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
        if self.rounds == 0 {
            (0..self.messages.len() as u32).try_for_each(|terminal| self.begin_next(TerminalId(terminal)))?;
            self.proceed()?;
            self.share()?;
        }
        while !self.is_over() {
            let ending = self.graph.next_end().unwrap_or(f64::INFINITY);
            let waking = self.wakes.least().unwrap_or(f64::INFINITY);
            let due = self.agenda.as_ref().map_or(f64::INFINITY, Agenda::next_due);
            let next = ending.min(waking).min(due);
            if next >= end as f64 {
                self.now = end as f64;
                return if next.is_infinite() { self.check_not_stuck() } else { Ok(()) };
            }
            self.now = next.max(self.now);
            self.end_flows()?;
            self.wake_terminals()?;
            self.proceed()?;
            self.share()?;
        }
        Ok(())
    }

    /// Gives all flows their rates.
    fn share(&mut self) -> Result<(), EngineError> {
        self.graph.share(&mut *self.sharing, self.now);
        self.rounds += 1;
        if self.scenario.paranoid && self.rounds.is_multiple_of(CHECK_PERIOD) && !self.graph.is_fair(self.by_equal_shares) {
            let what = "a flow does not have the rate that its sharing defines".to_owned();
            return Err(EngineError::Unbalanced { cycle: self.now as u64, what });
        }
        Ok(())
    }

    fn end_flows(&mut self) -> Result<(), EngineError> {
        let limit = self.now * (1.0 + SIMULTANEOUS);
        let mut ending = std::mem::take(&mut self.ending);
        self.graph.take_ending(limit, &mut ending);
        let has_next =
            |this: &Self, flow: u32| this.sources_send() || this.agenda.as_ref().is_some_and(|agenda| agenda.has_queued(TerminalId(flow)));
        // The rounds of a schedule: no flow is left to care for.
        let any_next = self.sources_send() || self.agenda.as_ref().is_some_and(Agenda::has_any_queued);
        let are_all = ending.len() as u64 == self.live && (!any_next || !ending.iter().any(|&flow| has_next(self, flow)));
        let follow = are_all && self.rounds_follow;
        for &flow in &ending {
            let flits = self.settle(flow, 0.0);
            if are_all {
                self.graph.end_with_all(flow, flits);
            } else {
                self.graph.end(flow, flits);
            }
            self.arrive(TerminalId(flow), !follow);
            if !are_all && has_next(self, flow) {
                self.begin_next(TerminalId(flow))?;
            }
        }
        if follow {
            ending.iter().try_for_each(|&flow| self.follow(flow))?;
        }
        ending.clear();
        self.ending = ending;
        Ok(())
    }

    /// Begins the message that follows the one that a terminal has sent, if one does.
    fn follow(&mut self, terminal: u32) -> Result<(), EngineError> {
        let token = self.tokens[terminal as usize];
        let Some(message) = self.agenda.as_mut().and_then(|agenda| agenda.follow(token)) else { return Ok(()) };
        let drawn = self.take(&message, self.now);
        self.send(message.source, &drawn)
    }

    fn wake_terminals(&mut self) -> Result<(), EngineError> {
        if self.wakes.least().is_none_or(|time| time > self.now) {
            return Ok(());
        }
        let mut waking = std::mem::take(&mut self.waking);
        self.wakes.pop_until(self.now, &mut waking);
        waking.drain(..).try_for_each(|terminal| self.begin_if_idle(terminal))?;
        self.waking = waking;
        Ok(())
    }

    /// Lets a closed workload answer to what has happened.
    fn proceed(&mut self) -> Result<(), EngineError> {
        let Some(agenda) = &mut self.agenda else { return Ok(()) };
        agenda.proceed(self.now);
        let ready = agenda.take_ready();
        for &message in &ready {
            // Nothing is queued where nothing is under way.
            if !self.messages[message.source.index()].is_there() {
                let drawn = self.take(&message, self.now);
                self.send(message.source, &drawn)?;
            } else if let Some(agenda) = &mut self.agenda {
                agenda.queue(message, self.now);
            }
        }
        if let Some(agenda) = &mut self.agenda {
            agenda.put_ready(ready);
        }
        Ok(())
    }

    /// Is there anything but a workload?
    #[inline(always)]
    fn sources_send(&self) -> bool {
        self.agenda.is_none() || self.open_classes > 0
    }

    fn begin_if_idle(&mut self, terminal: u32) -> Result<(), EngineError> {
        if self.messages[terminal as usize].is_there() { Ok(()) } else { self.begin_next(TerminalId(terminal)) }
    }

    /// A closed workload of which nothing is due and nothing under way has to be at its end.
    fn check_not_stuck(&self) -> Result<(), EngineError> {
        match (&self.agenda, self.to_come) {
            (Some(_), Some(missing)) if missing > 0 => Err(Agenda::stuck(missing)),
            _ => Ok(()),
        }
    }

    /// The transfer of a terminal's message has ended, of which the workload is told or not.
    fn arrive(&mut self, source: TerminalId, tell: bool) {
        let message = self.messages[source.index()];
        self.messages[source.index()].flits = 0;
        let arrival = self.now + f64::from(message.head_latency);
        let created = message.created;
        self.statistics.arrive(&Arrival { created, begun: message.begun, time: arrival, hops: message.hops });
        self.count_for_user(message.class, message.flits, created, arrival);
        self.live -= 1;
        self.outstanding -= u64::from(self.statistics.counting.phase == Phase::Draining && self.statistics.counting.covers(created));
        self.flit_hops += f64::from(message.flits) * f64::from(message.hops);
        let destination = message.destination;
        // The last flit arrives within this cycle: who waits for it goes on in the next.
        let end = if self.with_latency { arrival + 1.0 } else { arrival };
        let of_workload = self.agenda.is_some() && message.class >= self.open_classes;
        if let Some(to_come) = &mut self.to_come
            && (of_workload || self.agenda.is_none())
        {
            *to_come -= 1;
            let completion = &mut self.completion[destination.index()];
            *completion = completion.max(end);
            if !self.first_finished && self.agenda.is_none() && !message.is_reply {
                self.first_finished = !self.ahead.has(source.0) && self.sources.is_exhausted(source);
            }
        }
        if let (Some(agenda), true) = (&mut self.agenda, of_workload) {
            let token = self.tokens[source.index()];
            if tell {
                agenda.sent(token);
            }
            agenda.arrives(token, end, self.now);
            if let Some((to_come, last)) = self.parts.get_mut(usize::from(message.class - self.open_classes)) {
                *to_come -= 1;
                *last = last.max(end);
            }
        } else if !message.is_reply && self.scenario.classes[usize::from(message.class)].reply.is_some() {
            let at = arrival.ceil() as u64;
            self.sources.reply(self.scenario, destination, source, message.class, at);
            self.sleep(destination);
        }
    }

    /// Counts a message for the user whose it is, if there are users.
    fn count_for_user(&mut self, class: u8, flits: u32, created: u64, arrival: f64) {
        let Some(&user) = self.user_of_class.get(usize::from(class)) else { return };
        let (counting, outcome) = (&self.statistics.counting, &mut self.users[user]);
        outcome.accepted_flits += u64::from(flits) * u64::from(counting.rates);
        if counting.covers(created) {
            let latency = (arrival - created as f64).round() as u64;
            outcome.packets += 1;
            outcome.packet_latency += latency;
            outcome.packet_latency_max = outcome.packet_latency_max.max(latency);
        }
    }

    /// Begins the next message of an idle terminal, or puts it to sleep until there is one.
    fn begin_next(&mut self, source: TerminalId) -> Result<(), EngineError> {
        if self.ahead.is_used {
            let Some(Prepared { drawn, channels }) = self.prepare(source)? else {
                self.sleep(source);
                return Ok(());
            };
            self.begin(source, &drawn, channels);
            return Ok(());
        }
        let Some(drawn) = self.draw(source) else {
            if self.sources_send() {
                self.sleep(source);
            }
            return Ok(());
        };
        self.send(source, &drawn)
    }

    /// Begins a message that has no way yet.
    fn send(&mut self, source: TerminalId, drawn: &Drawn) -> Result<(), EngineError> {
        if let Some(others) = self.paths.remembered(&self.scenario.network, source, drawn.destination) {
            let injection = self.scenario.network.injection_channel(source).0;
            let (hops, head_latency) = (others.len(), self.head_latency(source, others, drawn.flits));
            self.graph.begin(source.0, injection, others, drawn.destination.0, f64::from(drawn.flits), self.now);
            self.sources.number(source);
            self.note(source, drawn, hops, head_latency);
            return Ok(());
        }
        let mut walk = self.walk(source, drawn);
        let graph = &self.graph;
        self.paths.find(self.scenario, std::slice::from_mut(&mut walk), &|channel| graph.occupancy(channel))?;
        self.begin(source, drawn, walk.channels);
        Ok(())
    }

    /// Begins a message that has its way: injection, between routers, ejection.
    fn begin(&mut self, source: TerminalId, drawn: &Drawn, channels: Vec<u32>) {
        let (injection, others) = (channels[0], &channels[1..]);
        self.graph.begin(source.0, injection, others, drawn.destination.0, f64::from(drawn.flits), self.now);
        self.note(source, drawn, others.len(), self.head_latency(source, others, drawn.flits));
        self.ahead.give_back(channels);
    }

    /// Cycles from the end of a transfer to the arrival of the last flit.
    fn head_latency(&self, source: TerminalId, others: &[u32], flits: u32) -> f32 {
        if self.with_latency { self.paths.head_latency(&self.scenario.network, source, others, flits) as f32 } else { 0.0 }
    }

    /// Notes a message that has begun.
    fn note(&mut self, source: TerminalId, drawn: &Drawn, hops: usize, head_latency: f32) {
        // The queue goes on waiting if its next message is measured too.
        if let Some(until) = self.statistics.counting.rates_until {
            self.outstanding += u64::from(!drawn.is_reply && self.sources.has_next_before(source, drawn.class, until));
        }
        self.messages[source.index()] = Message {
            created: drawn.created,
            begun: self.now,
            counted: 0.0,
            destination: drawn.destination,
            flits: drawn.flits,
            head_latency,
            hops: hops as u16,
            class: drawn.class,
            is_reply: drawn.is_reply,
        };
        self.live += 1;
    }

    /// The next message of a terminal and its way. Those of the terminals whose messages end next are found together with it.
    fn prepare(&mut self, source: TerminalId) -> Result<Option<Prepared>, EngineError> {
        if let Some(prepared) = self.ahead.take(source.0) {
            return Ok(Some(prepared));
        }
        let Some(drawn) = self.draw(source) else { return Ok(None) };
        let mut drawns = std::mem::take(&mut self.ahead.drawns);
        let mut walks = std::mem::take(&mut self.ahead.walks);
        walks.push(self.walk(source, &drawn));
        drawns.push(drawn);
        self.add_followers(source, &mut walks, &mut drawns);
        let graph = &self.graph;
        self.paths.find(self.scenario, &mut walks, &|channel| graph.occupancy(channel))?;
        self.fetch(&walks);
        for (walk, drawn) in walks.drain(..).zip(drawns.drain(..)) {
            self.ahead.put(walk.request.source.0, Prepared { drawn, channels: walk.channels });
        }
        (self.ahead.walks, self.ahead.drawns) = (walks, drawns);
        Ok(self.ahead.take(source.0))
    }

    fn draw(&mut self, source: TerminalId) -> Option<Drawn> {
        if let Some((message, since)) = self.agenda.as_mut().and_then(|agenda| agenda.draw(source)) {
            return Some(self.take(&message, since));
        }
        if self.sources_send() { self.sources.draw(self.scenario, source, self.now) } else { None }
    }

    /// Takes a message of a closed workload that joined its queue at a time.
    fn take(&mut self, message: &workload::Message, since: f64) -> Drawn {
        self.tokens[message.source.index()] = message.token;
        // Messages mostly join their queues together; `f64::ceil` is a call.
        if since != self.joined.0 {
            self.joined = (since, since.ceil() as u64);
        }
        let several = self.scenario.workload.as_ref().filter(|_| self.parts.len() > 1);
        let class = self.open_classes + several.map_or(0, |closed| closed.part_of(message.token)) as u8;
        Drawn { created: self.joined.1, destination: message.destination, flits: message.flits, class, is_reply: false }
    }

    /// The beginning of the way of a terminal's next message.
    fn walk(&mut self, source: TerminalId, drawn: &Drawn) -> Walk {
        let serial = self.sources.number(source);
        let request = Request { source, destination: drawn.destination, serial, available: self.available(drawn) };
        Walk::new(request, self.ahead.memory())
    }

    /// Adds the next messages of the terminals whose present messages end next; in the beginning, of the terminals that follow.
    fn add_followers(&mut self, source: TerminalId, walks: &mut Vec<Walk>, drawns: &mut Vec<Drawn>) {
        let mut soon = std::mem::take(&mut self.ahead.soon);
        if self.rounds == 0 {
            soon.extend(source.0 + 1..(source.0 + ahead::MOST as u32).min(self.messages.len() as u32));
        } else {
            self.ahead.list_next(&self.graph, self.now, source.0, &mut soon);
        }
        for &flow in &soon {
            self.sources.fetch(flow);
            self.graph.fetch_flow(flow);
            self.scenario.network.fetch_input_port(ChannelId(flow));
            fetch_ahead(&self.messages, flow as usize);
            fetch_ahead(&self.statistics.injected, flow as usize);
        }
        for &flow in &soon {
            self.graph.fetch_channels(flow);
            fetch_ahead(&self.completion, self.messages[flow as usize].destination.index());
            if let Some(drawn) = self.draw(TerminalId(flow)) {
                walks.push(self.walk(TerminalId(flow), &drawn));
                drawns.push(drawn);
            }
        }
        for &flow in &soon {
            self.graph.fetch_neighbours(flow);
        }
        soon.clear();
        self.ahead.soon = soon;
    }

    /// Fetches what messages will touch when they begin.
    fn fetch(&self, walks: &[Walk]) {
        let channels = || walks.iter().flat_map(|walk| &walk.channels);
        channels().for_each(|&channel| self.graph.fetch_channel(channel));
        channels().for_each(|&channel| self.graph.fetch_first(channel));
    }

    /// The virtual channels that a message may use: some routings tell classes of them apart.
    fn available(&self, drawn: &Drawn) -> VirtualChannels {
        if let Some(closed) = &self.scenario.workload
            && drawn.class >= self.open_classes
        {
            return closed.parts[usize::from(drawn.class - self.open_classes)].virtual_channels;
        }
        let class = &self.scenario.classes[usize::from(drawn.class)];
        match &class.reply {
            Some(reply) if drawn.is_reply => reply.virtual_channels,
            _ => class.virtual_channels,
        }
    }

    /// An idle terminal wakes when its next message is created.
    fn sleep(&mut self, terminal: TerminalId) {
        if !self.messages[terminal.index()].is_there()
            && let Some(next) = self.sources.next(terminal)
        {
            self.wakes.set(terminal.0, next.max(self.now));
        }
    }

    /// Adds the flits that have moved since the last time to the counters; `left` have not moved yet. Returns what the counters
    /// of its channels lack.
    #[inline(always)]
    fn settle(&mut self, flow: u32, left: f64) -> f64 {
        let message = &mut self.messages[flow as usize];
        if !message.is_there() {
            return 0.0;
        }
        let moved = f64::from(message.flits) - left - message.counted;
        message.counted += moved;
        self.statistics.moved += moved;
        if !self.statistics.counting.rates {
            return 0.0;
        }
        self.statistics.injected[flow as usize] += moved;
        moved
    }

    /// Has a closed workload been done?
    fn is_complete(&self) -> bool {
        self.to_come == Some(0) && self.agenda.as_ref().is_none_or(Agenda::is_idle)
    }

    fn is_over(&self) -> bool {
        match self.statistics.counting.phase {
            Phase::WarmUp | Phase::Measuring => self.is_complete() || self.first_finished && !self.first_told,
            Phase::Draining => self.outstanding == 0,
            Phase::Emptying => self.live == 0 && !self.sources.has_replies(),
        }
    }

    fn clear(&mut self, phase: Phase, now: u64) {
        self.statistics.clear(phase, now);
        self.users.fill(UserOutcome::default());
        self.graph.forget_carried();
    }

    fn drain(&mut self, phase: Phase, now: u64) {
        self.statistics.settle();
        self.statistics.counting.drain(phase, now);
        let measured = |message: &&Message| message.is_there() && self.statistics.counting.covers(message.created);
        let live = self.messages.iter().filter(measured).count() as u64;
        self.outstanding =
            live + self.sources.waiting(self.statistics.counting.measured_from, self.statistics.counting.rates_until.unwrap_or(now));
    }

    fn close_interval(&mut self, begin: u64) -> Interval {
        let now = self.now.ceil() as u64;
        let mut interval = Interval {
            end_cycle: now,
            cycles: now - begin,
            backlog_cycles: self.sources.backlog_cycles(now),
            completed: self.is_complete(),
            first_finished: self.first_finished,
            ..Interval::default()
        };
        self.first_told = self.first_finished;
        // Nobody asks for the course of a closed workload.
        let moving = if self.sources_send() { self.messages.len() as u32 } else { 0 };
        for flow in 0..moving {
            let left = self.graph.left(flow, self.now);
            let flits = self.settle(flow, left);
            self.graph.carry(flow, flits);
            let message = &self.messages[flow as usize];
            if message.is_there() {
                interval.in_flight_flits += left.ceil() as u64;
                interval.in_flight_age += left.ceil() as u64 * now.saturating_sub(message.created);
            }
        }
        self.statistics.settle();
        let statistics = &mut self.statistics;
        interval.arrived = std::mem::take(&mut statistics.arrived);
        interval.accepted_flits = std::mem::take(&mut statistics.moved).round() as u64;
        interval.injected_flits = interval.accepted_flits;
        interval.counted = statistics.counted;
        interval.counted_accepted_flits = self.graph.accepted().sum::<f64>().round() as u64;
        interval.counted_cycles = statistics.counting.rate_cycles(now);
        interval.outstanding_packets = match statistics.counting.phase {
            Phase::Draining => self.outstanding,
            Phase::Emptying => self.live,
            Phase::WarmUp | Phase::Measuring => 0,
        };
        interval
    }

    /// Notes when the users' workloads have ended.
    fn note_ends(&mut self) {
        for (part, &(to_come, end)) in self.parts.iter().enumerate() {
            if let Some(&user) = self.user_of_class.get(usize::from(self.open_classes) + part) {
                self.users[user].completion = (to_come == 0).then_some(end);
            }
        }
    }

    fn outcome(mut self, status: Status) -> Outcome {
        let completed = self.is_complete();
        self.statistics.settle();
        // The vectors of the answer need the room.
        self.note_ends();
        drop((std::mem::take(&mut self.messages), self.sources, self.ahead));
        let channel_flits = channel_flits(self.scenario, &self.graph, &self.statistics);
        let accepted_flits = self.graph.accepted().map(|flits| flits.round() as u64).collect();
        drop(self.graph);
        let statistics = &mut self.statistics;
        let now = self.now.ceil() as u64;
        let done = self.agenda.as_ref().map_or(0.0, |agenda| agenda.last_done);
        let timeline = self.agenda.as_mut().map(Agenda::take_timeline).unwrap_or_default();
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
            injected_flits: statistics.injected.iter().map(|flits| flits.round() as u64).collect(),
            accepted_flits,
            channel_flits,
            router_occupancy: Vec::new(),
            completion_cycles: if completed { cycles(&self.completion) } else { Vec::new() },
            completion_time: completed.then(|| self.completion.iter().fold(done, |last, &time| last.max(time))),
            deadlock: Vec::new(),
            flit_hops: self.flit_hops as u64,
            prediction: None,
            link_errors: None,
            not_modelled: NOT_MODELLED.iter().map(|&key| key.to_owned()).chain(not_modelled_of(self.scenario)).collect(),
            users: self.users,
            formulas: None,
            timeline,
            interfaces: None,
        }
    }
}

/// Flits on each channel while rates were counted.
fn channel_flits(scenario: &Scenario, graph: &Graph, statistics: &Statistics) -> Vec<u64> {
    // An injection channel that limits nothing has no part in the graph.
    let carried = |channel: u32| graph.carried(channel).unwrap_or_else(|| statistics.injected[channel as usize]);
    (0..scenario.network.channel_count()).map(|channel| carried(channel).round() as u64).collect()
}

/// What refines the answer of the flit engine and has no meaning for flows.
const NOT_MODELLED: &[&str] = &[
    "router.virtual_channels",
    "router.vc_per_destination",
    "router.architecture",
    "router.buffer_flits",
    "router.credit_delay",
    "router.vc_allocator",
    "router.switch_allocator",
    "router.vc_release",
];

/// What only the flit engine knows of this scenario's users, and of its routers where they are not plain.
pub(crate) fn not_modelled_of(scenario: &Scenario) -> impl Iterator<Item = String> {
    let keys: &[&str] = if scenario.users.is_some() { &["translation", "users.isolation", "user.share", "user.change_every"] } else { &[] };
    let of_classes = [
        ("router.class_queues", scenario.router.class_queues),
        ("traffic.class.shares_coins", scenario.classes.iter().any(|class| class.joint.is_some())),
        ("traffic.class.reply.delay", scenario.classes.iter().filter_map(|class| class.reply.as_ref()).any(|reply| reply.delay > 0)),
    ];
    // Allocators stand among what is never modelled.
    let of_router = scenario.router.general_keys().filter(|key| !key.ends_with("_allocator")).map(|key| format!("router.{key}"));
    let of_classes = of_classes.into_iter().filter(|&(_, is_used)| is_used).map(|(key, _)| key.to_owned());
    keys.iter().map(|&key| key.to_owned()).chain(of_router).chain(of_classes)
}

/// Messages of a closed workload, replies included; `None` for open traffic.
fn closed_messages(scenario: &Scenario) -> Option<u64> {
    if let Some(closed) = &scenario.workload {
        return Some(closed.workload.messages());
    }
    let terminals = scenario.network.terminal_count();
    let of_class = |class: &kasuri_model::scenario::TrafficClass| {
        let senders = (0..terminals).filter(|&terminal| !class.pattern.is_silent(TerminalId(terminal))).count() as u64;
        class.packets_per_terminal.map(|count| senders * count * if class.reply.is_some() { 2 } else { 1 })
    };
    scenario.classes.iter().map(of_class).sum()
}

/// May messages be drawn, and their ways be found, before they begin? Batches of one class do not depend on when. Of a small network
/// everything is near at hand, and nothing gained.
fn may_look_ahead(scenario: &Scenario) -> bool {
    let is_simple = scenario.workload.is_none() && scenario.classes.len() == 1 && scenario.classes[0].reply.is_none();
    let is_large = scenario.network.terminal_count() >= ahead::LEAST_TERMINALS;
    is_large && is_simple && scenario.has_only_batches() && !scenario.routing.observes_congestion()
}

/// The bandwidth of these channels.
fn bandwidth(network: &Network, channels: std::ops::Range<u32>) -> Bandwidth {
    let of = |link: &Link| 1.0 / f64::from(link.period);
    let first = network.links().first().map_or(1.0, of);
    if network.links().iter().all(|link| of(link) == first) {
        return Bandwidth::Equal(first);
    }
    Bandwidth::Each(channels.map(|channel| of(&network.link(ChannelId(channel)))).collect())
}

/// Is every injection channel at least as fast as every ejection channel, so that the one limits no message that the other does
/// not?
fn injection_is_no_limit(network: &Network) -> bool {
    let periods = |first: u32| (first..first + network.terminal_count()).map(|channel| network.link(ChannelId(channel)).period);
    network.links().len() == 1 || periods(0).max() <= periods(network.terminal_count()).min()
}
