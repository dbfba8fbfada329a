//! The time of a message of one or more packets that is alone in the network, on a given path, in closed form.
//!
//! Three modules know lone packets. [`lone_packet_latency`] follows one packet flit by flit by the rules of the flit engine; the other two
//! must agree with it. `analysis::tails` has the mean over all paths of a flow of packets, and knows a path only by its ending. This module
//! has the time of a message of several packets, without a loop over its flits, since flows ask for every message.
//!
//! A message of M flits is sent in n packets of P flits, the last one of L. Channel s of its path, 0 being the injection, takes a flit in
//! `flight(s)` cycles to its other end, and the next one `period(s)` cycles later; a head needs D cycles more in each of the R routers
//! before it leaves. So flits are served as jobs are by machines in a row, and the time is that of the longest chain of flits that wait
//! for each other (Baccelli et al., Synchronization and Linearity, 1992, chapter 1): F = sum of `flight`, and
//!
//! * cut-through: F + max over s of (D s + (n - 1) max over r <= s of c(r) + (L - 1) period(s)), the head going first as far as channel s;
//! * store-and-forward: F + D R + max over s of ((P - 1) sum of period(r) over r < s + (n - 2) max over r <= s of c(r) + c(s) + (L - 1)
//!   sum of period(r) over r >= s);
//! * output-queued routers that cut through, in which every flit waits for D cycles: F + D R + (M - 1) max of period,
//!
//! where c(s) are the cycles from a head to the next one: P `period(s)`, or more where packets come in one virtual channel, in which the
//! next head is looked at only after the tail before it has left. Buffers that are shorter than the loop of credits stall a packet: then
//! its flits are followed ([`lone_packet_latency`]).

use crate::analysis::{LonePacket, lone_packet_latency};
use kasuri_model::router::{Architecture, Pipeline, RouterParameters, Switching, VcRelease};
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::network::Link;
use kasuri_network::predictor;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// A message on its path: its flits, and those of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) flits: u32,
    pub(crate) packet: u32,
}

/// The times of lone messages in a scenario.
#[derive(Debug)]
pub(crate) struct LoneTimes {
    links: Vec<Link>,
    /// By kind of link: cycles from the decision to send a head on an injection channel, one between routers and an ejection
    /// channel to the decision at the next router (or to the arrival).
    head_cycles: Vec<[u32; 3]>,
    /// The period of all channels, if they have the same.
    period: Option<u64>,
    /// Cycles that a head needs in a router before it can leave.
    decision: u64,
    /// The least cycles from a tail to the next head on a channel out of a router.
    head_gap: u64,
    discipline: Discipline,
    stalls: Option<Box<Stalls>>,
    /// The result for the last size, if all channels are alike: most messages have the size of the one before.
    last: Cell<Alike>,
}

/// On channels of the same period, cycles of a message beyond those of its head and its transfer: in each router, and once.
#[derive(Clone, Copy, Debug)]
struct Alike {
    sizes: Sizes,
    of_router: i64,
    once: i64,
}

/// When a flit leaves a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discipline {
    /// Flits leave as they come, after their head.
    CutThrough,
    /// Packets leave after their last flit has arrived.
    Stored,
    /// Every flit leaves a fixed time after its arrival.
    Delayed,
}

/// Packets that stall because a buffer is shorter than the loop of its credits.
#[derive(Debug)]
struct Stalls {
    router: RouterParameters,
    pipeline: Pipeline,
    /// By the links of a path and the flits of a packet: its time.
    known: RefCell<BTreeMap<(Vec<u32>, u32), u64>>,
}

