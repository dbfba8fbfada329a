//! Forwarding tables: for each router and each address of a destination the output port, as switches of real fabrics hold them.
//!
//! A terminal has one address or several (InfiniBand: consecutive LIDs, 2^LMC of them), each with a route of its own. Where the fabric
//! maps service levels to virtual lanes, the level belongs to the pair of source and address, and each router maps it, by input and output
//! port, to the virtual channel of the channel by which the packet leaves (InfiniBand Architecture Specification, volume 1, sections 7.6
//! and 14.2.5: `LinearForwardingTable`, `SLtoVLMappingTable`).

use super::{Candidate, Choice, Hop, Reads, Routing, VirtualChannels};
use crate::id::{ChannelId, Port, RouterId, TerminalId};
use crate::network::{Endpoint, Network};
use crate::rng::split_mix;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Marks "no port" in a column of ports.
pub const NO_PORT: u16 = u16::MAX;

/// How many service levels there are.
pub const SERVICE_LEVELS: usize = 16;

/// The virtual lane of management: other packets that are mapped to it are dropped.
const DROPPED: u8 = 15;

/// Output ports by address and router, and what else decides about the virtual channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardingTables {
    routers: u32,
    /// The first address of each terminal; one more entry than terminals.
    starts: Vec<u32>,
    /// Shape `[addresses, routers]`: who follows a packet stays within one row.
    ports: Vec<u16>,
    /// The virtual channel by address and router, where tables name it.
    virtual_channels: Option<Vec<u8>>,
    /// The service level, shape `[sources, addresses]`; 0 where there is none.
    levels: Option<Vec<u8>>,
    lanes: Option<LaneMaps>,
}

/// The virtual lane by router, input port, output port and service level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneMaps {
    /// Each mapping that occurs once.
    maps: Vec<[u8; SERVICE_LEVELS]>,
    /// Where each router's square of ports begins; one more entry than routers.
    starts: Vec<usize>,
    /// Which mapping, shape `[input ports, output ports]` for each router.
    which: Vec<u16>,
}

impl LaneMaps {
    /// Level 0 to lane 0, and so on up to lane 14, for routers of so many ports.
    pub fn new(ports: impl Iterator<Item = u32>) -> Self {
        let mut starts = vec![0];
        for ports in ports {
            let last = starts[starts.len() - 1];
            starts.push(last + (ports as usize) * (ports as usize));
        }
        let which = vec![0; starts[starts.len() - 1]];
        let identity = std::array::from_fn(|level| (level as u8).min(DROPPED - 1));
        Self { maps: vec![identity], starts, which }
    }

    /// Sets the mapping of a router for packets from one port to another. Ports that the router does not have are refused with `false`, and
    /// so is the mapping of which there are too many different ones.
    pub fn set(&mut self, router: RouterId, input: Port, output: Port, map: [u8; SERVICE_LEVELS]) -> bool {
        let ports = self.ports_of(router);
        if usize::from(input) >= ports || usize::from(output) >= ports {
            return false;
        }
        let known = self.maps.iter().position(|known| *known == map);
        let number = known.unwrap_or_else(|| {
            self.maps.push(map);
            self.maps.len() - 1
        });
        let place = self.starts[router.index()] + usize::from(input) * ports + usize::from(output);
        u16::try_from(number).map(|number| self.which[place] = number).is_ok()
    }

    /// The mapping of a router for packets from one port to another.
    pub fn get(&self, router: RouterId, input: Port, output: Port) -> &[u8; SERVICE_LEVELS] {
        let place = self.starts[router.index()] + usize::from(input) * self.ports_of(router) + usize::from(output);
        &self.maps[usize::from(self.which[place])]
    }

    fn ports_of(&self, router: RouterId) -> usize {
        (self.starts[router.index() + 1] - self.starts[router.index()]).isqrt()
    }

    /// Each mapping that occurs, and by router the number of the mapping for each input and output port.
    pub fn columns(&self) -> (&[[u8; SERVICE_LEVELS]], impl Iterator<Item = &[u16]>) {
        (&self.maps, self.starts.windows(2).map(|ends| &self.which[ends[0]..ends[1]]))
    }
}

impl ForwardingTables {
    /// Tables of which every entry is still empty, for terminals of so many addresses each.
    pub fn new(routers: u32, addresses: impl Iterator<Item = u32>) -> Self {
        let mut starts = vec![0];
        addresses.for_each(|count| starts.push(starts[starts.len() - 1] + count));
        let size = starts[starts.len() - 1] as usize * routers as usize;
        Self { routers, starts, ports: vec![NO_PORT; size], ..Self::default() }
    }

    /// Sets the output port at a router towards an address of a terminal.
    pub fn set(&mut self, router: RouterId, address: u32, port: Port) {
        let place = self.place(router, address);
        self.ports[place] = port;
    }

