//! Collective operations as schedules of rounds: in each round a rank sends at most one message and receives at most one.
//!
//! A [`Collective`] answers for any rank and round by a formula and keeps no list of messages: an all-to-all of 4096 ranks has
//! 16.8 million of them. It knows neither terminals nor time: a closed workload (`workload/rounds.rs`) places it on a network and
//! runs it.
//!
//! Members import the contract (`contract.rs`), never this file.
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
mod contract;
mod fold;
pub mod gather_binomial;
mod parameters;
mod part_ring;
pub mod reduce_binomial;
pub mod reducescatter_halving;
pub mod reducescatter_ring;
pub mod scatter_binomial;
mod sizes;

pub use contract::{ALL_TO_ALL, Block, Collective, Entry, Transfer};
pub use parameters::{CollectiveError, Least, MESSAGE, MessageSize, Parameters};

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

#[cfg(test)]
mod tests {
    use super::*;

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
