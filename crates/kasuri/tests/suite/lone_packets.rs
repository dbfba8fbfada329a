//! One lone packet: the flit engine and the zero-load formula agree to the cycle.

use kasuri::engines::CyclesEngine;
use kasuri::input::KNOWN;
use kasuri::measure::{Completion, Fixed, Offer};
use kasuri_config::{Document, Until};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_flow::analysis::{AnalysisEngine, zero_load};
use kasuri_model::engine::Engine;
use kasuri_network::topology::Files;
use proptest::prelude::*;
use std::fmt::Write;

/// A permutation file with one pair: a single terminal sends.
struct OnePair(u32, u32);

impl Files for OnePair {
    fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
        Ok(format!("{} {}\n", self.0, self.1).into_bytes())
    }
}

const NETWORKS: [(&str, u32); 6] = [
    ("topology = \"mesh\"\ndimensions = [5, 3]\n[routing]\nalgorithm = \"dimension-order\"", 15),
    ("topology = \"torus\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"", 16),
    ("topology = \"fat-tree\"\nup = 2\ndown = 2\nlevels = 4\n[routing]\nalgorithm = \"nca\"\nup_port = \"random\"", 16),
    ("topology = \"fat-tree\"\nup = 3\ndown = 2\nlevels = 3\n[routing]\nalgorithm = \"nca\"\nup_port = \"adaptive\"", 8),
    ("topology = \"butterfly\"\nradix = 2\nstages = 4\n[routing]\nalgorithm = \"destination-tag\"", 16),
    ("topology = \"full-mesh\"\nrouters = 5\nconcentration = 2\n[routing]\nalgorithm = \"up-down\"", 10),
];

const PIPELINES: [&str; 5] = [
    "[\"RC\", \"VA\", \"SA\", \"ST\"]",
    "[\"RC\", \"VSA\", \"ST\"]",
    "[{ stage = \"RC\", cycles = 2 }, \"VA\", { stage = \"SA\", cycles = 3 }, { stage = \"ST\", cycles = 2 }]",
    "[{ stages = [\"RC\", \"VA\", \"SA\", \"ST\"], cycles = 1 }]",
    "[{ stages = [\"RC\", \"VA\"], cycles = 1 }, \"SA\", \"ST\"]",
];

fn check(channels: &str, network: usize, router: &str, flits: u32, pair: (u32, u32)) {
    let (shape, terminals) = NETWORKS[network];
    let text = format!(
        "[network]\n{channels}\n{shape}\n[router]\nvirtual_channels = 2\n{router}\n\
         [traffic]\npattern = \"permutation\"\npath = \"pair\"\nprocess = \"batch\"\nbatch_packets = 1\npacket_flits = {flits}\n"
    );
    let files = OnePair(pair.0 % terminals, pair.1 % terminals);
    let document = Document::parse("lone.toml", &text).unwrap();
    let study = document.study(&document.points().unwrap()[0], &files).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let outcome = FlitEngine.run(&study.scenario, &mut Completion::new(1_000_000, Until::Delivered)).unwrap();
    let expected = zero_load(&study.scenario).unwrap();
    assert_eq!(outcome.packet_latency.count, 1, "{text}");
    assert!(expected.exact, "{text}");
    let found = outcome.packet_latency.mean().unwrap();
    assert!((found - expected.packet_latency).abs() < 1e-6, "{found} cycles, not {}, for {pair:?} on\n{text}", expected.packet_latency);
    assert!((outcome.hops.mean().unwrap() - expected.hops).abs() < 1e-6, "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Wormhole switching with buffers shorter and longer than the packet and the credit loop, slow channels, long stages.
    #[test]
    fn wormhole_latencies_agree(
        network in 0..NETWORKS.len(),
        pipeline in 0..PIPELINES.len(),
        (latency, period, terminal_latency, terminal_period) in (0u32..4, 1u32..4, 0u32..3, 1u32..3),
        (buffer, credit_delay, flits) in (1u32..9, 0u32..3, 1u32..20),
        (speculative, lookahead) in (any::<bool>(), any::<bool>()),
        pair in (0u32..16, 0u32..16),
    ) {
        let channels = format!(
            "channel_latency = {latency}\nchannel_period = {period}\nterminal_channel_latency = {terminal_latency}\n\
             terminal_channel_period = {terminal_period}"
        );
        let router = format!(
            "pipeline = {}\nbuffer_flits = {buffer}\ncredit_delay = {credit_delay}\nspeculative = {speculative}\nlookahead = {lookahead}",
            PIPELINES[pipeline]
        );
        check(&channels, network, &router, flits, pair);
    }

    /// Kinds of switching that need room for the whole packet.
    #[test]
    fn packet_switching_latencies_agree(
        network in 0..NETWORKS.len(),
        store in any::<bool>(),
        (latency, period, buffer, flits) in (0u32..4, 1u32..4, 9u32..14, 1u32..9),
        pair in (0u32..16, 0u32..16),
    ) {
        let switching = if store { "store-and-forward" } else { "virtual-cut-through" };
        let channels = format!("channel_latency = {latency}\nchannel_period = {period}");
        check(&channels, network, &format!("switching = \"{switching}\"\nbuffer_flits = {buffer}"), flits, pair);
    }
}

/// Networks and routings with paths that depend on chance or on the state of routers, or that leave the shortest ones.
const ROUTED: [(&str, u32); 33] = [
    ("topology = \"torus\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"ugal\"", 16),
    ("topology = \"flattened-butterfly\"\ndimensions = [3, 3]\nconcentration = 2\n[routing]\nalgorithm = \"ugal\"\nthreshold = 3", 18),
    ("topology = \"flattened-butterfly\"\ndimensions = [4, 4]\nconcentration = 2\n[routing]\nalgorithm = \"ugal-ordered\"", 32),
    (
        "topology = \"flattened-butterfly\"\ndimensions = [4, 4]\nconcentration = 1\n[routing]\nalgorithm = \"ugal-ordered\"\nboth_orders = true",
        16,
    ),
    ("topology = \"dragonfly\"\nterminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2\n[routing]\nalgorithm = \"ugal\"", 72),
    (
        "topology = \"dragonfly\"\nterminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2\n[routing]\nalgorithm = \"dragonfly-phases\"\nadaptive = true",
        72,
    ),
    ("topology = \"slim-fly\"\norder = 4\n[routing]\nalgorithm = \"ugal\"", 32),
    ("topology = \"full-mesh\"\nrouters = 6\nconcentration = 2\n[routing]\nalgorithm = \"ugal\"", 12),
    ("topology = \"full-mesh\"\nrouters = 6\nconcentration = 2\n[routing]\nalgorithm = \"valiant\"", 12),
    ("topology = \"torus\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"valiant\"", 16),
    ("topology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"o1turn\"", 16),
    ("topology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"two-phase\"", 16),
    ("topology = \"torus\"\ndimensions = [5, 4]\n[routing]\nalgorithm = \"dimension-order\"\ntie = \"random\"", 20),
    ("topology = \"mlfm\"\ndegree = 3\n[routing]\nalgorithm = \"minimal\"", 36),
    ("topology = \"rdt\"\nside = 8\nranks = 1\n[routing]\nalgorithm = \"vector\"", 64),
    ("topology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"planar-adaptive\"", 16),
    ("topology = \"mesh\"\ndimensions = [4, 3]\n[routing]\nalgorithm = \"minimal-adaptive\"\nallow_deadlock = true", 12),
    ("topology = \"xgft\"\nm = [4, 3, 2]\nw = [1, 2, 2]\nparallel = [1, 2, 1]\n[routing]\nalgorithm = \"nca\"\nup_port = \"d-mod-k\"", 24),
    ("topology = \"xgft\"\nm = [2, 2, 2]\nw = [1, 1, 3]\n[routing]\nalgorithm = \"nca\"\nup_port = \"adaptive\"", 8),
    ("topology = \"leaf-spine\"\nleaves = 4\nspines = 2\ndown = 6\ntrunk = 2\n[routing]\nalgorithm = \"nca\"", 24),
    ("topology = \"rail-optimised\"\nnodes = 2\ngpus = 2\nunits = 2\nspines = 2\n[routing]\nalgorithm = \"minimal\"", 8),
    ("topology = \"rail-optimised\"\nnodes = 2\ngpus = 2\nunits = 2\nspines = 2\nhb = true\n[routing]\nalgorithm = \"minimal\"", 8),
    ("topology = \"rail-only\"\ndomains = 3\ngpus = 4\n[routing]\nalgorithm = \"minimal\"", 12),
    (
        "topology = \"dragonfly\"\np = 2\na = 4\nh = 2\ngroups = 5\nlocal = 2\n[routing]\nalgorithm = \"dragonfly-groups\"\nthrough = \"group\"",
        40,
    ),
    ("topology = \"dragonfly+\"\np = 2\nleaves = 2\nspines = 2\nh = 2\ngroups = 3\n[routing]\nalgorithm = \"minimal\"", 12),
    ("topology = \"hyperx\"\nS = [3, 3]\nK = [1, 2]\nT = 2\n[routing]\nalgorithm = \"minimal\"", 18),
    ("topology = \"twisted-torus\"\nshape = \"kk2k\"\nk = 2\n[routing]\nalgorithm = \"shortest-vector\"", 16),
    ("topology = \"cubes\"\ncube = 2\narrangement = [1, 1, 2]\nshape = \"twisted\"\n[routing]\nalgorithm = \"up-down\"", 16),
    ("topology = \"hxmesh\"\na = 3\nb = 2\nx = 2\ny = 2\n[routing]\nalgorithm = \"hxmesh-order\"", 24),
    ("topology = \"polarfly\"\nq = 3\nconcentration = 2\n[routing]\nalgorithm = \"minimal\"", 26),
    ("topology = \"polarstar-paley\"\nq = 2\npaley = 5\n[routing]\nalgorithm = \"minimal\"", 35),
    ("topology = \"jellyfish\"\nrouters = 10\ndegree = 3\nseed = 1\n[routing]\nalgorithm = \"minimal\"", 10),
    ("topology = \"xpander\"\ndegree = 4\nlift = 3\nseed = 1\n[routing]\nalgorithm = \"minimal\"", 15),
];

/// Cycles between two packets of a pair: longer than a packet and its credits are under way.
const PACKET_DISTANCE: u64 = 200;

/// The mean latency and hops of packets of one pair that are sent far apart from each other, with the standard errors of both, and the formula.
fn one_by_one(text: &str, pair: (u32, u32)) -> ([f64; 2], [f64; 2], kasuri_flow::analysis::ZeroLoad) {
    let document = Document::parse("lone.toml", text).unwrap();
    let study = document.study(&document.points().unwrap()[0], &OnePair(pair.0, pair.1)).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut controller = Fixed::new(Offer::of(&study.scenario), Some(0), 300 * PACKET_DISTANCE, 1_000_000);
    let outcome = FlitEngine.run(&study.scenario, &mut controller).unwrap();
    let of = |values: &kasuri_model::engine::Distribution| {
        let (count, mean) = (values.count as f64, values.mean().unwrap());
        let square: f64 = values.buckets.iter().map(|&(value, count)| (value as f64 - mean).powi(2) * count as f64).sum();
        (mean, (square / count / (count - 1.0)).sqrt())
    };
    let (latency, hops) = (of(&outcome.packet_latency), of(&outcome.hops));
    ([latency.0, hops.0], [latency.1, hops.1], zero_load(&study.scenario).unwrap())
}

/// The largest error of an approximate formula.
const APPROXIMATE: f64 = 0.15;

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the routing draws or asks of congestion, a lone packet finds every buffer empty: the formula is its mean. Where it calls
    /// itself exact, the mean of many such packets is within five standard errors (to the cycle, where nothing is left to chance).
    #[test]
    fn packets_one_by_one_take_the_cycles_of_the_formula_on_every_routing(
        routed in 0..ROUTED.len(),
        router in 0..ROUTERS.len(),
        (latency, terminal_latency, flits) in (1u32..4, 0u32..3, 1u32..9),
        pair in (0u32..72, 0u32..72),
    ) {
        let (shape, terminals) = ROUTED[routed];
        let pair = (pair.0 % terminals, pair.1 % terminals);
        let text = format!(
            "[network]\nchannel_latency = {latency}\nterminal_channel_latency = {terminal_latency}\n{shape}\n\
             [router]\nvirtual_channels = 12\nbuffer_flits = 16\n{}\n\
             [traffic]\npattern = \"permutation\"\npath = \"pair\"\nprocess = \"periodic\"\nload = {}\npacket_flits = {flits}\n",
            ROUTERS[router],
            f64::from(flits) / PACKET_DISTANCE as f64
        );
        let (found, errors, expected) = one_by_one(&text, pair);
        let off = (found[0] - expected.packet_latency).abs();
        if expected.exact {
            prop_assert!(off <= 1e-6 + 5.0 * errors[0], "{} cycles, not {}, on\n{text}", found[0], expected.packet_latency);
            prop_assert!((found[1] - expected.hops).abs() <= 1e-6 + 5.0 * errors[1], "{} routers, not {}, on\n{text}", found[1], expected.hops);
        } else {
            prop_assert!(off <= APPROXIMATE * found[0], "{} cycles, not about {}, on\n{text}", found[0], expected.packet_latency);
        }
    }
}

/// Routers with more than the plain ones have.
const ROUTERS: [&str; 11] = [
    "",
    "internal_speedup = 2.0",
    "internal_speedup = 3.0",
    "internal_speedup = 1.5",
    "internal_speedup = 2.0\npipeline = [{ stage = \"RC\", cycles = 2 }, \"VA\", \"SA\", { stage = \"ST\", cycles = 2 }]",
    "input_speedup = 2\noutput_speedup = 2",
    "output_buffer_flits = 4",
    "hold_switch = true",
    "priority = \"age\"",
    "long_stages = \"batched\"\npipeline = [{ stage = \"RC\", cycles = 3 }, \"VA\", \"SA\", { stage = \"ST\", cycles = 2 }]",
    "speculative = true\nlookahead = true",
];

/// A drawn network: an edge list, and the pair of terminals that sends.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) edges: String,
    pair: (u32, u32),
}