    /// Sets the virtual channel of an entry; entries of which nothing is said have virtual channel 0 then.
    pub fn set_virtual_channel(&mut self, router: RouterId, address: u32, virtual_channel: u8) {
        let place = self.place(router, address);
        let size = self.ports.len();
        self.virtual_channels.get_or_insert_with(|| vec![0; size])[place] = virtual_channel;
    }

    /// Sets the service level of packets from a terminal to an address.
    pub fn set_level(&mut self, source: TerminalId, address: u32, level: u8) {
        let (terminals, addresses) = (self.starts.len() - 1, self.address_count() as usize);
        self.levels.get_or_insert_with(|| vec![0; terminals * addresses])[source.index() * addresses + address as usize] = level;
    }

    /// Says how routers map service levels to virtual lanes.
    pub fn set_lanes(&mut self, lanes: LaneMaps) {
        self.lanes = Some(lanes);
    }

    /// These tables with some of their entries only, each a router and an address.
    pub fn only(&self, entries: &BTreeSet<(RouterId, u32)>) -> Self {
        let mut tables = Self { ports: vec![NO_PORT; self.ports.len()], ..self.clone() };
        for &(router, address) in entries {
            let place = self.place(router, address);
            tables.ports[place] = self.ports[place];
        }
        tables
    }

    /// The addresses of a terminal: positions among those of all.
    pub fn addresses(&self, terminal: TerminalId) -> std::ops::Range<u32> {
        self.starts[terminal.index()]..self.starts[terminal.index() + 1]
    }

    /// How many addresses all terminals have together.
    pub fn address_count(&self) -> u32 {
        self.starts[self.starts.len() - 1]
    }

    /// The output port at a router towards an address.
    pub fn port(&self, router: RouterId, address: u32) -> Option<Port> {
        Some(self.ports[self.place(router, address)]).filter(|&port| port != NO_PORT)
    }

    /// The virtual channels of all entries, where tables name them.
    pub fn virtual_channel(&self, router: RouterId, address: u32) -> Option<u8> {
        self.virtual_channels.as_ref().map(|all| all[self.place(router, address)])
    }

    /// The service level of packets from a terminal to an address.
    pub fn level(&self, source: TerminalId, address: u32) -> u8 {
        self.levels.as_ref().map_or(0, |levels| levels[source.index() * self.address_count() as usize + address as usize])
    }

    /// The service levels from a terminal to all addresses, where some are known.
    pub fn levels_from(&self, source: TerminalId) -> Option<&[u8]> {
        let addresses = self.address_count() as usize;
        self.levels.as_ref().map(|levels| &levels[source.index() * addresses..][..addresses])
    }

    /// How routers map service levels, where that is known.
    pub fn lanes(&self) -> Option<&LaneMaps> {
        self.lanes.as_ref()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        let of_lanes = self.lanes.as_ref().map_or(0, |lanes| 2 * lanes.which.len() + 8 * lanes.starts.len());
        let small = [&self.virtual_channels, &self.levels].into_iter().flatten().map(Vec::len).sum::<usize>();
        (4 * self.starts.len() + 2 * self.ports.len() + small + of_lanes) as u64
    }

    /// Are these tables for so many routers and terminals?
    pub fn fit(&self, routers: u32, terminals: u32) -> bool {
        self.routers == routers && self.starts.len() == terminals as usize + 1
    }

    fn place(&self, router: RouterId, address: u32) -> usize {
        address as usize * self.routers as usize + router.index()
    }

    /// Follows the tables from a router to an address of a terminal; `path` gets the channels, the ejection channel included.
    ///
    /// # Errors
    /// The packet does not arrive; the path is as far as it comes.
    pub fn follow(
        &self,
        network: &Network,
        from: RouterId,
        terminal: TerminalId,
        address: u32,
        path: &mut Vec<ChannelId>,
    ) -> Result<(), Stray> {
        path.clear();
        let mut router = from;
        loop {
            let port = self.port(router, address).ok_or(Stray::NoEntry(router))?;
            let channel = (u32::from(port) < network.port_count(router)).then(|| network.output_channel(router, port)).flatten();
            let channel = channel.ok_or(Stray::NoCable(router, port))?;
            path.push(channel);
            match network.destination(channel) {
                Endpoint::Terminal(end) if end == terminal => return Ok(()),
                Endpoint::Terminal(end) => return Err(Stray::Elsewhere(router, end)),
                Endpoint::Router(next, _) => router = next,
            }
            if path.len() > self.routers as usize {
                return Err(Stray::Round(router));
            }
        }
    }

