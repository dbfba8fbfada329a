//! Adaptive routing in one plane of a mesh after the other, with three virtual channels.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::grid::Grid;
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use super::minimal_adaptive::OfferedPorts;
use crate::id::Port;
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// On a mesh: a packet that differs from its destination in dimension *i* first takes a step in that one or in the next one, whichever
/// is free, until *i* is right; then the next plane begins. On two dimensions that are all shortest paths.
///
/// The virtual channels are three thirds; what is left over belongs to the last one. A step in dimension *i* takes the last third; one in
/// dimension *i + 1* the first third while *i* rises, the second while it falls. So the two directions of *i* share no channel of
/// *i + 1*, and nothing waits in a cycle, without an escape path. With fewer than three virtual channels packets go in dimension order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanarAdaptive {
    /// Which of the two steps are offered; `lowest`: that in the lower dimension alone.
    #[serde(default)]
    pub ports: OfferedPorts,
}

impl Member for PlanarAdaptive {
    const NAME: &'static str = "planar-adaptive";
    const SUMMARY: &'static str =
        "meshes: whichever step is free in the plane of two dimensions, plane after plane, with three virtual channels";
    const SOURCE: &'static str = "Chien and Kim, Planar-Adaptive Routing: Low-Cost Adaptive Networks for Multiprocessors, ISCA 1992";
    const EXAMPLE: &'static str = "";
}

impl RoutingAlgorithm for PlanarAdaptive {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let grid = Grid::of(network, Self::NAME, false)?;
        if !grid.is_of_lines() {
            let problem = "it needs a mesh or a concentrated mesh".to_owned();
            return Err(RoutingError::Mismatch { routing: Self::NAME, network: network.name().to_owned(), problem });
        }
        Ok(Box::new(Compiled { network: Arc::clone(network), grid, offered: self.ports }))
    }
}

#[derive(Debug)]
struct Compiled {
    network: Arc<Network>,
    grid: Grid,
    offered: OfferedPorts,
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: 3,
            reads: Reads::DESTINATION_ROUTER,
            observes_congestion: false,
            offers_several: true,
            ..RoutingFacts::default()
        }
    }

    fn route(&self, hop: &Hop, _state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, ejection) = self.network.ejection_port(hop.destination);
        let step = |dimension: usize| self.grid.step(hop.router, router, dimension);
        let Some(lower) = (0..self.grid.dimensions().len()).find(|&dimension| step(dimension).is_some()) else {
            candidates.push(Candidate::new(ejection, hop.available));
            return;
        };
        let [rising, falling, last] = thirds(hop.available);
        let mut steps = [None; 2];
        steps[0] = step(lower).map(|step| (step.port, last));
        if lower + 1 < self.grid.dimensions().len() && self.offered == OfferedPorts::All {
            let besides = if step(lower).is_some_and(|step| step.falls) { falling } else { rising };
            steps[1] = step(lower + 1).filter(|_| besides.count() > 0).map(|step| (step.port, besides));
        }
        // Who looks at one candidate alone is not to take the same port always.
        if steps[1].is_some() && choice.uniform(2) == 1 {
            steps.swap(0, 1);
        }
        candidates.extend(steps.into_iter().flatten().map(|(port, channels): (Port, _)| Candidate::new(port, channels)));
    }
}

/// Three thirds of a class's virtual channels, the last with what is left over.
fn thirds(available: VirtualChannels) -> [VirtualChannels; 3] {
    let third = available.count() / 3;
    let [first, second] = [1, 2].map(|thirds| available.begin + thirds * third);
    [(available.begin, first), (first, second), (second, available.end)].map(|(begin, end)| VirtualChannels { begin, end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{RouterId, TerminalId};
    use crate::routing::every_hop;
    use crate::topology::mesh::Mesh;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    fn network(dimensions: &[u32]) -> Arc<Network> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        Arc::new(Mesh { dimensions: dimensions.to_vec(), concentration: 1 }.build(&context).unwrap())
    }

    /// Ports and virtual channels that a packet is offered, of seven: thirds of two, two and three.
    fn offered(network: &Arc<Network>, ports: OfferedPorts, from: u32, to: u32) -> Vec<(Port, u16, u16)> {
        let routing = PlanarAdaptive { ports }.compile(network).unwrap();
        let (source, destination) = (TerminalId(from), TerminalId(to));
        let available = VirtualChannels { begin: 0, end: 7 };
        let hop = Hop { router: RouterId(from), input: 0, virtual_channel: 0, source, destination, available };
        let outcomes = every_hop(routing.as_ref(), &hop, 0);
        let sorted = |candidates: &[Candidate]| {
            let told = |candidate: &Candidate| (candidate.port, candidate.virtual_channels.begin, candidate.virtual_channels.end);
            let mut list: Vec<_> = candidates.iter().map(told).collect();
            list.sort_unstable();
            list
        };
        assert!(outcomes.iter().all(|(candidates, _)| sorted(candidates) == sorted(&outcomes[0].0)));
        sorted(&outcomes[0].0)
    }

    /// Ports of a mesh: 0 up and 1 down in the first dimension, 2 and 3 in the second, 4 and 5 in the third.
    #[test]
    fn the_next_dimension_goes_by_channels_of_the_direction_of_the_first() {
        let square = network(&[3, 3]);
        // From the middle to the corners.
        assert_eq!(offered(&square, OfferedPorts::All, 4, 8), [(0, 4, 7), (2, 0, 2)]);
        assert_eq!(offered(&square, OfferedPorts::All, 4, 2), [(0, 4, 7), (3, 0, 2)]);
        assert_eq!(offered(&square, OfferedPorts::All, 4, 6), [(1, 4, 7), (2, 2, 4)]);
        assert_eq!(offered(&square, OfferedPorts::All, 4, 0), [(1, 4, 7), (3, 2, 4)]);
        assert_eq!(offered(&square, OfferedPorts::Lowest, 4, 0), [(1, 4, 7)]);
        // Along one dimension, and at the destination: a router's last port, by all channels.
        assert_eq!(offered(&square, OfferedPorts::All, 4, 7), [(2, 4, 7)]);
        assert_eq!(offered(&square, OfferedPorts::All, 4, 4), [(square.injection_port(TerminalId(4)).1, 0, 7)]);
        // In three dimensions the third one waits until the first is right.
        let cube = network(&[3, 3, 3]);
        assert_eq!(offered(&cube, OfferedPorts::All, 0, 26), [(0, 4, 7), (2, 0, 2)]);
        assert_eq!(offered(&cube, OfferedPorts::All, 2, 26), [(2, 4, 7), (4, 0, 2)]);
        // The second one is right: only the first is left in this plane.
        assert_eq!(offered(&cube, OfferedPorts::All, 6, 26), [(0, 4, 7)]);
    }
}
