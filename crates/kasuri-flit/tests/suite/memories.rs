//! Hosts whose terminals share a memory: what a memory without bounds changes, what a slow one takes, and that tiles change nothing.

use crate::common::{Fixed, Setup, ToTheEnd};
use kasuri_model::engine::Outcome;
use kasuri_model::router::{RouterParameters, Switching};
use kasuri_model::scenario::Hosts;
use kasuri_network::topology::{ChannelParameters, PerDimension};
use proptest::prelude::*;

fn with(setup: &Setup, terminals: u32, memory_bandwidth: f64) -> Setup {
    Setup { hosts: Some(Hosts { terminals, memory_bandwidth }), paranoid: true, ..setup.clone() }
}

fn open(setup: &Setup) -> Outcome {
    setup.run(&mut Fixed::new(100, 300))
}

/// Without what goes on until the end of a window: with memories, windows have one cycle.
fn in_any_window(outcome: Outcome) -> Outcome {
    Outcome { cycles: 0, measured_cycles: 0, flit_hops: 0, ..outcome }
}

/// A terminal's injection and its ejection move a flit a cycle each at most.
#[test]
fn a_memory_that_takes_every_flit_at_once_changes_nothing() {
    let routers = [
        RouterParameters { virtual_channels: 2, buffer_flits: 3, ..RouterParameters::default() },
        RouterParameters { switching: Switching::VirtualCutThrough, virtual_channels: 2, buffer_flits: 8, ..RouterParameters::default() },
    ];
    let slow = ChannelParameters { channel_latency: PerDimension::Each(vec![1, 4]), terminal_channel_latency: 3, ..Default::default() };
    for setup in [Setup::mesh(&[4, 3]), Setup::torus(&[4, 4]), Setup::fat_tree(3, 2)] {
        for router in &routers {
            for load in [0.1, 0.9] {
                let setup = Setup { load, router: router.clone(), ..setup.clone() };
                assert_eq!(in_any_window(open(&with(&setup, 4, 8.0))), in_any_window(open(&setup)), "{setup:?}");
                let batch = |setup: Setup| in_any_window(setup.batch(20).run(&mut ToTheEnd));
                assert_eq!(batch(with(&setup, 3, 6.0)), batch(setup));
            }
        }
    }
    let setup = Setup { channels: slow, load: 0.5, ..Setup::mesh(&[4, 3]) };
    assert_eq!(in_any_window(open(&with(&setup, 1, 2.0))), in_any_window(open(&setup)));
}

/// A host of V terminals moves each flit that they send and each that they get: a flit for each of them takes 2 V / H cycles. They end together
/// because they take turns.
#[test]
fn the_time_of_a_batch_is_that_of_its_memory_and_is_shared_alike() {
    for (terminals, bandwidth) in [(4, 1.0), (4, 0.4), (2, 1.5), (4, 2.5), (8, 0.7)] {
        let star = Setup {
            topology: ("full-mesh", "routers = 8".to_owned()),
            routing: ("minimal", ""),
            pattern: ("bit-complement", ""),
            packet_flits: 8,
            ..Setup::mesh(&[2])
        };
        let outcome = with(&star, terminals, bandwidth).batch(100).run(&mut ToTheEnd);
        let (end, expected) = (outcome.completion_time.unwrap(), 2.0 * f64::from(terminals) * 800.0 / bandwidth);
        // A flit has arrived when its memory begins with it. The path through two routers, and the turns of one flit of every terminal.
        let slack = 40.0 + 2.0 * f64::from(terminals) / bandwidth;
        assert!(
            (expected - 1.0 / bandwidth - 1.0..=expected + slack).contains(&end),
            "{terminals} terminals, {bandwidth}: {end}, {expected}"
        );
        let first = *outcome.completion_cycles.iter().min().unwrap() as f64;
        assert!(end - first <= 2.0 * slack, "{terminals} terminals, {bandwidth}: {first} to {end}");
    }
}

/// What is offered beyond the memory's rate waits before it: half of it is sent and half received.
#[test]
fn open_traffic_saturates_at_the_rate_of_the_memory() {
    for bandwidth in [0.5, 1.0, 3.0] {
        let setup = Setup { load: 0.9, packet_flits: 4, ..Setup::fat_tree(4, 2) };
        let outcome = with(&setup, 4, bandwidth).run(&mut Fixed::new(4000, 4000));
        let accepted: u64 = outcome.accepted_flits.iter().sum();
        let rate = accepted as f64 / (16.0 * 4000.0);
        let expected = bandwidth / 8.0;
        assert!((rate - expected).abs() < 0.03 * expected, "{bandwidth}: {rate}, {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A host has one tile, and hosts know nothing of each other: tiles and threads change no bit, whatever the hosts and their memories.
    #[test]
    fn tiles_and_threads_change_nothing(
        terminals in 1u32..7, bandwidth in 0.2f64..6.0, load in 0.05f64..1.0, flits in 1u32..9, seed: u64, tiles in 2u32..9, threads in 1usize..4,
        topology in 0usize..3, full: bool,
    ) {
        let networks = [Setup::mesh(&[4, 3]), Setup::torus(&[3, 3]), Setup::fat_tree(3, 2)];
        let router = RouterParameters { virtual_channels: 2, buffer_flits: 4, ..RouterParameters::default() };
        let layout = if full { Some("full") } else { None };
        let base = Setup { load, packet_flits: flits, seed, router, layout, ..networks[topology].clone() };
        let setup = with(&base, terminals, bandwidth);
        let whole = open(&setup);
        prop_assert_eq!(&open(&Setup { tiles, threads, ..setup.clone() }), &whole);
        let ends = setup.clone().batch(5).run(&mut ToTheEnd);
        prop_assert_eq!(&Setup { tiles, threads, ..setup }.batch(5).run(&mut ToTheEnd), &ends);
    }

    /// A memory moves each flit that its host's terminals send and each that they get, no sooner than it can.
    #[test]
    fn no_batch_is_faster_than_its_memories(terminals in 1u32..5, bandwidth in 0.2f64..4.0, seed: u64) {
        let setup = Setup { packet_flits: 3, seed, ..Setup::fat_tree(3, 2) };
        let outcome = with(&setup, terminals, bandwidth).batch(10).run(&mut ToTheEnd);
        prop_assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), 9 * 30);
        let moved = |host: &[u64]| host.iter().sum::<u64>() + 30 * host.len() as u64;
        let most = outcome.accepted_flits.chunks(terminals as usize).map(moved).max().unwrap_or(0);
        let (end, least) = (outcome.completion_time.unwrap(), most as f64 / bandwidth);
        prop_assert!(end + 1.0 + 1.0 / bandwidth >= least, "{end} sooner than {least}");
    }
}
