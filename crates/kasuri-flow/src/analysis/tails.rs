//! Mean cycles from the head to the tail of a lone packet, over all paths of a flow of packets.
//!
//! Stored packets pay for their length on each channel, so the periods of the channels add up. Packets that stream without a pause for
//! credits follow the slowest channel: over stages of periods p, each but the first delaying only the head by D cycles, the tail of M flits
//! is max over s of `(M - 1) p_s - D (stages after s)` later than its head, as `crate::lone` has it for one packet. Both follow from the
//! recurrence that [`lone_packet_latency`] computes flit by flit. Packets that are longer than a buffer are followed flit by flit, once for
//! each sequence of links.
//!
//! Routes to a destination are a graph, which is read backwards: each place has a distribution over the *endings* of the paths from it.
//! Endings that cost packets the same are one.

use super::flow::Flow;
use super::lone_packet::{LonePacket, lone_packet_latency};
use kasuri_model::router::Switching;
use kasuri_model::scenario::Scenario;
use kasuri_network::network::Link;
use kasuri_network::routing::walk::DELIVERED;
use kasuri_workload::traffic::PacketSizes;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

/// Endings that are kept from one destination to the next.
const MAX_ENDINGS: usize = 1 << 16;

/// Endings of all places of a destination together; beyond, the rarer ones of a place count as its most likely one.
const MAX_SPREAD: usize = 1 << 20;

/// Flits times channels that are followed for all packets that wait for credits; beyond, the rest counts as not waiting.
const MAX_FOLLOWED: u64 = 1 << 28;

/// How the length of packets counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// This period for each flit after the head, on every path.
    Uniform(u32),
    /// The periods of all channels add up.
    Stored,
    /// The slowest channels count, and their distance from the destination; each router delays only heads, by these cycles.
    Streamed(u32),
    /// All links count, in their order.
    Stalled,
}

/// The rest of a path from some place on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Streamed {
        /// Channels.
        stages: u32,
        /// Lines: cycles for each flit after the second, and cycles of the second. The tail of M flits is delayed by the greatest of them.
        lines: Vec<(u32, i64)>,
    },
    /// Numbers of its links, from the destination backwards.
    Stalled(Vec<u32>),
}

impl Ending {
    fn none(rule: Rule) -> Self {
        if rule == Rule::Stalled { Self::Stalled(Vec::new()) } else { Self::Streamed { stages: 0, lines: Vec::new() } }
    }

    /// The ending that begins one channel earlier.
    fn extended(&self, link: u32, period: u32, head_delay: u32) -> Self {
        match self {
            Self::Stalled(links) => Self::Stalled(links.iter().copied().chain([link]).collect()),
            Self::Streamed { stages, lines } => {
                let line = (period, i64::from(period) - i64::from(head_delay) * i64::from(*stages));
                let is_below = |one: &(u32, i64), other: &(u32, i64)| one.0 <= other.0 && one.1 <= other.1;
                let mut lines = lines.clone();
                if !lines.iter().any(|known| is_below(&line, known)) {
                    lines.retain(|known| !is_below(known, &line));
                    lines.push(line);
                }
                // Without a delay of heads nothing depends on the number of channels.
                Self::Streamed { stages: stages + u32::from(head_delay > 0), lines }
            }
        }
    }
}

/// The cost of a path, by the numbers of its links from the injection on.
type Cost<'a> = Box<dyn Fn(&[u32]) -> f64 + 'a>;

/// Sums over the packets of flows of a cost that depends on a packet's whole path: cycles from head to tail, or [another one](Self::costs).
pub(super) struct Tails<'a> {
    scenario: &'a Scenario,
    /// The lengths of packets, or another cost.
    sizes: Result<&'a PacketSizes, Cost<'a>>,
    rule: Rule,
    numbers: BTreeMap<Ending, u32>,
    endings: Vec<Ending>,
    /// By ending and link: the ending that begins one channel earlier.
    extended: BTreeMap<(u32, u32), u32>,
    /// By ending of whole paths: cycles.
    cycles: BTreeMap<u32, f64>,
    /// Flits times channels that have been followed.
    followed: Cell<u64>,
    /// Has any path been neglected?
    is_cut: Cell<bool>,
}

