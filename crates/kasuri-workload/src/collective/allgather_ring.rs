//! Allgather round the ring of ranks: everyone passes on what it received last.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "allgather",
    schedule: "ring",
    summary: "in each of N-1 rounds every rank passes on to the next one what it received last",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.1",
    rooted: false,
    build: |parameters| Ok(Box::new(Ring { ranks: parameters.ranks, flits: parameters.size.whole(1) })),
};

#[derive(Debug)]
struct Ring {
    ranks: u32,
    flits: u32,
}

impl Collective for Ring {
    fn rounds(&self) -> u32 {
        self.ranks - 1
    }

    fn send(&self, rank: u32, _round: u32) -> Option<Transfer> {
        Some(Transfer { peer: ahead(rank, 1, self.ranks), flits: self.flits })
    }

    fn receive(&self, rank: u32, _round: u32) -> Option<u32> {
        Some(behind(rank, 1, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn volume(&self, ranks: u32) -> Option<(u64, u32)> {
        Some((u64::from(ranks) * u64::from(self.rounds()), self.flits))
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        vec![Block { origin: behind(rank, round, self.ranks), part: 0 }]
    }
}
