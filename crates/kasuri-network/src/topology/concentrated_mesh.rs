//! Concentrated mesh: a square of routers with four terminals each, and express links along its edges.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// Terminals of a router along each side of its square.
const SIDE: u32 = 2;

/// The first port towards another router.
const FIRST_LINK: u32 = SIDE * SIDE;

/// A k x k mesh, k = `radix` even, whose routers serve a square of 2 x 2 terminals each; what would leave the mesh is an express
/// link: the routers of an edge are joined to those k/2 further along the same edge.
///
/// Router (x, y) has number y k + x. Ports: 0..3 the terminals, 4 and 5 towards higher and lower x, 6 and 7 towards higher and
/// lower y. Terminal (X, Y) of the 2k x 2k terminals has number 2 k Y + X and sits on router (X div 2, Y div 2), port
/// 2 (Y mod 2) + X mod 2. On the edges the port that would lead out (5 at x = 0, 4 at x = k - 1, 7 at y = 0, 6 at y = k - 1)
/// is the express link, which arrives at the same port of the other router.
///
/// With `channel_latency` a list of two numbers the first is that of the links of the mesh, the second that of the express links.
///
/// Labels: routers `coordinate.0` (x) and `coordinate.1` (y); attributes `concentrated_mesh` = [k], `first_link_port`,
/// `terminal_digits`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcentratedMesh {
    /// Routers along each side, k: an even number.
    pub radix: u32,
}

impl Member for ConcentratedMesh {
    const NAME: &'static str = "concentrated-mesh";
    const SUMMARY: &'static str = "mesh with four terminals a router and express links along the edges";
    const SOURCE: &'static str = "Balfour and Dally, Design Tradeoffs for Tiled CMP On-Chip Networks, ICS 2006; as in BookSim 2 (cmesh)";
    const EXAMPLE: &'static str = "radix = 2";
}

impl Topology for ConcentratedMesh {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let k = self.radix;
        if k % 2 == 1 || !(2..=1 << 12).contains(&k) {
            return Err(NetworkError::parameter("radix", format!("is {k}; it must be even, 2 to 4096")));
        }
        context.channels.check(2)?;
        let mut builder = NetworkBuilder::new(format!("concentrated-mesh {k} x {k}"));
        for _ in 0..k * k {
            builder.add_router((FIRST_LINK + 4) as usize)?;
        }
        for dimension in 0..2 {
            // Routers that differ in this dimension alone lie `stride` apart; lines of them begin `across` apart.
            let (stride, across) = if dimension == 0 { (1, k) } else { (k, 1) };
            let (up, down) = ((FIRST_LINK + 2 * dimension) as Port, (FIRST_LINK + 2 * dimension + 1) as Port);
            for line in 0..k {
                let router = |place: u32| RouterId(line * across + place * stride);
                for place in 0..k - 1 {
                    builder.add_link((router(place), up), (router(place + 1), down), context.channels.link(0));
                }
            }
            // The edges that this dimension's ports lead out of run along the other dimension.
            for (place, port) in [(0, down), (k - 1, up)] {
                let router = |line: u32| RouterId(line * across + place * stride);
                for line in 0..k / 2 {
                    builder.add_link((router(line), port), (router(line + k / 2), port), context.channels.link(1));
                }
            }
        }
        for terminal in 0..SIDE * SIDE * k * k {
            let (x, y) = (terminal % (SIDE * k), terminal / (SIDE * k));
            let router = RouterId(y / SIDE * k + x / SIDE);
            builder.add_terminal(router, (SIDE * (y % SIDE) + x % SIDE) as Port, context.channels.terminal_link());
        }
        builder.label_routers("coordinate.0", (0..k * k).map(|router| router % k).collect());
        builder.label_routers("coordinate.1", (0..k * k).map(|router| router / k).collect());
        builder.set_attribute("concentrated_mesh", vec![k]);
        builder.set_attribute("first_link_port", vec![FIRST_LINK]);
        builder.set_attribute("terminal_digits", vec![SIDE * k, SIDE * k]);
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TerminalId;
    use crate::network::Endpoint;
    use crate::network::metrics::Metrics;
    use crate::topology::{ChannelParameters, NoFiles, PerDimension};

    fn build(radix: u32) -> Result<Network, NetworkError> {
        let channels = ChannelParameters { channel_latency: PerDimension::Each(vec![2, 9]), ..ChannelParameters::default() };
        ConcentratedMesh { radix }.build(&BuildContext { channels: &channels, files: &NoFiles, structure_seed: 0 })
    }

    /// 2 k (k - 1) links of the mesh and k/2 express links on each of four edges; four terminals a router.
    #[test]
    fn counts_follow_the_closed_forms() {
        for k in [2, 4, 6, 8] {
            let network = build(k).unwrap();
            let metrics = Metrics::of(&network);
            assert_eq!((metrics.terminals, metrics.routers), (4 * k * k, k * k));
            assert_eq!(metrics.links, u64::from(2 * k * (k - 1) + 4 * (k / 2)));
            let slow = network.router_channels().filter(|&channel| network.link(channel).latency == 9).count();
            assert_eq!(slow as u32, 2 * 4 * (k / 2));
            for router in (0..network.router_count()).map(RouterId) {
                assert!((0..8).all(|port| network.output_channel(router, port).is_some()));
            }
        }
    }

    /// Terminal 37 of the 8 x 8 terminals is (5, 4): router (2, 2), port 1. Router (0, 1) leads by port 5 to (0, 3).
    #[test]
    fn places_are_those_of_the_square() {
        let network = build(4).unwrap();
        assert_eq!(network.ejection_port(TerminalId(37)), (RouterId(10), 1));
        let express = network.output_channel(RouterId(4), 5).unwrap();
        assert_eq!(network.destination(express), Endpoint::Router(RouterId(12), 5));
    }

    #[test]
    fn odd_and_empty_squares_are_refused() {
        for radix in [0, 1, 3, 5000] {
            assert!(matches!(build(radix), Err(NetworkError::Parameter { key, .. }) if key == "radix"));
        }
    }
}
