//! Bubble flow control: a packet that enters a ring of a torus leaves room behind it for another, so that no ring fills up.

use crate::record::marks::NONE;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{Port, RouterId};
use kasuri_network::memory::Column;
use kasuri_network::network::rings::Rings;

/// The rings of a tile.
pub(crate) struct Bubbles {
    /// By port of a router: the output by which a ring goes on behind this input; [`NONE`] where none does.
    onward: Column<u32>,
    /// Flits that must be free where a packet enters a ring: two of the longest.
    entry: u32,
}

impl Bubbles {
    /// Those of a scenario that asks for them; `routers` are the tile's, each with its first port; `ports` are all ports of these.
    pub(crate) fn of(scenario: &Scenario, routers: impl Iterator<Item = (u32, u32)>, ports: usize) -> Option<Box<Self>> {
        let rings = Rings::of(&scenario.network).filter(|_| scenario.router.bubble)?;
        let mut onward = Column::filled(ports, NONE);
        for (router, first) in routers {
            for input in 0..scenario.network.port_count(RouterId(router)) {
                onward[first + input] = rings.onward(input as Port).map_or(NONE, |output| first + u32::from(output));
            }
        }
        Some(Box::new(Self { onward, entry: 2 * scenario.longest_packet() }))
    }

    /// Flits that must be free beyond an output virtual channel for a head of a packet of so many flits to get it. An input port of a ring is an
    /// output port of it, too.
    #[inline]
    pub(crate) fn room(&self, head: u32, output: u32, vc_shift: u32, flits: u32) -> u32 {
        let port = output >> vc_shift;
        let goes_on = self.onward[head >> vc_shift] == port && (head ^ output) & ((1 << vc_shift) - 1) == 0;
        if goes_on || self.onward[port] == NONE { flits } else { self.entry }
    }
}
