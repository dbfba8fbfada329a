//! What the interface refuses: delivered to the operating system of the node that found it.

use super::framing::Damage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a parcel or a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// Not a header: a kind or a protocol that does not exist, or a protocol that the kind cannot carry.
    #[error("the parcel header has an impossible kind or protocol")]
    BadHeader,
    /// A task's parcel in supervisor mode, or the operating system's that is not.
    #[error("the parcel is in a mode that its task may not use")]
    WrongMode,
    /// More data than a parcel, or a header in in-line mode, or an atomic operation can hold.
    #[error("the parcel has {0} bytes, more than it can carry")]
    TooLong(u32),
    /// The destination of data is not at a double word (in-line: at a word), or the source not at a word.
    #[error("address {0:#x} is not aligned")]
    Misaligned(u64),
    /// The offset is outside the task's node table.
    #[error("offset {0} is outside the node table")]
    OutsideNodeTable(u16),
    /// The offset is outside the task's multicast table.
    #[error("offset {0} is outside the multicast table")]
    OutsideMulticastTable(u16),
    /// The offset is outside the task's synchronisation table.
    #[error("offset {0} is outside the synchronisation table")]
    OutsideSynchronisationTable(u16),
    /// A multicast or a synchronisation is registered for nodes of several groups of 64, or for tasks with several identifiers.
    #[error("the destinations are not tasks with one communication identifier on nodes of one group of 64")]
    MixedDestinations,
    /// The task has as many segments as its segment table holds.
    #[error("a task has at most 4 segments")]
    TooManySegments,
    /// No task has this communication identifier on the node.
    #[error("no task has communication identifier {0}")]
    NoTask(u8),
    /// The page is in no segment of the task, or its segment has no frame for it.
    #[error("address {0:#x} is not mapped")]
    Unmapped(u64),
    /// The page is the task's, and not in memory at present. The operating system brings it, and the transfer goes on.
    #[error("the page of address {0:#x} is not in memory")]
    Missing(u64),
    /// The page may not be written.
    #[error("address {0:#x} is on a read-only page")]
    ReadOnly(u64),
    /// The node has not got the answer to its last synchronisation with this identifier.
    #[error("synchronisation {0} of this node has not ended")]
    Synchronising(u8),
    /// The task has not set this buffer or register up.
    #[error("the task has no such buffer or address register")]
    NoBuffer,
}

/// What the operating system of a node is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The Sender refused a parcel of this task.
    SendFault(u8, Fault),
    /// The Receiver refused a packet for this communication identifier.
    ReceiveFault(u8, Fault),
    /// A packet that asked for it has arrived for this task.
    Received(u8),
    /// The log buffer of this task has been filled up to the given quarter (1 to 4).
    LogQuarter(u8, u8),
    /// A message buffer of this task (0 or 1) has been filled up to the given quarter (1 to 4).
    MessageQuarter(u8, u8, u8),
    /// The header queue of this task is empty and its last packet has been sent: another task may have the Sender.
    QueueDrained(u8),
    /// A packet has arrived that cannot be used.
    Damaged(Damage),
    /// The interface has come to a page of this task that is not in memory.
    PageFault(u8, u64),
}

/// What interrupts are about; each can be masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A header queue is empty and its last packet has left. It costs nothing if no task waits for the control registers, and cannot be
    /// masked if one does.
    SenderEmpty,
    /// A packet that asks for it has arrived.
    ReceiveEnd,
    /// A message buffer or a log buffer has been filled up to a quarter.
    BufferQuarter,
    /// A parcel or a packet was refused.
    Error,
    /// A page is not in memory. It cannot be masked: the transfer would never go on.
    PageFault,
}

impl Interrupt {
    /// What it is about.
    pub fn cause(&self) -> Cause {
        match self {
            Self::SendFault(..) | Self::ReceiveFault(..) | Self::Damaged(_) => Cause::Error,
            Self::Received(_) => Cause::ReceiveEnd,
            Self::LogQuarter(..) | Self::MessageQuarter(..) => Cause::BufferQuarter,
            Self::QueueDrained(_) => Cause::SenderEmpty,
            Self::PageFault(..) => Cause::PageFault,
        }
    }
}
