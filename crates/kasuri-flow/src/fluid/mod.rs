//! The event loop: messages as fluid flows.
//!
//! A terminal sends its messages one after the other. Each takes the way that the routing gives it and flows at the rate of its
//! sharing until its last flit has gone; rates change only when a flow begins or ends. So time goes from event to event, and an
//! event costs as much as the flows whose rates it changes.

mod next;
mod outcome;
mod rounds;

use crate::cohort::Cohort;
use crate::graph::{Bandwidth, Graph};
use crate::heap::Heap;
use crate::path_prefetch::{self, PathPrefetch};
use crate::paths::Paths;
use crate::sharing::Sharing;
use crate::sources::Sources;
use crate::statistics::{Arrival, Statistics};
use kasuri_model::engine::{Background, Command, Controller, EngineError, Outcome, Phase, Status, UserOutcome};
use kasuri_model::scenario::{Scenario, TrafficClass};
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::memory::filled;
use kasuri_network::network::{Link, Network};
use kasuri_workload::workload::Token;
use kasuri_workload::workload::agenda::Agenda;

/// Flows that end within this part of the present time of each other end together: what separates them is rounding.
const SIMULTANEOUS: f64 = 1e-12;

/// Intervals between two checks of all rates in a `paranoid` run.
const CHECK_PERIOD: u64 = 64;

/// The message that a terminal sends at present. 40 bytes.
#[derive(Clone, Copy, Debug)]
struct Message {
    created: f64,
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
        created: 0.0,
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
    /// Flows that have begun together and are not in the graph.
    cohort: Cohort,
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
    prefetch: PathPrefetch,
    /// Flows that end at the present moment.
    ending: Vec<u32>,
    messages: Box<[Message]>,
    /// By terminal, where there are answers: the cycle that decides whether its message is measured.
    asked: Box<[u64]>,
    /// When idle terminals have something to send.
    wakes: Heap,
    /// Terminals that have something to send at the present moment.
    waking: Vec<u32>,
    statistics: Statistics,
    /// By class whose it is, and what each user had; empty without users.
    user_of_class: Vec<usize>,
    users: Vec<UserOutcome>,
    /// What open traffic beside a workload had, where it is not users'.
    background: Option<Background>,
    /// Messages of a closed workload that have not arrived.
    to_come: Option<u64>,
    completion: Box<[f64]>,
    /// Batches: have all messages of some terminal arrived, and does the controller know?
    first_finished: bool,
    first_told: bool,
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
        let mut graph = Graph::new(bandwidth(network, channels.clone()), channels, terminals as u32, terminals);
        if scenario.routing.observes_congestion() {
            graph.list_all();
        }
        let agenda = scenario.agenda();
        let is_workload = agenda.is_some() && scenario.classes.is_empty() && users.is_none();
        // Who looks at the flows under way sees those that have begun before.
        let follows = scenario.classes.is_empty() && !scenario.routing.observes_congestion();
        Self {
            scenario,
            graph,
            cohort: Cohort::new(if is_workload { network.channel_count() as usize } else { 0 }, sharing.by_count()),
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
            prefetch: PathPrefetch::new(terminals, may_look_ahead(scenario)),
            ending: Vec::new(),
            messages: filled(terminals, Message::NONE),
            asked: filled(if scenario.classes.iter().any(|class| class.reply.is_some()) { terminals } else { 0 }, 0),
            wakes: Heap::new(terminals),
            waking: Vec::new(),
            statistics: Statistics::new(terminals),
            user_of_class: users
                .map(|users| (0..scenario.channels_of_classes().len()).filter_map(|class| users.of_class(class)).collect())
                .unwrap_or_default(),
            users: vec![UserOutcome::default(); users.map_or(0, |users| users.users.len())],
            background: scenario.has_background().then(Background::default),
            to_come: closed_messages(scenario),
            completion: filled(if scenario.is_closed() { terminals } else { 0 }, 0.0),
            first_finished: false,
            first_told: false,
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
                Command::RedrawPhases => self.redraw_phases(interval.end_cycle),
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
            let ending = self.cohort.first_end().or_else(|| self.graph.next_end()).unwrap_or(f64::INFINITY);
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
        self.rounds += 1;
        let is_checked = self.scenario.paranoid && self.rounds.is_multiple_of(CHECK_PERIOD);
        if self.cohort.share(&self.graph, self.paths.all_remembered(), self.now) && !is_checked {
            return Ok(());
        }
        self.part();
        self.graph.share(&mut *self.sharing, self.now);
        if is_checked && !self.graph.is_fair(self.by_equal_shares) {
            let what = "a flow does not have the rate that its sharing defines".to_owned();
            return Err(EngineError::Unbalanced { cycle: self.now as u64, what });
        }
        Ok(())
    }

