//! Which routers and terminals a tile owns.

use crate::state::work::{Work, neighbours};
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use std::ops::Range;
use std::sync::Arc;

/// The routers and the terminals of a tile, by their numbers in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Ascending.
    pub(crate) routers: Arc<[u32]>,
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
    /// By router: its tile, and its number among the tile's routers.
    tile_of_router: Arc<[u32]>,
    pub(crate) own_number: Arc<[u32]>,
}

impl Partition {
    /// Cuts a network into `tiles` tiles of about as much work each, at most one for each router. Terminals are cut in the order of their
    /// numbers, or all go to the first tile; the router at which one enters goes with it, so pods of a tree, groups of a dragonfly and
    /// blocks of a torus stay together. So do the terminals of a host, of which there are `of_host`. Routers without terminals go where most
    /// of their neighbours are.
    pub(crate) fn new(network: &Network, tiles: u32, terminals_together: bool, of_host: u32, work: impl FnOnce() -> Work) -> Self {
        let tiles = tiles.clamp(1, network.router_count().max(1)) as usize;
        if tiles == 1 {
            return Self::whole(network);
        }
        let mut cut = Cut::new(network, tiles, work());
        cut.take_terminals(terminals_together, of_host);
        cut.take_neighbours();
        cut.leave_none_empty();
        cut.partition()
    }

    /// A network in one tile.
    fn whole(network: &Network) -> Self {
        let routers: Arc<[u32]> = (0..network.router_count()).collect();
        let share = Share { routers: Arc::clone(&routers), terminals: 0..network.terminal_count() };
        Self { shares: vec![share], tile_of_router: vec![0; routers.len()].into(), own_number: routers }
    }

    /// The tile that owns one end of a channel.
    pub(crate) fn tile_of(&self, end: Endpoint) -> usize {
        match end {
            Endpoint::Router(router, _) => self.tile_of_router[router.index()] as usize,
            Endpoint::Terminal(terminal) => self.shares.partition_point(|share| share.terminals.end <= terminal.0),
        }
    }

    /// The work of the tile that has most.
    pub(crate) fn greatest_work(&self, work: &Work) -> u64 {
        let of_share = |share: &Share| {
            let routers = share.routers.iter().map(|&router| work.of_router[router as usize]);
            routers.chain(share.terminals.clone().map(|terminal| work.of_terminal[terminal as usize])).sum()
        };
        self.shares.iter().map(of_share).max().unwrap_or(0)
    }

    /// The tiles at both ends of a channel, if they are two.
    pub(crate) fn crossing(&self, network: &Network, channel: ChannelId) -> Option<[usize; 2]> {
        let ends = [self.tile_of(network.source(channel)), self.tile_of(network.destination(channel))];
        (ends[0] != ends[1]).then_some(ends)
    }
}

/// Belongs to no tile yet.
const NOWHERE: u32 = u32::MAX;

/// A network that is being cut.
struct Cut<'n> {
    network: &'n Network,
    /// By router.
    tile_of: Vec<u32>,
    /// By terminal, and by router: its work.
    of_terminal: Vec<u64>,
    of_router: Vec<u64>,
    /// By tile: its work, and the end of its terminals.
    work: Vec<u64>,
    terminals: Vec<u32>,
    all: u64,
}

impl<'n> Cut<'n> {
    fn new(network: &'n Network, tiles: usize, work: Work) -> Self {
        let (all, Work { of_terminal, of_router }) = (work.all(), work);
        Self {
            network,
            tile_of: vec![NOWHERE; of_router.len()],
            of_terminal,
            of_router,
            work: vec![0; tiles],
            terminals: vec![0; tiles],
            all,
        }
    }

    fn take(&mut self, router: u32, tile: usize) {
        self.tile_of[router as usize] = tile as u32;
        self.work[tile] += self.of_router[router as usize];
    }

    /// Cuts the terminals, and the routers with them: each tile takes its part of all that have terminals, or of what the first tile, which
    /// has all terminals, leaves to the others.
    fn take_terminals(&mut self, together: bool, of_host: u32) {
        let (tiles, terminals) = (self.work.len(), self.network.terminal_count());
        let router_of = |terminal: u32| self.network.injection_port(TerminalId(terminal)).0.0;
        let mut seen = vec![false; self.tile_of.len()];
        let homes: Vec<(u32, bool)> =
            (0..terminals).map(router_of).map(|router| (router, !std::mem::replace(&mut seen[router as usize], true))).collect();
        let of_terminals: u64 = self.of_terminal.iter().sum();
        if together {
            self.work[0] = of_terminals;
            self.of_terminal.fill(0);
        }
        let of_homes: u64 = homes.iter().filter(|(_, is_new)| *is_new).map(|&(router, _)| self.of_router[router as usize]).sum();
        let mut rest = of_terminals + of_homes;
        let mut tile = 0;
        for (terminal, (router, is_new)) in (0..).zip(homes) {
            let is_full = self.work[tile] * (tiles - tile) as u64 >= rest;
            if is_new && is_full && terminal % of_host == 0 && tile + 1 < tiles && self.work[tile] > 0 {
                rest -= self.work[tile];
                self.terminals[tile] = terminal;
                tile += 1;
            }
            if is_new {
                self.take(router, tile);
            }
            self.work[tile] += self.of_terminal[terminal as usize];
        }
        self.terminals[tile..].fill(terminals);
        if together {
            self.terminals.fill(terminals);
        }
    }

