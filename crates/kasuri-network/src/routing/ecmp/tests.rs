//! Keys, places and weights of `tests/data/fabrics/vectors.csv`, and what links share.

use super::*;
use crate::deadlock::{Verdict, check};
use crate::network::{Cable, Endpoint, cables};
use crate::routing::SourceChoice;
use crate::routing::walk::{Routes, Walker};
use crate::topology::fat_tree::FatTree;
use crate::topology::leaf_spine::{LeafSpine, Trunk};
use crate::topology::torus::Torus;
use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};
use std::collections::BTreeSet;

const CONTEXT: fn(&ChannelParameters) -> BuildContext<'_> = |channels| BuildContext { channels, files: &NoFiles, structure_seed: 0 };

const ONE: VirtualChannels = VirtualChannels { begin: 0, end: 1 };

fn ecmp(parameters: &str) -> Ecmp {
    toml::from_str(parameters).unwrap()
}

fn place(source: u32, destination: u32, flow: u32, salt: u64, links: usize) -> usize {
    place_of(mix(flow_key(TerminalId(source), TerminalId(destination), flow).wrapping_add(salt)), links)
}

#[test]
fn keys_and_places_are_the_known_ones() {
    let salted = ecmp("salt_seed = 1").salt_of(RouterId(3));
    for (source, destination, flow, key, plain, of_router) in [
        (0, 1, 0, 0xceb5_a1e1_5fdb_5cf5, [1, 2, 3, 14], [0, 0, 0, 2]),
        (0, 1, 1, 0x1644_d334_51f3_f4fb, [0, 0, 0, 2], [0, 0, 1, 4]),
        (5, 17, 0, 0xb418_020f_4c82_3c90, [0, 0, 0, 0], [1, 2, 3, 13]),
        (1023, 4, 9, 0x3985_cc26_c4b8_8680, [0, 1, 1, 6], [1, 2, 3, 12]),
    ] {
        assert_eq!(flow_key(TerminalId(source), TerminalId(destination), flow), key);
        assert_eq!([2, 3, 4, 16].map(|links| place(source, destination, flow, 0, links)), plain);
        assert_eq!([2, 3, 4, 16].map(|links| place(source, destination, flow, salted, links)), of_router);
    }
}

/// Of 4000 flows those on the first of four links; behind it, with the same hash, all take the first of four again.
#[test]
fn the_same_hash_everywhere_polarises() {
    let behind = |first: u64, second: u64| {
        let mut counts = [0; 4];
        let taken = (0..4000).filter(|&flow| place(0, 1, flow, first, 4) == 0);
        taken.for_each(|flow| counts[place(0, 1, flow, second, 4)] += 1);
        counts
    };
    assert_eq!(behind(0, 0), [946, 0, 0, 0]);
    let salt = |router| ecmp("salt_seed = 1").salt_of(RouterId(router));
    assert_eq!(behind(salt(0), salt(1)), [246, 251, 261, 233]);
}

/// Two leaves, and the first links between the last spine and leaf 1 gone.
fn lossy(spines: u32, trunk: u32, lost: usize) -> Arc<Network> {
    let leaf_spine = LeafSpine { leaves: 2, spines, down: 4, trunk: Trunk::All(trunk) };
    let network = leaf_spine.build(&CONTEXT(&ChannelParameters::default())).unwrap();
    let last = RouterId(2 + spines - 1);
    let ends = |cable: &&Cable| match (network.source(cable.first), network.destination(cable.first)) {
        (Endpoint::Router(from, _), Endpoint::Router(to, _)) => [from, to].contains(&last) && [from, to].contains(&RouterId(1)),
        _ => false,
    };
    let gone: Vec<Cable> = cables(&network).iter().filter(ends).take(lost).copied().collect();
    assert_eq!(gone.len(), lost);
    Arc::new(network.without(&gone, &[]))
}

/// The weight of the links from leaf 0 to each spine, towards leaf 1.
fn weights(network: &Network, spines: u32) -> Vec<f64> {
    let edges = edges(network);
    let arcs: Vec<_> = edges.iter().map(|edge| (edge.from.0, edge.to.0, 1)).collect();
    let distance = Arcs::new(network.router_count() as usize, &arcs).distances_to(&[1]);
    let mut links = vec![Vec::new(); network.router_count() as usize];
    let nearer = |edge: &&Edge| distance[edge.to.index()].checked_add(1) == Some(distance[edge.from.index()]);
    edges.iter().filter(nearer).for_each(|edge| links[edge.from.index()].push(*edge));
    let all = capacities(network, &links, &distance);
    let weight = |spine: u32| {
        let found = links[0].iter().zip(&all[0]).filter(|(edge, _)| edge.to == RouterId(2 + spine));
        let found: Vec<f64> = found.map(|(_, weight)| *weight).collect();
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
        found.first().copied().unwrap_or(0.0)
    };
    (0..spines).map(weight).collect()
}

