//! A tree of arbiters: one in each group of inputs, one among the groups.

use crate::record::arbiters::arbiter::{Arbiters, Order};
use crate::record::arbiters::single::single;
use kasuri_model::router::Arbiter;

/// The group whose turn it is, and in it the input whose turn it is.
pub(super) struct Tree {
    /// Inputs of a group, and groups.
    size: u32,
    groups: u32,
    /// One in each group of each arbiter.
    leaves: Box<dyn Arbiters>,
    /// One among the groups of each arbiter.
    root: Box<dyn Arbiters>,
}

impl Tree {
    /// The last group is smaller where the inputs do not divide.
    pub(super) fn new(groups: u32, of: Arbiter, arbiters: u32, inputs: u32) -> Self {
        let size = inputs.div_ceil(groups).max(1);
        let groups = inputs.div_ceil(size).max(1);
        Self { size, groups, leaves: single(of, arbiters * groups, size), root: single(of, arbiters, groups) }
    }
}

impl Arbiters for Tree {
    fn order(&self, arbiter: u32, input: u32, created: u64) -> Order {
        let (group, place) = (input / self.size, input % self.size);
        // The second part is the number of an input or a distance between two, below 2^20.
        let pack = |(first, second): Order| first << 20 | second;
        (pack(self.root.order(arbiter, group, created)), pack(self.leaves.order(arbiter * self.groups + group, place, created)))
    }

    fn served(&mut self, arbiter: u32, input: u32) {
        let (group, place) = (input / self.size, input % self.size);
        self.root.served(arbiter, group);
        self.leaves.served(arbiter * self.groups + group, place);
    }
}
