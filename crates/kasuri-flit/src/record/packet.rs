//! The record of a packet, and what it says of the gaps between its flits.

/// A packet in the network or at the head of its source queue. 40 bytes; what is asked at each router stands last, together.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Packet {
    /// Cycle of creation.
    pub(crate) created: u64,
    /// Cycle in which the head entered the network.
    pub(crate) injected: u64,
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// The routing's own state.
    pub(crate) route_state: u32,
    /// Running number of the packet at its source, for the random draws of its route.
    pub(crate) serial: u32,
    /// Length in flits.
    pub(crate) flits: u16,
    /// Routers crossed.
    pub(crate) hops: u16,
    /// Traffic class.
    pub(crate) class: u8,
    /// Is it the answer to a packet of its class?
    pub(crate) is_reply: bool,
    /// What is known of the gaps between its flits.
    pub(crate) gaps: Gaps,
    /// Is the record in use?
    pub(crate) alive: bool,
}

/// Most packets get a virtual channel and send their head in the same cycle, and a flit in each of those that follow.
#[inline(always)]
pub(crate) fn usual_gap(index: u16) -> u32 {
    u32::from(index > 0)
}

/// What is known of the gaps between the injections of a packet's flits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gaps {
    /// Those of the flits that have been injected are the usual ones.
    UsualSoFar,
    /// All are: all flits have been injected.
    #[default]
    Usual,
    /// They stand in memory, and some of them perhaps among the long ones.
    InMemory,
    Long,
}

impl Gaps {
    #[inline(always)]
    pub(crate) fn are_usual(self) -> bool {
        matches!(self, Self::UsualSoFar | Self::Usual)
    }
}
