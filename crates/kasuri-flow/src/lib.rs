//! HOW, by rates and formulas: what a scenario does without following its flits.
//!
//! [`FlowEngine`] sends messages as fluid flows that share channels by one of several rules ([`SHARINGS`]). [`analysis`] answers
//! with graph and queueing formulas: the latency of a lone packet, the load that a pattern and a routing put on each channel, and
//! the throughput that this allows.

pub mod analysis;
mod arbitrated;
pub mod astra;
mod cohort;
mod counts;
mod engine;
mod fluid;
mod graph;
mod heap;
mod lone;
mod packets;
mod path_cache;
mod path_prefetch;
mod paths;
mod predictions;
mod scout;
mod sharing;
mod statistics;
mod steps;
mod support;

pub use arbitrated::{Grain, Mechanism};
pub use engine::{FlowEngine, FlowOptions};
pub use sharing::{SHARINGS, SharingEntry};
