//! The network as every engine sees it: routers, terminals and channels in flat columns.
//!
//! Knows no topology and no routing: a topology builds a [`Network`] and is then gone; a routing reads the structure (coordinates,
//! levels, group numbers) from [`Labels`], and forwarding tables from [`tables`].
//!
//! Channels are numbered: the injection channel of terminal `t` is channel `t`, its ejection channel is `terminals + t`, the channels
//! between routers follow in the order in which they were added.

pub mod connectivity;
mod damage;
pub mod metrics;
mod names;
pub mod parts;
pub mod rings;
pub mod tables;
pub mod terminal_ports;

pub use damage::{Cable, Damage, cables, drawn};
pub use names::{Names, TerminalRef, Terminals};

use crate::id::{ChannelId, Port, RouterId, TerminalId};
use crate::memory::{fetch_ahead, filled, large_vec};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tables::ForwardingTables;
use thiserror::Error;

/// Marks "no channel" in a column of channel numbers.
pub const NONE: u32 = u32::MAX;

/// The largest number of ports of a router.
pub const MAX_PORTS: usize = 1 << PORT_BITS;

/// Bits of a [`Place`] that tell the port.
const PORT_BITS: u32 = 9;

/// The largest number of routers.
const MAX_ROUTERS: usize = 1 << (u32::BITS - PORT_BITS);

/// Most ports that all routers of a network have together: a network of that size takes some gigabytes.
pub const MAX_NETWORK_PORTS: u64 = 1 << 25;

/// The greatest latency or period of a channel, in cycles.
pub const MAX_CHANNEL_CYCLES: u32 = 1_000_000;

/// One end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A port of a router.
    Router(RouterId, Port),
    /// A terminal.
    Terminal(TerminalId),
}

/// A router and one of its ports in 32 bits: networks have millions of channels, and whoever follows a packet reads them in no
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u32);

impl Place {
    fn new(router: RouterId, port: Port) -> Self {
        Self(router.0 << PORT_BITS | u32::from(port))
    }

    fn router(self) -> RouterId {
        RouterId(self.0 >> PORT_BITS)
    }

    fn port(self) -> Port {
        (self.0 & ((1 << PORT_BITS) - 1)) as Port
    }

    fn endpoint(self) -> Endpoint {
        Endpoint::Router(self.router(), self.port())
    }
}

/// How fast a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Cycles: a flit sent in cycle `s` is seen by the receiver in cycle `s + latency + 1`.
    pub latency: u32,
    /// Cycles that one flit occupies the channel; 1 is a flit every cycle.
    pub period: u32,
}

impl Default for Link {
    fn default() -> Self {
        Self { latency: 1, period: 1 }
    }
}

/// Named columns that a topology leaves for its routings: for example a router's `coordinate.0`, or its `level`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    routers: BTreeMap<String, Vec<u32>>,
    attributes: BTreeMap<String, Vec<u32>>,
}

impl Labels {
    /// A column with one number per router, if the topology has it.
    pub fn router(&self, name: &str) -> Option<&[u32]> {
        self.routers.get(name).map(Vec::as_slice)
    }

    /// The names of the lists about the whole network in alphabetical order.
    pub fn attribute_names(&self) -> impl Iterator<Item = &str> {
        self.attributes.keys().map(String::as_str)
    }

    /// Has the topology left nothing?
    pub fn is_empty(&self) -> bool {
        self.routers.is_empty() && self.attributes.is_empty()
    }

    /// A list of numbers about the whole network, such as `dimensions`, if the topology has it.
    pub fn attribute(&self, name: &str) -> Option<&[u32]> {
        self.attributes.get(name).map(Vec::as_slice)
    }

    /// The names of the router columns in alphabetical order.
    pub fn router_names(&self) -> impl Iterator<Item = &str> {
        self.routers.keys().map(String::as_str)
    }
}

