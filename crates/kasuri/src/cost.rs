//! The cost of a run: wall-clock time, processor time, memory.

use crate::results::{PEAK_MEMORY, RunRow};
use kasuri_model::engine::Threads;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Measures a run from its begin on, on the computing thread.
#[derive(Debug)]
pub(crate) struct Meter {
    wall: Instant,
    processor: Option<Duration>,
    /// Processor time of the further threads of the run, nanoseconds.
    further: Arc<AtomicU64>,
    /// The most threads at a time.
    threads: AtomicUsize,
}

impl Meter {
    pub(crate) fn begin() -> Self {
        Self { wall: Instant::now(), processor: processor_time(), further: Arc::default(), threads: AtomicUsize::new(1) }
    }

    /// The threads of the run, with the time of the further ones counted as well.
    pub(crate) fn threads(&self, count: usize) -> Threads {
        self.threads.fetch_max(count, Ordering::Relaxed);
        let further = Arc::clone(&self.further);
        let at_end = move || {
            let used = processor_time().unwrap_or_default();
            further.fetch_add(used.as_nanos() as u64, Ordering::Relaxed);
        };
        Threads { at_end: Arc::new(at_end), ..Threads::new(count) }
    }

    /// The most threads of the run at a time.
    pub(crate) fn threads_used(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Writes [`crate::results::COSTS`] into the run's row, on the same thread; values unknown to the system stay `null`.
    pub(crate) fn end(&self, row: &mut RunRow) {
        row.set("wall_seconds", self.wall.elapsed().as_secs_f64());
        let further = Duration::from_nanos(self.further.load(Ordering::Relaxed));
        let used = self.processor.zip(processor_time()).map(|(begin, end)| (end.saturating_sub(begin) + further).as_secs_f64());
        row.set("cpu_seconds", used);
        row.set(PEAK_MEMORY, peak_memory_mib());
    }
}

/// Processor time of the calling thread.
fn processor_time() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok().map(Duration::from)
}

/// Peak resident memory of the process, MiB.
fn peak_memory_mib() -> Option<f64> {
    // `getrusage` on Linux includes the peak of the parent program; this file has the peak of this one.
    of_status("VmHWM:").or_else(peak_memory_of_usage)
}

/// Resident memory of the process now, MiB, if the system reports it.
pub(crate) fn resident_memory_mib() -> Option<f64> {
    of_status("VmRSS:")
}

/// Available memory of the machine, bytes, if the system reports it.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let size = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    size.map(|kib| kib << 10)
}

/// A size in Linux's status of this process, MiB.
fn of_status(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    size.map(|kib| kib / 1024.0)
}

fn peak_memory_of_usage() -> Option<f64> {
    // macOS counts in bytes, other systems in KiB.
    let unit = if cfg!(target_vendor = "apple") { 1.0 / 1024.0 } else { 1.0 };
    getrusage(UsageWho::RUSAGE_SELF).ok().map(|usage| usage.max_rss() as f64 * unit / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{COSTS, tests as example};

    #[test]
    fn a_run_costs_time_and_memory() {
        let meter = Meter::begin();
        while meter.wall.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let mut row = RunRow::failed(&example::head(), "");
        meter.end(&mut row);
        let [wall, processor, memory] = [0, 1, 2].map(|column| row.number(COSTS[column]).unwrap());
        assert!(wall >= 0.02 && processor > 0.0 && processor <= wall + 0.001, "{wall} {processor}");
        assert!((1.0..100_000.0).contains(&memory), "{memory}");
    }
}
