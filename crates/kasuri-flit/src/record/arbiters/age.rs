//! Age: the packet that was created first (Abts and Weisser, "Age-based packet arbitration in large-radix k-ary n-cubes", SC 2007).

use crate::record::arbiters::arbiter::{Arbiters, Order};
use crate::record::arbiters::round_robin::RoundRobin;

/// The oldest packet; packets of the same cycle take turns.
pub(super) struct Age {
    turns: RoundRobin,
}

impl Age {
    pub(super) fn new(arbiters: u32, inputs: u32) -> Self {
        Self { turns: RoundRobin::new(arbiters, inputs) }
    }
}

impl Arbiters for Age {
    fn order(&self, arbiter: u32, input: u32, created: u64) -> Order {
        (created, self.turns.order(arbiter, input, created).0)
    }

    fn served(&mut self, arbiter: u32, input: u32) {
        self.turns.served(arbiter, input);
    }
}
