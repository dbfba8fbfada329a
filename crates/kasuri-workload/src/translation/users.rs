//! The users of one machine, as an engine receives them.

use super::embedding::Embedding;
use super::sharing::TableWrite;
use super::table::Table;
use super::tables::Tables;
use super::translator::Costs;
use crate::traffic::pattern::Pattern;
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::rng::Stream;
use std::ops::Range;
use std::sync::Arc;

/// The most users of one machine: the owners of a router are bits of one word.
pub const MAX_USERS: usize = 64;

/// All users, their tables, and what they are granted.
#[derive(Clone, Debug)]
pub struct Users {
    /// The users in the order of the file.
    pub users: Vec<User>,
    /// Their tables at the beginning.
    pub tables: Tables,
    /// What a translation costs.
    pub costs: Costs,
    /// Are the switches' outputs divided among the users by their shares?
    pub shares: bool,
    /// Changes of tables at given times, in their order.
    pub writes: Vec<TableWrite>,
}

/// One user.
#[derive(Clone, Debug)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its terminals, those included that its table does not name at present.
    pub nodes: Vec<TerminalId>,
    /// Which of the scenario's classes are its own, that of its workload's messages included; none if it does not run.
    pub classes: Range<usize>,
    /// By class of its open traffic: where its packets go, in logical nodes.
    pub logical: Vec<Arc<dyn Pattern>>,
    /// The part of each switch output that it is granted where users contend, relative to the others'.
    pub share: f64,
    /// Its logical network on the machine, if it has one.
    pub embedding: Option<Embedding>,
    /// Every so many cycles an entry of its table moves to a spare node, or two entries change places. A rank of its workload, and what
    /// is left of a batch, moves with its logical node.
    pub change_every: Option<u64>,
}

impl Users {
    /// Do all accesses reach a node: has every logical node a terminal, and does no table change?
    pub fn reach_all(&self) -> bool {
        let is_whole = |number: usize| {
            let table = self.tables.table(number as u16);
            table.valid().count() == table.len() as usize
        };
        (0..self.users.len()).all(|number| is_whole(number) && !self.is_written(number))
    }

    /// The most classes of traffic that any terminal has, of all users whose it is.
    pub fn most_classes_of_terminal(&self, network: &Network) -> usize {
        let mut classes = vec![0; network.terminal_count() as usize];
        for user in &self.users {
            user.nodes.iter().for_each(|node| classes[node.index()] += user.classes.len());
        }
        classes.into_iter().max().unwrap_or(0)
    }

    /// Whose class it is.
    pub fn of_class(&self, class: usize) -> Option<usize> {
        self.users.iter().position(|user| user.classes.contains(&class))
    }

    /// Does the table of a class's user change?
    pub fn changes(&self, class: usize) -> bool {
        self.of_class(class).is_some_and(|user| self.is_written(user))
    }

    /// Does the table of a user change?
    pub fn is_written(&self, user: usize) -> bool {
        self.users[user].change_every.is_some() || self.writes.iter().any(|write| usize::from(write.user) == user)
    }

    /// The position of a class among those of its user.
    pub fn logical(&self, class: usize) -> Option<&dyn Pattern> {
        let user = &self.users[self.of_class(class)?];
        user.logical.get(class - user.classes.start).map(|pattern| &**pattern)
    }
}

/// By router: the users that have terminals there, user `i` as bit `i`.
pub fn regions(users: &[User], network: &Network) -> Vec<u64> {
    let mut regions = vec![0; network.router_count() as usize];
    for (number, user) in users.iter().enumerate() {
        for &terminal in &user.nodes {
            regions[network.injection_port(terminal).0.index()] |= 1 << number;
            regions[network.ejection_port(terminal).0.index()] |= 1 << number;
        }
    }
    regions
}

/// A pattern over logical nodes as one over terminals, for engines that know no tables: accesses outside of the table are drawn
/// anew, and of several logical nodes on one terminal each sends as often.
#[derive(Debug)]
pub struct Translated {
    logical: Arc<dyn Pattern>,
    table: Table,
    /// By terminal: the logical nodes on it.
    hosted: Vec<Vec<u32>>,
}

