//! Nearly equal parts of the buffer for the virtual channels in use, by shifts in place of a division.

/// The total, halved as often as the virtual channels that have packets can be halved until one is left, rounded up.
pub(super) fn limit(total: u32, _most_held: u32, active: u32) -> u32 {
    let halvings = u32::BITS - (active - 1).leading_zeros();
    (total >> halvings).max(1)
}