/// Routers, terminals and channels. Immutable; made by [`NetworkBuilder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    name: String,
    terminals: u32,
    port_base: Vec<u32>,
    output_channel: Vec<u32>,
    /// Where channels end, those of ejection left out.
    destination: Vec<Place>,
    /// Where ejection channels begin.
    ejection: Vec<Place>,
    /// Router ports of terminals that have more than one, by terminal: those beside the first.
    further_homes: Vec<(TerminalId, Place)>,
    requested: Requested,
    channels: u32,
    /// By channel: which of `links` it is; empty if there is only one.
    link: Vec<u32>,
    links: Vec<Link>,
    labels: Labels,
    names: EndNames,
    tables: Option<Arc<ForwardingTables>>,
    damage: Option<Arc<Damage>>,
    /// Of a network by ports: the network of the terminals that own these ports.
    owners: Option<Arc<Network>>,
}

/// Columns that are made when they are first asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Requested {
    /// The channel that arrives at each port.
    inputs: OnRequest<u32>,
    /// Where the channels between routers begin.
    sources: OnRequest<Place>,
}

/// What routers and terminals are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct EndNames {
    routers: Names,
    terminals: Names,
}

impl Network {
    /// The one-line form of the topology that made it, for example `mesh [8, 8]`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of routers.
    pub fn router_count(&self) -> u32 {
        (self.port_base.len() - 1) as u32
    }

    /// The number of terminals.
    pub fn terminal_count(&self) -> u32 {
        self.terminals
    }

    /// The number of terminals whose ports the terminals of this network are, if it is one [by ports](Self::by_terminal_ports) of terminals with
    /// several.
    pub fn owner_count(&self) -> Option<u32> {
        self.owners.as_ref().map(|owners| owners.terminal_count())
    }

    /// The number of channels, injection and ejection channels included.
    pub fn channel_count(&self) -> u32 {
        self.channels
    }

    /// The number of ports of a router, used or not.
    pub fn port_count(&self, router: RouterId) -> u32 {
        self.port_base[router.index() + 1] - self.port_base[router.index()]
    }

    /// Bytes of all columns, those that are made on request included.
    pub fn memory_bytes(&self) -> u64 {
        let ports = self.output_channel.len();
        let between_routers = (self.channels - 2 * self.terminals) as usize;
        let labels = self.labels.routers.values().chain(self.labels.attributes.values()).map(Vec::len).sum::<usize>();
        let numbers = self.port_base.len()
            + 2 * ports
            + self.destination.len()
            + self.ejection.len()
            + 2 * self.further_homes.len()
            + between_routers
            + self.link.len()
            + labels;
        let names = self.names.routers.bytes() + self.names.terminals.bytes();
        let tables = self.tables.as_ref().map_or(0, |tables| tables.bytes());
        (size_of::<u32>() * numbers + size_of::<Link>() * self.links.len()) as u64 + names + tables
    }

    /// Start of each router's ports in a column over all ports, shape `[routers + 1]`.
    pub fn port_bases(&self) -> &[u32] {
        &self.port_base
    }

    /// The channel that leaves by this port, if there is one and it is not down.
    pub fn output_channel(&self, router: RouterId, port: Port) -> Option<ChannelId> {
        some_channel(self.output_channel[self.port_index(router, port)])
    }

    /// The channel that arrives at this port, if there is one and it is not down.
    pub fn input_channel(&self, router: RouterId, port: Port) -> Option<ChannelId> {
        some_channel(self.requested.inputs.0.get_or_init(|| self.channels_by_input())[self.port_index(router, port)])
    }

    /// Where each channel between routers begins.
    fn places_by_channel(&self) -> Box<[Place]> {
        let mut column = filled((self.channels - 2 * self.terminals) as usize, Place(NONE));
        for router in (0..self.router_count()).map(RouterId) {
            for port in 0..self.port_count(router) as Port {
                let channel = self.output_channel[self.port_index(router, port)];
                if channel != NONE && channel >= 2 * self.terminals {
                    column[(channel - 2 * self.terminals) as usize] = Place::new(router, port);
                }
            }
        }
        column
    }

