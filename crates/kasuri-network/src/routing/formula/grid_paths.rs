//! Shortest paths on meshes and tori by coordinates: what a table would say, without the table.

use super::path_formula::PathFormula;
use crate::id::{Port, RouterId};
use crate::network::{Endpoint, Network};
use crate::routing::grid::coordinates;
use crate::routing::metric::Metric;

/// More dimensions than these have too many sets of ports to list: 4 to the power of their number.
const MAX_DIMENSIONS: usize = 6;

/// The paths in one dimension, as bits: none (there already), up, down, or both (half-way round a ring).
const UP: u32 = 1;
const DOWN: u32 = 2;

/// A whole mesh or torus in which all channels of a dimension are alike. There the distance is the sum of those of the dimensions, so a
/// port lies on a shortest path if it shortens its own dimension.
#[derive(Debug)]
pub(super) struct GridPaths {
    dimensions: Vec<u32>,
    wraps: bool,
    /// Shape `[routers, dimensions]`.
    coordinates: Vec<u32>,
    /// Where the ports of each set begin; the number of a set has two bits for each dimension.
    starts: Vec<u32>,
    ports: Vec<Port>,
}

impl GridPaths {
    /// The paths of a network, if it is a whole mesh or torus whose shortest paths are those of its coordinates.
    pub(super) fn of(network: &Network, metric: Metric) -> Option<Box<dyn PathFormula>> {
        let labels = network.labels();
        let (dimensions, wrap) = (labels.attribute("dimensions")?, labels.attribute("wrap")?);
        let wraps = wrap == [1];
        let routers = dimensions.iter().try_fold(1u32, |product, &radix| product.checked_mul(radix))?;
        if routers != network.router_count() || dimensions.len() > MAX_DIMENSIONS || labels.router("group").is_some() {
            return None;
        }
        let coordinates = coordinates(network, dimensions.len())?;
        let (starts, ports) = port_sets(dimensions.len());
        let grid = Self { dimensions: dimensions.to_vec(), wraps, coordinates, starts, ports };
        grid.describes(network, metric).then(|| Box::new(grid) as Box<dyn PathFormula>)
    }

    /// Has the network the channels of this grid and no others, with one latency in each dimension where that counts?
    fn describes(&self, network: &Network, metric: Metric) -> bool {
        let mut channels = 0;
        let mut latencies = vec![None; self.dimensions.len()];
        for router in (0..network.router_count()).map(RouterId) {
            let mut stride = 1;
            for (dimension, &radix) in self.dimensions.iter().enumerate() {
                let here = router.0 / stride % radix;
                if self.coordinates_of(router)[dimension] != here {
                    return false;
                }
                for (direction, there) in [(0, here + 1), (1, here.wrapping_sub(1))] {
                    if !self.wraps && there >= radix {
                        continue;
                    }
                    let there = if there == u32::MAX { radix - 1 } else { there % radix };
                    let neighbour = RouterId(router.0 - here * stride + there * stride);
                    let Some(channel) = network.output_channel(router, (2 * dimension + direction) as Port) else { return false };
                    if !matches!(network.destination(channel), Endpoint::Router(to, _) if to == neighbour) {
                        return false;
                    }
                    let latency = network.link(channel).latency;
                    if metric == Metric::Latency && *latencies[dimension].get_or_insert(latency) != latency {
                        return false;
                    }
                    channels += 1;
                }
                stride *= radix;
            }
        }
        network.router_channels().count() == channels
    }

    fn coordinates_of(&self, router: RouterId) -> &[u32] {
        let count = self.dimensions.len();
        &self.coordinates[router.index() * count..][..count]
    }

    /// Steps up from one coordinate to another, and round the ring in the other direction; the longer of the two is `None`.
    fn steps(&self, dimension: usize, here: u32, there: u32) -> (Option<u32>, Option<u32>) {
        if !self.wraps {
            return (there.checked_sub(here), here.checked_sub(there));
        }
        let radix = self.dimensions[dimension];
        let up = if there >= here { there - here } else { there + radix - here };
        let down = if up == 0 { 0 } else { radix - up };
        ((up <= down).then_some(up), (down <= up).then_some(down))
    }
}

impl PathFormula for GridPaths {
    fn ports(&self, router: RouterId, target: RouterId) -> &[Port] {
        let (here, there) = (self.coordinates_of(router), self.coordinates_of(target));
        let mut set = 0;
        for dimension in (0..self.dimensions.len()).rev() {
            let (up, down) = self.steps(dimension, here[dimension], there[dimension]);
            let leads = |steps: Option<u32>, bit: u32| if steps.is_some_and(|steps| steps > 0) { bit } else { 0 };
            set = set << 2 | leads(up, UP) | leads(down, DOWN);
        }
        &self.ports[self.starts[set as usize] as usize..self.starts[set as usize + 1] as usize]
    }

    fn hops(&self, router: RouterId, target: RouterId) -> u32 {
        let (here, there) = (self.coordinates_of(router), self.coordinates_of(target));
        let steps = |dimension: usize| {
            let (up, down) = self.steps(dimension, here[dimension], there[dimension]);
            up.or(down).unwrap_or(0)
        };
        (0..self.dimensions.len()).map(steps).sum()
    }

    fn diameter(&self) -> u32 {
        self.dimensions.iter().map(|&radix| if self.wraps { radix / 2 } else { radix - 1 }).sum()
    }

    fn bytes(&self) -> u64 {
        (4 * (self.coordinates.len() + self.starts.len()) + 2 * self.ports.len()) as u64
    }
}

/// The ports of each set of paths: port 2 d leads up in dimension d, port 2 d + 1 down.
fn port_sets(dimensions: usize) -> (Vec<u32>, Vec<Port>) {
    let (mut starts, mut ports) = (vec![0], Vec::new());
    for set in 0..1u32 << (2 * dimensions) {
        ports.extend((0..2 * dimensions as Port).filter(|port| set >> port & 1 == 1));
        starts.push(ports.len() as u32);
    }
    (starts, ports)
}

#[cfg(test)]
mod tests {
    use super::super::tests::agrees_with_a_search;
    use super::*;
    use crate::topology::mesh::Mesh;
    use crate::topology::torus::Torus;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};
    use proptest::prelude::*;

    proptest! {
        /// On every grid the coordinates give the ports and hops that a search from each target finds.
        #[test]
        fn coordinates_say_what_a_search_finds(
            dimensions in prop::collection::vec(2u32..6, 1..4),
            wraps: bool,
            by_latency: bool,
        ) {
            let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
            let network = if wraps {
                Torus { dimensions: dimensions.clone(), concentration: 1 }.build(&context)
            } else {
                Mesh { dimensions: dimensions.clone(), concentration: 1 }.build(&context)
            }.unwrap();
            let metric = if by_latency { Metric::Latency } else { Metric::Hops };
            let grid = GridPaths::of(&network, metric).expect("a whole grid");
            agrees_with_a_search(&network, metric, &*grid);
        }
    }
}
