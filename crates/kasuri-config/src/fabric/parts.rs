//! A fabric by its parts: what formats say that name nodes and links, but neither ports nor addresses.

use super::{Fabric, FabricError};
use kasuri_formats::details::Details;
use kasuri_formats::rate::{self, Speed};
use kasuri_network::id::{Port, RouterId};
use kasuri_network::network::tables::ForwardingTables;
use kasuri_network::network::{Link, MAX_CHANNEL_CYCLES, MAX_PORTS, NetworkBuilder};
use kasuri_network::routing::minimal::NODE_LABEL;
use std::collections::{BTreeMap, BTreeSet};

/// Bits of the flit in whose cycles latencies are told: 64 bytes, as `kasuri fabric import` says it for experiments.
const FLIT_BITS: f64 = 512.0;

/// Entries of forwarding tables, at most; larger fabrics have none.
pub(super) const MAX_TABLE_ENTRIES: u64 = 1 << 26;

/// Routers, terminals and links in the order in which they get their numbers and ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    /// The file's name.
    pub(super) file: String,
    /// The routers' names.
    pub(super) routers: Vec<String>,
    /// Is a router a switch, and not itself a host, a GPU or a chip?
    pub(super) is_switch: Vec<bool>,
    /// Terminals, each at the first ports of its router.
    pub(super) terminals: Vec<TerminalPart>,
    /// Links between routers; several between two are parallel ones.
    pub(super) links: Vec<LinkPart>,
    /// For each router the number of the node that contains it, or [`NO_NODE`](kasuri_network::routing::minimal::NO_NODE); empty if the
    /// file has no nodes.
    pub(super) nodes: Vec<u32>,
    /// What was found that is worth a look.
    pub(super) notes: Vec<String>,
}

/// A terminal.
#[derive(Clone, Debug)]
pub(super) struct TerminalPart {
    /// Its name.
    pub(super) name: String,
    /// The host to which it belongs.
    pub(super) host: String,
    /// The position of its router.
    pub(super) router: u32,
    /// What it can send.
    pub(super) speed: Speed,
    /// Latency of its channels in ns, where it is told.
    pub(super) latency_ns: Option<f64>,
}

/// A link of two channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkPart {
    /// The positions of its routers.
    pub(super) ends: [u32; 2],
    /// What each direction carries.
    pub(super) speed: Speed,
    /// Latency of a direction in ns, where it is told.
    pub(super) latency_ns: Option<f64>,
}

/// Ports of the links that were laid: those of the first router to the second, in the order of the parallel links.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports(BTreeMap<(u32, u32), Vec<Port>>);

impl Ports {
    /// The port of a router to its neighbour on a copy of their link, counted modulo the number of copies.
    pub(super) fn of(&self, from: u32, to: u32, copy: u32) -> Option<Port> {
        self.0.get(&(from, to)).map(|ports| ports[copy as usize % ports.len()])
    }
}

