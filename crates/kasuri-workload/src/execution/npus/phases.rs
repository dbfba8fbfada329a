//! The phases of a collective: one a dimension, in which order, on which queues, with how many bytes.

mod form;

use super::super::cluster::{Choice, Implementation, Optimization, Pattern};
use super::super::trace::{Kind, Operation};
use super::algorithm::{Algorithm, Halving, Members, Place, Ring, Tree};
use super::job::Job;
pub use form::{Form, PhaseForm};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The collectives that become messages.
pub fn pattern(operation: Operation) -> Option<Pattern> {
    match operation {
        Operation::AllReduce => Some(Pattern::AllReduce),
        Operation::AllGather => Some(Pattern::AllGather),
        Operation::ReduceScatter => Some(Pattern::ReduceScatter),
        Operation::AllToAll => Some(Pattern::AllToAll),
        _ => None,
    }
}

/// What is wrong with a collective without phases.
pub(super) const NOBODY: &str = "is a collective in which no dimension takes part, or one NPU alone; ASTRA-sim never ends it";

/// How a collective of all NPUs sees the network: size and stride of its dimensions, and their implementations.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    dimensions: Vec<(u32, u32)>,
    choices: Vec<Choice>,
}

/// The implementation of a group to which none of the system file's applies.
const RING: Choice = Choice { implementation: Implementation::Ring, over_all: false };

impl Plan {
    /// The implementation of a communicator group: the only one, or that of the only dimension in which its members differ. `None`: the
    /// group is a ring, whatever the system file names.
    fn choice_of_group(&self, members: &[u32], is_astra_sim: bool) -> Option<Choice> {
        if let [only] = self.choices[..] {
            return Some(only);
        }
        let place = |npu: u32, &(count, stride): &(u32, u32)| npu / stride % count;
        let first = *members.first()?;
        let mut spanned = (0..self.dimensions.len()).filter(|&dimension| {
            let of = |npu: u32| place(npu, &self.dimensions[dimension]);
            members.iter().any(|&member| of(member) != of(first))
        });
        let only = spanned.next().filter(|_| !is_astra_sim)?;
        spanned.next().is_none().then(|| self.choices[only])
    }

    /// Does a group of these members ignore implementations that the system file names?
    pub(super) fn left_out_of_group(&self, members: &[u32], is_astra_sim: bool) -> bool {
        self.choice_of_group(members, is_astra_sim).is_none()
            && self.choices.iter().any(|choice| choice.implementation != Implementation::Ring)
    }
}

/// The plan of each collective for which the system names implementations.
pub(super) fn plans(job: &Job<'_>) -> BTreeMap<Pattern, Plan> {
    let plan = |choices: &Vec<Choice>| {
        let (mut dimensions, mut stride) = (Vec::new(), 1);
        for (choice, dimension) in choices.iter().zip(&job.cluster.dimensions) {
            if choice.over_all {
                dimensions.push((job.cluster.npus(), 1));
                break;
            }
            dimensions.push((dimension.npus, stride));
            stride *= dimension.npus;
        }
        Plan { dimensions, choices: choices.clone() }
    };
    job.system
        .implementations
        .iter()
        .filter(|(_, choices)| !choices.is_empty())
        .map(|(&pattern, choices)| (pattern, plan(choices)))
        .collect()
}

/// In words, the collectives with communicator groups that are rings although the system file names other implementations.
pub fn groups_as_rings(job: &Job<'_>, is_astra_sim: bool) -> Vec<String> {
    let (plans, npus) = (plans(job), job.cluster.npus() as usize);
    let mut rings: BTreeMap<Pattern, BTreeSet<&[u32]>> = BTreeMap::new();
    for trace in job.traces {
        let own = trace.nodes.iter().filter_map(|node| if let Kind::Metadata { groups } = &node.kind { Some(&**groups) } else { None });
        let own: BTreeMap<u32, &[u32]> = own.flatten().map(|(number, members)| (*number, &**members)).collect();
        for node in &trace.nodes {
            let Kind::Collective(collective) = &node.kind else { continue };
            let Some((pattern, plan)) = collective.operation.and_then(pattern).and_then(|pattern| Some((pattern, plans.get(&pattern)?)))
            else {
                continue;
            };
            let members = own.get(&collective.group).copied().or_else(|| job.groups.get(&collective.group).map(Vec::as_slice));
            let is_custom = job.system.custom.contains_key(&pattern) || job.system.custom_nodes.contains_key(&node.id);
            let members = members.filter(|members| collective.group > 0 && !is_custom && (2..npus).contains(&members.len()));
            if let Some(members) = members.filter(|members| plan.left_out_of_group(members, is_astra_sim)) {
                rings.entry(pattern).or_default().insert(members);
            }
        }
    }
    let why = if is_astra_sim {
        "as ASTRA-sim has it where a file names several implementations"
    } else {
        "since they are in several dimensions"
    };
    let note = |(pattern, groups): (Pattern, BTreeSet<&[u32]>)| {
        format!("{}-implementation of {} communicator groups, which are one ring each, {why},", pattern.name(), groups.len())
    };
    rings.into_iter().map(note).collect()
}

