//! The ends of a port's channels.

use crate::record::list::List;
use crate::record::marks::NONE;
use crate::record::prefetch::prefetch_across;

/// Where the flits and credits of a port go, and the heads that wait for it. 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    /// First slot of the input port at the other end of the output channel; [`NONE`] if there is none.
    pub(crate) flit_link: u32,
    /// First slot of the output port at the other end of the input channel, for credits; [`NONE`] if there is none.
    pub(crate) credit_link: u32,
    /// Cycles from the switch grant until the flit can be used at the other end.
    pub(crate) flit_delay: u16,
    /// Cycles from the switch grant until the credit can be used at the other end.
    pub(crate) credit_delay: u16,
    /// Flits sent since the statistics were last collected.
    pub(crate) sent: u32,
    /// The first input slot that waits for a virtual channel of the port.
    pub(crate) request_head: u32,
    /// Is the port in its block's list for virtual-channel allocation?
    pub(crate) listed: bool,
}

impl Links {
    /// Fetches the record, which may lie in two cache lines.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch_across(self);
    }

    /// Puts the port on a list for virtual-channel allocation, once, if somebody waits there.
    #[inline(always)]
    pub(crate) fn list_for_allocation(&mut self, port: u32, list: &mut List) {
        let is_new = (self.request_head != NONE) & !self.listed;
        list.push_if(port, is_new);
        self.listed |= is_new;
    }
}
