//! A request to stop ends a run in its middle, on every engine and for intervals of any length.

use kasuri_config::{Document, Known, Preparation};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_flow::analysis::AnalysisEngine;
use kasuri_model::engine::{Command, Controller, Engine, Interval, Status};
use kasuri_network::topology::NoFiles;
use std::cell::Cell;

/// Continues a run for this many checks, then requests its end. Its intervals never end otherwise.
struct AfterLooks {
    left: Cell<u32>,
    stopped_in: Option<u64>,
}

impl Controller for AfterLooks {
    fn interval_cycles(&mut self) -> u64 {
        u64::MAX
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        self.stopped_in = (!interval.completed && self.left.get() == 0).then_some(interval.end_cycle);
        Command::End(Status::MaxCycles)
    }

    fn should_stop(&self) -> bool {
        self.left.set(self.left.get().saturating_sub(1));
        self.left.get() == 0
    }
}

/// Runs an experiment on an engine until it has looked so often. Returns the cycle in which it stopped, if it did before its end.
fn stopped_in(engine: &dyn Engine, text: &str, looks: u32) -> Option<u64> {
    let document = Document::parse("stopping.toml", text).expect("an experiment");
    let points = document.points().expect("one point");
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&points[0]).expect("a study");
    let mut controller = AfterLooks { left: Cell::new(looks), stopped_in: None };
    engine.run(&study.scenario, &mut controller).expect("a run");
    controller.stopped_in
}

/// Fails unless a run stops soon after it has been asked to, and later where it is asked later.
fn hears(engine: &dyn Engine, text: &str) {
    let name = engine.name();
    let soon = stopped_in(engine, text, 1).unwrap_or_else(|| panic!("{name} goes on to the end of\n{text}"));
    let later = stopped_in(engine, text, 4).unwrap_or_else(|| panic!("{name} goes on to the end of\n{text}"));
    assert!(soon < later, "{name} stops in cycles {soon} and {later} of\n{text}");
    assert_eq!(stopped_in(engine, text, u32::MAX), None, "{name}, when nobody asks it to stop");
}

const ALL_TO_ALL: &str = r#"
    network = { topology = "mesh", dimensions = [4, 4] }
    routing = { algorithm = "dimension-order" }
    workload = { collective = "alltoall", message_flits = 250000, packet_flits = 8 }
    measure = { max_cycles = 1000000000 }
"#;

#[test]
fn the_flit_engine_stops_within_an_interval() {
    hears(&FlitEngine, &ALL_TO_ALL.replace("250000", "5000"));
}

#[test]
fn the_flow_engine_stops_within_an_interval() {
    hears(&FlowEngine, ALL_TO_ALL);
}

#[test]
fn formulas_for_a_closed_workload_can_be_stopped() {
    only_hears(&AnalysisEngine, ALL_TO_ALL);
}

/// Fails unless a run stops when it is asked to, and only then. When it stopped, its interval does not say.
fn only_hears(engine: &dyn Engine, text: &str) {
    let name = engine.name();
    assert!(stopped_in(engine, text, 4).is_some(), "{name} goes on to the end of\n{text}");
    assert_eq!(stopped_in(engine, text, u32::MAX), None, "{name}, when nobody asks it to stop");
}

const SHARED_MEMORY: &str = r#"
    network = { topology = "rdt", side = 8 }
    routing = { algorithm = "vector" }
    router = { virtual_channels = 6 }
    endpoint = { model = "dsm", interface_cycles = 168, window = 64, command_flits = 1, data_flits = 1 }
    workload = { program = "matrix-vector" }
    measure = { max_cycles = 100000000 }
"#;

#[test]
fn a_distributed_shared_memory_can_be_stopped() {
    hears(&FlitEngine, SHARED_MEMORY);
    only_hears(&FlowEngine, SHARED_MEMORY);
}

#[test]
fn a_machine_of_user_level_interfaces_can_be_stopped() {
    let barrier = r#"
        network = { topology = "cenju4", terminals = 32, cycle_ns = 12.5 }
        routing = { algorithm = "destination-tag" }
        router = { architecture = "crosspoint", buffer_flits = 216 }
        endpoint = { model = "cenju4" }
        workload = { collective = "barrier", schedule = "network-barrier" }
        measure = { max_cycles = 100000000 }
    "#;
    only_hears(&FlitEngine, barrier);
}
