//! `[endpoint]`: a machine with its programs in place of traffic, or interfaces between a closed workload and the network.

use super::error::ConfigError;
use super::section::Section;
use super::shape;
use super::study::{Context, owned};
use kasuri_model::router::RouterParameters;
use kasuri_network::network::Network;
use kasuri_network::rng::Streams;
use kasuri_network::routing::Routing;
use kasuri_workload::endpoint::{ENDPOINTS, EndpointContext, Prepared};
use kasuri_workload::units::Units;
use toml::Table;

/// Has any of these users a workload?
fn has_workload(users: &toml::Value) -> bool {
    users.as_array().is_some_and(|users| users.iter().any(|user| user.get("workload").is_some()))
}

impl Context<'_> {
    /// The machine that `[endpoint]` and `[workload]` describe, or the interfaces of `[endpoint]`, if there is one.
    pub(super) fn endpoint(
        self,
        network: &Network,
        routing: &dyn Routing,
        router: &RouterParameters,
        units: Units,
        streams: &Streams,
    ) -> Result<Option<Prepared>, ConfigError> {
        let Some(table) = self.table("endpoint")? else { return Ok(None) };
        let section = Section::new(self, "endpoint", table);
        let entry = section.member(ENDPOINTS, "model", None)?;
        section.refuse_unknown(&[&section.keys_of(entry), &owned(&["model"])], &format!("endpoint `{}`", entry.name))?;
        let model = section.parse(entry, "model")?;
        let users = self.point.table.get("user");
        if users.is_some() && model.workload_schema().is_some() {
            let problem = "conflicts with [[user]]: the interfaces of a machine run one program; leave one of the two out";
            return Err(self.error("endpoint", super::document::Part::Key, problem));
        }
        let of_users = Table::new();
        let workload = match users {
            None => self.required_table("workload", "collective = \"barrier\"")?,
            Some(users) if has_workload(users) => &of_users,
            Some(_) => {
                let problem = format!(
                    "\"{}\" stands between workloads and the network, and no user has a workload; give one a [user.workload], or leave it out",
                    entry.name
                );
                return Err(self.error("endpoint.model", super::document::Part::Value, problem));
            }
        };
        if let Some(schema) = model.workload_schema() {
            shape::check(schema.as_value(), workload).map_err(|fault| self.fault("workload", fault))?;
        }
        let context = EndpointContext { network, routing, routers: router.for_endpoints(), units, streams, workload };
        let prepared = model.prepare(&context).map_err(|error| {
            let at = format!("{}.{}", error.section, error.key);
            self.error(&at, super::document::Part::Value, error.problem)
        })?;
        let has_own_network = matches!(&prepared, Prepared::Machine(machine) if machine.packet_flits().is_none());
        if has_own_network && self.table("traffic")?.is_some() {
            let problem = format!(
                "conflicts with endpoint.model = \"{}\", whose routers carry its programs' parcels alone; leave it out",
                entry.name
            );
            return Err(self.error("traffic", super::document::Part::Key, problem));
        }
        Ok(Some(prepared))
    }
}
