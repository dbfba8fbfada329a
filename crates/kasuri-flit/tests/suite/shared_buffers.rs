//! Buffers that virtual channels share, where packets wait as a whole. That no flit stops for want of room is an assertion of the router.

use crate::common::{Fixed, Setup, ToTheEnd};
use kasuri_model::engine::Status;
use kasuri_model::router::{BufferPolicy, Priority, RouterParameters, Switching};

const WHOLE: [Switching; 2] = [Switching::VirtualCutThrough, Switching::StoreAndForward];

/// Four virtual channels of 8 flits each.
fn router(switching: Switching) -> RouterParameters {
    RouterParameters { switching, virtual_channels: 4, buffer_flits: 8, ..RouterParameters::default() }
}

fn policies(switching: Switching) -> [RouterParameters; 4] {
    let shared = |buffer_policy| RouterParameters { buffer_policy, private_flits: 5, ..router(switching) };
    [
        shared(BufferPolicy::Shared),
        RouterParameters { most_held_flits: Some(7), ..shared(BufferPolicy::Limited) },
        shared(BufferPolicy::Dynamic),
        RouterParameters { port_buffer_flits: Some(23), ..shared(BufferPolicy::Shifting) },
    ]
}

/// A shared buffer of which nothing is left to share is one buffer for each virtual channel, bit for bit.
#[test]
fn without_a_pool_buffers_are_private() {
    for switching in WHOLE {
        for (topology, load) in [(Setup::mesh(&[4, 3]), 0.5), (Setup::torus(&[4, 4]), 0.8)] {
            let run =
                |router| Setup { router, layout: Some("full"), load, paranoid: true, ..topology.clone() }.run(&mut Fixed::new(200, 1_000));
            let nothing_to_share = RouterParameters { buffer_policy: BufferPolicy::Shared, private_flits: 8, ..router(switching) };
            assert_eq!(run(nothing_to_share), run(router(switching)), "{switching:?}");
        }
    }
}

/// Whoever is alone has the pool: a shared buffer accepts more than private ones of the same size where few virtual channels are used.
#[test]
fn the_pool_serves_whoever_is_there() {
    for switching in WHOLE {
        let accepted = |router: RouterParameters| {
            let channels = kasuri_network::topology::ChannelParameters {
                channel_latency: kasuri_network::topology::PerDimension::All(6),
                ..Default::default()
            };
            // One virtual channel carries all packets of a class; long channels need more than the buffer of one.
            let mut scenario =
                Setup { router, channels, load: 1.0, pattern: ("neighbor", ""), layout: Some("full"), ..Setup::mesh(&[2, 2]) }.build();
            scenario.classes[0].virtual_channels = kasuri_network::routing::VirtualChannels { begin: 0, end: 1 };
            let outcome = kasuri_model::engine::Engine::run(&kasuri_flit::FlitEngine, &scenario, &mut Fixed::new(500, 2_000)).unwrap();
            outcome.accepted_flits.iter().sum::<u64>()
        };
        let shared = accepted(RouterParameters { buffer_policy: BufferPolicy::Shared, private_flits: 5, ..router(switching) });
        let private = accepted(router(switching));
        assert!(shared as f64 > 1.2 * private as f64, "{switching:?}: {shared} {private}");
    }
}

/// Batches arrive to the last packet, with flits and credits conserved, under every policy; in routers that predict, too.
#[test]
fn batches_are_delivered_under_every_policy() {
    for switching in WHOLE {
        for policy in policies(switching) {
            for (predictor, priority) in [("none", Priority::None), ("latest-port", Priority::None), ("oracle", Priority::Age)] {
                let router = RouterParameters { predictor: predictor.to_owned(), priority, ..policy.clone() };
                for topology in [Setup::torus(&[4, 4]), Setup::fat_tree(3, 2)] {
                    let setup = Setup { router: router.clone(), load: 1.0, paranoid: true, ..topology }.batch(40);
                    let outcome = setup.run(&mut ToTheEnd);
                    assert_eq!(outcome.status, Status::Completed, "{router:?}");
                    let terminals = u64::from(setup.network().terminal_count());
                    assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), 40 * 5 * terminals, "{router:?}");
                    assert_eq!(outcome, setup.run(&mut ToTheEnd), "{router:?}");
                }
            }
        }
    }
}
