//! The common part of tests of users on a distributed shared memory.

#[path = "../../../../kasuri-flit/tests/suite/common/mod.rs"]
mod flit;

use flit::ToTheEnd;
use kasuri_config::{Document, Study};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Engine, Outcome, Status, TranslationCounts};
use kasuri_network::topology::NoFiles;

/// The engines that run such machines.
pub(crate) const ENGINES: [&dyn Engine; 2] = [&FlitEngine, &FlowEngine];

/// The study that a text describes, or why it is none.
pub(crate) fn study(text: &str) -> Result<Study, String> {
    let document = Document::parse("a.toml", text).map_err(|error| error.to_string())?;
    document.study(&document.points().unwrap()[0], &NoFiles).map_err(|error| error.to_string())
}

/// Runs it to its end, with all invariants checked.
pub(crate) fn run(engine: &dyn Engine, text: &str) -> Outcome {
    let mut study = study(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    study.scenario.paranoid = true;
    let outcome = engine.run(&study.scenario, &mut ToTheEnd).unwrap();
    assert_eq!(outcome.status, Status::Completed, "{} {text}", engine.name());
    outcome
}

/// The translation counts of a user.
pub(crate) fn counts(outcome: &Outcome, user: usize) -> TranslationCounts {
    outcome.users[user].translation.unwrap()
}
