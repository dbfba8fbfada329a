//! `kasuri list`: the names that an experiment file can use.

use super::{Exit, Failure, output};
use crate::engines::ENGINES;
use clap::{Args, ValueEnum};
use kasuri_config::pattern::ALL_PATTERNS;
use kasuri_config::routing::ALL_ROUTINGS;
use kasuri_config::topology::ALL_TOPOLOGIES;
use kasuri_model::engine::{Engine, Feature};
use kasuri_network::predictor::{self, PREDICTORS, PredictorEntry};
use kasuri_network::registry::Entry;
use kasuri_workload::collective::{COLLECTIVES, OPERATIONS, schedules};
use kasuri_workload::endpoint::{ENDPOINTS, cenju4};
use kasuri_workload::schedule::SCHEDULES;
use kasuri_workload::traffic::process::PROCESSES;
use kasuri_workload::workload::application::APPLICATIONS;
use serde_json::{Value as Json, json};
use std::io::Write;

#[derive(Debug, Args)]
pub(super) struct List {
    /// The family to list; without it an overview of all families
    family: Option<Family>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Family {
    /// engine
    Engines,
    /// network.topology
    Topologies,
    /// routing.algorithm
    Routings,
    /// traffic.pattern
    Patterns,
    /// traffic.process
    Processes,
    /// router.vc_allocator, router.switch_allocator
    Allocators,
    /// router.predictor
    Predictors,
    /// workload.collective
    Collectives,
    /// workload.schedule
    Schedules,
    /// endpoint.model
    Endpoints,
    /// workload.application
    Applications,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Names and summaries
    Table,
    /// One JSON object with keys, sources and examples
    Json,
}

impl List {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let Some(family) = self.family else { return self.overview(out) };
        let members = family.members();
        let name = family.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        if self.format == Format::Json {
            writeln!(out, "{:#}", json!({ name: members }))?;
        } else if members.is_empty() {
            writeln!(out, "This version has no {name}.")?;
        } else {
            let text = |member: &Json, key: &str| member[key].as_str().unwrap_or_default().to_owned();
            // Schedules of different collectives may have the same name.
            let keys: &[&str] = if family == Family::Schedules { &["collective", "name", "summary"] } else { &["name", "summary"] };
            let rows = members.iter().map(|member| keys.iter().map(|key| text(member, key)).collect()).collect();
            let headings: Vec<String> = keys.iter().map(|key| key.to_uppercase()).collect();
            let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
            writeln!(out, "{}", output::table(&headings, rows, &[]))?;
        }
        Ok(Exit::DONE)
    }

    /// One line for each family: its name, the key of the experiment file, and the allowed names.
    fn overview(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let families = Family::value_variants().iter().filter_map(|family| Some((family, family.to_possible_value()?)));
        if self.format == Format::Json {
            let all: serde_json::Map<String, Json> =
                families.map(|(family, value)| (value.get_name().to_owned(), Json::Array(family.members()))).collect();
            writeln!(out, "{:#}", Json::Object(all))?;
            return Ok(Exit::DONE);
        }
        let rows = families.map(|(family, value)| {
            let mut names: Vec<String> = family.members().iter().filter_map(|member| Some(member["name"].as_str()?.to_owned())).collect();
            names.dedup();
            let key = value.get_help().map(ToString::to_string).unwrap_or_default();
            vec![value.get_name().to_owned(), key, names.join(" ")]
        });
        writeln!(out, "{}", output::table(&["FAMILY", "KEY", "NAMES"], rows.collect(), &[]))?;
        writeln!(out, "\n`kasuri list FAMILY` says what each is; `kasuri explain KEY` what a key of the file means.")?;
        Ok(Exit::DONE)
    }
}

/// The names that are values of a key, each with its summary; empty if the key has no family.
pub(super) fn summaries(key: &str) -> Vec<Vec<String>> {
    let Some(family) = Family::value_variants().iter().find(|family| family.keys().iter().any(|known| known == key)) else {
        return Vec::new();
    };
    let text = |member: &Json, key: &str| member[key].as_str().unwrap_or_default().to_owned();
    let row = |member: &Json| match member["collective"].as_str() {
        Some(collective) => vec![text(member, "name"), format!("{collective}: {}", text(member, "summary"))],
        None => vec![text(member, "name"), text(member, "summary")],
    };
    family.members().iter().map(row).collect()
}

