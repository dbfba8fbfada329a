//! The progress bar: the number of finished runs, and the time left.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The time between two drawings of an idle bar.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Shows the progress of the runs on a terminal.
pub(super) struct Progress(Option<VisibleBar>);

struct VisibleBar {
    bar: ProgressBar,
    left: Arc<Mutex<Remaining>>,
}

impl Progress {
    /// Nothing is shown.
    pub(super) fn hidden() -> Self {
        Self(None)
    }

    /// A bar of `runs` runs, expected to take `expected` seconds together, and `processor_seconds` on one thread.
    pub(super) fn new(runs: usize, expected: f64, processor_seconds: f64) -> Self {
        let left = Arc::new(Mutex::new(Remaining { expected, planned: processor_seconds, to_do: processor_seconds, done: 0.0 }));
        let known = Arc::clone(&left);
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {elapsed} elapsed, {time_left}");
        let style = style.expect("the template is a constant and right");
        let style = style.with_key("time_left", move |state: &ProgressState, line: &mut dyn Write| {
            let _ = line.write_str(&words(locked(&known).seconds(state.elapsed().as_secs_f64())));
        });
        let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr()).with_style(style);
        tick(&bar);
        Self(Some(VisibleBar { bar, left }))
    }

    /// One more run is finished, estimated at `processor_seconds`; `computed` unless it was in the store.
    pub(super) fn finish_run(&self, processor_seconds: f64, computed: bool) {
        if let Some(VisibleBar { bar, left }) = &self.0 {
            locked(left).finish(processor_seconds, computed);
            bar.inc(1);
        }
    }

    /// Writes a line to standard error, above the bar.
    pub(super) fn print(&self, line: &str) {
        match &self.0 {
            Some(shown) => shown.bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// Removes the bar.
    pub(super) fn clear(&self) {
        self.0.iter().for_each(|shown| shown.bar.finish_and_clear());
    }
}

fn locked(left: &Mutex<Remaining>) -> MutexGuard<'_, Remaining> {
    left.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Redraws a visible bar as time passes. If the system refuses the thread for it, the bar moves only with the runs; the library's own way
/// would panic.
fn tick(bar: &ProgressBar) {
    if bar.is_hidden() {
        return;
    }
    let bar = bar.downgrade();
    let _ = thread::Builder::new().spawn(move || {
        while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.tick();
            drop(bar);
            thread::sleep(REDRAW_INTERVAL);
        }
    });
}

/// The data for the remaining time.
#[derive(Debug)]
struct Remaining {
    /// Expected seconds of all runs together.
    expected: f64,
    /// Estimated processor time of all runs, s.
    planned: f64,
    /// The same without the reused runs.
    to_do: f64,
    /// That of the computed runs.
    done: f64,
}

impl Remaining {
    fn finish(&mut self, processor_seconds: f64, computed: bool) {
        if computed {
            self.done += processor_seconds;
        } else {
            self.to_do -= processor_seconds;
        }
    }

    /// The seconds left after `elapsed`, if known: at first by the estimate, and from a quarter on by the finished runs.
    fn seconds(&self, elapsed: f64) -> Option<f64> {
        let done = (self.done / self.to_do.max(1e-9)).clamp(0.0, 1.0);
        let by_estimate = self.expected * self.to_do / self.planned.max(1e-9) - elapsed;
        if done == 0.0 {
            return (by_estimate > 0.0).then_some(by_estimate);
        }
        let weight = (4.0 * done).min(1.0);
        Some(weight * elapsed * (1.0 - done) / done + (1.0 - weight) * by_estimate.max(0.0))
    }
}

/// The time left, in words.
fn words(seconds: Option<f64>) -> String {
    match seconds {
        Some(seconds) => format!("about {:#} left", HumanDuration(Duration::from_secs_f64(seconds.min(1e9)))),
        None => "longer than expected".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four runs of 10 s on two cores.
    fn four() -> Remaining {
        Remaining { expected: 20.0, planned: 40.0, to_do: 40.0, done: 0.0 }
    }

    #[test]
    fn a_single_run_counts_down_from_the_estimate() {
        let one = Remaining { expected: 60.0, planned: 100.0, to_do: 100.0, done: 0.0 };
        assert_eq!(one.seconds(0.0), Some(60.0));
        assert_eq!(words(one.seconds(15.0)), "about 45s left");
        assert_eq!(words(one.seconds(61.0)), "longer than expected");
    }

    #[test]
    fn reused_runs_take_no_time() {
        let mut left = four();
        left.finish(10.0, false);
        left.finish(10.0, false);
        assert_eq!(left.seconds(0.0), Some(10.0));
    }

    /// Twice as slow as expected: at the end only the finished runs count.
    #[test]
    fn finished_runs_correct_the_estimate() {
        let mut left = four();
        left.finish(20.0, true);
        assert_eq!(left.seconds(20.0), Some(20.0));
        left.finish(19.0, true);
        assert!((left.seconds(39.0).unwrap() - 1.0).abs() < 0.1);
        left.finish(1.0, true);
        assert_eq!(left.seconds(40.0), Some(0.0));
    }
}
