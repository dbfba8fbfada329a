//! All-to-all by pairs: in round i everyone exchanges with the rank whose number differs by the bits of i.

use super::contract::{Block, Collective, Entry, Transfer};
use super::parameters::CollectiveError;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "alltoall",
    schedule: "pairwise",
    summary: "in round i = 1 to N-1 rank r exchanges with r xor i; N a power of two",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.4",
    rooted: false,
    build: |parameters| {
        let ranks = parameters.ranks;
        if !ranks.is_power_of_two() {
            let problem = format!("is {ranks}; the schedule `pairwise` needs a power of two, the schedule `shift` takes any number");
            return Err(CollectiveError::parameter("ranks", problem));
        }
        Ok(Box::new(Pairwise { ranks, flits: parameters.size.whole(1) }))
    },
};

#[derive(Debug)]
struct Pairwise {
    ranks: u32,
    flits: u32,
}

impl Collective for Pairwise {
    fn rounds(&self) -> u32 {
        self.ranks - 1
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(Transfer { peer: rank ^ (round + 1), flits: self.flits })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        Some(rank ^ (round + 1))
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
        vec![Block { origin: rank, part: rank ^ (round + 1) }]
    }
}
