//! Algorithms for powers of two on any number of ranks: the surplus hands in its data before and is told the result after.

use std::ops::RangeInclusive;

/// The largest power of two of ranks, and who of the others leans on whom.
///
/// With N = P + S ranks and P a power of two, each even rank below 2 S hands its data to the odd one after it before the rounds
/// of the P ranks that remain, and gets the result from it after them (Thakur, Rabenseifner and Gropp 2005, section 4.5).
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold {
    /// The largest power of two that is not above the number of ranks.
    pub(super) power: u32,
    surplus: u32,
}

/// What happens in a round.
pub(super) enum Step {
    /// The surplus hands in its data.
    In,
    /// This round of the algorithm on the ranks that remain.
    Inner(u32),
    /// The surplus gets the result.
    Out,
}

/// The rank to which someone sends, and the one from which it receives.
pub(super) type Peers = (Option<u32>, Option<u32>);

impl Fold {
    pub(super) fn new(ranks: u32) -> Self {
        let power = 1 << ranks.ilog2();
        Self { power, surplus: ranks - power }
    }

    /// All rounds if the algorithm has `inner`.
    pub(super) fn rounds(&self, inner: u32) -> u32 {
        if self.surplus == 0 { inner } else { inner + 2 }
    }

    /// What happens in a round if the algorithm has `inner`.
    pub(super) fn step(&self, round: u32, inner: u32) -> Step {
        match (self.surplus, round) {
            (0, round) => Step::Inner(round),
            (_, 0) => Step::In,
            (_, round) if round <= inner => Step::Inner(round - 1),
            _ => Step::Out,
        }
    }

    /// The number of a rank among those that remain.
    pub(super) fn number(&self, rank: u32) -> Option<u32> {
        match rank {
            rank if rank >= 2 * self.surplus => Some(rank - self.surplus),
            rank if rank % 2 == 1 => Some(rank / 2),
            _ => None,
        }
    }

    /// The rank that has a number among those that remain.
    pub(super) fn rank(&self, number: u32) -> u32 {
        if number < self.surplus { 2 * number + 1 } else { number + self.surplus }
    }

    /// The peers of a rank before and after the algorithm's own rounds.
    pub(super) fn outer(&self, rank: u32, step: &Step) -> Peers {
        let leans: RangeInclusive<u32> = 1..=2 * self.surplus;
        match (leans.contains(&(rank + 1)), rank % 2, step) {
            (true, 0, Step::In) => (Some(rank + 1), None),
            (true, 1, Step::In) => (None, Some(rank - 1)),
            (true, 0, Step::Out) => (None, Some(rank + 1)),
            (true, 1, Step::Out) => (Some(rank - 1), None),
            _ => (None, None),
        }
    }
}
