//! A packet as its feed draws it.

use crate::record::tag::Tag;
use kasuri_network::id::TerminalId;

/// A packet that was drawn for the head of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) created: u64,
    /// The cycle that decides whether it is measured: `created` or, of an answer, that of the packet that it answers.
    pub(crate) asked: u64,
    pub(crate) destination: TerminalId,
    pub(crate) flits: u32,
    pub(crate) class: u8,
    pub(crate) is_reply: bool,
    pub(crate) again: Attempt,
    pub(crate) tag: Tag,
}

/// Is a packet drawn for the first time, or has it been lost?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    /// It was lost. Did it count among those that had waited for their source since before the measurement?
    Retransmission {
        has_waited: bool,
    },
}