/// Whose turn it is: queues of each dimension, and the trees.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    queues: u32,
    any: Vec<u32>,
    first: Vec<u32>,
    last: Vec<u32>,
    trees: BTreeMap<(Pattern, usize), bool>,
}

/// Which of the queues of a dimension a phase may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Both,
    First,
    Last,
}

impl Turns {
    pub(super) fn new(dimensions: usize, queues: u32) -> Self {
        let (any, last) = (vec![0; dimensions], vec![queues / 2; dimensions]);
        Self { queues, first: any.clone(), any, last, trees: BTreeMap::new() }
    }

    /// A queue of a dimension, and whether its phase goes up the ring.
    fn queue(&mut self, dimension: usize, half: Half) -> (usize, bool) {
        let (queues, middle) = (self.queues, self.queues / 2);
        let advance = |turn: &mut u32, end: u32, begin: u32| {
            let now = *turn;
            *turn = if now + 1 >= end { begin } else { now + 1 };
            now
        };
        let (queue, up) = match half {
            Half::Both => {
                let queue = advance(&mut self.any[dimension], queues, 0);
                (queue, queues == 1 || queue < middle)
            }
            Half::First => (advance(&mut self.first[dimension], middle, 0), true),
            Half::Last => (advance(&mut self.last[dimension], queues, middle), false),
        };
        (dimension * queues as usize + queue as usize, up)
    }
}

/// A collective on one NPU: the dimensions that it sees there.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pattern: Pattern,
    places: Vec<Place>,
    choices: Vec<Choice>,
    involved: Vec<bool>,
}

/// One phase.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) queue: usize,
    pub(super) algorithm: Algorithm,
    /// What is sent to one comes back from it, not from the other side.
    pub(super) exchanged: bool,
}

impl Scope {
    /// A collective of all NPUs.
    pub(super) fn of_all(plan: &Plan, pattern: Pattern, npu: u32, involved: Option<&[bool]>) -> Result<Self, String> {
        let place = |&(count, stride): &(u32, u32)| {
            let index = npu / stride % count;
            Place { members: Members::Strided { base: npu - index * stride, stride }, count, index, grouped: false }
        };
        let places: Vec<Place> = plan.dimensions.iter().map(place).collect();
        let involved = involved.map_or_else(|| vec![true; places.len()], <[bool]>::to_vec);
        if involved.len() < places.len() {
            return Err(format!("involved_dim has {} entries, but the collective {} dimensions", involved.len(), places.len()));
        }
        Ok(Self { pattern, places, choices: plan.choices.clone(), involved })
    }

    /// A collective of a group, in one phase with its members in the order of their list.
    ///
    /// Of several implementations, one for each dimension, that of the dimension with all members counts. A group over several dimensions
    /// is a ring ([`Plan::choice_of_group`]), and so is any group by ASTRA-sim's rules (`is_astra_sim`; `CommunicatorGroup.cc`).
    pub(super) fn of_group(plan: &Plan, pattern: Pattern, npu: u32, members: Arc<[u32]>, is_astra_sim: bool) -> Result<Self, String> {
        let index = members.iter().position(|&member| member == npu);
        let index = index.ok_or_else(|| "it is not in the communicator group, at which ASTRA-sim stops by an assertion".to_owned())?;
        let choice = plan.choice_of_group(&members, is_astra_sim).unwrap_or(RING);
        if choice.implementation == Implementation::DoubleBinaryTree {
            return Err("doubleBinaryTree in a communicator group makes ASTRA-sim crash".to_owned());
        }
        let place = Place { count: members.len() as u32, members: Members::Listed(members), index: index as u32, grouped: true };
        Ok(Self { pattern, places: vec![place], choices: vec![choice], involved: vec![true] })
    }

