//! Allreduce round the ring of ranks: reduce-scatter, then allgather, one part of the vector at a time.

use super::contract::Entry;
use super::part_ring::PartRing;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "allreduce",
    schedule: "ring",
    summary: "reduce-scatter and allgather round the ring, each in N-1 rounds of one N-th of the vector",
    source: "Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009)",
    rooted: false,
    // A rank begins with its own part, whose whole sum the rank before it has after N - 1 rounds.
    build: |parameters| {
        let (ranks, size) = (parameters.ranks, parameters.size);
        Ok(Box::new(PartRing { ranks, size, rounds: 2 * (ranks - 1), lag: 0 }))
    },
};
