//! The trace of one NPU: a graph of computations, messages and collectives.

use std::collections::BTreeMap;

/// The longest time that is simulated, in nanoseconds: about 36 years. Longer ones are refused.
pub const MAX_NS: u64 = 1 << 60;

/// A time truncated to whole nanoseconds.
///
/// # Errors
/// It is above [`MAX_NS`], negative or not a number.
pub fn whole_ns(ns: f64) -> Result<u64, String> {
    if (0.0..=MAX_NS as f64).contains(&ns) {
        Ok(ns as u64)
    } else {
        Err(format!("takes {ns:.3e} ns; at most 2^60 ns (36 years) are simulated"))
    }
}

/// What one NPU does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The nodes in ascending order of their ids, none of which occurs twice.
    pub nodes: Vec<Node>,
    /// Attributes of nodes that mean nothing here: each with the number of nodes that have it.
    pub unmodelled: BTreeMap<String, u64>,
}

/// Something that an NPU does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number in the file.
    pub id: u64,
    /// Its name, for messages.
    pub name: Box<str>,
    /// What is done.
    pub kind: Kind,
    /// How long it took where it was recorded, in nanoseconds; 0 if that is not known.
    pub duration_ns: u64,
    /// Whether the host does it, and not the accelerator.
    pub on_host: bool,
    /// The ids of the nodes that have to end before, control and data dependencies alike; an id may occur twice.
    pub waits_for: Box<[u64]>,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, in no time.
    Invalid,
    /// Nothing, in no time; but it may define process groups.
    Metadata {
        /// Groups by their number: the NPUs, or none for all.
        groups: Box<[(u32, Box<[u32]>)]>,
    },
    /// Loads from or stores to a remote memory.
    Memory {
        /// How much.
        bytes: Option<u64>,
    },
    /// Computes.
    Compute {
        /// Operations, for a roofline.
        operations: Option<u64>,
        /// Bytes moved to and from the memory, for a roofline.
        bytes: Option<u64>,
    },
    /// Sends a message.
    Send(Message),
    /// Receives one.
    Receive(Message),
    /// Takes part in a collective operation.
    Collective(Box<Collective>),
}

/// A message between two NPUs. What the trace does not say is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Who sends.
    pub source: Option<u32>,
    /// Who receives.
    pub destination: Option<u32>,
    /// Its size.
    pub bytes: Option<u64>,
    /// What it is called.
    pub tag: Option<u32>,
}

/// A collective operation, as one NPU sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collective {
    /// Which; `None` if the trace does not say.
    pub operation: Option<Operation>,
    /// Bytes of the buffer of a rank; of an all-gather what one rank contributes.
    pub bytes: Option<u64>,
    /// The dimensions of the network that take part; `None` stands for all.
    pub dimensions: Option<Box<[bool]>>,
    /// The number of the communicator group; 0 stands for all NPUs.
    pub group: u32,
    /// Its priority, for a system that goes by it.
    pub priority: u32,
}

/// A collective operation. The numbers are those of Chakra's schema since October 2023.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Everyone has the sum of all.
    AllReduce,
    /// One has the sum of all.
    Reduce,
    /// Everyone has the parts of all.
    AllGather,
    /// One has the parts of all.
    Gather,
    /// Everyone has a part of one.
    Scatter,
    /// Everyone has what one had.
    Broadcast,
    /// Everyone has a part of everyone.
    AllToAll,
    /// Everyone has a part of the sum of all.
    ReduceScatter,
    /// The same with equal parts.
    ReduceScatterBlock,
    /// Nobody goes on before all have come.
    Barrier,
}

impl Operation {
    /// All, in the order of Chakra's numbers.
    pub const ALL: [Self; 10] = [
        Self::AllReduce,
        Self::Reduce,
        Self::AllGather,
        Self::Gather,
        Self::Scatter,
        Self::Broadcast,
        Self::AllToAll,
        Self::ReduceScatter,
        Self::ReduceScatterBlock,
        Self::Barrier,
    ];

