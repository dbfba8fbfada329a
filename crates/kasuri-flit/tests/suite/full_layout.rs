//! Routers in the full layout: what they share with plain ones, what their options promise, and what holds for all of them.

use crate::common::{Fixed, Setup, Single, ToTheEnd};
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_model::router::{
    AllocatorParameters, Arbiter, ArbiterParameters, BufferPolicy, Congestion, LongStages, PipelineEntry, Priority, RouterParameters,
    Speculation, Switching, VcRelease,
};
use kasuri_network::id::TerminalId;
use kasuri_network::topology::{ChannelParameters, PerDimension};
use std::sync::Arc;

fn allocator(name: &str) -> AllocatorParameters {
    AllocatorParameters::Name(name.to_owned())
}

fn separable(first: &str, arbiter: ArbiterParameters) -> AllocatorParameters {
    AllocatorParameters::Detailed {
        name: format!("separable-{first}-first"),
        iterations: 1,
        arbiter,
        draw: Default::default(),
        turns: Default::default(),
    }
}

/// The layout of routers as a whole, also for those that a faster one could have.
const FULL: Option<&str> = Some("full");

fn every_allocator() -> Vec<AllocatorParameters> {
    let arbiters = [
        ArbiterParameters::Single(Arbiter::Matrix),
        ArbiterParameters::Single(Arbiter::Age),
        ArbiterParameters::Tree { groups: 5, of: Arbiter::RoundRobin },
    ];
    let separable = ["input", "output"].into_iter().flat_map(|first| arbiters.map(|arbiter| separable(first, arbiter)));
    kasuri_flit::ALLOCATORS.iter().map(|entry| allocator(entry.name)).chain(separable).collect()
}

/// The full layout of a plain router is the plain router, bit for bit.
#[test]
fn the_full_layout_of_plain_routers_is_the_plain_one() {
    let stage = |name: &str, cycles| PipelineEntry::Timed { stage: name.to_owned(), cycles };
    let shared = PipelineEntry::Together { stages: ["VA", "SA"].map(String::from).to_vec(), cycles: 1 };
    let pipelines = [
        vec![stage("RC", 1), stage("VA", 1), stage("SA", 1), stage("ST", 1)],
        vec![stage("RC", 3), stage("VA", 2), stage("SA", 2), stage("ST", 3)],
        vec![stage("RC", 1), shared, stage("ST", 1)],
    ];
    for pipeline in pipelines {
        for (lookahead, vc_release, switching) in [
            (false, VcRelease::Tail, Switching::Wormhole),
            (true, VcRelease::TailCredit, Switching::Wormhole),
            (false, VcRelease::Tail, Switching::VirtualCutThrough),
            (false, VcRelease::TailCredit, Switching::StoreAndForward),
        ] {
            for topology in [Setup::mesh(&[4, 3]), Setup::torus(&[4, 4]), Setup::fat_tree(3, 2)] {
                let router = RouterParameters {
                    pipeline: pipeline.clone(),
                    lookahead,
                    vc_release,
                    switching,
                    virtual_channels: 3,
                    buffer_flits: 5,
                    ..RouterParameters::default()
                };
                let run = |layout| {
                    let router = router.clone();
                    let setup = Setup { router, layout, load: 0.5, packet_flits: 4, paranoid: true, ..topology.clone() };
                    setup.run(&mut Fixed::new(200, 800))
                };
                assert_eq!(run(Some("plain")), run(FULL), "{:?} {router:?}", topology.topology);
            }
        }
    }
}

