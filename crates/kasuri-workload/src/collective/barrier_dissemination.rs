//! Barrier by dissemination: everyone tells ever farther ranks whom it has heard of.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind, doublings};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "barrier",
    schedule: "dissemination",
    summary: "in round k rank r sends one flit to r + 2^k mod N; log2 N rounds, rounded up",
    source: "Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization, Int. J. Parallel Program. 17 (1988)",
    rooted: false,
    build: |parameters| Ok(Box::new(Dissemination { ranks: parameters.ranks })),
};

#[derive(Debug)]
struct Dissemination {
    ranks: u32,
}

impl Collective for Dissemination {
    fn rounds(&self) -> u32 {
        doublings(self.ranks)
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(Transfer { peer: ahead(rank, 1 << round, self.ranks), flits: 1 })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        Some(behind(rank, 1 << round, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn volume(&self, ranks: u32) -> Option<(u64, u32)> {
        Some((u64::from(ranks) * u64::from(self.rounds()), 1))
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        (0..1 << round).map(|before| Block { origin: behind(rank, before, self.ranks), part: 0 }).collect()
    }
}
