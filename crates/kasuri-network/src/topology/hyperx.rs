//! HyperX: a grid whose rows are full meshes, with parallel links.

use super::contract::{BuildContext, Topology};
use super::sizes;
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// HyperX(L; S; K; T): a grid of S_1 x … x S_L routers with T terminals each; routers that differ in coordinate i alone are joined by K_i links.
///
/// Router number = sum of coordinate(i) x product of the sizes before i: the first dimension varies fastest. Ports: of the first dimension copy
/// 0 (the other coordinates in ascending order), copy 1, and so on, then those of the second dimension, …, then the terminals. With all K = 1
/// it is a `flattened-butterfly`.
///
/// Labels: routers `coordinate.0`, `coordinate.1`, …; attributes `flattened_butterfly` = S where all K are 1, `terminal_digits`,
/// `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HyperX {
    /// Routers in each dimension, each at least 2.
    #[serde(rename = "S")]
    pub sizes: Vec<u32>,
    /// Links between two routers of a row, for each dimension; 1 unless given.
    #[serde(rename = "K", default)]
    pub links: Option<Vec<u32>>,
    /// Terminals on each router.
    #[serde(rename = "T", default = "one")]
    pub terminals: u32,
}

fn one() -> u32 {
    1
}

impl Member for HyperX {
    const NAME: &'static str = "hyperx";
    const SUMMARY: &'static str = "grid whose rows are full meshes, with parallel links by dimension";
    const SOURCE: &'static str = "Ahn, Binkert, Davis, McLaren and Schreiber, HyperX: Topology, Routing, and Packaging of Efficient Large-Scale Networks, SC09, section 3";
    const EXAMPLE: &'static str = "S = [3, 2]\nK = [1, 2]\nT = 2";
}

impl Topology for HyperX {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let (routers, copies) = self.check()?;
        context.channels.check(self.sizes.len())?;
        let mut builder = NetworkBuilder::new(format!("hyperx {:?} x {copies:?} x {}", self.sizes, self.terminals));
        let links: u32 = self.sizes.iter().zip(&copies).map(|(size, copies)| (size - 1) * copies).sum();
        for _ in 0..routers {
            builder.add_router((links + self.terminals) as usize)?;
        }
        let (mut stride, mut first_port) = (1, 0);
        for (dimension, (&size, &copies)) in self.sizes.iter().zip(&copies).enumerate() {
            let coordinates: Vec<u32> = (0..routers).map(|router| router / stride % size).collect();
            for (router, copy) in (0..routers).flat_map(|router| (0..copies).map(move |copy| (router, copy))) {
                let here = coordinates[router as usize];
                let base = first_port + copy * (size - 1);
                for there in here + 1..size {
                    // Each skips itself: the higher coordinate is one place earlier in the lower one's list.
                    let low = (RouterId(router), (base + there - 1) as Port);
                    let high = (RouterId(router + (there - here) * stride), (base + here) as Port);
                    builder.add_link(low, high, context.channels.link(dimension));
                }
            }
            builder.label_routers(format!("coordinate.{dimension}"), coordinates);
            stride *= size;
            first_port += (size - 1) * copies;
        }
        for terminal in 0..routers * self.terminals {
            let port = first_port + terminal % self.terminals;
            builder.add_terminal(RouterId(terminal / self.terminals), port as Port, context.channels.terminal_link());
        }
        if copies.iter().all(|&copies| copies == 1) {
            builder.set_attribute("flattened_butterfly", self.sizes.clone());
        }
        let digits = std::iter::once(self.terminals).chain(self.sizes.iter().copied());
        builder.set_attribute("terminal_digits", digits.filter(|&radix| radix > 1).collect());
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

impl HyperX {
    /// The number of routers, and the parallel links by dimension.
    fn check(&self) -> Result<(u32, Vec<u32>), NetworkError> {
        let copies = self.links.clone().unwrap_or_else(|| vec![1; self.sizes.len()]);
        sizes::all_at_least("S", &self.sizes, 2)?;
        sizes::all_at_least("K", &copies, 1)?;
        sizes::positive("T", self.terminals)?;
        if copies.len() != self.sizes.len() {
            let problem = format!("has {} numbers, but S has {}; give one for each dimension", copies.len(), self.sizes.len());
            return Err(NetworkError::parameter("K", problem));
        }
        let routers = sizes::product("routers", &self.sizes)?;
        let mut ports = self.terminals;
        for (&size, &copies) in self.sizes.iter().zip(&copies) {
            ports = sizes::sum("ports of a router", &[ports, sizes::product("links of a router in a dimension", &[size - 1, copies])?])?;
        }
        sizes::product("ports", &[routers, ports])?;
        Ok((routers, copies))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::flattened_butterfly::FlattenedButterfly;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(sizes: &[u32], links: Option<&[u32]>, terminals: u32) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        HyperX { sizes: sizes.to_vec(), links: links.map(<[u32]>::to_vec), terminals }.build(&context)
    }

    /// Links: prod S / 2 x sum K_i (S_i - 1); mean N / (N - 1) x sum (1 - 1 / S_i); diameter L.
    #[test]
    fn counts_and_the_mean_distance_follow_the_closed_forms() {
        for (sizes, links, terminals) in [(&[4][..], &[2][..], 4), (&[3, 4, 5], &[1, 3, 2], 2), (&[2, 2, 2, 2], &[1, 1, 1, 4], 1)] {
            let summary = Summary::of(&build(sizes, Some(links), terminals).unwrap());
            let routers: u32 = sizes.iter().product();
            let of_router: u32 = sizes.iter().zip(links).map(|(size, links)| links * (size - 1)).sum();
            assert_eq!(summary.links, u64::from(routers * of_router / 2));
            let of_source: u32 = sizes.iter().map(|&size| routers * terminals - routers * terminals / size).sum();
            assert_eq!(summary.sum_hops, Some(u64::from(summary.terminals) * u64::from(of_source)));
            assert_eq!(summary.diameter_routers, Some(sizes.len() as u32));
        }
    }

    #[test]
    fn without_parallel_links_it_is_a_flattened_butterfly() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let grid = FlattenedButterfly { dimensions: vec![4, 3, 2], concentration: 3 }.build(&context).unwrap();
        assert_eq!(Summary::of(&build(&[4, 3, 2], None, 3).unwrap()), Summary::of(&grid));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (sizes, links, terminals, key) in [
            (&[][..], None, 1, "S"),
            (&[4, 1], None, 1, "S"),
            (&[4, 4], Some(&[1][..]), 1, "K"),
            (&[4, 4], Some(&[1, 0]), 1, "K"),
            (&[4, 4], None, 0, "T"),
        ] {
            assert!(matches!(build(sizes, links, terminals), Err(NetworkError::Parameter { key: found, .. }) if found == key), "{key}");
        }
        for (sizes, links, terminals) in
            [(&[u32::MAX; 3][..], None, 1), (&[4], Some(&[u32::MAX][..]), 1), (&[4], None, u32::MAX), (&[600], None, 1)]
        {
            assert!(matches!(build(sizes, links, terminals), Err(NetworkError::TooLarge(_))));
        }
    }
}