    /// The channel that arrives at each port.
    fn channels_by_input(&self) -> Box<[u32]> {
        let mut column = filled(self.output_channel.len(), NONE);
        let arrives = |channel: &ChannelId| self.ejected_terminal(*channel).is_none() && !self.is_down(*channel);
        for channel in (0..self.channels).map(ChannelId).filter(arrives) {
            let (router, port) = self.input_port(channel);
            column[self.port_index(router, port)] = channel.0;
        }
        column
    }

    /// The position of a port in a column over all ports.
    pub fn port_index(&self, router: RouterId, port: Port) -> usize {
        debug_assert!(u32::from(port) < self.port_count(router));
        self.port_base[router.index()] as usize + usize::from(port)
    }

    /// Where a channel begins.
    pub fn source(&self, channel: ChannelId) -> Endpoint {
        if channel.0 < self.terminals {
            return Endpoint::Terminal(TerminalId(channel.0));
        }
        let place = match self.ejected_terminal(channel) {
            Some(terminal) => self.ejection[terminal.index()],
            None => self.requested.sources.0.get_or_init(|| self.places_by_channel())[(channel.0 - 2 * self.terminals) as usize],
        };
        place.endpoint()
    }

    /// Where a channel ends.
    pub fn destination(&self, channel: ChannelId) -> Endpoint {
        self.ejected_terminal(channel).map_or_else(|| self.input_of(channel).endpoint(), Endpoint::Terminal)
    }

    /// The terminal that a channel ends at, if it is an ejection channel.
    pub fn ejected_terminal(&self, channel: ChannelId) -> Option<TerminalId> {
        let terminal = channel.0.wrapping_sub(self.terminals);
        (terminal < self.terminals).then_some(TerminalId(terminal))
    }

    /// The router and input port at which a channel ends that does not end at a terminal.
    pub fn input_port(&self, channel: ChannelId) -> (RouterId, Port) {
        let place = self.input_of(channel);
        (place.router(), place.port())
    }

    #[inline(always)]
    fn input_of(&self, channel: ChannelId) -> Place {
        self.destination[self.input_index(channel)]
    }

    #[inline(always)]
    fn input_index(&self, channel: ChannelId) -> usize {
        (channel.0 - if channel.0 < self.terminals { 0 } else { self.terminals }) as usize
    }

    /// Says that [`Self::input_port`] will be asked for soon.
    #[inline(always)]
    pub fn fetch_input_port(&self, channel: ChannelId) {
        fetch_ahead(&self.destination, self.input_index(channel));
    }

    /// Says that [`Self::output_channel`] will be asked for soon.
    #[inline(always)]
    pub fn fetch_output_channel(&self, router: RouterId, port: Port) {
        fetch_ahead(&self.output_channel, self.port_index(router, port));
    }

    /// Latency and period of a channel.
    pub fn link(&self, channel: ChannelId) -> Link {
        self.links[self.link_number(channel) as usize]
    }

    /// Latencies and periods that channels of this network have, each once.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The period of all channels, if they have the same.
    pub fn common_period(&self) -> Option<u32> {
        let first = self.links.first().map_or(1, |link| link.period);
        self.links.iter().all(|link| link.period == first).then_some(first)
    }

    /// Which of [`Self::links`] a channel is.
    pub fn link_number(&self, channel: ChannelId) -> u32 {
        if self.links.len() == 1 { 0 } else { self.link[channel.index()] }
    }

    /// The channel from a terminal into its router.
    pub fn injection_channel(&self, terminal: TerminalId) -> ChannelId {
        ChannelId(terminal.0)
    }

    /// The channel from a router to this terminal.
    pub fn ejection_channel(&self, terminal: TerminalId) -> ChannelId {
        ChannelId(self.terminals + terminal.0)
    }

    /// The router and input port that a terminal injects into.
    pub fn injection_port(&self, terminal: TerminalId) -> (RouterId, Port) {
        self.input_port(self.injection_channel(terminal))
    }

    /// The router and output port that serve a terminal.
    pub fn ejection_port(&self, terminal: TerminalId) -> (RouterId, Port) {
        let place = self.ejection[terminal.index()];
        (place.router(), place.port())
    }

