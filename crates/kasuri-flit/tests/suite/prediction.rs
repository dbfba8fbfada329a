//! Routers that predict: what a hit saves, what a miss costs, how often predictions are right, and that nothing is lost.

use crate::common::{Fixed, Setup, Single, ToTheEnd};
use kasuri_model::engine::{Engine, Outcome, Prediction, Status};
use kasuri_model::router::{ForwardCopies, HitSaves, OnMiss, PipelineEntry, PredictorMatch, Priority, RouterParameters, Switching};
use kasuri_model::scenario::ClosedWorkload;
use kasuri_network::id::TerminalId;
use kasuri_network::predictor::Fold;
use kasuri_network::rng::Streams;
use kasuri_network::routing::VirtualChannels;
use kasuri_network::topology::{ChannelParameters, PerDimension};
use kasuri_workload::workload::{Action, Event, Execution, Message, Workload};
use std::sync::Arc;

fn stage(stage: &str, cycles: u32) -> PipelineEntry {
    PipelineEntry::Timed { stage: stage.to_owned(), cycles }
}

/// RC, VSA, ST, with as much route computation as makes `stages` cycles.
fn on_chip(stages: u32) -> Vec<PipelineEntry> {
    vec![stage("RC", stages - 2), stage("VSA", 1), stage("ST", 1)]
}

fn router(predictor: &str, stages: u32) -> RouterParameters {
    RouterParameters {
        virtual_channels: 2,
        buffer_flits: 8,
        pipeline: on_chip(stages),
        predictor: predictor.to_owned(),
        ..RouterParameters::default()
    }
}

/// A (4, 4, levels) fat tree under uniform traffic to others.
fn tree(levels: u32, router: RouterParameters) -> Setup {
    Setup { router, include_self: false, paranoid: true, ..Setup::fat_tree(4, levels) }
}

/// One packet from terminal 0: its latency and what was predicted.
fn single(setup: &Setup, destination: u32) -> (u64, Prediction) {
    let mut scenario = setup.clone().batch(1).build();
    scenario.classes[0].pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(destination) });
    let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
    assert_eq!((outcome.status, outcome.network_latency.count), (Status::Completed, 1));
    (outcome.network_latency.max, outcome.prediction.unwrap_or_default())
}

/// 1 + injection + R routers of `stages` cycles, 1 at a hit + R channels + 4 more flits.
fn lone_latency(routers: u64, stages: u64, hits: u64) -> u64 {
    1 + 1 + routers * stages - hits * (stages - 1) + routers + 4
}

#[test]
fn a_right_prediction_takes_a_packet_through_a_router_in_one_cycle() {
    for stages in [3, 5, 7] {
        for (destination, routers) in [(1, 1), (4, 3), (16, 5), (63, 5)] {
            let (latency, prediction) = single(&tree(3, router("oracle", stages)), destination);
            assert_eq!(latency, lone_latency(routers, stages.into(), routers));
            assert_eq!((prediction.switches, prediction.attempts, prediction.hits), (routers, routers, routers));
            // All five flits of the packet pass on in each router.
            assert_eq!(prediction.speculative_traversals, 5 * routers);
        }
    }
}

/// Terminal 0 to 1 turns in the leaf, to 4 in the second level: straight goes up, wrongly, at the last of these routers.
#[test]
fn a_wrong_prediction_costs_nothing_but_the_gain() {
    for (on_miss, crossings, wasted) in [(OnMiss::Kill, 1, 0), (OnMiss::Hint, 0, 0), (OnMiss::Forward, 1, 1)] {
        for predictor in ["static-straight", "up-priority"] {
            let setup = tree(3, RouterParameters { on_miss, ..router(predictor, 3) });
            let (latency, prediction) = single(&setup, 1);
            assert_eq!(latency, lone_latency(1, 3, 0));
            assert_eq!((prediction.switches, prediction.attempts, prediction.hits, prediction.refused), (1, 1, 0, 0));
            assert_eq!((prediction.speculative_traversals, prediction.wasted_flits), (crossings, wasted));
        }
    }
}

