//! The vector layout and the plain layout give the same outcome, bit for bit; flits and credits are conserved in both.

use crate::common::{Fixed, Setup};
use kasuri_flit::FlitEngine;
use kasuri_model::engine::Engine;
use kasuri_model::refusal::Refusal;
use kasuri_model::router::{RouterParameters, Switching, VcRelease};

fn both_layouts_agree(setup: Setup) {
    let run = |simd: &str| Setup { simd: simd.to_owned(), paranoid: true, ..setup.clone() }.run(&mut Fixed::new(200, 600));
    let (portable, vector) = (run("portable"), run("always"));
    assert_eq!(portable, vector, "{:?} {:?}", setup.topology, setup.router);
    assert!(portable.flit_hops > 0);
}

fn router(virtual_channels: u32, buffer_flits: u32) -> RouterParameters {
    RouterParameters { virtual_channels, buffer_flits, ..RouterParameters::default() }
}

#[test]
fn layouts_agree_on_small_routers_with_any_number_of_virtual_channels() {
    for virtual_channels in 1..=8 {
        for (load, packet_flits, buffer_flits) in [(0.05, 1, 2), (0.4, 5, 4), (0.9, 3, 8)] {
            let router = router(virtual_channels, buffer_flits);
            both_layouts_agree(Setup { load, packet_flits, router, ..Setup::mesh(&[5, 4]) });
        }
    }
}

#[test]
fn layouts_agree_on_tori_and_trees() {
    for (virtual_channels, packet_flits) in [(2, 1), (3, 7), (4, 5)] {
        both_layouts_agree(Setup { load: 0.6, packet_flits, router: router(virtual_channels, 3), ..Setup::torus(&[4, 4]) });
        both_layouts_agree(Setup { load: 0.8, packet_flits, router: router(virtual_channels, 6), ..Setup::fat_tree(3, 3) });
    }
}

/// Routers of 72, 40 and 96 ports take two, three and four words, and those at the top of their trees, with half as many ports, fewer; a mesh of
/// four dimensions shares a word among three.
#[test]
fn layouts_agree_on_routers_of_several_words() {
    for (arity, virtual_channels) in [(36, 2), (20, 4), (24, 2), (48, 1), (18, 2)] {
        both_layouts_agree(Setup { load: 0.7, packet_flits: 12, router: router(virtual_channels, 5), ..Setup::fat_tree(arity, 2) });
    }
    both_layouts_agree(Setup { load: 0.3, router: router(2, 4), ..Setup::mesh(&[2, 3, 2, 2]) });
}

/// Routers of 320 to 512 virtual channels take five to eight words, and the numbers of their slots nine bits; those at the top take three and four.
#[test]
fn layouts_agree_on_routers_of_more_than_256_virtual_channels() {
    for (arity, virtual_channels) in [(80, 2), (33, 4), (17, 8), (100, 1), (128, 2), (64, 4), (32, 8)] {
        let setup = Setup { load: 0.6, packet_flits: 3, router: router(virtual_channels, 4), paranoid: true, ..Setup::fat_tree(arity, 2) };
        let run = |simd: &str| Setup { simd: simd.to_owned(), ..setup.clone() }.run(&mut Fixed::new(10, 40));
        assert_eq!(run("portable"), run("always"), "{arity} {virtual_channels}");
    }
}

/// From 131,072 virtual channels on, both fetch ahead what they will look at: every place that they name exists (assertions are on).
#[test]
fn layouts_agree_on_networks_that_no_near_cache_holds() {
    let setup = Setup { load: 0.15, packet_flits: 4, router: router(2, 8), max_cycles: 70, paranoid: true, ..Setup::torus(&[24, 24, 24]) };
    let run = |simd: &str, tiles| Setup { simd: simd.to_owned(), tiles, ..setup.clone() }.run(&mut Fixed::new(20, 50));
    let whole = run("portable", 1);
    assert!(whole.flit_hops > 500_000, "{}", whole.flit_hops);
    assert_eq!(whole, run("portable", 3));
    assert_eq!(whole, run("always", 3));
}

#[test]
fn layouts_agree_on_channels_of_different_latency() {
    let channels = kasuri_network::topology::ChannelParameters {
        channel_latency: kasuri_network::topology::PerDimension::Each(vec![1, 7]),
        terminal_channel_latency: 2,
        ..Default::default()
    };
    both_layouts_agree(Setup { channels, load: 0.4, ..Setup::mesh(&[4, 4]) });
}

#[test]
fn layouts_agree_with_long_route_computation_and_lookahead() {
    for (cycles, lookahead) in [(3, false), (1, true)] {
        let stage = |name: &str, cycles| kasuri_model::router::PipelineEntry::Timed { stage: name.to_owned(), cycles };
        let pipeline = vec![stage("RC", cycles), stage("VA", 1), stage("SA", 1), stage("ST", 2)];
        let router = RouterParameters { pipeline, lookahead, ..router(2, 6) };
        both_layouts_agree(Setup { router, load: 0.5, ..Setup::mesh(&[4, 4]) });
    }
}

/// A layout is refused by name for each feature that it lacks, and the refusal names the layouts that have all.
#[test]
fn a_layout_that_lacks_something_is_refused_for_it() {
    let refusals = |layout, router: RouterParameters| -> Vec<String> {
        let scenario = Setup { layout: Some(layout), router, ..Setup::mesh(&[3, 3]) }.build();
        let refused = FlitEngine.prepare(&scenario).err().unwrap_or_default();
        refused.iter().map(Refusal::to_string).filter(|text| !text.contains("lacks the vector instructions")).collect()
    };
    let router = RouterParameters { switching: Switching::VirtualCutThrough, vc_release: VcRelease::TailCredit, ..router(2, 8) };
    assert!(refusals("plain", router.clone()).is_empty() && refusals("full", router.clone()).is_empty());
    let lacking = refusals("avx512", router);
    assert_eq!(lacking.len(), 2, "{lacking:#?}");
    assert!(lacking[0].starts_with("flit.layout: is \"avx512\", which conflicts with router.switching = \"virtual-cut-through\": "));
    assert!(
        lacking[1].contains("router.vc_release = \"tail-credit\"") && lacking[1].ends_with("take \"plain\" or \"full\", or leave it out")
    );
    let held = RouterParameters { hold_switch: true, ..RouterParameters::default() };
    assert!(refusals("plain", held.clone())[0].ends_with("take \"full\", or leave it out") && refusals("full", held).is_empty());
    // Its speculative bids have outputs that those of canonical routers leave: that would be another router, not another layout.
    let speculative = RouterParameters { speculative: true, ..RouterParameters::default() };
    assert!(refusals("plain", speculative.clone()).is_empty());
    assert!(refusals("full", speculative)[0].contains("router.speculative = true"));
}
