//! Leaf-spine: the fat tree of two levels, with trunks.

use super::contract::{BuildContext, Topology};
use super::sizes;
use super::xgft::Shape;
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// `leaves` routers with `down` terminals each, every one linked to each of `spines` routers by `trunk` parallel links.
///
/// Leaves come first, then spines. Ports of a leaf: its terminals, then copy c of the link to spine s at `down` + s + c x `spines`; of a spine:
/// copy c of the link to leaf l at l + c x `leaves`. Each leaf can send `down` flits and take `spines` x `trunk` upwards: the quotient is the
/// taper. Where `trunk` differs from pair to pair, the ports of the links that are not there stay empty.
///
/// Labels: routers `level`, `first_terminal`; attributes `xgft` (with equal trunks), `terminal_digits`, `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Routers with terminals.
    pub leaves: u32,
    /// Routers above them.
    pub spines: u32,
    /// Terminals on each leaf.
    pub down: u32,
    /// Parallel links between a leaf and a spine: one number for all, or for each leaf a list with one for each spine.
    #[serde(default)]
    pub trunk: Trunk,
}

/// Parallel links between two routers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Trunk {
    /// The same everywhere.
    All(u32),
    /// By leaf, then by spine.
    Each(Vec<Vec<u32>>),
}

impl Default for Trunk {
    fn default() -> Self {
        Self::All(1)
    }
}

impl Member for LeafSpine {
    const NAME: &'static str = "leaf-spine";
    const SUMMARY: &'static str = "fat tree of two levels with trunks, tapered or not";
    const SOURCE: &'static str = "the folded Clos network of two levels: Clos, Bell Syst. Tech. J. 32 (1953); Zahavi, J. Parallel Distrib. \
                                  Comput. 72 (2012), for the order of parallel links";
    const EXAMPLE: &'static str = "leaves = 4\nspines = 2\ndown = 3\ntrunk = 2";
}

impl Topology for LeafSpine {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        for (key, number) in [("leaves", self.leaves), ("spines", self.spines), ("down", self.down)] {
            sizes::positive(key, number)?;
        }
        context.channels.check(1)?;
        match &self.trunk {
            Trunk::All(trunk) => {
                sizes::positive("trunk", *trunk)?;
                let shape = Shape { m: vec![self.down, self.leaves], w: vec![1, self.spines], p: vec![1, *trunk] };
                let name = format!("leaf-spine ({}, {}) x {} trunk {trunk}", self.leaves, self.spines, self.down);
                shape.checked()?.build(name, context)
            }
            Trunk::Each(trunks) => self.build_unequal(trunks, context),
        }
    }
}

impl LeafSpine {
    fn build_unequal(&self, trunks: &[Vec<u32>], context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let Self { leaves, spines, down, .. } = *self;
        if trunks.len() != leaves as usize || trunks.iter().any(|list| list.len() != spines as usize) {
            let problem = format!("must have {leaves} lists, one for each leaf, of {spines} numbers, one for each spine");
            return Err(NetworkError::parameter("trunk", problem));
        }
        let most = trunks.iter().flatten().copied().max().unwrap_or(0);
        if let Some(leaf) = trunks.iter().position(|list| list.iter().all(|&trunk| trunk == 0)) {
            return Err(NetworkError::parameter("trunk", format!("links leaf {leaf} to no spine; each leaf needs at least one link")));
        }
        let ports =
            [&[down, spines][..], &[0, leaves]].map(|of| sizes::product("ports", &[of[1], most]).map(|up| up.saturating_add(of[0])));
        let [of_leaf, of_spine] = ports;
        let (of_leaf, of_spine) = (of_leaf?, of_spine?);
        let mut builder = NetworkBuilder::new(format!("leaf-spine ({leaves}, {spines}) x {down} unequal trunks"));
        for router in 0..leaves + spines {
            builder.add_router(if router < leaves { of_leaf } else { of_spine } as usize)?;
        }
        for (leaf, spine) in (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (leaf, spine))) {
            for copy in 0..trunks[leaf as usize][spine as usize] {
                let low = (RouterId(leaf), (down + spine + copy * spines) as Port);
                builder.add_link(low, (RouterId(leaves + spine), (leaf + copy * leaves) as Port), context.channels.link(0));
            }
        }
        for terminal in 0..leaves * down {
            builder.add_terminal(RouterId(terminal / down), (terminal % down) as Port, context.channels.terminal_link());
        }
        builder.label_routers("level", (0..leaves + spines).map(|router| 1 + u32::from(router >= leaves)).collect());
        builder
            .label_routers("first_terminal", (0..leaves + spines).map(|router| if router < leaves { router * down } else { 0 }).collect());
        builder.set_attribute("terminal_digits", [down, leaves].into_iter().filter(|&radix| radix > 1).collect());
        // Where a trunk is missing a path may go down and up again.
        let is_whole = trunks.iter().flatten().all(|&trunk| trunk > 0);
        builder.set_attribute("hops_per_class", vec![if is_whole { 2 } else { 1 }]);
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(leaves: u32, spines: u32, down: u32, trunk: Trunk) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        LeafSpine { leaves, spines, down, trunk }.build(&context)
    }

    /// L x down terminals, L x S x trunk links, mean 2 (N - down) / (N - 1).
    #[test]
    fn counts_and_the_mean_distance_follow_the_closed_forms() {
        for (leaves, spines, down, trunk) in [(4, 2, 6, 1), (5, 3, 2, 4), (2, 1, 1, 1)] {
            let summary = Summary::of(&build(leaves, spines, down, Trunk::All(trunk)).unwrap());
            let terminals = leaves * down;
            assert_eq!((summary.terminals, summary.links), (terminals, u64::from(leaves * spines * trunk)));
            assert_eq!(summary.sum_hops, Some(u64::from(terminals) * 2 * u64::from(terminals - down)));
        }
    }

    /// Trunks that are equal give the same wires however they are written; of a missing copy the ports stay empty.
    #[test]
    fn unequal_trunks_leave_ports_empty() {
        let all = Summary::of(&build(3, 2, 4, Trunk::All(2)).unwrap());
        assert_eq!(Summary::of(&build(3, 2, 4, Trunk::Each(vec![vec![2, 2]; 3])).unwrap()), all);
        let fewer = Summary::of(&build(3, 2, 4, Trunk::Each(vec![vec![2, 2], vec![2, 1], vec![0, 2]])).unwrap());
        assert_eq!((fewer.links, fewer.max_ports, fewer.min_ports), (all.links - 3, 8, 4));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (leaves, spines, down, trunk, key) in [
            (0, 2, 4, Trunk::All(1), "leaves"),
            (2, 0, 4, Trunk::All(1), "spines"),
            (2, 2, 0, Trunk::All(1), "down"),
            (2, 2, 4, Trunk::All(0), "trunk"),
            (2, 2, 4, Trunk::Each(vec![vec![1, 1]]), "trunk"),
            (2, 2, 4, Trunk::Each(vec![vec![1, 1], vec![0, 0]]), "trunk"),
        ] {
            assert!(matches!(build(leaves, spines, down, trunk), Err(NetworkError::Parameter { key: found, .. }) if found == key), "{key}");
        }
        assert!(matches!(build(u32::MAX, u32::MAX, 4, Trunk::All(1)), Err(NetworkError::TooLarge(_))));
        assert!(matches!(build(2, 2, 4, Trunk::Each(vec![vec![u32::MAX, 1]; 2])), Err(NetworkError::TooLarge(_))));
    }
}
