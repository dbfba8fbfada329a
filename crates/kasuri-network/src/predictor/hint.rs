//! Hint bits in front of a packet, by which a router sees before the packet leaves its buffer that a prediction is wrong.
//!
//! Fat trees: the number of moves up, ceil(log2 levels) bits. A router of level l that predicts "up" for a packet from below is
//! right exactly if that number is at least l. Nothing is said of moves down. Meshes and tori: the hops in each dimension with
//! their sign, ceil(log2 radix) + 1 bits each; a guess along a dimension is wrong if no hop is left there.

use super::grid::Grid;
use super::tree::Tree;
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;

/// The hint bits of a network.
#[derive(Debug)]
pub struct Hint<'n>(Kind<'n>);

#[derive(Debug)]
enum Kind<'n> {
    /// Moves up.
    Tree(Tree<'n>),
    /// Hops left, and the router of each terminal.
    Grid(Grid<'n>, &'n Network),
}

impl<'n> Hint<'n> {
    /// The hint bits of a network.
    ///
    /// # Errors
    /// None are worked out for networks of this kind.
    pub fn of(network: &'n Network) -> Result<Self, String> {
        if let Some(tree) = Tree::of(network) {
            return Ok(Self(Kind::Tree(tree)));
        }
        match Grid::of(network) {
            Some(grid) => Ok(Self(Kind::Grid(grid, network))),
            None => Err(format!(
                "is \"hint\", but hint bits are worked out for fat trees, meshes and tori only, not for {}; choose \"kill\" or \"forward\"",
                network.name()
            )),
        }
    }

    /// Bits in front of each packet.
    pub fn bits(&self) -> u32 {
        let digits = |values: u32| values.next_power_of_two().trailing_zeros();
        match &self.0 {
            Kind::Tree(tree) => digits(tree.levels),
            Kind::Grid(grid, _) => grid.radix.iter().map(|&radix| digits(radix) + 1).sum(),
        }
    }

    /// Do the bits of a packet show that an output is wrong?
    pub fn shows_wrong(&self, router: RouterId, output: Port, source: TerminalId, destination: TerminalId) -> bool {
        match &self.0 {
            Kind::Tree(tree) => {
                let is_up = !tree.is_top(router) && u32::from(output) >= tree.down;
                is_up && tree.moves_up(source.0, destination.0) < tree.level(router)
            }
            Kind::Grid(grid, network) => {
                let end = network.ejection_port(destination).0;
                grid.dimension(output).is_some_and(|dimension| grid.coordinate(router, dimension) == grid.coordinate(end, dimension))
            }
        }
    }
}
