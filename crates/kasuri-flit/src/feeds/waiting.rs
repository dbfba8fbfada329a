//! Accesses of users that wait at the heads of terminals' queues, and that go after their logical nodes.

use crate::record::drawn::Drawn;
use crate::record::marks::NONE;
use crate::state::feed::{Moves, OneQueue};
use crate::state::queues::Queues;
use kasuri_workload::translation::Written;
use std::collections::{BTreeMap, VecDeque};

/// An access at the head of a terminal's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) drawn: Drawn,
    pub(crate) user: u16,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) address: u64,
    /// When its translation is there.
    pub(crate) ready: u64,
}

impl Waiting {
    /// Where an access that waits at a terminal goes, if its logical node is there no more: that of a rank to where the rank is, that of
    /// a batch to the terminal that has it now.
    fn target(&self, user: u16, terminal: u32, moves: &Moves<'_>) -> Option<u32> {
        let rank = || moves.table.physical(self.from).first().map(|place| place.0);
        let target = if self.drawn.tag.record == NONE { moves.becomes(terminal) } else { rank() };
        target.filter(|&target| self.user == user && target != terminal)
    }
}

/// The heads of all queues.
#[derive(Debug)]
pub(crate) struct Heads {
    /// Shape `[terminals, queues]`: the access at the head of each queue.
    pub(crate) first: Vec<Option<Waiting>>,
    /// By place: accesses whose node has moved there while they waited.
    moved: BTreeMap<usize, VecDeque<Waiting>>,
    queues: usize,
}

impl Heads {
    /// Of so many terminals with so many queues each.
    pub(crate) fn new(terminals: usize, queues: usize) -> Self {
        Self { first: vec![None; terminals * queues], moved: BTreeMap::new(), queues }
    }

    /// Where the access at the head of a queue stands.
    pub(crate) fn place(&self, terminal: u32, queue: Option<OneQueue<'_>>) -> usize {
        terminal as usize * self.queues + queue.map_or(0, |queue| queue.queue)
    }

    /// Takes an access whose node has come here.
    pub(crate) fn take_moved(&mut self, place: usize) -> Option<Waiting> {
        self.moved.get_mut(&place)?.pop_front()
    }

    /// All accesses, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Drawn> {
        self.first.iter().flatten().chain(self.moved.values().flatten()).map(|waiting| &waiting.drawn)
    }

    /// Accesses that wait where their node is no more go after it.
    pub(crate) fn follow(&mut self, written: &Written, moves: &Moves<'_>, queues: &mut Queues) {
        let before = written.before.iter().flat_map(|(_, physical)| physical).map(|terminal| terminal.0);
        let mut terminals: Vec<u32> = before.chain(moves.exchanged.iter().flatten().map(|terminal| terminal.0)).collect();
        terminals.sort_unstable();
        terminals.dedup();
        let mut going = Vec::new();
        for terminal in terminals {
            for queue in 0..self.queues {
                self.leave(terminal, queue, &mut going, |waiting| waiting.target(written.user, terminal, moves));
            }
        }
        for (terminal, queue, waiting) in going {
            self.moved.entry(terminal as usize * self.queues + queue).or_default().push_back(waiting);
            queues.wake(terminal);
        }
    }

    /// Takes the accesses that leave one queue, each with its new terminal and the queue.
    fn leave(&mut self, terminal: u32, queue: usize, going: &mut Vec<(u32, usize, Waiting)>, target: impl Fn(&Waiting) -> Option<u32>) {
        let place = terminal as usize * self.queues + queue;
        if let Some(waiting) = self.first[place]
            && let Some(target) = target(&waiting)
        {
            self.first[place] = None;
            going.push((target, queue, waiting));
        }
        for waiting in self.moved.remove(&place).unwrap_or_default() {
            match target(&waiting) {
                Some(target) => going.push((target, queue, waiting)),
                None => self.moved.entry(place).or_default().push_back(waiting),
            }
        }
    }
}
