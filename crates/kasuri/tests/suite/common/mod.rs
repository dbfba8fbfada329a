//! The common part of tests of whole runs.

use kasuri_model::engine::{Command, Controller, Interval, Status};

/// Ends a run when its closed workload or its batches are done.
pub(crate) struct UntilDone;

impl Controller for UntilDone {
    fn interval_cycles(&mut self) -> u64 {
        1000
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.completed { Command::End(Status::Completed) } else { Command::Continue }
    }
}
