//! Allreduce for long vectors: reduce-scatter by recursive halving, then allgather by recursive doubling.

use super::contract::{Block, Collective, Entry, Transfer};
use super::fold::{Fold, Peers, Step};
use super::parameters::MessageSize;
use std::ops::Range;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "allreduce",
    schedule: "rabenseifner",
    summary: "reduce-scatter by recursive halving, then allgather by recursive doubling; a surplus over a power of two is folded in and out",
    source: "Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004, LNCS 3036; Thakur, Rabenseifner and Gropp (2005)",
    rooted: false,
    build: |parameters| Ok(Box::new(Rabenseifner { fold: Fold::new(parameters.ranks), size: parameters.size })),
};

#[derive(Debug)]
struct Rabenseifner {
    fold: Fold,
    size: MessageSize,
}

/// Whom a rank meets in a round of its own, and the parts that it sends.
struct Exchange {
    peer: u32,
    parts: Range<u32>,
}

impl Rabenseifner {
    /// Rounds of halving, and as many of doubling.
    fn halvings(&self) -> u32 {
        self.fold.power.ilog2()
    }

    fn step(&self, round: u32) -> Step {
        self.fold.step(round, 2 * self.halvings())
    }

    fn exchange(&self, rank: u32, inner: u32) -> Option<Exchange> {
        let number = self.fold.number(rank)?;
        let (distance, holder) = if inner < self.halvings() {
            let distance = self.fold.power >> (inner + 1);
            // While the vector is halved a rank sends what its peer will hold.
            (distance, number ^ distance)
        } else {
            (1 << (inner - self.halvings()), number)
        };
        let first = holder & !(distance - 1);
        Some(Exchange { peer: self.fold.rank(number ^ distance), parts: first..first + distance })
    }

    fn peers(&self, rank: u32, round: u32) -> Peers {
        match self.step(round) {
            Step::Inner(inner) => {
                let peer = self.exchange(rank, inner).map(|exchange| exchange.peer);
                (peer, peer)
            }
            step => self.fold.outer(rank, &step),
        }
    }

    /// The parts that a rank sends in a round in which it sends.
    fn sent(&self, rank: u32, round: u32) -> Range<u32> {
        let exchange = match self.step(round) {
            Step::Inner(inner) => self.exchange(rank, inner),
            _ => None,
        };
        exchange.map_or(0..self.fold.power, |exchange| exchange.parts)
    }
}

impl Collective for Rabenseifner {
    fn rounds(&self) -> u32 {
        self.fold.rounds(2 * self.halvings())
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        let peer = self.peers(rank, round).0?;
        let parts = self.sent(rank, round);
        Some(Transfer { peer, flits: self.size.range(parts.start, parts.end, self.fold.power) })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        self.peers(rank, round).1
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn parts(&self) -> u32 {
        self.fold.power
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        if self.peers(rank, round).0.is_none() {
            return Vec::new();
        }
        self.sent(rank, round).map(|part| Block { origin: rank, part }).collect()
    }
}
