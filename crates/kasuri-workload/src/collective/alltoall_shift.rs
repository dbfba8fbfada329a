//! All-to-all by shifts: in round i everyone sends to the rank i further.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "alltoall",
    schedule: "shift",
    summary: "in round i = 1 to N-1 rank r sends to r + i mod N and receives from r - i mod N",
    source: "the long-message algorithm of MPICH: Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.4",
    rooted: false,
    build: |parameters| Ok(Box::new(Shift { ranks: parameters.ranks, flits: parameters.size.whole(1) })),
};

#[derive(Debug)]
struct Shift {
    ranks: u32,
    flits: u32,
}

impl Collective for Shift {
    fn rounds(&self) -> u32 {
        self.ranks - 1
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(Transfer { peer: ahead(rank, round + 1, self.ranks), flits: self.flits })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        Some(behind(rank, round + 1, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        false
    }

    fn is_direct(&self) -> bool {
        true
    }

    fn volume(&self, ranks: u32) -> Option<(u64, u32)> {
        Some((u64::from(ranks) * u64::from(self.rounds()), self.flits))
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        vec![Block { origin: rank, part: ahead(rank, round + 1, self.ranks) }]
    }
}
