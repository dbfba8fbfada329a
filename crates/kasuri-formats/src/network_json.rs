//! Whole networks as JSON: columns for routers and channels, labels, names. What is written is read back as the same network.
//!
//! ```json
//! {"format": "kasuri-network", "version": 1, "name": "pair", "routers": 2, "terminals": 2, "channels": 6,
//!  "router_names": ["a", "b"], "terminal_names": null, "ports": [2, 2],
//!  "source_router": [-1, -1, 0, 1, 0, 1], "source_port": [-1, -1, 0, 0, 1, 1], "source_terminal": [0, 1, -1, -1, -1, -1],
//!  "destination_router": [0, 1, -1, -1, 1, 0], "destination_port": [0, 0, -1, -1, 1, 1], "destination_terminal": [-1, -1, 0, 1, -1, -1],
//!  "latency": [1, 1, 1, 1, 1, 1], "period": [1, 1, 1, 1, 1, 1], "labels": {}, "attributes": {}, "labels_belong_to": 0}
//! ```
//!
//! The columns of channels are in the order of their numbers: a channel from each terminal, one to each terminal, then those between
//! routers. -1 says that a channel does not begin or end at a router, or at a terminal. Latency and period are cycles. `labels_belong_to`
//! is a checksum of routers, channels, labels and attributes: routings believe what labels say of a network, so that a file with labels is
//! refused where anything else was changed. Without labels and attributes it does not matter. `further_homes` is there where terminals have
//! several ports: `[terminal, router, port]` of each port but the first. In the network of a run on them each port is a terminal with its
//! own channels, and `of_terminals` has the number of `ports` of each original terminal, and their `names` and `attributes`.
//! `channels_down` and `routers_down` are there where something is down; the columns hold it all the same. `tables` is there where routers
//! hold forwarding tables: `addresses` of each terminal; `ports` of each router, by address (-1: no path), and where they matter
//! `virtual_channels` in the same shape, `service_levels` of each terminal, by address, and `lanes`, the mappings of service levels to
//! virtual lanes (`maps`, and `which` of them by router, input and output port). `fabric` holds what [`crate::details::Details`] says of a
//! real one.

use crate::details::Details;
use crate::error::FormatError;
use crate::text::text_of;
use kasuri_network::id::{ChannelId, Port, RouterId, TerminalId};
use kasuri_network::network::tables::{ForwardingTables, LaneMaps, SERVICE_LEVELS};
use kasuri_network::network::terminal_ports::PortOwners;
use kasuri_network::network::{Cable, Endpoint, Link, MAX_CHANNEL_CYCLES, MAX_PORTS, Network, NetworkBuilder};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What the key `format` says.
const FORMAT: &str = "kasuri-network";

/// The only version so far.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Columns<'a> {
    format: Cow<'a, str>,
    version: u32,
    name: Cow<'a, str>,
    routers: u32,
    terminals: u32,
    channels: u32,
    router_names: Option<Cow<'a, [String]>>,
    terminal_names: Option<Cow<'a, [String]>>,
    ports: Vec<u32>,
    source_router: Vec<i64>,
    source_port: Vec<i64>,
    source_terminal: Vec<i64>,
    destination_router: Vec<i64>,
    destination_port: Vec<i64>,
    destination_terminal: Vec<i64>,
    latency: Vec<u32>,
    period: Vec<u32>,
    labels: BTreeMap<Cow<'a, str>, Cow<'a, [u32]>>,
    attributes: BTreeMap<Cow<'a, str>, Cow<'a, [u32]>>,
    #[serde(default)]
    labels_belong_to: u32,
    /// Terminal, router, port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    further_homes: Vec<[u32; 3]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of_terminals: Option<OfTerminals>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    channels_down: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    routers_down: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tables: Option<Tables>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fabric: Option<Cow<'a, Details>>,
}

/// The terminals with several ports of which each is a terminal of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfTerminals {
    ports: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    #[serde(default)]
    attributes: BTreeMap<String, Vec<u32>>,
}

impl From<PortOwners> for OfTerminals {
    fn from(of: PortOwners) -> Self {
        Self { ports: of.ports, names: of.names, attributes: of.attributes }
    }
}

