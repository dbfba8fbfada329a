//! One packet alone: the flit engine and the zero-load formula agree to the cycle.

use kasuri::measure::Completion;
use kasuri_flit::FlitEngine;
use kasuri_flow::analysis::zero_load;
use kasuri_model::config::{Document, Until};
use kasuri_model::engine::Engine;
use kasuri_model::topology::Files;
use proptest::prelude::*;

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