/// Plain routers that do not speculate take several steps in a cycle as those in the full layout do, bit for bit.
#[test]
fn several_steps_in_a_cycle_are_the_same_in_both_forms() {
    let stage = |name: &str, cycles| PipelineEntry::Timed { stage: name.to_owned(), cycles };
    let long = vec![stage("RC", 2), stage("VA", 2), stage("SA", 1), stage("ST", 2)];
    let plain = RouterParameters { virtual_channels: 3, buffer_flits: 5, ..RouterParameters::default() };
    let input_first = allocator("separable-input-first");
    let routers = [
        plain.clone(),
        RouterParameters { lookahead: true, vc_release: VcRelease::TailCredit, ..plain.clone() },
        RouterParameters { pipeline: long, credit_delay: 2, ..plain.clone() },
        RouterParameters { vc_allocator: input_first.clone(), switch_allocator: input_first, ..plain.clone() },
        RouterParameters { switching: Switching::VirtualCutThrough, ..plain.clone() },
        RouterParameters { switching: Switching::StoreAndForward, ..plain },
    ];
    for router in routers {
        for internal_speedup in [1.3, 2.0] {
            for (topology, packet_flits) in [(Setup::mesh(&[4, 3]), 4), (Setup::torus(&[4, 4]), 1), (Setup::fat_tree(3, 2), 3)] {
                let run = |layout| {
                    let router = RouterParameters { internal_speedup, ..router.clone() };
                    Setup { router, layout, load: 0.6, packet_flits, paranoid: true, ..topology.clone() }.run(&mut Fixed::new(200, 800))
                };
                assert_eq!(run(Some("plain")), run(FULL), "{:?} {internal_speedup} {router:?}", topology.topology);
            }
        }
    }
}

/// Options that stress the full layout, one by one.
fn every_option() -> Vec<RouterParameters> {
    let plain = RouterParameters { virtual_channels: 4, buffer_flits: 3, ..RouterParameters::default() };
    let mut options: Vec<RouterParameters> = every_allocator()
        .into_iter()
        .map(|allocator| RouterParameters { vc_allocator: allocator.clone(), switch_allocator: allocator, ..plain.clone() })
        .collect();
    let timed = |stage: &str, cycles| PipelineEntry::Timed { stage: stage.to_owned(), cycles };
    options.extend([
        RouterParameters { input_speedup: 2, ..plain.clone() },
        RouterParameters { input_speedup: 2, output_speedup: 2, ..plain.clone() },
        RouterParameters { output_speedup: 3, output_buffer_flits: Some(2), ..plain.clone() },
        RouterParameters { internal_speedup: 2.0, ..plain.clone() },
        RouterParameters { internal_speedup: 1.7, speculative: true, ..plain.clone() },
        RouterParameters { internal_speedup: 3.0, input_speedup: 2, output_buffer_flits: Some(4), ..plain.clone() },
        RouterParameters { hold_switch: true, ..plain.clone() },
        RouterParameters { hold_switch: true, input_speedup: 4, output_speedup: 2, ..plain.clone() },
        RouterParameters { hold_switch: true, output_buffer_flits: Some(1), internal_speedup: 1.5, ..plain.clone() },
        RouterParameters { speculative: true, output_buffer_flits: Some(1), output_speedup: 2, ..plain.clone() },
        RouterParameters { speculative: true, switch_allocator: allocator("wavefront"), ..plain.clone() },
        RouterParameters { buffer_policy: BufferPolicy::Shared, ..plain.clone() },
        RouterParameters { buffer_policy: BufferPolicy::Limited, port_buffer_flits: Some(9), most_held_flits: Some(3), ..plain.clone() },
        RouterParameters { buffer_policy: BufferPolicy::Dynamic, private_flits: 2, vc_release: VcRelease::TailCredit, ..plain.clone() },
        RouterParameters { buffer_policy: BufferPolicy::Shifting, port_buffer_flits: Some(5), speculative: true, ..plain.clone() },
        RouterParameters { vc_busy_when_full: true, vc_prefer_empty: true, vc_allocator: allocator("select"), ..plain.clone() },
        RouterParameters { priority: Priority::LocalAge, switch_allocator: allocator("select"), ..plain.clone() },
        RouterParameters { priority: Priority::QueueLength, vc_allocator: allocator("wavefront"), ..plain.clone() },
        RouterParameters { speculation: Speculation::Together, speculative: true, hold_switch: true, ..plain.clone() },
        RouterParameters {
            long_stages: LongStages::Batched,
            pipeline: vec![timed("RC", 2), timed("VA", 1), timed("SA", 1), timed("ST", 3)],
            ..plain.clone()
        },
    ]);
    options
}

