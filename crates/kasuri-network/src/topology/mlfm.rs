//! Multi-layer full mesh: layers of leaves, fully meshed through spines that all layers share.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// L = `layers` layers of m = `positions` leaves with p = `terminals_per_leaf` terminals each, and one spine for each unordered
/// pair of positions, to which the leaves of these two positions are linked in every layer. `degree = d` stands for L = d,
/// m = d + 1, p = d: d^2 (d + 1) terminals on 3 d (d + 1) / 2 routers of 2 d ports each.
///
/// Leaf (l, a) is router l m + a and serves the terminals (l m + a) p + i at its ports i = 0..p-1. Its port p + o - 1,
/// o = 1..m-1, leads to the spine of positions a and (a + o) mod m. Spine {a, b}, a < b, is router
/// L m + a m - a (a + 1) / 2 + b - a - 1; its port l leads to leaf (l, a), its port L + l to leaf (l, b).
///
/// Two leaves are 2 hops apart: at different positions by one spine, at the same position in different layers by any of m - 1.
/// With p <= m - 1 the network carries uniform traffic as fast as the terminals send it.
///
/// Labels: routers `level` (1 leaf, 2 spine), `layer` (of a spine: L), `position` (of a spine: a), `position.other` (of a leaf:
/// a, of a spine: b); attributes `mlfm` = [L, m, p], `terminal_digits` = [p, m, L], `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mlfm {
    /// The standard form of degree d, at least 2. Either this or the three other keys.
    #[serde(default)]
    pub degree: Option<u32>,
    /// Layers, L.
    #[serde(default)]
    pub layers: Option<u32>,
    /// Leaves of a layer, m, at least 2.
    #[serde(default)]
    pub positions: Option<u32>,
    /// Terminals on each leaf, p.
    #[serde(default)]
    pub terminals_per_leaf: Option<u32>,
}

impl Member for Mlfm {
    const NAME: &'static str = "mlfm";
    const SUMMARY: &'static str = "multi-layer full mesh: layers of leaves, one spine for each pair of positions";
    const SOURCE: &'static str = "Fujitsu Laboratories, Multi-layer Full Mesh (2014); Kathareios et al., Cost-Effective Diameter-Two \
                                  Topologies, SC15, section 2 (MLFM)";
    const EXAMPLE: &'static str = "layers = 4\npositions = 4\nterminals_per_leaf = 2";
}

impl Topology for Mlfm {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let shape = self.shape()?;
        context.channels.check(1)?;
        let Shape { layers, positions, terminals } = shape;
        let mut builder = NetworkBuilder::new(format!("mlfm ({layers}, {positions}, {terminals})"));
        for _ in 0..layers * positions {
            builder.add_router((terminals + positions - 1) as usize)?;
        }
        for _ in 0..positions * (positions - 1) / 2 {
            builder.add_router(2 * layers as usize)?;
        }
        shape.add_links(&mut builder, context);
        for leaf in 0..layers * positions {
            for port in 0..terminals {
                builder.add_terminal(RouterId(leaf), port as Port, context.channels.terminal_link());
            }
        }
        shape.add_labels(&mut builder);
        builder.finish()
    }
}

impl Mlfm {
    fn shape(&self) -> Result<Shape, NetworkError> {
        let shape = match (self.degree, self.layers, self.positions, self.terminals_per_leaf) {
            (Some(degree), None, None, None) if degree < 2 => {
                return Err(NetworkError::parameter("degree", format!("is {degree}; the least degree is 2")));
            }
            (Some(degree), None, None, None) => Shape { layers: degree, positions: degree.saturating_add(1), terminals: degree },
            (None, Some(layers), Some(positions), Some(terminals)) => Shape { layers, positions, terminals },
            (Some(degree), ..) => {
                let problem = format!("is {degree} beside other keys; give either `degree` or the three others");
                return Err(NetworkError::parameter("degree", problem));
            }
            _ => {
                let problem = "is missing; give either `degree` or all of `layers`, `positions` and `terminals_per_leaf`";
                return Err(NetworkError::parameter("degree", problem));
            }
        };
        shape.check()?;
        Ok(shape)
    }
}