    /// Routers that have no tile go, beginning next to those that have, to the tile of most of their neighbours that is not full.
    fn take_neighbours(&mut self) {
        let most = self.all.div_ceil(self.work.len() as u64);
        let mut left: Vec<u32> = (0..self.tile_of.len() as u32).filter(|&router| self.tile_of[router as usize] == NOWHERE).collect();
        while !left.is_empty() {
            let before = left.len();
            left.retain(|&router| {
                let neighbours = self.neighbours(router);
                let has_any = neighbours.iter().any(|&count| count > 0);
                if has_any {
                    self.take(router, self.best(&neighbours, most));
                }
                !has_any
            });
            if left.len() == before {
                // Nothing leads to the first of them.
                let router = left.remove(0);
                self.take(router, self.best(&vec![0; self.work.len()], most));
            }
        }
    }

    /// By tile: the channels from a router to routers of it.
    fn neighbours(&self, router: u32) -> Vec<u32> {
        let mut counts = vec![0; self.work.len()];
        for next in neighbours(self.network, router) {
            if let Some(count) = counts.get_mut(self.tile_of[next.index()] as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// The tile that is not full with most of so many neighbours, among equals the one with the least work; the one with the least work if
    /// all are full.
    fn best(&self, neighbours: &[u32], most: u64) -> usize {
        let rank = |&tile: &usize| {
            let is_full = self.work[tile] >= most;
            (is_full, if is_full { 0 } else { u32::MAX - neighbours[tile] }, self.work[tile])
        };
        (0..self.work.len()).min_by_key(rank).unwrap_or(0)
    }

    /// Each tile has a router.
    fn leave_none_empty(&mut self) {
        let mut counts = vec![0; self.work.len()];
        self.tile_of.iter().for_each(|&tile| counts[tile as usize] += 1);
        for tile in 0..counts.len() {
            if counts[tile] == 0 {
                let (richest, _) = (0..).zip(&counts).max_by_key(|(_, count)| **count).expect("there are tiles");
                let given = self.tile_of.iter().rposition(|&other| other == richest).expect("it has routers");
                self.tile_of[given] = tile as u32;
                (counts[richest as usize], counts[tile]) = (counts[richest as usize] - 1, 1);
            }
        }
    }

    fn partition(self) -> Partition {
        let mut routers: Vec<Vec<u32>> = vec![Vec::new(); self.work.len()];
        let mut own_number = Vec::with_capacity(self.tile_of.len());
        for (router, &tile) in (0..).zip(&self.tile_of) {
            own_number.push(routers[tile as usize].len() as u32);
            routers[tile as usize].push(router);
        }
        let begins = std::iter::once(0).chain(self.terminals.iter().copied());
        let terminals = begins.zip(&self.terminals).map(|(begin, &end)| begin..end);
        let shares = routers.into_iter().zip(terminals).map(|(routers, terminals)| Share { routers: routers.into(), terminals });
        Partition { shares: shares.collect(), tile_of_router: self.tile_of.into(), own_number: own_number.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::id::RouterId;
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

    /// Pods of two leaf routers with two terminals each and two routers above, under four routers that lead to every pod.
    fn tree(pods: u32) -> Network {
        let mut network = NetworkBuilder::new("tree");
        let link = Link::default();
        let leaves: Vec<RouterId> = (0..2 * pods).map(|_| network.add_router(4).unwrap()).collect();
        let middles: Vec<RouterId> = (0..2 * pods).map(|_| network.add_router(4).unwrap()).collect();
        let tops: Vec<RouterId> = (0..4).map(|_| network.add_router(pods as usize).unwrap()).collect();
        for pod in 0..pods as usize {
            for (leaf, middle) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                network.add_link((leaves[2 * pod + leaf], 2 + middle as u16), (middles[2 * pod + middle], leaf as u16), link);
            }
            for (middle, top) in [(0, 0), (0, 1), (1, 2), (1, 3)] {
                network.add_link((middles[2 * pod + middle], 2 + top as u16 % 2), (tops[top], pod as u16), link);
            }
            for leaf in 0..2 {
                (0..2).for_each(|port| {
                    network.add_terminal(leaves[2 * pod + leaf], port, link);
                });
            }
        }
        network.finish().unwrap()
    }

    fn check(network: &Network, tiles: u32, together: bool) -> Partition {
        let partition = Partition::new(network, tiles, together, 1, || Work::expected(network, &|_| true));
        assert_eq!(partition.shares.len() as u32, tiles.min(network.router_count()));
        let mut owners = vec![0; network.router_count() as usize];
        let mut terminals = 0;
        for (tile, share) in partition.shares.iter().enumerate() {
            assert!(!share.routers.is_empty() && share.routers.is_sorted());
            for (own, &router) in (0..).zip(share.routers.iter()) {
                owners[router as usize] += 1;
                assert_eq!(partition.own_number[router as usize], own);
                assert_eq!(partition.tile_of(Endpoint::Router(RouterId(router), 0)), tile);
            }
            assert_eq!(share.terminals.start, terminals);
            terminals = share.terminals.end;
            share.terminals.clone().for_each(|terminal| assert_eq!(partition.tile_of(Endpoint::Terminal(TerminalId(terminal))), tile));
        }
        assert!(owners.iter().all(|&count| count == 1));
        assert_eq!(terminals, network.terminal_count());
        partition
    }

    #[test]
    fn every_router_and_terminal_has_one_tile_and_every_tile_a_router() {
        for network in [row(1), row(11), tree(2), tree(5)] {
            for tiles in 1..15 {
                check(&network, tiles, false);
                let together = check(&network, tiles, true);
                assert_eq!(together.shares[0].terminals, 0..network.terminal_count());
            }
        }
    }

    /// A border between pods cuts the channels to the routers that lead to all pods, and no others.
    #[test]
    fn pods_of_a_tree_stay_together() {
        let network = tree(8);
        let partition = check(&network, 4, false);
        let is_top = |router: u32| router >= 32;
        for channel in (0..network.channel_count()).map(ChannelId) {
            if partition.crossing(&network, channel).is_some() {
                let ends = [network.source(channel), network.destination(channel)];
                assert!(ends.iter().any(|end| matches!(end, Endpoint::Router(router, _) if is_top(router.0))));
            }
        }
        let tops = |share: &Share| share.routers.iter().filter(|&&router| is_top(router)).count();
        assert!(partition.shares.iter().all(|share| share.terminals.len() == 8 && share.routers.len() == 9 && tops(share) == 1));
    }

    /// Of a job on the first pods every tile has its part, and of what those lead to.
    #[test]
    fn who_is_busy_is_shared_out() {
        let network = tree(8);
        for busy in [8, 16] {
            let partition = Partition::new(&network, 2, false, 1, || Work::expected(&network, &|terminal| terminal.0 < busy));
            let of_first = partition.shares[0].terminals.end;
            // Those of which nothing is expected weigh a little.
            assert!((busy / 2..busy / 2 + 3).contains(&of_first), "{of_first} of {busy}");
            let leaves = |share: &Share| share.routers.iter().filter(|&&router| router < busy / 2).count();
            assert!(partition.shares.iter().all(|share| leaves(share) >= busy as usize / 4 - 1), "{partition:?}");
        }
    }

    /// Terminals of the first half of a tree send five times as much as others: seen at work, the tree is cut elsewhere.
    #[test]
    fn measured_work_is_shared_out() {
        let network = tree(8);
        let expected = Partition::new(&network, 2, false, 1, || Work::expected(&network, &|_| true));
        assert_eq!(expected.shares[0].terminals, 0..16);
        let cycles = 100;
        let flits: Vec<u64> = (0..network.channel_count())
            .map(|channel| match network.source(ChannelId(channel)) {
                Endpoint::Terminal(terminal) if terminal.0 < 16 => 50,
                Endpoint::Router(router, _) if router.0 < 8 => 50,
                _ => 10,
            })
            .collect();
        let work = Work::measured(&network, &flits, cycles);
        let measured = Partition::new(&network, 2, false, 1, || work.clone());
        assert!(measured.shares[0].terminals.end < 13, "{:?}", measured.shares);
        assert!(10 * measured.greatest_work(&work) < 9 * expected.greatest_work(&work));
        assert!(2 * measured.greatest_work(&work) < work.all() * 11 / 10);
    }

    #[test]
    fn the_terminals_of_a_host_have_one_tile() {
        for (network, of_host) in [(tree(5), 3), (tree(5), 4), (tree(4), 8), (row(11), 4), (tree(2), 100)] {
            for tiles in 1..9 {
                let partition = Partition::new(&network, tiles, false, of_host, || Work::expected(&network, &|_| true));
                let ends: Vec<u32> = partition.shares.iter().map(|share| share.terminals.end).collect();
                assert!(ends.iter().all(|&end| end % of_host == 0 || end == network.terminal_count()), "{of_host}: {ends:?}");
                assert!(partition.shares.iter().all(|share| !share.routers.is_empty()));
            }
        }
    }

    #[test]
    fn terminals_together_weigh_in_the_first_tile() {
        // Six terminals weigh as much as four of eleven routers.
        let routers: Vec<usize> = check(&row(11), 3, true).shares.iter().map(|share| share.routers.len()).collect();
        assert!(routers[0] < routers[1] && routers[0] < routers[2], "{routers:?}");
    }
}
