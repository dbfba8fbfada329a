//! Reduce-scatter round the ring of ranks: each part of the vector goes once round and is added to on its way.

use super::{Block, Collective, Entry, MessageSize, Transfer, ahead, behind};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "reducescatter",
    schedule: "ring",
    summary: "in each of N-1 rounds every rank passes on to the next one a part of the vector, with its own added",
    source: "Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009): the first half of their allreduce",
    rooted: false,
    build: |parameters| Ok(Box::new(Ring { ranks: parameters.ranks, size: parameters.size })),
};

#[derive(Debug)]
struct Ring {
    ranks: u32,
    size: MessageSize,
}

impl Ring {
    /// The part that a rank sends: the one it added to last. Its own comes to it in the last round.
    fn part(&self, rank: u32, round: u32) -> u32 {
        behind(rank, round + 1, self.ranks)
    }
}

impl Collective for Ring {
    fn rounds(&self) -> u32 {
        self.ranks - 1
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
