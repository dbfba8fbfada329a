//! Packets keep moving where nothing forbids it: batches on rings with dateline classes are always delivered, and with any routers,
//! channels and interfaces the clock advances and the network becomes empty.

use crate::flit_common::{Fixed, Setup};
use kasuri_config::{Document, Known, Preparation, Study};
use kasuri_flit::FlitEngine;
use kasuri_model::engine::{Command, Controller, Engine, Interval, Outcome, Status};
use kasuri_model::router::{AllocatorParameters, RouterParameters};
use kasuri_model::scenario::Scenario;
use kasuri_network::topology::NoFiles;
use proptest::prelude::*;
use proptest::test_runner::Config;

fn deliver(allocator: &str, iterations: u32, speculative: bool) {
    let allocator = AllocatorParameters::Detailed {
        name: allocator.to_owned(),
        iterations,
        arbiter: Default::default(),
        draw: Default::default(),
        turns: Default::default(),
    };
    let router = RouterParameters {
        virtual_channels: 2,
        buffer_flits: 2,
        speculative,
        vc_allocator: allocator.clone(),
        switch_allocator: allocator,
        ..RouterParameters::default()
    };
    for packet_flits in [1, 5] {
        for seed in 1..=4 {
            let setup =
                Setup { router: router.clone(), packet_flits, seed, paranoid: true, max_cycles: 1_000_000, ..Setup::torus(&[6, 6]) };
            let outcome = setup.batch(200).run(&mut Fixed::new(0, 1000));
            assert_eq!(outcome.status, Status::Completed, "{router:?}, {packet_flits} flits, seed {seed}");
        }
    }
}

/// A class has one virtual channel here, so that often only one head of several may take it, possibly the one served last, with the
/// greatest distance from the pointer.
#[test]
fn batches_on_a_torus_are_delivered_whatever_the_allocator() {
    deliver("islip", 1, false);
    deliver("islip", 2, false);
    deliver("separable-input-first", 1, false);
    deliver("separable-output-first", 1, false);
}

#[test]
fn batches_on_a_torus_are_delivered_with_speculative_bids() {
    deliver("islip", 1, true);
}

/// Creates packets for a number of cycles, then lets all of them arrive, in intervals of a few cycles each.
struct ThenEmpty {
    cycles: u64,
    interval: u64,
    intervals: u64,
    is_emptying: bool,
}

impl ThenEmpty {
    fn new(cycles: u64, interval: u64) -> Self {
        Self { cycles, interval, intervals: 0, is_emptying: false }
    }
}

impl Controller for ThenEmpty {
    fn interval_cycles(&mut self) -> u64 {
        self.interval
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        self.intervals += 1;
        assert!(self.intervals < interval.end_cycle / self.interval + 8, "intervals without cycles");
        match interval.end_cycle {
            _ if interval.completed => Command::End(Status::Completed),
            _ if self.is_emptying && interval.outstanding_packets == 0 => Command::End(Status::Converged),
            end if end >= self.cycles && !self.is_emptying => {
                self.is_emptying = true;
                Command::Empty
            }
            _ => Command::Continue,
        }
    }
}

/// Runs an experiment; `None` if it is none, one that the engine refuses, or one in which packets may wait for each other.
fn run(text: &str, controller: &mut dyn Controller) -> Option<Result<Outcome, String>> {
    let document = Document::parse("progress.toml", text).ok()?;
    let points = document.points().expect("one point");
    let allocators: Vec<&str> = kasuri_flit::ALLOCATORS.iter().map(|entry| entry.name).collect();
    let known = Known { allocators: &allocators, ..Known::default() };
    let study = Preparation::new(&document, &NoFiles, known).study(&points[0]).ok().filter(Study::promises_no_deadlock)?;
    let scenario = Scenario { paranoid: true, ..study.scenario };
    let prepared = FlitEngine.prepare(&scenario).ok()?;
    Some(prepared.run(controller).map_err(|error| error.to_string()))
}

/// A torus without datelines, with sources that never rest: after an intermission of new packets the packets inside arrive, or they
/// deadlock.
fn saturated_torus(dimensions: &str, router: &str, packet_flits: u32, seed: u32) -> (bool, Status) {
    let text = format!(
        "[network]\ntopology = 'torus'\ndimensions = {dimensions}\n[routing]\nalgorithm = 'dimension-order'\ndateline = false\n[router]\n\
         {router}\n[traffic]\npattern = 'uniform'\nload = 1.0\npacket_flits = {packet_flits}\n[measure]\nmax_cycles = 400000\nseed = {seed}\n"
    );
    let document = Document::parse("rings.toml", &text).expect("TOML");
    let points = document.points().expect("one point");
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&points[0]).expect("an experiment");
    let scenario = Scenario { paranoid: true, ..study.scenario };
    let is_safe = scenario.check_deadlock(u64::MAX).is_safe();
    (is_safe, FlitEngine.run(&scenario, &mut ThenEmpty::new(4000, 500)).expect("it runs").status)
}