    /// Virtual lanes in use, ascending.
    fn lanes_in_use(&self) -> Vec<u8> {
        if let Some(named) = &self.virtual_channels {
            return distinct(named.iter().copied());
        }
        let levels = self.levels.as_ref().map_or_else(|| vec![0], |levels| distinct(levels.iter().copied()));
        match &self.lanes {
            None => levels.into_iter().filter(|&level| level != DROPPED).collect(),
            Some(lanes) => {
                let mapped = lanes.maps.iter().flat_map(|map| levels.iter().map(|&level| map[usize::from(level) % SERVICE_LEVELS]));
                distinct(mapped).into_iter().filter(|&lane| lane != DROPPED).collect()
            }
        }
    }

    /// By address and router: does a packet there arrive?
    fn arriving(&self, network: &Network) -> Vec<u64> {
        let words = (self.routers as usize).div_ceil(64);
        let mut bits = vec![0; words * self.address_count() as usize];
        let (mut known, mut chain) = (vec![Known::Nothing; self.routers as usize], Vec::new());
        for terminal in (0..network.terminal_count()).map(TerminalId) {
            for address in self.addresses(terminal) {
                known.fill(Known::Nothing);
                for start in (0..self.routers).map(RouterId) {
                    let arrives = self.arrives(network, start, terminal, address, &mut known, &mut chain);
                    if arrives {
                        bits[words * address as usize + start.index() / 64] |= 1 << (start.index() % 64);
                    }
                }
            }
        }
        bits
    }

    fn arrives(
        &self,
        network: &Network,
        start: RouterId,
        terminal: TerminalId,
        address: u32,
        known: &mut [Known],
        chain: &mut Vec<RouterId>,
    ) -> bool {
        chain.clear();
        let mut router = start;
        let found = loop {
            match known[router.index()] {
                Known::Arrives => break true,
                Known::Lost | Known::Followed => break false,
                Known::Nothing => {}
            }
            known[router.index()] = Known::Followed;
            chain.push(router);
            let port = self.port(router, address).filter(|&port| u32::from(port) < network.port_count(router));
            let Some(channel) = port.and_then(|port| network.output_channel(router, port)) else { break false };
            match network.destination(channel) {
                Endpoint::Terminal(end) => break end == terminal,
                Endpoint::Router(next, _) => router = next,
            }
        };
        chain.iter().for_each(|router| known[router.index()] = if found { Known::Arrives } else { Known::Lost });
        found
    }
}

/// What is known of a router and an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Followed,
    Arrives,
    Lost,
}

/// The values that occur, ascending.
fn distinct(values: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut seen = [false; 256];
    values.for_each(|value| seen[usize::from(value)] = true);
    (0..=u8::MAX).filter(|&value| seen[usize::from(value)]).collect()
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stray {
    /// A router's table has no entry for the address.
    NoEntry(RouterId),
    /// The entry names a port without a cable.
    NoCable(RouterId, Port),
    /// The entry leads to another terminal.
    Elsewhere(RouterId, TerminalId),
    /// The packet goes round; one of the routers that it passes again and again.
    Round(RouterId),
}

impl Stray {
    /// The sentence about it.
    pub fn describe(self, network: &Network) -> String {
        match self {
            Self::NoEntry(router) => format!("{} has no entry for it", network.router_name(router)),
            Self::NoCable(router, port) => format!("{} sends it to port {port}, which has no cable", network.router_name(router)),
            Self::Elsewhere(router, end) => format!("{} delivers it to {}", network.router_name(router), network.terminal_name(end)),
            Self::Round(router) => format!("it goes round through {}", network.router_name(router)),
        }
    }
}

/// Which of several addresses of its destination a packet takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressChoice {
    /// The first.
    #[default]
    First,
    /// By a hash of source and destination: all packets of a pair the same.
    Hash,
    /// Each packet draws one.
    Random,
}

/// Follows forwarding tables.
#[derive(Debug)]
pub struct TableRouting {
    tables: Arc<ForwardingTables>,
    choice: AddressChoice,
    /// By lane: which class of virtual channels it is, of how many.
    classes: Option<([u8; 256], u16)>,
    /// A bit for each address and router: does a packet arrive?
    arriving: Vec<u64>,
    words: usize,
    /// The router that each terminal injects into.
    homes: Vec<RouterId>,
}

/// The part of a state that is the service level; above it stands the number of the address among the destination's.
const LEVEL_BITS: u32 = 4;

impl TableRouting {
    /// Prepares to follow the tables of this network. Whether all pairs have a path is for [`Self::unreachable`] to say.
    pub fn new(network: &Network, tables: Arc<ForwardingTables>, choice: AddressChoice) -> Self {
        let lanes = tables.lanes_in_use();
        let mut classes = [0; 256];
        lanes.iter().zip(0..).for_each(|(&lane, class)| classes[usize::from(lane)] = class);
        let says_lanes = tables.virtual_channels.is_some() || tables.levels.is_some() || tables.lanes.is_some();
        let arriving = tables.arriving(network);
        let homes = (0..network.terminal_count()).map(|terminal| network.injection_port(TerminalId(terminal)).0).collect();
        Self {
            classes: (says_lanes && lanes.len() > 1).then_some((classes, lanes.len() as u16)),
            words: (tables.routers as usize).div_ceil(64),
            tables,
            choice,
            arriving,
            homes,
        }
    }

