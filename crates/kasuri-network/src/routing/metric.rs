//! The cost of a path: what makes it short.

use super::table::Edge;
use crate::network::Network;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What makes a path short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// As `hops`, and among equal paths few channels outside the inner networks of nodes, such as the switch that joins the GPUs of a node.
    #[default]
    InnerFirst,
    /// Few channels; where routers have groups (dragonfly), few channels between groups first (`ecmp` does not look at groups).
    Hops,
    /// A small sum of channel latencies; few channels among equal sums.
    Latency,
}

/// The router label with the number of the node that contains the router: channels between two routers of one node are inside it. Routers
/// outside all nodes have [`NO_NODE`].
pub const NODE_LABEL: &str = "node";

/// The label [`NODE_LABEL`] of a router outside all nodes.
pub const NO_NODE: u32 = u32::MAX;

/// Costs of channels: sums in the bits of one number, the most important ones first.
///
/// By latency: latency (40 bits), hops (24). Otherwise: channels between groups (16), hops (24), channels outside nodes (24).
pub(super) struct PathCosts<'a> {
    network: &'a Network,
    metric: Metric,
    group: Option<&'a [u32]>,
    node: Option<&'a [u32]>,
}

/// Bits of each of the two lower sums.
const SUM_BITS: u32 = 24;

impl<'a> PathCosts<'a> {
    /// With `by_group` channels between groups count first, unless latencies do.
    pub(super) fn new(network: &'a Network, metric: Metric, by_group: bool) -> Self {
        let labels = network.labels();
        let group = labels.router("group").filter(|_| by_group);
        let node = labels.router(NODE_LABEL).filter(|_| metric == Metric::InnerFirst);
        Self { network, metric, group, node }
    }

    /// The cost of a channel.
    pub(super) fn of(&self, edge: &Edge) -> u64 {
        if self.metric == Metric::Latency {
            return u64::from(self.network.link(edge.channel).latency) << SUM_BITS | 1;
        }
        let ends = |column: &[u32]| (column[edge.from.index()], column[edge.to.index()]);
        let leaves_group = self.group.map(ends).is_some_and(|(from, to)| from != to);
        let is_outside = self.node.map(ends).is_some_and(|(from, to)| from != to || from == NO_NODE);
        u64::from(leaves_group) << (2 * SUM_BITS) | 1 << SUM_BITS | u64::from(is_outside)
    }

    /// The hops of a path of this cost.
    pub(super) fn hops(&self, cost: u64) -> u32 {
        let low = if self.metric == Metric::Latency { cost } else { cost >> SUM_BITS };
        (low & ((1 << SUM_BITS) - 1)) as u32
    }
}
