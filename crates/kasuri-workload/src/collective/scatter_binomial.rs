//! Scatter along a binomial tree: who holds blocks gives half of them on.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind, doublings};
use super::parameters::MessageSize;
use std::ops::Range;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "scatter",
    schedule: "binomial",
    summary: "halves of the blocks go on along a tree, at half the distance in each of log2 N rounds, rounded up",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.2",
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
    fn distance(&self, round: u32) -> u64 {
        1 << (self.rounds() - 1 - round)
    }

    /// The positions, counted from the root, whose blocks a rank sends.
    fn sent(&self, rank: u32, round: u32) -> Option<Range<u32>> {
        let (position, distance, ranks) = (u64::from(behind(rank, self.root, self.ranks)), self.distance(round), u64::from(self.ranks));
        let sends = position.is_multiple_of(2 * distance) && position + distance < ranks;
        sends.then(|| (position + distance) as u32..(position + 2 * distance).min(ranks) as u32)
    }
}

impl Collective for Binomial {
    fn rounds(&self) -> u32 {
        doublings(self.ranks)
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        let sent = self.sent(rank, round)?;
        Some(Transfer { peer: ahead(rank, self.distance(round) as u32, self.ranks), flits: self.size.whole(sent.end - sent.start) })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        let distance = self.distance(round);
        let receives = u64::from(behind(rank, self.root, self.ranks)) % (2 * distance) == distance;
        receives.then(|| behind(rank, distance as u32, self.ranks))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        let block = |position: u32| Block { origin: self.root, part: ahead(self.root, position, self.ranks) };
        self.sent(rank, round).into_iter().flatten().map(block).collect()
    }
}
