//! One dimension after the other on grids: what `dimension-order`, `o1turn`, `two-phase` and `ugal-ordered` share.

use super::contract::RoutingError;
use super::hop::VirtualChannels;
use crate::id::{Port, RouterId};
use crate::network::Network;

/// A network whose routers have coordinates, and the port towards any other router dimension by dimension. Tori are no grids
/// here: their path depends on where a packet has entered a ring.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    dimensions: Vec<u32>,
    /// Shape `[routers, dimensions]`.
    coordinates: Vec<u32>,
    links: Links,
    /// The first port towards another router.
    first_port: u32,
}

/// What joins routers that differ in one coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Links {
    /// Neighbours in a line: two ports for each dimension.
    Line,
    /// Neighbours in a line, and express links of half its length along the edges of a square, at the ports that lead out of it.
    Express,
    /// All others: one port less than routers for each dimension.
    Full,
}

/// In which order dimensions are corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Dimension 0 first.
    Ascending,
    /// Dimension 0 last.
    Descending,
}

/// A step from a router to the next one of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) port: Port,
    /// Is it towards lower coordinates?
    pub(super) falls: bool,
}

impl Grid {
    /// The grid of a mesh, a concentrated mesh or a flattened butterfly. `express`: take the express links of a concentrated
    /// mesh.
    ///
    /// # Errors
    /// The network is none of them, or has no express links that could be taken.
    pub(super) fn of(network: &Network, routing: &'static str, express: bool) -> Result<Self, RoutingError> {
        let mismatch = |problem: &str| RoutingError::Mismatch { routing, network: network.name().to_owned(), problem: problem.to_owned() };
        let labels = network.labels();
        let (dimensions, links) = if let Some(dimensions) = labels.attribute("flattened_butterfly") {
            (dimensions.to_vec(), Links::Full)
        } else if let Some(&[radix]) = labels.attribute("concentrated_mesh") {
            (vec![radix; 2], if express { Links::Express } else { Links::Line })
        } else {
            let dimensions = labels.attribute("dimensions").filter(|_| labels.attribute("wrap") == Some(&[0]));
            let dimensions = dimensions.ok_or_else(|| mismatch("it needs a mesh, a concentrated mesh or a flattened butterfly"))?;
            (dimensions.to_vec(), Links::Line)
        };
        if express && links != Links::Express {
            return Err(mismatch("`express` needs the express links of a concentrated mesh"));
        }
        let first_port = labels.attribute("first_link_port").map_or(0, |values| values[0]);
        let coordinates = coordinates(network, dimensions.len()).ok_or_else(|| mismatch("its routers have no coordinates"))?;
        Ok(Self { dimensions, coordinates, links, first_port })
    }

    /// The port towards `there`; `None` there.
    pub(super) fn port(&self, here: RouterId, there: RouterId, order: Order) -> Option<Port> {
        let (here, there) = (self.coordinates_of(here), self.coordinates_of(there));
        let differs = |&dimension: &usize| here[dimension] != there[dimension];
        let dimension = match order {
            Order::Ascending => (0..self.dimensions.len()).find(differs),
            Order::Descending => (0..self.dimensions.len()).rev().find(differs),
        }?;
        let step = match self.links {
            Links::Line => line_port(dimension, here, there),
            Links::Express => self.express_port(dimension, here, there).unwrap_or_else(|| line_port(dimension, here, there)),
            Links::Full => {
                let before: u32 = self.dimensions[..dimension].iter().map(|radix| radix - 1).sum();
                let to = there[dimension];
                before + to - u32::from(to > here[dimension])
            }
        };
        Some((self.first_port + step) as Port)
    }

    /// The express link along the edge on which both stand, if they are at least its length apart. It is the port by which the
    /// other dimension would leave the square.
    fn express_port(&self, dimension: usize, here: &[u32], there: &[u32]) -> Option<u32> {
        let (radix, other) = (self.dimensions[0], 1 - dimension);
        if here[dimension].abs_diff(there[dimension]) < radix / 2 {
            return None;
        }
        match here[other] {
            0 => Some(2 * other as u32 + 1),
            edge if edge == radix - 1 => Some(2 * other as u32),
            _ => None,
        }
    }

    /// Are its routers joined in lines, so that they are neighbours of their neighbours alone?
    pub(super) fn is_of_lines(&self) -> bool {
        self.links != Links::Full
    }

    /// The step towards `there` in one dimension of lines of routers; `None` if the two do not differ in it.
    pub(super) fn step(&self, here: RouterId, there: RouterId, dimension: usize) -> Option<Step> {
        debug_assert!(self.is_of_lines());
        let (here, there) = (self.coordinates_of(here), self.coordinates_of(there));
        let port = (self.first_port + line_port(dimension, here, there)) as Port;
        (here[dimension] != there[dimension]).then_some(Step { port, falls: there[dimension] < here[dimension] })
    }

