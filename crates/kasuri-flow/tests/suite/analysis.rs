//! Zero-load latencies and channel loads against formulas and against what BookSim 2 printed.

use kasuri_flow::analysis::{LonePacket, channel_loads, formulas, hit_rates, lone_packet_latency, zero_load};
use kasuri_model::engine::Formulas;
use kasuri_model::router::{Architecture, Pipeline, PipelineEntry, RouterParameters, Switching};
use kasuri_model::scenario::{Reply, Scenario, TrafficClass};
use kasuri_network::id::ChannelId;
use kasuri_network::network::{Endpoint, Link, Network};
use kasuri_network::predictor::Fold;
use kasuri_network::rng::Streams;
use kasuri_network::routing::{ROUTINGS, VirtualChannels};
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, PerDimension, TOPOLOGIES};
use kasuri_workload::traffic::PacketSizes;
use kasuri_workload::traffic::pattern::{PATTERNS, PatternContext};
use kasuri_workload::traffic::process::PROCESSES;
use std::sync::Arc;

/// What a test tells of its scenario.
#[derive(Clone)]
struct Setup {
    topology: (&'static str, &'static str),
    channels: ChannelParameters,
    routing: (&'static str, &'static str),
    pattern: (&'static str, &'static str),
    include_self: bool,
    flits: u32,
    router: RouterParameters,
}

impl Setup {
    fn new(topology: (&'static str, &'static str), routing: &'static str) -> Self {
        let router = RouterParameters { virtual_channels: 4, ..RouterParameters::default() };
        Self {
            topology,
            channels: ChannelParameters::default(),
            routing: (routing, ""),
            pattern: ("uniform", ""),
            include_self: false,
            flits: 1,
            router,
        }
    }

    fn scenario(&self) -> Scenario {
        let table = |text: &str| text.parse::<toml::Table>().expect("TOML");
        let find = |name: &str| TOPOLOGIES.iter().find(|entry| entry.name == name).expect("a topology");
        let context = BuildContext { channels: &self.channels, files: &NoFiles, structure_seed: 0 };
        let topology = (find(self.topology.0).parse)(table(self.topology.1)).expect("parameters");
        let network = Arc::new(topology.build(&context).expect("a network"));
        let routing = ROUTINGS.iter().find(|entry| entry.name == self.routing.0).expect("a routing");
        let routing = (routing.parse)(table(self.routing.1)).expect("parameters").compile(&network).expect("a routing that fits");
        let pattern = PATTERNS.iter().find(|entry| entry.name == self.pattern.0).expect("a pattern");
        let context = PatternContext { network: &network, include_self: self.include_self, files: &NoFiles };
        let pattern = (pattern.parse)(table(self.pattern.1)).expect("parameters").compile(&context).expect("a pattern that fits");
        let process = PROCESSES.iter().find(|entry| entry.name == "bernoulli").expect("a process");
        let process = (process.parse)(table("")).expect("parameters").compile(0.1).expect("a rate");
        let class = TrafficClass {
            pattern: pattern.into(),
            process: process.into(),
            packets_per_terminal: None,
            window: kasuri_workload::traffic::process::Window::default(),
            load: 0.1,
            sizes: PacketSizes::fixed(self.flits).expect("a length"),
            virtual_channels: VirtualChannels { begin: 0, end: self.router.virtual_channels as u16 },
            priority: 0,
            joint: None,
            reply: None,
        };
        Scenario {
            network,
            routing: routing.into(),
            pipeline: self.router.check().expect("a router"),
            router: self.router.clone(),
            classes: vec![class],
            workload: None,
            hosts: None,
            units: kasuri_workload::units::Units::default(),
            streams: Streams::new(1),
            max_cycles: 1000,
            resend_after: None,
            failure: None,
            engine_options: toml::Table::new(),
            paranoid: false,
            timeline: false,
            endpoint: None,
            users: None,
        }
    }
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "found {found}, expected {expected}");
}

/// Latency over 1, 2, … routers with equal channels.
fn by_hops(router: &RouterParameters, link: Link, flits: u32) -> Vec<u64> {
    let pipeline = router.check().expect("a router");
    (1..=14)
        .map(|hops| {
            let mut channels = vec![link; hops + 1];
            (channels[0], channels[hops]) = (Link::default(), Link::default());
            lone_packet_latency(&LonePacket { channels: &channels, flits, router, pipeline: &pipeline })
        })
        .collect()
}

