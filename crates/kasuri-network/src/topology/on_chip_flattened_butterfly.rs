//! Flattened butterfly on a chip: full meshes in each dimension, wires as long as the floor plan makes them.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Link, Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// k^n routers, k = `radix` and n = `dimensions`; routers that differ in one digit of their base-k number are linked. Each
/// serves a cluster of c = `cluster[0]` x `cluster[1]` terminals.
///
/// The routers lie on a floor of `floor[0]` columns and `floor[1]` rows, router r in column r mod `floor[0]` and row r div
/// `floor[0]`; the clusters tile it to a grid of terminals, numbered row by row. Ports: 0..c-1 the terminals of the cluster, row
/// by row; then for each dimension the k - 1 others in ascending order.
///
/// Unless `distance` is false, a link between routers that are dx columns and dy rows apart has the latency `channel_latency`
/// times (`cluster[0]` dx + `cluster[1]` dy), and the channels of a terminal the latency of their length to the cluster's middle.
///
/// Labels: routers `coordinate.0`, `coordinate.1`, …; attributes `flattened_butterfly` = [k, k, …], `first_link_port`,
/// `terminal_digits`, `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnChipFlattenedButterfly {
    /// Routers of each dimension, k.
    pub radix: u32,
    /// Dimensions, n.
    #[serde(default = "two")]
    pub dimensions: u32,
    /// Columns and rows of routers on the chip; their product is k^n.
    pub floor: [u32; 2],
    /// Columns and rows of terminals at each router.
    pub cluster: [u32; 2],
    /// Does the latency of a wire grow with its length?
    #[serde(default = "yes")]
    pub distance: bool,
}

fn two() -> u32 {
    2
}

fn yes() -> bool {
    true
}

impl Member for OnChipFlattenedButterfly {
    const NAME: &'static str = "on-chip-flattened-butterfly";
    const SUMMARY: &'static str = "flattened butterfly on a chip: a wire's latency is its length on the floor plan";
    const SOURCE: &'static str =
        "Kim, Balfour and Dally, Flattened Butterfly Topology for On-Chip Networks, MICRO 2007; as in BookSim 2 (flatfly)";
    const EXAMPLE: &'static str = "radix = 3\nfloor = [3, 3]\ncluster = [1, 2]";
}

impl Topology for OnChipFlattenedButterfly {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let routers = self.check()?;
        context.channels.check(1)?;
        let Self { radix, dimensions, floor, cluster, .. } = *self;
        let concentration = cluster[0] * cluster[1];
        let mut builder = NetworkBuilder::new(format!("on-chip-flattened-butterfly {radix}^{dimensions} x {concentration}"));
        for _ in 0..routers {
            builder.add_router((concentration + dimensions * (radix - 1)) as usize)?;
        }
        for dimension in 0..dimensions {
            let (stride, first_port) = (radix.pow(dimension), concentration + dimension * (radix - 1));
            let coordinates: Vec<u32> = (0..routers).map(|router| router / stride % radix).collect();
            for router in 0..routers {
                let here = coordinates[router as usize];
                for there in here + 1..radix {
                    let other = router + (there - here) * stride;
                    // Each skips itself: the higher coordinate is one place earlier in the lower one's list.
                    let low = (RouterId(router), (first_port + there - 1) as Port);
                    let high = (RouterId(other), (first_port + here) as Port);
                    builder.add_link(low, high, self.wire(router, other, context.channels.link(0)));
                }
            }
            builder.label_routers(format!("coordinate.{dimension}"), coordinates);
        }
        let width = floor[0] * cluster[0];
        for terminal in 0..routers * concentration {
            let (x, y) = (terminal % width, terminal / width);
            let router = RouterId(y / cluster[1] * floor[0] + x / cluster[0]);
            let port = cluster[0] * (y % cluster[1]) + x % cluster[0];
            builder.add_terminal(router, port as Port, self.terminal_wire(port, context.channels.terminal_link()));
        }
        builder.set_attribute("flattened_butterfly", vec![radix; dimensions as usize]);
        builder.set_attribute("first_link_port", vec![concentration]);
        builder.set_attribute("terminal_digits", vec![width, floor[1] * cluster[1]].into_iter().filter(|&digit| digit > 1).collect());
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

impl OnChipFlattenedButterfly {
    fn check(&self) -> Result<u32, NetworkError> {
        let Self { radix, dimensions, floor, cluster, .. } = *self;
        if radix < 2 {
            return Err(NetworkError::parameter("radix", format!("is {radix}; each dimension needs at least 2 routers")));
        }
        if dimensions == 0 {
            return Err(NetworkError::parameter("dimensions", "is 0; it must be at least 1"));
        }
        if cluster.contains(&0) || cluster.iter().any(|&side| side > 1 << 8) {
            return Err(NetworkError::parameter("cluster", format!("is {cluster:?}; each side has 1 to 256 terminals")));
        }
        let routers = radix.checked_pow(dimensions).filter(|&routers| routers <= 1 << 22);
        let routers = routers.ok_or_else(|| NetworkError::TooLarge(format!("{radix}^{dimensions} routers; the limit is 2^22")))?;
        if floor[0].checked_mul(floor[1]) != Some(routers) {
            let problem = format!("is {floor:?}; columns times rows must be the {routers} routers");
            return Err(NetworkError::parameter("floor", problem));
        }
        if u64::from(routers) * u64::from(cluster[0] * cluster[1]) > 1 << 28 {
            return Err(NetworkError::TooLarge(format!("{routers} routers with {cluster:?} terminals each; the limit is 2^28 terminals")));
        }
        Ok(routers)
    }

