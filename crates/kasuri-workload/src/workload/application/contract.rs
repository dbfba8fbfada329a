//! The contract of applications: the demand of a rank, and the line of the table.

use thiserror::Error;

/// What one rank needs in each stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Stages of the program.
    pub stages: u32,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes that are moved in the memory of its host.
    pub memory_bytes: u64,
    /// Bytes for each other rank.
    pub block_bytes: u64,
}

/// Why an application cannot be run as asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key} {problem}")]
pub struct ApplicationError {
    /// The key of `[workload]`.
    pub key: &'static str,
    /// What was found and what would be right, to be read after the key.
    pub problem: String,
}

/// A line of the table.
#[derive(Debug)]
pub struct Entry {
    /// Its name: the key `workload.application`.
    pub name: &'static str,
    /// One line for `kasuri list`.
    pub summary: &'static str,
    /// Where the definition stands.
    pub source: &'static str,
    /// What a rank of so many needs, for a class of problem.
    ///
    /// # Errors
    /// There is no such class, or so many ranks cannot share it equally.
    pub demand: fn(class: &str, ranks: u32) -> Result<Demand, ApplicationError>,
}
