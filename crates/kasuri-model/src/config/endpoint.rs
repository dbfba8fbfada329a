//! `[endpoint]`: a machine with its programs in place of traffic.

use super::error::ConfigError;
use super::section::Section;
use super::shape;
use super::study::{Context, owned};
use crate::endpoint::{ENDPOINTS, Endpoint, EndpointContext};
use crate::network::Network;
use crate::rng::Streams;
use crate::router::RouterParameters;
use crate::scenario::Units;
use std::sync::Arc;

impl Context<'_> {
    /// The machine that `[endpoint]` and `[workload]` describe, if there is an `[endpoint]`.
    pub(super) fn endpoint(
        self,
        network: &Network,
        router: &RouterParameters,
        units: Units,
        streams: &Streams,
    ) -> Result<Option<Arc<dyn Endpoint>>, ConfigError> {
        let Some(table) = self.table("endpoint")? else { return Ok(None) };
        let section = Section::new(self, "endpoint", table);
        let entry = section.member(ENDPOINTS, "model", None)?;
        section.refuse_unknown(&[&section.keys_of(entry), &owned(&["model"])], &format!("endpoint `{}`", entry.name))?;
        let model = section.parse(entry, "model")?;
        if self.table("traffic")?.is_some() {
            let problem =
                format!("has no meaning with endpoint.model = \"{}\", which runs programs: describe one in [workload]", entry.name);
            return Err(self.error("traffic", super::document::Part::Key, problem));
        }
        let workload = self.required_table("workload", "collective = \"barrier\"")?;
        shape::check(model.workload_schema().as_value(), workload).map_err(|fault| self.fault("workload", fault))?;
        let context = EndpointContext { network, router, units, streams, workload };
        let machine = model.prepare(&context).map_err(|error| {
            let at = format!("{}.{}", error.section, error.key);
            self.error(&at, super::document::Part::Value, error.problem)
        })?;
        Ok(Some(machine))
    }
}
