//! The timed side of endpoint models. To add one: a module here with its [`TimedEndpoint`], and its line in the table.
//!
//! A model whose packets go through the routers with virtual channels is a part of their simulation instead: [`dsm`].

mod cenju4;
pub(crate) mod dsm;

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

/// Runs a scenario's machine, if it has one that runs by itself.
pub(crate) fn run(scenario: &Scenario, controller: &mut dyn Controller) -> Option<Result<Outcome, EngineError>> {
    let machine = scenario.endpoint.as_deref()?;
    if dsm::machine(scenario).is_some() {
        return None;
    }
    let Some(entry) = ENDPOINTS.iter().find(|entry| entry.name == machine.model()) else {
        let what = format!("the endpoint {}", machine.model());
        return Some(Err(EngineError::NotModelled { key: "endpoint.model".to_owned(), engine: "flit", what }));
    };
    Some((entry.run)(scenario, machine, controller))
}