/// Until a route computation of 3 cycles has ended, the flits behind the head follow it the wrong way, unless heads alone leave. They have
/// the virtual channel of the head, so its buffer must hold them all.
#[test]
fn wrong_copies_cross_until_route_computation_ends() {
    for (forward_copies, buffer_flits, copies) in
        [(None, 8, 1), (Some(ForwardCopies::Head), 8, 1), (Some(ForwardCopies::UntilRoute), 8, 3), (Some(ForwardCopies::UntilRoute), 2, 2)]
    {
        let setup = tree(3, RouterParameters { on_miss: OnMiss::Forward, forward_copies, buffer_flits, ..router("up-priority", 5) });
        let (latency, prediction) = single(&setup, 1);
        if buffer_flits > 5 {
            assert_eq!(latency, lone_latency(1, 5, 0));
        }
        assert_eq!((prediction.speculative_traversals, prediction.wasted_flits), (copies, copies), "{forward_copies:?}");
    }
    let kill = tree(3, RouterParameters { on_miss: OnMiss::Kill, ..router("up-priority", 5) });
    assert_eq!(single(&kill, 1).1.speculative_traversals, 3);
}

/// Hops of a packet from terminal 0 to 4: up (right), up (wrong), down by port 1 where the input from above has number 0: wrong.
/// The counts by channel add up to the totals.
#[test]
fn hits_are_counted_by_the_channel_that_a_packet_came_by() {
    let (latency, prediction) = single(&tree(3, router("static-straight", 3)), 4);
    assert_eq!((prediction.switches, prediction.attempts), (3, 3));
    assert_eq!(latency, lone_latency(3, 3, prediction.hits));
    let total = |column: usize| prediction.by_channel.iter().map(|counts| counts[column]).sum::<u64>();
    assert_eq!((total(0), total(1), total(2)), (prediction.switches, prediction.attempts, prediction.hits));
    assert_eq!(prediction.by_channel[0], [1, 1, 1], "the injection channel of terminal 0 leads to a hit");
}

/// Outcome of lone packets: so little traffic that two hardly ever meet.
fn lone_packets(setup: Setup, cycles: u64) -> Outcome {
    Setup { load: 0.002, max_cycles: 1 << 40, ..setup }.run(&mut Fixed::new(0, cycles))
}

fn hit_rate(outcome: &Outcome) -> f64 {
    let prediction = outcome.prediction.as_ref().unwrap();
    prediction.hits as f64 / prediction.switches as f64
}

/// Expected height of the turn, and the probability of one at the top, for uniform traffic to others in a (p, 4, r) tree.
fn turn(levels: u32) -> (f64, f64) {
    let (q, r) = (4f64, f64::from(levels));
    let terminals = q.powf(r);
    (r * terminals / (terminals - 1.0) - 1.0 / (q - 1.0), (q - 1.0) * q.powf(r - 1.0) / (terminals - 1.0))
}

/// All E[L] - 1 moves up are hits; of the moves down one in four; and, folding back, of the turns at the top one in three.
#[test]
fn hit_rates_under_uniform_traffic_follow_the_closed_form() {
    for levels in 1..=4 {
        let (height, top) = turn(levels);
        let switches = 2.0 * height - 1.0;
        let straight = ((height - 1.0) * 1.25 + top / 3.0) / switches;
        for (predictor, expected) in [("static-straight", straight), ("up-priority", (height - 1.0) / switches), ("oracle", 1.0)] {
            // Some 40 000 packets, whatever the size.
            let outcome = lone_packets(Setup { paranoid: false, ..tree(levels, router(predictor, 3)) }, 100_000_000 >> (2 * levels));
            assert!(outcome.packet_latency.count > 30_000);
            let rate = hit_rate(&outcome);
            assert!((rate - expected).abs() < 0.01, "{predictor}, {levels} levels: {rate}, not {expected}");
        }
    }
}