impl<'a> Tails<'a> {
    pub(super) fn new(scenario: &'a Scenario, sizes: &'a PacketSizes) -> Self {
        Self::by(scenario, rule(scenario, sizes), Ok(sizes))
    }

    /// The sums of a cost that each path has.
    pub(super) fn costs(scenario: &'a Scenario, cost: impl Fn(&[u32]) -> f64 + 'a) -> Self {
        Self::by(scenario, Rule::Stalled, Err(Box::new(cost)))
    }

    fn by(scenario: &'a Scenario, rule: Rule, sizes: Result<&'a PacketSizes, Cost<'a>>) -> Self {
        let none = Ending::none(rule);
        Self {
            scenario,
            sizes,
            rule,
            numbers: BTreeMap::from([(none.clone(), 0)]),
            endings: vec![none],
            extended: BTreeMap::new(),
            cycles: BTreeMap::new(),
            followed: Cell::new(0),
            is_cut: Cell::new(false),
        }
    }

    /// The sum over all packets of a flow.
    pub(super) fn of(&mut self, flow: &Flow<'_>, through: &[f64]) -> f64 {
        match self.rule {
            Rule::Uniform(period) => {
                let packets: f64 = flow.entering.iter().map(|&(_, _, packets)| packets).sum();
                packets * f64::from(period) * self.mean_after_head()
            }
            Rule::Stored => self.periods(flow, through) * self.mean_after_head(),
            Rule::Streamed(_) | Rule::Stalled => self.over_endings(flow),
        }
    }

    /// Mean number of flits after the head.
    fn mean_after_head(&self) -> f64 {
        self.sizes.as_ref().map_or(0.0, |sizes| sizes.mean() - 1.0)
    }

    /// The sum of the periods of all channels of all packets.
    fn periods(&self, flow: &Flow<'_>, through: &[f64]) -> f64 {
        let period = |link: u32| f64::from(self.link(link).period);
        let later = flow.routes.steps.iter().map(|step| {
            let link = flow.link(&self.scenario.network, step);
            through[step.from as usize] * step.probability * period(link)
        });
        later.sum::<f64>() + flow.entering.iter().map(|&(_, link, packets)| packets * period(link)).sum::<f64>()
    }

    fn link(&self, number: u32) -> Link {
        self.scenario.network.links()[number as usize]
    }

    fn over_endings(&mut self, flow: &Flow<'_>) -> f64 {
        if self.endings.len() > MAX_ENDINGS {
            self.forget();
        }
        let places = flow.routes.places.len();
        let mut spread: Vec<(u32, f64)> = Vec::with_capacity(places);
        let mut ranges: Vec<Range<usize>> = vec![0..0; places];
        for &place in flow.order.iter().rev() {
            let begin = spread.len();
            for step in flow.routes.steps_of(place) {
                let link = flow.link(&self.scenario.network, step);
                let next = if step.to == DELIVERED { None } else { Some(ranges[step.to as usize].clone()) };
                match next {
                    None => spread.push((self.before(0, link), step.probability)),
                    Some(next) => {
                        for index in next {
                            let (ending, probability) = spread[index];
                            spread.push((self.before(ending, link), step.probability * probability));
                        }
                    }
                }
            }
            self.join(&mut spread, begin, MAX_SPREAD / places + 1);
            ranges[place as usize] = begin..spread.len();
        }
        let mut sum = 0.0;
        for &(place, link, packets) in flow.entering.iter().filter(|(_, _, packets)| *packets > 0.0) {
            for &(ending, probability) in &spread[ranges[place as usize].clone()] {
                let whole = self.before(ending, link);
                sum += packets * probability * self.cycles_of(whole);
            }
        }
        sum
    }

    /// Merges equal endings of a place, the last ones of `spread`; if there are too many, the rarest count as the most likely one.
    fn join(&self, spread: &mut Vec<(u32, f64)>, begin: usize, most: usize) {
        if spread.len() - begin < 2 {
            return;
        }
        spread[begin..].sort_unstable_by_key(|&(ending, _)| ending);
        let mut last = begin;
        for index in begin + 1..spread.len() {
            if spread[index].0 == spread[last].0 {
                spread[last].1 += spread[index].1;
            } else {
                last += 1;
                spread[last] = spread[index];
            }
        }
        spread.truncate(last + 1);
        if spread.len() - begin > most {
            self.is_cut.set(true);
            spread[begin..].sort_by(|one, other| other.1.total_cmp(&one.1));
            let rest: f64 = spread.drain(begin + most..).map(|(_, probability)| probability).sum();
            spread[begin].1 += rest;
        }
    }

