//! Dimension-order routing on meshes and tori, with dateline classes on the rings.

use super::{Candidate, Choice, Hop, Reads, Routing, RoutingAlgorithm, RoutingError, VirtualChannels};
use crate::id::Port;
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Corrects dimension 0 first, then 1, and so on, each the shorter way.
///
/// On a torus each dimension is a ring, whose dependency cycle is cut by two classes of virtual channels: the class is fixed
/// when the packet enters the dimension. Going up: class 1 if it will cross the wrap, else class 0; going down: class 1 if it
/// will not. A packet half-way round goes by `tie`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DimensionOrder {
    /// Which way at exactly half a ring.
    #[serde(default)]
    pub tie: Tie,
    /// Cut the rings by dateline classes. Without them a torus can deadlock.
    #[serde(default = "yes")]
    pub dateline: bool,
    /// Let both classes use the middle one of an odd number of virtual channels, as BookSim 2 does; otherwise it belongs to
    /// class 0. A head of one class may then wait behind a packet of the other, so that nothing is promised any more.
    #[serde(default)]
    pub share_middle: bool,
}

fn yes() -> bool {
    true
}

/// The way of a packet whose destination is exactly half a ring away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// Always towards higher coordinates.
    Positive,
    /// The way that does not cross the wrap.
    NoWrap,
    /// A fair coin for each packet and dimension.
    #[default]
    Random,
}

impl Member for DimensionOrder {
    const NAME: &'static str = "dimension-order";
    const SUMMARY: &'static str = "mesh and torus: one dimension after the other, the shorter way, dateline classes on rings";
    const SOURCE: &'static str = "Dally and Towles (2004), sections 8.4 and 14.2; class rule as in BookSim 2 (dim_order)";
    const EXAMPLE: &'static str = "tie = \"random\"";
}

impl RoutingAlgorithm for DimensionOrder {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let labels = network.labels();
        let mismatch = || RoutingError::Mismatch {
            routing: Self::NAME,
            network: network.name().to_owned(),
            problem: "it needs a mesh or a torus".to_owned(),
        };
        let dimensions = labels.attribute("dimensions").ok_or_else(mismatch)?.to_vec();
        let wrap = labels.attribute("wrap").ok_or_else(mismatch)?[0] == 1;
        let mut coordinates = vec![0; dimensions.len() * network.router_count() as usize];
        for dimension in 0..dimensions.len() {
            let column = labels.router(&format!("coordinate.{dimension}")).ok_or_else(mismatch)?;
            for (router, &coordinate) in column.iter().enumerate() {
                coordinates[router * dimensions.len() + dimension] = coordinate;
            }
        }
        Ok(Box::new(Compiled {
            network: Arc::clone(network),
            dimensions,
            wrap,
            coordinates,
            tie: self.tie,
            dateline: self.dateline && wrap,
            share_middle: self.share_middle,
        }))
    }
}

#[derive(Debug)]
struct Compiled {
    network: Arc<Network>,
    dimensions: Vec<u32>,
    wrap: bool,
    /// Shape `[routers, dimensions]`.
    coordinates: Vec<u32>,
    tie: Tie,
    dateline: bool,
    share_middle: bool,
}

/// The packet's state: the dimension that it is in plus 1 (0: none yet), its direction and its class.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ring {
    dimension_plus_one: u32,
    down: bool,
    class: u16,
}

impl Ring {
    fn unpack(state: u32) -> Self {
        Self { dimension_plus_one: state >> 2, down: state & 2 != 0, class: (state & 1) as u16 }
    }

    fn pack(self) -> u32 {
        self.dimension_plus_one << 2 | u32::from(self.down) << 1 | u32::from(self.class)
    }
}

impl Routing for Compiled {
    fn virtual_channels_required(&self) -> u32 {
        if self.dateline { 2 } else { 1 }
    }

    fn reads(&self) -> Reads {
        Reads::DESTINATION_ROUTER
    }

    fn is_deadlock_free(&self) -> bool {
        !self.wrap || self.dateline && !self.share_middle
    }

    fn observes_congestion(&self) -> bool {
        false
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, port) = self.network.ejection_port(hop.destination);
        let count = self.dimensions.len();
        let here = &self.coordinates[hop.router.index() * count..][..count];
        let there = &self.coordinates[router.index() * count..][..count];
        let Some(dimension) = (0..count).find(|&dimension| here[dimension] != there[dimension]) else {
            candidates.push(Candidate::new(port, hop.available));
            return;
        };
        let (here, there) = (here[dimension], there[dimension]);
        if !self.wrap {
            candidates.push(Candidate::new(2 * dimension as Port + Port::from(there < here), hop.available));
            return;
        }
        let mut ring = Ring::unpack(*state);
        if ring.dimension_plus_one != dimension as u32 + 1 {
            ring = self.enter(dimension, here, there, choice);
            *state = ring.pack();
        }
        candidates.push(Candidate::new(2 * dimension as Port + Port::from(ring.down), self.class(hop.available, ring.class)));
    }
}

impl Compiled {
    /// The virtual channels of a dateline class.
    fn class(&self, available: VirtualChannels, class: u16) -> VirtualChannels {
        let half = available.count() / 2;
        match (self.dateline, self.share_middle, class) {
            (false, ..) => available,
            // One virtual channel cannot be divided: such a torus works, and can deadlock.
            _ if half == 0 => available,
            (true, false, _) => available.class(class, 2),
            (true, true, 0) => VirtualChannels { end: available.end - half, ..available },
            (true, true, _) => VirtualChannels { begin: available.begin + half, ..available },
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
        // Up: class 1 crosses the wrap. Down: class 1 does not. Either way no class holds a closed ring.
        Ring { dimension_plus_one: dimension as u32 + 1, down, class: u16::from(there < here) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::torus::Torus;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    fn classes(share_middle: bool, count: u16) -> [(u16, u16); 2] {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let torus = Torus { dimensions: vec![4], concentration: 1 }.build(&context).unwrap();
        let labels = torus.labels();
        let (dimensions, coordinates) = (labels.attribute("dimensions").unwrap().to_vec(), labels.router("coordinate.0").unwrap().to_vec());
        let compiled =
            Compiled { dimensions, coordinates, network: Arc::new(torus), wrap: true, tie: Tie::Random, dateline: true, share_middle };
        [0, 1]
            .map(|class| compiled.class(VirtualChannels { begin: 5, end: 5 + count }, class))
            .map(|range| (range.begin - 5, range.end - 5))
    }

    #[test]
    fn the_middle_of_an_odd_number_belongs_to_class_0_or_to_both() {
        assert_eq!(classes(false, 3), [(0, 2), (2, 3)]);
        assert_eq!(classes(true, 3), [(0, 2), (1, 3)]);
        assert_eq!(classes(true, 5), [(0, 3), (2, 5)]);
        for share_middle in [false, true] {
            assert_eq!(classes(share_middle, 4), [(0, 2), (2, 4)]);
            assert_eq!(classes(share_middle, 1), [(0, 1), (0, 1)]);
        }
    }
}
