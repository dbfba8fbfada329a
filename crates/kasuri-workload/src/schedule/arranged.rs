//! Collectives other than the all-to-all, arranged for a network: which algorithm, and which terminal is which rank.
//!
//! Every algorithm of [`COLLECTIVES`] is taken for the operation, with ranks in the order of the terminals' numbers and along a walk in which
//! each is near the one before. What each phase puts on every channel is counted with the routing in use, and what the ranks hold at the
//! end is proved ([`prove`]), sharing nothing with the algorithms' formulas. The least sum of the phases' busiest channels wins.

use super::contract::VerifyError;
use super::contract::{Job, ScheduleError, first};
use super::verification::Routes;
use crate::collective::{Block, Collective, Entry, Least, MessageSize, Parameters, schedules};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What one phase puts on the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseLoad {
    /// Messages that share a channel, at most.
    pub messages: u32,
    /// The most that a channel carries, in units.
    pub units: u64,
}

/// A collective on terminals, with what was counted.
#[derive(Debug)]
pub struct Arranged {
    /// The algorithm.
    pub entry: &'static Entry,
    /// How ranks are placed: `ascending` or `walk`.
    pub order: &'static str,
    /// The terminal of each rank.
    pub terminals: Vec<TerminalId>,
    /// The root, where the operation has one.
    pub root: u32,
    /// The algorithm for so many ranks. A message of the whole has [`Self::units`] flits.
    pub collective: Arc<dyn Collective>,
    /// Into how many units a message is divided: of an all-gather, gather or scatter one for each block, of a vector one for each rank.
    pub units: u32,
    /// By phase.
    pub loads: Vec<PhaseLoad>,
    /// Units that nothing can beat: what some rank has to send or receive.
    pub least: Option<u64>,
}

impl Arranged {
    /// The time of all phases one after the other, in units on the busiest channel of each.
    pub fn time(&self) -> u64 {
        self.loads.iter().map(|load| load.units).sum()
    }

    /// Messages that share a channel in a phase, at most.
    pub fn max_load(&self) -> u32 {
        self.loads.iter().map(|load| load.messages).max().unwrap_or(0)
    }
}

/// Ranks beyond which the proof of an algorithm would take more memory than a network of that size.
const PROVED: u32 = 4096;

/// The fastest arrangement of an operation, or that of one algorithm.
///
/// # Errors
/// No such algorithm; terminals that are not there; a routing with choices; no algorithm for so many ranks.
pub fn arrange(
    operation: &'static str,
    algorithm: Option<&str>,
    network: &Network,
    routing: &dyn Routing,
    job: &Job,
) -> Result<Arranged, ScheduleError> {
    let needs = format!("a collective is arranged for 2 to {PROVED}");
    let terminals = job.terminals(operation, network, (PROVED, &needs), first)?;
    let ranks = terminals.len() as u32;
    let mut orders = vec![("ascending", terminals.clone())];
    let walk = walk(network, routing, &terminals)?;
    if walk != terminals {
        orders.push(("walk", walk));
    }
    let refused = |problem: String| ScheduleError::Job { schedule: operation, problem };
    let (mut best, mut problem): (Option<Arranged>, Option<String>) = (None, None);
    for entry in schedules(operation).filter(|entry| algorithm.is_none_or(|name| name == entry.schedule)) {
        let units = units_of(operation, ranks);
        let parameters = Parameters { ranks, root: 0, size: MessageSize::of_flits(u64::from(units)) };
        let collective: Arc<dyn Collective> = match entry.build(&parameters) {
            Ok(collective) => collective.into(),
            Err(error) => {
                problem = Some(error.to_string());
                continue;
            }
        };
        prove(operation, &*collective, &parameters).map_err(refused)?;
        for (order, terminals) in &orders {
            let loads = count(network, routing, terminals, &*collective)?;
            let least = Least::of(operation, &parameters).map(|least| least.sent.max(least.received));
            let (terminals, collective) = (terminals.clone(), Arc::clone(&collective));
            let found = Arranged { entry, order, terminals, root: 0, collective, units, loads, least };
            if best.as_ref().is_none_or(|best| found.time() < best.time()) {
                best = Some(found);
            }
        }
    }
    best.ok_or_else(|| match problem {
        Some(problem) => refused(problem),
        None => {
            let names: Vec<&str> = schedules(operation).map(|entry| entry.schedule).collect();
            refused(format!("`{}`, which is none of its algorithms: {}", algorithm.unwrap_or_default(), names.join(", ")))
        }
    })
}

