//! Adaptive paths by what a router knows of its outputs: never worse than paths drawn blindly, however long the channels are.
//! `validation/congestion` has more networks, patterns and latencies.

use crate::common::{Fixed, Setup, Single, ToTheEnd};
use kasuri_model::engine::{Engine, Status};
use kasuri_model::router::{Architecture, Congestion, Priority, RouterParameters};
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Stream;
use kasuri_network::routing::per_destination::PerDestination;
use kasuri_network::topology::{ChannelParameters, PerDimension};
use kasuri_workload::traffic::pattern::Pattern;
use std::sync::Arc;

/// Mean time in which a fat tree delivers batches of so many packets of a permutation, over a few permutations. There is room for `slack`
/// flits beyond what keeps a channel busy.
fn permutations(tree: Setup, batch: u64, slack: u32, latency: u32, (up_port, congestion): (&'static str, Congestion), seeds: u64) -> f64 {
    let channels = ChannelParameters { channel_latency: PerDimension::All(latency), ..ChannelParameters::default() };
    let buffer_flits = slack + 2 * latency;
    let router = RouterParameters { virtual_channels: 1, buffer_flits, congestion, ..RouterParameters::default() };
    let tree = Setup { pattern: ("random-permutation", ""), routing: ("nca", up_port), channels, router, ..tree };
    let time = |seed| Setup { seed, ..tree.clone() }.batch(batch).run(&mut Fixed::new(0, 1000)).completion_time.expect("it is completed");
    (1..=seeds).map(time).sum::<f64>() / seeds as f64
}

const SEEDS: u64 = 6;

/// A router that counts what heads have claimed spreads packets better than chance does, and than one that waits for credits to be missing:
/// over long channels this one sends all heads to the same output, because nothing tells of those that wait there.
#[test]
fn adaptive_paths_are_no_worse_than_random_ones_over_short_and_long_channels() {
    for latency in [1, 30, 300, 1000] {
        let time = |how| permutations(Setup { packet_flits: 8, ..Setup::fat_tree(4, 2) }, 60, 16, latency, how, SEEDS);
        let random = time(("up_port = \"random\"", Congestion::Claimed));
        let claimed = time(("up_port = \"adaptive\"", Congestion::Claimed));
        let credits = time(("up_port = \"adaptive\"", Congestion::Credits));
        println!("{latency}: random {random}, claimed {claimed}, credits {credits}");
        assert!(claimed <= 1.01 * random, "latency {latency}: {claimed} {random}");
        assert!(claimed <= 1.02 * credits, "latency {latency}: {claimed} {credits}");
        if latency >= 30 {
            assert!(credits > 1.01 * claimed, "latency {latency}: {credits} {claimed}");
        }
    }
}

/// Long packets in buffers of three: a source that always took the output which its last packet has just left would keep to one path, and
/// batches on three levels would take longer than by random paths.
#[test]
fn adaptive_paths_of_long_packets_do_not_settle_on_one_output() {
    let time = |how| permutations(Setup { packet_flits: 64, ..Setup::fat_tree(6, 3) }, 100, 200, 1, (how, Congestion::Claimed), 3);
    let (random, adaptive) = (time("up_port = \"random\""), time("up_port = \"adaptive\""));
    assert!(adaptive < 0.95 * random, "{adaptive} {random}");
}

const QUEUED: [Architecture; 2] = [Architecture::VirtualOutputQueued, Architecture::Crosspoint];

/// Destinations by source; nothing from a terminal that has none.
#[derive(Debug)]
struct Listed(Vec<Option<u32>>);

impl Pattern for Listed {
    fn destination(&self, source: TerminalId, _stream: &mut Stream) -> Option<TerminalId> {
        self.0[source.index()].map(TerminalId)
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        self.0[source.index()].map(|destination| (TerminalId(destination), 1.0)).into_iter().collect()
    }
}

/// Flits per cycle that each terminal receives when those that send do so all the time.
fn received(setup: &Setup, destinations: Vec<Option<u32>>) -> Vec<f64> {
    let mut scenario = Setup { load: 1.0, paranoid: true, ..setup.clone() }.build();
    scenario.classes[0].pattern = Arc::new(Listed(destinations));
    let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut Fixed::new(2_000, 10_000)).unwrap();
    outcome.accepted_flits.iter().map(|&flits| flits as f64 / outcome.measured_cycles as f64).collect()
}

