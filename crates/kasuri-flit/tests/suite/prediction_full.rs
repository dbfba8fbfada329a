//! Predictors in routers in the full layout: the same as in plain ones where both can be, and with everything that only the full one has.

use crate::common::{Fixed, Setup, Single, ToTheEnd};
use kasuri_model::engine::{Engine, Outcome, Prediction, Status};
use kasuri_model::router::{
    AllocatorParameters, Arbiter, ArbiterParameters, BufferPolicy, ForwardCopies, LongStages, LookaheadDecides, OnMiss, PipelineEntry,
    PredictorMatch, Priority, RouterParameters, Speculation, Switching, VcRelease,
};
use kasuri_network::id::TerminalId;
use kasuri_network::topology::{ChannelParameters, PerDimension};
use std::sync::Arc;

fn stage(stage: &str, cycles: u32) -> PipelineEntry {
    PipelineEntry::Timed { stage: stage.to_owned(), cycles }
}

fn allocator(name: &str) -> AllocatorParameters {
    AllocatorParameters::Name(name.to_owned())
}

/// The same run in both layouts, near saturation, with the invariants checked.
fn both_layouts_agree(setup: &Setup) -> Prediction {
    let run = |layout| Setup { layout: Some(layout), paranoid: true, ..setup.clone() }.run(&mut Fixed::new(150, 500));
    let (plain, full) = (run("plain"), run("full"));
    assert_eq!(plain, full, "{:?} {:?}", setup.topology, setup.router);
    plain.prediction.expect("a predictor")
}

/// Predictors, ways of switching, pipelines, channels and allocators that plain routers have: the outcome is the same, bit for bit.
#[test]
fn predictions_are_the_same_in_both_layouts() {
    let canonical = || ["RC", "VA", "SA", "ST"].map(|name| stage(name, 1)).to_vec();
    let mut serial = vec![stage("Des", 1)];
    serial.extend(canonical());
    serial.extend([stage("Ser", 3), stage("LT", 2)]);
    let long = vec![stage("RC", 3), stage("VA", 2), stage("SA", 1), stage("ST", 2)];
    let detailed = |name: &str, iterations| AllocatorParameters::Detailed {
        name: name.to_owned(),
        iterations,
        arbiter: ArbiterParameters::default(),
        draw: Default::default(),
        turns: Default::default(),
    };
    let allocators = [allocator("islip"), allocator("separable-input-first"), detailed("islip", 2), allocator("separable-output-first")];
    let misses = [OnMiss::Kill, OnMiss::Hint, OnMiss::Forward];
    let switchings = [Switching::Wormhole, Switching::VirtualCutThrough, Switching::StoreAndForward];
    let predictors = ["static-straight", "latest-port", "oracle", "sampled-pattern", "finite-context"];
    let (mut hits, mut refused) = (0, 0);
    for case in 0..300usize {
        let pipeline = [canonical(), serial.clone(), long.clone()][case % 3].clone();
        let router = RouterParameters {
            virtual_channels: [2, 3, 1, 5][case % 4].max(if case % 5 == 1 { 2 } else { 1 }),
            buffer_flits: 4 + case as u32 % 3,
            pipeline,
            switching: switchings[case / 2 % 3],
            on_miss: misses[case / 3 % 3],
            forward_copies: (case / 3 % 3 == 2 && case % 2 == 0).then_some(ForwardCopies::UntilRoute),
            lookahead: case % 7 == 3,
            vc_release: if case % 4 == 2 { VcRelease::TailCredit } else { VcRelease::Tail },
            predictor_match: if case % 6 == 5 { PredictorMatch::Exact } else { PredictorMatch::AnyUp },
            predictor: predictors[case / 4 % 5].to_owned(),
            vc_allocator: allocators[case / 5 % 4].clone(),
            switch_allocator: allocators[case / 7 % 4].clone(),
            credit_delay: case as u32 % 3,
            ..RouterParameters::default()
        };
        let channels = ChannelParameters {
            channel_latency: PerDimension::All(2),
            terminal_channel_latency: 2,
            channel_period: PerDimension::All(if case % 8 == 6 { 2 } else { 1 }),
            ..ChannelParameters::default()
        };
        let setup = [Setup::mesh(&[4, 3]), Setup::torus(&[4, 3]), Setup::fat_tree(3, 2), Setup::fat_tree(2, 3), Setup::mesh(&[3, 2, 2])];
        let (load, packet_flits) = ([0.2, 0.45, 0.7][case / 3 % 3], [4, 1, 3][case % 3]);
        let setup = Setup { router, channels, load, packet_flits, seed: case as u64, ..setup[case % 5].clone() };
        let prediction = both_layouts_agree(&setup);
        hits += prediction.hits;
        refused += prediction.refused;
    }
    assert!(hits > 10_000 && refused > 10_000, "{hits} {refused}");
}