/// The three numbers of an MLFM.
#[derive(Clone, Copy)]
struct Shape {
    layers: u32,
    positions: u32,
    terminals: u32,
}

impl Shape {
    fn check(self) -> Result<(), NetworkError> {
        if self.layers == 0 {
            return Err(NetworkError::parameter("layers", "is 0; there is at least 1 layer"));
        }
        if self.positions < 2 {
            let problem = format!("is {}; a full mesh has at least 2 positions", self.positions);
            return Err(NetworkError::parameter("positions", problem));
        }
        if self.terminals == 0 {
            return Err(NetworkError::parameter("terminals_per_leaf", "is 0; each leaf needs at least 1 terminal"));
        }
        let numbers = [self.layers, self.positions, self.terminals];
        // The ports of a router are far fewer; what is refused here would overflow before a router is added.
        if numbers.iter().any(|&number| number > 1 << 10) {
            return Err(NetworkError::TooLarge(format!("mlfm {numbers:?}; the limit of each number is 2^10")));
        }
        Ok(())
    }

    /// The spine of two positions, low < high.
    fn spine(self, low: u32, high: u32) -> RouterId {
        RouterId(self.layers * self.positions + low * self.positions - low * (low + 1) / 2 + (high - low - 1))
    }

    fn pairs(self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.positions).flat_map(move |low| (low + 1..self.positions).map(move |high| (low, high)))
    }

    fn add_links(self, builder: &mut NetworkBuilder, context: &BuildContext<'_>) {
        let link = context.channels.link(0);
        for layer in 0..self.layers {
            for (low, high) in self.pairs() {
                for (here, other, port) in [(low, high, layer), (high, low, self.layers + layer)] {
                    let offset = (other + self.positions - here) % self.positions;
                    let leaf = (RouterId(layer * self.positions + here), (self.terminals + offset - 1) as Port);
                    builder.add_link(leaf, (self.spine(low, high), port as Port), link);
                }
            }
        }
    }

    fn add_labels(self, builder: &mut NetworkBuilder) {
        let Self { layers, positions, terminals } = self;
        let leaves = layers * positions;
        let spines = (positions * (positions - 1) / 2) as usize;
        let column = |of_leaf: &dyn Fn(u32) -> u32, of_spine: &dyn Fn((u32, u32)) -> u32| {
            (0..leaves).map(of_leaf).chain(self.pairs().map(of_spine)).collect::<Vec<u32>>()
        };
        debug_assert_eq!(self.pairs().count(), spines);
        builder.label_routers("level", column(&|_| 1, &|_| 2));
        builder.label_routers("layer", column(&|leaf| leaf / positions, &|_| layers));
        builder.label_routers("position", column(&|leaf| leaf % positions, &|(low, _)| low));
        builder.label_routers("position.other", column(&|leaf| leaf % positions, &|(_, high)| high));
        builder.set_attribute("mlfm", vec![layers, positions, terminals]);
        builder.set_attribute("terminal_digits", vec![terminals, positions, layers]);
        // Up and down again is one class: no route goes up twice in it.
        builder.set_attribute("hops_per_class", vec![2]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TerminalId;
    use crate::network::metrics::Metrics;
    use crate::network::{Endpoint, metrics::Bisection};
    use crate::topology::{ChannelParameters, NoFiles};

    fn build_from(mlfm: &Mlfm) -> Result<Network, NetworkError> {
        mlfm.build(&BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 })
    }

    fn build(layers: u32, positions: u32, terminals: u32) -> Result<Network, NetworkError> {
        build_from(&Mlfm { degree: None, layers: Some(layers), positions: Some(positions), terminals_per_leaf: Some(terminals) })
    }

    /// Degree d: d^2 (d + 1) terminals, 3 d (d + 1) / 2 routers, d^2 (d + 1) links, all of 2 d ports, all ports used.
    #[test]
    fn the_standard_form_has_the_counts_of_its_degree() {
        for d in 2..13 {
            let network = build_from(&Mlfm { degree: Some(d), layers: None, positions: None, terminals_per_leaf: None }).unwrap();
            assert_eq!(network.terminal_count(), d * d * (d + 1));
            assert_eq!(network.router_count(), 3 * d * (d + 1) / 2);
            assert_eq!(network.router_channels().count() as u32, 2 * d * d * (d + 1));
            for router in (0..network.router_count()).map(RouterId) {
                assert_eq!(network.port_count(router), 2 * d);
                assert!((0..2 * d).all(|port| network.output_channel(router, port as Port).is_some()));
            }
            assert_eq!(network, build(d, d + 1, d).unwrap());
        }
    }

    /// 32 terminals, 16 leaves of 5 ports, 6 spines of 8; leaves are at most 2 hops apart.
    #[test]
    fn the_network_of_the_published_experiment() {
        let network = build(4, 4, 2).unwrap();
        assert_eq!((network.terminal_count(), network.router_count()), (32, 16 + 6));
        assert!((0..16).all(|leaf| network.port_count(RouterId(leaf)) == 5));
        assert!((16..22).all(|spine| network.port_count(RouterId(spine)) == 8));
        let metrics = Metrics::of(&network);
        assert_eq!((metrics.links, metrics.distances.diameter), (48, 2));
    }

    /// Ports and numbers as the documentation of [`Mlfm`] says, from both ends.
    #[test]
    fn spines_join_the_positions_of_their_number() {
        let (layers, positions, terminals) = (3, 5, 4);
        let network = build(layers, positions, terminals).unwrap();
        let mut next = layers * positions;
        for (a, b) in (0..positions).flat_map(|a| (a + 1..positions).map(move |b| (a, b))) {
            let spine = RouterId(next);
            next += 1;
            for layer in 0..layers {
                for (port, here, offset) in [(layer, a, b - a), (layers + layer, b, positions - (b - a))] {
                    let end = network.destination(network.output_channel(spine, port as Port).unwrap());
                    assert_eq!(end, Endpoint::Router(RouterId(layer * positions + here), (terminals + offset - 1) as Port));
                }
            }
        }
        assert_eq!(next, network.router_count());
        assert_eq!(network.ejection_port(TerminalId((2 * 5 + 3) * 4 + 1)), (RouterId(2 * 5 + 3), 1));
    }

    /// Half of the positions against the others: L floor(m/2) ceil(m/2) links.
    #[test]
    fn the_cut_between_positions_bounds_the_bisection() {
        for (layers, positions, terminals) in [(4, 4, 2), (4, 6, 4)] {
            let cut = Bisection::of(&build(layers, positions, terminals).unwrap()).unwrap();
            assert_eq!(cut.channels, u64::from(2 * layers * (positions / 2) * positions.div_ceil(2)));
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (layers, positions, terminals, key) in [(0, 4, 2, "layers"), (4, 1, 2, "positions"), (4, 4, 0, "terminals_per_leaf")] {
            assert!(matches!(build(layers, positions, terminals), Err(NetworkError::Parameter { key: found, .. }) if found == key));
        }
        assert!(matches!(build(4, 600, 4), Err(NetworkError::TooLarge(_))));
        assert!(matches!(build(u32::MAX, 4, 4), Err(NetworkError::TooLarge(_))));
        for (degree, layers) in [(Some(1), None), (Some(u32::MAX), Some(3)), (None, Some(3)), (None, None)] {
            let mlfm = Mlfm { degree, layers, positions: None, terminals_per_leaf: None };
            assert!(matches!(build_from(&mlfm), Err(NetworkError::Parameter { key, .. }) if key == "degree"));
        }
    }
}
