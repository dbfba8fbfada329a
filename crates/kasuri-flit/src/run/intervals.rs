//! Intervals that end within windows.
//!
//! Where the controller is sure to let the run go on, no window need end with an interval. What is counted is cut at its end all the same:
//! each block of terminals, which goes through a window by itself, notes there what it has counted since the end before.

use crate::fabric::cycle::RouterCycle;
use crate::observe::deadlock;
use crate::run::clock::Run;
use crate::state::feed::Backlog;
use crate::state::interval_parts::Ends;
use crate::state::interval_parts::Part;
use crate::state::interval_parts::Parts;
use crate::state::layout::RouterState;
use crate::state::tile::Tile;
use kasuri_model::engine::{Command, Controller, Interval, Phase};

impl<L: RouterState> Tile<'_, L> {
    /// Begins a run of intervals that end within windows.
    fn begin_parts(&mut self) {
        let (flits_in_flight, backlog) = (self.statistics.balance.flits_in_flight, self.edge.feed().backlog(self.cycle));
        let told = Part { flits_in_flight, backlog, ..Part::default() };
        self.statistics.parts = Parts { flits_in_flight, backlog, told, ..Parts::default() };
    }

    /// What was counted since this was last asked.
    fn take_part(&mut self) -> Part {
        let (in_flight, backlog) = (self.statistics.balance.flits_in_flight, self.edge.feed().backlog(self.cycle));
        let counts = std::mem::take(&mut self.statistics.interval);
        let before = std::mem::replace(&mut self.statistics.parts.flits_in_flight, in_flight);
        let backlog_before = std::mem::replace(&mut self.statistics.parts.backlog, backlog);
        Part { counts, flits_in_flight: in_flight - before, backlog: backlog.since(backlog_before) }
    }

    /// Begins a window in which intervals end. Returns the number of the first of these ends.
    #[inline(always)]
    pub(crate) fn begin_window_with_ends(&mut self, ends: &Ends, length: u64) -> usize {
        let first = self.statistics.parts.ended.len();
        let count = ends.count(self.cycle, self.cycle + length);
        if count > 0 {
            self.add_parts(first, count);
        }
        first
    }

    /// Adds so many parts, with this number for the first, which gets what was counted before the window.
    fn add_parts(&mut self, first: usize, count: usize) {
        self.statistics.parts.ended.resize_with(first + count, Part::default);
        let mut before = self.take_part();
        before.absorb(&std::mem::take(&mut self.statistics.parts.rest));
        self.statistics.parts.ended[first].absorb(&before);
    }

    /// A block of terminals begins a window whose first end has this number.
    #[inline(always)]
    pub(crate) fn begin_block_with_ends(&mut self, ends: &Ends, number: usize) {
        let next = if number < self.statistics.parts.ended.len() { ends.after(self.cycle, u64::MAX) } else { u64::MAX };
        (self.statistics.parts.next, self.statistics.parts.number) = (next, number);
    }

    /// A block of terminals has gone through the cycle before `now`.
    #[inline(always)]
    pub(crate) fn note_end(&mut self, ends: &Ends, now: u64) {
        if now == self.statistics.parts.next {
            self.end_part(ends, now);
        }
    }

    #[cold]
    fn end_part(&mut self, ends: &Ends, now: u64) {
        let part = self.take_part();
        let number = self.statistics.parts.number;
        self.statistics.parts.ended[number].absorb(&part);
        self.statistics.parts.number = number + 1;
        self.statistics.parts.next = if number + 1 < self.statistics.parts.ended.len() { ends.after(now, u64::MAX) } else { u64::MAX };
    }

    /// A block of terminals has gone through a window whose first end has this number.
    #[inline(always)]
    pub(crate) fn end_block_with_ends(&mut self, number: usize) {
        if number < self.statistics.parts.ended.len() {
            let part = self.take_part();
            self.statistics.parts.rest.absorb(&part);
        }
    }

    /// The tile's part of an interval that has ended within a window.
    fn close_part(&mut self, number: usize) -> Interval {
        let part = std::mem::take(&mut self.statistics.parts.ended[number]);
        self.statistics.parts.told.absorb(&part);
        self.statistics.counted_accepted += part.counts.accepted_flits * u64::from(self.statistics.counting.rates);
        let counted = self.statistics.parts.told.counts.counted;
        Interval { counted, counted_accepted_flits: self.statistics.counted_accepted, ..part.counts }
    }

    /// The controller has been told of all parts: what was counted after them belongs to the present interval.
    fn finish_parts(&mut self) {
        let Parts { told, rest, .. } = std::mem::take(&mut self.statistics.parts);
        self.statistics.interval.absorb(&rest.counts);
        self.statistics.interval.counted.absorb(&told.counts.counted);
    }

    /// Intervals end while nothing is inside: at these ends nothing has been counted since the window before.
    pub(crate) fn skip_ends(&mut self, ends: &Ends, next: u64) {
        self.begin_window_with_ends(ends, next - self.cycle);
    }
}

