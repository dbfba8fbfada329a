//! The schedules that `libkasuri_alltoall.so` reads: writer. The layout is in `docs/reference/file-formats.md`; the reader is
//! `mpi/schedule.c`.

use kasuri_workload::collective::{Collective, Parameters};
use kasuri_workload::schedule::Schedule;
use kasuri_workload::schedule::arranged::{Effect, follow};
use kasuri_workload::units::Units;
use thiserror::Error;

/// How a file begins: a name, and line ends that a transfer as text would change.
pub const MAGIC: [u8; 8] = *b"KASURI\r\n";
/// The layout of all-to-alls that this version writes.
pub const VERSION: u32 = 2;
/// The layout of other collectives.
pub const ROUNDS_VERSION: u32 = 3;
/// The other collectives that the library runs; the place of each plus one is its number in files.
pub const OPERATIONS: [&str; 3] = ["allgather", "reducescatter", "allreduce"];
/// Ranks at most: the table of so many takes half a gigabyte.
pub const MAX_RANKS: u32 = 16_384;
/// Where a rank sends nothing.
const NOBODY: u16 = u16::MAX;
/// In the number of parts of a run: the receiver adds them to what it has.
const ADDED: u16 = 0x8000;

/// Why a schedule cannot be written for MPI.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MpiError {
    /// Too many ranks.
    #[error("--export mpi: {0} ranks; the table of a file has at most {MAX_RANKS}")]
    Ranks(u32),
    /// Not as many hosts as ranks.
    #[error("--export mpi: {hosts} hosts for {ranks} ranks")]
    Hosts {
        /// How many hosts there are.
        hosts: usize,
        /// How many ranks.
        ranks: u32,
    },
    /// A collective that the library does not take over.
    #[error("--export mpi: the library that reads it runs alltoall, allgather, reducescatter and allreduce, no {0}")]
    Operation(String),
    /// An algorithm that does not do what the collective promises, or cannot be written.
    #[error("--export mpi: {0}")]
    Algorithm(String),
}

/// Nanoseconds by which a phase begins later than the one before because its message has to be started: about the latency of a short message
/// on networks of today (1 to 2 us in the MPI benchmarks that makers publish), of which a part is hidden.
const START_UP_NS: f64 = 1000.0;
/// Bits in a nanosecond that a channel carries if nothing says how fast it is: that of 100 Gbit/s.
const USUAL_RATE: f64 = 100.0;

/// Bytes of the message that is on a channel for as long as a phase takes to start: with shorter ones the phases cost more than the
/// contention that they avoid. From there on the library finds out by trial what is faster.
#[must_use]
pub fn min_bytes(units: Units) -> u32 {
    let rate = match (units.flit_bytes, units.cycle_ns) {
        (Some(bytes), Some(ns)) => f64::from(bytes) * 8.0 / ns,
        _ => USUAL_RATE,
    };
    (START_UP_NS * rate / 8.0).ceil().min(f64::from(i32::MAX)) as u32
}

/// Refuses what the head of a file cannot hold. Gives the placement.
fn placement_of(hosts: &[&str], ranks: u32) -> Result<String, MpiError> {
    if ranks > MAX_RANKS {
        return Err(MpiError::Ranks(ranks));
    }
    if !hosts.is_empty() && hosts.len() != ranks as usize {
        return Err(MpiError::Hosts { hosts: hosts.len(), ranks });
    }
    Ok(hosts.iter().map(|host| format!("{host}\n")).collect())
}

/// Ends a file with its checksum.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// Writes an all-to-all of `ranks` ranks for messages of at least `min_bytes` bytes, at most 2^31 - 1. `hosts` names the host of each rank,
/// or is empty: then ranks are known by their numbers.
///
/// # Errors
/// Too many ranks, or not as many hosts as ranks.
pub fn write(schedule: &dyn Schedule, ranks: u32, hosts: &[&str], min_bytes: u32) -> Result<Vec<u8>, MpiError> {
    let placement = placement_of(hosts, ranks)?;
    let mut bytes = MAGIC.to_vec();
    for number in [VERSION, ranks, schedule.phases(), placement.len() as u32, min_bytes] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(placement.as_bytes());
    for phase in 0..schedule.phases() {
        for rank in 0..ranks {
            let peer = schedule.destination(rank, phase).map_or(NOBODY, |peer| peer as u16);
            bytes.extend(peer.to_le_bytes());
        }
    }
    Ok(signed(bytes))
}

