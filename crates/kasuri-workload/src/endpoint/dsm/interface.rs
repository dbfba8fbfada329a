//! A network interface in time.

use std::collections::VecDeque;

/// What an interface works on: requests by name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Job {
    /// It sends a request of its node.
    Issue(u32),
    /// It serves a request of another node.
    Serve(u32, Stage),
    /// It hands an answer to its processor.
    Accept(u32),
}

/// How far a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The interface has taken it in.
    Received,
    /// Its address has been looked up, and this read of the table in memory follows.
    LookedUp { walk_cycles: u32 },
    /// Its address is known.
    Translated,
    /// The memory has been accessed.
    Accessed,
}

/// An interface.
#[derive(Debug, Default)]
pub(super) struct Interface {
    /// What it works on.
    pub(super) job: Option<Job>,
    /// Packets before it: the request, whether they answer it, and the engine's name.
    pub(super) waiting: VecDeque<(u32, bool, u32)>,
    /// Cycles for which it has worked.
    pub(super) busy: u64,
    /// Packets for this node in its router, since when there is one, and the cycles for which there has been one before.
    held: u32,
    held_since: u64,
    held_cycles: u64,
}

impl Interface {
    /// The router has one packet more for its own node.
    pub(super) fn come(&mut self, now: u64) {
        if self.held == 0 {
            self.held_since = now;
        }
        self.held += 1;
    }

    /// The router has one packet less for its own node.
    pub(super) fn take(&mut self, now: u64) {
        self.held -= 1;
        if self.held == 0 {
            self.held_cycles += now - self.held_since;
        }
    }

    /// Cycles for which there has been a packet, until now.
    pub(super) fn awaited(&self, now: u64) -> u64 {
        self.held_cycles + if self.held > 0 { now.saturating_sub(self.held_since) } else { 0 }
    }
}