impl From<OfTerminals> for PortOwners {
    fn from(of: OfTerminals) -> Self {
        Self { ports: of.ports, names: of.names, attributes: of.attributes }
    }
}

/// Forwarding tables.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    addresses: Vec<u32>,
    ports: Vec<Vec<i32>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    virtual_channels: Vec<Vec<u8>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    service_levels: Vec<Vec<u8>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lanes: Option<Lanes>,
}

/// Virtual lanes by service level.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lanes {
    maps: Vec<[u8; SERVICE_LEVELS]>,
    which: Vec<Vec<u16>>,
}

/// Writes a network as one line of JSON.
pub fn write(network: &Network) -> String {
    write_with(network, None)
}

/// Writes a fabric, its details included, as one line of JSON.
pub fn write_fabric(network: &Network, details: &Details) -> String {
    write_with(network, Some(details))
}

fn write_with(network: &Network, details: Option<&Details>) -> String {
    let channels = || (0..network.channel_count()).map(ChannelId);
    let [sources, destinations] = [Network::source, Network::destination].map(|end| channels().map(move |channel| end(network, channel)));
    let (source, destination) = (Ends::of(sources), Ends::of(destinations));
    let labels = network.labels();
    let mut columns = Columns {
        format: FORMAT.into(),
        version: VERSION,
        name: network.name().into(),
        routers: network.router_count(),
        terminals: network.terminal_count(),
        channels: network.channel_count(),
        router_names: network.router_names().all().map(Cow::Borrowed),
        terminal_names: network.terminal_names().all().map(Cow::Borrowed),
        ports: (0..network.router_count()).map(|router| network.port_count(RouterId(router))).collect(),
        source_router: source.router,
        source_port: source.port,
        source_terminal: source.terminal,
        destination_router: destination.router,
        destination_port: destination.port,
        destination_terminal: destination.terminal,
        latency: channels().map(|channel| network.link(channel).latency).collect(),
        period: channels().map(|channel| network.link(channel).period).collect(),
        labels: labels.router_names().filter_map(|name| Some((name.into(), labels.router(name)?.into()))).collect(),
        attributes: labels.attribute_names().filter_map(|name| Some((name.into(), labels.attribute(name)?.into()))).collect(),
        labels_belong_to: 0,
        further_homes: network.further_homes().map(|(terminal, router, port)| [terminal.0, router.0, u32::from(port)]).collect(),
        of_terminals: network.port_owners().map(OfTerminals::from),
        channels_down: network.damage().map_or_else(Vec::new, |damage| damage.channels().iter().map(|channel| channel.0).collect()),
        routers_down: network.damage().map_or_else(Vec::new, |damage| damage.routers().iter().map(|router| router.0).collect()),
        tables: network.tables().map(|tables| Tables::of(tables, network)),
        fabric: details.map(Cow::Borrowed),
    };
    columns.labels_belong_to = columns.checksum();
    serde_json::to_string(&columns).expect("columns of numbers and text are always JSON") + "\n"
}

/// Where channels begin, or where they end.
struct Ends {
    router: Vec<i64>,
    port: Vec<i64>,
    terminal: Vec<i64>,
}

impl Ends {
    fn of(ends: impl Iterator<Item = Endpoint>) -> Self {
        let mut columns = Self { router: Vec::new(), port: Vec::new(), terminal: Vec::new() };
        for end in ends {
            let [router, port, terminal] = match end {
                Endpoint::Router(router, port) => [i64::from(router.0), i64::from(port), -1],
                Endpoint::Terminal(terminal) => [-1, -1, i64::from(terminal.0)],
            };
            columns.router.push(router);
            columns.port.push(port);
            columns.terminal.push(terminal);
        }
        columns
    }
}

/// Reads a network. `name` is the file's name for messages.
///
/// # Errors
/// The text is no JSON of this layout, columns have different lengths, or they describe no network.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Network, FormatError> {
    parse_fabric(name, bytes).map(|(network, _)| network)
}

