//! Applications: programs of stages, each with a computation, a rearrangement in memory and an all-to-all.
//!
//! Knows no network. Members import the contract (`contract.rs`), never this file.
//!
//! To add one: a file here with its demand and its `ENTRY`, a `mod` line, and its line in [`APPLICATIONS`].

mod contract;
pub mod npb_ft;

pub use contract::{ApplicationError, Demand, Entry};

/// All applications.
pub static APPLICATIONS: &[Entry] = &[npb_ft::ENTRY];
