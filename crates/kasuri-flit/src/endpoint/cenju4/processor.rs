//! The processor of a task: it runs the task's program.

use crate::crosspoint::Time;
use kasuri_workload::endpoint::cenju4::script::{Op, Program};

/// Where a program is.
#[derive(Clone, Debug)]
pub(super) struct Processor {
    pub(super) cid: u8,
    pub(super) next: usize,
    /// It polls.
    pub(super) waiting: bool,
    /// A header is being written.
    pub(super) posting: Option<([u64; 4], u64)>,
    /// What interrupts have taken of the operation that it is at.
    pub(super) stolen: Time,
    /// Until when it serves interrupts that have come while it polled.
    pub(super) serves_until: Time,
    pub(super) ended: Option<Time>,
    /// When each `Stamp` was reached.
    pub(super) stamps: Vec<Time>,
}

impl Processor {
    pub(super) fn new(program: &Program) -> Self {
        Self { cid: program.cid, next: 0, waiting: false, posting: None, stolen: 0, serves_until: 0, ended: None, stamps: Vec::new() }
    }

    pub(super) fn cid(&self) -> u8 {
        self.cid
    }

    /// The operation of its program that it is at; nothing after the last one.
    pub(super) fn at<'a>(&self, program: &'a Program) -> Option<&'a Op> {
        program.ops.get(self.next)
    }

    /// Interrupts take so much time. A program that polls loses only what it would have used.
    pub(super) fn steal(&mut self, now: Time, lasts: Time) {
        if self.waiting {
            self.serves_until = self.serves_until.max(now) + lasts;
        } else {
            self.stolen += lasts;
        }
    }

    /// What interrupts have taken since the last time.
    pub(super) fn take_stolen(&mut self) -> Time {
        std::mem::take(&mut self.stolen)
    }

    /// When its program ended.
    pub(super) fn ended(&self) -> Option<Time> {
        self.ended
    }
}