fn timed(stage: &str, cycles: u32) -> PipelineEntry {
    PipelineEntry::Timed { stage: stage.to_owned(), cycles }
}

/// Modal network latencies of BookSim 2 on an 8x8 mesh: packets of 5 flits, 8-flit buffers, one-cycle stages unless told.
#[test]
fn lone_packets_are_as_fast_as_in_booksim() {
    let usual = RouterParameters::default();
    let long_route = ["RC", "VA", "SA", "ST"].map(|stage| timed(stage, if stage == "RC" { 2 } else { 1 })).to_vec();
    for (router, flits, first, step) in [
        (usual.clone(), 5, 11, 5),
        (RouterParameters { lookahead: true, ..usual.clone() }, 5, 10, 4),
        (RouterParameters { speculative: true, ..usual.clone() }, 5, 10, 4),
        (RouterParameters { pipeline: long_route, ..usual.clone() }, 5, 12, 6),
        (RouterParameters { buffer_flits: 2, ..usual.clone() }, 5, 17, 5),
        (RouterParameters { buffer_flits: 4, credit_delay: 2, ..usual.clone() }, 5, 14, 5),
        (usual.clone(), 1, 7, 5),
    ] {
        let expected: Vec<u64> = (0..14).map(|hop| first + step * hop).collect();
        assert_eq!(by_hops(&router, Link::default(), flits), expected, "{router:?}");
    }
    // Torus, channels of latency 2: 5-flit packets with 2-flit buffers take 10 cycles more, those with 4 flits and a credit
    // delay of 2 take 5, wherever a channel between routers is crossed.
    let slow = Link { latency: 2, period: 1 };
    let plain = by_hops(&usual, slow, 5);
    for (router, more) in [
        (RouterParameters { buffer_flits: 2, ..usual.clone() }, 10),
        (RouterParameters { buffer_flits: 4, credit_delay: 2, ..usual.clone() }, 5),
    ] {
        let stalled = by_hops(&router, slow, 5);
        assert!(stalled[1..].iter().zip(&plain[1..]).all(|(stalled, plain)| stalled - plain == more), "{stalled:?} {plain:?}");
    }
}

/// A flit every `period` cycles: the tail leaves (M - 1) period after the head, and at the last router catches up by the two
/// cycles of RC and VA, which only the head pays. Store-and-forward pays for the length at every router.
#[test]
fn slow_channels_and_stored_packets_pay_for_their_length() {
    let slow = Link { latency: 1, period: 3 };
    let usual = RouterParameters::default();
    let head = by_hops(&usual, slow, 1);
    let whole = by_hops(&usual, slow, 5);
    // Over one router no slow channel is crossed.
    assert_eq!(whole[0] - head[0], 4);
    assert!(whole[1..].iter().zip(&head[1..]).all(|(whole, head)| whole - head == 4 * 3 - 2));
    let stored = RouterParameters { switching: Switching::StoreAndForward, ..usual };
    let whole = by_hops(&stored, Link::default(), 5);
    assert!(
        whole
            .iter()
            .zip(by_hops(&stored, Link::default(), 1))
            .enumerate()
            .all(|(index, (whole, head))| whole - head == 4 * (index as u64 + 2))
    );
}

/// T = 1 + L_inj + R P + sum of L + L_ej + (M - 1), over the mean number of routers 1 + mean distance.
#[test]
fn zero_load_latency_follows_the_formula() {
    for (name, wrap) in [("mesh", false), ("torus", true)] {
        for include_self in [false, true] {
            let mut setup = Setup::new((name, "dimensions = [8, 8]"), "dimension-order");
            (setup.include_self, setup.flits) = (include_self, 5);
            setup.channels.channel_latency = PerDimension::All(if wrap { 2 } else { 1 });
            let found = zero_load(&setup.scenario()).unwrap();
            let per_dimension = if wrap { 2.0 } else { 63.0 / 24.0 };
            let distance = 2.0 * per_dimension * if include_self { 1.0 } else { 64.0 / 63.0 };
            assert_close(found.hops, 1.0 + distance);
            let latency = if wrap { 2.0 } else { 1.0 };
            assert_close(found.packet_latency, 1.0 + 1.0 + 4.0 * found.hops + latency * distance + 1.0 + 4.0);
            assert!(found.exact && (found.share - 1.0).abs() < 1e-9);
        }
    }
}

