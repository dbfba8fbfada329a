//! What predictors know of a fat tree, from the network's labels.

use crate::id::RouterId;
use crate::network::Network;

/// A (p, q, r) fat tree.
#[derive(Debug)]
pub(super) struct Tree<'n> {
    /// Links up and down of a router, levels of routers.
    pub(super) up: u32,
    pub(super) down: u32,
    pub(super) levels: u32,
    level: &'n [u32],
}

impl<'n> Tree<'n> {
    /// The fat tree that a network is, if it is one.
    pub(super) fn of(network: &'n Network) -> Option<Self> {
        let labels = network.labels();
        let (Some(&[up, down, levels, _]), Some(level)) = (labels.attribute("fat_tree"), labels.router("level")) else { return None };
        Some(Self { up, down, levels, level })
    }

    /// The level of a router: 1 for the leaves.
    pub(super) fn level(&self, router: RouterId) -> u32 {
        self.level[router.index()]
    }

    /// Is it a router of the top level, all of whose ports lead down?
    pub(super) fn is_top(&self, router: RouterId) -> bool {
        self.level(router) == self.levels
    }

    /// Moves up of a packet: to the least common ancestor level of two terminals, less 1.
    pub(super) fn moves_up(&self, source: u32, destination: u32) -> u32 {
        let (mut source, mut destination, mut moves) = (source / self.down, destination / self.down, 0);
        while source != destination && moves + 1 < self.levels {
            (source, destination, moves) = (source / self.down, destination / self.down, moves + 1);
        }
        moves
    }
}
