//! Flattened butterfly, or regular HyperX: a grid whose rows and columns are full meshes.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// A grid of routers, each linked to all routers that differ from it in one coordinate only.
///
/// Router number = sum of coordinate(d) x product of the radices below d: dimension 0 varies fastest. Ports: for dimension 0,
/// then 1, and so on, the other coordinates in ascending order; then the terminals. A k-ary n-flat of the literature is n - 1
/// dimensions of k routers with `concentration` k.
///
/// Labels: routers `coordinate.0`, `coordinate.1`, …; attributes `flattened_butterfly` = the dimensions,
/// `terminal_digits` = [concentration, dimensions…], `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlattenedButterfly {
    /// Routers in each dimension, for example `[4, 4]`; each at least 2.
    pub dimensions: Vec<u32>,
    /// Terminals on each router.
    #[serde(default = "one")]
    pub concentration: u32,
}

fn one() -> u32 {
    1
}

impl Member for FlattenedButterfly {
    const NAME: &'static str = "flattened-butterfly";
    const SUMMARY: &'static str = "grid whose rows and columns are full meshes (regular HyperX)";
    const SOURCE: &'static str = "Kim, Dally and Abts, Flattened Butterfly, ISCA 2007; Ahn et al., HyperX, SC09";
    const EXAMPLE: &'static str = "dimensions = [4, 3]\nconcentration = 2";
}

impl Topology for FlattenedButterfly {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let routers = self.check()?;
        let Self { dimensions, concentration } = self;
        context.channels.check(dimensions.len())?;
        let mut builder = NetworkBuilder::new(format!("flattened-butterfly {dimensions:?} x {concentration}"));
        let links: usize = dimensions.iter().map(|&radix| radix as usize - 1).sum();
        for _ in 0..routers {
            builder.add_router(links + *concentration as usize)?;
        }
        let (mut stride, mut first_port) = (1, 0);
        for (dimension, &radix) in dimensions.iter().enumerate() {
            let coordinates: Vec<u32> = (0..routers).map(|router| router / stride % radix).collect();
            for router in 0..routers {
                let here = coordinates[router as usize];
                for there in here + 1..radix {
                    // Each skips itself: the higher coordinate is one place earlier in the lower one's list.
                    let low = (RouterId(router), (first_port + there - 1) as Port);
                    let high = (RouterId(router + (there - here) * stride), (first_port + here) as Port);
                    builder.add_link(low, high, context.channels.link(dimension));
                }
            }
            builder.label_routers(format!("coordinate.{dimension}"), coordinates);
            stride *= radix;
            first_port += radix - 1;
        }
        for router in 0..routers {
            for terminal in 0..*concentration {
                builder.add_terminal(RouterId(router), (first_port + terminal) as Port, context.channels.terminal_link());
            }
        }
        builder.set_attribute("flattened_butterfly", dimensions.clone());
        let digits = std::iter::once(*concentration).chain(dimensions.iter().copied());
        builder.set_attribute("terminal_digits", digits.filter(|&radix| radix > 1).collect());
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

impl FlattenedButterfly {
    /// The number of routers.
    fn check(&self) -> Result<u32, NetworkError> {
        let Self { dimensions, concentration } = self;
        if dimensions.is_empty() {
            return Err(NetworkError::parameter("dimensions", "is empty; give the routers of each dimension, e.g. [4, 4]"));
        }
        if let Some(&radix) = dimensions.iter().find(|&&radix| radix < 2) {
            let problem = format!("{dimensions:?} holds {radix}; each dimension needs at least 2 routers");
            return Err(NetworkError::parameter("dimensions", problem));
        }
        if *concentration == 0 {
            return Err(NetworkError::parameter("concentration", "is 0; each router needs at least 1 terminal"));
        }
        let routers = dimensions.iter().try_fold(1u32, |product, &radix| product.checked_mul(radix));
        let routers = routers.filter(|routers| routers.checked_mul(*concentration).is_some_and(|terminals| terminals <= 1 << 28));
        routers.ok_or_else(|| {
            NetworkError::TooLarge(format!("{dimensions:?} with {concentration} terminals a router; the limit is 2^28 terminals"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Metrics;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(dimensions: &[u32], concentration: u32) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        FlattenedButterfly { dimensions: dimensions.to_vec(), concentration }.build(&context)
    }

    /// A k-ary n-flat: k^n terminals on k^(n-1) routers of n (k - 1) + 1 ports; n - 1 hops across.
    #[test]
    fn k_ary_n_flats_have_the_published_counts() {
        for (k, n) in [(2u32, 4u32), (4, 2), (4, 3), (8, 2), (3, 4)] {
            let network = build(&vec![k; n as usize - 1], k).unwrap();
            let metrics = Metrics::of(&network);
            assert_eq!((metrics.terminals, metrics.routers), (k.pow(n), k.pow(n - 1)));
            assert_eq!(metrics.radix, n * (k - 1) + 1);
            assert_eq!(metrics.distances.diameter, n - 1);
            assert_eq!(metrics.links, u64::from(k.pow(n - 1) * (n - 1) * (k - 1) / 2));
        }
    }

    /// Two routers are as many hops apart as they differ in coordinates; a coordinate of radix k differs with 1 - 1/k.
    #[test]
    fn distances_count_the_coordinates_that_differ() {
        let metrics = Metrics::of(&build(&[4, 3, 2], 1).unwrap());
        let expected = (0.75 + 2.0 / 3.0 + 0.5) * 24.0 / 23.0;
        assert!((metrics.distances.average - expected).abs() < 1e-12);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (dimensions, concentration, key) in [(vec![], 1, "dimensions"), (vec![4, 1], 1, "dimensions"), (vec![4], 0, "concentration")] {
            assert!(matches!(build(&dimensions, concentration), Err(NetworkError::Parameter { key: found, .. }) if found == key));
        }
        assert!(matches!(build(&[1 << 16, 1 << 16], 1), Err(NetworkError::TooLarge(_))));
        assert!(matches!(build(&[600, 2], 1), Err(NetworkError::TooLarge(_))));
    }
}
