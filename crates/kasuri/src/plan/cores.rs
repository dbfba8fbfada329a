//! Assigns cores: runs come first, and once fewer runs than cores are left, a run gets several.

use crate::estimate::Kind;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The cores that the runs of an experiment may use.
#[derive(Debug)]
pub(super) struct Cores {
    /// Runs at the same time.
    jobs: usize,
    budget: usize,
    /// The most threads of a run, if given.
    most: Option<usize>,
    use_of: Mutex<CoreUsage>,
}

/// The usage of cores.
#[derive(Debug)]
struct CoreUsage {
    /// Runs under way, and runs to begin.
    running: usize,
    left: usize,
    /// Threads of runs besides the first of each.
    further: usize,
}

impl Cores {
    /// Divides the cores of the machine, `available` many, among `runs` runs: `jobs` at a time and `threads` each, if given.
    pub(super) fn new(runs: usize, jobs: Option<usize>, threads: Option<usize>, available: usize) -> Self {
        let fitting = (available / threads.unwrap_or(1)).max(1);
        let jobs = if threads.is_some() { jobs.map_or(fitting, |jobs| jobs.min(fitting)) } else { jobs.unwrap_or(fitting) };
        let budget = jobs * threads.unwrap_or(1).min(available.max(1));
        Self { jobs, budget, most: threads, use_of: Mutex::new(CoreUsage { running: 0, left: runs, further: 0 }) }
    }

    /// Runs at the same time, at most all of them.
    pub(super) fn jobs(&self) -> usize {
        self.jobs.clamp(1, self.lock().left.max(1))
    }

    fn lock(&self) -> MutexGuard<'_, CoreUsage> {
        self.use_of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run; it ends when the returned value is dropped.
    pub(super) fn begin_run(&self) -> CoreLease<'_> {
        let mut now = self.lock();
        now.running += 1;
        now.left = now.left.saturating_sub(1);
        CoreLease { cores: self }
    }

    /// Lends threads to a run that would be faster with `useful` of them, until the returned value is dropped. `takes_more`: the run also
    /// takes further threads if `--threads` asks for them.
    pub(super) fn lend(&self, useful: usize, takes_more: bool) -> ExtraThreads<'_> {
        let mut now = self.lock();
        let at_a_time = self.jobs.min(now.running + now.left).max(1);
        let share = self.budget / at_a_time;
        let idle = self.budget.saturating_sub(now.running + now.further);
        let wanted = self.most.map_or(useful, |most| if takes_more { most } else { most.min(useful) });
        let further = wanted.min(share).saturating_sub(1).min(idle);
        now.further += further;
        ExtraThreads { cores: self, further }
    }
}

/// The elapsed time of runs together, s, in this order: for each its processor time on one thread, the number of useful threads, and its
/// kind.
pub(super) fn seconds_together(cores: &Cores, runs: &[(f64, usize, Kind)]) -> f64 {
    let jobs = cores.jobs();
    let mut busy: Vec<(f64, CoreLease<'_>, ExtraThreads<'_>)> = Vec::new();
    let (mut now, mut last) = (0.0, 0.0f64);
    for &(seconds, useful, kind) in runs {
        if busy.len() == jobs
            && let Some(first) = (0..jobs).min_by(|&one, &other| busy[one].0.total_cmp(&busy[other].0))
        {
            now = busy.swap_remove(first).0;
        }
        let begun = cores.begin_run();
        let lent = cores.lend(useful, kind.takes_any_threads());
        let end = now + seconds * kind.time_factor(lent.threads());
        last = last.max(end);
        busy.push((end, begun, lent));
    }
    last
}

/// A run under way.
pub(super) struct CoreLease<'c> {
    cores: &'c Cores,
}

impl Drop for CoreLease<'_> {
    fn drop(&mut self) {
        self.cores.lock().running -= 1;
    }
}

/// Threads lent to a run besides its first.
pub(super) struct ExtraThreads<'c> {
    cores: &'c Cores,
    further: usize,
}

impl ExtraThreads<'_> {
    /// All threads of the run.
    pub(super) fn threads(&self) -> usize {
        self.further + 1
    }
}

