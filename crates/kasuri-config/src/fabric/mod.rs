//! Real fabrics: the network that dumps describe, with the names, addresses, rates and forwarding tables of its parts.
//!
//! [`import`] puts the files of one fabric together, whatever their kinds: each is known by what it says. Switches become routers, and each
//! port of an adapter that has a cable to a switch becomes a terminal, both numbered in the order of their names, so that the order in
//! which a fabric was discovered does not matter. Ports keep their numbers: port 0 of a switch, which is the switch itself, has no channel.

mod addresses;
mod edge_list;
mod hosts;
mod mesh_graph;
mod nccl;
mod ns3;
mod order;
mod parts;
mod slurm;

pub use hosts::host_of;
pub use mesh_graph::Join;
pub use order::natural;
pub use slurm::ForSlurm;

use addresses::Addresses;
use hosts::Hosts;
use kasuri_formats::details::Details;
use kasuri_formats::discovery::{CableEnds, Discovery, Kind};
use kasuri_formats::error::FormatError;
use kasuri_formats::file_kind::{FileKind, kind_of};
use kasuri_formats::names::distinguish;
use kasuri_formats::rate::{self, Rate, Speed};
use kasuri_formats::recognise::{self, Form};
use kasuri_formats::text::{NotText, decode};
use kasuri_formats::{self as format, ibnetdiscover, ibnetdiscover_ports, network_json};
use kasuri_network::id::{ChannelId, Port, RouterId};
use kasuri_network::network::{Endpoint, Link, MAX_CHANNEL_CYCLES, Network, NetworkBuilder, NetworkError};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// A file of a fabric: its name for messages, and its bytes.
pub type SourceFile = (String, Vec<u8>);

/// A network and what else is known of it.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// Routers, terminals, channels; its tables, if they are known.
    pub network: Network,
    /// Names, addresses and rates.
    pub details: Details,
}

/// Is the adapter of this name, of the host of that name, taken?
pub type Takes<'a> = dyn Fn(&str, &str) -> bool + 'a;

/// What of a fabric is taken.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Adapters that are no host's, too: aggregation nodes, routers.
    pub all_adapters: bool,
    /// The rate of cables whose speed the discovery did not know.
    pub unknown_rate: Option<Rate>,
    /// Only adapters of hosts of which this says yes: it gets the name of the adapter and that of the host.
    pub takes: Option<&'a Takes<'a>>,
    /// Where links between meshes end, of which a mesh graph descriptor does not say it.
    pub joins: &'a [Join],
    /// The rate of links of which a file says none.
    pub link_rate: Option<Speed>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Options").field("all_adapters", &self.all_adapters).finish_non_exhaustive()
    }
}

/// Why files are no fabric.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FabricError {
    /// A line is wrong.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The files do not go together.
    #[error("{0}")]
    Files(String),
    /// What they describe is no network.
    #[error("{name}: {problem}")]
    Network {
        /// The file of the discovery.
        name: String,
        /// What is wrong.
        problem: NetworkError,
    },
}

/// Puts the files of a fabric together.
///
/// # Errors
/// A file that is wrong or of no known kind; no file of discovery, or several; files that contradict each other.
pub fn import(files: &[SourceFile], options: Options<'_>) -> Result<Fabric, FabricError> {
    put_together(files, options).map_err(|error| {
        let FabricError::Format(problem) = &error else { return error };
        // A file of another form may begin like a dump of a fabric.
        match files.iter().find(|(name, _)| *name == problem.name).map(|(name, bytes)| (name, recognise::recognise(bytes))) {
            Some((name, Some(form))) if !matches!(form, Form::Fabric(_)) => FabricError::Files(form.say(name)),
            _ => error,
        }
    })
}

