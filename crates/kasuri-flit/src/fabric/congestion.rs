//! What a routing sees of the router that decides.

use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::state::layout::RouterState;
use crate::state::tile::Tile;
use kasuri_network::routing::{CongestionView, VirtualChannels};

/// Flits that have still to leave count together as one that has left and whose credit is not back: they leave at the rate of the channel,
/// which nobody else slows down, while a missing credit may tell of a standstill behind it. Where they count as much, short channels do
/// worse than by credits alone; where they count a quarter, heads herd on trees of two levels (`validation/congestion`).
const CLAIMS_OF_A_FLIT: u32 = 2;

/// What a routing sees of the router that it stands at.
pub(crate) struct RouterView<'s, 'a, L: RouterState> {
    pub(crate) tile: &'s Tile<'a, L>,
    /// First port address of the router.
    pub(crate) base: u32,
    /// Of the packet that is routed.
    pub(crate) flits: u16,
}

impl<L: RouterState> CongestionView for RouterView<'_, '_, L> {
    fn occupied(&self, port: u16, virtual_channels: VirtualChannels) -> u32 {
        let slot = (self.base + u32::from(port)) << L::Mask::SHIFT;
        let Tile { layout, parameters, routing, .. } = self.tile;
        let depth = u32::from(parameters.buffer_flits);
        let slots = (virtual_channels.begin..virtual_channels.end).map(|vc| slot + u32::from(vc));
        let sent: u32 = slots.clone().map(|slot| depth - layout.credits(slot)).sum();
        let Some(claims) = &routing.claims else { return sent };
        let to_send = |slot: u32| match layout.holder(slot) {
            NONE => 0,
            holder => layout.left(holder),
        };
        sent + slots.map(|slot| to_send(slot) + claims.at(slot)).sum::<u32>().div_ceil(CLAIMS_OF_A_FLIT)
    }

    /// What the packet itself counts when it claims an output. By finer differences a source whose packet has just left would find the
    /// output that this packet took the best one, because the others still have packets to send: it would take the same one for ever, and
    /// where two such paths meet, they would go on meeting.
    fn grain(&self) -> u32 {
        match self.tile.routing.claims {
            Some(_) => u32::from(self.flits).div_ceil(CLAIMS_OF_A_FLIT),
            None => 1,
        }
    }
}
