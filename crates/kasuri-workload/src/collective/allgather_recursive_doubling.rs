//! Allgather by recursive doubling: pairs exchange all that they have.

use super::contract::{Block, Collective, Entry, Transfer};
use super::parameters::{CollectiveError, MessageSize};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "allgather",
    schedule: "recursive-doubling",
    summary: "in round k rank r exchanges its 2^k blocks with r xor 2^k; N a power of two",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.1",
    rooted: false,
    build: |parameters| {
        let ranks = parameters.ranks;
        if !ranks.is_power_of_two() {
            let problem = format!("is {ranks}; the schedule `recursive-doubling` needs a power of two, `ring` and `bruck` take any number");
            return Err(CollectiveError::parameter("ranks", problem));
        }
        Ok(Box::new(RecursiveDoubling { ranks, size: parameters.size }))
    },
};

#[derive(Debug)]
struct RecursiveDoubling {
    ranks: u32,
    size: MessageSize,
}

impl Collective for RecursiveDoubling {
    fn rounds(&self) -> u32 {
        self.ranks.ilog2()
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(Transfer { peer: rank ^ 1 << round, flits: self.size.whole(1 << round) })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        Some(rank ^ 1 << round)
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        let first = rank >> round << round;
        (first..first + (1 << round)).map(|origin| Block { origin, part: 0 }).collect()
    }
}
