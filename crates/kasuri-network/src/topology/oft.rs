//! Orthogonal fat tree: two levels in which any two leaves share one spine.

use super::contract::{BuildContext, Topology};
use super::galois::{difference_set, nearest, prime_power};
use crate::id::{Port, RouterId};
use crate::network::{MAX_NETWORK_PORTS, Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// The greatest order: a router has 2 (q + 1) ports.
const MAX_ORDER: u32 = 251;

/// n = q^2 + q + 1 leaves a side with d = q + 1 terminals each, and n spines, which two sides share. Leaves and spines are the
/// points and lines of the projective plane of order q, so that two leaves of a side have exactly one spine in common. (The
/// q - 1 orthogonal Latin squares of order q describe the same plane: Latin-square fat tree.)
///
/// With D the perfect difference set of order q: leaf i of side s is router s n + i and serves the terminals (s n + i) d + x at
/// its ports x = 0..d-1; its port d + a leads to spine (i + D\[a\]) mod n, router `sides` n + that, arriving at port s d + a.
///
/// Two leaves are 2 hops apart; leaf i of one side reaches leaf i of the other by any of d spines.
///
/// Labels: routers `level` (1 leaf, 2 spine), `side` (of a spine: `sides`), `position`; attributes `oft` = [q, sides],
/// `difference_set` = D, `terminal_digits` = [d, n, sides], `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Oft {
    /// The order of the plane, q: a prime power from 2 to 211, or to 173 with two sides.
    pub order: u32,
    /// 1, or 2 for two sets of leaves that share the spines: then every router has 2 (q + 1) ports in use.
    #[serde(default = "one")]
    pub sides: u32,
}

fn one() -> u32 {
    1
}

impl Member for Oft {
    const NAME: &'static str = "oft";
    const SUMMARY: &'static str = "orthogonal fat tree: two levels, any two leaves share one spine";
    const SOURCE: &'static str = "Valerio, Moser and Melliar-Smith, Recursively Scalable Fat-Trees as Interconnection Networks (IPCCC 1994); \
                                  difference sets: Singer, Trans. Amer. Math. Soc. 43 (1938)";
    const EXAMPLE: &'static str = "order = 3\nsides = 2";
}

impl Topology for Oft {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let Self { order, sides } = *self;
        let (prime, exponent) = self.check()?;
        context.channels.check(1)?;
        let (spines, degree) = (order * order + order + 1, order + 1);
        let mut builder = NetworkBuilder::new(format!("oft {order}{}", if sides == 2 { ", two-sided" } else { "" }));
        for _ in 0..sides * spines {
            builder.add_router(2 * degree as usize)?;
        }
        for _ in 0..spines {
            builder.add_router((sides * degree) as usize)?;
        }
        let set = difference_set(prime, exponent);
        for leaf in 0..sides * spines {
            let (side, position) = (leaf / spines, leaf % spines);
            for (a, &difference) in set.iter().enumerate() {
                let spine = RouterId(sides * spines + (position + difference) % spines);
                let a = a as u32;
                builder.add_link((RouterId(leaf), (degree + a) as Port), (spine, (side * degree + a) as Port), context.channels.link(0));
            }
            for port in 0..degree {
                builder.add_terminal(RouterId(leaf), port as Port, context.channels.terminal_link());
            }
        }
        let routers = 0..(sides + 1) * spines;
        builder.label_routers("level", routers.clone().map(|router| 1 + router / (sides * spines)).collect());
        builder.label_routers("side", routers.clone().map(|router| router / spines).collect());
        builder.label_routers("position", routers.map(|router| router % spines).collect());
        builder.set_attribute("oft", vec![order, sides]);
        builder.set_attribute("difference_set", set);
        builder.set_attribute("terminal_digits", vec![degree, spines, sides]);
        // Up and down again is one class: no route goes up twice in it.
        builder.set_attribute("hops_per_class", vec![2]);
        builder.finish()
    }
}

