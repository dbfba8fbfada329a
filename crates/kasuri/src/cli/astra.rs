//! `kasuri astra`: an execution trace of an AI cluster, run by an engine or by ASTRA-sim's rules.

mod formulas;

use super::{Exit, Failure, output};
use crate::cluster;
use crate::input::{FolderFiles, MAX_TEXT_BYTES, read_at_most};
use clap::{Args, ValueEnum};
use kasuri_flow::analysis::programs;
use kasuri_flow::astra::{Backend, Input, run};
use kasuri_formats::astra;
use kasuri_formats::chakra::{self, ReadError};
use kasuri_formats::layers;
use kasuri_model::engine::Method;
use kasuri_workload::execution::cluster::{Cluster, Groups, System};
use kasuri_workload::execution::trace::Trace;
use kasuri_workload::execution::workload::Traces;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct Astra {
    /// The trace: the common prefix of its files `PREFIX.0.et`, `PREFIX.1.et`, …, one for each NPU, gzipped or not. Or a file with a table
    /// of layers, as ASTRA-sim 1.0 and SimAI read them
    #[arg(long, value_name = "PREFIX|FILE")]
    workload: String,
    /// ASTRA-sim's system file (.json): how collectives become messages
    #[arg(long, value_name = "FILE")]
    system: PathBuf,
    /// ASTRA-sim's network file (.yml): topology, NPUs, bandwidth and latency of each dimension
    #[arg(long, value_name = "FILE")]
    network: PathBuf,
    /// Communicator groups (.json)
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// ASTRA-sim's analytical backend, with --astra-rules [default: aware]
    #[arg(long, value_enum, requires = "astra_rules")]
    backend: Option<Congestion>,
    /// The engine that simulates the messages [default: flow]
    #[arg(long, value_enum, conflicts_with = "astra_rules")]
    engine: Option<EngineWord>,
    /// With --engine flit: bytes of a flit
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    flit_bytes: u32,
    /// With --engine flit: bytes of a packet
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    packet_bytes: u32,
    /// Queues of each dimension (ASTRA-sim's num-queues-per-dim)
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    queues: u32,
    /// Use ASTRA-sim's rules, exact to the nanosecond, instead of an engine
    #[arg(long)]
    astra_rules: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Congestion {
    /// Each link carries one message at a time; networks of one dimension
    Aware,
    /// Messages do not disturb each other
    Unaware,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineWord {
    /// Formulas: collectives in closed form, the longest path through the programs, and the busiest link
    Analysis,
    /// Messages as flows that share links
    Flow,
    /// Cycle by cycle, in packets
    Flit,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A line for each NPU
    Table,
    /// One JSON object
    Json,
}

impl Astra {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::Input(error.to_string());
        let cluster = astra::network(&name(&self.network), &small(&self.network)?).map_err(|error| wrong(&error))?;
        let npus = cluster.npus();
        let mut system = self.system()?;
        let is_table = !chakra::is_there(&FolderFiles::new(""), &self.workload) && Path::new(&self.workload).is_file();
        let mut besides = Vec::new();
        let (groups, traces) = if is_table { self.layers(&cluster, &mut system, &mut besides)? } else { self.traces(npus)? };
        besides.extend(chakra::surplus(&FolderFiles::new(""), &self.workload, npus).filter(|_| !is_table));
        let algorithms = self.algorithms(&system, npus)?;
        let traces = Traces { cluster, system, groups, traces, algorithms, queues: self.queues, besides };
        for what in traces.unmodelled(self.astra_rules) {
            writeln!(io::stderr(), "note: {what} is not modelled")?;
        }
        if let Some(EngineWord::Analysis) = self.engine {
            return self.by_formulas(&traces, out);
        }
        let finished = if self.astra_rules { self.by_astra_rules(&traces) } else { self.by_engine(traces) };
        self.print(&finished.map_err(|problem| self.wrong(&problem))?, out)
    }

    /// An error in the traces.
    fn wrong(&self, problem: &str) -> Failure {
        Failure::Input(format!("{}: {problem}", self.workload))
    }

    fn by_formulas(&self, traces: &Traces, out: &mut dyn Write) -> Result<Exit, Failure> {
        let answer = programs::answer(traces.job()).map_err(|problem| self.wrong(&problem))?;
        match self.format {
            Format::Json => writeln!(out, "{}", formulas::as_json(&answer, &traces.cluster))?,
            Format::Table => formulas::print(&answer, &traces.cluster, out)?,
        }
        Ok(Exit::DONE)
    }

    fn by_astra_rules(&self, traces: &Traces) -> Result<Vec<u64>, String> {
        let backend = match self.backend {
            None | Some(Congestion::Aware) => Backend::Aware,
            Some(Congestion::Unaware) => Backend::Unaware,
        };
        run(&Input { job: traces.job(), backend, use_symmetry: true })
    }

    fn by_engine(&self, traces: Traces) -> Result<Vec<u64>, String> {
        let (method, flit_bytes) = match self.engine {
            Some(EngineWord::Flit) => (Method::Cycles, Some(self.flit_bytes)),
            _ => (Method::Rates, None),
        };
        let times = cluster::run(traces, &cluster::Options { method, flit_bytes, packet_bytes: self.packet_bytes, use_symmetry: true })?;
        Ok(times.into_iter().map(|ns| ns.round() as u64).collect())
    }

    fn print(&self, finished: &[u64], out: &mut dyn Write) -> Result<Exit, Failure> {
        match self.format {
            Format::Json => {
                let npus: Vec<Json> = finished.iter().enumerate().map(|(npu, time)| json!({"npu": npu, "finish_ns": time})).collect();
                writeln!(out, "{}", json!({ "npus": npus }))?;
            }
            Format::Table => {
                let rows = finished.iter().enumerate().map(|(npu, time)| vec![npu.to_string(), time.to_string()]);
                writeln!(out, "{}", output::table(&["NPU", "FINISH, NS"], rows.collect(), &[true, true]))?;
            }
        }
        Ok(Exit::DONE)
    }

    /// The groups and programs of a table of layers.
    fn layers(&self, cluster: &Cluster, system: &mut System, besides: &mut Vec<String>) -> Result<(Groups, Vec<Trace>), Failure> {
        let path = Path::new(&self.workload);
        if let Some(groups) = &self.groups {
            let problem = format!("leave out --groups {}: the table's header defines the groups", groups.display());
            return Err(Failure::Input(format!("{}: is a table of layers; {problem}", self.workload)));
        }
        let table = layers::parse(&self.workload, &small(path)?).map_err(|error| Failure::Input(error.to_string()))?;
        besides.extend(table.leave_out(system, cluster.npus()));
        table.programs(cluster).map_err(|problem| Failure::Input(format!("{}:1: {problem}", self.workload)))
    }

    /// The groups and the traces of all NPUs.
    fn traces(&self, npus: u32) -> Result<(Groups, Vec<Trace>), Failure> {
        let groups = match &self.groups {
            None => Groups::new(),
            Some(path) => astra::groups(&name(path), &small(path)?, npus).map_err(|error| Failure::Input(error.to_string()))?,
        };
        Ok((groups, (0..npus).map(|npu| self.trace(npu, npus)).collect::<Result<_, _>>()?))
    }

    /// The trace of an NPU.
    fn trace(&self, npu: u32, npus: u32) -> Result<Trace, Failure> {
        chakra::read_of(&FolderFiles::new(""), &self.workload, npu).map_err(|unread| match unread {
            ReadError::Absent(_) => {
                let problem =
                    format!("there is no such file; the network has {npus} NPUs, so the trace has files .0.et to .{}.et", npus - 1);
                Failure::Input(format!("{}.{npu}.et: {problem}", self.workload))
            }
            ReadError::Invalid(problem) => Failure::Input(format!("{problem} (NPU {npu})")),
        })
    }

    fn system(&self) -> Result<System, Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::Input(error.to_string());
        let (mut system, nodes) = astra::system(&name(&self.system), &small(&self.system)?).map_err(|error| wrong(&error))?;
        if let Some(path) = nodes {
            let found = self.near_system(&path, Path::exists).unwrap_or_else(|| PathBuf::from(&path));
            system.custom_nodes = astra::custom_nodes(&name(&found), &small(&found)?).map_err(|error| wrong(&error))?;
        }
        Ok(system)
    }

    /// A path of the system file: as it is, as ASTRA-sim takes it, or in the folder of that file, or in the one above.
    fn near_system(&self, path: &str, exists: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        let folder = self.system.parent().unwrap_or(Path::new(""));
        [PathBuf::from(path), folder.join(path), folder.join("..").join(path)].into_iter().find(|path| exists(path))
    }

    /// The collectives given as traces.
    fn algorithms(&self, system: &System, npus: u32) -> Result<BTreeMap<String, Vec<Trace>>, Failure> {
        let mut found = BTreeMap::new();
        for prefix in system.custom.values().chain(system.custom_nodes.values()) {
            let there = self.near_system(prefix, |prefix| chakra::is_there(&FolderFiles::new(""), &name(prefix)));
            let there = there.ok_or_else(|| {
                let tried = "looked for in the working directory, and in and above the folder of that file";
                Failure::Input(format!("{}: no trace {prefix}.0.et ({tried})", name(&self.system)))
            })?;
            let traces = chakra::read_algorithm(&FolderFiles::new(""), &name(&there), npus);
            found.insert(prefix.clone(), traces.map_err(|unread| Failure::Input(unread.problem()))?);
        }
        Ok(found)
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn small(path: &Path) -> Result<Vec<u8>, Failure> {
    read_at_most(path, MAX_TEXT_BYTES).map_err(|reason| Failure::Input(format!("{}: cannot be read: {reason}", path.display())))
}
