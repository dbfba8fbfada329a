//! HOW, cycle by cycle: a cycle-accurate engine of input-queued virtual-channel routers with credit flow control.
//!
//! The timing is that of the canonical router (Dally and Towles 2004, chapters 16 to 19), in the form in which BookSim 2
//! computes it; where BookSim departs from a pipelined router (stages of several cycles run in batches there), this engine is
//! pipelined. The state lies in flat columns (`state`), a cycle is a handful of flat loops over lists (`fabric`, `edge`), and nothing is
//! visited that has nothing to do: cost follows events.
//!
//! Rooms, the lowest first; a file imports from its own room or a lower one: `record`, `facts`, `support`, `state`, `fabric`, `feeds`,
//! `edge`, `observe`, `run`, `crosspoint`, `endpoint`, `engine`. `support` is below the state because it only asks scenarios: the layouts
//! and the door above both read it. `crosspoint` and `endpoint` are machines that run by themselves.
//!
//! This crate does not know the flow engine, files or the command line, and has no routing of its own. Its threads are those of
//! `record/team.rs`.

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