/// Hits are as easy on the way up as they are rare on the way down: of E - 1 chances up each is one, of as many down one in four; of the
/// turns those at the top, one in three. The chances are the attempts, whichever way.
#[test]
fn hits_by_direction_follow_the_closed_form() {
    let (height, top) = turn(3);
    // With priorities in the full layout.
    for priority in [Priority::None, Priority::Age] {
        let router = RouterParameters { priority, ..router("static-straight", 3) };
        let outcome = lone_packets(Setup { paranoid: false, ..tree(3, router) }, 1_000_000);
        let prediction = outcome.prediction.unwrap();
        let [up, turn, down] = [0, 1, 2].map(|way| prediction.of_direction(way).unwrap());
        let of_switches = |count: u64| count as f64 / prediction.switches as f64 * (2.0 * height - 1.0);
        for ([chances, hits], expected) in [(up, [height - 1.0; 2]), (turn, [1.0, top / 3.0]), (down, [height - 1.0, (height - 1.0) / 4.0])]
        {
            let found = [of_switches(chances), of_switches(hits)];
            assert!(
                (found[0] - expected[0]).abs() < 0.03 && (found[1] - expected[1]).abs() < 0.03,
                "{priority:?}: {found:?}, {expected:?}"
            );
        }
        assert_eq!(up[1] + turn[1] + down[1], prediction.hits);
        // A head that waits for its route as counting ends has tried and gone no way.
        assert!(prediction.attempts.abs_diff(up[0] + turn[0] + down[0]) <= 10);
        let rate = |[chances, hits]: [u64; 2]| hits as f64 / chances as f64;
        assert!(rate(down) < 0.5 * rate(up));
    }
}

/// The fold decides what a turn at the top is worth: one chance in three for any one-to-one map without a port of its own, none for the
/// way back. Formulas say the same exactly.
#[test]
fn what_the_top_predicts_is_worth_a_third_of_its_turns_or_nothing() {
    let (height, top) = turn(3);
    for (fold, c) in [(Fold::Next, 1.0 / 3.0), (Fold::Pairs, 1.0 / 3.0), (Fold::Back, 0.0)] {
        let expected = ((height - 1.0) * 1.25 + c * top) / (2.0 * height - 1.0);
        let folded = RouterParameters { predictor_fold: Some(fold), ..router("static-straight", 3) };
        let outcome = lone_packets(Setup { paranoid: false, ..tree(3, folded) }, 1_000_000);
        let rate = hit_rate(&outcome);
        assert!(outcome.packet_latency.count > 20_000 && (rate - expected).abs() < 0.01, "{fold:?}: {rate}, not {expected}");
    }
}

/// Where only the port that the packet draws will do, a move up is a hit with probability 1/4.
#[test]
fn exact_matches_up_are_as_rare_as_ports_are_many() {
    let (height, top) = turn(3);
    let expected = ((height - 1.0) * 0.5 + top / 3.0) / (2.0 * height - 1.0);
    let outcome =
        lone_packets(tree(3, RouterParameters { predictor_match: PredictorMatch::Exact, ..router("static-straight", 3) }), 1_000_000);
    assert!((hit_rate(&outcome) - expected).abs() < 0.01, "{} is not {expected}", hit_rate(&outcome));
}

/// T = S (2L - 1) - (S - 1) hits + 2L + 4 more flits, and 2: the cycle of creation, and the flit that waits for a credit, for
/// a credit loop is one cycle longer than the buffer of 4 flits.
#[test]
fn zero_load_latency_follows_the_closed_form() {
    let (height, top) = turn(3);
    let hits = (height - 1.0) * 1.25 + top / 3.0;
    for stages in [3, 5, 7] {
        for (predictor, hits) in [("none", 0.0), ("static-straight", hits)] {
            let outcome = lone_packets(tree(3, RouterParameters { buffer_flits: 4, ..router(predictor, stages) }), 400_000);
            let expected = f64::from(stages) * (2.0 * height - 1.0) - f64::from(stages - 1) * hits + 2.0 * height + 4.0 + 2.0;
            let mean = outcome.packet_latency.mean().unwrap();
            assert!((mean / expected - 1.0).abs() < 0.01, "{predictor}, {stages} stages: {mean}, not {expected}");
        }
    }
}

/// The serial router of 256-byte packets in flits of `flit_bytes` on channels of 8 bytes per cycle.
fn serial(flit_bytes: u32, occupied: bool) -> Setup {
    let (transfer, flits) = (flit_bytes / 8, 256 / flit_bytes);
    let mut pipeline: Vec<_> = ["Des", "RC", "VSA", "ST", "Ser"].map(|name| stage(name, 1)).to_vec();
    pipeline.push(stage("LT", transfer));
    let period = if occupied { transfer } else { 1 };
    let router = RouterParameters {
        switching: Switching::VirtualCutThrough,
        virtual_channels: 4,
        buffer_flits: flits,
        pipeline,
        predictor: "up-priority".to_owned(),
        on_miss: OnMiss::Hint,
        ..RouterParameters::default()
    };
    let channels = ChannelParameters {
        channel_latency: PerDimension::All(transfer),
        channel_period: PerDimension::All(period),
        terminal_channel_latency: transfer,
        terminal_channel_period: period,
    };
    Setup { channels, router, packet_flits: flits, paranoid: true, ..Setup::fat_tree(16, 2) }
}

