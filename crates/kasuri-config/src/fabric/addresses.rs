//! Who has which LID, and what the forwarding tables say of it.

use super::{Adapter, FabricError, Plan, Routers, SourceFile};
use kasuri_formats::discovery::{Discovery, Kind, MAX_LID};
use kasuri_formats::forwarding_dump::{self, Item};
use kasuri_formats::service_levels::{self, Source};
use kasuri_formats::{FormatError, sl2vl};
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::tables::{ForwardingTables, LaneMaps, NO_PORT};
use std::collections::BTreeMap;

/// The owner of each LID, and the router of each GUID.
pub(super) struct Addresses {
    /// By LID.
    owners: Vec<Owner>,
    routers: BTreeMap<u64, RouterId>,
    /// By router: its ports, where they are told.
    ports: Vec<Option<u32>>,
    /// By terminal: its first LID, how many it has, the GUIDs of its port and of its node.
    terminals: Vec<Terminal>,
}

#[derive(Clone, Copy)]
struct Terminal {
    lid: u32,
    count: u32,
    port_guid: Option<u64>,
    node_guid: Option<u64>,
}

/// The owner of a LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// No node that is known.
    Unknown,
    Terminal(u32),
    /// A switch, or an adapter that is left out.
    Other,
}

/// The port that says that there is no path.
const NO_PATH: u16 = 255;

impl Addresses {
    pub(super) fn of(discovery: &Discovery, routers: &Routers, adapters: &[Adapter]) -> Result<Self, FabricError> {
        let terminal_of: BTreeMap<u32, u32> = adapters.iter().zip(0..).map(|(adapter, number)| (adapter.end, number)).collect();
        let mut owners = Owners { discovery, owners: Vec::new(), lines: BTreeMap::new() };
        for node in &discovery.nodes {
            owners.add(node.lid, 1, Owner::Other, node.line)?;
        }
        for (end, number) in discovery.ends.iter().zip(0..) {
            if discovery.nodes[end.node as usize].kind != Kind::Switch {
                let owner = terminal_of.get(&number).map_or(Owner::Other, |&terminal| Owner::Terminal(terminal));
                owners.add(end.lid, 1 << end.lmc, owner, end.line)?;
            }
        }
        let guid = |&node: &u32| discovery.nodes[node as usize].guid;
        let terminal = |adapter: &Adapter| {
            let end = &discovery.ends[adapter.end as usize];
            let count = if end.lid == 0 { 0 } else { 1 << end.lmc };
            Terminal { lid: end.lid, count, port_guid: end.guid, node_guid: discovery.nodes[adapter.node as usize].guid }
        };
        Ok(Self {
            owners: owners.owners,
            routers: routers.nodes.iter().zip(0..).filter_map(|(node, number)| Some((guid(node)?, RouterId(number)))).collect(),
            ports: routers.nodes.iter().map(|&node| discovery.nodes[node as usize].ports).collect(),
            terminals: adapters.iter().map(terminal).collect(),
        })
    }

    fn owner(&self, lid: u32) -> Owner {
        self.owners.get(lid as usize).copied().unwrap_or(Owner::Unknown)
    }
}

/// LIDs that are given out.
struct Owners<'a> {
    discovery: &'a Discovery,
    owners: Vec<Owner>,
    lines: BTreeMap<u32, usize>,
}

impl Owners<'_> {
    fn add(&mut self, first: u32, count: u32, owner: Owner, line: usize) -> Result<(), FormatError> {
        if first == 0 {
            return Ok(());
        }
        if first + count - 1 > MAX_LID {
            return Err(self.discovery.error(line, format!("has {count} LIDs from {first} on; the largest is {MAX_LID}")));
        }
        for lid in first..first + count {
            if self.owners.len() <= lid as usize {
                self.owners.resize(lid as usize + 1, Owner::Unknown);
            }
            if self.owners[lid as usize] != Owner::Unknown {
                let problem = format!("has LID {lid}, which line {} has, too", self.lines.get(&lid).copied().unwrap_or(0));
                return Err(self.discovery.error(line, problem));
            }
            self.owners[lid as usize] = owner;
            self.lines.insert(lid, line);
        }
        Ok(())
    }
}

