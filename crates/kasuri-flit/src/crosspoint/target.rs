//! Where packets go.

use kasuri_network::multicast::GROUP;

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To a terminal.
    Unicast(u32),
    /// To the terminals of a group, a bit each.
    Multicast { group: u8, terminals: u64 },
    /// To all participants, when all have sent theirs.
    Synchronisation { sid: u8, terminals: u64 },
}

impl Target {
    /// The group of its terminals, and their bits.
    pub(super) fn place(self) -> (usize, u64) {
        match self {
            Self::Unicast(terminal) => (terminal as usize / GROUP, 1 << (terminal as usize % GROUP)),
            Self::Multicast { group, terminals } => (usize::from(group), terminals),
            Self::Synchronisation { terminals, .. } => (0, terminals),
        }
    }

    /// Does data of both go to some terminal?
    pub(crate) fn meets(self, other: Self) -> bool {
        let ((group, terminals), (others, there)) = (self.place(), other.place());
        let is_data = |target| !matches!(target, Self::Synchronisation { .. });
        is_data(self) && is_data(other) && group == others && terminals & there != 0
    }

    /// Is a copy for these of its terminals right at a terminal?
    pub(super) fn is_for(self, terminal: u32, terminals: u64) -> bool {
        let (group, bit) = (terminal as usize / GROUP, 1 << (terminal as usize % GROUP));
        match self {
            Self::Synchronisation { .. } => terminals & bit != 0,
            _ => (self.place().0, terminals) == (group, bit),
        }
    }
}
