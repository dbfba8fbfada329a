//! Which routers and terminals a tile owns.

use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use std::ops::Range;

/// Ports of routers that take about as much work as a terminal.
const PORTS_OF_TERMINAL: u64 = 2;

/// The routers and the terminals of a tile, each a range of their numbers in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) routers: Range<u32>,
    pub(crate) terminals: Range<u32>,
}

impl Share {
    /// The terminal of a number within the tile.
    #[inline(always)]
    pub(crate) fn terminal(&self, own: u32) -> TerminalId {
        TerminalId(self.terminals.start + own)
    }
}

/// A network cut into tiles.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub(crate) shares: Vec<Share>,
}

impl Partition {
    /// Cuts a network into `tiles` tiles of about as many ports each, at most one for each router. A terminal goes with the router that it
    /// injects into, where terminals are numbered in the order of these; or all go to the first tile.
    pub(crate) fn new(network: &Network, tiles: u32, terminals_together: bool) -> Self {
        let routers = network.router_count();
        let tiles = tiles.clamp(1, routers.max(1));
        let ports_of_terminals = if terminals_together { PORTS_OF_TERMINAL * u64::from(network.terminal_count()) } else { 0 };
        let cuts = cuts_by_ports(network, tiles, ports_of_terminals);
        let mut terminals = vec![if terminals_together { network.terminal_count() } else { 0 }; cuts.len()];
        terminals[0] = 0;
        if tiles > 1 && !terminals_together {
            for terminal in (0..network.terminal_count()).map(TerminalId) {
                let router = network.injection_port(terminal).0.0;
                terminals[cuts.partition_point(|&cut| cut <= router)] += 1;
            }
            (1..terminals.len()).for_each(|cut| terminals[cut] += terminals[cut - 1]);
        }
        *terminals.last_mut().expect("there is a last cut") = network.terminal_count();
        let share = |tile: usize| Share { routers: cuts[tile - 1]..cuts[tile], terminals: terminals[tile - 1]..terminals[tile] };
        Self { shares: (1..cuts.len()).map(share).collect() }
    }

    /// The tile that owns one end of a channel.
    pub(crate) fn tile_of(&self, end: Endpoint) -> usize {
        match end {
            Endpoint::Router(router, _) => self.shares.partition_point(|share| share.routers.end <= router.0),
            Endpoint::Terminal(terminal) => self.shares.partition_point(|share| share.terminals.end <= terminal.0),
        }
    }

    /// The tiles at both ends of a channel, if they are two.
    pub(crate) fn crossing(&self, network: &Network, channel: ChannelId) -> Option<[usize; 2]> {
        let ends = [self.tile_of(network.source(channel)), self.tile_of(network.destination(channel))];
        (ends[0] != ends[1]).then_some(ends)
    }
}

/// The first router of each tile, and the number of all: each tile has a router, and about as many ports as the others. So many ports stand
/// for what the first one has besides.
fn cuts_by_ports(network: &Network, tiles: u32, in_first: u64) -> Vec<u32> {
    let ports = |router: u32| u64::from(network.port_count(RouterId(router)));
    let routers = network.router_count();
    // Ports of the tile that is being filled, and of all that are not full.
    let (mut cuts, mut inside, mut rest) = (vec![0], in_first, in_first + (0..routers).map(ports).sum::<u64>());
    let mut begun = 0;
    for router in 0..routers {
        let later = tiles - cuts.len() as u32;
        let is_full = inside * u64::from(later + 1) >= rest || routers - router == later;
        if later > 0 && router > begun && is_full {
            cuts.push(router);
            (begun, rest, inside) = (router, rest - inside, 0);
        }
        inside += ports(router);
    }
    cuts.push(routers);
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::network::{Link, NetworkBuilder};

    /// Routers in a row, with a terminal at every second one.
    fn row(routers: u32) -> Network {
        let mut network = NetworkBuilder::new("row");
        let link = Link::default();
        let ids: Vec<RouterId> = (0..routers).map(|_| network.add_router(3).unwrap()).collect();
        ids.windows(2).for_each(|pair| network.add_link((pair[0], 1), (pair[1], 0), link));
        ids.iter().step_by(2).for_each(|&router| {
            network.add_terminal(router, 2, link);
        });
        network.finish().unwrap()
    }

    #[test]
    fn every_router_and_terminal_has_one_tile_and_every_tile_a_router() {
        let network = row(11);
        for tiles in 1..15 {
            let partition = Partition::new(&network, tiles, false);
            assert_eq!(partition.shares.len() as u32, tiles.min(11));
            let (mut routers, mut terminals) = (0, 0);
            for share in &partition.shares {
                assert_eq!((share.routers.start, share.terminals.start), (routers, terminals));
                (routers, terminals) = (share.routers.end, share.terminals.end);
                assert!(!share.routers.is_empty());
            }
            assert_eq!((routers, terminals), (network.router_count(), network.terminal_count()));
            // Terminals go with their routers, so one channel in each direction crosses each border.
            let crossing = (0..network.channel_count()).filter(|&channel| partition.crossing(&network, ChannelId(channel)).is_some());
            assert_eq!(crossing.count(), 2 * (partition.shares.len() - 1));
        }
    }

    #[test]
    fn terminals_together_weigh_in_the_first_tile() {
        let network = row(11);
        for tiles in 1..15 {
            let Partition { shares } = Partition::new(&network, tiles, true);
            assert_eq!(shares.len() as u32, tiles.min(11));
            assert_eq!(shares.iter().map(|share| share.routers.len() as u32).sum::<u32>(), network.router_count());
            assert_eq!(shares[0].terminals, 0..network.terminal_count());
            assert!(shares[1..].iter().all(|share| share.terminals.is_empty() && !share.routers.is_empty()));
        }
        // Six terminals weigh as much as four of eleven routers.
        let routers: Vec<usize> = Partition::new(&network, 3, true).shares.iter().map(|share| share.routers.len()).collect();
        assert_eq!(routers, [1, 5, 5]);
    }
}
