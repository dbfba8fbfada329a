//! One dimension order or the other, each in its half of the virtual channels.

use super::choice::{Choice, CongestionView};
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::grid::{Grid, Order, half};
use super::hop::{Candidate, Hop, Reads};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Each packet chooses at its first router whether it corrects the lowest dimension first, in the lower half of the virtual
/// channels, or the highest first, in the upper half. Free of deadlock, since each half is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct O1Turn {
    /// How a packet chooses.
    #[serde(default)]
    pub choose: Choose,
    /// On a concentrated mesh: take the express links.
    #[serde(default)]
    pub express: bool,
    /// Let both halves use the middle one of an odd number of virtual channels, and tell the order of a packet at every router by the
    /// virtual channel that it is in, as BookSim 2 does: in the middle one the highest dimension is first. The routing may then deadlock.
    #[serde(default)]
    pub share_middle: bool,
}

/// How a packet chooses its order of dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choose {
    /// A fair coin.
    #[default]
    Random,
    /// The one whose first channel has fewer flits under way or in the buffer at its end; a coin where they are equal.
    Adaptive,
}

impl Member for O1Turn {
    const NAME: &'static str = "o1turn";
    const SUMMARY: &'static str = "grids: one order of dimensions or the other, each in its half of the virtual channels";
    const SOURCE: &'static str = "Seo, Ali, Lim, Rafique and Thottethodi, Near-Optimal Worst-Case Throughput Routing for Two-Dimensional Mesh \
                                  Networks, ISCA 2005; as in BookSim 2 (xy_yx, adaptive_xy_yx)";
    const EXAMPLE: &'static str = "choose = \"random\"";
}

impl RoutingAlgorithm for O1Turn {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let grid = Grid::of(network, Self::NAME, self.express)?;
        Ok(Box::new(Compiled { network: Arc::clone(network), grid, choose: self.choose, share_middle: self.share_middle }))
    }
}

#[derive(Debug)]
struct Compiled {
    network: Arc<Network>,
    grid: Grid,
    choose: Choose,
    share_middle: bool,
}

/// The packet's state once it has chosen.
const LOWEST_FIRST: u32 = 1;
const HIGHEST_FIRST: u32 = 2;

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: 2,
            reads: Reads { virtual_channel: self.share_middle, ..Reads::DESTINATION_ROUTER },
            is_deadlock_free: !self.share_middle,
            observes_congestion: self.choose == Choose::Adaptive,
            ..RoutingFacts::default()
        }
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, ejection) = self.network.ejection_port(hop.destination);
        let ports = [Order::Ascending, Order::Descending].map(|order| self.grid.port(hop.router, router, order));
        let [Some(lowest), Some(highest)] = ports else {
            candidates.push(Candidate::new(ejection, hop.available));
            return;
        };
        let highest_first = match *state {
            0 => self.chooses_highest(hop, [lowest, highest], choice),
            _ if self.share_middle => hop.virtual_channel >= hop.available.begin + hop.available.count() / 2,
            order => order == HIGHEST_FIRST,
        };
        *state = if highest_first { HIGHEST_FIRST } else { LOWEST_FIRST };
        let port = if highest_first { highest } else { lowest };
        candidates.push(Candidate::new(port, half(hop.available, highest_first, self.share_middle)));
    }
}

impl Compiled {
    fn chooses_highest(&self, hop: &Hop, ports: [u16; 2], choice: &mut dyn Choice) -> bool {
        let order = match self.choose {
            Choose::Random => choice.uniform(2),
            Choose::Adaptive => {
                choice.least_occupied(2, &|view: &dyn CongestionView, path| i64::from(view.occupied(ports[path as usize], hop.available)))
            }
        };
        order == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TerminalId;
    use crate::routing::{VirtualChannels, every_hop};
    use crate::topology::mesh::Mesh;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    /// From terminal 0 of a 4 x 4 mesh to 10: along x in channels 0 and 1, or along y in 2 and 3; with three shared channels the
    /// middle one is in both halves, and means y first at the next router.
    #[test]
    fn each_order_keeps_to_its_half() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let network = Arc::new(Mesh { dimensions: vec![4, 4], concentration: 1 }.build(&context).unwrap());
        let hops = |share_middle, channels, virtual_channel, state| -> Vec<(u16, u16, u16)> {
            let routing = O1Turn { choose: Choose::Random, express: false, share_middle }.compile(&network).unwrap();
            let (router, input) = network.injection_port(TerminalId(0));
            let available = VirtualChannels { begin: 0, end: channels };
            let hop = Hop { router, input, virtual_channel, source: TerminalId(0), destination: TerminalId(10), available };
            let first = |(candidates, _): (Vec<Candidate>, u32)| {
                let Candidate { port, virtual_channels, .. } = candidates[0];
                (port, virtual_channels.begin, virtual_channels.end)
            };
            every_hop(&*routing, &hop, state).into_iter().map(first).collect()
        };
        assert_eq!(hops(false, 4, 0, 0), [(0, 0, 2), (2, 2, 4)]);
        assert_eq!(hops(false, 4, 3, LOWEST_FIRST), [(0, 0, 2)]);
        assert_eq!(hops(true, 3, 0, 0), [(0, 0, 2), (2, 1, 3)]);
        assert_eq!(hops(true, 3, 1, LOWEST_FIRST), [(2, 1, 3)]);
        assert_eq!(hops(true, 3, 0, HIGHEST_FIRST), [(0, 0, 2)]);
    }
}
