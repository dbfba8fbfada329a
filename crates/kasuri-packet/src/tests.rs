//! Tests of the engine.

use crate::bounds::{bound, lone, lone_flow};
use crate::fluid::share;
use crate::{FlowTimes, Input, MAX_PATHS, Options, Outcome, Spray, simulate};
use kasuri_workload::ethernet::fabric::{Fabric, Tier};
use kasuri_workload::ethernet::matrix::{Begin, Connection, Matrix, Trigger, TriggerKind};
use proptest::prelude::*;

/// Leaves of four hosts and `spines` spines at 100 Gbit/s, links of 1 µs.
fn leaf_spine(leaves: u32, spines: u32) -> Fabric {
    let tier = Tier { rate_gbps: 100, link_latency_ns: 1000, switch_latency_ns: 0, down: 4, up: spines, bundle: 1 };
    Fabric { hosts: 4 * leaves, pod_hosts: 4 * leaves, tiers: vec![tier, Tier { down: leaves, up: 0, ..tier }] }
}

/// Four pods of two ToRs with two hosts, two aggregation switches with bundles of `bundle`, and cores of `top` Gbit/s.
fn fat_tree(bundle: u32, top: u32, latencies: [u64; 4]) -> Fabric {
    let tier = |rate_gbps: u32, level: usize, [down, up, bundle]: [u32; 3]| Tier {
        rate_gbps,
        link_latency_ns: latencies[level],
        switch_latency_ns: latencies[3] * level as u64,
        down,
        up,
        bundle,
    };
    let tiers = vec![tier(100, 0, [2, 2 * bundle, 1]), tier(100, 1, [2 * bundle, 2, bundle]), tier(top, 2, [4, 0, 1])];
    Fabric { hosts: 16, pod_hosts: 4, tiers }
}

/// Four leaves of four hosts and four spines; links between switches have a rate of their own.
fn uneven_leaf_spine(top: u32, latencies: [u64; 4]) -> Fabric {
    let tier = |rate_gbps: u32, level: usize, down: u32, up: u32| Tier {
        rate_gbps,
        link_latency_ns: latencies[level],
        switch_latency_ns: latencies[2 + level],
        down,
        up,
        bundle: 1,
    };
    Fabric { hosts: 16, pod_hosts: 16, tiers: vec![tier(100, 0, 4, 4), tier(top, 1, 4, 0)] }
}

/// Is nothing done before the bound?
fn keeps_bound(input: &Input<'_>, flows: &[FlowTimes]) -> Result<(), String> {
    let bound = bound(input);
    for (times, least) in flows.iter().zip(&bound.flows) {
        let least = least.map(|[_, received, finished]| (Some(received), Some(finished)));
        let (received, finished) = least.unwrap_or_default();
        if times.received < received || times.finished < finished {
            return Err(format!("{times:?} before {received:?} and {finished:?}"));
        }
    }
    let last = flows.iter().filter_map(|times| times.finished).max().unwrap_or(0);
    if last < bound.all_ps { Err(format!("all done at {last}, before {}", bound.all_ps)) } else { Ok(()) }
}

fn flow(source: u32, destination: u32, bytes: u64) -> Connection {
    Connection { source, destination, bytes, id: 1 + 100 * source + destination, begin: Begin::At(0), tells: None }
}

fn matrix(fabric: &Fabric, connections: Vec<Connection>, triggers: Vec<Trigger>) -> Matrix {
    Matrix { hosts: fabric.hosts, connections, triggers }
}

fn run(fabric: &Fabric, connections: Vec<Connection>, options: Options) -> Outcome {
    simulate(&Input { fabric, matrix: &matrix(fabric, connections, Vec::new()), options }).unwrap()
}

fn one_path() -> Options {
    Options { paths: 1, ..Options::default() }
}

#[test]
fn a_lone_flow_takes_as_long_as_links_and_latencies_say() {
    // 245 packets, the last of 3,080 bytes, 80 ps a byte, four queues, 1 µs a link; then an acknowledgement of 64 bytes.
    let outcome = run(&leaf_spine(4, 4), vec![flow(0, 13, 1_000_000)], one_path());
    let received = 4_000_000 + (247 * 4150 + 3080) * 80;
    let expected = FlowTimes { started: Some(0), received: Some(received), finished: Some(received + 4_000_000 + 4 * 64 * 80) };
    assert_eq!((outcome.flows[0], outcome.packets, outcome.acknowledgements), (expected, 245, 62));
}

