//! Reduce-scatter round the ring of ranks: each part of the vector goes once round and is added to on its way.

use super::contract::Entry;
use super::part_ring::PartRing;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "reducescatter",
    schedule: "ring",
    summary: "in each of N-1 rounds every rank passes on to the next one a part of the vector, with its own added",
    source: "Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009): the first half of their allreduce",
    rooted: false,
    // A rank begins with the part of the rank before, so that its own comes to it in the last round.
    build: |parameters| {
        let (ranks, size) = (parameters.ranks, parameters.size);
        Ok(Box::new(PartRing { ranks, size, rounds: ranks - 1, lag: 1 }))
    },
};