/// Tables while they are read.
struct Reading<'a> {
    addresses: &'a Addresses,
    tables: ForwardingTables,
    /// The router whose table is being read, and the name of the file and line at which each router's began.
    open: Option<RouterId>,
    seen: Vec<bool>,
    unfinished: u32,
    /// Entries for LIDs that nobody has.
    strangers: BTreeMap<u32, u32>,
    /// By address: does any switch know a path?
    known: Vec<bool>,
}

impl Reading<'_> {
    fn take(&mut self, item: Item<'_>) -> Result<(), String> {
        match item {
            Item::Switch { guid, name } => {
                let router = *self.addresses.routers.get(&guid).ok_or_else(|| {
                    format!("the table of switch 0x{guid:016x} ({name}), which the discovery does not have; are the dumps of one fabric?")
                })?;
                if std::mem::replace(&mut self.seen[router.index()], true) {
                    return Err(format!("a second table of switch 0x{guid:016x} ({name})"));
                }
                self.open = Some(router);
                Ok(())
            }
            Item::Failed => {
                self.unfinished += 1;
                Ok(())
            }
            Item::Row(row) => self.row(row),
        }
    }

    fn row(&mut self, row: forwarding_dump::Row) -> Result<(), String> {
        let Some(router) = self.open else { return Ok(()) };
        let terminal = match self.addresses.owner(row.lid) {
            Owner::Terminal(terminal) => TerminalId(terminal),
            Owner::Other => return Ok(()),
            Owner::Unknown => {
                *self.strangers.entry(row.lid).or_default() += 1;
                return Ok(());
            }
        };
        let about = &self.addresses.terminals[terminal.index()];
        let is_moved = row.port_guid.is_some_and(|guid| match (about.port_guid, about.node_guid) {
            (Some(port), _) => port != guid,
            // The discovery tells the node's GUID alone: those of its ports are other numbers, which nobody tells.
            _ => false,
        });
        if is_moved {
            let (said, here) = (row.port_guid.unwrap_or(0), about.port_guid.unwrap_or(0));
            return Err(format!(
                "says that LID 0x{:04x} is port GUID 0x{said:016x}; the discovery gives it to 0x{here:016x}: take both dumps at one time",
                row.lid
            ));
        }
        if row.port == NO_PATH {
            return Ok(());
        }
        if let Some(ports) = self.addresses.ports[router.index()].filter(|&ports| u32::from(row.port) > ports) {
            return Err(format!("sends LID 0x{:04x} to port {}, but the switch has ports 1 to {ports}", row.lid, row.port));
        }
        let address = self.tables.addresses(terminal).start + row.lid - about.lid;
        debug_assert!(row.port != NO_PORT);
        self.tables.set(router, address, row.port);
        self.known[address as usize] = true;
        Ok(())
    }
}

