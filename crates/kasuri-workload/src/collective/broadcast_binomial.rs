//! Broadcast along a binomial tree: who has the message sends it on, so that the holders double.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind, doublings};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "broadcast",
    schedule: "binomial",
    summary: "in round k the first 2^k ranks from the root on send to the ranks 2^k further; log2 N rounds, rounded up",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.2",
    rooted: true,
    build: |parameters| Ok(Box::new(Binomial { ranks: parameters.ranks, root: parameters.root, flits: parameters.size.whole(1) })),
};

#[derive(Debug)]
struct Binomial {
    ranks: u32,
    root: u32,
    flits: u32,
}

impl Collective for Binomial {
    fn rounds(&self) -> u32 {
        doublings(self.ranks)
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        let (position, distance) = (behind(rank, self.root, self.ranks), 1 << round);
        let sends = position < distance && position < self.ranks - distance;
        sends.then(|| Transfer { peer: ahead(rank, distance, self.ranks), flits: self.flits })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        let (position, distance) = (behind(rank, self.root, self.ranks), 1 << round);
        let receives = position >= distance && position - distance < distance;
        receives.then(|| behind(rank, distance, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        self.send(rank, round).map(|_| Block { origin: self.root, part: 0 }).into_iter().collect()
    }
}