/// Rings with bubbles never fill up, so that all packets arrive; without bubbles the same rings come to a standstill. The check says both.
#[test]
fn bubbles_keep_full_rings_moving() {
    for (dimensions, packet_flits) in [("[8]", 1), ("[4, 4]", 3), ("[2, 3, 4]", 2)] {
        for (switching, channels) in [("virtual-cut-through", 1), ("store-and-forward", 1), ("virtual-cut-through", 3)] {
            let router = |bubble: bool| {
                let buffer = 2 * packet_flits;
                format!("switching = '{switching}'\nvirtual_channels = {channels}\nbuffer_flits = {buffer}\nbubble = {bubble}")
            };
            for seed in 1..4 {
                let what = format!("{dimensions}, {packet_flits} flits, {switching}, {channels} virtual channels, seed {seed}");
                assert_eq!(saturated_torus(dimensions, &router(true), packet_flits, seed), (true, Status::Converged), "{what}");
            }
            assert!(!saturated_torus(dimensions, &router(false), packet_flits, 1).0);
        }
    }
    let plain = "switching = 'virtual-cut-through'\nvirtual_channels = 1\nbuffer_flits = 2\n";
    assert_eq!(saturated_torus("[8]", plain, 1, 1), (false, Status::Deadlock));
}

/// A virtual channel that is free only when all its credits are back holds one packet: a second one cannot enter although its buffer has
/// room, so four packets that each hold a channel of a ring wait for each other. The key excludes bubbles.
#[test]
fn bubbles_need_virtual_channels_that_hold_two_packets() {
    for switching in ["virtual-cut-through", "store-and-forward"] {
        for channels in [1, 3] {
            let text = format!(
                "[network]\ntopology = 'torus'\ndimensions = [8]\n[routing]\nalgorithm = 'dimension-order'\ndateline = false\n[router]\n\
                 virtual_channels = {channels}\nbuffer_flits = 11\nbubble = true\nswitching = '{switching}'\nvc_release = 'tail-credit'\n\
                 [traffic]\npattern = 'tornado'\nload = 1.0\npacket_flits = 5\n"
            );
            let document = Document::parse("test.toml", &text).unwrap();
            let error =
                Preparation::new(&document, &NoFiles, Known::default()).study(&document.points().unwrap()[0]).map(|_| ()).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("router.bubble") && said.contains("holds one packet at a time"), "{said}");
        }
    }
}

/// The texts of a list, one of them.
fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(texts)
}

/// A few optional lines of `[router]`.
fn lines(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(texts, 0..=3)
}

prop_compose! {
    fn machine()(
        network in one_of(&[
            "topology = 'mesh'\ndimensions = [4, 4]",
            "topology = 'torus'\ndimensions = [4, 4]",
        ]),
        latencies in (1u32..12, 0u32..4),
        periods in (1u32..12, 1u32..6),
    ) -> String {
        let ((latency, of_terminals), (period, terminal_period)) = (latencies, periods);
        format!(
            "[network]\n{network}\nchannel_latency = {latency}\nterminal_channel_latency = {of_terminals}\n\
             channel_period = {period}\nterminal_channel_period = {terminal_period}\n"
        )
    }
}

