//! Collective operations as schedules of rounds: in each round a rank sends at most one message and receives at most one.
//!
//! A [`Collective`] answers for any rank and round by a formula and keeps no list of messages: an all-to-all of 4096 ranks has
//! 16.8 million of them. It knows neither terminals nor time: [`Rounds`](crate::workload::rounds::Rounds) places it on a network and
//! runs it.
//!
//! To add one: a file here with the algorithm and its `ENTRY`, a `mod` line, and its line in [`COLLECTIVES`].

pub mod allgather_bruck;
pub mod allgather_recursive_doubling;
pub mod allgather_ring;
pub mod allreduce_rabenseifner;
pub mod allreduce_recursive_doubling;
pub mod allreduce_ring;
pub mod alltoall_bruck;
pub mod alltoall_pairwise;
pub mod alltoall_ring;
pub mod alltoall_shift;
mod alltoall_weighted;
pub mod alltoallv;
mod backwards;
pub mod barrier_dissemination;
pub mod barrier_tree;
pub mod broadcast_binomial;
pub mod broadcast_linear;
pub mod broadcast_scatter_allgather;
mod fold;
pub mod gather_binomial;
mod part_ring;
pub mod reduce_binomial;
pub mod reducescatter_halving;
pub mod reducescatter_ring;
pub mod scatter_binomial;

use std::fmt::Debug;
use thiserror::Error;

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
    fn with_sizes(&self, _sizes: &alltoallv::Sizes) -> Option<Box<dyn Collective>> {
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

/// What a schedule is made for.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// How many ranks take part, at least 2.
    pub ranks: u32,
    /// The rank from which a broadcast or scatter starts, at which a reduce or gather ends, and at which a tree has its root.
    pub root: u32,
    /// The size of a message: of the block for each destination in an all-to-all, of each rank's contribution elsewhere.
    pub size: MessageSize,
}

/// The size of a message, and how many flits hold some of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSize {
    /// Bytes or flits.
    amount: u64,
    /// How much of the same one flit holds.
    per_flit: u32,
}

impl MessageSize {
    /// A message of so many flits.
    pub fn of_flits(flits: u64) -> Self {
        Self { amount: flits, per_flit: 1 }
    }

    /// A message of so many bytes where a flit holds `flit_bytes`, at least 1.
    pub fn of_bytes(bytes: u64, flit_bytes: u32) -> Self {
        Self { amount: bytes, per_flit: flit_bytes.max(1) }
    }

    /// Flits that hold so many whole messages together, at least 1.
    pub fn whole(&self, count: u32) -> u32 {
        self.to_flits(self.amount * u64::from(count))
    }

    /// Flits that hold the parts `from..to` of a message that is cut into `parts` as equally as possible, at least 1.
    pub fn range(&self, from: u32, to: u32, parts: u32) -> u32 {
        self.to_flits(self.up_to(to, parts) - self.up_to(from, parts))
    }

    /// Flits that hold one part of a message that is cut into `parts`, at least 1.
    pub fn part(&self, part: u32, parts: u32) -> u32 {
        self.range(part, part + 1, parts)
    }

    /// Flits of all parts together, of which each one is cut apart from the others: parts need not follow each other.
    pub fn of_parts(&self, list: impl IntoIterator<Item = u32>, parts: u32) -> u32 {
        self.to_flits(list.into_iter().map(|part| self.up_to(part + 1, parts) - self.up_to(part, parts)).sum())
    }

    fn up_to(&self, part: u32, parts: u32) -> u64 {
        // `build` has seen to it that the product fits.
        self.amount * u64::from(part) / u64::from(parts)
    }

    /// `build` has seen to it that the number fits.
    fn to_flits(self, amount: u64) -> u32 {
        amount.div_ceil(u64::from(self.per_flit)).max(1) as u32
    }
}

/// What an operation asks of the terminals, whatever the schedule: a bound for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// Flits that some rank has to send at least.
    pub sent: u64,
    /// Flits that some rank has to receive at least.
    pub received: u64,
}

