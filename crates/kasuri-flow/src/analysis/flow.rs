//! What flows where: the pattern's probabilities on the graph of all routes.

use super::AnalysisError;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use kasuri_network::network::{NONE, Network};
use kasuri_network::routing::VirtualChannels;
use kasuri_network::routing::walk::{DELIVERED, Routes, Step, Walker};
use kasuri_workload::traffic::PacketSizes;
use kasuri_workload::traffic::pattern::Pattern;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

/// Pairs of terminals that are looked at before a sample of the sources is taken.
const PAIR_BUDGET: u64 = 20_000_000;

/// Places and steps of routes that are walked before a sample of the destinations is taken.
const STEP_BUDGET: u64 = 8_000_000;

/// Pairs of groups of terminals whose traffic is kept: 1 GiB of numbers.
const MAX_PAIRS: u64 = 1 << 27;

/// Packets of one kind: the requests of a class, or the replies to them.
pub(super) struct Packets<'a> {
    pattern: &'a dyn Pattern,
    /// Replies go from the pattern's destinations to its sources.
    reversed: bool,
    pub(super) sizes: &'a PacketSizes,
    virtual_channels: VirtualChannels,
    /// Packets per sending terminal and cycle, when all classes together offer one flit per terminal and cycle.
    pub(super) rate: f64,
    /// Cycles from their creation until they may leave: a terminal takes them to make a reply.
    pub(super) delay: u32,
}

/// The kinds of packets of a scenario.
pub(super) fn packets(scenario: &Scenario) -> Vec<Packets<'_>> {
    // A closed workload tells no load: its classes count alike.
    let load = |load: f64| if load > 0.0 { load } else { f64::MIN_POSITIVE };
    let total: f64 = scenario.classes.iter().map(|class| load(class.load)).sum();
    let mut kinds = Vec::new();
    for class in &scenario.classes {
        let rate = load(class.load) / total / class.sizes.mean();
        let pattern = class.pattern.as_ref();
        kinds.push(Packets { pattern, reversed: false, sizes: &class.sizes, virtual_channels: class.virtual_channels, rate, delay: 0 });
        if let Some(reply) = &class.reply {
            let (virtual_channels, delay) = (reply.virtual_channels, reply.delay);
            kinds.push(Packets { pattern, reversed: true, sizes: &reply.sizes, virtual_channels, rate, delay });
        }
    }
    kinds
}

/// Which terminals of a router count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Terminals with the same routes.
    ByRoute,
    /// Terminals with the same routes and equally fast channels.
    ByRouteAndLink,
}

/// Groups of terminals: the groups of a walker, whole or divided by the links of channels.
struct Groups {
    /// The group of each terminal.
    of: Vec<u32>,
    /// The number of the link of each group's channels.
    link: Vec<u32>,
    /// The groups of each group of the walker.
    begin: Vec<u32>,
}

impl Groups {
    /// Divides `count` groups of a walker by the link numbers of their terminals.
    fn divide(of_walker: &[u32], count: usize, ends: Ends, link_of: impl Fn(TerminalId) -> u32) -> Self {
        let terminals = || (0..of_walker.len() as u32).map(TerminalId);
        let key = |terminal: TerminalId| {
            let link = if ends == Ends::ByRouteAndLink { link_of(terminal) } else { 0 };
            (of_walker[terminal.index()], link)
        };
        let mut numbers: BTreeMap<(u32, u32), u32> = terminals().map(|terminal| (key(terminal), 0)).collect();
        let mut begin = vec![0; count + 1];
        for (number, (&(walked, _), place)) in numbers.iter_mut().enumerate() {
            *place = number as u32;
            begin[walked as usize + 1] = number as u32 + 1;
        }
        (1..begin.len()).for_each(|group| begin[group] = begin[group].max(begin[group - 1]));
        Self {
            of: terminals().map(|terminal| numbers[&key(terminal)]).collect(),
            link: numbers.keys().map(|&(_, link)| link).collect(),
            begin,
        }
    }

    fn count(&self) -> usize {
        self.link.len()
    }

