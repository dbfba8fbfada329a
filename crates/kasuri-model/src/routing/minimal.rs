//! Shortest paths by table, on any network.

use super::shortest::{HopClasses, Progress, Shortest, no_path, places_at_router};
use super::table::Destinations;
use super::{Candidate, Choice, Hop, Reads, Routing, RoutingAlgorithm, RoutingError};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub use super::shortest::{Classes, Metric, MinimalTie};

/// Takes a shortest path; among several output ports that lie on one, `tie` decides anew at each router.
///
/// On slim fly, dragonfly and flattened butterfly hop number i uses class i of the virtual channels, so that no cycle of
/// dependencies can close; on full mesh, MLFM, OFT and fat trees shortest paths need no classes. On other networks it does
/// nothing against deadlock unless `classes = "hop"`: on a ring, or on any network whose shortest paths depend on each other in
/// a cycle, it can deadlock. `up-down` cannot.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Minimal {
    /// Which of several shortest ways.
    #[serde(default)]
    pub tie: MinimalTie,
    /// What is shortest.
    #[serde(default)]
    pub metric: Metric,
    /// How the virtual channels are divided among the hops.
    #[serde(default)]
    pub classes: Classes,
}

impl Member for Minimal {
    const NAME: &'static str = "minimal";
    const SUMMARY: &'static str = "any network: a shortest path by table; classes by hop where the topology needs them";
    const SOURCE: &'static str = "Dijkstra, Numer. Math. 1 (1959); Dally and Towles (2004), section 11.1 (table-based routing); classes by \
                                  hop: Gunther, IEEE Trans. Commun. 29 (1981)";
    const EXAMPLE: &'static str = "tie = \"random\"";
}

impl RoutingAlgorithm for Minimal {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let destinations = Destinations::of(network);
        let targets: Vec<_> = destinations.routers.iter().map(|router| vec![router.0]).collect();
        let shortest = Shortest::find(network, self.metric, &targets, false).map_err(|(source, column)| {
            let destination = destinations.terminals.iter().position(|place| place.column as usize == column).unwrap_or_default();
            no_path(Self::NAME, network, source, format!("terminal {destination}"))
        })?;
        let hops_per_class = self.classes.hops_per_class(network);
        let classes = HopClasses::new(hops_per_class, &[shortest.diameter]);
        let places = places_at_router(network);
        Ok(Box::new(Compiled { tie: self.tie, is_safe: hops_per_class.is_some(), classes, destinations, shortest, places }))
    }
}

#[derive(Debug)]
struct Compiled {
    tie: MinimalTie,
    is_safe: bool,
    classes: HopClasses,
    destinations: Destinations,
    shortest: Shortest,
    /// Each terminal's number at its router.
    places: Vec<u32>,
}

impl Routing for Compiled {
    fn virtual_channels_required(&self) -> u32 {
        self.classes.count
    }

    fn observes_congestion(&self) -> bool {
        false
    }

    fn reads(&self) -> Reads {
        self.tie.reads()
    }

    fn is_deadlock_free(&self) -> bool {
        self.is_safe
    }

    /// The state is the progress in the classes.
    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let destination = self.destinations.terminals[hop.destination.index()];
        if destination.router == hop.router {
            candidates.push(Candidate::new(destination.port, hop.available));
            return;
        }
        let ports = self.shortest.ports(hop.router, destination.column);
        let Some(port) = self.tie.pick(ports, hop, &self.places, choice) else { return };
        let progress = Progress::unpack(*state);
        candidates.push(Candidate::new(port, self.classes.channels(hop.available, progress)));
        *state = self.classes.after_hop(progress).pack();
    }
}
