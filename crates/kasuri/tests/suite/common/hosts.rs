//! Hosts with a memory shared by their terminals: the common part of the tests on all engines.

use crate::common::UntilDone;
use kasuri::input::KNOWN;
use kasuri_config::{Document, Preparation, Study};
use kasuri_flow::FlowEngine;
use kasuri_model::engine::Engine;
use kasuri_model::scenario::Scenario;
use kasuri_network::topology::Files;

/// A flit of 8 bytes takes 0.8 ns, so that a channel carries 10 Gbyte/s.
pub(crate) const MESH: &str = r#"[network]
topology = "full-mesh"
routers = 8
flit_bytes = 8
channel_gbit_per_second = 80
[routing]
algorithm = "minimal"
"#;

/// Every terminal of a pair sends to the other.
struct Pairs;

impl Files for Pairs {
    fn read(&self, _: &str) -> Result<Vec<u8>, String> {
        Ok((0..8).map(|terminal| format!("{}\n", terminal ^ 1)).collect::<String>().into_bytes())
    }
}

/// The study that a text describes, for an engine: flows without the latency of their paths.
pub(crate) fn study(engine: &dyn Engine, text: &str) -> Result<Study, String> {
    let latency = if engine.name() == FlowEngine.name() { "flow.latency = false\n" } else { "" };
    let text = format!("engine = \"{}\"\n{latency}{text}", engine.name());
    let document = Document::parse_for(*KNOWN, "a.toml", &text).unwrap();
    Preparation::new(&document, &Pairs, *KNOWN).study(&document.points().unwrap()[0]).map_err(|errors| errors.to_string())
}

/// When its last message has arrived, with all invariants checked.
pub(crate) fn completion(engine: &dyn Engine, text: &str) -> f64 {
    let study = study(engine, text).unwrap();
    engine.run(&Scenario { paranoid: true, ..study.scenario }, &mut UntilDone).unwrap().completion_time.expect("an end")
}

/// The section of hosts of `terminals` terminals.
pub(crate) fn hosts(terminals: u32, memory: f64, copies: u32) -> String {
    format!("[hosts]\nterminals_per_host = {terminals}\nmemory_gbyte_per_second = {memory:?}\ncopies = {copies}\n")
}