impl Oft {
    /// The prime and the exponent of the order.
    fn check(&self) -> Result<(u32, u32), NetworkError> {
        if self.sides != 1 && self.sides != 2 {
            return Err(NetworkError::parameter("sides", format!("is {}; a tree has 1 side or 2", self.sides)));
        }
        // Each of n = q^2 + q + 1 spines and of the leaves of each side has ports for q + 1 links a side.
        let ports = |order: u32| 3 * u64::from(self.sides) * u64::from(order * order + order + 1) * u64::from(order + 1);
        let fits = |order: u32| (2..=MAX_ORDER).contains(&order) && ports(order) <= MAX_NETWORK_PORTS && prime_power(order).is_some();
        prime_power(self.order).filter(|_| self.order <= MAX_ORDER).ok_or_else(|| {
            let near = nearest(self.order, 2..=MAX_ORDER, fits);
            let most = (2..=MAX_ORDER).rev().find(|&order| fits(order)).unwrap_or(2);
            NetworkError::parameter("order", format!("is {}; it must be a prime power from 2 to {most}, such as {near}", self.order))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Endpoint;
    use crate::network::metrics::Metrics;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(order: u32, sides: u32) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        Oft { order, sides }.build(&context)
    }

    /// One side: d n terminals on 2 n routers; two sides: 2 d n on 3 n, all of 2 d ports. Two leaves are 2 hops apart.
    #[test]
    fn counts_follow_the_closed_forms() {
        for order in [2, 3, 4, 5, 7, 8, 9, 11] {
            let (d, n) = (order + 1, order * order + order + 1);
            for sides in [1, 2] {
                let network = build(order, sides).unwrap();
                assert_eq!((network.terminal_count(), network.router_count()), (sides * d * n, (sides + 1) * n));
                assert_eq!(network.router_channels().count() as u32, 2 * sides * d * n);
                for router in (0..network.router_count()).map(RouterId) {
                    let ports = if router.0 < sides * n { 2 * d } else { sides * d };
                    assert_eq!(network.port_count(router), ports);
                    assert!((0..ports).all(|port| network.output_channel(router, port as Port).is_some()));
                }
                if order < 6 {
                    assert_eq!(Metrics::of(&network).distances.diameter, 2);
                }
            }
        }
    }

    /// The known table: terminals and routers for q = 11 with one side and two.
    #[test]
    fn order_eleven_has_the_published_counts() {
        for (sides, terminals, routers) in [(1, 1596, 266), (2, 3192, 399)] {
            let network = build(11, sides).unwrap();
            assert_eq!((network.terminal_count(), network.router_count()), (terminals, routers));
        }
    }

    /// Two leaves at different positions have one spine in common, those at the same position of two sides all.
    #[test]
    fn leaves_share_one_spine() {
        let (order, sides) = (4, 2);
        let (d, n) = (order + 1, order * order + order + 1);
        let network = build(order, sides).unwrap();
        let spines = |leaf: u32| -> Vec<Endpoint> {
            let end = |port| network.destination(network.output_channel(RouterId(leaf), port as Port).unwrap());
            let router = |end| match end {
                Endpoint::Router(router, _) => Endpoint::Router(router, 0),
                terminal => terminal,
            };
            (d..2 * d).map(|port| router(end(port))).collect()
        };
        for (one, other) in (0..2 * n).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let common = spines(one).iter().filter(|spine| spines(other).contains(spine)).count() as u32;
            assert_eq!(common, if one % n == other % n { d } else { 1 });
        }
    }

    #[test]
    fn orders_without_a_known_plane_are_refused_with_the_nearest() {
        for (order, near) in [(0, "as 2"), (1, "as 2"), (6, "5 and 7"), (10, "9 and 11"), (100, "97 and 101"), (1000, "as 211")] {
            let Err(NetworkError::Parameter { key, problem }) = build(order, 1) else { panic!("{order}") };
            assert_eq!(key, "order");
            assert!(problem.contains(near), "{problem}");
        }
        assert!(matches!(build(3, 3), Err(NetworkError::Parameter { key, .. }) if key == "sides"));
    }
}
