//! An audit of a fabric: its cables, and every route of its forwarding tables.

use super::pairs::{PairRoutes, routes_of};
use kasuri_config::fabric::{Fabric, neighbours};
use kasuri_network::deadlock::{Coverage, EscapePath, Report, Verdict, check_within};
use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::network::metrics::hops_from;
use kasuri_network::network::tables::{ForwardingTables, Stray};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::routing::forwarding::{AddressChoice, TableRouting};
use kasuri_network::routing::{Routing, VirtualChannels};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The findings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audit {
    /// Switches.
    pub switches: u32,
    /// Routers that are not switches: hosts, GPUs, chips, CPUs and adapters, if the file has them as nodes.
    pub other_routers: u32,
    /// Hosts: adapters of one host count once.
    pub hosts: u64,
    /// Terminals: ports of adapters.
    pub adapters: u32,
    /// Cables between switches.
    pub cables: u64,
    /// The number of cables of each rate, with those of adapters and of hosts.
    pub rates: BTreeMap<String, u64>,
    /// Oddities found by the import.
    pub notes: Vec<String>,
    /// Pairs of switches with fewer or slower cables than the usual pairs of the first.
    pub unequal_trunks: Vec<Trunk>,
    /// Cables slower than most of their kind: of adapters, and between switches.
    pub slow_cables: Vec<SlowCable>,
    /// Switches with another number of cables to switches than most of those at the same distance from the nearest adapter.
    pub unusual_switches: Vec<UnusualSwitch>,
    /// The behaviour of the tables, if they are known.
    pub tables: Option<Routes>,
    /// The routes of some pairs only, if requested; the others are then not audited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairRoutes>,
}

/// Cables between two switches that differ from the usual ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trunk {
    /// The switch.
    pub switch: String,
    /// Its neighbour.
    pub neighbour: String,
    /// Cables between them.
    pub cables: u32,
    /// Their rates together, Gbit/s; 0 where rates are unknown.
    pub gbit_per_second: f64,
    /// Cables and rate of the usual trunk of this switch to neighbours of the same rank.
    pub usual_cables: u32,
    /// As [`Self::usual_cables`].
    pub usual_gbit_per_second: f64,
}

/// A cable that is slower than most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowCable {
    /// Its two ends.
    pub cable: String,
    /// Its rate.
    pub rate: String,
    /// The rate of most cables of its kind.
    pub usual_rate: String,
}

/// A switch with another number of cables than those of its rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnusualSwitch {
    /// The switch.
    pub switch: String,
    /// Steps to the nearest switch with adapters.
    pub rank: u32,
    /// Its cables to switches.
    pub cables: u32,
    /// Cables of most switches of its rank.
    pub usual_cables: u32,
}

/// The findings on forwarding tables. It has many fields, because each is a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Routes {
    /// Routes: from each adapter to each address of every other one.
    pub routes: u64,
    /// Routes that do not arrive.
    pub unreachable: u64,
    /// Forwarding loops among these: packets loop between switches.
    pub going_round: u64,
    /// Ordered pairs of adapters with a route that does not arrive.
    pub unreachable_pairs: u64,
    /// The first of them, with the reason.
    pub unreachable_first: Vec<Unreachable>,
    /// The number of routes by their number of cables between switches.
    pub hops: BTreeMap<u32, u64>,
    /// The mean.
    pub mean_hops: f64,
    /// Routes longer than necessary.
    pub not_minimal: u64,
    /// The first of them.
    pub not_minimal_first: Vec<Detour>,
    /// True if packets that arrive can wait for each other in a cycle. Looping packets are counted in [`Self::going_round`].
    pub credit_loops: bool,
    /// The cycle, a cable and its virtual lane each.
    pub cycle: Vec<String>,
    /// Virtual lanes that the routes use.
    pub virtual_lanes: u32,
    /// The virtual lanes that the verdict assumes, where the dumps do not give them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_lanes: Option<String>,
    /// Cables and lanes of the dependency graph, and its edges.
    pub dependencies: [u64; 2],
    /// The loads if all adapters send equally to all others.
    pub uniform: Loads,
    /// Each adapter sends to the adapter at a fixed distance in the order of names.
    pub shift: Shifts,
}

/// A pair without a route.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unreachable {
    /// From where.
    pub from: String,
    /// To where.
    pub to: String,
    /// The problem.
    pub problem: String,
}

