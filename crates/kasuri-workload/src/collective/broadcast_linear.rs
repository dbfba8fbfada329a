//! Broadcast by the root alone, one destination after the other.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "broadcast",
    schedule: "linear",
    summary: "in round i = 1 to N-1 the root sends to the rank i further",
    source: "the flat tree of Open MPI: Pjesivac-Grbovic et al., Performance Analysis of MPI Collective Operations, Cluster Comput. 10 (2007)",
    rooted: true,
    build: |parameters| Ok(Box::new(Linear { ranks: parameters.ranks, root: parameters.root, flits: parameters.size.whole(1) })),
};

#[derive(Debug)]
struct Linear {
    ranks: u32,
    root: u32,
    flits: u32,
}

impl Collective for Linear {
    fn rounds(&self) -> u32 {
        self.ranks - 1
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        (rank == self.root).then(|| Transfer { peer: ahead(rank, round + 1, self.ranks), flits: self.flits })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        (behind(rank, self.root, self.ranks) == round + 1).then_some(self.root)
    }

    fn needs_receive(&self) -> bool {
        false
    }

    fn volume(&self, _ranks: u32) -> Option<(u64, u32)> {
        Some((u64::from(self.rounds()), self.flits))
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        self.send(rank, round).map(|_| Block { origin: self.root, part: 0 }).into_iter().collect()
    }
}