    /// The tables.
    pub fn tables(&self) -> &ForwardingTables {
        &self.tables
    }

    /// How many ordered pairs of terminals have no path, and the first of them.
    pub fn unreachable(&self) -> (u64, Option<(TerminalId, TerminalId)>) {
        let (mut count, mut first) = (0, None);
        let terminals = || (0..self.homes.len() as u32).map(TerminalId);
        for source in terminals() {
            for destination in terminals().filter(|&destination| destination != source) {
                if !self.connects(source, destination) {
                    count += 1;
                    first = first.or(Some((source, destination)));
                }
            }
        }
        (count, first)
    }

    fn address(&self, destination: TerminalId, state: u32) -> u32 {
        self.tables.addresses(destination).start + (state >> LEVEL_BITS)
    }

    fn arrives(&self, router: RouterId, address: u32) -> bool {
        self.arriving[self.words * address as usize + router.index() / 64] & 1 << (router.index() % 64) != 0
    }

    /// The virtual channels of the channel by which a packet leaves.
    fn virtual_channels(&self, hop: &Hop, address: u32, state: u32, port: Port) -> Option<VirtualChannels> {
        let Some((classes, count)) = &self.classes else { return Some(hop.available) };
        let level = (state & ((1 << LEVEL_BITS) - 1)) as u8;
        let lane = match (&self.tables.virtual_channels, &self.tables.lanes) {
            (Some(_), _) => self.tables.virtual_channel(hop.router, address).unwrap_or_default(),
            (None, Some(lanes)) => lanes.get(hop.router, hop.input, port)[usize::from(level)],
            (None, None) => level,
        };
        let is_dropped = self.tables.virtual_channels.is_none() && lane == DROPPED;
        (!is_dropped).then(|| hop.available.class(classes[usize::from(lane)].into(), *count))
    }
}

impl Routing for TableRouting {
    fn virtual_channels_required(&self) -> u32 {
        self.classes.as_ref().map_or(1, |(_, count)| u32::from(*count))
    }

    fn reads(&self) -> Reads {
        let pairs = self.tables.levels.is_some() || self.choice == AddressChoice::Hash;
        Reads { source: pairs, input: self.tables.lanes.is_some(), virtual_channel: false, terminal: true }
    }

    fn is_deadlock_free(&self) -> bool {
        false
    }

    fn observes_congestion(&self) -> bool {
        false
    }

    fn connects(&self, source: TerminalId, destination: TerminalId) -> bool {
        let home = self.homes[source.index()];
        let addresses = self.tables.addresses(destination);
        let last = if self.choice == AddressChoice::First { addresses.end.min(addresses.start + 1) } else { addresses.end };
        !addresses.is_empty() && (addresses.start..last).all(|address| self.arrives(home, address))
    }

    fn initial_state(&self, source: TerminalId, destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        let addresses = self.tables.addresses(destination);
        let offset = match (self.choice, addresses.len() as u32) {
            (_, 0 | 1) | (AddressChoice::First, _) => 0,
            (AddressChoice::Random, count) => choice.uniform(count),
            (AddressChoice::Hash, count) => pair_hash(source, destination) % count,
        };
        let level = u32::from(self.tables.level(source, addresses.start + offset)) & ((1 << LEVEL_BITS) - 1);
        offset << LEVEL_BITS | level
    }

    fn port_to(&self, router: RouterId, destination: TerminalId) -> Option<Port> {
        let addresses = self.tables.addresses(destination);
        let is_plain = self.classes.is_none() && self.tables.address_count() as usize == self.homes.len();
        is_plain.then(|| self.tables.port(router, addresses.start)).flatten()
    }

    fn table_bytes(&self) -> u64 {
        self.tables.bytes() + 8 * self.arriving.len() as u64
    }

    fn route(&self, hop: &Hop, state: &mut u32, _choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let address = self.address(hop.destination, *state);
        let Some(port) = self.tables.port(hop.router, address) else { return };
        let range = self.virtual_channels(hop, address, *state, port);
        candidates.extend(range.map(|range| Candidate::new(port, range)));
    }
}

/// Pairs spread over the addresses.
fn pair_hash(source: TerminalId, destination: TerminalId) -> u32 {
    (split_mix(u64::from(source.0) << 32 | u64::from(destination.0)) >> 32) as u32
}