    /// The ending that begins one channel before another one.
    fn before(&mut self, ending: u32, link: u32) -> u32 {
        if let Some(&known) = self.extended.get(&(ending, link)) {
            return known;
        }
        let head_delay = if let Rule::Streamed(cycles) = self.rule { cycles } else { 0 };
        let longer = self.endings[ending as usize].extended(link, self.link(link).period, head_delay);
        let count = self.endings.len() as u32;
        let number = *self.numbers.entry(longer.clone()).or_insert(count);
        if number == count {
            self.endings.push(longer);
        }
        self.extended.insert((ending, link), number);
        number
    }

    fn forget(&mut self) {
        self.endings.truncate(1);
        self.numbers.retain(|_, number| *number == 0);
        self.extended.clear();
        self.cycles.clear();
    }

    /// The mean over the lengths of packets on a whole path.
    fn cycles_of(&mut self, path: u32) -> f64 {
        if let Some(&known) = self.cycles.get(&path) {
            return known;
        }
        let cycles = match (&self.endings[path as usize], &self.sizes) {
            (Ending::Stalled(links), Err(cost)) => cost(&links.iter().rev().copied().collect::<Vec<_>>()),
            (Ending::Stalled(links), Ok(sizes)) => {
                let links: Vec<Link> = links.iter().rev().map(|&number| self.link(number)).collect();
                self.follow(&links, sizes)
            }
            (Ending::Streamed { lines, .. }, sizes) => sizes.as_ref().map_or(0.0, |sizes| mean(sizes, |flits| delay(lines, flits) as f64)),
        };
        self.cycles.insert(path, cycles);
        cycles
    }

    /// Follows packets flit by flit.
    fn follow(&self, links: &[Link], sizes: &PacketSizes) -> f64 {
        let work = sizes.distribution().map(|(flits, _)| u64::from(flits) * links.len() as u64).sum::<u64>();
        self.followed.set(self.followed.get() + work);
        if self.followed.get() > MAX_FOLLOWED {
            self.is_cut.set(true);
            let slowest = links.iter().map(|link| link.period).max().unwrap_or(1);
            return f64::from(slowest) * (sizes.mean() - 1.0);
        }
        let head = latency(self.scenario, links, 1);
        mean(sizes, |flits| (latency(self.scenario, links, flits) - head) as f64)
    }

    /// Have all paths been counted so far?
    pub(super) fn is_exact(&self) -> bool {
        !self.is_cut.get()
    }
}

/// How the length of these packets counts.
fn rule(scenario: &Scenario, sizes: &PacketSizes) -> Rule {
    let router = &scenario.router;
    let streams = sizes.max() <= router.channel_depth();
    let packet = LonePacket { channels: &[], flits: 1, router, pipeline: &scenario.pipeline };
    match router.switching {
        _ if sizes.max() == 1 => Rule::Uniform(1),
        Switching::StoreAndForward => Rule::Stored,
        _ if streams => match scenario.network.common_period() {
            Some(period) => Rule::Uniform(period),
            None => Rule::Streamed((packet.decision(0) - packet.decision(1)) as u32),
        },
        _ => Rule::Stalled,
    }
}

fn latency(scenario: &Scenario, channels: &[Link], flits: u32) -> u64 {
    lone_packet_latency(&LonePacket { channels, flits, router: &scenario.router, pipeline: &scenario.pipeline })
}

/// The greatest of some lines at a packet's length.
fn delay(lines: &[(u32, i64)], flits: u32) -> i64 {
    if flits < 2 {
        return 0;
    }
    lines.iter().map(|&(period, cycles)| i64::from(period) * i64::from(flits - 2) + cycles).max().unwrap_or(0)
}

fn mean(sizes: &PacketSizes, cycles: impl Fn(u32) -> f64) -> f64 {
    sizes.distribution().map(|(flits, probability)| probability * cycles(flits)).sum()
}
