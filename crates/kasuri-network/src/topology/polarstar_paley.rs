//! PolarStar with Paley graphs: the star product of a PolarFly and a small graph.

use super::contract::{BuildContext, Topology};
use super::galois::{Field, nearest, prime_power};
use super::polarfly::Plane;
use super::yes_no::YesNo;
use super::{adjacency, sizes};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// The greatest order of the Paley graph: a router has (s - 1) / 2 links within its supernode.
const MAX_PALEY: u32 = 1009;

/// Each router of a PolarFly of order `q` becomes a supernode of s = `paley` routers, the Paley graph on the field of s elements: x and y are
/// linked if x - y is a square other than 0. Each link between u and v of the PolarFly, u < v, becomes the links between x of u and g x of v,
/// g the least element that is no square. Any two routers are at most 3 hops apart.
///
/// Router = v s + x. Ports: the neighbours in ascending order, then the terminals. Vertices are numbered as in `polarfly`.
///
/// Labels: routers `supernode`, `position`; attributes `polarstar_paley` = [q, s, concentration], `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolarStarPaley {
    /// The order of the PolarFly, a prime power.
    pub q: u32,
    /// The order of the Paley graph, s: a prime power of the form 4 w + 1.
    pub paley: u32,
    /// Terminals on each router.
    #[serde(default = "one")]
    pub concentration: u32,
    /// Are x and g x linked within the supernodes of quadrics, whose routers have free ports?
    #[serde(default)]
    pub quadric_loops: YesNo,
}

fn one() -> u32 {
    1
}

impl Member for PolarStarPaley {
    const NAME: &'static str = "polarstar-paley";
    const SUMMARY: &'static str = "star product of a PolarFly and a Paley graph, diameter 3";
    const SOURCE: &'static str =
        "Lakhotia et al., PolarStar: Expanding the Horizon of Diameter-3 Networks, SPAA 2024, the family with Paley graphs";
    const EXAMPLE: &'static str = "q = 2\npaley = 5";
}

impl Topology for PolarStarPaley {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let plane = Plane::new(self.q)?;
        let paley = Paley::new(self.paley)?;
        let s = self.paley;
        let routers = sizes::product("routers", &[plane.points(), s])?;
        adjacency::check(routers, self.q + 1 + s / 2, self.concentration)?;
        context.channels.check(1)?;
        let words = if self.quadric_loops.is_yes() { " with quadric loops" } else { "" };
        let mut builder = NetworkBuilder::new(format!("polarstar-paley ({}, {s}) x {}{words}", self.q, self.concentration));
        let neighbours = adjacency::of_edges(routers, self.edges(&plane, &paley).into_iter());
        adjacency::attach(&mut builder, &neighbours, self.concentration, context)?;
        builder.label_routers("supernode", (0..routers).map(|router| router / s).collect());
        builder.label_routers("position", (0..routers).map(|router| router % s).collect());
        builder.set_attribute("polarstar_paley", vec![self.q, s, self.concentration]);
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

impl PolarStarPaley {
    /// All links; those of quadrics may stand twice.
    fn edges(&self, plane: &Plane, paley: &Paley) -> Vec<(u32, u32)> {
        let s = self.paley;
        let mut edges = Vec::new();
        for (vertex, neighbours) in plane.neighbours().into_iter().enumerate() {
            let vertex = vertex as u32;
            edges.extend(paley.edges.iter().map(|&(x, y)| (vertex * s + x, vertex * s + y)));
            for other in neighbours.into_iter().filter(|&other| other > vertex) {
                edges.extend((0..s).map(|x| (vertex * s + x, other * s + paley.image[x as usize])));
            }
            if self.quadric_loops.is_yes() && plane.is_quadric(vertex) {
                // 0 is its own image.
                edges.extend((1..s).map(|x| (vertex * s + x, vertex * s + paley.image[x as usize])));
            }
        }
        edges
    }
}

/// A Paley graph, and the map from x to g x.
struct Paley {
    edges: Vec<(u32, u32)>,
    image: Vec<u32>,
}

impl Paley {
    fn new(order: u32) -> Result<Self, NetworkError> {
        let fits = |order: u32| order % 4 == 1 && (5..=MAX_PALEY).contains(&order) && prime_power(order).is_some();
        let Some((prime, exponent)) = prime_power(order).filter(|_| fits(order)) else {
            let near = nearest(order, 5..=MAX_PALEY, fits);
            let problem = format!("is {order}; it must be a prime power of the form 4 w + 1 from 5 to {MAX_PALEY}, such as {near}");
            return Err(NetworkError::parameter("paley", problem));
        };
        let field = Field::new(prime, exponent);
        let mut is_square = vec![false; order as usize];
        (1..order).for_each(|x| is_square[field.multiply(x, x) as usize] = true);
        let factor = (1..order).find(|&x| !is_square[x as usize]).unwrap_or(1);
        let difference = |x: u32, y: u32| field.add(x, field.multiply(prime - 1, y));
        let pairs = (0..order).flat_map(|x| (x + 1..order).map(move |y| (x, y)));
        let edges = pairs.filter(|&(x, y)| is_square[difference(x, y) as usize]).collect();
        Ok(Self { edges, image: (0..order).map(|x| field.multiply(factor, x)).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(q: u32, paley: u32, concentration: u32, loops: bool) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        PolarStarPaley { q, paley, concentration, quadric_loops: YesNo::Truth(loops) }.build(&context)
    }

    /// (q^2 + q + 1) s routers; (q^2 + q + 1) s (s - 1) / 4 links within supernodes and q (q + 1)^2 s / 2 between them; diameter 3, also with
    /// the links of the quadrics.
    #[test]
    fn counts_and_diameter_follow_the_closed_forms() {
        for (q, s) in [(2, 5), (3, 9), (4, 5), (2, 13)] {
            let summary = Summary::of(&build(q, s, 1, false).unwrap());
            let points = q * q + q + 1;
            assert_eq!((summary.routers, summary.diameter_routers), (points * s, Some(3)));
            assert_eq!(summary.links, u64::from(points * s * (s - 1) / 4 + q * (q + 1) * (q + 1) * s / 2));
            let more = Summary::of(&build(q, s, 1, true).unwrap());
            assert!(more.links > summary.links && more.diameter_routers == Some(3));
        }
    }

    #[test]
    fn orders_without_a_graph_are_refused_with_the_nearest() {
        for (q, paley, key, near) in
            [(6, 5, "q", "5 and 7"), (3, 7, "paley", "5 and 9"), (3, 1, "paley", "as 5"), (3, u32::MAX, "paley", "as 1009")]
        {
            let problem = build(q, paley, 1, false).unwrap_err().to_string();
            assert!(problem.starts_with(&format!("{key}: ")) && problem.ends_with(near), "{problem}");
        }
        assert!(matches!(build(3, 5, 0, false), Err(NetworkError::Parameter { key, .. }) if key == "concentration"));
        assert!(matches!(build(509, 1009, 1, false), Err(NetworkError::TooLarge(_))));
    }
}