#[test]
fn an_incast_below_one_tor_keeps_the_last_link_busy() {
    let fabric = leaf_spine(4, 4);
    let outcome = run(&fabric, vec![flow(0, 3, 100_000), flow(1, 3, 50_000), flow(2, 3, 7)], one_path());
    let wire: u64 = [100_000_u64, 50_000, 7].iter().map(|bytes| bytes + 64 * bytes.div_ceil(4086)).sum();
    let last = outcome.flows.iter().filter_map(|times| times.received).max();
    // The packet of 7 bytes has passed the last link when the first full ones come to it.
    assert_eq!(last, Some(2_000_000 + (4150 + wire - 71) * 80));
}

#[test]
fn flows_of_a_host_take_turns_packet_by_packet() {
    let fabric = leaf_spine(4, 1);
    let both = run(&fabric, vec![flow(0, 1, 40_860), flow(0, 2, 4086)], one_path());
    // The long flow has sent one packet and joined the line again when the short one begins, whose packet is the third to leave.
    assert_eq!(both.flows[1].received, Some(2_000_000 + 4 * 4150 * 80));
    assert_eq!(both.flows[0].received, Some(2_000_000 + 12 * 4150 * 80));
}

#[test]
fn triggers_start_flows_when_their_senders_know() {
    let fabric = leaf_spine(4, 1);
    let alone = lone_flow(&fabric, &one_path(), &flow(0, 1, 1)).1;
    let told = |source: u32, tells: u32| Connection { tells: Some(tells), ..flow(source, source + 1, 1) };
    let set_off = |source: u32, trigger: u32| Connection { begin: Begin::Trigger(trigger), ..flow(source, source + 1, 1) };
    let trigger = |id: u32, kind: TriggerKind, flows: &[u32]| Trigger { id, kind, flows: flows.to_vec() };
    let connections = vec![
        told(0, 0),
        Connection { tells: Some(1), ..set_off(4, 0) },
        Connection { tells: Some(1), ..set_off(8, 0) },
        set_off(12, 1),
        Connection { begin: Begin::Trigger(2), tells: Some(2), ..flow(0, 2, 1) },
        Connection { begin: Begin::At(7_000_000), tells: Some(2), ..flow(5, 6, 1) },
        set_off(9, 2),
        set_off(13, 2),
    ];
    let triggers = vec![
        trigger(1, TriggerKind::Oneshot, &[1, 2]),
        trigger(2, TriggerKind::Barrier(2), &[3]),
        trigger(3, TriggerKind::Multishot, &[4, 6, 7]),
    ];
    let matrix = matrix(&fabric, connections, triggers);
    let input = Input { fabric: &fabric, matrix: &matrix, options: one_path() };
    let started: Vec<Option<u64>> = simulate(&input).unwrap().flows.iter().map(|times| times.started).collect();
    let later = 7_000_000 + alone;
    assert_eq!(started, [Some(0), Some(alone), Some(alone), Some(2 * alone), Some(later), Some(7_000_000), Some(later + alone), None]);
    assert_eq!(lone(&input).iter().map(|times| times.map(|times| times[0])).collect::<Vec<_>>(), started);
}

#[test]
fn acknowledgements_go_before_data_and_take_ten_of_eleven_turns() {
    // Data of both directions below one ToR: every acknowledgement waits for at most the packet before it at each output.
    let fabric = leaf_spine(1, 1);
    let outcome = run(&fabric, vec![flow(0, 1, 4_086_000), flow(1, 0, 4_086_000)], one_path());
    let alone = lone_flow(&fabric, &one_path(), &flow(0, 1, 4_086_000));
    let acknowledgements = 64 * 80 * outcome.acknowledgements / 2;
    for times in &outcome.flows {
        assert!(times.received.unwrap() > alone.0 && times.received.unwrap() <= alone.0 + acknowledgements, "{times:?}");
        assert!(times.finished.unwrap() <= times.received.unwrap() + (alone.1 - alone.0) + 2 * 4150 * 80, "{times:?}");
    }
}

#[test]
fn slow_links_and_slow_interfaces_hold_flows_back() {
    let fabric = leaf_spine(2, 1);
    let flows = || vec![flow(0, 4, 408_600)];
    let fast = run(&fabric, flows(), one_path()).flows[0].received.unwrap();
    let slow = run(&fabric, flows(), Options { slow_links: 1, ..one_path() }).flows[0].received.unwrap();
    assert_eq!(fast, 4_000_000 + 103 * 4150 * 80);
    assert_eq!(slow, 4_000_000 + (2 + 4 * 101) * 4150 * 80);
    let interface = Options { interface_mbps: Some(50_000), ..one_path() };
    assert_eq!(run(&fabric, flows(), interface).flows[0].received, Some(4_000_000 + (2 * 99 + 4) * 4150 * 80));
    assert_eq!(lone_flow(&fabric, &interface, &flows()[0]).0, 4_000_000 + (2 * 99 + 4) * 4150 * 80);
}

