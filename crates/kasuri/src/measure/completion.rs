//! Closed workloads: the run ends when everything is delivered, or when the first terminal has finished.

use super::{Measurement, Report};
use kasuri_config::Until;
use kasuri_model::engine::{Command, Controller, Interval, Status};

/// The controller of closed workloads: statistics cover the whole run from the first cycle on.
#[derive(Clone, Debug)]
pub struct Completion {
    max_cycles: u64,
    until: Until,
    now: u64,
}

/// Cycles between two checks of the clock and of requests to stop.
const INTERVAL: u64 = 1_000;

impl Completion {
    /// A run that ends when the workload is delivered or, if `until` says so, when one terminal has finished; at `max_cycles` in
    /// any case.
    pub fn new(max_cycles: u64, until: Until) -> Self {
        Self { max_cycles, until, now: 0 }
    }
}

impl Controller for Completion {
    fn interval_cycles(&mut self) -> u64 {
        INTERVAL.min(self.max_cycles.saturating_sub(self.now)).max(1)
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        self.now = interval.end_cycle;
        let has_first = self.until == Until::FirstTerminal && interval.first_finished;
        if interval.completed || has_first {
            Command::End(Status::Completed)
        } else if self.now >= self.max_cycles {
            Command::End(Status::MaxCycles)
        } else {
            Command::Continue
        }
    }

    fn waits_until(&self) -> Option<u64> {
        (self.until == Until::Delivered).then_some(self.max_cycles)
    }
}

impl Measurement for Completion {
    fn report(&self) -> Report {
        Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_workload_ends_when_it_is_delivered_or_at_the_limit() {
        let mut controller = Completion::new(2_500, Until::Delivered);
        let at = |end_cycle, completed| Interval { end_cycle, completed, ..Interval::default() };
        assert_eq!(controller.interval_cycles(), 1_000);
        assert_eq!(controller.interval_ended(&at(1_000, false)), Command::Continue);
        assert_eq!(controller.interval_ended(&at(2_000, false)), Command::Continue);
        assert_eq!(controller.interval_cycles(), 500);
        assert_eq!(controller.waits_until(), Some(2_500));
        assert_eq!(controller.clone().interval_ended(&at(2_400, true)), Command::End(Status::Completed));
        assert_eq!(controller.clone().interval_ended(&at(2_500, true)), Command::End(Status::Completed));
        assert_eq!(controller.interval_ended(&at(2_500, false)), Command::End(Status::MaxCycles));
    }

    #[test]
    fn the_first_finished_terminal_ends_the_run_on_request() {
        let first = Interval { end_cycle: 700, first_finished: true, ..Interval::default() };
        assert_eq!(Completion::new(2_500, Until::Delivered).interval_ended(&first), Command::Continue);
        let mut controller = Completion::new(2_500, Until::FirstTerminal);
        assert_eq!(controller.waits_until(), None);
        assert_eq!(controller.interval_ended(&Interval { first_finished: false, ..first.clone() }), Command::Continue);
        assert_eq!(controller.interval_ended(&first), Command::End(Status::Completed));
    }
}
