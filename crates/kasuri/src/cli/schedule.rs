//! `kasuri schedule`: a collective in phases that suit a network, counted there.

mod arranged;

use super::{Exit, Failure, output};
use crate::input::{FolderFiles, KNOWN, read_experiment, read_text};
use clap::{Args, ValueEnum};
use kasuri_config::Preparation;
use kasuri_formats::hosts::{self, Hosts};
use kasuri_formats::{goal, mpi};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;
use kasuri_workload::schedule::{Counted, Entry, Job, Plan, SCHEDULES, Scheduled, Verification, fastest};
use kasuri_workload::workload::program::MAX_OPERATIONS;
use kasuri_workload::workload::rounds::{Options, Rounds};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Schedule {
    /// The collective
    #[arg(value_enum)]
    collective: Collective,
    /// A file with [network] and [routing]; an experiment file will do
    #[arg(long, value_name = "FILE")]
    network: PathBuf,
    /// Sets a key of the file, for example routing.tie=destination
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The schedule: mlfm, oft, full-mesh, hypercube, torus, shift or general; of other collectives an algorithm of `kasuri list
    /// schedules` [default: the fastest that is known for the network]
    #[arg(long, value_name = "NAME")]
    schedule: Option<String>,
    /// Use this many terminals, chosen by the schedule, instead of all
    #[arg(long, value_name = "NUMBER")]
    ranks: Option<u32>,
    /// Use these terminals, for example 0-7,16-23
    #[arg(long, value_name = "LIST", conflicts_with = "ranks", value_parser = parse_terminals)]
    terminals: Option<Terminals>,
    /// Which host is at which terminal: lines such as `node017 12` or `node018 16-19`. Without --ranks and --terminals the schedule is for
    /// these terminals
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Bytes of a message, for --export goal: of the block of a rank, of the whole vector, or of the broadcast data
    #[arg(long, value_name = "NUMBER", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    message_bytes: u32,
    /// For --export mpi: leave messages of fewer bytes to the MPI library [default: the bytes that a channel carries in a microsecond]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(0..=i64::from(i32::MAX)))]
    min_bytes: Option<u32>,
    /// Print the schedule instead of the counts
    #[arg(long, value_enum)]
    export: Option<Export>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Collective {
    /// Each rank sends a message to every other rank
    Alltoall,
    /// Each rank gets the sum of the vectors of all ranks
    Allreduce,
    /// Each rank gets the blocks of all ranks
    Allgather,
    /// Each rank gets its part of the sum of the vectors of all ranks
    Reducescatter,
    /// Each rank gets the message of rank 0
    Broadcast,
}

impl Collective {
    /// As `workload.collective` names it.
    fn operation(self) -> &'static str {
        match self {
            Self::Alltoall => "alltoall",
            Self::Allreduce => "allreduce",
            Self::Allgather => "allgather",
            Self::Reducescatter => "reducescatter",
            Self::Broadcast => "broadcast",
        }
    }
}

/// How a schedule is printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Export {
    /// A line for each message: phase, source, destination (terminals), and the source's rank
    Csv,
    /// One JSON object: the counts, the terminal of each rank, and the destination ranks of each phase
    Json,
    /// A GOAL program of messages of --message-bytes, for the ranks of --export ranks
    Goal,
    /// An algorithm of MSCCL (XML); of any collective but the all-to-all
    Msccl,
    /// The file for libkasuri_alltoall.so, which runs the schedule in MPI programs; of any collective but the broadcast. Binary
    Mpi,
    /// The terminal of each rank, one a line; with --hosts its host
    Ranks,
}

/// Larger jobs are searched only on request: a search of this size takes some ten seconds, and the time grows faster than the job.
const SEARCHED_TERMINALS: u32 = 1024;

/// A list of terminals.
#[derive(Clone, Debug)]
struct Terminals(Vec<TerminalId>);

fn parse_terminals(text: &str) -> Result<Terminals, String> {
    hosts::parse_terminals(text).map(Terminals)
}

