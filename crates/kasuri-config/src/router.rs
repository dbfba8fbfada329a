//! `[router]`, and whether what is sent fits its buffers.

use super::context::Context;
use super::document::Part;
use super::error::ConfigError;
use super::known::Known;
use super::physical;
use super::section::Section;
use kasuri_formats::names::unknown;
use kasuri_formats::text::text_of;
use kasuri_model::router::{Architecture, BufferPolicy, MAX_LATENCY, MAX_VIRTUAL_CHANNELS, Pipeline, RouterParameters, Switching};
use kasuri_network::network::Network;
use kasuri_network::network::rings::Rings;
use kasuri_network::predictor;
use kasuri_network::topology::Files;
use kasuri_workload::units::Units;
use std::sync::Arc;
use toml::{Table, Value};

pub(super) fn read(context: Context<'_>, known: Known<'_>, files: &dyn Files) -> Result<(RouterParameters, Pipeline), Vec<ConfigError>> {
    let empty = Table::new();
    let one = |error: ConfigError| vec![error];
    let section = Section::new(context, "router", context.table("router").map_err(one)?.unwrap_or(&empty));
    let mut router: RouterParameters = section.whole().map_err(one)?;
    if router.architecture == Architecture::OutputQueued {
        router.virtual_channels = 1;
        if !section.table.contains_key("switching") {
            router.switching = Switching::StoreAndForward;
        }
    }
    if let Some(file) = &router.predictor_table {
        let wrong = |problem: String| vec![section.error("predictor_table", problem)];
        let bytes = files.read(file).map_err(wrong)?;
        let text = text_of(file, &bytes).map_err(|error| wrong(error.to_string()))?;
        router.guesses = Some(Arc::new(predictor::Table::read(file, text).map_err(wrong)?));
    }
    let mut errors = Vec::new();
    let problems = |problems: Vec<(String, String)>| errors.extend(problems.into_iter().map(|(key, problem)| section.error(&key, problem)));
    let pipeline = router.check().map_err(problems).ok();
    errors.extend(strays(&router, &section));
    for (key, allocator) in [("vc_allocator", &router.vc_allocator), ("switch_allocator", &router.switch_allocator)] {
        if !known.allocators.contains(&allocator.name()) {
            let path = if section.table.get(key).is_some_and(Value::is_table) { format!("{key}.name") } else { key.to_owned() };
            errors.push(section.error(&path, unknown("allocator", allocator.name(), known.allocators.iter().copied())));
        }
    }
    if !predictor::names().any(|name| name == router.predictor) {
        errors.push(section.error("predictor", unknown("predictor", &router.predictor, predictor::names())));
    }
    match pipeline {
        Some(pipeline) if errors.is_empty() => Ok((router, pipeline)),
        _ => Err(errors),
    }
}

/// `router.latency` in cycles, if it is given.
pub(super) fn latency(context: Context<'_>, router: &RouterParameters, units: Units) -> Result<Option<u32>, ConfigError> {
    let error = |problem: String| context.error("router.latency", Part::Value, problem);
    let Some(written) = &router.latency else { return Ok(None) };
    if context.table("router")?.is_some_and(|table| table.contains_key("pipeline")) {
        return Err(error("conflicts with pipeline, which says the same by stages; keep one of the two".to_owned()));
    }
    let cycles = physical::cycles_of(written, units, u64::from(MAX_LATENCY)).map_err(error)?;
    Ok(Some(cycles as u32))
}

/// `router.resend_after` in cycles, if it is given.
pub(super) fn resend_after(context: Context<'_>, router: &RouterParameters, units: Units) -> Result<Option<u32>, ConfigError> {
    let cycles = router.resend_after.as_ref().map(|written| physical::cycles_of(written, units, u64::from(u32::MAX))).transpose();
    let cycles = cycles.map_err(|problem| context.error("router.resend_after", Part::Value, problem))?;
    Ok(cycles.map(|cycles| cycles as u32))
}