/// T = 2L LT + 5 (2L - 1) + (flits - 1) x spacing + 1; the hit in the first leaf saves LT + 4.
#[test]
fn a_hit_in_a_serial_router_saves_the_transfer_of_a_flit_and_four_stages() {
    for flit_bytes in [8, 16, 32, 64, 128, 256] {
        for occupied in [true, false] {
            let setup = serial(flit_bytes, occupied);
            let (transfer, flits) = (u64::from(flit_bytes / 8), u64::from(256 / flit_bytes));
            let spacing = if occupied { transfer } else { 1 };
            let normal = |height: u64| 2 * height * transfer + 5 * (2 * height - 1) + (flits - 1) * spacing + 1;
            let (latency, prediction) = single(&setup, 1);
            assert_eq!((latency, prediction.hits, prediction.speculative_traversals), (normal(1), 0, 0));
            assert_eq!(prediction.hint_bits, 1);
            let (latency, prediction) = single(&setup, 16);
            assert_eq!((latency, prediction.hits), (normal(2) - transfer - 4, 1), "{flit_bytes} bytes, occupied: {occupied}");
        }
    }
}

/// With the serial router's hint bits, which take some cycles.
fn with_hint_cycles(setup: &Setup, hint_cycles: u32) -> Setup {
    Setup { router: RouterParameters { hint_cycles, ..setup.router.clone() }, ..setup.clone() }
}

/// The bits in front of a packet make it later by their cycles on each of its 2L channels, with a hit and without.
#[test]
fn hint_bits_take_their_time_on_every_channel() {
    for (flit_bytes, occupied) in [(8, true), (64, true), (64, false), (256, true)] {
        let setup = serial(flit_bytes, occupied);
        for (destination, channels) in [(1, 2), (16, 4)] {
            let (without, prediction) = single(&setup, destination);
            for cycles in [1, 2, 7] {
                let found = single(&with_hint_cycles(&setup, cycles), destination);
                assert_eq!(found, (without + channels * u64::from(cycles), prediction.clone()), "{flit_bytes} bytes, {cycles} cycles");
            }
        }
    }
}

/// The second of two packets waits for the bits of its own before it enters the network, and for nothing after that.
#[test]
fn hint_bits_keep_channels_busy() {
    for (flit_bytes, occupied) in [(8, true), (64, true), (64, false), (256, true), (256, false)] {
        let apart = |hint_cycles| {
            let mut scenario = with_hint_cycles(&serial(flit_bytes, occupied), hint_cycles).batch(2).build();
            scenario.classes[0].pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(16) });
            let latency = kasuri_flit::FlitEngine.run(&scenario, &mut ToTheEnd).unwrap().packet_latency;
            2.0 * (latency.max as f64 - latency.mean().unwrap())
        };
        let without = apart(0);
        for cycles in [1u32, 5] {
            let found = apart(cycles);
            assert_eq!(found, without + f64::from(cycles), "{flit_bytes} bytes, occupied: {occupied}");
        }
    }
}

