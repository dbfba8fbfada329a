//! Dimension-order routing on grids and tori, with dateline classes on the rings.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::grid::{Grid, Order, coordinates, half};
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use crate::id::{Port, RouterId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Corrects dimension 0 first, then 1, and so on, each the shorter path.
///
/// On a torus each dimension is a ring, whose dependency cycle is cut by two classes of virtual channels: the class is fixed
/// when the packet enters the dimension. Going up: class 1 if it will cross the wrap, else class 0; going down: class 1 if it
/// will not. A packet half-way round goes by `tie`.
///
/// On a concentrated mesh it takes the express links if `express` says so: where two routers of an edge are at least half its
/// length apart. On a flattened butterfly each dimension is one hop.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DimensionOrder {
    /// Which path at exactly half a ring.
    #[serde(default)]
    pub tie: Tie,
    /// Cut the rings by dateline classes. Without them a torus can deadlock.
    #[serde(default = "yes")]
    pub dateline: bool,
    /// Let both classes use the middle one of an odd number of virtual channels, as BookSim 2 does; otherwise it belongs to class 0. A head
    /// of one class may then wait behind a packet of the other, and the routing may deadlock.
    #[serde(default)]
    pub share_middle: bool,
    /// On a torus: class 1 for packets that will cross the wrap, class 0 for those that will cross the middle of the ring, and a
    /// coin for the others, so that both classes carry the same.
    #[serde(default)]
    pub balanced: bool,
    /// On a concentrated mesh: take the express links.
    #[serde(default)]
    pub express: bool,
    /// Divide the virtual channels by where packets go, so that no packet waits behind another's. Takes the place of dateline
    /// classes.
    #[serde(default)]
    pub isolation: Isolation,
}

/// How virtual channels are divided by destination. Ejection channels are not divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Not at all.
    #[default]
    None,
    /// A part for each terminal.
    Destination,
    /// A part for each coordinate that the destination's router can have in the dimension of the hop; meshes only.
    Coordinate,
}

fn yes() -> bool {
    true
}

/// The path of a packet whose destination is exactly half a ring away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// Always towards higher coordinates.
    Positive,
    /// The path that does not cross the wrap.
    NoWrap,
    /// A fair coin for each packet and dimension.
    #[default]
    Random,
}

impl Member for DimensionOrder {
    const NAME: &'static str = "dimension-order";
    const SUMMARY: &'static str = "grids and tori: one dimension after the other, the shorter direction, dateline classes on rings";
    const SOURCE: &'static str = "Dally and Towles (2004), sections 8.4 and 14.2; class rules as in BookSim 2 (dim_order, dim_order_bal, \
                                  dim_order_ni, dim_order_pni)";
    const EXAMPLE: &'static str = "tie = \"random\"";
}

impl RoutingAlgorithm for DimensionOrder {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let labels = network.labels();
        let (Some(dimensions), Some(wrap)) = (labels.attribute("dimensions"), labels.attribute("wrap")) else {
            return self.compile_grid(network);
        };
        if self.express {
            return self.compile_grid(network);
        }
        let wrap = wrap[0] == 1;
        let parts = match self.isolation {
            Isolation::None => 1,
            Isolation::Destination => network.terminal_count(),
            Isolation::Coordinate if wrap => {
                let problem = "is \"coordinate\"; on a torus give \"destination\" or \"none\"".to_owned();
                return Err(RoutingError::Parameter { key: "isolation".to_owned(), problem });
            }
            Isolation::Coordinate => dimensions.iter().copied().max().unwrap_or(1),
        };
        let coordinates = coordinates(network, dimensions.len()).ok_or_else(|| RoutingError::Mismatch {
            routing: Self::NAME,
            network: network.name().to_owned(),
            problem: "its routers have no coordinates".to_owned(),
        })?;
        Ok(Box::new(Compiled {
            network: Arc::clone(network),
            dimensions: dimensions.to_vec(),
            wrap,
            coordinates,
            tie: self.tie,
            dateline: self.dateline && wrap && parts == 1,
            share_middle: self.share_middle,
            balanced: self.balanced,
            isolation: self.isolation,
            parts,
        }))
    }
}

impl DimensionOrder {
    /// For networks that have neither rings nor one router for each place of a mesh.
    fn compile_grid(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        if self.isolation != Isolation::None {
            let problem = "divides the virtual channels of meshes and tori only".to_owned();
            return Err(RoutingError::Parameter { key: "isolation".to_owned(), problem });
        }
        let grid = Grid::of(network, Self::NAME, self.express)?;
        Ok(Box::new(OnGrid { network: Arc::clone(network), grid }))
    }
}

/// Dimension-order routing on a grid that is no plain mesh.
#[derive(Debug)]
struct OnGrid {
    network: Arc<Network>,
    grid: Grid,
}