    /// The groups of one group of the walker.
    fn within(&self, walked: usize) -> Range<usize> {
        self.begin[walked] as usize..self.begin[walked + 1] as usize
    }
}

/// Groups of terminals that are looked at, numbered anew in their order.
struct Looked {
    /// By group: its new number, or `NONE`.
    number_of: Vec<u32>,
    count: usize,
}

impl Looked {
    /// All of `groups`, or those alone that occur among `some`.
    fn at(groups: usize, some: Option<impl Iterator<Item = u32>>) -> Self {
        let Some(some) = some else { return Self { number_of: (0..groups as u32).collect(), count: groups } };
        let mut number_of = vec![NONE; groups];
        some.for_each(|group| number_of[group as usize] = 0);
        let mut count = 0;
        for number in number_of.iter_mut().filter(|number| **number != NONE) {
            *number = count;
            count += 1;
        }
        Self { number_of, count: count as usize }
    }

    fn number(&self, group: usize) -> Option<usize> {
        Some(self.number_of[group]).filter(|&number| number != NONE).map(|number| number as usize)
    }
}

/// Of so many terminals those whose pattern is looked at, evenly spaced: the first tells how many pairs one has.
fn looked_terminals(pattern: &dyn Pattern, terminals: u32) -> impl ExactSizeIterator<Item = TerminalId> + Clone + use<> {
    let each = pattern.weights(TerminalId(0)).len().max(1) as u64;
    let looked = (PAIR_BUDGET / each).clamp(1, u64::from(terminals)) as u32;
    (0..looked).map(move |index| TerminalId((u64::from(index) * u64::from(terminals) / u64::from(looked)) as u32))
}

/// Bytes of the demand between so many groups of sources and of destinations.
pub(super) fn demand_bytes(pattern: &dyn Pattern, terminals: u32, reversed: bool, sources: u64, destinations: u64) -> u64 {
    let looked = looked_terminals(pattern, terminals).len() as u64;
    let (sources, destinations) = if reversed { (sources, destinations.min(looked)) } else { (sources.min(looked), destinations) };
    8 * sources * destinations
}

/// How much goes from where to where, in packets of one kind per `rate`.
pub(super) struct Demand {
    /// Shape `[destination groups, source groups]`, of those that are looked at.
    between: Vec<f64>,
    sources: Looked,
    destinations: Looked,
    /// What each terminal sends.
    pub(super) sent: Vec<f64>,
    /// What each terminal receives.
    pub(super) received: Vec<f64>,
    /// What all terminals send to themselves.
    pub(super) to_self: f64,
    /// The part of the sources that was looked at; 1 is all.
    pub(super) share: f64,
}

impl Demand {
    /// # Errors
    /// There are too many pairs of groups.
    fn of(packets: &Packets<'_>, terminals: u32, from: &Groups, to: &Groups) -> Result<Self, AnalysisError> {
        let looked = looked_terminals(packets.pattern, terminals);
        // A sample stands for all: what it sends is scaled up.
        let scale = f64::from(terminals) / looked.len() as f64;
        let groups_of = |of: &[u32]| looked.clone().map(|terminal| of[terminal.index()]).collect::<Vec<_>>().into_iter();
        let sources = Looked::at(from.count(), (!packets.reversed).then(|| groups_of(&from.of)));
        let destinations = Looked::at(to.count(), packets.reversed.then(|| groups_of(&to.of)));
        if sources.count as u64 * destinations.count as u64 > MAX_PAIRS {
            return Err(AnalysisError::TooLarge { sources: sources.count, destinations: destinations.count });
        }
        let mut demand = Self {
            between: vec![0.0; destinations.count * sources.count],
            sent: vec![0.0; terminals as usize],
            received: vec![0.0; terminals as usize],
            to_self: 0.0,
            share: 1.0 / scale,
            sources,
            destinations,
        };
        for one in looked {
            let share = packets.pattern.share(one);
            for (other, weight) in packets.pattern.weights(one) {
                let (source, destination) = if packets.reversed { (other, one) } else { (one, other) };
                let weight = weight * share * scale;
                demand.sent[source.index()] += weight;
                demand.to_self += if source == destination { weight } else { 0.0 };
                demand.received[destination.index()] += weight;
                let (row, column) = (to.of[destination.index()] as usize, from.of[source.index()] as usize);
                let row = demand.destinations.number_of[row] as usize;
                let column = demand.sources.number_of[column] as usize;
                demand.between[row * demand.sources.count + column] += weight;
            }
        }
        Ok(demand)
    }