/// Reads a network, and what else the file says where it is of a real fabric.
///
/// # Errors
/// As [`parse`].
pub fn parse_fabric(name: &str, bytes: &[u8]) -> Result<(Network, Option<Details>), FormatError> {
    let mut columns: Columns<'_> = serde_json::from_str(text_of(name, bytes)?).map_err(|error| {
        FormatError::new(
            name,
            error.line().max(1),
            format!("invalid network; expected JSON as `kasuri topology --export json` writes it: {error}"),
        )
    })?;
    let details = columns.fabric.take().map(Cow::into_owned);
    let network = columns.network().map_err(|problem| FormatError::new(name, 1, problem))?;
    if let Some(details) = &details {
        details.check(&network).map_err(|problem| FormatError::new(name, 1, problem))?;
    }
    Ok((network, details))
}

impl Columns<'_> {
    fn network(self) -> Result<Network, String> {
        self.check_lengths()?;
        let has_labels = !(self.labels.is_empty() && self.attributes.is_empty() && self.of_terminals.is_none());
        if has_labels && self.labels_belong_to != self.checksum() {
            return Err(
                "has `labels` that belong to another network: the file was changed since Kasuri wrote it, and routings believe labels; \
                        set `labels` and `attributes` to {}, and take a routing for any network, such as up-down"
                    .to_owned(),
            );
        }
        let mut builder = NetworkBuilder::new(&*self.name);
        for &ports in &self.ports {
            builder.add_router(ports as usize).map_err(|error| error.to_string())?;
        }
        for terminal in 0..self.terminals as usize {
            let (into, back) = (terminal, terminal + self.terminals as usize);
            let link = self.link(into)?;
            if self.source(into)? != Endpoint::Terminal(TerminalId(terminal as u32)) || self.destination(back)? != self.source(into)? {
                return Err(format!("channels {into} and {back} must begin and end at terminal {terminal}"));
            }
            if self.link(back)? != link {
                return Err(format!("channels {into} and {back} of terminal {terminal} must have the same latency and period"));
            }
            match (self.destination(into)?, self.source(back)?) {
                (Endpoint::Router(router, port), Endpoint::Router(other, out)) => {
                    builder.add_split_terminal((router, port), (other, out), link);
                }
                _ => return Err(format!("channels {into} and {back} must lead to a router and come from one")),
            }
        }
        for channel in 2 * self.terminals as usize..self.channels as usize {
            match (self.source(channel)?, self.destination(channel)?) {
                (Endpoint::Router(from, out), Endpoint::Router(to, into)) => {
                    builder.add_channel((from, out), (to, into), self.link(channel)?);
                }
                _ => return Err(format!("channel {channel} must lead from a router to a router")),
            }
        }
        for &[terminal, router, port] in &self.further_homes {
            if terminal >= self.terminals || router >= self.routers || port as usize >= MAX_PORTS {
                return Err(format!("`further_homes` has [{terminal}, {router}, {port}]; give a terminal, a router and its port"));
            }
            builder.add_home(TerminalId(terminal), RouterId(router), port as Port);
        }
        self.labels.into_iter().for_each(|(name, column)| builder.label_routers(name, column.into_owned()));
        self.attributes.into_iter().for_each(|(name, values)| builder.set_attribute(name, values.into_owned()));
        self.router_names.into_iter().for_each(|names| builder.name_routers(names.into_owned()));
        self.terminal_names.into_iter().for_each(|names| builder.name_terminals(names.into_owned()));
        if let Some(tables) = self.tables {
            builder.set_tables(tables.tables(&self.ports, self.terminals)?);
        }
        let between_routers = 2 * self.terminals..self.channels;
        if let Some(channel) = self.channels_down.iter().find(|channel| !between_routers.contains(channel)) {
            return Err(format!("`channels_down` has {channel}; those between routers are numbered {between_routers:?}"));
        }
        if let Some(router) = self.routers_down.iter().find(|&&router| router >= self.routers) {
            return Err(format!("`routers_down` has {router}; there are {} routers", self.routers));
        }
        let down: Vec<Cable> = self.channels_down.iter().map(|&channel| Cable { first: ChannelId(channel), back: None }).collect();
        let routers: Vec<RouterId> = self.routers_down.iter().copied().map(RouterId).collect();
        let network = builder.finish().map_err(|error| error.to_string())?;
        let network = match self.of_terminals {
            Some(of) => network.as_ports_of(of.into()).map_err(|error| error.to_string())?,
            None => network,
        };
        Ok(network.without(&down, &routers))
    }

    /// CRC-32 of all that labels are about.
    fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        let numbers = [&self.source_router, &self.source_port, &self.destination_router, &self.destination_port];
        let small = [&self.ports, &self.latency, &self.period].into_iter().flatten().map(|&number| i64::from(number));
        let mut add = |number: i64| hasher.update(&number.to_le_bytes());
        numbers.into_iter().flatten().for_each(|&number| add(number));
        small.for_each(&mut add);
        self.further_homes.iter().flatten().map(|&number| i64::from(number)).for_each(&mut add);
        let of_terminals = self.of_terminals.as_ref();
        of_terminals.iter().flat_map(|of| &of.ports).map(|&ports| i64::from(ports)).for_each(&mut add);
        let attributes = of_terminals.iter().flat_map(|of| &of.attributes).map(|(name, values)| (name.as_str(), values.as_slice()));
        let own = self.labels.iter().chain(&self.attributes).map(|(name, values)| (&**name, &**values));
        for (name, values) in own.chain(attributes) {
            add(values.len() as i64);
            name.bytes().map(i64::from).for_each(&mut add);
            values.iter().map(|&value| i64::from(value)).for_each(&mut add);
        }
        hasher.finalize()
    }

    fn check_lengths(&self) -> Result<(), String> {
        if self.format != FORMAT || self.version != VERSION {
            return Err(format!(
                "is of format `{}`, version {}; this kasuri reads `{FORMAT}`, version {VERSION}",
                self.format, self.version
            ));
        }
        if self.terminals == 0 || u64::from(self.channels) < 2 * u64::from(self.terminals) {
            return Err(format!("has {} terminals and {} channels; each terminal has two channels", self.terminals, self.channels));
        }
        if self.of_terminals.is_some() && !self.further_homes.is_empty() {
            return Err("has `further_homes` and `of_terminals`; where each port is a terminal, none has further ports".to_owned());
        }
        let columns = [
            ("source_router", self.source_router.len()),
            ("source_port", self.source_port.len()),
            ("source_terminal", self.source_terminal.len()),
            ("destination_router", self.destination_router.len()),
            ("destination_port", self.destination_port.len()),
            ("destination_terminal", self.destination_terminal.len()),
            ("latency", self.latency.len()),
            ("period", self.period.len()),
        ];
        let by_channel = columns.into_iter().map(|(column, length)| (column, length, self.channels, "channels"));
        let by_router = self.labels.iter().map(|(name, column)| (&**name, column.len()));
        let by_router = by_router.chain([("ports", self.ports.len())]).map(|(column, length)| (column, length, self.routers, "routers"));
        match by_channel.chain(by_router).find(|(_, length, count, _)| *length != *count as usize) {
            Some((column, length, count, what)) => Err(format!("`{column}` has {length} numbers for {count} {what}")),
            None => Ok(()),
        }
    }

    fn source(&self, channel: usize) -> Result<Endpoint, String> {
        self.end(channel, [&self.source_router, &self.source_port, &self.source_terminal])
    }

    fn destination(&self, channel: usize) -> Result<Endpoint, String> {
        self.end(channel, [&self.destination_router, &self.destination_port, &self.destination_terminal])
    }

    fn end(&self, channel: usize, [router, port, terminal]: [&[i64]; 3]) -> Result<Endpoint, String> {
        let (router, port, terminal) = (router[channel], port[channel], terminal[channel]);
        let is_below = |number: i64, count: u32| (0..i64::from(count)).contains(&number);
        if terminal == -1 && is_below(router, self.routers) && is_below(port, MAX_PORTS as u32) {
            Ok(Endpoint::Router(RouterId(router as u32), port as Port))
        } else if router == -1 && port == -1 && is_below(terminal, self.terminals) {
            Ok(Endpoint::Terminal(TerminalId(terminal as u32)))
        } else {
            Err(format!(
                "channel {channel}: an end at router {router}, port {port}, terminal {terminal}; \
                 give a router and its port, or a terminal, and -1 for what it is not"
            ))
        }
    }

    fn link(&self, channel: usize) -> Result<Link, String> {
        let (latency, period) = (self.latency[channel], self.period[channel]);
        if latency > MAX_CHANNEL_CYCLES || !(1..=MAX_CHANNEL_CYCLES).contains(&period) {
            return Err(format!(
                "channel {channel}: latency {latency}, period {period}; at most {MAX_CHANNEL_CYCLES}, a period at least 1"
            ));
        }
        Ok(Link { latency, period })
    }
}