impl Drop for ExtraThreads<'_> {
    fn drop(&mut self) {
        self.cores.lock().further -= self.further;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The threads of `runs` runs that all begin before any ends.
    fn threads(cores: &Cores, runs: usize, useful: usize) -> Vec<usize> {
        let begun: Vec<CoreLease<'_>> = (0..runs).map(|_| cores.begin_run()).collect();
        let lent: Vec<ExtraThreads<'_>> = begun.iter().map(|_| cores.lend(useful, true)).collect();
        lent.iter().map(ExtraThreads::threads).collect()
    }

    #[test]
    fn runs_come_first_and_the_last_ones_share_the_cores() {
        assert_eq!(threads(&Cores::new(16, None, None, 16), 16, 100), [1; 16]);
        assert_eq!(threads(&Cores::new(1, None, None, 16), 1, 100), [16]);
        assert_eq!(threads(&Cores::new(1, None, None, 16), 1, 3), [3]);
        assert_eq!(threads(&Cores::new(2, None, None, 16), 2, 100), [8, 8]);
        assert_eq!(threads(&Cores::new(3, None, None, 2), 1, 100), [1]);
    }

    /// One run at a time takes one core, unless it is given threads.
    #[test]
    fn given_jobs_and_threads_hold() {
        assert_eq!(threads(&Cores::new(9, Some(1), None, 16), 1, 100), [1]);
        assert_eq!(threads(&Cores::new(9, Some(1), Some(4), 16), 1, 1), [4]);
        assert_eq!(threads(&Cores::new(9, None, Some(8), 16), 2, 1), [8, 8]);
        assert_eq!(Cores::new(9, None, Some(8), 16).jobs(), 2);
        assert_eq!(Cores::new(9, Some(16), Some(8), 16).jobs(), 2);
        assert_eq!(Cores::new(9, None, Some(64), 16).jobs(), 1);
        assert_eq!(threads(&Cores::new(9, None, Some(64), 16), 1, 1), [16]);
    }

    /// Useless threads do not slow flows down.
    #[test]
    fn a_run_that_takes_no_more_than_it_can_use_gets_no_more() {
        let lent = |most, useful| Cores::new(1, None, Some(most), 16).lend(useful, false).threads();
        assert_eq!([lent(8, 1), lent(8, 2), lent(1, 2)], [1, 2, 1]);
    }

    /// One run is faster on two cores; many short ones share them, and the last, long one has both.
    #[test]
    fn the_time_of_runs_takes_their_threads_into_account() {
        let of_kind = |kind, jobs, threads, available, runs: &[(f64, usize)]| {
            let runs: Vec<_> = runs.iter().map(|&(seconds, useful)| (seconds, useful, kind)).collect();
            seconds_together(&Cores::new(runs.len(), jobs, threads, available), &runs)
        };
        let together = |jobs, threads, available, runs: &[(f64, usize)]| of_kind(Kind::FlitCycles, jobs, threads, available, runs);
        let one = [(100.0, 50)];
        assert_eq!(together(None, None, 1, &one), 100.0);
        assert_eq!(together(None, None, 2, &one), 100.0 * Kind::FlitCycles.time_factor(2));
        assert_eq!(together(None, Some(1), 2, &one), 100.0);
        assert_eq!(together(None, None, 2, &[(100.0, 1)]), 100.0, "a small run is not worth a second thread");
        assert_eq!(together(None, None, 2, &[(100.0, 50); 4]), 200.0);
        assert_eq!(together(Some(1), None, 2, &[(100.0, 50); 4]), 400.0);
        assert_eq!(together(None, None, 2, &[(100.0, 50), (40.0, 50), (30.0, 50)]), 100.0);
        assert_eq!(together(None, None, 2, &[]), 0.0);
        assert_eq!(of_kind(Kind::Flow, None, None, 2, &one), 100.0 * Kind::Flow.time_factor(2));
    }

    proptest! {
        /// Under any settings, no more threads run than there are cores, or than `--jobs` alone allows.
        #[test]
        fn nothing_is_oversubscribed(
            runs in 1..20usize,
            jobs in prop::option::of(1..20usize),
            threads in prop::option::of(1..20usize),
            available in 1..20usize,
            useful in prop::collection::vec(1..30usize, 20),
        ) {
            let cores = Cores::new(runs, jobs, threads, available);
            let most = available.max(if threads.is_none() { jobs.unwrap_or(1) } else { 1 });
            let mut left = runs;
            // Runs begin and end in the order of a queue, with the allowed number at a time.
            let (mut begun, mut sum) = (Vec::new(), 0);
            while left > 0 || !begun.is_empty() {
                if left > 0 && begun.len() < cores.jobs {
                    let run = cores.begin_run();
                    let lent = cores.lend(useful[left % useful.len()], left % 2 == 0);
                    sum += lent.threads();
                    prop_assert!(sum <= most, "{sum} threads on {most} cores");
                    begun.push((run, lent));
                    left -= 1;
                } else {
                    let (_, lent) = begun.remove(0);
                    sum -= lent.threads();
                }
            }
        }
    }
}