/// (4,4,3) fat tree, RC/VSA/ST, 5 flits, 4-flit buffers: S = 3 over 4.429 routers and 2 L channels, and one cycle of stall that
/// a buffer shorter than the credit loop of 5 costs.
#[test]
fn fat_trees_wait_for_credits_of_short_buffers() {
    let mut setup = Setup::new(("fat-tree", "up = 4\ndown = 4\nlevels = 3"), "nca");
    setup.flits = 5;
    setup.router.pipeline = ["RC", "VSA", "ST"].map(|stage| PipelineEntry::Stage(stage.to_owned())).to_vec();
    let level = 3.0 * 64.0 / 63.0 - 1.0 / 3.0;
    let formula = |router_cycles: f64| router_cycles * (2.0 * level - 1.0) + 2.0 * level + 4.0;
    for policy in ["up_port = \"random\"", "up_port = \"d-mod-k\"", "up_port = \"straight\""] {
        setup.routing.1 = policy;
        setup.router.buffer_flits = 8;
        assert_close(zero_load(&setup.scenario()).unwrap().packet_latency, formula(3.0) + 1.0);
        setup.router.buffer_flits = 4;
        assert_close(zero_load(&setup.scenario()).unwrap().packet_latency, formula(3.0) + 2.0);
    }
}

/// Each packet pays for the channels of its own path, in their order. With buffers of 4 flits a channel of latency 3 has a credit loop of 1
/// + 2 (3 + 1) = 9 cycles, so of 8 flits the last four follow 9 cycles after the first four, 5 later than in a stream; a channel of latency
/// 1 has a loop of 5: 1 later. A packet that has crossed a longer loop has the gap already.
#[test]
fn unlike_channels_are_exact_even_where_packets_stall() {
    let mut setup = Setup::new(("mesh", "dimensions = [4, 4]"), "dimension-order");
    setup.channels.channel_latency = PerDimension::Each(vec![1, 3]);
    setup.flits = 8;
    let found = zero_load(&setup.scenario()).unwrap();
    let distance = 15.0 / 12.0 * 16.0 / 15.0;
    let streamed = 3.0 + 4.0 * (1.0 + 2.0 * distance) + distance * (1.0 + 3.0) + 7.0;
    assert_close(found.packet_latency, streamed);
    assert!(found.exact);
    setup.router.buffer_flits = 4;
    let found = zero_load(&setup.scenario()).unwrap();
    // 192 of the 240 pairs differ in the second dimension.
    assert_close(found.packet_latency, streamed + (192.0 * 5.0 + 48.0 * 1.0) / 240.0);
    assert!(found.exact);
}

/// The count of all ordered pairs that use a channel, by levels and direction.
fn all_pairs_range(scenario: &Scenario, up: bool, level_names: &[u32]) -> (f64, f64) {
    let loads = channel_loads(scenario).unwrap();
    let network = &scenario.network;
    let level = network.labels().router("level").unwrap();
    let pairs = f64::from(network.terminal_count() - 1);
    let of = |channel: ChannelId| match (network.source(channel), network.destination(channel)) {
        (Endpoint::Router(from, _), Endpoint::Router(to, _)) => (level[from.index()], level[to.index()]),
        _ => (0, 0),
    };
    let chosen = network.router_channels().filter(|&channel| {
        let (from, to) = of(channel);
        (from < to) == up && level_names.contains(&from.min(to))
    });
    chosen.map(|channel| loads.load[channel.index()] * pairs).fold((f64::MAX, 0.0), |(low, high), load| (load.min(low), load.max(high)))
}

/// All-pairs loads of the (4,4,3) tree: 60 on the channels above the leaves, 48 above level 2, both ways, whatever the policy.
#[test]
fn fat_tree_policies_load_all_channels_evenly() {
    for policy in ["random", "d-mod-k", "s-mod-k", "straight", "adaptive"] {
        let mut setup = Setup::new(("fat-tree", "up = 4\ndown = 4\nlevels = 3"), "nca");
        let parameters: &'static str = Box::leak(format!("up_port = \"{policy}\"").into_boxed_str());
        setup.routing.1 = parameters;
        let scenario = setup.scenario();
        for (levels, expected) in [([1], 60.0), ([2], 48.0)] {
            for up in [true, false] {
                let (low, high) = all_pairs_range(&scenario, up, &levels);
                assert_close(low, expected);
                assert_close(high, expected);
            }
        }
        let loads = channel_loads(&scenario).unwrap();
        // Each terminal sends and receives one flit per cycle: the terminals' own channels are the bottleneck.
        assert_close(loads.ideal_throughput(&scenario.network).unwrap(), 1.0);
    }
}