    /// Does no dimension take part?
    pub(super) fn is_empty(&self) -> bool {
        (0..self.places.len()).all(|dimension| !self.takes_part(dimension))
    }

    fn takes_part(&self, dimension: usize) -> bool {
        self.places[dimension].count > 1 && self.involved[dimension]
    }

    /// The phases of a chunk.
    pub(super) fn phases(&self, turns: &mut Turns, optimization: Optimization, mut data: u64) -> Result<Vec<Phase>, String> {
        let mut phases = Vec::new();
        for (dimension, pattern, half) in self.order(optimization) {
            let (queue, up) = turns.queue(dimension, half);
            let (phase, left) = self.phase(turns, dimension, pattern, (queue, up), data)?;
            phases.push(phase);
            data = left;
        }
        Ok(phases)
    }

    /// Dimensions, what is done in them, and the queues for it.
    fn order(&self, optimization: Optimization) -> Vec<(usize, Pattern, Half)> {
        let taking: Vec<usize> = (0..self.places.len()).filter(|&dimension| self.takes_part(dimension)).collect();
        if self.pattern != Pattern::AllReduce || optimization == Optimization::Baseline {
            let mut order: Vec<_> = taking.into_iter().map(|dimension| (dimension, self.pattern, Half::Both)).collect();
            if self.pattern == Pattern::AllGather {
                order.reverse();
            }
            return order;
        }
        let Some((&last, others)) = taking.split_last() else { return Vec::new() };
        let up = others.iter().map(|&dimension| (dimension, Pattern::ReduceScatter, Half::First));
        let down = others.iter().rev().map(|&dimension| (dimension, Pattern::AllGather, Half::Last));
        up.chain([(last, Pattern::AllReduce, Half::First)]).chain(down).collect()
    }

    /// A phase, and the bytes that are left behind it.
    fn phase(
        &self,
        turns: &mut Turns,
        dimension: usize,
        pattern: Pattern,
        (queue, up): (usize, bool),
        data: u64,
    ) -> Result<(Phase, u64), String> {
        let place = self.places[dimension].clone();
        let n = u64::from(place.count);
        let left = match pattern {
            Pattern::AllGather => {
                data.checked_mul(n).ok_or_else(|| format!("gathers {data} bytes of each of {n} NPUs, 2^64 or more in all"))?
            }
            Pattern::ReduceScatter => data / n,
            Pattern::AllReduce | Pattern::AllToAll => data,
        };
        let implementation = self.choices[dimension].implementation;
        let exchanged = implementation == Implementation::HalvingDoubling;
        let (algorithm, left) = match implementation {
            Implementation::Ring => (Algorithm::Ring(Ring::new(pattern, place, None, up, data)), left),
            Implementation::Direct { window } => {
                (Algorithm::Ring(Ring::new(pattern, place, Some(window.unwrap_or(u32::MAX)), up, data)), left)
            }
            Implementation::HalvingDoubling if pattern == Pattern::AllToAll => {
                return Err("halvingDoubling has no all-to-all, at which ASTRA-sim stops".to_owned());
            }
            Implementation::HalvingDoubling => (Algorithm::Halving(Halving::new(pattern, place, data)), left),
            Implementation::DoubleBinaryTree => (self.tree(turns, dimension, &place, data)?, data),
        };
        Ok((Phase { queue, algorithm, exchanged }, left))
    }

    fn tree(&self, turns: &mut Turns, dimension: usize, place: &Place, data: u64) -> Result<Algorithm, String> {
        if !place.count.is_power_of_two() {
            return Err(format!("doubleBinaryTree over {} NPUs makes ASTRA-sim crash; it needs a power of two", place.count));
        }
        let root_first = turns.trees.entry((self.pattern, dimension)).or_default();
        let tree = Tree::new(data, place.index, place.count, !*root_first, |index| place.members.npu(index));
        *root_first = !*root_first;
        Ok(Algorithm::Tree(Box::new(tree)))
    }
}
