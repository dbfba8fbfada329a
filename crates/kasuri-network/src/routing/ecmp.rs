//! Equal-cost multipath: each router divides the traffic to a destination among all its links on a path of least cost.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use super::metric::{Metric, PathCosts};
use super::shortest::{Classes, HopClasses, Progress, no_path};
use super::table::{Arcs, BlockTable, BlockTableBuilder, Destinations, Edge, edges};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use crate::registry::Member;
use crate::rng::split_mix;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Takes one of the links on a path of least cost to the destination; parallel links count each, in the order of their ports. `metric` says
/// what costs: unless it is given, packets take the fewest hops, and among equal paths those inside nodes.
///
/// With `policy = "flow-hash"` a hash of source, destination and flow decides, so that all packets of a flow take one path; `random` draws a link
/// for each packet (which may overtake others), and with `round-robin` each source sends its packets over all paths in turn. (The flow engine
/// knows messages and no packets: each message of a workload takes one of these paths.) After links have failed (`[faults]`) all links that are left on shortest paths share the traffic
/// equally, although some lead to where less capacity is left: `weights = "capacity"` divides it by that.
///
/// Virtual channels are divided by hops where the topology asks for it, as with `minimal`: a tree needs one, on a ring or a mesh packets can
/// wait for each other unless `classes = "hop"`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ecmp {
    /// What makes paths equal.
    #[serde(default)]
    pub metric: Metric,
    /// Who decides among the links.
    #[serde(default)]
    pub policy: EcmpPolicy,
    /// What each router adds to the key of a flow before it hashes it.
    #[serde(default)]
    pub salt: Salt,
    /// The seed of the routers' salts.
    #[serde(default = "one")]
    pub salt_seed: u32,
    /// Flows between each two terminals, 1 to 65536: a packet (in the flow engine a message) belongs to one of them, drawn at its source.
    #[serde(default = "one")]
    pub flows: u32,
    /// How the links share the traffic.
    #[serde(default)]
    pub weights: Weights,
    /// Entries of the table in which a router notes weights, as many for each link as its weight says, 1 to 1024. Without it `flow-hash` takes
    /// weights as they are, and `random` the smallest table of at most 64 that has them exactly, else 64.
    #[serde(default)]
    pub entries: Option<u32>,
    /// How the virtual channels are divided among the hops.
    #[serde(default)]
    pub classes: Classes,
}

fn one() -> u32 {
    1
}

/// Who decides among links of equal cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcmpPolicy {
    /// A hash of source, destination and number of the flow.
    #[default]
    FlowHash,
    /// Chance, for each packet at each router.
    Random,
    /// The source, which takes all paths in turn, packet by packet (in the flow engine message by message): the links of the first router one
    /// after the other, with each round another one of the second router, and so on. Sources begin at different paths, unless
    /// `salt = "none"`.
    RoundRobin,
}

/// What routers add to a flow's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Salt {
    /// Nothing: every router has the same hash, so that the routers behind the first use a part of their links only (polarisation).
    None,
    /// A number of each router's own.
    #[default]
    Router,
}

/// How links of equal cost share the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// Equally.
    #[default]
    Equal,
    /// By what can go to the destination over each: its own rate, or its part of what leads on from the router behind it, if that is less.
    Capacity,
}

/// Entries of a table of weights without a size of its own, at most.
const MOST_UNASKED: u32 = 64;

/// The most entries of a table of weights.
const MOST_ENTRIES: u32 = 1024;

/// The most flows of a pair: the number has 16 bits in the key.
const MOST_FLOWS: u32 = 1 << 16;

impl Member for Ecmp {
    const NAME: &'static str = "ecmp";
    const SUMMARY: &'static str =
        "any network: links of equal cost share the traffic, by a hash of the flow or by chance; weights after failures";
    const SOURCE: &'static str =
        "Hopps, Analysis of an Equal-Cost Multi-Path Algorithm, RFC 2992 (2000); weights: Zhou et al., WCMP, EuroSys 2014";
    const EXAMPLE: &'static str = "policy = \"flow-hash\"\nsalt = \"router\"";
}

