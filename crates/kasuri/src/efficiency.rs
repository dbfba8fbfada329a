//! Suggests keys that would bring an all-to-all nearer to its bound.
//!
//! Candidates are found by counting the messages of the phases on the channels ([`kasuri_workload::schedule`]). The experiment is then run
//! with these keys, and the hint reports the result.

use crate::plan::PreparedPoint;
use crate::results::RunRow;
use kasuri_config::{Point, Preparation, Study};
use kasuri_model::engine::Method;
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;
use kasuri_workload::schedule::{Counted, Job, fastest};
use kasuri_workload::workload::Collective;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use toml::Value;

/// The operation with known phases.
const ALL_TO_ALL: &str = "alltoall";

/// Larger jobs are not counted for a hint: an all-to-all of this size has a million messages.
const MAX_COUNTED_RANKS: u32 = 1024;

/// Larger jobs are not searched for a hint: a search of this size takes about as long as the run of a flow engine.
pub(crate) const MAX_SEARCHED_RANKS: u32 = 128;

/// A collective with this efficiency needs no hint.
pub(crate) const EFFICIENT_SHARE: f64 = 0.9;

/// A hint must speed up the operation by this factor.
const MIN_SPEEDUP: f64 = 1.1;

/// The most flit hops of a run repeated for a hint: it takes as long as the first one.
const MAX_REPEATED_FLIT_HOPS: f64 = 5e7;

/// Faster settings by network and job: many runs share them.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    known: Mutex<BTreeMap<String, Option<Suggestion>>>,
}

impl Hints {
    /// A setting that may speed up the collective of this run.
    pub(crate) fn suggestion(&self, preparation: &mut Preparation<'_>, point: &PreparedPoint, row: &RunRow) -> Option<Suggestion> {
        let (bound, completion) = (row.number("completion_bound")?, row.number("completion_time")?);
        let is_long = point.method() == Method::Cycles && row.number("flit_hops").is_none_or(|hops| hops > MAX_REPEATED_FLIT_HOPS);
        if bound >= EFFICIENT_SHARE * completion || point.method() == Method::Formulas || is_long {
            return None;
        }
        let question = question(&point.point);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&question).cloned();
        known.unwrap_or_else(|| {
            let found = suggest(preparation, &point.point, &point.study);
            self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(question, found.clone());
            found
        })
    }
}

/// A schedule, and a tie rule that keeps its phases, for a job on a network.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Suggestion {
    schedule: &'static str,
    /// A key of `[routing]` and its value, if it differs from the file's.
    tie: Option<Tie>,
    phases: u32,
    /// The time of all phases, in transmissions of a message.
    message_times: u64,
    /// True if every rank sends in every phase, and every channel carries at most one message: ranks then stay in step.
    keeps_step: bool,
}

/// The network, routing and job of a suggestion.
fn question(point: &Point) -> String {
    let of = |key: &str| point.table.get(key).map(Value::to_string).unwrap_or_default();
    let workload = point.table.get("workload").and_then(Value::as_table);
    let part = |key: &str| workload.and_then(|table| table.get(key)).map(Value::to_string).unwrap_or_default();
    let job = ["collective", "ranks", "placement", "placement_stride", "placement_seed"].map(part);
    format!("{}\n{}\n{}\n{}\n{}", of("network"), of("faults"), of("routing"), of("router"), job.join("\n"))
}

/// Finds the fastest known schedule of an all-to-all, with the routing of the file and with its other tie rules.
fn suggest(preparation: &mut Preparation<'_>, point: &Point, study: &Study) -> Option<Suggestion> {
    let collective = study.scenario.workload.as_ref().filter(|closed| closed.parts.len() == 1)?.workload.collective()?;
    let ranks = collective.terminals.len() as u32;
    // Schedules support terminals with one port.
    if collective.operation != ALL_TO_ALL || ranks > MAX_COUNTED_RANKS || collective.ports > 1 {
        return None;
    }
    let job = job(point, &collective);
    let network = &*study.scenario.network;
    let algorithm = point.table.get("routing").and_then(|routing| routing.get("algorithm")).and_then(Value::as_str).unwrap_or_default();
    let tied = |tie| Some((Some(tie), with_tie(preparation, point, tie)?));
    let own = std::iter::once((None, Arc::clone(&study.scenario.routing)));
    let (found, tie) = fastest_of(network, &job, ranks, MAX_SEARCHED_RANKS, own.chain(ties(algorithm).iter().copied().filter_map(tied)))?;
    Some(Suggestion {
        schedule: found.entry.name,
        tie,
        phases: found.plan.schedule.phases(),
        message_times: found.counted.time(),
        keeps_step: found.plan.schedule.is_full() && found.counted.is_contention_free(),
    })
}

