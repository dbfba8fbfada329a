//! The latency that a scenario's packets have when each is alone in the network.

use super::AnalysisError;
use super::flow::{Congestion, Ends, Flow, Packets, for_each_flow, packets};
use super::prediction::{Guided, rates_of};
use super::tails::Tails;
use kasuri_model::router::RouterParameters;
use kasuri_model::scenario::Scenario;

/// Expected values over all packets of a scenario, each alone in the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZeroLoad {
    /// Creation to tail ejected, in cycles. Nothing waits at the source, so it is the network latency too.
    pub packet_latency: f64,
    /// Routers crossed.
    pub hops: f64,
    /// Is the latency exact? Otherwise only a part of the traffic was followed, there are too many paths or too long packets to follow them
    /// one by one, the formula leaves out a part of the router, the router and not the routing chooses among ports, or a router takes
    /// several steps in a cycle, so that whole cycles are a mean.
    pub exact: bool,
    /// The part of the traffic that was followed; 1 is all. Large networks are sampled.
    pub share: f64,
}

/// The expected latency of a lone packet.
///
/// The sum of the cycles of a path's routers and the latencies of its channels. The length of a packet adds cycles that depend on the
/// path's channels in their order ([`lone_packet_latency`](super::lone_packet_latency)). Replies include the time to make them.
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
    // A hit shortens the credit loop too, so a packet that waits for credits waits less than without. If channels differ in their period,
    // the lag of a tail depends on which routers its head has passed by hits.
    let follows = |kind: &Packets<'_>| kind.sizes.max() == 1 || scenario.network.common_period().is_some() && !can_stall(&scenario, kind);
    let exact = alone.exact && packets(&scenario).iter().all(follows);
    Ok(ZeroLoad { packet_latency: alone.packet_latency - saved, exact, ..alone })
}

/// May a lone packet have to wait for a credit between two routers?
fn can_stall(scenario: &Scenario, kind: &Packets<'_>) -> bool {
    let (network, pipeline, router) = (&scenario.network, &scenario.pipeline, &scenario.router);
    let longest = network.links().iter().map(|link| link.latency).max().unwrap_or(0);
    let around = pipeline.credit_loop(longest, router.credit_delay) + u64::from(router.total_hint_cycles());
    kind.sizes.max() > router.channel_depth() && u64::from(router.channel_depth()) < around
}

fn without_prediction(scenario: &Scenario) -> Result<ZeroLoad, AnalysisError> {
    let mut sum = Sum::default();
    let kinds = packets(scenario);
    let mut share = 1.0f64;
    let mut exact = is_plain(&scenario.router, &kinds) && !scenario.routing.facts().offers_several;
    for kind in kinds {
        let mut tails = Tails::new(scenario, kind.sizes);
        let mut one = Sum::default();
        let visit = |flow: &Flow<'_>| one.add(scenario, flow, &mut tails);
        let (demand, visited) = for_each_flow(scenario, &kind, Congestion::None, Ends::ByRouteAndLink, visit)?;
        if one.packets == 0.0 {
            continue;
        }
        // What was visited stands for all of this kind.
        let weight = kind.rate * demand.total() / one.packets;
        sum.packets += weight * one.packets;
        sum.latency += weight * (one.latency + f64::from(kind.delay) * one.packets);
        sum.hops += weight * one.hops;
        share = share.min(visited * demand.share);
        exact &= tails.is_exact();
    }
    if sum.packets == 0.0 {
        return Err(AnalysisError::NoTraffic);
    }
    Ok(ZeroLoad { packet_latency: sum.latency / sum.packets, hops: sum.hops / sum.packets, exact: exact && share > WHOLE, share })
}

/// A part of the traffic above this is all of it: the rest is rounding.
const WHOLE: f64 = 1.0 - 1e-6;

/// Sums over packets.
#[derive(Default)]
struct Sum {
    packets: f64,
    latency: f64,
    hops: f64,
}

impl Sum {
    /// Adds the packets to one destination: head latency = 1 + L_inj + R P + sum of L + L_ej, and the lag of their tails.
    fn add(&mut self, scenario: &Scenario, flow: &Flow<'_>, tails: &mut Tails<'_>) {
        let network = &scenario.network;
        let through = flow.through();
        let head_cycles = head_cycles(scenario);
        // The bits in front of a packet are so long on each channel.
        let hint = scenario.router.total_hint_cycles();
        let latency = |link: u32| network.links()[link as usize].latency + hint;
        for step in &flow.routes.steps {
            let packets = through[step.from as usize] * step.probability;
            self.hops += packets;
            self.latency += packets * (head_cycles + f64::from(latency(flow.link(network, step))));
        }
        for &(_, link, packets) in &flow.entering {
            self.packets += packets;
            self.latency += packets * f64::from(1 + latency(link));
        }
        self.latency += tails.of(flow, &through);
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