impl Parts {
    /// The fabric. `tables` makes the forwarding tables of what is laid; it gets the ports by router of its terminals and of its links.
    ///
    /// # Errors
    /// No terminals, too many ports or rates, or a latency that is too long.
    pub(super) fn fabric(self, tables: impl FnOnce(&[Port], &Ports) -> Option<ForwardingTables>) -> Result<Fabric, FabricError> {
        let wrong = |problem| FabricError::Network { name: self.file.clone(), problem };
        if self.terminals.is_empty() {
            return Err(FabricError::Files(format!("{}: has no terminals", self.file)));
        }
        let speeds = self.terminals.iter().map(|terminal| terminal.speed).chain(self.links.iter().map(|link| link.speed));
        let used: BTreeSet<Speed> = speeds.collect();
        check_rates(&self.file, used.len())?;
        if let (Some(&slowest), Some(&fastest)) = (used.first(), used.last())
            && slowest.is_too_slow(fastest)
        {
            let problem =
                format!("a link of {slowest} and one of {fastest}: the fastest may be at most {MAX_CHANNEL_CYCLES} times as fast");
            return Err(FabricError::Files(format!("{}: {problem}", self.file)));
        }
        let mbit: Vec<u32> = used.iter().map(|speed| speed.mbit_per_second()).collect();
        let (periods, channel_mbit) = rate::periods(&mbit, MAX_CHANNEL_CYCLES);
        let place = |speed: Speed| used.range(..speed).count();
        let link = |speed: Speed, latency_ns: Option<f64>| {
            let latency = latency_ns.map_or(Ok(1), |latency| self.cycles(latency, channel_mbit))?;
            Ok::<_, FabricError>(Link { latency, period: periods[place(speed)] })
        };
        let mut count = vec![0usize; self.routers.len()];
        let terminal_ports: Vec<Port> = self.terminals.iter().map(|terminal| next(&mut count, terminal.router)).collect();
        let mut ports = Ports::default();
        let link_ports: Vec<[Port; 2]> = self
            .links
            .iter()
            .map(|link| {
                let [one, other] = link.ends.map(|end| next(&mut count, end));
                ports.0.entry((link.ends[0], link.ends[1])).or_default().push(one);
                ports.0.entry((link.ends[1], link.ends[0])).or_default().push(other);
                [one, other]
            })
            .collect();
        if let Some((name, ports)) = self.routers.iter().zip(&count).find(|(_, ports)| **ports > MAX_PORTS) {
            let problem = format!(
                "{name} has {ports} links, and a router has at most {MAX_PORTS} ports; write it as several joined \
                 switches"
            );
            return Err(FabricError::Files(format!("{}: {problem}", self.file)));
        }
        let file = self.file.rsplit(['/', '\\']).next().unwrap_or_default();
        let mut builder = NetworkBuilder::new(format!("fabric {file}"));
        for &count in &count {
            builder.add_router(count).map_err(wrong)?;
        }
        for (terminal, &port) in self.terminals.iter().zip(&terminal_ports) {
            builder.add_terminal(RouterId(terminal.router), port, link(terminal.speed, terminal.latency_ns)?);
        }
        for (part, ports) in self.links.iter().zip(&link_ports) {
            let [one, other] = [0, 1].map(|end| (RouterId(part.ends[end]), ports[end]));
            builder.add_link(one, other, link(part.speed, part.latency_ns)?);
        }
        if !self.nodes.is_empty() {
            builder.label_routers(NODE_LABEL, self.nodes);
        }
        builder.name_routers(self.routers.clone());
        builder.name_terminals(self.terminals.iter().map(|terminal| terminal.name.clone()).collect());
        if let Some(tables) = tables(&terminal_ports, &ports) {
            builder.set_tables(tables);
        }
        let network = builder.finish().map_err(wrong)?;
        let of_terminals = self.terminals.iter().map(|terminal| place(terminal.speed) as u8);
        let between = self.links.iter().flat_map(|link| [place(link.speed) as u8; 2]);
        let channel_rates = of_terminals.clone().chain(of_terminals).chain(between).collect();
        let has_latencies = self.links.iter().any(|link| link.latency_ns.is_some());
        let details = Details {
            is_switch: self.is_switch,
            latency_flit_bytes: has_latencies.then_some(FLIT_BITS as u32 / 8),
            hosts: self.terminals.iter().map(|terminal| terminal.host.clone()).collect(),
            rates: used.iter().map(Speed::to_string).collect(),
            gbit_per_second: mbit.iter().map(|&mbit| f64::from(mbit) / 1000.0).collect(),
            channel_rates,
            channel_gbit_per_second: channel_mbit / 1000.0,
            notes: self.notes,
            ..Details::without_addresses(&network)
        };
        Ok(Fabric { network, details })
    }

    /// A latency in cycles of flits of 64 bytes.
    fn cycles(&self, latency_ns: f64, channel_mbit: f64) -> Result<u32, FabricError> {
        let cycles = (latency_ns * channel_mbit / 1000.0 / FLIT_BITS).round();
        if cycles <= f64::from(MAX_CHANNEL_CYCLES) {
            return Ok(cycles.max(1.0) as u32);
        }
        let cycle_ns = FLIT_BITS * 1000.0 / channel_mbit;
        let most = f64::from(MAX_CHANNEL_CYCLES) * cycle_ns;
        Err(FabricError::Files(format!(
            "{}: a latency of {latency_ns} ns is {cycles} cycles of {cycle_ns:.3e} ns; it may be at most {most:.0} ns at these rates",
            self.file
        )))
    }
}

/// Refuses a file with more different rates than [`Details::channel_rates`] tells apart.
pub(super) fn check_rates(file: &str, rates: usize) -> Result<(), FabricError> {
    match rates <= usize::from(u8::MAX) {
        true => Ok(()),
        false => Err(FabricError::Files(format!("{file}: has {rates} different rates; at most {} are known apart", u8::MAX))),
    }
}

/// The next free port of a router. More than a router can have are refused where it is made.
fn next(count: &mut [usize], router: u32) -> Port {
    let port = count[router as usize];
    count[router as usize] += 1;
    port.min(usize::from(Port::MAX)) as Port
}
