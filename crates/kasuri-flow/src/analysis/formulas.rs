//! All closed-form answers about a scenario together, and the engine that gives them.

use super::prediction::Guided;
use super::waiting::Waiting;
use super::workload::closed_workload;
use super::{AnalysisError, ChannelLoads, NOT_MODELLED, ZeroLoad, channel_loads, hit_rates, zero_load};
use crate::support::{self, Column};
use kasuri_model::engine::{Controller, Engine, EngineError, Feature, Formulas, Method, Outcome, Prepared, Status, least_cycles};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::network::metrics::Bisection;
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::predictor;
use kasuri_network::routing::extents::Extents;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;
use std::collections::VecDeque;

/// Steps of the search for shortest paths and pairs of terminals that the bound of the ideal throughput may cost.
const DISTANCE_BUDGET: u64 = 100_000_000;

/// A mean latency above this multiple of the zero-load latency is saturation.
const LATENCY_FACTOR: f64 = 3.0;

/// Less than this part of the offered load accepted is saturation.
const ACCEPTED_OF_OFFERED: f64 = 0.95;

/// Counters of an outcome are whole numbers; rates are given over this many cycles.
const CYCLES: f64 = 1e6;

/// The engine that answers with formulas.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnalysisEngine;

/// `[analysis]`: the formulas have no options yet.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnalysisOptions {}

impl Engine for AnalysisEngine {
    fn name(&self) -> &'static str {
        Column::Analysis.engine()
    }

    fn summary(&self) -> &'static str {
        "formulas of graphs and queues"
    }

    fn section(&self) -> fn() -> Schema {
        || schema_for!(AnalysisOptions)
    }

    fn method(&self) -> Method {
        Method::Formulas
    }

    fn features(&self) -> Vec<Feature> {
        support::features(&[(Column::Analysis, "analysis")])
    }

    fn prepare<'s>(&'s self, scenario: &'s Scenario) -> Result<Box<dyn Prepared + 's>, Vec<Refusal>> {
        let mut refusals = support::refusals(Column::Analysis, scenario);
        let refuses = |key: &str| refusals.iter().any(|refusal| refusal.key == key);
        if scenario.workload.is_none()
            && !refuses("router.predictor")
            && let Err(error) = Guided::of(scenario)
        {
            refusals.push(refuse(error));
        }
        if refusals.is_empty() { Ok(Box::new(Question { scenario })) } else { Err(refusals) }
    }
}

/// A scenario that formulas answer.
struct Question<'s> {
    scenario: &'s Scenario,
}

impl Prepared for Question<'_> {
    fn memory_bytes(&self, extents: &mut Extents) -> u64 {
        super::memory::bytes(self.scenario, extents)
    }

    fn run(self: Box<Self>, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        let Self { scenario } = *self;
        if let Some(closed) = &scenario.workload {
            return closed_workload(scenario, closed, controller);
        }
        let loads = channel_loads(scenario).map_err(refuse)?;
        let alone = zero_load(scenario).map_err(refuse)?;
        let formulas = formulas_with(scenario, &loads, &alone).map_err(refuse)?;
        let rates = hit_rates(scenario).map_err(refuse)?;
        let mut outcome = outcome(scenario, &loads, formulas);
        if !alone.exact {
            outcome.not_modelled.push("approximate: the zero-load latency".to_owned());
        }
        if let Some(rates) = rates {
            outcome.prediction = Some(rates.as_counts());
            outcome.not_modelled.push("router.on_miss".to_owned());
        }
        if scenario.router.total_hint_cycles() > 0 {
            outcome.not_modelled.push("router.hint_cycles (in the channel loads)".to_owned());
        }
        if scenario.takes_accepted_ports() {
            outcome.not_modelled.push("router.predictor_match (in the channel loads)".to_owned());
        }
        Ok(outcome)
    }
}

pub(crate) fn refuse(error: AnalysisError) -> Refusal {
    match error {
        AnalysisError::Prediction { problem } => Refusal::new("router.predictor", problem),
        AnalysisError::NoTraffic => Refusal::new("traffic", error.to_string()),
        AnalysisError::Lost { .. } | AnalysisError::Circular { .. } => Refusal::new("routing.algorithm", error.to_string()),
        AnalysisError::TooLarge { .. } => Refusal::new("network", error.to_string()),
    }
}