/// A router of more ports than masks have room for allocates on requests.
#[test]
fn predictions_are_the_same_in_routers_of_many_ports() {
    for vc_allocator in [allocator("islip"), allocator("separable-output-first")] {
        let router =
            RouterParameters { virtual_channels: 4, buffer_flits: 5, predictor: "oracle".to_owned(), ..RouterParameters::default() };
        let router = RouterParameters { vc_allocator, ..router };
        assert!(both_layouts_agree(&Setup { router, load: 0.5, ..Setup::fat_tree(10, 2) }).hits > 1_000);
    }
}

/// What only the full layout has, one by one, in routers that predict.
fn every_option() -> Vec<RouterParameters> {
    let plain = RouterParameters { virtual_channels: 4, buffer_flits: 4, ..RouterParameters::default() };
    let names = kasuri_flit::ALLOCATORS.iter().map(|entry| entry.name);
    let mut options: Vec<RouterParameters> =
        names.map(|name| RouterParameters { vc_allocator: allocator(name), switch_allocator: allocator(name), ..plain.clone() }).collect();
    let matrix = AllocatorParameters::Detailed {
        name: "separable-output-first".to_owned(),
        iterations: 1,
        arbiter: ArbiterParameters::Single(Arbiter::Matrix),
        draw: Default::default(),
        turns: Default::default(),
    };
    options.extend([Priority::Class, Priority::Age, Priority::LocalAge, Priority::QueueLength, Priority::HopCount].map(|priority| {
        RouterParameters { priority, vc_allocator: allocator("select"), switch_allocator: allocator("select"), ..plain.clone() }
    }));
    let together = vec![stage("RC", 1), stage("VSA", 1), stage("ST", 1)];
    let batched = vec![stage("RC", 2), stage("VA", 1), stage("SA", 1), stage("ST", 3)];
    options.extend([
        RouterParameters { vc_allocator: matrix.clone(), switch_allocator: matrix, ..plain.clone() },
        RouterParameters { input_speedup: 2, ..plain.clone() },
        RouterParameters { output_speedup: 2, input_speedup: 4, ..plain.clone() },
        RouterParameters { output_speedup: 3, output_buffer_flits: Some(2), ..plain.clone() },
        RouterParameters { internal_speedup: 2.0, ..plain.clone() },
        RouterParameters { internal_speedup: 1.5, output_buffer_flits: Some(1), ..plain.clone() },
        RouterParameters { internal_speedup: 1.7, pipeline: together.clone(), ..plain.clone() },
        RouterParameters { internal_speedup: 3.0, input_speedup: 2, output_speedup: 2, ..plain.clone() },
        RouterParameters { hold_switch: true, ..plain.clone() },
        RouterParameters { hold_switch: true, output_buffer_flits: Some(1), internal_speedup: 1.5, ..plain.clone() },
        RouterParameters { buffer_policy: BufferPolicy::Shared, ..plain.clone() },
        RouterParameters { buffer_policy: BufferPolicy::Limited, port_buffer_flits: Some(9), most_held_flits: Some(3), ..plain.clone() },
        RouterParameters { buffer_policy: BufferPolicy::Dynamic, private_flits: 2, vc_release: VcRelease::TailCredit, ..plain.clone() },
        RouterParameters { buffer_policy: BufferPolicy::Shifting, port_buffer_flits: Some(5), pipeline: together.clone(), ..plain.clone() },
        RouterParameters { vc_busy_when_full: true, vc_prefer_empty: true, vc_allocator: allocator("select"), ..plain.clone() },
        RouterParameters { speculative: true, speculation: Speculation::Together, hold_switch: true, ..plain.clone() },
        RouterParameters { pipeline: together, switch_allocator: allocator("wavefront"), ..plain.clone() },
        RouterParameters { pipeline: batched.clone(), long_stages: LongStages::Batched, ..plain.clone() },
        RouterParameters { pipeline: batched, internal_speedup: 2.0, ..plain },
    ]);
    options
}