    /// Router ports besides the first that all terminals have together: 0 in a network with one port per terminal.
    ///
    /// Channels are numbered for first ports alone: a terminal has one injection and one ejection channel.
    pub fn further_home_count(&self) -> u32 {
        self.further_homes.len() as u32
    }

    /// The router ports that a terminal injects into, ascending: its homes.
    pub fn homes(&self, terminal: TerminalId) -> Vec<(RouterId, Port)> {
        let begin = self.further_homes.partition_point(|&(other, _)| other < terminal);
        let further = self.further_homes[begin..].iter().take_while(|&&(other, _)| other == terminal);
        let mut homes: Vec<_> = further.map(|&(_, place)| (place.router(), place.port())).collect();
        homes.push(self.injection_port(terminal));
        homes.sort_unstable();
        homes
    }

    /// All homes besides the first ones, by terminal.
    pub fn further_homes(&self) -> impl Iterator<Item = (TerminalId, RouterId, Port)> + '_ {
        self.further_homes.iter().map(|&(terminal, place)| (terminal, place.router(), place.port()))
    }

    /// The channels between routers, those that are down left out.
    pub fn router_channels(&self) -> impl Iterator<Item = ChannelId> + '_ {
        self.all_router_channels().filter(|&channel| !self.is_down(channel))
    }

    /// The channels between routers, those that are down included.
    pub fn all_router_channels(&self) -> impl Iterator<Item = ChannelId> + use<> {
        (2 * self.terminals..self.channel_count()).map(ChannelId)
    }

    /// What the topology tells its routings.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The names of its own that the network gives its routers.
    pub fn router_names(&self) -> &Names {
        &self.names.routers
    }

    /// The names of its own that the network gives its terminals.
    pub fn terminal_names(&self) -> &Names {
        &self.names.terminals
    }

    /// The forwarding tables that its routers hold, if the network comes with some.
    pub fn tables(&self) -> Option<&Arc<ForwardingTables>> {
        self.tables.as_ref()
    }

    /// A router's name for messages: `router 3`, `router leaf-a`.
    pub fn router_name(&self, router: RouterId) -> String {
        format!("router {}", self.names.routers.of(router.0))
    }

    /// A terminal's name for messages: `terminal 3`, `terminal host-3`.
    pub fn terminal_name(&self, terminal: TerminalId) -> String {
        format!("terminal {}", self.names.terminals.of(terminal.0))
    }

    /// The name of a channel's end for messages: `router 3 port 1`, `terminal host-3`.
    pub fn endpoint_name(&self, endpoint: Endpoint) -> String {
        match endpoint {
            Endpoint::Router(router, port) => format!("{} port {port}", self.router_name(router)),
            Endpoint::Terminal(terminal) => self.terminal_name(terminal),
        }
    }

    /// A channel's name for messages: `router 3 port 1 -> router 4 port 0`.
    pub fn channel_name(&self, channel: ChannelId) -> String {
        format!("{} -> {}", self.endpoint_name(self.source(channel)), self.endpoint_name(self.destination(channel)))
    }
}

/// A column that follows from the others and is made when it is first asked for: who only follows messages on their way never
/// does.
#[derive(Clone, Debug)]
struct OnRequest<T>(OnceLock<Box<[T]>>);

impl<T> Default for OnRequest<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> PartialEq for OnRequest<T> {
    /// Networks do not differ by what has been asked for.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for OnRequest<T> {}

fn some_channel(channel: u32) -> Option<ChannelId> {
    (channel != NONE).then_some(ChannelId(channel))
}

/// Why a network cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworkError {
    /// A parameter is outside its range. Change the named key.
    #[error("{key}: {problem}")]
    Parameter {
        /// The key of the topology's table, for example `dimensions`.
        key: String,
        /// What was found and what would be right.
        problem: String,
    },
    /// A port was connected twice.
    #[error("port {port} of {router:?} is connected twice as {direction}")]
    PortTaken {
        /// The router.
        router: RouterId,
        /// The port.
        port: Port,
        /// `input` or `output`.
        direction: &'static str,
    },
    /// A port number beyond the router's ports.
    #[error("{router:?} has no port {port} (it has {ports})")]
    NoSuchPort {
        /// The router.
        router: RouterId,
        /// The port.
        port: Port,
        /// How many ports the router has.
        ports: u32,
    },
    /// Names are not one for each, or are repeated.
    #[error("{kind} names: {problem}; give each {kind} a name of its own")]
    Names {
        /// `router` or `terminal`.
        kind: &'static str,
        /// What was found.
        problem: String,
    },
    /// The network would not fit into the numbers that name its parts.
    #[error("the network is too large: {0}")]
    TooLarge(String),
}

