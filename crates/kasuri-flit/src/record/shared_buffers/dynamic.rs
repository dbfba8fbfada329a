//! Equal parts of the buffer for the virtual channels in use.

/// No virtual channel holds more than the total over the number of those that have packets.
pub(super) fn limit(total: u32, _most_held: u32, active: u32) -> u32 {
    (total / active).max(1)
}
