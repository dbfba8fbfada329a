//! The progress of a plan, for displays outside of this crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the runs of a plan while it is computed. Clones share the count, so that another thread can read it.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    planned: Arc<AtomicUsize>,
    finished: Arc<AtomicUsize>,
}

impl Tally {
    /// Finished runs, with reused ones, and all runs; 0 of 0 until the plan is checked.
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