/// What the links up of a ToR carry is shared evenly by turns, nearly by draws, and as balls in urns by hashed path numbers.
#[test]
fn sprayed_packets_spread_over_the_spines() {
    let fabric = leaf_spine(2, 4);
    let flows = || (0..4).map(|host| flow(host, host + 4, 4_086_000)).collect::<Vec<_>>();
    let last = |options: Options| {
        let last =
            |seed: u64| run(&fabric, flows(), Options { seed, ..options }).flows.iter().filter_map(|times| times.received).max().unwrap();
        (0..8).map(|seed| last(seed) as f64).sum::<f64>() / 8.0
    };
    let least = 4_000_000.0 + 1003.0 * 4150.0 * 80.0;
    let turns = last(Options { spray: Spray::RoundRobin, ..Options::default() }) / least;
    let drawn = last(Options { spray: Spray::Random, ..Options::default() }) / least;
    let hashed = last(Options::default()) / least;
    let one = last(one_path()) / least;
    assert!(turns < 1.05 && drawn < 1.1 && (1.05..1.5).contains(&hashed) && one > 1.5, "{turns} {drawn} {hashed} {one}");
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let fabric = leaf_spine(2, 1);
    let matrix = matrix(&fabric, vec![flow(0, 1, 1 << 40)], Vec::new());
    let refused = |fabric: &Fabric, options: Options| simulate(&Input { fabric, matrix: &matrix, options }).unwrap_err();
    assert!(refused(&leaf_spine(4, 1), one_path()).contains("the fabric has 16 hosts, the connection matrix 8"));
    assert!(refused(&fabric, Options { mtu: 64, ..one_path() }).contains("no room for payload"));
    assert!(refused(&fabric, Options { paths: 3, ..one_path() }).contains("no power of two"));
    assert!(refused(&fabric, Options { paths: 2 * MAX_PATHS, ..one_path() }).contains("no power of two"));
    assert!(refused(&fabric, Options { interface_mbps: Some(0), ..one_path() }).contains("never send"));
    assert!(refused(&fabric, Options { mtu: 65, ..one_path() }).contains("more than 2^32 packets"));
}

/// Without packets: alone, in an incast, and one behind the other by triggers, flows take as long as their packets do.
#[test]
fn fluid_flows_take_as_long_as_their_packets() {
    let fabric = leaf_spine(4, 2);
    let later = Connection { begin: Begin::Trigger(0), ..flow(3, 9, 5000) };
    let connections = vec![Connection { tells: Some(0), ..flow(0, 13, 1_000_000) }, later, flow(1, 2, 81_720), flow(3, 2, 81_720)];
    let triggers = vec![Trigger { id: 1, kind: TriggerKind::Oneshot, flows: vec![1] }];
    let matrix = matrix(&fabric, connections, triggers);
    for paths in [1, 64] {
        let input =
            Input { fabric: &fabric, matrix: &matrix, options: Options { paths, acknowledged_bytes: u64::MAX, ..Options::default() } };
        let packets = simulate(&input).unwrap().flows;
        let fluid = share(&input).unwrap();
        for index in [0, 1] {
            assert_eq!(fluid[index], packets[index], "{paths}");
        }
        let last = |times: &[FlowTimes]| times[2..].iter().filter_map(|times| times.received).max();
        assert_eq!(last(&fluid), last(&packets));
    }
}

fn any_spray() -> impl Strategy<Value = Spray> {
    prop_oneof![Just(Spray::Hash), Just(Spray::Random), Just(Spray::RoundRobin)]
}