/// A tree and a torus whose channels have the latency of `LT`.
fn networks() -> [Setup; 3] {
    let channels = ChannelParameters { channel_latency: PerDimension::All(2), terminal_channel_latency: 2, ..Default::default() };
    let slow = ChannelParameters { channel_period: PerDimension::All(3), ..channels.clone() };
    [Setup::fat_tree(3, 2), Setup { channels, ..Setup::torus(&[4, 3]) }, Setup { channels: slow, ..Setup::mesh(&[3, 3]) }]
}

/// Batches arrive to the last packet, flits and credits are conserved, no two flits are in one place of the switch or of a channel, none
/// overtakes another, and the same run gives the same outcome.
#[test]
fn nothing_is_lost_whatever_the_router() {
    let (mut hits, mut refused, mut wasted) = (0, 0, 0);
    let predictors = ["static-straight", "latest-port", "oracle"];
    for (number, router) in every_option().into_iter().enumerate() {
        for (place, network) in networks().into_iter().enumerate() {
            let on_miss = [OnMiss::Kill, OnMiss::Forward][(number + place) % 2];
            let predictor = predictors[(number + place) % 3].to_owned();
            let switching = [Switching::Wormhole, Switching::VirtualCutThrough, Switching::StoreAndForward][number % 3];
            let switching = if router.buffer_policy == BufferPolicy::Private { switching } else { Switching::Wormhole };
            let router = RouterParameters { predictor, on_miss, switching, ..router.clone() };
            let setup = Setup { router, packet_flits: 3, paranoid: true, load: 1.0, ..network }.batch(40);
            let outcome = setup.run(&mut ToTheEnd);
            assert_eq!(outcome.status, Status::Completed, "{:?}", setup.router);
            let packets = outcome.accepted_flits.iter().sum::<u64>() / 3;
            assert_eq!(packets, 40 * u64::from(setup.network().terminal_count()), "{:?}", setup.router);
            assert_eq!(outcome, setup.run(&mut ToTheEnd), "{:?}", setup.router);
            let prediction = outcome.prediction.expect("a predictor");
            assert!(prediction.hits > 0, "{:?}", setup.router);
            assert!(prediction.hits + prediction.refused <= prediction.attempts && prediction.attempts <= prediction.switches);
            (hits, refused, wasted) = (hits + prediction.hits, refused + prediction.refused, wasted + prediction.wasted_flits);
        }
    }
    assert!(hits > 10_000 && refused > 10_000 && wasted > 1_000, "{hits} {refused} {wasted}");
}

/// One packet of five flits from terminal 0 of a (4, 4, 3) tree: its network latency, and what was predicted.
fn single(router: RouterParameters, destination: u32) -> (u64, Prediction) {
    let router = RouterParameters { buffer_flits: 8, ..router };
    let mut scenario = Setup { router, paranoid: true, ..Setup::fat_tree(4, 3) }.batch(1).build();
    scenario.classes[0].pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(destination) });
    let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
    (outcome.network_latency.max, outcome.prediction.unwrap_or_default())
}

/// Does a lone packet wait for nothing, neither for a batch nor for room in a small buffer?
fn is_alone(router: &RouterParameters) -> bool {
    router.long_stages == LongStages::Pipelined && router.port_buffer_flits.is_none()
}

