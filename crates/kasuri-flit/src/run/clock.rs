//! The run: windows of cycles, skips over idle time, intervals and phases.

use crate::fabric::features::failures::Changes;
use crate::feeds::dispatcher::Dispatcher;
use crate::record::options::FlitOptions;
use crate::record::team::Team;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::run::intervals::Ends;
use crate::run::layouts as select;
use crate::state::compiled::Compiled;
use crate::state::feed::Report;
use crate::state::layout::RouterLayout;
use crate::state::prediction;
use crate::state::share::Partition;
use crate::state::tile::{NEVER, Packet, Tile};
use crate::{endpoint, facts, support};
use kasuri_model::engine::{
    Command, Controller, Engine, EngineError, Feature, Interval, Losses, Method, Outcome, Phase, Prediction, Prepared, Status,
};
use kasuri_model::refusal::Refusal;
use kasuri_model::router::Architecture;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::memory::Column;
use kasuri_network::network::Endpoint;
use schemars::{Schema, schema_for};
use std::borrow::Cow;
use std::ops::Range;

/// Cycles between two samples of buffer occupancy.
const OCCUPANCY_PERIOD: u64 = 256;

/// Cycles between two looks for packets that wait for each other in a part of the network while the rest goes on.
pub(crate) const DEADLOCK_PERIOD: u64 = 16_384;

/// Cycles between two checks of the invariants in a `paranoid` run.
const INVARIANTS_PERIOD: u64 = 61;

/// Cycles after which the ports' short counters are collected in any case: a flit a cycle fits into 32 bits for longer.
const MOST_CYCLES_UNCOLLECTED: u64 = 1 << 30;

/// Windows, times terminals, between two looks whether the controller wants the interval to end: milliseconds of work.
const TERMINAL_WINDOWS_BETWEEN_LOOKS: u64 = 1 << 16;

/// Intervals in a row that may end in the cycle in which they began: a phase of measurement of which nothing is outstanding is over at
/// once, and there are fewer phases than this.
const MOST_ENDINGS_AT_ONCE: u32 = 8;

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

/// The cycle-accurate engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlitEngine;

impl Engine for FlitEngine {
    fn name(&self) -> &'static str {
        "flit"
    }

    fn summary(&self) -> &'static str {
        "flits and credits in routers with virtual channels, cycle by cycle"
    }

    fn section(&self) -> fn() -> Schema {
        || schema_for!(FlitOptions)
    }

    fn method(&self) -> Method {
        Method::Cycles
    }

    fn features(&self) -> Vec<Feature> {
        support::features()
    }

    fn prepare<'s>(&'s self, scenario: &'s Scenario) -> Result<Box<dyn Prepared + 's>, Vec<Refusal>> {
        let mut refusals = support::refused(scenario);
        let options = options(scenario).map_err(|refusal| refusals.push(refusal)).unwrap_or_default();
        let alone = endpoint::alone(scenario, options).map_err(|refusal| refusals.push(refusal)).ok().flatten();
        if let Some(alone) = alone.filter(|_| refusals.is_empty()) {
            return Ok(Box::new(alone));
        }
        on_routers(scenario, options, refusals)
    }
}

/// Gets a scenario ready whose packets go through routers with virtual channels, unless there are refusals.
pub(crate) fn on_routers(
    scenario: &Scenario,
    options: FlitOptions,
    mut refusals: Vec<Refusal>,
) -> Result<Box<dyn Prepared + '_>, Vec<Refusal>> {
    let mut scenario = Cow::Borrowed(scenario);
    if scenario.router.architecture != Architecture::InputQueued {
        refusals.extend(select::refused_queues(&scenario));
        if refusals.is_empty() {
            scenario = Cow::Owned(select::with_queues_for_outputs(&scenario));
        }
    }
    let layout = support::choose(&scenario, &options).map_err(|more| refusals.extend(more));
    refusals.extend(prediction::refusals(&scenario));
    match layout {
        Ok(layout) if refusals.is_empty() => select::on_layout(scenario, layout, options).map_err(|refusal| vec![refusal]),
        _ => Err(refusals),
    }
}

/// What `[flit]` says.
fn options(scenario: &Scenario) -> Result<FlitOptions, Refusal> {
    scenario.engine_options.clone().try_into().map_err(|error: toml::de::Error| Refusal::new("flit", error.message()))
}

