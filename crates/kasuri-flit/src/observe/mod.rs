//! What watches the tiles of a run: counters, invariants and the search for packets that wait for each other. Functions over tiles between two
//! windows.

pub(crate) mod counters;
pub(crate) mod deadlock;
pub(crate) mod invariants;
