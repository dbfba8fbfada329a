//! Fabrics of ns-3 and SimAI: each node is a router; GPUs and hosts have a terminal.
//!
//! Packets go as SimAI's do: by the fewest links, only switches pass them on, and where a GPU can go by its NVSwitch it does not go
//! otherwise. SimAI hashes flows over the ports that are left; here each node takes them in turn, destination by destination.

use super::parts::{LinkPart, MAX_TABLE_ENTRIES, Parts, Ports, TerminalPart};
use super::{Fabric, FabricError};
use kasuri_formats::FormatError;
use kasuri_formats::ns3::{Kind, Topology};
use kasuri_formats::rate::Speed;
use kasuri_network::id::{Port, RouterId};
use kasuri_network::network::tables::ForwardingTables;
use kasuri_network::routing::minimal::NO_NODE;
use std::collections::{BTreeMap, BTreeSet};

/// The fabric of a topology. A terminal is as fast as the fastest link of its node.
///
/// # Errors
/// A rate of 0, a host without a link, or what is no network.
pub(super) fn fabric(topology: &Topology) -> Result<Fabric, FabricError> {
    let is_switch = topology.nodes.iter().map(|&kind| !is_end(kind)).collect();
    let mut parts = Parts { file: topology.name.clone(), is_switch, notes: topology.notes.clone(), ..Parts::default() };
    parts.routers = topology.nodes.iter().zip(0..).map(|(&kind, number)| name(kind, number)).collect();
    let mut fastest: Vec<Option<Speed>> = vec![None; topology.nodes.len()];
    let mut lossy = 0;
    for link in &topology.links {
        let wrong = || {
            let problem = format!("a rate of {} Gbit/s; it must be above 0, and at most 4 Pbit/s", link.gbit_per_second);
            FormatError::new(&topology.name, link.line, problem)
        };
        let speed = Speed::from_gbit_per_second(link.gbit_per_second).ok_or_else(wrong)?;
        lossy += u32::from(link.loss > 0.0);
        for end in link.ends {
            let fastest = &mut fastest[end as usize];
            *fastest = Some(speed.max(fastest.unwrap_or(speed)));
        }
        parts.links.push(LinkPart { ends: link.ends, speed, latency_ns: Some(link.delay_ns) });
    }
    if lossy > 0 {
        parts.notes.push(format!("{lossy} links lose packets; here they lose none"));
    }
    for (number, speed) in (0..).zip(&fastest).filter(|(number, _)| is_end(topology.nodes[*number as usize])) {
        let name = parts.routers[number as usize].clone();
        let speed = speed.ok_or_else(|| FabricError::Files(format!("{}: {name} has no link", topology.name)))?;
        let host = topology.gpus_per_server.map_or_else(|| name.clone(), |gpus| format!("server{}", number / gpus));
        parts.terminals.push(TerminalPart { name, host, router: number, speed, latency_ns: Some(0.0) });
    }
    parts.nodes = nodes_of(topology);
    let has_switches = topology.nodes.iter().any(|&kind| !is_end(kind));
    let entries = topology.nodes.len() as u64 * parts.terminals.len() as u64;
    let has_tables = has_switches && entries <= MAX_TABLE_ENTRIES;
    if !has_switches {
        parts.notes.push("without switches there is nothing that passes packets on: the fabric has no forwarding tables".to_owned());
    }
    let ends: Vec<u32> = parts.terminals.iter().map(|terminal| terminal.router).collect();
    parts.fabric(|terminals, ports| has_tables.then(|| tables(topology, &ends, terminals, ports)))
}

/// Is a node the beginning and end of packets?
fn is_end(kind: Kind) -> bool {
    matches!(kind, Kind::Gpu | Kind::Host)
}

