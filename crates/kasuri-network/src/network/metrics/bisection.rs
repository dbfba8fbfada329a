//! The bisection: the narrowest cut of the routers into two sets with half of the terminals each.
//!
//! Finding it is NP-hard. Where the topology's labels allow it, a closed form is used; otherwise the heuristic of Fiduccia and
//! Mattheyses (DAC 1982) from several beginnings, always the same ones, gives an upper bound.

use crate::id::TerminalId;
use crate::network::{Endpoint, Network};
use crate::rng::{Purpose, Streams};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The narrowest cut that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bisection {
    /// Channels between the halves, each direction counted.
    pub channels: u64,
    /// What they carry, both directions together, in flits/cycle.
    pub bandwidth: f64,
    /// How it was found.
    pub basis: Basis,
}

/// How a bisection was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A formula for this topology, named with its source: exact.
    ClosedForm(&'static str),
    /// A heuristic: an upper bound.
    UpperBound,
}

impl Bisection {
    /// The bisection of a network; `None` if fewer than two routers have terminals.
    pub fn of(network: &Network) -> Option<Self> {
        Self::closed_form(network).or_else(|| Self::heuristic(network))
    }

    /// By a formula, if the topology's labels tell one.
    fn closed_form(network: &Network) -> Option<Self> {
        // The formulas are those of whole networks.
        let (channels, source) = closed_form(network).filter(|_| network.damage().is_none())?;
        let periods = || network.router_channels().map(|channel| network.link(channel).period);
        let (least, greatest) = (periods().min()?, periods().max()?);
        // Channels of different speed: which of them are cut matters, and the formulas do not say.
        (least == greatest).then(|| Self { channels, bandwidth: channels as f64 / f64::from(least), basis: Basis::ClosedForm(source) })
    }

    /// By search.
    pub fn heuristic(network: &Network) -> Option<Self> {
        let graph = Graph::of(network);
        if graph.weight.iter().filter(|&&weight| weight > 0).count() < 2 {
            return None;
        }
        let cuts = graph.beginnings(network).into_iter().filter_map(|side| graph.improve(side));
        let side = cuts.min_by_key(|(cut, _)| *cut)?.1;
        let crossing = network.router_channels().filter(|&channel| match (network.source(channel), network.destination(channel)) {
            (Endpoint::Router(from, _), Endpoint::Router(to, _)) => side[from.index()] != side[to.index()],
            _ => false,
        });
        let (mut channels, mut bandwidth) = (0, 0.0);
        for channel in crossing {
            channels += 1;
            bandwidth += 1.0 / f64::from(network.link(channel).period);
        }
        Some(Self { channels, bandwidth, basis: Basis::UpperBound })
    }
}

/// Channels of both directions across the narrowest cut, and the formula.
fn closed_form(network: &Network) -> Option<(u64, &'static str)> {
    let labels = network.labels();
    if let (Some(dimensions), Some(&[wrap])) = (labels.attribute("dimensions"), labels.attribute("wrap")) {
        let radix = *dimensions.iter().max()?;
        let name = [
            "2 R / k channels, k the greatest radix (Dally and Towles, section 5.2)",
            "4 R / k channels, k the greatest radix (Dally and Towles, section 5.2)",
        ];
        let rows = u64::from(network.router_count() / radix);
        return (radix % 2 == 0).then_some(((2 * rows) << wrap, name[wrap as usize]));
    }
    if let Some(&[up, down, levels, sides]) = labels.attribute("fat_tree") {
        let even = sides == 2 || down % 2 == 0;
        let name = "N channels (full bisection of a k-ary n-tree, Petrini and Vanneschi 1997)";
        return (up == down && even && levels > 1).then_some((network.terminal_count().into(), name));
    }
    let &[routers, _] = labels.attribute("full_mesh")? else { return None };
    let half = u64::from(routers / 2);
    Some((2 * half * (u64::from(routers) - half), "2 floor(R/2) ceil(R/2) channels of the complete graph"))
}

/// Routers as vertices weighted by their terminals, channels between two routers as one edge weighted by what they carry.
struct Graph {
    weight: Vec<i64>,
    total: i64,
    /// The greatest difference of weight between two halves.
    tolerance: i64,
    edges: Vec<Vec<(u32, i64)>>,
}

