//! All-to-all in few rounds: a block goes as far as its distance says, bit by bit.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind, doublings};
use super::parameters::MessageSize;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "alltoall",
    schedule: "bruck",
    summary: "in round k the blocks whose distance has bit k go 2^k ranks further; log2 N rounds, rounded up",
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
    /// How many distances below the number of ranks have a bit.
    fn with_bit(&self, bit: u32) -> u32 {
        let (half, period) = (1_u64 << bit, 2_u64 << bit);
        let ranks = u64::from(self.ranks);
        (ranks / period * half + (ranks % period).saturating_sub(half)) as u32
    }
}

impl Collective for Bruck {
    fn rounds(&self) -> u32 {
        doublings(self.ranks)
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(Transfer { peer: ahead(rank, 1 << round, self.ranks), flits: self.size.whole(self.with_bit(round)) })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        Some(behind(rank, 1 << round, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        let moved = (1..self.ranks).filter(|distance| distance >> round & 1 == 1);
        let block = |distance: u32| {
            // The lower bits have been travelled already.
            let origin = behind(rank, distance & ((1 << round) - 1), self.ranks);
            Block { origin, part: ahead(origin, distance, self.ranks) }
        };
        moved.map(block).collect()
    }
}