impl Plan<'_> {
    /// The tables of the files, if there are some; notes tell what is missing in them.
    pub(super) fn tables(
        &mut self,
        dumps: &[&SourceFile],
        lanes: &[&SourceFile],
        levels: &[&SourceFile],
    ) -> Result<Option<ForwardingTables>, FabricError> {
        if let (true, Some((name, _))) = (dumps.is_empty(), lanes.iter().chain(levels).next()) {
            return Err(FabricError::Files(format!("{name} says something of routes; give the forwarding tables of the switches, too")));
        }
        if dumps.is_empty() {
            return Ok(None);
        }
        let routers = self.details.router_guids.len();
        let addresses = self.addresses.terminals.iter().map(|terminal| terminal.count);
        let tables = ForwardingTables::new(routers as u32, addresses);
        let known = vec![false; tables.address_count() as usize];
        let mut reading = Reading {
            addresses: &self.addresses,
            tables,
            open: None,
            seen: vec![false; routers],
            unfinished: 0,
            strangers: BTreeMap::new(),
            known,
        };
        for (name, bytes) in dumps {
            reading.open = None;
            forwarding_dump::parse(name, bytes, &mut |item| reading.take(item))?;
        }
        self.details.notes.extend(reading.notes());
        let mut tables = reading.tables;
        if !lanes.is_empty() {
            tables.set_lanes(self.lanes(lanes)?);
        }
        for (name, bytes) in levels {
            service_levels::parse(name, bytes, &mut |level| self.level(&mut tables, level))?;
        }
        Ok(Some(tables))
    }

    fn lanes(&self, files: &[&SourceFile]) -> Result<LaneMaps, FabricError> {
        let mut lanes = LaneMaps::new(self.ports.iter().copied());
        for (name, bytes) in files {
            let mut open = None;
            sl2vl::parse(name, bytes, &mut |item| {
                match item {
                    sl2vl::Item::Node(guid, true) => {
                        let found = self.addresses.routers.get(&guid).copied();
                        open = Some(found.ok_or_else(|| format!("switch 0x{guid:016x}, which the discovery does not have"))?);
                    }
                    sl2vl::Item::Node(_, false) => open = None,
                    sl2vl::Item::Row(input, output, map) => {
                        if let Some(router) = open
                            && !lanes.set(router, input, output, map)
                        {
                            return Err(format!("maps service levels from port {input} to port {output}, which the switch does not have"));
                        }
                    }
                }
                Ok(())
            })?;
        }
        Ok(lanes)
    }

    fn level(&self, tables: &mut ForwardingTables, level: service_levels::Level) -> Result<(), String> {
        let Owner::Terminal(destination) = self.addresses.owner(level.destination) else {
            return match self.addresses.owner(level.destination) {
                Owner::Unknown => Err(format!("names unknown destination LID {}", level.destination)),
                _ => Ok(()),
            };
        };
        let address =
            tables.addresses(TerminalId(destination)).start + level.destination - self.addresses.terminals[destination as usize].lid;
        match level.source {
            Source::Lid(lid) => match self.addresses.owner(lid) {
                Owner::Terminal(source) => tables.set_level(TerminalId(source), address, level.level),
                Owner::Other => {}
                Owner::Unknown => return Err(format!("names unknown source LID {lid}")),
            },
            Source::Guid(guid) => {
                let is_meant = |terminal: &Terminal| terminal.node_guid == Some(guid) || terminal.port_guid == Some(guid);
                let sources = self.addresses.terminals.iter().zip(0..).filter(|(terminal, _)| is_meant(terminal));
                sources.for_each(|(_, source)| tables.set_level(TerminalId(source), address, level.level));
                let is_known = self.discovery.nodes.iter().any(|node| node.guid == Some(guid))
                    || self.discovery.ends.iter().any(|end| end.guid == Some(guid));
                if !is_known {
                    return Err(format!("names unknown source GUID 0x{guid:016x}"));
                }
            }
        }
        Ok(())
    }
}

impl Reading<'_> {
    /// What is missing in the tables.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let without = self.seen.iter().filter(|seen| !**seen).count();
        if without > 0 {
            notes.push(format!("{without} of {} switches have no forwarding table", self.seen.len()));
        }
        if self.unfinished > 0 {
            notes.push(format!("{} forwarding tables end early: the tool that wrote them failed", self.unfinished));
        }
        let unknown: Vec<u32> = (0..self.addresses.terminals.len() as u32)
            .flat_map(|terminal| {
                let addresses = self.tables.addresses(TerminalId(terminal));
                let lid = self.addresses.terminals[terminal as usize].lid;
                addresses.clone().filter(|&address| !self.known[address as usize]).map(move |address| lid + address - addresses.start)
            })
            .collect();
        if let Some(first) = unknown.first() {
            notes.push(format!("LIDs without a route on any switch: {}, first {first} (0x{first:04x})", unknown.len()));
        }
        if let Some((first, _)) = self.strangers.first_key_value() {
            notes.push(format!("unknown LIDs in the tables: {}, first {first} (0x{first:04x})", self.strangers.len()));
        }
        let absent = self.addresses.terminals.iter().filter(|terminal| terminal.count == 0).count();
        if absent > 0 {
            notes.push(format!("{absent} adapters have no LID"));
        }
        notes
    }
}
