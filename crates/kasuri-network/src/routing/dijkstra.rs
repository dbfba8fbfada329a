//! The one shortest path that Dijkstra's algorithm finds first.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::hop::{Candidate, Hop, Reads};
use super::shortest::no_path;
use super::table::{BlockTable, BlockTableBuilder, Destinations, Edge, edges};
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
        // The tree of a router gives its port to all destinations at once, so that the routers are the columns.
        let mut ports = BlockTableBuilder::new(destinations.routers.len(), by_router.len());
        for from in 0..by_router.len() {
            let first = first_ports(&by_router, from);
            for (row, to) in destinations.routers.iter().enumerate() {
                ports.set(row, from, first[to.index()].into());
            }
        }
        let ports = ports.finish();
        for source in (0..network.terminal_count()).map(TerminalId) {
            let from = network.injection_port(source).0;
            let unreachable = |&row: &usize| ports.get(row, from.0) == u32::from(NO_PORT) && destinations.routers[row] != from;
            if let Some(row) = (0..destinations.routers.len()).find(unreachable) {
                let destination = destinations.terminals.iter().position(|place| place.column as usize == row).unwrap_or_default();
                return Err(no_path(Self::NAME, network, source, &network.terminal_name(TerminalId(destination as u32))));
            }
        }
        Ok(Box::new(Compiled { destinations, ports }))
    }

    fn most_table_bytes(&self, network: &Network) -> u64 {
        BlockTable::most_bytes(Destinations::count(network), network.router_count().into())
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
    /// By serving router of the destination and router.
    ports: BlockTable,
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            reads: Reads::DESTINATION_ROUTER,
            is_deadlock_free: false,
            searches_paths: true,
            observes_congestion: false,
            table_bytes: self.ports.bytes(),
            build_peak_bytes: self.ports.build_peak_bytes(),
            ..RoutingFacts::default()
        }
    }

    fn route(&self, hop: &Hop, _state: &mut u32, _choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let destination = self.destinations.terminals[hop.destination.index()];
        let port = if destination.router == hop.router {
            destination.port
        } else {
            self.ports.get(destination.column as usize, hop.router.0) as Port
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

    /// A square 0-1-3-2-0 with a chord from 0 to 3 of latency 2: three paths of latency 2 from 0 to 3. Router 1 settles first, but
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

    /// On a line every router sends by one port to all before it and by the other to all behind: the table of 1,500 routers has 2.25
    /// million entries of two bytes, nearly all of them in a few blocks.
    #[test]
    fn equal_parts_of_the_table_are_stored_once() {
        let mut builder = NetworkBuilder::new("line");
        for _ in 0..1500 {
            builder.add_router(3).unwrap();
        }
        for router in 0..1500 {
            builder.add_terminal(RouterId(router), 2, Link::default());
            if router > 0 {
                builder.add_link((RouterId(router - 1), 0), (RouterId(router), 1), Link::default());
            }
        }
        let network = Arc::new(builder.finish().unwrap());
        let routing = Dijkstra {}.compile(&network).unwrap();
        assert!(routing.facts().table_bytes < 1_000_000, "{} bytes", routing.facts().table_bytes);
        for (from, to, port) in [(0, 1499, 0), (1499, 0, 1), (700, 701, 0), (700, 699, 1), (256, 255, 1), (255, 256, 0)] {
            let (router, input) = network.injection_port(TerminalId(from));
            let available = VirtualChannels { begin: 0, end: 1 };
            let hop = Hop { router, input, virtual_channel: 0, source: TerminalId(from), destination: TerminalId(to), available };
            assert_eq!(every_hop(&*routing, &hop, 0)[0].0[0].port, port, "{from} to {to}");
        }
    }
}
