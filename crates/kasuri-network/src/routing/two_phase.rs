//! By path of an intermediate router, dimension by dimension to it and on from it.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::dimension_order::{Compiled as Torus, Ring};
use super::grid::{Grid, Order, half};
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use crate::id::{Port, RouterId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Draws an intermediate router for each packet and goes there in dimension order, then on in dimension order.
///
/// The path there uses the lower half of the virtual channels, the path on the upper half; on a torus each class of a dateline is
/// halved so. Free of deadlock, since each phase is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TwoPhase {
    /// Where the intermediate router lies.
    #[serde(default)]
    pub intermediate: Intermediate,
    /// On a mesh: a part of the virtual channels for each terminal, in place of the halves.
    #[serde(default)]
    pub isolated: bool,
    /// Let both phases use the middle one of an odd number of virtual channels, as BookSim 2 does; otherwise it belongs to the first. The
    /// routing may then deadlock. Not on a torus.
    #[serde(default)]
    pub share_middle: bool,
    /// Deliver a packet that comes by its destination's router on the way to the intermediate one. Not on a torus.
    #[serde(default)]
    pub ends_early: bool,
}

/// From where the intermediate router is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Intermediate {
    /// From all routers: Valiant's algorithm.
    #[default]
    Anywhere,
    /// From those on shortest paths between source and destination: ROMM. Not on a torus.
    Between,
}

impl Member for TwoPhase {
    const NAME: &'static str = "two-phase";
    const SUMMARY: &'static str = "grids and tori: in dimension order to an intermediate router and on (Valiant, ROMM)";
    const SOURCE: &'static str =
        "Valiant and Brebner, STOC 1981; Nesson and Johnsson, ROMM Routing, SPAA 1995; as in BookSim 2 (valiant, romm)";
    const EXAMPLE: &'static str = "intermediate = \"anywhere\"";
}

impl RoutingAlgorithm for TwoPhase {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let shape = match Grid::of(network, Self::NAME, false) {
            Ok(grid) => Shape::Grid(grid),
            Err(_) => Shape::Torus(Torus::of_torus(network, Self::NAME)?),
        };
        if let Shape::Torus(_) = shape {
            for (key, is_set) in [
                ("intermediate", self.intermediate == Intermediate::Between),
                ("isolated", self.isolated),
                ("share_middle", self.share_middle),
            ] {
                if is_set {
                    let problem = "is known on grids only, not on a torus".to_owned();
                    return Err(RoutingError::Parameter { key: key.to_owned(), problem });
                }
            }
        }
        if network.router_count() > MAX_ROUTERS {
            let problem = format!("it has {} routers; this routing knows at most {MAX_ROUTERS}", network.router_count());
            return Err(RoutingError::Mismatch { routing: Self::NAME, network: network.name().to_owned(), problem });
        }
        let Self { intermediate, isolated, share_middle, ends_early } = *self;
        Ok(Box::new(Compiled { network: Arc::clone(network), shape, intermediate, isolated, share_middle, ends_early }))
    }
}

/// Routers that the state of a packet can name, beside a phase and a ring.
const MAX_ROUTERS: u32 = 1 << (32 - 2 - Ring::BITS);

#[derive(Debug)]
struct Compiled {
    network: Arc<Network>,
    shape: Shape,
    intermediate: Intermediate,
    isolated: bool,
    share_middle: bool,
    ends_early: bool,
}

#[derive(Debug)]
enum Shape {
    Grid(Grid),
    Torus(Torus),
}

/// What a packet does; its state, which is 0 before its first router.
#[derive(Clone, Copy)]
struct Plan {
    by: RouterId,
    onward: bool,
    ring: Ring,
}

impl Plan {
    fn to(by: RouterId) -> Self {
        Self { by, onward: false, ring: Ring::unpack(0) }
    }

    fn pack(self) -> u32 {
        (self.by.0 << Ring::BITS | self.ring.pack()) << 2 | u32::from(self.onward) << 1 | 1
    }

    fn unpack(state: u32) -> Option<Self> {
        let ring = Ring::unpack(state >> 2 & ((1 << Ring::BITS) - 1));
        (state != 0).then_some(Self { by: RouterId(state >> (2 + Ring::BITS)), onward: state & 2 != 0, ring })
    }
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: match (&self.shape, self.isolated) {
                (Shape::Torus(_), _) => 4,
                (Shape::Grid(_), false) => 2,
                (Shape::Grid(_), true) => self.network.terminal_count(),
            },
            reads: Reads { terminal: self.isolated, ..Reads::DESTINATION_ROUTER },
            // Isolated packets for one destination can wait for each other in a cycle: their two phases share their channels.
            is_deadlock_free: !self.isolated && !self.share_middle,
            observes_congestion: false,
            restricts_entry: self.isolated,
            ..RoutingFacts::default()
        }
    }

    fn entering(&self, hop: &Hop, _state: u32, _choice: &mut dyn Choice) -> VirtualChannels {
        if self.isolated { self.part(hop) } else { hop.available }
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, ejection) = self.network.ejection_port(hop.destination);
        let mut plan = Plan::unpack(*state).unwrap_or_else(|| Plan::to(self.draw(hop.router, router, choice)));
        if !plan.onward && (plan.by == hop.router || self.ends_early && router == hop.router) {
            // The second phase begins its rings anew.
            plan = Plan { onward: true, ..Plan::to(RouterId(0)) };
        }
        let aim = if plan.onward { router } else { plan.by };
        match self.step(hop, aim, &mut plan, choice) {
            Some((port, virtual_channels)) => candidates.push(Candidate::new(port, virtual_channels)),
            None => candidates.push(Candidate::new(ejection, hop.available)),
        }
        *state = plan.pack();
    }
}

