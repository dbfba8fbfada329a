//! The engine `flow`, and its section of the experiment file.

use crate::analysis::{self, Guided};
use crate::arbitrated::{self, Grain, Mechanism};
use crate::fluid::{Fluid, Rules, parts};
use crate::packets;
use crate::predictions::Predictions;
use crate::scout::{self, with_scout};
use crate::sharing::{self, Model, SHARINGS};
use crate::support::{self, Column};
use kasuri_model::engine::{Controller, Engine, EngineError, Feature, Method, Outcome, Prepared, Threads};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::network::metrics::hops_from;
use kasuri_network::routing::extents::Extents;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::Deserialize;
use std::sync::Arc;

/// Messages as fluid flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowEngine;

/// Bytes of a channel; of a terminal with its message and the channels on its path; and of its creations of each class.
const CHANNEL_BYTES: u64 = 50;
const TERMINAL_BYTES: u64 = 250;
const CLASS_BYTES: u64 = 120;

/// The same of what a scout knows of a terminal: its place on the board and its draws.
const SCOUTED_BYTES: u64 = 120;

/// How many times as long as equal shares arbitrated flows take: some ten parcels of a message on some six channels, 9 us for each message. Of a
/// closed workload many messages begin and end together by equal shares, and take less than others.
const ARBITRATED_SLOWNESS: f64 = 20.0;
const ARBITRATED_SLOWNESS_CLOSED: f64 = 60.0;

/// Bytes for the path of each message: all have room for the longest so far, which grows by half while the old room stands. That is between
/// 1.7 and 2.5 times the entries of 12 bytes of the longest path, which is the longest shortest one, or up to twice as long with detours.
fn path_bytes(network: &Network) -> u64 {
    let hops = hops_from(network, network.injection_port(TerminalId(0)).0);
    43 * u64::from(hops.into_iter().flatten().max().unwrap_or(0))
}

/// The keys of `[flow]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlowOptions {
    /// Which part of a channel's bandwidth each of its flows gets: `equal-share` (each channel divides its bandwidth equally, a
    /// flow takes the least share on its path), `max-min` (what one cannot use goes to the others) or `arbitrated` (what follows from the
    /// routers' round robin, virtual channels and buffers: several times as exact where packets block each other, and slower).
    #[schemars(schema_with = "names_of_sharings")]
    pub sharing: String,
    /// Arbitrated sharing: packets of a parcel, the unit in which messages move. `auto`: so that a message has as many parcels as its path
    /// has channels, at least 8, times the packets that a buffer holds. 1 is the most exact, and the slowest.
    pub grain: Grain,
    /// Arbitrated sharing, for studies of what causes what: mechanisms of routers to leave out.
    pub without: Vec<Mechanism>,
    /// Add to each message the cycles that its head takes through routers and channels; false: only the transfer counts.
    pub latency: bool,
}

/// The words of a table are those of an enumeration.
fn names_of_sharings(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = SHARINGS.iter().map(|entry| entry.name).collect();
    json_schema!({ "type": "string", "enum": names })
}

impl Default for FlowOptions {
    fn default() -> Self {
        Self { sharing: SHARINGS[0].name.to_owned(), grain: Grain::Auto, without: Vec::new(), latency: true }
    }
}

impl Engine for FlowEngine {
    fn name(&self) -> &'static str {
        Column::Flow.engine()
    }

    fn summary(&self) -> &'static str {
        "messages as flows that share channels, without packets"
    }

    fn section(&self) -> fn() -> Schema {
        || schema_for!(FlowOptions)
    }

    fn method(&self) -> Method {
        Method::Rates
    }

    fn features(&self) -> Vec<Feature> {
        support::features(&[(Column::Flow, "flow"), (Column::Arbitrated, "flow, arbitrated")])
    }

    fn prepare<'s>(&'s self, scenario: &'s Scenario) -> Result<Box<dyn Prepared + 's>, Vec<Refusal>> {
        let options = options(scenario);
        let is_arbitrated = matches!(options, Ok((_, Model::Arbitrated)));
        let mut refusals = support::refusals(if is_arbitrated { Column::Arbitrated } else { Column::Flow }, scenario);
        let options = options.map_err(|refusal| refusals.push(refusal)).ok();
        let is_refused = |key: &str, refusals: &[Refusal]| refusals.iter().any(|refusal| refusal.key == key);
        let mut guided = None;
        if !is_arbitrated && !is_refused("router.predictor", &refusals) {
            guided = Guided::of(scenario).map_err(|error| refusals.push(analysis::refuse(error))).ok().flatten();
        }
        match options {
            Some((options, sharing)) if refusals.is_empty() => {
                Ok(Box::new(Flows { scenario, options, sharing, guided, threads: Threads::new(1) }))
            }
            _ => Err(refusals),
        }
    }
}

