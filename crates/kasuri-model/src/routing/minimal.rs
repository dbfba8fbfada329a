//! Shortest paths by table, on any network.

use super::table::{Arcs, Destinations, PortTable, PortTableBuilder, edges};
use super::{Candidate, Choice, Hop, Reads, Routing, RoutingAlgorithm, RoutingError};
use crate::id::TerminalId;
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Takes a shortest path; among several output ports that lie on one, `tie` decides anew at each router.
///
/// It does nothing against deadlock: on a ring, or on any network whose shortest paths depend on each other in a cycle, it can
/// deadlock. `up-down` cannot.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Minimal {
    /// Which of several shortest ways.
    #[serde(default)]
    pub tie: MinimalTie,
    /// What is shortest.
    #[serde(default)]
    pub metric: Metric,
}

/// Which of several shortest ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MinimalTie {
    /// Each equally likely, for each packet at each router.
    #[default]
    Random,
    /// The one of the lowest port number.
    Lowest,
}

/// What makes a path short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Few channels.
    #[default]
    Hops,
    /// A small sum of channel latencies; few channels among equal sums.
    Latency,
}

impl Member for Minimal {
    const NAME: &'static str = "minimal";
    const SUMMARY: &'static str = "any network: a shortest path by table; does not prevent deadlock";
    const SOURCE: &'static str = "Dijkstra, Numer. Math. 1 (1959); Dally and Towles (2004), section 11.1 (table-based routing)";
    const EXAMPLE: &'static str = "tie = \"random\"";
}

impl RoutingAlgorithm for Minimal {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let cost = |latency: u32| match self.metric {
            Metric::Hops => 1,
            // The sum of latencies counts first; the hops in the low bits keep every step positive.
            Metric::Latency => u64::from(latency) << 24 | 1,
        };
        let edges = edges(network);
        let arcs: Vec<_> = edges.iter().map(|edge| (edge.from.0, edge.to.0, cost(network.link(edge.channel).latency))).collect();
        let destinations = Destinations::of(network);
        let routers = network.router_count() as usize;
        let incoming = Arcs::new(routers, &arcs);
        let mut by_router: Vec<Vec<usize>> = vec![Vec::new(); routers];
        for (index, edge) in edges.iter().enumerate() {
            by_router[edge.from.index()].push(index);
        }
        by_router.iter_mut().for_each(|list| list.sort_by_key(|&index| edges[index].port));
        let mut table = PortTableBuilder::new(routers, destinations.routers.len());
        let mut ports = Vec::new();
        for (column, target) in destinations.routers.iter().enumerate() {
            let distance = incoming.distances_to(&[target.0]);
            check_reached(network, &distance, &destinations, column)?;
            for (router, out) in by_router.iter().enumerate() {
                ports.clear();
                let best = |&&index: &&usize| {
                    let (_, to, step) = arcs[index];
                    distance[to as usize].checked_add(step) == Some(distance[router])
                };
                ports.extend(out.iter().filter(best).map(|&index| edges[index].port));
                table.set(router, column, &ports);
            }
        }
        Ok(Box::new(Compiled { tie: self.tie, destinations, table: table.finish() }))
    }
}

fn check_reached(network: &Network, distance: &[u64], destinations: &Destinations, column: usize) -> Result<(), RoutingError> {
    let cut_off = |terminal: &TerminalId| distance[network.injection_port(*terminal).0.index()] == u64::MAX;
    let Some(source) = (0..network.terminal_count()).map(TerminalId).find(cut_off) else {
        return Ok(());
    };
    let destination = destinations.terminals.iter().position(|place| place.column as usize == column).unwrap_or_default();
    Err(RoutingError::Mismatch {
        routing: Minimal::NAME,
        network: network.name().to_owned(),
        problem: format!("no path leads from terminal {source} to terminal {destination}"),
    })
}

#[derive(Debug)]
struct Compiled {
    tie: MinimalTie,
    destinations: Destinations,
    table: PortTable,
}

impl Routing for Compiled {
    fn observes_congestion(&self) -> bool {
        false
    }

    fn reads(&self) -> Reads {
        Reads::DESTINATION_ROUTER
    }

    fn is_deadlock_free(&self) -> bool {
        false
    }

    fn route(&self, hop: &Hop, _state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let destination = self.destinations.terminals[hop.destination.index()];
        let port = if destination.router == hop.router {
            destination.port
        } else {
            let ports = self.table.ports(hop.router.index(), destination.column);
            match (self.tie, ports) {
                (_, []) => return,
                (MinimalTie::Lowest, [port, ..]) => *port,
                (MinimalTie::Random, _) => ports[choice.uniform(ports.len() as u32) as usize],
            }
        };
        candidates.push(Candidate::new(port, hop.available));
    }
}
