//! All-to-all by store and forward round the ring of ranks: everyone talks only to its neighbours.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind};
use super::parameters::MessageSize;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "alltoall",
    schedule: "ring",
    summary: "store and forward to the next rank: in round i = 1 to N-1 the N - i blocks that have further to go",
    source: "Kumar, Grama, Gupta and Karypis, Introduction to Parallel Computing (2003), section 4.5.1",
    rooted: false,
    build: |parameters| Ok(Box::new(Ring { ranks: parameters.ranks, size: parameters.size })),
};

#[derive(Debug)]
struct Ring {
    ranks: u32,
    size: MessageSize,
}

impl Collective for Ring {
    fn rounds(&self) -> u32 {
        self.ranks - 1
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(Transfer { peer: ahead(rank, 1, self.ranks), flits: self.size.whole(self.ranks - 1 - round) })
    }

    fn receive(&self, rank: u32, _round: u32) -> Option<u32> {
        Some(behind(rank, 1, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn volume(&self, ranks: u32) -> Option<(u64, u32)> {
        Some((u64::from(ranks) * u64::from(self.rounds()), self.size.whole(ranks - 1)))
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        let origin = behind(rank, round, self.ranks);
        (round + 1..self.ranks).map(|distance| Block { origin, part: ahead(origin, distance, self.ranks) }).collect()
    }
}
