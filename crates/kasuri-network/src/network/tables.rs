//! Forwarding tables: for each router and each address of a destination the output port, as switches of real fabrics hold them.
//!
//! A terminal has one address or several (InfiniBand: consecutive LIDs, 2^LMC of them), each with a route of its own. Where the fabric
//! maps service levels to virtual lanes, the level belongs to the pair of source and address, and each router maps it, by input and output
//! port, to the virtual channel of the channel by which the packet leaves (InfiniBand Architecture Specification, volume 1, sections 7.6
//! and 14.2.5: `LinearForwardingTable`, `SLtoVLMappingTable`).

use super::{Endpoint, Network};
use crate::id::{ChannelId, Port, RouterId, TerminalId};
use std::collections::BTreeSet;

/// Marks "no port" in a column of ports.
pub const NO_PORT: u16 = u16::MAX;

/// How many service levels there are.
pub const SERVICE_LEVELS: usize = 16;

/// The virtual lane of management: other packets that are mapped to it are dropped.
pub(crate) const DROPPED: u8 = 15;

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

    /// Do these tables name the virtual channel of each entry?
    pub(crate) fn names_virtual_channels(&self) -> bool {
        self.virtual_channels.is_some()
    }

    /// Do these tables give service levels?
    pub(crate) fn has_levels(&self) -> bool {
        self.levels.is_some()
    }

    /// The number of routers.
    pub(crate) fn router_count(&self) -> u32 {
        self.routers
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
    pub(crate) fn lanes_in_use(&self) -> Vec<u8> {
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
    pub(crate) fn arriving(&self, network: &Network) -> Vec<u64> {
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