impl LoneTimes {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let (router, pipeline, links) = (&scenario.router, &scenario.pipeline, scenario.network.links());
        let decision = u64::from(pipeline.decision_cycles());
        let is_queued = router.architecture == Architecture::OutputQueued;
        let discipline = match router.switching {
            Switching::StoreAndForward => Discipline::Stored,
            _ if is_queued => Discipline::Delayed,
            Switching::Wormhole | Switching::VirtualCutThrough => Discipline::CutThrough,
        };
        let may_stall = discipline == Discipline::CutThrough && links.iter().any(|link| outlasts_buffer(scenario, link));
        let stalls = || Stalls { router: router.clone(), pipeline: *pipeline, known: RefCell::default() };
        Self {
            links: links.to_vec(),
            head_cycles: links.iter().map(|link| head_cycles(pipeline, link.latency)).collect(),
            period: scenario.network.common_period().map(u64::from),
            decision,
            head_gap: if is_queued || mixes_packets(router) { 0 } else { 1 + decision },
            discipline,
            stalls: may_stall.then(|| Box::new(stalls())),
            last: Cell::new(Alike { sizes: Sizes { flits: 0, packet: 0 }, of_router: 0, once: 0 }),
        }
    }

    /// Cycles from the start of a flit on a channel of this kind of link until it can leave the other end: `place` is 0 for an injection, 1
    /// between routers, 2 for an ejection.
    #[inline(always)]
    pub(crate) fn head_cycles(&self, link: u32, place: usize) -> u64 {
        u64::from(self.head_cycles[link as usize][place])
    }

    /// The period of all channels, if it and the number of routers determine the time of a message.
    #[inline(always)]
    pub(crate) fn simple_period(&self) -> Option<u64> {
        if self.stalls.is_some() { None } else { self.period }
    }

    /// Cycles from the end of a flow at the rate of the channels, which all have this period, to the arrival of the lone message; less than
    /// 0 if it arrives while a channel is still busy with its last flit. Its head takes `heads` cycles over `routers` routers.
    #[inline(always)]
    pub(crate) fn beyond_alike(&self, heads: u64, routers: usize, sizes: Sizes, period: u64) -> f64 {
        let mut alike = self.last.get();
        if alike.sizes != sizes {
            alike = self.behind_head_alike(sizes, period);
            self.last.set(alike);
        }
        (heads as i64 + routers as i64 * alike.of_router + alike.once) as f64
    }

    /// The same for channels of any periods; the slowest one sets the rate. `path` are the kinds of their links: injection, between
    /// routers, ejection.
    pub(crate) fn beyond_transfer(&self, heads: u64, path: impl Iterator<Item = u32> + Clone, sizes: Sizes) -> f64 {
        let sizes = Packets::of(sizes);
        let (others, slowest) = self.behind_head(path.clone(), &sizes);
        let stalled = if self.stalls.is_some() { self.stalled(heads, path, &sizes) } else { 0 };
        (heads + others + stalled) as f64 - (sizes.flits * slowest) as f64
    }

    /// Cycles after the arrival of the first head if all channels have the same period, less the transfer. The head's time counts the
    /// decisions of all routers.
    fn behind_head_alike(&self, sizes: Sizes, period: u64) -> Alike {
        let packets = Packets::of(sizes);
        let after = match self.discipline {
            Discipline::Delayed => (packets.flits - 1) * period,
            Discipline::CutThrough | Discipline::Stored => {
                (packets.count - 1) * self.between_heads(&packets, period) + (packets.last - 1) * period
            }
        };
        let stored = if self.discipline == Discipline::Stored { (packets.first - 1) * period } else { 0 };
        Alike { sizes, of_router: stored as i64, once: after as i64 - (packets.flits * period) as i64 }
    }

    /// From a head to the next one on a channel out of a router.
    #[inline(always)]
    fn between_heads(&self, sizes: &Packets, period: u64) -> u64 {
        (sizes.first - 1) * period + period.max(self.head_gap)
    }

    /// The same for channels of any periods, and the longest of them.
    fn behind_head(&self, path: impl Iterator<Item = u32> + Clone, sizes: &Packets) -> (u64, u64) {
        let periods = path.map(|link| u64::from(self.links[link as usize].period));
        let slowest = periods.clone().max().unwrap_or(1);
        let after = match self.discipline {
            Discipline::Delayed => (sizes.flits - 1) * slowest,
            Discipline::CutThrough => self.behind_head_cut_through(periods, sizes),
            Discipline::Stored => self.behind_head_stored(periods, sizes),
        };
        (after, slowest)
    }

    fn behind_head_cut_through(&self, periods: impl Iterator<Item = u64> + Clone, sizes: &Packets) -> u64 {
        let (mut longest, mut between, mut decisions) = (0, 0, 0);
        for (period, place) in periods.zip(0u64..) {
            let gap = if place > 0 { self.between_heads(sizes, period) } else { sizes.first * period };
            between = gap.max(between);
            decisions = self.decision * place;
            longest = longest.max(decisions + (sizes.count - 1) * between + (sizes.last - 1) * period);
        }
        longest - decisions
    }

    fn behind_head_stored(&self, periods: impl Iterator<Item = u64> + Clone, sizes: &Packets) -> u64 {
        let (mut longest, mut between, mut before) = (0, 0, 0);
        let mut after = (sizes.last - 1) * periods.clone().sum::<u64>();
        for (period, place) in periods.zip(0u64..) {
            let gap = if place > 0 { self.between_heads(sizes, period) } else { sizes.first * period };
            between = gap.max(between);
            let packets = if sizes.count > 1 { (sizes.count - 2) * between + gap } else { 0 };
            longest = longest.max(before + packets + after);
            before += (sizes.first - 1) * period;
            after -= (sizes.last - 1) * period;
        }
        longest
    }

    /// Cycles for which the flits of a message of one packet wait for credits. The effect of short buffers on several packets and on flows
    /// is left out: it depends on how packets share virtual channels.
    #[cold]
    fn stalled(&self, heads: u64, path: impl Iterator<Item = u32>, sizes: &Packets) -> u64 {
        let Some(stalls) = &self.stalls else { return 0 };
        if sizes.count > 1 || sizes.first <= u64::from(stalls.router.channel_depth()) {
            return 0;
        }
        let path: Vec<u32> = path.collect();
        let smooth = heads + self.behind_head(path.iter().copied(), sizes).0;
        let followed = *stalls.known.borrow_mut().entry((path, sizes.flits as u32)).or_insert_with_key(|(path, flits)| {
            let channels: Vec<Link> = path.iter().map(|&link| self.links[link as usize]).collect();
            lone_packet_latency(&LonePacket { channels: &channels, flits: *flits, router: &stalls.router, pipeline: &stalls.pipeline })
        });
        followed.saturating_sub(smooth)
    }
}

