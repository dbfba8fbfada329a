//! The Cenju-4 from event to event: processors, Senders and Receivers of all nodes on a network of crosspoint-buffered routers.
//!
//! Times are whole picoseconds. The parts of a node work side by side and each does one thing at a time: the processor of each task runs
//! its program (`processor`), the Sender reads headers and makes packets (`sender`), the Receiver writes memory (`receiver`). What they do
//! to memories and tables is the model's (`kasuri_workload::endpoint::cenju4`).

mod event;
mod link;
mod operating_system;
mod processor;
mod programs;
mod receiver;
mod receiving;
mod sender;
mod sending;
mod simulation;
mod standstill;
#[cfg(test)]
mod tests;

use super::timed::TimedEndpoint;
use kasuri_model::engine::{Controller, EngineError, Outcome};
use kasuri_model::scenario::Scenario;
use kasuri_network::registry::Member;
use kasuri_workload::endpoint::cenju4::{Cenju4, Machine};
use simulation::Simulation;
use std::any::Any;

pub(super) const ENTRY: TimedEndpoint = TimedEndpoint { name: Cenju4::NAME, run };

fn run(scenario: &Scenario, machine: &dyn Any, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
    let machine = machine.downcast_ref::<Machine>().expect("the table's name is that of this type");
    Simulation::new(scenario, machine)?.run(controller)
}
