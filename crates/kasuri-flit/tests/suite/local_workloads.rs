//! Workloads whose terminals go on by themselves: windows of several cycles and tiles that ask nobody give the results of one dispatcher
//! that looks at all terminals in every cycle.

use crate::common::{Setup, ToTheEnd};
use kasuri_model::engine::{Engine, Outcome, Threads};
use kasuri_model::router::RouterParameters;
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::id::TerminalId;
use kasuri_network::routing::VirtualChannels;
use kasuri_network::topology::{ChannelParameters, PerDimension};
use kasuri_workload::collective::{COLLECTIVES, MessageSize, Parameters};
use kasuri_workload::units::Units;
use kasuri_workload::workload::Workload;
use kasuri_workload::workload::program::Program;
use kasuri_workload::workload::rounds::{Options, Rounds, Synchronisation};
use proptest::prelude::*;
use std::sync::Arc;

/// A collective with random starts and pauses; ranks run through the terminals in steps of `stride`.
#[derive(Clone, Debug)]
struct Exchange {
    number: usize,
    ranks: u32,
    stride: u32,
    flits: u64,
    packet_flits: u32,
    options: Options,
}

impl Exchange {
    fn rounds(&self, terminals: u32) -> Option<Rounds> {
        let entry = &COLLECTIVES[self.number % COLLECTIVES.len()];
        let ranks = self.ranks.min(terminals);
        let parameters = Parameters { ranks, root: 0, size: MessageSize::of_flits(self.flits) };
        let placement = (0..ranks).map(|rank| TerminalId(rank * self.stride % terminals)).collect();
        Rounds::new(entry.build(&parameters).ok()?, placement, &self.options).ok()
    }

    /// The same, with computations in the place of pauses: a program.
    fn program(&self, terminals: u32) -> Option<Program> {
        let rounds = Self { options: Options { start_skew_cycles: 0.0, jitter_cycles: 0.0, ..self.options }, ..self.clone() };
        let rounds = rounds.rounds(terminals)?;
        let placement: Vec<TerminalId> = (0..rounds.ranks()).map(|rank| rounds.terminal(rank)).collect();
        let units = Units { flit_bytes: Some(8), cycle_ns: Some(1.0) };
        Program::new(&rounds.description(8).ok()?, &placement, units).ok()
    }
}

fn scenario(setup: &Setup, workload: &Arc<dyn Workload>, packet_flits: u32, timeline: bool) -> Scenario {
    let channels = VirtualChannels { begin: 0, end: setup.router.virtual_channels as u16 };
    let workload = Some(ClosedWorkload::new(Arc::clone(workload), packet_flits, channels));
    Scenario { classes: Vec::new(), workload, timeline, ..setup.build() }
}

fn run(setup: &Setup, workload: &Arc<dyn Workload>, packet_flits: u32, timeline: bool) -> Outcome {
    let scenario = scenario(setup, workload, packet_flits, timeline);
    let mut prepared = kasuri_flit::FlitEngine.prepare(&scenario).unwrap();
    if setup.threads > 1 {
        prepared.use_threads(Threads::new(setup.threads)).unwrap();
    }
    let outcome = prepared.run(&mut ToTheEnd).unwrap();
    Outcome { timeline: Vec::new(), ..outcome }
}

fn exchanges() -> impl Strategy<Value = Exchange> {
    let synchronisation = prop_oneof![Just(None), Just(Some(Synchronisation::None)), Just(Some(Synchronisation::Receive))];
    let pause = || prop_oneof![Just(0.0), Just(7.5), Just(400.0)];
    let options = (synchronisation, pause(), pause(), 1u32..3).prop_map(|(synchronisation, start_skew_cycles, jitter_cycles, repeat)| {
        Options { synchronisation, start_skew_cycles, jitter_cycles, repeat }
    });
    (0..COLLECTIVES.len(), 2u32..17, prop_oneof![Just(1u32), Just(5), Just(7)], 1u64..60, prop_oneof![1u32..9, Just(16), Just(40)], options)
        .prop_map(|(number, ranks, stride, flits, packet_flits, options)| Exchange { number, ranks, stride, flits, packet_flits, options })
}