fn lengths<T>(rows: &[Vec<T>]) -> Vec<usize> {
    rows.iter().map(Vec::len).collect()
}

/// The most addresses of a terminal: 2^7.
const MAX_ADDRESSES: u32 = 128;

impl Tables {
    fn of(tables: &ForwardingTables, network: &Network) -> Self {
        let routers = || (0..network.router_count()).map(RouterId);
        let addresses = || 0..tables.address_count();
        let ports = |router| addresses().map(|address| tables.port(router, address).map_or(-1, i32::from)).collect();
        let channels = |router| addresses().map(|address| tables.virtual_channel(router, address)).collect::<Option<Vec<u8>>>();
        let levels = |terminal| tables.levels_from(TerminalId(terminal)).map(<[u8]>::to_vec);
        let lanes = |lanes: &LaneMaps| {
            let (maps, which) = lanes.columns();
            Lanes { maps: maps.to_vec(), which: which.map(<[u16]>::to_vec).collect() }
        };
        Self {
            addresses: (0..network.terminal_count()).map(|terminal| tables.addresses(TerminalId(terminal)).len() as u32).collect(),
            ports: routers().map(ports).collect(),
            virtual_channels: routers().map_while(channels).collect(),
            service_levels: (0..network.terminal_count()).map_while(levels).collect(),
            lanes: tables.lanes().map(lanes),
        }
    }

