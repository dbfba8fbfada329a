//! What predictors know of a mesh or torus, from the network's labels.

use crate::id::{Port, RouterId};
use crate::network::Network;

/// A mesh or torus: port 2d leads to the next higher coordinate of dimension d, 2d + 1 to the lower, terminals follow.
#[derive(Debug)]
pub(super) struct Grid<'n> {
    /// Routers in each dimension.
    pub(super) radix: &'n [u32],
    /// Does each dimension close into a ring?
    pub(super) wraps: bool,
    coordinates: Vec<&'n [u32]>,
}

impl<'n> Grid<'n> {
    /// The grid that a network is, if it is one.
    pub(super) fn of(network: &'n Network) -> Option<Self> {
        let labels = network.labels();
        let radix = labels.attribute("dimensions")?;
        let wraps = labels.attribute("wrap")?.first() == Some(&1);
        let coordinates: Option<Vec<_>> = (0..radix.len()).map(|dimension| labels.router(&format!("coordinate.{dimension}"))).collect();
        Some(Self { radix, wraps, coordinates: coordinates? })
    }

    /// The dimension of a port, `None` for a terminal's.
    pub(super) fn dimension(&self, port: Port) -> Option<usize> {
        let dimension = usize::from(port / 2);
        (dimension < self.radix.len()).then_some(dimension)
    }

    /// Where a router stands in a dimension.
    pub(super) fn coordinate(&self, router: RouterId, dimension: usize) -> u32 {
        self.coordinates[dimension][router.index()]
    }

    /// The output opposite to an input port between routers.
    pub(super) fn straight(&self, input: Port) -> Option<Port> {
        self.dimension(input).map(|_| input ^ 1)
    }
}
