//! Allreduce round the ring of ranks: reduce-scatter, then allgather, one part of the vector at a time.

use super::{Block, Collective, Entry, MessageSize, Transfer, ahead, behind};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "allreduce",
    schedule: "ring",
    summary: "reduce-scatter and allgather round the ring, each in N-1 rounds of one N-th of the vector",
    source: "Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009)",
    rooted: false,
    build: |parameters| Ok(Box::new(Ring { ranks: parameters.ranks, size: parameters.size })),
};

#[derive(Debug)]
struct Ring {
    ranks: u32,
    size: MessageSize,
}

impl Ring {
    /// The part that a rank sends: the one it added to last, later the one it received last.
    fn part(&self, rank: u32, round: u32) -> u32 {
        match round.checked_sub(self.ranks - 1) {
            None => behind(rank, round, self.ranks),
            Some(round) => behind(ahead(rank, 1, self.ranks), round, self.ranks),
        }
    }
}

impl Collective for Ring {
    fn rounds(&self) -> u32 {
        2 * (self.ranks - 1)
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
