//! Which of the model's rules hold, asked by loops that exist once for the most frequent ones and once for any.

use super::timing::Timing;

/// Answers what decides how parcels move. Constants, where they are known beforehand, take the branches out of the loops.
pub(super) trait Rules {
    /// Do packets wait until the next buffer has room for all of them?
    fn cuts_through(timing: &Timing) -> bool;
    /// Do routers wait for all of a packet?
    fn stores(timing: &Timing) -> bool;
    /// Does the oldest come first, in place of round robin?
    fn oldest_first(timing: &Timing) -> bool;
    /// Does an input send one parcel at a time?
    fn has_input_ports(timing: &Timing) -> bool;
    /// Parcels that a buffer holds, of which the network says so many; 0 for any number.
    fn room(room: u16) -> u16;
}

/// Whatever the timing says.
pub(super) enum AnyRules {}

impl Rules for AnyRules {
    #[inline(always)]
    fn cuts_through(timing: &Timing) -> bool {
        timing.cuts_through
    }

    #[inline(always)]
    fn stores(timing: &Timing) -> bool {
        timing.stores
    }

    #[inline(always)]
    fn oldest_first(timing: &Timing) -> bool {
        timing.oldest_first
    }

    #[inline(always)]
    fn has_input_ports(timing: &Timing) -> bool {
        timing.has_input_ports
    }

    #[inline(always)]
    fn room(room: u16) -> u16 {
        room
    }
}

/// Wormhole switching and round robin, with every mechanism, and buffers that hold one parcel.
pub(super) enum PlainRules {}

impl PlainRules {
    /// Are these a network's rules?
    pub(super) fn hold(timing: &Timing) -> bool {
        !timing.cuts_through && !timing.stores && !timing.oldest_first && timing.has_input_ports && timing.room == 1
    }
}

impl Rules for PlainRules {
    #[inline(always)]
    fn cuts_through(_: &Timing) -> bool {
        false
    }

    #[inline(always)]
    fn stores(_: &Timing) -> bool {
        false
    }

    #[inline(always)]
    fn oldest_first(_: &Timing) -> bool {
        false
    }

    #[inline(always)]
    fn has_input_ports(_: &Timing) -> bool {
        true
    }

    #[inline(always)]
    fn room(_: u16) -> u16 {
        1
    }
}
