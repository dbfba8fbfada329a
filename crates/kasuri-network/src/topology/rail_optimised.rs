//! Rails: GPU i of every node at leaf i of its scalable unit.

use super::contract::{BuildContext, Topology};
use super::sizes;
use super::yes_no::YesNo;
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use crate::routing::minimal::{NO_NODE, NODE_LABEL};
use schemars::JsonSchema;
use serde::Deserialize;

/// `units` scalable units of `nodes` nodes of `gpus` GPUs. GPU i of node v of unit u is terminal (u nodes + v) gpus + i and sits on leaf (u, i),
/// rail i of its unit, at port v; every leaf is linked to each of `spines` spines by `trunk` parallel links.
///
/// With `wiring = "nodes"` all GPUs of a node sit on one leaf instead, as in a plain leaf-spine network of the same switches: leaf (u, i) has the
/// nodes i nodes / gpus and on of its unit, GPU after GPU.
///
/// Leaf (u, i) is number u gpus + i among the leaves. Ports of a leaf: its GPUs, then copy c of the link to spine s at nodes + s + c x spines; of a
/// spine: copy c of the link to a leaf at leaf + c x leaves. Without `hb` routers are leaves, then spines. With it every GPU is a router, with
/// ports 0 terminal, 1 the high-bandwidth switch of its node, 2 its leaf; routers are the GPUs, the switches of the nodes (port i = GPU i), the
/// leaves, the spines.
///
/// With `channel_latency` or `channel_period` a list of three numbers they are those of the links to leaves from GPUs, from leaves to spines, and within a node.
///
/// Labels: routers `role` (0 GPU, 1 switch of a node, 2 leaf, 3 spine), without `hb` `level` and with it `node`; attributes `rail_optimised` = [units, nodes,
/// gpus, spines, trunk, hb], `terminal_digits`, `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RailOptimised {
    /// Nodes of a unit.
    pub nodes: u32,
    /// GPUs of a node, as many as rails.
    pub gpus: u32,
    /// Scalable units.
    pub units: u32,
    /// Spines.
    pub spines: u32,
    /// Parallel links between a leaf and a spine.
    #[serde(default = "one")]
    pub trunk: u32,
    /// What the GPUs of a leaf have in common.
    #[serde(default)]
    pub wiring: Wiring,
    /// Are the GPUs of a node joined by a high-bandwidth switch?
    #[serde(default)]
    pub hb: YesNo,
}

/// What the GPUs of a leaf have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wiring {
    /// Their number in their nodes: a leaf is a rail.
    #[default]
    Rails,
    /// Their node: a leaf has whole nodes, of which there are a multiple of `gpus` in a unit.
    Nodes,
}

fn one() -> u32 {
    1
}

impl Member for RailOptimised {
    const NAME: &'static str = "rail-optimised";
    const SUMMARY: &'static str = "nodes of several GPUs, each at the leaf of its rail; spines above, a switch within nodes or none";
    const SOURCE: &'static str = "NVIDIA DGX SuperPOD reference architecture (scalable units)";
    const EXAMPLE: &'static str = "nodes = 2\ngpus = 2\nunits = 2\nspines = 2\nhb = true";
}

impl Topology for RailOptimised {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let (terminals, leaves) = self.check()?;
        context.channels.check(3)?;
        let Self { nodes, gpus, units, spines, trunk, wiring, hb } = *self;
        let hb = hb.is_yes();
        let switches = if hb { units * nodes } else { 0 };
        // By kind: GPUs, switches of nodes, leaves, spines.
        let kinds = [(if hb { terminals } else { 0 }, 3), (switches, gpus), (leaves, nodes + spines * trunk), (spines, leaves * trunk)];
        let word = if hb { " with switches in nodes" } else { "" };
        let by_node = if wiring == Wiring::Nodes { " wired by nodes" } else { "" };
        let name = format!("rail-optimised {units} x {nodes} x {gpus} spines {spines} trunk {trunk}{by_node}{word}");
        let mut builder = NetworkBuilder::new(name);
        let mut kind_of = Vec::new();
        for (kind, &(count, ports)) in kinds.iter().enumerate() {
            for _ in 0..count {
                builder.add_router(ports as usize)?;
                kind_of.push(kind as u32);
            }
        }
        let first_leaf = kinds[0].0 + switches;
        for terminal in 0..terminals {
            let (node, rail) = (terminal / gpus, terminal % gpus);
            let (of_unit, port) = match wiring {
                Wiring::Rails => (rail, node % nodes),
                Wiring::Nodes => (node % nodes * gpus / nodes, node % (nodes / gpus) * gpus + rail),
            };
            let leaf = (RouterId(first_leaf + node / nodes * gpus + of_unit), port as Port);
            if hb {
                builder.add_terminal(RouterId(terminal), 0, context.channels.terminal_link());
                builder.add_link((RouterId(terminal), 1), (RouterId(terminals + node), rail as Port), context.channels.link(2));
                builder.add_link((RouterId(terminal), 2), leaf, context.channels.link(0));
            } else {
                builder.add_terminal(leaf.0, leaf.1, context.channels.terminal_link());
            }
        }
        for (leaf, spine) in (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (leaf, spine))) {
            for copy in 0..trunk {
                let low = (RouterId(first_leaf + leaf), (nodes + spine + copy * spines) as Port);
                let high = (RouterId(first_leaf + leaves + spine), (leaf + copy * leaves) as Port);
                builder.add_link(low, high, context.channels.link(1));
            }
        }
        if !hb {
            builder.label_routers("level", kind_of.iter().map(|kind| kind - 1).collect());
        } else {
            builder.label_routers(NODE_LABEL, nodes_of_routers(terminals, gpus, kind_of.len()));
        }
        builder.label_routers("role", kind_of);
        builder.set_attribute("rail_optimised", vec![units, nodes, gpus, spines, trunk, u32::from(hb)]);
        let digits: Vec<u32> = [gpus, nodes, units].into_iter().filter(|&radix| radix > 1).collect();
        builder.set_attribute("terminal_digits", if digits.is_empty() { vec![1] } else { digits });
        // Two hops lead to another GPU or to a spine: no path goes on from there in the same class.
        builder.set_attribute("hops_per_class", vec![2]);
        builder.finish()
    }
}

