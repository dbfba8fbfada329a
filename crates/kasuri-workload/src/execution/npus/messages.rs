//! Messages that NPUs send, and who is notified of an arrival.

/// The receiver of the notice that a message has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// No notice.
    Silent,
    /// A node of the NPU's own trace.
    Node(u32),
    /// A phase of a collective.
    Stream(u32),
    /// A node of a collective that is a trace.
    Custom(u32, u32),
}

/// A message that an NPU sends.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Who sends.
    pub source: u32,
    /// Who receives.
    pub destination: u32,
    /// What it is called.
    pub tag: u32,
    /// Its size.
    pub bytes: u64,
    /// The receiver of the notice at the source when it has arrived.
    pub sent: Done,
    /// Where one NPU stands for all: what is sent to one comes back from it, not from the other side.
    pub exchanged: bool,
    /// Any message of this tag and size will do for its receiver in this phase, whoever sends it: how many phases follow.
    pub anonymous: Option<u32>,
}