/// The keys with this name among their values.
pub(super) fn keys_with_value(name: &str) -> Vec<String> {
    let families = Family::value_variants().iter().filter(|family| family.members().iter().any(|member| member["name"] == name));
    families.flat_map(|family| family.keys()).collect()
}

impl Family {
    /// The keys with the names of this family as values; the help lists them.
    fn keys(self) -> Vec<String> {
        let help = self.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default();
        help.split(", ").map(str::to_owned).collect()
    }

    fn members(self) -> Vec<Json> {
        match self {
            Self::Engines => ENGINES.iter().map(|engine| described(*engine)).collect(),
            Self::Topologies => entries(ALL_TOPOLOGIES),
            Self::Routings => entries(ALL_ROUTINGS),
            Self::Patterns => entries(ALL_PATTERNS),
            Self::Processes => entries(PROCESSES),
            Self::Allocators => {
                kasuri_flit::ALLOCATORS.iter().map(|entry| json!({ "name": entry.name, "summary": entry.summary })).collect()
            }
            Self::Predictors => predictors(),
            Self::Collectives => {
                OPERATIONS.iter().map(|operation| json!({ "name": operation.name, "summary": operation.summary })).collect()
            }
            Self::Schedules => schedules_of_all_kinds(),
            Self::Endpoints => entries(ENDPOINTS),
            Self::Applications => {
                APPLICATIONS.iter().map(|entry| json!({ "name": entry.name, "summary": entry.summary, "source": entry.source })).collect()
            }
        }
    }
}

/// An engine and its features.
fn described(engine: &dyn Engine) -> Json {
    let feature = |feature: Feature| {
        let support: serde_json::Map<String, Json> =
            feature.support.iter().map(|(column, word)| ((*column).to_owned(), json!(word))).collect();
        json!({ "name": feature.name, "key": feature.key, "support": support })
    };
    let features: Vec<Json> = engine.features().into_iter().map(feature).collect();
    json!({ "name": engine.name(), "summary": engine.summary(), "features": features })
}

/// Those by ranks, then those made for a network, which all are all-to-alls, then those that endpoints' machines run.
fn schedules_of_all_kinds() -> Vec<Json> {
    let by_ranks = COLLECTIVES.iter().map(schedule);
    let of_network = SCHEDULES.iter().filter(|entry| schedules("alltoall").all(|known| known.schedule != entry.name));
    let described = |entry: &kasuri_workload::schedule::Entry| {
        json!({
            "name": entry.name,
            "collective": "alltoall",
            "default": false,
            "summary": entry.summary,
            "source": entry.source,
        })
    };
    let of_endpoints = cenju4::programs::schedules().map(|schedule| {
        json!({
            "name": schedule.schedule,
            "collective": schedule.collective,
            "default": false,
            "endpoint": schedule.model,
            "summary": format!("{}: {}", schedule.model, schedule.summary),
            "source": schedule.source,
        })
    });
    by_ranks.chain(of_network.map(described)).chain(of_endpoints).collect()
}

fn schedule(entry: &kasuri_workload::collective::Entry) -> Json {
    json!({
        "name": entry.schedule,
        "collective": entry.collective,
        "default": schedules(entry.collective).next().is_some_and(|first| first.schedule == entry.schedule),
        "summary": entry.summary,
        "source": entry.source,
    })
}

fn predictors() -> Vec<Json> {
    let none = json!({ "name": predictor::NONE, "summary": "no prediction: every packet goes through all stages" });
    let described = |entry: &PredictorEntry| json!({ "name": entry.name, "summary": entry.summary, "source": entry.source });
    std::iter::once(none).chain(PREDICTORS.iter().map(described)).collect()
}

fn entries<F: ?Sized>(table: &[Entry<F>]) -> Vec<Json> {
    let described = |entry: &Entry<F>| {
        json!({
            "name": entry.name,
            "summary": entry.summary,
            "source": entry.source,
            "example": entry.example,
            "keys": entry.keys(),
            "schema": Json::from((entry.schema)()),
        })
    };
    table.iter().map(described).collect()
}