/// A route longer than necessary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detour {
    /// From where.
    pub from: String,
    /// To where.
    pub to: String,
    /// Its cables between switches.
    pub hops: u32,
    /// Cables of a shortest path.
    pub shortest: u32,
}

/// The most loaded cables between switches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loads {
    /// Routes over the most loaded one.
    pub max: f64,
    /// Routes over a cable in one direction, the mean.
    pub mean: f64,
    /// Cables in one direction, most loaded for their rate first.
    pub cables: Vec<CableLoad>,
}

/// A cable in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CableLoad {
    /// Its two ends.
    pub cable: String,
    /// Its rate.
    pub rate: String,
    /// Routes over it.
    pub routes: f64,
}

/// Shift traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shifts {
    /// The number of shifts counted: all, or an evenly spaced sample.
    pub looked_at: u32,
    /// Of how many.
    pub of: u32,
    /// The most routes of one shift that share a cable between switches, the mean over the shifts.
    pub mean_of_max: f64,
    /// The maximum over the shifts.
    pub max: u32,
    /// The first shift with this maximum.
    pub worst_shift: u32,
    /// The most loaded cables there.
    pub cables: Vec<CableLoad>,
}

/// The number of pairs shown in a list.
pub(super) const MAX_SHOWN_PAIRS: usize = 10;

/// The most routes of shifts to count; beyond that a sample of the shifts is taken.
const MAX_SHIFT_ROUTES: u64 = 4_000_000;

/// Audits a fabric; `top` cables are named of each kind of traffic.
pub fn audit(fabric: &Fabric, top: usize) -> Audit {
    Audit { tables: fabric.network.tables().map(|tables| routes(fabric, tables, top)), ..cables(fabric) }
}

/// Audits a fabric and the routes of these pairs of terminals only, each to the first address of the destination.
pub fn audit_pairs(fabric: &Fabric, tables: &Arc<ForwardingTables>, pairs: &[(TerminalId, TerminalId)], top: usize) -> Audit {
    Audit { pairs: Some(routes_of(fabric, tables, pairs, top)), ..cables(fabric) }
}

/// The findings on a fabric without its tables.
pub fn cables(fabric: &Fabric) -> Audit {
    let (network, details) = (&fabric.network, &fabric.details);
    let mut rates: BTreeMap<String, u64> = BTreeMap::new();
    let adapters = (0..network.terminal_count()).map(ChannelId);
    // A channel from a host, GPU or chip that is a router to its own terminal is not a cable.
    let adapters = adapters.filter(|&channel| fabric.is_switch(network.injection_port(TerminalId(channel.0)).0));
    // Cables between routers have two channels.
    let between: Vec<ChannelId> = network.router_channels().collect();
    adapters.for_each(|channel| *rates.entry(fabric.rate(channel).to_owned()).or_default() += 2);
    between.iter().for_each(|&channel| *rates.entry(fabric.rate(channel).to_owned()).or_default() += 1);
    rates.values_mut().for_each(|count| *count = count.div_ceil(2));
    let hosts: BTreeSet<&str> =
        details.hosts.iter().zip(&details.is_host).filter(|(_, is_host)| **is_host).map(|(host, _)| host.as_str()).collect();
    let ranks = ranks(network);
    let switches = (0..network.router_count()).filter(|&router| fabric.is_switch(RouterId(router))).count() as u32;
    Audit {
        switches,
        other_routers: network.router_count() - switches,
        hosts: hosts.len() as u64,
        adapters: network.terminal_count(),
        cables: between.iter().filter(|&&channel| fabric.is_between_switches(channel)).count() as u64 / 2,
        rates,
        notes: details.notes.clone(),
        unequal_trunks: unequal_trunks(fabric, &ranks),
        slow_cables: slow_cables(fabric),
        unusual_switches: unusual_switches(fabric, &ranks),
        tables: None,
        pairs: None,
    }
}

