//! Events outside the calendar: pauses, resends, failures, and terminals that may send.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens rarely at a time, before all else that happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rare {
    /// An output hears that it is to pause, or no longer.
    Pause(u32, bool),
    /// A packet that was lost may be sent again.
    Resend(u32),
    /// The last flit of a message leaves its terminal.
    MessageLeft(u32),
    /// A terminal may have something to send.
    Look(u32),
    /// Links and routers fail or come up again: an epoch begins.
    Changes(u32),
    /// Routers know of it.
    Known(u32),
}

/// What is to happen rarely; of one time what was noted first.
#[derive(Debug, Default)]
pub(super) struct Rarely {
    due: BinaryHeap<Reverse<(u64, u64, Rare)>>,
    noted: u64,
}

impl Rarely {
    pub(super) fn note(&mut self, time: u64, what: Rare) {
        self.noted += 1;
        self.due.push(Reverse((time, self.noted, what)));
    }

    pub(super) fn next(&self) -> u64 {
        self.due.peek().map_or(u64::MAX, |next| next.0.0)
    }

    pub(super) fn take(&mut self, now: u64) -> Option<Rare> {
        (self.next() <= now).then(|| self.due.pop().map(|next| next.0.2)).flatten()
    }
}
