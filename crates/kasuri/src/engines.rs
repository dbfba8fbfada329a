//! The engines of this version by name.

use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_flow::analysis::AnalysisEngine;
use kasuri_model::config::EngineName;
use kasuri_model::engine::Engine;

/// The engine of this name, if this version has it.
pub fn engine(name: EngineName) -> Option<&'static dyn Engine> {
    match name {
        EngineName::Flit => Some(&FlitEngine),
        EngineName::Analysis => Some(&AnalysisEngine),
        EngineName::Flow => Some(&FlowEngine),
    }
}

/// The names of the engines that this version has.
pub fn names() -> Vec<&'static str> {
    EngineName::ALL.into_iter().filter(|&name| engine(name).is_some()).map(EngineName::name).collect()
}