/// Units of a message: one for what cannot be divided, one for each rank of a vector.
fn units_of(operation: &str, ranks: u32) -> u32 {
    if matches!(operation, "allgather" | "gather" | "scatter") { 1 } else { ranks }
}

/// A walk over all terminals: from each to the nearest that is left, of equals to the one with the fewest others left that are as near, so
/// that nobody is left behind.
fn walk(network: &Network, routing: &dyn Routing, terminals: &[TerminalId]) -> Result<Vec<TerminalId>, VerifyError> {
    let (count, mut routes, mut path) = (terminals.len(), Routes::new(network, routing), Vec::new());
    let mut distance = vec![0_u16; count * count];
    for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        routes.follow(terminals[from], terminals[to], &mut path)?;
        distance[from * count + to] = path.len().min(usize::from(u16::MAX)) as u16;
    }
    let nearest = distance.iter().copied().filter(|&distance| distance > 0).min().unwrap_or(0);
    let mut neighbours: Vec<u32> =
        (0..count).map(|place| distance[place * count..][..count].iter().filter(|&&distance| distance == nearest).count() as u32).collect();
    let (mut is_left, mut order, mut here) = (vec![true; count], Vec::with_capacity(count), 0);
    loop {
        is_left[here] = false;
        order.push(terminals[here]);
        for place in (0..count).filter(|&place| distance[place * count + here] == nearest) {
            neighbours[place] = neighbours[place].saturating_sub(1);
        }
        let next =
            (0..count).filter(|&place| is_left[place]).min_by_key(|&place| (distance[here * count + place], neighbours[place], place));
        match next {
            Some(next) => here = next,
            None => return Ok(order),
        }
    }
}

/// What each phase puts on the channels.
fn count(
    network: &Network,
    routing: &dyn Routing,
    terminals: &[TerminalId],
    collective: &dyn Collective,
) -> Result<Vec<PhaseLoad>, VerifyError> {
    let mut routes = Routes::new(network, routing);
    let mut on_channel = vec![(0_u32, 0_u64); network.channel_count() as usize];
    let (mut touched, mut path, mut loads) = (Vec::new(), Vec::new(), Vec::new());
    for phase in 0..collective.rounds() {
        let mut most = PhaseLoad { messages: 0, units: 0 };
        for rank in 0..terminals.len() as u32 {
            let Some(transfer) = collective.send(rank, phase) else { continue };
            if collective.receive(transfer.peer, phase) != Some(rank) {
                return Err(VerifyError::Unexpected { phase, source_rank: rank, destination: transfer.peer });
            }
            routes.follow(terminals[rank as usize], terminals[transfer.peer as usize], &mut path)?;
            for &channel in &path {
                let (messages, units) = &mut on_channel[channel.index()];
                *messages += 1;
                *units += u64::from(transfer.flits) * u64::from(network.link(channel).period);
                most = PhaseLoad { messages: most.messages.max(*messages), units: most.units.max(*units) };
                touched.push(channel);
            }
        }
        touched.drain(..).for_each(|channel| on_channel[channel.index()] = (0, 0));
        loads.push(most);
    }
    Ok(loads)
}

/// Who has contributed to a sum: a bit a rank.
type Sum = Vec<u64>;

/// How a message changes what its receiver holds of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is added.
    Added,
    /// It takes the place of what was there.
    Replaced,
}

/// Proves that an algorithm does what its operation promises: every block whole, and in sums every contribution exactly once.
///
/// # Errors
/// The rank, the round and the block that are wrong.
pub fn prove(operation: &str, collective: &dyn Collective, parameters: &Parameters) -> Result<(), String> {
    follow(operation, collective, parameters, &mut |_, _, _| {})
}