    /// The dimensions in which two routers differ.
    pub(super) fn differing(&self, one: RouterId, other: RouterId) -> u32 {
        self.coordinates_of(one).iter().zip(self.coordinates_of(other)).map(|(one, other)| u32::from(one != other)).sum()
    }

    /// The dimension that a port between routers of a flattened butterfly leads along.
    pub(super) fn dimension_of(&self, port: Port) -> usize {
        let mut rest = u32::from(port) - self.first_port;
        self.dimensions.iter().take_while(|&&radix| rest.checked_sub(radix - 1).map(|less| rest = less).is_some()).count()
    }

    /// A router's coordinates.
    pub(super) fn coordinates_of(&self, router: RouterId) -> &[u32] {
        let count = self.dimensions.len();
        &self.coordinates[router.index() * count..][..count]
    }

    /// The routers of each dimension.
    pub(super) fn dimensions(&self) -> &[u32] {
        &self.dimensions
    }

    /// The router with these coordinates.
    pub(super) fn router(&self, coordinates: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator) -> RouterId {
        let high_first = coordinates.rev().zip(self.dimensions.iter().rev());
        RouterId(high_first.fold(0, |number, (coordinate, radix)| number * radix + coordinate))
    }
}

/// The port of a line of routers: even up, odd down.
fn line_port(dimension: usize, here: &[u32], there: &[u32]) -> u32 {
    2 * dimension as u32 + u32::from(there[dimension] < here[dimension])
}

/// The routers' coordinates, shape `[routers, dimensions]`, if the network has them.
pub(super) fn coordinates(network: &Network, dimensions: usize) -> Option<Vec<u32>> {
    let mut coordinates = vec![0; dimensions * network.router_count() as usize];
    for dimension in 0..dimensions {
        let column = network.labels().router(&format!("coordinate.{dimension}"))?;
        for (router, &coordinate) in column.iter().enumerate() {
            coordinates[router * dimensions + dimension] = coordinate;
        }
    }
    Some(coordinates)
}

/// Two halves of a class's virtual channels. Of an odd number the middle one belongs to the lower half, or to both if they
/// `share` it, as in BookSim 2. One virtual channel is both.
pub(super) fn half(available: VirtualChannels, upper: bool, share: bool) -> VirtualChannels {
    let half = available.count() / 2;
    match (half, share, upper) {
        (0, ..) => available,
        (_, false, _) => available.class(u16::from(upper), 2),
        (_, true, false) => VirtualChannels { end: available.end - half, ..available },
        (_, true, true) => VirtualChannels { begin: available.begin + half, ..available },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ChannelId;
    use crate::network::Endpoint;
    use crate::topology::concentrated_mesh::ConcentratedMesh;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    /// The routers from one to another.
    fn path(network: &Network, grid: &Grid, from: u32, to: u32, order: Order) -> Vec<u32> {
        let (mut at, to) = (RouterId(from), RouterId(to));
        let mut path = vec![from];
        while let Some(port) = grid.port(at, to, order) {
            let channel: ChannelId = network.output_channel(at, port).unwrap();
            let Endpoint::Router(next, _) = network.destination(channel) else { panic!("a port of a terminal") };
            path.push(next.0);
            at = next;
        }
        path
    }

    /// On an 8 x 8 square: from the corner (0, 0) to (7, 2) by the express link to (4, 0), and on; from (1, 1) there is none.
    #[test]
    fn express_links_are_taken_along_the_edges() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let network = ConcentratedMesh { radix: 8 }.build(&context).unwrap();
        let express = Grid::of(&network, "test", true).unwrap();
        assert_eq!(path(&network, &express, 0, 23, Order::Ascending), [0, 4, 5, 6, 7, 15, 23]);
        assert_eq!(path(&network, &express, 0, 23, Order::Descending), [0, 8, 16, 17, 18, 19, 20, 21, 22, 23]);
        assert_eq!(path(&network, &express, 63, 24, Order::Ascending), [63, 59, 58, 57, 56, 24]);
        assert_eq!(path(&network, &express, 9, 15, Order::Ascending), [9, 10, 11, 12, 13, 14, 15]);
        let plain = Grid::of(&network, "test", false).unwrap();
        assert_eq!(path(&network, &plain, 0, 23, Order::Ascending).len(), 10);
    }

    #[test]
    fn the_middle_of_an_odd_number_belongs_to_the_lower_half_or_to_both() {
        let halves = |count: u16, share: bool| {
            let available = VirtualChannels { begin: 5, end: 5 + count };
            [false, true].map(|upper| half(available, upper, share)).map(|range| (range.begin - 5, range.end - 5))
        };
        assert_eq!(halves(3, false), [(0, 2), (2, 3)]);
        assert_eq!(halves(3, true), [(0, 2), (1, 3)]);
        assert_eq!(halves(5, true), [(0, 3), (2, 5)]);
        for share in [false, true] {
            assert_eq!(halves(4, share), [(0, 2), (2, 4)]);
            assert_eq!(halves(1, share), [(0, 1), (0, 1)]);
        }
    }
}