fn put_together(files: &[SourceFile], options: Options<'_>) -> Result<Fabric, FabricError> {
    let kinds = files.iter().map(|(name, bytes)| known_kind(name, bytes)).collect::<Result<Vec<FileKind>, FabricError>>()?;
    let is_found = |kind: FileKind| kind.is_whole() || matches!(kind, FileKind::Discovery | FileKind::Ports);
    let found: Vec<usize> = (0..files.len()).filter(|&place| is_found(kinds[place])).collect();
    let &[place] = found.as_slice() else {
        let names: Vec<&str> = found.iter().map(|&place| files[place].0.as_str()).collect();
        let found = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(FabricError::Files(format!("a fabric has one file of ibnetdiscover, or one that says all of it; found: {found}")));
    };
    let (kind, (name, bytes)) = (kinds[place], &files[place]);
    check_options(kind, name, &options)?;
    let mut fabric = if kind.is_whole() {
        if let Some(other) = (0..files.len()).find(|&other| other != place) {
            let other = &files[other].0;
            return Err(FabricError::Files(format!("{name} is a whole fabric; {other} cannot be added to it: import the dumps together")));
        }
        whole(kind, name, bytes, &options)?
    } else {
        let discovery = match kind {
            FileKind::Ports => ibnetdiscover_ports::parse(name, bytes)?,
            _ => ibnetdiscover::parse(name, bytes)?,
        };
        let files_of =
            |wanted: FileKind| files.iter().zip(&kinds).filter(|(_, kind)| **kind == wanted).map(|(file, _)| file).collect::<Vec<_>>();
        let mut plan = Plan::of(&discovery, options)?;
        if let Some(tables) = plan.tables(&files_of(FileKind::Tables), &files_of(FileKind::Lanes), &files_of(FileKind::Levels))? {
            plan.builder.set_tables(tables);
        }
        let network = plan.builder.finish().map_err(|problem| FabricError::Network { name: name.clone(), problem })?;
        Fabric { network, details: plan.details }
    };
    fabric.details.notes.extend(unused_options(kind, &options).map(str::to_owned));
    Ok(fabric)
}

/// The kind of a file.
///
/// # Errors
/// It is none of those that are read; the error names its form if it is a known one.
fn known_kind(name: &str, bytes: &[u8]) -> Result<FileKind, FabricError> {
    if let Some(kind) = kind_of(bytes) {
        return Ok(kind);
    }
    if let Err(problem @ (NotText::Encoding { .. } | NotText::Gzipped)) = decode(bytes) {
        return Err(FormatError::new(name, 1, problem.to_string()).into());
    }
    let problem = || {
        format!(
            "{name}: is not a known dump of a fabric: neither of ibnetdiscover (with or without -p), nor of dump_lfts, ibroute or OpenSM \
             (opensm-lfts.dump, opensm-sl2vl.dump), nor service levels, nor a mesh graph descriptor, nor NCCL's topology of a node, nor \
             one of ns-3 or SimAI, nor GraphML, nor an edge list, nor a network that Kasuri wrote"
        )
    };
    Err(FabricError::Files(recognise::recognise(bytes).map_or_else(problem, |form| form.say(name))))
}

/// The note on a rate for links without one, where the file gives the rates of all links.
const UNUSED_LINK_RATE: &str = "--link-rate is not used: the file gives the rates of all its links";

/// Notes on options that have no effect on any file of this kind.
fn unused_options(kind: FileKind, options: &Options<'_>) -> impl Iterator<Item = &'static str> {
    let has_open_links = matches!(kind, FileKind::MeshGraph | FileKind::MeshGraphYaml);
    let has_rates = matches!(kind, FileKind::Discovery | FileKind::Ports | FileKind::Ns3 | FileKind::Network);
    let joins = (!options.joins.is_empty() && !has_open_links)
        .then_some("--join is not used: only mesh graph descriptors have links between chips that they do not name");
    joins.into_iter().chain((options.link_rate.is_some() && has_rates).then_some(UNUSED_LINK_RATE))
}

/// Refuses options that have no meaning for a file of this kind.
fn check_options(kind: FileKind, name: &str, options: &Options<'_>) -> Result<(), FabricError> {
    let refuse = |option: &str, reason: &str| Err(FabricError::Files(format!("{option}: {name}: {reason}; leave the option out")));
    if !kind.is_whole() {
        return Ok(());
    }
    if options.unknown_rate.is_some() {
        return refuse("--unknown-rate", "only ibnetdiscover shows rates as ???; for other files see --link-rate");
    }
    if options.all_adapters {
        return refuse("--all-adapters", "only ibnetdiscover shows adapters without a host; all adapters of this file are imported");
    }
    match options.takes {
        Some(_) => refuse("--hosts", "hosts are chosen in dumps of ibnetdiscover; this file is imported as a whole"),
        None => Ok(()),
    }
}

/// The fabric of a file that says all of it.
fn whole(kind: FileKind, name: &str, bytes: &[u8], options: &Options<'_>) -> Result<Fabric, FabricError> {
    match kind {
        FileKind::MeshGraph => mesh_graph::fabric(&format::mesh_graph::parse(name, bytes)?, options),
        FileKind::MeshGraphYaml => mesh_graph::fabric(&format::mesh_graph::parse_yaml(name, bytes)?, options),
        FileKind::GraphMl => edge_list::fabric(&format::graphml::read(name, bytes)?, options),
        FileKind::EdgeList => edge_list::fabric(&format::edge_list::parse(name, bytes)?, options),
        FileKind::Ns3 => ns3::fabric(&format::ns3::parse(name, bytes)?),
        FileKind::Nccl => nccl::fabric(format::nccl::parse(name, bytes)?, options.link_rate),
        _ => {
            let (network, details) = network_json::parse_fabric(name, bytes)?;
            Ok(Fabric { details: details.unwrap_or_else(|| Details::unknown(&network)), network })
        }
    }
}

/// A network that is being put together.
struct Plan<'a> {
    discovery: &'a Discovery,
    builder: NetworkBuilder,
    details: Details,
    addresses: Addresses,
    /// By router: how many ports it has, port 0 included.
    ports: Vec<u32>,
}