    /// What goes to a group of destinations, by the groups of sources that are looked at.
    fn to(&self, destination: usize) -> &[f64] {
        let sources = self.sources.count;
        self.destinations.number(destination).map_or(&[], |row| &self.between[row * sources..][..sources])
    }

    /// Everything that is sent.
    pub(super) fn total(&self) -> f64 {
        self.sent.iter().sum()
    }
}

/// Packets on their way to one destination.
pub(super) struct Flow<'a> {
    pub(super) routes: &'a Routes,
    /// The places in an order in which every step leads forwards.
    pub(super) order: &'a [u32],
    /// What begins at each place, in packets of this kind.
    pub(super) beginning: Vec<f64>,
    /// The same by the link of the injection channel: place, number of the link, packets.
    pub(super) entering: Vec<(u32, u32, f64)>,
    /// The number of the link of the ejection channel.
    ejection: u32,
}

impl<'a> Flow<'a> {
    fn new(routes: &'a Routes, order: &'a [u32], entering: Vec<(u32, u32, f64)>, ejection: u32) -> Self {
        let mut beginning = vec![0.0; routes.places.len()];
        entering.iter().for_each(|&(place, _, packets)| beginning[place as usize] += packets);
        Self { routes, order, beginning, entering, ejection }
    }

    /// The number of the link that a step takes, if terminals of a router are divided [by their links](Ends::ByRouteAndLink).
    pub(super) fn link(&self, network: &Network, step: &Step) -> u32 {
        // The routes lead to one terminal, but the destinations may be others, with other channels.
        if step.to == DELIVERED { self.ejection } else { network.link_number(step.channel) }
    }

    /// What comes through each place, whether it begins there or arrives.
    pub(super) fn through(&self) -> Vec<f64> {
        let mut through = self.beginning.clone();
        for &place in self.order {
            for step in self.routes.steps_of(place).iter().filter(|step| step.to != DELIVERED) {
                through[step.to as usize] += through[place as usize] * step.probability;
            }
        }
        through
    }
}

/// What choices by congestion find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Congestion {
    /// Nothing is known of it: all alternatives are equally likely.
    Unknown,
    /// Every buffer is empty.
    None,
}