impl Files for Drawn {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let text = if path == "network" { self.edges.clone() } else { format!("{} {}\n", self.pair.0, self.pair.1) };
        Ok(text.into_bytes())
    }
}

/// A link of a drawn network: latency and period.
type Speed = (u32, u32);

fn speed() -> impl Strategy<Value = Speed> {
    (0u32..6, prop_oneof![Just(1u32), 1u32..5])
}

/// Connected networks of up to 7 routers with links of different speed: a tree and some more links. One pair of terminals, perhaps at one
/// router.
pub(crate) fn drawn_network() -> impl Strategy<Value = Drawn> {
    let tree = prop::collection::vec((any::<prop::sample::Index>(), speed()), 1..7);
    let more = prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), speed()), 0..4);
    let ends = prop::collection::vec((any::<prop::sample::Index>(), speed()), 2..5);
    let pair = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    (tree, more, ends, pair).prop_map(|(tree, more, ends, pair)| {
        let routers = tree.len() + 1;
        let mut edges = String::new();
        let mut link = |one: String, other: String, (latency, period): Speed| {
            writeln!(edges, "{one} {other} latency={latency} period={period}").unwrap();
        };
        let router = |number: usize| format!("router {number}");
        for (number, (parent, speed)) in tree.iter().enumerate() {
            link(router(number + 1), router(parent.index(number + 1)), *speed);
        }
        for (one, other, speed) in more.iter().filter(|(one, other, _)| one.index(routers) != other.index(routers)) {
            link(router(one.index(routers)), router(other.index(routers)), *speed);
        }
        for (number, (at, speed)) in ends.iter().enumerate() {
            link(format!("terminal {number}"), router(at.index(routers)), *speed);
        }
        Drawn { edges, pair: (pair.0.index(ends.len()) as u32, pair.1.index(ends.len()) as u32) }
    })
}

