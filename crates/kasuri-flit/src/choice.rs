//! What a routing sees of the router that decides.

use crate::lanes::Lanes;
use crate::state::Simulation;
use crate::vc_mask::VcMask;
use kasuri_model::routing::{CongestionView, VirtualChannels};

/// What a routing sees of the router that it stands at.
pub(crate) struct RouterView<'s, 'a, L: Lanes> {
    pub(crate) simulation: &'s Simulation<'a, L>,
    /// First port address of the router.
    pub(crate) base: u32,
}

impl<L: Lanes> CongestionView for RouterView<'_, '_, L> {
    fn occupied(&self, port: u16, virtual_channels: VirtualChannels) -> u32 {
        let slot = (self.base + u32::from(port)) << L::Mask::SHIFT;
        let depth = u32::from(self.simulation.parameters.buffer_flits);
        (virtual_channels.begin..virtual_channels.end).map(|vc| depth - self.simulation.lanes.credits(slot + u32::from(vc))).sum()
    }
}
