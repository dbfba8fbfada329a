//! Where the ports of routers and terminals lie in the address space.

use super::NONE;
use crate::fabric::layout::RouterLayout;
use crate::fabric::vc_mask::VcMask;
use kasuri_model::refusal::Refusal;
use kasuri_network::id::RouterId;
use kasuri_network::network::Network;

/// A tile holds about this many slots: its state then fits into a second-level cache beside its neighbours' lists.
const TILE_SLOTS_SHIFT: u32 = 14;

/// A tile holds at least this many slots, however small the network: those of the widest routers of the vector layout.
const LEAST_TILE_SHIFT: u32 = 8;

/// The port addresses of a network.
pub(crate) struct Addresses {
    pub(super) router_port: Vec<u32>,
    pub(super) slots_of_routers: u64,
    pub(crate) first_terminal_port: u32,
    pub(crate) ports: u32,
    pub(crate) tile_shift: u32,
}

/// Gives every router a range of port addresses within one tile, then the terminals, starting at a tile of their own.
pub(super) fn assign_addresses<L: RouterLayout>(network: &Network) -> Result<Addresses, Refusal> {
    let shift = L::Mask::SHIFT;
    let widest = (0..network.router_count()).map(|router| network.port_count(RouterId(router))).max().unwrap_or(0);
    let reserved = |router| u64::from(L::reserved_slots(network.port_count(RouterId(router)) << shift, widest << shift) >> shift).max(1);
    let slots_of_routers = (0..network.router_count()).map(reserved).sum::<u64>() << shift;
    // A small network is one tile, and takes no more memory than that.
    let fitting = TILE_SLOTS_SHIFT.min(slots_of_routers.next_power_of_two().trailing_zeros()).max(LEAST_TILE_SHIFT);
    let tile_shift = fitting.max(u64::from(widest << shift).next_power_of_two().trailing_zeros());
    let tile_ports = 1u64 << (tile_shift - shift);
    let mut next = 0u64;
    let mut router_port = Vec::with_capacity(network.router_count() as usize);
    for router in 0..network.router_count() {
        let ports = reserved(router);
        if next / tile_ports != (next + ports - 1) / tile_ports {
            next = next.next_multiple_of(tile_ports);
        }
        router_port.push(next as u32);
        next += ports;
    }
    let first_terminal_port = next.next_multiple_of(tile_ports);
    let ports = first_terminal_port + u64::from(network.terminal_count());
    if ports << shift >= u64::from(NONE) {
        let reason = format!("the flit engine names at most 2^32 virtual channels; this network has {ports} ports of {}", 1 << shift);
        return Err(Refusal::new("network", reason));
    }
    Ok(Addresses { router_port, slots_of_routers, first_terminal_port: first_terminal_port as u32, ports: ports as u32, tile_shift })
}
