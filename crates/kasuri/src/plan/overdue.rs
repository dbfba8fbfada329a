//! Reports runs that take far longer than estimated, with the reason, while they continue.

use crate::measure::{Measurement, Report};
use kasuri_model::engine::{Command, Controller, Interval};
use std::time::{Duration, Instant};

/// A run is overdue after this many times its estimate; each further notice comes after this many times the time of the last.
const OVERDUE_FACTOR: f64 = 20.0;
const NEXT_NOTICE_FACTOR: f64 = 4.0;

/// A shorter run is never overdue, whatever its estimate.
const MIN_OVERDUE_TIME: Duration = Duration::from_secs(2);

/// A measurement that reports when its run is overdue.
pub(super) struct OverdueWatch<'a> {
    rules: Box<dyn Measurement>,
    begin: Instant,
    expected: f64,
    next: Duration,
    notice: &'a dyn Fn(String),
}

impl<'a> OverdueWatch<'a> {
    /// A run expected to take `expected` more seconds, if known; `notice` gets a sentence each time that it is overdue.
    pub(super) fn new(rules: Box<dyn Measurement>, expected: Option<f64>, notice: &'a dyn Fn(String)) -> Self {
        let due = expected.and_then(|seconds| Duration::try_from_secs_f64(OVERDUE_FACTOR * seconds).ok());
        let next = due.map_or(Duration::MAX, |due| due.max(MIN_OVERDUE_TIME));
        Self { rules, begin: Instant::now(), expected: expected.unwrap_or(0.0), next, notice }
    }

    fn look(&mut self, cycles: u64) {
        if self.next == Duration::MAX {
            return;
        }
        let elapsed = self.begin.elapsed();
        if elapsed < self.next {
            return;
        }
        self.next = elapsed.mul_f64(NEXT_NOTICE_FACTOR);
        let progress = self.rules.progress().map_or(String::new(), |progress| format!("; {progress}"));
        let (elapsed, expected) = (elapsed.as_secs_f64(), self.expected);
        (self.notice)(format!("has taken {elapsed:.1} s ({cycles} cycles so far; estimate: about {expected:.2} s){progress}"));
    }
}

impl Controller for OverdueWatch<'_> {
    fn interval_cycles(&mut self) -> u64 {
        self.rules.interval_cycles()
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        let command = self.rules.interval_ended(interval);
        if !matches!(command, Command::End(_)) {
            self.look(interval.end_cycle);
        }
        command
    }

    fn assured_intervals(&self) -> u64 {
        self.rules.assured_intervals()
    }

    fn waits_until(&self) -> Option<u64> {
        self.rules.waits_until()
    }

    fn weighs_ages(&self) -> bool {
        self.rules.weighs_ages()
    }

    fn should_stop(&self) -> bool {
        self.rules.should_stop()
    }
}

impl Measurement for OverdueWatch<'_> {
    fn report(&self) -> Report {
        self.rules.report()
    }

    fn progress(&self) -> Option<String> {
        self.rules.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_model::engine::Status;
    use std::cell::RefCell;

    struct Endless;

    impl Controller for Endless {
        fn interval_cycles(&mut self) -> u64 {
            100
        }

        fn interval_ended(&mut self, interval: &Interval) -> Command {
            if interval.end_cycle < 1000 { Command::Continue } else { Command::End(Status::Converged) }
        }
    }

    impl Measurement for Endless {
        fn report(&self) -> Report {
            Report::default()
        }

        fn progress(&self) -> Option<String> {
            Some("it waits".to_owned())
        }
    }

    /// No notice before twenty times the estimate, on a run of less than two seconds, or on one that ends; then one, until four times that
    /// time has passed.
    #[test]
    fn an_overdue_run_is_reported() {
        for (expected, begun_before, notices) in [(0.2, 3.0, 0), (0.2, 5.0, 1), (0.001, 1.5, 0), (0.001, 2.5, 1)] {
            let said = RefCell::new(Vec::new());
            let notice = |sentence: String| said.borrow_mut().push(sentence);
            let mut overdue = OverdueWatch::new(Box::new(Endless), Some(expected), &notice);
            overdue.begin = Instant::now().checked_sub(Duration::from_secs_f64(begun_before)).unwrap();
            for end_cycle in [700, 800] {
                assert_eq!(overdue.interval_ended(&Interval { end_cycle, ..Interval::default() }), Command::Continue);
            }
            assert_eq!(said.borrow().len(), notices, "{expected} {begun_before}");
            assert!(
                said.borrow().iter().all(|said| said.contains("700 cycles so far; estimate: about ") && said.ends_with("; it waits")),
                "{said:?}"
            );
        }
        let notice = |sentence: String| panic!("{sentence}");
        let mut unknown = OverdueWatch::new(Box::new(Endless), None, &notice);
        unknown.begin = Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
        unknown.interval_ended(&Interval::default());
    }
}
