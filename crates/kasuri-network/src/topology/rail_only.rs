//! Rail-only: high-bandwidth domains joined by rails alone.

use super::contract::{BuildContext, Topology};
use super::rail_optimised::nodes_of_routers;
use super::sizes;
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use crate::routing::minimal::NODE_LABEL;
use schemars::JsonSchema;
use serde::Deserialize;

/// D = `domains` domains of K = `gpus` GPUs. GPU i of domain d is router d K + i, with ports 0 its terminal, 1 the high-bandwidth switch of the
/// domain, 2 the switch of rail i; nothing joins the rails. Routers are the GPUs, the D switches of the domains (port i = GPU i), the K rail
/// switches (port d = domain d).
///
/// With `channel_latency` a list of two numbers the first is that of the links within domains, the second that of the rails.
///
/// Labels: routers `role` (0 GPU, 1 switch of a domain, 2 rail switch), `node` (the domain); attributes `rail_only` = [domains, gpus], `terminal_digits`,
/// `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RailOnly {
    /// High-bandwidth domains.
    pub domains: u32,
    /// GPUs of a domain, as many as rails.
    pub gpus: u32,
}

impl Member for RailOnly {
    const NAME: &'static str = "rail-only";
    const SUMMARY: &'static str = "high-bandwidth domains of GPUs, joined by a switch for each rail and nothing else";
    const SOURCE: &'static str = "Wang, Ghobadi, Shakeri, Zhang and Hasani, Rail-only, arXiv 2307.12169, HotI 2024, section III";
    const EXAMPLE: &'static str = "domains = 3\ngpus = 2";
}

impl Topology for RailOnly {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let Self { domains, gpus } = *self;
        sizes::positive("domains", domains)?;
        sizes::positive("gpus", gpus)?;
        let terminals = sizes::product("terminals", &[domains, gpus])?;
        context.channels.check(2)?;
        let mut builder = NetworkBuilder::new(format!("rail-only {domains} x {gpus}"));
        let mut kind_of = Vec::new();
        for (kind, (count, ports)) in [(terminals, 3), (domains, gpus), (gpus, domains)].into_iter().enumerate() {
            for _ in 0..count {
                builder.add_router(ports as usize)?;
                kind_of.push(kind as u32);
            }
        }
        for gpu in 0..terminals {
            let (domain, rail) = (gpu / gpus, gpu % gpus);
            builder.add_terminal(RouterId(gpu), 0, context.channels.terminal_link());
            builder.add_link((RouterId(gpu), 1), (RouterId(terminals + domain), rail as Port), context.channels.link(0));
            builder.add_link((RouterId(gpu), 2), (RouterId(terminals + domains + rail), domain as Port), context.channels.link(1));
        }
        builder.label_routers(NODE_LABEL, nodes_of_routers(terminals, gpus, kind_of.len()));
        builder.label_routers("role", kind_of);
        builder.set_attribute("rail_only", vec![domains, gpus]);
        let digits: Vec<u32> = [gpus, domains].into_iter().filter(|&radix| radix > 1).collect();
        builder.set_attribute("terminal_digits", if digits.is_empty() { vec![1] } else { digits });
        // Two hops lead to another GPU: one class for the first switch, one for the second.
        builder.set_attribute("hops_per_class", vec![2]);
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(domains: u32, gpus: u32) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        RailOnly { domains, gpus }.build(&context)
    }

    /// Mean distance (2 (K - 1) + 2 (D - 1) + 4 (K - 1) (D - 1)) / (D K - 1).
    #[test]
    fn counts_and_the_mean_distance_follow_the_closed_forms() {
        for (domains, gpus) in [(4u64, 4u64), (3, 7), (1, 5), (6, 1)] {
            let summary = Summary::of(&build(domains as u32, gpus as u32).unwrap());
            assert_eq!((u64::from(summary.terminals), summary.links), (domains * gpus, 2 * domains * gpus));
            let of_source = 2 * (gpus - 1) + 2 * (domains - 1) + 4 * (gpus - 1) * (domains - 1);
            assert_eq!(summary.sum_hops, Some(domains * gpus * of_source));
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (domains, gpus, key) in [(0, 2, "domains"), (2, 0, "gpus")] {
            assert!(matches!(build(domains, gpus), Err(NetworkError::Parameter { key: found, .. }) if found == key));
        }
        for (domains, gpus) in [(u32::MAX, 2), (600, 2), (2, 600)] {
            assert!(matches!(build(domains, gpus), Err(NetworkError::TooLarge(_))));
        }
    }
}
