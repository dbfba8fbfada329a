//! The façade: it knows all engines, files, threads and the command line, and simulates nothing itself.

pub mod busiest;
pub mod checksums;
mod claims;
pub mod cli;
pub mod cluster;
mod cost;
pub mod design;
mod efficiency;
pub mod engines;
pub mod estimate;
pub mod exhaustion;
pub mod fabric;
pub mod fidelity;
pub mod input;
pub mod listing;
pub mod measure;
pub mod networks;
pub mod plan;
pub mod results;
pub mod slowdown;
mod snapshot;
pub mod spread;
pub mod stop;
pub mod store;
pub mod tally;
pub mod timeline;
mod users;