/// Works out everything that formulas say of a scenario.
///
/// # Errors
/// As [`channel_loads`] and [`zero_load`].
pub fn formulas(scenario: &Scenario, loads: &ChannelLoads) -> Result<Formulas, AnalysisError> {
    formulas_with(scenario, loads, &zero_load(scenario)?)
}

fn formulas_with(scenario: &Scenario, loads: &ChannelLoads, alone: &ZeroLoad) -> Result<Formulas, AnalysisError> {
    let waiting = Waiting::of(scenario, loads)?;
    let latency = |load: f64| waiting.cycles(load).map(|cycles| alone.packet_latency + cycles);
    let bound = loads.ideal_throughput(&scenario.network);
    // How often predictions are refused under load is not known, and with it the latency there.
    let queueing = bound.filter(|_| scenario.router.predictor == predictor::NONE);
    let load = offered(scenario);
    Ok(Formulas {
        zero_load_latency: alone.packet_latency,
        packet_latency: if queueing.is_some() { load.and_then(latency) } else { None },
        hops: alone.hops,
        static_throughput: bound,
        ideal_throughput: ideal_throughput(scenario),
        saturation_load: queueing.map(|bound| saturation(bound, alone.packet_latency, latency)),
        bisection_bandwidth: Bisection::of(&scenario.network).map(|cut| cut.bandwidth),
    })
}

/// Offered load of all classes; `None` for a closed workload.
fn offered(scenario: &Scenario) -> Option<f64> {
    let open = scenario.classes.iter().any(|class| class.packets_per_terminal.is_none());
    open.then(|| scenario.classes.iter().map(|class| class.load).sum())
}

/// The least load at which too little is accepted or the mean latency exceeds three times that of a lone packet.
fn saturation(bound: f64, alone: f64, latency: impl Fn(f64) -> Option<f64>) -> f64 {
    let mut below = 0.0;
    let mut above = bound / ACCEPTED_OF_OFFERED;
    // Both conditions are monotonic in the load, and sixty halvings exhaust a 64-bit number.
    for _ in 0..60 {
        let middle = 0.5 * (below + above);
        if latency(middle).is_some_and(|latency| latency <= LATENCY_FACTOR * alone) {
            below = middle;
        } else {
            above = middle;
        }
    }
    above
}

/// A bound on the throughput of any routing, in flits per terminal and cycle: the channels of the terminals, and the bandwidth
/// of all channels between routers over the flits times the distance that they have to go (Dally and Towles, section 3.3.2).
/// `None` where shortest paths cost too much to find.
fn ideal_throughput(scenario: &Scenario) -> Option<f64> {
    let network = &*scenario.network;
    let capacity: f64 = network.router_channels().map(|channel| 1.0 / f64::from(network.link(channel).period)).sum();
    let total: f64 = scenario.classes.iter().map(|class| class.load.max(f64::MIN_POSITIVE)).sum();
    let terminals = network.terminal_count();
    let (mut sent, mut received) = (vec![0.0; terminals as usize], vec![0.0; terminals as usize]);
    let (mut distance, mut budget) = (0.0, DISTANCE_BUDGET);
    let mut paths = Distances::default();
    for source in (0..terminals).map(TerminalId) {
        let (from, _) = network.injection_port(source);
        budget = budget.checked_sub(paths.search(network, from))?;
        for class in &scenario.classes {
            let share = class.pattern.share(source) * class.load.max(f64::MIN_POSITIVE) / total;
            let weights = class.pattern.weights(source);
            budget = budget.checked_sub(weights.len() as u64)?;
            for (destination, weight) in weights {
                let (last, _) = network.ejection_port(destination);
                let steps = f64::from(paths.of(last)?);
                let back = class.reply.as_ref().map_or(0.0, |reply| share * weight * reply.sizes.mean() / class.sizes.mean());
                let there = share * weight;
                sent[source.index()] += there;
                received[destination.index()] += there;
                sent[destination.index()] += back;
                received[source.index()] += back;
                distance += (there + back) * steps;
            }
        }
    }
    let busiest = (0..terminals).map(TerminalId).map(|terminal| {
        let (into, out) = (network.link(network.injection_channel(terminal)), network.link(network.ejection_channel(terminal)));
        (sent[terminal.index()] * f64::from(into.period)).max(received[terminal.index()] * f64::from(out.period))
    });
    let busiest = busiest.fold(0.0, f64::max);
    let need = busiest.max(if distance > 0.0 { distance / capacity } else { 0.0 });
    (need > 0.0).then(|| 1.0 / need)
}

