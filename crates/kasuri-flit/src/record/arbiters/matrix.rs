//! The matrix arbiter: least recently served (Dally and Towles 2004, section 18.4).

use crate::record::arbiters::arbiter::{Arbiters, Order};

/// The matrix of who goes before whom always is a total order, from the one that has waited longest to the one served last; so the turn
/// in which each input was served says as much.
pub(super) struct Matrix {
    inputs: u32,
    /// Shape `[arbiters, inputs]`: 0 if never.
    turn: Box<[u32]>,
    /// Turns so far, by arbiter.
    turns: Box<[u32]>,
}

impl Matrix {
    pub(super) fn new(arbiters: u32, inputs: u32) -> Self {
        let zeros = |count: usize| vec![0; count].into_boxed_slice();
        Self { inputs, turn: zeros(arbiters as usize * inputs as usize), turns: zeros(arbiters as usize) }
    }

    fn place(&self, arbiter: u32, input: u32) -> usize {
        arbiter as usize * self.inputs as usize + input as usize
    }

    /// Numbers the turns of an arbiter anew, before they run out: in the same order, from 1.
    #[cold]
    fn renumber(&mut self, arbiter: u32) {
        let first = self.place(arbiter, 0);
        let mut known: Vec<usize> = (first..first + self.inputs as usize).filter(|&place| self.turn[place] > 0).collect();
        known.sort_unstable_by_key(|&place| self.turn[place]);
        for (number, &place) in known.iter().enumerate() {
            self.turn[place] = number as u32 + 1;
        }
        self.turns[arbiter as usize] = known.len() as u32;
    }
}

impl Arbiters for Matrix {
    fn order(&self, arbiter: u32, input: u32, _created: u64) -> Order {
        (u64::from(self.turn[self.place(arbiter, input)]), u64::from(input))
    }

    fn served(&mut self, arbiter: u32, input: u32) {
        if self.turns[arbiter as usize] == u32::MAX {
            self.renumber(arbiter);
        }
        self.turns[arbiter as usize] += 1;
        let place = self.place(arbiter, input);
        self.turn[place] = self.turns[arbiter as usize];
    }
}