fn setups() -> impl Strategy<Value = Setup> {
    let network = prop_oneof![Just(Setup::mesh(&[4, 4])), Just(Setup::torus(&[4, 4])), Just(Setup::fat_tree(2, 4))];
    let latencies = prop_oneof![Just((1u32, 1u32)), Just((3, 2)), Just((9, 20))];
    let layouts = prop_oneof![Just((None, "auto")), Just((Some("plain"), "portable")), Just((Some("full"), "portable"))];
    (network, latencies, layouts, 2u32..9).prop_map(|(network, (latency, terminal), (layout, simd), buffer_flits)| {
        let channels =
            ChannelParameters { channel_latency: PerDimension::All(latency), terminal_channel_latency: terminal, ..Default::default() };
        let router = RouterParameters { virtual_channels: 2, buffer_flits, ..RouterParameters::default() };
        Setup { channels, router, layout, simd: simd.to_owned(), paranoid: true, ..network }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A timeline asks for the dispatcher; without one, each terminal goes on by itself.
    #[test]
    fn terminals_go_on_as_if_one_dispatcher_led_them(setup in setups(), exchange in exchanges(), as_program in any::<bool>()) {
        let workload: Option<Arc<dyn Workload>> = if as_program {
            exchange.program(16).map(|program| Arc::new(program) as _)
        } else {
            exchange.rounds(16).map(|rounds| Arc::new(rounds) as _)
        };
        let Some(workload) = workload else { return Ok(()) };
        prop_assert!(workload.is_local());
        let led = run(&setup, &workload, exchange.packet_flits, true);
        prop_assert!(led.completion_time.is_some());
        for (tiles, threads) in [(1, 1), (3, 1), (16, 1), (4, 2)] {
            let alone = run(&Setup { tiles, threads, ..setup.clone() }, &workload, exchange.packet_flits, false);
            prop_assert_eq!(&led, &alone, "{} tiles, {} threads", tiles, threads);
        }
    }
}

/// So many messages that nobody adds up their flits before the run.
#[test]
fn many_messages_end_in_the_same_cycle() {
    let options = Options { synchronisation: None, start_skew_cycles: 5.0, jitter_cycles: 0.0, repeat: 300 };
    let number = COLLECTIVES.iter().position(|entry| (entry.collective, entry.schedule) == ("alltoall", "pairwise")).unwrap();
    let exchange = Exchange { number, ranks: 16, stride: 5, flits: 2, packet_flits: 2, options };
    let workload: Arc<dyn Workload> = Arc::new(exchange.rounds(16).unwrap());
    assert!(workload.messages() > 1 << 16);
    let channels = ChannelParameters { channel_latency: PerDimension::All(6), ..Default::default() };
    let setup = Setup { channels, ..Setup::torus(&[4, 4]) };
    assert_eq!(run(&setup, &workload, 2, true), run(&Setup { tiles: 3, ..setup.clone() }, &workload, 2, false));
}

/// Ranks that go on together look at each other: nobody goes on by itself.
#[test]
fn a_barrier_is_not_local() {
    let options = Options { synchronisation: Some(Synchronisation::Barrier), start_skew_cycles: 0.0, jitter_cycles: 0.0, repeat: 1 };
    let number = COLLECTIVES.iter().position(|entry| (entry.collective, entry.schedule) == ("alltoall", "shift")).unwrap();
    let exchange = Exchange { number, ranks: 16, stride: 1, flits: 6, packet_flits: 3, options };
    assert!(!exchange.rounds(16).unwrap().is_local());
    let together: Arc<dyn Workload> = Arc::new(exchange.rounds(16).unwrap());
    let setup = Setup::mesh(&[4, 4]);
    assert_eq!(run(&setup, &together, 3, true), run(&Setup { tiles: 4, ..setup }, &together, 3, false));
}
