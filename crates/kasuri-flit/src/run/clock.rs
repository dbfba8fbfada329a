//! The run: windows of cycles, skips over idle time, intervals and phases.

use crate::fabric::cycle::RouterCycle;
use crate::feeds::dispatcher::Dispatcher;
use crate::observe::counters::OCCUPANCY_PERIOD;
use crate::observe::{deadlock, invariants};
use crate::record::marks::NEVER;
use crate::record::team::Team;
use crate::record::wheel::Wheel;
use crate::state::compiled::Compiled;
use crate::state::failures::Changes;
use crate::state::feed::Report;
use crate::state::interval_parts::Ends;
use crate::state::share::Partition;
use crate::state::tile::Tile;
use crate::{facts, feeds};
use kasuri_model::engine::{Command, Controller, EngineError, Interval, Losses, Outcome, Phase, Prediction, Status};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::memory::Column;
use kasuri_network::network::Endpoint;

/// Cycles between two checks of the invariants in a `paranoid` run.
const INVARIANTS_PERIOD: u64 = 61;

/// Terminal-windows between two polls of the controller, which may want the interval to end: milliseconds of work.
const POLL_INTERVAL: u64 = 1 << 16;

/// Intervals in a row that may end in the cycle in which they began: a phase of measurement of which nothing is outstanding is over at
/// once, and there are fewer phases than this.
const MAX_EMPTY_INTERVALS: u32 = 8;

/// Why the clock was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The interval has ended.
    AtEnd,
    /// What was waited for has come.
    Over,
    /// Flits are inside, none of them is on its way, and nobody can act: so it stays, whatever else enters the network.
    Standstill,
}

/// A run: the tiles of a network, and the clock. Many fields, because it is the whole state of what the tiles have in common.
pub(crate) struct Run<'a, L: RouterCycle> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) tiles: Vec<Tile<'a, L>>,
    partition: Partition,
    /// Tells the tiles what to send of a closed workload, if there is one whose terminals do not go on by themselves; do they?
    dispatcher: Option<Dispatcher<'a>>,
    is_locally_driven: bool,
    /// Flits of packets whose tails are missing that terminals may have got, at most: all but the tail in each virtual channel.
    max_partial_flits: i64,
    /// Does the run end by itself?
    pub(crate) ends: bool,
    /// Has the controller been notified that a terminal has finished its batch?
    first_finish_reported: bool,
    pub(crate) cycle: u64,
    /// Cycles for which a tile runs without the others.
    window: u64,
    /// What is due in other tiles before this cycle is in the mail or has been handed over.
    mailed_until: u64,
    /// Where intervals end within windows.
    pub(crate) interval_ends: Ends,
    /// What will fail and come up again.
    changes: Changes,
    /// Where the first interval begins and ends, if [`Self::begin`] has begun it and [`Self::run`] has not gone on yet.
    pub(crate) begun: Option<(u64, u64)>,
}

impl<'a, L: RouterCycle> Run<'a, L> {
    /// Makes the tiles of a scenario.
    ///
    /// # Errors
    /// They take too much memory.
    pub(crate) fn new(scenario: &'a Scenario, compiled: &Compiled, team: &mut Team<'_>) -> Result<Self, Refusal> {
        // Each thread makes its tiles itself, so that their memory lies near it.
        let mut tiles: Vec<Option<Result<Tile<'a, L>, Refusal>>> = (0..compiled.tiles.len()).map(|_| None).collect();
        team.each(&mut tiles, |number, tile| *tile = Some(Tile::new(scenario, compiled, number, feeds::feed_of)));
        let tiles = tiles.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
        let (partition, dispatcher) = (compiled.partition.clone(), Dispatcher::new(scenario));
        let sinks = i64::from(scenario.network.terminal_count()) * i64::from(scenario.router.virtual_channels);
        let mut run = Self {
            scenario,
            ends: dispatcher.is_some() || tiles.iter().any(|tile| tile.edge.ends()),
            tiles,
            partition,
            dispatcher,
            is_locally_driven: facts::is_local(scenario),
            max_partial_flits: sinks * i64::from(scenario.longest_packet() - 1),
            first_finish_reported: false,
            cycle: 0,
            window: u64::from(compiled.parameters.window),
            mailed_until: u64::from(compiled.parameters.window),
            interval_ends: Ends::default(),
            changes: Changes::of(scenario),
            begun: None,
        };
        run.dispatch();
        Ok(run)
    }

