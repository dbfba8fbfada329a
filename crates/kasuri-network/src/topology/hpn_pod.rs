//! A pod with two planes and two switches for each rail.

use super::contract::{BuildContext, Topology};
use super::sizes;
use crate::id::{Port, RouterId, TerminalId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// `segments` segments of `hosts` hosts with a network interface for each of `rails` rails. An interface has two ports, one in each of two
/// planes: port t of interface i leads to the top-of-rack switch (segment, rail i, plane t); each plane has `aggregation` switches, to each of which
/// all its top-of-rack switches are linked. Nothing joins the planes; the core above pods is not built.
///
/// Interface (segment hosts + host) rails + rail is a terminal with two ports, at port `host` of the switches ((segment rails + rail) 2 + plane).
/// These come first, with port hosts + a to aggregation switch a; aggregation switch 2 segments rails + plane x aggregation + a has port
/// segment rails + rail.
///
/// Labels: routers `level`, `plane`; attributes `hpn_pod` = [segments, hosts, rails, aggregation], `terminal_digits`, `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HpnPod {
    /// Segments.
    pub segments: u32,
    /// Hosts of a segment.
    pub hosts: u32,
    /// Interfaces of a host.
    pub rails: u32,
    /// Aggregation switches of each plane.
    pub aggregation: u32,
}

impl Member for HpnPod {
    const NAME: &'static str = "hpn-pod";
    const SUMMARY: &'static str = "rails in two planes: each interface at two top-of-rack switches";
    const SOURCE: &'static str =
        "Qian et al., Alibaba HPN: A Data Center Network for Large Language Model Training, SIGCOMM 2024, sections 4 and 5";
    const EXAMPLE: &'static str = "segments = 2\nhosts = 2\nrails = 2\naggregation = 2";
}

/// Planes of a pod.
const PLANES: u32 = 2;

impl Topology for HpnPod {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let (terminals, racks) = self.check()?;
        context.channels.check(1)?;
        let Self { segments, hosts, rails, aggregation } = *self;
        let mut builder = NetworkBuilder::new(format!("hpn-pod {segments} x {hosts} x {rails} aggregation {aggregation}"));
        let above = PLANES * aggregation;
        for _ in 0..PLANES * racks {
            builder.add_router(hosts as usize + aggregation as usize)?;
        }
        for _ in 0..above {
            builder.add_router(racks as usize)?;
        }
        for terminal in 0..terminals {
            let (host, rail) = (terminal / rails, terminal % rails);
            let home = |plane: u32| (RouterId(((host / hosts) * rails + rail) * PLANES + plane), (host % hosts) as Port);
            builder.add_terminal(home(0).0, home(0).1, context.channels.terminal_link());
            for (router, port) in (1..PLANES).map(home) {
                builder.add_home(TerminalId(terminal), router, port);
            }
        }
        for (rack, plane) in (0..racks).flat_map(|rack| (0..PLANES).map(move |plane| (rack, plane))) {
            for switch in 0..aggregation {
                let low = (RouterId(rack * PLANES + plane), (hosts + switch) as Port);
                let high = (RouterId(PLANES * racks + plane * aggregation + switch), rack as Port);
                builder.add_link(low, high, context.channels.link(0));
            }
        }
        let first_above = PLANES * racks;
        let all = 0..first_above + above;
        builder.label_routers("level", all.clone().map(|router| 1 + u32::from(router >= first_above)).collect());
        let plane = |router: u32| if router < first_above { router % PLANES } else { (router - first_above) / aggregation };
        builder.label_routers("plane", all.map(plane).collect());
        builder.set_attribute("hpn_pod", vec![segments, hosts, rails, aggregation]);
        let digits: Vec<u32> = [rails, hosts, segments].into_iter().filter(|&radix| radix > 1).collect();
        builder.set_attribute("terminal_digits", if digits.is_empty() { vec![1] } else { digits });
        builder.set_attribute("hops_per_class", vec![2]);
        builder.finish()
    }
}

impl HpnPod {
    /// The numbers of terminals and of top-of-rack switches in a plane.
    fn check(&self) -> Result<(u32, u32), NetworkError> {
        let numbers = [self.segments, self.hosts, self.rails, self.aggregation];
        for (key, number) in ["segments", "hosts", "rails", "aggregation"].into_iter().zip(numbers) {
            sizes::positive(key, number)?;
        }
        let terminals = sizes::product("terminals", &[self.segments, self.hosts, self.rails])?;
        let racks = sizes::product("top-of-rack switches in a plane", &[self.segments, self.rails])?;
        sizes::product("links", &[PLANES, racks, self.aggregation])?;
        Ok((terminals, racks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(numbers: [u32; 4]) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let [segments, hosts, rails, aggregation] = numbers;
        HpnPod { segments, hosts, rails, aggregation }.build(&context)
    }

    /// Two planes that no link joins; two ports a terminal; one rail of a segment shares its switches, all others are two links away.
    #[test]
    fn counts_and_distances_follow_the_closed_forms() {
        for numbers in [[2, 4, 4, 3], [3, 2, 5, 1], [1, 3, 2, 2]] {
            let [segments, hosts, rails, aggregation] = numbers;
            let summary = Summary::of(&build(numbers).unwrap());
            let terminals = u64::from(segments * hosts * rails);
            assert_eq!((u64::from(summary.terminals), summary.terminal_links), (terminals, 2 * terminals));
            assert_eq!(summary.routers, 2 * (segments * rails + aggregation));
            assert_eq!(summary.links, u64::from(2 * segments * rails * aggregation));
            assert_eq!(summary.components, 2);
            assert_eq!(summary.sum_hops, Some(terminals * 2 * (terminals - u64::from(hosts))));
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (place, key) in ["segments", "hosts", "rails", "aggregation"].into_iter().enumerate() {
            let mut numbers = [2; 4];
            numbers[place] = 0;
            assert!(matches!(build(numbers), Err(NetworkError::Parameter { key: found, .. }) if found == key));
            numbers[place] = u32::MAX;
            assert!(matches!(build(numbers), Err(NetworkError::TooLarge(_))), "{key}");
        }
    }
}