#[test]
fn weights_are_what_is_left_towards_the_destination() {
    for (spines, trunk, lost, expected) in [
        (4, 2, 1, vec![1.0, 1.0, 1.0, 0.5]),
        (4, 4, 1, vec![1.0, 1.0, 1.0, 0.75]),
        (2, 4, 3, vec![1.0, 0.25]),
        (4, 2, 2, vec![1.0, 1.0, 1.0, 0.0]),
    ] {
        assert_eq!(weights(&lossy(spines, trunk, lost), spines), expected);
    }
}

#[test]
fn tables_of_weights_are_rounded_by_largest_remainder() {
    // 64 / 3.5 = 18.29 three times and 9.14: one entry is left for the first.
    assert_eq!(rounded_entries(&[1.0, 1.0, 1.0, 0.5], 64), [19, 18, 18, 9]);
    assert_eq!(rounded_entries(&[1.0, 1.0], 5), [3, 2]);
    assert_eq!(rounded_entries(&[1.0, 0.001, 0.0], 8), [7, 1, 0]);
    assert_eq!(exact_entries(&[1.0, 1.0, 1.0, 0.5]).unwrap(), [2, 2, 2, 1]);
    assert_eq!(exact_entries(&[1.0, std::f64::consts::PI]), None);
}

/// What share of the packets of terminals 0 to 3 to terminal 4 goes over each link of leaf 0, by all branches.
fn shares(network: &Arc<Network>, parameters: &str) -> BTreeMap<Port, f64> {
    let routing = ecmp(parameters).compile(network).unwrap();
    let mut walker = Walker::new(network, &*routing, ONE);
    let mut routes = Routes::default();
    walker.walk(TerminalId(4), &mut routes).unwrap();
    let at_leaf = routes.places.iter().position(|place| place.hop.router == RouterId(0)).unwrap() as u32;
    let mut shares = BTreeMap::new();
    for step in routes.steps_of(at_leaf) {
        let Endpoint::Router(_, port) = network.source(step.channel) else { continue };
        *shares.entry(port).or_insert(0.0) += step.probability;
    }
    shares
}

/// Four spines with two links each, of which one of the last spine's to leaf 1 is gone: equal shares send 1/4 there, weights 1/7.
#[test]
fn random_shares_are_the_weights() {
    let network = lossy(4, 2, 1);
    let to_last = |shares: BTreeMap<Port, f64>| shares[&7] + shares[&11];
    assert!((to_last(shares(&network, "policy = \"random\"")) - 0.25).abs() < 1e-12);
    assert!((to_last(shares(&network, "policy = \"random\"\nweights = \"capacity\"")) - 1.0 / 7.0).abs() < 1e-12);
    // 64 entries for eight links: 9.14 for each of six, 4.57 for each of two, which have the largest remainders and get what is left.
    let rounded = to_last(shares(&network, "policy = \"random\"\nweights = \"capacity\"\nentries = 64"));
    assert!((rounded - 10.0 / 64.0).abs() < 1e-12, "{rounded}");
}

/// Of 65536 flows of a pair as many go over each link as its weight says, within five standard deviations.
#[test]
fn hashed_flows_follow_the_weights() {
    let network = lossy(4, 2, 1);
    for (parameters, weights) in [("flows = 65536", [1.0; 4]), ("flows = 65536\nweights = \"capacity\"", [1.0, 1.0, 1.0, 0.5])] {
        let routing = ecmp(parameters).compile(&network).unwrap();
        let mut counts = [0.0; 4];
        for flow in 0..65536u32 {
            let (router, input) = network.injection_port(TerminalId(0));
            let hop = Hop { router, input, virtual_channel: 0, source: TerminalId(0), destination: TerminalId(4), available: ONE };
            let mut candidates = Vec::new();
            let mut state = flow << FLOW_SHIFT;
            routing.route(&hop, &mut state, &mut SourceChoice::new(0, 0), &mut candidates);
            assert_eq!(state >> FLOW_SHIFT, flow);
            counts[(usize::from(candidates[0].port) - 4) % 4] += 1.0;
        }
        let total: f64 = weights.iter().sum();
        for (count, weight) in counts.into_iter().zip(weights) {
            let share = weight / total;
            let deviation = (65536.0f64 * share * (1.0 - share)).sqrt();
            assert!((count - 65536.0 * share).abs() < 5.0 * deviation, "{counts:?}");
        }
    }
}