/// A port of an adapter that becomes a terminal.
struct Adapter {
    name: String,
    host: String,
    /// The adapter's node, its end of the cable, and the switch's node and port.
    node: u32,
    end: u32,
    switch: (u32, u32),
    rate: Rate,
    is_host: bool,
}

impl<'a> Plan<'a> {
    fn of(discovery: &'a Discovery, options: Options<'_>) -> Result<Self, FabricError> {
        let cables = discovery.cables()?;
        let rates = cables.iter().map(|cable| rate_of(discovery, cable, options.unknown_rate)).collect::<Result<Vec<_>, _>>()?;
        let routers = Routers::of(discovery);
        let mut notes = Vec::new();
        let adapters = adapters(discovery, &cables, &rates, options, &mut notes)?;
        if options.unknown_rate.is_some() && cables.iter().all(|cable| rate_in_file(discovery, cable).is_some_and(Rate::is_known)) {
            notes.push("--unknown-rate is not used: the dump gives the rates of all cables".to_owned());
        }
        let used: BTreeSet<Rate> = rates.iter().copied().collect();
        let mbit: Vec<u32> = used.iter().filter_map(|rate| rate.mbit_per_second()).collect();
        let (periods, channel_mbit) = rate::periods(&mbit, MAX_CHANNEL_CYCLES);
        let link = |rate: Rate| Link { latency: 1, period: periods[used.range(..rate).count()] };
        let wrong = |problem| FabricError::Network { name: discovery.name.clone(), problem };
        let file = discovery.name.rsplit(['/', '\\']).next().unwrap_or_default();
        let mut builder = NetworkBuilder::new(format!("fabric {file}"));
        for &node in &routers.nodes {
            builder.add_router(routers.ports[node as usize] as usize + 1).map_err(wrong)?;
        }
        for adapter in &adapters {
            let (node, port) = adapter.switch;
            builder.add_terminal(routers.number(node), port as Port, link(adapter.rate));
        }
        let between = between_switches(discovery, &routers, &cables, &rates);
        for &(one, other, rate) in &between {
            builder.add_link(one, other, link(rate));
        }
        builder.name_routers(routers.names.clone());
        builder.name_terminals(adapters.iter().map(|adapter| adapter.name.clone()).collect());
        let addresses = Addresses::of(discovery, &routers, &adapters)?;
        let number = |rate: Rate| used.range(..rate).count() as u8;
        let of_terminals = adapters.iter().map(|adapter| number(adapter.rate));
        let between = between.iter().flat_map(|&(.., rate)| [number(rate); 2]);
        let channel_rates = of_terminals.clone().chain(of_terminals).chain(between).collect();
        let guid = |guid: Option<u64>| format!("0x{:016x}", guid.unwrap_or(0));
        let end = |adapter: &Adapter| &discovery.ends[adapter.end as usize];
        let details = Details {
            router_guids: routers.nodes.iter().map(|&node| guid(discovery.nodes[node as usize].guid)).collect(),
            router_lids: routers.nodes.iter().map(|&node| discovery.nodes[node as usize].lid).collect(),
            terminal_guids: adapters
                .iter()
                .map(|adapter| guid(end(adapter).guid.or(discovery.nodes[adapter.node as usize].guid)))
                .collect(),
            terminal_lids: adapters.iter().map(|adapter| end(adapter).lid).collect(),
            terminal_lmcs: adapters.iter().map(|adapter| end(adapter).lmc).collect(),
            hosts: adapters.iter().map(|adapter| adapter.host.clone()).collect(),
            is_host: adapters.iter().map(|adapter| adapter.is_host).collect(),
            is_switch: Vec::new(),
            rates: used.iter().map(Rate::to_string).collect(),
            gbit_per_second: mbit.iter().map(|&mbit| f64::from(mbit) / 1000.0).collect(),
            channel_rates,
            channel_gbit_per_second: channel_mbit / 1000.0,
            latency_flit_bytes: None,
            notes,
        };
        let ports = routers.nodes.iter().map(|&node| routers.ports[node as usize] + 1).collect();
        Ok(Self { discovery, builder, details, addresses, ports })
    }
}

