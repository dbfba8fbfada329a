//! How near a collective operation comes to what its network allows, and which keys would bring it nearer.
//!
//! The bound is of the kind that every engine and every schedule obeys: the data that the operation has to move over the terminals' channels
//! and, of an all-to-all, over the most loaded channel between routers. What would be faster is decided by counting the messages of the
//! phases on the channels ([`kasuri_workload::schedule`]); nothing is simulated.

use crate::design;
use crate::plan::PreparedPoint;
use crate::results::RunRow;
use kasuri_config::{Point, Preparation, Study};
use kasuri_model::engine::{Method, Outcome};
use kasuri_model::router::Pipeline;
use kasuri_network::id::ChannelId;
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;
use kasuri_workload::schedule::{Counted, Job, fastest};
use kasuri_workload::workload::Collective;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use toml::Value;

/// The operation of which phases are known.
const ALL_TO_ALL: &str = "alltoall";

/// Jobs larger than this are not counted for a hint: an all-to-all of so many ranks has a million messages.
const MOST_COUNTED: u32 = 1024;

/// Jobs larger than this are not searched for a hint: the search of so many takes about as long as the run of a flow engine.
pub(crate) const MOST_SEARCHED: u32 = 128;

/// A collective that comes so near to its bound needs no hint.
pub(crate) const NEAR: f64 = 0.9;

/// A hint is worth its line where it promises to be so much faster.
const WORTH: f64 = 1.1;

/// Cycles below which no schedule and no known routing can bring an operation; `None` of a workload that has no such bound (a barrier, a
/// trace, an application, those of users).
///
/// The busiest terminal has to send and receive what the operation asks for. Of an all-to-all the most loaded channel between routers has to
/// carry its part besides: by shortest paths with equal paths shared equally, or by the routing that was run if that has loaded its busiest
/// channel less.
pub(crate) fn bound(study: &Study, outcome: &Outcome) -> Option<f64> {
    let closed = study.scenario.workload.as_ref().filter(|closed| closed.parts.len() == 1)?;
    let network = &*study.scenario.network;
    let collective = closed.workload.collective()?;
    let least = collective.least?;
    let terminals = collective.terminals.iter();
    let slowest = terminals.map(|&terminal| {
        let period = |channel: ChannelId| u64::from(network.link(channel).period);
        (least.sent * period(network.injection_channel(terminal)), least.received * period(network.ejection_channel(terminal)))
    });
    // Somebody sends and receives so much, and nobody knows who: with channels of different speed the fastest ones.
    let all_alike = matches!(collective.operation, ALL_TO_ALL | "allgather" | "allreduce");
    let pick = |one: u64, other: u64| if all_alike { one.max(other) } else { one.min(other) };
    let (sent, received) = slowest.reduce(|one, other| (pick(one.0, other.0), pick(one.1, other.1)))?;
    let of_terminals = sent.max(received) as f64 / f64::from(collective.ports);
    let times = f64::from(collective.times);
    let between = if collective.operation == ALL_TO_ALL { between_routers(network, &collective, outcome, of_terminals) } else { 0.0 };
    Some(of_terminals.max(between) * times)
}

/// Cycles that the most loaded channel between routers needs for an all-to-all; not asked further if the terminals need more.
fn between_routers(network: &Network, collective: &Collective<'_>, outcome: &Outcome, of_terminals: f64) -> f64 {
    let busy = |channel: ChannelId| {
        let flits = outcome.channel_flits.get(channel.index()).copied().unwrap_or(0);
        flits as f64 * f64::from(network.link(channel).period)
    };
    let run = network.router_channels().map(busy).fold(0.0, f64::max) / f64::from(collective.times);
    if run <= of_terminals {
        return run;
    }
    let others = collective.terminals.len().saturating_sub(1).max(1) as f64;
    let flits = collective.least.map_or(0.0, |least| least.sent as f64) / others;
    // Of several ports each carries its part, and so do the channels that the first ones use.
    let flits = flits / f64::from(collective.ports);
    design::all_pairs_cycles(network, collective.terminals).map_or(run, |cycles| run.min(cycles * flits))
}

