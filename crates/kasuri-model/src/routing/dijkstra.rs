//! The one shortest path that Dijkstra's algorithm finds first.

use super::shortest::no_path;
use super::table::{Destinations, Edge, edges};
use super::{Candidate, Choice, Hop, Reads, Routing, RoutingAlgorithm, RoutingError};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Each router sends along its own tree of paths of least latency. Of routers equally far away the one of the lowest number
/// extends the tree first, and the path that reached a router first is kept. One path for each pair, and nothing against deadlock:
/// `minimal` is the routing for other purposes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dijkstra {}

impl Member for Dijkstra {
    const NAME: &'static str = "dijkstra";
    const SUMMARY: &'static str = "any network: the one path of least latency that Dijkstra's algorithm finds first";
    const SOURCE: &'static str = "Dijkstra, Numer. Math. 1 (1959); order of equals as in BookSim 2 (min_anynet)";
    const EXAMPLE: &'static str = "";
}

impl RoutingAlgorithm for Dijkstra {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let destinations = Destinations::of(network);
        let mut by_router: Vec<Vec<(Edge, u32)>> = vec![Vec::new(); network.router_count() as usize];
        for edge in edges(network) {
            by_router[edge.from.index()].push((edge, network.link(edge.channel).latency));
        }
        by_router.iter_mut().for_each(|list| list.sort_by_key(|(edge, _)| edge.to));
        let columns = destinations.routers.len();
        let mut ports = vec![NO_PORT; by_router.len() * columns];
        for from in 0..by_router.len() {
            let first = first_ports(&by_router, from);
            for (column, to) in destinations.routers.iter().enumerate() {
                ports[from * columns + column] = first[to.index()];
            }
        }
        for source in (0..network.terminal_count()).map(TerminalId) {
            let row = &ports[network.injection_port(source).0.index() * columns..][..columns];
            let unreachable = |&column: &usize| row[column] == NO_PORT && destinations.routers[column] != network.injection_port(source).0;
            if let Some(column) = (0..columns).find(unreachable) {
                let destination = destinations.terminals.iter().position(|place| place.column as usize == column).unwrap_or_default();
                return Err(no_path(Self::NAME, network, source, &network.terminal_name(TerminalId(destination as u32))));
            }
        }
        Ok(Box::new(Compiled { destinations, columns, ports }))
    }

    fn most_table_bytes(&self, network: &Network) -> u64 {
        size_of::<Port>() as u64 * u64::from(network.router_count()) * Destinations::count(network)
    }
}

/// Where no path leads.
const NO_PORT: Port = Port::MAX;

/// The port by which the tree of `from` leads to each router.
fn first_ports(by_router: &[Vec<(Edge, u32)>], from: usize) -> Vec<Port> {
    let mut distance = vec![u64::MAX; by_router.len()];
    let mut first = vec![NO_PORT; by_router.len()];
    let mut queue = BinaryHeap::from([Reverse((0, RouterId(from as u32)))]);
    distance[from] = 0;
    while let Some(Reverse((cost, router))) = queue.pop() {
        if cost > distance[router.index()] {
            continue;
        }
        for &(edge, latency) in &by_router[router.index()] {
            let further = cost + u64::from(latency);
            if further < distance[edge.to.index()] {
                distance[edge.to.index()] = further;
                first[edge.to.index()] = if router.index() == from { edge.port } else { first[router.index()] };
                queue.push(Reverse((further, edge.to)));
            }
        }
    }
    first
}

#[derive(Debug)]
struct Compiled {
    destinations: Destinations,
    columns: usize,
    /// Shape `[routers, columns]`.
    ports: Vec<Port>,
}

impl Routing for Compiled {
    fn table_bytes(&self) -> u64 {
        (size_of::<Port>() * self.ports.len()) as u64
    }

    fn reads(&self) -> Reads {
        Reads::DESTINATION_ROUTER
    }

    fn is_deadlock_free(&self) -> bool {
        false
    }

    fn observes_congestion(&self) -> bool {
        false
    }

    fn route(&self, hop: &Hop, _state: &mut u32, _choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let destination = self.destinations.terminals[hop.destination.index()];
        let port = if destination.router == hop.router {
            destination.port
        } else {
            self.ports[hop.router.index() * self.columns + destination.column as usize]
        };
        // No packet comes to where no path leads on from.
        if port != NO_PORT {
            candidates.push(Candidate::new(port, hop.available));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Endpoint, Link, NetworkBuilder};
    use crate::routing::{VirtualChannels, every_hop};

    /// A square 0-1-3-2-0 with a chord from 0 to 3 of latency 2: three ways of latency 2 from 0 to 3. Router 1 settles first, but
    /// the chord has reached router 3 before it.
    #[test]
    fn the_path_that_comes_first_is_kept() {
        let mut builder = NetworkBuilder::new("square");
        for _ in 0..4 {
            builder.add_router(4).unwrap();
        }
        let link = |latency| Link { latency, period: 1 };
        for (one, other) in [((0, 0), (1, 0)), ((0, 1), (2, 0)), ((1, 1), (3, 0)), ((2, 1), (3, 1))] {
            builder.add_link((RouterId(one.0), one.1), (RouterId(other.0), other.1), link(1));
        }
        builder.add_link((RouterId(0), 2), (RouterId(3), 2), link(2));
        for router in 0..4 {
            builder.add_terminal(RouterId(router), 3, link(1));
        }
        let network = Arc::new(builder.finish().unwrap());
        let routing = Dijkstra {}.compile(&network).unwrap();
        let next = |from: u32, to: u32| {
            let (router, input) = network.injection_port(TerminalId(from));
            let available = VirtualChannels { begin: 0, end: 1 };
            let hop = Hop { router, input, virtual_channel: 0, source: TerminalId(from), destination: TerminalId(to), available };
            let port = every_hop(&*routing, &hop, 0)[0].0[0].port;
            network.destination(network.output_channel(router, port).unwrap())
        };
        assert_eq!(next(0, 3), Endpoint::Router(RouterId(3), 2));
        // From 1 to 2 both 0 and 3 are a hop away: 0 has the lower number.
        assert_eq!(next(1, 2), Endpoint::Router(RouterId(0), 0));
        assert_eq!(next(2, 2), Endpoint::Terminal(TerminalId(2)));
    }
}