/// Routers of every architecture and kind of switching, and packets that they can carry.
fn drawn_router() -> impl Strategy<Value = (String, u32)> {
    let input_queued = (
        prop_oneof![Just("input-queued"), Just("virtual-output-queued"), Just("crosspoint")],
        prop_oneof![Just("wormhole"), Just("virtual-cut-through"), Just("store-and-forward")],
        (0..PIPELINES.len(), 1u32..12, 0u32..4, any::<bool>(), any::<bool>(), 1u32..30),
    )
        .prop_map(|(architecture, switching, (pipeline, buffer, credit_delay, speculative, lookahead, flits))| {
            // Other kinds of switching need room for the whole packet.
            let buffer = if switching == "wormhole" { buffer } else { buffer.max(flits) };
            let own = if architecture == "input-queued" {
                format!("pipeline = {}\nspeculative = {speculative}\nlookahead = {lookahead}\n", PIPELINES[pipeline])
            } else {
                String::new()
            };
            let text = format!(
                "architecture = \"{architecture}\"\nswitching = \"{switching}\"\nvirtual_channels = 2\nbuffer_flits = {buffer}\n\
                 credit_delay = {credit_delay}\n{own}"
            );
            (text, flits)
        });
    let output_queued =
        (prop_oneof![Just("virtual-cut-through"), Just("store-and-forward")], 0u32..9, 1u32..30).prop_map(|(switching, latency, flits)| {
            (format!("architecture = \"output-queued\"\nswitching = \"{switching}\"\nlatency = {latency}\n"), flits)
        });
    prop_oneof![3 => input_queued, 1 => output_queued]
}

