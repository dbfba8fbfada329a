//! A lower bound on the cycles of a collective on its network, whatever the routing and the schedule.
//!
//! All flits from ranks on one side of a cut to ranks on the other cross it, so the time is at least these flits over the bandwidth of the
//! channels across (Dally and Towles, section 3.3). Cuts are taken at terminals, at single routers, and where labels and distances of the
//! topology divide it: groups, planes of coordinates, subtrees, shells. In an all-to-all, all flits also travel at least the length of a
//! shortest path. A cut that is missed makes the bound lower, not wrong. Links that are down count as if they were up, so that a failure
//! does not bring the bound nearer to the run. Latencies are left out, but for those that
//! are shorter than a period ([`least_cycles`]).

use kasuri_config::Study;
use kasuri_model::engine::{Outcome, least_cycles};
use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use kasuri_workload::collective::{ALL_TO_ALL, Least};
use kasuri_workload::workload::Collective;
use std::collections::VecDeque;
use std::ops::Range;

/// Different values of a label, or distances, up to which they are also cut in order: each such cut costs a walk over all channels.
const MAX_VALUES: u32 = 64;

/// Channels that are followed for distances at most, which takes a second or two.
const DISTANCE_BUDGET: u64 = 200_000_000;

/// The bound of a study in whole cycles; `None` of a workload without one (a barrier, a trace, an application, several users).
pub(crate) fn completion_bound(study: &Study) -> Option<f64> {
    let closed = study.scenario.workload.as_ref().filter(|closed| closed.parts.len() == 1)?;
    let collective = closed.workload.collective()?;
    let once = bound_at_terminals(&study.scenario.network, &collective)?.max(bound_at_cuts(&study.scenario.network, &collective));
    // Parts of a vector may leave flits almost empty, which still take a cycle.
    let sends = collective.least.is_some_and(|least| least.sent > 0);
    Some(least_cycles(&study.scenario.network, once * f64::from(collective.times)).max(if sends { 1.0 } else { 0.0 }))
}

/// The same for the paths of a run: the time of its busiest channel, or the bound of the network if that is more.
pub(crate) fn routing_bound(study: &Study, outcome: &Outcome, completion_bound: f64) -> f64 {
    let network = &study.scenario.network;
    let busy = |(channel, flits): (usize, &u64)| *flits as f64 * f64::from(network.link(ChannelId(channel as u32)).period);
    let busiest = outcome.channel_flits.iter().enumerate().map(busy).fold(0.0, f64::max);
    least_cycles(network, busiest).max(completion_bound)
}

/// The bound by the terminals' channels.
fn bound_at_terminals(network: &Network, collective: &Collective<'_>) -> Option<f64> {
    let least = collective.least?;
    let ports = f64::from(collective.ports);
    let periods = |channel: fn(&Network, TerminalId) -> ChannelId| {
        let periods: Vec<f64> =
            collective.terminals.iter().map(|&terminal| f64::from(network.link(channel(network, terminal)).period)).collect();
        Ends {
            fastest: periods.iter().copied().fold(f64::INFINITY, f64::min),
            slowest: periods.iter().copied().fold(0.0, f64::max),
            together: periods.iter().map(|period| 1.0 / period).sum(),
        }
    };
    let (out, into) = (periods(Network::injection_channel), periods(Network::ejection_channel));
    let (sent, received) = (least.sent as f64, least.received as f64);
    let others = collective.terminals.len() as f64 - 1.0;
    // Ranks send or receive this in the mean; those with fast channels may have more.
    let mean = |flits: f64, of_all: f64, ends: &Ends| {
        if ends.fastest == ends.slowest { flits * ends.fastest } else { of_all / ends.together }
    };
    let cycles = match collective.operation {
        ALL_TO_ALL | "allgather" => (sent * out.slowest).max(received * into.slowest),
        // N - 1 vectors have to be sent until one rank has the sum, and N - 1 more until all have it. Each rank has to send its vector and
        // to receive the sum.
        "allreduce" => {
            let vector = vector(collective, least);
            let all = 2.0 * others * vector;
            mean(sent, all, &out).max(mean(received, all, &into)).max(vector * out.slowest.max(into.slowest))
        }
        "reducescatter" => (sent * out.slowest).max(mean(received, others * (sent - 1.0), &into)),
        // Some rank sends and some rank receives this, but it is not known which.
        _ => (sent * out.fastest).max(received * into.fastest),
    };
    Some(cycles / ports)
}

/// Periods of the ranks' channels, and the flits that all of them carry in a cycle.
struct Ends {
    fastest: f64,
    slowest: f64,
    together: f64,
}

/// Flits of an allreduce's vector, as full as they can be.
fn vector(collective: &Collective<'_>, least: Least) -> f64 {
    let (ranks, flits) = (collective.terminals.len() as u64, u64::from(collective.message_flits));
    part(least.sent, 2 * (ranks - 1), flits * 2 * (ranks - 1), ranks) * ranks as f64
}

