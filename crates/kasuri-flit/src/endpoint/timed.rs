//! What every timed machine is to the engine.

use kasuri_model::engine::{Controller, EngineError, Outcome};
use kasuri_model::scenario::Scenario;
use std::any::Any;

/// How a model's machine is run.
pub(super) struct TimedEndpoint {
    /// The name in the experiment file.
    pub(super) name: &'static str,
    /// Runs a machine of the model's type.
    pub(super) run: fn(&Scenario, &dyn Any, &mut dyn Controller) -> Result<Outcome, EngineError>,
}
