//! How virtual channels are allocated in plain routers.

use crate::record::allocators::PlainAllocator;
use crate::state::bubbles::Bubbles;
use kasuri_network::memory::Column;

/// How virtual channels are allocated in plain routers.
#[derive(Default)]
pub(crate) struct VcAllocation {
    /// An allocator that is not the built-in iSLIP of one iteration, with its pointers.
    pub(crate) allocator: Option<AllocatorWithPointers>,
    /// Where packets enter rings that must not fill up.
    pub(crate) bubbles: Option<Box<Bubbles>>,
    /// The requests and the matches of a port; memory to use.
    pub(crate) requests: Vec<(u32, u32)>,
    pub(crate) matches: Vec<(u32, u32)>,
}

/// An allocator for virtual channels and its round-robin pointers, by input and output slot.
pub(crate) struct AllocatorWithPointers {
    pub(crate) allocator: PlainAllocator,
    pub(crate) row: Column<u32>,
    pub(crate) column: Column<u32>,
}
