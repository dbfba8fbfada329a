//! Packets keep moving where nothing forbids it: batches on rings with dateline classes are always delivered.

mod common;

use common::{Fixed, Setup};
use kasuri_model::engine::Status;
use kasuri_model::router::{AllocatorParameters, RouterParameters};

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

/// A class has one virtual channel here, so that often a single head among several may take it: the one served last, too, whose
/// distance from the pointer is the greatest of all numbers.
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
