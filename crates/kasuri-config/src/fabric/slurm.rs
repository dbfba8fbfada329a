//! The tree of switches that Slurm is told of a fabric.

use super::{Fabric, neighbours, outputs};
use kasuri_formats::slurm_topology::{SlurmTopology, Switch};
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use std::collections::{BTreeMap, BTreeSet};

/// What the switch above all leaves is called where the fabric is no tree.
const ROOT: &str = "fabric";

/// Characters of a switch's name, at most.
const MAX_CHARACTERS: usize = 64;

/// A fabric as Slurm knows networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForSlurm {
    /// Its switches and hosts.
    pub topology: SlurmTopology,
    /// How many hosts have adapters at several switches: the first adapter's switch counts.
    pub several: usize,
    /// The hosts that are left out because Slurm does not accept their names.
    pub unnamed: Vec<String>,
}

/// Whether a node of Slurm can have this name: blanks, commas and brackets would end it or make it a list.
fn is_node_name(host: &str) -> bool {
    !host.is_empty() && host.chars().all(|character| character.is_ascii_alphanumeric() || "-_.".contains(character))
}

impl Fabric {
    /// The fabric as Slurm knows networks.
    ///
    /// A tree of switches with hosts at its leaves only is written as it is. Any other fabric, and so every fat tree, becomes its switches
    /// with hosts below one switch: slurmctld exits if a switch has both hosts and switches below it.
    pub fn slurm(&self) -> ForSlurm {
        let network = &self.network;
        let mut home: BTreeMap<&str, RouterId> = BTreeMap::new();
        let (mut several, mut unnamed) = (BTreeSet::new(), BTreeSet::new());
        for (host, terminal) in self.details.hosts.iter().zip(0..).filter(|(_, terminal)| self.details.is_host[*terminal as usize]) {
            if !is_node_name(host) {
                unnamed.insert(host.clone());
                continue;
            }
            let Some(router) = self.switch_of(host, TerminalId(terminal)) else { continue };
            if *home.entry(host).or_insert(router) != router {
                several.insert(host.as_str());
            }
        }
        let mut hosts: BTreeMap<RouterId, Vec<String>> = BTreeMap::new();
        for (host, router) in home {
            hosts.entry(router).or_default().push(host.to_owned());
        }
        hosts.values_mut().for_each(|hosts| hosts.sort_by(|one, other| super::natural(one, other)));
        let names = switch_names(network);
        let tree =
            children(self, &hosts).filter(|tree| !tree.iter().any(|(router, below)| hosts.contains_key(router) && !below.is_empty()));
        let mut switches = Vec::new();
        let routers = (0..network.router_count()).map(RouterId);
        for router in routers {
            let nodes = hosts.get(&router).cloned().unwrap_or_default();
            let below = tree
                .as_ref()
                .and_then(|tree| tree.get(&router))
                .map_or(Vec::new(), |below| below.iter().map(|child| names[child.index()].clone()).collect());
            if !nodes.is_empty() || !below.is_empty() {
                switches.push(Switch { name: names[router.index()].clone(), nodes, switches: below, line: 0 });
            }
        }
        if tree.is_none() && switches.len() > 1 {
            let leaves = switches.iter().map(|switch| switch.name.clone()).collect();
            let root = if names.iter().any(|name| name == ROOT) { format!("{ROOT}-root") } else { ROOT.to_owned() };
            switches.push(Switch { name: root, nodes: Vec::new(), switches: leaves, line: 0 });
        }
        let topology = SlurmTopology { switches, ..SlurmTopology::default() };
        ForSlurm { topology, several: several.len(), unnamed: unnamed.into_iter().collect() }
    }

    /// The switch of a host's terminal: its router, or, where hosts are routers themselves, the first neighbouring switch that has links to
    /// more than this host.
    fn switch_of(&self, host: &str, terminal: TerminalId) -> Option<RouterId> {
        let router = self.network.injection_port(terminal).0;
        if self.is_switch(router) {
            return Some(router);
        }
        let neighbours = |router| neighbours(&self.network, router).map(|(neighbour, _)| neighbour);
        let switches = |router| neighbours(router).filter(|&neighbour| self.is_switch(neighbour));
        let inner =
            |&switch: &RouterId| neighbours(switch).all(|end| !self.is_switch(end) && self.hosts_of(end).all(|of_end| of_end == host));
        switches(router).find(|switch| !inner(switch)).or_else(|| switches(router).next())
    }

    /// The hosts of a router's terminals.
    fn hosts_of(&self, router: RouterId) -> impl Iterator<Item = &str> {
        outputs(&self.network, router).filter_map(|channel| match self.network.destination(channel) {
            Endpoint::Terminal(terminal) => self.details.hosts.get(terminal.index()).map(String::as_str),
            Endpoint::Router(..) => None,
        })
    }
}

/// Names that Slurm takes: other characters become underscores, long ones lose their beginning, and equal ones get their number.
fn switch_names(network: &Network) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |router: u32| {
        let plain = |character: char| if character.is_ascii_alphanumeric() || "-_.:".contains(character) { character } else { '_' };
        let whole: String = network.router_names().of(router).chars().map(plain).collect();
        let room = MAX_CHARACTERS - 12;
        let mut name = if whole.len() > room { whole[whole.len() - room..].to_owned() } else { whole };
        if name.is_empty() || !taken.insert(name.clone()) {
            name = format!("{name}-{router}");
            taken.insert(name.clone());
        }
        name
    };
    (0..network.router_count()).map(name).collect()
}

/// The switches below each one, if the switches that lead to hosts are a tree; branches without hosts are left out.
fn children(fabric: &Fabric, hosts: &BTreeMap<RouterId, Vec<String>>) -> Option<BTreeMap<RouterId, Vec<RouterId>>> {
    let network = &fabric.network;
    let mut neighbours: BTreeMap<RouterId, BTreeSet<RouterId>> = BTreeMap::new();
    for channel in network.router_channels().filter(|&channel| fabric.is_between_switches(channel)) {
        if let (Endpoint::Router(from, _), Endpoint::Router(to, _)) = (network.source(channel), network.destination(channel)) {
            neighbours.entry(from).or_default().insert(to);
            neighbours.entry(to).or_default().insert(from);
        }
    }
    // Leaves of the graph that have no hosts go, until none is left.
    while let Some(bare) =
        neighbours.iter().find(|(router, ends)| ends.len() <= 1 && !hosts.contains_key(router)).map(|(&router, _)| router)
    {
        neighbours.remove(&bare);
        neighbours.values_mut().for_each(|ends| ends.retain(|&end| end != bare));
    }
    let edges = neighbours.values().map(BTreeSet::len).sum::<usize>() / 2;
    if edges + 1 != neighbours.len() {
        return None;
    }
    // The middle: leaves are taken away layer by layer, and what is left last is the root.
    let mut left = neighbours.clone();
    while left.len() > 2 {
        let outer: Vec<RouterId> = left.iter().filter(|(_, ends)| ends.len() <= 1).map(|(&router, _)| router).collect();
        for router in outer {
            left.remove(&router);
            left.values_mut().for_each(|ends| ends.retain(|&end| end != router));
        }
    }
    let root = *left.keys().next_back()?;
    let (mut below, mut queue, mut seen) = (BTreeMap::new(), vec![root], BTreeSet::from([root]));
    while let Some(router) = queue.pop() {
        let children: Vec<RouterId> = neighbours[&router].iter().copied().filter(|&child| seen.insert(child)).collect();
        queue.extend(&children);
        below.insert(router, children);
    }
    (seen.len() == neighbours.len()).then_some(below)
}
