//! By groups on dragonflies of any number of groups and links between them.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::hop::{Candidate, Hop, Reads};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::{Endpoint, Network};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// To another group over one of the links that join the two, drawn for each packet: by a link of the router itself if it has one, else after a
/// hop to a router that has one; then at most one more hop within the group.
///
/// The class of virtual channels is the number of links between groups that the packet has taken: two classes for the direct path, three by an
/// intermediate group, in each of which a hop within the group comes before the link that leaves it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DragonflyGroups {
    /// Which groups a packet goes through.
    pub through: Through,
}

/// Which groups a packet goes through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Through {
    /// None but its source's and its destination's.
    #[default]
    Direct,
    /// One that is drawn for each packet from all groups (Valiant); no detour if it is that of its source or destination, or if these are one.
    Group,
}

impl Member for DragonflyGroups {
    const NAME: &'static str = "dragonfly-groups";
    const SUMMARY: &'static str = "dragonfly of any number of groups: directly or by an intermediate group, a class for each group";
    const SOURCE: &'static str = "Kim, Dally, Scott and Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008, section 4";
    const EXAMPLE: &'static str = "through = \"group\"";
}

impl RoutingAlgorithm for DragonflyGroups {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let mismatch = |problem: String| RoutingError::Mismatch { routing: Self::NAME, network: network.name().to_owned(), problem };
        let labels = network.labels();
        let (Some(&[_, _, _, groups, _, _]), Some(group)) = (labels.attribute("dragonfly_groups"), labels.router("group")) else {
            return Err(mismatch("it needs a dragonfly".to_owned()));
        };
        let routers = network.router_count();
        let cells = u64::from(routers) * u64::from(groups);
        if cells > 1 << 28 {
            return Err(mismatch(format!("its tables would have {cells} entries; take minimal or up-down")));
        }
        let mut paths = Paths { groups, towards: vec![Vec::new(); cells as usize], local: Vec::new() };
        paths.enter(network, group);
        let missing = (0..routers).flat_map(|router| (0..groups).map(move |to| (router, to)));
        let missing =
            missing.filter(|&(router, to)| group[router as usize] != to).find(|&(router, to)| paths.towards(router, to).is_empty());
        if let Some((router, to)) = missing {
            return Err(mismatch(format!("no link joins the group of router {router} and group {to}, so that no direct path leads there")));
        }
        let homes = (0..network.terminal_count()).map(|terminal| network.ejection_port(TerminalId(terminal))).collect();
        Ok(Box::new(Compiled { through: self.through, paths, group: group.to_vec(), homes }))
    }

    fn most_table_bytes(&self, network: &Network) -> u64 {
        let groups = network.labels().attribute("dragonfly_groups").map_or(0, |numbers| numbers[3]);
        u64::from(network.router_count()) * u64::from(groups) * 40
    }
}

/// Ports that lead on.
#[derive(Debug)]
struct Paths {
    groups: u32,
    /// Ports towards another group, shape `[routers, groups]`: those of its links, or to routers of the group that have some.
    towards: Vec<Vec<Port>>,
    /// By router: the others of its group, each with the port to it, parallel ones each; sorted.
    local: Vec<Vec<(RouterId, Port)>>,
}

impl Paths {
    fn towards(&self, router: u32, group: u32) -> &[Port] {
        &self.towards[(router * self.groups + group) as usize]
    }

    fn enter(&mut self, network: &Network, group: &[u32]) {
        self.local = vec![Vec::new(); group.len()];
        let routers = || (0..network.router_count()).map(RouterId);
        for (router, port) in routers().flat_map(|router| (0..network.port_count(router) as Port).map(move |port| (router, port))) {
            let Some(Endpoint::Router(next, _)) = network.output_channel(router, port).map(|channel| network.destination(channel)) else {
                continue;
            };
            let (from, to) = (group[router.index()], group[next.index()]);
            if from == to {
                self.local[router.index()].push((next, port));
            } else {
                self.towards[(router.0 * self.groups + to) as usize].push(port);
            }
        }
        self.local.iter_mut().for_each(|list| list.sort_unstable());
        let own: Vec<bool> = self.towards.iter().map(|ports| !ports.is_empty()).collect();
        for router in 0..network.router_count() {
            for to in (0..self.groups).filter(|&to| to != group[router as usize] && !own[(router * self.groups + to) as usize]) {
                let has_link = |next: RouterId| own[(next.0 * self.groups + to) as usize];
                let ports = self.local[router as usize].iter().filter(|(next, _)| has_link(*next)).map(|&(_, port)| port).collect();
                self.towards[(router * self.groups + to) as usize] = ports;
            }
        }
    }
}

#[derive(Debug)]
struct Compiled {
    through: Through,
    paths: Paths,
    group: Vec<u32>,
    homes: Vec<(RouterId, Port)>,
}

/// Bits of the state that count links between groups; above them stands the intermediate group plus 1 until the packet is there.
const TAKEN_BITS: u32 = 2;

impl Compiled {
    fn classes(&self) -> u16 {
        if self.through == Through::Direct { 2 } else { 3 }
    }
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        let ports: usize = self.paths.towards.iter().map(Vec::len).sum();
        let table_bytes = (self.paths.towards.len() * size_of::<Vec<Port>>() + ports * size_of::<Port>()) as u64;
        RoutingFacts {
            virtual_channels_required: self.classes().into(),
            reads: Reads::DESTINATION_ROUTER,
            observes_congestion: false,
            table_bytes,
            build_peak_bytes: table_bytes,
            ..RoutingFacts::default()
        }
    }

    fn initial_state(&self, _source: TerminalId, _destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        match self.through {
            Through::Direct => 0,
            Through::Group => (choice.uniform(self.paths.groups) + 1) << TAKEN_BITS,
        }
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, eject) = self.homes[hop.destination.index()];
        if router == hop.router {
            candidates.push(Candidate::new(eject, hop.available));
            return;
        }
        let here = self.group[hop.router.index()];
        let (taken, by) = (*state & ((1 << TAKEN_BITS) - 1), *state >> TAKEN_BITS);
        let last = self.group[router.index()];
        // The intermediate group has been reached, or there is none; and no packet leaves a group that has its source and its destination.
        let is_direct = by == 0 || by - 1 == here || (taken == 0 && here == last);
        let to = if is_direct { last } else { by - 1 };
        let classes = self.classes().min(hop.available.count()).max(1);
        let class = (taken as u16).min(classes - 1);
        let port = if to == here {
            let list = &self.paths.local[hop.router.index()];
            let begin = list.partition_point(|&(next, _)| next < router);
            let count = list[begin..].iter().take_while(|&&(next, _)| next == router).count() as u32;
            if count == 0 {
                return;
            }
            list[begin + choice.uniform(count) as usize].1
        } else {
            let ports = self.paths.towards(hop.router.0, to);
            ports[choice.uniform(ports.len() as u32) as usize]
        };
        let leaves = to != here && self.paths.local[hop.router.index()].iter().all(|&(_, local)| local != port);
        *state = (taken + u32::from(leaves)) | if is_direct { 0 } else { by << TAKEN_BITS };
        candidates.push(Candidate::new(port, hop.available.class(class, classes)));
    }
}