/// The flits of one of `count` equal parts that need `flits` flits together. If that is `whole / of`, all flits are full; otherwise the
/// last one may be almost empty.
fn part(flits: u64, count: u64, whole: u64, of: u64) -> f64 {
    let full = if whole == flits * of { flits } else { flits.saturating_sub(1) };
    full as f64 / count.max(1) as f64
}

/// The flits that ranks on two sides of a cut have for each other.
#[derive(Clone, Copy, Debug)]
enum Demand {
    /// A block of this size from each rank to each other one.
    Pairs(f64),
    /// A block from each rank to the other side.
    Sources(f64),
    /// A block for each rank of the other side.
    Destinations(f64),
    /// The same for all cuts.
    Once(f64),
}

impl Demand {
    fn of(collective: &Collective<'_>) -> Option<Self> {
        let Least { sent, received } = collective.least?;
        let (ranks, message) = (collective.terminals.len() as u64, u64::from(collective.message_flits));
        let others = ranks.checked_sub(1).filter(|&others| others > 0)?;
        match collective.operation {
            ALL_TO_ALL => Some(Self::Pairs(part(sent, others, message * others, 1))),
            "allgather" => Some(Self::Sources(part(received, others, message * others, 1))),
            "reducescatter" => Some(Self::Destinations(part(sent, others, message * others, ranks))),
            "allreduce" => Some(Self::Once(vector(collective, collective.least?))),
            _ => None,
        }
    }

    /// Flits from a side with this number of ranks to one with that.
    fn flits(self, from: u32, to: u32) -> f64 {
        let (sources, destinations) = (f64::from(from), f64::from(to));
        if from == 0 || to == 0 {
            return 0.0;
        }
        match self {
            Self::Pairs(flits) => flits * sources * destinations,
            Self::Sources(flits) => flits * sources,
            Self::Destinations(flits) => flits * destinations,
            Self::Once(flits) => flits,
        }
    }
}

/// The bound by cuts between routers and by distances.
fn bound_at_cuts(network: &Network, collective: &Collective<'_>) -> f64 {
    let Some(demand) = Demand::of(collective) else { return 0.0 };
    let Some(ranks) = homes(network, collective) else { return 0.0 };
    let graph = Graph::of(network);
    let cuts = Cuts { graph: &graph, ranks: &ranks, demand };
    let routers = graph.routers();
    let mut bound = cuts.classes(&(0..routers).collect::<Vec<_>>(), routers);
    let labels = network.labels();
    for column in labels.router_names().filter_map(|name| labels.router(name)) {
        bound = bound.max(cuts.column(column));
    }
    for root in [0, routers.saturating_sub(1)] {
        bound = bound.max(cuts.column(&graph.distances(root)));
    }
    if let (Demand::Pairs(flits), 1) = (demand, collective.ports) {
        bound = bound.max(flits * graph.mean_distance_load(&ranks).unwrap_or(0.0));
    }
    bound
}

/// The routers at which each rank has its ports; `None` if the injection and ejection of a port are at different routers.
fn homes(network: &Network, collective: &Collective<'_>) -> Option<Vec<Vec<u32>>> {
    let home = |port: TerminalId| {
        let (from, to) = (network.injection_port(port).0, network.ejection_port(port).0);
        (from == to).then_some(from.0)
    };
    let ports = |first: &TerminalId| (first.0..first.0 + collective.ports).map(TerminalId);
    collective.terminals.iter().map(|first| ports(first).map(home).collect()).collect()
}

/// The channels between routers, those that are down included.
struct Graph {
    /// By router, where its channels begin.
    first: Vec<usize>,
    /// Where each channel leads, and flits that it carries in a cycle.
    channels: Vec<(u32, f64)>,
}

impl Graph {
    fn of(network: &Network) -> Self {
        let mut all: Vec<(u32, u32, f64)> = network
            .all_router_channels()
            .filter_map(|channel| match (network.source(channel), network.destination(channel)) {
                (Endpoint::Router(RouterId(from), _), Endpoint::Router(RouterId(to), _)) => {
                    Some((from, to, 1.0 / f64::from(network.link(channel).period)))
                }
                _ => None,
            })
            .collect();
        all.sort_by_key(|&(from, to, _)| (from, to));
        let first = (0..=network.router_count()).map(|router| all.partition_point(|&(from, ..)| from < router)).collect();
        Self { first, channels: all.into_iter().map(|(_, to, bandwidth)| (to, bandwidth)).collect() }
    }