/// `router.vc_per_destination`: as many virtual channels as terminals.
pub(super) fn virtual_channels_of_terminals(context: Context<'_>, network: &Network) -> Result<u32, ConfigError> {
    let terminals = network.terminal_count();
    if terminals > MAX_VIRTUAL_CHANNELS {
        let problem = format!(
            "needs one virtual channel for each of {terminals} terminals; a port has at most {MAX_VIRTUAL_CHANNELS}, so the \
             network may have at most as many terminals"
        );
        return Err(context.error("router.vc_per_destination", Part::Value, problem));
    }
    let given = context.table("router")?.and_then(|table| table.get("virtual_channels"));
    if given.is_some_and(|given| given.as_integer() != Some(i64::from(terminals))) {
        let problem = format!("must be {terminals}, the number of terminals, or be left out, with vc_per_destination = true");
        return Err(context.error("router.virtual_channels", Part::Value, problem));
    }
    Ok(terminals)
}

/// A routing that leaves the choice among ports to the router needs one that waits for several at once.
pub(super) fn check_choice_of_ports(context: Context<'_>, router: &RouterParameters) -> Result<(), ConfigError> {
    let key = if [Architecture::VirtualOutputQueued, Architecture::Crosspoint].contains(&router.architecture) {
        "router.architecture"
    } else if router.vc_per_destination {
        "router.vc_per_destination"
    } else {
        return Ok(());
    };
    let problem = "needs a routing that chooses one port; this one leaves the choice to the router, so take another, or leave the key out";
    Err(context.error(key, Part::Value, problem))
}

/// Bubbles need rings, room for two packets in a buffer, and packets of one length: the room that several short ones leave together is
/// in as many buffers.
pub(super) fn check_bubble(
    context: Context<'_>,
    router: &RouterParameters,
    network: &Network,
    longest: u32,
    shorter: &dyn Fn() -> Option<u32>,
) -> Result<(), ConfigError> {
    let wrong = |key: &str, problem: String| Err(context.error(key, Part::Value, problem));
    if !router.bubble || longest == 0 {
        return Ok(());
    }
    if Rings::of(network).is_none() {
        let problem = format!("keeps the rings of a torus from filling up, and {} has none that are known; leave it out", network.name());
        return wrong("router.bubble", problem);
    }
    if router.buffer_flits < 2 * longest {
        let problem = format!(
            "is {}, but a packet enters a ring with a bubble only where there is room for two of {longest} flits; set buffer_flits = {} or more, \
             or shorten the packets",
            router.buffer_flits,
            2 * longest
        );
        return wrong("router.buffer_flits", problem);
    }
    match shorter() {
        Some(flits) => {
            let problem = format!(
                "needs packets of one length, but there are some of {longest} and of {flits} flits: what short ones leave free in several buffers \
                 is no room for a long one; give all packets one length, and messages a multiple of it"
            );
            wrong("router.bubble", problem)
        }
        None => Ok(()),
    }
}

/// A packet that waits as a whole needs a buffer for the whole of it.
pub(super) fn check_packets_fit(context: Context<'_>, router: &RouterParameters, longest: u32) -> Result<(), ConfigError> {
    let switching = match router.switching {
        Switching::Wormhole => return Ok(()),
        Switching::VirtualCutThrough => "virtual-cut-through",
        Switching::StoreAndForward => "store-and-forward",
    };
    let (key, held) = router.whole_packet_flits();
    if longest <= held {
        return Ok(());
    }
    let place = if router.architecture == Architecture::OutputQueued {
        "in a queue"
    } else if router.buffer_policy == BufferPolicy::Private {
        "in a buffer"
    } else {
        "in places that a virtual channel can count on"
    };
    let message = format!(
        "is {held}, but {switching} switching keeps whole packets {place} and the longest has {longest} flits; \
         set {key} = {longest} or more, or shorten the packets"
    );
    Err(context.error(&format!("router.{key}"), Part::Value, message))
}

/// Keys that mean nothing to output-queued routers.
fn strays(router: &RouterParameters, section: &Section<'_>) -> Vec<ConfigError> {
    if router.architecture != Architecture::OutputQueued {
        return Vec::new();
    }
    let is_stray = |key: &&String| !RouterParameters::OUTPUT_QUEUE_KEYS.contains(&key.as_str());
    let problem = "has no meaning for output-queued routers, which have one queue for each output: no virtual channels, input buffers or \
                   credits, and no switch that is allocated; leave it out";
    section.table.keys().filter(is_stray).map(|key| section.error(key, problem)).collect()
}