/// The two causes by which a hit saves more behind long channels: with whole packets of 256 bytes in a flit, of the 36 cycles the stages
/// Des, RC, VSA and Ser are 4 and the wait for the packet 32. On a chip nothing waits, and of 3 stages a hit saves 2. Routers with
/// priorities, in the full layout, do the same.
#[test]
fn a_hit_saves_the_stages_the_wait_or_both() {
    for priority in [Priority::None, Priority::Age] {
        let latency = |setup: Setup, hit_saves, destination| {
            let router = RouterParameters { hit_saves, priority, ..setup.router.clone() };
            single(&Setup { router, ..setup }, destination)
        };
        for (flit_bytes, stages, wait) in [(256, 4, 32), (64, 4, 8), (32, 4, 4)] {
            let setup = serial(flit_bytes, true);
            let (normal, prediction) = latency(
                Setup { router: RouterParameters { predictor: "none".to_owned(), ..setup.router.clone() }, ..setup.clone() },
                HitSaves::Both,
                16,
            );
            assert_eq!(prediction, Prediction::default());
            for (hit_saves, saved) in [(HitSaves::Both, stages + wait), (HitSaves::Stages, stages), (HitSaves::Wait, wait)] {
                let (found, prediction) = latency(setup.clone(), hit_saves, 16);
                assert_eq!((normal - found, prediction.hits), (saved, 1), "{flit_bytes} bytes, {hit_saves:?}, {priority:?}");
                // A packet that turns in its leaf has no hit.
                assert_eq!(latency(setup.clone(), hit_saves, 1), latency(setup.clone(), HitSaves::Both, 1));
            }
        }
        let on_chip = tree(3, router("up-priority", 3));
        let both = latency(on_chip.clone(), HitSaves::Both, 16);
        assert_eq!((both.0, both.1.hits), (lone_latency(5, 3, 2), 2));
        assert_eq!(latency(on_chip, HitSaves::Stages, 16), both);
    }
}

/// Of uniform traffic to all 256 nodes, 15 in 16 turn at the top and have one hit: the mean latency falls by that part of what a hit saves.
#[test]
fn what_hits_save_of_the_mean_latency_is_that_times_their_probability() {
    let mean = |predictor: &str, hit_saves| {
        let setup = serial(256, false);
        let router = RouterParameters { predictor: predictor.to_owned(), hit_saves, ..setup.router.clone() };
        lone_packets(Setup { router, include_self: true, paranoid: false, load: 0.0005, ..setup }, 400_000).packet_latency.mean().unwrap()
    };
    let normal = mean("none", HitSaves::Both);
    for (hit_saves, saved) in [(HitSaves::Both, 36.0), (HitSaves::Stages, 4.0), (HitSaves::Wait, 32.0)] {
        let found = normal - mean("up-priority", hit_saves);
        assert!((found - saved * 15.0 / 16.0).abs() < 0.5, "{hit_saves:?}: {found}");
    }
}

fn loaded(setup: Setup) -> Outcome {
    let outcome = Setup { paranoid: true, ..setup }.run(&mut Fixed::new(500, 3_000));
    assert!(outcome.packet_latency.count > 100);
    outcome
}

const MISSES: [OnMiss; 3] = [OnMiss::Kill, OnMiss::Hint, OnMiss::Forward];

/// Near saturation, with the invariants checked all the time: every flit arrives, in order, and two runs are the same.
#[test]
fn nothing_is_lost_with_any_predictor_near_saturation() {
    let grids = ["static-straight", "static-xy", "latest-port", "finite-context", "sampled-pattern", "oracle", "express"];
    let trees = ["static-straight", "up-priority", "latest-port", "finite-context", "sampled-pattern", "oracle", "express"];
    for on_miss in MISSES {
        for (setup, predictors) in [(Setup::fat_tree(4, 3), trees), (Setup::mesh(&[5, 4]), grids), (Setup::torus(&[4, 4]), grids)] {
            for predictor in predictors {
                let hint_cycles = if on_miss == OnMiss::Hint && predictor == "oracle" { 2 } else { 0 };
                let router = RouterParameters { on_miss, hint_cycles, buffer_flits: 4, ..router(predictor, 3) };
                let setup = Setup { router, load: 0.4, ..setup.clone() };
                let outcome = loaded(setup.clone());
                let prediction = outcome.prediction.clone().unwrap();
                assert!(prediction.hits > 0 && prediction.refused > 0, "{predictor}: {prediction:?}");
                assert!(prediction.hits + prediction.refused <= prediction.attempts && prediction.attempts <= prediction.switches);
                assert_eq!(prediction.wasted_flits > 0, on_miss == OnMiss::Forward && !["oracle", "express"].contains(&predictor));
                assert_eq!(outcome, loaded(setup));
            }
        }
    }
}

