//! Binds the threads of a run to cores: a run with all cores binds each thread, so that the core's caches keep the thread's tiles. If
//! several runs share the machine, the system decides: it knows the idle cores.

use kasuri_model::engine::Threads;
use std::sync::Arc;

/// The cores of a run's threads, as long as it runs.
#[derive(Debug)]
pub(super) struct Binding {
    /// By thread; empty if the system decides.
    cores: Vec<usize>,
}

impl Binding {
    /// The cores for `threads` threads, the calling one first.
    pub(super) fn of(threads: usize) -> Self {
        let cores = if threads > 1 { allowed() } else { Vec::new() };
        if cores.len() != threads {
            return Self { cores: Vec::new() };
        }
        bind_to(&cores[..1]);
        Self { cores }
    }

    /// Binds the further threads when they begin.
    pub(super) fn bind(&self, threads: Threads) -> Threads {
        let cores = self.cores.clone();
        let at_begin = move |thread: usize| {
            if let Some(core) = cores.get(thread..=thread) {
                bind_to(core);
            }
        };
        Threads { at_begin: Arc::new(at_begin), ..threads }
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        if !self.cores.is_empty() {
            bind_to(&self.cores);
        }
    }
}

/// The cores that the calling thread may use; none if the system does not report them.
#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    use nix::sched::{CpuSet, sched_getaffinity};
    let cores = sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|&core| cores.is_set(core).unwrap_or(false)).collect()
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    Vec::new()
}

/// Binds the calling thread to these cores. If the system refuses, that costs time and changes no result.
#[cfg(target_os = "linux")]
fn bind_to(cores: &[usize]) {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    if cores.iter().all(|&core| set.set(core).is_ok()) {
        let _ = sched_setaffinity(nix::unistd::Pid::from_raw(0), &set);
    }
}

#[cfg(not(target_os = "linux"))]
fn bind_to(_cores: &[usize]) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn threads_that_have_all_cores_keep_one_each_until_the_run_ends() {
        let before = allowed();
        let binding = Binding::of(before.len());
        let threads = binding.bind(Threads::new(before.len()));
        let mut seen = vec![allowed()];
        for thread in 1..before.len() {
            let at_begin = Arc::clone(&threads.at_begin);
            let bound = thread::spawn(move || {
                at_begin(thread);
                allowed()
            });
            seen.push(bound.join().expect("it ends"));
        }
        let one_each: Vec<Vec<usize>> = before.iter().map(|&core| vec![core]).collect();
        assert_eq!(seen, one_each);
        drop(binding);
        assert_eq!(allowed(), before);
    }

    #[test]
    fn threads_that_have_a_part_of_the_cores_are_left_alone() {
        let before = allowed();
        for threads in [1, before.len() + 1] {
            let binding = Binding::of(threads);
            (binding.bind(Threads::new(threads)).at_begin)(1);
            assert_eq!(allowed(), before);
        }
    }
}
