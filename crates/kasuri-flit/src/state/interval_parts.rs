//! Ends of intervals within windows, and what a tile has counted between them.

use crate::state::feed::Backlog;
use kasuri_model::engine::Interval;

/// The ends of intervals at which the run goes on in any case: one after the other at equal distance, up to a last one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) next: u64,
    pub(crate) last: u64,
    pub(crate) distance: u64,
}

impl Ends {
    /// So many intervals of a length that begin with a cycle; the end of the last of them is left out.
    pub(crate) fn between(begin: u64, length: u64, intervals: u64) -> Self {
        Self { next: begin + length, last: begin + (intervals - 1) * length, distance: length }
    }

    /// The first end after a cycle, or the limit if that comes first.
    pub(crate) fn after(&self, cycle: u64, limit: u64) -> u64 {
        if self.last <= cycle {
            return limit;
        }
        let passed = if self.next <= cycle { (cycle - self.next) / self.distance + 1 } else { 0 };
        (self.next + passed * self.distance).min(limit)
    }

    /// Ends after a cycle and not after another.
    #[inline(always)]
    pub(crate) fn count(&self, from: u64, until: u64) -> usize {
        if self.last <= from {
            return 0;
        }
        let until = until.min(self.last);
        let up_to = |cycle: u64| if cycle < self.next { 0 } else { (cycle - self.next) / self.distance + 1 };
        up_to(until).saturating_sub(up_to(from)) as usize
    }
}

/// What has been counted between two ends of intervals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Packets and flits.
    pub(crate) counts: Interval,
    /// By how much what waits and what is in flight has changed.
    pub(crate) flits_in_flight: i64,
    pub(crate) backlog: Backlog,
}

impl Part {
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.counts.absorb(&other.counts);
        self.flits_in_flight += other.flits_in_flight;
        self.backlog.absorb(other.backlog);
    }
}

/// The parts of a tile since its controller was last told of an interval.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) ended: Vec<Part>,
    /// The sum of those that the controller has been told of, and of what was before them.
    pub(crate) told: Part,
    /// What came after the last end, of blocks that have gone through their window.
    pub(crate) rest: Part,
    /// What was in flight and waited when that was last noted.
    pub(crate) flits_in_flight: i64,
    pub(crate) backlog: Backlog,
    /// The end that the block at hand comes to next: its cycle and its number.
    pub(crate) next: u64,
    pub(crate) number: usize,
}
