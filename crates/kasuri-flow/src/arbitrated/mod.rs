//! The arbitrated sharing: what each message gets of a channel follows from what routers do.
//!
//! A message is cut into *parcels* of several packets. A parcel behaves as a packet does, in a network whose packets, buffers and times per
//! packet are all as many times as long: it asks for a virtual channel (a *lane*) of the next channel, crosses the channel flit after flit,
//! and lies in the buffers behind its head while that waits. Shares are not computed; they come of round robin among the inputs of routers,
//! of buffers of bounded size, and of queues whose front holds up what stands behind it. What a longer pipeline adds to the time of a lone
//! parcel is taken off when it arrives.

mod arrivals;
mod deadlock;
mod invariants;
mod options;
mod outcome;
mod records;
mod rules;
mod sending;
mod timing;
mod transit;
mod wheel;

use crate::counts::{Counts, Ends};
use crate::heap::Heap;
use crate::paths::Paths;
use kasuri_model::engine::{Command, Controller, EngineError, Outcome, Phase, Status, UserOutcome};
use kasuri_model::scenario::Scenario;
use kasuri_model::sources::Sources;
use kasuri_network::id::TerminalId;
use kasuri_network::memory::Column;
use kasuri_network::network::metrics::hops_from;
use kasuri_workload::workload::agenda::Agenda;
pub use options::{Grain, Mechanism};
use records::{Input, Lane, NONE, Output, Parcel, Place};
use sending::{Message, Messages};
use timing::Timing;
use transit::{Counted, Happening, Hop, Load, Transit};

/// Cycles with events between two questions whether the controller wants the interval to end.
const PATIENCE: u32 = 64;

/// A running simulation. Many fields, because it is what everything else stands in.
struct Run<'a> {
    scenario: &'a Scenario,
    transit: Transit,
    paths: Paths,
    sources: Sources,
    /// A closed workload in place of open traffic or beside it; by part of it, messages that have not arrived, and when the last one has.
    agenda: Option<Agenda<'a>>,
    parts: Vec<(u64, f64)>,
    /// Classes of open traffic; those of the workload follow.
    classes: u8,
    /// When idle terminals have something to send, and those that do now.
    wakes: Heap,
    waking: Vec<u32>,
    /// By terminal: the message that it sends, or [`NONE`].
    sending: Column<u32>,
    messages: Messages,
    /// Do heads take time through routers and channels?
    with_latency: bool,
    counts: Counts,
    ends: Ends,
    /// Draining: measured messages on their way, and queues whose next message is measured.
    outstanding: u64,
    /// What the controller has been told of.
    told: Counted,
}

/// Runs a scenario.
///
/// # Errors
/// The routing does not bring a message to its destination; a workload waits for what never happens; an invariant is broken.
pub(crate) fn run(
    scenario: &Scenario,
    (grain, without): (Grain, &[Mechanism]),
    with_latency: bool,
    controller: &mut dyn Controller,
) -> Result<Outcome, EngineError> {
    let timing = Timing::new(scenario, grain, without)?;
    let mut outcome = Run::new(scenario, timing, with_latency).run(controller)?;
    outcome.not_modelled.extend(without.iter().flat_map(|mechanism| mechanism.keys()).map(|&key| key.to_owned()));
    Ok(outcome)
}