impl Schedule {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let (document, _) = read_experiment(&self.network, &self.set)?;
        let files = FolderFiles::next_to(&self.network).with_copies_of(&document)?;
        let point = &document.sweep()?.point(0)?;
        let mut preparation = Preparation::new(&document, &files, *KNOWN);
        let (network, routing) = preparation.routed(point)?;
        let hosts = self.read_hosts(&network)?;
        if !matches!(self.collective, Collective::Alltoall) {
            let units = preparation.units_of(point)?;
            return self.arrange(&network, routing.as_ref(), hosts.as_ref(), units, out);
        }
        let found = self.plan(&network, routing.as_ref(), hosts.as_ref())?;
        let names = hosts.map_or(Ok(Vec::new()), |hosts| names(&hosts, &found.plan.terminals))?;
        let Some(export) = self.export else {
            writeln!(out, "{}", table(&network, found.entry, &found.counted))?;
            return Ok(Exit::DONE);
        };
        let min_bytes = match (export, self.min_bytes) {
            (Export::Mpi, None) => mpi::min_bytes(preparation.units_of(point)?),
            (_, given) => given.unwrap_or(0),
        };
        Exported { network: &network, found, names, message_bytes: self.message_bytes, min_bytes }.write(export, out)?;
        Ok(Exit::DONE)
    }

    /// The requested schedule, else the fastest one known.
    fn plan(&self, network: &Network, routing: &dyn Routing, hosts: Option<&Hosts>) -> Result<Counted, Failure> {
        let job = self.job(hosts);
        let input = |error: &dyn std::fmt::Display| Failure::Input(format!("{}: {error}", self.network.display()));
        let found = match &self.schedule {
            Some(name) => Counted::of(named(name)?, network, routing, &job),
            None => fastest(network, routing, &job, SEARCHED_TERMINALS),
        };
        found.map_err(|error| input(&error))
    }

    fn job(&self, hosts: Option<&Hosts>) -> Job {
        match (&self.terminals, self.ranks, hosts) {
            (Some(Terminals(terminals)), ..) => Job::Terminals(terminals.clone()),
            (None, Some(ranks), _) => Job::Count(ranks),
            (None, None, Some(hosts)) => Job::Terminals(hosts.terminals().collect()),
            (None, None, None) => Job::All,
        }
    }

    fn read_hosts(&self, network: &Network) -> Result<Option<Hosts>, Failure> {
        let Some(path) = &self.hosts else { return Ok(None) };
        let text = read_text(path, "a file of hosts has lines such as `node017 12`")?;
        let hosts = hosts::parse(&path.display().to_string(), text.as_bytes(), network.terminal_count());
        hosts.map(Some).map_err(|error| Failure::Input(error.to_string()))
    }
}

/// A schedule to print.
pub(super) struct Exported<'a> {
    pub(super) network: &'a Network,
    pub(super) found: Counted,
    /// The host of each rank, if they have names.
    pub(super) names: Vec<String>,
    pub(super) message_bytes: u32,
    pub(super) min_bytes: u32,
}

impl Exported<'_> {
    pub(super) fn write(self, export: Export, out: &mut dyn Write) -> Result<(), Failure> {
        let Counted { entry, plan, counted } = self.found;
        match export {
            Export::Csv => write_csv(&plan, out),
            Export::Json => write_json(self.network, entry, &plan, &counted, out),
            Export::Goal => write_goal(plan, self.message_bytes, out),
            Export::Mpi => write_mpi(&plan, &self.names.iter().map(String::as_str).collect::<Vec<_>>(), self.min_bytes, out),
            Export::Msccl => Err(Failure::Input("--export msccl: takes any collective but the all-to-all".to_owned())),
            Export::Ranks if self.names.is_empty() => Ok(plan.terminals.iter().try_for_each(|terminal| writeln!(out, "{terminal}"))?),
            Export::Ranks => Ok(self.names.iter().try_for_each(|name| writeln!(out, "{name}"))?),
        }
    }
}

/// The host of each rank.
fn names(hosts: &Hosts, terminals: &[TerminalId]) -> Result<Vec<String>, Failure> {
    let name = |&terminal: &TerminalId| {
        let problem = || Failure::Input(format!("--hosts: terminal {terminal} takes part but has no host"));
        hosts.at(terminal).map(str::to_owned).ok_or_else(problem)
    };
    terminals.iter().map(name).collect()
}

/// The schedule with this name.
fn named(name: &str) -> Result<&'static Entry, Failure> {
    SCHEDULES.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = SCHEDULES.iter().map(|entry| entry.name).collect();
        Failure::Input(format!("--schedule: `{name}` is unknown; it must be one of {}", names.join(", ")))
    })
}