    /// The link between two routers.
    fn wire(&self, one: u32, other: u32, link: Link) -> Link {
        if !self.distance {
            return link;
        }
        let columns = (one % self.floor[0]).abs_diff(other % self.floor[0]);
        let rows = (one / self.floor[0]).abs_diff(other / self.floor[0]);
        Link { latency: link.latency * (self.cluster[0] * columns + self.cluster[1] * rows), ..link }
    }

    /// The channels of a terminal. Places along a side are counted from the middle; the two nearest to it, or the one on it and
    /// its neighbours, are no further than one cycle away.
    fn terminal_wire(&self, port: u32, link: Link) -> Link {
        if !self.distance {
            return link;
        }
        let [columns, rows] = self.cluster;
        let beyond = |place: u32, side: u32| {
            let from_middle = if side.is_multiple_of(2) && place >= side / 2 { place + 1 - side / 2 } else { place.abs_diff(side / 2) };
            from_middle.saturating_sub(1)
        };
        // BookSim 2 counts a cluster column by column here and row by row elsewhere.
        Link { latency: link.latency * (1 + beyond(port / rows, columns) + beyond(port % rows, rows)), ..link }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TerminalId;
    use crate::network::Endpoint;
    use crate::network::metrics::Metrics;
    use crate::topology::{ChannelParameters, NoFiles};

    fn shape(radix: u32, dimensions: u32, floor: [u32; 2], cluster: [u32; 2]) -> OnChipFlattenedButterfly {
        OnChipFlattenedButterfly { radix, dimensions, floor, cluster, distance: true }
    }

    fn build(shape: &OnChipFlattenedButterfly) -> Result<Network, NetworkError> {
        shape.build(&BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 })
    }

    /// k^n routers of n (k - 1) links each, any two of them at most n hops apart.
    #[test]
    fn counts_follow_the_closed_forms() {
        for (k, n, floor) in [(4, 2, [4, 4]), (3, 3, [9, 3]), (8, 1, [4, 2]), (2, 4, [4, 4])] {
            let metrics = Metrics::of(&build(&shape(k, n, floor, [2, 2])).unwrap());
            assert_eq!((metrics.terminals, metrics.routers), (4 * k.pow(n), k.pow(n)));
            assert_eq!(metrics.links, u64::from(k.pow(n) * n * (k - 1) / 2));
            assert_eq!(metrics.distances.diameter, n);
        }
    }

    /// Router 1 to router 3 of a row of four: two columns of two terminals; router 1 to router 13: three rows.
    #[test]
    fn wires_are_as_long_as_the_floor_plan_says() {
        let network = build(&shape(4, 2, [4, 4], [2, 2])).unwrap();
        let latency = |router: u32, port: Port| {
            let channel = network.output_channel(RouterId(router), port).unwrap();
            (network.destination(channel), network.link(channel).latency)
        };
        assert_eq!(latency(1, 6), (Endpoint::Router(RouterId(3), 5), 4));
        assert_eq!(latency(1, 9), (Endpoint::Router(RouterId(13), 7), 6));
        assert_eq!(network.ejection_port(TerminalId(8 * 5 + 6)), (RouterId(11), 2));
        let near = build(&OnChipFlattenedButterfly { distance: false, ..shape(4, 2, [4, 4], [2, 2]) }).unwrap();
        assert_eq!(near.links().len(), 1);
    }

    /// Places along a side of four are 2, 1, 1 and 2 from the middle, along one of three 1, 0 and 1: only the outer ones of
    /// four are further than a cycle.
    #[test]
    fn the_channels_of_a_terminal_grow_with_the_cluster() {
        let link = Link::default();
        let latencies = |cluster: [u32; 2]| -> Vec<u32> {
            let shape = shape(2, 1, [2, 1], cluster);
            (0..cluster[0] * cluster[1]).map(|port| shape.terminal_wire(port, link).latency).collect()
        };
        assert_eq!(latencies([2, 2]), [1; 4]);
        assert_eq!(latencies([3, 3]), [1; 9]);
        assert_eq!(latencies([4, 1]), [2, 1, 1, 2]);
        assert_eq!(latencies([2, 4]), [2, 1, 1, 2, 2, 1, 1, 2]);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (wrong, key) in [
            (shape(1, 2, [1, 1], [2, 2]), "radix"),
            (shape(4, 0, [1, 1], [2, 2]), "dimensions"),
            (shape(4, 2, [4, 3], [2, 2]), "floor"),
            (shape(4, 2, [4, 4], [2, 0]), "cluster"),
        ] {
            assert!(matches!(build(&wrong), Err(NetworkError::Parameter { key: found, .. }) if found == key), "{wrong:?}");
        }
        assert!(matches!(build(&shape(4, 20, [4, 4], [2, 2])), Err(NetworkError::TooLarge(_))));
    }
}