    /// The tables of routers of so many ports and so many terminals.
    fn tables(&self, ports: &[u32], terminals: u32) -> Result<ForwardingTables, String> {
        if self.addresses.len() != terminals as usize || self.addresses.iter().any(|&count| count > MAX_ADDRESSES) {
            return Err(format!("`tables.addresses` must have {terminals} numbers, each at most {MAX_ADDRESSES}"));
        }
        let mut tables = ForwardingTables::new(ports.len() as u32, self.addresses.iter().copied());
        let count = tables.address_count() as usize;
        let check = |key: &str, lengths: Vec<usize>, rows: usize| match lengths.iter().find(|&&length| length != count) {
            Some(length) => Err(format!("`tables.{key}` has a row of {length} numbers for {count} addresses")),
            None if lengths.len() != rows => Err(format!("`tables.{key}` has {} rows; {rows} are needed", lengths.len())),
            None => Ok(()),
        };
        check("ports", lengths(&self.ports), ports.len())?;
        for ((row, router), &most) in self.ports.iter().zip(0..).zip(ports) {
            for (&port, address) in row.iter().zip(0..).filter(|(port, _)| **port != -1) {
                let port = u32::try_from(port).ok().filter(|&port| port < most);
                let port = port.ok_or_else(|| format!("`tables.ports` names a port that router {router} does not have; it has {most}"))?;
                tables.set(RouterId(router), address, port as Port);
            }
        }
        if !self.virtual_channels.is_empty() {
            check("virtual_channels", lengths(&self.virtual_channels), ports.len())?;
            for (row, router) in self.virtual_channels.iter().zip(0..) {
                row.iter().zip(0..).for_each(|(&channel, address)| tables.set_virtual_channel(RouterId(router), address, channel));
            }
        }
        if !self.service_levels.is_empty() {
            check("service_levels", lengths(&self.service_levels), terminals as usize)?;
            if self.service_levels.iter().flatten().any(|&level| usize::from(level) >= SERVICE_LEVELS) {
                return Err("`tables.service_levels` has a level above 15".to_owned());
            }
            for (row, terminal) in self.service_levels.iter().zip(0..) {
                row.iter().zip(0..).for_each(|(&level, address)| tables.set_level(TerminalId(terminal), address, level));
            }
        }
        if let Some(lanes) = &self.lanes {
            tables.set_lanes(lanes.maps(ports)?);
        }
        Ok(tables)
    }
}

