//! Which of the model's rules hold, asked by loops that exist once for the most frequent ones and once for any.

use super::timing::Timing;

/// Answers what decides how parcels move: of the plain rules without looking, which takes the branches out of the loops.
pub(super) trait Rules {
    /// Are they the plain ones: wormhole switching and round robin, with every mechanism, and buffers that hold one parcel?
    const PLAIN: bool;

    /// Do packets wait until the next buffer has room for all of them?
    #[inline(always)]
    fn cuts_through(timing: &Timing) -> bool {
        !Self::PLAIN && timing.cuts_through
    }

    /// Do routers wait for all of a packet?
    #[inline(always)]
    fn stores(timing: &Timing) -> bool {
        !Self::PLAIN && timing.stores
    }

    /// Does the oldest come first, in place of round robin?
    #[inline(always)]
    fn oldest_first(timing: &Timing) -> bool {
        !Self::PLAIN && timing.oldest_first
    }

    /// Does an input send one parcel at a time?
    #[inline(always)]
    fn has_input_ports(timing: &Timing) -> bool {
        Self::PLAIN || timing.has_input_ports
    }

    /// Parcels that a buffer holds, of which the network says so many; 0 for any number.
    #[inline(always)]
    fn room(room: u16) -> u16 {
        if Self::PLAIN { 1 } else { room }
    }
}

/// Whatever the timing says.
pub(super) enum AnyRules {}

impl Rules for AnyRules {
    const PLAIN: bool = false;
}

/// The plain rules.
pub(super) enum PlainRules {}

impl Rules for PlainRules {
    const PLAIN: bool = true;
}

impl PlainRules {
    /// Are these a network's rules?
    pub(super) fn hold(timing: &Timing) -> bool {
        !timing.cuts_through && !timing.stores && !timing.oldest_first && timing.has_input_ports && timing.room == 1
    }
}
