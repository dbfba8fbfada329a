//! Batches on several threads: the same results, bit for bit, whatever their number.

use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Command, Controller, Engine, EngineError, Interval, Outcome, Status, Threads};
use kasuri_model::router::RouterParameters;
use kasuri_model::scenario::{Scenario, TrafficClass};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::rng::{Stream, Streams};
use kasuri_network::routing::{ROUTINGS, VirtualChannels};
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};
use kasuri_workload::traffic::PacketSizes;
use kasuri_workload::traffic::pattern::{PATTERNS, Pattern, PatternContext};
use kasuri_workload::traffic::process::PROCESSES;
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Keeps all intervals, and ends the run after so many.
struct Watched {
    cycles: u64,
    most: usize,
    intervals: Vec<Interval>,
}

impl Controller for Watched {
    fn interval_cycles(&mut self) -> u64 {
        self.cycles
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        self.intervals.push(interval.clone());
        match interval.completed {
            true => Command::End(Status::Completed),
            false if self.intervals.len() >= self.most => Command::End(Status::MaxCycles),
            false => Command::Continue,
        }
    }
}

fn table(text: &str) -> toml::Table {
    text.parse().expect("TOML")
}

fn network(name: &str, parameters: &str) -> Arc<Network> {
    let topology = TOPOLOGIES.iter().find(|entry| entry.name == name).expect("a topology");
    let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
    Arc::new((topology.parse)(table(parameters)).expect("parameters").build(&context).expect("a network"))
}

fn pattern(network: &Network, name: &str, parameters: &str) -> Arc<dyn Pattern> {
    let pattern = PATTERNS.iter().find(|entry| entry.name == name).expect("a pattern");
    let context = PatternContext { network, include_self: false, files: &NoFiles };
    (pattern.parse)(table(parameters)).expect("parameters").compile(&context).expect("a pattern that fits").into()
}

/// A batch of messages of each terminal.
fn batch(network: &Arc<Network>, routing: (&str, &str), pattern: Arc<dyn Pattern>, packets: u64, flits: u32, flow: &str) -> Scenario {
    let entry = ROUTINGS.iter().find(|entry| entry.name == routing.0).expect("a routing");
    let routing = (entry.parse)(table(routing.1)).expect("parameters").compile(network).expect("a routing that fits");
    let process = PROCESSES.iter().find(|entry| entry.name == "batch").expect("a process");
    let process = (process.parse)(table(&format!("batch_packets = {packets}"))).expect("parameters").compile(0.0).expect("packets");
    let router = RouterParameters { virtual_channels: 4, ..RouterParameters::default() };
    let class = TrafficClass {
        pattern,
        process: process.into(),
        packets_per_terminal: Some(packets),
        window: kasuri_workload::traffic::process::Window::default(),
        load: 0.0,
        sizes: PacketSizes::fixed(flits).expect("a length"),
        virtual_channels: VirtualChannels { begin: 0, end: 4 },
        priority: 0,
        joint: None,
        reply: None,
    };
    Scenario {
        network: Arc::clone(network),
        routing: routing.into(),
        pipeline: router.check().expect("a router"),
        router,
        classes: vec![class],
        workload: None,
        hosts: None,
        units: kasuri_workload::units::Units::default(),
        streams: Streams::new(7),
        max_cycles: u64::MAX,
        resend_after: None,
        failure: None,
        engine_options: table(flow),
        paranoid: false,
        timeline: false,
        endpoint: None,
        users: None,
    }
}

/// What a run on so many threads says, of itself and of its intervals.
fn run(scenario: &Scenario, threads: usize, cycles: u64, most: usize) -> (Result<Outcome, EngineError>, Vec<Interval>) {
    let mut watched = Watched { cycles, most, intervals: Vec::new() };
    let mut prepared = FlowEngine.prepare(scenario).expect("nothing is refused");
    prepared.use_threads(Threads::new(threads)).expect("threads are no question of size");
    let outcome = prepared.run(&mut watched);
    (outcome, watched.intervals)
}

/// Networks that are large enough for messages to be prepared, with routings that draw and that do not.
const NETWORKS: [(&str, &str, &str, &str); 4] = [
    ("fat-tree", "up = 21\ndown = 21\nlevels = 3", "nca", "up_port = \"d-mod-k\""),
    ("fat-tree", "up = 3\ndown = 21\nlevels = 3", "nca", "up_port = \"random\""),
    ("torus", "dimensions = [32, 32]\nconcentration = 9", "dimension-order", ""),
    ("full-mesh", "routers = 128\nconcentration = 65", "valiant", ""),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn threads_change_no_bit(
        number in 0..NETWORKS.len(),
        pattern_name in prop::sample::select(vec!["uniform", "bit-complement", "neighbor", "random-permutation"]),
        sharing in prop::sample::select(vec!["equal-share", "max-min"]),
        packets in 1..4u64,
        flits in 1..40u32,
        cycles in prop::sample::select(vec![13, 100, 1 << 40]),
        most in prop::sample::select(vec![1, 3, usize::MAX]),
    ) {
        // Max-min levels where all messages meet take minutes.
        let (number, packets) = if sharing == "max-min" { (0, packets.min(2)) } else { (number, packets) };
        let (topology, parameters, routing, keys) = NETWORKS[number];
        let network = network(topology, parameters);
        prop_assert!(network.terminal_count() >= 8192);
        let name = if network.terminal_count().is_power_of_two() || pattern_name != "bit-complement" { pattern_name } else { "uniform" };
        let scenario = batch(&network, (routing, keys), pattern(&network, name, ""), packets, flits, &format!("sharing = \"{sharing}\""));
        let alone = run(&scenario, 1, cycles, most);
        prop_assert!(alone.0.is_ok());
        for threads in [2, 3, 7] {
            prop_assert!(run(&scenario, threads, cycles, most) == alone, "{} threads", threads);
        }
    }
}

/// Sends to the next terminal, but for one terminal that breaks down or sends nothing.
#[derive(Debug)]
struct Broken {
    culprit: u32,
    panics: bool,
}

impl Pattern for Broken {
    fn destination(&self, source: TerminalId, _: &mut Stream) -> Option<TerminalId> {
        assert!(!self.panics || source.0 != self.culprit, "a defect at terminal {}", source.0);
        self.weights(source).first().map(|&(next, _)| next)
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        let sends = self.panics || source.0 != self.culprit;
        if sends { vec![(TerminalId((source.0 + 1) % 9261), 1.0)] } else { Vec::new() }
    }
}

fn broken(panics: bool) -> Scenario {
    let network = network("fat-tree", "up = 21\ndown = 21\nlevels = 3");
    batch(&network, ("nca", "up_port = \"d-mod-k\""), Arc::new(Broken { culprit: 5000, panics }), 2, 8, "")
}

#[test]
fn a_panic_beside_the_events_ends_the_run_with_what_it_says() {
    let scenario = broken(true);
    for threads in [2, 3] {
        let payload = catch_unwind(AssertUnwindSafe(|| run(&scenario, threads, 1 << 40, usize::MAX))).expect_err("the panic arrives");
        assert_eq!(payload.downcast_ref::<String>().expect("a text"), "a defect at terminal 5000");
    }
}

#[test]
fn terminals_that_send_nothing_are_asked_once() {
    let scenario = broken(false);
    let alone = run(&scenario, 1, 100, usize::MAX);
    assert_eq!(alone.0.as_ref().expect("a result").packet_latency.count, 2 * 9260);
    assert!(run(&scenario, 2, 100, usize::MAX) == alone);
}
