//! Allgather in few rounds for any number of ranks: everyone passes what it has to ever farther ranks.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind, doublings};
use super::parameters::MessageSize;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "allgather",
    schedule: "bruck",
    summary: "in round k rank r sends up to 2^k blocks to r - 2^k mod N; log2 N rounds, rounded up",
    source: "Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE Trans. Parallel Distrib. Syst. 8 (1997)",
    rooted: false,
    build: |parameters| Ok(Box::new(Bruck { ranks: parameters.ranks, size: parameters.size })),
};

#[derive(Debug)]
struct Bruck {
    ranks: u32,
    size: MessageSize,
}

impl Bruck {
    /// The blocks of a round: all that a rank has, in the last round only those that are missing.
    fn count(&self, round: u32) -> u32 {
        (1 << round).min(self.ranks - (1 << round))
    }
}

impl Collective for Bruck {
    fn rounds(&self) -> u32 {
        doublings(self.ranks)
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(Transfer { peer: behind(rank, 1 << round, self.ranks), flits: self.size.whole(self.count(round)) })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        Some(ahead(rank, 1 << round, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        (0..self.count(round)).map(|further| Block { origin: ahead(rank, further, self.ranks), part: 0 }).collect()
    }
}
