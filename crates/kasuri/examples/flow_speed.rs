//! Times the engine alone on the closed workload of an experiment file:
//! `cargo run --release -p kasuri --example flow_speed FILE.toml`.
#![allow(clippy::print_stdout)]
use kasuri_config::Document;
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Command, Controller, Engine, Interval, Status};
use kasuri_network::topology::NoFiles;

/// Until the workload is done.
struct ToTheEnd;

impl Controller for ToTheEnd {
    fn interval_cycles(&mut self) -> u64 {
        1 << 40
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.completed { Command::End(Status::Completed) } else { Command::Continue }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("name an experiment file")?;
    let document = Document::parse(&file, &std::fs::read_to_string(&file)?)?;
    let point = document.points()?.into_iter().next().ok_or("no point")?;
    let started = std::time::Instant::now();
    let mut study = document.study(&point, &NoFiles)?;
    study.scenario.max_cycles = u64::MAX;
    let built = started.elapsed().as_secs_f64();
    let outcome = FlowEngine.run(&study.scenario, &mut ToTheEnd)?;
    let seconds = started.elapsed().as_secs_f64() - built;
    let messages = outcome.packet_latency.count;
    println!(
        "{:?} in {:?} cycles: {messages} messages, {:.0} ns each; {built:.3} s to build, {seconds:.3} s to run",
        outcome.status,
        outcome.completion_time,
        seconds * 1e9 / messages as f64
    );
    Ok(())
}
