//! The latency that a scenario's packets have when each is alone in the network.

use super::flow::{Congestion, Flow, Packets, for_each_flow, packets};
use super::prediction::{Guided, rates_of};
use super::{AnalysisError, LonePacket, lone_packet_latency};
use kasuri_model::router::{RouterParameters, Switching};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::ChannelId;
use kasuri_network::network::{Link, Network};
use kasuri_network::routing::walk::DELIVERED;

/// Expected values over all packets of a scenario, each alone in the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZeroLoad {
    /// Creation to tail ejected, in cycles. Nothing waits at the source, so it is the network latency too.
    pub packet_latency: f64,
    /// Routers crossed.
    pub hops: f64,
    /// Is the latency exact? Otherwise channels of different speed meet packets that stall on small buffers or slow channels (and these
    /// stalls are those of the slowest channels), the router has a part that the formula leaves out, it and not the routing chooses
    /// among ports, or it takes several steps in a cycle and the sum is over whole cycles on the average.
    pub exact: bool,
    /// The part of the traffic that was looked at; 1 is all. Large networks are sampled.
    pub share: f64,
}

/// The expected latency of a lone packet.
///
/// Of each path the cycles of its routers and the latencies of its channels are summed; what the packet's length adds depends
/// on the number of routers only, and is found by following its flits ([`lone_packet_latency`]).
///
/// Routers that predict save cycles at each hit ([`hit_rates`](super::hit_rates)).
///
/// # Errors
/// A packet that does not arrive, routes that lead back, no traffic at all, or a predictor without a closed form.
pub fn zero_load(scenario: &Scenario) -> Result<ZeroLoad, AnalysisError> {
    let Some(guided) = Guided::of(scenario)? else { return without_prediction(scenario) };
    let scenario = guided.scenario(scenario);
    let alone = without_prediction(&scenario)?;
    let rates = rates_of(&scenario, &guided)?;
    let saved = rates.hits * saved_cycles(&scenario);
    // A hit shortens the credit loop as well, so a packet that stalls for credits stalls less than without.
    let exact = alone.exact && packets(&scenario).iter().all(|kind| !can_stall(&scenario, kind));
    Ok(ZeroLoad { packet_latency: alone.packet_latency - saved, exact, ..alone })
}

/// May a lone packet have to wait for a credit between two routers?
fn can_stall(scenario: &Scenario, kind: &Packets<'_>) -> bool {
    let (network, pipeline, router) = (&scenario.network, &scenario.pipeline, &scenario.router);
    let (link, _) = slowest(network, (0..network.channel_count()).map(ChannelId));
    let around =
        pipeline.traversal_cycles + pipeline.switch_extra_cycles + 2 * (link.latency + 1) + router.cycles_of_hint() + router.credit_delay;
    kind.sizes.max() > router.channel_depth() && router.channel_depth() < around
}

fn without_prediction(scenario: &Scenario) -> Result<ZeroLoad, AnalysisError> {
    let mut sum = Sum::default();
    let kinds = packets(scenario);
    let mut share = 1.0f64;
    let mut exact = is_plain(&scenario.router, &kinds) && !scenario.routing.offers_several();
    for kind in kinds {
        let extra = Extra::new(scenario, &kind);
        let mut one = Sum::default();
        let (demand, visited) = for_each_flow(scenario, &kind, Congestion::None, |flow| one.add(scenario, flow, extra.depends_on_hops))?;
        if one.packets == 0.0 {
            continue;
        }
        let tail = extra.expected(&one.by_hops);
        // What was visited stands for all of this kind.
        let weight = kind.rate * demand.total() / one.packets;
        sum.packets += weight * one.packets;
        sum.latency += weight * (one.latency + tail * one.packets);
        sum.hops += weight * one.hops;
        share = share.min(visited * demand.share);
        exact &= extra.exact;
    }
    if sum.packets == 0.0 {
        return Err(AnalysisError::NoTraffic);
    }
    Ok(ZeroLoad { packet_latency: sum.latency / sum.packets, hops: sum.hops / sum.packets, exact, share })
}

#[derive(Default)]
struct Sum {
    packets: f64,
    /// Of their heads.
    latency: f64,
    hops: f64,
    /// Packets by routers crossed; without detail all stand at 1.
    by_hops: Vec<f64>,
}

impl Sum {
    /// Adds the packets to one destination: head latency = 1 + L_inj + R P + sum of L + L_ej.
    fn add(&mut self, scenario: &Scenario, flow: &Flow<'_>, by_hops: bool) {
        let network = &scenario.network;
        let through = flow.through();
        let head_cycles = head_cycles(scenario);
        // The bits in front of a packet are so long on each channel.
        let hint = scenario.router.cycles_of_hint();
        for step in &flow.routes.steps {
            let packets = through[step.from as usize] * step.probability;
            self.hops += packets;
            self.latency += packets * (head_cycles + f64::from(network.link(step.channel).latency + hint));
        }
        for (place, &packets) in flow.routes.places.iter().zip(&flow.beginning).filter(|(_, packets)| **packets > 0.0) {
            let injection = network.injection_channel(place.hop.source);
            self.packets += packets;
            self.latency += packets * f64::from(1 + network.link(injection).latency + hint);
        }
        if by_hops {
            self.count_by_hops(flow);
        } else {
            self.by_hops.resize(2, 0.0);
            self.by_hops[1] = self.packets;
        }
    }