/// The weight of a channel of period 1; those of greater period weigh accordingly less.
const CHANNEL_WEIGHT: i64 = 1_000_000;

impl Graph {
    fn of(network: &Network) -> Self {
        let routers = network.router_count() as usize;
        let mut weight = vec![0; routers];
        for terminal in (0..network.terminal_count()).map(TerminalId) {
            // Sources and destinations count alike: in a unidirectional network they sit on different routers.
            weight[network.injection_port(terminal).0.index()] += 1;
            weight[network.ejection_port(terminal).0.index()] += 1;
        }
        let mut edges = vec![Vec::new(); routers];
        for channel in network.router_channels() {
            if let (Endpoint::Router(from, _), Endpoint::Router(to, _)) = (network.source(channel), network.destination(channel)) {
                let weight = CHANNEL_WEIGHT / i64::from(network.link(channel).period);
                edges[from.index()].push((to.0, weight));
                edges[to.index()].push((from.0, weight));
            }
        }
        edges.iter_mut().for_each(merge);
        let total: i64 = weight.iter().sum();
        let greatest = weight.iter().copied().max().unwrap_or(0);
        let equal = weight.iter().all(|&one| one == 0 || one == greatest);
        // Equal routers in even number can be halved exactly.
        let tolerance = if equal && greatest > 0 && (total / greatest) % 2 == 0 { 0 } else { greatest };
        Self { weight, total, tolerance, edges }
    }

    /// Halves to begin with: by router number, by each label, by distance from the first and from the last router, and random.
    fn beginnings(&self, network: &Network) -> Vec<Vec<bool>> {
        let routers = self.weight.len() as u32;
        let mut orders: Vec<Vec<u32>> = vec![(0..routers).collect()];
        for name in network.labels().router_names() {
            if let Some(column) = network.labels().router(name) {
                let mut order: Vec<u32> = (0..routers).collect();
                order.sort_by_key(|&router| column[router as usize]);
                orders.push(order);
            }
        }
        orders.push(self.breadth_first(0));
        orders.push(self.breadth_first(routers - 1));
        let mut stream = Streams::new(0).get(Purpose::Structure, 1);
        for _ in 0..4 {
            let mut order: Vec<u32> = (0..routers).collect();
            (1..routers).rev().for_each(|last| order.swap(last as usize, stream.below(last + 1) as usize));
            orders.push(order);
        }
        orders.iter().map(|order| self.halve(order)).collect()
    }

    /// The first routers of an order until they have half of the weight, and those without weight that lie between.
    fn halve(&self, order: &[u32]) -> Vec<bool> {
        let mut side = vec![true; order.len()];
        let mut taken = 0;
        for &router in order {
            if 2 * (taken + self.weight[router as usize]) > self.total {
                break;
            }
            taken += self.weight[router as usize];
            side[router as usize] = false;
        }
        side
    }

    fn breadth_first(&self, root: u32) -> Vec<u32> {
        let mut seen = vec![false; self.weight.len()];
        let mut order = Vec::new();
        for start in std::iter::once(root).chain(0..self.weight.len() as u32) {
            if std::mem::replace(&mut seen[start as usize], true) {
                continue;
            }
            let mut head = order.len();
            order.push(start);
            while head < order.len() {
                for &(next, _) in &self.edges[order[head] as usize] {
                    if !std::mem::replace(&mut seen[next as usize], true) {
                        order.push(next);
                    }
                }
                head += 1;
            }
        }
        order
    }

    /// Passes until none narrows the cut. `None` if no pass met halves within the tolerance.
    fn improve(&self, mut side: Vec<bool>) -> Option<(i64, Vec<bool>)> {
        let mut best = self.is_balanced(self.imbalance(&side)).then(|| self.cut(&side));
        for _ in 0..MAX_PASSES {
            let (cut, after) = self.pass(side.clone())?;
            if best.is_some_and(|best| cut >= best) {
                break;
            }
            (best, side) = (Some(cut), after);
        }
        Some((best?, side))
    }

