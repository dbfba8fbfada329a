//! A network in numbers that tell it from any other: counts, exact sums of distances, digests of its wiring.
//!
//! Distances count links between routers on a shortest path; of a terminal with several homes the nearest counts.

use super::{Neighbours, has_reverse, ports_in_use};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::{Endpoint, Network};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Above so many routers the diameter over all of them is not looked for.
const MOST_ROUTERS: u32 = 700;

/// Above so many links that searches from all homes would cross, distances are left out: some minutes.
const STEP_BUDGET: u64 = 200_000_000_000;

/// Counts, distances and digests of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Terminals.
    pub terminals: u32,
    /// Routers.
    pub routers: u32,
    /// Links between routers, parallel ones each: two channels between the same two ports are one link.
    pub links: u64,
    /// Links between terminals and routers.
    pub terminal_links: u64,
    /// The most ports in use on a router.
    pub max_ports: u32,
    /// The fewest ports in use on a router.
    pub min_ports: u32,
    /// Parts of the graph of routers that no link joins.
    pub components: u32,
    /// The greatest distance between two terminals.
    pub diameter_terminals: Option<u32>,
    /// The greatest distance between two routers; left out above 700 routers, and where a router cannot reach another.
    pub diameter_routers: Option<u32>,
    /// The sum of distances over all pairs.
    pub sum_hops: Option<u64>,
    /// Ordered pairs of different terminals that a path joins.
    pub pairs: Option<u64>,
    /// Pairs by distance.
    pub histogram: BTreeMap<u32, u64>,
    /// Where all routers carry terminals, their number is even and links join them all: links between the lower half of their numbers and the upper one.
    pub links_across_half: Option<u64>,
    /// The first 16 hexadecimal digits of the SHA-256 of the lines `A B`, for each link its two routers, A < B, ascending.
    pub edges_sha256: String,
    /// The same of the lines `A.p B.q`, routers and ports, followed by `tT R.p …` for each terminal T and its homes.
    pub ports_sha256: String,
}

impl Summary {
    /// Measures a network.
    pub fn of(network: &Network) -> Self {
        let links = links(network);
        let used = ports_in_use(network);
        let components = components(network.router_count(), &links);
        let neighbours = Neighbours::of(network);
        let distances = histogram(network, &neighbours);
        let sum = |histogram: &BTreeMap<u32, u64>| histogram.iter().map(|(&hops, &pairs)| u64::from(hops) * pairs).sum();
        Self {
            terminals: network.terminal_count(),
            routers: network.router_count(),
            links: links.len() as u64,
            terminal_links: u64::from(network.terminal_count()) + u64::from(network.further_home_count()),
            max_ports: used.iter().copied().max().unwrap_or(0),
            min_ports: used.iter().copied().min().unwrap_or(0),
            components,
            diameter_terminals: distances.as_ref().and_then(|histogram| histogram.keys().next_back().copied()),
            diameter_routers: diameter(network.router_count(), &neighbours),
            sum_hops: distances.as_ref().map(sum),
            pairs: distances.as_ref().map(|histogram| histogram.values().sum()),
            links_across_half: (components == 1).then(|| across_half(network, &links)).flatten(),
            histogram: distances.unwrap_or_default(),
            edges_sha256: edges_digest(&links),
            ports_sha256: ports_digest(network, &links),
        }
    }

    /// The mean distance over all pairs, in links.
    pub fn mean_hops(&self) -> Option<f64> {
        match (self.sum_hops, self.pairs) {
            (Some(sum), Some(pairs)) if pairs > 0 => Some(sum as f64 / pairs as f64),
            _ => None,
        }
    }

    /// The pairs by distance as text: `0:48 2:192`.
    pub fn histogram_text(&self) -> String {
        let parts: Vec<String> = self.histogram.iter().map(|(hops, pairs)| format!("{hops}:{pairs}")).collect();
        parts.join(" ")
    }
}

/// A link: the router and port of its smaller end, and those of the other.
type Ends = (RouterId, Port, RouterId, Port);

/// All links between routers, sorted.
fn links(network: &Network) -> Vec<Ends> {
    let mut links = Vec::new();
    for channel in network.router_channels() {
        let (Endpoint::Router(from, out), Endpoint::Router(to, into)) = (network.source(channel), network.destination(channel)) else {
            continue;
        };
        let (one, other) = ((from, out), (to, into));
        // Of two channels between the same ports the one from the smaller end stands for both.
        if one <= other || !has_reverse(network, channel) {
            let (low, high) = if one <= other { (one, other) } else { (other, one) };
            links.push((low.0, low.1, high.0, high.1));
        }
    }
    links.sort_unstable();
    links
}

