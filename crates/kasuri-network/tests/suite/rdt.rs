//! Recursive diagonal tori: published and computed distances, and the paths of vector routing.

use crate::common::{network, routing};
use kasuri_network::deadlock::{Verdict, check};
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::network::metrics::Metrics;
use kasuri_network::rng::{Purpose, Streams};
use kasuri_network::routing::{Hop, MeasuredChoice, NoView, Routing, VirtualChannels};
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};
use std::collections::VecDeque;

/// Hops from a router to all.
fn distances(network: &Network, from: RouterId) -> Vec<u32> {
    let mut distance = vec![u32::MAX; network.router_count() as usize];
    distance[from.index()] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(router) = queue.pop_front() {
        for port in 0..network.port_count(router) as u16 {
            let Some(channel) = network.output_channel(router, port) else { continue };
            if network.ejected_terminal(channel).is_none() {
                let (next, _) = network.input_port(channel);
                if distance[next.index()] == u32::MAX {
                    distance[next.index()] = distance[router.index()] + 1;
                    queue.push_back(next);
                }
            }
        }
    }
    distance
}

/// Moving everything by an even number of columns and rows changes nothing, so that four routers stand for all.
fn representatives(side: u32) -> [RouterId; 4] {
    [0, 1, side, side + 1].map(RouterId)
}

/// Diameter and average distance to the others: 11 for 65,536 nodes is the published value (Yang et al. 2001), the others come
/// from a search of their own over the definition.
#[test]
fn diameters_and_average_distances_are_the_known_ones() {
    for (side, diameter, average) in [(16, 5, 3.655), (32, 7, 4.292), (64, 8, 5.458), (128, 10, 7.008), (256, 11, 7.664)] {
        let rdt = network("rdt", &format!("side = {side}"));
        assert_eq!(rdt.router_channels().count() as u32, 8 * side * side, "eight channels leave each router");
        let all: Vec<u32> = representatives(side).into_iter().flat_map(|router| distances(&rdt, router)).collect();
        assert_eq!(all.iter().max(), Some(&diameter), "side {side}");
        let mean = all.iter().map(|&hops| f64::from(hops)).sum::<f64>() / (all.len() - 4) as f64;
        assert!((mean - average).abs() < 0.0005, "side {side}: {mean}");
    }
    let metrics = Metrics::of(&network("rdt", "side = 16"));
    assert_eq!(metrics.distances.diameter, 5);
    assert!((metrics.distances.average - 3.655).abs() < 0.0005);
    // Rank 2 alone is not enough for 64 x 64.
    let low = network("rdt", "side = 64\nranks = 2");
    assert_eq!(representatives(64).iter().flat_map(|&router| distances(&low, router)).max(), Some(11));
}

/// The hops of a packet under a routing.
fn hops(network: &Network, routing: &dyn Routing, source: TerminalId, destination: TerminalId) -> u32 {
    let mut stream = Streams::new(1).get(Purpose::Routing, 0);
    let mut choice = MeasuredChoice { stream: &mut stream, view: &NoView };
    let mut state = routing.initial_state(source, destination, &mut choice);
    let mut channel = network.injection_channel(source);
    let available = VirtualChannels { begin: 0, end: routing.facts().virtual_channels_required as u16 };
    for hops in 0.. {
        let (router, input) = network.input_port(channel);
        let mut candidates = Vec::new();
        let hop = Hop { router, input, virtual_channel: 0, source, destination, available };
        routing.route(&hop, &mut state, &mut choice, &mut candidates);
        channel = network.output_channel(router, candidates[0].port).unwrap();
        if let Some(terminal) = network.ejected_terminal(channel) {
            assert_eq!(terminal, destination);
            return hops;
        }
    }
    unreachable!()
}

/// Longest and mean path of vector routing, and the part of the pairs whose path is a shortest one.
#[test]
fn vector_routing_is_nearly_shortest() {
    for (side, longest, average, shortest) in [(16, 5, 3.655, 1.0), (32, 7, 4.501, 0.83), (64, 9, 5.701, 0.81)] {
        let rdt = network("rdt", &format!("side = {side}"));
        let routing = routing("vector", "", &rdt).unwrap();
        let (mut sum, mut most, mut as_short, mut pairs) = (0, 0, 0, 0);
        for from in representatives(side) {
            let distance = distances(&rdt, from);
            for to in (0..side * side).filter(|&to| to != from.0) {
                let path = hops(&rdt, routing.as_ref(), TerminalId(from.0), TerminalId(to));
                assert!(path >= distance[to as usize]);
                (sum, most, pairs) = (sum + path, most.max(path), pairs + 1);
                as_short += u32::from(path == distance[to as usize]);
            }
        }
        assert_eq!(most, longest, "side {side}");
        let mean = f64::from(sum) / f64::from(pairs);
        assert!((mean - average).abs() < 0.0005, "side {side}: {mean}");
        assert!((f64::from(as_short) / f64::from(pairs) - shortest).abs() < 0.005, "side {side}: {as_short} of {pairs}");
    }
}

#[test]
fn vector_routing_cannot_deadlock() {
    for (parameters, virtual_channels) in [("side = 16", 3), ("side = 16", 5), ("side = 32", 4), ("side = 8\nperfect = true", 3)] {
        let rdt = network("rdt", parameters);
        let routing = routing("vector", "", &rdt).unwrap();
        let report = check(&rdt, routing.as_ref(), &[VirtualChannels { begin: 0, end: virtual_channels }]);
        assert_eq!((report.verdict, report.unroutable), (Verdict::Acyclic, None), "{parameters}");
    }
}

/// Every router of a perfect torus has all ranks, so that no packet steps aside before one.
#[test]
fn perfect_tori_have_all_ranks_everywhere() {
    let rdt = network("rdt", "side = 32\nperfect = true");
    assert_eq!(rdt.router_channels().count(), 32 * 32 * 4 * 3);
    let one = network("rdt", "side = 32");
    // All the links of the other and more: no pair is farther apart, and some are nearer.
    let hops = |network: &Network| -> Vec<u32> { representatives(32).iter().flat_map(|&router| distances(network, router)).collect() };
    let (of_perfect, of_one) = (hops(&rdt), hops(&one));
    assert!(of_perfect.iter().zip(&of_one).all(|(perfect, one)| perfect <= one));
    assert!(of_perfect.iter().sum::<u32>() < of_one.iter().sum());
}

#[test]
fn impossible_sides_and_ranks_name_what_is_possible() {
    for (parameters, needle) in [
        ("side = 12", "e.g. 16"),
        ("side = 4", "e.g. 8"),
        ("side = 16\nranks = 2", "must be 1 to 1"),
        ("side = 8\nconcentration = 0", "at least 1"),
    ] {
        let entry = TOPOLOGIES.iter().find(|entry| entry.name == "rdt").unwrap();
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let error = (entry.parse)(crate::common::example(parameters)).unwrap().build(&context).unwrap_err();
        assert!(error.to_string().contains(needle), "{error}");
    }
}
