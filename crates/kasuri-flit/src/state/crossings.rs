//! The channels from one tile to another, in orders that both know.
//!
//! Flits arrive in the order of the ports to which their channels lead, and credits in that of the ports from which they come. So the tile that
//! is left numbers the far ends of its channels as the other one does its own ports, and hands over as whole words what is due at 64 of them.

use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::WORD_SHIFT;
use crate::state::addresses::Addresses;
use crate::state::layout::RouterState;
use crate::state::share::Partition;
use kasuri_network::id::ChannelId;
use kasuri_network::memory::Column;
use kasuri_network::network::Network;
use std::sync::Arc;

/// The channels from one tile to another. All ports are addresses in the tile to which they belong.
#[derive(Debug)]
pub(crate) struct Crossings {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// In the order of the ports to which the channels lead.
    pub(crate) of_flits: Ends,
    /// In the order of the ports from which they come.
    pub(crate) of_credits: Ends,
}

/// The two ends of channels, in some order.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) source: Column<u32>,
    pub(crate) destination: Column<u32>,
}

impl Crossings {
    /// Finds the channels between tiles: one entry for each ordered pair of tiles between which there are any.
    pub(crate) fn of_tiles(network: &Network, partition: &Partition, tiles: &[Addresses]) -> Vec<Arc<Self>> {
        if tiles.len() < 2 {
            return Vec::new();
        }
        let mut ends: Vec<Vec<(u32, u32)>> = vec![Vec::new(); tiles.len() * tiles.len()];
        // A channel that is down keeps its ends, but no port leads to it.
        for channel in (0..network.channel_count()).map(ChannelId).filter(|&channel| !network.is_down(channel)) {
            if let Some([from, to]) = partition.crossing(network, channel) {
                let (source, destination) = (tiles[from].port_of(network.source(channel)), tiles[to].port_of(network.destination(channel)));
                ends[from * tiles.len() + to].push((source, destination));
            }
        }
        let pairs = (0..).zip(ends).filter(|(_, ends)| !ends.is_empty());
        pairs.map(|(pair, ends)| Arc::new(Self::new(pair / tiles.len() as u32, pair % tiles.len() as u32, ends))).collect()
    }

    /// No channels.
    pub(crate) fn none() -> Self {
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
    pub(crate) fn ports_of_section<L: RouterState>(&self) -> u32 {
        let of_word = (1 << WORD_SHIFT >> L::Mask::SHIFT).max(1);
        (self.of_flits.source.len() as u32).next_multiple_of(of_word)
    }
}

impl Ends {
    fn of(ends: &[(u32, u32)]) -> Self {
        Self { source: ends.iter().map(|end| end.0).collect(), destination: ends.iter().map(|end| end.1).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::layouts::plain::Plain;
    use crate::record::vc_mask::Wide;
    use crate::state::work::Work;
    use kasuri_network::network::{Link, NetworkBuilder, cables};

    /// Eight routers, each with a terminal and a link to every other.
    fn full_mesh() -> Network {
        let mut network = NetworkBuilder::new("full mesh");
        let routers: Vec<_> = (0..8).map(|_| network.add_router(8).unwrap()).collect();
        for (number, &router) in routers.iter().enumerate() {
            for (other, &next) in routers.iter().enumerate().skip(number + 1) {
                network.add_link((router, other as u16), (next, number as u16), Link::default());
            }
            network.add_terminal(router, number as u16, Link::default());
        }
        network.finish().unwrap()
    }

    /// Each channel between two tiles stands once in both orders, and one that is down in none.
    #[test]
    fn channels_that_are_up_stand_in_the_order_of_either_end() {
        let whole = full_mesh();
        let down = [cables(&whole)[3], cables(&whole)[9]];
        let mut counts = Vec::new();
        for network in [full_mesh(), whole.without(&down, &[])] {
            let partition = Partition::new(&network, 3, false, 1, || Work::expected(&network, &|_| true));
            let (_, all) = Addresses::of_tiles::<Plain<Wide>>(&network, &partition).unwrap();
            assert_eq!(all.len(), 6);
            let crossing = network.router_channels().filter(|&channel| partition.crossing(&network, channel).is_some()).count();
            assert_eq!(all.iter().map(|channels| channels.of_flits.source.len()).sum::<usize>(), crossing);
            counts.push(crossing);
            for channels in all {
                let pairs = |ends: &Ends| ends.source.iter().copied().zip(ends.destination.iter().copied()).collect::<Vec<_>>();
                let (mut flits, credits) = (pairs(&channels.of_flits), pairs(&channels.of_credits));
                assert!(flits.is_sorted_by_key(|ends| ends.1) && credits.is_sorted_by_key(|ends| ends.0));
                flits.sort_unstable();
                assert_eq!(flits, credits);
            }
        }
        assert!(counts[1] < counts[0], "what is down crosses a border: {counts:?}");
    }
}
