//! Batches of several classes, as flows.

use crate::common::UntilDone;
use kasuri_config::{Document, Known, Preparation};
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_network::topology::NoFiles;

/// Runs batches of 100 flits in each packet on 8 terminals of a full mesh: only the terminals' own channels are shared.
fn run(traffic: &str) -> Outcome {
    let text = format!(
        "engine = \"flow\"\nnetwork = {{ topology = \"full-mesh\", routers = 8, concentration = 1 }}\n\
         routing = {{ algorithm = \"minimal\" }}\n\
         traffic = {{ process = \"batch\", batch_packets = 3, packet_flits = 100, {traffic} }}\n\
         flow = {{ latency = false }}"
    );
    let document = Document::parse("batches.toml", &text).expect("TOML");
    let points = document.points().expect("one point");
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&points[0]).expect("traffic");
    FlowEngine.run(&study.scenario, &mut UntilDone).expect("a run")
}

/// Each terminal sends 3 packets of each of two classes, one after the other, and receives the same number.
#[test]
fn batches_of_several_classes_are_all_delivered() {
    let outcome = run("class = [{ pattern = \"bit-complement\" }, { pattern = \"bit-complement\" }]");
    assert_eq!((outcome.status, outcome.packet_latency.count), (Status::Completed, 8 * 2 * 3));
    let time = outcome.completion_time.expect("it completes");
    // Between two messages of a terminal there may be the cycles in which the one ends and the other begins.
    assert!((600.0..=600.0 + 2.0 * 6.0).contains(&time), "{time}");
}