prop_compose! {
    fn router()(
        allocators in (0..kasuri_flit::ALLOCATORS.len(), 0..kasuri_flit::ALLOCATORS.len()),
        queues in (prop::sample::select(vec![2u32, 4, 6, 8]), 1u32..10),
        stages in one_of(&[
            "['RC', 'VA', 'SA', 'ST']",
            "['RC', 'VSA', 'ST']",
            "[{ stage = 'RC', cycles = 3 }, 'VA', 'SA', { stage = 'ST', cycles = 2 }]",
            "[{ stage = 'RC', cycles = 2 }, 'VSA', { stage = 'ST', cycles = 3 }]",
            "['RC', { stages = ['VA', 'SA'], cycles = 1 }, 'ST']",
        ]),
        switching in one_of(&[
            "wormhole", "wormhole", "virtual-cut-through", "store-and-forward",
            "wormhole'\nbuffer_policy = 'shared", "wormhole'\nbuffer_policy = 'limited",
            "wormhole'\nbuffer_policy = 'dynamic", "wormhole'\nbuffer_policy = 'shifting",
        ]),
        priority in one_of(&["none", "class", "age", "network-age", "local-age", "hop-count", "queue-length", "sequence"]),
        more in lines(&[
            "speculative = true",
            "speculative = true\nspeculation = 'together'",
            "lookahead = true",
            "lookahead = true\nlookahead_decides = 'on-departure'",
            "credit_delay = 3",
            "vc_release = 'tail-credit'",
            "vc_busy_when_full = true",
            "vc_prefer_empty = true",
            "bubble = true",
            "input_speedup = 2",
            "output_speedup = 2",
            "internal_speedup = 1.5",
            "internal_speedup = 2.0",
            "output_buffer_flits = 1",
            "output_buffer_flits = 3",
            "hold_switch = true",
            "long_stages = 'batched'",
            "class_queues = true",
            "architecture = 'virtual-output-queued'",
            "architecture = 'crosspoint'",
            "predictor = 'latest-port'",
            "predictor = 'latest-port'\non_miss = 'forward'",
        ]),
    ) -> String {
        let ((vc_allocator, switch_allocator), (channels, buffer_flits)) = (allocators, queues);
        let [vc_allocator, switch_allocator] = [vc_allocator, switch_allocator].map(|number| kasuri_flit::ALLOCATORS[number].name);
        // Not every router has every allocator: most have the usual ones.
        let usual = more.len() > 1;
        let allocators = if usual { String::new() } else { format!("vc_allocator = '{vc_allocator}'\nswitch_allocator = '{switch_allocator}'\n") };
        format!(
            "[router]\nvirtual_channels = {channels}\nbuffer_flits = {buffer_flits}\npipeline = {stages}\nswitching = '{switching}'\n\
             priority = '{priority}'\n{allocators}{}\n",
            more.join("\n")
        )
    }
}

proptest! {
    #![proptest_config(Config { cases: 160, max_global_rejects: 10_000, failure_persistence: None, ..Config::default() })]

    /// Few packets, so that a router waits for its channel without other events that could wake it. The network becomes empty long before
    /// the limit of cycles, and no interval is requested twice.
    #[test]
    fn open_traffic_arrives_whatever_routers_and_channels_are_made_of(
        machine in machine(),
        routing in one_of(&["dimension-order", "dimension-order", "minimal-adaptive", "o1turn", "planar-adaptive", "valiant", "minimal"]),
        router in router(),
        packet_flits in 1u32..6,
        load in one_of(&["0.001", "0.01"]),
        reply in one_of(&["", "", "reply = { packet_flits = 3 }\n", "reply = { packet_flits = 1, delay = 20 }\n"]),
        seed in 0u32..1000,
        interval in 1u64..3000,
    ) {
        // Few of the routers keep its escape path open, and hardly any packets meet.
        let allowed = if routing == "minimal-adaptive" { "allow_deadlock = true\n" } else { "" };
        let text = format!(
            "{machine}[routing]\nalgorithm = '{routing}'\n{allowed}{router}[traffic]\npattern = 'uniform'\nload = {load}\n\
             packet_flits = {packet_flits}\n{reply}[measure]\nmax_cycles = 60000\nseed = {seed}\n"
        );
        let outcome = run(&text, &mut ThenEmpty::new(3000, interval));
        prop_assume!(outcome.is_some());
        let outcome = outcome.unwrap().map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(outcome.status, Status::Converged, "{}", text);
    }

    /// The same with programs and interfaces that hold packets up, and with collectives: they are completed.
    #[test]
    fn closed_workloads_are_completed_whatever_routers_and_channels_are_made_of(
        machine in machine(),
        router in router(),
        workload in one_of(&[
            "[endpoint]\nmodel = 'dsm'\n[workload]\nprogram = 'matrix-vector'\nsize = 16\n",
            "[endpoint]\nmodel = 'dsm'\ncommand_flits = 1\ndata_flits = 3\nwindow = 1\n[workload]\nprogram = 'matrix-vector'\nsize = 16\n",
            "[workload]\ncollective = 'alltoall'\nschedule = 'shift'\nmessage_flits = 7\npacket_flits = 3\n",
            "[workload]\ncollective = 'barrier'\nmessage_flits = 1\nstart_skew_cycles = 500\njitter_cycles = 20\n",
        ]),
        interval in 1u64..3000,
    ) {
        let text = format!("{machine}[routing]\nalgorithm = 'dimension-order'\n{router}{workload}[measure]\nmax_cycles = 60000\n");
        let outcome = run(&text, &mut ThenEmpty::new(u64::MAX, interval));
        prop_assume!(outcome.is_some());
        let outcome = outcome.unwrap().map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(outcome.status, Status::Completed, "{}", text);
    }
}
