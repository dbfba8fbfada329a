//! Shortest paths by table, and the virtual-channel classes that make them free of deadlock.

use super::choice::Choice;
use super::contract::RoutingError;
use super::formula::{PathFormula, recognise};
use super::hop::{Hop, Reads, VirtualChannels};
use super::metric::{Metric, PathCosts};
use super::table::{Arcs, BlockTable, BlockTableBuilder, PortTable, PortTableBuilder, edges};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which of several shortest paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MinimalTie {
    /// Each equally likely, for each packet at each router.
    #[default]
    Random,
    /// The one of the lowest port number.
    Lowest,
    /// Path number i mod n of n, by ascending port, where the destination is terminal i of its router.
    Destination,
    /// Path number i mod n of n, by ascending port, where the source is terminal i of its router.
    Source,
}

/// How virtual channels are divided among the hops of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Classes {
    /// As the topology asks: classes of one hop on slim fly, dragonfly, flattened butterfly and full mesh; of two hops on MLFM
    /// and OFT; of the whole path up and down on a fat tree; none on other networks.
    #[default]
    Topology,
    /// Each hop in a class of its own, on any network: as many classes as the longest route has hops.
    Hop,
    /// None: all virtual channels on every hop.
    None,
}

impl Classes {
    /// Hops that one class lasts, if there are classes.
    pub(super) fn hops_per_class(self, network: &Network) -> Option<u32> {
        match self {
            Self::Topology => network.labels().attribute("hops_per_class").and_then(|values| values.first().copied()),
            Self::Hop => Some(1),
            Self::None => None,
        }
    }
}

/// The ports on shortest paths from every router to every target, a target being a set of routers.
#[derive(Debug)]
pub(super) struct Shortest {
    paths: Paths,
    /// The most hops from a router with terminals to a target.
    pub(super) diameter: u32,
}

/// How the paths are known.
#[derive(Debug)]
enum Paths {
    /// By formula; the targets are all routers, one after the other.
    Formula(Box<dyn PathFormula>),
    /// By table: the ports, and the hops by (router, target) if they were asked for.
    Table { ports: PortTable, hops: Option<BlockTable> },
}

impl Shortest {
    /// Finds all shortest paths.
    ///
    /// # Errors
    /// A terminal from which no path leads to a target: the terminal and the target.
    pub(super) fn find(network: &Network, metric: Metric, targets: &[Vec<u32>], keep_hops: bool) -> Result<Self, (TerminalId, usize)> {
        let all_routers =
            targets.len() == network.router_count() as usize && targets.iter().zip(0..).all(|(target, router)| *target == [router]);
        match all_routers.then(|| recognise(network, metric)).flatten() {
            Some(formula) => Ok(Self { diameter: formula.diameter(), paths: Paths::Formula(formula) }),
            None => Self::search(network, metric, targets, keep_hops),
        }
    }

    /// No tables of a network take more bytes than these while they are made. A network whose paths follow from a formula has none.
    pub(super) fn most_bytes(network: &Network, metric: Metric, targets: u64, keep_hops: bool) -> u64 {
        let routers = u64::from(network.router_count());
        if targets == routers && recognise(network, metric).is_some() {
            return 0;
        }
        BlockTable::most_bytes(routers, targets) * (1 + u64::from(keep_hops))
    }

    /// As [`Self::find`], by a search from each target.
    pub(super) fn search(network: &Network, metric: Metric, targets: &[Vec<u32>], keep_hops: bool) -> Result<Self, (TerminalId, usize)> {
        let costs = PathCosts::new(network, metric, true);
        let edges = edges(network);
        let arcs: Vec<_> = edges.iter().map(|edge| (edge.from.0, edge.to.0, costs.of(edge))).collect();
        let routers = network.router_count() as usize;
        let incoming = Arcs::new(routers, &arcs);
        let mut by_router: Vec<Vec<usize>> = vec![Vec::new(); routers];
        edges.iter().enumerate().for_each(|(index, edge)| by_router[edge.from.index()].push(index));
        by_router.iter_mut().for_each(|list| list.sort_by_key(|&index| edges[index].port));
        let sources: Vec<_> = (0..network.terminal_count()).map(|terminal| network.injection_port(TerminalId(terminal)).0).collect();
        let mut table = PortTableBuilder::new(routers, targets.len());
        let mut hops = keep_hops.then(|| BlockTableBuilder::new(routers, targets.len()));
        let mut diameter = 0;
        let mut ports = Vec::new();
        for (column, target) in targets.iter().enumerate() {
            let distance = incoming.distances_to(target);
            if let Some(cut_off) = sources.iter().position(|router| distance[router.index()] == u64::MAX) {
                return Err((TerminalId(cut_off as u32), column));
            }
            diameter = sources.iter().map(|router| costs.hops(distance[router.index()])).fold(diameter, u32::max);
            for (router, out) in by_router.iter().enumerate() {
                ports.clear();
                let best = |&&index: &&usize| {
                    let (_, to, step) = arcs[index];
                    distance[to as usize].checked_add(step) == Some(distance[router])
                };
                ports.extend(out.iter().filter(best).map(|&index| edges[index].port));
                table.set(router, column, &ports);
                if let Some(hops) = &mut hops {
                    hops.set(router, column, costs.hops(distance[router]).min(u16::MAX.into()));
                }
            }
        }
        Ok(Self { paths: Paths::Table { ports: table.finish(), hops: hops.map(BlockTableBuilder::finish) }, diameter })
    }

