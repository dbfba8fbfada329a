//! The Receiver: it looks the task of a packet up, writes memory, and announces what it has done.

use std::collections::VecDeque;

/// What the Receiver is doing.
#[derive(Default)]
pub(super) struct Receiver {
    /// Packets whose task has been looked up.
    pub(super) waiting: VecDeque<u32>,
    pub(super) writing: Option<u32>,
}