impl Least {
    /// The least volume of an operation; `None` of one without data, whose time is all latency.
    ///
    /// All-to-all and allgather: the blocks of the N - 1 others, in flits as full as they can be; so at the root of a gather or scatter.
    /// Broadcast and reduce: the message. Allreduce: 2 (N - 1) / N of the vector in each direction (Patarasuk and Yuan, J. Parallel Distrib.
    /// Comput. 69, 2009); reduce-scatter: half of that.
    pub fn of(operation: &str, parameters: &Parameters) -> Option<Self> {
        let Parameters { ranks, size, .. } = *parameters;
        let others = u64::from(size.whole(ranks - 1));
        let one = u64::from(size.whole(1));
        match operation {
            "alltoall" => Some(Self { sent: others, received: others }),
            "allgather" => Some(Self { sent: one, received: others }),
            "broadcast" | "reduce" => Some(Self { sent: one, received: one }),
            "gather" => Some(Self { sent: one, received: others }),
            "scatter" => Some(Self { sent: others, received: one }),
            "reducescatter" => {
                let all_but_one = u128::from(size.amount) * u128::from(ranks - 1) / u128::from(ranks);
                let flits = (all_but_one.div_ceil(u128::from(size.per_flit)) as u64).max(1);
                Some(Self { sent: flits, received: flits })
            }
            "allreduce" => {
                let both = u128::from(size.amount) * 2 * u128::from(ranks - 1) / u128::from(ranks);
                let flits = (both.div_ceil(u128::from(size.per_flit)) as u64).max(1);
                Some(Self { sent: flits, received: flits })
            }
            _ => None,
        }
    }
}

/// The key of a [`CollectiveError`] about the size of messages, which `[workload]` gives by one of several keys.
pub const MESSAGE: &str = "message";

/// Why a schedule cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CollectiveError {
    /// A parameter is outside its range.
    #[error("{key} {problem}")]
    Parameter {
        /// The key of `[workload]`.
        key: &'static str,
        /// What was found and what would be right, to be read after the key.
        problem: String,
    },
}

impl CollectiveError {
    /// A problem with one key.
    pub fn parameter(key: &'static str, problem: impl Into<String>) -> Self {
        Self::Parameter { key, problem: problem.into() }
    }
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
    build: fn(&Parameters) -> Result<Box<dyn Collective>, CollectiveError>,
}

/// All schedules; the first of an operation is its default.
pub static COLLECTIVES: &[Entry] = &[
    alltoall_shift::ENTRY,
    alltoall_pairwise::ENTRY,
    alltoall_ring::ENTRY,
    alltoall_bruck::ENTRY,
    alltoall_weighted::ENTRY,
    allreduce_recursive_doubling::ENTRY,
    allreduce_ring::ENTRY,
    allreduce_rabenseifner::ENTRY,
    allgather_ring::ENTRY,
    allgather_recursive_doubling::ENTRY,
    allgather_bruck::ENTRY,
    broadcast_binomial::ENTRY,
    broadcast_linear::ENTRY,
    broadcast_scatter_allgather::ENTRY,
    reducescatter_ring::ENTRY,
    reducescatter_halving::ENTRY,
    reduce_binomial::ENTRY,
    gather_binomial::ENTRY,
    scatter_binomial::ENTRY,
    barrier_dissemination::ENTRY,
    barrier_tree::ENTRY,
];

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

impl Parameters {
    /// Refuses what no schedule can do.
    ///
    /// # Errors
    /// Fewer than 2 ranks, a root that is no rank, messages of more than 2^32 flits.
    pub fn check(&self) -> Result<(), CollectiveError> {
        let Self { ranks, root, size } = *self;
        if ranks < 2 {
            return Err(CollectiveError::parameter("ranks", format!("is {ranks}; a collective needs at least 2")));
        }
        if root >= ranks {
            return Err(CollectiveError::parameter("root", format!("is {root}; with {ranks} ranks it must be 0 to {}", ranks - 1)));
        }
        let most = size.amount.checked_mul(u64::from(ranks)).map(|amount| amount.div_ceil(u64::from(size.per_flit)));
        if most.is_none_or(|flits| flits > u64::from(u32::MAX)) {
            let problem = format!("is too large: the messages of all {ranks} ranks together must have at most {} flits", u32::MAX);
            return Err(CollectiveError::parameter(MESSAGE, problem));
        }
        Ok(())
    }
}

/// A collective operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its name: the key `workload.collective`.
    pub name: &'static str,
    /// What each rank has at its end; one line for `kasuri list`.
    pub summary: &'static str,
}