impl RoutingAlgorithm for Ecmp {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        self.check()?;
        let destinations = Destinations::of(network);
        let (table, diameter) = self.table(network, &destinations)?;
        let hops_per_class = self.classes.hops_per_class(network);
        let classes = HopClasses::new(hops_per_class, &[diameter]);
        if classes.count > 1 << (Progress::BITS / 2) {
            let problem = format!("its longest routes need {} classes of virtual channels; take classes = \"none\"", classes.count);
            return Err(RoutingError::Mismatch { routing: Self::NAME, network: network.name().to_owned(), problem });
        }
        // Topologies promise it for routes that leave their group once; those that are merely short may do so twice.
        let is_safe = hops_per_class.is_some_and(|hops| hops == 1 || network.labels().router("group").is_none());
        let salts = (0..network.router_count()).map(|router| self.salt_of(RouterId(router))).collect();
        let begins_apart = self.salt == Salt::Router;
        Ok(Box::new(Compiled { policy: self.policy, flows: self.flows, begins_apart, salts, is_safe, classes, destinations, table }))
    }

    fn most_table_bytes(&self, network: &Network) -> u64 {
        BlockTable::most_bytes(network.router_count().into(), Destinations::count(network))
    }
}

impl Ecmp {
    fn check(&self) -> Result<(), RoutingError> {
        let wrong = |key: &str, problem: String| Err(RoutingError::Parameter { key: key.to_owned(), problem });
        if !(1..=MOST_FLOWS).contains(&self.flows) {
            return wrong("flows", format!("is {}; it must be from 1 to {MOST_FLOWS}", self.flows));
        }
        match self.entries {
            Some(entries) if !(1..=MOST_ENTRIES).contains(&entries) => {
                wrong("entries", format!("is {entries}; it must be from 1 to {MOST_ENTRIES}"))
            }
            Some(_) if self.weights == Weights::Equal => wrong(
                "entries",
                "is the size of a table of weights, and weights = \"equal\" needs none; leave one of the two out".to_owned(),
            ),
            _ => Ok(()),
        }
    }

    fn salt_of(&self, router: RouterId) -> u64 {
        match self.salt {
            Salt::None => 0,
            Salt::Router => mix(u64::from(self.salt_seed).wrapping_add(router.0.into())),
        }
    }

    /// The links towards all destinations, and the hops of the longest route.
    fn table(&self, network: &Network, destinations: &Destinations) -> Result<(LinkTable, u32), RoutingError> {
        let routers = network.router_count() as usize;
        let edges = edges(network);
        let costs = PathCosts::new(network, self.metric, false);
        let arcs: Vec<_> = edges.iter().map(|edge| (edge.from.0, edge.to.0, costs.of(edge))).collect();
        let incoming = Arcs::new(routers, &arcs);
        let mut leaving: Vec<Vec<Edge>> = vec![Vec::new(); routers];
        edges.iter().for_each(|edge| leaving[edge.from.index()].push(*edge));
        leaving.iter_mut().for_each(|edges| edges.sort_unstable_by_key(|edge| edge.port));
        let sources: Vec<RouterId> = (0..network.terminal_count()).map(|terminal| network.injection_port(TerminalId(terminal)).0).collect();
        let mut table = LinkTableBuilder::new(routers, destinations.routers.len());
        let mut diameter = 0;
        for (column, target) in destinations.routers.iter().enumerate() {
            let distance = incoming.distances_to(&[target.0]);
            if let Some(source) = sources.iter().position(|router| distance[router.index()] == u64::MAX) {
                let destination = destinations.terminals.iter().position(|place| place.column as usize == column).unwrap_or_default();
                let (source, destination) = (TerminalId(source as u32), TerminalId(destination as u32));
                return Err(no_path(Self::NAME, network, source, &network.terminal_name(destination)));
            }
            diameter = sources.iter().map(|router| costs.hops(distance[router.index()])).fold(diameter, u32::max);
            let nearer = |edge: &&Edge| distance[edge.to.index()].checked_add(costs.of(edge)) == Some(distance[edge.from.index()]);
            let links: Vec<Vec<Edge>> = leaving.iter().map(|edges| edges.iter().filter(nearer).copied().collect()).collect();
            let weights = match self.weights {
                Weights::Equal => Vec::new(),
                Weights::Capacity => capacities(network, &links, &distance),
            };
            for (router, links) in links.iter().enumerate() {
                let ports: Vec<Port> = links.iter().map(|edge| edge.port).collect();
                let weights = weights.get(router).map_or(&[][..], Vec::as_slice);
                let (ports, cumulative) = self.shares(&ports, weights);
                table.set(router, column, ports, &cumulative);
            }
        }
        Ok((table.finish(), diameter))
    }