    /// Lets the distribution of the routers crossed so far flow along the routes.
    fn count_by_hops(&mut self, flow: &Flow<'_>) {
        let mut crossed: Vec<Vec<f64>> = flow.beginning.iter().map(|&packets| vec![packets]).collect();
        for &place in flow.order {
            let here = std::mem::take(&mut crossed[place as usize]);
            for step in flow.routes.steps_of(place) {
                let next = if step.to == DELIVERED { &mut self.by_hops } else { &mut crossed[step.to as usize] };
                if next.len() <= here.len() {
                    next.resize(here.len() + 1, 0.0);
                }
                here.iter().zip(&mut next[1..]).for_each(|(packets, next)| *next += packets * step.probability);
            }
        }
    }
}

/// Cycles that a lone head spends in a router, on the average over the cycles in which it may come.
///
/// A router with an internal speed-up of s takes the steps floor(t s) to floor((t + 1) s) - 1 in cycle t; those that a head needs after
/// its first one may fit into the same cycle.
fn head_cycles(scenario: &Scenario) -> f64 {
    cycles_of_steps(scenario.pipeline.head_cycles(), scenario.router.internal_speedup)
}

/// Cycles that a lone head saves that passes on a prediction: it needs the steps of the switch traversal only, and its front does not wait
/// for its end.
fn saved_cycles(scenario: &Scenario) -> f64 {
    let pipeline = &scenario.pipeline;
    let crossing = pipeline.traversal_cycles - pipeline.serialisation_cycles;
    head_cycles(scenario) - cycles_of_steps(crossing, scenario.router.internal_speedup)
        + f64::from(pipeline.front_cycles(scenario.router.hit_saves))
}

/// Cycles in which so many steps fall, from the first one of a cycle on.
fn cycles_of_steps(steps: u32, speedup: f64) -> f64 {
    if speedup == 1.0 {
        return f64::from(steps);
    }
    let first_step = |cycle: u64| (cycle as f64 * speedup) as u64;
    let taken = |cycle: u64| {
        let last = first_step(cycle) + u64::from(steps) - 1;
        (cycle..).take_while(|&cycle| first_step(cycle + 1) <= last).count() as u64 + 1
    };
    (0..PHASES).map(taken).sum::<u64>() as f64 / PHASES as f64
}

/// Cycles over which steps within cycles are averaged.
const PHASES: u64 = 360;

/// What makes a lone packet slower than the formula knows.
const LEFT_OUT: [&str; 1] = ["long_stages"];

/// Is the time in a router the same in every cycle, and nothing in it that the formula leaves out?
fn is_plain(router: &RouterParameters, kinds: &[Packets<'_>]) -> bool {
    let has_whole_steps = router.internal_speedup.fract() == 0.0;
    // Several steps in a cycle send the flits of a packet as fast as its channels take them, unless credits are missing.
    let is_streamed = router.internal_speedup == 1.0 || kinds.iter().all(|kind| kind.sizes.max() <= router.channel_depth());
    has_whole_steps && is_streamed && !LEFT_OUT.iter().any(|key| router.extends(key))
}

/// What a packet's length adds to the latency of its head.
struct Extra<'a> {
    scenario: &'a Scenario,
    kind: &'a Packets<'a>,
    terminal_link: Link,
    router_link: Link,
    depends_on_hops: bool,
    exact: bool,
}

impl<'a> Extra<'a> {
    fn new(scenario: &'a Scenario, kind: &'a Packets<'a>) -> Self {
        let network = &scenario.network;
        let (terminal_link, terminals_alike) = slowest(network, (0..2 * network.terminal_count()).map(ChannelId));
        let (router_link, routers_alike) = slowest(network, network.router_channels());
        let simple = kind.sizes.max() <= scenario.router.channel_depth()
            && terminal_link.period == 1
            && router_link.period == 1
            && scenario.router.switching != Switching::StoreAndForward;
        let exact = simple || kind.sizes.max() == 1 || (terminals_alike && routers_alike);
        Self { scenario, kind, terminal_link, router_link, depends_on_hops: !simple, exact }
    }

    /// The mean over packets whose number of routers is distributed so.
    fn expected(&self, by_hops: &[f64]) -> f64 {
        let total: f64 = by_hops.iter().sum();
        let at = |(hops, packets): (usize, &f64)| packets / total * self.at(hops);
        by_hops.iter().enumerate().filter(|(_, packets)| **packets > 0.0).map(at).sum()
    }

    /// Latency of the packet less that of its head alone, over a path of the slowest channels.
    fn at(&self, hops: usize) -> f64 {
        let mut channels = vec![self.terminal_link];
        channels.resize(hops, self.router_link);
        channels.push(self.terminal_link);
        let latency = |flits| {
            let (router, pipeline) = (&self.scenario.router, &self.scenario.pipeline);
            lone_packet_latency(&LonePacket { channels: &channels, flits, router, pipeline })
        };
        let head = latency(1);
        self.kind.sizes.distribution().map(|(flits, probability)| probability * (latency(flits) - head) as f64).sum()
    }
}

/// The greatest latency and period of some channels, and whether all of them are alike.
fn slowest(network: &Network, channels: impl Iterator<Item = ChannelId>) -> (Link, bool) {
    let mut slowest: Option<Link> = None;
    let mut alike = true;
    for link in channels.map(|channel| network.link(channel)) {
        let known = slowest.get_or_insert(link);
        alike &= *known == link;
        *known = Link { latency: known.latency.max(link.latency), period: known.period.max(link.period) };
    }
    (slowest.unwrap_or_default(), alike)
}