/// Bytes that a run takes at most: channels with who waits there, lanes with the times of their buffers, and of each terminal a message
/// with a parcel on every channel of its path.
pub(crate) fn memory_bytes(scenario: &Scenario) -> u64 {
    let network = &scenario.network;
    let (terminals, channels) = (u64::from(network.terminal_count()), u64::from(network.channel_count()));
    let hops = hops_from(network, network.injection_port(TerminalId(0)).0);
    let longest = u64::from(hops.into_iter().flatten().max().unwrap_or(0)) + 2;
    let lanes = channels << records::lane_shift(scenario.router.virtual_channels);
    let buffers = timing::most_room(scenario).next_power_of_two();
    let of_buffer = if buffers > 1 { 4 * u64::from(buffers) } else { 0 };
    let per_parcel = (size_of::<Parcel>() + 8 * size_of::<Place>() + 8) as u64;
    let per_terminal = (size_of::<Message>() + size_of::<Load>() + 40) as u64 + longest * (per_parcel + size_of::<Hop>() as u64);
    channels * (size_of::<Output>() + size_of::<Input>()) as u64 + lanes * (size_of::<Lane>() as u64 + of_buffer) + terminals * per_terminal
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, timing: Timing, with_latency: bool) -> Self {
        let terminals = scenario.network.terminal_count() as usize;
        let of_users = scenario.workload.as_ref().filter(|_| scenario.users.is_some());
        Self {
            transit: Transit::new(&scenario.network, timing),
            paths: Paths::with_ranges(scenario),
            sources: Sources::new(scenario),
            agenda: scenario.agenda(),
            parts: of_users.map(|closed| closed.parts.iter().map(|part| (part.messages, 0.0)).collect()).unwrap_or_default(),
            classes: scenario.classes.len() as u8,
            wakes: Heap::new(terminals),
            waking: Vec::new(),
            sending: Column::filled(terminals, NONE),
            messages: Messages::default(),
            with_latency,
            counts: Counts::new(scenario),
            ends: Ends::new(scenario),
            outstanding: 0,
            told: Counted::default(),
            scenario,
        }
    }

    fn run(mut self, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        self.begin()?;
        loop {
            let begin = self.transit.now();
            let end = begin.saturating_add(controller.interval_cycles().max(1)).min(self.scenario.max_cycles.max(begin + 1));
            let is_stuck = self.advance(end, controller)?;
            if self.scenario.paranoid {
                self.check()?;
            }
            let interval = self.close_interval(begin, controller.weighs_ages());
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
            if is_stuck {
                return Ok(self.outcome(Status::Deadlock));
            }
            if interval.end_cycle >= self.scenario.max_cycles {
                return Ok(self.outcome(Status::MaxCycles));
            }
        }
    }

    /// All terminals begin with what they have.
    fn begin(&mut self) -> Result<(), EngineError> {
        (0..self.sending.len() as u32).try_for_each(|terminal| self.begin_next(TerminalId(terminal)))?;
        self.proceed()
    }

    /// Goes from event to event until `end`, until nothing is left to wait for, or until the controller wants the interval to end. Returns
    /// whether nothing will ever move again although messages are under way.
    fn advance(&mut self, end: u64, controller: &dyn Controller) -> Result<bool, EngineError> {
        let mut patience = PATIENCE;
        while !self.is_over() {
            patience -= 1;
            if patience == 0 {
                if controller.should_stop() {
                    return Ok(false);
                }
                patience = PATIENCE;
            }
            let moving = self.transit.next();
            if moving.is_none() && self.messages.live > 0 {
                return Ok(true);
            }
            let waking = self.wakes.least().map_or(u64::MAX, |time| time.ceil() as u64);
            let due = self.agenda.as_ref().map(Agenda::next_due).filter(|due| due.is_finite()).map_or(u64::MAX, |due| due.ceil() as u64);
            let next = moving.unwrap_or(u64::MAX).min(waking).min(due);
            if next >= end {
                self.transit.pass_to(end);
                return if next == u64::MAX { self.check_not_stuck().map(|()| false) } else { Ok(false) };
            }
            self.transit.pass_to(next.max(self.transit.now()));
            self.happen()?;
        }
        Ok(false)
    }

    /// Everything of the present cycle.
    fn happen(&mut self) -> Result<(), EngineError> {
        loop {
            self.transit.happen();
            let mut happened = std::mem::take(&mut self.transit.happened);
            for happening in happened.drain(..) {
                match happening {
                    Happening::Sent { terminal } => self.sent(TerminalId(terminal))?,
                    Happening::Arrived { message } => self.arrived(message),
                }
            }
            self.transit.happened = happened;
            self.wake_terminals()?;
            self.proceed()?;
            if !self.transit.has_any_now() {
                return Ok(());
            }
        }
    }

    /// A closed workload of which nothing is due and nothing under way has to be at its end.
    fn check_not_stuck(&self) -> Result<(), EngineError> {
        match (&self.agenda, self.ends.to_come) {
            (Some(agenda), Some(missing)) if missing > 0 => Err(EngineError::never_sent(missing, agenda.standstill())),
            _ => Ok(()),
        }
    }

    /// Has a closed workload been done?
    fn is_complete(&self) -> bool {
        self.ends.to_come == Some(0) && self.agenda.as_ref().is_none_or(Agenda::is_idle)
    }

    fn is_over(&self) -> bool {
        match self.counts.statistics.counting.phase {
            Phase::WarmUp | Phase::Measuring => self.is_complete() || self.ends.first_finished && !self.ends.first_told,
            Phase::Draining => self.outstanding == 0,
            Phase::Emptying => self.messages.live == 0 && !self.sources.has_replies(),
        }
    }

    fn redraw_phases(&mut self, now: u64) {
        self.sources.redraw_phases(self.scenario, now);
        (0..self.sending.len() as u32).for_each(|terminal| self.sleep(TerminalId(terminal)));
    }

    fn clear(&mut self, phase: Phase, now: u64) {
        self.counts.statistics.clear(phase, now);
        self.counts.users.fill(UserOutcome::default());
        self.transit.channels.outputs.iter_mut().for_each(|output| output.flits = 0);
        self.transit.counts_flits = true;
    }

    fn drain(&mut self, phase: Phase, now: u64) {
        self.counts.statistics.settle();
        self.counts.statistics.counting.drain(phase, now);
        self.transit.counts_flits = false;
        let counting = self.counts.statistics.counting;
        let live = self.messages.on_their_way().filter(|message| counting.covers(message.asked)).count() as u64;
        self.outstanding = live + self.sources.waiting(counting.measured_from, counting.rates_until.unwrap_or(now));
    }
}
