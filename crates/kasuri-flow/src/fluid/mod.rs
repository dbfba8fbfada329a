//! The event loop: messages as fluid flows.
//!
//! A terminal sends its messages one after the other. Each takes the path that the routing gives it and flows at the rate of its
//! sharing until its last flit has gone; rates change only when a flow begins or ends. So time goes from event to event, and an
//! event costs as much as the flows whose rates it changes.

mod next;
mod outcome;
pub(crate) mod parts;
mod rounds;
mod state;
mod territory;

use crate::statistics::Arrival;
use kasuri_model::engine::{Command, Controller, EngineError, Outcome, Phase, Status, UserOutcome};
use kasuri_network::id::TerminalId;
use kasuri_workload::workload::agenda::Agenda;
use state::Message;
pub(crate) use state::{Fluid, Rules};

/// Flows that end within this part of the present time of each other end together: what separates them is rounding.
const SIMULTANEOUS: f64 = 1e-12;

/// Intervals between two checks of all rates in a `paranoid` run.
const CHECK_PERIOD: u64 = 64;

impl Fluid<'_> {
    pub(crate) fn run(mut self, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        loop {
            let begin = self.now.ceil() as u64;
            let end = begin.saturating_add(controller.interval_cycles().max(1)).min(self.scenario.max_cycles.max(begin + 1));
            self.advance(end, controller)?;
            let interval = self.close_interval(begin);
            match controller.interval_ended(&interval) {
                Command::Continue => {}
                Command::Clear => self.clear(Phase::WarmUp, interval.end_cycle),
                Command::Measure | Command::MeasureWaiting => self.clear(Phase::Measuring, interval.end_cycle),
                Command::RedrawPhases => self.redraw_phases(interval.end_cycle),
                Command::Drain => self.drain(Phase::Draining, interval.end_cycle),
                Command::Empty => {
                    self.drain(Phase::Emptying, interval.end_cycle);
                    self.open.sources.closed = true;
                }
                Command::End(status) => return Ok(self.outcome(status)),
            }
            if interval.end_cycle >= self.scenario.max_cycles {
                return Ok(self.outcome(Status::MaxCycles));
            }
        }
    }

    /// Goes from event to event until `end`, until nothing is left to wait for, or until the controller wants the interval to end.
    fn advance(&mut self, end: u64, controller: &dyn Controller) -> Result<(), EngineError> {
        if self.rounds == 0 {
            if self.sources_send() {
                (0..self.sending.messages.len() as u32).try_for_each(|terminal| self.begin_next(TerminalId(terminal)))?;
            }
            self.proceed()?;
            self.share()?;
        }
        while !self.is_over() && !controller.should_stop() {
            let ending = self.rates.cohort.first_end().or_else(|| self.rates.graph.next_end()).unwrap_or(f64::INFINITY);
            let waking = self.open.wakes.least().unwrap_or(f64::INFINITY);
            let due = self.workload.agenda.as_ref().map_or(f64::INFINITY, Agenda::next_due);
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
        if self.rates.cohort.share(&self.rates.graph, self.routes.paths.all_remembered(), self.now) && !is_checked {
            return Ok(());
        }
        self.dissolve_cohort();
        self.rates.sharing.share(&mut self.rates.graph, self.now);
        if is_checked && !self.rates.graph.is_fair(self.rates.by_equal_shares) {
            let what = "a flow does not have the rate that its sharing defines".to_owned();
            return Err(EngineError::Unbalanced { cycle: self.now as u64, what });
        }
        Ok(())
    }

    fn end_flows(&mut self) -> Result<(), EngineError> {
        let limit = self.now * (1.0 + SIMULTANEOUS);
        if self.rates.cohort.end_by(limit) && self.workload.agenda.as_ref().is_some_and(|agenda| !agenda.has_any_queued()) {
            return self.end_together();
        }
        self.dissolve_cohort();
        let mut ending = std::mem::take(&mut self.sending.ending);
        self.rates.graph.take_ending(limit, &mut ending);
        for &flow in &ending {
            let flits = self.settle(flow, 0.0);
            self.rates.graph.end(flow, flits);
            self.arrive(TerminalId(flow));
            if self.has_next(flow) {
                self.begin_next(TerminalId(flow))?;
            }
        }
        ending.clear();
        self.sending.ending = ending;
        Ok(())
    }

    /// Has a terminal something to send after the message under way?
    #[inline(always)]
    fn has_next(&self, terminal: u32) -> bool {
        let is_queued = |agenda: &Agenda| agenda.has_any_queued() && agenda.has_queued(TerminalId(terminal));
        self.sources_send() || self.workload.agenda.as_ref().is_some_and(is_queued)
    }

    fn wake_terminals(&mut self) -> Result<(), EngineError> {
        if self.open.wakes.least().is_none_or(|time| time > self.now) {
            return Ok(());
        }
        let mut waking = std::mem::take(&mut self.open.waking);
        self.open.wakes.pop_until(self.now, &mut waking);
        waking.drain(..).try_for_each(|terminal| self.begin_if_idle(terminal))?;
        self.open.waking = waking;
        Ok(())
    }

    /// Lets a closed workload answer to what has happened.
    fn proceed(&mut self) -> Result<(), EngineError> {
        let Some(agenda) = &mut self.workload.agenda else { return Ok(()) };
        agenda.proceed(self.now);
        let ready = agenda.take_ready();
        for &message in &ready {
            // Nothing is queued where nothing is under way.
            if !self.sending.messages[message.source.index()].is_there() {
                let drawn = self.take(&message, self.now);
                self.send(message.source, &drawn)?;
            } else if let Some(agenda) = &mut self.workload.agenda {
                agenda.queue(message, self.now);
            }
        }
        if let Some(agenda) = &mut self.workload.agenda {
            agenda.put_ready(ready);
        }
        Ok(())
    }

    /// Is there anything but a workload?
    #[inline(always)]
    fn sources_send(&self) -> bool {
        self.workload.agenda.is_none() || self.open.classes > 0
    }

    fn begin_if_idle(&mut self, terminal: u32) -> Result<(), EngineError> {
        if self.sending.messages[terminal as usize].is_there() { Ok(()) } else { self.begin_next(TerminalId(terminal)) }
    }

    /// A closed workload of which nothing is due and nothing under way has to be at its end.
    fn check_not_stuck(&self) -> Result<(), EngineError> {
        match (&self.workload.agenda, self.ends.to_come) {
            (Some(agenda), Some(missing)) if missing > 0 => Err(EngineError::never_sent(missing, agenda.standstill())),
            _ => Ok(()),
        }
    }

    /// The transfer of a terminal's message has ended.
    fn arrive(&mut self, source: TerminalId) {
        let message = self.sending.messages[source.index()];
        self.sending.messages[source.index()].flits = 0;
        let arrival = self.now + f64::from(message.head_latency);
        let created = message.created;
        let asked = self.asked_of(source.0);
        let of_workload = self.workload.agenda.is_some() && message.class >= self.open.classes;
        let counted = Arrival { created, asked, begun: message.begun, time: arrival, hops: message.hops };
        self.counts.arrive(of_workload, message.class, message.flits, &counted);
        self.sending.live -= 1;
        let is_answered =
            !message.is_reply && self.scenario.classes.get(usize::from(message.class)).is_some_and(|class| class.reply.is_some());
        // An answer takes the place of the message that it answers among those that are waited for.
        let is_waited_for = self.counts.statistics.counting.phase == Phase::Draining && self.counts.statistics.counting.covers(asked);
        self.sending.outstanding -= u64::from(is_waited_for && !is_answered);
        self.counts.flit_hops += f64::from(message.flits) * f64::from(message.hops);
        let destination = message.destination;
        // The last flit arrives within this cycle: who waits for it goes on in the next.
        let end = if self.routes.with_latency { arrival + 1.0 } else { arrival };
        if let Some(to_come) = &mut self.ends.to_come
            && (of_workload || self.workload.agenda.is_none())
        {
            *to_come -= 1;
            let completion = &mut self.ends.completion[destination.index()];
            *completion = completion.max(end);
            if !self.ends.first_finished && self.workload.agenda.is_none() && (!message.is_reply || self.scenario.counts_answers()) {
                self.ends.first_finished = !self.routes.prefetch.has(source.0) && self.open.sources.is_exhausted(source);
            }
        }
        if let (Some(agenda), true) = (&mut self.workload.agenda, of_workload) {
            let token = self.workload.tokens[source.index()];
            agenda.sent(token);
            agenda.arrives(token, end.max(self.now), self.now);
            if let Some((to_come, last)) = self.workload.parts.get_mut(usize::from(message.class - self.open.classes)) {
                *to_come -= 1;
                *last = last.max(end);
            }
        } else if is_answered {
            let at = arrival.ceil() as u64;
            self.open.sources.reply(self.scenario, destination, source, message.class, at, asked);
            self.sleep(destination);
        } else if self.open.sources.has_windows() {
            let waiting = if message.is_reply { destination } else { source };
            self.open.sources.release_slot(message.class, waiting, arrival.floor() as u64 + 1);
            self.sleep(waiting);
        }
    }

    /// Adds the flits that have moved since the last time to the counters; `left` have not moved yet. Returns what the counters
    /// of its channels lack.
    #[inline(always)]
    fn settle(&mut self, flow: u32, left: f64) -> f64 {
        let message = &mut self.sending.messages[flow as usize];
        if !message.is_there() {
            return 0.0;
        }
        let moved = f64::from(message.flits) - left - message.counted;
        message.counted += moved;
        self.counts.statistics.moved += moved;
        if !self.counts.statistics.counting.rates {
            return 0.0;
        }
        self.counts.statistics.injected[flow as usize] += moved;
        if message.destination.0 == flow {
            self.counts.statistics.to_self += moved;
        }
        moved
    }

    /// Has a closed workload been done?
    fn is_complete(&self) -> bool {
        self.ends.to_come == Some(0) && self.workload.agenda.as_ref().is_none_or(Agenda::is_idle)
    }

    fn is_over(&self) -> bool {
        match self.counts.statistics.counting.phase {
            Phase::WarmUp | Phase::Measuring => self.is_complete() || self.ends.first_finished && !self.ends.first_told,
            Phase::Draining => self.sending.outstanding == 0,
            Phase::Emptying => self.sending.live == 0 && !self.open.sources.has_replies(),
        }
    }

    /// The cycle that decides whether the message of a terminal is measured: its creation or, of an answer, that of the message that it
    /// answers.
    fn asked_of(&self, flow: u32) -> u64 {
        self.sending.asked.get(flow as usize).copied().unwrap_or(self.sending.messages[flow as usize].created as u64)
    }

    fn redraw_phases(&mut self, now: u64) {
        self.open.sources.redraw_phases(self.scenario, now);
        for terminal in 0..self.sending.messages.len() as u32 {
            self.sleep(TerminalId(terminal));
        }
    }

    fn clear(&mut self, phase: Phase, now: u64) {
        self.counts.statistics.clear(phase, now);
        self.counts.users.fill(UserOutcome::default());
        self.routes.predictions.iter_mut().for_each(|predictions| predictions.clear(&self.scenario.network));
        self.flush_cohort_counts();
        self.rates.graph.forget_carried();
    }

    fn drain(&mut self, phase: Phase, now: u64) {
        self.counts.statistics.settle();
        self.counts.statistics.counting.drain(phase, now);
        self.flush_cohort_counts();
        let is_measured =
            |flow: &u32| self.sending.messages[*flow as usize].is_there() && self.counts.statistics.counting.covers(self.asked_of(*flow));
        let live = (0..self.sending.messages.len() as u32).filter(is_measured).count() as u64;
        self.sending.outstanding = live
            + self
                .open
                .sources
                .waiting(self.counts.statistics.counting.measured_from, self.counts.statistics.counting.rates_until.unwrap_or(now));
    }
}