    /// Its name in Chakra.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "ALL_REDUCE",
            Self::Reduce => "REDUCE",
            Self::AllGather => "ALL_GATHER",
            Self::Gather => "GATHER",
            Self::Scatter => "SCATTER",
            Self::Broadcast => "BROADCAST",
            Self::AllToAll => "ALL_TO_ALL",
            Self::ReduceScatter => "REDUCE_SCATTER",
            Self::ReduceScatterBlock => "REDUCE_SCATTER_BLOCK",
            Self::Barrier => "BARRIER",
        }
    }
}

impl Trace {
    /// The position of the node with this id.
    pub fn position(&self, id: u64) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok()
    }

    /// A sentence about the first dependency that names no node of the trace, or `None`.
    pub fn missing_dependency(&self) -> Option<String> {
        let missing = self.nodes.iter().flat_map(|node| node.waits_for.iter().map(move |&on| (node, on)));
        let found: Vec<_> = missing.filter(|(_, on)| self.position(*on).is_none()).collect();
        let &(node, on) = found.first()?;
        let more =
            if found.len() > 1 { format!("; {} dependencies in all name nodes that are missing", found.len()) } else { String::new() };
        Some(format!("node {} (`{}`) waits for node {on}, which is not in the file{more}", node.id, node.name))
    }

    /// A sentence about the nodes that wait for each other in a cycle, to be read after a trace's NPU, or `None`.
    pub fn describe_cycle(&self) -> Option<String> {
        let shown: Vec<String> = self.cycle()?.iter().take(8).map(u64::to_string).collect();
        Some(format!("never finishes: its nodes {} wait for each other in a cycle", shown.join(", ")))
    }

    /// A cycle of nodes that wait for each other, by their ids: each waits for the next, the last for the first. Dependencies that
    /// name no node count as done.
    pub fn cycle(&self) -> Option<Vec<u64>> {
        const NEW: u8 = 0;
        const ON_PATH: u8 = 1;
        const DONE: u8 = 2;
        let mut state = vec![NEW; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut path: Vec<(usize, usize)> = if state[start] == NEW { vec![(start, 0)] } else { Vec::new() };
            while let Some((node, next)) = path.last_mut() {
                state[*node] = ON_PATH;
                let waits_for = &self.nodes[*node].waits_for;
                let Some(&on) = waits_for.get(*next) else {
                    state[*node] = DONE;
                    path.pop();
                    continue;
                };
                *next += 1;
                match self.position(on) {
                    Some(on) if state[on] == NEW => path.push((on, 0)),
                    Some(on) if state[on] == ON_PATH => {
                        let from = path.iter().position(|(node, _)| *node == on).unwrap_or(0);
                        return Some(path[from..].iter().map(|(node, _)| self.nodes[*node].id).collect());
                    }
                    _ => {}
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(waits: &[(u64, &[u64])]) -> Trace {
        let node = |&(id, on): &(u64, &[u64])| Node {
            id,
            name: "n".into(),
            kind: Kind::Invalid,
            duration_ns: 0,
            on_host: false,
            waits_for: on.into(),
        };
        Trace { nodes: waits.iter().map(node).collect(), unmodelled: BTreeMap::new() }
    }

    #[test]
    fn a_cycle_is_found_and_only_a_cycle() {
        assert_eq!(trace(&[(0, &[]), (1, &[0]), (2, &[0, 1])]).cycle(), None);
        assert_eq!(trace(&[(0, &[0])]).cycle(), Some(vec![0]));
        assert_eq!(trace(&[(1, &[]), (5, &[1, 9]), (7, &[5]), (9, &[7])]).cycle(), Some(vec![5, 9, 7]));
    }

    #[test]
    fn the_first_missing_dependency_is_named() {
        assert_eq!(trace(&[(0, &[]), (1, &[0])]).missing_dependency(), None);
        let text = trace(&[(3, &[8, 9])]).missing_dependency().unwrap();
        assert!(text.contains("node 3") && text.contains("node 8") && text.contains("2 dependencies"), "{text}");
    }
}