/// Cases of the random networks: a sample, or the number in `PROPTEST_CASES`.
fn drawn_cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// One packet of the pair, as a file. The routing takes the lowest of equal ports, so there is one path.
fn drawn_study(network: &Drawn, router: &str, flits: u32, engine: &str) -> kasuri_config::Study {
    let text = format!(
        "{engine}[network]\ntopology = \"file\"\npath = \"network\"\n[routing]\nalgorithm = \"minimal\"\ntie = \"lowest\"\n\
         allow_deadlock = true\n[router]\n{router}\
         [traffic]\npattern = \"permutation\"\npath = \"pair\"\nprocess = \"batch\"\nbatch_packets = 1\npacket_flits = {flits}\n"
    );
    let document = Document::parse_for(*KNOWN, "lone.toml", &text).unwrap();
    document.study(&document.points().unwrap()[0], network).unwrap_or_else(|error| panic!("{error}\n{text}\n{}", network.edges))
}

proptest! {
    #![proptest_config(drawn_cases())]

    /// On networks with links of different speed a packet takes the time of its own path, to the cycle, in all routers of both simulators
    /// with cycles; formulas have the same time, or the row says that it is approximate.
    #[test]
    fn a_packet_on_a_drawn_network_takes_the_time_of_its_own_path(network in drawn_network(), (router, flits) in drawn_router()) {
        let study = drawn_study(&network, &router, flits, "");
        let text = format!("{flits} flits, {:?}\n{router}{}", network.pair, network.edges);
        let alone = zero_load(&study.scenario).unwrap();
        let row = AnalysisEngine.run(&study.scenario, &mut Completion::new(1_000_000, Until::Delivered)).unwrap();
        prop_assert_eq!(row.formulas.as_ref().unwrap().zero_load_latency, alone.packet_latency);
        let is_named = row.not_modelled.iter().any(|what| what.contains("approximate"));
        prop_assert_eq!(is_named, !alone.exact, "{}", text);
        let outcome = CyclesEngine.run(&study.scenario, &mut Completion::new(1_000_000, Until::Delivered)).unwrap();
        prop_assert_eq!(outcome.packet_latency.count, 1, "{}", text);
        let found = outcome.packet_latency.mean().unwrap();
        prop_assert!(!alone.exact || (found - alone.packet_latency).abs() < 1e-6, "{found} cycles, not {}, of {text}", alone.packet_latency);
        prop_assert!(alone.exact, "a path of few channels can be followed: {text}");
    }
}

proptest! {
    #![proptest_config(drawn_cases())]

    /// A packet as a flow has the same time, by each sharing, or the row says that its time is approximate.
    #[test]
    fn a_packet_as_a_flow_takes_the_time_of_its_own_path(network in drawn_network(), (router, flits) in drawn_router()) {
        let alone = zero_load(&drawn_study(&network, &router, flits, "").scenario).unwrap();
        for sharing in ["equal-share", "max-min", "arbitrated"] {
            let study = drawn_study(&network, &router, flits, &format!("engine = \"flow\"\nflow.sharing = \"{sharing}\"\n"));
            let outcome = FlowEngine.run(&study.scenario, &mut Completion::new(1_000_000, Until::Delivered)).unwrap();
            let found = outcome.packet_latency.mean().unwrap();
            let is_approximate = outcome.not_modelled.iter().any(|what| what.contains("approximate"));
            let text = format!("{sharing}, {flits} flits, {:?}\n{router}{}", network.pair, network.edges);
            prop_assert!(is_approximate || (found - alone.packet_latency).abs() < 1e-3, "{found} cycles, not {}, of {text}", alone.packet_latency);
        }
    }
}
