//! Up*/down*: deadlock-free routing on any connected network.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::hop::{Candidate, Hop, Reads};
use super::table::{Arcs, BlockTable, Destinations, Edge, PortTable, PortTableBuilder, edges};
use crate::id::TerminalId;
use crate::network::{NONE, Network};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Orders the routers by their distance from a root, equal distances by number; a channel leads up if it leads to an earlier
/// router. A route goes up, then down, never up again, and is a shortest one of these; ties are drawn at each router.
///
/// One virtual channel suffices: up channels depend on up and down channels in the router order, down channels on down
/// channels only.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpDown {
    /// The root's number; otherwise the first of the routers from which the sum of distances to all routers is least. Where routers times
    /// channels are more than about 268 million (a mesh of 86 x 86), that of a few that are found by distances to a sample.
    #[serde(default)]
    pub root: Option<u32>,
}

impl Member for UpDown {
    const NAME: &'static str = "up-down";
    const SUMMARY: &'static str = "any network: shortest of the routes that go up a spanning order and then down; no deadlock";
    const SOURCE: &'static str = "Schroeder et al., Autonet, IEEE J. Sel. Areas Commun. 9 (1991)";
    const EXAMPLE: &'static str = "";
}

impl RoutingAlgorithm for UpDown {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let routers = network.router_count();
        if let Some(root) = self.root.filter(|&root| root >= routers) {
            let problem = format!("is {root}; the routers are numbered 0 to {}", routers - 1);
            return Err(RoutingError::Parameter { key: "root".to_owned(), problem });
        }
        let terminals: Vec<TerminalId> = (0..network.terminal_count()).map(TerminalId).collect();
        let routes = UpDownRoutes::within(network, &edges(network), &terminals, self.root);
        match routes.cut_off(&terminals) {
            None => Ok(Box::new(routes)),
            Some((source, destination)) => Err(RoutingError::Mismatch {
                routing: Self::NAME,
                network: network.name().to_owned(),
                problem: format!(
                    "no path that goes up and then down leads from {} to {}",
                    network.terminal_name(source),
                    network.terminal_name(destination)
                ),
            }),
        }
    }

    fn most_table_bytes(&self, network: &Network) -> u64 {
        BlockTable::most_bytes(2 * u64::from(network.router_count()), Destinations::count(network))
    }
}

/// Does this edge lead up?
fn leads_up(edge: &Edge, level: &[u64]) -> bool {
    (level[edge.to.index()], edge.to) < (level[edge.from.index()], edge.from)
}

/// Steps of searches that the most central router is worth: some tenths of a second.
const EXACT_STEPS: u64 = 1 << 28;

/// In larger networks: routers to which distances are added up, and routers of the least sums that are compared exactly.
const SAMPLED_ROUTERS: usize = 256;
const COMPARED_ROUTERS: usize = 64;

/// The first of the routers (all, or those that serve these terminals) from which the sum of distances to all of them is least. Where it
/// takes more than so many steps to compare all: of those for which the sum of distances to an evenly spaced sample is least (Okamoto, Chen
/// and Li, FAW 2008).
fn central(network: &Network, edges: &[Edge], terminals: &[TerminalId], exact_steps: u64) -> u32 {
    let whole = terminals.len() == network.terminal_count() as usize;
    let mut among: Vec<u32> = if whole {
        (0..network.router_count()).collect()
    } else {
        terminals.iter().map(|&terminal| network.ejection_port(terminal).0.0).collect()
    };
    among.sort_unstable();
    among.dedup();
    let routers = network.router_count() as usize;
    let hops = |turn: fn(&Edge) -> (u32, u32, u64)| Arcs::new(routers, &edges.iter().map(turn).collect::<Vec<_>>());
    let towards = hops(|edge| (edge.from.0, edge.to.0, 1));
    let steps = among.len() as u64 * (routers + edges.len()) as u64;
    let candidates = if steps <= exact_steps {
        among.clone()
    } else {
        let away = hops(|edge| (edge.to.0, edge.from.0, 1));
        let mut sums = vec![0u64; routers];
        let sampled = among.len().min(SAMPLED_ROUTERS);
        for from in (0..sampled).map(|index| among[index * among.len() / sampled]) {
            sums.iter_mut().zip(away.distances_to(&[from])).for_each(|(sum, distance)| *sum = sum.saturating_add(distance));
        }
        let mut nearest = among.clone();
        nearest.sort_by_key(|&router| (sums[router as usize], router));
        nearest.truncate(COMPARED_ROUTERS);
        nearest.sort_unstable();
        nearest
    };
    let remoteness = |&root: &u32| {
        let distances = towards.distances_to(&[root]);
        among.iter().fold(0u64, |sum, &router| sum.saturating_add(distances[router as usize]))
    };
    candidates.into_iter().min_by_key(remoteness).unwrap_or(0)
}

/// The paths up and then down to some terminals.
#[derive(Debug)]
pub(super) struct UpDownRoutes {
    network: Arc<Network>,
    destinations: Destinations,
    /// Vertex `2 router` has only gone up so far, vertex `2 router + 1` has gone down.
    table: PortTable,
    /// By port of the whole network.
    leads_down: Vec<bool>,
}

