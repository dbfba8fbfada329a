//! Shortest paths on dragonflies by group: what a table would say, without the table.

use super::path_formula::PathFormula;
use crate::id::{Port, RouterId};
use crate::network::Network;
use crate::routing::metric::Metric;
use crate::routing::table::{Edge, edges};

/// No port leads there.
const NOWHERE: Port = Port::MAX;

/// Groups of fully meshed routers with one channel from each group to each other one. A path to another group takes that channel, and
/// before and after it at most one channel within a group: no other path has as few channels between groups and is as short.
#[derive(Debug)]
pub(super) struct GroupPaths {
    /// By router: its group, and which router of the group it is, in the order of their numbers.
    group: Vec<u32>,
    position: Vec<u32>,
    /// Routers of the largest group.
    largest: usize,
    /// The port to a router of the same group, shape `[routers, largest]`.
    local: Vec<Port>,
    groups: usize,
    /// The channel from a group to another: the routers at its ends and the port, shape `[groups, groups]`.
    exits: Vec<RouterId>,
    entries: Vec<RouterId>,
    ports: Vec<Port>,
}

impl GroupPaths {
    /// The paths of a network, if it is a whole dragonfly with one channel between any two groups and few channels make a path short.
    pub(super) fn of(network: &Network, metric: Metric) -> Option<Box<dyn PathFormula>> {
        let group = network.labels().router("group")?;
        if metric == Metric::Latency {
            return None;
        }
        let mut sizes = vec![0u32; 1 + group.iter().max().copied()? as usize];
        let mut next = |group: u32| {
            sizes[group as usize] += 1;
            sizes[group as usize] - 1
        };
        let position = group.iter().map(|&group| next(group)).collect();
        let (groups, largest) = (sizes.len(), sizes.iter().max().copied().unwrap_or(0) as usize);
        // That many channels, and no two for the same purpose, are one for each.
        let within: u64 = sizes.iter().map(|&size| u64::from(size) * u64::from(size.saturating_sub(1))).sum();
        if within + groups as u64 * (groups as u64 - 1) != network.router_channels().count() as u64 {
            return None;
        }
        let nobody = vec![RouterId(0); groups * groups];
        let mut paths = Self {
            local: vec![NOWHERE; group.len() * largest],
            group: group.to_vec(),
            position,
            largest,
            groups,
            exits: nobody.clone(),
            ports: vec![NOWHERE; nobody.len()],
            entries: nobody,
        };
        edges(network).iter().all(|edge| paths.enter(edge)).then(|| Box::new(paths) as Box<dyn PathFormula>)
    }

    /// Enters a channel; false if another one joins the same routers of a group or the same groups.
    fn enter(&mut self, edge: &Edge) -> bool {
        let (from, to) = (self.group[edge.from.index()] as usize, self.group[edge.to.index()] as usize);
        if from == to {
            let place = edge.from.index() * self.largest + self.position[edge.to.index()] as usize;
            return edge.from != edge.to && std::mem::replace(&mut self.local[place], edge.port) == NOWHERE;
        }
        let pair = from * self.groups + to;
        (self.exits[pair], self.entries[pair]) = (edge.from, edge.to);
        std::mem::replace(&mut self.ports[pair], edge.port) == NOWHERE
    }

    /// The number of a pair of groups, if they are two.
    fn pair(&self, here: RouterId, there: RouterId) -> Option<usize> {
        let (from, to) = (self.group[here.index()] as usize, self.group[there.index()] as usize);
        (from != to).then_some(from * self.groups + to)
    }
}

impl PathFormula for GroupPaths {
    fn ports(&self, router: RouterId, target: RouterId) -> &[Port] {
        let aim = match self.pair(router, target) {
            Some(pair) if self.exits[pair] == router => return &self.ports[pair..=pair],
            Some(pair) => self.exits[pair],
            None if router == target => return &[],
            None => target,
        };
        let place = router.index() * self.largest + self.position[aim.index()] as usize;
        &self.local[place..=place]
    }

    fn hops(&self, router: RouterId, target: RouterId) -> u32 {
        match self.pair(router, target) {
            Some(pair) => 1 + u32::from(self.exits[pair] != router) + u32::from(self.entries[pair] != target),
            None => u32::from(router != target),
        }
    }

    fn diameter(&self) -> u32 {
        if self.groups < 2 {
            return u32::from(self.largest > 1);
        }
        let mut sizes = vec![0u32; self.groups];
        self.group.iter().for_each(|&group| sizes[group as usize] += 1);
        let several = |group: usize| u32::from(sizes[group] > 1);
        let pairs = (0..self.groups).flat_map(|from| (0..self.groups).map(move |to| (from, to))).filter(|(from, to)| from != to);
        pairs.map(|(from, to)| 1 + several(from) + several(to)).max().unwrap_or(0)
    }

    fn bytes(&self) -> u64 {
        (4 * (self.group.len() + self.position.len()) + 2 * (self.local.len() + self.ports.len()) + 8 * self.exits.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::agrees_with_a_search;
    use super::*;
    use crate::topology::dragonfly::{Arrangement, Dragonfly};
    use crate::topology::flattened_butterfly::FlattenedButterfly;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};
    use proptest::prelude::*;

    const CONTEXT: fn(&ChannelParameters) -> BuildContext<'_> = |channels| BuildContext { channels, files: &NoFiles, structure_seed: 0 };

    proptest! {
        /// On every dragonfly the groups give the ports and hops that a search from each target finds.
        #[test]
        fn groups_say_what_a_search_finds(p in 1u32..3, a in 1u32..5, h in 1u32..4, palm_tree: bool) {
            let arrangement = if palm_tree { Arrangement::PalmTree } else { Arrangement::Consecutive };
            let shape = Dragonfly::whole(p, a, h, arrangement);
            let network = shape.build(&CONTEXT(&ChannelParameters::default())).unwrap();
            agrees_with_a_search(&network, Metric::Hops, &*GroupPaths::of(&network, Metric::Hops).expect("a whole dragonfly"));
        }
    }

    /// The path of the least latency may take two channels between groups, and a network without groups has no such paths.
    #[test]
    fn other_paths_are_left_to_the_table() {
        let context = ChannelParameters::default();
        let shape = Dragonfly::whole(1, 4, 2, Arrangement::PalmTree);
        assert!(GroupPaths::of(&shape.build(&CONTEXT(&context)).unwrap(), Metric::Latency).is_none());
        let flat = FlattenedButterfly { dimensions: vec![4, 4], concentration: 1 }.build(&CONTEXT(&context)).unwrap();
        assert!(GroupPaths::of(&flat, Metric::Hops).is_none());
    }
}
