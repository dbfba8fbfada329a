//! Dragonfly: groups of fully meshed routers, one channel between any two groups.

use super::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Groups of a = `routers_per_group` routers, each linked to the others of its group, with p = `terminals_per_router` terminals
/// and h = `global_channels` links to other groups each; a h + 1 groups, any two joined by one link. Balanced: a = 2 p = 2 h.
///
/// Router r of group i is number i a + r. Ports: 0..p-1 terminals; then the other routers of the group in ascending order; then
/// the global links. Link k of router r is link c = r h + k of its group; `arrangement` says where it leads.
///
/// Between groups the routings take one global link, and at most a local hop before and after it. With `channel_latency` a list of two numbers the first is that
/// of the local links, the second that of the global ones.
///
/// Labels: routers `group`, `position` (r); attributes `dragonfly` = [p, a, h], `terminal_digits` = [p, a, groups],
/// `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dragonfly {
    /// Terminals on each router, p.
    pub terminals_per_router: u32,
    /// Routers in each group, a.
    pub routers_per_group: u32,
    /// Links of each router to other groups, h.
    pub global_channels: u32,
    /// Which global link of a group leads where.
    #[serde(default)]
    pub arrangement: Arrangement,
}

/// Where the global link c of group i leads, of g = a h + 1 groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// To group (i - c - 1) mod g, arriving at its link a h - 1 - c.
    #[default]
    PalmTree,
    /// To the other groups in ascending order: to group c if c < i, else to c + 1.
    Consecutive,
}

impl Arrangement {
    /// The group that link `link` of group `group` leads to, and the link of that group at which it arrives.
    fn other_end(self, group: u32, link: u32, groups: u32) -> (u32, u32) {
        match self {
            Self::PalmTree => ((group + groups - link - 1) % groups, groups - 2 - link),
            Self::Consecutive => {
                let other = link + u32::from(link >= group);
                (other, group - u32::from(group > other))
            }
        }
    }
}

impl Member for Dragonfly {
    const NAME: &'static str = "dragonfly";
    const SUMMARY: &'static str = "groups of fully meshed routers, one link between any two groups";
    const SOURCE: &'static str = "Kim, Dally, Scott and Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008; palm tree \
                                  arrangement: Camarero, Vallejo and Beivide, ACM Trans. Archit. Code Optim. 11 (2014)";
    const EXAMPLE: &'static str = "terminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2";
}