    /// The links as a router keeps them: each once with the sum of weights up to it, or as often as its weight says.
    fn shares(&self, ports: &[Port], weights: &[f64]) -> (Vec<Port>, Vec<f64>) {
        if weights.windows(2).all(|pair| pair[0] == pair[1]) {
            return (ports.to_vec(), Vec::new());
        }
        let entries = match (self.entries, self.policy) {
            (None, EcmpPolicy::FlowHash) => {
                let sums = weights.iter().scan(0.0, |sum, weight| {
                    *sum += weight;
                    Some(*sum)
                });
                return (ports.to_vec(), sums.collect());
            }
            (None, EcmpPolicy::Random | EcmpPolicy::RoundRobin) => {
                exact_entries(weights).unwrap_or_else(|| rounded_entries(weights, MOST_UNASKED))
            }
            (Some(entries), _) => rounded_entries(weights, entries),
        };
        let repeated = ports.iter().zip(entries).flat_map(|(&port, times)| std::iter::repeat_n(port, times as usize));
        (repeated.collect(), Vec::new())
    }
}

/// By router: the weight of each of its links towards a destination. What a router can pass on is the sum of these; a link has its own rate, or
/// its part, by rates, of what the router behind it can pass on.
fn capacities(network: &Network, links: &[Vec<Edge>], distance: &[u64]) -> Vec<Vec<f64>> {
    let rate = |edge: &Edge| 1.0 / f64::from(network.link(edge.channel).period);
    let mut order: Vec<usize> = (0..links.len()).filter(|&router| distance[router] != u64::MAX).collect();
    order.sort_by_key(|&router| distance[router]);
    let mut passed_on = vec![0.0; links.len()];
    let mut weights = vec![Vec::new(); links.len()];
    for router in order {
        if distance[router] == 0 {
            passed_on[router] = f64::INFINITY;
            continue;
        }
        let mut to_each: BTreeMap<RouterId, f64> = BTreeMap::new();
        links[router].iter().for_each(|edge| *to_each.entry(edge.to).or_default() += rate(edge));
        let weight = |edge: &Edge| rate(edge).min(passed_on[edge.to.index()] * rate(edge) / to_each[&edge.to]);
        let of_router: Vec<f64> = links[router].iter().map(weight).collect();
        passed_on[router] = of_router.iter().sum();
        weights[router] = of_router;
    }
    weights
}

/// The fewest entries, of at most [`MOST_UNASKED`], that stand to each other as the weights do.
fn exact_entries(weights: &[f64]) -> Option<Vec<u32>> {
    let total: f64 = weights.iter().sum();
    let is_whole = |share: f64| (share - share.round()).abs() < 1e-9;
    let sizes = weights.len() as u32..=MOST_UNASKED;
    let size = sizes.map(f64::from).find(|size| weights.iter().all(|weight| is_whole(weight * size / total)))?;
    Some(weights.iter().map(|weight| (weight * size / total).round() as u32).collect())
}

/// So many entries by the largest remainder, of equal ones the lower port's first; at least one for each weight that is not 0, as long as there are
/// enough.
fn rounded_entries(weights: &[f64], entries: u32) -> Vec<u32> {
    let total: f64 = weights.iter().sum();
    let exact: Vec<f64> = weights.iter().map(|weight| weight * f64::from(entries) / total).collect();
    let mut counts: Vec<u32> = exact.iter().map(|share| (share + 1e-9).floor() as u32).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    let remainder = |place: usize| ((exact[place] - exact[place].floor()) * 1e9).round() as u64 % 1_000_000_000;
    by_remainder.sort_by_key(|&place| (std::cmp::Reverse(remainder(place)), place));
    let missing = entries.saturating_sub(counts.iter().sum()) as usize;
    by_remainder.iter().take(missing).for_each(|&place| counts[place] += 1);
    for place in 0..counts.len() {
        let richest = (0..counts.len()).max_by_key(|&other| (counts[other], std::cmp::Reverse(other)));
        if let Some(richest) = richest.filter(|&other| counts[place] == 0 && weights[place] > 0.0 && counts[other] > 1) {
            counts[richest] -= 1;
            counts[place] += 1;
        }
    }
    counts
}

