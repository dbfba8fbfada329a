//! What happens in a machine and when, what its network carries, and how long its parts take.

use crate::crosspoint::{self, Time};
use kasuri_workload::endpoint::cenju4::Cenju4;
use kasuri_workload::endpoint::cenju4::node::Packet;
use std::rc::Rc;

/// What happens at a time. The order is that in which things at the same time are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Network(crosspoint::Event),
    /// The Receiver has looked a packet's task up.
    Looked {
        node: u32,
        flight: u32,
    },
    /// The Receiver has written a packet.
    Written {
        node: u32,
    },
    /// A packet's effect is to be seen.
    Effect {
        node: u32,
        flight: u32,
    },
    /// The Sender has read a header.
    HeaderRead {
        node: u32,
    },
    /// The Sender has made a packet.
    Made {
        node: u32,
    },
    /// The Sender may make another packet.
    Idle {
        node: u32,
    },
    /// The operating system gives a set of control registers to another task.
    Switch {
        node: u32,
        set: u32,
    },
    /// The operating system has brought a page that the Sender (0) or the Receiver (1) has missed.
    Page {
        node: u32,
        cid: u8,
        address: u64,
        receiver: bool,
    },
    /// A processor goes on with its program.
    Processor {
        node: u32,
        task: u32,
    },
}

/// What the network carries for a packet.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) packet: Rc<Packet>,
    pub(super) parcel: u64,
    pub(super) created: Time,
    /// Of a synchronisation, its identifier.
    pub(super) sid: Option<u8>,
}

/// Nanoseconds as picoseconds.
pub(super) fn picoseconds(ns: f64) -> Time {
    // Checked to be 0 to 10^9 ns.
    (ns * 1000.0).round() as Time
}

/// The constants in picoseconds. Many fields, because each is a part of its own of what takes time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) cache: Time,
    pub(super) snoop: Time,
    pub(super) memory: Time,
    pub(super) beat: Time,
    pub(super) node_table: Time,
    pub(super) packet: Time,
    pub(super) receiver: Time,
    pub(super) line: Time,
    pub(super) atomic: Time,
    pub(super) notice: Time,
    pub(super) poll: Time,
    pub(super) pointer: Time,
    pub(super) system_call: Time,
    pub(super) interrupt: Time,
    pub(super) page_fault: Time,
    pub(super) word_copy: Time,
}

impl Times {
    pub(super) fn of(constants: &Cenju4) -> Self {
        Self {
            cache: picoseconds(constants.cache_ns),
            snoop: picoseconds(constants.snoop_ns),
            memory: picoseconds(constants.memory_ns),
            beat: picoseconds(constants.beat_ns),
            node_table: picoseconds(constants.node_table_ns),
            packet: picoseconds(constants.packet_ns),
            receiver: picoseconds(constants.receiver_ns),
            line: picoseconds(constants.line_ns),
            atomic: picoseconds(constants.atomic_ns),
            notice: picoseconds(constants.notice_ns),
            poll: picoseconds(constants.poll_ns),
            pointer: picoseconds(constants.pointer_ns),
            system_call: picoseconds(constants.system_call_ns),
            interrupt: picoseconds(constants.interrupt_ns),
            page_fault: picoseconds(constants.page_fault_ns),
            word_copy: picoseconds(constants.word_copy_ns),
        }
    }

    /// A read of this many double words of main memory.
    pub(super) fn memory_read(&self, words: u64) -> Time {
        self.memory + words * self.beat
    }

    /// A system call that writes an entry of a table, two double words.
    pub(super) fn registration(&self) -> Time {
        self.system_call + self.memory_read(2)
    }

    /// The walk through the segment table and the page table for so many translations.
    pub(super) fn table_walks(&self, misses: u32) -> Time {
        2 * Time::from(misses) * self.memory_read(1)
    }
}