/// A scenario whose messages can be flows.
struct Flows<'s> {
    scenario: &'s Scenario,
    options: FlowOptions,
    sharing: Model,
    /// What routers guess, if they predict.
    guided: Option<Arc<Guided>>,
    /// Those that it may use.
    threads: Threads,
}

impl Flows<'_> {
    /// Threads that are of use for users who may turn out to share nothing; each has a simulation of its own.
    fn threads_of_users(&self) -> usize {
        if parts::are_possible(self.scenario) { parts::useful_threads(self.scenario, self.bytes()) } else { 1 }
    }

    /// Bytes of one simulation of flows by rates.
    fn bytes(&self) -> u64 {
        let network = &self.scenario.network;
        let (terminals, channels) = (u64::from(network.terminal_count()), u64::from(network.channel_count()));
        let of_scout = if scout::is_worth_it(self.scenario) { SCOUTED_BYTES } else { 0 };
        let of_terminal = TERMINAL_BYTES + CLASS_BYTES * self.scenario.classes.len() as u64 + path_bytes(network) + of_scout;
        CHANNEL_BYTES * channels + of_terminal * terminals
    }
}

impl Prepared for Flows<'_> {
    fn memory_bytes(&self, _extents: &mut Extents) -> u64 {
        if matches!(self.sharing, Model::Arbitrated) {
            let terminals = u64::from(self.scenario.network.terminal_count());
            return arbitrated::memory_bytes(self.scenario) + CLASS_BYTES * self.scenario.classes.len() as u64 * terminals;
        }
        self.bytes() * self.threads_of_users() as u64
    }

    fn slowness(&self) -> f64 {
        match self.sharing {
            Model::Arbitrated if self.scenario.workload.is_some() => ARBITRATED_SLOWNESS_CLOSED,
            Model::Arbitrated => ARBITRATED_SLOWNESS,
            Model::Levels(_) => 1.0,
        }
    }

    /// One for each user, or one that runs the events and one that goes ahead.
    fn useful_threads(&self) -> usize {
        match self.sharing {
            Model::Arbitrated => 1,
            Model::Levels(_) => self.threads_of_users().max(1 + usize::from(scout::is_worth_it(self.scenario))),
        }
    }

    fn use_threads(&mut self, threads: Threads) -> Result<(), Refusal> {
        self.threads = threads;
        Ok(())
    }

    fn run(self: Box<Self>, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        let Self { scenario, options, sharing, guided, threads } = *self;
        if let Some(machine) = packets::machine::begin(scenario) {
            return packets::run(scenario, machine, options.latency, controller);
        }
        let sharing = match sharing {
            Model::Levels(sharing) => sharing,
            Model::Arbitrated => return arbitrated::run(scenario, (options.grain, &options.without), options.latency, controller),
        };
        let (by_equal_shares, with_latency) = (options.sharing == SHARINGS[0].name, options.latency);
        let rules = |sharing| Rules { sharing, by_equal_shares, with_latency };
        let begin_parts = || Fluid::one_by_one(scenario, rules(sharing.begin_another()));
        if parts::are_possible(scenario)
            && let Some(outcome) = parts::run(scenario, &threads, controller, &begin_parts)
        {
            return Ok(outcome);
        }
        let on_guessed_paths = guided.as_ref().filter(|guided| guided.changes_paths()).map(|guided| guided.scenario(scenario));
        let scenario = on_guessed_paths.as_ref().unwrap_or(scenario);
        let predictions = guided.map(|guided| Predictions::new(scenario, guided));
        with_scout(scenario, &threads, |scouted| Fluid::new(scenario, rules(sharing), predictions).scouted(scouted).run(controller))
    }
}

/// What `[flow]` says, and its rule of sharing.
fn options(scenario: &Scenario) -> Result<(FlowOptions, Model), Refusal> {
    let options: FlowOptions =
        scenario.engine_options.clone().try_into().map_err(|error: toml::de::Error| Refusal::new("flow", error.message()))?;
    let known = || SHARINGS.iter().map(|entry| format!("\"{}\"", entry.name)).collect::<Vec<_>>().join(" or ");
    let unknown = || Refusal::new("flow.sharing", format!("is \"{}\"; it must be {}", options.sharing, known()));
    let sharing = sharing::build(&options.sharing).ok_or_else(unknown)?;
    if !matches!(sharing, Model::Arbitrated)
        && let Some(key) = ["grain", "without"].into_iter().find(|&key| scenario.engine_options.contains_key(key))
    {
        let problem = format!("belongs to the arbitrated sharing; {} has no parcels", options.sharing);
        return Err(Refusal::new(format!("flow.{key}"), problem).instead("leave it out, or set flow.sharing = \"arbitrated\""));
    }
    Ok((options, sharing))
}
