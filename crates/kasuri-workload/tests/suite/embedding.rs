//! Logical networks on physical ones: the examples of the network virtualisation paper with their values, and what must hold.

use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::rng::{Purpose, Streams};
use kasuri_network::routing::dimension_order::DimensionOrder;
use kasuri_network::routing::{Routing, RoutingAlgorithm, VirtualChannels};
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, Topology, torus::Torus};
use kasuri_workload::translation::embedding::Embedding;
use kasuri_workload::translation::logical::{LogicalNetwork, edges};
use kasuri_workload::translation::{RoutedPaths, annealing};
use std::sync::Arc;

const CHANNELS: VirtualChannels = VirtualChannels { begin: 0, end: 2 };

/// An 8 x 8 torus, x before y, paths of equal length not over the edge.
fn machine() -> (Arc<Network>, Box<dyn Routing>) {
    let build = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
    let network = Arc::new(Torus { dimensions: vec![8, 8], concentration: 1 }.build(&build).unwrap());
    let routing = toml::from_str::<DimensionOrder>("tie = 'no-wrap'").unwrap().compile(&network).unwrap();
    (network, routing)
}

fn terminals(places: &[(u32, u32)]) -> Vec<TerminalId> {
    places.iter().map(|&(x, y)| TerminalId(x + 8 * y)).collect()
}

fn measures(logical: &LogicalNetwork, physical: &[TerminalId]) -> (f64, f64, f64) {
    let (network, routing) = machine();
    let links = edges(&logical.build().unwrap());
    let embedding = Embedding::of(&links, physical, &mut RoutedPaths::new(&network, &*routing, CHANNELS));
    (embedding.dilation_max(), embedding.dilation_mean(), embedding.congestion())
}

fn torus() -> LogicalNetwork {
    LogicalNetwork::Torus { dimensions: vec![3, 3] }
}

const IRREGULAR: [(u32, u32); 9] = [(1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (1, 3)];

/// 64 hops over 36 directed links.
#[test]
fn nine_nodes_of_an_irregular_region_are_a_torus_of_three_by_three() {
    let (longest, mean, congestion) = measures(&torus(), &terminals(&IRREGULAR));
    assert_eq!((longest, congestion), (4.0, 4.0));
    assert!((mean - 64.0 / 36.0).abs() < 1e-12, "{mean}");
}

#[test]
fn a_compact_block_stretches_a_torus_less() {
    let block: Vec<(u32, u32)> = (0..9).map(|node| (2 + node % 3, 2 + node / 3)).collect();
    let (longest, mean, congestion) = measures(&torus(), &terminals(&block));
    assert_eq!((longest, congestion), (2.0, 2.0));
    assert!((mean - 4.0 / 3.0).abs() < 1e-12, "{mean}");
}

#[test]
fn the_tree_of_seven_nodes_keeps_its_neighbours() {
    let places = [(5, 5), (4, 5), (6, 5), (4, 4), (4, 6), (6, 4), (6, 6)];
    assert_eq!(measures(&LogicalNetwork::Tree { arity: 2, nodes: 7 }, &terminals(&places)), (1.0, 1.0, 1.0));
}

/// Every hop of every link is on some channel: the loads sum to the dilations.
#[test]
fn the_loads_of_all_channels_sum_to_the_lengths_of_all_ways() {
    let (network, routing) = machine();
    let links = edges(&torus().build().unwrap());
    let embedding = Embedding::of(&links, &terminals(&IRREGULAR), &mut RoutedPaths::new(&network, &*routing, CHANNELS));
    let (loads, hops): (f64, f64) =
        (embedding.loads.iter().map(|&(_, load)| load).sum(), embedding.dilations.iter().map(|&(_, length)| length).sum());
    assert_eq!((loads, hops), (64.0, 64.0));
    assert!(embedding.loads.iter().all(|&(channel, _)| channel >= ChannelId(128)), "between routers only");
}

/// A mesh whose nodes have been shuffled over a region of its own shape can be laid out with every link on one channel.
#[test]
fn the_search_finds_the_layout_that_keeps_neighbours() {
    let (network, routing) = machine();
    let logical = LogicalNetwork::Mesh { dimensions: vec![4, 4] };
    let links = edges(&logical.build().unwrap());
    let shuffled: Vec<(u32, u32)> = (0..16u32).map(|node| node * 7 % 16).map(|node| (1 + node % 4, 3 + node / 4)).collect();
    let region = terminals(&shuffled);
    let mut paths = RoutedPaths::new(&network, &*routing, CHANNELS);
    let before = Embedding::of(&links, &region, &mut paths);
    let found = annealing::search(16, &links, &region, &mut paths, &mut Streams::new(3).get(Purpose::Placement, 0));
    let after = Embedding::of(&links, &found, &mut paths);
    assert!(before.dilation_mean() > 2.0, "{}", before.dilation_mean());
    assert_eq!((after.dilation_max(), after.congestion()), (1.0, 1.0));
    let mut used = found.clone();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), 16, "no terminal twice");
    assert!(used.iter().all(|terminal| region.contains(terminal)));
}
