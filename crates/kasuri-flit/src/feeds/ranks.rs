//! Ranks of workloads that move from terminal to terminal, because the table of their user changes.
//!
//! Such a rank has a queue of its own, whose number follows those of the terminals, and takes it along. A workload calls a rank by the
//! terminal on which it began.

use crate::state::feed::Moves;
use crate::state::queues::Queues;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use std::collections::BTreeMap;

/// A rank that moves.
#[derive(Clone, Copy, Debug)]
struct Rank {
    class: u8,
    /// Its logical node, and the terminal that this is at present.
    node: u32,
    place: TerminalId,
}

/// All ranks that move; none where no table changes.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    /// The number of the first queue.
    first: u32,
    ranks: Vec<Rank>,
    /// By class and terminal: the queue of the rank that began there.
    queues: BTreeMap<(u8, TerminalId), u32>,
    /// By terminal: the queues of the ranks that are there. Empty if no rank moves.
    here: Vec<Vec<u32>>,
}

impl Ranks {
    /// The ranks of a scenario's workloads that move. `classes`: the classes of the messages, one for each part.
    pub(crate) fn new(scenario: &Scenario, classes: std::ops::Range<u8>) -> Self {
        let mut ranks = Self { first: scenario.network.terminal_count(), ..Self::default() };
        let Some(users) = &scenario.users else { return ranks };
        for class in classes.filter(|&class| users.changes(class.into())) {
            let Some(user) = users.of_class(class.into()) else { continue };
            let places = users.tables.table(user as u16).valid().filter_map(|(node, physical)| Some((node, *physical.first()?)));
            for (node, place) in places {
                let queue = ranks.first + ranks.ranks.len() as u32;
                ranks.ranks.push(Rank { class, node, place });
                ranks.queues.insert((class, place), queue);
                ranks.here.resize(ranks.first as usize, Vec::new());
                ranks.here[place.index()].push(queue);
            }
        }
        ranks
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.ranks.len()
    }

    /// The queues of the ranks that move and are on a terminal at present.
    pub(crate) fn here(&self, terminal: u32) -> &[u32] {
        self.here.get(terminal as usize).map_or(&[], Vec::as_slice)
    }

    /// The queue of what a class sends from a terminal, as the workload calls it, and the terminal where that is at present.
    pub(crate) fn queue_of(&self, class: u8, source: TerminalId) -> (u32, TerminalId) {
        match self.queues.get(&(class, source)) {
            None => (source.0, source),
            Some(&queue) => (queue, self.ranks[(queue - self.first) as usize].place),
        }
    }

    /// Ranks move with their logical nodes.
    pub(crate) fn moved(&mut self, moves: &Moves<'_>, queues: &mut Queues) {
        for (number, rank) in self.ranks.iter_mut().enumerate() {
            let Some(&place) = moves.table.physical(rank.node).first() else { continue };
            if !moves.classes.contains(&usize::from(rank.class)) || place == rank.place {
                continue;
            }
            let queue = self.first + number as u32;
            self.here[rank.place.index()].retain(|&other| other != queue);
            self.here[place.index()].push(queue);
            rank.place = place;
            queues.wake(place.0);
        }
    }
}