/// The routers that packet `serial` comes through from terminal 0 to the last terminal.
fn routers_of(network: &Network, routing: &dyn Routing, serial: u32) -> Vec<u32> {
    let (source, destination) = (TerminalId(0), TerminalId(network.terminal_count() - 1));
    let mut state = routing.initial_state(source, destination, &mut SourceChoice::new(7, serial));
    let (mut at, mut routers) = (network.injection_port(source), Vec::new());
    loop {
        let hop = Hop { router: at.0, input: at.1, virtual_channel: 0, source, destination, available: ONE };
        let mut candidates = Vec::new();
        routing.route(&hop, &mut state, &mut SourceChoice::new(7, serial), &mut candidates);
        routers.push(at.0.0);
        match network.destination(network.output_channel(at.0, candidates[0].port).unwrap()) {
            Endpoint::Router(router, input) => at = (router, input),
            Endpoint::Terminal(terminal) => {
                assert_eq!(terminal, destination);
                return routers;
            }
        }
    }
}

/// A source in turn: over 4 x 4 shortest paths of a tree 16 packets in a row take each once, wherever they begin, also where its turns begin
/// anew.
#[test]
fn a_source_in_turn_takes_every_path_once_before_it_takes_one_again() {
    let tree: FatTree = toml::from_str("up = 4\ndown = 4\nlevels = 3").unwrap();
    let tree = Arc::new(tree.build(&CONTEXT(&ChannelParameters::default())).unwrap());
    for parameters in ["policy = \"round-robin\"", "policy = \"round-robin\"\nsalt = \"none\""] {
        let routing = ecmp(parameters).compile(&tree).unwrap();
        for first in [0, 5, TURNS - 3, u32::MAX - 15] {
            let paths: BTreeSet<Vec<u32>> = (first..=first + 15).map(|serial| routers_of(&tree, &*routing, serial)).collect();
            assert_eq!(paths.len(), 16, "{parameters} from {first}");
            let next: BTreeSet<u32> = (first..=first + 3).map(|serial| routers_of(&tree, &*routing, serial)[1]).collect();
            assert_eq!(next.len(), 4, "{parameters} from {first}");
        }
    }
    // Who asks without a packet finds all paths as likely as by chance.
    let [in_turn, by_chance] = ["round-robin", "random"].map(|policy| shares(&tree, &format!("policy = \"{policy}\"")));
    assert_eq!(in_turn, by_chance);
}

/// A tree needs one virtual channel, a ring of six has a cycle with one and none with a class for each of its three hops.
#[test]
fn trees_need_no_classes_and_rings_do() {
    let tree = lossy(4, 2, 0);
    for policy in ["flow-hash", "random"] {
        let routing = ecmp(&format!("policy = \"{policy}\"")).compile(&tree).unwrap();
        assert!(routing.facts().is_deadlock_free && routing.facts().virtual_channels_required == 1);
        assert_eq!(check(&tree, &*routing, &[ONE]).verdict, Verdict::Acyclic);
    }
    let ring = Arc::new(Torus { dimensions: vec![6], concentration: 1 }.build(&CONTEXT(&ChannelParameters::default())).unwrap());
    let plain = ecmp("").compile(&ring).unwrap();
    assert!(!plain.facts().is_deadlock_free);
    assert!(matches!(check(&ring, &*plain, &[ONE]).verdict, Verdict::Cycle(_)));
    let by_hop = ecmp("classes = \"hop\"").compile(&ring).unwrap();
    assert_eq!((by_hop.facts().is_deadlock_free, by_hop.facts().virtual_channels_required), (true, 3));
    assert_eq!(check(&ring, &*by_hop, &[VirtualChannels { begin: 0, end: 3 }]).verdict, Verdict::Acyclic);
}

