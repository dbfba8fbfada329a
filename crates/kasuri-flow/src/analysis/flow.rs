//! What flows where: the pattern's probabilities on the graph of all routes.

use super::AnalysisError;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use kasuri_network::network::NONE;
use kasuri_network::routing::walk::{DELIVERED, Routes, Walker};
use kasuri_workload::traffic::PacketSizes;
use kasuri_workload::traffic::pattern::Pattern;

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
    virtual_channels: kasuri_network::routing::VirtualChannels,
    /// Packets per sending terminal and cycle, when all classes together offer one flit per terminal and cycle.
    pub(super) rate: f64,
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
        kinds.push(Packets { pattern, reversed: false, sizes: &class.sizes, virtual_channels: class.virtual_channels, rate });
        if let Some(reply) = &class.reply {
            kinds.push(Packets { pattern, reversed: true, sizes: &reply.sizes, virtual_channels: reply.virtual_channels, rate });
        }
    }
    kinds
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
    fn of(packets: &Packets<'_>, walker: &Walker<'_>, terminals: u32) -> Result<(Self, Vec<TerminalId>), AnalysisError> {
        let (representatives, group_of_destination) = walker.destination_groups();
        let group_of_source = walker.group_of();
        let looked = looked_terminals(packets.pattern, terminals);
        // A sample stands for all: what it sends is scaled up.
        let scale = f64::from(terminals) / looked.len() as f64;
        let groups_of = |of: &[u32]| looked.clone().map(|terminal| of[terminal.index()]).collect::<Vec<_>>().into_iter();
        let sources = Looked::at(walker.group_count(), (!packets.reversed).then(|| groups_of(group_of_source)));
        let destinations = Looked::at(representatives.len(), packets.reversed.then(|| groups_of(&group_of_destination)));
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
                let (from, to) = if packets.reversed { (other, one) } else { (one, other) };
                let weight = weight * share * scale;
                demand.sent[from.index()] += weight;
                demand.to_self += if from == to { weight } else { 0.0 };
                demand.received[to.index()] += weight;
                let (row, column) = (group_of_destination[to.index()] as usize, group_of_source[from.index()] as usize);
                let row = demand.destinations.number_of[row] as usize;
                let column = demand.sources.number_of[column] as usize;
                demand.between[row * demand.sources.count + column] += weight;
            }
        }
        Ok((demand, representatives))
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
}

impl Flow<'_> {
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
    mut visit: impl FnMut(&Flow<'_>),
) -> Result<(Demand, f64), AnalysisError> {
    let mut walker = Walker::new(&scenario.network, scenario.routing.as_ref(), packets.virtual_channels);
    if congestion == Congestion::None {
        walker = walker.idle();
    }
    let (demand, destinations) = Demand::of(packets, &walker, scenario.network.terminal_count())?;
    let wanted: Vec<usize> = (0..destinations.len()).filter(|&index| demand.to(index).iter().any(|&weight| weight > 0.0)).collect();
    let (mut routes, mut visited, mut sample) = (Routes::default(), 0.0, wanted.len());
    let mut index = 0;
    while index < sample {
        let destination = wanted[index * wanted.len() / sample];
        let to = destinations[destination];
        walker.walk(to, &mut routes).map_err(|lost| AnalysisError::Lost { from: lost.source, to, problem: lost.problem })?;
        let order = routes
            .order()
            .map_err(|cycle| AnalysisError::Circular { destination: to, router: routes.places[cycle[0] as usize].hop.router })?;
        let mut beginning = vec![0.0; routes.places.len()];
        for start in &routes.starts {
            let source = demand.sources.number(start.group as usize);
            beginning[start.place as usize] += source.map_or(0.0, |source| demand.to(destination)[source]) * start.probability;
        }
        visited += demand.to(destination).iter().sum::<f64>() * routes.share;
        visit(&Flow { routes: &routes, order: &order, beginning });
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