/// Three of the four terminals of a corner of a mesh send along the x axis and leave the fourth a quarter of that channel. It goes to the
/// opposite corner of a square: by a coin, half of its packets wait for the quarter, and the others behind them, so that it gets twice the
/// quarter. Where it weighs the queues of its first router by its credits for them, it goes by y as often as its own channel lets it.
#[test]
fn a_hot_output_is_avoided_by_the_queue_before_it() {
    for architecture in QUEUED {
        for congestion in [Congestion::Claimed, Congestion::Credits] {
            let run = |how| {
                let router =
                    RouterParameters { architecture, congestion, virtual_channels: 8, buffer_flits: 8, ..RouterParameters::default() };
                let keys = "dimensions = [3, 2]\nconcentration = 4".to_owned();
                let mesh = Setup { topology: ("mesh", keys), routing: ("o1turn", how), router, packet_flits: 4, ..Setup::mesh(&[2]) };
                let destinations = (0..24).map(|source| [Some(16), Some(9), Some(10), Some(11)].get(source).copied().flatten()).collect();
                received(&mesh, destinations)[16]
            };
            let (coin, weighed) = (run("choose = \"random\""), run("choose = \"adaptive\""));
            // The matching of a switch of five ports gives the fourth somewhat more than a quarter.
            let most = if architecture == Architecture::Crosspoint { 0.52 } else { 0.65 };
            assert!((0.48..most).contains(&coin), "{architecture:?} {congestion:?}: {coin}");
            assert!(weighed > 0.95, "{architecture:?} {congestion:?}: {weighed}");
        }
    }
}

/// In an empty network all queues are equal, and ties are drawn: lone packets take each of the four ports up equally often, in the time that
/// they take by ports drawn blindly.
#[test]
fn lone_packets_spread_over_empty_queues() {
    for architecture in QUEUED {
        let run = |up_port| {
            let router = RouterParameters { architecture, virtual_channels: 1, buffer_flits: 16, ..RouterParameters::default() };
            let tree = Setup { router, routing: ("nca", up_port), packet_flits: 1, load: 0.02, ..Setup::fat_tree(4, 2) };
            let mut scenario = Setup { process: ("periodic", String::new()), ..tree }.build();
            scenario.classes[0].pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(15) });
            kasuri_flit::FlitEngine.run(&scenario, &mut Fixed::new(100, 100_000)).unwrap()
        };
        let [adaptive, random] = ["up_port = \"adaptive\"", "up_port = \"random\""].map(run);
        assert_eq!((adaptive.network_latency.min, adaptive.network_latency.max), (random.network_latency.min, random.network_latency.max));
        let mut ways: Vec<u64> = adaptive.channel_flits.iter().copied().filter(|&flits| flits > 0).collect();
        ways.sort_unstable();
        // 4 channels up and 4 down with a quarter of the packets each, within 5 standard deviations, and those of source and sink.
        let packets = adaptive.packet_latency.count as f64;
        let deviation = (packets * 3.0 / 16.0).sqrt();
        assert_eq!(ways.len(), 10, "{ways:?}");
        assert!(ways[..8].iter().all(|&flits| (flits as f64 - packets / 4.0).abs() < 5.0 * deviation), "{ways:?}");
    }
}

/// All terminals of a router send to those of the next one, of five that are all linked: the channel between the two has room for a quarter
/// of what they offer. Detours by the other routers, which the queue for this channel brings about, carry more; in an idle network nobody
/// takes one.
#[test]
fn detours_are_taken_where_queues_of_the_first_router_fill() {
    for architecture in QUEUED {
        let full_mesh = |routing| {
            let router = RouterParameters { architecture, virtual_channels: 4, buffer_flits: 8, ..RouterParameters::default() };
            let topology = ("full-mesh", "routers = 5\nconcentration = 4".to_owned());
            Setup { topology, routing: (routing, ""), router, packet_flits: 2, include_self: false, ..Setup::mesh(&[2]) }
        };
        let accepted = |routing| {
            let next_router = (0..20).map(|source| Some((source + 4) % 20)).collect();
            received(&full_mesh(routing), next_router).iter().sum::<f64>() / 20.0
        };
        let (direct, detours) = (accepted("minimal"), accepted("ugal"));
        assert!((direct - 0.25).abs() < 0.01 && detours > 1.4 * direct, "{architecture:?}: {direct} {detours}");
        let idle = |routing| Setup { load: 0.001, ..full_mesh(routing) }.run(&mut Fixed::new(0, 20_000));
        assert_eq!((idle("ugal").hops.max, idle("ugal").hops.mean()), (idle("minimal").hops.max, idle("minimal").hops.mean()));
    }
}

