//! The channels from one tile to another, in orders that both know.
//!
//! Flits arrive in the order of the ports to which their channels lead, and credits in that of the ports from which they come. So the tile that
//! is left numbers the far ends of its channels as the other one does its own ports, and hands over as whole words what is due at 64 of them.

use super::NONE;
use super::addresses::Addresses;
use super::share::Partition;
use crate::fabric::layout::RouterLayout;
use crate::fabric::vc_mask::VcMask;
use crate::tile::wheel::WORD_SHIFT;
use kasuri_network::id::ChannelId;
use kasuri_network::memory::Column;
use kasuri_network::network::Network;
use std::sync::Arc;

/// The channels from one tile to another. All ports are addresses in the tile to which they belong.
#[derive(Debug)]
pub(crate) struct Crossings {
    pub(super) from: u32,
    pub(super) to: u32,
    /// In the order of the ports to which the channels lead.
    pub(super) of_flits: Ends,
    /// In the order of the ports from which they come.
    pub(super) of_credits: Ends,
}

/// The two ends of channels, in some order.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) source: Column<u32>,
    pub(super) destination: Column<u32>,
}

impl Crossings {
    /// Finds the channels between tiles: one entry for each ordered pair of tiles between which there are any.
    pub(super) fn of_tiles(network: &Network, partition: &Partition, tiles: &[Addresses]) -> Vec<Arc<Self>> {
        if tiles.len() < 2 {
            return Vec::new();
        }
        let mut ends: Vec<Vec<(u32, u32)>> = vec![Vec::new(); tiles.len() * tiles.len()];
        for channel in (0..network.channel_count()).map(ChannelId) {
            if let Some([from, to]) = partition.crossing(network, channel) {
                let (source, destination) = (tiles[from].port_of(network.source(channel)), tiles[to].port_of(network.destination(channel)));
                ends[from * tiles.len() + to].push((source, destination));
            }
        }
        let pairs = (0..).zip(ends).filter(|(_, ends)| !ends.is_empty());
        pairs.map(|(pair, ends)| Arc::new(Self::new(pair / tiles.len() as u32, pair % tiles.len() as u32, ends))).collect()
    }

    /// No channels.
    pub(super) fn none() -> Self {
        let none = || Ends::of(&[]);
        Self { from: NONE, to: NONE, of_flits: none(), of_credits: none() }
    }

    fn new(from: u32, to: u32, mut ends: Vec<(u32, u32)>) -> Self {
        ends.sort_unstable();
        let of_credits = Ends::of(&ends);
        ends.sort_unstable_by_key(|&(_, destination)| destination);
        Self { from, to, of_flits: Ends::of(&ends), of_credits }
    }

    /// Port addresses that stand for the far ends of the channels in one of the two tiles: as many as fill whole words of slots.
    pub(super) fn ports_of_section<L: RouterLayout>(&self) -> u32 {
        let of_word = (1 << WORD_SHIFT >> L::Mask::SHIFT).max(1);
        (self.of_flits.source.len() as u32).next_multiple_of(of_word)
    }
}

impl Ends {
    fn of(ends: &[(u32, u32)]) -> Self {
        Self { source: ends.iter().map(|end| end.0).collect(), destination: ends.iter().map(|end| end.1).collect() }
    }
}
