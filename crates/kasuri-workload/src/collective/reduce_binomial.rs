//! Reduce along a binomial tree: a broadcast backwards, in which everyone adds what comes to its own.

use super::{Block, Collective, Entry, Transfer, ahead, behind, doublings};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "reduce",
    schedule: "binomial",
    summary: "the broadcast's tree backwards: those who hold sums halve in each of log2 N rounds, rounded up",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.5",
    rooted: true,
    build: |parameters| Ok(Box::new(Binomial { ranks: parameters.ranks, root: parameters.root, flits: parameters.size.whole(1) })),
};

#[derive(Debug)]
struct Binomial {
    ranks: u32,
    root: u32,
    flits: u32,
}

impl Binomial {
    /// How far messages go in a round: half as far in each.
    fn distance(&self, round: u32) -> u32 {
        1 << (self.rounds() - 1 - round)
    }
}

impl Collective for Binomial {
    fn rounds(&self) -> u32 {
        doublings(self.ranks)
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        let (position, distance) = (behind(rank, self.root, self.ranks), self.distance(round));
        let sends = position >= distance && position - distance < distance;
        sends.then(|| Transfer { peer: behind(rank, distance, self.ranks), flits: self.flits })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        let (position, distance) = (behind(rank, self.root, self.ranks), self.distance(round));
        let receives = position < distance && position < self.ranks - distance;
        receives.then(|| ahead(rank, distance, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        self.send(rank, round).map(|_| Block { origin: rank, part: 0 }).into_iter().collect()
    }
}