/// The fastest known schedule of an all-to-all under any of these routings, each with the tie rule that produces it. The search ends with
/// the first one as fast as single messages. Jobs of at most `searched` ranks are searched beyond the known schedules.
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
        if found.counted.time() > found.counted.lower_bound() && ranks <= searched {
            found = fastest(network, &*routing, job, searched).unwrap_or(found);
        }
        if best.as_ref().is_none_or(|(best, _)| found.counted.time() < best.counted.time()) {
            best = Some((found, tie));
        }
        if best.as_ref().is_some_and(|(best, _)| best.counted.time() <= best.counted.terminal_time) {
            break;
        }
    }
    best
}

/// A section of the file, a key of it and its value.
pub(crate) type Setting = (&'static str, &'static str, &'static str);

impl Suggestion {
    /// The settings to change in a point's file; empty if all are set already.
    pub(crate) fn settings(&self, point: &Point, study: &Study) -> Vec<Setting> {
        let schedule = study.scenario.workload.as_ref().and_then(|closed| Some(closed.workload.collective()?.schedule));
        let mut settings = Vec::new();
        if schedule != Some(self.schedule) {
            settings.push(("workload", "schedule", self.schedule));
        }
        if !self.keeps_step {
            settings.push(("workload", "synchronisation", "barrier"));
        }
        settings.extend(self.tie.map(|(key, value)| ("routing", key, value)));
        settings.retain(|&(section, key, value)| point.table.get(section).and_then(|table| table.get(key)?.as_str()) != Some(value));
        settings
    }

    /// The line of a tested hint: the cycles of the run, of that with these settings, and their bound. `None` for too small a gain.
    pub(crate) fn line(&self, settings: &[Setting], [completion, tried, bound]: [f64; 3]) -> Option<String> {
        if completion < MIN_SPEEDUP * tried {
            return None;
        }
        let keys: Vec<String> = settings.iter().map(|(section, key, value)| format!("{section}.{key} = \"{value}\"")).collect();
        let (phases, times) = (self.phases, self.message_times);
        let counted = if u64::from(phases) == times { String::new() } else { format!(" in {times} message times") };
        // Rounded down, so that the keys keep the promise.
        let efficiency = (100.0 * bound / tried).floor() / 100.0;
        Some(format!("{} would need {phases} phases{counted}: efficiency {efficiency:.2}", keys.join(" with ")))
    }
}

/// A point with these settings.
pub(crate) fn with_settings(point: &Point, settings: &[Setting]) -> Option<Point> {
    let mut changed = point.clone();
    for &(section, key, value) in settings {
        changed.table.get_mut(section)?.as_table_mut()?.insert(key.to_owned(), value.into());
    }
    Some(changed)
}

/// Cycles beyond which a hint is not worth its line.
pub(crate) fn patience(completion: f64) -> u64 {
    (completion / MIN_SPEEDUP) as u64 + 1
}

/// A key of `[routing]` and its value.
pub(crate) type Tie = (&'static str, &'static str);

/// The tie rules of a routing that always choose the same one of several equal paths.
pub(crate) fn ties(algorithm: &str) -> &'static [Tie] {
    match algorithm {
        "minimal" => &[("tie", "destination"), ("tie", "source"), ("tie", "lowest")],
        "nca" => &[("up_port", "d-mod-k"), ("up_port", "s-mod-k")],
        "dimension-order" => &[("tie", "positive")],
        _ => &[],
    }
}

/// The routing of a point with another tie rule, if available.
fn with_tie(preparation: &mut Preparation<'_>, point: &Point, (key, value): Tie) -> Option<Arc<dyn Routing>> {
    let mut point = point.clone();
    point.table.get_mut("routing")?.as_table_mut()?.insert(key.to_owned(), value.into());
    preparation.routed(&point).ok().map(|(_, routing)| routing)
}

/// The job as the file names it: a schedule made for the network may choose the terminals.
fn job(point: &Point, collective: &Collective<'_>) -> Job {
    let has = |key: &str| point.table.get("workload").is_some_and(|workload| workload.get(key).is_some());
    match (has("placement"), has("ranks")) {
        (true, _) => Job::Terminals(collective.terminals.to_vec()),
        (false, true) => Job::Count(collective.terminals.len() as u32),
        (false, false) => Job::All,
    }
}
