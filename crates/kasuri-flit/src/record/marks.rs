//! Values that mark "none" in columns of addresses, packets, cycles and virtual channels.

/// Marks "none" in a column of addresses or packets.
pub(crate) const NONE: u32 = u32::MAX;

/// In the place of the output that a packet holds: it is thrown away.
pub(crate) const DISCARDED: u32 = u32::MAX - 1;

/// The cycle that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// No virtual channel chosen yet.
pub(crate) const NO_VC: u16 = u16::MAX;
