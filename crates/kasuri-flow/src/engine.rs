//! The engine of the depth `flow`, and its section of the experiment file.

use crate::fluid::Fluid;
use crate::packets;
use crate::sharing::{self, SHARINGS, Sharing};
use kasuri_model::engine::{Controller, Engine, EngineError, Outcome, refuse_endpoint};
use kasuri_model::scenario::{Scenario, TrafficClass};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::network::metrics::hops_from;
use kasuri_network::predictor;
use kasuri_network::routing::extents::Extents;
use schemars::JsonSchema;
use serde::Deserialize;

/// Messages as fluid flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowEngine;

/// Bytes of a channel; of a terminal with its message and the channels on its way; and of its creations of each class.
const CHANNEL_BYTES: u64 = 50;
const TERMINAL_BYTES: u64 = 250;
const CLASS_BYTES: u64 = 120;

/// Bytes for the way of each message: all have room for the longest so far, which grows by half while the old room stands. That is between
/// 1.7 and 2.5 times the entries of 12 bytes of the longest way, which is the longest shortest one, or up to twice as long with detours.
fn way_bytes(network: &Network) -> u64 {
    let hops = hops_from(network, network.injection_port(TerminalId(0)).0);
    43 * u64::from(hops.into_iter().flatten().max().unwrap_or(0))
}

/// The keys of `[flow]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlowOptions {
    /// Which part of a channel's bandwidth each of its flows gets: `equal-share` (each channel divides its bandwidth equally, a
    /// flow takes the least share on its way) or `max-min` (what one cannot use goes to the others).
    pub sharing: String,
    /// Add to each message the cycles that its head takes through routers and channels; false: only the transfer counts.
    pub latency: bool,
}

impl Default for FlowOptions {
    fn default() -> Self {
        Self { sharing: SHARINGS[0].name.to_owned(), latency: true }
    }
}

impl Engine for FlowEngine {
    fn name(&self) -> &'static str {
        "flow"
    }

    fn check(&self, scenario: &Scenario) -> Result<(), EngineError> {
        options(scenario)?;
        if scenario.router.predictor != predictor::NONE {
            return Err(EngineError::NotModelled { key: "router.predictor".to_owned(), engine: "flow", what: "predictors".to_owned() });
        }
        refuse_batches(scenario)?;
        if packets::machine(scenario).is_some() && scenario.has_background() {
            let what = "open traffic beside a machine; ask the flit engine".to_owned();
            return Err(EngineError::NotModelled { key: "traffic".to_owned(), engine: "flow", what });
        }
        if packets::machine(scenario).is_some() { Ok(()) } else { refuse_endpoint(scenario, "flow") }
    }

    fn memory_bytes(&self, scenario: &Scenario, _extents: &mut Extents) -> u64 {
        let network = &scenario.network;
        let (terminals, channels) = (u64::from(network.terminal_count()), u64::from(network.channel_count()));
        CHANNEL_BYTES * channels + (TERMINAL_BYTES + CLASS_BYTES * scenario.classes.len() as u64 + way_bytes(network)) * terminals
    }

    fn run(&self, scenario: &Scenario, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        self.check(scenario)?;
        let (options, sharing) = options(scenario)?;
        if let Some(machine) = packets::machine(scenario) {
            return packets::run(scenario, machine, options.latency, controller);
        }
        let by_equal_shares = options.sharing == SHARINGS[0].name;
        Fluid::new(scenario, sharing, by_equal_shares, options.latency).run(controller)
    }
}

/// What `[flow]` says, and its rule of sharing.
fn options(scenario: &Scenario) -> Result<(FlowOptions, Box<dyn Sharing>), EngineError> {
    let refuse = |key: &str, problem: String| EngineError::Option { key: key.to_owned(), problem };
    let options: FlowOptions =
        scenario.engine_options.clone().try_into().map_err(|error: toml::de::Error| refuse("flow", error.message().to_owned()))?;
    let known = || SHARINGS.iter().map(|entry| format!("\"{}\"", entry.name)).collect::<Vec<_>>().join(" or ");
    let sharing = sharing::build(&options.sharing)
        .ok_or_else(|| refuse("flow.sharing", format!("is \"{}\"; it must be {}", options.sharing, known())))?;
    Ok((options, sharing))
}

/// Flows know nothing of batches that several classes share, nor of those in which answers count.
fn refuse_batches(scenario: &Scenario) -> Result<(), EngineError> {
    let refuse = |key: &str, what: &str| {
        Err(EngineError::NotModelled { key: format!("traffic.{key}"), engine: "flow", what: format!("{what}; ask the flit engine") })
    };
    let any = |condition: fn(&TrafficClass) -> bool| scenario.classes.iter().any(condition);
    if scenario.counts_answers() {
        return refuse("counts_answers", "batches that count the answers to others");
    }
    if any(|class| class.joint.is_some() && class.packets_per_terminal.is_some()) {
        return refuse("class.shares_coins", "a batch of several classes");
    }
    Ok(())
}