/// Writes another collective, one of [`OPERATIONS`], as [`write`] does an all-to-all.
///
/// # Errors
/// As [`write`]; another operation; an algorithm that does not do what the operation promises, or whose receiver overwrites what it sends
/// in the same round; a table beyond 2^32 words.
pub fn write_rounds(
    operation: &str,
    collective: &dyn Collective,
    parameters: &Parameters,
    hosts: &[&str],
    min_bytes: u32,
) -> Result<Vec<u8>, MpiError> {
    let number = OPERATIONS.iter().position(|&name| name == operation).ok_or_else(|| MpiError::Operation(operation.to_owned()))?;
    let (ranks, rounds) = (parameters.ranks, collective.rounds());
    let placement = placement_of(hosts, ranks)?;
    let parts = if operation == "allreduce" { collective.parts() } else { ranks };
    if parts > ranks {
        return Err(MpiError::Algorithm(format!("{parts} parts of {ranks} ranks; there may be as many as ranks")));
    }
    let table = table(operation, collective, parameters)?;
    let words =
        u32::try_from(table.len()).map_err(|_| MpiError::Algorithm(format!("a table of {} words; 2^32 is too many", table.len())))?;
    let mut bytes = MAGIC.to_vec();
    for number in [ROUNDS_VERSION, ranks, rounds, placement.len() as u32, min_bytes, number as u32 + 1, parts, words] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(placement.as_bytes());
    bytes.extend(table.into_iter().flat_map(u16::to_le_bytes));
    Ok(signed(bytes))
}

/// By round and rank: to whom, how many runs of parts, and of each run its first part and how many.
fn table(operation: &str, collective: &dyn Collective, parameters: &Parameters) -> Result<Vec<u16>, MpiError> {
    let ranks = parameters.ranks;
    let part = |block: kasuri_workload::collective::Block| if operation == "allgather" { block.origin } else { block.part };
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); ranks as usize * collective.rounds() as usize];
    follow(operation, collective, parameters, &mut |round, sender, effects| {
        let parts = collective.blocks(sender, round).into_iter().map(part);
        runs[round as usize * ranks as usize + sender as usize] = runs_of(parts.zip(effects.iter().copied()));
    })
    .map_err(MpiError::Algorithm)?;
    let mut words = Vec::new();
    for round in 0..collective.rounds() {
        let of_round = &runs[round as usize * ranks as usize..][..ranks as usize];
        for (rank, sent) in (0..ranks).zip(of_round) {
            let Some(peer) = collective.send(rank, round).map(|transfer| transfer.peer).filter(|_| !sent.is_empty()) else {
                words.push(NOBODY);
                continue;
            };
            let leaving = &of_round[peer as usize];
            if let Some(run) = sent.iter().find(|run| run.effect == Effect::Replaced && leaving.iter().any(|other| other.meets(run))) {
                let problem = format!("in round {round} rank {peer} gets part {} in the place of what it sends", run.first);
                return Err(MpiError::Algorithm(problem));
            }
            words.extend([peer as u16, sent.len() as u16]);
            for run in sent {
                words.extend([run.first as u16, run.count as u16 | if run.effect == Effect::Added { ADDED } else { 0 }]);
            }
        }
    }
    Ok(words)
}

/// Parts that follow each other and meet the same fate at the receiver.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    count: u32,
    effect: Effect,
}

impl Run {
    fn meets(&self, other: &Self) -> bool {
        self.first < other.first + other.count && other.first < self.first + self.count
    }
}