impl UpDownRoutes {
    /// The paths over some of a network's edges to some of its terminals.
    pub(super) fn within(network: &Arc<Network>, edges: &[Edge], terminals: &[TerminalId], root: Option<u32>) -> Self {
        let routers = network.router_count();
        let hops = Arcs::new(routers as usize, &edges.iter().map(|edge| (edge.from.0, edge.to.0, 1)).collect::<Vec<_>>());
        let level = hops.distances_to(&[root.unwrap_or_else(|| central(network, edges, terminals, EXACT_STEPS))]);
        let destinations = Destinations::among(network, terminals.iter().copied());
        let table = build_table(network, edges, &destinations, &level);
        let mut leads_down = vec![false; network.port_bases()[routers as usize] as usize];
        for edge in edges.iter().filter(|edge| !leads_up(edge, &level)) {
            leads_down[network.port_index(edge.from, edge.port)] = true;
        }
        Self { network: Arc::clone(network), destinations, table, leads_down }
    }

    /// A terminal of these from which no path leads to another of them, and that other.
    pub(super) fn cut_off(&self, terminals: &[TerminalId]) -> Option<(TerminalId, TerminalId)> {
        let reaches = |source: TerminalId, destination: TerminalId| {
            let (from, to) = (self.network.injection_port(source).0, self.destinations.terminals[destination.index()]);
            from == to.router || !self.table.ports(2 * from.index(), to.column).is_empty()
        };
        // Terminals of one router share their paths.
        let mut columns: Vec<TerminalId> = terminals.to_vec();
        columns.sort_by_key(|terminal| self.destinations.terminals[terminal.index()].column);
        columns.dedup_by_key(|terminal| self.destinations.terminals[terminal.index()].column);
        let of_source = |source: TerminalId| columns.iter().map(move |&destination| (source, destination));
        terminals.iter().copied().flat_map(of_source).find(|&(source, destination)| !reaches(source, destination))
    }
}

fn build_table(network: &Network, edges: &[Edge], destinations: &Destinations, level: &[u64]) -> PortTable {
    let mut arcs = Vec::new();
    for edge in edges {
        if leads_up(edge, level) {
            arcs.push((2 * edge.from.0, 2 * edge.to.0, 1));
        } else {
            arcs.push((2 * edge.from.0, 2 * edge.to.0 + 1, 1));
            arcs.push((2 * edge.from.0 + 1, 2 * edge.to.0 + 1, 1));
        }
    }
    let vertices = 2 * network.router_count() as usize;
    let incoming = Arcs::new(vertices, &arcs);
    let mut by_router: Vec<Vec<&Edge>> = vec![Vec::new(); network.router_count() as usize];
    edges.iter().for_each(|edge| by_router[edge.from.index()].push(edge));
    by_router.iter_mut().for_each(|out| out.sort_by_key(|edge| edge.port));
    let mut table = PortTableBuilder::new(vertices, destinations.routers.len());
    let mut ports = Vec::new();
    for (column, target) in destinations.routers.iter().enumerate() {
        let distance = incoming.distances_to(&[2 * target.0, 2 * target.0 + 1]);
        for vertex in 0..vertices {
            ports.clear();
            for edge in &by_router[vertex / 2] {
                let up = leads_up(edge, level);
                let after = 2 * edge.to.index() + usize::from(!up);
                let legal = !up || vertex % 2 == 0;
                if legal && distance[after].checked_add(1) == Some(distance[vertex]) {
                    ports.push(edge.port);
                }
            }
            table.set(vertex, column, &ports);
        }
    }
    table.finish()
}

impl Routing for UpDownRoutes {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            reads: Reads::DESTINATION_ROUTER,
            searches_paths: true,
            observes_congestion: false,
            table_bytes: self.table.bytes(),
            build_peak_bytes: self.table.build_peak_bytes(),
            ..RoutingFacts::default()
        }
    }

    /// The state is 1 once the packet has gone down.
    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let destination = self.destinations.terminals[hop.destination.index()];
        if destination.router == hop.router {
            candidates.push(Candidate::new(destination.port, hop.available));
            return;
        }
        if destination.column == NONE {
            return;
        }
        let ports = self.table.ports(2 * hop.router.index() + *state as usize, destination.column);
        if ports.is_empty() {
            return;
        }
        let port = ports[choice.uniform(ports.len() as u32) as usize];
        *state |= u32::from(self.leads_down[self.network.port_index(hop.router, port)]);
        candidates.push(Candidate::new(port, hop.available));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::mesh::Mesh;
    use crate::topology::torus::Torus;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    fn all(network: &Network) -> Vec<TerminalId> {
        (0..network.terminal_count()).map(TerminalId).collect()
    }

    /// The sum of distances from all routers to the one that is found.
    fn remoteness(network: &Network, exact_steps: u64) -> (u32, u64) {
        let edges = edges(network);
        let root = central(network, &edges, &all(network), exact_steps);
        let towards = Arcs::new(network.router_count() as usize, &edges.iter().map(|edge| (edge.from.0, edge.to.0, 1)).collect::<Vec<_>>());
        (root, towards.distances_to(&[root]).iter().sum())
    }

    /// A sample that has all routers finds the same one as all comparisons do; a smaller one finds a router whose sum of distances is
    /// least, or nearly, on grids with and without a middle.
    #[test]
    fn a_sample_finds_the_middle() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        for dimensions in [vec![7, 5], vec![256], vec![40, 30], vec![2000], vec![12, 11, 10]] {
            let mesh = Mesh { dimensions: dimensions.clone(), concentration: 1 }.build(&context).unwrap();
            let torus = Torus { dimensions, concentration: 1 }.build(&context).unwrap();
            for network in [mesh, torus] {
                let (exact, sampled) = (remoteness(&network, u64::MAX), remoteness(&network, 0));
                if network.router_count() as usize <= SAMPLED_ROUTERS {
                    assert_eq!(sampled, exact, "{}", network.name());
                }
                assert!(sampled.1 as f64 <= 1.005 * exact.1 as f64, "{}: {sampled:?}, not {exact:?}", network.name());
            }
        }
    }
}
