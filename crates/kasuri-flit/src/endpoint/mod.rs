//! The timed side of endpoint models. To add one: a module here with its [`TimedEndpoint`], and its line in the table.
//!
//! A model whose packets go through the routers with virtual channels feeds their simulation instead: `edge/machine.rs`.

mod cenju4;

use crate::edge;
use kasuri_model::engine::{Controller, EngineError, Outcome};
use kasuri_model::scenario::Scenario;
use std::any::Any;

/// How a model's machine is run.
struct TimedEndpoint {
    /// The name in the experiment file.
    name: &'static str,
    /// Runs a machine of the model's type.
    run: fn(&Scenario, &dyn Any, &mut dyn Controller) -> Result<Outcome, EngineError>,
}

static ENDPOINTS: &[TimedEndpoint] = &[cenju4::ENTRY];

/// The scenario's machine, if it has one that runs by itself, and how it is run.
type Alone<'a> = (&'a dyn Any, &'static TimedEndpoint);

/// A scenario's machine that runs by itself.
///
/// # Errors
/// This engine does not know the model.
fn alone(scenario: &Scenario) -> Result<Option<Alone<'_>>, EngineError> {
    let Some(machine) = scenario.endpoint.as_deref().filter(|_| edge::machine(scenario).is_none()) else { return Ok(None) };
    let entry = ENDPOINTS.iter().find(|entry| entry.name == machine.model()).ok_or_else(|| {
        let what = format!("the endpoint {}", machine.model());
        EngineError::NotModelled { key: "endpoint.model".to_owned(), engine: "flit", what }
    })?;
    Ok(Some((machine, entry)))
}

/// Has the scenario a machine that runs by itself?
///
/// # Errors
/// This engine does not know the model.
pub(crate) fn runs_alone(scenario: &Scenario) -> Result<bool, EngineError> {
    alone(scenario).map(|found| found.is_some())
}

/// Runs a scenario's machine, if it has one that runs by itself.
pub(crate) fn run(scenario: &Scenario, controller: &mut dyn Controller) -> Option<Result<Outcome, EngineError>> {
    match alone(scenario) {
        Ok(found) => found.map(|(machine, entry)| (entry.run)(scenario, machine, controller)),
        Err(error) => Some(Err(error)),
    }
}