    /// Begins an interval, or several of which the controller need not be told at once. Returns the present cycle and the one in which they
    /// end.
    pub(crate) fn begin_interval(&mut self, controller: &mut dyn Controller) -> (u64, u64) {
        let length = controller.interval_cycles().max(1);
        let intervals = self.begin_intervals(length, controller);
        (self.cycle, self.cycle.saturating_add(length * intervals).min(self.scenario.max_cycles.max(self.cycle + 1)))
    }

    pub(crate) fn run(mut self, controller: &mut dyn Controller, team: &mut Team<'_>) -> Result<Outcome, EngineError> {
        let mut empty_intervals = 0;
        loop {
            let (begin, end) = self.begun.take().unwrap_or_else(|| self.begin_interval(controller));
            let halt = self.advance(end, controller, team)?;
            let begin = self.tell_ends(begin, controller);
            let interval = self.close_interval(begin, controller.weighs_ages(), team);
            let looks = halt == Halt::Standstill || self.cycle / deadlock::PERIOD != begin / deadlock::PERIOD;
            let status = if looks { self.deadlock_status(team) } else { None };
            let command = match status {
                Some(status) => Command::End(status),
                None if halt == Halt::Standstill => {
                    return Err(deadlock::describe_standstill(&self.tiles, self.cycle, self.flits_inside()));
                }
                None => controller.interval_ended(&interval),
            };
            empty_intervals = if self.cycle > begin { 0 } else { empty_intervals + 1 };
            if empty_intervals > MAX_EMPTY_INTERVALS && !matches!(command, Command::End(_)) {
                let what = format!("controller did not advance: {command:?} repeated on an empty interval");
                return Err(EngineError::Unbalanced { cycle: self.cycle, what });
            }
            match command {
                Command::Continue => {}
                Command::Clear => self.clear(Phase::WarmUp, team),
                Command::Measure => self.clear(Phase::Measuring, team),
                Command::MeasureWaiting => {
                    self.clear(Phase::Measuring, team);
                    self.tiles.iter_mut().for_each(|tile| tile.packets.origins.measures_waiting = true);
                }
                Command::RedrawPhases => self.tiles.iter_mut().for_each(|tile| tile.edge.feed_mut().redraw_phases(self.cycle)),
                Command::Drain => self.drain(Phase::Draining, team),
                Command::Empty => self.drain(Phase::Emptying, team),
                Command::End(status) => return Ok(self.end(status, team)),
            }
            if self.cycle >= self.scenario.max_cycles {
                return Ok(self.end(Status::MaxCycles, team));
            }
        }
    }

    /// Runs until `end`, until nothing is left to wait for, or until the controller wants the interval to end.
    pub(crate) fn advance(&mut self, end: u64, controller: &dyn Controller, team: &mut Team<'_>) -> Result<Halt, EngineError> {
        let (mut windows, terminals) = (0u64, u64::from(self.scenario.network.terminal_count()));
        let poll_interval = POLL_INTERVAL / terminals.max(1) + 1;
        while self.cycle < end {
            if self.is_over() {
                return Ok(Halt::Over);
            }
            windows += 1;
            if windows.is_multiple_of(poll_interval) && controller.should_stop() {
                return Ok(Halt::AtEnd);
            }
            let before = self.cycle;
            while let Some(change) = self.changes.due(self.cycle) {
                self.tiles.iter_mut().for_each(|tile| {
                    tile.change(change);
                    tile.hand_on_events();
                });
            }
            if !self.advance_once(end.min(self.changes.next()), team)? {
                return Ok(Halt::Standstill);
            }
            assert!(self.cycle > before, "clock did not advance at cycle {before}");
        }
        Ok(Halt::AtEnd)
    }

