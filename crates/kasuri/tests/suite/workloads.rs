//! Closed workloads from the experiment file to the time of completion.

use kasuri::measure::controller;
use kasuri_config::{Document, Study};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_flow::analysis::AnalysisEngine;
use kasuri_formats::goal;
use kasuri_model::engine::{Engine, Status};
use kasuri_network::topology::Files;
use kasuri_workload::collective::{COLLECTIVES, MessageSize, Parameters};
use kasuri_workload::workload::placement;
use kasuri_workload::workload::rounds::{Options, Rounds};

/// One file under every name.
struct One(String);

impl Files for One {
    fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.clone().into_bytes())
    }
}

fn study(workload: &str, files: &One) -> Study {
    let text = format!(
        "[network]\ntopology = \"mesh\"\ndimensions = [4, 2]\nflit_bytes = 8\n[routing]\nalgorithm = \"dimension-order\"\n\
         [workload]\npacket_flits = 4\n{workload}\n"
    );
    let document = Document::parse("a.toml", &text).unwrap();
    document.study(&document.points().unwrap()[0], files).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The flits that each terminal received, and the time of completion.
fn run(engine: &dyn Engine, study: &Study) -> (Vec<u64>, f64) {
    let outcome = engine.run(&study.scenario, &mut *controller(study)).unwrap();
    assert_eq!(outcome.status, Status::Completed);
    (outcome.accepted_flits, outcome.completion_time.unwrap())
}

const RANKS: u32 = 8;
const FLITS: u64 = 10;

/// The two texts mean the same, so that an engine must treat them alike.
#[test]
fn a_collective_and_its_program_take_the_same_time() {
    for entry in COLLECTIVES {
        let parameters = Parameters { ranks: RANKS, root: 0, size: MessageSize::of_flits(FLITS) };
        let rounds = Rounds::new(entry.build(&parameters).unwrap(), placement::linear(RANKS), &Options::default()).unwrap();
        let file = One(goal::write(&rounds.description(8).unwrap()));
        let keys = format!("collective = \"{}\"\nschedule = \"{}\"\nmessage_flits = {FLITS}", entry.collective, entry.schedule);
        let (collective, program) = (study(&keys, &file), study("trace = \"a.goal\"", &file));
        for engine in [&FlitEngine as &dyn Engine, &FlowEngine] {
            let expected = run(engine, &collective);
            assert_eq!(run(engine, &program), expected, "{} {} on {}", entry.collective, entry.schedule, engine.name());
            assert!(expected.1 > 1.0, "{} {}", entry.collective, entry.schedule);
        }
    }
}

/// An all-to-all brings N - 1 messages to each terminal, at most a flit in a cycle.
#[test]
fn every_terminal_receives_its_part_of_the_collective() {
    for synchronisation in ["none", "receive", "barrier"] {
        let keys = format!("collective = \"alltoall\"\nmessage_flits = {FLITS}\nsynchronisation = \"{synchronisation}\"");
        let study = study(&keys, &One(String::new()));
        let received = u64::from(RANKS - 1) * FLITS;
        for engine in [&FlitEngine as &dyn Engine, &FlowEngine] {
            let (flits, time) = run(engine, &study);
            assert_eq!(flits, [received; RANKS as usize], "{synchronisation} on {}", engine.name());
            assert!(time > received as f64);
        }
    }
}

/// The bound knows no waiting, so that no engine can be faster.
#[test]
fn no_engine_ends_before_the_bound() {
    for entry in COLLECTIVES {
        let size = if entry.collective == "barrier" { String::new() } else { format!("message_flits = {FLITS}") };
        let keys = format!("collective = \"{}\"\nschedule = \"{}\"\n{size}", entry.collective, entry.schedule);
        let study = study(&keys, &One(String::new()));
        let bound = AnalysisEngine.run(&study.scenario, &mut *controller(&study)).unwrap().completion_time.unwrap();
        for engine in [&FlitEngine as &dyn Engine, &FlowEngine] {
            let (_, time) = run(engine, &study);
            assert!(time >= bound - 1e-6, "{} {} on {}: {time} < {bound}", entry.collective, entry.schedule, engine.name());
        }
    }
}

/// Eight GPUs of one node send 10 Mbyte to each of the others: 70 Mbyte at the 450 Gbyte/s of the node's switch take 155.6 us for any
/// layout of the cables to the leaves, by `ecmp` and by `minimal`. By hops alone half of the pairs would go by a leaf at a ninth of the
/// rate.
#[test]
fn traffic_within_a_node_keeps_to_its_switch() {
    let completion_us = |wiring: &str, routing: &str| {
        let text = format!(
            "[network]\ntopology = \"rail-optimised\"\nunits = 1\nnodes = 8\ngpus = 8\nspines = 8\nhb = true\nwiring = \"{wiring}\"\nflit_bytes = 256\n\
             rate = [\"400 Gbit/s\", \"400 Gbit/s\", \"3600 Gbit/s\"]\nlatency = [\"600 ns\", \"600 ns\", \"200 ns\"]\n[routing]\n{routing}\n\
             [workload]\ncollective = \"alltoall\"\nmessage_bytes = 10_000_000\nranks = 8\n[measure]\nmax_cycles = 100_000_000\n"
        );
        let document = Document::parse("a.toml", &text).unwrap();
        let study = document.study(&document.points().unwrap()[0], &One(String::new())).unwrap_or_else(|error| panic!("{error}\n{text}"));
        run(&FlowEngine, &study).1 * study.scenario.units.cycle_ns.unwrap() / 1000.0
    };
    let routings =
        ["ecmp\"", "ecmp\"\nweights = \"capacity\"", "ecmp\"\nmetric = \"latency\"", "minimal\"", "minimal\"\nmetric = \"latency\""];
    for (wiring, routing) in ["rails", "nodes"].into_iter().flat_map(|wiring| routings.map(|routing| (wiring, routing))) {
        let found = completion_us(wiring, &format!("algorithm = \"{routing}"));
        // Two links of 200 ns and three routers add to the last byte.
        assert!((155.6..156.1).contains(&found), "{wiring}, {routing}: {found} us");
    }
    assert!(completion_us("nodes", "algorithm = \"ecmp\"\nmetric = \"hops\"") > 1000.0);
}