/// A message cut into packets.
#[derive(Clone, Copy, Debug)]
struct Packets {
    flits: u64,
    count: u64,
    /// Flits of the first packet and of the last one.
    first: u64,
    last: u64,
}

impl Packets {
    #[inline(always)]
    fn of(Sizes { flits, packet }: Sizes) -> Self {
        if flits <= packet {
            let flits = u64::from(flits);
            return Self { flits, count: 1, first: flits, last: flits };
        }
        let count = flits.div_ceil(packet);
        let last = u64::from(flits - (count - 1) * packet);
        Self { flits: u64::from(flits), count: u64::from(count), first: u64::from(packet), last }
    }
}

/// Cycles of a head over a channel in each place, as in the flit engine without contention.
fn head_cycles(pipeline: &Pipeline, latency: u32) -> [u32; 3] {
    let injection = latency + 1 + pipeline.switch_extra_cycles;
    let between = latency + pipeline.head_cycles();
    [injection, between, between - pipeline.switch_extra_cycles]
}

/// May the packets of a message take several virtual channels? How they share them is left out.
fn mixes_packets(router: &RouterParameters) -> bool {
    router.virtual_channels > 1 && !router.vc_per_destination
}

fn credit_loop(scenario: &Scenario, link: &Link) -> u64 {
    scenario.pipeline.credit_loop(link.latency, scenario.router.credit_delay)
}

/// Can the flits of a packet use up a buffer before the first credit is back?
fn outlasts_buffer(scenario: &Scenario, link: &Link) -> bool {
    let buffer = u64::from(scenario.router.channel_depth());
    credit_loop(scenario, link) + u64::from(scenario.pipeline.decision_cycles()) > buffer * u64::from(link.period)
}

