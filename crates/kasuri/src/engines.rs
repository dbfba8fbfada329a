//! The only list of this program's engines. A new engine is a crate and its line here; it describes itself.

use kasuri_config::{Known, Study};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_flow::analysis::AnalysisEngine;
use kasuri_model::engine::{Engine, Feature, Method, Prepared};
use kasuri_model::refusal::Refusal;
use kasuri_model::router::{Architecture, RouterParameters};
use kasuri_model::scenario::Scenario;
use kasuri_packet::queued;
use schemars::Schema;

/// All engines, from the coarsest to the finest.
pub static ENGINES: &[&dyn Engine] = &[&AnalysisEngine, &FlowEngine, &CyclesEngine];

/// The finest engine: flit by flit, and packet by packet for routers with queues at their outputs, which packets enter and leave whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct CyclesEngine;

/// The column of output-queued routers, next to those of the layouts.
const OUTPUT_QUEUED: &str = "output-queued";

impl Engine for CyclesEngine {
    fn name(&self) -> &'static str {
        FlitEngine.name()
    }

    fn summary(&self) -> &'static str {
        FlitEngine.summary()
    }

    fn section(&self) -> fn() -> Schema {
        FlitEngine.section()
    }

    fn method(&self) -> Method {
        FlitEngine.method()
    }

    fn features(&self) -> Vec<Feature> {
        let of_flits = FlitEngine.features();
        let layouts: Vec<&str> = of_flits.first().map_or_else(Vec::new, |row| row.support.iter().map(|&(layout, _)| layout).collect());
        let own = queued::features(OUTPUT_QUEUED);
        let lacks = |row: &Feature| own.iter().any(|other| other.name == row.name);
        // Users, machines and other architectures are refused as a whole; their rows do not apply here.
        let is_of = |row: &Feature| ["user", "users.isolation", "endpoint.model", "traffic"].contains(&row.key);
        let is_other = |row: &Feature| row.key == "router.architecture" && !row.name.starts_with(OUTPUT_QUEUED);
        let is_stray =
            |row: &Feature| row.key.strip_prefix("router.").is_some_and(|key| !RouterParameters::OUTPUT_QUEUE_KEYS.contains(&key));
        let means_nothing = |row: &Feature| is_of(row) || is_other(row) || is_stray(row);
        let word = |row: &Feature| if lacks(row) || means_nothing(row) { "no" } else { "yes" };
        let with_column = |mut row: Feature| {
            row.support.push((OUTPUT_QUEUED, word(&row)));
            row
        };
        let is_new = |row: &&Feature| of_flits.iter().all(|other| other.name != row.name);
        let further = own.iter().filter(is_new).cloned().map(|mut row| {
            row.support = layouts.iter().map(|&layout| (layout, "yes")).chain(row.support).collect();
            row
        });
        let further: Vec<Feature> = further.collect();
        of_flits.into_iter().map(with_column).chain(further).collect()
    }

    fn prepare<'s>(&'s self, scenario: &'s Scenario) -> Result<Box<dyn Prepared + 's>, Vec<Refusal>> {
        match scenario.router.architecture {
            Architecture::OutputQueued => queued::prepare(scenario),
            _ => FlitEngine.prepare(scenario),
        }
    }
}

/// The default engine.
pub const DEFAULT: &str = "flit";

/// The engine of a study, and its index among the engines known when the study was made.
///
/// # Panics
/// The study was made with other engines.
pub(crate) fn of_study<'a>(known: Known<'a>, study: &Study) -> (usize, &'a dyn Engine) {
    let found = known.engines.iter().copied().enumerate().find(|(_, engine)| engine.name() == study.engine);
    found.expect("a study is made only with an engine of the list")
}