/// Draws of a destination before a source whose accesses all miss the table is taken for silent.
const MAX_DRAWS: u32 = 1000;

impl Translated {
    /// The pattern of so many terminals.
    pub fn new(logical: Arc<dyn Pattern>, table: Table, terminals: u32) -> Self {
        let mut hosted = vec![Vec::new(); terminals as usize];
        for (node, physical) in table.valid() {
            for terminal in physical {
                let here: &mut Vec<u32> = &mut hosted[terminal.index()];
                if here.last() != Some(&node) {
                    here.push(node);
                }
            }
        }
        Self { logical, table, hosted }
    }
}

impl Pattern for Translated {
    fn destination(&self, source: TerminalId, stream: &mut Stream) -> Option<TerminalId> {
        let here = &self.hosted[source.index()];
        if self.is_silent(source) {
            return None;
        }
        (0..MAX_DRAWS).find_map(|_| {
            let node = if here.len() == 1 { here[0] } else { here[stream.below(here.len() as u32) as usize] };
            let to = self.logical.destination(TerminalId(node), stream)?;
            let aliases = self.table.physical(to.0);
            match aliases.len() {
                0 => None,
                1 => Some(aliases[0]),
                several => Some(aliases[stream.below(several as u32) as usize]),
            }
        })
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        let mut weights: Vec<(TerminalId, f64)> = Vec::new();
        for &node in &self.hosted[source.index()] {
            for (to, weight) in self.logical.weights(TerminalId(node)) {
                let aliases = self.table.physical(to.0);
                weights.extend(aliases.iter().map(|&terminal| (terminal, weight / aliases.len() as f64)));
            }
        }
        weights.sort_unstable_by_key(|&(terminal, _)| terminal);
        weights.dedup_by(|later, first| {
            let same = later.0 == first.0;
            first.1 += if same { later.1 } else { 0.0 };
            same
        });
        let total: f64 = weights.iter().map(|&(_, weight)| weight).sum();
        weights.iter_mut().for_each(|(_, weight)| *weight /= total);
        weights
    }

    fn is_silent(&self, source: TerminalId) -> bool {
        self.hosted[source.index()].iter().all(|&node| self.logical.is_silent(TerminalId(node)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::rng::{Purpose, Streams};

    /// Node i to all others, each as often.
    #[derive(Debug)]
    struct Others(u32);

    impl Pattern for Others {
        fn destination(&self, source: TerminalId, stream: &mut Stream) -> Option<TerminalId> {
            Some(TerminalId((source.0 + 1 + stream.below(self.0 - 1)) % self.0))
        }

        fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
            (0..self.0).filter(|&node| node != source.0).map(|node| (TerminalId(node), 1.0 / f64::from(self.0 - 1))).collect()
        }
    }

    /// Nodes 0 on 5, 1 not valid, 2 on 3 and 8, 3 on 5: terminal 5 draws for 0 and 3, of which a third each goes to nowhere.
    #[test]
    fn destinations_are_drawn_by_the_weights_over_terminals() {
        let table = Table::new([&[5][..], &[], &[3, 8], &[5]].map(|all| all.iter().copied().map(TerminalId).collect()).to_vec(), 0);
        let pattern = Translated::new(Arc::new(Others(4)), table, 10);
        let weights = pattern.weights(TerminalId(5));
        let expected = [(3, 0.25), (5, 0.5), (8, 0.25)];
        assert_eq!(weights.len(), 3);
        for ((terminal, weight), (number, wanted)) in weights.iter().zip(expected) {
            assert_eq!(terminal.0, number);
            assert!((weight - wanted).abs() < 1e-12);
        }
        let mut stream = Streams::new(1).get(Purpose::Destination, 0);
        let mut counts = [0; 10];
        for _ in 0..100_000 {
            counts[pattern.destination(TerminalId(5), &mut stream).unwrap().index()] += 1;
        }
        for (number, wanted) in expected {
            assert!((f64::from(counts[number as usize]) / 1e5 - wanted).abs() < 0.01, "{counts:?}");
        }
        assert!(pattern.is_silent(TerminalId(4)) && !pattern.is_silent(TerminalId(8)));
    }
}
