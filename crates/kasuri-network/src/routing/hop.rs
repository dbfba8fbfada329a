//! A packet at a router, and the output ports and virtual channels that it may take there.

use crate::id::{Port, RouterId, TerminalId};

/// Where a packet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The router that decides.
    pub router: RouterId,
    /// The port by which the packet came in.
    pub input: Port,
    /// The virtual channel on which it came in.
    pub virtual_channel: u16,
    /// Where it comes from.
    pub source: TerminalId,
    /// Where it goes to.
    pub destination: TerminalId,
    /// The virtual channels that its traffic class may use, all of them in most runs.
    pub available: VirtualChannels,
}

/// What of a [`Hop`] a routing looks at, apart from the router, the available virtual channels and the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads {
    /// The packet's source (in `initial_state` too).
    pub source: bool,
    /// The input port.
    pub input: bool,
    /// The virtual channel on which it came in.
    pub virtual_channel: bool,
    /// More of the destination than its router, before it is there (in `initial_state` too).
    pub terminal: bool,
}

impl Reads {
    /// Anything: always right, and the dearest for those who walk all routes.
    pub const EVERYTHING: Self = Self { source: true, input: true, virtual_channel: true, terminal: true };
    /// The destination's router alone.
    pub const DESTINATION_ROUTER: Self = Self { source: false, input: false, virtual_channel: false, terminal: false };
}

/// A half-open range of virtual channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VirtualChannels {
    /// The first.
    pub begin: u16,
    /// One past the last.
    pub end: u16,
}

impl VirtualChannels {
    /// The one that belongs to a terminal where each terminal has its own (`router.vc_per_destination`).
    pub fn only(destination: TerminalId) -> Self {
        // The configuration allows this for at most 256 terminals.
        let begin = destination.0 as u16;
        Self { begin, end: begin + 1 }
    }

    /// How many there are.
    pub fn count(self) -> u16 {
        self.end - self.begin
    }

    /// Class `class` of `classes` equal parts. A remainder goes to the lowest classes: 3 channels in 2 classes are 2 and 1.
    /// Fewer channels than classes are shared, which may bring back the deadlock that the classes prevent.
    pub fn class(self, class: u16, classes: u16) -> Self {
        if self.count() < classes {
            let begin = self.begin + class % self.count().max(1);
            return Self { begin, end: begin + 1 };
        }
        let at = |part: u16| self.begin + ((u32::from(self.count()) * u32::from(part)).div_ceil(u32::from(classes))) as u16;
        Self { begin: at(class), end: at(class + 1) }
    }
}

/// One output port and the virtual channels that may be used there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The output port.
    pub port: Port,
    /// The virtual channels of that port.
    pub virtual_channels: VirtualChannels,
    /// A higher number is preferred by allocators that know priorities.
    pub priority: u8,
}

impl Candidate {
    /// A candidate of the normal priority.
    pub fn new(port: Port, virtual_channels: VirtualChannels) -> Self {
        Self { port, virtual_channels, priority: 0 }
    }
}
