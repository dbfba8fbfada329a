//! PolarFly: the polarity graph of a projective plane.

use super::adjacency;
use super::contract::{BuildContext, Topology};
use super::galois::{Field, nearest, prime_power};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// The greatest order: a router has q + 1 links.
const MAX_ORDER: u32 = 509;

/// The graph ER_q of Erdos and Renyi: q^2 + q + 1 routers, the points of the plane over the field of q elements, linked where they are
/// orthogonal. Any two routers are at most 2 hops apart, and there is one path of 2 hops between them.
///
/// Points are normalised so that the first coordinate that is not 0 is 1, in the order (0, 0, 1); (0, 1, z), z ascending; (1, y, z), y then z
/// ascending. Field elements are numbered as for `slim-fly`: digits to the base p are coefficients, the lowest first, products modulo the first
/// monic polynomial for which x generates the field. Ports: the neighbours in ascending order, then the terminals; the q + 1 routers that are
/// orthogonal to themselves (quadrics) have one link less.
///
/// Labels: routers `quadric` (1 if it is one); attributes `polarfly` = [q, concentration], `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolarFly {
    /// A prime power.
    pub q: u32,
    /// Terminals on each router; otherwise (q + 1) / 2, rounded down, with which uniform traffic is carried in full.
    #[serde(default)]
    pub concentration: Option<u32>,
}

impl Member for PolarFly {
    const NAME: &'static str = "polarfly";
    const SUMMARY: &'static str = "polarity graph of a projective plane: q^2 + q + 1 routers of q + 1 links, diameter 2";
    const SOURCE: &'static str = "Lakhotia et al., PolarFly: A Cost-Effective and Flexible Low-Diameter Topology, SC22, sections 4 to 6";
    const EXAMPLE: &'static str = "q = 3\nconcentration = 2";
}

impl Topology for PolarFly {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let q = self.q;
        let plane = Plane::new(q)?;
        let concentration = self.concentration.unwrap_or(q.div_ceil(2));
        adjacency::check(plane.points(), q + 1, concentration)?;
        context.channels.check(1)?;
        let mut builder = NetworkBuilder::new(format!("polarfly {q} x {concentration}"));
        adjacency::attach(&mut builder, &plane.neighbours(), concentration, context)?;
        builder.label_routers("quadric", (0..plane.points()).map(|point| u32::from(plane.is_quadric(point))).collect());
        builder.set_attribute("polarfly", vec![q, concentration]);
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

/// The projective plane over a field.
#[derive(Debug)]
pub(super) struct Plane {
    q: u32,
    field: Field,
    /// By element: that which gives 0 when added.
    negative: Vec<u32>,
}

impl Plane {
    /// The plane of this order.
    ///
    /// # Errors
    /// It is no prime power, or too large for a router.
    pub(super) fn new(q: u32) -> Result<Self, NetworkError> {
        let fits = |order: u32| (2..=MAX_ORDER).contains(&order) && prime_power(order).is_some();
        match prime_power(q) {
            Some((prime, exponent)) if fits(q) => {
                let field = Field::new(prime, exponent);
                let negative = (0..q).map(|element| field.multiply(prime - 1, element)).collect();
                Ok(Self { q, field, negative })
            }
            _ => {
                let problem =
                    format!("is {q}; it must be a prime power from 2 to {MAX_ORDER}, such as {}", nearest(q, 2..=MAX_ORDER, fits));
                Err(NetworkError::parameter("q", problem))
            }
        }
    }

    /// How many points it has.
    pub(super) fn points(&self) -> u32 {
        self.q * self.q + self.q + 1
    }

    fn coordinates(&self, point: u32) -> [u32; 3] {
        match point.checked_sub(1) {
            None => [0, 0, 1],
            Some(rest) if rest < self.q => [0, 1, rest],
            Some(rest) => [1, (rest - self.q) / self.q, (rest - self.q) % self.q],
        }
    }

    /// Is the point orthogonal to itself?
    pub(super) fn is_quadric(&self, point: u32) -> bool {
        let squares = self.coordinates(point).map(|coordinate| self.field.multiply(coordinate, coordinate));
        self.field.add(self.field.add(squares[0], squares[1]), squares[2]) == 0
    }

    /// The points that are orthogonal to each, itself left out, ascending.
    pub(super) fn neighbours(&self) -> Vec<Vec<u32>> {
        (0..self.points()).map(|point| self.orthogonal(point)).collect()
    }

    /// All points of the line u.v = 0 but u itself.
    fn orthogonal(&self, point: u32) -> Vec<u32> {
        let [a, b, c] = self.coordinates(point);
        let mut found = Vec::with_capacity(self.q as usize + 1);
        // (0, 0, 1) where c = 0; (0, 1, z) where b + c z = 0; (1, y, z) where a + b y + c z = 0.
        if c == 0 {
            found.push(0);
        }
        self.solve(b, c, |z| found.push(1 + z));
        for y in 0..self.q {
            let rest = self.field.add(a, self.field.multiply(b, y));
            self.solve(rest, c, |z| found.push(1 + self.q + y * self.q + z));
        }
        found.retain(|&other| other != point);
        found
    }

    /// Each z with rest + c z = 0, ascending.
    fn solve(&self, rest: u32, c: u32, mut take: impl FnMut(u32)) {
        match (rest, c) {
            (0, 0) => (0..self.q).for_each(take),
            (_, 0) => {}
            _ => take(self.field.divide(self.negative[rest as usize], c)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(q: u32, concentration: Option<u32>) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        PolarFly { q, concentration }.build(&context)
    }

    /// q^2 + q + 1 routers, q (q + 1)^2 / 2 links, q + 1 quadrics; every other router within 2 hops, q + 1 of them next to it.
    #[test]
    fn counts_and_distances_follow_the_closed_forms() {
        for q in [2u32, 3, 4, 5, 7, 8, 9, 13] {
            let network = build(q, Some(1)).unwrap();
            let summary = Summary::of(&network);
            let links = u64::from(q * (q + 1) * (q + 1) / 2);
            assert_eq!((summary.routers, summary.links, summary.diameter_routers), (q * q + q + 1, links, Some(2)));
            assert_eq!(network.labels().router("quadric").unwrap().iter().sum::<u32>(), q + 1);
            let pairs = u64::from(summary.routers) * u64::from(summary.routers - 1);
            assert_eq!(summary.sum_hops, Some(2 * pairs - 2 * links), "{q}");
        }
    }

    #[test]
    fn orders_without_a_plane_are_refused_with_the_nearest() {
        for (q, near) in [(0, "as 2"), (1, "as 2"), (6, "5 and 7"), (10, "9 and 11"), (u32::MAX, "as 509")] {
            let problem = build(q, None).unwrap_err().to_string();
            assert!(problem.starts_with("q: ") && problem.ends_with(near), "{problem}");
        }
        assert!(matches!(build(5, Some(0)), Err(NetworkError::Parameter { key, .. }) if key == "concentration"));
        assert!(matches!(build(5, Some(u32::MAX)), Err(NetworkError::TooLarge(_))));
    }
}