/// A router and its port.
type Place = (RouterId, Port);

/// The cables between switches, in the order of their lower ends.
fn between_switches(discovery: &Discovery, routers: &Routers, cables: &[CableEnds], rates: &[Rate]) -> Vec<(Place, Place, Rate)> {
    let mut between = Vec::new();
    for (cable, &rate) in cables.iter().zip(rates) {
        let end = &discovery.ends[cable.one as usize];
        if discovery.nodes[end.node as usize].kind == Kind::Switch && discovery.nodes[cable.peer as usize].kind == Kind::Switch {
            let (one, other) = ((routers.number(end.node), end.port as Port), (routers.number(cable.peer), end.peer_port as Port));
            between.push((one.min(other), one.max(other), rate));
        }
    }
    between.sort_unstable_by_key(|&(one, ..)| one);
    between
}

/// The rate of a cable in the line of one of its ends.
fn rate_in_file(discovery: &Discovery, cable: &CableEnds) -> Option<Rate> {
    discovery.ends[cable.one as usize].rate.or_else(|| discovery.ends[cable.other? as usize].rate)
}

/// The rate of a cable; one that was not known is asked for.
fn rate_of(discovery: &Discovery, cable: &CableEnds, unknown: Option<Rate>) -> Result<Rate, FabricError> {
    let end = &discovery.ends[cable.one as usize];
    let rate = rate_in_file(discovery, cable);
    [rate, unknown].into_iter().flatten().find(|rate| rate.is_known()).ok_or_else(|| {
        let shown = rate.map_or("no rate".to_owned(), |rate| format!("rate {rate}"));
        let problem = format!(
            "the cable at port {} of `{}` has {shown}; say what such cables carry, for example --unknown-rate 4xHDR",
            end.port, discovery.nodes[end.node as usize].name
        );
        discovery.error(end.line, problem).into()
    })
}

/// The switches in the order of their names.
struct Routers {
    /// The node of each router.
    nodes: Vec<u32>,
    names: Vec<String>,
    /// By node: the router.
    number_of: BTreeMap<u32, u32>,
    /// By node: the highest port that it has.
    ports: Vec<u32>,
}

impl Routers {
    fn of(discovery: &Discovery) -> Self {
        let mut ports: Vec<u32> = discovery.nodes.iter().map(|node| node.ports.unwrap_or(0)).collect();
        for end in &discovery.ends {
            ports[end.node as usize] = ports[end.node as usize].max(end.port);
        }
        let switches = (0..discovery.nodes.len() as u32).filter(|&node| discovery.nodes[node as usize].kind == Kind::Switch);
        let mut named: Vec<(String, u32)> = switches.map(|node| (discovery.nodes[node as usize].name.clone(), node)).collect();
        distinguish(&mut named, |&node| discovery.nodes[node as usize].id.to_string());
        named.sort_by(|one, other| natural(&one.0, &other.0));
        let nodes: Vec<u32> = named.iter().map(|(_, node)| *node).collect();
        let number_of = nodes.iter().zip(0..).map(|(&node, number)| (node, number)).collect();
        Self { nodes, names: named.into_iter().map(|(name, _)| name).collect(), number_of, ports }
    }

    fn number(&self, node: u32) -> RouterId {
        RouterId(self.number_of[&node])
    }
}

