//! Reduce-scatter by recursive halving: in each round a rank gives away the half of what it holds that is the other's.

use super::contract::{Block, Collective, Entry, Transfer};
use super::parameters::{CollectiveError, MessageSize};
use std::ops::Range;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "reducescatter",
    schedule: "recursive-halving",
    summary: "exchanges of halves at distances N/2, N/4, ... 1; N a power of two",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.3",
    rooted: false,
    build: |parameters| {
        if !parameters.ranks.is_power_of_two() {
            let problem = format!("is {}; recursive halving needs a power of two", parameters.ranks);
            return Err(CollectiveError::parameter("ranks", problem));
        }
        Ok(Box::new(Halving { ranks: parameters.ranks, size: parameters.size }))
    },
};

#[derive(Debug)]
struct Halving {
    ranks: u32,
    size: MessageSize,
}

impl Halving {
    fn peer(&self, rank: u32, round: u32) -> u32 {
        rank ^ self.distance(round)
    }

    fn distance(&self, round: u32) -> u32 {
        self.ranks >> (round + 1)
    }

    /// The parts that a rank gives away: those of the peer's side.
    fn sent(&self, rank: u32, round: u32) -> Range<u32> {
        let distance = self.distance(round);
        let from = self.peer(rank, round) & !(distance - 1);
        from..from + distance
    }
}

impl Collective for Halving {
    fn rounds(&self) -> u32 {
        self.ranks.ilog2()
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        let parts = self.sent(rank, round);
        Some(Transfer { peer: self.peer(rank, round), flits: self.size.range(parts.start, parts.end, self.ranks) })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        Some(self.peer(rank, round))
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn parts(&self) -> u32 {
        self.ranks
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        self.sent(rank, round).map(|part| Block { origin: rank, part }).collect()
    }
}