/// Batches arrive to the last packet in every kind of router, flits and credits are conserved, and the same run gives the same outcome.
#[test]
fn batches_are_delivered_whatever_the_router() {
    for router in every_option() {
        for (topology, switching) in [
            (Setup::torus(&[4, 4]), Switching::Wormhole),
            (Setup::mesh(&[3, 4]), Switching::VirtualCutThrough),
            (Setup::fat_tree(3, 2), Switching::StoreAndForward),
        ] {
            let switching = if router.buffer_policy == BufferPolicy::Private { switching } else { Switching::Wormhole };
            let router = RouterParameters { switching, ..router.clone() };
            let setup = Setup { router, layout: FULL, packet_flits: 3, paranoid: true, load: 1.0, ..topology }.batch(40);
            let outcome = setup.run(&mut ToTheEnd);
            assert_eq!(outcome.status, Status::Completed, "{:?}", setup.router);
            let packets = outcome.accepted_flits.iter().sum::<u64>() / 3;
            assert_eq!(packets, 40 * u64::from(setup.network().terminal_count()), "{:?}", setup.router);
            assert_eq!(outcome, setup.run(&mut ToTheEnd), "{:?}", setup.router);
        }
    }
}

/// The whole pipeline in a cycle, so that a queue of single flits can send one in each.
fn in_one_cycle() -> Vec<PipelineEntry> {
    vec![PipelineEntry::Together { stages: ["RC", "VA", "SA", "ST"].map(String::from).to_vec(), cycles: 1 }]
}

/// Flits per input and cycle of one switch of 8 ports, whose inputs always have single flits for random outputs.
fn saturated_switch(router: RouterParameters) -> f64 {
    let setup = Setup {
        topology: ("butterfly", "radix = 8\nstages = 1".to_owned()),
        routing: ("destination-tag", ""),
        router: RouterParameters { pipeline: in_one_cycle(), ..router },
        layout: FULL,
        packet_flits: 1,
        load: 1.0,
        ..Setup::mesh(&[2])
    };
    let outcome: Outcome = setup.run(&mut Fixed::new(2000, 20_000));
    outcome.accepted_flits.iter().sum::<u64>() as f64 / outcome.measured_cycles as f64 / 8.0
}

/// With m queues for each output, each with an input of the switch of its own, the outputs of a large switch are busy for
/// m + 1 - sqrt(m^2 + 1) of the time: 0.586 for one (Karol, Hluchyj and Morgan, IEEE Trans. Commun. 35, 1987, whose table I has 0.6184 for
/// one and 8 ports), 0.764 for two, 0.877 for four; a switch of 8 ports does somewhat better.
#[test]
fn inputs_of_the_switch_for_each_virtual_channel_lift_its_saturation_as_published() {
    for inputs in [1, 2, 4] {
        let router = RouterParameters { virtual_channels: inputs, input_speedup: inputs, buffer_flits: 64, ..RouterParameters::default() };
        let (used, queues) = (saturated_switch(router), f64::from(inputs));
        let limit = queues + 1.0 - (queues * queues + 1.0).sqrt();
        assert!((0.0..0.04).contains(&(used - limit)), "{inputs}: {used} {limit}");
    }
}

/// A router that takes two steps in a cycle serves its inputs twice as fast as the channels fill them, and a switch with two outputs for
/// each port and room behind them nearly so: what an output gets in bursts waits there.
#[test]
fn what_serves_twice_as_fast_as_the_channels_is_no_bottleneck() {
    let router = |virtual_channels| RouterParameters { virtual_channels, buffer_flits: 64, ..RouterParameters::default() };
    let internal = saturated_switch(RouterParameters { internal_speedup: 2.0, ..router(1) });
    assert!(internal > 0.97, "{internal}");
    let both = saturated_switch(RouterParameters { input_speedup: 2, output_speedup: 2, ..router(2) });
    let input = saturated_switch(RouterParameters { input_speedup: 2, ..router(2) });
    assert!(both > input + 0.1, "{both} {input}");
}

