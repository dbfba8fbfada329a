//! What the tests over whole families share: members from the tables, built by their own examples.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::{Link, Network, NetworkBuilder};
use kasuri_network::routing::{ROUTINGS, Routing};
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};
use std::sync::Arc;

/// A channel from one router to another with its latency, and the latency of the way back, if there is one.
pub(crate) type Wire = (u32, u32, u32, Option<u32>);

/// A network without any structure. Each terminal enters at one router and leaves at another; all take the next free port.
pub(crate) fn wired(routers: u32, wires: &[Wire], terminals: &[(u32, u32)]) -> Network {
    let mut ports = vec![0; routers as usize];
    let mut next = |router: u32| {
        ports[router as usize] += 1;
        (RouterId(router), ports[router as usize] - 1)
    };
    let wires: Vec<_> = wires.iter().map(|&(from, to, there, back)| (next(from), next(to), there, back)).collect();
    let terminals: Vec<_> = terminals.iter().map(|&(enters, leaves)| (next(enters), (leaves != enters).then(|| next(leaves)))).collect();
    let mut builder = NetworkBuilder::new("wired");
    ports.into_iter().for_each(|count| {
        builder.add_router(usize::from(count)).expect("a small router");
    });
    let link = |latency| Link { latency, ..Link::default() };
    for (from, to, there, back) in wires {
        builder.add_channel(from, to, link(there));
        back.into_iter().for_each(|latency| builder.add_channel(to, from, link(latency)));
    }
    for (enters, leaves) in terminals {
        builder.add_split_terminal(enters, leaves.unwrap_or(enters), Link::default());
    }
    builder.finish().expect("every port once")
}

/// A square of four routers with a slow diagonal, one to three terminals each.
fn irregular() -> Arc<Network> {
    let wires = [(0, 1, 1, Some(1)), (0, 2, 3, Some(2)), (3, 1, 2, Some(1)), (3, 2, 1, Some(1)), (1, 2, 1, Some(4))];
    Arc::new(wired(4, &wires, &[0, 0, 3, 2, 2, 2, 1].map(|home| (home, home))))
}

/// A member's example as a table.
pub(crate) fn example(text: &str) -> toml::Table {
    text.parse().expect("an example is TOML")
}

/// Builds a topology of the table.
pub(crate) fn network(name: &str, parameters: &str) -> Arc<Network> {
    let entry = TOPOLOGIES.iter().find(|entry| entry.name == name).expect("a topology of the table");
    let topology = (entry.parse)(example(parameters)).expect("parameters of the topology");
    let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
    Arc::new(topology.build(&context).expect("parameters in their range"))
}

/// Compiles a routing of the table; `None` if it does not fit the network.
pub(crate) fn routing(name: &str, parameters: &str, network: &Arc<Network>) -> Option<Box<dyn Routing>> {
    let entry = ROUTINGS.iter().find(|entry| entry.name == name).expect("a routing of the table");
    (entry.parse)(example(parameters)).expect("parameters of the routing").compile(network).ok()
}

