//! What watches the tiles of a run between two windows: counters, invariants and the search for packets that wait for each other.
//!
//! Invariant: nothing here changes what a flit does. It knows tiles; it knows neither the clock that drives them nor the controller.

pub(crate) mod counters;
pub(crate) mod deadlock;
pub(crate) mod invariants;
