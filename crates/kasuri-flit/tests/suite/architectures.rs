//! Routers with a queue for each output: virtual-output-queued and crosspoint-buffered ones, on any topology.

use crate::common::{Fixed, Setup, Single, ToTheEnd};
use kasuri_model::engine::{Engine, Status};
use kasuri_model::router::{Architecture, PipelineEntry, RouterParameters, Switching};
use kasuri_network::id::TerminalId;
use std::sync::Arc;

const QUEUED: [Architecture; 2] = [Architecture::VirtualOutputQueued, Architecture::Crosspoint];

fn router(architecture: Architecture, virtual_channels: u32, buffer_flits: u32) -> RouterParameters {
    RouterParameters { architecture, virtual_channels, buffer_flits, ..RouterParameters::default() }
}

/// An empty network has nothing to queue for: a packet takes the same stages of the pipeline in each kind of router.
#[test]
fn a_lone_packet_takes_as_long_as_in_input_queued_routers() {
    for topology in [Setup::mesh(&[4, 4]), Setup::fat_tree(2, 3), Setup::torus(&[5])] {
        let latency = |architecture: Architecture, destination: u32| {
            let mut scenario = Setup { router: router(architecture, 2, 8), ..topology.clone() }.batch(1).build();
            scenario.classes[0].pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(destination) });
            let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
            assert_eq!((outcome.status, outcome.network_latency.count), (Status::Completed, 1));
            (outcome.network_latency.max, outcome.hops.max)
        };
        for destination in 1..topology.network().terminal_count() {
            let usual = latency(Architecture::InputQueued, destination);
            assert_eq!(QUEUED.map(|architecture| latency(architecture, destination)), [usual; 2], "{:?} {destination}", topology.topology);
        }
    }
}

/// Batches arrive to the last packet, flits and credits are conserved: rings with dateline classes, trees with random paths up, small
/// buffers, packets that are cut through.
#[test]
fn batches_are_delivered_on_any_topology() {
    for architecture in QUEUED {
        for topology in [Setup::torus(&[4, 4]), Setup::mesh(&[3, 4]), Setup::fat_tree(3, 2)] {
            for (packet_flits, buffer_flits, switching) in
                [(1, 1, Switching::Wormhole), (5, 2, Switching::Wormhole), (4, 4, Switching::VirtualCutThrough)]
            {
                let router = RouterParameters { switching, ..router(architecture, 2, buffer_flits) };
                let setup = Setup { router, packet_flits, paranoid: true, load: 1.0, ..topology.clone() }.batch(100);
                let outcome = setup.run(&mut ToTheEnd);
                assert_eq!(outcome.status, Status::Completed, "{:?}", setup.router);
                let packets = outcome.accepted_flits.iter().sum::<u64>() / u64::from(packet_flits);
                assert_eq!(packets, 100 * u64::from(setup.network().terminal_count()));
            }
        }
    }
}

/// The whole pipeline in a cycle, so that a queue of single flits can send one in each.
fn in_one_cycle() -> Vec<PipelineEntry> {
    vec![PipelineEntry::Together { stages: ["RC", "VA", "SA", "ST"].map(String::from).to_vec(), cycles: 1 }]
}

/// What one switch of 8 inputs delivers of single flits to random outputs, when all inputs always have some.
fn saturated_switch(architecture: Architecture, buffer_flits: u32) -> f64 {
    let setup = Setup {
        topology: ("butterfly", "radix = 8\nstages = 1".to_owned()),
        routing: ("destination-tag", ""),
        router: RouterParameters { pipeline: in_one_cycle(), ..router(architecture, 1, buffer_flits) },
        packet_flits: 1,
        load: 1.0,
        ..Setup::mesh(&[2])
    };
    let outcome = setup.run(&mut Fixed::new(2000, 20_000));
    outcome.accepted_flits.iter().sum::<u64>() as f64 / outcome.measured_cycles as f64 / 8.0
}

/// With a queue for each input, the first packet keeps back those behind it: 0.6184 of the bandwidth is left with 8 inputs (Karol, Hluchyj
/// and Morgan, "Input versus output queueing on a space-division packet switch", IEEE Trans. Commun. 35, 1987, table I). With one for each
/// output nearly all is used, by iSLIP (McKeown 1999) as well as where each output takes what it finds.
#[test]
fn queues_for_each_output_keep_nobody_back() {
    let one = saturated_switch(Architecture::InputQueued, 64);
    assert!((one - 0.6184).abs() < 0.02, "{one}");
    for architecture in QUEUED {
        let each = saturated_switch(architecture, 64);
        assert!(each > 0.95, "{architecture:?} {each}");
    }
}

/// An input of a crosspoint router may send to all outputs at a time: with the same short queues it delivers more.
#[test]
fn crosspoints_need_no_matching() {
    let [matched, crossing] = QUEUED.map(|architecture| saturated_switch(architecture, 4));
    assert!(crossing > matched, "{crossing} and {matched}");
}

/// The layouts of the engine agree on virtual-output-queued routers: 5 outputs with a queue each.
#[test]
fn layouts_agree_on_queues_for_outputs() {
    for (load, packet_flits) in [(0.1, 1), (0.6, 5)] {
        let router = router(Architecture::VirtualOutputQueued, 1, 6);
        let setup = Setup { load, packet_flits, router, paranoid: true, ..Setup::mesh(&[5, 4]) };
        let run = |simd: &str| Setup { simd: simd.to_owned(), ..setup.clone() }.run(&mut Fixed::new(200, 600));
        assert_eq!(run("portable"), run("always"));
    }
}
