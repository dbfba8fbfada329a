//! The schedule that `libkasuri_alltoall.so` reads: writer. The layout stands in `docs/reference/file-formats.md`; the reader is
//! `mpi/schedule.c`.

use kasuri_workload::schedule::Schedule;
use kasuri_workload::units::Units;
use thiserror::Error;

/// How a file begins: a name, and line ends that a transfer as text would change.
pub const MAGIC: [u8; 8] = *b"KASURI\r\n";
/// The layout that this version writes.
pub const VERSION: u32 = 2;
/// Ranks at most: the table of so many takes half a gigabyte.
pub const MAX_RANKS: u32 = 16_384;
/// Where a rank sends nothing.
const NOBODY: u16 = u16::MAX;

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

/// Writes a schedule of `ranks` ranks for messages of at least `min_bytes` bytes, at most 2^31 - 1. `hosts` names the host of each rank, or is
/// empty: then ranks are known by their numbers.
///
/// # Errors
/// Too many ranks, or not as many hosts as ranks.
pub fn write(schedule: &dyn Schedule, ranks: u32, hosts: &[&str], min_bytes: u32) -> Result<Vec<u8>, MpiError> {
    if ranks > MAX_RANKS {
        return Err(MpiError::Ranks(ranks));
    }
    if !hosts.is_empty() && hosts.len() != ranks as usize {
        return Err(MpiError::Hosts { hosts: hosts.len(), ranks });
    }
    let placement: String = hosts.iter().map(|host| format!("{host}\n")).collect();
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
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

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
