//! Steps within cycles.

use std::ops::Range;

/// A router takes as many steps in a cycle as its internal speed-up says; fractions add up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    speedup: f64,
}

impl Clock {
    pub(crate) fn new(speedup: f64) -> Self {
        Self { speedup }
    }

    /// Is there one step in each cycle, of the same number?
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.speedup == 1.0
    }

    /// The steps of a cycle.
    #[inline(always)]
    pub(crate) fn steps(self, cycle: u64) -> Range<u64> {
        self.first_step(cycle)..self.first_step(cycle + 1)
    }

    /// The first step of a cycle.
    #[inline(always)]
    pub(crate) fn first_step(self, cycle: u64) -> u64 {
        if self.is_plain() {
            return cycle;
        }
        (cycle as f64 * self.speedup) as u64
    }

    /// The cycle of a step, which is not before cycle `from`.
    pub(crate) fn cycle_of(self, step: u64, from: u64) -> u64 {
        if self.is_plain() {
            return from.max(step);
        }
        let mut cycle = from;
        while self.first_step(cycle + 1) <= step {
            cycle += 1;
        }
        cycle
    }
}

/// When the last flits of a channel are sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// The latest cycle.
    last: u64,
    /// Bit i: is a flit sent i cycles before?
    cycles: u64,
}

impl Sent {
    /// A flit is sent in a cycle in which no other is: after all others, or in a gap not long before the last.
    #[inline(always)]
    pub(crate) fn add(&mut self, cycle: u64) {
        if cycle < self.last {
            self.cycles |= 1u64.checked_shl((self.last - cycle) as u32).unwrap_or(0);
            return;
        }
        self.cycles = self.cycles.checked_shl((cycle - self.last).min(64) as u32).unwrap_or(0) | 1;
        self.last = cycle;
    }

    /// How many are sent in cycle `from` or later. So long before the last one that it is not kept, they stand close, one each `period`.
    pub(crate) fn from(self, from: u64, period: u32) -> u32 {
        let span = (self.last + 1).saturating_sub(from);
        if span < 64 {
            (self.cycles & ((1 << span) - 1)).count_ones()
        } else {
            self.cycles.count_ones() + ((span - 64) / u64::from(period)) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flits_are_counted_from_any_cycle_on() {
        let mut sent = Sent::default();
        [3, 4, 5, 9, 10].into_iter().for_each(|cycle| sent.add(cycle));
        assert_eq!([0, 3, 4, 6, 9, 10, 11, 50].map(|from| sent.from(from, 1)), [5, 5, 4, 2, 2, 1, 0, 0]);
        sent.add(7);
        assert_eq!([6, 7, 8].map(|from| sent.from(from, 1)), [3, 3, 2]);
        (11..200).for_each(|cycle| sent.add(cycle));
        assert_eq!([20, 150, 199, 200].map(|from| sent.from(from, 1)), [180, 50, 1, 0]);
    }

    #[test]
    fn fractions_of_steps_add_up() {
        let clock = Clock::new(1.5);
        assert_eq!([0, 1, 2, 3].map(|cycle| clock.steps(cycle)), [0..1, 1..3, 3..4, 4..6]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|step| clock.cycle_of(step, 0)), [0, 1, 1, 2, 3, 3]);
        let plain = Clock::new(1.0);
        assert!((0..100).all(|cycle| plain.steps(cycle) == (cycle..cycle + 1) && plain.cycle_of(cycle, cycle / 2) == cycle));
    }
}
