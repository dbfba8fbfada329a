//! Schedules of rounds, as flows: whatever happens in the middle of a round, flits are conserved and counted once.

use kasuri_config::{Document, Known, Preparation};
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Command, Controller, Engine, Interval, Outcome, Status};
use kasuri_network::topology::NoFiles;

const TERMINALS: u64 = 8;
const FLITS: u64 = 40;

/// Checks a run at this interval, cycles.
struct Looks(u64);

impl Controller for Looks {
    fn interval_cycles(&mut self) -> u64 {
        self.0
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.completed { Command::End(Status::Completed) } else { Command::Continue }
    }
}

/// An all-to-all on a full mesh, with more keys of `[workload]`.
fn run(workload: &str, max_cycles: u64, mut looks: Looks) -> Outcome {
    let text = format!(
        "engine = \"flow\"\n\
         network = {{ topology = \"full-mesh\", routers = {TERMINALS}, concentration = 1 }}\n\
         routing = {{ algorithm = \"minimal\" }}\n\
         workload = {{ collective = \"alltoall\", schedule = \"shift\", message_flits = {FLITS}, {workload} }}\n\
         flow = {{ latency = false }}"
    );
    let document = Document::parse("rounds.toml", &text).expect("TOML");
    let points = document.points().expect("one point");
    let mut study = Preparation::new(&document, &NoFiles, Known::default()).study(&points[0]).expect("a workload");
    study.scenario.max_cycles = max_cycles;
    FlowEngine.run(&study.scenario, &mut looks).expect("a run")
}

/// Flits that terminals have sent, and that they and the channels between routers have carried, if these are equal.
fn carried(outcome: &Outcome) -> u64 {
    let sum = |flits: &[u64]| flits.iter().sum::<u64>();
    let [injection, ejection, between] = [0..TERMINALS, TERMINALS..2 * TERMINALS, 2 * TERMINALS..outcome.channel_flits.len() as u64]
        .map(|range| sum(&outcome.channel_flits[range.start as usize..range.end as usize]));
    assert_eq!([sum(&outcome.accepted_flits), injection, ejection, between], [sum(&outcome.injected_flits); 4]);
    injection
}

#[test]
fn each_channel_carries_one_message_of_an_all_to_all() {
    for every in [7, FLITS, 1000] {
        let outcome = run("", 10_000, Looks(every));
        assert_eq!((outcome.status, outcome.completion_time), (Status::Completed, Some(((TERMINALS - 1) * FLITS) as f64)));
        assert_eq!(carried(&outcome), TERMINALS * (TERMINALS - 1) * FLITS);
        assert!(outcome.channel_flits[2 * TERMINALS as usize..].iter().all(|&flits| flits == FLITS));
        assert!(outcome.completion_cycles.iter().all(|&cycles| cycles == (TERMINALS - 1) * FLITS));
    }
}

#[test]
fn ranks_that_start_apart_carry_as_much() {
    for keys in
        ["start_skew_cycles = 30", "jitter_cycles = 10", "synchronisation = \"barrier\"", "synchronisation = \"receive\", repeat = 2"]
    {
        let outcome = run(keys, 10_000, Looks(64));
        let times = if keys.contains("repeat") { 2 } else { 1 };
        assert_eq!((outcome.status, carried(&outcome)), (Status::Completed, times * TERMINALS * (TERMINALS - 1) * FLITS), "{keys}");
    }
}

#[test]
fn a_run_that_is_cut_in_a_round_counts_the_rounds_before() {
    let outcome = run("", 3 * FLITS + FLITS / 2, Looks(11));
    assert_eq!((outcome.status, outcome.packet_latency.count), (Status::MaxCycles, 3 * TERMINALS));
    assert_eq!(carried(&outcome), 3 * TERMINALS * FLITS);
}
