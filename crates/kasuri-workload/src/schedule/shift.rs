//! Shifts: in phase i everyone sends to the rank i further.

use super::contract::{Entry, Schedule, first};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "shift",
    summary: "any network: phase i sends to rank + i; free of contention on two-level trees under d-mod-k",
    source: "Zahavi, Fat-Tree Routing and Node Ordering Providing Contention Free Traffic for MPI Global Collectives, J. Parallel \
             Distrib. Comput. 72 (2012)",
    fits: |_| true,
    choose: first,
    build: |_, _, terminals| Ok(Box::new(Shift { ranks: terminals.len() as u32 })),
};

#[derive(Debug)]
struct Shift {
    ranks: u32,
}

impl Schedule for Shift {
    fn phases(&self) -> u32 {
        self.ranks - 1
    }

    fn destination(&self, rank: u32, phase: u32) -> Option<u32> {
        Some((rank + phase + 1) % self.ranks)
    }

    fn source(&self, rank: u32, phase: u32) -> Option<u32> {
        Some((rank + self.ranks - phase - 1) % self.ranks)
    }
}
