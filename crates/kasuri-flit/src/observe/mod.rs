//! What watches a simulation and changes nothing in it: statistics, invariants, deadlock.

mod deadlock;
pub(crate) mod intervals;
mod invariants;
pub(crate) mod statistics;
