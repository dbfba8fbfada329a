//! Allocation one router at a time, by allocators that keep a history of their own: what routers in the full layout use.

use crate::record::allocators::allocator::Request;
use crate::record::allocators::allocator::RouterAllocator;
use crate::record::allocators::allocator::RouterShape;
use crate::record::allocators::allocator::{Allocator, Pointers, from_pointer};
use kasuri_network::memory::Column;

/// An allocator that works on addresses with round-robin pointers, for one router. It knows no priorities.
pub(super) struct ByPointers<A> {
    allocator: A,
    /// Is it iSLIP of one iteration?
    is_single: bool,
    row: Column<u32>,
    column: Column<u32>,
    pairs: Vec<(u32, u32)>,
    matches: Vec<(u32, u32)>,
}

impl<A: Allocator> ByPointers<A> {
    pub(super) fn new(allocator: A, is_single: bool, shape: RouterShape) -> Self {
        Self {
            allocator,
            is_single,
            row: Column::filled(shape.rows as usize, 0),
            column: Column::filled(shape.columns as usize, 0),
            pairs: Vec::new(),
            matches: Vec::new(),
        }
    }
}

impl<A: Allocator> RouterAllocator for ByPointers<A> {
    fn allocate(&mut self, requests: &[Request], granted: &mut Vec<u32>) {
        self.pairs.clear();
        self.pairs.extend(requests.iter().map(|request| (request.row, request.column)));
        self.matches.clear();
        let pointers = Pointers { row: &mut self.row, column: &mut self.column };
        self.allocator.allocate(&self.pairs, pointers, &mut self.matches);
        granted.extend(self.matches.iter().map(|pair| self.pairs.partition_point(|other| other < pair) as u32));
    }

    fn distance(&self, row: u32, column: u32) -> Option<u64> {
        self.is_single.then(|| from_pointer(column, self.row[row]).into())
    }

    fn matched(&mut self, row: u32, column: u32) {
        if self.is_single {
            (self.row[row], self.column[column]) = (column + 1, row + 1);
        }
    }
}