/// By router: steps to the nearest router with terminals; `u32::MAX` where there is none.
fn ranks(network: &Network) -> Vec<u32> {
    let mut rank = vec![u32::MAX; network.router_count() as usize];
    let mut queue = Vec::new();
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        let router = network.injection_port(terminal).0;
        if std::mem::replace(&mut rank[router.index()], 0) != 0 {
            queue.push(router);
        }
    }
    let mut next = 0;
    while next < queue.len() {
        let router = queue[next];
        next += 1;
        for (neighbour, _) in neighbours(network, router) {
            if rank[neighbour.index()] == u32::MAX {
                rank[neighbour.index()] = rank[router.index()] + 1;
                queue.push(neighbour);
            }
        }
    }
    rank
}

/// The most frequent value, of equals the greatest.
fn usual<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut count: BTreeMap<T, u32> = BTreeMap::new();
    values.for_each(|value| *count.entry(value).or_default() += 1);
    count.into_iter().max_by_key(|&(value, count)| (count, value)).map(|(value, _)| value)
}

/// A trunk is unusual if most trunks of its switch to switches of the same rank are others.
fn unequal_trunks(fabric: &Fabric, ranks: &[u32]) -> Vec<Trunk> {
    let network = &fabric.network;
    let mut unequal = Vec::new();
    for router in (0..network.router_count()).map(RouterId).filter(|&router| fabric.is_switch(router)) {
        // Cables and Mbit/s of each neighbour.
        let mut trunks: BTreeMap<RouterId, (u32, u64)> = BTreeMap::new();
        for (neighbour, channel) in neighbours(network, router).filter(|(neighbour, _)| fabric.is_switch(*neighbour)) {
            let trunk = trunks.entry(neighbour).or_default();
            trunk.0 += 1;
            trunk.1 += fabric.gbit_per_second(channel).map_or(0, |rate| (rate * 1000.0).round() as u64);
        }
        let of_rank: BTreeSet<u32> = trunks.keys().map(|neighbour| ranks[neighbour.index()]).collect();
        for rank in of_rank {
            let these = || trunks.iter().filter(|(neighbour, _)| ranks[neighbour.index()] == rank);
            let Some(common) = usual(these().map(|(_, &trunk)| trunk)) else { continue };
            for (neighbour, trunk) in these().filter(|(_, trunk)| **trunk != common) {
                unequal.push(Trunk {
                    switch: network.router_names().of(router.0),
                    neighbour: network.router_names().of(neighbour.0),
                    cables: trunk.0,
                    gbit_per_second: trunk.1 as f64 / 1000.0,
                    usual_cables: common.0,
                    usual_gbit_per_second: common.1 as f64 / 1000.0,
                });
            }
        }
    }
    unequal
}

fn slow_cables(fabric: &Fabric) -> Vec<SlowCable> {
    let network = &fabric.network;
    let adapters: Vec<ChannelId> = (0..network.terminal_count()).map(ChannelId).collect();
    // A host that is a router has its cables among those between routers.
    let adapters: Vec<ChannelId> =
        adapters.into_iter().filter(|channel| fabric.is_switch(network.injection_port(TerminalId(channel.0)).0)).collect();
    let is_first = |channel: &ChannelId| match (network.source(*channel), network.destination(*channel)) {
        (Endpoint::Router(from, out), Endpoint::Router(to, into)) => (from, out) < (to, into),
        _ => true,
    };
    let (between, of_hosts): (Vec<ChannelId>, Vec<ChannelId>) =
        network.router_channels().filter(is_first).partition(|&channel| fabric.is_between_switches(channel));
    let mut slow = Vec::new();
    for kind in [adapters, of_hosts, between] {
        let mbit = |channel: ChannelId| fabric.gbit_per_second(channel).map_or(0, |rate| (rate * 1000.0).round() as u64);
        let Some(common) = usual(kind.iter().map(|&channel| mbit(channel))) else { continue };
        let usual_rate = kind.iter().find(|&&channel| mbit(channel) == common).map_or("", |&channel| fabric.rate(channel));
        for &channel in kind.iter().filter(|&&channel| mbit(channel) < common) {
            let (cable, rate) = (fabric.cable_name(channel), fabric.rate(channel).to_owned());
            slow.push(SlowCable { cable, rate, usual_rate: usual_rate.to_owned() });
        }
    }
    slow
}

