//! How engines make a routing's choices: draws hashed from the packet, costs from a view of the deciding router.

use super::choice::{Choice, CongestionView};
use super::hop::VirtualChannels;
use crate::rng::split_mix;

/// Alternatives of which it is kept how occupied they are, while those near the least are looked for. Of further ones it is asked twice.
const KEPT_OCCUPATIONS: usize = 128;

/// Draws by hashing (seed, packet, hop, draw), so that no result depends on the order in which heads are routed, and two engines
/// send the same packet on the same path.
#[derive(Clone, Copy, Debug)]
pub struct HashedChoice<V> {
    key: u64,
    draws: u64,
    view: V,
}

/// The choices at a packet's source, which knows how many packets it has sent.
#[derive(Clone, Copy, Debug)]
pub struct SourceChoice {
    draws: HashedChoice<NoView>,
    serial: u32,
    has_counted: bool,
}

impl SourceChoice {
    /// The choices of packet `serial` of this [`packet_key`].
    #[inline]
    pub fn new(key: u64, serial: u32) -> Self {
        Self { draws: HashedChoice { key, draws: 0, view: NoView }, serial, has_counted: false }
    }

    /// Does anything distinguish the packet from others of its source and destination?
    pub fn has_drawn(&self) -> bool {
        self.has_counted || self.draws.has_drawn()
    }
}

impl Choice for SourceChoice {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        self.draws.uniform(alternatives)
    }

    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        self.draws.least(alternatives, cost)
    }

    fn serial(&mut self) -> Option<u32> {
        self.has_counted = true;
        Some(self.serial)
    }
}

impl<V: CongestionView> HashedChoice<V> {
    /// The choices of the packet of this [`packet_key`] at its router number `hop`, counted from 1.
    #[inline]
    pub fn at_hop(key: u64, hop: u32, view: V) -> Self {
        Self { key: key.wrapping_add(u64::from(hop) << 32), draws: 0, view }
    }
}

/// The key of the draws of packet `serial` of a terminal; `seed` is the run's key of [`Purpose::Routing`](crate::rng::Purpose).
#[inline]
pub fn packet_key(seed: u64, source: u32, serial: u32) -> u64 {
    seed ^ (u64::from(source) << 32 | u64::from(serial)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<V> HashedChoice<V> {
    /// Has anything been left to chance?
    pub fn has_drawn(&self) -> bool {
        self.draws > 0
    }
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

    fn least_occupied(&mut self, alternatives: u32, occupied: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        let grain = i64::from(self.view.grain());
        if grain == 1 {
            return self.least(alternatives, occupied);
        }
        let mut kept = [0; KEPT_OCCUPATIONS];
        let mut least = i64::MAX;
        for alternative in 0..alternatives {
            let flits = occupied(&self.view, alternative);
            least = least.min(flits);
            if let Some(place) = kept.get_mut(alternative as usize) {
                *place = flits;
            }
        }
        let (mut taken, mut good) = (0, 0);
        for alternative in 0..alternatives {
            let flits = kept.get(alternative as usize).copied().unwrap_or_else(|| occupied(&self.view, alternative));
            if flits < least + grain {
                good += 1;
                if self.below(good) == 0 {
                    taken = alternative;
                }
            }
        }
        taken
    }

    fn draw_ahead(&mut self) {
        (self.key, self.draws) = (self.key.wrapping_add(1 << 32), 0);
    }
}

/// No congestion is known at a source.
#[derive(Clone, Copy, Debug)]
pub struct NoView;

impl CongestionView for NoView {
    fn occupied(&self, _port: u16, _virtual_channels: VirtualChannels) -> u32 {
        0
    }
}