/// With all stages of one cycle, a router of speed-up s takes ceil(4 / s) cycles in place of 4.
#[test]
fn internal_speedup_shortens_the_pipeline() {
    let latency = |internal_speedup| {
        let router = RouterParameters { internal_speedup, ..RouterParameters::default() };
        let setup = Setup { router, layout: FULL, packet_flits: 1, load: 0.001, include_self: false, ..Setup::mesh(&[2]) };
        setup.run(&mut Fixed::new(1000, 100_000)).network_latency.min
    };
    // 1 + L_inj + R P + L_ej + (R - 1) L with R = 2 routers and all L = 1.
    assert_eq!([1.0, 2.0, 4.0].map(latency), [3 + 2 * 4 + 1, 3 + 2 * 2 + 1, 3 + 2 + 1]);
}

/// A packet that keeps its path through the switch is not disturbed: of packets of 8 flits from two inputs to one output each passes as a whole.
#[test]
fn a_held_switch_lets_packets_pass_as_a_whole() {
    let spread = |hold_switch| {
        let router = RouterParameters { hold_switch, virtual_channels: 8, buffer_flits: 16, ..RouterParameters::default() };
        let setup = Setup {
            topology: ("butterfly", "radix = 4\nstages = 1".to_owned()),
            routing: ("destination-tag", ""),
            router,
            layout: FULL,
            packet_flits: 8,
            load: 0.5,
            ..Setup::mesh(&[2])
        };
        let outcome = setup.run(&mut Fixed::new(2000, 20_000));
        // What a packet's tail loses on its head, over what the flits themselves lose.
        outcome.network_latency.sum / outcome.network_latency.count as f64
    };
    let (held, free) = (spread(true), spread(false));
    assert!(held < free, "{held} {free}");
}

/// Flits per cycle that leave by one output of a switch of 8 ports, which all inputs want: packets of 16 flits, whatever their buffers.
fn busy_output(hold_switch: bool, router: &RouterParameters) -> Outcome {
    let setup = Setup {
        topology: ("butterfly", "radix = 8\nstages = 1".to_owned()),
        routing: ("destination-tag", ""),
        router: RouterParameters { hold_switch, virtual_channels: 8, ..router.clone() },
        layout: FULL,
        pattern: ("hotspot", "terminals = [0]\nweights = [1.0]"),
        packet_flits: 16,
        load: 1.0,
        paranoid: true,
        ..Setup::mesh(&[2])
    };
    setup.run(&mut Fixed::new(400, 2000))
}

/// A packet keeps its path through the switch while it can use it, and no longer. Where its buffer runs empty, others have the output from
/// the next cycle on, so that an output that all inputs want is busy in every cycle, as without holding; where credits run out first, the
/// router learns it in the cycle in which the next flit would have crossed, and of B + 1 cycles, B being the credits, one is lost.
#[test]
fn a_held_switch_leaves_no_output_idle_that_another_input_can_use() {
    let per_cycle = |outcome: &Outcome| outcome.accepted_flits[0] as f64 / outcome.measured_cycles as f64;
    for speculation in [None, Some(Speculation::Separate), Some(Speculation::Together)] {
        let router = |buffer_flits| RouterParameters {
            buffer_flits,
            speculative: speculation.is_some(),
            speculation: speculation.unwrap_or_default(),
            switch_allocator: allocator("wavefront"),
            ..RouterParameters::default()
        };
        let (held, free) = (busy_output(true, &router(2)), busy_output(false, &router(2)));
        assert!(per_cycle(&free) > 0.99, "{speculation:?}: {}", per_cycle(&free));
        assert!(per_cycle(&held) > 0.99, "{speculation:?}: {}", per_cycle(&held));
        for buffer_flits in [3, 4, 6, 16, 20] {
            let held = per_cycle(&busy_output(true, &router(buffer_flits)));
            let least = f64::from(buffer_flits) / f64::from(buffer_flits + 1);
            assert!(held > 0.99 * least, "{speculation:?}, {buffer_flits} flits: {held}, {least}");
        }
        // A buffer of one flit never has the next one: there is nothing to keep a path for.
        assert_eq!(busy_output(true, &router(1)), busy_output(false, &router(1)), "{speculation:?}");
    }
}