/// The predictors that need to know nothing of the network, on networks that are neither trees nor grids.
#[test]
fn learning_predictors_serve_any_network() {
    let of = |topology: &'static str, keys: &str, routing: &'static str| Setup {
        topology: (topology, keys.to_owned()),
        routing: (routing, ""),
        ..Setup::mesh(&[2])
    };
    let networks =
        [of("full-mesh", "routers = 6\nconcentration = 2", "minimal"), of("butterfly", "radix = 3\nstages = 3", "destination-tag")];
    for setup in networks {
        for (predictor, on_miss) in
            [("latest-port", OnMiss::Kill), ("finite-context", OnMiss::Forward), ("sampled-pattern", OnMiss::Forward)]
        {
            let outcome = loaded(Setup { router: RouterParameters { on_miss, ..router(predictor, 4) }, load: 0.3, ..setup.clone() });
            assert!(outcome.prediction.unwrap().hits > 0, "{predictor} on {:?}", setup.topology);
        }
    }
}

/// Whatever an oracle attempts is a hit, or real requests were in its way.
#[test]
fn an_oracle_never_misses() {
    let outcome = loaded(Setup { load: 0.3, ..tree(3, router("oracle", 3)) });
    let prediction = outcome.prediction.unwrap();
    assert_eq!(prediction.hits + prediction.refused, prediction.attempts);
}

/// A line of so many routers with express ways, checked all the time.
fn line(routers: u32, router: RouterParameters) -> Setup {
    Setup { router, paranoid: true, ..Setup::mesh(&[routers]) }
}

/// A packet that goes straight on passes each router between its first and its last in one cycle, and no other; nothing is tried there.
#[test]
fn express_packets_pass_the_routers_between() {
    for stages in [3, 5] {
        for (destination, routers, between) in [(0, 1, 0), (1, 2, 0), (2, 3, 1), (4, 5, 3)] {
            let (latency, prediction) = single(&line(5, router("express", stages)), destination);
            assert_eq!(latency, lone_latency(routers, stages.into(), between), "to {destination}, {stages} stages");
            assert_eq!((prediction.switches, prediction.attempts, prediction.hits, prediction.refused), (routers, between, between, 0));
            assert_eq!(prediction.speculative_traversals, 5 * between);
        }
        // Up over two levels, and down: the router on the way up is passed.
        for (destination, routers, between) in [(1, 1, 0), (4, 3, 0), (63, 5, 1)] {
            let (latency, prediction) = single(&tree(3, router("express", stages)), destination);
            assert_eq!(latency, lone_latency(routers, stages.into(), between), "to {destination} in a tree, {stages} stages");
            assert_eq!((prediction.attempts, prediction.hits), (between, between));
        }
    }
}

/// Packets that turn in a mesh pass the routers of each dimension, but not the one where they turn.
#[test]
fn express_packets_stop_where_they_turn() {
    let setup = Setup { router: router("express", 3), paranoid: true, ..Setup::mesh(&[4, 4]) };
    let (latency, prediction) = single(&setup, 15);
    assert_eq!((latency, prediction.attempts, prediction.hits), (lone_latency(7, 3, 4), 4, 4));
}

/// Along a line of four routers terminal 1 sends a packet to the next router, and `pause` cycles later terminal 0 one to the end of the line.
/// When do they arrive?
fn arrivals_beside_a_local_packet(predictor: &str, pause: u32) -> [u64; 2] {
    let mut scenario = line(4, router(predictor, 3)).build();
    let message = |token: u64, source: u32, destination: u32| Message {
        token,
        source: TerminalId(source),
        destination: TerminalId(destination),
        flits: 5,
    };
    let workload = Two { messages: [message(0, 1, 2), message(1, 0, 3)], pause: f64::from(pause) };
    scenario.classes.clear();
    scenario.workload = Some(ClosedWorkload::new(Arc::new(workload), 5, VirtualChannels { begin: 0, end: 2 }));
    let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
    [2, 3].map(|terminal: usize| outcome.completion_cycles[terminal])
}

/// An express packet that comes to the second router while the local one crosses it passes all the same, and holds that one up; a guess that
/// is right gets what others leave. (One that comes just after may follow the local one by its virtual channel, and wait behind it.)
#[test]
fn express_packets_go_before_local_ones() {
    let pauses = 0..3;
    let alone = arrivals_beside_a_local_packet("express", 100);
    let predicted = arrivals_beside_a_local_packet("static-straight", 100);
    for pause in pauses {
        let [local, express] = arrivals_beside_a_local_packet("express", pause);
        assert_eq!(express - u64::from(pause), alone[1] - 100, "pause {pause}");
        assert!(local > alone[0], "pause {pause}: the local packet gives way");
        let [_, guessed] = arrivals_beside_a_local_packet("static-straight", pause);
        assert!(guessed - u64::from(pause) > predicted[1] - 100, "pause {pause}: a guess waits for the local packet");
    }
}

