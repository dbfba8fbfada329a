//! Stages that work in batches.

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

    /// Would whoever comes in `step` begin at once?
    pub(super) fn begins(&self, step: u64) -> bool {
        !self.batched || self.steps < 2 || step == self.latest || step >= self.latest + self.steps
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

    /// Of a stage of three steps: who comes in step 10 begins at once, who comes in 11 or 13 begins in 13, in 14 waits for 16.
    #[test]
    fn batches_wait_for_the_one_before() {
        let mut stage = Batches::new(true, 3);
        assert_eq!([10, 10, 11, 13, 14, 30].map(|step| stage.wait(step)), [0, 0, 2, 0, 2, 0]);
        let begins = [9, 10, 11, 12, 13].map(|step| Batches { batched: true, steps: 3, latest: 10 }.begins(step));
        assert_eq!(begins, [false, true, false, false, true]);
        let mut pipelined = Batches::new(false, 3);
        assert_eq!([10, 11].map(|step| pipelined.wait(step)), [0, 0]);
    }
}