/// Channels between one router and all others on shortest paths.
#[derive(Default)]
struct Distances {
    from: Option<RouterId>,
    steps: Vec<u32>,
    queue: VecDeque<RouterId>,
}

impl Distances {
    /// Searches from a router unless that was the last one searched from. Returns the channels that were looked at.
    fn search(&mut self, network: &Network, from: RouterId) -> u64 {
        if self.from == Some(from) {
            return 0;
        }
        self.from = Some(from);
        self.steps.clear();
        self.steps.resize(network.router_count() as usize, u32::MAX);
        self.steps[from.index()] = 0;
        self.queue.push_back(from);
        let mut looked_at = 0;
        while let Some(router) = self.queue.pop_front() {
            for port in 0..network.port_count(router) {
                looked_at += 1;
                let Some(channel) = network.output_channel(router, port as u16) else { continue };
                let Endpoint::Router(next, _) = network.destination(channel) else { continue };
                if self.steps[next.index()] == u32::MAX {
                    self.steps[next.index()] = self.steps[router.index()] + 1;
                    self.queue.push_back(next);
                }
            }
        }
        looked_at
    }

    fn of(&self, to: RouterId) -> Option<u32> {
        Some(self.steps[to.index()]).filter(|&steps| steps != u32::MAX)
    }
}

/// Rates as counters over [`CYCLES`]: what is accepted is what is offered, or what the bottleneck allows of it.
fn outcome(scenario: &Scenario, loads: &ChannelLoads, formulas: Formulas) -> Outcome {
    let network = &*scenario.network;
    let offered = offered(scenario);
    let accepted = offered.map(|load| formulas.static_throughput.map_or(load, |bound| load.min(bound)));
    let flits = |per_load: f64| (per_load * accepted.unwrap_or(0.0) * CYCLES).round() as u64;
    let of_terminal = |channel: ChannelId| flits(loads.load[channel.index()]);
    let terminals = || (0..network.terminal_count()).map(TerminalId);
    let status = match (offered, formulas.static_throughput) {
        (Some(load), Some(bound)) if load * ACCEPTED_OF_OFFERED > bound => Status::Saturated,
        _ => Status::Completed,
    };
    Outcome {
        measured_cycles: if accepted.is_some() { CYCLES as u64 } else { 0 },
        injected_flits: terminals().map(|terminal| of_terminal(network.injection_channel(terminal))).collect(),
        accepted_flits: terminals().map(|terminal| of_terminal(network.ejection_channel(terminal))).collect(),
        self_flits: Some(flits(loads.to_self)),
        channel_flits: loads.load.iter().map(|&load| flits(load)).collect(),
        completion_time: completion_bound(scenario, &formulas),
        formulas: Some(formulas),
        ..Outcome::new(status).with_ignored_keys(NOT_MODELLED, support::left_out(Column::Analysis, scenario))
    }
}

/// A closed workload cannot end before its bottleneck has carried its flits.
fn completion_bound(scenario: &Scenario, formulas: &Formulas) -> Option<f64> {
    // Which classes the packets of a common batch are of, and how many of them are answers, chance decides.
    if !scenario.has_only_batches() || scenario.counts_answers() || scenario.classes.iter().any(|class| class.joint.is_some()) {
        return None;
    }
    let flits: f64 = scenario.batches().map(|(class, packets)| packets as f64 * class.sizes.mean()).sum();
    formulas.static_throughput.map(|bound| least_cycles(&scenario.network, flits / bound))
}