fn unusual_switches(fabric: &Fabric, ranks: &[u32]) -> Vec<UnusualSwitch> {
    let network = &fabric.network;
    let is_counted = |router: u32| fabric.is_switch(RouterId(router));
    let cables_of = |router| neighbours(network, RouterId(router)).filter(|(neighbour, _)| is_counted(neighbour.0)).count() as u32;
    let cables: Vec<u32> = (0..network.router_count()).map(cables_of).collect();
    let mut unusual = Vec::new();
    for rank in ranks.iter().copied().collect::<BTreeSet<u32>>() {
        let of_rank = || (0..network.router_count()).filter(|&router| ranks[router as usize] == rank && is_counted(router));
        let Some(common) = usual(of_rank().map(|router| cables[router as usize])) else { continue };
        for router in of_rank().filter(|&router| cables[router as usize] != common) {
            let switch = network.router_names().of(router);
            unusual.push(UnusualSwitch { switch, rank, cables: cables[router as usize], usual_cables: common });
        }
    }
    unusual
}

/// Follows every route.
fn routes(fabric: &Fabric, tables: &Arc<ForwardingTables>, top: usize) -> Routes {
    let network = &fabric.network;
    let mut walked = RouteCounts::new(network);
    let homes = Homes::of(network);
    // Terminals of one router often follow each other.
    let (mut path, mut shortest) = (Vec::new(), (None, Vec::new()));
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        let at = network.ejection_port(terminal).0;
        if shortest.0 != Some(at) {
            shortest = (Some(at), hops_from(network, at));
        }
        let addresses = tables.addresses(terminal);
        let mut failing: BTreeSet<RouterId> = BTreeSet::new();
        for address in addresses.clone() {
            for (&home, sources) in &homes.terminals {
                let result = tables.follow(network, home, terminal, address, &mut path);
                let senders = sources.iter().filter(|&&source| source != terminal);
                match result {
                    Ok(()) => walked.arrived(senders.count() as u64, addresses.len(), &path, shortest.1[home.index()], sources, terminal),
                    Err(stray) => {
                        let is_first = failing.insert(home);
                        senders.for_each(|&source| walked.lost(source, terminal, stray, is_first));
                    }
                }
            }
        }
        if addresses.is_empty() {
            (0..network.terminal_count())
                .map(TerminalId)
                .filter(|&source| source != terminal)
                .for_each(|source| walked.without_address(source, terminal));
        }
    }
    // A looping packet that is not discarded waits for itself: that is a forwarding loop, not a credit loop of the routes.
    let checked = if walked.unreachable > 0 { Arc::new(tables.only(&arriving(network, tables, &homes))) } else { Arc::clone(tables) };
    let routing = TableRouting::new(network, checked, AddressChoice::Random);
    let required = routing.facts().virtual_channels_required;
    let report = check_within(network, &routing, &[VirtualChannels { begin: 0, end: required as u16 }], EscapePath::Open, u64::MAX);
    let cycle = match &report.verdict {
        Verdict::Acyclic => Vec::new(),
        Verdict::Cycle(cycle) => cycle.iter().map(|&(channel, lane)| lane_name(fabric, channel, lane, required)).collect(),
    };
    walked.findings(fabric, tables, &report, cycle, required, top)
}

/// The entries of tables on routes that arrive.
fn arriving(network: &Network, tables: &ForwardingTables, homes: &Homes) -> BTreeSet<(RouterId, u32)> {
    let (mut entries, mut path) = (BTreeSet::new(), Vec::new());
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        for address in tables.addresses(terminal) {
            for &home in homes.terminals.keys() {
                if tables.follow(network, home, terminal, address, &mut path).is_err() {
                    continue;
                }
                entries.extend(path.iter().filter_map(|&channel| match network.source(channel) {
                    Endpoint::Router(router, _) => Some((router, address)),
                    Endpoint::Terminal(_) => None,
                }));
            }
        }
    }
    entries
}

/// The virtual lanes that a verdict assumes if the dumps of a fabric do not give them. Routings such as DFSSSP or LASH separate packets by
/// service level.
pub(super) fn assumed_lanes(fabric: &Fabric, tables: &ForwardingTables) -> Option<String> {
    // Fabrics without LIDs have no service levels.
    let has_levels = fabric.details.terminal_lids.iter().any(|&lid| lid > 0);
    let text = match (tables.levels_from(TerminalId(0)), tables.lanes()) {
        (None, None) => "their service levels are not known, and all are taken to have the same lane",
        (None, Some(_)) => "their service levels are not known, and all are taken to have level 0",
        (Some(_), None) => "which lanes switches give to service levels is not known, and level N is taken to have lane N",
        (Some(_), Some(_)) => return None,
    };
    has_levels.then(|| text.to_owned())
}

