//! The parts of a vector on their way round the ring of ranks, each one step further in each round.

use super::contract::{Block, Collective, Transfer, ahead, behind};
use super::parameters::MessageSize;

/// In each round every rank sends one part of the vector to the next rank: the one that has just come to it.
#[derive(Debug)]
pub(super) struct PartRing {
    pub(super) ranks: u32,
    pub(super) size: MessageSize,
    /// How many rounds there are, at most 2 (N - 1): N - 1 for the sums, as many again to tell them.
    pub(super) rounds: u32,
    /// Whose part a rank sends in round 0: that of the rank so many steps before it, 0 or 1.
    pub(super) lag: u32,
}

impl PartRing {
    /// The part that a rank sends: the one that it added to, or received, last.
    fn part(&self, rank: u32, round: u32) -> u32 {
        let before = if round < self.ranks { round } else { round - self.ranks };
        // `behind` goes back at most once round the ring.
        behind(rank, before + self.lag, self.ranks)
    }
}

impl Collective for PartRing {
    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(Transfer { peer: ahead(rank, 1, self.ranks), flits: self.size.part(self.part(rank, round), self.ranks) })
    }

    fn receive(&self, rank: u32, _round: u32) -> Option<u32> {
        Some(behind(rank, 1, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn volume(&self, ranks: u32) -> Option<(u64, u32)> {
        let longest = (0..ranks).map(|part| self.size.part(part, ranks)).max();
        longest.map(|flits| (u64::from(ranks) * u64::from(self.rounds()), flits))
    }

    fn parts(&self) -> u32 {
        self.ranks
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        vec![Block { origin: rank, part: self.part(rank, round) }]
    }
}