/// The server of each router: of a GPU by its number, of an NVSwitch by the GPUs that it joins. Empty if the file has no servers.
fn nodes_of(topology: &Topology) -> Vec<u32> {
    let Some(gpus) = topology.gpus_per_server else { return Vec::new() };
    let is = |node: u32, kind: Kind| topology.nodes[node as usize] == kind;
    let mut nodes: Vec<u32> =
        (0..topology.nodes.len() as u32).map(|node| if is(node, Kind::Gpu) { node / gpus } else { NO_NODE }).collect();
    let mut servers: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for link in &topology.links {
        let [one, other] = link.ends;
        for (switch, gpu) in
            [(one, other), (other, one)].into_iter().filter(|&(switch, gpu)| is(switch, Kind::NvSwitch) && is(gpu, Kind::Gpu))
        {
            servers.entry(switch).or_default().insert(gpu / gpus);
        }
    }
    for (switch, joined) in servers.iter().filter(|(_, joined)| joined.len() == 1) {
        nodes[*switch as usize] = joined.first().copied().unwrap_or(NO_NODE);
    }
    nodes
}

fn name(kind: Kind, number: u32) -> String {
    let word = match kind {
        Kind::Gpu => "gpu",
        Kind::Host => "host",
        Kind::NvSwitch => "nvswitch",
        Kind::Switch => "switch",
    };
    format!("{word}{number}")
}

fn tables(topology: &Topology, ends: &[u32], terminals: &[Port], ports: &Ports) -> ForwardingTables {
    let nodes = topology.nodes.len();
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for link in &topology.links {
        let [one, other] = link.ends;
        neighbours[one as usize].push(other);
        neighbours[other as usize].push(one);
    }
    neighbours.iter_mut().for_each(|all| {
        all.sort_unstable();
        all.dedup();
    });
    let mut tables = ForwardingTables::new(nodes as u32, ends.iter().map(|_| 1));
    let (mut distance, mut queue) = (vec![u32::MAX; nodes], Vec::new());
    let mut turns: Vec<Turns> = vec![Turns::new(); nodes];
    for ((&to, &port), address) in ends.iter().zip(terminals).zip(0..) {
        distances(topology, &neighbours, to, &mut distance, &mut queue);
        for from in (0..nodes as u32).filter(|&from| distance[from as usize] < u32::MAX) {
            let port = if from == to {
                Some(port)
            } else {
                next_port(topology, &neighbours, &distance, (from, to), &mut turns[from as usize], ports)
            };
            if let Some(port) = port {
                tables.set(RouterId(from), address, port);
            }
        }
    }
    tables
}

/// Links to a node by paths on which only switches pass packets on.
fn distances(topology: &Topology, neighbours: &[Vec<u32>], to: u32, distance: &mut [u32], queue: &mut Vec<u32>) {
    distance.fill(u32::MAX);
    distance[to as usize] = 0;
    queue.clear();
    queue.push(to);
    let mut next = 0;
    while next < queue.len() {
        let node = queue[next];
        next += 1;
        if node != to && is_end(topology.nodes[node as usize]) {
            continue;
        }
        for &neighbour in &neighbours[node as usize] {
            if distance[neighbour as usize] == u32::MAX {
                distance[neighbour as usize] = distance[node as usize] + 1;
                queue.push(neighbour);
            }
        }
    }
}

/// By the neighbours among which a node chooses: how often it has chosen.
type Turns = BTreeMap<Vec<u32>, u32>;

/// The port whose turn it is of those by which a packet comes nearer.
fn next_port(
    topology: &Topology,
    neighbours: &[Vec<u32>],
    distance: &[u32],
    (from, to): (u32, u32),
    turns: &mut Turns,
    ports: &Ports,
) -> Option<Port> {
    let passes = |node: u32| node == to || !is_end(topology.nodes[node as usize]);
    let nearer = |&&node: &&u32| distance[node as usize] < distance[from as usize] && passes(node);
    let next: Vec<u32> = neighbours[from as usize].iter().filter(nearer).copied().collect();
    let by_nvswitch: Vec<u32> = next.iter().copied().filter(|&node| topology.nodes[node as usize] == Kind::NvSwitch).collect();
    let next = if by_nvswitch.is_empty() { next } else { by_nvswitch };
    let count = next.len() as u32;
    let turn = turns.entry(next.clone()).or_default();
    let (chosen, copy) = (next.get((*turn % count.max(1)) as usize)?, *turn / count.max(1));
    *turn += 1;
    ports.of(from, *chosen, copy)
}
