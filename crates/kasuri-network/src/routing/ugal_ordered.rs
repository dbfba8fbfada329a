//! UGAL on flattened butterflies in dimension order.

use super::choice::{Choice, CongestionView};
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::grid::{Grid, Order, half};
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use crate::id::{Port, RouterId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Chooses at the source's router between the path in dimension order and one by way of an intermediate router, whose coordinates
/// are drawn in the dimensions in which source and destination differ: the direct path if q H <= q' H' + `threshold`, where H
/// and H' are the hops of both paths and q and q' the flits on their first channels.
///
/// The path to the intermediate router uses the lower half of the virtual channels, the path on the upper half.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UgalOrdered {
    /// A packet goes by way of the other router if flits times hops are greater for the direct path by more than this number.
    #[serde(default = "two")]
    pub threshold: u32,
    /// Draw for each packet whether its lowest or its highest dimension comes first; each order has its half of the virtual
    /// channels, which the phases halve again.
    #[serde(default)]
    pub both_orders: bool,
    /// Divide the virtual channels of a phase by the coordinate of the destination in the dimension after the hop's, by its place
    /// at its router after the last. Needs as many terminals at a router as routers in a dimension.
    #[serde(default)]
    pub isolated: bool,
}

fn two() -> u32 {
    2
}

impl Member for UgalOrdered {
    const NAME: &'static str = "ugal-ordered";
    const SUMMARY: &'static str =
        "flattened butterfly: in dimension order, directly or by way of another router, by the queues at the source's";
    const SOURCE: &'static str = "Singh, Load-Balanced Routing in Interconnection Networks, Stanford (2005), chapter 5; intermediate routers, \
                                  threshold and classes as in BookSim 2 (ugal, ugal_xyyx, ugal_pni of flatfly)";
    const EXAMPLE: &'static str = "threshold = 2";
}

impl RoutingAlgorithm for UgalOrdered {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let mismatch = |problem: String| RoutingError::Mismatch { routing: Self::NAME, network: network.name().to_owned(), problem };
        if network.labels().attribute("flattened_butterfly").is_none() {
            return Err(mismatch("it needs a flattened butterfly".to_owned()));
        }
        let grid = Grid::of(network, Self::NAME, false)?;
        if network.router_count() > MAX_ROUTERS {
            return Err(mismatch(format!("it has {} routers; this routing knows at most {MAX_ROUTERS}", network.router_count())));
        }
        let parts = grid.dimensions()[0];
        if self.isolated
            && (network.terminal_count() != parts * network.router_count() || grid.dimensions().iter().any(|&radix| radix != parts))
        {
            return Err(mismatch("`isolated` needs as many terminals at each router as routers in each dimension".to_owned()));
        }
        let places = super::shortest::places_at_router(network);
        Ok(Box::new(Compiled {
            network: Arc::clone(network),
            grid,
            places,
            threshold: self.threshold.into(),
            both_orders: self.both_orders,
            isolated: self.isolated,
        }))
    }
}

/// Routers that the state of a packet can name.
const MAX_ROUTERS: u32 = 1 << 29;

#[derive(Debug)]
struct Compiled {
    network: Arc<Network>,
    grid: Grid,
    /// Each terminal's number at its router.
    places: Vec<u32>,
    threshold: i64,
    both_orders: bool,
    isolated: bool,
}

/// What a packet has decided; its state, which is 0 before its first router.
#[derive(Clone, Copy)]
struct Plan {
    by: RouterId,
    onward: bool,
    order: Order,
}

impl Plan {
    fn pack(self) -> u32 {
        self.by.0 << 3 | u32::from(self.order == Order::Descending) << 2 | u32::from(self.onward) << 1 | 1
    }