fn total_load(network: &Network, load: &[f64]) -> f64 {
    network.router_channels().map(|channel| load[channel.index()]).sum()
}

/// Uniform traffic with itself: k/4 on the busiest channels of a k-ary mesh (even k), k/8 on all channels of a torus; and the sum
/// of all loads is terminals times mean distance.
#[test]
fn grids_under_uniform_traffic_have_the_textbook_loads() {
    let mut setup = Setup::new(("mesh", "dimensions = [8, 8]"), "dimension-order");
    setup.include_self = true;
    let scenario = setup.scenario();
    let loads = channel_loads(&scenario).unwrap();
    assert_close(loads.bottleneck(&scenario.network).unwrap().1, 2.0);
    assert_close(loads.ideal_throughput(&scenario.network).unwrap(), 0.5);
    assert_close(total_load(&scenario.network, &loads.load), 64.0 * 5.25);
    setup.topology.0 = "torus";
    let scenario = setup.scenario();
    let loads = channel_loads(&scenario).unwrap();
    assert!(scenario.network.router_channels().all(|channel| (loads.load[channel.index()] - 1.0).abs() < 1e-9));
    setup.channels.channel_period = PerDimension::All(2);
    let scenario = setup.scenario();
    assert_close(channel_loads(&scenario).unwrap().ideal_throughput(&scenario.network).unwrap(), 0.5);
}

/// Tornado on a ring of k: every packet goes ceil(k/2) - 1 hops the same way.
#[test]
fn tornado_loads_one_direction_of_a_ring() {
    let mut setup = Setup::new(("torus", "dimensions = [8]"), "dimension-order");
    setup.pattern = ("tornado", "");
    let scenario = setup.scenario();
    let loads = channel_loads(&scenario).unwrap();
    assert_close(loads.ideal_throughput(&scenario.network).unwrap(), 1.0 / 3.0);
    assert_close(total_load(&scenario.network, &loads.load), 8.0 * 3.0);
}

/// Replies retrace the pattern: to a hot terminal go requests, from it replies of their own length.
#[test]
fn replies_load_the_way_back() {
    let mut setup = Setup::new(("mesh", "dimensions = [5]"), "dimension-order");
    setup.pattern = ("hotspot", "terminals = [0]");
    setup.flits = 2;
    let mut scenario = setup.scenario();
    let sizes = PacketSizes::fixed(6).expect("a length");
    scenario.classes[0].reply = Some(Reply { sizes, delay: 0, virtual_channels: VirtualChannels { begin: 2, end: 4 } });
    let loads = channel_loads(&scenario).unwrap();
    let network = &scenario.network;
    // Four others send one flit per cycle each, so half a packet, and each packet is answered by 6 flits.
    let hot = kasuri_network::id::TerminalId(0);
    assert_close(loads.load[network.ejection_channel(hot).index()], 4.0);
    assert_close(loads.load[network.injection_channel(hot).index()], 4.0 * 0.5 * 6.0);
    assert_close(total_load(network, &loads.load), (1.0 + 2.0 + 3.0 + 4.0) * (1.0 + 3.0));
}

/// 32^3 terminals are too many pairs: the mean distance of the sample is that of all, and no bottleneck is claimed.
#[test]
fn large_networks_are_sampled_and_say_so() {
    let mut setup = Setup::new(("fat-tree", "up = 32\ndown = 32\nlevels = 3"), "nca");
    setup.include_self = true;
    let scenario = setup.scenario();
    let found = zero_load(&scenario).unwrap();
    assert!(found.share < 0.1);
    // P(L <= l) = q^l / q^r.
    let level = 3.0 - 1.0 / 32.0 - 1.0 / 1024.0;
    assert!((found.hops - (2.0 * level - 1.0)).abs() < 1e-3, "{found:?}");
    setup.pattern = ("tornado", "");
    let permutation = setup.scenario();
    assert!((zero_load(&permutation).unwrap().hops - 5.0).abs() < 1e-9);
    let loads = channel_loads(&scenario).unwrap();
    assert_eq!(loads.ideal_throughput(&scenario.network), None);
}

