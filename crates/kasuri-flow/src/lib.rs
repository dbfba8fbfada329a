//! HOW, by rates and formulas: what a scenario does without following its flits.
//!
//! [`analysis`] answers with graph and queueing formulas: the latency of a lone packet, the load that a pattern and a routing
//! put on each channel, and the throughput that this allows. It knows no clock beyond that of a single packet.

pub mod analysis;