/// A run: the tiles of a network, and the clock. Many fields, because it is the whole state of what the tiles have in common.
pub(crate) struct Run<'a, L: RouterLayout> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) tiles: Vec<Tile<'a, L>>,
    partition: Partition,
    /// Tells the tiles what to send of a closed workload, if there is one whose terminals do not go on by themselves; do they?
    dispatcher: Option<Dispatcher<'a>>,
    goes_on_locally: bool,
    /// Flits of packets whose tails are missing that terminals may have got, at most: all but the tail in each virtual channel.
    most_untold_flits: i64,
    /// Does the run end by itself?
    pub(crate) ends: bool,
    /// Does the controller know that a terminal has finished its batch?
    told_first_finished: bool,
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

impl<'a, L: RouterLayout> Run<'a, L> {
    /// Makes the tiles of a scenario.
    ///
    /// # Errors
    /// They take too much memory.
    pub(crate) fn new(scenario: &'a Scenario, compiled: &Compiled, team: &mut Team<'_>) -> Result<Self, Refusal> {
        // Each thread makes its tiles itself, so that their memory lies near it.
        let mut tiles: Vec<Option<Result<Tile<'a, L>, Refusal>>> = (0..compiled.tiles.len()).map(|_| None).collect();
        team.each(&mut tiles, |number, tile| *tile = Some(Tile::new(scenario, compiled, number)));
        let tiles = tiles.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
        let (partition, dispatcher) = (compiled.partition.clone(), Dispatcher::new(scenario));
        let sinks = i64::from(scenario.network.terminal_count()) * i64::from(scenario.router.virtual_channels);
        let mut run = Self {
            scenario,
            ends: dispatcher.is_some() || tiles.iter().any(|tile| tile.edge.ends()),
            tiles,
            partition,
            dispatcher,
            goes_on_locally: facts::is_local(scenario),
            most_untold_flits: sinks * i64::from(scenario.longest_packet() - 1),
            told_first_finished: false,
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
        let mut endings_at_once = 0;
        loop {
            let (begin, end) = self.begun.take().unwrap_or_else(|| self.begin_interval(controller));
            let halt = self.advance(end, controller, team)?;
            let begin = self.tell_ends(begin, controller);
            let interval = self.close_interval(begin, controller.weighs_ages(), team);
            let looks = halt == Halt::Standstill || self.cycle / DEADLOCK_PERIOD != begin / DEADLOCK_PERIOD;
            let status = if looks { self.deadlock_status(team) } else { None };
            let command = match status {
                Some(status) => Command::End(status),
                None if halt == Halt::Standstill => return Err(self.standstill()),
                None => controller.interval_ended(&interval),
            };
            endings_at_once = if self.cycle > begin { 0 } else { endings_at_once + 1 };
            if endings_at_once > MOST_ENDINGS_AT_ONCE && !matches!(command, Command::End(_)) {
                let what = format!("the rules of measurement ask again and again for what is over, {command:?} last");
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
        let windows_between_looks = TERMINAL_WINDOWS_BETWEEN_LOOKS / terminals.max(1) + 1;
        while self.cycle < end {
            if self.is_over() {
                return Ok(Halt::Over);
            }
            windows += 1;
            if windows.is_multiple_of(windows_between_looks) && controller.wants_end() {
                return Ok(Halt::AtEnd);
            }
            let before = self.cycle;
            while let Some(change) = self.changes.due(self.cycle) {
                self.tiles.iter_mut().for_each(|tile| tile.change(change));
            }
            if !self.advance_once(end.min(self.changes.next()), team)? {
                return Ok(Halt::Standstill);
            }
            assert!(self.cycle > before, "the clock stands still in cycle {before}");
        }
        Ok(Halt::AtEnd)
    }

    /// Moves the clock on by a window, or to the next cycle in which there is something to do and a window more: the only place where it
    /// moves. False if there are flits inside and nothing will ever move them; then it does not.
    fn advance_once(&mut self, end: u64, team: &mut Team<'_>) -> Result<bool, EngineError> {
        if self.tiles.iter().all(Tile::is_idle) {
            let is_stuck = self.flits_inside() > 0 || self.tiles.iter().any(|tile| tile.edge.queues.have_stuck_packet());
            let goes_on = self.changes.next() < NEVER || self.tiles.iter().any(|tile| tile.edge.feed().frees_later());
            if is_stuck && !goes_on {
                return Ok(false);
            }
            let sends_later = self.tiles.iter().any(|tile| tile.edge.feed().sends_later());
            let mut next = end;
            for tile in &self.tiles {
                next = next.min(tile.edge.feed().next_due(self.cycle, end)?);
            }
            if let Some(dispatcher) = &self.dispatcher {
                // Who waits for what was lost has nothing to send.
                let due = dispatcher.next_due(self.cycle, end);
                next = next.min(if sends_later { due.unwrap_or(end) } else { due? });
            } else if self.goes_on_locally && !self.is_done() && !self.tiles.iter().any(|tile| tile.edge.feed().will_act()) {
                return Err(EngineError::never_sent(self.to_come() as u64, None));
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
            self.check_invariants()?;
        }
        Ok(true)
    }

    /// The length of the next window. Windows end with intervals; where these are short, several windows go together as long as something
    /// is due in each, and the last of them alone ends with a sample.
    fn window_length(&self, end: u64) -> u64 {
        if self.goes_on_locally {
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
        let flits: i64 = self.tiles.iter().map(|tile| tile.edge.feed().flits_to_come()).sum();
        let cycles_to_come = (flits - self.most_untold_flits).max(0) as u64 / terminals.max(1);
        let until_sample = OCCUPANCY_PERIOD - self.cycle % OCCUPANCY_PERIOD;
        self.window.min(cycles_to_come).min(until_sample).clamp(1, end - self.cycle)
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
            self.deliver_letters();
        }
        if self.dispatcher.is_some() {
            self.dispatch();
        }
        self.tiles.iter_mut().for_each(Tile::proceed);
    }

    /// Hands over what feeds have for those of other tiles.
    fn deliver_letters(&mut self) {
        for from in 0..self.tiles.len() {
            let mut letters = std::mem::take(&mut self.tiles[from].edge.queues.letters);
            for letter in letters.drain(..) {
                let to = self.partition.tile_of(Endpoint::Terminal(TerminalId(letter.terminal())));
                self.tiles[to].edge.take_letter(&letter);
            }
            self.tiles[from].edge.queues.letters = letters;
        }
    }

    /// Lets a closed workload go on.
    fn dispatch(&mut self) {
        let Some(dispatcher) = &mut self.dispatcher else { return };
        self.tiles.iter_mut().for_each(|tile| dispatcher.collect(tile.edge.feed_mut()));
        let (tiles, partition) = (&mut self.tiles, &self.partition);
        dispatcher.proceed(self.cycle, &mut |order| {
            let tile = partition.tile_of(Endpoint::Terminal(order.source));
            tiles[tile].edge.take_order(order);
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
            Phase::WarmUp | Phase::Measuring => self.ends && (self.is_done() || !self.told_first_finished && self.has_first_finished()),
            Phase::Draining => self.undelivered() == 0,
            Phase::Emptying => self.live_count() == 0 && self.tiles.iter().all(|tile| tile.edge.feed().held() == 0),
        }
    }

    /// What feeds that end have still to wait for.
    pub(crate) fn to_come(&self) -> i64 {
        self.tiles.iter().filter(|tile| tile.edge.ends()).map(|tile| tile.edge.feed().to_come()).sum()
    }

    /// Has everything been delivered with which the run ends?
    fn is_done(&self) -> bool {
        self.ends && self.to_come() == 0 && self.dispatcher.as_ref().is_none_or(Dispatcher::is_done)
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
        self.told_first_finished = self.has_first_finished();
        interval.first_finished = self.told_first_finished;
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
        (!self.find_deadlock(team).is_empty()).then_some(Status::Deadlock)
    }

    /// Looks once more for a deadlock: a part of the network may have come to a standstill since the last look, and what the
    /// controller takes for saturation is then no result.
    fn end(mut self, status: Status, team: &mut Team<'_>) -> Outcome {
        let completed = status == Status::Completed || self.flits_inside() == 0;
        let status = if completed { status } else { self.deadlock_status(team).unwrap_or(status) };
        self.outcome(status, team)
    }

    fn outcome(mut self, status: Status, team: &mut Team<'_>) -> Outcome {
        let deadlock: Vec<(ChannelId, u16)> = if status == Status::Deadlock { self.find_deadlock(team) } else { Vec::new() };
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

impl<L: RouterLayout> Tile<'_, L> {
    /// Lets the feed answer to what has happened.
    #[inline(always)]
    fn proceed(&mut self) {
        self.edge.proceed(self.cycle);
        for slot in self.edge.queues.freed.drain(..) {
            Self::free_place(&self.terminals.ejection[slot], &mut self.in_flight.credits, self.cycle);
        }
    }

    /// Nothing is on its way and nobody can act before a new packet is created.
    #[inline(always)]
    fn is_idle(&self) -> bool {
        // What is most often not idle first.
        self.blocks.are_idle()
            && (0..self.parameters.router_blocks).all(|block| self.layout.is_idle(block))
            && self.in_flight.arrivals.is_empty()
            && self.in_flight.credits.is_empty()
            && self.terminals.is_idle()
            && self.edge.is_idle()
            && self.in_flight.border.has_no_mail()
            && self.has_no_copies()
    }

    /// Takes the mail, runs a window and puts what arrives in other tiles in these cycles into the mail.
    fn run_window(&mut self, length: u64, mail: Range<u64>, ends: &Ends) {
        self.take_mail();
        self.advance_window(length, ends);
        self.put_mail(mail);
    }

    /// Runs a window, compiled for the processor at hand: shifts by a variable amount cost two to three instructions less with
    /// BMI2. Both texts are the same, and so are their results.
    #[inline(always)]
    fn advance_window(&mut self, length: u64, ends: &Ends) {
        #[cfg(target_arch = "x86_64")]
        if self.parameters.modern {
            // SAFETY: `modern` says that the processor has these features.
            return unsafe { self.advance_window_modern(length, ends) };
        }
        self.advance_window_portably(length, ends);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt,avx2")]
    fn advance_window_modern(&mut self, length: u64, ends: &Ends) {
        self.advance_window_portably(length, ends);
    }

    /// Terminals first, then block after block. What one posts for another arrives after the window.
    #[inline(always)]
    fn advance_window_portably(&mut self, length: u64, ends: &Ends) {
        let first = self.cycle;
        let end = self.begin_window_with_ends(ends, length);
        if self.terminals.memories.is_some() {
            // Windows of one cycle.
            self.begin_block_with_ends(ends, end);
            self.shared_memory_cycle(first);
            self.note_end(ends, first + 1);
            self.end_block_with_ends(end);
        }
        for block in 0..self.blocks_of_terminals() {
            if self.parameters.is_far {
                self.edge.feed().prefetch_block(block);
            }
            self.begin_block_with_ends(ends, end);
            for now in first..first + length {
                self.terminal_cycle(block, now);
                self.note_end(ends, now + 1);
            }
            self.end_block_with_ends(end);
        }
        for block in 0..self.parameters.router_blocks {
            if self.parameters.is_far {
                L::prefetch_block(self, block, length);
            }
            for now in first..first + length {
                L::router_cycle(self, block, now);
            }
        }
        self.decide_on_departure();
        if first / OCCUPANCY_PERIOD != (first + length) / OCCUPANCY_PERIOD {
            self.sample_occupancy();
        }
        self.cycle = first + length;
    }

    /// Blocks of terminals that go through a window one after the other: none where hosts share memories.
    #[inline(always)]
    fn blocks_of_terminals(&self) -> u32 {
        if self.terminals.memories.is_some() { 0 } else { self.parameters.blocks - self.parameters.router_blocks }
    }

    fn sample_occupancy(&mut self) {
        if !self.statistics.counting.rates {
            return;
        }
        let network = &self.scenario.network;
        let routers = self.parameters.share.routers.iter();
        for (&router, occupancy) in routers.zip(&mut self.statistics.occupancy.flits) {
            let base = self.wiring.first_port(router);
            let ports = network.port_count(RouterId(router));
            let slots = base << L::Mask::SHIFT..(base + ports) << L::Mask::SHIFT;
            *occupancy += slots.map(|slot| u64::from(self.layout.flits(slot))).sum::<u64>();
        }
        self.statistics.occupancy.samples += 1;
    }

    /// Time that is skipped because nothing is inside counts as samples of empty buffers.
    fn sample_idle(&mut self, from: u64, to: u64) {
        if self.statistics.counting.rates {
            self.statistics.occupancy.samples += to / OCCUPANCY_PERIOD - from / OCCUPANCY_PERIOD;
        }
    }

    /// The tile's part of the counts of an interval that ends now, with the ages of its packets or without.
    fn close_interval(&mut self, ages: bool) -> Interval {
        let now = self.cycle;
        self.take_mail();
        if now - self.wiring.collected_in >= MOST_CYCLES_UNCOLLECTED {
            self.collect_counters();
        }
        if let Some(unit) = &mut self.prediction {
            unit.settle(now);
        }
        let mut interval = std::mem::take(&mut self.statistics.interval);
        self.statistics.interval.counted = interval.counted;
        self.statistics.counted_accepted += interval.accepted_flits * u64::from(self.statistics.counting.rates);
        interval.counted_accepted_flits = self.statistics.counted_accepted;
        interval.in_flight_age = if ages { self.in_flight_age() } else { 0 };
        interval.backlog_cycles = self.edge.feed().backlog(now).cycles(now);
        interval
    }

    /// The ages of the packets in flight, each as often as it has flits that have not arrived.
    fn in_flight_age(&self) -> u64 {
        let age = |packet: &Packet| self.cycle - packet.created.min(self.cycle);
        let all: u64 = self.packets.live().map(|(packet, _)| u64::from(packet.flits) * age(packet)).sum();
        let sinks = self.terminals.ejection.iter().filter(|sink| sink.left > 0);
        let arrived: u64 = sinks.map(|sink| u64::from(sink.index) * age(&self.packets[sink.packet])).sum();
        all - arrived
    }

    /// Moves the ports' short counters into the channels' and terminals' long ones: before a phase begins that counts otherwise, and at the
    /// end.
    fn collect_counters(&mut self) {
        self.wiring.collected_in = self.cycle;
        self.settle_sent();
        for port in 0..self.statistics.sent.len() as u32 {
            let mut sent = std::mem::take(&mut self.wiring.links[port].sent);
            if (port as usize) < self.wiring.before_channel.len() {
                // What has crossed the switch and stands before the channel is not sent yet.
                let period = if self.parameters.periodic { self.wiring.period[port] } else { 1 };
                let waiting = self.layout.before_channel(port, self.cycle, period);
                let before = std::mem::replace(&mut self.wiring.before_channel[port], waiting);
                sent = (sent + before).saturating_sub(waiting);
            }
            if self.statistics.counting.rates {
                self.statistics.sent[port] += u64::from(sent);
            }
        }
    }

    /// Puts what each port has sent on the channel that leaves by it.
    pub(crate) fn put_on_channels(&self, sent_by_port: impl Iterator<Item = u64>, flits_of_channel: &mut [u64]) {
        for (port, sent) in (0..).zip(sent_by_port).filter(|(_, sent)| *sent > 0) {
            let channel = self.channel_of_port(port).expect("only connected ports send");
            flits_of_channel[channel.index()] = sent;
        }
    }

    /// The ports' short counters hold all flits that have been sent, also of packets that are still passing.
    pub(crate) fn settle_sent(&mut self) {
        self.settle_terminals();
        self.layout.collect_sent(&mut self.wiring.links);
    }

    fn clear(&mut self, phase: Phase) {
        self.collect_counters();
        self.statistics.clear(phase, self.cycle);
        if let Some(unit) = &mut self.prediction {
            unit.clear(&self.scenario.network);
        }
        self.edge.feed_mut().clear();
        self.recount_arriving_packets();
    }

    /// A new phase decides anew whether it counts the packets that are arriving, and those that pass routers on predictions.
    fn recount_arriving_packets(&mut self) {
        self.recount_predicted_packets();
        for sink in self.terminals.ejection.iter_mut().filter(|sink| sink.left > 0) {
            sink.counted = self.packets.is_counted(&self.statistics.counting, sink.packet);
        }
    }

    fn drain(&mut self, phase: Phase) {
        self.collect_counters();
        self.statistics.counting.drain(phase, self.cycle);
        self.recount_arriving_packets();
        let measured_from = self.statistics.counting.measured_from;
        // Whatever is drawn from now on counts, if it was created before.
        let from = if self.packets.origins.measures_waiting { 0 } else { measured_from };
        let answers = self.edge.drain(from, measured_from, self.cycle, phase == Phase::Emptying);
        let live = self.packets.live().filter(|&(_, packet)| self.packets.is_waited_for(&self.statistics.counting, packet)).count();
        self.statistics.balance.draining_live = answers as i64 + live as i64;
    }
}
