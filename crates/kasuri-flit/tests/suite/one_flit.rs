//! Packets of one flit have a cycle of their own in the plain layout: it is the cycle of all others, bit for bit.

use crate::common::{Fixed, Setup, ToTheEnd};
use kasuri_model::engine::Outcome;
use kasuri_model::router::{AllocatorParameters, ArbiterParameters, Architecture, Draw, PipelineEntry, RouterParameters, Turns, VcRelease};
use kasuri_network::rng::{Purpose, Stream, Streams};

fn one_of<T: Clone>(draws: &mut Stream, of: &[T]) -> T {
    of[draws.below(of.len() as u32) as usize].clone()
}

fn pipelines() -> [Vec<PipelineEntry>; 3] {
    let stage = |name: &str, cycles| PipelineEntry::Timed { stage: name.to_owned(), cycles };
    let shared = PipelineEntry::Together { stages: ["VA", "SA"].map(String::from).to_vec(), cycles: 1 };
    [
        vec![stage("RC", 1), stage("VA", 1), stage("SA", 1), stage("ST", 1)],
        vec![stage("RC", 3), stage("VA", 1), stage("SA", 1), stage("ST", 2)],
        vec![stage("RC", 1), shared, stage("ST", 1)],
    ]
}

fn islip(iterations: u32) -> AllocatorParameters {
    AllocatorParameters::Detailed {
        name: "islip".to_owned(),
        iterations,
        arbiter: ArbiterParameters::default(),
        draw: Draw::default(),
        turns: Turns::default(),
    }
}

/// A network with routers that the cycle serves.
fn drawn(draws: &mut Stream) -> Setup {
    let allocators = [islip(1), islip(2), islip(4), AllocatorParameters::Name("separable-input-first".to_owned())];
    let router = RouterParameters {
        virtual_channels: one_of(draws, &[2, 3, 4, 8, 13]),
        buffer_flits: one_of(draws, &[1, 2, 3, 8]),
        vc_allocator: one_of(draws, &allocators),
        switch_allocator: one_of(draws, &allocators),
        vc_release: one_of(draws, &[VcRelease::Tail, VcRelease::TailCredit]),
        pipeline: one_of(draws, &pipelines()),
        internal_speedup: one_of(draws, &[1.0, 1.0, 1.7, 2.0]),
        lookahead: draws.below(3) == 0,
        architecture: one_of(draws, &[Architecture::InputQueued, Architecture::InputQueued, Architecture::VirtualOutputQueued]),
        ..RouterParameters::default()
    };
    let topology = one_of(draws, &[Setup::mesh(&[4, 3]), Setup::torus(&[4, 4]), Setup::fat_tree(3, 2), Setup::fat_tree(2, 3)]);
    Setup { router, load: one_of(draws, &[0.1, 0.5, 1.0]), packet_flits: 1, paranoid: true, seed: u64::from(draws.below(1000)), ..topology }
}

fn in_layout(setup: &Setup, layout: &'static str, tiles: u32) -> Outcome {
    Setup { layout: Some(layout), tiles, ..setup.clone() }.run(&mut Fixed::new(100, 300))
}

/// Open traffic, from low to saturated, whole and in tiles; the full layout has one cycle for all packets.
#[test]
fn packets_of_one_flit_go_the_same_way_in_the_cycle_of_all() {
    let mut draws = Streams::new(7).get(Purpose::Structure, 1);
    for case in 0..120 {
        let setup = drawn(&mut draws);
        let expected = in_layout(&setup, "full", 1);
        assert!(expected.flit_hops > 0);
        for tiles in [1, 3] {
            assert_eq!(
                in_layout(&setup, "plain", tiles),
                expected,
                "case {case} in {tiles} tiles: {:?} {:?}",
                setup.topology,
                setup.router
            );
        }
    }
}

/// Batches end with their last packet, in the same cycle.
#[test]
fn batches_of_packets_of_one_flit_end_in_the_same_cycle() {
    let mut draws = Streams::new(7).get(Purpose::Structure, 2);
    for case in 0..40 {
        let setup = drawn(&mut draws).batch(30);
        let run = |layout| Setup { layout: Some(layout), ..setup.clone() }.run(&mut ToTheEnd);
        assert_eq!(run("plain"), run("full"), "case {case}: {:?} {:?}", setup.topology, setup.router);
    }
}