fn runs_of(parts: impl Iterator<Item = (u32, Effect)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (part, effect) in parts {
        match runs.last_mut().filter(|run| run.first + run.count == part && run.effect == effect) {
            Some(run) => run.count += 1,
            None => runs.push(Run { first: part, count: 1, effect }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_workload::collective::{MessageSize, schedules};

    /// Three ranks in a ring, once round each way; rank 2 has nothing to send in the second phase.
    #[derive(Debug)]
    struct Ring;

    impl Schedule for Ring {
        fn phases(&self) -> u32 {
            2
        }

        fn destination(&self, rank: u32, phase: u32) -> Option<u32> {
            ((rank, phase) != (2, 1)).then(|| (rank + 1 + phase) % 3)
        }

        fn source(&self, rank: u32, phase: u32) -> Option<u32> {
            (0..3).find(|&source| self.destination(source, phase) == Some(rank))
        }
    }

    #[test]
    fn a_file_is_head_placement_table_and_checksum() {
        let bytes = write(&Ring, 3, &["a", "a", "node7"], 300).unwrap();
        let (head, rest) = bytes.split_at(28);
        assert_eq!(head, [&MAGIC[..], &[2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 10, 0, 0, 0, 44, 1, 0, 0]].concat());
        let (placement, rest) = rest.split_at(10);
        assert_eq!(placement, b"a\na\nnode7\n");
        let (table, checksum) = rest.split_at(12);
        assert_eq!(table, [1, 0, 2, 0, 0, 0, 2, 0, 0, 0, 255, 255]);
        assert_eq!(checksum, crc32fast::hash(&bytes[..50]).to_le_bytes());
        assert_eq!(write(&Ring, 3, &[], 0).unwrap().len(), 28 + 12 + 4);
    }

    /// Two ranks exchange their halves and add, then exchange the sums: of an all-reduce by its definition, word by word.
    #[test]
    fn another_collective_is_a_longer_head_and_runs_of_parts() {
        let parameters = Parameters { ranks: 2, root: 0, size: MessageSize::of_flits(2) };
        let entry = schedules("allreduce").find(|entry| entry.schedule == "rabenseifner").unwrap();
        let collective = entry.build(&parameters).unwrap();
        let bytes = write_rounds("allreduce", &*collective, &parameters, &["a", "b"], 7).unwrap();
        let words: Vec<u32> = bytes[8..40].chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect();
        assert_eq!(words, [3, 2, 2, 4, 7, 3, 2, 16]);
        assert_eq!(&bytes[40..44], b"a\nb\n");
        let table: Vec<u16> = bytes[44..76].chunks(2).map(|two| u16::from_le_bytes(two.try_into().unwrap())).collect();
        let (added, replaced) = (ADDED | 1, 1);
        // Rank 0 keeps the first part, so it sends the second one first.
        assert_eq!(table, [1, 1, 1, added, 0, 1, 0, added, 1, 1, 0, replaced, 0, 1, 1, replaced]);
        assert_eq!(bytes[76..], crc32fast::hash(&bytes[..76]).to_le_bytes());
    }

    #[test]
    fn what_the_library_does_not_run_is_refused() {
        let parameters = Parameters { ranks: 4, root: 0, size: MessageSize::of_flits(1) };
        let collective = schedules("broadcast").next().unwrap().build(&parameters).unwrap();
        let refused = |operation| write_rounds(operation, &*collective, &parameters, &[], 0).unwrap_err().to_string();
        assert_eq!(
            refused("broadcast"),
            "--export mpi: the library that reads it runs alltoall, allgather, reducescatter and allreduce, no broadcast"
        );
        assert!(refused("allreduce").starts_with("--export mpi: rank "), "a broadcast is no all-reduce");
    }

    /// A microsecond of 200 Gbit/s is 25,000 bytes; of a channel of unknown speed, half as many.
    #[test]
    fn messages_are_long_from_a_microsecond_on() {
        assert_eq!(min_bytes(Units { flit_bytes: Some(64), cycle_ns: Some(2.56) }), 25_000);
        assert_eq!(min_bytes(Units { flit_bytes: Some(64), cycle_ns: None }), 12_500);
    }

    /// The check value of CRC-32/ISO-HDLC.
    #[test]
    fn the_checksum_is_that_of_zip() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn what_the_layout_cannot_hold_is_refused() {
        assert_eq!(write(&Ring, MAX_RANKS + 1, &[], 0), Err(MpiError::Ranks(MAX_RANKS + 1)));
        assert_eq!(write(&Ring, 3, &["a"], 0), Err(MpiError::Hosts { hosts: 1, ranks: 3 }));
    }
}