/// Calls `visit` with the flow to each destination, or to an evenly spaced sample of them. The answer is the demand and the
/// part of it that was visited.
pub(super) fn for_each_flow(
    scenario: &Scenario,
    packets: &Packets<'_>,
    congestion: Congestion,
    ends: Ends,
    mut visit: impl FnMut(&Flow<'_>),
) -> Result<(Demand, f64), AnalysisError> {
    let network = &*scenario.network;
    let mut walker = Walker::new(network, scenario.routing.as_ref(), packets.virtual_channels);
    if congestion == Congestion::None {
        walker = walker.idle();
    }
    let (destinations, of_destination) = walker.destination_groups();
    let (from, to) = groups(network, &walker, ends, destinations.len(), &of_destination);
    let demand = Demand::of(packets, network.terminal_count(), &from, &to)?;
    let is_wanted = |walked: &usize| to.within(*walked).any(|group| demand.to(group).iter().any(|&weight| weight > 0.0));
    let wanted: Vec<usize> = (0..destinations.len()).filter(is_wanted).collect();
    let (mut routes, mut visited, mut sample) = (Routes::default(), 0.0, wanted.len());
    let mut index = 0;
    while index < sample {
        let walked = wanted[index * wanted.len() / sample];
        let order = walk(&mut walker, destinations[walked], &mut routes)?;
        for group in to.within(walked).filter(|&group| demand.to(group).iter().any(|&weight| weight > 0.0)) {
            let row = demand.to(group);
            let entering = entering(&routes, &from, &|source| demand.sources.number(source).map(|column| row[column]));
            visited += row.iter().sum::<f64>() * routes.share;
            visit(&Flow::new(&routes, &order, entering, to.link[group]));
        }
        if index == 0 {
            // The first destination tells what one costs.
            let cost = (routes.places.len() + routes.steps.len()) as u64;
            sample = sample.min((STEP_BUDGET / cost.max(1)).max(1) as usize);
        }
        index += 1;
    }
    let share = if demand.total() > 0.0 { visited / demand.total() } else { 0.0 };
    Ok((demand, share))
}

/// Calls `visit` with the flow to each destination of an all-to-all in which each of `terminals` sends a packet to each other one, until it
/// breaks.
pub(super) fn for_each_exchange(
    scenario: &Scenario,
    virtual_channels: VirtualChannels,
    terminals: &[TerminalId],
    mut visit: impl FnMut(&Flow<'_>) -> ControlFlow<()>,
) -> Result<(), AnalysisError> {
    let network = &*scenario.network;
    let mut walker = Walker::new(network, scenario.routing.as_ref(), virtual_channels).idle();
    let (destinations, of_destination) = walker.destination_groups();
    let (from, to) = groups(network, &walker, Ends::ByRouteAndLink, destinations.len(), &of_destination);
    let mut senders = vec![0.0; from.count()];
    let mut receivers = vec![Vec::new(); to.count()];
    for terminal in terminals {
        senders[from.of[terminal.index()] as usize] += 1.0;
        receivers[to.of[terminal.index()] as usize].push(*terminal);
    }
    let mut routes = Routes::default();
    for (walked, &destination) in destinations.iter().enumerate() {
        let groups = || to.within(walked).filter(|&group| !receivers[group].is_empty());
        if groups().next().is_none() {
            continue;
        }
        let order = walk(&mut walker, destination, &mut routes)?;
        for group in groups() {
            let mut packets: Vec<f64> = senders.iter().map(|count| count * receivers[group].len() as f64).collect();
            // No terminal sends to itself.
            receivers[group].iter().for_each(|terminal| packets[from.of[terminal.index()] as usize] -= 1.0);
            let entering = entering(&routes, &from, &|source| Some(packets[source]));
            if visit(&Flow::new(&routes, &order, entering, to.link[group])).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The groups of sources and of destinations.
fn groups(network: &Network, walker: &Walker<'_>, ends: Ends, destinations: usize, of_destination: &[u32]) -> (Groups, Groups) {
    let from =
        Groups::divide(walker.group_of(), walker.group_count(), ends, |terminal| network.link_number(network.injection_channel(terminal)));
    let to = Groups::divide(of_destination, destinations, ends, |terminal| network.link_number(network.ejection_channel(terminal)));
    (from, to)
}

/// Walks the routes to a destination. The answer is the order of their places.
fn walk(walker: &mut Walker<'_>, to: TerminalId, routes: &mut Routes) -> Result<Vec<u32>, AnalysisError> {
    walker.walk(to, routes).map_err(|lost| AnalysisError::Lost { from: lost.source, to, problem: lost.problem })?;
    routes.order().map_err(|cycle| AnalysisError::Circular { destination: to, router: routes.places[cycle[0] as usize].hop.router })
}

/// Where packets to a group of destinations enter the network, by the link of their injection channel. `sent` gives the packets of each
/// group of sources, if it is counted.
fn entering(routes: &Routes, from: &Groups, sent: &dyn Fn(usize) -> Option<f64>) -> Vec<(u32, u32, f64)> {
    let of_start = routes.starts.iter().flat_map(|start| from.within(start.group as usize).map(move |group| (start, group)));
    of_start.filter_map(|(start, group)| Some((start.place, from.link[group], sent(group)? * start.probability))).collect()
}