impl Routing for OnGrid {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts { reads: Reads::DESTINATION_ROUTER, observes_congestion: false, ..RoutingFacts::default() }
    }

    fn route(&self, hop: &Hop, _state: &mut u32, _choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, ejection) = self.network.ejection_port(hop.destination);
        let port = self.grid.port(hop.router, router, Order::Ascending).unwrap_or(ejection);
        candidates.push(Candidate::new(port, hop.available));
    }
}

#[derive(Debug)]
pub(super) struct Compiled {
    network: Arc<Network>,
    dimensions: Vec<u32>,
    wrap: bool,
    /// Shape `[routers, dimensions]`.
    coordinates: Vec<u32>,
    tie: Tie,
    dateline: bool,
    share_middle: bool,
    balanced: bool,
    isolation: Isolation,
    /// How many parts the virtual channels are divided into by destination.
    parts: u32,
}

/// The packet's state: the dimension that it is in plus 1 (0: none yet), its direction and its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ring {
    dimension_plus_one: u32,
    down: bool,
    pub(super) class: u16,
}

impl Ring {
    /// Bits of a packed ring: the dimensions of a network of at most 2^28 terminals take 5.
    pub(super) const BITS: u32 = 7;

    pub(super) fn unpack(state: u32) -> Self {
        Self { dimension_plus_one: state >> 2, down: state & 2 != 0, class: (state & 1) as u16 }
    }

    /// The port of its direction.
    pub(super) fn port(self, dimension: usize) -> Port {
        2 * dimension as Port + Port::from(self.down)
    }

    pub(super) fn pack(self) -> u32 {
        self.dimension_plus_one << 2 | u32::from(self.down) << 1 | u32::from(self.class)
    }
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: if self.dateline { 2 } else { self.parts },
            reads: Reads { terminal: self.isolation == Isolation::Destination, ..Reads::DESTINATION_ROUTER },
            // The paths to one destination close no ring: who is half-way round goes to either side.
            is_deadlock_free: !self.wrap || self.dateline && !self.share_middle || self.isolation == Isolation::Destination,
            observes_congestion: false,
            restricts_entry: !self.wrap && self.parts > 1,
            ..RoutingFacts::default()
        }
    }

    fn entering(&self, hop: &Hop, _state: u32, _choice: &mut dyn Choice) -> VirtualChannels {
        if self.wrap { hop.available } else { self.part(hop, 0) }
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, port) = self.network.ejection_port(hop.destination);
        let Some(dimension) = self.dimension(hop.router, router) else {
            candidates.push(Candidate::new(port, hop.available));
            return;
        };
        if !self.wrap {
            let down = self.coordinate(router, dimension) < self.coordinate(hop.router, dimension);
            candidates.push(Candidate::new(2 * dimension as Port + Port::from(down), self.part(hop, dimension)));
            return;
        }
        let ring = self.on_ring(dimension, hop.router, router, Ring::unpack(*state), choice);
        *state = ring.pack();
        candidates.push(Candidate::new(ring.port(dimension), self.class(hop, ring.class)));
    }
}

impl Compiled {
    /// A torus whose packets are routed by another routing's rules.
    ///
    /// # Errors
    /// The network is no torus.
    pub(super) fn of_torus(network: &Arc<Network>, routing: &'static str) -> Result<Self, RoutingError> {
        let labels = network.labels();
        let dimensions = labels.attribute("dimensions").filter(|_| labels.attribute("wrap") == Some(&[1]));
        let parts = dimensions.and_then(|dimensions| Some((dimensions.to_vec(), coordinates(network, dimensions.len())?)));
        let (dimensions, coordinates) = parts.ok_or_else(|| RoutingError::Mismatch {
            routing,
            network: network.name().to_owned(),
            problem: "it needs a mesh, a torus, a concentrated mesh or a flattened butterfly".to_owned(),
        })?;
        Ok(Self {
            network: Arc::clone(network),
            dimensions,
            wrap: true,
            coordinates,
            tie: Tie::Random,
            dateline: true,
            share_middle: false,
            balanced: false,
            isolation: Isolation::None,
            parts: 1,
        })
    }

    fn coordinate(&self, router: RouterId, dimension: usize) -> u32 {
        self.coordinates[router.index() * self.dimensions.len() + dimension]
    }

    /// The first dimension in which two routers differ.
    pub(super) fn dimension(&self, here: RouterId, there: RouterId) -> Option<usize> {
        (0..self.dimensions.len()).find(|&dimension| self.coordinate(here, dimension) != self.coordinate(there, dimension))
    }

    /// Direction and class round the ring of a dimension: those that the packet has if it is in this ring already.
    pub(super) fn on_ring(&self, dimension: usize, here: RouterId, there: RouterId, ring: Ring, choice: &mut dyn Choice) -> Ring {
        if ring.dimension_plus_one == dimension as u32 + 1 {
            return ring;
        }
        self.enter(dimension, self.coordinate(here, dimension), self.coordinate(there, dimension), choice)
    }

