//! `kasuri uec`: an Ethernet fabric and its flows as the Ultra Ethernet Consortium's simulator describes them, packet by packet.

use super::{Exit, Failure, output};
use crate::input::{MAX_TEXT_BYTES, read_at_most};
use clap::{Args, ValueEnum};
use kasuri_formats::uec;
use kasuri_packet::bounds::{Times, bound, lone};
use kasuri_packet::fluid::share;
use kasuri_packet::{FlowTimes, Input, MAX_PATHS, Options, Outcome, Spray, simulate};
use kasuri_workload::ethernet::matrix::{Connection, Matrix};
use serde_json::{Value as Json, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct Uec {
    /// The fabric (.topo): hosts, two or three tiers of switches, rates and latencies
    #[arg(long, value_name = "FILE")]
    topo: PathBuf,
    /// The connection matrix (.cm, .tm): flows, starts and triggers
    #[arg(long, value_name = "FILE")]
    cm: PathBuf,
    /// How packets are spread over the links to their destination
    #[arg(long, value_enum, default_value_t = SprayWord::Hash)]
    spray: SprayWord,
    /// The engine that computes the times
    #[arg(long, value_enum, default_value_t = EngineWord::Flit)]
    engine: EngineWord,
    /// Path numbers of a flow, a power of two; --spray one has one
    #[arg(long, value_name = "NUMBER", default_value_t = Options::default().paths, value_parser = paths)]
    paths: u32,
    /// Bytes of a full packet on the wire
    #[arg(long, value_name = "BYTES", default_value_t = Options::default().mtu, value_parser = clap::value_parser!(u16).range(2..))]
    mtu: u16,
    /// Bytes of a packet's headers, and of an acknowledgement
    #[arg(long, value_name = "BYTES", default_value_t = Options::default().header, value_parser = clap::value_parser!(u16).range(1..))]
    header: u16,
    /// Rate at which interfaces send, Mbit/s [default: the rate of their links]
    #[arg(long, alias = "linkspeed", value_name = "MBPS", value_parser = clap::value_parser!(u32).range(1..))]
    link_speed: Option<u32>,
    /// Wire bytes received between acknowledgements; the first and the last packet are acknowledged as well
    #[arg(long, alias = "sack_threshold", value_name = "BYTES", default_value_t = Options::default().acknowledged_bytes)]
    sack_threshold: u64,
    /// Slow links, at a quarter of the rate: with two tiers, the links to this many spines
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    failed: u32,
    /// Seed of hashes and draws
    #[arg(long, value_name = "NUMBER", default_value_t = Options::default().seed)]
    seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SprayWord {
    /// One path for each flow: switches hash its number
    One,
    /// Each flow has several path numbers, which it takes in turn and switches hash
    Hash,
    /// Switches draw for each packet
    Random,
    /// Switches take links in turn, in a random order that is redrawn each round
    RoundRobin,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineWord {
    /// Formulas: each flow as if it were alone, all its packets on one path
    Analysis,
    /// Flows with rates that share links fairly; sprayed ones take all links to a tier evenly
    Flow,
    /// Packet by packet
    Flit,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A line for each flow
    Table,
    /// One JSON object
    Json,
}

fn paths(text: &str) -> Result<u32, String> {
    let number = text.parse::<u32>().ok().filter(|number| number.is_power_of_two() && *number <= MAX_PATHS);
    number.ok_or_else(|| format!("expected a power of two from 1 to {MAX_PATHS}"))
}

impl Uec {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::Input(error.to_string());
        let (topo, cm) = (self.topo.display().to_string(), self.cm.display().to_string());
        let fabric = uec::fabric(&topo, &small(&self.topo)?).map_err(|error| wrong(&error))?;
        let read = uec::matrix(&cm, &small(&self.cm)?).map_err(|error| wrong(&error))?;
        if read.matrix.hosts != fabric.hosts {
            let problem = format!("{cm}: Nodes is {}, but the fabric {topo} has {} hosts", read.matrix.hosts, fabric.hosts);
            return Err(Failure::Input(problem));
        }
        for (word, flows) in &read.ignored {
            writeln!(io::stderr(), "note: {cm}: `{word}` of {flows} flows has no effect")?;
        }
        let input = Input { fabric: &fabric, matrix: &read.matrix, options: self.options()? };
        let outcome = match self.engine {
            EngineWord::Flit => simulate(&input).map_err(Failure::Input)?,
            EngineWord::Analysis => alone(&lone(&input)),
            EngineWord::Flow => Outcome { flows: share(&input).map_err(Failure::Input)?, ..Outcome::default() },
        };
        self.print(&read.matrix, &outcome, bound(&input).all_ps, out)
    }

    fn options(&self) -> Result<Options, Failure> {
        if self.mtu <= self.header {
            let problem = format!("--mtu {}: nothing is left for payload behind --header {}", self.mtu, self.header);
            return Err(Failure::Input(problem));
        }
        let spray = match self.spray {
            SprayWord::One | SprayWord::Hash => Spray::Hash,
            SprayWord::Random => Spray::Random,
            SprayWord::RoundRobin => Spray::RoundRobin,
        };
        Ok(Options {
            mtu: self.mtu,
            header: self.header,
            interface_mbps: self.link_speed,
            acknowledged_bytes: self.sack_threshold,
            spray,
            paths: if matches!(self.spray, SprayWord::One) { 1 } else { self.paths },
            slow_links: self.failed,
            seed: self.seed,
        })
    }

    fn print(&self, matrix: &Matrix, outcome: &Outcome, bound_ps: u64, out: &mut dyn Write) -> Result<Exit, Failure> {
        let bound_us = microseconds(bound_ps);
        let flows = matrix.connections.iter().zip(&outcome.flows);
        match self.format {
            Format::Json => {
                let flow = |(connection, times): (&Connection, &FlowTimes)| {
                    json!({
                        "source": connection.source,
                        "destination": connection.destination,
                        "bytes": connection.bytes,
                        "start_us": times.started.map(microseconds),
                        "received_us": times.received.map(microseconds),
                        "finish_us": times.finished.map(microseconds),
                    })
                };
                let flows: Vec<Json> = flows.map(flow).collect();
                let counts = json!({
                    "packets": outcome.packets,
                    "acknowledgements": outcome.acknowledgements,
                    "early_packets": outcome.early_packets,
                });
                writeln!(out, "{}", json!({ "flows": flows, "bound_us": bound_us, "counts": counts }))?;
            }
            Format::Table => {
                let time = |time: Option<u64>| time.map_or("never".to_owned(), |time| format!("{:.6}", microseconds(time)));
                let rows = flows.map(|(connection, times)| {
                    let numbers = [u64::from(connection.source), u64::from(connection.destination), connection.bytes];
                    let times = [times.started, times.received, times.finished].map(time);
                    numbers.map(|number| number.to_string()).into_iter().chain(times).collect()
                });
                let titles = ["SOURCE", "DESTINATION", "BYTES", "START, US", "RECEIVED, US", "FINISH, US"];
                writeln!(out, "{}", output::table(&titles, rows.collect(), &[true; 6]))?;
                writeln!(out, "{}; no network without losses could be done before {bound_us:.6} us", self.ends(outcome))?;
            }
        }
        Ok(Exit::DONE)
    }
}

impl Uec {
    /// The last end in words, and the number of flows without one.
    fn ends(&self, outcome: &Outcome) -> String {
        let ends: Vec<u64> = outcome.flows.iter().filter_map(|times| times.finished).collect();
        let last = ends.iter().copied().max().map_or(0.0, microseconds);
        let alone =
            if matches!(self.engine, EngineWord::Analysis) { ", each flow as if it were alone, all its packets on one path" } else { "" };
        match outcome.flows.len() - ends.len() {
            0 => format!("all acknowledged at {last:.6} us{alone}"),
            never => format!("{never} of {} flows never begin, the others are acknowledged at {last:.6} us{alone}", outcome.flows.len()),
        }
    }
}

fn microseconds(picoseconds: u64) -> f64 {
    picoseconds as f64 / 1e6
}

/// Each flow as if it were alone.
fn alone(flows: &[Times]) -> Outcome {
    let times = |times: &Times| {
        let [started, received, finished] = [0, 1, 2].map(|index| times.map(|times| times[index]));
        FlowTimes { started, received, finished }
    };
    Outcome { flows: flows.iter().map(times).collect(), ..Outcome::default() }
}

fn small(path: &Path) -> Result<Vec<u8>, Failure> {
    read_at_most(path, MAX_TEXT_BYTES).map_err(|reason| Failure::Input(format!("{}: cannot be read: {reason}", path.display())))
}
