//! Slim fly: the graphs of McKay, Miller and Siran, near the largest of diameter 2.

use super::contract::{BuildContext, Topology};
use super::galois::{Field, nearest, prime_power};
use crate::id::{Port, RouterId};
use crate::network::{MAX_NETWORK_PORTS, Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// The greatest order: a router has about 9 q / 4 ports.
const MAX_ORDER: u32 = 227;

/// 2 q^2 routers of (3 q - e) / 2 links each, where q = 4 w + e is a prime power and e is -1, 0 or 1; any two routers are at
/// most 2 hops apart.
///
/// Router (s, x, y), s in {0, 1} and x, y in the field of q elements, is number s q^2 + x q + y. (0, x, y) and (0, x, z) are
/// linked if y - z lies in the set X, (1, m, c) and (1, m, b) if c - b lies in X', (0, x, y) and (1, m, c) if y = m x + c. With
/// g the generator of the field, X is the even powers of g below q - 1 and X' the odd ones for e = 0 and 1; for e = -1
/// X = {1, g^2, …, g^(2w-2), g^(2w-1), g^(2w+1), …, g^(4w-3)} and X' = g X.
///
/// Ports: to the routers of the same s and x in ascending order, then to those of the other s in ascending order, then the
/// terminals.
///
/// Labels: routers `subgraph` (s), `coordinate.0` (x or m), `coordinate.1` (y or c); attributes `slim_fly` = [q, concentration],
/// `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlimFly {
    /// q: a prime power of the form 4 w + 1, 4 w or 4 w - 1, from 3 to 193 with the usual number of terminals, to 227 with few.
    pub order: u32,
    /// Terminals on each router; otherwise half of its links, rounded up, with which uniform traffic is carried in full.
    #[serde(default)]
    pub concentration: Option<u32>,
}

impl Member for SlimFly {
    const NAME: &'static str = "slim-fly";
    const SUMMARY: &'static str = "McKay-Miller-Siran graph: 2 q^2 routers, diameter 2";
    const SOURCE: &'static str = "Besta and Hoefler, Slim Fly: A Cost Effective Low-Diameter Network Topology, SC14, section II-B; McKay, Miller \
                                  and Siran, J. Comb. Theory B 74 (1998); X for q = 4 w - 1: Hafner, Discrete Math. 276 (2004)";
    const EXAMPLE: &'static str = "order = 4\nconcentration = 1";
}

impl Topology for SlimFly {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let field = self.field()?;
        context.channels.check(1)?;
        let q = self.order;
        let concentration = self.terminals_of_router();
        if concentration == 0 {
            return Err(NetworkError::parameter("concentration", "is 0; each router needs at least 1 terminal"));
        }
        let mut builder = NetworkBuilder::new(format!("slim-fly {q} x {concentration}"));
        let neighbours = neighbours(&field, q);
        let router_ports = self.links() as usize + concentration as usize;
        for _ in 0..2 * q * q {
            builder.add_router(router_ports)?;
        }
        for (router, list) in neighbours.iter().enumerate() {
            for (port, &other) in list.iter().enumerate().filter(|&(_, &other)| other as usize > router) {
                // An edge stands in the lists of both ends.
                let back = neighbours[other as usize].iter().position(|&end| end as usize == router).unwrap_or_default();
                builder.add_link((RouterId(router as u32), port as Port), (RouterId(other), back as Port), context.channels.link(0));
            }
            for terminal in 0..concentration {
                builder.add_terminal(RouterId(router as u32), (list.len() as u32 + terminal) as Port, context.channels.terminal_link());
            }
        }
        let routers = 0..2 * q * q;
        builder.label_routers("subgraph", routers.clone().map(|router| router / (q * q)).collect());
        builder.label_routers("coordinate.0", routers.clone().map(|router| router / q % q).collect());
        builder.label_routers("coordinate.1", routers.map(|router| router % q).collect());
        builder.set_attribute("slim_fly", vec![q, concentration]);
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

impl SlimFly {
    /// Links of a router: (3 q - e) / 2.
    fn links(&self) -> u32 {
        self.order + generators(self.order)
    }

    fn terminals_of_router(&self) -> u32 {
        self.concentration.unwrap_or_else(|| self.links().div_ceil(2))
    }