    /// Moves every router once, always the one of the greatest gain that balance allows; the best state on the way.
    fn pass(&self, mut side: Vec<bool>) -> Option<(i64, Vec<bool>)> {
        let greatest = self.weight.iter().copied().max().unwrap_or(0);
        // Room for one router to go before its counterpart comes.
        let room = self.tolerance.max(2 * greatest);
        let mut gain: Vec<i64> = (0..side.len()).map(|router| self.gain(router, &side)).collect();
        // One queue for each side; entries whose gain has changed are passed over.
        let mut queues = [BinaryHeap::new(), BinaryHeap::new()];
        for (router, &gain) in gain.iter().enumerate() {
            queues[usize::from(side[router])].push((gain, Reverse(router as u32)));
        }
        let (mut cut, mut imbalance) = (self.cut(&side), self.imbalance(&side));
        let mut best = self.is_balanced(imbalance).then_some((cut, 0));
        let mut moved = vec![false; side.len()];
        let mut moves = Vec::new();
        loop {
            for (from, queue) in queues.iter_mut().enumerate() {
                let stale = |entry: &(i64, Reverse<u32>)| {
                    let router = entry.1.0 as usize;
                    moved[router] || gain[router] != entry.0 || usize::from(side[router]) != from
                };
                while queue.peek().is_some_and(stale) {
                    queue.pop();
                }
            }
            // Imbalance is the weight of side 1 less that of side 0; a move from side 1 lowers it by twice the router's weight.
            let after = |from: usize, router: u32| imbalance + if from == 1 { -2 } else { 2 } * self.weight[router as usize];
            let allowed =
                |&(from, (_, Reverse(router))): &(usize, (i64, Reverse<u32>))| after(from, router).abs() <= room.max(imbalance.abs() - 1);
            let tops = [0, 1].map(|from| queues[from].peek().map(|&top| (from, top)));
            let Some((from, (_, Reverse(router)))) =
                tops.into_iter().flatten().filter(allowed).max_by_key(|&(from, (gain, Reverse(router)))| {
                    // Of equal gains the one that balances.
                    (gain, Reverse(after(from, router).abs()))
                })
            else {
                break;
            };
            queues[from].pop();
            cut -= gain[router as usize];
            imbalance = after(from, router);
            side[router as usize] = !side[router as usize];
            moved[router as usize] = true;
            moves.push(router);
            for &(next, weight) in &self.edges[router as usize] {
                if !moved[next as usize] {
                    // An edge that no longer crosses would do so again; one that now crosses would not.
                    let is_same_side = side[next as usize] == side[router as usize];
                    gain[next as usize] += if is_same_side { -2 * weight } else { 2 * weight };
                    queues[usize::from(side[next as usize])].push((gain[next as usize], Reverse(next)));
                }
            }
            if self.is_balanced(imbalance) && best.is_none_or(|(best, _)| cut < best) {
                best = Some((cut, moves.len()));
            }
        }
        let (cut, kept) = best?;
        moves[kept..].iter().for_each(|&router| side[router as usize] = !side[router as usize]);
        Some((cut, side))
    }

    /// By how much the cut narrows if this router changes sides.
    fn gain(&self, router: usize, side: &[bool]) -> i64 {
        self.edges[router].iter().map(|&(next, weight)| if side[next as usize] == side[router] { -weight } else { weight }).sum()
    }

    fn cut(&self, side: &[bool]) -> i64 {
        let crossing = |router: usize| self.edges[router].iter().filter(move |(next, _)| side[*next as usize] != side[router]);
        (0..side.len()).flat_map(crossing).map(|(_, weight)| weight).sum::<i64>() / 2
    }

    fn imbalance(&self, side: &[bool]) -> i64 {
        side.iter().zip(&self.weight).map(|(&side, &weight)| if side { weight } else { -weight }).sum()
    }

    fn is_balanced(&self, imbalance: i64) -> bool {
        imbalance.abs() <= self.tolerance
    }
}

/// Passes rarely improve a cut more than a few times.
const MAX_PASSES: usize = 20;

/// Adds up the edges to the same neighbour.
fn merge(edges: &mut Vec<(u32, i64)>) {
    edges.sort_unstable();
    edges.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
}