/// The topologies' examples and a few more shapes, among them odd, even and smallest ones.
pub(crate) fn networks() -> Vec<Arc<Network>> {
    let mut networks: Vec<_> = TOPOLOGIES.iter().map(|entry| network(entry.name, entry.example)).collect();
    for (name, parameters) in [
        ("mesh", "dimensions = [5]"),
        ("mesh", "dimensions = [2, 3, 2]\nconcentration = 2"),
        ("torus", "dimensions = [2]"),
        ("torus", "dimensions = [5, 4]"),
        ("torus", "dimensions = [3, 2, 3]\nconcentration = 2"),
        ("fat-tree", "up = 4\ndown = 4\nlevels = 2"),
        ("fat-tree", "up = 3\ndown = 2\nlevels = 3"),
        ("fat-tree", "up = 2\ndown = 2\nlevels = 3\nsides = 2"),
        ("fat-tree", "up = 3\ndown = 3\nlevels = 1\nsides = 2"),
        ("full-mesh", "routers = 2"),
        ("mlfm", "degree = 2"),
        ("mlfm", "layers = 1\npositions = 3\nterminals_per_leaf = 3"),
        ("oft", "order = 2"),
        ("slim-fly", "order = 3"),
        ("dragonfly", "terminals_per_router = 1\nrouters_per_group = 3\nglobal_channels = 1"),
        ("dragonfly", "terminals_per_router = 1\nrouters_per_group = 1\nglobal_channels = 3"),
        ("flattened-butterfly", "dimensions = [3]"),
        ("flattened-butterfly", "dimensions = [2, 3, 2]"),
        ("rdt", "side = 8\nconcentration = 2"),
        ("rdt", "side = 8\nperfect = true"),
        ("butterfly", "radix = 2\nstages = 4"),
        ("butterfly", "radix = 4\nstages = 1"),
        ("on-chip-flattened-butterfly", "radix = 2\ndimensions = 3\nfloor = [4, 2]\ncluster = [1, 2]"),
        ("dragonfly", "terminals_per_router = 1\nrouters_per_group = 2\nglobal_channels = 1\narrangement = \"consecutive\""),
    ] {
        networks.push(network(name, parameters));
    }
    networks.push(irregular());
    networks
}

/// All terminals of a small network, some of each router of a larger one.
pub(crate) fn terminals(network: &Network) -> impl Iterator<Item = TerminalId> + use<> {
    let count = network.terminal_count();
    (0..count).step_by(1 + count as usize / 48).map(TerminalId)
}

/// The parameters of every variant of every routing that the tests cover: the example, and each policy.
pub(crate) fn routing_variants() -> Vec<(&'static str, &'static str)> {
    let mut variants: Vec<_> = ROUTINGS.iter().map(|entry| (entry.name, entry.example)).collect();
    variants.extend([
        ("dimension-order", "tie = \"positive\""),
        ("dimension-order", "tie = \"no-wrap\""),
        ("nca", "up_port = \"d-mod-k\""),
        ("nca", "up_port = \"s-mod-k\""),
        ("nca", "up_port = \"straight\""),
        ("nca", "up_port = \"adaptive\""),
        ("nca", "up_port = \"better-of-two\""),
        ("dimension-order", "balanced = true"),
        ("dimension-order", "express = true"),
        ("dimension-order", "isolation = \"coordinate\""),
        ("dragonfly-phases", "adaptive = false"),
        ("o1turn", "choose = \"adaptive\""),
        ("o1turn", "express = true"),
        ("two-phase", "intermediate = \"between\""),
        ("two-phase", "ends_early = true"),
        ("ugal-ordered", "both_orders = true"),
        ("ugal-ordered", "isolated = true"),
        ("minimal", "tie = \"lowest\""),
        ("minimal-adaptive", "adaptive_channels = [3, 4]"),
        ("minimal-adaptive", "ports = \"lowest\""),
        ("planar-adaptive", "ports = \"lowest\""),
        ("minimal", "tie = \"destination\""),
        ("minimal", "tie = \"source\""),
        ("minimal", "metric = \"latency\""),
        ("minimal", "classes = \"hop\""),
        ("minimal", "classes = \"none\""),
        ("valiant", "tie = \"destination\"\nclasses = \"hop\""),
        ("valiant", "tie = \"source\"\nclasses = \"none\""),
        ("ugal", "tie = \"lowest\"\nclasses = \"hop\"\nthreshold = 3"),
        ("up-down", "root = 1"),
        ("ecmp", "policy = \"random\""),
        ("ecmp", "salt = \"none\"\nflows = 3\nclasses = \"hop\""),
        ("ecmp", "weights = \"capacity\""),
        ("ecmp", "policy = \"random\"\nweights = \"capacity\"\nentries = 16"),
    ]);
    variants
}
