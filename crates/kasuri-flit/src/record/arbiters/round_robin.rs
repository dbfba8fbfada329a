//! Round robin (Dally and Towles 2004, section 18.3.2).

use crate::record::arbiters::arbiter::{Arbiters, Order};

/// The first input at or after the one that follows the last winner, cyclically.
pub(super) struct RoundRobin {
    inputs: u32,
    next: Box<[u32]>,
}

impl RoundRobin {
    pub(super) fn new(arbiters: u32, inputs: u32) -> Self {
        Self { inputs, next: vec![0; arbiters as usize].into_boxed_slice() }
    }
}

impl Arbiters for RoundRobin {
    fn order(&self, arbiter: u32, input: u32, _created: u64) -> Order {
        let next = self.next[arbiter as usize];
        let distance = if input >= next { input - next } else { input + self.inputs - next };
        (u64::from(distance), 0)
    }

    fn served(&mut self, arbiter: u32, input: u32) {
        self.next[arbiter as usize] = input + 1;
    }
}