pub(super) fn lane_name(fabric: &Fabric, channel: ChannelId, lane: u16, lanes: u32) -> String {
    let lane = if lanes > 1 { format!(", lane {lane}") } else { String::new() };
    format!("{}{lane}", fabric.cable_name(channel))
}

/// The terminals of each router with terminals.
struct Homes {
    terminals: BTreeMap<RouterId, Vec<TerminalId>>,
}

impl Homes {
    fn of(network: &Network) -> Self {
        let mut terminals: BTreeMap<RouterId, Vec<TerminalId>> = BTreeMap::new();
        for terminal in (0..network.terminal_count()).map(TerminalId) {
            terminals.entry(network.injection_port(terminal).0).or_default().push(terminal);
        }
        Self { terminals }
    }
}

/// The counts collected while routes are followed.
struct RouteCounts<'a> {
    network: &'a Network,
    routes: u64,
    unreachable: u64,
    going_round: u64,
    pairs: u64,
    strays: Vec<Unreachable>,
    hops: BTreeMap<u32, u64>,
    not_minimal: u64,
    detours: Vec<Detour>,
    /// By channel.
    load: Vec<f64>,
}

impl<'a> RouteCounts<'a> {
    fn new(network: &'a Network) -> Self {
        let load = vec![0.0; network.channel_count() as usize];
        let (strays, hops, detours) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { network, routes: 0, unreachable: 0, going_round: 0, pairs: 0, strays, hops, not_minimal: 0, detours, load }
    }

    /// Counts the routes of `count` sources at one router, to one of `addresses` addresses of a terminal.
    fn arrived(&mut self, count: u64, addresses: usize, path: &[ChannelId], shortest: Option<u32>, sources: &[TerminalId], to: TerminalId) {
        let hops = path.len() as u32 - 1;
        self.routes += count;
        *self.hops.entry(hops).or_default() += count;
        path.iter().for_each(|channel| self.load[channel.index()] += count as f64 / addresses as f64);
        if let Some(shortest) = shortest.filter(|&shortest| shortest < hops) {
            self.not_minimal += count;
            if let Some(&source) = sources.iter().find(|&&source| source != to).filter(|_| self.detours.len() < MAX_SHOWN_PAIRS) {
                let (from, to) = (self.name(source), self.name(to));
                self.detours.push(Detour { from, to, hops, shortest });
            }
        }
    }

    fn lost(&mut self, source: TerminalId, to: TerminalId, stray: Stray, is_first: bool) {
        self.routes += 1;
        self.unreachable += 1;
        self.going_round += u64::from(matches!(stray, Stray::Round(_)));
        self.pairs += u64::from(is_first);
        if self.strays.len() < MAX_SHOWN_PAIRS {
            let unreachable = Unreachable { from: self.name(source), to: self.name(to), problem: stray.describe(self.network) };
            self.strays.push(unreachable);
        }
    }

    fn without_address(&mut self, source: TerminalId, to: TerminalId) {
        (self.routes, self.unreachable, self.pairs) = (self.routes + 1, self.unreachable + 1, self.pairs + 1);
        if self.strays.len() < MAX_SHOWN_PAIRS {
            self.strays.push(Unreachable { from: self.name(source), to: self.name(to), problem: "it has no LID".to_owned() });
        }
    }

    fn name(&self, terminal: TerminalId) -> String {
        self.network.terminal_names().of(terminal.0)
    }

    fn findings(self, fabric: &Fabric, tables: &ForwardingTables, report: &Report, cycle: Vec<String>, lanes: u32, top: usize) -> Routes {
        debug_assert_eq!(report.coverage, Coverage::Exact);
        let arrived = self.routes - self.unreachable;
        let sum: u64 = self.hops.iter().map(|(&hops, &count)| u64::from(hops) * count).sum();
        let between: Vec<f64> = self.network.router_channels().map(|channel| self.load[channel.index()]).collect();
        let (mean, max) = (between.iter().sum::<f64>() / between.len().max(1) as f64, between.iter().copied().fold(0.0, f64::max));
        Routes {
            routes: self.routes,
            unreachable: self.unreachable,
            going_round: self.going_round,
            unreachable_pairs: self.pairs,
            unreachable_first: self.strays,
            mean_hops: sum as f64 / arrived.max(1) as f64,
            hops: self.hops,
            not_minimal: self.not_minimal,
            not_minimal_first: self.detours,
            credit_loops: !cycle.is_empty(),
            cycle,
            virtual_lanes: lanes,
            assumed_lanes: assumed_lanes(fabric, tables),
            dependencies: [report.channels, report.dependencies],
            uniform: Loads { max, mean, cables: busiest(fabric, &self.load, top) },
            shift: shifts(fabric, tables, top),
        }
    }
}

