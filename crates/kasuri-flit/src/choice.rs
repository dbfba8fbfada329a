//! How this engine makes a routing's choices: draws hashed from the packet, costs from the credits of the deciding router.

use crate::lanes::Lanes;
use crate::state::Simulation;
use crate::vc_mask::VcMask;
use kasuri_model::rng::split_mix;
use kasuri_model::routing::{Choice, CongestionView, VirtualChannels};

/// Draws by hashing (seed, packet, hop, draw), so that no result depends on the order in which heads are routed.
pub(crate) struct HashedChoice<V> {
    pub(crate) key: u64,
    pub(crate) draws: u64,
    pub(crate) view: V,
}

/// The key of a packet's draws.
pub(crate) fn packet_key(seed: u64, source: u32, serial: u32) -> u64 {
    seed ^ (u64::from(source) << 32 | u64::from(serial)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<V: CongestionView> HashedChoice<V> {
    fn below(&mut self, alternatives: u32) -> u32 {
        self.draws += 1;
        let word = split_mix(split_mix(self.key) ^ self.draws);
        // Multiplying by the bound instead of dividing: off by at most 2^-32 from uniform.
        ((u128::from(word) * u128::from(alternatives)) >> 64) as u32
    }
}

impl<V: CongestionView> Choice for HashedChoice<V> {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        if alternatives == 1 { 0 } else { self.below(alternatives) }
    }

    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        let (mut best, mut best_cost, mut equal) = (0, i64::MAX, 0);
        for alternative in 0..alternatives {
            let cost = cost(&self.view, alternative);
            if cost < best_cost {
                (best, best_cost, equal) = (alternative, cost, 1);
            } else if cost == best_cost {
                equal += 1;
                // The i-th of equal alternatives replaces the earlier ones with probability 1/i.
                if self.below(equal) == 0 {
                    best = alternative;
                }
            }
        }
        best
    }
}

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

/// No congestion is known at a source.
pub(crate) struct NoView;

impl CongestionView for NoView {
    fn occupied(&self, _port: u16, _virtual_channels: VirtualChannels) -> u32 {
        0
    }
}