impl Lanes {
    fn maps(&self, ports: &[u32]) -> Result<LaneMaps, String> {
        let mut maps = LaneMaps::new(ports.iter().copied());
        let squares = ports.iter().map(|&ports| (ports as usize) * (ports as usize));
        if self.which.len() != ports.len() || self.which.iter().map(Vec::len).zip(squares).any(|(length, square)| length != square) {
            return Err("`tables.lanes.which` must have a row for each router, of its ports times its ports".to_owned());
        }
        if self.maps.iter().flatten().any(|&lane| usize::from(lane) >= SERVICE_LEVELS) {
            return Err("`tables.lanes.maps` has a lane above 15".to_owned());
        }
        for ((row, router), &ports) in self.which.iter().zip(0..).zip(ports) {
            for (&which, place) in row.iter().zip(0..) {
                let map = self.maps.get(usize::from(which)).ok_or("`tables.lanes.which` names a mapping that `maps` does not have")?;
                maps.set(RouterId(router), (place / ports) as Port, (place % ports) as Port, *map);
            }
        }
        Ok(maps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAIR: &str = r#"{"format": "kasuri-network", "version": 1, "name": "pair", "routers": 2, "terminals": 2, "channels": 6,
        "router_names": ["a", "b"], "terminal_names": null, "ports": [2, 2],
        "source_router": [-1, -1, 0, 1, 0, 1], "source_port": [-1, -1, 0, 0, 1, 1], "source_terminal": [0, 1, -1, -1, -1, -1],
        "destination_router": [0, 1, -1, -1, 1, 0], "destination_port": [0, 0, -1, -1, 1, 1], "destination_terminal": [-1, -1, 0, 1, -1, -1],
        "latency": [1, 1, 1, 1, 3, 3], "period": [1, 1, 1, 1, 1, 2], "labels": {}, "attributes": {}}"#;

    #[test]
    fn what_is_read_is_written_again() {
        let pair = parse("pair.json", PAIR.as_bytes()).unwrap();
        assert_eq!((pair.router_count(), pair.terminal_count(), pair.channel_count()), (2, 2, 6));
        assert_eq!(pair.router_names().all().unwrap(), ["a", "b"]);
        assert_eq!(pair.link(ChannelId(5)), Link { latency: 3, period: 2 });
        assert_eq!(parse("again", write(&pair).as_bytes()).unwrap(), pair);
    }

    /// Labels say of a network what routings rely on: to those of another one they would fall.
    #[test]
    fn labels_are_kept_for_their_own_network_alone() {
        let mut builder = NetworkBuilder::new("labelled");
        let router = builder.add_router(1).unwrap();
        builder.add_terminal(router, 0, Link::default());
        builder.label_routers("level", vec![7]);
        builder.set_attribute("sizes", vec![1, 2]);
        let network = builder.finish().unwrap();
        let text = write(&network);
        assert_eq!(parse("n", text.as_bytes()).unwrap(), network);
        for (old, new) in [("[7]", "[8]"), ("\"latency\":[1,1]", "\"latency\":[2,2]"), ("[1,2]", "[1,3]"), ("\"level\"", "\"levels\"")] {
            let error = parse("n", text.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.contains("labels` that belong to another network"), "{old}: {error}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused_with_the_reason() {
        for (old, new, expected) in [
            ("\"version\": 1", "\"version\": 2", "version 2; this kasuri reads"),
            ("\"ports\": [2, 2]", "\"ports\": [2]", "`ports` has 1 numbers for 2 routers"),
            ("\"period\": [1,", "\"period\": [0,", "channel 0: latency 1, period 0"),
            ("[\"a\", \"b\"]", "[\"a\", \"a\"]", "router names: `a` stands twice"),
            ("[\"a\", \"b\"]", "[\"a\"]", "router names: there are 1 for 2"),
            ("[-1, -1, 0, 1, 0, 1], \"source_port\"", "[-1, -1, 0, 1, 0, 2], \"source_port\"", "channel 5: an end at router 2"),
            ("\"source_terminal\": [0, 1", "\"source_terminal\": [1, 0", "channels 0 and 2 must begin and end at terminal 0"),
            ("\"terminals\": 2", "\"terminals\": 0", "each terminal has two channels"),
            ("\"name\"", "\"nom\"", "pair.json:1: invalid network"),
        ] {
            let error = parse("pair.json", PAIR.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{new}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(place in 0..1000_usize, byte in any::<u8>()) {
            let mut bytes = PAIR.as_bytes().to_vec();
            let place = place % bytes.len();
            bytes[place] = byte;
            let _ = parse("pair.json", &bytes);
        }
    }
}