/// The cables between switches with the longest time for their load.
pub(super) fn busiest(fabric: &Fabric, load: &[f64], top: usize) -> Vec<CableLoad> {
    let mut channels = by_time(fabric, |channel| load[channel.index()]);
    channels.truncate(top);
    let shown = |channel: ChannelId| CableLoad {
        cable: fabric.cable_name(channel),
        rate: fabric.rate(channel).to_owned(),
        routes: load[channel.index()],
    };
    channels.into_iter().map(shown).collect()
}

/// The loaded channels between switches, longest time first.
pub fn by_time(fabric: &Fabric, load: impl Fn(ChannelId) -> f64) -> Vec<ChannelId> {
    let time = |channel: ChannelId| load(channel) / fabric.gbit_per_second(channel).unwrap_or(1.0);
    let mut channels: Vec<ChannelId> = fabric.network.router_channels().filter(|&channel| load(channel) > 0.0).collect();
    channels.sort_by(|&one, &other| time(other).total_cmp(&time(one)).then(one.cmp(&other)));
    channels
}

fn shifts(fabric: &Fabric, tables: &ForwardingTables, top: usize) -> Shifts {
    let network = &fabric.network;
    let terminals = network.terminal_count();
    let of = terminals.saturating_sub(1);
    let looked_at = (MAX_SHIFT_ROUTES / u64::from(terminals.max(1))).clamp(1, u64::from(of.max(1))) as u32;
    let mut count = Counts::new(network);
    let (mut sum, mut max, mut worst) = (0u64, 0, 0);
    let shift_of = |number: u32| 1 + (u64::from(number) * u64::from(of) / u64::from(looked_at)) as u32;
    let number_of_shifts = looked_at.min(of);
    for shift in (0..number_of_shifts).map(shift_of) {
        let most = count.shift(tables, shift);
        sum += u64::from(most);
        if most > max {
            (max, worst) = (most, shift);
        }
        count.clear();
    }
    if worst > 0 {
        count.shift(tables, worst);
    }
    let load: Vec<f64> = count.load.iter().map(|&load| f64::from(load)).collect();
    Shifts {
        looked_at: number_of_shifts,
        of,
        mean_of_max: sum as f64 / f64::from(number_of_shifts.max(1)),
        max,
        worst_shift: worst,
        cables: busiest(fabric, &load, top),
    }
}

/// Routes by channel, of one shift.
struct Counts<'a> {
    network: &'a Network,
    load: Vec<u32>,
    touched: Vec<ChannelId>,
    path: Vec<ChannelId>,
}

impl<'a> Counts<'a> {
    fn new(network: &'a Network) -> Self {
        Self { network, load: vec![0; network.channel_count() as usize], touched: Vec::new(), path: Vec::new() }
    }

    /// The most routes that share a channel between routers, for a shift.
    fn shift(&mut self, tables: &ForwardingTables, shift: u32) -> u32 {
        let terminals = self.network.terminal_count();
        let mut most = 0;
        for source in (0..terminals).map(TerminalId) {
            let to = TerminalId((source.0 + shift) % terminals);
            let addresses = tables.addresses(to);
            let home = self.network.injection_port(source).0;
            if addresses.is_empty() || tables.follow(self.network, home, to, addresses.start, &mut self.path).is_err() {
                continue;
            }
            let between = self.path.len() - 1;
            for &channel in &self.path[..between] {
                self.load[channel.index()] += 1;
                most = most.max(self.load[channel.index()]);
                self.touched.push(channel);
            }
        }
        most
    }

    fn clear(&mut self) {
        self.touched.drain(..).for_each(|channel| self.load[channel.index()] = 0);
    }
}