/// Without other packets a batched traversal of two cycles delays a packet by one, once, as its second flit comes while the first is on
/// its way (measured of BookSim 2), and a packet of one flit not at all; with others, heads and flits wait for each other, which
/// they do not in pipelined stages.
#[test]
fn batched_stages_make_packets_wait_for_each_other() {
    let timed = |stage: &str, cycles| PipelineEntry::Timed { stage: stage.to_owned(), cycles };
    let latency = |long_stages, packet_flits, load| {
        let pipeline = vec![timed("RC", 2), timed("VA", 1), timed("SA", 1), timed("ST", 2)];
        let router = RouterParameters { pipeline, long_stages, virtual_channels: 8, ..RouterParameters::default() };
        let outcome = Setup { router, load, packet_flits, ..Setup::mesh(&[4, 4]) }.run(&mut Fixed::new(2000, 40_000));
        outcome.network_latency.sum / outcome.network_latency.count as f64
    };
    let added = |flits, load| latency(LongStages::Batched, flits, load) - latency(LongStages::Pipelined, flits, load);
    assert!(added(1, 0.001).abs() < 0.1, "{}", added(1, 0.001));
    assert!((added(5, 0.001) - 1.0).abs() < 0.1, "{}", added(5, 0.001));
    assert!(added(5, 0.3) > 1.5, "{}", added(5, 0.3));
}

/// Packets of one flit bid for the switch speculatively at every router. Where real and speculative bids are in one allocation, iSLIP, which
/// knows no priorities, lets the latter displace the former, and the network accepts less. Without speculation there is nothing to displace,
/// and in an empty network no bid is.
#[test]
fn speculation_together_wastes_the_switch_where_priorities_are_not_heeded() {
    let accepted = |speculation, speculative, load| {
        let router = RouterParameters { speculation, speculative, virtual_channels: 8, lookahead: true, ..RouterParameters::default() };
        let outcome = Setup { router, load, packet_flits: 1, ..Setup::mesh(&[3, 3, 3]) }.run(&mut Fixed::new(2000, 10_000));
        (outcome.accepted_flits.iter().sum::<u64>() as f64, outcome.network_latency)
    };
    let (apart, together) = (accepted(Speculation::Separate, true, 1.0).0, accepted(Speculation::Together, true, 1.0).0);
    assert!(together < 0.95 * apart, "{together} {apart}");
    assert_eq!(accepted(Speculation::Separate, false, 1.0), accepted(Speculation::Together, false, 1.0));
    let latency = |speculation| accepted(speculation, true, 0.001).1;
    let means = [Speculation::Separate, Speculation::Together].map(|way| latency(way).sum / latency(way).count as f64);
    assert!((means[0] - means[1]).abs() < 0.02, "{means:?}");
}

/// What each of 5 terminals in a row sends to the terminal at the end, when all send as much as they can.
fn shares_on_a_row(router: RouterParameters) -> Vec<f64> {
    let setup = Setup {
        router: RouterParameters { pipeline: in_one_cycle(), virtual_channels: 4, buffer_flits: 8, ..router },
        pattern: ("hotspot", "terminals = [0]\nweights = [1.0]"),
        load: 1.0,
        packet_flits: 4,
        ..Setup::mesh(&[5])
    };
    let outcome = setup.run(&mut Fixed::new(5000, 20_000));
    let all: u64 = outcome.injected_flits.iter().sum();
    outcome.injected_flits.iter().map(|&flits| flits as f64 / all as f64).collect()
}

