//! A tree of 64 terminals whose upper levels are doubled.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

const ROOTS: u32 = 4;
const MIDDLES: u32 = 8;
const LEAVES: u32 = 16;

/// 16 leaves with 4 terminals each, 8 routers in the middle, 4 roots.
///
/// Routers: 0..3 the roots, 4..11 the middle, 12..27 the leaves. Leaf l has its terminals at ports 0..3 and links at ports 4 and
/// 5 to the middle routers 2 (l div 4) and 2 (l div 4) + 1. A middle router has its four leaves at ports 0..3 and the four roots
/// at ports 4..7; a root has the eight middle routers at ports 0..7.
///
/// Labels: routers `level` (1 leaves, 3 roots); attributes `hops_per_class`, `terminal_digits`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree4 {}

impl Member for Tree4 {
    const NAME: &'static str = "tree4";
    const SUMMARY: &'static str = "tree of 64 terminals: 16 leaves, 8 middle routers and 4 roots";
    const SOURCE: &'static str = "BookSim 2 (tree4)";
    const EXAMPLE: &'static str = "";
}

impl Topology for Tree4 {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        context.channels.check(1)?;
        let mut builder = NetworkBuilder::new("tree4");
        for ports in std::iter::repeat_n(8, (ROOTS + MIDDLES) as usize).chain(std::iter::repeat_n(6, LEAVES as usize)) {
            builder.add_router(ports)?;
        }
        let link = context.channels.link(0);
        let (middle, leaf) = (|number: u32| RouterId(ROOTS + number), |number: u32| RouterId(ROOTS + MIDDLES + number));
        for number in 0..MIDDLES {
            for root in 0..ROOTS {
                builder.add_link((RouterId(root), number as Port), (middle(number), (4 + root) as Port), link);
            }
            for place in 0..4 {
                let below = leaf(4 * (number / 2) + place);
                builder.add_link((middle(number), place as Port), (below, (4 + number % 2) as Port), link);
            }
        }
        for terminal in 0..4 * LEAVES {
            builder.add_terminal(leaf(terminal / 4), (terminal % 4) as Port, context.channels.terminal_link());
        }
        let level = |router: u32| {
            if router < ROOTS {
                3
            } else if router < ROOTS + MIDDLES {
                2
            } else {
                1
            }
        };
        builder.label_routers("level", (0..ROOTS + MIDDLES + LEAVES).map(level).collect());
        builder.set_attribute("hops_per_class", vec![4]);
        builder.set_attribute("terminal_digits", vec![4, 4, 4]);
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TerminalId;
    use crate::network::metrics::Metrics;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build() -> Network {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        Tree4 {}.build(&context).unwrap()
    }

    /// 32 links from the leaves to the middle and 32 on to the roots. Of the 63 others 3 are on the same leaf, 12 are two hops away
    /// and 48 four.
    #[test]
    fn counts_and_distances_are_those_of_the_tree() {
        let network = build();
        let metrics = Metrics::of(&network);
        assert_eq!((metrics.terminals, metrics.routers, metrics.links), (64, 28, 64));
        assert_eq!(network.ejection_port(TerminalId(23)), (RouterId(17), 3));
        assert!((metrics.distances.average - (12.0 * 2.0 + 48.0 * 4.0) / 63.0).abs() < 1e-12);
    }
}