/// A hit takes the cycle of the switch traversal, or those that it has, and nothing of the rest of the pipeline, whatever the rest of the
/// router: 1 + injection + R routers of `traversal` cycles + R channels + 4 more flits.
#[test]
fn a_lone_packet_passes_each_router_in_the_time_of_its_switch_traversal() {
    for router in every_option().into_iter().filter(is_alone) {
        let traversal = match router.pipeline.last() {
            Some(PipelineEntry::Timed { cycles, .. }) => (f64::from(*cycles) / router.internal_speedup).ceil() as u64,
            _ => 1,
        };
        for (destination, routers) in [(1, 1), (4, 3), (63, 5)] {
            let (latency, prediction) = single(RouterParameters { predictor: "oracle".to_owned(), ..router.clone() }, destination);
            assert_eq!((prediction.switches, prediction.hits), (routers, routers), "{router:?}");
            assert_eq!(latency, 2 + routers * (traversal + 1) + 4, "{router:?}");
            assert_eq!(prediction.speculative_traversals, 5 * routers, "{router:?}");
        }
    }
}

/// A wrong guess costs a lone packet nothing, whatever the router; only copies cross.
#[test]
fn a_wrong_prediction_costs_a_lone_packet_nothing() {
    for router in every_option().into_iter().filter(is_alone) {
        for on_miss in [OnMiss::Kill, OnMiss::Hint, OnMiss::Forward] {
            let wrong = RouterParameters { predictor: "up-priority".to_owned(), on_miss, ..router.clone() };
            let (latency, prediction) = single(wrong, 1);
            assert_eq!((prediction.attempts, prediction.hits, prediction.refused), (1, 0, 0));
            assert_eq!(prediction.wasted_flits > 0, on_miss == OnMiss::Forward);
            assert_eq!(latency, single(router.clone(), 1).0, "{router:?}");
        }
    }
}

/// A copy that leaves holds a virtual channel and a place beyond the channel for a while, whatever the router: other packets feel it.
#[test]
fn forwarded_copies_cost_other_packets_something_in_every_router() {
    let run = |router: &RouterParameters, on_miss| {
        let router = RouterParameters { predictor: "latest-port".to_owned(), on_miss, ..router.clone() };
        let outcome = Setup { router, load: 0.5, paranoid: true, ..Setup::torus(&[4, 4]) }.run(&mut Fixed::new(200, 1_000));
        let prediction = outcome.prediction.clone().expect("a predictor");
        (Outcome { prediction: None, ..outcome }, prediction.wasted_flits)
    };
    for router in &every_option() {
        let ((killed, none), (forwarded, wasted)) = (run(router, OnMiss::Kill), run(router, OnMiss::Forward));
        assert_ne!(killed.packet_latency, forwarded.packet_latency, "{router:?}");
        assert!(none == 0 && wasted > 100, "{router:?}: {wasted}");
    }
}

/// A routing that offers several ports takes the predicted one among them; one that decides on departure brings its decision along.
#[test]
fn adaptive_routings_are_predicted() {
    for (routing, router) in [
        (("minimal-adaptive", ""), RouterParameters::default()),
        (("planar-adaptive", ""), RouterParameters { priority: Priority::Age, ..RouterParameters::default() }),
        (
            ("o1turn", "choose = \"adaptive\""),
            RouterParameters { lookahead: true, lookahead_decides: LookaheadDecides::OnDeparture, ..RouterParameters::default() },
        ),
    ] {
        for predictor in ["static-straight", "latest-port", "oracle"] {
            let router = RouterParameters { predictor: predictor.to_owned(), virtual_channels: 4, buffer_flits: 6, ..router.clone() };
            let setup = Setup { routing, router, load: 0.4, paranoid: true, ..Setup::mesh(&[4, 4]) };
            let outcome = setup.run(&mut Fixed::new(200, 2_000));
            let prediction = outcome.prediction.clone().expect("a predictor");
            assert!(prediction.hits > 500 && prediction.hits + prediction.refused <= prediction.attempts, "{routing:?}: {prediction:?}");
            assert!(predictor != "oracle" || prediction.hits + prediction.refused == prediction.attempts, "{routing:?}: {prediction:?}");
            let done = Setup { load: 1.0, ..setup }.batch(30).run(&mut ToTheEnd);
            assert_eq!((done.status, done.accepted_flits.iter().sum::<u64>()), (Status::Completed, 16 * 30 * 5), "{routing:?}");
        }
    }
}