    fn routers(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    fn of_router(&self, router: u32) -> &[(u32, f64)] {
        let channels: Range<usize> = self.first[router as usize]..self.first[router as usize + 1];
        &self.channels[channels]
    }

    /// Channels from a router to each other one; [`u32::MAX`] for unreachable ones.
    fn distances(&self, from: u32) -> Vec<u32> {
        let mut distance = vec![u32::MAX; self.routers() as usize];
        let mut queue = VecDeque::from([from]);
        if let Some(own) = distance.get_mut(from as usize) {
            *own = 0;
        }
        while let Some(router) = queue.pop_front() {
            for &(next, _) in self.of_router(router) {
                if distance[next as usize] == u32::MAX {
                    distance[next as usize] = distance[router as usize] + 1;
                    queue.push_back(next);
                }
            }
        }
        distance
    }

    /// Cycles that all channels together need for a flit from each rank to each other one, on shortest paths; `None` if these are too
    /// expensive to find.
    fn mean_distance_load(&self, ranks: &[Vec<u32>]) -> Option<f64> {
        let mut count = vec![0.0; self.routers() as usize];
        ranks.iter().flatten().for_each(|&home| count[home as usize] += 1.0);
        let homes: Vec<u32> = (0..self.routers()).filter(|&router| count[router as usize] > 0.0).collect();
        if homes.len() as u64 * self.channels.len() as u64 > DISTANCE_BUDGET {
            return None;
        }
        let mut hops = 0.0;
        for &from in &homes {
            let distance = self.distances(from);
            let reached = homes.iter().filter(|&&to| distance[to as usize] != u32::MAX);
            hops += reached.map(|&to| count[from as usize] * count[to as usize] * f64::from(distance[to as usize])).sum::<f64>();
        }
        let bandwidth: f64 = self.channels.iter().map(|&(_, bandwidth)| bandwidth).sum();
        (bandwidth > 0.0).then(|| hops / bandwidth)
    }
}

/// Cuts by classes of routers.
struct Cuts<'a> {
    graph: &'a Graph,
    /// By rank: the routers of its ports.
    ranks: &'a [Vec<u32>],
    demand: Demand,
}

impl Cuts<'_> {
    /// By a column of numbers: each number against all others, all up to a number against the others, and each connected part of those.
    fn column(&self, column: &[u32]) -> f64 {
        let mut values = column.to_vec();
        values.sort_unstable();
        values.dedup();
        let class = |value: &u32| values.partition_point(|known| known < value) as u32;
        let classes: Vec<u32> = column.iter().map(class).collect();
        let mut bound = self.classes(&classes, values.len() as u32);
        if values.len() as u32 > MAX_VALUES {
            return bound;
        }
        for last in 0..values.len() as u32 - 1 {
            let below: Vec<u32> = classes.iter().map(|&class| u32::from(class > last)).collect();
            bound = bound.max(self.classes(&below, 2));
            let (parts, count) = self.parts(&below);
            bound = bound.max(self.classes(&parts, count));
        }
        bound
    }

    /// Connected parts of the routers of class 0, and one class more for all others.
    fn parts(&self, below: &[u32]) -> (Vec<u32>, u32) {
        let mut part = vec![u32::MAX; below.len()];
        let mut neighbours = vec![Vec::new(); below.len()];
        for router in 0..below.len() as u32 {
            for &(next, _) in self.graph.of_router(router).iter().filter(|(next, _)| below[router as usize] + below[*next as usize] == 0) {
                neighbours[router as usize].push(next);
                neighbours[next as usize].push(router);
            }
        }
        let mut count = 0;
        for start in 0..below.len() {
            if below[start] > 0 || part[start] != u32::MAX {
                continue;
            }
            let mut stack = vec![start as u32];
            part[start] = count;
            while let Some(router) = stack.pop() {
                for &next in &neighbours[router as usize] {
                    if part[next as usize] == u32::MAX {
                        part[next as usize] = count;
                        stack.push(next);
                    }
                }
            }
            count += 1;
        }
        part.iter_mut().filter(|part| **part == u32::MAX).for_each(|part| *part = count);
        (part, count + 1)
    }

    /// Each of some classes of routers against all others: the cycles of the narrowest cut.
    fn classes(&self, class: &[u32], count: u32) -> f64 {
        let (mut out, mut into) = (vec![0.0; count as usize], vec![0.0; count as usize]);
        for router in 0..class.len() as u32 {
            let from = class[router as usize] as usize;
            for &(next, bandwidth) in self.graph.of_router(router) {
                let to = class[next as usize] as usize;
                if from != to {
                    out[from] += bandwidth;
                    into[to] += bandwidth;
                }
            }
        }
        // Ranks with ports in several classes may send and receive on either side.
        let (mut inside, mut partly) = (vec![0u32; count as usize], vec![0u32; count as usize]);
        for homes in self.ranks {
            let mut classes: Vec<u32> = homes.iter().map(|&router| class[router as usize]).collect();
            classes.sort_unstable();
            classes.dedup();
            let counts = if classes.len() == 1 { &mut inside } else { &mut partly };
            classes.iter().for_each(|&class| counts[class as usize] += 1);
        }
        let all = self.ranks.len() as u32;
        let cycles = |flits: f64, bandwidth: f64| if bandwidth > 0.0 { flits / bandwidth } else { 0.0 };
        (0..count as usize)
            .map(|class| {
                let outside = all - inside[class] - partly[class];
                let there = cycles(self.demand.flits(inside[class], outside), out[class]);
                there.max(cycles(self.demand.flits(outside, inside[class]), into[class]))
            })
            .fold(0.0, f64::max)
    }
}
