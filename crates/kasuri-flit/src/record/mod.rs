//! Records, lists, clocks, allocators, arbiters, and the threads that run tiles.
//!
//! The bottom of the engine. Invariant: every item is a value or a loop over its own fields, so each can be tested alone. It knows no tile
//! and no layout; of scenarios it knows router parameters.

pub(crate) mod allocators;
pub(crate) mod arbiters;
pub(crate) mod clock;
pub(crate) mod drawn;
pub(crate) mod event;
pub(crate) mod links;
pub(crate) mod list;
pub(crate) mod marks;
pub(crate) mod options;
pub(crate) mod packet;
pub(crate) mod prefetch;
pub(crate) mod rings;
pub(crate) mod shared_buffers;
pub(crate) mod slots;
pub(crate) mod sync;
pub(crate) mod tag;
pub(crate) mod team;
pub(crate) mod vc_mask;
pub(crate) mod wheel;
