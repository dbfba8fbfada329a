//! Allocation one router at a time, by allocators that keep a history of their own: what routers in the full layout use.

use crate::record::allocators::{Allocator, Pointers, from_pointer};
use kasuri_network::memory::Column;

/// A request of a row for a column; both are counted within the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Input (virtual channel) of the router.
    pub(crate) row: u32,
    /// Output (virtual channel) of the router.
    pub(crate) column: u32,
    /// How much the row prefers this column to its others; higher first.
    pub(crate) preference: i64,
    /// Priority of the packet among those of the column; higher first.
    pub(crate) priority: i64,
    /// Cycle in which the packet was created.
    pub(crate) created: u64,
}

/// The sides of a router's allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouterShape {
    pub(crate) rows: u32,
    pub(crate) columns: u32,
}

/// Finds a matching among the requests of one router, call after call.
pub(crate) trait RouterAllocator: Send {
    /// Appends the positions of the granted requests. `requests` are sorted by row, then column, without repeats, and not empty.
    fn allocate(&mut self, requests: &[Request], granted: &mut Vec<u32>);

    /// How far a column stands from the first that a row would take, were it alone. Only iSLIP of one iteration says so: its pointers are
    /// those of heads that get a virtual channel by a prediction, too.
    fn distance(&self, _row: u32, _column: u32) -> Option<u64> {
        None
    }

    /// A pair was matched without the allocator. Said to those that tell distances.
    fn matched(&mut self, _row: u32, _column: u32) {}
}

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