/// SplitMix64's output function, without the step before it.
fn mix(word: u64) -> u64 {
    split_mix(word.wrapping_sub(0x9e37_79b9_7f4a_7c15))
}

/// The key of a flow.
fn flow_key(source: TerminalId, destination: TerminalId, flow: u32) -> u64 {
    mix(u64::from(source.0) << 40 ^ u64::from(destination.0) << 16 ^ u64::from(flow))
}

/// Where in `0..links` a router's hash of a flow lies.
fn place_of(hash: u64, links: usize) -> usize {
    ((u128::from(hash) * links as u128) >> 64) as usize
}

/// By router and column of the destination: links in the order of ports, a link several times where it has several entries, with the sums of the
/// weights up to each where they are not equal.
#[derive(Debug)]
struct LinkTable {
    set: BlockTable,
    starts: Vec<u32>,
    ports: Vec<Port>,
    /// As long as `ports`, or empty: no set has weights. 0 in a set without.
    cumulative: Vec<f64>,
}

impl LinkTable {
    fn links(&self, router: RouterId, column: u32) -> (&[Port], &[f64]) {
        let set = self.set.get(router.index(), column) as usize;
        let range = self.starts[set] as usize..self.starts[set + 1] as usize;
        (&self.ports[range.clone()], &self.cumulative[range])
    }

    fn bytes(&self) -> u64 {
        self.set.bytes() + (4 * self.starts.len() + 2 * self.ports.len() + 8 * self.cumulative.len()) as u64
    }
}

/// Collects a [`LinkTable`]; equal sets are kept once.
struct LinkTableBuilder {
    set: BlockTableBuilder,
    starts: Vec<u32>,
    ports: Vec<Port>,
    cumulative: Vec<f64>,
    /// By ports and the bits of the sums.
    known: BTreeMap<(Vec<Port>, Vec<u64>), u32>,
}

impl LinkTableBuilder {
    fn new(routers: usize, columns: usize) -> Self {
        let known = BTreeMap::from([((Vec::new(), Vec::new()), 0)]);
        let set = BlockTableBuilder::new(routers, columns);
        Self { set, starts: vec![0, 0], ports: Vec::new(), cumulative: Vec::new(), known }
    }

    fn set(&mut self, router: usize, column: usize, ports: Vec<Port>, cumulative: &[f64]) {
        let bits = cumulative.iter().map(|sum| sum.to_bits()).collect();
        let next = self.starts.len() as u32 - 1;
        let number = *self.known.entry((ports, bits)).or_insert_with_key(|(ports, _)| {
            self.ports.extend_from_slice(ports);
            self.cumulative.extend_from_slice(cumulative);
            self.cumulative.resize(self.ports.len(), 0.0);
            self.starts.push(self.ports.len() as u32);
            next
        });
        self.set.set(router, column, number);
    }

    fn finish(self) -> LinkTable {
        LinkTable { set: self.set.finish(), starts: self.starts, ports: self.ports, cumulative: self.cumulative }
    }
}

#[derive(Debug)]
struct Compiled {
    policy: EcmpPolicy,
    flows: u32,
    /// Do sources begin at different paths?
    begins_apart: bool,
    /// By router.
    salts: Vec<u64>,
    is_safe: bool,
    classes: HopClasses,
    destinations: Destinations,
    table: LinkTable,
}

/// The number of the flow, or one more than its turn, stands above the progress in a packet's state.
const FLOW_SHIFT: u32 = Progress::BITS;