/// Two messages of five flits, the second one some cycles later.
#[derive(Debug)]
struct Two {
    messages: [Message; 2],
    pause: f64,
}

impl Workload for Two {
    fn messages(&self) -> u64 {
        2
    }

    fn each_message(&self, each: &mut dyn FnMut(&Message)) {
        self.messages.iter().for_each(each);
    }

    fn longest_message(&self) -> u32 {
        5
    }

    fn begin(&self, _streams: &Streams) -> Box<dyn Execution + '_> {
        Box::new(TwoPass(self))
    }
}

#[derive(Debug)]
struct TwoPass<'w>(&'w Two);

impl Execution for TwoPass<'_> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        actions.extend([Action::Send(self.0.messages[0]), Action::Compute { token: 2, cycles: self.0.pause }]);
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        if event == Event::Computed(2) {
            actions.push(Action::Send(self.0.messages[1]));
        }
    }
}

/// In a 3 x 2 mesh a packet from (0, 0) to (1, 1) turns at (1, 0), where straight on is the wrong guess; another goes straight on from there
/// to (2, 0), `pause` cycles later. When does the other one arrive?
fn arrival_beside_a_wrong_copy(on_miss: OnMiss, virtual_channels: u32, period: u32, pause: u32) -> u64 {
    let channels = ChannelParameters {
        channel_latency: PerDimension::All(4),
        channel_period: PerDimension::All(period),
        ..ChannelParameters::default()
    };
    let router = RouterParameters { on_miss, virtual_channels, ..router("static-straight", 3) };
    let mut scenario = Setup { channels, router, paranoid: true, ..Setup::mesh(&[3, 2]) }.build();
    let message = |token: u64, source: u32, destination: u32| Message {
        token,
        source: TerminalId(source),
        destination: TerminalId(destination),
        flits: 5,
    };
    let workload = Two { messages: [message(0, 0, 4), message(1, 1, 2)], pause: f64::from(pause) };
    let virtual_channels = scenario.classes[0].virtual_channels;
    scenario.classes.clear();
    scenario.workload = Some(ClosedWorkload::new(Arc::new(workload), 5, virtual_channels));
    let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
    outcome.completion_cycles[2]
}

