//! The best all-to-all of a design: the schedule and the tie rule to set, found by counting messages.

use crate::efficiency::{EFFICIENT_SHARE, MAX_SEARCHED_RANKS, Tie, fastest_of, ties};
use kasuri_network::network::Network;
use kasuri_network::registry::find;
use kasuri_network::routing::{ROUTINGS, Routing};
use kasuri_workload::schedule::Job;
use serde::Serialize;
use std::sync::Arc;
use toml::Table;

/// All-to-alls of more terminals are not counted: following the messages of all pairs would take minutes.
pub const MAX_SCHEDULED_TERMINALS: u32 = 2048;

/// An all-to-all of all terminals of a design, in phases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecommendedSchedule {
    /// `routing.algorithm`.
    pub routing: &'static str,
    /// Another key of `[routing]` with its value, if the routing's own tie rule is not the best.
    pub tie: Option<String>,
    /// `workload.schedule`.
    pub schedule: &'static str,
    /// Phases.
    pub phases: u32,
    /// The lower bound over the time of the phases, both in transmissions of a message: at most 1.
    pub efficiency: f64,
    /// True if it is far from the bound and no better one was searched, which takes long: `general` may be much better.
    pub unsearched: bool,
}

impl RecommendedSchedule {
    /// The fastest schedule known for all terminals of a network; with `search`, a schedule is searched for networks of any size. `None` if
    /// the network is too large or has no fixed routes.
    pub(super) fn of(network: &Arc<Network>, topology: &str, search: bool) -> Option<Self> {
        let terminals = network.terminal_count();
        if terminals > MAX_SCHEDULED_TERMINALS {
            return None;
        }
        let algorithm = routing_of(topology);
        let rules = std::iter::once(None).chain(ties(algorithm).iter().copied().map(Some));
        let routings = rules.filter_map(|tie| Some((tie, compile(network, algorithm, tie)?)));
        let searched = if search { MAX_SCHEDULED_TERMINALS } else { MAX_SEARCHED_RANKS };
        let (found, tie) = fastest_of(network, &Job::All, terminals, searched, routings)?;
        let tie = tie.map(|(key, value)| format!("{key} = \"{value}\""));
        let efficiency = found.counted.lower_bound() as f64 / found.counted.time().max(1) as f64;
        let unsearched = terminals > searched && efficiency < EFFICIENT_SHARE;
        let (schedule, phases) = (found.entry.name, found.plan.schedule.phases());
        Some(Self { routing: algorithm, tie, schedule, phases, efficiency, unsearched })
    }

    /// Schedule and tie rule in a few words.
    pub fn words(&self) -> String {
        self.tie.as_ref().map_or_else(|| self.schedule.to_owned(), |tie| format!("{}, {tie}", self.schedule))
    }
}

/// The usual deterministic routing of a topology.
fn routing_of(topology: &str) -> &'static str {
    match topology {
        "mesh" | "torus" | "flattened-butterfly" => "dimension-order",
        "fat-tree" => "nca",
        _ => "minimal",
    }
}

fn compile(network: &Arc<Network>, algorithm: &str, tie: Option<Tie>) -> Option<Arc<dyn Routing>> {
    let keys: Table = tie.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    let routing = (find(ROUTINGS, algorithm)?.parse)(keys).ok()?.compile(network).ok()?;
    Some(routing.into())
}
