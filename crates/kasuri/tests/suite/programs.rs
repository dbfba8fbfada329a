//! Programs in two languages: what ranks send, receive and compute, as GOAL and as an execution trace of Chakra.

use crate::chakra::{self, Does, SYSTEM};
use kasuri::input::KNOWN;
use kasuri::measure::controller;
use kasuri::plan::{self, RunOptions};
use kasuri_config::{Document, Study};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_network::topology::Files;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Bytes of a flit.
const FLIT: u64 = 16;

/// The files of one program.
struct Texts(BTreeMap<String, Vec<u8>>);

impl Files for Texts {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).cloned().ok_or_else(|| format!("`{path}` is not there"))
    }
}

/// The steps of each rank; each step begins when the earlier steps that it names have ended.
type Steps = Vec<Vec<(Does, Vec<u64>)>>;

/// Four ranks: they compute for 2 us, exchange blocks with the rank that differs in bit 0 of its number, then, twice as long, in bit 1 (an
/// all-gather by recursive doubling, spelled as messages), and pass a growing token from rank to rank, each of which computes before.
fn steps() -> Steps {
    (0..4_u64)
        .map(|rank| {
            let mut steps = vec![(Does::Compute(2), vec![])];
            for round in 0..2 {
                let (peer, bytes) = (rank ^ 1 << round, 640 << round);
                // What came is passed on; the first block is the rank's own.
                let before = if round == 0 { 0 } else { 2 };
                steps.push((Does::Send { to: peer, bytes, tag: round }, vec![before]));
                steps.push((Does::Receive { from: peer, bytes, tag: round }, vec![0]));
            }
            let mut last = 4;
            if rank > 0 {
                steps.push((Does::Receive { from: rank - 1, bytes: 1024 * rank, tag: 9 }, vec![last]));
                last = 5;
            }
            steps.push((Does::Compute(rank + 1), vec![last]));
            if rank < 3 {
                steps.push((Does::Send { to: rank + 1, bytes: 1024 * (rank + 1), tag: 9 }, vec![last + 1]));
            }
            steps
        })
        .collect()
}

fn goal(steps: &Steps) -> String {
    let mut text = format!("num_ranks {}\n", steps.len());
    for (rank, steps) in steps.iter().enumerate() {
        writeln!(text, "rank {rank} {{").unwrap();
        for (number, (does, waits_for)) in steps.iter().enumerate() {
            match does {
                Does::Compute(us) => writeln!(text, "l{number}: calc {}", us * 1000),
                Does::Send { to, bytes, tag } => writeln!(text, "l{number}: send {bytes}b to {to} tag {tag}"),
                Does::Receive { from, bytes, tag } => writeln!(text, "l{number}: recv {bytes}b from {from} tag {tag}"),
                Does::AllGather(_) => panic!("GOAL has no collectives"),
            }
            .unwrap();
            waits_for.iter().for_each(|on| writeln!(text, "l{number} requires l{on}").unwrap());
        }
        writeln!(text, "}}").unwrap();
    }
    text
}

fn files(steps: &Steps) -> Texts {
    let traces = steps.iter().enumerate().map(|(rank, steps)| (format!("t.{rank}.et"), chakra::file(steps)));
    let others = [("p.goal".to_owned(), goal(steps).into_bytes()), ("s.json".to_owned(), SYSTEM.into())];
    Texts(traces.chain(others).collect())
}

fn run(engine: &dyn Engine, workload: &str, files: &Texts) -> Outcome {
    let text = format!(
        "[network]\ntopology = \"mesh\"\ndimensions = [2, 2]\nflit_bytes = {FLIT}\ncycle_ns = 1.0\n[routing]\nalgorithm = \"dimension-order\"\n\
         [workload]\npacket_flits = 8\n{workload}\n"
    );
    let document = Document::parse("a.toml", &text).unwrap();
    let study: Study = document.study(&document.points().unwrap()[0], files).unwrap_or_else(|error| panic!("{error}"));
    let outcome = engine.run(&study.scenario, &mut *controller(&study)).unwrap();
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.standstill);
    outcome
}

/// No rank sends before its last message has arrived, which is where the two languages differ: so they mean the same.
#[test]
fn a_program_takes_the_same_time_in_both_languages() {
    let files = files(&steps());
    // A cycle is a nanosecond. The computations of the token's path are one after the other, and so are the flits of its messages.
    let computed = 2000 + (1 + 2 + 3 + 4) * 1000;
    let sent = (640 + 1280 + 1024 * (1 + 2 + 3)) / FLIT;
    for engine in [&FlitEngine as &dyn Engine, &FlowEngine] {
        let program = run(engine, "trace = \"p.goal\"", &files);
        let trace = run(engine, "trace = \"t\"\nsystem = \"s.json\"", &files);
        assert_eq!(trace.completion_time, program.completion_time, "{}", engine.name());
        assert_eq!(trace.accepted_flits, program.accepted_flits, "{}", engine.name());
        assert_eq!(trace.channel_flits, program.channel_flits, "{}", engine.name());
        let time = program.completion_time.unwrap();
        let least = (computed + sent) as f64;
        // Five messages follow each other, each with some cycles to set out and arrive.
        assert!(time > least && time < least + 5.0 * 40.0, "{}: {time} for {least}", engine.name());
    }
}

/// If a rank sends twice at once the languages differ: a send of a trace keeps its place until its message has arrived, one of GOAL until
/// it has left.
#[test]
fn a_send_of_a_trace_keeps_its_place_until_it_has_arrived() {
    let twice = |rank: u64| -> Vec<(Does, Vec<u64>)> {
        let message = |tag: u64| if rank == 0 { Does::Send { to: 1, bytes: 160, tag } } else { Does::Receive { from: 0, bytes: 160, tag } };
        if rank < 2 { vec![(message(0), vec![]), (message(1), vec![])] } else { vec![] }
    };
    let files = files(&(0..4).map(twice).collect());
    for engine in [&FlitEngine as &dyn Engine, &FlowEngine] {
        let times = ["trace = \"p.goal\"", "trace = \"t\"\nsystem = \"s.json\""];
        let [program, trace] = times.map(|workload| run(engine, workload, &files).completion_time.unwrap());
        let one_after_the_other = 2.0 * (program - 160.0 / FLIT as f64);
        assert!(trace > program && (trace - one_after_the_other).abs() <= 4.0, "{}: {program}, {trace}", engine.name());
    }
}

/// Unmodelled settings of a table of layers and its system are reported with the run.
#[test]
fn unmodelled_settings_of_a_trace_are_reported() {
    let table = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp_comm 4096\n1\na -1 100 ALLREDUCE 640 1 NONE 0 1 NONE 0 1\n";
    let system = SYSTEM.replacen('{', "{ \"colour\": 1,", 1);
    let files = Texts([("t", table), ("system.json", &system)].map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into());
    let text = format!(
        "engine = \"flow\"\n[network]\ntopology = \"full-mesh\"\nrouters = 4\nflit_bytes = {FLIT}\ncycle_ns = 1\n[routing]\nalgorithm = \"minimal\"\n\
         [workload]\ntrace = \"t\"\nsystem = \"system.json\"\n"
    );
    let document = Document::parse_for(*KNOWN, "test.toml", &text).unwrap();
    let summary = plan::run(&document, &files, &RunOptions::default()).unwrap();
    let left_out = summary.rows[0].get("not_modelled").to_string();
    for wanted in ["`pp_comm 4096` of the table's header", "the key `colour` of the system file"] {
        assert!(left_out.contains(wanted), "{left_out}");
    }
}
