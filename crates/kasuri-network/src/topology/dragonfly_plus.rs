//! Dragonfly+ (Megafly): groups of leaves and spines, joined by their spines.

use super::contract::{BuildContext, Topology};
use super::dragonfly::{Arrangement, GlobalLinks};
use super::sizes;
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// Groups in which each of `leaves` routers with `p` terminals is linked to each of `spines` routers with `h` global links; any two of g =
/// `groups` groups are joined by (spines h) div (g - 1) links.
///
/// Router i (leaves + spines) + r is router r of group i, leaves first. Ports of a leaf: its terminals, then the spines; of a spine: the leaves,
/// then its global links. Global link C of a group is port C mod h of spine C div h; where it leads is said by `arrangement`, as in `dragonfly`.
///
/// With `channel_latency` a list of two numbers the first is that of the links within groups, the second that of the global ones.
///
/// Labels: routers `group`, `level` (1 leaf, 2 spine); attributes `dragonfly_plus` = [p, leaves, spines, h, groups, links between two groups],
/// `terminal_digits`, `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DragonflyPlus {
    /// Terminals on each leaf.
    pub p: u32,
    /// Leaves of a group.
    pub leaves: u32,
    /// Spines of a group.
    pub spines: u32,
    /// Global links of each spine.
    pub h: u32,
    /// Groups: from 2 to spines h + 1, which it is unless given.
    #[serde(default)]
    pub groups: Option<u32>,
    /// Which global link of a group leads where.
    #[serde(default)]
    pub arrangement: Arrangement,
}

impl Member for DragonflyPlus {
    const NAME: &'static str = "dragonfly+";
    const SUMMARY: &'static str = "dragonfly whose groups are leaves and spines (Megafly)";
    const SOURCE: &'static str = "Shpiner et al., Dragonfly+: Low Cost Topology for Scaling Datacenters, HiPINEB 2017, section II; Flajslik, Borch \
                                  and Parker, Megafly, ISC 2018";
    const EXAMPLE: &'static str = "p = 2\nleaves = 2\nspines = 2\nh = 2\ngroups = 3";
}

impl Topology for DragonflyPlus {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let Self { p, leaves, spines, h, arrangement, .. } = *self;
        for (key, number) in [("p", p), ("leaves", leaves), ("spines", spines), ("h", h)] {
            sizes::positive(key, number)?;
        }
        let places = sizes::product("global links of a group", &[spines, h])?;
        let groups = self.groups.unwrap_or(places + 1);
        let links = GlobalLinks::new(groups, places, arrangement)?;
        let of_group = sizes::sum("routers of a group", &[leaves, spines])?;
        let routers = sizes::product("routers", &[groups, of_group])?;
        sizes::product("terminals", &[groups, leaves, p])?;
        context.channels.check(2)?;
        let mut builder = NetworkBuilder::new(format!("dragonfly+ ({p}, {leaves}, {spines}, {h}), {groups} groups"));
        let is_leaf = |router: u32| router % of_group < leaves;
        for router in 0..routers {
            builder.add_router(if is_leaf(router) { p as usize + spines as usize } else { leaves as usize + h as usize })?;
        }
        for (group, leaf) in (0..groups).flat_map(|group| (0..leaves).map(move |leaf| (group, leaf))) {
            for spine in 0..spines {
                let low = (RouterId(group * of_group + leaf), (p + spine) as Port);
                builder.add_link(low, (RouterId(group * of_group + leaves + spine), leaf as Port), context.channels.link(0));
            }
        }
        for ends in links.ends() {
            let [one, other] = ends.map(|(group, place)| (RouterId(group * of_group + leaves + place / h), (leaves + place % h) as Port));
            builder.add_link(one, other, context.channels.link(1));
        }
        for router in (0..routers).filter(|&router| is_leaf(router)) {
            for port in 0..p {
                builder.add_terminal(RouterId(router), port as Port, context.channels.terminal_link());
            }
        }
        builder.label_routers("group", (0..routers).map(|router| router / of_group).collect());
        builder.label_routers("level", (0..routers).map(|router| 1 + u32::from(!is_leaf(router))).collect());
        builder.set_attribute("dragonfly_plus", vec![p, leaves, spines, h, groups, links.copies]);
        let digits: Vec<u32> = [p, leaves, groups].into_iter().filter(|&radix| radix > 1).collect();
        builder.set_attribute("terminal_digits", digits);
        // Up, between groups, down: shortest paths cannot close a cycle.
        builder.set_attribute("hops_per_class", vec![3]);
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(numbers: [u32; 4], groups: Option<u32>, arrangement: Arrangement) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let [p, leaves, spines, h] = numbers;
        DragonflyPlus { p, leaves, spines, h, groups, arrangement }.build(&context)
    }

    /// Mean distance (2 p (leaves - 1) + 3 p leaves (g - 1)) / (N - 1): any leaf reaches any group in three links.
    #[test]
    fn counts_and_the_mean_distance_follow_the_closed_forms() {
        for (numbers, groups) in [([2, 2, 2, 2], 5), ([2, 4, 2, 4], 3), ([3, 3, 3, 2], 7), ([1, 2, 4, 2], 4)] {
            for arrangement in [Arrangement::PalmTree, Arrangement::Absolute, Arrangement::Relative, Arrangement::Circulant] {
                let summary = Summary::of(&build(numbers, Some(groups), arrangement).unwrap());
                let [p, leaves, spines, h] = numbers;
                assert_eq!((summary.terminals, summary.routers), (p * leaves * groups, (leaves + spines) * groups));
                let copies = spines * h / (groups - 1);
                assert_eq!(summary.links, u64::from(groups * leaves * spines + groups * (groups - 1) / 2 * copies));
                let of_source = 2 * p * (leaves - 1) + 3 * p * leaves * (groups - 1);
                assert_eq!(summary.sum_hops, Some(u64::from(summary.terminals) * u64::from(of_source)));
            }
        }
        assert_eq!(build([1, 2, 2, 2], None, Arrangement::PalmTree).unwrap().router_count(), 5 * 4);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (place, key) in ["p", "leaves", "spines", "h"].into_iter().enumerate() {
            let mut numbers = [2; 4];
            numbers[place] = 0;
            assert!(matches!(build(numbers, None, Arrangement::PalmTree), Err(NetworkError::Parameter { key: found, .. }) if found == key));
            numbers[place] = u32::MAX;
            assert!(matches!(build(numbers, Some(3), Arrangement::PalmTree), Err(NetworkError::TooLarge(_))), "{key}");
        }
        for groups in [0, 1, 6] {
            let problem = build([2, 2, 2, 2], Some(groups), Arrangement::PalmTree).unwrap_err().to_string();
            assert!(problem.contains("from 2 to 5"), "{problem}");
        }
    }
}