/// The parts of the graph of routers, by merging the parts at the ends of each link.
fn components(routers: u32, links: &[Ends]) -> u32 {
    let mut part: Vec<u32> = (0..routers).collect();
    let mut count = routers;
    for &(one, _, other, _) in links {
        let (one, other) = (root(&mut part, one.0), root(&mut part, other.0));
        if one != other {
            part[one.max(other) as usize] = one.min(other);
            count -= 1;
        }
    }
    count
}

/// The router that stands for the part of another; the path to it is halved on the way.
fn root(part: &mut [u32], mut router: u32) -> u32 {
    while part[router as usize] != router {
        part[router as usize] = part[part[router as usize] as usize];
        router = part[router as usize];
    }
    router
}

/// Terminals with the same routers, which are as far from all others: where they inject, where they are served, and how many they are.
fn classes(network: &Network) -> Vec<(Vec<u32>, Vec<u32>, u64)> {
    let mut classes: BTreeMap<(Vec<u32>, Vec<u32>), u64> = BTreeMap::new();
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        let mut from: Vec<u32> = network.homes(terminal).iter().map(|home| home.0.0).collect();
        let (injects, served) = (network.injection_port(terminal).0.0, network.ejection_port(terminal).0.0);
        let mut to: Vec<u32> = from.iter().map(|&router| if router == injects { served } else { router }).collect();
        [&mut from, &mut to].into_iter().for_each(|routers| {
            routers.sort_unstable();
            routers.dedup();
        });
        *classes.entry((from, to)).or_default() += 1;
    }
    classes.into_iter().map(|((from, to), count)| (from, to, count)).collect()
}

/// Pairs of different terminals by distance; `None` where that would take too long.
fn histogram(network: &Network, neighbours: &Neighbours) -> Option<BTreeMap<u32, u64>> {
    let classes = classes(network);
    let homes: usize = classes.iter().map(|(_, to, _)| to.len()).sum();
    let cost = (neighbours.targets.len() + neighbours.starts.len() + homes) as u64;
    if cost.saturating_mul(classes.len() as u64) > STEP_BUDGET {
        return None;
    }
    let mut histogram = BTreeMap::new();
    for (source, (from, _, senders)) in classes.iter().enumerate() {
        let distance = neighbours.distances_from_any(from);
        for (destination, (_, to, receivers)) in classes.iter().enumerate() {
            let hops = to.iter().map(|&router| distance[router as usize]).min().unwrap_or(u32::MAX);
            let pairs = senders * (receivers - u64::from(source == destination));
            if hops != u32::MAX && pairs > 0 {
                *histogram.entry(hops).or_default() += pairs;
            }
        }
    }
    Some(histogram)
}

fn diameter(routers: u32, neighbours: &Neighbours) -> Option<u32> {
    if routers > MOST_ROUTERS {
        return None;
    }
    let farthest = (0..routers as usize).map(|router| neighbours.distances_from(router).into_iter().max().unwrap_or(0)).max()?;
    (farthest != u32::MAX).then_some(farthest)
}

fn across_half(network: &Network, links: &[Ends]) -> Option<u64> {
    let routers = network.router_count();
    let mut carries = vec![false; routers as usize];
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        network.homes(terminal).iter().for_each(|home| carries[home.0.index()] = true);
    }
    let halves = carries.iter().all(|&carries| carries) && routers.is_multiple_of(2);
    halves.then(|| links.iter().filter(|link| link.0.0 < routers / 2 && link.2.0 >= routers / 2).count() as u64)
}

fn edges_digest(links: &[Ends]) -> String {
    let mut pairs: Vec<(u32, u32)> = links.iter().map(|link| (link.0.0.min(link.2.0), link.0.0.max(link.2.0))).collect();
    pairs.sort_unstable();
    digest(pairs.into_iter().map(|(low, high)| format!("{low} {high}\n")))
}

fn ports_digest(network: &Network, links: &[Ends]) -> String {
    let of_links = links.iter().map(|(low, out, high, into)| format!("{low}.{out} {high}.{into}\n"));
    let of_terminals = (0..network.terminal_count()).map(|terminal| {
        let homes = network.homes(TerminalId(terminal));
        let homes: Vec<String> = homes.iter().map(|(router, port)| format!("{router}.{port}")).collect();
        format!("t{terminal} {}\n", homes.join(" "))
    });
    digest(of_links.chain(of_terminals))
}

/// The first 16 hexadecimal digits of the SHA-256 of these lines.
fn digest(lines: impl Iterator<Item = String>) -> String {
    let mut hash = Sha256::new();
    lines.for_each(|line| hash.update(line.as_bytes()));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
