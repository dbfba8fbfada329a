//! The engines by name.

use kasuri_config::EngineName;
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_flow::analysis::AnalysisEngine;
use kasuri_model::engine::Engine;

/// The engine of this name.
pub fn engine(name: EngineName) -> &'static dyn Engine {
    match name {
        EngineName::Analysis => &AnalysisEngine,
        EngineName::Flow => &FlowEngine,
        EngineName::Flit => &FlitEngine,
    }
}
