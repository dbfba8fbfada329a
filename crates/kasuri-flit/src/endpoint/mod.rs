//! The timed side of endpoint models. To add one: a module here with its [`TimedEndpoint`], and its line in the table.
//!
//! A model whose packets go through the routers with virtual channels feeds their simulation instead: `feeds/machine.rs`.

mod cenju4;
mod timed;

use crate::record::options::FlitOptions;
use crate::run::layouts;
use kasuri_model::engine::{Controller, EngineError, Outcome, Prepared};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::routing::extents::Extents;
use std::any::Any;
use timed::TimedEndpoint;

static ENDPOINTS: &[TimedEndpoint] = &[cenju4::ENTRY];

/// A scenario's machine that runs by itself.
pub(crate) struct Alone<'s> {
    scenario: &'s Scenario,
    options: FlitOptions,
    machine: &'s dyn Any,
    entry: &'static TimedEndpoint,
}

/// The scenario's machine, if it has one that runs by itself.
///
/// # Errors
/// This engine does not know the model.
pub(crate) fn alone(scenario: &Scenario, options: FlitOptions) -> Result<Option<Alone<'_>>, Refusal> {
    let Some(machine) = scenario.endpoint.as_deref().filter(|machine| machine.packet_flits().is_none()) else { return Ok(None) };
    let unknown = || Refusal::new("endpoint.model", "the flit engine has no such machine").value(format!("\"{}\"", machine.model()));
    let entry = ENDPOINTS.iter().find(|entry| entry.name == machine.model()).ok_or_else(unknown)?;
    Ok(Some(Alone { scenario, options, machine, entry }))
}

impl Prepared for Alone<'_> {
    fn memory_bytes(&self, extents: &mut Extents) -> u64 {
        // About what the same network takes with routers of virtual channels.
        layouts::on_routers(self.scenario, self.options, Vec::new()).map_or(0, |routers| routers.memory_bytes(extents))
    }

    fn run(self: Box<Self>, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        (self.entry.run)(self.scenario, self.machine, controller)
    }
}
