//! The door of the crate: the engine, and what it refuses before a run.

use crate::record::options::FlitOptions;
use crate::run::layouts::on_routers;
use crate::{endpoint, support};
use kasuri_model::engine::{Engine, Feature, Method, Prepared};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use schemars::Schema;
use schemars::schema_for;

/// The cycle-accurate engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlitEngine;

impl Engine for FlitEngine {
    fn name(&self) -> &'static str {
        "flit"
    }

    fn summary(&self) -> &'static str {
        "flits and credits in routers with virtual channels, cycle by cycle"
    }

    fn section(&self) -> fn() -> Schema {
        || schema_for!(FlitOptions)
    }

    fn method(&self) -> Method {
        Method::Cycles
    }

    fn features(&self) -> Vec<Feature> {
        support::features()
    }

    fn prepare<'s>(&'s self, scenario: &'s Scenario) -> Result<Box<dyn Prepared + 's>, Vec<Refusal>> {
        let mut refusals = support::refused(scenario);
        let options = options(scenario).map_err(|refusal| refusals.push(refusal)).unwrap_or_default();
        let alone = endpoint::alone(scenario, options).map_err(|refusal| refusals.push(refusal)).ok().flatten();
        if let Some(alone) = alone.filter(|_| refusals.is_empty()) {
            return Ok(Box::new(alone));
        }
        on_routers(scenario, options, refusals)
    }
}

/// What `[flit]` says.
fn options(scenario: &Scenario) -> Result<FlitOptions, Refusal> {
    scenario.engine_options.clone().try_into().map_err(|error: toml::de::Error| Refusal::new("flit", error.message()))
}