/// What would be faster, by network and job: many runs ask the same.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    known: Mutex<BTreeMap<String, Option<Suggestion>>>,
}

impl Hints {
    /// What would make a collective that has been run faster, if that is worth a line.
    pub(crate) fn line(&self, preparation: &mut Preparation<'_>, point: &PreparedPoint, row: &RunRow) -> Option<String> {
        let (bound, completion) = (row.number("completion_bound")?, row.number("completion_time")?);
        if bound >= NEAR * completion || point.method() == Method::Formulas {
            return None;
        }
        let question = question(&point.point);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&question).cloned();
        let suggestion = known.unwrap_or_else(|| {
            let found = suggest(preparation, &point.point, &point.study);
            self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(question, found.clone());
            found
        });
        suggestion?.line(&point.study, bound, completion)
    }
}

/// A schedule, and a tie rule that lets it keep its phases, for a job on a network.
#[derive(Clone, Debug, PartialEq)]
struct Suggestion {
    schedule: &'static str,
    /// A key of `[routing]` and its value, where another one than the file's is needed.
    tie: Option<Tie>,
    phases: u32,
    /// The time of all phases, in transmissions of a message.
    message_times: u64,
    /// Has every rank something to send in every phase, and no channel two messages, so that ranks keep step by themselves?
    keeps_step: bool,
    /// Cycles for which a phase goes on after its last flit has left.
    latency: f64,
}

/// For which network, routing and job a suggestion holds.
fn question(point: &Point) -> String {
    let of = |key: &str| point.table.get(key).map(Value::to_string).unwrap_or_default();
    let workload = point.table.get("workload").and_then(Value::as_table);
    let part = |key: &str| workload.and_then(|table| table.get(key)).map(Value::to_string).unwrap_or_default();
    let job = ["collective", "ranks", "placement", "placement_stride", "placement_seed"].map(part);
    format!("{}\n{}\n{}\n{}\n{}", of("network"), of("faults"), of("routing"), of("router"), job.join("\n"))
}

/// Looks for the fastest known schedule of an all-to-all, with the routing of the file and with its other tie rules.
fn suggest(preparation: &mut Preparation<'_>, point: &Point, study: &Study) -> Option<Suggestion> {
    let collective = study.scenario.workload.as_ref().filter(|closed| closed.parts.len() == 1)?.workload.collective()?;
    let ranks = collective.terminals.len() as u32;
    // Schedules know terminals with one port.
    if collective.operation != ALL_TO_ALL || ranks > MOST_COUNTED || collective.ports > 1 {
        return None;
    }
    let job = job(point, &collective);
    let network = &*study.scenario.network;
    let algorithm = point.table.get("routing").and_then(|routing| routing.get("algorithm")).and_then(Value::as_str).unwrap_or_default();
    let tied = |tie| Some((Some(tie), with_tie(preparation, point, tie)?));
    let own = std::iter::once((None, Arc::clone(&study.scenario.routing)));
    let (found, tie) = fastest_of(network, &job, ranks, MOST_SEARCHED, own.chain(ties(algorithm).iter().copied().filter_map(tied)))?;
    Some(Suggestion {
        schedule: found.entry.name,
        tie,
        phases: found.plan.schedule.phases(),
        message_times: found.counted.time(),
        keeps_step: found.plan.schedule.is_full() && found.counted.is_contention_free(),
        latency: latency(network, &study.scenario.pipeline, found.counted.longest_path),
    })
}