    /// Moves the clock on by a window, or to the next cycle in which there is something to do and a window more: the only place where it
    /// moves. False if there are flits inside and nothing will ever move them; then it does not.
    fn advance_once(&mut self, end: u64, team: &mut Team<'_>) -> Result<bool, EngineError> {
        if self.tiles.iter().all(Tile::is_idle) {
            let is_stuck = self.flits_inside() > 0 || self.tiles.iter().any(|tile| tile.edge.queues.have_stuck_packet());
            let goes_on = self.changes.next() < NEVER || self.tiles.iter().any(|tile| tile.edge.feed().will_free_sink());
            if is_stuck && !goes_on {
                return Ok(false);
            }
            let has_retransmissions = self.tiles.iter().any(|tile| tile.edge.feed().has_retransmissions());
            let mut next = end;
            for tile in &self.tiles {
                next = next.min(tile.edge.feed().next_due(self.cycle, end)?);
            }
            if let Some(dispatcher) = &self.dispatcher {
                // Who waits for what was lost has nothing to send.
                let due = dispatcher.next_due(self.cycle, end);
                next = next.min(if has_retransmissions { due.unwrap_or(end) } else { due? });
            } else if self.is_locally_driven && !self.is_done() && !self.tiles.iter().any(|tile| tile.edge.feed().has_pending_timer()) {
                return Err(EngineError::never_sent(self.outstanding() as u64, None));
            }
            self.skip_to(next);
            self.proceed();
            if self.cycle >= end {
                return Ok(true);
            }
        }
        let length = self.window_length(end);
        // What is posted from now on arrives after the next window has begun.
        let mail = self.mailed_until..self.cycle + length + self.window;
        self.mailed_until = mail.end;
        let ends = self.interval_ends;
        team.each(&mut self.tiles, |_, tile| tile.run_window(length, mail.clone(), &ends));
        self.cycle += length;
        self.proceed();
        self.exchange_mail();
        if self.scenario.paranoid && self.cycle % INVARIANTS_PERIOD < length {
            self.tiles.iter_mut().for_each(Tile::take_mail);
            invariants::check(&self.tiles, self.cycle, self.flits_inside(), self.flits_in_flight())?;
        }
        Ok(true)
    }

    /// The length of the next window. Windows end with intervals; where these are short, several windows go together as long as something
    /// is due in each, and the last of them alone ends with a sample.
    fn window_length(&self, end: u64) -> u64 {
        if self.is_locally_driven {
            return self.local_window_length(end);
        }
        let until_end = |cycle: u64| self.window.min(self.interval_ends.after(cycle, end) - cycle);
        let mut length = until_end(self.cycle);
        loop {
            let next = self.cycle + length;
            let is_sampled = self.cycle / OCCUPANCY_PERIOD != next / OCCUPANCY_PERIOD;
            if is_sampled || next >= end || length + until_end(next) > self.window || !self.has_events_from(next) {
                return length;
            }
            length += until_end(next);
        }
    }

    /// The length of the next window of a workload whose terminals go on by themselves: the run must not end within it, and no sample of
    /// buffers be late. A terminal takes one flit a cycle. What has come of packets whose tails are missing is not known.
    fn local_window_length(&self, end: u64) -> u64 {
        let terminals = u64::from(self.scenario.network.terminal_count());
        let flits: i64 = self.tiles.iter().map(|tile| tile.edge.feed().outstanding_flits()).sum();
        let outstanding_cycles = (flits - self.max_partial_flits).max(0) as u64 / terminals.max(1);
        let until_sample = OCCUPANCY_PERIOD - self.cycle % OCCUPANCY_PERIOD;
        self.window.min(outstanding_cycles).min(until_sample).clamp(1, end - self.cycle)
    }

    /// Is something due in a cycle or soon after it, which is at most a window away?
    fn has_events_from(&self, cycle: u64) -> bool {
        let cycles = cycle..self.cycle + self.window;
        cycles.rev().any(|cycle| self.tiles.iter().any(|tile| tile.in_flight.arrivals.has_events(cycle)))
    }

    /// Skips cycles in which nothing happens.
    fn skip_to(&mut self, next: u64) {
        for tile in &mut self.tiles {
            tile.skip_ends(&self.interval_ends, next);
            tile.sample_idle(self.cycle, next);
            tile.cycle = next;
        }
        self.cycle = next;
        self.mailed_until = next + self.window;
    }