impl Topology for Dragonfly {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        self.check()?;
        // One number for all links, or one for the local and one for the global ones.
        context.channels.check(2)?;
        let Self { terminals_per_router: p, routers_per_group: a, global_channels: h, .. } = *self;
        let groups = a * h + 1;
        let mut builder = NetworkBuilder::new(format!("dragonfly ({p}, {a}, {h})"));
        for _ in 0..groups * a {
            builder.add_router((p + a - 1 + h) as usize)?;
        }
        for group in 0..groups {
            let router = |position: u32| RouterId(group * a + position);
            for (low, high) in (0..a).flat_map(|low| (low + 1..a).map(move |high| (low, high))) {
                // Each skips itself: the higher router is one place earlier in the lower one's list.
                let ends = ((router(low), (p + high - 1) as Port), (router(high), (p + low) as Port));
                builder.add_link(ends.0, ends.1, context.channels.link(0));
            }
            for link in 0..a * h {
                let (other, back) = self.arrangement.other_end(group, link, groups);
                let port = |link: u32| (p + a - 1 + link % h) as Port;
                if other > group {
                    let ends = ((router(link / h), port(link)), (RouterId(other * a + back / h), port(back)));
                    builder.add_link(ends.0, ends.1, context.channels.link(1));
                }
            }
        }
        for router in 0..groups * a {
            for port in 0..p {
                builder.add_terminal(RouterId(router), port as Port, context.channels.terminal_link());
            }
        }
        builder.label_routers("group", (0..groups * a).map(|router| router / a).collect());
        builder.label_routers("position", (0..groups * a).map(|router| router % a).collect());
        builder.set_attribute("dragonfly", vec![p, a, h]);
        builder.set_attribute("terminal_digits", vec![p, a, groups]);
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

impl Dragonfly {
    fn check(&self) -> Result<(), NetworkError> {
        let keys = ["terminals_per_router", "routers_per_group", "global_channels"];
        for (key, number) in keys.into_iter().zip([self.terminals_per_router, self.routers_per_group, self.global_channels]) {
            if number == 0 {
                return Err(NetworkError::parameter(key, "is 0; it must be at least 1"));
            }
            // The ports of a router are far fewer; what is refused here would overflow before a router is added.
            if number > 1 << 10 {
                return Err(NetworkError::TooLarge(format!("{key} = {number}; the limit is 2^10")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Endpoint;
    use crate::network::metrics::Metrics;
    use crate::topology::{ChannelParameters, NoFiles, PerDimension};

    fn build(p: u32, a: u32, h: u32) -> Result<Network, NetworkError> {
        arranged(p, a, h, Arrangement::PalmTree)
    }

    fn arranged(p: u32, a: u32, h: u32, arrangement: Arrangement) -> Result<Network, NetworkError> {
        let channel_latency = PerDimension::Each(vec![3, 20]);
        let channels = ChannelParameters { channel_latency, ..ChannelParameters::default() };
        let context = BuildContext { channels: &channels, files: &NoFiles, structure_seed: 0 };
        Dragonfly { terminals_per_router: p, routers_per_group: a, global_channels: h, arrangement }.build(&context)
    }

    /// N = a p (a h + 1) terminals, radix p + a + h - 1, diameter 3 (local, global, local; 1 with one router a group).
    #[test]
    fn counts_and_diameter_follow_the_closed_forms() {
        for (p, a, h) in [(2, 4, 2), (1, 2, 1), (3, 3, 1), (1, 3, 3), (4, 8, 4), (1, 1, 5)] {
            let network = build(p, a, h).unwrap();
            let groups = a * h + 1;
            let metrics = Metrics::of(&network);
            assert_eq!((metrics.terminals, metrics.routers), (a * p * groups, a * groups));
            assert_eq!(metrics.links, u64::from(groups * a * (a - 1) / 2 + groups * (groups - 1) / 2));
            assert_eq!(metrics.radix, p + a + h - 1);
            assert_eq!(metrics.distances.diameter, if a == 1 { 1 } else { 3 });
            for router in (0..network.router_count()).map(RouterId) {
                assert!((0..network.port_count(router)).all(|port| network.output_channel(router, port as Port).is_some()));
            }
        }
    }

    /// One link between any two groups, and it is a global one.
    #[test]
    fn any_two_groups_share_one_link() {
        for arrangement in [Arrangement::PalmTree, Arrangement::Consecutive] {
            check_links_between_groups(&arranged(2, 4, 2, arrangement).unwrap(), 4, 9);
        }
    }

    fn check_links_between_groups(network: &Network, a: u32, groups: u32) {
        let mut links = vec![0; (groups * groups) as usize];
        for channel in network.router_channels() {
            let (Endpoint::Router(from, _), Endpoint::Router(to, _)) = (network.source(channel), network.destination(channel)) else {
                panic!("a terminal's channel among those between routers");
            };
            links[(from.0 / a * groups + to.0 / a) as usize] += 1;
            assert_eq!(network.link(channel).latency, if from.0 / a == to.0 / a { 3 } else { 20 });
        }
        for (one, other) in (0..groups).flat_map(|one| (0..groups).map(move |other| (one, other))) {
            assert_eq!(links[(one * groups + other) as usize], if one == other { a * (a - 1) } else { 1 });
        }
    }

    /// The palm tree: global link 0 of router 0 in group 0 leads to the last group, the last link of the last router to group 1.
    #[test]
    fn global_links_lead_to_ever_lower_groups() {
        let (p, a, h) = (2, 4, 2);
        let network = build(p, a, h).unwrap();
        let end = |router, port: u32| network.destination(network.output_channel(RouterId(router), port as Port).unwrap());
        assert_eq!(end(0, p + a - 1), Endpoint::Router(RouterId(8 * a + 3), (p + a) as Port));
        assert_eq!(end(3, p + a), Endpoint::Router(RouterId(a), (p + a - 1) as Port));
    }

    /// Consecutive: global link 5 of group 3 leads to group 6, where link 3 leads back; link 2 leads to group 2, by its link 2 back.
    #[test]
    fn consecutive_links_lead_to_the_other_groups_in_order() {
        let (p, a, h) = (2, 4, 2);
        let network = arranged(p, a, h, Arrangement::Consecutive).unwrap();
        let end = |group: u32, link: u32| {
            let output = network.output_channel(RouterId(group * a + link / h), (p + a - 1 + link % h) as Port).unwrap();
            network.destination(output)
        };
        assert_eq!(end(3, 5), Endpoint::Router(RouterId(6 * a + 1), (p + a) as Port));
        assert_eq!(end(3, 2), Endpoint::Router(RouterId(2 * a + 1), (p + a - 1) as Port));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (p, a, h, key) in [(0, 4, 2, "terminals_per_router"), (2, 0, 2, "routers_per_group"), (2, 4, 0, "global_channels")] {
            assert!(matches!(build(p, a, h), Err(NetworkError::Parameter { key: found, .. }) if found == key));
        }
        assert!(matches!(build(2, u32::MAX, u32::MAX), Err(NetworkError::TooLarge(_))));
        assert!(matches!(build(500, 500, 500), Err(NetworkError::TooLarge(_))));
    }
}