/// Batches arrive to the last packet, flits and credits are conserved, and the same run gives the same outcome: every routing that weighs
/// congestion, in routers of all kinds.
#[test]
fn batches_are_delivered_by_every_adaptive_routing() {
    let of = |topology: &'static str, keys: &str, routing: &'static str, how: &'static str| Setup {
        topology: (topology, keys.to_owned()),
        routing: (routing, how),
        ..Setup::mesh(&[2])
    };
    let networks = [
        of("fat-tree", "up = 3\ndown = 3\nlevels = 2", "nca", "up_port = \"adaptive\""),
        of("fat-tree", "up = 2\ndown = 2\nlevels = 3", "nca", "up_port = \"better-of-two\""),
        of("mesh", "dimensions = [4, 3]", "o1turn", "choose = \"adaptive\""),
        of("mesh", "dimensions = [4, 3]", "ugal", ""),
        of("flattened-butterfly", "dimensions = [3, 3]\nconcentration = 1", "ugal-ordered", ""),
        of("dragonfly", "terminals_per_router = 1\nrouters_per_group = 2\nglobal_channels = 1", "ugal", ""),
    ];
    for architecture in QUEUED {
        for network in &networks {
            for (congestion, priority) in [(Congestion::Claimed, "none"), (Congestion::Credits, "age")] {
                let priority = if architecture == Architecture::Crosspoint { "none" } else { priority };
                let router = RouterParameters {
                    architecture,
                    congestion,
                    virtual_channels: 4,
                    buffer_flits: 4,
                    priority: if priority == "age" { Priority::Age } else { Default::default() },
                    ..RouterParameters::default()
                };
                let setup = Setup { router, load: 1.0, packet_flits: 3, paranoid: true, ..network.clone() }.batch(60);
                let outcome = setup.run(&mut ToTheEnd);
                assert_eq!(outcome.status, Status::Completed, "{:?} {:?}", setup.topology, setup.router);
                let terminals = u64::from(setup.network().terminal_count());
                assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), 60 * 3 * terminals, "{:?}", setup.topology);
                assert_eq!(outcome, setup.run(&mut ToTheEnd), "{:?}", setup.topology);
            }
        }
    }
}

/// Permutations that meet on the channels up of a tree are delivered earlier by the queues of which least is full than by queues drawn blindly.
/// Packets of one source then stand in several queues, so that a matched input sends them side by side; several virtual channels of each
/// queue keep them from waiting for each other.
#[test]
fn queues_up_a_tree_are_chosen_better_than_by_chance() {
    for architecture in QUEUED {
        let time = |up_port: &'static str| {
            let router = RouterParameters { virtual_channels: 4, buffer_flits: 18, architecture, ..RouterParameters::default() };
            let pattern = ("random-permutation", "");
            let tree = Setup { pattern, routing: ("nca", up_port), router, packet_flits: 8, ..Setup::fat_tree(4, 2) };
            let time =
                |seed| Setup { seed, ..tree.clone() }.batch(60).run(&mut Fixed::new(0, 1000)).completion_time.expect("it is completed");
            (1..=SEEDS).map(time).sum::<f64>() / SEEDS as f64
        };
        let [random, adaptive, two] = ["up_port = \"random\"", "up_port = \"adaptive\"", "up_port = \"better-of-two\""].map(time);
        assert!(adaptive < 0.95 * random && two < 0.98 * random, "{architecture:?}: {random} {adaptive} {two}");
    }
}

/// Flits per cycle that terminal 1 of a tree of 8 receives from terminal 6, while four others send to terminal 0 beside it all the time.
fn beside_a_hot_spot(per_destination: bool, up_port: &'static str, router: RouterParameters) -> f64 {
    let router = RouterParameters { virtual_channels: 8, vc_per_destination: per_destination, ..router };
    let mut scenario =
        Setup { router, routing: ("nca", up_port), load: 1.0, packet_flits: 4, paranoid: true, ..Setup::fat_tree(2, 3) }.build();
    if per_destination {
        scenario.routing = Arc::new(PerDestination::over(Arc::clone(&scenario.routing)));
    }
    let to = [None, None, Some(0), Some(0), Some(0), Some(0), Some(1), None];
    scenario.classes[0].pattern = Arc::new(Listed(to.to_vec()));
    let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut Fixed::new(2_000, 5_000)).unwrap();
    outcome.accepted_flits[1] as f64 / outcome.measured_cycles as f64
}

/// With a virtual channel for each destination a packet waits for the turns of a channel, never behind packets for a hot spot: wherever it
/// meets these, it has half of the channel at least, and more where adaptive paths lead around them; with predictors and priorities, too.
/// Where virtual channels are shared, it has less.
#[test]
fn a_virtual_channel_for_each_destination_goes_with_adaptive_paths_and_predictors() {
    let plain = RouterParameters { buffer_flits: 8, ..RouterParameters::default() };
    for router in [
        plain.clone(),
        RouterParameters { predictor: "static-straight".to_owned(), ..plain.clone() },
        RouterParameters { predictor: "latest-port".to_owned(), priority: Priority::Age, input_speedup: 2, ..plain },
    ] {
        for up_port in ["up_port = \"adaptive\"", "up_port = \"better-of-two\""] {
            let [own, shared] = [true, false].map(|own| beside_a_hot_spot(own, up_port, router.clone()));
            assert!(own > 0.495 && own > shared + 0.01, "{up_port} {}: {own} {shared}", router.predictor);
        }
    }
}
