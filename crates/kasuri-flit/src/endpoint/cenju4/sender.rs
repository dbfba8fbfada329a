//! The Sender: the module that reads headers into the header registers, and the module that makes packets of them.

use super::event::Load;
use crate::crosspoint::{Target as Destination, Time};
use kasuri_workload::endpoint::cenju4::node::{Parcel, Reply};
use kasuri_workload::endpoint::cenju4::script::Program;
use kasuri_workload::endpoint::cenju4::task::OPERATING_SYSTEM;
use kasuri_workload::endpoint::cenju4::{Cenju4, RegisterChoice};
use std::collections::VecDeque;

/// Double words of a header.
pub(super) const HEADER_WORDS: u64 = 4;

/// A header that waits in a queue: what it is, and the number of its parcel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued<H> {
    pub(super) header: H,
    pub(super) parcel: u64,
}

/// Where a header comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Header {
    /// A task of the node.
    User { task: usize, cid: u8, words: [u64; 4] },
    /// An answer, written by the node's Receiver.
    Answer(Reply),
}

/// A header register in use.
pub(super) struct Register {
    pub(super) parcel: Parcel,
    pub(super) number: u64,
    /// The task that sent it, if any.
    pub(super) task: Option<usize>,
    /// It counts the registers that were filled before.
    pub(super) rank: u64,
    pub(super) destination: Destination,
    /// When it was filled, or its last packet begun.
    pub(super) created: Time,
    /// The operating system brings this page of its source.
    pub(super) missing: Option<u64>,
}

/// A packet that is being made or waits for its tail to leave.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The task that sends it, if any.
    pub(super) task: Option<usize>,
    /// Its parcel, if it is the last packet.
    pub(super) ends: Option<Parcel>,
}

/// The sets of control registers, besides that for answers.
#[derive(Default)]
pub(super) struct ControlRegisters {
    /// The operating system's program.
    pub(super) system: Option<usize>,
    /// The task that each users' set serves.
    pub(super) sets: Vec<Option<usize>>,
    /// The set that is looked at first.
    pub(super) turn: usize,
}

/// How much there can be.
#[derive(Clone, Copy, Default)]
pub(super) struct Limits {
    pub(super) registers: usize,
    /// Headers in the queue of a task.
    pub(super) headers: usize,
    /// Requests without an answer.
    pub(super) outstanding: u32,
}

/// What the two modules are doing.
#[derive(Default)]
pub(super) struct Sender {
    /// The header queue of each task.
    pub(super) queues: Vec<VecDeque<Queued<[u64; 4]>>>,
    pub(super) answers: VecDeque<Queued<Reply>>,
    pub(super) controls: ControlRegisters,
    pub(super) reading: Option<Queued<Header>>,
    /// In the order in which they were filled.
    pub(super) registers: VecDeque<Register>,
    pub(super) limits: Limits,
    /// Registers that have been filled.
    pub(super) filled: u64,
    pub(super) choice: RegisterChoice,
    /// The rank of the register that was chosen last.
    pub(super) chosen: u64,
    pub(super) making: bool,
    /// What was made last, until it is in the queue to the network.
    pub(super) made: Option<(Load, Destination, u32)>,
    /// In the order in which they leave.
    pub(super) outgoing: VecDeque<Outgoing>,
    pub(super) outstanding: u32,
    /// Synchronisations that this node waits for, a bit each.
    pub(super) synchronising: u128,
    /// Tasks whose processors wait for room in their header queue.
    pub(super) blocked: Vec<bool>,
}

impl Sender {
    pub(super) fn new(constants: &Cenju4, programs: &[Program]) -> Self {
        let (sets, tasks) = (constants.user_registers as usize, programs.len());
        let system = programs.iter().position(|program| program.cid == OPERATING_SYSTEM);
        let mut users = (0..tasks).filter(|&task| system != Some(task));
        let controls = ControlRegisters { system, sets: (0..sets).map(|_| users.next()).collect(), turn: 0 };
        let limits = Limits {
            registers: constants.header_registers as usize,
            headers: constants.header_queue as usize,
            outstanding: constants.outstanding_requests,
        };
        Self {
            queues: (0..tasks).map(|_| VecDeque::new()).collect(),
            controls,
            limits,
            choice: constants.register_choice,
            blocked: vec![false; tasks],
            ..Self::default()
        }
    }

    /// Has the header queue of a task room?
    pub(super) fn has_room(&self, task: usize) -> bool {
        self.queues[task].len() < self.limits.headers
    }

    /// Takes the next header: the answers, the operating system and the users' sets take turns.
    pub(super) fn next_header(&mut self, cid_of: impl Fn(usize) -> u8) -> Option<Queued<Header>> {
        let sources = self.controls.sets.len() + 2;
        for step in 0..sources {
            let source = (self.controls.turn + step) % sources;
            let task = match source {
                0 => None,
                1 => Some(self.controls.system),
                set => Some(self.controls.sets[set - 2]),
            };
            let taken = match task {
                None => self.answers.pop_front().map(|queued| Queued { header: Header::Answer(queued.header), parcel: queued.parcel }),
                Some(None) => None,
                Some(Some(task)) => self.queues[task]
                    .pop_front()
                    .map(|queued| Queued { header: Header::User { task, cid: cid_of(task), words: queued.header }, parcel: queued.parcel }),
            };
            if taken.is_some() {
                self.controls.turn = (source + 1) % sources;
                return taken;
            }
        }
        None
    }

    /// A task that has something to send and no set of control registers.
    pub(super) fn task_without_registers(&self) -> Option<usize> {
        let is_without = |task| self.controls.system != Some(task) && !self.controls.sets.contains(&Some(task));
        (0..self.queues.len()).find(|&task| !self.queues[task].is_empty() && is_without(task))
    }

    /// Has a task nothing in its queue, no parcel in a register, and has its last packet left?
    pub(super) fn is_drained(&self, task: usize) -> bool {
        let reading =
            self.reading.as_ref().is_some_and(|queued| matches!(queued.header, Header::User { task: other, .. } if other == task));
        let outgoing = self.outgoing.iter().any(|packet| packet.task == Some(task));
        !reading && !outgoing && self.queues[task].is_empty() && self.registers.iter().all(|register| register.task != Some(task))
    }

    /// A page has been brought that parcels of a task have stopped at.
    pub(super) fn go_on(&mut self, cid: u8, address: u64) {
        let stopped = |register: &&mut Register| register.parcel.cid() == cid && register.missing == Some(address);
        self.registers.iter_mut().filter(stopped).for_each(|register| register.missing = None);
    }

    /// The places of the registers in the order in which they are looked at.
    pub(super) fn in_order(&self) -> impl Iterator<Item = usize> + use<> {
        let first = match self.choice {
            RegisterChoice::Oldest => 0,
            RegisterChoice::Rotating => self.registers.iter().position(|register| register.rank > self.chosen).unwrap_or(0),
        };
        let count = self.registers.len();
        (0..count).map(move |step| (first + step) % count)
    }
}
