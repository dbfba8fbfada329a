//! What watches a simulation and changes nothing in it: statistics, invariants, deadlock.

mod deadlock;
mod invariants;