/// The fastest known schedule of an all-to-all under any of these routings, each with the tie rule that makes it of another one. The search
/// ends with the first that is as fast as messages one after the other. Jobs of at most `searched` ranks are searched beyond what is known.
pub(crate) fn fastest_of(
    network: &Network,
    job: &Job,
    ranks: u32,
    searched: u32,
    routings: impl Iterator<Item = (Option<Tie>, Arc<dyn Routing>)>,
) -> Option<(Counted, Option<Tie>)> {
    let mut best: Option<(Counted, Option<Tie>)> = None;
    for (tie, routing) in routings {
        let Ok(mut found) = fastest(network, &*routing, job, 0) else { continue };
        if found.counted.time() > u64::from(found.counted.lower_bound()) && ranks <= searched {
            found = fastest(network, &*routing, job, searched).unwrap_or(found);
        }
        if best.as_ref().is_none_or(|(best, _)| found.counted.time() < best.counted.time()) {
            best = Some((found, tie));
        }
        if best.as_ref().is_some_and(|(best, _)| best.counted.time() < u64::from(ranks)) {
            break;
        }
    }
    best
}

impl Suggestion {
    /// The line of a run that took so many cycles where the bound is so many; `None` if it promises too little.
    fn line(&self, study: &Study, bound: f64, completion: f64) -> Option<String> {
        let collective = study.scenario.workload.as_ref()?.workload.collective()?;
        let transfer = self.message_times as f64 * f64::from(collective.message_flits);
        let waits = if self.keeps_step { 1.0 } else { f64::from(self.phases) };
        let expected = (transfer + waits * self.latency) * f64::from(collective.times);
        if completion < WORTH * expected {
            return None;
        }
        let mut keys = Vec::new();
        if collective.schedule != self.schedule {
            keys.push(format!("workload.schedule = \"{}\"", self.schedule));
        }
        if !self.keeps_step {
            keys.push("workload.synchronisation = \"barrier\"".to_owned());
        }
        keys.extend(self.tie.map(|(key, value)| format!("routing.{key} = \"{value}\"")));
        let keys = if keys.is_empty() { return None } else { keys.join(" with ") };
        let Self { phases, message_times, .. } = self;
        let counted = if u64::from(*phases) == *message_times { String::new() } else { format!(" in {message_times} message times") };
        Some(format!("{keys} would need {phases} phases{counted}: efficiency about {:.2}", (bound / expected).min(1.0)))
    }
}

/// A key of `[routing]` and its value.
pub(crate) type Tie = (&'static str, &'static str);

/// The rules by which a routing takes one of several equal paths and always the same one.
pub(crate) fn ties(algorithm: &str) -> &'static [Tie] {
    match algorithm {
        "minimal" => &[("tie", "destination"), ("tie", "source"), ("tie", "lowest")],
        "nca" => &[("up_port", "d-mod-k"), ("up_port", "s-mod-k")],
        "dimension-order" => &[("tie", "positive")],
        _ => &[],
    }
}

/// The routing of a point with another tie rule, if it can be had.
fn with_tie(preparation: &mut Preparation<'_>, point: &Point, (key, value): Tie) -> Option<Arc<dyn Routing>> {
    let mut point = point.clone();
    point.table.get_mut("routing")?.as_table_mut()?.insert(key.to_owned(), value.into());
    preparation.routed(&point).ok().map(|(_, routing)| routing)
}

/// The job as the file names it: a schedule that is made for the network chooses the terminals itself where it may.
fn job(point: &Point, collective: &Collective<'_>) -> Job {
    let has = |key: &str| point.table.get("workload").is_some_and(|workload| workload.get(key).is_some());
    match (has("placement"), has("ranks")) {
        (true, _) => Job::Terminals(collective.terminals.to_vec()),
        (false, true) => Job::Count(collective.terminals.len() as u32),
        (false, false) => Job::All,
    }
}

/// Cycles of a head over so many of the slowest channels and the routers between them.
fn latency(network: &Network, pipeline: &Pipeline, channels: u32) -> f64 {
    let slowest = network.links().iter().map(|link| link.latency).max().unwrap_or(0);
    f64::from(1 + channels * slowest + channels.saturating_sub(1) * pipeline.head_cycles())
}