    fn field(&self) -> Result<Field, NetworkError> {
        let ports = |order: u32| {
            let shape = Self { order, ..*self };
            2 * u64::from(order * order) * (u64::from(shape.links()) + u64::from(shape.terminals_of_router()))
        };
        let exists = |order: u32| (3..=MAX_ORDER).contains(&order) && order % 4 != 2 && prime_power(order).is_some();
        let fits = |order: u32| exists(order) && ports(order) <= MAX_NETWORK_PORTS;
        match prime_power(self.order) {
            Some((prime, exponent)) if exists(self.order) => Ok(Field::new(prime, exponent)),
            _ => {
                let near = nearest(self.order, 3..=MAX_ORDER, fits);
                let most = (3..=MAX_ORDER).rev().find(|&order| fits(order)).unwrap_or(3);
                let problem = format!("is {}; it must be a prime power from 3 to {most}, such as {near}", self.order);
                Err(NetworkError::parameter("order", problem))
            }
        }
    }
}

/// How many elements X and X' have: (q - e) / 2.
fn generators(q: u32) -> u32 {
    match q % 4 {
        1 => (q - 1) / 2,
        3 => q.div_ceil(2),
        _ => q / 2,
    }
}

/// The exponents of X; those of X' are each greater by 1.
fn exponents(q: u32) -> Vec<u32> {
    let w = q.div_ceil(4);
    match q % 4 {
        3 => (0..w).map(|i| 2 * i).chain((0..w).map(|i| 2 * (w + i) - 1)).collect(),
        _ => (0..generators(q)).map(|i| 2 * i).collect(),
    }
}

/// The routers at the ends of each router's links: those of its own subgraph, then those of the other, each ascending.
fn neighbours(field: &Field, q: u32) -> Vec<Vec<u32>> {
    let sets = [0, 1].map(|shift| exponents(q).iter().map(|&exponent| field.power((exponent + shift).into())).collect::<Vec<u32>>());
    let mut lists = Vec::with_capacity((2 * q * q) as usize);
    for (subgraph, set) in (0..2).zip(&sets) {
        for (row, place) in (0..q).flat_map(|row| (0..q).map(move |place| (row, place))) {
            let mut own: Vec<u32> = set.iter().map(|&step| subgraph * q * q + row * q + field.add(place, step)).collect();
            own.sort_unstable();
            lists.push(own);
        }
    }
    for (x, m, c) in (0..q).flat_map(|x| (0..q).flat_map(move |m| (0..q).map(move |c| (x, m, c)))) {
        let (zero, one) = (x * q + field.add(field.multiply(m, x), c), q * q + m * q + c);
        lists[zero as usize].push(one);
        lists[one as usize].push(zero);
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Metrics;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(order: u32, concentration: Option<u32>) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        SlimFly { order, concentration }.build(&context)
    }

    /// 2 q^2 routers, each with (3 q - e) / 2 links and half as many terminals, any two at most 2 hops apart.
    #[test]
    fn counts_and_diameter_follow_the_closed_forms() {
        for (q, e) in [(3, -1), (4, 0), (5, 1), (7, -1), (8, 0), (9, 1), (11, -1), (13, 1)] {
            let network = build(q, None).unwrap();
            let links = (3 * q as i32 - e) as u32 / 2;
            let metrics = Metrics::of(&network);
            assert_eq!(metrics.routers, 2 * q * q);
            assert_eq!(metrics.links, u64::from(q * q * links));
            assert_eq!(metrics.terminals, 2 * q * q * links.div_ceil(2));
            assert_eq!(metrics.radix, links + links.div_ceil(2));
            assert_eq!(metrics.distances.diameter, 2, "{q}");
            for router in (0..network.router_count()).map(RouterId) {
                assert!((0..network.port_count(router)).all(|port| network.output_channel(router, port as Port).is_some()));
            }
        }
    }

    /// q = 5 is the graph of Hoffman and Singleton: with 50 routers of 7 links the largest possible of diameter 2, in which
    /// therefore every router is reached exactly once in at most 2 hops.
    #[test]
    fn order_five_meets_the_moore_bound() {
        let metrics = Metrics::of(&build(5, Some(1)).unwrap());
        assert_eq!((metrics.routers, metrics.links), (1 + 7 + 7 * 6, 175));
        assert!((metrics.distances.average - f64::from(7 + 42 * 2) / 49.0).abs() < 1e-12);
    }

    #[test]
    fn orders_without_a_graph_are_refused_with_the_nearest() {
        for (order, near) in [(2, "as 3"), (6, "5 and 7"), (15, "13 and 16"), (1000, "as 193")] {
            let Err(NetworkError::Parameter { key, problem }) = build(order, None) else { panic!("{order}") };
            assert_eq!(key, "order");
            assert!(problem.contains(near), "{problem}");
        }
        assert!(matches!(build(5, Some(0)), Err(NetworkError::Parameter { key, .. }) if key == "concentration"));
        assert!(matches!(build(5, Some(u32::MAX)), Err(NetworkError::TooLarge(_))));
    }
}
