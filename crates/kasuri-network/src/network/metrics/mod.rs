//! A network in numbers: counts, diameter, average distance, bisection.
//!
//! Distances count channels between routers on a shortest path from the router that a terminal injects into to the one that
//! serves the other terminal. They say what the graph allows, not what a routing makes of it.

mod bisection;
mod summary;

pub use bisection::{Basis, Bisection};
pub use summary::Summary;

use crate::id::{ChannelId, Port, RouterId, TerminalId};
use crate::network::connectivity::separated;
use crate::network::{Endpoint, Network};
use std::collections::VecDeque;

/// Channels that [`Metrics::of`] crosses before it takes a sample of the sources.
const STEP_BUDGET: u64 = 400_000_000;

/// A network in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// Terminals.
    pub terminals: u32,
    /// Routers.
    pub routers: u32,
    /// The greatest number of connected ports of a router, terminals included.
    pub radix: u32,
    /// Channels between routers, each direction counted.
    pub router_channels: u64,
    /// Cables between routers: two channels between the same two ports are one.
    pub links: u64,
    /// Distances between terminals.
    pub distances: Distances,
    /// The narrowest cut into halves; `None` if fewer than two routers have terminals.
    pub bisection: Option<Bisection>,
}

/// Distances between different terminals, in channels between routers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distances {
    /// The greatest, of pairs that a path joins: a diameter only if no pair is `unreachable`.
    pub diameter: u32,
    /// The mean over all ordered pairs that a path joins.
    pub average: f64,
    /// A pair that no path joins: the network is disconnected. Found however few routers are walked.
    pub unreachable: Option<(TerminalId, TerminalId)>,
    /// Routers from which distances were measured: fewer than `sources` means an evenly spaced sample.
    pub walked: u32,
    /// Routers with terminals that inject.
    pub sources: u32,
}

impl Metrics {
    /// Measures a network. Cost: a breadth-first search from every router with terminals, and the bisection.
    pub fn of(network: &Network) -> Self {
        let with_reverse = network.router_channels().filter(|&channel| has_reverse(network, channel)).count() as u64;
        let router_channels = network.router_channels().count() as u64;
        Self {
            terminals: network.terminal_count(),
            routers: network.router_count(),
            radix: ports_in_use(network).into_iter().max().unwrap_or(0),
            router_channels,
            links: router_channels - with_reverse / 2,
            distances: Distances::of(network),
            bisection: Bisection::of(network),
        }
    }
}

/// By router: its connected ports, those to terminals included.
fn ports_in_use(network: &Network) -> Vec<u32> {
    let connected = |router: RouterId| {
        let ports = 0..network.port_count(router) as u16;
        ports.filter(|&port| network.output_channel(router, port).is_some() || network.input_channel(router, port).is_some()).count() as u32
    };
    let mut used: Vec<u32> = (0..network.router_count()).map(|router| connected(RouterId(router))).collect();
    network.further_homes().for_each(|(_, router, _)| used[router.index()] += 1);
    used
}

/// Channels from a router to each other one on a shortest path, where there is one.
pub fn hops_from(network: &Network, from: RouterId) -> Vec<Option<u32>> {
    let mut hops = vec![None; network.router_count() as usize];
    hops[from.index()] = Some(0);
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some((router, steps)) = queue.pop_front() {
        for port in 0..network.port_count(router) as Port {
            let Some(channel) = network.output_channel(router, port) else { continue };
            let Endpoint::Router(next, _) = network.destination(channel) else { continue };
            if hops[next.index()].is_none() {
                hops[next.index()] = Some(steps + 1);
                queue.push_back((next, steps + 1));
            }
        }
    }
    hops
}

/// Does a channel lead back between the same two ports?
fn has_reverse(network: &Network, channel: ChannelId) -> bool {
    match network.destination(channel) {
        Endpoint::Router(router, port) => {
            network.output_channel(router, port).is_some_and(|back| network.destination(back) == network.source(channel))
        }
        Endpoint::Terminal(_) => false,
    }
}

impl Distances {
    fn of(network: &Network) -> Self {
        let neighbours = Neighbours::of(network);
        let mut injecting = vec![Vec::new(); network.router_count() as usize];
        let mut served = vec![0u64; network.router_count() as usize];
        for terminal in (0..network.terminal_count()).map(TerminalId) {
            injecting[network.injection_port(terminal).0.index()].push(terminal);
            served[network.ejection_port(terminal).0.index()] += 1;
        }
        let sources: Vec<usize> = (0..injecting.len()).filter(|&router| !injecting[router].is_empty()).collect();
        let cost = (neighbours.targets.len() + injecting.len()) as u64;
        let walked = (STEP_BUDGET / cost.max(1)).clamp(1, sources.len() as u64) as usize;
        let mut sum = Sum::default();
        for &source in (0..walked).map(|index| &sources[index * sources.len() / walked]) {
            let distance = neighbours.distances_from(source);
            sum.add(network, &injecting[source], &served, &distance);
        }
        Self {
            diameter: sum.greatest,
            average: if sum.pairs == 0 { 0.0 } else { sum.distance as f64 / sum.pairs as f64 },
            unreachable: separated(network),
            walked: walked as u32,
            sources: sources.len() as u32,
        }
    }
}

#[derive(Default)]
struct Sum {
    pairs: u64,
    distance: u64,
    greatest: u32,
}

impl Sum {
    /// Adds all pairs from the terminals of one router to others.
    fn add(&mut self, network: &Network, sources: &[TerminalId], served: &[u64], distance: &[u32]) {
        for (router, (&terminals, &hops)) in served.iter().zip(distance).enumerate().filter(|(_, (terminals, _))| **terminals > 0) {
            let itself = sources.iter().filter(|&&source| network.ejection_port(source).0.index() == router).count() as u64;
            let pairs = sources.len() as u64 * terminals - itself;
            if pairs > 0 && hops != u32::MAX {
                self.pairs += pairs;
                self.distance += pairs * u64::from(hops);
                self.greatest = self.greatest.max(hops);
            }
        }
    }
}

/// The routers that each router's channels lead to.
struct Neighbours {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Neighbours {
    fn of(network: &Network) -> Self {
        let mut neighbours = Self { starts: vec![0], targets: Vec::new() };
        for router in (0..network.router_count()).map(RouterId) {
            for port in 0..network.port_count(router) as u16 {
                let channel = network.output_channel(router, port);
                if let Some(Endpoint::Router(next, _)) = channel.map(|channel| network.destination(channel)) {
                    neighbours.targets.push(next.0);
                }
            }
            neighbours.starts.push(neighbours.targets.len() as u32);
        }
        neighbours
    }

    /// Hops from one router to all, `u32::MAX` where no path leads.
    fn distances_from(&self, source: usize) -> Vec<u32> {
        self.distances_from_any(&[source as u32])
    }

    /// Hops from the nearest of some routers to all, `u32::MAX` where no path leads.
    fn distances_from_any(&self, sources: &[u32]) -> Vec<u32> {
        let mut distance = vec![u32::MAX; self.starts.len() - 1];
        sources.iter().for_each(|&source| distance[source as usize] = 0);
        let mut queue = sources.to_vec();
        let mut head = 0;
        while head < queue.len() {
            let router = queue[head] as usize;
            head += 1;
            for &next in &self.targets[self.starts[router] as usize..self.starts[router + 1] as usize] {
                if distance[next as usize] == u32::MAX {
                    distance[next as usize] = distance[router] + 1;
                    queue.push(next);
                }
            }
        }
        distance
    }
}