/// As [`prove`]; `each` is told of every message what its blocks do at its receiver: round, sender, effects in the order of
/// [`Collective::blocks`].
///
/// # Errors
/// As [`prove`].
pub fn follow(
    operation: &str,
    collective: &dyn Collective,
    parameters: &Parameters,
    each: &mut dyn FnMut(u32, u32, &[Effect]),
) -> Result<(), String> {
    let Parameters { ranks, root, .. } = *parameters;
    let sums = matches!(operation, "allreduce" | "reducescatter" | "reduce");
    let key = |block: Block| Block { origin: if sums { 0 } else { block.origin }, part: block.part };
    let words = (ranks as usize).div_ceil(64);
    let own = |rank: u32| -> Sum {
        let mut sum = vec![0; words];
        sum[rank as usize / 64] |= 1 << (rank % 64);
        sum
    };
    let parts = collective.parts();
    let begin = |rank: u32| -> BTreeMap<Block, Sum> {
        let all = |origin: u32, parts: u32| (0..parts).map(|part| (Block { origin, part }, own(rank))).collect();
        match operation {
            "allreduce" | "reducescatter" | "reduce" => all(0, parts),
            "broadcast" if rank == root => all(root, parts),
            "scatter" if rank == root => all(root, ranks),
            "broadcast" | "scatter" => BTreeMap::new(),
            _ => all(rank, 1),
        }
    };
    let mut held: Vec<BTreeMap<Block, Sum>> = (0..ranks).map(begin).collect();
    let mut effects = Vec::new();
    for round in 0..collective.rounds() {
        // What is sent in a round was there before it.
        let mut arriving = Vec::new();
        for rank in 0..ranks {
            let Some(transfer) = collective.send(rank, round) else { continue };
            for block in collective.blocks(rank, round).into_iter().map(key) {
                let content = held[rank as usize].get(&block).cloned();
                let content = content.ok_or_else(|| format!("rank {rank} has no {block:?} to send in round {round}"))?;
                arriving.push((rank, transfer.peer, block, content));
            }
        }
        for group in arriving.chunk_by(|one, other| one.0 == other.0) {
            effects.clear();
            for (_, peer, block, content) in group {
                let there = held[*peer as usize].entry(*block).or_insert_with(|| vec![0; words]);
                let is_apart = there.iter().zip(content).all(|(one, other)| one & other == 0);
                let is_within = there.iter().zip(content).all(|(one, other)| one & !other == 0);
                let is_new = there.iter().all(|&word| word == 0);
                match (sums && is_apart && !is_new, is_within) {
                    (true, _) => {
                        there.iter_mut().zip(content).for_each(|(one, other)| *one |= other);
                        effects.push(Effect::Added);
                    }
                    (_, true) => {
                        there.clone_from(content);
                        effects.push(Effect::Replaced);
                    }
                    _ => return Err(format!("rank {peer} would count a contribution to {block:?} twice in round {round}")),
                }
            }
            each(round, group[0].0, &effects);
        }
    }
    let whole: Sum =
        (0..words).map(|word| (0..ranks).filter(|rank| *rank as usize / 64 == word).fold(0, |sum, rank| sum | 1 << (rank % 64))).collect();
    let promised = |rank: u32| -> Vec<(Block, Sum)> {
        let vector = || (0..parts).map(|part| (Block { origin: 0, part }, whole.clone())).collect();
        match operation {
            "allreduce" => vector(),
            "reduce" if rank == root => vector(),
            "reducescatter" => vec![(Block { origin: 0, part: rank }, whole.clone())],
            "broadcast" => (0..parts).map(|part| (Block { origin: root, part }, own(root))).collect(),
            "scatter" => vec![(Block { origin: root, part: rank }, own(root))],
            "gather" if rank != root => Vec::new(),
            "reduce" => Vec::new(),
            _ => (0..ranks).map(|origin| (Block { origin, part: 0 }, own(origin))).collect(),
        }
    };
    for rank in 0..ranks {
        for (block, content) in promised(rank) {
            if held[rank as usize].get(&block) != Some(&content) {
                return Err(format!("rank {rank} does not end with the whole of {block:?}"));
            }
        }
    }
    Ok(())
}