proptest! {
    #[test]
    fn lone_flows_agree_with_the_formula(
        (source, away) in (0..16_u32, 1..16_u32),
        bytes in prop_oneof![1..20_u64, 1..400_000_u64],
        top in prop_oneof![Just(50_u32), Just(100), Just(200), Just(300)],
        latencies in prop::array::uniform4(1..3000_u64),
        (mtu, header, threshold) in (100..9000_u16, 1..90_u16, 1..100_000_u64),
        interface in prop_oneof![Just(None), (10_000..400_000_u32).prop_map(Some)],
    ) {
        let fabric = fat_tree(1, top, latencies);
        let options = Options { mtu, header, acknowledged_bytes: threshold, interface_mbps: interface, ..one_path() };
        let flow = flow(source, (source + away) % 16, bytes);
        let times = run(&fabric, vec![flow], options).flows[0];
        let (received, finished) = lone_flow(&fabric, &options, &flow);
        prop_assert_eq!((times.started, times.received), (Some(0), Some(received)));
        // The acknowledgement before the last may still be on its way, where an interface or a link back is slow and the last packet short.
        let late = times.finished.unwrap() - finished;
        let of_interface = if interface.is_some() { 800 } else { 0 };
        let slowest = fabric.picoseconds_per_byte(flow.source, flow.destination).into_iter().fold(of_interface, u64::max);
        let has_one = bytes + u64::from(header) * options.packets(bytes).0 < threshold;
        prop_assert!(late == 0 || !has_one && late <= u64::from(header) * slowest, "{late}");
    }

    /// No engine is done before the bound, and no flow before its own least time: in fabrics of two and three tiers with links of different
    /// rates and latencies, by any way of spraying, with last packets of any size, interfaces of their own rate, slow links and triggers.
    #[test]
    fn no_engine_is_done_before_the_bound(
        pairs in prop::collection::vec((0..16_u32, 1..16_u32, 1..20_000_u64, 0..9_000_000_u64), 1..12),
        (hot, tiers, top) in (any::<bool>(), 2..4_usize, prop::sample::select(vec![25_u32, 100, 400])),
        (mtu, interface) in (prop::sample::select(vec![300_u16, 1500, 4150]), prop::option::of(20_000..200_000_u32)),
        (bundle, slow_links, is_triggered) in (1..3_u32, 0..3_u32, any::<bool>()),
        latencies in prop::array::uniform4(0..2000_u64),
        spray in any_spray(),
        (paths, seed) in (0..7_u32, 0..100_u64),
    ) {
        let fabric = if tiers == 3 { fat_tree(bundle, top, latencies) } else { uneven_leaf_spine(top, latencies) };
        let mut connections: Vec<Connection> = pairs.iter().zip(1..).map(|(&(source, away, bytes, start), id)| {
            let destination = if hot && source != 5 { 5 } else { (source + away) % 16 };
            Connection { id, begin: Begin::At(start), ..flow(source, destination, bytes) }
        }).collect();
        let mut triggers = Vec::new();
        if is_triggered && connections.len() > 1 {
            connections[0].tells = Some(0);
            connections[1].begin = Begin::Trigger(0);
            triggers.push(Trigger { id: 1, kind: TriggerKind::Oneshot, flows: vec![1] });
        }
        let options = Options { spray, paths: 1 << paths, seed, mtu, interface_mbps: interface, slow_links, ..Options::default() };
        let matrix = matrix(&fabric, connections, triggers);
        let input = Input { fabric: &fabric, matrix: &matrix, options };
        prop_assert_eq!(keeps_bound(&input, &simulate(&input).unwrap().flows), Ok(()));
        prop_assert_eq!(keeps_bound(&input, &share(&input).unwrap()), Ok(()), "flows");
        let alone = lone(&input).into_iter().map(|times| FlowTimes {
            started: times.map(|times| times[0]), received: times.map(|times| times[1]), finished: times.map(|times| times[2]),
        });
        for (alone, least) in alone.zip(bound(&input).flows) {
            prop_assert!(alone.finished >= least.map(|times| times[2]), "{alone:?} {least:?}");
        }
    }

    /// Every packet arrives, nothing is done before the bound or before the flow could be done alone, and a seed gives one result.
    #[test]
    fn runs_keep_every_packet_and_the_bound(
        pairs in prop::collection::vec((0..16_u32, 1..16_u32, 1..60_000_u64, 0..50_000_000_u64), 1..30),
        bundle in 1..3_u32,
        spray in any_spray(),
        (paths, seed) in (0..7_u32, 0..100_u64),
    ) {
        let fabric = fat_tree(bundle, 100, [1000, 500, 700, 300]);
        let connections: Vec<Connection> = pairs.iter().zip(1..).map(|(&(source, away, bytes, start), id)| {
            Connection { id, begin: Begin::At(start), ..flow(source, (source + away) % 16, bytes) }
        }).collect();
        let options = Options { spray, paths: 1 << paths, seed, ..Options::default() };
        let matrix = matrix(&fabric, connections, Vec::new());
        let input = Input { fabric: &fabric, matrix: &matrix, options };
        let outcome = simulate(&input).unwrap();
        prop_assert_eq!(outcome.packets, matrix.connections.iter().map(|flow| options.packets(flow.bytes).0).sum::<u64>());
        prop_assert_eq!(keeps_bound(&input, &outcome.flows), Ok(()));
        prop_assert_eq!(simulate(&input).unwrap(), outcome);
    }
}