/// What formulas say of a setup at a load.
fn formulas_at(setup: &Setup, load: f64) -> Formulas {
    let mut scenario = setup.scenario();
    scenario.classes[0].load = load;
    formulas(&scenario, &channel_loads(&scenario).unwrap()).unwrap()
}

/// Mesh of 8 x 8: the middle channels of a row carry k/4 N/(N-1) = 128/63 at load 1, and 224 channels carry 64 terminals' flits
/// over 16/3 channels each. Full mesh: every pair has its channel, the terminals are the bound.
#[test]
fn bounds_follow_from_counting_channels() {
    let mesh = formulas_at(&Setup::new(("mesh", "dimensions = [8, 8]"), "dimension-order"), 0.1);
    assert_close(mesh.static_throughput.unwrap(), 63.0 / 128.0);
    assert_close(mesh.ideal_throughput.unwrap(), 224.0 / (64.0 * 16.0 / 3.0));
    assert_close(mesh.bisection_bandwidth.unwrap(), 16.0);
    let full = formulas_at(&Setup::new(("full-mesh", "routers = 8"), "minimal"), 0.1);
    assert_close(full.static_throughput.unwrap(), 1.0);
    assert_close(full.ideal_throughput.unwrap(), 1.0);
}

/// No routing beats the bound for all routings.
#[test]
fn the_bound_of_a_routing_is_below_that_of_all() {
    for (topology, routing) in [
        (("mesh", "dimensions = [4, 4, 2]"), "dimension-order"),
        (("torus", "dimensions = [5, 4]"), "dimension-order"),
        (("fat-tree", "up = 2\ndown = 3\nlevels = 3"), "nca"),
        (("butterfly", "radix = 2\nstages = 3"), "destination-tag"),
    ] {
        for pattern in ["uniform", "neighbor"] {
            let found = formulas_at(&Setup { pattern: (pattern, ""), ..Setup::new(topology, routing) }, 0.1);
            let (fixed, ideal) = (found.static_throughput.unwrap(), found.ideal_throughput.unwrap());
            assert!(fixed <= ideal * (1.0 + 1e-9) && ideal <= 1.0 + 1e-9, "{topology:?} {pattern}: {fixed} {ideal}");
        }
    }
}

/// Two terminals send to each other: nothing meets but in the source queues, and these are M/D/1 with a service of 5 cycles, so a
/// packet waits 5 load / (2 (1 - load)).
#[test]
fn a_source_queue_waits_as_its_formula_says() {
    let setup = Setup { flits: 5, ..Setup::new(("mesh", "dimensions = [2]"), "dimension-order") };
    for load in [0.1, 0.5, 0.9] {
        let found = formulas_at(&setup, load);
        assert_close(found.packet_latency.unwrap() - found.zero_load_latency, 5.0 * load / (2.0 * (1.0 - load)));
    }
    assert_eq!(formulas_at(&setup, 1.0).packet_latency, None);
}

#[test]
fn latency_grows_from_zero_load_to_saturation() {
    let setup = Setup { flits: 5, ..Setup::new(("torus", "dimensions = [6, 6]"), "dimension-order") };
    let at = |load: f64| formulas_at(&setup, load);
    let saturation = at(0.1).saturation_load.unwrap();
    assert!(saturation < at(0.1).static_throughput.unwrap() / 0.95);
    let mut last = at(0.1).zero_load_latency;
    for step in 1..=20 {
        let found = at(saturation * f64::from(step) / 20.0 * (1.0 - 1e-9));
        let latency = found.packet_latency.unwrap();
        assert!(latency > last && latency <= 3.0 * found.zero_load_latency * (1.0 + 1e-6), "{latency}");
        last = latency;
    }
}

/// Routers of P cycles that predict.
fn predicting(setup: Setup, predictor: &str, stages: u32) -> Setup {
    let router = RouterParameters {
        pipeline: vec![timed("RC", stages - 2), timed("VSA", 1), timed("ST", 1)],
        predictor: predictor.to_owned(),
        ..setup.router.clone()
    };
    Setup { router, flits: 5, ..setup }
}

/// Levels at which packets turn, on average, and the probability of the top: uniform traffic to others in a (q, q, r) tree.
fn turn(q: f64, r: f64) -> (f64, f64) {
    let terminals = q.powf(r);
    (r * terminals / (terminals - 1.0) - 1.0 / (q - 1.0), (q - 1.0) * q.powf(r - 1.0) / (terminals - 1.0))
}

