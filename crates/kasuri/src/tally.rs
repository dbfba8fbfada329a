//! How far a plan is, for displays outside of this crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the runs of a plan while it is computed. Clones are the same count, so that another thread can look.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    planned: Arc<AtomicUsize>,
    finished: Arc<AtomicUsize>,
}

impl Tally {
    /// Runs that are finished, those taken from the store among them, and all runs; 0 of 0 until the plan is checked.
    pub fn look(&self) -> (usize, usize) {
        (self.finished.load(Ordering::Relaxed), self.planned.load(Ordering::Relaxed))
    }

    /// Sets the number of runs.
    pub(crate) fn plan(&self, runs: usize) {
        self.planned.store(runs, Ordering::Relaxed);
    }

    /// One more is finished.
    pub(crate) fn add(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }
}
