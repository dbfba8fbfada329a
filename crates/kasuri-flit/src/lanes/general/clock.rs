//! Steps within cycles, and stages that work in batches.

/// A router takes as many steps in a cycle as its internal speed-up says; fractions add up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    speedup: f64,
}

impl Clock {
    pub(super) fn new(speedup: f64) -> Self {
        Self { speedup }
    }

    /// The first step of a cycle.
    pub(super) fn first_step(self, cycle: u64) -> u64 {
        if self.speedup == 1.0 {
            return cycle;
        }
        (cycle as f64 * self.speedup) as u64
    }

    /// The cycle of a step, which is not before cycle `from`.
    pub(super) fn cycle_of(self, step: u64, from: u64) -> u64 {
        if self.speedup == 1.0 {
            return from.max(step);
        }
        let mut cycle = from;
        while self.first_step(cycle + 1) <= step {
            cycle += 1;
        }
        cycle
    }
}

/// A stage of several steps, pipelined or batched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batches {
    batched: bool,
    steps: u64,
    /// The step in which the latest batch begins.
    latest: u64,
}

impl Batches {
    pub(super) fn new(batched: bool, steps: u32) -> Self {
        Self { batched, steps: u64::from(steps), latest: 0 }
    }

    /// Comes to the stage in `step`: how many steps it waits there for the stage to begin with it.
    pub(super) fn wait(&mut self, step: u64) -> u64 {
        if !self.batched || self.steps < 2 {
            return 0;
        }
        if step >= self.latest + self.steps {
            self.latest = step;
        } else if step > self.latest {
            self.latest += self.steps;
        }
        self.latest - step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_steps_add_up() {
        let clock = Clock::new(1.5);
        assert_eq!([0, 1, 2, 3, 4].map(|cycle| clock.first_step(cycle)), [0, 1, 3, 4, 6]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|step| clock.cycle_of(step, 0)), [0, 1, 1, 2, 3, 3]);
        let plain = Clock::new(1.0);
        assert!((0..100).all(|cycle| plain.first_step(cycle) == cycle && plain.cycle_of(cycle, cycle / 2) == cycle));
    }

    /// Of a stage of three steps: who comes in step 10 begins at once, who comes in 11 or 13 begins in 13, in 14 waits for 16.
    #[test]
    fn batches_wait_for_the_one_before() {
        let mut stage = Batches::new(true, 3);
        assert_eq!([10, 10, 11, 13, 14, 30].map(|step| stage.wait(step)), [0, 0, 2, 0, 2, 0]);
        let mut pipelined = Batches::new(false, 3);
        assert_eq!([10, 11].map(|step| pipelined.wait(step)), [0, 0]);
    }
}