impl Compiled {
    fn draw(&self, source: RouterId, destination: RouterId, choice: &mut dyn Choice) -> RouterId {
        match (&self.shape, self.intermediate) {
            (Shape::Grid(grid), Intermediate::Between) => {
                let ends = grid.coordinates_of(source).iter().zip(grid.coordinates_of(destination));
                let drawn: Vec<u32> = ends.map(|(&one, &other)| one.min(other) + choice.uniform(one.abs_diff(other) + 1)).collect();
                grid.router(drawn.into_iter())
            }
            _ => RouterId(choice.uniform(self.network.router_count())),
        }
    }

    /// The next hop towards a router, and its virtual channels; `None` there.
    fn step(&self, hop: &Hop, aim: RouterId, plan: &mut Plan, choice: &mut dyn Choice) -> Option<(Port, VirtualChannels)> {
        match &self.shape {
            Shape::Grid(grid) => {
                let channels = if self.isolated { self.part(hop) } else { half(hop.available, plan.onward, self.share_middle) };
                Some((grid.port(hop.router, aim, Order::Ascending)?, channels))
            }
            Shape::Torus(torus) => {
                let dimension = torus.dimension(hop.router, aim)?;
                plan.ring = torus.on_ring(dimension, hop.router, aim, plan.ring, choice);
                let of_class = half(hop.available, plan.ring.class == 1, false);
                Some((plan.ring.port(dimension), half(of_class, plan.onward, false)))
            }
        }
    }

    /// The virtual channels that belong to a packet's destination; a remainder stays unused.
    fn part(&self, hop: &Hop) -> VirtualChannels {
        let count = u32::from(hop.available.count()).max(1);
        let each = (count / self.network.terminal_count()).max(1);
        let begin = hop.available.begin + (hop.destination.0 * each % count) as u16;
        VirtualChannels { begin, end: begin + each as u16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TerminalId;
    use crate::routing::every_hop;
    use crate::topology::mesh::Mesh;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    /// First hops from (1, 1) of a 4 x 4 mesh to (2, 3), one for each intermediate router.
    fn first_hops(intermediate: Intermediate) -> Vec<(Port, VirtualChannels, u32)> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let network = Arc::new(Mesh { dimensions: vec![4, 4], concentration: 1 }.build(&context).unwrap());
        let routing = TwoPhase { intermediate, isolated: false, share_middle: false, ends_early: false }.compile(&network).unwrap();
        let (router, input) = network.injection_port(TerminalId(5));
        let available = VirtualChannels { begin: 0, end: 4 };
        let hop = Hop { router, input, virtual_channel: 0, source: TerminalId(5), destination: TerminalId(14), available };
        every_hop(&*routing, &hop, 0)
            .into_iter()
            .map(|(candidates, state)| (candidates[0].port, candidates[0].virtual_channels, state))
            .collect()
    }

    /// Of the six routers between them three share x with the source: two further along y, and the source itself, from which the
    /// second phase begins with x in the upper half.
    #[test]
    fn routers_between_lie_on_shortest_paths() {
        let hops = first_hops(Intermediate::Between);
        assert_eq!(hops.len(), 6);
        assert!(hops.iter().all(|&(port, ..)| port == 0 || port == 2));
        assert_eq!(hops.iter().filter(|(_, channels, _)| channels.begin == 2).count(), 1);
        assert_eq!(hops.iter().filter(|&&(port, ..)| port == 2).count(), 2);
    }

    /// Of 16 routers 4 are in the column of the source, the source among them; 4 have a lower x.
    #[test]
    fn intermediate_routers_anywhere_serve_all_pairs() {
        let hops = first_hops(Intermediate::Anywhere);
        assert_eq!(hops.len(), 16);
        assert_eq!(hops.iter().filter(|&&(port, ..)| port == 1).count(), 4);
        assert_eq!(hops.iter().filter(|(_, channels, _)| *channels == VirtualChannels { begin: 2, end: 4 }).count(), 1);
    }
}
