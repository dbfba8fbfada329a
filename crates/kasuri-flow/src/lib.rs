//! HOW, by rates and formulas: what a scenario does without following its flits.
//!
//! [`FlowEngine`] sends messages as fluid flows that share channels by one of several rules ([`SHARINGS`]). [`analysis`] answers
//! with graph and queueing formulas: the latency of a lone packet, the load that a pattern and a routing put on each channel, and
//! the throughput that this allows.

mod ahead;
pub mod analysis;
mod engine;
mod fluid;
mod graph;
mod heap;
mod packets;
mod paths;
mod remembered;
mod sharing;
mod sources;
mod statistics;
mod steps;
mod support;
mod together;

pub use engine::{FlowEngine, FlowOptions};
pub use sharing::{SHARINGS, SharingEntry};
