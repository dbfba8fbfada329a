//! The engines of this program: the one list. A new engine is a crate and its line here; what else is to be known of it, it says itself.

use kasuri_config::{Known, Study};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_flow::analysis::AnalysisEngine;
use kasuri_model::engine::Engine;

/// All engines, from the coarsest to the finest.
pub static ENGINES: &[&dyn Engine] = &[&AnalysisEngine, &FlowEngine, &FlitEngine];

/// The engine of an experiment that names none.
pub const DEFAULT: &str = "flit";

/// The engine of a study, and its place among those that were known when the study was made.
///
/// # Panics
/// The study was made with others.
pub(crate) fn of_study<'a>(known: Known<'a>, study: &Study) -> (usize, &'a dyn Engine) {
    let found = known.engines.iter().copied().enumerate().find(|(_, engine)| engine.name() == study.engine);
    found.expect("a study is made only with an engine of the list")
}
