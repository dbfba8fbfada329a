//! Routers that predict, as flows: the latency and the hit rates of lone packets by formula, and what flit by flit comes of the same.

use crate::common::UntilDone;
use kasuri_config::{Document, Known, Preparation};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_flow::analysis::{hit_rates, zero_load};
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_model::scenario::Scenario;
use kasuri_network::topology::NoFiles;

const MESH: &str = "network = { topology = \"mesh\", dimensions = [5, 4] }\nrouting = { algorithm = \"dimension-order\" }\n";
const TREE: &str = "network = { topology = \"fat-tree\", up = 3, down = 3, levels = 3 }\nrouting = { algorithm = \"nca\" }\n";

fn scenario(network: &str, router: &str, sends: &str) -> Scenario {
    let text =
        format!("{network}router = {{ pipeline = [\"RC\", \"VSA\", \"ST\"], virtual_channels = 4, buffer_flits = 16{router} }}\n{sends}");
    let document = Document::parse("predictions.toml", &text).expect("TOML");
    let points = document.points().expect("one point");
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&points[0]).expect("a study");
    Scenario { paranoid: true, ..study.scenario }
}

fn run(engine: &dyn Engine, scenario: &Scenario) -> Outcome {
    let outcome = engine.run(scenario, &mut UntilDone).expect("a run");
    assert_eq!(outcome.status, Status::Completed);
    outcome
}

/// Predictors that never change their guesses, and one that knows, on networks that they know.
const PREDICTORS: &[(&str, &str)] = &[
    (MESH, "static-straight"),
    (MESH, "static-xy"),
    (MESH, "oracle"),
    (MESH, "express"),
    (TREE, "up-priority\", predictor_match = \"any-up"),
    (TREE, "up-priority\", predictor_match = \"exact"),
    (TREE, "oracle"),
    (TREE, "express"),
];

/// One packet outstanding: only chance meetings with others' packets delay it, and short ones hardly.
#[test]
fn hits_and_latencies_of_lone_packets_are_those_of_the_formulas() {
    let alone = "traffic = { pattern = \"uniform\", process = \"periodic\", load = 0.002, packet_flits = 2 }";
    for &(network, predictor) in PREDICTORS {
        let predicting = scenario(network, &format!(", predictor = \"{predictor}\""), alone);
        let rates = hit_rates(&predicting).expect("a formula").expect("a predictor");
        let expected = zero_load(&predicting).expect("a formula").packet_latency;
        let outcome = FlowEngine.run(&predicting, &mut Cycles(400_000)).expect("a run");
        let found = outcome.prediction.as_ref().expect("counts");
        let mean = outcome.packet_latency.mean().expect("packets");
        assert!((mean / expected - 1.0).abs() < 0.01, "{predictor}: {mean} cycles, by formula {expected}");
        let rate = |count: u64| count as f64 / found.switches as f64;
        assert!((rate(found.hits) - rates.hit_rate()).abs() < 0.01, "{predictor}: {} of {}", rate(found.hits), rates.hit_rate());
        assert!((rate(found.attempts) - rates.attempts / rates.routers).abs() < 0.01, "{predictor}");
        let by_channel: [u64; 3] = [0, 1, 2].map(|column| found.by_channel.iter().map(|counts| counts[column]).sum());
        assert_eq!(by_channel, [found.switches, found.attempts, found.hits]);
        let by_way = |column: usize| (0..3).filter_map(|way| found.of_direction(way)).map(|counts| counts[column]).sum::<u64>();
        let expected = if network == TREE { [found.attempts, found.hits] } else { [0, 0] };
        assert_eq!([by_way(0), by_way(1)], expected);
    }
}

/// A number of cycles, all of them counted.
struct Cycles(u64);

impl kasuri_model::engine::Controller for Cycles {
    fn interval_cycles(&mut self) -> u64 {
        self.0
    }

    fn interval_ended(&mut self, interval: &kasuri_model::engine::Interval) -> kasuri_model::engine::Command {
        use kasuri_model::engine::Command;
        if interval.end_cycle >= self.0 { Command::End(Status::Converged) } else { Command::Continue }
    }
}

/// A batch with a window of one between neighbours on a torus, undisturbed: each packet takes the formula's round trip.
#[test]
fn a_window_turns_the_savings_of_right_guesses_into_throughput() {
    let torus = "network = { topology = \"torus\", dimensions = [6] }\nrouting = { algorithm = \"dimension-order\" }\n";
    let batch = "traffic = { pattern = \"neighbor\", process = \"batch\", batch_packets = 50, packet_flits = 3, outstanding_packets = 1 }";
    for router in ["", ", predictor = \"oracle\"", ", predictor = \"static-straight\""] {
        let batches = scenario(torus, router, batch);
        let round_trip = zero_load(&batches).expect("a formula").packet_latency + 1.0;
        let [flow, flit] = [&FlowEngine as &dyn Engine, &FlitEngine].map(|engine| run(engine, &batches).completion_time.expect("an end"));
        assert!((flow - 50.0 * round_trip).abs() < 1e-6, "{router}: {flow}, by formula {}", 50.0 * round_trip);
        assert!((flow - flit).abs() < 2.0, "{router}: {flow} as flows, {flit} flit by flit");
    }
}

/// A barrier sends one short message after the other: what right guesses save of it is the same as flit by flit. The messages of a broadcast follow
/// each other, and flit by flit find some buffers not empty, in which nothing is guessed. Messages and paths are those without prediction.
#[test]
fn workloads_end_earlier_by_the_savings_of_right_guesses() {
    for (workload, lost) in [("collective = \"barrier\"", 0.03), ("collective = \"broadcast\", message_flits = 4", 0.15)] {
        let times = |router: &str| {
            let barrier = scenario(MESH, router, &format!("workload = {{ {workload} }}"));
            [&FlowEngine as &dyn Engine, &FlitEngine].map(|engine| run(engine, &barrier))
        };
        let [plain, predicted] = ["", ", predictor = \"oracle\""].map(times);
        let time = |outcome: &Outcome| outcome.completion_time.expect("an end");
        let [flow, flit] = [0, 1].map(|engine| time(&predicted[engine]) / time(&plain[engine]));
        assert!(flow < 0.75, "{workload}: {flow}");
        assert!((-0.03..lost).contains(&(1.0 - flow / flit)), "{workload}: {flow} of the time as flows, {flit} flit by flit");
        assert_eq!(predicted[0].channel_flits, plain[0].channel_flits);
        let counts = predicted[0].prediction.as_ref().expect("counts");
        assert_eq!((counts.switches, counts.hits), (predicted[0].hops.sum as u64, counts.switches));
    }
}

/// The benefit of these guesses depends on earlier packets, on whole packets, or on a choice of the router: flows have none of these.
#[test]
fn features_unknown_to_flows_are_refused() {
    let open = "traffic = { pattern = \"uniform\", load = 0.1, packet_flits = 2 }";
    for (router, sends, reason) in [
        (", predictor = \"latest-port\"", open, "a predictor that learns"),
        (", predictor = \"oracle\", switching = \"store-and-forward\"", open, "which a hit cuts through"),
        (
            ", predictor = \"oracle\", switching = \"store-and-forward\"",
            "workload = { collective = \"alltoall\", message_flits = 2 }",
            "cuts through",
        ),
    ] {
        let refused = FlowEngine.prepare(&scenario(MESH, router, sends)).err().expect("refused");
        assert_eq!(refused.len(), 1, "{router}");
        assert!(refused[0].key == "router.predictor" && refused[0].message().contains(reason), "{}", refused[0].message());
    }
}
