//! Broadcast for long messages: scatter along a binomial tree, then allgather round the ring.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind, doublings};
use super::parameters::MessageSize;
use std::ops::Range;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "broadcast",
    schedule: "scatter-allgather",
    summary: "scatter of N parts along a binomial tree, then allgather round the ring in N-1 rounds",
    source: "van de Geijn's algorithm: Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.2",
    rooted: true,
    build: |parameters| Ok(Box::new(ScatterAllgather { ranks: parameters.ranks, root: parameters.root, size: parameters.size })),
};

#[derive(Debug)]
struct ScatterAllgather {
    ranks: u32,
    root: u32,
    size: MessageSize,
}

impl ScatterAllgather {
    fn position(&self, rank: u32) -> u32 {
        behind(rank, self.root, self.ranks)
    }

    /// How far messages go in a round of the scatter, half as far in each; `None` in the allgather.
    fn distance(&self, round: u32) -> Option<u64> {
        (doublings(self.ranks) - 1).checked_sub(round).map(|bit| 1 << bit)
    }

    /// The parts that a rank sends.
    fn sent(&self, rank: u32, round: u32) -> Option<Range<u32>> {
        let position = u64::from(self.position(rank));
        let ranks = u64::from(self.ranks);
        match self.distance(round) {
            Some(distance) => {
                let sends = position % (2 * distance) == 0 && position + distance < ranks;
                sends.then(|| (position + distance) as u32..(position + 2 * distance).min(ranks) as u32)
            }
            None => {
                let part = behind(self.position(rank), round - doublings(self.ranks), self.ranks);
                Some(part..part + 1)
            }
        }
    }
}

impl Collective for ScatterAllgather {
    fn rounds(&self) -> u32 {
        doublings(self.ranks) + self.ranks - 1
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        let parts = self.sent(rank, round)?;
        let peer = ahead(rank, self.distance(round).unwrap_or(1) as u32, self.ranks);
        Some(Transfer { peer, flits: self.size.range(parts.start, parts.end, self.ranks) })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        match self.distance(round) {
            Some(distance) => {
                let receives = u64::from(self.position(rank)) % (2 * distance) == distance;
                receives.then(|| behind(rank, distance as u32, self.ranks))
            }
            None => Some(behind(rank, 1, self.ranks)),
        }
    }

    fn needs_receive(&self) -> bool {
        true
    }

    /// All but the root get their parts in the scatter; then all send in every round.
    fn volume(&self, ranks: u32) -> Option<(u64, u32)> {
        let scatter = (0..doublings(ranks)).flat_map(|round| (0..ranks).filter_map(move |rank| self.send(rank, round)));
        let parts = (0..ranks).map(|part| self.size.part(part, ranks));
        let longest = scatter.map(|transfer| transfer.flits).chain(parts).max();
        longest.map(|flits| ((u64::from(ranks) + 1) * u64::from(ranks - 1), flits))
    }

    fn parts(&self) -> u32 {
        self.ranks
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        self.sent(rank, round).into_iter().flatten().map(|part| Block { origin: self.root, part }).collect()
    }
}