    fn end_flows(&mut self) -> Result<(), EngineError> {
        let limit = self.now * (1.0 + SIMULTANEOUS);
        if self.cohort.end_by(limit) && self.agenda.as_ref().is_some_and(|agenda| !agenda.has_any_queued()) {
            return self.end_together();
        }
        self.part();
        let mut ending = std::mem::take(&mut self.ending);
        self.graph.take_ending(limit, &mut ending);
        for &flow in &ending {
            let flits = self.settle(flow, 0.0);
            self.graph.end(flow, flits);
            self.arrive(TerminalId(flow));
            if self.has_next(flow) {
                self.begin_next(TerminalId(flow))?;
            }
        }
        ending.clear();
        self.ending = ending;
        Ok(())
    }

    /// Has a terminal something to send after the message under way?
    #[inline(always)]
    fn has_next(&self, terminal: u32) -> bool {
        let is_queued = |agenda: &Agenda| agenda.has_any_queued() && agenda.has_queued(TerminalId(terminal));
        self.sources_send() || self.agenda.as_ref().is_some_and(is_queued)
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
            (Some(_), Some(missing)) if missing > 0 => Err(EngineError::never_sent(missing)),
            _ => Ok(()),
        }
    }

    /// The transfer of a terminal's message has ended.
    fn arrive(&mut self, source: TerminalId) {
        let message = self.messages[source.index()];
        self.messages[source.index()].flits = 0;
        let arrival = self.now + f64::from(message.head_latency);
        let created = message.created;
        let asked = self.asked_of(source.0);
        let of_workload = self.agenda.is_some() && message.class >= self.open_classes;
        let counting = self.statistics.counting;
        match &mut self.background {
            Some(background) if !of_workload => {
                let latency = counting.covers(asked).then(|| (arrival - created).round() as u64);
                background.count(message.flits, counting.rates, latency);
            }
            _ => self.statistics.arrive(&Arrival { created, asked, begun: message.begun, time: arrival, hops: message.hops }),
        }
        self.count_for_user(message.class, message.flits, (created, asked), arrival);
        self.live -= 1;
        let is_answered =
            !message.is_reply && self.scenario.classes.get(usize::from(message.class)).is_some_and(|class| class.reply.is_some());
        // An answer takes the place of the message that it answers among those that are waited for.
        let is_waited_for = self.statistics.counting.phase == Phase::Draining && self.statistics.counting.covers(asked);
        self.outstanding -= u64::from(is_waited_for && !is_answered);
        self.flit_hops += f64::from(message.flits) * f64::from(message.hops);
        let destination = message.destination;
        // The last flit arrives within this cycle: who waits for it goes on in the next.
        let end = if self.with_latency { arrival + 1.0 } else { arrival };
        if let Some(to_come) = &mut self.to_come
            && (of_workload || self.agenda.is_none())
        {
            *to_come -= 1;
            let completion = &mut self.completion[destination.index()];
            *completion = completion.max(end);
            if !self.first_finished && self.agenda.is_none() && (!message.is_reply || self.scenario.counts_answers()) {
                self.first_finished = !self.prefetch.has(source.0) && self.sources.is_exhausted(source);
            }
        }
        if let (Some(agenda), true) = (&mut self.agenda, of_workload) {
            let token = self.tokens[source.index()];
            agenda.sent(token);
            agenda.arrives(token, end, self.now);
            if let Some((to_come, last)) = self.parts.get_mut(usize::from(message.class - self.open_classes)) {
                *to_come -= 1;
                *last = last.max(end);
            }
        } else if is_answered {
            let at = arrival.ceil() as u64;
            self.sources.reply(self.scenario, destination, source, message.class, at, asked);
            self.sleep(destination);
        } else if self.sources.has_windows() {
            let waiting = if message.is_reply { destination } else { source };
            self.sources.come_back(message.class, waiting, arrival.floor() as u64 + 1);
            self.sleep(waiting);
        }
    }

    /// Counts a message for the user whose it is, if there are users.
    fn count_for_user(&mut self, class: u8, flits: u32, (created, asked): (f64, u64), arrival: f64) {
        let Some(&user) = self.user_of_class.get(usize::from(class)) else { return };
        let (counting, outcome) = (&self.statistics.counting, &mut self.users[user]);
        outcome.accepted_flits += u64::from(flits) * u64::from(counting.rates);
        if counting.covers(asked) {
            let latency = (arrival - created).round() as u64;
            outcome.packets += 1;
            outcome.packet_latency += latency;
            outcome.packet_latency_max = outcome.packet_latency_max.max(latency);
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
        if message.destination.0 == flow {
            self.statistics.to_self += moved;
        }
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

    /// The cycle that decides whether the message of a terminal is measured: its creation or, of an answer, that of the message that it
    /// answers.
    fn asked_of(&self, flow: u32) -> u64 {
        self.asked.get(flow as usize).copied().unwrap_or(self.messages[flow as usize].created as u64)
    }

    fn redraw_phases(&mut self, now: u64) {
        self.sources.redraw_phases(self.scenario, now);
        for terminal in 0..self.messages.len() as u32 {
            self.sleep(TerminalId(terminal));
        }
    }

    fn clear(&mut self, phase: Phase, now: u64) {
        self.statistics.clear(phase, now);
        self.users.fill(UserOutcome::default());
        self.hand_over();
        self.graph.forget_carried();
    }

    fn drain(&mut self, phase: Phase, now: u64) {
        self.statistics.settle();
        self.statistics.counting.drain(phase, now);
        self.hand_over();
        let is_measured = |flow: &u32| self.messages[*flow as usize].is_there() && self.statistics.counting.covers(self.asked_of(*flow));
        let live = (0..self.messages.len() as u32).filter(is_measured).count() as u64;
        self.outstanding =
            live + self.sources.waiting(self.statistics.counting.measured_from, self.statistics.counting.rates_until.unwrap_or(now));
    }
}

/// Messages of a closed workload, replies included; `None` for open traffic.
fn closed_messages(scenario: &Scenario) -> Option<u64> {
    if let Some(closed) = &scenario.workload {
        return Some(closed.workload.messages());
    }
    let terminals = scenario.network.terminal_count();
    let of_batch = |(class, count): (&TrafficClass, u64)| {
        let senders = (0..terminals).filter(|&terminal| !class.pattern.is_silent(TerminalId(terminal))).count() as u64;
        senders * count * if class.reply.is_some() && !class.window.counts_answers { 2 } else { 1 }
    };
    scenario.has_only_batches().then(|| scenario.batches().map(of_batch).sum())
}

/// May messages be drawn, and their paths be found, before they begin? Batches of one class do not depend on when. Of a small network
/// everything is near at hand, and nothing gained.
fn may_look_ahead(scenario: &Scenario) -> bool {
    let is_simple = scenario.workload.is_none() && scenario.classes.len() == 1 && scenario.classes[0].reply.is_none();
    let has_windows = scenario.classes.iter().any(|class| class.window.outstanding.is_some());
    let is_large = scenario.network.terminal_count() >= path_prefetch::LEAST_TERMINALS;
    is_large && is_simple && !has_windows && scenario.has_only_batches() && !scenario.routing.observes_congestion()
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