/// The parking lot: local arbiters halve what is left at each router, so that the farthest of 5 gets 1/16. Where the packet goes first that
/// was created first, everybody gets a fifth.
#[test]
fn age_is_fair_where_local_arbiters_are_not() {
    let separable = |arbiter| separable("input", ArbiterParameters::Single(arbiter));
    let halved = shares_on_a_row(RouterParameters { switch_allocator: separable(Arbiter::Matrix), ..RouterParameters::default() });
    for (share, wanted) in halved.iter().zip([0.5, 0.25, 0.125, 0.0625, 0.0625]) {
        assert!((share - wanted).abs() < 0.02, "{halved:?}");
    }
    let by_arbiter = RouterParameters {
        switch_allocator: separable(Arbiter::Age),
        vc_allocator: separable(Arbiter::Age),
        ..RouterParameters::default()
    };
    let by_priority = RouterParameters {
        priority: Priority::Age,
        switch_allocator: allocator("wavefront"),
        vc_allocator: allocator("wavefront"),
        ..RouterParameters::default()
    };
    for router in [by_arbiter, by_priority] {
        let equal = shares_on_a_row(router);
        assert!(equal.iter().all(|share| (share - 0.2).abs() < 0.02), "{equal:?}");
    }
}

/// Two terminals send all they can to a third one: alike they get half of its channel each, but where their classes have priorities the
/// urgent one gets all.
#[test]
fn urgent_classes_go_first() {
    let sent = |priority| {
        let router = RouterParameters {
            priority,
            switch_allocator: allocator("select"),
            vc_allocator: allocator("select"),
            virtual_channels: 4,
            buffer_flits: 16,
            ..RouterParameters::default()
        };
        let star = ("butterfly", "radix = 4\nstages = 1".to_owned());
        let setup = Setup {
            topology: star,
            routing: ("destination-tag", ""),
            router,
            layout: FULL,
            load: 1.0,
            packet_flits: 8,
            ..Setup::mesh(&[2])
        };
        let mut scenario = setup.build();
        scenario.classes.push(scenario.classes[0].clone());
        for (number, class) in scenario.classes.iter_mut().enumerate() {
            class.pattern = Arc::new(Single { source: TerminalId(number as u32), destination: TerminalId(3) });
            class.priority = number as i32;
        }
        let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut Fixed::new(2000, 10_000)).unwrap();
        [0, 1].map(|terminal| outcome.injected_flits[terminal] as f64 / outcome.measured_cycles as f64)
    };
    let [one, other] = sent(Priority::None);
    assert!((one - 0.5).abs() < 0.01 && (other - 0.5).abs() < 0.01, "{one} {other}");
    let [late, urgent] = sent(Priority::Class);
    assert!(urgent > 0.95 && late < 0.05, "{late} {urgent}");
}

/// One terminal has packets of two classes, more than it can send: they take turns, but where classes have priorities those of the urgent one
/// leave first.
#[test]
fn urgent_packets_leave_their_source_first() {
    let received = |priority| {
        let router = RouterParameters { priority, ..RouterParameters::default() };
        let star = ("butterfly", "radix = 4\nstages = 1".to_owned());
        let setup = Setup {
            topology: star,
            routing: ("destination-tag", ""),
            router,
            layout: FULL,
            load: 1.0,
            packet_flits: 4,
            ..Setup::mesh(&[2])
        };
        let mut scenario = setup.build();
        scenario.classes.push(scenario.classes[0].clone());
        for (number, class) in (0..).zip(&mut scenario.classes) {
            class.pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(2 + number) });
            class.priority = number as i32;
        }
        let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut Fixed::new(2000, 10_000)).unwrap();
        [2, 3].map(|terminal| outcome.accepted_flits[terminal] as f64 / outcome.measured_cycles as f64)
    };
    let [one, other] = received(Priority::None);
    assert!((one - other).abs() < 0.01, "{one} {other}");
    let [late, urgent] = received(Priority::Class);
    assert!(late < 0.01 && (urgent - one - other).abs() < 0.01, "{late} {urgent}");
}

