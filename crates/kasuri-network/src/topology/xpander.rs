//! Xpander: a random lift of a complete graph.

use super::contract::{BuildContext, Topology};
use super::{adjacency, sizes};
use crate::draws::SplitMix64;
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// d + 1 meta-nodes of `lift` routers, d = `degree`; any two meta-nodes are joined by a perfect matching of their routers, drawn by `seed`.
///
/// Router u k + i is router i of meta-node u, k = `lift`. For u and then v > u a permutation of 0..k is drawn (SplitMix64, the shuffle of Fisher
/// and Yates), and router i of u is linked to router permutation(i) of v. Ports: the neighbours in ascending order, then the terminals. One draw
/// is one sample: the paper keeps the best of several.
///
/// Labels: routers `meta_node`; attributes `xpander` = [degree, lift, concentration], `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Xpander {
    /// Links of each router, d.
    pub degree: u32,
    /// Routers of a meta-node, k.
    pub lift: u32,
    /// Terminals on each router.
    #[serde(default = "one")]
    pub concentration: u32,
    /// The seed of the draws.
    #[serde(default)]
    pub seed: u64,
}

fn one() -> u32 {
    1
}

impl Member for Xpander {
    const NAME: &'static str = "xpander";
    const SUMMARY: &'static str = "random lift of a complete graph, by a seed";
    const SOURCE: &'static str =
        "Valadarsky, Shahaf, Dinitz and Schapira, Xpander: Towards Optimal-Performance Datacenters, CoNEXT 2016, section 4";
    const EXAMPLE: &'static str = "degree = 4\nlift = 3\nseed = 1";
}

impl Topology for Xpander {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let Self { degree, lift, concentration, seed } = *self;
        sizes::at_least("degree", degree, 2)?;
        sizes::positive("lift", lift)?;
        let meta_nodes = sizes::sum("meta-nodes", &[degree, 1])?;
        let routers = sizes::product("routers", &[meta_nodes, lift])?;
        adjacency::check(routers, degree, concentration)?;
        context.channels.check(1)?;
        let mut draws = SplitMix64::new(seed);
        let mut links = Vec::new();
        for (one, other) in (0..meta_nodes).flat_map(|one| (one + 1..meta_nodes).map(move |other| (one, other))) {
            let mut permutation: Vec<u32> = (0..lift).collect();
            draws.shuffle(&mut permutation);
            links.extend(permutation.iter().zip(0..).map(|(&there, here)| (one * lift + here, other * lift + there)));
        }
        let mut builder = NetworkBuilder::new(format!("xpander ({degree}, {lift}) x {concentration} seed {seed}"));
        adjacency::attach(&mut builder, &adjacency::of_edges(routers, links.into_iter()), concentration, context)?;
        builder.label_routers("meta_node", (0..routers).map(|router| router / lift).collect());
        builder.set_attribute("xpander", vec![degree, lift, concentration]);
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(degree: u32, lift: u32, concentration: u32, seed: u64) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        Xpander { degree, lift, concentration, seed }.build(&context)
    }

    /// (d + 1) k routers of d links, one to each other meta-node.
    #[test]
    fn counts_follow_the_closed_forms() {
        for (degree, lift, seed) in [(3, 2, 1), (4, 5, 2), (7, 1, 3)] {
            let network = build(degree, lift, 2, seed).unwrap();
            let summary = Summary::of(&network);
            assert_eq!((summary.routers, summary.links), ((degree + 1) * lift, u64::from((degree + 1) * lift * degree / 2)));
            assert_eq!((summary.max_ports, summary.min_ports), (degree + 2, degree + 2));
        }
        assert_eq!(Summary::of(&build(7, 1, 1, 3).unwrap()).diameter_routers, Some(1), "a lift of 1 is the complete graph");
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (degree, lift, concentration, key) in [(0, 2, 1, "degree"), (3, 0, 1, "lift"), (3, 2, 0, "concentration")] {
            assert!(matches!(build(degree, lift, concentration, 1), Err(NetworkError::Parameter { key: found, .. }) if found == key));
        }
        assert!(matches!(build(u32::MAX, 2, 1, 1), Err(NetworkError::TooLarge(_))));
        assert!(matches!(build(600, 2, 1, 1), Err(NetworkError::TooLarge(_))));
    }
}