impl NetworkError {
    /// A parameter outside its range.
    pub fn parameter(key: &str, problem: impl Into<String>) -> Self {
        Self::Parameter { key: key.to_owned(), problem: problem.into() }
    }
}

/// Builds a [`Network`] step by step: routers first, then terminals and channels in any order.
#[derive(Clone, Debug)]
pub struct NetworkBuilder {
    name: String,
    port_base: Vec<u32>,
    terminals: Vec<Attachment>,
    further_homes: Vec<(TerminalId, (RouterId, Port))>,
    channels: Vec<Connection>,
    /// Each kind of link once, and the number of each.
    links: Vec<Link>,
    link_numbers: BTreeMap<(u32, u32), u32>,
    labels: Labels,
    names: EndNames,
    tables: Option<Arc<ForwardingTables>>,
}

/// The injection channel of a terminal ends, and its ejection channel begins, here.
#[derive(Clone, Copy, Debug)]
struct Attachment {
    injection: (RouterId, Port),
    ejection: (RouterId, Port),
    link: u32,
}

/// A channel between routers.
#[derive(Clone, Copy, Debug)]
struct Connection {
    from: (RouterId, Port),
    to: (RouterId, Port),
    link: u32,
}

impl NetworkBuilder {
    /// Starts an empty network with the one-line form of its topology.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            port_base: vec![0],
            terminals: Vec::new(),
            further_homes: Vec::new(),
            channels: Vec::new(),
            links: Vec::new(),
            link_numbers: BTreeMap::new(),
            labels: Labels::default(),
            names: EndNames::default(),
            tables: None,
        }
    }

    /// Adds a router with this many ports.
    ///
    /// # Errors
    /// More than [`MAX_PORTS`] ports, or more ports in all than 32-bit numbers name.
    pub fn add_router(&mut self, ports: usize) -> Result<RouterId, NetworkError> {
        if ports > MAX_PORTS {
            return Err(NetworkError::TooLarge(format!("a router of {ports} ports; the limit is {MAX_PORTS}")));
        }
        if self.port_base.len() > MAX_ROUTERS {
            return Err(NetworkError::TooLarge(format!("more than {MAX_ROUTERS} routers")));
        }
        let last = u64::from(*self.port_base.last().expect("the column starts with 0"));
        let next = last + ports as u64;
        if next > MAX_NETWORK_PORTS {
            let routers = self.port_base.len();
            return Err(NetworkError::TooLarge(format!(
                "the first {routers} routers have {next} ports; the limit is {MAX_NETWORK_PORTS} in all"
            )));
        }
        self.port_base.push(next as u32);
        Ok(RouterId(self.port_base.len() as u32 - 2))
    }

    /// Adds a terminal whose injection and ejection channels use port `port` of `router`. Terminals are numbered in order.
    pub fn add_terminal(&mut self, router: RouterId, port: Port, link: Link) -> TerminalId {
        self.add_split_terminal((router, port), (router, port), link)
    }

    /// Adds a terminal that injects into one router port and is served by another (unidirectional networks).
    pub fn add_split_terminal(&mut self, injection: (RouterId, Port), ejection: (RouterId, Port), link: Link) -> TerminalId {
        let link = self.number(link);
        self.terminals.push(Attachment { injection, ejection, link });
        TerminalId(self.terminals.len() as u32 - 1)
    }

    /// Gives a terminal one more port of its own, at this port of a router.
    pub fn add_home(&mut self, terminal: TerminalId, router: RouterId, port: Port) {
        self.further_homes.push((terminal, (router, port)));
    }

    /// Adds one channel from an output port to an input port.
    pub fn add_channel(&mut self, from: (RouterId, Port), to: (RouterId, Port), link: Link) {
        let link = self.number(link);
        self.channels.push(Connection { from, to, link });
    }

    /// The number of a kind of link.
    fn number(&mut self, link: Link) -> u32 {
        // Most channels are of the kind that was met last.
        if let Some(last) = self.links.len().checked_sub(1).filter(|&last| self.links[last] == link) {
            return last as u32;
        }
        *self.link_numbers.entry((link.latency, link.period)).or_insert_with(|| {
            self.links.push(link);
            self.links.len() as u32 - 1
        })
    }

    /// Adds both channels of a link between two ports.
    pub fn add_link(&mut self, one: (RouterId, Port), other: (RouterId, Port), link: Link) {
        self.add_channel(one, other, link);
        self.add_channel(other, one, link);
    }

    /// Leaves a column with one number per router.
    pub fn label_routers(&mut self, name: impl Into<String>, column: Vec<u32>) {
        self.labels.routers.insert(name.into(), column);
    }

    /// Leaves a list of numbers about the whole network.
    pub fn set_attribute(&mut self, name: impl Into<String>, values: Vec<u32>) {
        self.labels.attributes.insert(name.into(), values);
    }

    /// Names the routers, in the order of their numbers.
    pub fn name_routers(&mut self, names: Vec<String>) {
        self.names.routers = Names::new(names);
    }

    /// Names the terminals, in the order of their numbers.
    pub fn name_terminals(&mut self, names: Vec<String>) {
        self.names.terminals = Names::new(names);
    }

    /// Gives the routers the forwarding tables that they hold.
    pub fn set_tables(&mut self, tables: ForwardingTables) {
        self.tables = Some(Arc::new(tables));
    }

    /// Begins with the routers of a network, and the channels between them, those that are down too.
    pub(crate) fn with_routers_of(network: &Network) -> Self {
        let mut builder = Self::new(network.name());
        for router in (0..network.router_count()).map(RouterId) {
            builder.add_router(network.port_count(router) as usize).expect("as many ports as that network has");
        }
        for channel in network.all_router_channels() {
            if let (Endpoint::Router(from, output), Endpoint::Router(to, input)) = (network.source(channel), network.destination(channel)) {
                builder.add_channel((from, output), (to, input), network.link(channel));
            }
        }
        builder
    }

    /// Takes the routers' names and labels from a network with the same number of routers, and the attributes for which `is_taken` is true.
    pub(crate) fn copy_labels_of(&mut self, network: &Network, is_taken: impl Fn(&str) -> bool) {
        let labels = network.labels();
        for name in labels.router_names() {
            self.label_routers(name, labels.router(name).unwrap_or_default().to_vec());
        }
        for name in labels.attribute_names().filter(|name| is_taken(name)) {
            self.set_attribute(name, labels.attribute(name).unwrap_or_default().to_vec());
        }
        network.router_names().all().into_iter().for_each(|names| self.name_routers(names.to_vec()));
    }

    /// Checks the structure and finishes.
    ///
    /// # Errors
    /// A port that does not exist or is connected twice; no terminal; a label column of the wrong length; names
    /// that are not one for each, or are repeated.
    pub fn finish(self) -> Result<Network, NetworkError> {
        let ports = *self.port_base.last().expect("the column starts with 0") as usize;
        let count = self.channels.len() + 2 * self.terminals.len();
        if count >= NONE as usize {
            return Err(NetworkError::TooLarge("more than 2^32 channels".to_owned()));
        }
        let mut network = Network {
            name: self.name,
            terminals: self.terminals.len() as u32,
            port_base: self.port_base,
            output_channel: filled(ports, NONE).into_vec(),
            destination: large_vec(count - self.terminals.len()),
            ejection: Vec::with_capacity(self.terminals.len()),
            further_homes: Vec::with_capacity(self.further_homes.len()),
            requested: Requested::default(),
            channels: 0,
            link: Vec::with_capacity(if self.links.len() == 1 { 0 } else { count }),
            links: self.links,
            labels: self.labels,
            names: self.names,
            tables: self.tables,
            damage: None,
            owners: None,
        };
        network.check_names()?;
        let mut is_taken = vec![false; ports];
        for terminal in &self.terminals {
            network.push_channel(None, Some(terminal.injection), terminal.link, &mut is_taken)?;
        }
        for terminal in &self.terminals {
            network.push_channel(Some(terminal.ejection), None, terminal.link, &mut is_taken)?;
        }
        for channel in &self.channels {
            network.push_channel(Some(channel.from), Some(channel.to), channel.link, &mut is_taken)?;
        }
        network.push_homes(self.further_homes, &mut is_taken)?;
        if let Some(tables) = &network.tables {
            assert!(
                tables.fit(network.router_count(), network.terminals),
                "forwarding tables are for the routers and terminals of the network"
            );
        }
        for (name, column) in &network.labels.routers {
            assert_eq!(column.len(), network.router_count() as usize, "label `{name}` has one number per router");
        }
        Ok(network)
    }
}

