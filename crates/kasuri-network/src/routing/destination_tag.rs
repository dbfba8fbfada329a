//! Destination-tag routing on multistage networks.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::hop::{Candidate, Hop, Reads};
use super::tag_table::TagTable;
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Each stage takes the output named by its digit of the destination's number.
///
/// Needs the labels of a multistage network: routers `stage`, attributes `tag_radix` and `tag_weights`. The output at stage s
/// is (destination div tag_weights\[s\]) mod tag_radix. Where several cables join two boards (`cenju4`) the tag names the cable too; the
/// network then says by the attributes `tags`, `cable_from` and `cable_to` what the output is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DestinationTag {}

impl Member for DestinationTag {
    const NAME: &'static str = "destination-tag";
    const SUMMARY: &'static str = "multistage networks: each stage takes the output named by its digit of the destination";
    const SOURCE: &'static str = "Dally and Towles (2004), section 8.4.1; Lawrie, IEEE Trans. Comput. C-24 (1975)";
    const EXAMPLE: &'static str = "";
}

impl RoutingAlgorithm for DestinationTag {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let labels = network.labels();
        if let Some(table) = labels.attribute("tag_radix").and_then(|radix| TagTable::new(network, radix[0])) {
            return Ok(Box::new(table));
        }
        let (Some(&[radix]), Some(weights), Some(stages)) =
            (labels.attribute("tag_radix"), labels.attribute("tag_weights"), labels.router("stage"))
        else {
            return Err(RoutingError::Mismatch {
                routing: Self::NAME,
                network: network.name().to_owned(),
                problem: "it needs a multistage network such as a butterfly".to_owned(),
            });
        };
        Ok(Box::new(Compiled { radix, weights: stages.iter().map(|&stage| weights[stage as usize]).collect() }))
    }
}

#[derive(Debug)]
struct Compiled {
    radix: u32,
    /// The weight of each router's digit.
    weights: Vec<u32>,
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts { reads: Reads::DESTINATION_ROUTER, observes_congestion: false, ..RoutingFacts::default() }
    }

    fn port_to(&self, router: RouterId, destination: TerminalId) -> Option<Port> {
        Some((destination.0 / self.weights[router.index()] % self.radix) as Port)
    }

    fn route(&self, hop: &Hop, _state: &mut u32, _choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        candidates.extend(self.port_to(hop.router, hop.destination).map(|port| Candidate::new(port, hop.available)));
    }
}
