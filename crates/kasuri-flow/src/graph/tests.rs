//! Rates on random networks against recounts from nothing.

use super::*;
use crate::sharing;
use kasuri_network::rng::{Purpose, Stream, Streams};

/// Progressive filling, from the definition: all rates rise together; where a channel is full its flows stop.
fn fill(bandwidth: &[f64], paths: &[Vec<u32>]) -> Vec<f64> {
    let mut left = bandwidth.to_vec();
    let mut rates: Vec<Option<f64>> = vec![None; paths.len()];
    while rates.iter().any(Option::is_none) {
        let open = |channel: u32| paths.iter().zip(&rates).filter(|(path, rate)| rate.is_none() && path.contains(&channel)).count();
        let levels = (0..left.len() as u32)
            .filter(|&channel| open(channel) > 0)
            .map(|channel| (left[channel as usize] / open(channel) as f64, channel));
        let (level, full) = levels.min_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
        for (path, rate) in paths.iter().zip(&mut rates).filter(|(path, rate)| rate.is_none() && path.contains(&full)) {
            *rate = Some(level);
            path.iter().for_each(|&channel| left[channel as usize] -= level);
        }
    }
    rates.into_iter().flatten().collect()
}

fn shares(bandwidth: &[f64], paths: &[Vec<u32>]) -> Vec<f64> {
    let flows = |channel: u32| paths.iter().filter(|path| path.contains(&channel)).count() as f64;
    let rate = |path: &Vec<u32>| path.iter().map(|&channel| bandwidth[channel as usize] / flows(channel)).fold(f64::INFINITY, f64::min);
    paths.iter().map(rate).collect()
}

/// Terminals of the random networks, whose ejection channels come after the others.
const TERMINALS: u32 = 4;

/// Half of the paths to a terminal take the channels that are its own by number.
fn random_path(stream: &mut Stream, channels: u32, destination: u32) -> Vec<u32> {
    let mut path: Vec<u32> = Vec::new();
    let own = stream.below(2) == 0;
    for _ in 0..=stream.below(12) {
        let channel = stream.below(channels);
        if !path.contains(&channel) && (!own || channel % TERMINALS == destination) {
            path.push(channel);
        }
    }
    path.push(channels + destination);
    path
}

/// Flows come and go on random networks; after each step every rate is that of a calculation from nothing.
fn follows(name: &str, expected: impl Fn(&[f64], &[Vec<u32>]) -> Vec<f64>) {
    for seed in 0..1000 {
        let mut stream = Streams::new(seed).get(Purpose::Structure, 0);
        let channels = 1 + stream.below(20);
        let bandwidth: Vec<f64> = (0..channels + TERMINALS).map(|_| 1.0 / f64::from(1 + stream.below(3))).collect();
        let mut policy = sharing::by_levels(name).unwrap();
        let mut graph = Graph::new(Bandwidth::Each(bandwidth.clone().into()), 0..bandwidth.len() as u32, channels, 64);
        let mut active: Vec<(u32, Vec<u32>)> = Vec::new();
        let mut now = 0.0;
        for flow in 0..20 {
            if stream.below(3) == 0 && !active.is_empty() {
                now = graph.next_end().unwrap();
                let first = graph.end_first();
                active.retain(|(flow, _)| *flow != first);
            }
            let destination = stream.below(TERMINALS);
            let path = random_path(&mut stream, channels, destination);
            graph.begin(flow, path[0], &path[1..], destination, f64::from(1 + stream.below(100)), now);
            active.push((flow, path));
            policy.share(&mut graph, now);
            let paths: Vec<_> = active.iter().map(|(_, path)| path.clone()).collect();
            for ((flow, _), expected) in active.iter().zip(expected(&bandwidth, &paths)) {
                assert!((graph.rate(*flow) - expected).abs() <= 1e-9 * expected, "seed {seed}: {} {expected}", graph.rate(*flow));
            }
            assert!(graph.is_fair(name == "equal-share"));
        }
    }
}

#[test]
fn max_min_rates_are_those_of_progressive_filling() {
    follows("max-min", fill);
}

#[test]
fn equal_shares_are_those_of_a_recount() {
    follows("equal-share", shares);
}

#[test]
fn two_flows_on_one_channel_get_half_each_and_the_rest_when_one_ends() {
    for entry in sharing::SHARINGS {
        let Some(mut policy) = sharing::by_levels(entry.name) else { continue };
        let mut graph = Graph::new(Bandwidth::Equal(1.0), 0..3, 1, 2);
        graph.begin(0, 0, &[1], 0, 10.0, 0.0);
        graph.begin(1, 0, &[2], 1, 5.0, 0.0);
        policy.share(&mut graph, 0.0);
        assert_eq!((graph.rate(0), graph.rate(1), graph.next_end()), (0.5, 0.5, Some(10.0)));
        graph.end_first();
        policy.share(&mut graph, 10.0);
        assert_eq!((graph.rate(0), graph.left(0, 10.0), graph.next_end()), (1.0, 5.0, Some(15.0)));
    }
}

/// Flow 0 is held to 1/4 by a slow channel. Equal shares lose what it leaves to flow 1, max-min gives it away.
#[test]
fn what_a_flow_leaves_is_lost_or_given_to_the_others() {
    for (name, expected) in [("equal-share", 0.5), ("max-min", 0.75)] {
        let mut policy = sharing::by_levels(name).unwrap();
        let mut graph = Graph::new(Bandwidth::Each([1.0, 0.25, 1.0].into()), 0..3, 1, 2);
        graph.begin(0, 0, &[1], 0, 10.0, 0.0);
        graph.begin(1, 0, &[2], 1, 10.0, 0.0);
        policy.share(&mut graph, 0.0);
        assert_eq!((graph.rate(0), graph.rate(1)), (0.25, expected), "{name}");
    }
}
