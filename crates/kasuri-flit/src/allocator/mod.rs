//! Allocators: which requests are granted, so that no row and no column is granted twice.
//!
//! For a switch allocator, rows are input ports and columns output ports; for a virtual-channel allocator, rows are input
//! virtual channels and columns output virtual channels. Rows and columns are addresses, so the requests of many routers may
//! stand in one call: a matching of separate routers is the union of their matchings.
//!
//! To add one: a file here that implements [`Allocator`], a `mod` line, and its line in [`ALLOCATORS`]. iSLIP of one iteration
//! (which is separable output-first with round-robin arbiters) is built into the cycle, see `step.rs`; its text here serves
//! more iterations and as the reference of the tests.

mod islip;
mod separable_input_first;

use kasuri_model::memory::Column;
use kasuri_model::router::AllocatorParameters;

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

/// A line of the table of allocators.
#[derive(Clone, Copy)]
pub struct AllocatorEntry {
    /// The name in the experiment file.
    pub name: &'static str,
    /// One line for `kasuri list allocators`.
    pub summary: &'static str,
    build: fn(u32) -> Option<Box<dyn Allocator>>,
}

impl std::fmt::Debug for AllocatorEntry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AllocatorEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All allocators. `None` of `build`: the built-in one.
pub static ALLOCATORS: &[AllocatorEntry] = &[
    AllocatorEntry {
        name: "islip",
        summary: "outputs grant, inputs accept, pointers move on accepted grants; `iterations` rounds (McKeown 1999)",
        build: |iterations| (iterations > 1).then(|| Box::new(islip::Islip::new(iterations)) as Box<dyn Allocator>),
    },
    AllocatorEntry {
        name: "separable-input-first",
        summary: "each input picks one request, then each output one of those (Dally and Towles 2004, section 19.3)",
        build: |_| Some(Box::new(separable_input_first::SeparableInputFirst)),
    },
    AllocatorEntry {
        name: "separable-output-first",
        summary: "each output picks one request, then each input one of those: with round-robin arbiters iSLIP of one iteration",
        build: |_| None,
    },
];

/// The built-in allocator as one of its own, for routers that look at requests before it does.
pub(crate) fn single() -> Box<dyn Allocator> {
    Box::new(islip::Islip::new(1))
}

/// The allocator of these parameters, `None` for the built-in one. Names are checked before a scenario exists.
pub(crate) fn build(parameters: &AllocatorParameters) -> Option<Box<dyn Allocator>> {
    let entry = ALLOCATORS.iter().find(|entry| entry.name == parameters.name()).expect("the configuration checks the allocator's name");
    (entry.build)(parameters.iterations())
}
