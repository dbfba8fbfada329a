//! Where the ports of a tile's routers and terminals lie in its address space.

use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::state::crossings::Crossings;
use crate::state::layout::RouterState;
use crate::state::share::{Partition, Share};
use kasuri_model::refusal::Refusal;
use kasuri_network::id::RouterId;
use kasuri_network::network::{Endpoint, Network};
use std::sync::Arc;

/// A block holds at least this many slots, however small the tile: those of the widest routers of the vector layout.
const LEAST_BLOCK_SHIFT: u32 = 8;

/// The port addresses of a tile: its routers', its terminals', and behind them one for each channel that leaves the tile or comes from another.
/// In the wheel of flits an address behind the terminals' stands for the far end of a channel that leaves, in that of credits for the far end
/// of one that comes.
pub(crate) struct Addresses {
    pub(crate) share: Share,
    /// By router of the network: its number in its tile.
    pub(crate) own_number: Arc<[u32]>,
    pub(crate) router_port: Vec<u32>,
    pub(crate) slots_of_routers: u64,
    pub(crate) first_terminal_port: u32,
    /// The first address behind the terminals' that stands for a far end.
    pub(crate) first_border_port: u32,
    pub(crate) ports: u32,
    pub(crate) block_shift: u32,
}

impl Addresses {
    /// The addresses of each tile of a network, and the channels between them.
    ///
    /// # Errors
    /// They are more than 32-bit numbers name.
    pub(crate) fn of_tiles<L: RouterState>(network: &Network, partition: &Partition) -> Result<(Vec<Self>, Vec<Arc<Crossings>>), Refusal> {
        let mut tiles =
            partition.shares.iter().map(|share| Self::inner::<L>(network, share, &partition.own_number)).collect::<Result<Vec<_>, _>>()?;
        let crossings = Crossings::of_tiles(network, partition, &tiles);
        for (tile, number) in tiles.iter_mut().zip(0..) {
            tile.place_border::<L>(number, &crossings)?;
        }
        Ok((tiles, crossings))
    }

    /// Gives every router a range of port addresses within one block, then the terminals, starting at a block of their own.
    fn inner<L: RouterState>(network: &Network, share: &Share, own_number: &Arc<[u32]>) -> Result<Self, Refusal> {
        let shift = L::Mask::SHIFT;
        let widest = (0..network.router_count()).map(|router| network.port_count(RouterId(router))).max().unwrap_or(0);
        let reserved =
            |router| u64::from(L::reserved_slots(network.port_count(RouterId(router)) << shift, widest << shift) >> shift).max(1);
        let slots_of_routers = share.routers.iter().map(|&router| reserved(router)).sum::<u64>() << shift;
        // A small tile is one block, and takes no more memory than that.
        let fitting = L::BLOCK_SLOTS_SHIFT.min(slots_of_routers.next_power_of_two().trailing_zeros()).max(LEAST_BLOCK_SHIFT);
        let block_shift = fitting.max(u64::from(widest << shift).next_power_of_two().trailing_zeros());
        let block_ports = 1u64 << (block_shift - shift);
        let mut next = 0u64;
        let mut router_port = Vec::with_capacity(share.routers.len());
        for &router in share.routers.iter() {
            let ports = reserved(router);
            if next / block_ports != (next + ports - 1) / block_ports {
                next = next.next_multiple_of(block_ports);
            }
            router_port.push(next as u32);
            next += ports;
        }
        let first_terminal_port = next.next_multiple_of(block_ports);
        let ports = first_terminal_port + share.terminals.len() as u64;
        check::<L>(ports)?;
        Ok(Self {
            share: share.clone(),
            own_number: Arc::clone(own_number),
            router_port,
            slots_of_routers,
            first_terminal_port: first_terminal_port as u32,
            first_border_port: ports as u32,
            ports: ports as u32,
            block_shift,
        })
    }

    /// Gives the channels at the border of this tile, which has this number, their addresses, starting at a block of their own.
    fn place_border<L: RouterState>(&mut self, number: u32, crossings: &[Arc<Crossings>]) -> Result<(), Refusal> {
        let sections = |is_own: &dyn Fn(&Crossings) -> bool| -> u64 {
            crossings.iter().filter(|crossing| is_own(crossing)).map(|crossing| u64::from(crossing.ports_of_section::<L>())).sum()
        };
        let border = sections(&|crossing| crossing.from == number).max(sections(&|crossing| crossing.to == number));
        if border == 0 {
            return Ok(());
        }
        let first = u64::from(self.ports).next_multiple_of(1 << (self.block_shift - L::Mask::SHIFT));
        check::<L>(first + border)?;
        (self.first_border_port, self.ports) = (first as u32, (first + border) as u32);
        Ok(())
    }

    /// Virtual channels of the routers.
    pub(crate) fn slots_of_routers(&self) -> u64 {
        self.slots_of_routers
    }

    /// The port address of one end of a channel, which is the tile's own.
    pub(crate) fn port_of(&self, end: Endpoint) -> u32 {
        match end {
            Endpoint::Router(router, port) => self.router_port[self.own_number[router.index()] as usize] + u32::from(port),
            Endpoint::Terminal(terminal) => self.first_terminal_port + terminal.0 - self.share.terminals.start,
        }
    }
}

fn check<L: RouterState>(ports: u64) -> Result<(), Refusal> {
    let shift = L::Mask::SHIFT;
    if ports << shift < u64::from(NONE) {
        return Ok(());
    }
    let reason = format!("the flit engine names at most 2^32 virtual channels; this network has {ports} ports of {}", 1 << shift);
    Err(Refusal::new("network", reason))
}