#[test]
fn parameters_out_of_range_are_told() {
    let network = lossy(2, 1, 0);
    for (parameters, expected) in [
        ("flows = 0", "flows: is 0; it must be from 1 to 65536"),
        ("flows = 65537", "flows: is 65537"),
        ("weights = \"capacity\"\nentries = 0", "entries: is 0; it must be from 1 to 1024"),
        ("entries = 64", "entries: is the size of a table of weights"),
    ] {
        let error = ecmp(parameters).compile(&network).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// The pairs of terminals within a node, each with the routers that its packets may pass.
fn within_nodes(network: &Arc<Network>, routing: &dyn Routing, gpus: u32) -> Vec<(u32, u32, BTreeSet<u32>)> {
    let mut walker = Walker::new(network, routing, VirtualChannels { begin: 0, end: 4 });
    let mut found = Vec::new();
    for to in 0..network.terminal_count() {
        for from in (to / gpus * gpus..(to / gpus + 1) * gpus).filter(|&from| from != to) {
            let mut routes = Routes::default();
            walker.walk(TerminalId(to), &mut routes).unwrap();
            let (mut reached, mut queue) = (BTreeSet::new(), vec![network.injection_port(TerminalId(from)).0.0]);
            while let Some(router) = queue.pop() {
                if reached.insert(router) {
                    let places = routes.places.iter().zip(0..).filter(|(place, _)| place.hop.router.0 == router);
                    let steps = places.flat_map(|(_, place)| routes.steps_of(place));
                    queue.extend(steps.filter_map(|step| match network.destination(step.channel) {
                        Endpoint::Router(next, _) => Some(next.0),
                        Endpoint::Terminal(_) => None,
                    }));
                }
            }
            found.push((from, to, reached));
        }
    }
    found
}

/// If the GPUs of a node share a leaf, the paths by that leaf and by the node's own switch both have two links. Unless the metric is
/// `hops`, routings take the node's switch: a packet passes the two GPUs and that switch, numbered as the topology's description says.
#[test]
fn packets_within_a_node_stay_inside() {
    for (units, nodes, gpus, spines, wiring) in [(1, 4, 4, 2, "nodes"), (2, 4, 2, 3, "nodes"), (2, 2, 3, 1, "rails"), (1, 2, 2, 1, "nodes")]
    {
        let text = format!("units = {units}\nnodes = {nodes}\ngpus = {gpus}\nspines = {spines}\nhb = true\nwiring = \"{wiring}\"");
        let topology: crate::topology::rail_optimised::RailOptimised = toml::from_str(&text).unwrap();
        let network = Arc::new(topology.build(&CONTEXT(&ChannelParameters::default())).unwrap());
        let minimal = |parameters: &str| toml::from_str::<crate::routing::minimal::Minimal>(parameters).unwrap().compile(&network).unwrap();
        let terminals = units * nodes * gpus;
        let inside = [
            ecmp("").compile(&network).unwrap(),
            ecmp("policy = \"random\"\nweights = \"capacity\"").compile(&network).unwrap(),
            minimal(""),
        ];
        for routing in &inside {
            for (from, to, reached) in within_nodes(&network, &**routing, gpus) {
                assert_eq!(reached, BTreeSet::from([from, to, terminals + to / gpus]), "{text}");
            }
        }
        for routing in [ecmp("policy = \"random\"\nmetric = \"hops\"").compile(&network).unwrap(), minimal("metric = \"hops\"")] {
            let leaves_node = within_nodes(&network, &*routing, gpus).iter().any(|(.., reached)| reached.len() > 3);
            assert_eq!(leaves_node, wiring == "nodes", "{text}");
        }
    }
}

/// Two paths of two channels, one with a larger latency: by hops both are taken, by latency the shorter one.
#[test]
fn latency_makes_paths_unequal() {
    let mut builder = crate::network::NetworkBuilder::new("square");
    (0..4).for_each(|_| assert!(builder.add_router(3).is_ok()));
    for (from, to, latency) in [((0, 0), (1, 0), 1), ((0, 1), (2, 0), 2), ((1, 1), (3, 0), 1), ((2, 1), (3, 1), 1)] {
        let link = crate::network::Link { latency, period: 1 };
        builder.add_link((RouterId(from.0), from.1), (RouterId(to.0), to.1), link);
    }
    for router in 0..4 {
        builder.add_terminal(RouterId(router), 2, crate::network::Link::default());
    }
    let network = Arc::new(builder.finish().unwrap());
    let first_hops = |metric: &str| {
        let routing = ecmp(&format!("policy = \"round-robin\"\nmetric = \"{metric}\"")).compile(&network).unwrap();
        (0..64).map(|serial| routers_of(&network, &*routing, serial)[1]).collect::<BTreeSet<u32>>()
    };
    assert_eq!([first_hops("hops"), first_hops("inner-first"), first_hops("latency")], [[1, 2].into(), [1, 2].into(), [1].into()]);
}