/// After so many packets a source begins anew. All numbers of links up to 16 but 11 go into it, so that the turns go on as they would.
const TURNS: u32 = 65_520;

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: self.classes.count,
            reads: {
                let hashes = self.policy == EcmpPolicy::FlowHash;
                let turns = self.policy == EcmpPolicy::RoundRobin;
                Reads { source: hashes || turns && self.begins_apart, terminal: hashes, ..Reads::DESTINATION_ROUTER }
            },
            is_deadlock_free: self.is_safe,
            searches_paths: true,
            observes_congestion: false,
            spreading_key: if self.policy == EcmpPolicy::FlowHash { "routing.flows" } else { "routing.policy" },
            table_bytes: self.table.bytes(),
            build_peak_bytes: self.table.set.build_peak_bytes() + self.table.bytes() - self.table.set.bytes(),
            ..RoutingFacts::default()
        }
    }

    fn initial_state(&self, source: TerminalId, _destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        match self.policy {
            EcmpPolicy::FlowHash if self.flows > 1 => choice.uniform(self.flows) << FLOW_SHIFT,
            EcmpPolicy::RoundRobin => choice.serial().map_or(0, |serial| (1 + self.turn(source, serial)) << FLOW_SHIFT),
            _ => 0,
        }
    }

    /// Any link of equal cost serves a packet that draws among them; not where hops have classes, which only `route` counts.
    fn accepts(&self, hop: &Hop, _state: u32, port: Port) -> Option<VirtualChannels> {
        let destination = self.destinations.terminals[hop.destination.index()];
        let may_choose = self.policy == EcmpPolicy::Random && self.classes.count == 1 && destination.router != hop.router;
        let (ports, _) = self.table.links(hop.router, destination.column);
        (may_choose && ports.contains(&port)).then_some(hop.available)
    }

    /// The state is the number of the flow, or what is left of the turn, and the progress in the classes.
    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let destination = self.destinations.terminals[hop.destination.index()];
        if destination.router == hop.router {
            candidates.push(Candidate::new(destination.port, hop.available));
            return;
        }
        let (ports, cumulative) = self.table.links(hop.router, destination.column);
        let mut of_flow = *state >> FLOW_SHIFT;
        let place = match (self.policy, ports.len()) {
            (_, 0) => return,
            (EcmpPolicy::RoundRobin, entries) if of_flow > 0 => {
                let (turn, entries) = (of_flow - 1, entries as u32);
                of_flow = 1 + turn / entries;
                (turn % entries) as usize
            }
            // Who does not know which packet this is knows that each link is as likely.
            (EcmpPolicy::Random | EcmpPolicy::RoundRobin, entries) => choice.uniform(entries as u32) as usize,
            (EcmpPolicy::FlowHash, entries) => {
                let key = flow_key(hop.source, hop.destination, *state >> FLOW_SHIFT);
                let hash = mix(key.wrapping_add(self.salts[hop.router.index()]));
                weighted_place(hash, cumulative).unwrap_or_else(|| place_of(hash, entries))
            }
        };
        candidates.push(Candidate::new(ports[place], self.channels(hop, *state)));
        let progress = self.progress(*state);
        *state = of_flow << FLOW_SHIFT | self.classes.after_hop(progress).pack();
    }
}

/// Where a hash lies among the sums of weights, if there are some.
fn weighted_place(hash: u64, cumulative: &[f64]) -> Option<usize> {
    let total = cumulative.last().copied().filter(|&total| total > 0.0)?;
    // 53 bits of the hash, below 1.
    let point = (hash >> 11) as f64 / (1u64 << 53) as f64 * total;
    Some(cumulative.partition_point(|&sum| sum <= point).min(cumulative.len() - 1))
}

impl Compiled {
    fn progress(&self, state: u32) -> Progress {
        Progress::unpack(state & ((1 << FLOW_SHIFT) - 1))
    }

    fn channels(&self, hop: &Hop, state: u32) -> VirtualChannels {
        self.classes.channels(hop.available, self.progress(state))
    }

    /// Which of its turns a packet of a source has.
    fn turn(&self, source: TerminalId, serial: u32) -> u32 {
        let first = if self.begins_apart { (mix(u64::from(source.0)) % u64::from(TURNS)) as u32 } else { 0 };
        (first + serial % TURNS) % TURNS
    }
}

#[cfg(test)]
mod tests;