    /// The ports on shortest paths, ascending.
    pub(super) fn ports(&self, router: RouterId, target: u32) -> &[Port] {
        match &self.paths {
            Paths::Formula(formula) => formula.ports(router, RouterId(target)),
            Paths::Table { ports, .. } => ports.ports(router.index(), target),
        }
    }

    /// Hops from a router to a target, if they were kept.
    pub(super) fn hops(&self, router: RouterId, target: u32) -> u32 {
        match &self.paths {
            Paths::Formula(formula) => formula.hops(router, RouterId(target)),
            Paths::Table { hops, .. } => hops.as_ref().map_or(0, |hops| hops.get(router.index(), target)),
        }
    }

    /// Bytes that the tables took at most while they were made.
    pub(super) fn build_peak_bytes(&self) -> u64 {
        match &self.paths {
            Paths::Formula(formula) => formula.bytes(),
            Paths::Table { ports, hops } => ports.build_peak_bytes() + hops.as_ref().map_or(0, BlockTable::build_peak_bytes),
        }
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> u64 {
        match &self.paths {
            Paths::Formula(formula) => formula.bytes(),
            Paths::Table { ports, hops } => ports.bytes() + hops.as_ref().map_or(0, BlockTable::bytes),
        }
    }
}

/// Each terminal's number among the terminals of its router.
pub(super) fn places_at_router(network: &Network) -> Vec<u32> {
    let mut seen = vec![0; network.router_count() as usize];
    (0..network.terminal_count())
        .map(|terminal| {
            let count: &mut u32 = &mut seen[network.ejection_port(TerminalId(terminal)).0.index()];
            std::mem::replace(count, *count + 1)
        })
        .collect()
}

impl MinimalTie {
    /// What a routing reads that decides by this alone.
    pub(super) fn reads(self) -> Reads {
        Reads { source: self == Self::Source, terminal: self == Self::Destination, ..Reads::DESTINATION_ROUTER }
    }

    /// One of the ports; `None` if there are none. `places` as from [`places_at_router`].
    pub(super) fn pick(self, ports: &[Port], hop: &Hop, places: &[u32], choice: &mut dyn Choice) -> Option<Port> {
        let count = ports.len() as u32;
        let index = match self {
            _ if count == 0 => return None,
            Self::Random => choice.uniform(count),
            Self::Lowest => 0,
            Self::Destination => places[hop.destination.index()] % count,
            Self::Source => places[hop.source.index()] % count,
        };
        Some(ports[index as usize])
    }
}

/// Divides the virtual channels among the hops of a route: classes that only rise.
#[derive(Clone, Copy, Debug)]
pub(super) struct HopClasses {
    /// Hops that a class lasts, if hops are counted.
    hops: Option<u32>,
    /// How many classes there are.
    pub(super) count: u32,
}

/// How far a route has come in its classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The class of the next hop.
    pub(super) class: u32,
    /// Hops already made in it.
    pub(super) hops: u32,
}

impl HopClasses {
    /// Classes for a route of parts with at most so many hops each; each part begins a class of its own.
    pub(super) fn new(hops_per_class: Option<u32>, parts: &[u32]) -> Self {
        let classes = |&part: &u32| hops_per_class.map_or(1, |hops| part.div_ceil(hops.max(1)));
        Self { hops: hops_per_class, count: parts.iter().map(classes).sum::<u32>().max(1) }
    }

    /// All virtual channels on every hop.
    pub(super) fn none() -> Self {
        Self { hops: None, count: 1 }
    }

    /// The virtual channels of the next hop. Where links are down, a path from an intermediate router can be longer than any between
    /// terminals: what has no class of its own shares the last one, and the deadlock check says whether that is safe.
    pub(super) fn channels(self, available: VirtualChannels, progress: Progress) -> VirtualChannels {
        let class = progress.class.min(self.count - 1);
        if self.count == 1 { available } else { available.class(class as u16, self.count as u16) }
    }

    /// After one more hop.
    pub(super) fn after_hop(self, progress: Progress) -> Progress {
        match self.hops {
            // A single class needs no count, and states that do not differ keep the walk over all routes short.
            Some(hops) if self.count > 1 && progress.hops + 1 >= hops => Progress { class: progress.class + 1, hops: 0 },
            Some(_) if self.count > 1 => Progress { hops: progress.hops + 1, ..progress },
            _ => progress,
        }
    }

    /// At the beginning of the next part of the route.
    pub(super) fn next_part(self, progress: Progress) -> Progress {
        let begun = self.hops.is_none() || progress.hops > 0;
        if self.count > 1 && begun { Progress { class: progress.class + 1, hops: 0 } } else { progress }
    }
}

impl Progress {
    const HOPS_BITS: u32 = 6;
    /// Bits of a packed progress.
    pub(super) const BITS: u32 = 12;

    pub(super) fn pack(self) -> u32 {
        self.class << Self::HOPS_BITS | self.hops
    }

    pub(super) fn unpack(bits: u32) -> Self {
        Self { class: bits >> Self::HOPS_BITS, hops: bits & ((1 << Self::HOPS_BITS) - 1) }
    }
}

/// Says that a terminal cannot be reached.
pub(super) fn no_path(routing: &'static str, network: &Network, from: TerminalId, to: &str) -> RoutingError {
    let problem = format!("{} cannot reach {to}", network.terminal_name(from));
    RoutingError::Mismatch { routing, network: network.name().to_owned(), problem }
}