/// Why the time of a lone message is not exact to the cycle, if it is not; router keys that the engine leaves out have their own entries.
/// `has_drawn`: the path of some message is random.
pub(crate) fn approximations(scenario: &Scenario, has_drawn: bool) -> Vec<String> {
    let several = scenario.workload.as_ref().and_then(|closed| longest_of_several(closed));
    let mut causes: Vec<&str> = several.and_then(|packet| of_packets(scenario, packet)).into_iter().collect();
    let network = &*scenario.network;
    let may_stall = network.links().iter().any(|link| outlasts_buffer(scenario, link));
    if scenario.router.predictor != predictor::NONE && (network.common_period().is_none() || may_stall || several.is_some()) {
        causes.push("what a right prediction saves a packet of several flits");
    }
    if scenario.hosts.is_some() {
        causes.push("the memory of hosts, which is shared as channels are");
    }
    if scenario.workload.is_some() && outlasts_shortest_path(scenario) {
        causes.push("what follows a message that arrives while its last flit occupies a slow channel waits for that channel");
    }
    let causes = causes.iter().map(|cause| format!("approximate: {cause}"));
    several.and_then(|_| spread(scenario, has_drawn)).into_iter().chain(causes).collect()
}

/// The same for the arbitrated sharing, which follows parcels of packets and not their flits.
pub(crate) fn approximations_of_parcels(scenario: &Scenario, has_drawn: bool) -> Vec<String> {
    let several = scenario.workload.as_ref().and_then(|closed| longest_of_several(closed));
    let causes = several.map(|_| "approximate: the flits of several packets do not take turns on a channel".to_owned());
    several.and_then(|_| spread(scenario, has_drawn)).into_iter().chain(causes).collect()
}

/// The entry for messages that take one path although the routing would send their packets on several.
fn spread(scenario: &Scenario, has_drawn: bool) -> Option<String> {
    let facts = scenario.routing.facts();
    let is_spread = has_drawn || facts.observes_congestion || facts.offers_several;
    is_spread.then(|| format!("{}: each message takes one path, over which all of its packets go", facts.spreading_key))
}

/// Flits of the longest packets, if messages have several.
fn longest_of_several(closed: &ClosedWorkload) -> Option<u64> {
    let longest = closed.workload.longest_message();
    closed.parts.iter().map(|part| part.packet_flits).filter(|&packet| packet < longest).max().map(u64::from)
}

/// Why the time of messages of several packets, each of `packet` flits, is approximate on a path.
fn of_packets(scenario: &Scenario, packet: u64) -> Option<&'static str> {
    let router = &scenario.router;
    let is_queued = router.architecture == Architecture::OutputQueued;
    let round_trip = scenario.network.links().iter().map(|link| credit_loop(scenario, link)).max().unwrap_or(0);
    // Room for a whole packet that waits, for the next one, and for the flits that are sent while credits come back.
    let has_room = u64::from(router.channel_depth()) >= 2 * packet + round_trip + u64::from(scenario.pipeline.decision_cycles()) + 2;
    match () {
        () if is_queued => None,
        () if router.architecture != Architecture::InputQueued => {
            Some("the packets of a message share queues as they share virtual channels")
        }
        () if mixes_packets(router) => Some("the packets of a message do not overtake each other in virtual channels"),
        () if router.vc_release == VcRelease::TailCredit => Some("the packets of a message do not wait for each other's credits"),
        () if !has_room => Some("the packets of a message do not wait for room in buffers"),
        () => None,
    }
}

/// Can a message over one router arrive while its last flit still occupies the slowest channel?
fn outlasts_shortest_path(scenario: &Scenario) -> bool {
    let network = &scenario.network;
    let slowest = network.links().iter().map(|link| link.period).max().unwrap_or(1);
    let least = network.links().iter().map(|link| link.latency).min().unwrap_or(0);
    let [injection, _, ejection] = head_cycles(&scenario.pipeline, least);
    // The cycle in which the last flit arrives is over one cycle later.
    slowest > injection + ejection + 1
}
