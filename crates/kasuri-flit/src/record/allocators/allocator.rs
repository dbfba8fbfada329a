//! What every allocator implements, and what it is asked with.

use kasuri_model::router::AllocatorParameters;
use kasuri_network::memory::Column;
use kasuri_network::rng::Stream;

/// Round-robin pointers by address of row and column.
pub(crate) struct Pointers<'a> {
    pub(crate) row: &'a mut Column<u32>,
    pub(crate) column: &'a mut Column<u32>,
}

/// Finds a matching.
pub(crate) trait Allocator: Send {
    /// Appends the granted pairs to `matches`. `requests` are `(row, column)`, sorted, without repeats.
    fn allocate(&mut self, requests: &[(u32, u32)], pointers: Pointers<'_>, matches: &mut Vec<(u32, u32)>);
}

/// Distance from a round-robin pointer: the least one is the first at or after it, cyclically.
#[inline(always)]
pub(crate) fn from_pointer(address: u32, pointer: u32) -> u32 {
    address.wrapping_sub(pointer)
}

/// What an allocator of one router is made of.
pub(crate) struct AllocatorSpec<'a> {
    pub(crate) parameters: &'a AllocatorParameters,
    pub(crate) shape: RouterShape,
    /// The router's own draws.
    pub(crate) stream: Stream,
}

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