/// Of all moves up each is a hit, of those down one in q, of the turns at the top one in q - 1 (`prediction.md` of the documentation);
/// a hit saves P - 1 cycles.
#[test]
fn hit_rates_and_zero_load_latency_on_trees_follow_the_closed_form() {
    for (keys, q, r) in
        [("up = 4\ndown = 4\nlevels = 2", 4.0, 2.0), ("up = 4\ndown = 4\nlevels = 3", 4.0, 3.0), ("up = 3\ndown = 3\nlevels = 4", 3.0, 4.0)]
    {
        let (height, top) = turn(q, r);
        let routers = 2.0 * height - 1.0;
        let straight = (height - 1.0) * (1.0 + 1.0 / q) + top / (q - 1.0);
        let back = (height - 1.0) * (1.0 + 1.0 / q);
        for (predictor, fold, hits) in [
            ("static-straight", None, straight),
            ("static-straight", Some(Fold::Next), straight),
            ("static-straight", Some(Fold::Back), back),
            ("up-priority", None, height - 1.0),
            ("oracle", None, routers),
        ] {
            for stages in [3, 7] {
                let mut setup = predicting(Setup::new(("fat-tree", keys), "nca"), predictor, stages);
                setup.router.predictor_fold = fold;
                let scenario = setup.scenario();
                let rates = hit_rates(&scenario).unwrap().unwrap();
                assert_close(rates.hits, hits);
                assert_close(rates.routers, routers);
                let alone = zero_load(&scenario).unwrap();
                let p = f64::from(stages);
                assert_close(alone.packet_latency, p * routers - (p - 1.0) * hits + 2.0 * height + 4.0 + 1.0);
                assert!(alone.exact);
            }
        }
    }
}

/// Of E - 1 chances on the way up every one is a hit, of the one at the turn what the fold is worth, of E - 1 on the way down one in q. With
/// up-priority nothing is guessed from above and at the top.
#[test]
fn chances_and_hits_by_direction_follow_the_closed_form() {
    let (height, top) = turn(4.0, 3.0);
    for (predictor, fold, turns, downs) in [
        ("static-straight", Fold::Next, [1.0, top / 3.0], [height - 1.0, (height - 1.0) / 4.0]),
        ("static-straight", Fold::Back, [1.0, 0.0], [height - 1.0, (height - 1.0) / 4.0]),
        ("up-priority", Fold::Next, [1.0 - top, 0.0], [0.0, 0.0]),
    ] {
        let mut setup = predicting(Setup::new(("fat-tree", "up = 4\ndown = 4\nlevels = 3"), "nca"), predictor, 3);
        setup.router.predictor_fold = (predictor == "static-straight").then_some(fold);
        let rates = hit_rates(&setup.scenario()).unwrap().unwrap();
        let sum = |way: usize, column: usize| rates.by_level.iter().map(|ways| ways[way][column]).sum::<f64>();
        for (way, expected) in [[height - 1.0; 2], turns, downs].into_iter().enumerate() {
            assert_close(sum(way, 0), expected[0]);
            assert_close(sum(way, 1), expected[1]);
        }
        // At the top nothing goes up, and at the leaves every packet goes up or turns.
        assert_eq!(rates.by_level[2][0], [0.0, 0.0]);
        assert_close(rates.by_level[0][0][0] + rates.by_level[0][1][0], 1.0);
    }
    let mesh = predicting(Setup::new(("mesh", "dimensions = [4]"), "dimension-order"), "static-xy", 3).scenario();
    assert!(hit_rates(&mesh).unwrap().unwrap().by_level.is_empty());
}

