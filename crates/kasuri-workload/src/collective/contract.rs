//! The contract of collective operations: schedules, and the line of the table.

use super::parameters::{CollectiveError, Parameters};
use super::sizes::Sizes;
use std::fmt::Debug;

/// A schedule: who sends what to whom in which round.
pub trait Collective: Debug + Send + Sync {
    /// How many rounds there are.
    fn rounds(&self) -> u32;

    /// What a rank sends in a round.
    fn send(&self, rank: u32, round: u32) -> Option<Transfer>;

    /// From whom a rank receives in a round: from the rank that sends to it in the same round.
    fn receive(&self, rank: u32, round: u32) -> Option<u32>;

    /// May a rank begin a round only after what it received in the rounds before, because it passes that on?
    fn needs_receive(&self) -> bool;

    /// Do its rounds depend on the sizes of the messages? Then it is nothing new where all are equal.
    fn is_made_for_sizes(&self) -> bool {
        false
    }

    /// Of an all-to-all whose rounds depend on the sizes of the messages: the one for these sizes, of as many ranks.
    fn with_sizes(&self, _sizes: &Sizes) -> Option<Box<dyn Collective>> {
        None
    }

    /// The messages of all `ranks` in all rounds, and the flits of the longest, where a formula gives them. Otherwise each send is looked at:
    /// too many where there are as many rounds as ranks.
    fn volume(&self, _ranks: u32) -> Option<(u64, u32)> {
        None
    }

    /// Does each rank send each of its blocks in a message of its own straight to the destination?
    fn is_direct(&self) -> bool {
        false
    }

    /// Into how many parts a message is cut.
    fn parts(&self) -> u32 {
        1
    }

    /// The blocks of data that a rank's message of a round carries; empty where it sends nothing.
    fn blocks(&self, rank: u32, round: u32) -> Vec<Block>;
}

/// One message of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The rank that receives it.
    pub peer: u32,
    /// Its length in flits, at least 1.
    pub flits: u32,
}

/// A piece of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// The rank whose data it is. In an allreduce the sender: what travels is its sum so far.
    pub origin: u32,
    /// All-to-all: the rank for which it is meant. Otherwise which part of the message it is.
    pub part: u32,
}

/// A line of the table.
#[derive(Debug)]
pub struct Entry {
    /// The operation: the key `workload.collective`.
    pub collective: &'static str,
    /// The algorithm: the key `workload.schedule`.
    pub schedule: &'static str,
    /// One line for `kasuri list`.
    pub summary: &'static str,
    /// Where the definition stands.
    pub source: &'static str,
    /// Has the operation a root?
    pub rooted: bool,
    /// Makes the schedule.
    pub(super) build: fn(&Parameters) -> Result<Box<dyn Collective>, CollectiveError>,
}

impl Entry {
    /// Makes the schedule.
    ///
    /// # Errors
    /// Fewer than 2 ranks, a root that is no rank, messages of more than 2^32 flits, or what the algorithm itself cannot do.
    pub fn build(&self, parameters: &Parameters) -> Result<Box<dyn Collective>, CollectiveError> {
        parameters.check()?;
        (self.build)(parameters)
    }
}

/// The operation of which schedules are made for networks.
pub const ALL_TO_ALL: &str = "alltoall";

/// The rank that lies `steps` further on the ring of all ranks; `steps` is at most `ranks`.
#[inline(always)]
pub(super) fn ahead(rank: u32, steps: u32, ranks: u32) -> u32 {
    // Without a division, because this is done for every message. The sum may go beyond 2^32.
    let (sum, over) = rank.overflowing_add(steps);
    if over || sum >= ranks { sum.wrapping_sub(ranks) } else { sum }
}

/// The rank that lies `steps` before on the ring of all ranks; `steps` is at most `ranks`.
#[inline(always)]
pub(super) fn behind(rank: u32, steps: u32, ranks: u32) -> u32 {
    if rank >= steps { rank - steps } else { rank.wrapping_sub(steps).wrapping_add(ranks) }
}

/// Rounds after which a number that doubles in each of them has reached `ranks`: the logarithm to base 2, rounded up.
pub(super) fn doublings(ranks: u32) -> u32 {
    u32::BITS - (ranks - 1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_round() {
        assert_eq!([ahead(5, 3, 7), behind(1, 3, 7), ahead(2, 3, 7), behind(3, 3, 7)], [1, 5, 5, 0]);
        assert_eq!([2, 3, 4, 5, 17].map(doublings), [1, 2, 2, 3, 5]);
    }
}
