//! `[endpoint]`: a machine with its programs in place of traffic, or interfaces between a closed workload and the network.

use super::context::Context;
use super::document::Part;
use super::error::ConfigError;
use super::section::Section;
use super::shape;
use kasuri_workload::endpoint::{ENDPOINTS, EndpointContext, EndpointModel, Prepared};
use toml::Table;

/// The model that `[endpoint]` names, with its constants.
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) model: Box<dyn EndpointModel>,
}

impl Model {
    /// Has the machine programs of its own, rather than interfaces under any closed workload?
    pub(super) fn is_machine(&self) -> bool {
        self.model.workload_schema().is_some()
    }

    /// The machine, or the interfaces. The section `place` describes the workload.
    pub(super) fn prepare(&self, context: Context<'_>, place: &str, with: &EndpointContext<'_>) -> Result<Prepared, ConfigError> {
        if let Some(schema) = self.model.workload_schema() {
            shape::check(schema.as_value(), with.workload).map_err(|fault| context.fault(place, fault))?;
        }
        self.model.prepare(with).map_err(|error| {
            let section = if error.section == "workload" { place } else { error.section };
            context.error(&format!("{section}.{}", error.key), Part::Value, error.problem)
        })
    }
}

/// The model that `[endpoint]` names, if there is such a section.
pub(super) fn read(context: Context<'_>) -> Result<Option<Model>, ConfigError> {
    let Some(table) = context.table("endpoint")? else { return Ok(None) };
    let section = Section::new(context, "endpoint", table);
    let entry = section.member(ENDPOINTS, "model", None)?;
    section.refuse_unknown(&[entry.keys(), &["model"]], &format!("endpoint `{}`", entry.name))?;
    let model = section.parse(entry, "model")?;
    if context.point.table.contains_key("user")
        && let Err(reason) = model.serves_users()
    {
        let problem = format!("conflicts with [[user]] where endpoint.model = \"{}\": {reason}; leave one of the two out", entry.name);
        return Err(context.error("endpoint", Part::Key, problem));
    }
    Ok(Some(Model { name: entry.name, model }))
}

/// `[workload]`, which every endpoint needs.
pub(super) fn workload<'a>(context: Context<'a>) -> Result<&'a Table, ConfigError> {
    context.required_table("workload", "collective = \"barrier\"")
}

/// The machine that `[endpoint]` and `[workload]` describe, or the interfaces of `[endpoint]`.
pub(super) fn prepare(context: Context<'_>, model: &Model, with: &EndpointContext<'_>) -> Result<Prepared, ConfigError> {
    let prepared = model.prepare(context, "workload", with)?;
    let has_own_network = matches!(&prepared, Prepared::Machine(machine) if machine.packet_flits().is_none());
    if has_own_network && context.table("traffic")?.is_some() {
        let problem = format!(
            "conflicts with endpoint.model = \"{}\", and its routers carry only the parcels of its programs; leave it out",
            model.name
        );
        return Err(context.error("traffic", Part::Key, problem));
    }
    Ok(prepared)
}