/// By level and direction: every packet that comes from below and has to go further up is a hit, whatever its port.
#[test]
fn up_priority_hits_by_level_are_the_packets_that_go_up() {
    let scenario = predicting(Setup::new(("fat-tree", "up = 4\ndown = 4\nlevels = 3"), "nca"), "up-priority", 3).scenario();
    let rates = hit_rates(&scenario).unwrap().unwrap();
    let network = &scenario.network;
    let level = network.labels().router("level").unwrap();
    let mut by_level = [[0.0; 3]; 4];
    for (channel, counts) in rates.by_channel.iter().enumerate() {
        let Endpoint::Router(router, port) = network.destination(ChannelId(channel as u32)) else { continue };
        // From below: by a down port.
        if port < 4 {
            by_level[level[router.index()] as usize].iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    // 48 of 63 others lie beyond the second level, 60 beyond the first.
    for (level, expected) in [(1, [1.0, 1.0, 60.0 / 63.0]), (2, [60.0 / 63.0, 60.0 / 63.0, 48.0 / 63.0]), (3, [48.0 / 63.0, 0.0, 0.0])] {
        by_level[level].iter().zip(expected).for_each(|(&found, expected)| assert_close(found, expected));
    }
}

/// Straight on in a ring of k routers with dimension-order routing, k odd: m hops with 1 <= m <= (k - 1) / 2, each equally likely in
/// each direction, pass m - 1 routers straight on.
#[test]
fn straight_hits_in_a_ring_are_the_routers_passed() {
    let scenario = predicting(Setup::new(("torus", "dimensions = [9]"), "dimension-order"), "static-straight", 3).scenario();
    let rates = hit_rates(&scenario).unwrap().unwrap();
    // Hops 1 to 4: 2.5 on average, with the routers at both ends 3.5 routers, of them 1.5 passed.
    assert_close(rates.routers, 3.5);
    assert_close(rates.hits, 1.5);
    assert_close(rates.attempts, 2.5);
}

/// A line of k routers, static-xy: the path with most destinations behind it. Of 4 routers, from the terminal at 0 and 1 up, at 2 and 3 down;
/// on the way on in a router with another behind it (equal shares go to the lower port: on), else out.
#[test]
fn static_xy_hits_on_a_line_are_counted_by_hand() {
    let scenario = predicting(Setup::new(("mesh", "dimensions = [4]"), "dimension-order"), "static-xy", 3).scenario();
    let rates = hit_rates(&scenario).unwrap().unwrap();
    // Hits of the 12 ordered pairs by router. At the source: all 3 from 0, 2 of 3 from 1, and the same from 3 and 2: 10. Passing router 1
    // upwards (2 of 3 pairs of sources and ends go on: 0 to 2, 0 to 3) and router 2 upwards (0 and 1 to 3 of 0, 1 to 2, 3): the guess at 1 is on: 2
    // hits; at 2 on and out are equal, the lower port is on (up): 2 hits, downwards likewise on. At the ends 3 and 0 the guess is out: 3 each.
    assert_close(rates.hits, (10.0 + 2.0 * (2.0 + 2.0 + 3.0)) / 12.0);
    assert_close(rates.attempts, rates.routers);
}

#[test]
fn predictors_without_a_closed_form_are_refused_by_name() {
    for (predictor, switching) in [
        ("latest-port", Switching::Wormhole),
        ("finite-context", Switching::Wormhole),
        ("sampled-pattern", Switching::Wormhole),
        ("static-straight", Switching::StoreAndForward),
    ] {
        let mut setup = predicting(Setup::new(("mesh", "dimensions = [4]"), "dimension-order"), predictor, 3);
        setup.router.switching = switching;
        let problem = zero_load(&setup.scenario()).unwrap_err().to_string();
        assert!(problem.starts_with(&format!("predictor `{predictor}`")), "{problem}");
        assert_eq!(hit_rates(&setup.scenario()).unwrap_err().to_string(), problem);
    }
    assert_eq!(hit_rates(&Setup::new(("mesh", "dimensions = [4]"), "dimension-order").scenario()), Ok(None));
}

/// Output-queued routers that cut through hold every flit for their latency. 16 flits leave their source in the cycles 0 to 15, the last one
/// arrives at the first router in 17 and can leave in 24; over a channel of period 3 the head leaves in 9 and the tail in 9 + 45 = 54, it
/// arrives in 56 and can leave the second router in 63; it is at its terminal in 65.
#[test]
fn the_tail_passes_the_last_output_queued_router_too() {
    let router = RouterParameters {
        architecture: Architecture::OutputQueued,
        switching: Switching::VirtualCutThrough,
        virtual_channels: 1,
        ..RouterParameters::default()
    };
    let link = |period| Link { latency: 1, period };
    let packet =
        |channels: &[Link]| lone_packet_latency(&LonePacket { channels, flits: 16, router: &router, pipeline: &Pipeline::of_latency(7) });
    assert_eq!(packet(&[link(1), link(3), link(1)]), 65);
    // Whichever channel is slow: 1 + 1 + 7, 1 + 1 + 7 and 1 + 1 cycles for the head, 45 for the other flits.
    for periods in [[3, 1, 1], [1, 1, 3]] {
        assert_eq!(packet(&periods.map(link)), 20 + 45);
    }
}
