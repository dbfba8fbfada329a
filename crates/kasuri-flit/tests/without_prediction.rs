//! Routers without a predictor give what the engine gave before it knew of prediction, bit for bit.
//!
//! `data/without_prediction.csv` was written by this program on the last state of the engine without prediction (the parent of the
//! commit "Predict outputs before packets arrive in the flit engine"); `WRITE=1 cargo test` writes it anew, for a change of results that
//! is meant.

mod common;

use common::{Fixed, Setup};
use kasuri_model::engine::{Distribution, Outcome};
use kasuri_model::router::{AllocatorParameters, PipelineEntry, RouterParameters, Switching, VcRelease};
use kasuri_network::topology::{ChannelParameters, PerDimension};
use std::path::Path;

fn stage(stage: &str, cycles: u32) -> PipelineEntry {
    PipelineEntry::Timed { stage: stage.to_owned(), cycles }
}

/// Routers of all kinds that were there.
fn routers() -> Vec<(&'static str, RouterParameters)> {
    let plain = RouterParameters { virtual_channels: 2, buffer_flits: 5, ..RouterParameters::default() };
    let on_chip = vec![stage("RC", 1), stage("VSA", 1), stage("ST", 1)];
    let long = vec![stage("RC", 3), stage("VA", 1), stage("SA", 2), stage("ST", 2)];
    let allocator = AllocatorParameters::Name("separable-input-first".to_owned());
    vec![
        ("plain", plain.clone()),
        ("on-chip", RouterParameters { pipeline: on_chip, ..plain.clone() }),
        ("long", RouterParameters { pipeline: long, lookahead: true, credit_delay: 2, ..plain.clone() }),
        ("speculative", RouterParameters { speculative: true, virtual_channels: 3, ..plain.clone() }),
        ("cut-through", RouterParameters { switching: Switching::VirtualCutThrough, vc_release: VcRelease::TailCredit, ..plain.clone() }),
        ("store-and-forward", RouterParameters { switching: Switching::StoreAndForward, ..plain.clone() }),
        ("separable", RouterParameters { vc_allocator: allocator.clone(), switch_allocator: allocator, ..plain.clone() }),
        ("many channels", RouterParameters { virtual_channels: 20, ..plain }),
    ]
}

fn setups() -> Vec<(String, Setup)> {
    let butterfly =
        Setup { topology: ("butterfly", "radix = 3\nstages = 3".to_owned()), routing: ("destination-tag", ""), ..Setup::mesh(&[2]) };
    let slow = ChannelParameters {
        channel_latency: PerDimension::All(3),
        channel_period: 2,
        terminal_channel_latency: 2,
        ..ChannelParameters::default()
    };
    let networks = [
        ("mesh", Setup::mesh(&[4, 3])),
        ("slow mesh", Setup { channels: slow, ..Setup::mesh(&[3, 3]) }),
        ("torus", Setup::torus(&[4, 4])),
        ("tree", Setup::fat_tree(3, 3)),
        ("butterfly", butterfly),
    ];
    let mut setups = Vec::new();
    for (network, setup) in networks {
        for (router, parameters) in routers() {
            for load in [0.05, 0.6] {
                for simd in ["portable", "auto"] {
                    let setup = Setup { router: parameters.clone(), load, simd: simd.to_owned(), ..setup.clone() };
                    setups.push((format!("{network},{router},{load},{simd}"), setup));
                }
            }
        }
    }
    setups
}

/// FNV-1a over whole numbers.
fn hash(numbers: impl IntoIterator<Item = u64>) -> u64 {
    let bytes = numbers.into_iter().flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn of_distribution(distribution: &Distribution) -> [u64; 3] {
    [distribution.count, distribution.mean().unwrap_or(0.0).to_bits(), distribution.max]
}

/// Everything that an outcome says, in a few numbers.
fn fingerprint(outcome: &Outcome) -> String {
    let distributions = [&outcome.packet_latency, &outcome.network_latency, &outcome.flit_latency, &outcome.hops];
    let latencies = hash(distributions.into_iter().flat_map(of_distribution));
    let flits = [&outcome.injected_flits, &outcome.accepted_flits, &outcome.channel_flits];
    let flits = hash(flits.into_iter().flatten().copied());
    let occupancy = hash(outcome.router_occupancy.iter().map(|flits| flits.to_bits()));
    format!("{},{},{latencies:016x},{flits:016x},{occupancy:016x}", outcome.cycles, outcome.flit_hops)
}

#[test]
fn routers_without_a_predictor_are_those_of_before() {
    let lines = setups().into_iter().map(|(name, setup)| format!("{name},{}\n", fingerprint(&setup.run(&mut Fixed::new(300, 1_500)))));
    let found = "network,router,load,layout,cycles,flit_hops,latencies,flits,occupancy\n".to_owned() + &lines.collect::<String>();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/without_prediction.csv");
    if std::env::var_os("WRITE").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(found.lines().count(), expected.lines().count());
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
}
