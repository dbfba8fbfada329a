//! The scenario's machine, as an engine of packets begins it.

use kasuri_model::scenario::Scenario;
use kasuri_workload::endpoint::Endpoint;
use kasuri_workload::endpoint::running::RunningMachine;

/// The scenario's machine, if it has one whose packets this engine can carry.
pub(crate) fn begin(scenario: &Scenario) -> Option<(&dyn Endpoint, Box<dyn RunningMachine + '_>)> {
    let machine = scenario.endpoint.as_deref()?;
    Some((machine, machine.begin()?))
}
