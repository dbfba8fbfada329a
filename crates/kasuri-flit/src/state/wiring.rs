//! How the ports of a tile are wired, and where its routers lie.

use crate::record::links::Links;
use crate::record::marks::NONE;
use crate::state::addresses::Addresses;
use crate::state::parameters::Parameters;
use kasuri_network::memory::Column;
use std::sync::Arc;

/// A router of a tile. 8 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouterPlace {
    /// Its number in the network.
    pub(crate) router: u32,
    /// Its first port address.
    pub(crate) first_port: u32,
}

/// How the ports are wired. One entry per port address, terminals' included.
pub(crate) struct Wiring {
    pub(crate) links: Column<Links>,
    /// The cycle in which what they count was last collected.
    pub(crate) collected_in: u64,
    /// Cycles that a flit occupies the port's channel; empty unless some channel needs more than one.
    pub(crate) period: Column<u32>,
    /// By port of a router: flits that have crossed the switch and are not counted as sent on the channel. Empty where they are sent as they
    /// cross it.
    pub(crate) before_channel: Column<u32>,
    /// The router of a router's port address, by its number in the tile; [`NONE`] in gaps.
    pub(crate) router_of_port: Column<u32>,
    /// The routers of the tile, by their numbers there: so few that they lie in a near cache.
    routers: Column<RouterPlace>,
    own_number: Arc<[u32]>,
}

impl Wiring {
    /// Ports that nothing connects.
    pub(crate) fn new(addresses: &Addresses, parameters: &Parameters) -> Self {
        let ports = addresses.ports as usize;
        let before_channel = if parameters.has_output_queue() { addresses.first_terminal_port as usize } else { 0 };
        let routers = addresses.share.routers.iter().zip(&addresses.router_port);
        let unconnected =
            Links { flit_link: NONE, credit_link: NONE, flit_delay: 0, credit_delay: 0, sent: 0, request_head: NONE, listed: false };
        Self {
            links: Column::filled(ports, unconnected),
            collected_in: 0,
            period: Column::filled(if parameters.periodic { ports } else { 0 }, 1),
            before_channel: Column::filled(before_channel, 0),
            router_of_port: Column::filled(addresses.first_terminal_port as usize, NONE),
            routers: routers.map(|(&router, &first_port)| RouterPlace { router, first_port }).collect(),
            own_number: Arc::clone(&addresses.own_number),
        }
    }

    /// The first port address of a router, which is named by its number in the network.
    #[inline(always)]
    pub(crate) fn first_port(&self, router: u32) -> u32 {
        self.routers[self.own_number(router)].first_port
    }

    /// The router that a port address belongs to, which must be a router's.
    #[inline(always)]
    pub(crate) fn router_at(&self, port: u32) -> RouterPlace {
        self.routers[self.router_of_port[port]]
    }

    /// The number that a router of the network has in the tile.
    #[inline(always)]
    pub(crate) fn own_number(&self, router: u32) -> u32 {
        self.own_number[router as usize]
    }
}