/// What a wrong copy that leaves costs others. Where a flit takes the channel for P cycles, until cycle P - 1 after its own, it delays a
/// head that comes in the same cycle and would cross in the next by P - 2 cycles, one that comes after it by P - 3; an earlier one has
/// asked for the channel already. That is all while another virtual channel is free. If it has the only one, a head waits until that is back: a
/// channel of 4 cycles takes the copy 5 to arrive, it is dropped after one more, and its credit is back after 5: a head that comes with the
/// copy asks for the virtual channel a cycle later, and gets it 10 cycles late.
#[test]
fn a_forwarded_copy_delays_only_those_that_come_while_it_holds_something() {
    let delays = |virtual_channels: u32, period: u32| -> Vec<u64> {
        let arrival = |on_miss, pause| arrival_beside_a_wrong_copy(on_miss, virtual_channels, period, pause);
        let delay = |pause| arrival(OnMiss::Forward, pause) - arrival(OnMiss::Kill, pause);
        (0..24).map(delay).filter(|&delay| delay > 0).collect()
    };
    assert!(delays(2, 1).is_empty());
    assert_eq!(delays(2, 4), [2, 1]);
    assert_eq!(delays(1, 1), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
}

/// Copies on the (4, 4, 3) tree cost other packets something, with either reading, and the more the fewer virtual channels a port has of which
/// a copy may hold one; with two, prediction is still worth far more. All runs have the same packets.
#[test]
fn forwarded_copies_cost_something_under_load() {
    let latency = |predictor: &str, on_miss, forward_copies, stages, virtual_channels| {
        let router = RouterParameters { on_miss, forward_copies, buffer_flits: 4, virtual_channels, ..router(predictor, stages) };
        let outcome = Setup { load: 0.2, paranoid: false, ..tree(3, router) }.run(&mut Fixed::new(1_000, 20_000));
        (outcome.packet_latency.mean().unwrap(), outcome.prediction.map_or(0, |prediction| prediction.wasted_flits))
    };
    for stages in [3, 5] {
        let mut costs = [0.0; 2];
        for virtual_channels in [1, 2] {
            let of = |predictor, on_miss, copies| latency(predictor, on_miss, copies, stages, virtual_channels);
            let (normal, _) = of("none", OnMiss::Kill, None);
            let (killed, none) = of("static-straight", OnMiss::Kill, None);
            let (head, wasted) = of("static-straight", OnMiss::Forward, None);
            let (all, more) = of("static-straight", OnMiss::Forward, Some(ForwardCopies::UntilRoute));
            assert!(none == 0 && wasted > 1000, "{wasted}");
            assert!(killed < head && killed < all && head < 0.98 * normal, "{stages} stages: {killed}, {head}, {all}, {normal}");
            // Of a route computation of one cycle no flit comes behind the head before it ends.
            assert!(if stages == 3 { all == head } else { more > wasted });
            costs[virtual_channels as usize - 1] = head / killed - 1.0;
        }
        assert!(costs[0] > 4.0 * costs[1], "{costs:?}");
    }
}

#[test]
fn books_balance_under_all_ways_of_switching_and_pipelines() {
    let pipelines = [
        on_chip(3),
        on_chip(6),
        vec![stage("RC", 1), stage("VA", 1), stage("SA", 1), stage("ST", 2)],
        vec![stage("Des", 1), stage("RC", 1), stage("VA", 1), stage("SA", 1), stage("ST", 1), stage("Ser", 3), stage("LT", 2)],
    ];
    for switching in [Switching::Wormhole, Switching::VirtualCutThrough, Switching::StoreAndForward] {
        for (pipeline, lookahead) in pipelines.iter().flat_map(|pipeline| [(pipeline, false), (pipeline, true)]) {
            for (virtual_channels, period) in [(1, 1), (3, 1), (2, 3)] {
                let router =
                    RouterParameters { switching, virtual_channels, lookahead, pipeline: pipeline.clone(), ..router("static-straight", 3) };
                let channels = ChannelParameters {
                    channel_latency: PerDimension::All(2),
                    terminal_channel_latency: 3,
                    channel_period: PerDimension::All(period),
                    ..ChannelParameters::default()
                };
                let outcome = loaded(Setup { router, channels, load: 0.3, ..Setup::fat_tree(3, 3) });
                assert!(outcome.prediction.unwrap().hits > 0);
            }
        }
    }
}

/// A tree of one level has no way up: up-priority never guesses, and the rest of the outcome is that of a router without it.
#[test]
fn a_predictor_without_a_guess_changes_nothing() {
    for load in [0.1, 0.9] {
        let run =
            |predictor: &str| Setup { load, simd: "portable".to_owned(), ..tree(1, router(predictor, 3)) }.run(&mut Fixed::new(100, 2_000));
        let (with, without) = (run("up-priority"), run("none"));
        assert_eq!(with.prediction.as_ref().unwrap().attempts, 0);
        assert_eq!(Outcome { prediction: None, ..with }, without);
    }
}

#[test]
fn what_cannot_be_predicted_is_refused_by_its_key() {
    let refused = |setup: Setup| kasuri_flit::FlitEngine.run(&setup.build(), &mut ToTheEnd).unwrap_err().to_string();
    let mesh = |router| Setup { router, ..Setup::mesh(&[3, 3]) };
    assert!(refused(mesh(router("up-priority", 3))).starts_with("router.predictor: up-priority does not fit mesh [3, 3]"));
    let together = vec![PipelineEntry::Together { stages: ["RC", "VA", "SA", "ST"].map(String::from).to_vec(), cycles: 1 }];
    assert!(refused(mesh(RouterParameters { pipeline: together, ..router("oracle", 3) })).starts_with("router.pipeline: "));
    let far = on_chip(3).into_iter().chain([stage("LT", 2)]).collect();
    assert!(refused(mesh(RouterParameters { pipeline: far, ..router("oracle", 3) })).contains("a channel's latency is 1"));
    let full_mesh = Setup {
        topology: ("full-mesh", "routers = 4\nconcentration = 1".to_owned()),
        routing: ("minimal", ""),
        ..mesh(RouterParameters { on_miss: OnMiss::Hint, ..router("oracle", 3) })
    };
    assert!(refused(full_mesh).starts_with("router.on_miss: is \"hint\""));
}
