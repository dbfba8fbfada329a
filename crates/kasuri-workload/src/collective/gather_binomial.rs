//! Gather along a binomial tree: everyone passes on its block with those that have come to it.

use super::backwards::Backwards;
use super::contract::{Block, Entry};
use super::scatter_binomial;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "gather",
    schedule: "binomial",
    summary: "the scatter's tree backwards: at twice the distance in each of log2 N rounds, rounded up",
    source: "Thakur, Rabenseifner and Gropp, Int. J. High Perf. Comput. Appl. 19 (2005), section 4.5",
    rooted: true,
    // What the root would scatter to a rank is what it gets from that.
    build: |parameters| Backwards::of(&scatter_binomial::ENTRY, parameters, |_, block| Block { origin: block.part, part: 0 }),
};
