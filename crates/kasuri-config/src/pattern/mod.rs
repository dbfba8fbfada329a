//! Traffic patterns that are read from files, and the table of all.
//!
//! To add one: a file here that implements [`TrafficPattern`] and [`Member`](kasuri_network::registry::Member), a `mod` line, and its line
//! in [`ALL_PATTERNS`].

pub mod matrix;
pub mod permutation;

use kasuri_network::registry;
use kasuri_workload::traffic::pattern::{PATTERNS, TrafficPattern};

registry! {
    /// All patterns that an experiment file can name, in the order in which `kasuri list patterns` shows them.
    pub ALL_PATTERNS: dyn TrafficPattern = [..PATTERNS, permutation::Permutation, matrix::Matrix]
}