impl Network {
    fn check_names(&self) -> Result<(), NetworkError> {
        for (kind, names, count) in
            [("router", &self.names.routers, self.router_count()), ("terminal", &self.names.terminals, self.terminals)]
        {
            if let Some(length) = names.len().filter(|&length| length != count as usize) {
                return Err(NetworkError::Names { kind, problem: format!("there are {length} for {count}") });
            }
            if let Some(name) = names.repeated() {
                return Err(NetworkError::Names { kind, problem: format!("`{name}` stands twice") });
            }
        }
        Ok(())
    }

    /// Adds a channel between two ports, or between a port and a terminal. `is_taken` tells the inputs that have one.
    fn push_channel(
        &mut self,
        from: Option<(RouterId, Port)>,
        to: Option<(RouterId, Port)>,
        link: u32,
        is_taken: &mut [bool],
    ) -> Result<(), NetworkError> {
        let channel = self.channels;
        if let Some((router, port)) = from {
            let index = self.checked_port(router, port)?;
            if self.output_channel[index] != NONE {
                return Err(NetworkError::PortTaken { router, port, direction: "output" });
            }
            self.output_channel[index] = channel;
            if to.is_none() {
                self.ejection.push(Place::new(router, port));
            }
        }
        if let Some((router, port)) = to {
            let index = self.checked_port(router, port)?;
            if std::mem::replace(&mut is_taken[index], true) {
                return Err(NetworkError::PortTaken { router, port, direction: "input" });
            }
            self.destination.push(Place::new(router, port));
        }
        if self.links.len() > 1 {
            self.link.push(link);
        }
        self.channels += 1;
        Ok(())
    }

    /// Adds the homes of terminals besides their first ones.
    fn push_homes(&mut self, mut homes: Vec<(TerminalId, (RouterId, Port))>, is_taken: &mut [bool]) -> Result<(), NetworkError> {
        homes.sort_unstable();
        for (terminal, (router, port)) in homes {
            assert!(terminal.0 < self.terminals, "a terminal is added before its homes");
            let index = self.checked_port(router, port)?;
            if std::mem::replace(&mut is_taken[index], true) || self.output_channel[index] != NONE {
                return Err(NetworkError::PortTaken { router, port, direction: "home of a terminal" });
            }
            self.further_homes.push((terminal, Place::new(router, port)));
        }
        Ok(())
    }

    fn checked_port(&self, router: RouterId, port: Port) -> Result<usize, NetworkError> {
        let ports = if router.0 < self.router_count() { self.port_count(router) } else { 0 };
        if u32::from(port) < ports { Ok(self.port_index(router, port)) } else { Err(NetworkError::NoSuchPort { router, port, ports }) }
    }
}
