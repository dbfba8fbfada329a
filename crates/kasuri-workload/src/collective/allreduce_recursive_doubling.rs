//! Allreduce by recursive doubling: the whole vector is exchanged over distances that double.

use super::contract::{Block, Collective, Entry, Transfer};
use super::fold::{Fold, Peers, Step};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "allreduce",
    schedule: "recursive-doubling",
    summary: "in round k rank r exchanges its whole vector with r xor 2^k; a surplus over a power of two is folded in and out",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.5",
    rooted: false,
    build: |parameters| Ok(Box::new(RecursiveDoubling { fold: Fold::new(parameters.ranks), flits: parameters.size.whole(1) })),
};

#[derive(Debug)]
struct RecursiveDoubling {
    fold: Fold,
    flits: u32,
}

impl RecursiveDoubling {
    fn inner(&self) -> u32 {
        self.fold.power.ilog2()
    }

    fn peers(&self, rank: u32, round: u32) -> Peers {
        match self.fold.step(round, self.inner()) {
            Step::Inner(bit) => {
                let peer = self.fold.number(rank).map(|number| self.fold.rank(number ^ 1 << bit));
                (peer, peer)
            }
            step => self.fold.outer(rank, &step),
        }
    }
}

impl Collective for RecursiveDoubling {
    fn rounds(&self) -> u32 {
        self.fold.rounds(self.inner())
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        self.peers(rank, round).0.map(|peer| Transfer { peer, flits: self.flits })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        self.peers(rank, round).1
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        self.send(rank, round).map(|_| Block { origin: rank, part: 0 }).into_iter().collect()
    }
}
