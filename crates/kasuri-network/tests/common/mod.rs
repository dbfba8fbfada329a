//! What the tests over whole families share: members from the tables, built by their own examples.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::{Link, Network, NetworkBuilder};
use kasuri_network::routing::{ROUTINGS, Routing};
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};
use std::sync::Arc;

/// A square of four routers with a slow diagonal, one to three terminals each.
fn irregular() -> Arc<Network> {
    const LINKS: [(u32, u32, [u32; 2]); 5] = [(0, 1, [1, 1]), (0, 2, [3, 2]), (3, 1, [2, 1]), (3, 2, [1, 1]), (1, 2, [1, 4])];
    const TERMINALS: [u32; 7] = [0, 0, 3, 2, 2, 2, 1];
    let mut builder = NetworkBuilder::new("irregular");
    let mut ports = [0; 4];
    for router in 0..4 {
        let links = LINKS.iter().filter(|(one, other, _)| [one, other].contains(&&router)).count();
        builder.add_router(links + TERMINALS.iter().filter(|&&home| home == router).count()).expect("a small router");
    }
    let mut next = |router: u32| {
        ports[router as usize] += 1;
        (RouterId(router), ports[router as usize] - 1)
    };
    for (one, other, latencies) in LINKS {
        let (one, other) = (next(one), next(other));
        let [there, back] = latencies.map(|latency| Link { latency, ..Link::default() });
        builder.add_channel(one, other, there);
        builder.add_channel(other, one, back);
    }
    for home in TERMINALS {
        let (router, port) = next(home);
        builder.add_terminal(router, port, Link::default());
    }
    Arc::new(builder.finish().expect("every port once"))
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
        ("minimal-adaptive", "ways = \"lowest\""),
        ("planar-adaptive", "ways = \"lowest\""),
        ("minimal", "tie = \"destination\""),
        ("minimal", "tie = \"source\""),
        ("minimal", "metric = \"latency\""),
        ("minimal", "classes = \"hop\""),
        ("minimal", "classes = \"none\""),
        ("valiant", "tie = \"destination\"\nclasses = \"hop\""),
        ("valiant", "tie = \"source\"\nclasses = \"none\""),
        ("ugal", "tie = \"lowest\"\nclasses = \"hop\"\nthreshold = 3"),
        ("up-down", "root = 1"),
    ]);
    variants
}
