//! What counts as measured.

use crate::common::{Fixed, Setup};
use kasuri_model::engine::{Command, Controller, Interval, Outcome, Status};

/// Measures and drains like the controller within, then empties the network too.
struct ThenEmpty {
    inner: Fixed,
    emptying: bool,
}

impl Controller for ThenEmpty {
    fn interval_cycles(&mut self) -> u64 {
        self.inner.interval_cycles()
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if self.emptying {
            return if interval.in_flight_flits == 0 { Command::End(Status::Converged) } else { Command::Continue };
        }
        match self.inner.interval_ended(interval) {
            Command::End(_) => {
                self.emptying = true;
                Command::Empty
            }
            command => command,
        }
    }
}

/// Packets that are created while others drain are not measured, and rates are those of the measured cycles alone.
#[test]
fn emptying_after_draining_changes_no_answer() {
    let setup = Setup { load: 0.3, ..Setup::mesh(&[8, 8]) };
    let drained = setup.run(&mut Fixed::new(500, 2000));
    let emptied = setup.run(&mut ThenEmpty { inner: Fixed::new(500, 2000), emptying: false });
    assert_eq!(drained.measured_cycles, 2000);
    assert!(emptied.cycles > drained.cycles);
    assert_eq!(Outcome { cycles: 0, flit_hops: 0, ..emptied }, Outcome { cycles: 0, flit_hops: 0, ..drained });
}