/// The ports of adapters that become terminals, in the order of their names.
fn adapters(
    discovery: &Discovery,
    cables: &[CableEnds],
    rates: &[Rate],
    options: Options<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Adapter>, FabricError> {
    let mut connected = vec![0u32; discovery.nodes.len()];
    discovery.ends.iter().for_each(|end| connected[end.node as usize] += 1);
    let mut hosts = Hosts::of(discovery);
    let (mut named, mut left_out, mut back_to_back) = (Vec::new(), 0u32, 0u32);
    for (cable, &rate) in cables.iter().zip(rates) {
        let one = &discovery.ends[cable.one as usize];
        let kinds = [one.node, cable.peer].map(|node| discovery.nodes[node as usize].kind);
        let (end, switch) = match kinds {
            [Kind::Switch, Kind::Switch] => continue,
            // A cable that a switch's side alone tells: the adapter's port is the other end of it.
            [Kind::Switch, _] => (cable.other.unwrap_or(cable.one), (one.node, one.port)),
            [_, Kind::Switch] => (cable.one, (cable.peer, one.peer_port)),
            _ => {
                back_to_back += 1;
                continue;
            }
        };
        let node = if kinds[0] == Kind::Switch { cable.peer } else { one.node };
        let adapter = &discovery.nodes[node as usize];
        let is_host = adapter.kind == Kind::Adapter && !is_switch_agent(&adapter.name);
        let host = hosts.name(node);
        if !(is_host || options.all_adapters) || options.takes.is_some_and(|takes| !takes(&adapter.name, &host)) {
            left_out += 1;
            continue;
        }
        hosts.note_taken(node, is_host);
        let port = discovery.ends[end as usize].port;
        let name = if connected[node as usize] > 1 { format!("{} port {port}", adapter.name) } else { adapter.name.clone() };
        named.push((name.clone(), Adapter { name, host, node, end, switch, rate, is_host }));
    }
    if named.is_empty() {
        return Err(FabricError::Files(format!("{}: has no adapter of a host with a cable to a switch", discovery.name)));
    }
    if left_out > 0 {
        notes.push(format!("{left_out} adapters are left out: aggregation nodes, routers, and what was not asked for"));
    }
    if back_to_back > 0 {
        notes.push(format!("{back_to_back} cables lead from adapter to adapter and are left out"));
    }
    notes.extend(hosts.note());
    notes.extend(discovery.messages.note(&discovery.name));
    distinguish(&mut named, |adapter: &Adapter| discovery.nodes[adapter.node as usize].id.to_string());
    named.sort_by(|one, other| natural(&one.0, &other.0));
    Ok(named.into_iter().map(|(name, adapter)| Adapter { name, ..adapter }).collect())
}

/// Whether the adapter of this name is an aggregation node (SHARP) of a switch.
fn is_switch_agent(name: &str) -> bool {
    name.contains("Aggregation Node") || name.starts_with("Quantum Mellanox Technologies")
}

/// The channels from a router, in the order of its ports.
fn outputs(network: &Network, router: RouterId) -> impl Iterator<Item = ChannelId> + '_ {
    (0..network.port_count(router)).filter_map(move |port| network.output_channel(router, port as Port))
}

/// The routers to which channels of a router lead, in the order of its ports, with these channels.
pub fn neighbours(network: &Network, router: RouterId) -> impl Iterator<Item = (RouterId, ChannelId)> + '_ {
    outputs(network, router).filter_map(|channel| match network.destination(channel) {
        Endpoint::Router(neighbour, _) => Some((neighbour, channel)),
        Endpoint::Terminal(_) => None,
    })
}

impl Fabric {
    /// The payload of a channel in Gbit/s, where it is known.
    pub fn gbit_per_second(&self, channel: ChannelId) -> Option<f64> {
        let rate = *self.details.channel_rates.get(channel.index())?;
        self.details.gbit_per_second.get(usize::from(rate)).copied()
    }

    /// The rate of a channel as the discovery names it.
    pub fn rate(&self, channel: ChannelId) -> &str {
        let rate = self.details.channel_rates.get(channel.index());
        rate.and_then(|&rate| self.details.rates.get(usize::from(rate))).map_or("", String::as_str)
    }

    /// Whether a router is a switch, and not itself a host, a GPU, a chip or a CPU.
    pub fn is_switch(&self, router: RouterId) -> bool {
        self.details.is_switch.get(router.index()).copied().unwrap_or(true)
    }

    /// Whether a channel leads from a switch to a switch.
    pub fn is_between_switches(&self, channel: ChannelId) -> bool {
        [self.network.source(channel), self.network.destination(channel)]
            .iter()
            .all(|end| matches!(end, Endpoint::Router(router, _) if self.is_switch(*router)))
    }

    /// A cable's direction in words: `leaf-1 port 19 -> spine-2 port 4`.
    pub fn cable_name(&self, channel: ChannelId) -> String {
        let end = |end: Endpoint| match end {
            Endpoint::Router(router, port) => format!("{} port {port}", self.network.router_names().of(router.0)),
            Endpoint::Terminal(terminal) => self.network.terminal_names().of(terminal.0),
        };
        format!("{} -> {}", end(self.network.source(channel)), end(self.network.destination(channel)))
    }

    /// The file that holds all of it: a network as `topology = "file"` reads it.
    pub fn write(&self) -> String {
        network_json::write_fabric(&self.network, &self.details)
    }
}

#[cfg(test)]
mod tests;
