//! HOW, cycle by cycle: a cycle-accurate engine of input-queued virtual-channel routers with credit flow control.
//!
//! The timing is that of the canonical router (Dally and Towles 2004, chapters 16 to 19), in the form in which BookSim 2
//! computes it; where BookSim departs from a pipelined router (stages of several cycles run in batches there), this engine is
//! pipelined. The state lies in flat columns (`state`), a cycle is a handful of flat loops over lists (`step`), and nothing is
//! visited that has nothing to do: cost follows events.
//!
//! This crate does not know the flow engine, files, threads or the command line, and has no routing of its own.

mod allocator;
mod arbiter;
mod books;
mod buffer;
mod choice;
mod claims;
mod clock;
mod crosspoint;
mod deadlock;
mod edge;
mod endpoint;
mod lanes;
mod list;
mod lookahead;
mod memory;
mod options;
mod packets;
mod prediction;
mod prefetch;
mod rings;
mod route_memo;
mod run;
mod select;
mod shares;
mod state;
mod statistics;
mod step;
mod support;
mod vc_mask;
mod wheel;

pub use allocator::{ALLOCATORS, AllocatorEntry};
pub use options::{FlitOptions, Simd};
pub use run::FlitEngine;
pub use support::RouterLayout;
