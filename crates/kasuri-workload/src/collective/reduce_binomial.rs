//! Reduce along a binomial tree: a broadcast backwards, in which everyone adds what comes to its own.

use super::backwards::Backwards;
use super::broadcast_binomial;
use super::contract::{Block, Entry};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "reduce",
    schedule: "binomial",
    summary: "the broadcast's tree backwards: those who hold sums halve in each of log2 N rounds, rounded up",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.5",
    rooted: true,
    // What travels is the sender's sum so far.
    build: |parameters| Backwards::of(&broadcast_binomial::ENTRY, parameters, |rank, block| Block { origin: rank, part: block.part }),
};
