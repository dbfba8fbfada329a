//! What fails and comes up again during a run, and what is dead at present.

use crate::record::marks::NEVER;
use kasuri_model::scenario::{Epoch, Scenario};
use std::collections::VecDeque;

/// An epoch of the scenario's failure begins, or routers hear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Begins(usize),
    IsKnown(usize),
}

/// What will change, by its cycle.
#[derive(Clone, Debug)]
pub(crate) struct Changes(VecDeque<(u64, Change)>);

impl Changes {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let epochs = scenario.failure.iter().flat_map(|failure| &failure.epochs);
        let of_epoch =
            |(number, epoch): (usize, &Epoch)| [(epoch.cycle, Change::Begins(number)), (epoch.detected, Change::IsKnown(number))];
        let mut all: Vec<(u64, Change)> = epochs.enumerate().flat_map(of_epoch).collect();
        all.sort_by_key(|&(cycle, _)| cycle);
        Self(all.into())
    }

    /// The cycle of the next one, [`NEVER`] if there is none.
    pub(crate) fn next(&self) -> u64 {
        self.0.front().map_or(NEVER, |&(cycle, _)| cycle)
    }

    /// Takes the next one, if its cycle has come.
    pub(crate) fn due(&mut self, now: u64) -> Option<Change> {
        if self.next() > now {
            return None;
        }
        self.0.pop_front().map(|(_, change)| change)
    }
}

/// What is dead.
#[derive(Clone, Debug)]
pub(crate) struct Failures {
    /// By port address of routers: the channel that leaves by it.
    pub(crate) dead: Vec<bool>,
    /// By router, as the tile numbers them.
    pub(crate) dead_routers: Vec<bool>,
    /// Packets that were lost so far.
    pub(crate) lost: u64,
}

impl Failures {
    /// Nothing is dead, in so many ports of so many routers.
    pub(crate) fn of(scenario: &Scenario, ports: u32, routers: usize) -> Option<Box<Self>> {
        let none = || Box::new(Self { dead: vec![false; ports as usize], dead_routers: vec![false; routers], lost: 0 });
        scenario.failure.is_some().then(none)
    }
}
