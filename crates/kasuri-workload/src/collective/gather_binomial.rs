//! Gather along a binomial tree: everyone passes on its block with those that have come to it.

use super::{Block, Collective, Entry, MessageSize, Transfer, ahead, behind, doublings};
use std::ops::Range;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "gather",
    schedule: "binomial",
    summary: "the scatter's tree backwards: at twice the distance in each of log2 N rounds, rounded up",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.5",
    rooted: true,
    build: |parameters| Ok(Box::new(Binomial { ranks: parameters.ranks, root: parameters.root, size: parameters.size })),
};

#[derive(Debug)]
struct Binomial {
    ranks: u32,
    root: u32,
    size: MessageSize,
}

impl Binomial {
    /// The positions, counted from the root, whose blocks a rank sends.
    fn sent(&self, rank: u32, round: u32) -> Option<Range<u32>> {
        let (position, distance) = (u64::from(behind(rank, self.root, self.ranks)), 1_u64 << round);
        let sends = position % (2 * distance) == distance;
        sends.then(|| position as u32..(position + distance).min(u64::from(self.ranks)) as u32)
    }
}

impl Collective for Binomial {
    fn rounds(&self) -> u32 {
        doublings(self.ranks)
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        let sent = self.sent(rank, round)?;
        Some(Transfer { peer: behind(rank, 1 << round, self.ranks), flits: self.size.whole(sent.end - sent.start) })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        let (position, distance) = (u64::from(behind(rank, self.root, self.ranks)), 1_u64 << round);
        let receives = position.is_multiple_of(2 * distance) && position + distance < u64::from(self.ranks);
        receives.then(|| ahead(rank, distance as u32, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        let block = |position: u32| Block { origin: ahead(self.root, position, self.ranks), part: 0 };
        self.sent(rank, round).into_iter().flatten().map(block).collect()
    }
}