/// The lower bound over the time of the phases.
fn efficiency(counted: &Verification) -> f64 {
    counted.lower_bound() as f64 / counted.time().max(1) as f64
}

fn table(network: &Network, entry: &Entry, counted: &Verification) -> String {
    let pairs = match counted.shortfall {
        None => "once".to_owned(),
        Some(pair) => {
            let how = if pair.is_repeated { "more than once" } else { "never" };
            format!("not once: rank {} sends to rank {} {how}", pair.source, pair.destination)
        }
    };
    let rows = [
        ("network", network.name().to_owned()),
        ("schedule", entry.name.to_owned()),
        ("terminals", counted.terminals.to_string()),
        ("phases", counted.loads.len().to_string()),
        ("every ordered pair is served", pairs),
        ("messages on a channel in a phase, at most", counted.max_load().to_string()),
        ("message times of all phases", counted.time().to_string()),
        ("messages of all pairs on a channel between routers, at most", counted.all_pairs_load.to_string()),
        ("message times that nothing can beat", counted.lower_bound().to_string()),
        ("efficiency: the one over the other", format!("{:.3}", efficiency(counted))),
    ];
    output::table(&["QUANTITY", "VALUE"], rows.map(|(name, value)| vec![name.to_owned(), value]).to_vec(), &[])
}

/// Lines are written as they are made: ten thousand terminals send a hundred million messages.
fn write_csv(plan: &Plan, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "phase,source,destination,rank")?;
    for phase in 0..plan.schedule.phases() {
        for (rank, source) in (0..).zip(&plan.terminals) {
            if let Some(peer) = plan.schedule.destination(rank, phase) {
                writeln!(out, "{phase},{source},{},{rank}", plan.terminals[peer as usize])?;
            }
        }
    }
    Ok(())
}

fn write_json(network: &Network, entry: &Entry, plan: &Plan, counted: &Verification, out: &mut dyn Write) -> Result<(), Failure> {
    let head = json!({
        "network": network.name(),
        "schedule": entry.name,
        "complete": counted.is_complete(),
        "loads": counted.loads,
        "max_load": counted.max_load(),
        "message_times": counted.time(),
        "all_pairs_load": counted.all_pairs_load,
        "lower_bound": counted.lower_bound(),
        "efficiency": efficiency(counted),
        "terminals": plan.terminals.iter().map(|terminal| terminal.0).collect::<Vec<_>>(),
    });
    // There may be too many phases to hold: they are written one by one into the open object.
    let head = head.to_string();
    write!(out, "{},\"phases\":[", head.trim_end_matches('}'))?;
    for phase in 0..plan.schedule.phases() {
        let peers: Vec<Json> = (0..plan.terminals.len() as u32).map(|rank| json!(plan.schedule.destination(rank, phase))).collect();
        write!(out, "{}{}", if phase == 0 { "" } else { "," }, Json::from(peers))?;
    }
    writeln!(out, "]}}")?;
    Ok(())
}

fn write_mpi(plan: &Plan, names: &[&str], min_bytes: u32, out: &mut dyn Write) -> Result<(), Failure> {
    let bytes = mpi::write(plan.schedule.as_ref(), plan.terminals.len() as u32, names, min_bytes);
    out.write_all(&bytes.map_err(|error| Failure::Input(error.to_string()))?)?;
    Ok(())
}

/// Each rank sends the message of a phase when that of the phase before has left.
fn write_goal(plan: Plan, message_bytes: u32, out: &mut dyn Write) -> Result<(), Failure> {
    let operations = 2 * plan.terminals.len() as u64 * u64::from(plan.schedule.phases());
    if operations > MAX_OPERATIONS as u64 {
        let problem = format!("--export goal: the program would have {operations} operations; it may have {MAX_OPERATIONS}");
        return Err(Failure::Input(problem));
    }
    let rounds = Rounds::new(Box::new(Scheduled::new(plan.schedule, 1)), plan.terminals, &Options::default());
    // A flit of the program is a whole message.
    let description = rounds.and_then(|rounds| rounds.description(message_bytes)).map_err(|error| Failure::Other(error.to_string()))?;
    write!(out, "{}", goal::write(&description))?;
    Ok(())
}
