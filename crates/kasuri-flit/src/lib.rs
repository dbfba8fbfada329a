//! HOW, cycle by cycle: a cycle-accurate engine of input-queued virtual-channel routers with credit flow control.
//!
//! The timing is that of the canonical router (Dally and Towles 2004, chapters 16 to 19), in the form in which BookSim 2
//! computes it; where BookSim departs from a pipelined router (stages of several cycles run in batches there), this engine is
//! pipelined. The state lies in flat columns (`tile`), a cycle is a handful of flat loops over lists (`step`), and nothing is
//! visited that has nothing to do: cost follows events.
//!
//! This crate does not know the flow engine, files, threads or the command line, and has no routing of its own.

mod crosspoint;
mod edge;
mod endpoint;
mod engine;
mod fabric;
mod facts;
mod feeds;
mod observe;
mod record;
mod run;
mod state;
mod support;

pub use crate::engine::FlitEngine;
pub use crate::record::allocators::{ALLOCATORS, AllocatorEntry};
pub use crate::record::options::{Auto, FlitOptions, LayoutName, Simd, ThreadCount};
