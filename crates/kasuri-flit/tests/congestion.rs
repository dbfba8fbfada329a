//! Adaptive paths by what a router knows of its outputs: never worse than paths drawn blindly, however long the channels are.
//! `validation/congestion` has more networks, patterns and latencies.

mod common;

use common::{Fixed, Setup};
use kasuri_model::router::{Congestion, RouterParameters};
use kasuri_network::topology::{ChannelParameters, PerDimension};

/// Mean time in which a fat tree of 16 terminals delivers batches of a permutation, over a few permutations.
fn permutations(latency: u32, up_port: &'static str, congestion: Congestion) -> f64 {
    let channels = ChannelParameters { channel_latency: PerDimension::All(latency), ..ChannelParameters::default() };
    // Enough to keep a channel busy.
    let router = RouterParameters { virtual_channels: 1, buffer_flits: 16 + 2 * latency, congestion, ..RouterParameters::default() };
    let tree = Setup {
        pattern: ("random-permutation", ""),
        routing: ("nca", up_port),
        channels,
        router,
        packet_flits: 8,
        ..Setup::fat_tree(4, 2)
    };
    let time = |seed| Setup { seed, ..tree.clone() }.batch(60).run(&mut Fixed::new(0, 1000)).completion_time.expect("it is completed");
    (1..=SEEDS).map(time).sum::<f64>() / SEEDS as f64
}

const SEEDS: u64 = 6;

/// A router that counts what heads have claimed spreads packets better than chance does, and than one that waits for credits to be missing:
/// over long channels this one sends all heads to the same output, because nothing tells of those that wait there.
#[test]
fn adaptive_ways_are_no_worse_than_random_ones_over_short_and_long_channels() {
    for latency in [1, 30, 300, 1000] {
        let random = permutations(latency, "up_port = \"random\"", Congestion::Claimed);
        let claimed = permutations(latency, "up_port = \"adaptive\"", Congestion::Claimed);
        let credits = permutations(latency, "up_port = \"adaptive\"", Congestion::Credits);
        println!("{latency}: random {random}, claimed {claimed}, credits {credits}");
        assert!(claimed <= 1.01 * random, "latency {latency}: {claimed} {random}");
        assert!(claimed <= 1.02 * credits, "latency {latency}: {claimed} {credits}");
        if latency >= 30 {
            assert!(credits > 1.01 * claimed, "latency {latency}: {credits} {claimed}");
        }
    }
}