    /// Hands the tiles' mail over, and the empty memory of what was read back.
    fn exchange_mail(&mut self) {
        let count = self.tiles.len();
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            let mail = std::mem::take(&mut self.tiles[from].in_flight.border.leaving_mail[to]);
            let read = std::mem::replace(&mut self.tiles[to].in_flight.border.incoming_mail[from], mail);
            self.tiles[from].in_flight.border.leaving_mail[to] = read;
        }
    }

    /// Lets the feeds answer to what has happened.
    #[inline(always)]
    fn proceed(&mut self) {
        if self.tiles.len() > 1 {
            self.deliver_messages();
        }
        if self.dispatcher.is_some() {
            self.dispatch();
        }
        self.tiles.iter_mut().for_each(Tile::proceed);
    }

    /// Hands over what feeds have for those of other tiles.
    fn deliver_messages(&mut self) {
        for from in 0..self.tiles.len() {
            let mut messages = std::mem::take(&mut self.tiles[from].edge.queues.messages);
            for message in messages.drain(..) {
                let to = self.partition.tile_of(Endpoint::Terminal(TerminalId(message.terminal())));
                self.tiles[to].edge.take_message(&message);
            }
            self.tiles[from].edge.queues.messages = messages;
        }
    }

    /// Lets a closed workload go on.
    fn dispatch(&mut self) {
        let Some(dispatcher) = &mut self.dispatcher else { return };
        self.tiles.iter_mut().for_each(|tile| dispatcher.collect(tile.edge.feed_mut()));
        let (tiles, partition) = (&mut self.tiles, &self.partition);
        dispatcher.proceed(self.cycle, &mut |order| {
            let tile = partition.tile_of(Endpoint::Terminal(order.source));
            tiles[tile].edge.take_request(order);
        });
    }

    /// Flits in buffers and on channels.
    pub(crate) fn flits_inside(&self) -> u64 {
        self.tiles.iter().map(|tile| tile.statistics.balance.flits_inside).sum::<i64>() as u64
    }

    /// Flits of packets that stand at the head of a queue or have left it in part or whole, and have not arrived.
    pub(crate) fn flits_in_flight(&self) -> u64 {
        self.tiles.iter().map(|tile| tile.statistics.balance.flits_in_flight).sum::<i64>() as u64
    }

    /// Packets that draining waits for.
    fn undelivered(&self) -> u64 {
        let live: i64 = self.tiles.iter().map(|tile| tile.statistics.balance.draining_live).sum();
        live as u64 + self.tiles.iter().map(|tile| tile.edge.feed().undrained()).sum::<u64>()
    }

    /// Packets that have a number.
    fn live_count(&self) -> u64 {
        self.tiles.iter().map(|tile| tile.packets.live_count() + tile.in_flight.border.packets_in_mail()).sum()
    }

    /// The phase, which is the same in all tiles.
    pub(crate) fn phase(&self) -> Phase {
        self.tiles[0].statistics.counting.phase
    }

    /// Has the closed workload been delivered or its first terminal finished, or everything that draining waits for?
    #[inline(always)]
    fn is_over(&self) -> bool {
        match self.phase() {
            Phase::WarmUp | Phase::Measuring => self.ends && (self.is_done() || !self.first_finish_reported && self.has_first_finished()),
            Phase::Draining => self.undelivered() == 0,
            Phase::Emptying => self.live_count() == 0 && self.tiles.iter().all(|tile| tile.edge.feed().held() == 0),
        }
    }

    /// What feeds that end have still to wait for.
    pub(crate) fn outstanding(&self) -> i64 {
        self.tiles.iter().filter(|tile| tile.edge.ends()).map(|tile| tile.edge.feed().outstanding()).sum()
    }

    /// Has everything been delivered with which the run ends?
    fn is_done(&self) -> bool {
        self.ends && self.outstanding() == 0 && self.dispatcher.as_ref().is_none_or(Dispatcher::is_done)
    }

    /// Has a terminal finished its batch?
    fn has_first_finished(&self) -> bool {
        self.tiles.iter().any(|tile| tile.edge.has_first_finished())
    }

    /// Finishes the counts of an interval that began at `begin`.
    fn close_interval(&mut self, begin: u64, ages: bool, team: &mut Team<'_>) -> Interval {
        let now = self.cycle;
        let mut closed: Vec<(&mut Tile<'a, L>, Interval)> = self.tiles.iter_mut().map(|tile| (tile, Interval::default())).collect();
        team.each(&mut closed, |_, (tile, interval)| *interval = tile.close_interval(ages));
        let closed: Vec<Interval> = closed.into_iter().map(|(_, interval)| interval).collect();
        let mut interval = Interval { end_cycle: now, cycles: now - begin, ..Interval::default() };
        closed.iter().for_each(|of_tile| interval.absorb(of_tile));
        interval.in_flight_flits = self.flits_in_flight();
        self.first_finish_reported = self.has_first_finished();
        interval.first_finished = self.first_finish_reported;
        interval.counted_cycles = self.tiles[0].statistics.counting.rate_cycles(now);
        interval.outstanding_packets = match self.phase() {
            Phase::Draining => self.undelivered(),
            Phase::Emptying => self.live_count(),
            Phase::WarmUp | Phase::Measuring => 0,
        };
        interval.completed = self.is_done();
        interval
    }

    fn clear(&mut self, phase: Phase, team: &mut Team<'_>) {
        team.each(&mut self.tiles, |_, tile| tile.clear(phase));
    }

    fn drain(&mut self, phase: Phase, team: &mut Team<'_>) {
        team.each(&mut self.tiles, |_, tile| tile.drain(phase));
    }

    fn deadlock_status(&mut self, team: &mut Team<'_>) -> Option<Status> {
        (!deadlock::find_deadlock(&mut self.tiles, team).is_empty()).then_some(Status::Deadlock)
    }

    /// Looks once more for a deadlock: a part of the network may have come to a standstill since the last look, and what the
    /// controller takes for saturation is then no result.
    fn end(mut self, status: Status, team: &mut Team<'_>) -> Outcome {
        let completed = status == Status::Completed || self.flits_inside() == 0;
        let status = if completed { status } else { self.deadlock_status(team).unwrap_or(status) };
        self.outcome(status, team)
    }

    fn outcome(mut self, status: Status, team: &mut Team<'_>) -> Outcome {
        let deadlock: Vec<(ChannelId, u16)> =
            if status == Status::Deadlock { deadlock::find_deadlock(&mut self.tiles, team) } else { Vec::new() };
        team.each(&mut self.tiles, |_, tile| tile.collect_counters());
        let completed = self.is_done();
        let (mut report, mut completion_cycles) = (Report { now: self.cycle, completed, ..Report::default() }, Vec::new());
        self.dispatcher.iter_mut().for_each(|dispatcher| dispatcher.report(&mut report));
        for tile in &mut self.tiles {
            completion_cycles.extend_from_slice(tile.edge.report(&mut report));
        }
        let channel_flits = self.take_channel_flits();
        let prediction = self.prediction();
        let accepted_flits: Vec<u64> = self.tiles.iter().flat_map(|tile| tile.statistics.accepted.iter().copied()).collect();
        let mut router_occupancy = vec![0.0; self.scenario.network.router_count() as usize];
        for tile in &self.tiles {
            let samples = tile.statistics.occupancy.samples.max(1) as f64;
            for (&router, &flits) in tile.parameters.share.routers.iter().zip(&tile.statistics.occupancy.flits) {
                router_occupancy[router as usize] = flits as f64 / samples;
            }
        }
        let losses = self.tiles[0].routing.failures.as_ref().map(|failures| Losses { lost: failures.lost, resent: report.resent });
        let (first, others) = self.tiles.split_at_mut(1);
        let statistics = &mut first[0].statistics;
        others.iter().for_each(|tile| statistics.absorb(&tile.statistics));
        let end = report.ended.unwrap_or_else(|| completion_cycles.iter().copied().fold(report.last_done, u64::max));
        let latencies = [&statistics.packet_latency, &statistics.network_latency, &statistics.hops];
        Outcome {
            flit_latency: statistics.flit_latency.distribution(),
            self_flits: Some(statistics.to_self),
            router_occupancy,
            deadlock,
            flit_hops: statistics.flit_hops,
            prediction,
            users: report.users,
            losses,
            background: self.scenario.has_background().then_some(statistics.background),
            timeline: report.timeline,
            finished: report.finished,
            standstill: report.standstill,
            interfaces: report.interfaces,
            ..Outcome::new(status)
                .measured_for(self.cycle, statistics.counting.rates_from, statistics.counting.rate_cycles(self.cycle))
                .with_packets(latencies.map(|values| values.distribution()))
                .with_flits(channel_flits, accepted_flits)
                .completed(completed.then_some((end as f64, completion_cycles)))
        }
    }

    /// Takes the flits that were sent on each channel. What counted them goes, so that the outcome finds room.
    fn take_channel_flits(&mut self) -> Vec<u64> {
        let mut flits = vec![0; self.scenario.network.channel_count() as usize];
        for tile in &mut self.tiles {
            let all_sent = std::mem::replace(&mut tile.statistics.sent, Column::filled(0, 0));
            tile.put_on_channels(all_sent.iter().copied(), &mut flits);
        }
        flits
    }

    /// What all routers have predicted, if they do.
    fn prediction(&self) -> Option<Prediction> {
        let counts = self.tiles.iter().filter_map(|tile| tile.prediction.as_ref().map(|unit| unit.all_counts()));
        counts.reduce(|mut all, other| {
            all.absorb(&other);
            all
        })
    }
}