impl<L: RouterCycle> Run<'_, L> {
    /// Begins an interval of this length, or several of them if the controller need not be told of all but the last at once. Returns how
    /// many.
    pub(crate) fn begin_intervals(&mut self, length: u64, controller: &dyn Controller) -> u64 {
        let most = if self.may_run_on(controller) { self.ends_without_looks(length) + 1 } else { 1 };
        let intervals = if most > 1 { controller.assured_intervals().clamp(1, most) } else { 1 };
        self.interval_ends = Ends::default();
        if intervals > 1 {
            self.interval_ends = Ends::between(self.cycle, length, intervals);
            self.tiles.iter_mut().for_each(Tile::begin_parts);
        }
        intervals
    }

    /// Ends of intervals of this length after the present cycle at which nobody looks for deadlocks, and the run does not end.
    fn ends_without_looks(&self, length: u64) -> u64 {
        let look = (self.cycle / deadlock::PERIOD + 1) * deadlock::PERIOD;
        (look.min(self.scenario.max_cycles).saturating_sub(self.cycle + 1)) / length
    }

    /// Is all that a controller hears of an interval counted at terminals, and by no one who looks at its end?
    fn may_run_on(&self, controller: &dyn Controller) -> bool {
        let is_open = self.scenario.workload.is_none() && self.scenario.endpoint.is_none() && self.scenario.users.is_none();
        let predicts = self.tiles.iter().any(|tile| tile.prediction.is_some());
        is_open
            && !self.ends
            && !predicts
            && !self.scenario.paranoid
            && !controller.weighs_ages()
            && matches!(self.phase(), Phase::WarmUp | Phase::Measuring)
    }

    /// Tells the controller of the intervals that have ended within windows. Returns the end of the last of them, `begin` if there is none.
    pub(crate) fn tell_ends(&mut self, begin: u64, controller: &mut dyn Controller) -> u64 {
        if self.interval_ends.distance == 0 {
            return begin;
        }
        let ended = self.tiles[0].statistics.parts.ended.len();
        let mut end = begin;
        for number in 0..ended {
            end += self.interval_ends.distance;
            let interval = self.ended_interval(number, end);
            let command = controller.interval_ended(&interval);
            // A user may want it to end meanwhile; then the controller says so again at the end of the present interval.
            debug_assert!(matches!(command, Command::Continue | Command::End(_)), "{command:?}, though it was to go on");
        }
        self.tiles.iter_mut().for_each(Tile::finish_parts);
        end
    }

    /// The interval that was the first, second, … to end within a window.
    fn ended_interval(&mut self, number: usize, end: u64) -> Interval {
        let distance = self.interval_ends.distance;
        let mut interval = Interval { end_cycle: end, cycles: distance, ..Interval::default() };
        let (mut in_flight, mut backlog) = (0, Backlog::default());
        for tile in &mut self.tiles {
            interval.absorb(&tile.close_part(number));
            in_flight += tile.statistics.parts.told.flits_in_flight;
            backlog.absorb(tile.statistics.parts.told.backlog);
        }
        interval.in_flight_flits = in_flight as u64;
        interval.backlog_cycles = backlog.cycles(end);
        interval.counted_cycles = self.tiles[0].statistics.counting.rate_cycles(end);
        interval
    }
}