/// Two terminals of a corner of a 2 x 2 mesh send to those of the opposite corner. In dimension order all goes by one channel; where the
/// router takes what is free, by both.
#[test]
fn an_adaptive_routing_uses_all_shortest_ways() {
    let delivered = |routing| {
        let router = RouterParameters { pipeline: in_one_cycle(), virtual_channels: 4, buffer_flits: 16, ..RouterParameters::default() };
        let topology = ("mesh", "dimensions = [2, 2]\nconcentration = 2".to_owned());
        let mut scenario = Setup { topology, routing: (routing, ""), router, load: 1.0, packet_flits: 4, ..Setup::mesh(&[2]) }.build();
        scenario.classes.push(scenario.classes[0].clone());
        for (number, class) in (0..).zip(&mut scenario.classes) {
            class.pattern = Arc::new(Single { source: TerminalId(number), destination: TerminalId(6 + number) });
        }
        let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut Fixed::new(1000, 10_000)).unwrap();
        outcome.accepted_flits.iter().sum::<u64>() as f64 / outcome.measured_cycles as f64
    };
    let [fixed, adaptive, planar] = ["dimension-order", "minimal-adaptive", "planar-adaptive"].map(delivered);
    assert!((0.9..=1.0).contains(&fixed), "{fixed}");
    assert!(adaptive > 1.8, "{adaptive}");
    // In planes the second dimension has one of four virtual channels, in which packets come one by one.
    assert!(planar > 1.4, "{planar}");
}

/// Long packets through small buffers, as many as there can be: with one adaptive virtual channel beside the escape path everything
/// arrives, on meshes, tori and networks without coordinates. In planes everything does with three of them.
#[test]
fn adaptive_packets_keep_moving() {
    let (minimal, planar) = ("minimal-adaptive", "planar-adaptive");
    for (topology, routing, virtual_channels) in [
        (Setup::mesh(&[4, 4]), minimal, 2),
        (Setup::torus(&[4, 4]), minimal, 3),
        (Setup::torus(&[4, 4]), minimal, 2),
        (Setup::fat_tree(2, 3), minimal, 2),
        (Setup::mesh(&[4, 4]), planar, 3),
        (Setup::mesh(&[3, 2, 3]), planar, 4),
    ] {
        for (allocator_name, switching) in [("islip", Switching::Wormhole), ("wavefront", Switching::VirtualCutThrough)] {
            let router = RouterParameters {
                virtual_channels,
                buffer_flits: if switching == Switching::Wormhole { 2 } else { 10 },
                switching,
                vc_allocator: allocator(allocator_name),
                vc_release: VcRelease::TailCredit,
                ..RouterParameters::default()
            };
            let setup = Setup { router, routing: (routing, ""), load: 1.0, packet_flits: 10, paranoid: true, ..topology.clone() }.batch(60);
            let outcome = setup.run(&mut ToTheEnd);
            assert_eq!(outcome.status, Status::Completed, "{:?} {:?}", setup.topology, setup.router);
        }
    }
}

/// An escape path helps those who can take it. A head that gets an adaptive virtual channel without room waits for that one alone, and at
/// full load such heads come to wait for each other; the static check finds the cycle. With room for what a head gets, all arrives.
#[test]
fn an_escape_path_has_to_be_kept_open() {
    let usual = RouterParameters { virtual_channels: 2, buffer_flits: 4, ..RouterParameters::default() };
    let ends = |router: &RouterParameters| {
        let setup = Setup { router: router.clone(), routing: ("minimal-adaptive", ""), load: 1.0, packet_flits: 4, ..Setup::mesh(&[5, 5]) };
        let is_safe = setup.build().check_deadlock(u64::MAX).is_safe();
        (is_safe, (1..=4).map(|seed| Setup { seed, ..setup.clone() }.batch(400).run(&mut ToTheEnd).status).collect::<Vec<_>>())
    };
    let (is_safe, closed) = ends(&usual);
    assert!(!is_safe && closed.contains(&Status::Deadlock), "{closed:?}");
    for router in [
        RouterParameters { vc_release: VcRelease::TailCredit, ..usual.clone() },
        RouterParameters { vc_busy_when_full: true, ..usual.clone() },
        RouterParameters { switching: Switching::VirtualCutThrough, ..usual.clone() },
        RouterParameters { switching: Switching::StoreAndForward, ..usual },
    ] {
        assert_eq!(ends(&router), (true, vec![Status::Completed; 4]), "{router:?}");
    }
}