    fn unpack(state: u32) -> Option<Self> {
        let order = if state & 4 == 0 { Order::Ascending } else { Order::Descending };
        (state != 0).then_some(Self { by: RouterId(state >> 3), onward: state & 2 != 0, order })
    }
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: 2 * if self.both_orders { 2 } else { 1 } * if self.isolated { self.grid.dimensions()[0] } else { 1 },
            reads: Reads { terminal: self.isolated, ..Reads::DESTINATION_ROUTER },
            restricts_entry: self.isolated,
            ..RoutingFacts::default()
        }
    }

    fn entering(&self, hop: &Hop, _state: u32, _choice: &mut dyn Choice) -> VirtualChannels {
        if self.isolated { self.part(hop, hop.available, 0) } else { hop.available }
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, ejection) = self.network.ejection_port(hop.destination);
        let mut plan = match Plan::unpack(*state) {
            Some(plan) => plan,
            None if router == hop.router => Plan { by: router, onward: true, order: Order::Ascending },
            None => self.decide(hop, router, choice),
        };
        plan.onward |= plan.by == hop.router;
        let aim = if plan.onward { router } else { plan.by };
        *state = Plan { by: if plan.onward { RouterId(0) } else { plan.by }, ..plan }.pack();
        match self.grid.port(hop.router, aim, plan.order) {
            Some(port) => candidates.push(Candidate::new(port, self.channels(hop, plan, port))),
            None => candidates.push(Candidate::new(ejection, hop.available)),
        }
    }
}

impl Compiled {
    /// What a packet for another router decides at its first one.
    fn decide(&self, hop: &Hop, destination: RouterId, choice: &mut dyn Choice) -> Plan {
        let order = if self.both_orders && choice.uniform(2) == 1 { Order::Descending } else { Order::Ascending };
        let direct = Plan { by: hop.router, onward: true, order };
        let ends = self.grid.coordinates_of(hop.router).iter().zip(self.grid.coordinates_of(destination));
        let drawn: Vec<u32> = ends
            .zip(self.grid.dimensions())
            .map(|((&one, &other), &radix)| if one == other { one } else { choice.uniform(radix) })
            .collect();
        let by = self.grid.router(drawn.into_iter());
        let ports = (self.grid.port(hop.router, destination, order), self.grid.port(hop.router, by, order));
        let (Some(straight), Some(aside)) = ports else { return direct };
        let hops = i64::from(self.grid.differing(hop.router, destination));
        let hops_by = i64::from(self.grid.differing(hop.router, by) + self.grid.differing(by, destination));
        // Twice the product, and 1 more for the detour: equals are no tie, but speak for the direct path.
        let cost = |view: &dyn CongestionView, path: u32| {
            let flits = |port: Port| i64::from(view.occupied(port, hop.available));
            if path == 0 { 2 * flits(straight) * hops } else { 2 * (flits(aside) * hops_by + self.threshold) + 1 }
        };
        if choice.least(2, &cost) == 0 { direct } else { Plan { by, onward: false, order } }
    }

    /// The virtual channels of a hop between routers.
    fn channels(&self, hop: &Hop, plan: Plan, port: Port) -> VirtualChannels {
        let of_order = if self.both_orders { half(hop.available, plan.order == Order::Descending, false) } else { hop.available };
        let of_phase = half(of_order, plan.onward, false);
        if !self.isolated {
            return of_phase;
        }
        let dimension = self.grid.dimension_of(port);
        self.part(hop, of_phase, dimension + 1)
    }

    /// The part of virtual channels for a packet that will next go along this dimension, or be ejected after the last.
    fn part(&self, hop: &Hop, channels: VirtualChannels, next: usize) -> VirtualChannels {
        let parts = self.grid.dimensions()[0];
        let router = self.network.ejection_port(hop.destination).0;
        let number = self.grid.coordinates_of(router).get(next).copied().unwrap_or(self.places[hop.destination.index()]);
        let count = u32::from(channels.count()).max(1);
        let each = (count / parts).max(1);
        let begin = channels.begin + (number * each % count) as u16;
        VirtualChannels { begin, end: begin + each as u16 }
    }
}
