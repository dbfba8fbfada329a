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
    fn first_step(self, cycle: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_steps_add_up() {
        let clock = Clock::new(1.5);
        assert_eq!([0, 1, 2, 3].map(|cycle| clock.steps(cycle)), [0..1, 1..3, 3..4, 4..6]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|step| clock.cycle_of(step, 0)), [0, 1, 1, 2, 3, 3]);
        let plain = Clock::new(1.0);
        assert!((0..100).all(|cycle| plain.steps(cycle) == (cycle..cycle + 1) && plain.cycle_of(cycle, cycle / 2) == cycle));
    }
}