/// One virtual channel of 16 carries a flit only every (round trip / 2) cycles with 2 places of its own; out of a shared buffer it takes what the
/// others leave and sends one in each cycle.
#[test]
fn a_lone_packet_has_the_whole_of_a_shared_buffer() {
    let cycles = |buffer_policy| {
        let router = RouterParameters { buffer_policy, virtual_channels: 16, buffer_flits: 2, ..RouterParameters::default() };
        let mut scenario = Setup { router, layout: FULL, packet_flits: 100, ..Setup::mesh(&[4]) }.batch(1).build();
        scenario.classes[0].pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(3) });
        kasuri_flit::FlitEngine.run(&scenario, &mut ToTheEnd).unwrap().network_latency.max
    };
    // 1 + L_inj + R P + (R - 1) L + L_ej + (M - 1), with R = 4, P = 4.
    assert_eq!(cycles(BufferPolicy::Shared), 1 + 1 + 16 + 3 + 1 + 99);
    // A round trip of 5 cycles between routers: 2 of 5 of the bandwidth.
    let private = cycles(BufferPolicy::Private) as f64;
    assert!((private / 100.0 - 2.5).abs() < 0.25, "{private}");
}

/// A virtual channel that nobody holds but that is full of waiting flits keeps a head back unless such channels count as taken: then the head
/// takes another, and passes those that wait.
#[test]
fn heads_keep_away_from_full_channels_where_they_are_taken() {
    let latency = |vc_busy_when_full| {
        let router = RouterParameters { vc_busy_when_full, virtual_channels: 4, buffer_flits: 1, ..RouterParameters::default() };
        let outcome =
            Setup { router, layout: FULL, load: 0.15, packet_flits: 1, ..Setup::mesh(&[4, 4]) }.run(&mut Fixed::new(2000, 20_000));
        outcome.network_latency.sum / outcome.network_latency.count as f64
    };
    let [usual, careful] = [false, true].map(latency);
    assert!(careful < usual, "{careful} {usual}");
}

/// Over channels that take several cycles for a flit, too, and where so little is under way that nothing but the time wakes a router whose
/// flit waits for its channel.
#[test]
fn both_forms_send_over_slow_channels_as_soon_as_they_can() {
    let networks = [Setup::mesh(&[4, 3]), Setup::torus(&[4, 4]), Setup::fat_tree(3, 2)];
    for (setup, (channel_period, terminal_channel_period)) in networks.iter().zip([(3, 2), (8, 1), (1, 5)]) {
        let channels = ChannelParameters {
            channel_period: PerDimension::All(channel_period),
            terminal_channel_period,
            ..ChannelParameters::default()
        };
        for load in [0.002, 0.05] {
            let plain = Setup { channels: channels.clone(), load, paranoid: true, ..setup.clone() };
            let general = Setup { layout: FULL, ..plain.clone() };
            assert_eq!(plain.run(&mut Fixed::new(1000, 4000)), general.run(&mut Fixed::new(1000, 4000)), "{channels:?}, load {load}");
        }
    }
}

/// Adaptive routings see the same congestion in both layouts, whatever counts as such: also the claims of heads that are routed in the same cycle.
#[test]
fn both_forms_see_the_same_congestion() {
    let tree = Setup { routing: ("nca", "up_port = \"adaptive\""), ..Setup::fat_tree(3, 2) };
    let group = Setup {
        topology: ("dragonfly", "terminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2".to_owned()),
        routing: ("ugal", ""),
        ..Setup::mesh(&[2])
    };
    for setup in [tree, group] {
        for (congestion, lookahead) in [(Congestion::Claimed, false), (Congestion::Claimed, true), (Congestion::Credits, false)] {
            let channels = ChannelParameters { channel_latency: PerDimension::All(20), ..ChannelParameters::default() };
            let router = RouterParameters { congestion, lookahead, ..setup.router.clone() };
            let plain = Setup { channels, router, load: 0.6, paranoid: true, ..setup.clone() };
            let general = Setup { layout: FULL, ..plain.clone() };
            assert_eq!(plain.run(&mut Fixed::new(300, 1500)), general.run(&mut Fixed::new(300, 1500)), "{congestion:?}");
        }
    }
}