/// All operations, in the order of [`COLLECTIVES`]; the [`alltoallv`] beside the all-to-all whose schedules it has.
pub static OPERATIONS: &[Operation] = &[
    Operation { name: "alltoall", summary: "every rank has a block of its own for every other rank" },
    Operation { name: alltoallv::NAME, summary: "an all-to-all with a size for each pair, by its schedules in which blocks go straight" },
    Operation { name: "allreduce", summary: "every rank gets the sum of the vectors of all ranks" },
    Operation { name: "allgather", summary: "every rank gets the blocks of all ranks" },
    Operation { name: "broadcast", summary: "every rank gets the message of the root" },
    Operation { name: "reducescatter", summary: "every rank gets its part of the sum of the vectors of all ranks" },
    Operation { name: "reduce", summary: "the root gets the sum of the vectors of all ranks" },
    Operation { name: "gather", summary: "the root gets the blocks of all ranks" },
    Operation { name: "scatter", summary: "every rank gets a block of its own from the root" },
    Operation { name: "barrier", summary: "no rank ends before all have begun" },
];

/// The names of the operations.
pub fn operations() -> Vec<&'static str> {
    OPERATIONS.iter().map(|operation| operation.name).collect()
}

/// The schedules of an operation, the default first; none if there is no such operation. An [`alltoallv`] has those of the all-to-all.
pub fn schedules(collective: &str) -> impl Iterator<Item = &'static Entry> {
    let collective = if collective == alltoallv::NAME { ALL_TO_ALL } else { collective };
    COLLECTIVES.iter().filter(move |entry| entry.collective == collective)
}

/// The operation of which schedules are made for networks.
pub const ALL_TO_ALL: &str = "alltoall";

/// The rank that lies `steps` further on the ring of all ranks; `steps` is at most `ranks`.
#[inline(always)]
fn ahead(rank: u32, steps: u32, ranks: u32) -> u32 {
    // Without a division, because this is done for every message. The sum may go beyond 2^32.
    let (sum, over) = rank.overflowing_add(steps);
    if over || sum >= ranks { sum.wrapping_sub(ranks) } else { sum }
}

/// The rank that lies `steps` before on the ring of all ranks; `steps` is at most `ranks`.
#[inline(always)]
fn behind(rank: u32, steps: u32, ranks: u32) -> u32 {
    if rank >= steps { rank - steps } else { rank.wrapping_sub(steps).wrapping_add(ranks) }
}

/// Rounds after which a number that doubles in each of them has reached `ranks`: the logarithm to base 2, rounded up.
fn doublings(ranks: u32) -> u32 {
    u32::BITS - (ranks - 1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_message_add_up_to_it() {
        for (amount, parts) in [(100, 7), (3, 8), (64, 64)] {
            let size = MessageSize::of_flits(amount);
            let held: u64 = (0..parts).map(|part| size.up_to(part + 1, parts) - size.up_to(part, parts)).sum();
            assert_eq!(held, amount);
            assert_eq!(u64::from(size.range(0, parts, parts)), amount);
            assert_eq!(size.of_parts(0..parts, parts), size.range(0, parts, parts));
        }
        assert_eq!(MessageSize::of_bytes(0, 8).whole(3), 1, "nothing at all is still one flit");
        assert_eq!(MessageSize::of_bytes(9, 8).whole(3), 4, "27 bytes");
    }

    #[test]
    fn positions_go_round() {
        assert_eq!([ahead(5, 3, 7), behind(1, 3, 7), ahead(2, 3, 7), behind(3, 3, 7)], [1, 5, 5, 0]);
        assert_eq!([2, 3, 4, 5, 17].map(doublings), [1, 2, 2, 3, 5]);
    }

    #[test]
    fn what_no_schedule_can_do_is_refused() {
        let of = |ranks, root, flits| COLLECTIVES[0].build(&Parameters { ranks, root, size: MessageSize::of_flits(flits) });
        assert!(of(2, 1, 1).is_ok());
        assert_eq!(of(1, 0, 1).unwrap_err().to_string(), "ranks is 1; a collective needs at least 2");
        assert_eq!(of(4, 4, 1).unwrap_err().to_string(), "root is 4; with 4 ranks it must be 0 to 3");
        assert!(of(4, 0, 1 << 30).is_err() && of(4, 0, u64::MAX).is_err() && of(4, 0, (1 << 30) - 1).is_ok());
    }

    #[test]
    fn schedules_of_an_operation_stand_together() {
        let mut names: Vec<&str> = COLLECTIVES.iter().map(|entry| entry.collective).collect();
        names.dedup();
        assert_eq!(names, operations().into_iter().filter(|&name| name != alltoallv::NAME).collect::<Vec<_>>());
        assert_eq!(schedules("alltoall").next().map(|entry| entry.schedule), Some("shift"));
    }
}
