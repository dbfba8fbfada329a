//! Ethernet fabrics of two or three tiers of switches, and the flows that run on them, as the Ultra Ethernet Consortium's simulator
//! describes them.
//!
//! [`fabric`] is the tree of switches with its rates and latencies, [`matrix`] the list of flows and of what sets them off. Nothing here
//! has a time of its own: `kasuri_packet` follows the packets. Source: the file formats of uet-htsim, 13 August 2025.

pub mod fabric;
pub mod matrix;