/// The label `node` of routers that are numbered in this order: GPUs by node, the switches of nodes, all others.
pub(super) fn nodes_of_routers(terminals: u32, gpus: u32, routers: usize) -> Vec<u32> {
    let mut nodes: Vec<u32> = (0..terminals).map(|gpu| gpu / gpus).chain(0..terminals / gpus).collect();
    nodes.resize(routers, NO_NODE);
    nodes
}

impl RailOptimised {
    /// The numbers of terminals and of leaves.
    fn check(&self) -> Result<(u32, u32), NetworkError> {
        let numbers = [self.nodes, self.gpus, self.units, self.spines, self.trunk];
        for (key, number) in ["nodes", "gpus", "units", "spines", "trunk"].into_iter().zip(numbers) {
            sizes::positive(key, number)?;
        }
        if self.wiring == Wiring::Nodes && self.nodes % self.gpus != 0 {
            let problem = format!(
                "is {}; with wiring = \"nodes\" it must be a multiple of gpus = {}, for leaves with whole nodes",
                self.nodes, self.gpus
            );
            return Err(NetworkError::parameter("nodes", problem));
        }
        let terminals = sizes::product("terminals", &[self.units, self.nodes, self.gpus])?;
        let leaves = sizes::product("leaves", &[self.units, self.gpus])?;
        sizes::sum("routers", &[terminals, terminals, leaves, self.spines])?;
        let up = sizes::product("links up of a leaf", &[self.spines, self.trunk])?;
        sizes::product("links to spines", &[leaves, up])?;
        Ok((terminals, leaves))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(numbers: [u32; 5], hb: bool) -> Result<Network, NetworkError> {
        wired(numbers, Wiring::Rails, hb)
    }

    fn wired(numbers: [u32; 5], wiring: Wiring, hb: bool) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let [nodes, gpus, units, spines, trunk] = numbers;
        RailOptimised { nodes, gpus, units, spines, trunk, wiring, hb: YesNo::Truth(hb) }.build(&context)
    }

    /// Without switches in nodes: GPUs of one rail and unit share a leaf, all others are two links away. With them: two links within a node or
    /// a rail of the unit, else four.
    #[test]
    fn counts_and_distances_follow_the_closed_forms() {
        for numbers in [[4, 4, 2, 4, 1], [3, 2, 1, 2, 2], [2, 5, 3, 1, 1]] {
            let [nodes, gpus, units, spines, trunk] = numbers;
            let terminals = u64::from(units * nodes * gpus);
            let plain = Summary::of(&build(numbers, false).unwrap());
            assert_eq!((u64::from(plain.terminals), plain.links), (terminals, u64::from(units * gpus * spines * trunk)));
            assert_eq!(plain.sum_hops, Some(terminals * 2 * (terminals - u64::from(nodes))));
            let joined = Summary::of(&build(numbers, true).unwrap());
            assert_eq!(joined.links, 2 * terminals + plain.links);
            let near = u64::from(gpus - 1 + nodes - 1);
            assert_eq!(joined.sum_hops, Some(terminals * (2 * near + 4 * (terminals - 1 - near))), "{numbers:?}");
        }
    }

    /// The same switches, and the GPUs of a leaf are those of nodes / gpus nodes: as in a leaf-spine network. With switches in nodes a GPU reaches the
    /// others of its leaf in two links as well.
    #[test]
    fn wired_by_nodes_it_is_a_leaf_spine_network() {
        let numbers = [4, 2, 2, 3, 1];
        let plain = wired(numbers, Wiring::Nodes, false).unwrap();
        let leaf_spine: crate::topology::leaf_spine::LeafSpine = toml::from_str("leaves = 4\nspines = 3\ndown = 4").unwrap();
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let [one, other] = [&plain, &leaf_spine.build(&context).unwrap()].map(Summary::of);
        assert_eq!((one.ports_sha256, one.sum_hops), (other.ports_sha256, other.sum_hops));
        let joined = Summary::of(&wired(numbers, Wiring::Nodes, true).unwrap());
        // 3 others at the leaf, one of them in the node, 12 elsewhere.
        assert_eq!(joined.sum_hops, Some(16 * (2 * 3 + 4 * 12)));
        let error = wired([3, 2, 1, 1, 1], Wiring::Nodes, false).unwrap_err().to_string();
        assert!(error.contains("nodes: is 3; with wiring = \"nodes\" it must be a multiple of gpus = 2"), "{error}");
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (place, key) in ["nodes", "gpus", "units", "spines", "trunk"].into_iter().enumerate() {
            let mut numbers = [2; 5];
            numbers[place] = 0;
            assert!(matches!(build(numbers, true), Err(NetworkError::Parameter { key: found, .. }) if found == key));
            numbers[place] = u32::MAX;
            assert!(matches!(build(numbers, true), Err(NetworkError::TooLarge(_))), "{key}");
        }
    }
}
