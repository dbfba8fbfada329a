//! The bottom of the engine: records, lists, clocks, allocators and arbiters that know neither a tile nor a scenario as a whole.

pub(crate) mod allocators;
pub(crate) mod arbiters;
pub(crate) mod clock;
pub(crate) mod list;
pub(crate) mod options;
pub(crate) mod prefetch;
pub(crate) mod rings;
pub(crate) mod shared_buffers;
pub(crate) mod sync;
pub(crate) mod team;
pub(crate) mod vc_mask;
pub(crate) mod wheel;
