//! Whether every terminal can reach every other, against petgraph.

use crate::common::wired;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::connectivity::separated;
use kasuri_network::network::metrics::Metrics;
use kasuri_network::network::{Endpoint, Network};
use petgraph::algo::has_path_connecting;
use petgraph::graph::{DiGraph, NodeIndex};
use proptest::prelude::*;

/// Any network: links and channels of one direction anywhere, terminals that enter at one router and leave at another.
fn any_network() -> impl Strategy<Value = Network> {
    let channels = proptest::collection::vec((any::<u32>(), any::<u32>(), any::<bool>()), 0..24);
    (1u32..12, channels, proptest::collection::vec((any::<u32>(), any::<u32>()), 1..8)).prop_map(|(routers, channels, terminals)| {
        let channels = channels.into_iter().map(|(one, other, both)| (one % routers, other % routers, 1, both.then_some(1)));
        let wires: Vec<_> = channels.filter(|(one, other, ..)| one != other).collect();
        let terminals: Vec<_> = terminals.into_iter().map(|(into, from)| (into % routers, from % routers)).collect();
        wired(routers, &wires, &terminals)
    })
}

/// Routers, then where terminals send, then where they receive: no path leads through a terminal.
fn graph(network: &Network) -> DiGraph<(), ()> {
    let node = |end: Endpoint, receives: bool| match end {
        Endpoint::Router(router, _) => NodeIndex::new(router.index()),
        Endpoint::Terminal(terminal) => end_of(network, terminal, receives),
    };
    let mut graph = DiGraph::new();
    (0..network.router_count() + 2 * network.terminal_count()).for_each(|_| {
        graph.add_node(());
    });
    for channel in (0..network.channel_count()).map(ChannelId) {
        graph.add_edge(node(network.source(channel), false), node(network.destination(channel), true), ());
    }
    graph
}

fn end_of(network: &Network, terminal: TerminalId, receives: bool) -> NodeIndex {
    let before = network.router_count() + if receives { network.terminal_count() } else { 0 };
    NodeIndex::new(before as usize + terminal.index())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// A network is connected exactly if a path leads from every terminal to every other; the pair that is named has none.
    #[test]
    fn a_separated_pair_is_found_where_there_is_one(network in any_network()) {
        let graph = graph(&network);
        let reaches = |from: TerminalId, to: TerminalId| {
            has_path_connecting(&graph, end_of(&network, from, false), end_of(&network, to, true), None)
        };
        let all = || (0..network.terminal_count()).map(TerminalId);
        let is_connected = all().all(|from| all().all(|to| from == to || reaches(from, to)));
        let found = separated(&network);
        prop_assert_eq!(found.is_none(), is_connected);
        if let Some((from, to)) = found {
            prop_assert!(from != to && !reaches(from, to), "{} and {}", network.terminal_name(from), network.terminal_name(to));
        }
        prop_assert_eq!(Metrics::of(&network).distances.unreachable, found);
    }
}
