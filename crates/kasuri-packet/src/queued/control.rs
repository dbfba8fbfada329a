//! Events outside the calendar: pauses, resends, failures, and terminals that may send.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event outside the calendar; it precedes the calendar's events of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ControlEvent {
    /// An output is to pause, or to resume.
    Pause(u32, bool),
    /// A packet that was lost may be sent again.
    Resend(u32),
    /// The last flit of a message leaves its terminal.
    MessageLeft(u32),
    /// A terminal may have something to send.
    Look(u32),
    /// Links and routers fail or come up again: an epoch begins.
    Changes(u32),
    /// Routers learn of the failures of an epoch.
    Known(u32),
}

/// Control events by time; those of one time in the order of their notes.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    due: BinaryHeap<Reverse<(u64, u64, ControlEvent)>>,
    noted: u64,
}

impl ControlQueue {
    pub(super) fn note(&mut self, time: u64, what: ControlEvent) {
        self.noted += 1;
        self.due.push(Reverse((time, self.noted, what)));
    }

    pub(super) fn next(&self) -> u64 {
        self.due.peek().map_or(u64::MAX, |next| next.0.0)
    }

    pub(super) fn take(&mut self, now: u64) -> Option<ControlEvent> {
        (self.next() <= now).then(|| self.due.pop().map(|next| next.0.2)).flatten()
    }
}