    /// The virtual channels of a hop round a ring.
    fn class(&self, hop: &Hop, class: u16) -> VirtualChannels {
        // One virtual channel cannot be divided: such a torus works, and can deadlock.
        if self.dateline { half(hop.available, class == 1, self.share_middle) } else { self.part(hop, 0) }
    }

    /// The part of the virtual channels for a packet's destination, on a hop along this dimension; all where there are no parts.
    fn part(&self, hop: &Hop, dimension: usize) -> VirtualChannels {
        let number = match self.isolation {
            Isolation::None => return hop.available,
            Isolation::Destination => hop.destination.0,
            Isolation::Coordinate => self.coordinate(self.network.ejection_port(hop.destination).0, dimension),
        };
        // A remainder stays unused, as in BookSim 2; too few channels are shared.
        let each = (u32::from(hop.available.count()) / self.parts) as u16;
        match each {
            0 => hop.available.class((number % u32::from(hop.available.count().max(1))) as u16, hop.available.count().max(1)),
            _ => {
                let begin = hop.available.begin + number as u16 * each;
                VirtualChannels { begin, end: begin + each }
            }
        }
    }

    /// Chooses direction and class at the entry of a ring.
    fn enter(&self, dimension: usize, here: u32, there: u32, choice: &mut dyn Choice) -> Ring {
        let radix = self.dimensions[dimension];
        let up_distance = (there + radix - here) % radix;
        let down = match (2 * up_distance).cmp(&radix) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => match self.tie {
                Tie::Positive => false,
                Tie::NoWrap => there < here,
                Tie::Random => choice.uniform(2) == 1,
            },
        };
        // Up: class 1 crosses the wrap. Down: class 1 does not. In both cases no class holds a closed ring.
        let class = if self.balanced { balanced_class(radix, here, there, down, choice) } else { u16::from(there < here) };
        Ring { dimension_plus_one: dimension as u32 + 1, down, class }
    }
}

/// Class 1 must not cross the middle of the ring, class 0 not its wrap; who crosses neither is in either.
fn balanced_class(radix: u32, here: u32, there: u32, down: bool, choice: &mut dyn Choice) -> u16 {
    let upper = |coordinate: u32| coordinate > (radix - 1) / 2;
    if (there < here) != down {
        return 1;
    }
    if upper(here) != upper(there) { 0 } else { choice.uniform(2) as u16 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TerminalId;
    use crate::routing::every_hop;
    use crate::topology::mesh::Mesh;
    use crate::topology::torus::Torus;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    /// The virtual channels of the first hop from terminal 0, all that it may take.
    fn first_hop(routing: &str, topology: &dyn Topology, destination: u32, channels: u16) -> Vec<(Port, u16, u16)> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let network = Arc::new(topology.build(&context).unwrap());
        let routing: DimensionOrder = toml::from_str(routing).unwrap();
        let routing = routing.compile(&network).unwrap();
        let (router, input) = network.injection_port(TerminalId(0));
        let available = VirtualChannels { begin: 0, end: channels };
        let hop = Hop { router, input, virtual_channel: 0, source: TerminalId(0), destination: TerminalId(destination), available };
        let first = |(candidates, _): (Vec<Candidate>, u32)| {
            let Candidate { port, virtual_channels, .. } = candidates[0];
            (port, virtual_channels.begin, virtual_channels.end)
        };
        every_hop(&*routing, &hop, 0).into_iter().map(first).collect()
    }

    /// Terminal 0 to 9 of a ring of 12 crosses the wrap, to 4 neither wrap nor middle, to 6 it may cross the middle.
    #[test]
    fn balanced_classes_leave_a_coin_to_those_who_cross_nothing() {
        let ring = Torus { dimensions: vec![12], concentration: 1 };
        let hops = |destination| first_hop("balanced = true", &ring, destination, 4);
        assert_eq!(hops(9), [(1, 2, 4)]);
        assert_eq!(hops(4), [(0, 0, 2), (0, 2, 4)]);
        assert_eq!(hops(6), [(0, 0, 2), (1, 2, 4)]);
    }

    /// On a 4 x 3 mesh, to terminal 6 at (2, 1): part 6 of 12, or part 2 of 4 along x. A remainder of two channels is not used.
    #[test]
    fn isolated_packets_keep_to_their_part() {
        let mesh = Mesh { dimensions: vec![4, 3], concentration: 1 };
        assert_eq!(first_hop("isolation = \"destination\"", &mesh, 6, 26), [(0, 12, 14)]);
        assert_eq!(first_hop("isolation = \"coordinate\"", &mesh, 6, 10), [(0, 4, 6)]);
        assert_eq!(first_hop("isolation = \"coordinate\"", &mesh, 4, 10), [(2, 2, 4)]);
    }
}
