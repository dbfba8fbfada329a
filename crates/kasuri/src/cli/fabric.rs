//! `kasuri fabric`: real fabrics from their dumps.

use super::schedule::{Export, Exported};
use super::{Exit, Failure, output};
use crate::fabric::audit::{Audit, CableLoad, Routes, SlowCable, Trunk, Unreachable, UnusualSwitch, audit, audit_pairs, by_time, cables};
use crate::fabric::job::{Alternative, Bound, Job, JobCollective, JobCost, Order};
use crate::fabric::pairs::PairRoutes;
use crate::input::{read_dump, read_text};
use clap::{Args, Subcommand, ValueEnum};
use kasuri_config::fabric::{Fabric as Imported, ForSlurm, Join, Options, SourceFile, Takes, import};
use kasuri_formats::names::nearest;
use kasuri_formats::pairs::parse_pairs;
use kasuri_formats::rate::{Rate, Speed};
use kasuri_formats::recognise::{self, Form};
use kasuri_formats::{FormatError, hostlist, slurm_topology};
use kasuri_network::id::{ChannelId, TerminalId};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct Fabric {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Import(Import),
    Audit(AuditCommand),
    Job(JobCommand),
    Slurm(Slurm),
}

/// The dumps of one fabric, or the output of `kasuri fabric import`; gzipped or not.
#[derive(Debug, Args)]
struct Dumps {
    /// ibnetdiscover (with or without -p); forwarding tables of dump_lfts, ibroute or OpenSM; opensm-sl2vl.dump; service levels. Or a
    /// single file with the whole fabric: a mesh graph descriptor, NCCL's topology of a node, one of ns-3 or SimAI, GraphML, an edge list,
    /// or the output of `kasuri fabric import`
    #[arg(value_name = "DUMP", required = true)]
    files: Vec<PathBuf>,
    /// Include adapters outside hosts: aggregation nodes, routers
    #[arg(long)]
    all_adapters: bool,
    /// The rate of cables that ibnetdiscover shows as ???, for example 4xHDR
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    unknown_rate: Option<Rate>,
    /// The rate of links without one in the file, Gbit/s [default: the nominal one, where it is known]
    #[arg(long, value_name = "GBIT", value_parser = parse_speed)]
    link_rate: Option<Speed>,
    /// The chips of a link between two meshes, where a descriptor omits them, for example 0:12=1:0; may be repeated
    #[arg(long, value_name = "MESH:CHIP=MESH:CHIP", value_parser = Join::parse)]
    join: Vec<Join>,
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    let speed = text.parse().ok().and_then(Speed::from_gbit_per_second);
    speed.ok_or_else(|| "must be a number of Gbit/s above 0, such as 400".to_owned())
}

fn parse_rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text).filter(|rate| rate.is_known()).ok_or_else(Rate::right)
}

impl Dumps {
    fn read(&self, takes: Option<&Takes<'_>>) -> Result<Imported, Failure> {
        self.import(&self.sources()?, takes)
    }

    /// The names and bytes of the files.
    fn sources(&self) -> Result<Vec<SourceFile>, Failure> {
        let source = |path: &PathBuf| {
            let name = path.display().to_string();
            match read_dump(path) {
                Ok(bytes) => Ok((name, bytes)),
                Err(reason) => Err(Failure::Input(format!("{name}: cannot be read: {reason}"))),
            }
        };
        self.files.iter().map(source).collect()
    }

    fn import(&self, files: &[SourceFile], takes: Option<&Takes<'_>>) -> Result<Imported, Failure> {
        let (all_adapters, unknown_rate) = (self.all_adapters, self.unknown_rate);
        let options = Options { all_adapters, unknown_rate, takes, joins: &self.join, link_rate: self.link_rate };
        import(files, options).map_err(|error| Failure::Input(error.to_string()))
    }
}

/// Combines the dumps of a fabric into a network file: names, rates, addresses, forwarding tables
#[derive(Debug, Args)]
struct Import {
    #[command(flatten)]
    dumps: Dumps,
    /// The file to write, for `topology = "file"` and the other commands; its name must end in .json
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Take only the adapters of these hosts: a name or a Slurm list (n[01-18]) on a line
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
}

/// Audits cables and forwarding tables: unequal trunks, pairs without a route, detours, credit loops, loaded cables
///
/// The exit status is 1 if a route does not arrive: a table without an entry, a port without a cable, or a loop.
#[derive(Debug, Args)]
struct AuditCommand {
    #[command(flatten)]
    dumps: Dumps,
    /// Audit only the routes of these pairs of terminals: a line each, SOURCE DESTINATION; each takes the destination's first address
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// Number of the most loaded cables to show
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    top: usize,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Counts the load of a job's collective on the cables, step by step, and suggests faster alternatives
#[derive(Debug, Args)]
struct JobCommand {
    #[command(flatten)]
    dumps: Dumps,
    /// The hosts of the ranks in their order: a name or a Slurm list (n[01-18]) on a line. A host is a rank for each of its adapters
    #[arg(long, value_name = "FILE")]
    hosts: PathBuf,
    /// For hosts with several adapters: use those with this text in their name, for example mlx5_0
    #[arg(long, value_name = "TEXT")]
    adapter: Option<String>,
    /// The collective: alltoall, allreduce, allgather, broadcast or barrier
    #[arg(long, value_name = "NAME")]
    collective: String,
    /// Bytes of a message: for each destination in an all-to-all, of each rank in other collectives
    #[arg(long, value_name = "BYTES", default_value_t = 65536, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    size: u64,
    /// Search a schedule of all-to-alls of at most this many ranks
    #[arg(long, value_name = "RANKS", default_value_t = 256)]
    search: u32,
    /// Number of the most loaded cables to show
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    top: usize,
    /// Show the load of every cable in this step, from 0
    #[arg(long, value_name = "STEP")]
    step: Option<u32>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Print the all-to-all's schedule instead, as `kasuri schedule` does
    #[arg(long, value_enum)]
    export: Option<Export>,
    /// The schedule to print [default: the faster of shift and general]
    #[arg(long, value_name = "NAME", requires = "export")]
    schedule: Option<String>,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// One JSON object
    Json,
}

impl Fabric {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        match &self.action {
            Action::Import(command) => command.run(out),
            Action::Audit(command) => command.run(out),
            Action::Job(command) => command.run(out),
            Action::Slurm(command) => command.run(out),
        }
    }
}

/// Writes a fabric as Slurm's topology.conf or topology.yaml, or reads one of these
#[derive(Debug, Args)]
struct Slurm {
    #[command(flatten)]
    dumps: Dumps,
    /// Format to write
    #[arg(long, value_enum, default_value = "conf")]
    write: SlurmFormat,
    /// Cables between two switches, for --write edges: Slurm's files do not say
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    trunk: u32,
    /// The topology of a topology.yaml to use [default: the cluster's default, else the first]
    #[arg(long, value_name = "NAME")]
    topology: Option<String>,
}

/// A format of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SlurmFormat {
    /// topology.conf
    Conf,
    /// topology.yaml, of Slurm 25.05 and later
    Yaml,
    /// An edge list for `topology = "file"`
    Edges,
}

impl Slurm {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let files = self.dumps.sources()?;
        let topology = match self.read_slurm(&files)? {
            Some(topology) => topology,
            None if self.topology.is_some() => {
                return Err(Failure::Input("--topology: names a topology of a topology.yaml; this is another file".to_owned()));
            }
            None => slurm_of(&files[0].0, self.dumps.import(&files, None)?.slurm())?,
        };
        match self.write {
            SlurmFormat::Conf => write!(out, "{}", topology.write_conf())?,
            SlurmFormat::Yaml => write!(out, "{}", slurm_topology::write_yaml(&topology, "default"))?,
            SlurmFormat::Edges => {
                let list = topology.edge_list(self.trunk).map_err(|problem| Failure::Input(format!("--write edges: {problem}")))?;
                write!(out, "{list}")?;
            }
        }
        Ok(Exit::DONE)
    }

    /// The topology of a file of Slurm's, if it is one.
    fn read_slurm(&self, files: &[SourceFile]) -> Result<Option<slurm_topology::SlurmTopology>, Failure> {
        let ([path], [(name, bytes)]) = (self.dumps.files.as_slice(), files) else { return Ok(None) };
        let ends_in = |endings: &[&str]| path.extension().is_some_and(|end| endings.iter().any(|ending| end == *ending));
        let wrong = |form: Form| move |error: FormatError| Failure::Input(recognise::explain(name, bytes, &[form], error.to_string()));
        match recognise::recognise(bytes) {
            Some(Form::SlurmYaml) => {}
            None if ends_in(&["yaml", "yml"]) => {}
            Some(Form::SlurmConf) => return slurm_topology::parse_conf(name, bytes).map(Some).map_err(wrong(Form::SlurmConf)),
            None if ends_in(&["conf"]) => return slurm_topology::parse_conf(name, bytes).map(Some).map_err(wrong(Form::SlurmConf)),
            _ => return Ok(None),
        }
        let found = slurm_topology::parse_yaml(name, bytes, self.topology.as_deref()).map_err(wrong(Form::SlurmYaml))?;
        if self.topology.is_none() && !found.others.is_empty() {
            let others = found.others.join(", ");
            writeln!(std::io::stderr(), "note: {name} also holds {others}; `{}` is taken, --topology takes another", found.name)?;
        }
        Ok(Some(found.topology))
    }
}

/// The topology for Slurm, with notes on hosts that it shows differently.
fn slurm_of(name: &str, found: ForSlurm) -> Result<slurm_topology::SlurmTopology, Failure> {
    let ForSlurm { topology, several, unnamed } = found;
    if several > 0 {
        writeln!(std::io::stderr(), "note: {several} hosts have adapters at several switches: that of the first counts")?;
    }
    if let Some(first) = unnamed.first() {
        let count = unnamed.len();
        writeln!(std::io::stderr(), "note: {count} hosts are left out: Slurm does not accept names such as `{first}`")?;
    }
    if topology.switches.is_empty() {
        return Err(Failure::Input(format!("{name}: has no switch with a host, and Slurm's topologies are made of switches")));
    }
    Ok(topology)
}

impl Import {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        if self.output.extension().is_none_or(|end| end != "json") {
            return Err(Failure::Input(format!("--output: `{}` must end in .json, by which readers know it", self.output.display())));
        }
        let wanted = self.hosts.as_deref().map(read_hosts).transpose()?;
        let names: Option<BTreeSet<&str>> = wanted.as_ref().map(|hosts| hosts.iter().map(|host| host.name.as_str()).collect());
        let takes = names.as_ref().map(|names| move |adapter: &str, host: &str| names.contains(adapter) || names.contains(host));
        let fabric = self.dumps.read(takes.as_ref().map(|takes| takes as &Takes<'_>))?;
        std::fs::write(&self.output, fabric.write())
            .map_err(|reason| Failure::Other(format!("{}: cannot be written: {reason}", self.output.display())))?;
        writeln!(out, "{}", output::table(&["QUANTITY", "VALUE"], counts(&fabric), &[]))?;
        fabric.details.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
        let routing = if fabric.network.tables().is_some() { "tables" } else { "minimal" };
        let rate = match fabric.details.channel_gbit_per_second {
            rate if rate > 0.0 => format!("\nflit_bytes = 64\nchannel_gbit_per_second = {rate}"),
            _ => String::new(),
        };
        writeln!(
            out,
            "\n{} is for other `kasuri fabric` commands, and for experiments:\n\n[network]\ntopology = \"file\"\npath = \"{}\"{rate}\n\n\
             [routing]\nalgorithm = \"{routing}\"",
            self.output.display(),
            self.output.file_name().map_or_else(|| self.output.display().to_string(), |name| name.to_string_lossy().into_owned()),
        )?;
        Ok(Exit::DONE)
    }
}

/// The counts of an imported fabric.
fn counts(fabric: &Imported) -> Vec<Vec<String>> {
    let (network, found) = (&fabric.network, cables(fabric));
    let holders = if found.other_routers > 0 { "routers" } else { "switches" };
    let tables = network
        .tables()
        .map_or("none".to_owned(), |tables| format!("{} {holders}, {} addresses", network.router_count(), tables.address_count()));
    let mut rows = parts(&found);
    rows.extend([("rates", fabric.details.rates.join(", ")), ("forwarding tables", tables)]);
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// The numbers of switches, hosts and cables.
fn parts(found: &Audit) -> Vec<(&'static str, String)> {
    let mut rows = vec![("switches", found.switches.to_string())];
    if found.other_routers > 0 {
        rows.push(("other routers (hosts, GPUs, chips, CPUs)", found.other_routers.to_string()));
    }
    rows.extend([
        ("hosts", found.hosts.to_string()),
        ("adapters", found.adapters.to_string()),
        ("cables between switches", found.cables.to_string()),
    ]);
    rows
}

impl AuditCommand {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let fabric = self.dumps.read(None)?;
        let found = match &self.pairs {
            Some(path) => self.of_pairs(&fabric, path)?,
            None => audit(&fabric, self.top),
        };
        if self.format == Format::Json {
            let text = serde_json::to_string_pretty(&found).map_err(|error| Failure::Other(error.to_string()))?;
            writeln!(out, "{text}")?;
            return Ok(status(&found));
        }
        writeln!(out, "{}", output::table(&["QUANTITY", "VALUE"], overview(&found), &[]))?;
        found.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
        write_cables(&found, self.top, out)?;
        match (&found.pairs, &found.tables) {
            (Some(pairs), _) => write_pairs(pairs, out)?,
            (None, Some(routes)) => write_routes(routes, out)?,
            (None, None) => writeln!(out, "\nNo forwarding tables: add those of dump_lfts or ibroute.")?,
        }
        Ok(status(&found))
    }

    fn of_pairs(&self, fabric: &Imported, path: &Path) -> Result<Audit, Failure> {
        let name = path.display().to_string();
        let text = read_text(path, "pairs are text: a line each, SOURCE DESTINATION")?;
        let pairs = parse_pairs(&name, text.as_bytes(), &fabric.network).map_err(|error| Failure::Input(error.to_string()))?;
        let tables = fabric.network.tables().ok_or_else(|| Failure::Input("--pairs: the fabric has no forwarding tables".to_owned()))?;
        Ok(audit_pairs(fabric, tables, &pairs, self.top))
    }
}

/// 1 if a route does not arrive. A possible credit loop does not count: many fabrics in operation have one.
fn status(found: &Audit) -> Exit {
    let lost = found.tables.as_ref().map_or(0, |routes| routes.unreachable) + found.pairs.as_ref().map_or(0, |pairs| pairs.unreachable);
    if lost > 0 { Exit::ROUTES_LOST } else { Exit::DONE }
}

fn overview(found: &Audit) -> Vec<Vec<String>> {
    let rates: Vec<String> = found.rates.iter().map(|(rate, count)| format!("{count} {rate}")).collect();
    let mut rows = parts(found);
    rows.extend([
        ("cables by rate", rates.join(", ")),
        ("cables slower than most of their kind", found.slow_cables.len().to_string()),
        ("unequal trunks", found.unequal_trunks.len().to_string()),
        ("switches with an unusual number of cables", found.unusual_switches.len().to_string()),
    ]);
    let loops = |cycle: &[String], lanes: u32, assumed: Option<&String>| {
        let verdict = match (cycle.len(), lanes) {
            // This holds for any assignment of lanes: more lanes only remove dependencies.
            (0, 1) => return "none, on one virtual lane".to_owned(),
            (0, lanes) => format!("none, on {lanes} virtual lanes"),
            (length, _) => format!("possible: a cycle of {length} cables"),
        };
        assumed.map_or(verdict.clone(), |assumed| format!("{verdict}; {assumed}"))
    };
    let on_a_route = match found.other_routers {
        0 => "cables between switches on a route, mean",
        _ => "cables on a route, mean",
    };
    if let Some(pairs) = &found.pairs {
        rows.extend([
            ("pairs", pairs.routes.to_string()),
            ("pairs with undeliverable packets", pairs.unreachable.to_string()),
            ("pairs with looping packets: forwarding loops", pairs.going_round.to_string()),
            ("credit loops of these pairs", loops(&pairs.cycle, pairs.virtual_lanes, pairs.assumed_lanes.as_ref())),
            ("pairs over the busiest cable", round(pairs.loads.max)),
        ]);
    }
    if let Some(routes) = &found.tables {
        rows.extend([
            ("routes", routes.routes.to_string()),
            ("routes that do not arrive", routes.unreachable.to_string()),
            ("routes that go round: forwarding loops", routes.going_round.to_string()),
            ("routes that are longer than they need be", routes.not_minimal.to_string()),
            (on_a_route, format!("{:.4}", routes.mean_hops)),
            ("credit loops", loops(&routes.cycle, routes.virtual_lanes, routes.assumed_lanes.as_ref())),
            ("all to all: routes over the busiest cable", round(routes.uniform.max)),
            ("all to all: routes over a cable, mean", round(routes.uniform.mean)),
            ("shifts: routes over the busiest cable, mean", format!("{:.3}", routes.shift.mean_of_max)),
            ("shifts: the worst", format!("{} routes, shift by {}", routes.shift.max, routes.shift.worst_shift)),
        ]);
    }
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// Integers without a decimal point, others with three decimals.
fn round(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number}") } else { format!("{number:.3}") }
}

fn write_cables(found: &Audit, top: usize, out: &mut dyn Write) -> Result<(), Failure> {
    if !found.slow_cables.is_empty() {
        writeln!(out, "\nCables slower than most of their kind")?;
        let row = |slow: &SlowCable| vec![slow.cable.clone(), slow.rate.clone(), slow.usual_rate.clone()];
        let rows = found.slow_cables.iter().take(top.max(1)).map(row).collect();
        writeln!(out, "{}", output::table(&["CABLE", "RATE", "USUAL"], rows, &[]))?;
    }
    if !found.unequal_trunks.is_empty() {
        writeln!(out, "\nUnequal trunks: other than most trunks of the switch")?;
        let row = |trunk: &Trunk| {
            let (cables, usual) = (trunk.cables, trunk.usual_cables);
            vec![
                trunk.switch.clone(),
                trunk.neighbour.clone(),
                format!("{cables} ({} Gbit/s)", trunk.gbit_per_second),
                format!("{usual} ({} Gbit/s)", trunk.usual_gbit_per_second),
            ]
        };
        let rows = found.unequal_trunks.iter().take(top.max(1)).map(row).collect();
        writeln!(out, "{}", output::table(&["SWITCH", "NEIGHBOUR", "CABLES", "USUAL"], rows, &[]))?;
    }
    if !found.unusual_switches.is_empty() {
        writeln!(out, "\nSwitches with another number of cables to switches than most of their rank")?;
        let row = |switch: &UnusualSwitch| {
            vec![switch.switch.clone(), switch.rank.to_string(), switch.cables.to_string(), switch.usual_cables.to_string()]
        };
        let rows = found.unusual_switches.iter().take(top.max(1)).map(row).collect();
        writeln!(out, "{}", output::table(&["SWITCH", "RANK", "CABLES", "USUAL"], rows, &[false, true, true, true]))?;
    }
    Ok(())
}

fn write_pairs(pairs: &PairRoutes, out: &mut dyn Write) -> Result<(), Failure> {
    write_unreachable(&pairs.unreachable_first, pairs.unreachable, out)?;
    write_cycle(&pairs.cycle, out)?;
    write_loads("These pairs: the busiest cables", &pairs.loads.cables, out)
}

fn write_unreachable(first: &[Unreachable], pairs: u64, out: &mut dyn Write) -> Result<(), Failure> {
    if !first.is_empty() {
        writeln!(out, "\nRoutes that do not arrive ({pairs} pairs), the first:")?;
        first.iter().try_for_each(|lost| writeln!(out, "  {} to {}: {}", lost.from, lost.to, lost.problem))?;
    }
    Ok(())
}

fn write_cycle(cycle: &[String], out: &mut dyn Write) -> Result<(), Failure> {
    if !cycle.is_empty() {
        writeln!(out, "\nPackets can wait for each other in a cycle: each of these cables for the next, the last for the first")?;
        cycle.iter().try_for_each(|cable| writeln!(out, "  {cable}"))?;
    }
    Ok(())
}

fn write_routes(routes: &Routes, out: &mut dyn Write) -> Result<(), Failure> {
    write_unreachable(&routes.unreachable_first, routes.unreachable_pairs, out)?;
    if !routes.not_minimal_first.is_empty() {
        writeln!(out, "\nRoutes that are longer than they need be, the first:")?;
        for detour in &routes.not_minimal_first {
            writeln!(out, "  {} to {}: {} cables between switches instead of {}", detour.from, detour.to, detour.hops, detour.shortest)?;
        }
    }
    write_cycle(&routes.cycle, out)?;
    write_loads("All to all: the busiest cables", &routes.uniform.cables, out)?;
    write_loads(&format!("Shift by {}: the busiest cables", routes.shift.worst_shift), &routes.shift.cables, out)
}

fn write_loads(title: &str, cables: &[CableLoad], out: &mut dyn Write) -> Result<(), Failure> {
    if cables.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    let rows = cables.iter().map(|load| vec![load.cable.clone(), load.rate.clone(), round(load.routes)]).collect();
    writeln!(out, "{}", output::table(&["CABLE", "RATE", "ROUTES"], rows, &[false, false, true]))?;
    Ok(())
}

/// A host in a file.
struct HostLine {
    name: String,
    place: String,
}

/// The hosts in a file, in its order.
fn read_hosts(path: &Path) -> Result<Vec<HostLine>, Failure> {
    let text = read_text(path, "a file of hosts has a name or a list such as n[01-18] on each line")?;
    let mut hosts = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let place = format!("{}:{number}", path.display());
        let text = line.split('#').next().unwrap_or_default().trim();
        let names = hostlist::parse(text).map_err(|problem| Failure::Input(format!("{place}: {problem}")))?;
        hosts.extend(names.into_iter().map(|name| HostLine { name, place: place.clone() }));
    }
    Ok(hosts)
}

impl JobCommand {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let fabric = self.dumps.read(None)?;
        let terminals = self.terminals(&fabric)?;
        let input = |problem: String| Failure::Input(problem);
        let name = self.dumps.files[0].display().to_string();
        let job = Job::new(&fabric, terminals).map_err(|problem| input(format!("{name}: {problem}")))?;
        let asked = JobCollective { collective: &self.collective, bytes: self.size };
        if let Some(export) = self.export {
            self.write_schedule(&fabric, &job, asked, export, out)?;
            return Ok(Exit::DONE);
        }
        Answer::of(self, &fabric, &job, asked)?.write(out)?;
        Ok(Exit::DONE)
    }

    /// The terminals of the ranks.
    fn terminals(&self, fabric: &Imported) -> Result<Vec<TerminalId>, Failure> {
        let names = fabric.network.terminal_names();
        let mut by_word: BTreeMap<String, Vec<TerminalId>> = BTreeMap::new();
        for (host, terminal) in fabric.details.hosts.iter().zip(0..) {
            by_word.entry(host.clone()).or_default().push(TerminalId(terminal));
        }
        for terminal in 0..fabric.network.terminal_count() {
            by_word.insert(names.of(terminal), vec![TerminalId(terminal)]);
        }
        let mut terminals = Vec::new();
        let mut taken: BTreeMap<TerminalId, String> = BTreeMap::new();
        for HostLine { name, place } in read_hosts(&self.hosts)? {
            // Launchers add text: `node017 slots=1`, `node017:1`.
            let short = name.split([' ', '\t', ':']).next().unwrap_or_default();
            let found = by_word.get(&name).or_else(|| by_word.get(short)).ok_or_else(|| {
                let hosts: Vec<&str> = by_word.keys().map(String::as_str).collect();
                let meant = nearest(short, &hosts).map(|host| format!(" (the nearest name is `{host}`)")).unwrap_or_default();
                let (first, last) = (names.of(0), names.of(fabric.network.terminal_count().saturating_sub(1)));
                Failure::Input(format!("{place}: unknown host `{name}`{meant}; the fabric has `{first}` to `{last}`"))
            })?;
            let is_meant = |terminal: &&TerminalId| self.adapter.as_ref().is_none_or(|text| names.of(terminal.0).contains(text.as_str()));
            let of_host: Vec<TerminalId> = found.iter().filter(is_meant).copied().collect();
            if of_host.is_empty() {
                return Err(Failure::Input(format!(
                    "{place}: no adapter of `{name}` has `{}` in its name",
                    self.adapter.as_deref().unwrap_or("")
                )));
            }
            for terminal in of_host {
                if let Some(first) = taken.insert(terminal, place.clone()) {
                    return Err(Failure::Input(format!("{place}: duplicate `{name}` (first in {first}); each adapter is one rank")));
                }
                terminals.push(terminal);
            }
        }
        if terminals.len() < 2 {
            return Err(Failure::Input(format!(
                "{}: names {} adapters; a collective needs at least 2",
                self.hosts.display(),
                terminals.len()
            )));
        }
        Ok(terminals)
    }

    fn write_schedule(
        &self,
        fabric: &Imported,
        job: &Job<'_>,
        asked: JobCollective<'_>,
        export: Export,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        if self.collective != "alltoall" {
            return Err(Failure::Input(format!("--export: schedules are for alltoall; `{}` is another collective", self.collective)));
        }
        let named = |name: &str| job.scheduled(name, asked).map_err(|problem| Failure::Input(format!("--schedule: {problem}")));
        let (found, _) = match &self.schedule {
            Some(name) => named(name)?,
            None => {
                let shift = named("shift")?;
                let general = (job.ranks() <= self.search).then(|| named("general")).transpose()?;
                general.filter(|(_, outcome)| outcome.time() < shift.1.time()).unwrap_or(shift)
            }
        };
        let names = found.plan.terminals.iter().map(|terminal| fabric.details.hosts[terminal.index()].clone()).collect();
        let message_bytes = u32::try_from(self.size).map_err(|_| Failure::Input("--size: is too large for a schedule".to_owned()))?;
        Exported { network: &fabric.network, found, names, message_bytes, min_bytes: 0 }.write(export, out)
    }
}

/// The load of a job on a fabric, ready to print.
struct Answer<'a> {
    command: &'a JobCommand,
    fabric: &'a Imported,
    job: &'a Job<'a>,
    schedule: &'static str,
    outcome: JobCost,
    bound: Option<Bound>,
    collisions: Vec<(ChannelId, Vec<(u32, u32)>)>,
    step: usize,
    alternatives: Vec<Alternative>,
}

impl<'a> Answer<'a> {
    fn of(command: &'a JobCommand, fabric: &'a Imported, job: &'a Job<'a>, asked: JobCollective<'_>) -> Result<Self, Failure> {
        let (schedule, collective) = job.usual(asked).map_err(|problem| Failure::Input(format!("--collective: {problem}")))?;
        let outcome = job.run(collective.as_ref(), asked, &job.placed(Order::Given));
        let step = match command.step {
            Some(step) if step as usize >= outcome.steps.len() => {
                return Err(Failure::Input(format!("--step: is {step}; the steps are 0 to {}", outcome.steps.len().saturating_sub(1))));
            }
            Some(step) => step as usize,
            None => outcome.worst().unwrap_or(0),
        };
        let collisions = job.collisions(collective.as_ref(), step as u32);
        let (bound, alternatives) = (job.bound(asked), job.alternatives(asked, command.search, (schedule, &outcome)));
        Ok(Self { command, fabric, job, schedule, outcome, bound, collisions, step, alternatives })
    }

    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.command.format == Format::Json {
            writeln!(out, "{:#}", self.json())?;
            return Ok(());
        }
        let steps = &self.outcome.steps;
        let colliding = steps.iter().filter(|step| step.shared > 0).count();
        let mut rows = vec![
            ("ranks", self.job.ranks().to_string()),
            ("collective", format!("{}, {} bytes, algorithm {}", self.command.collective, self.command.size, self.schedule)),
            ("steps", steps.len().to_string()),
            ("steps in which messages share a cable", colliding.to_string()),
            ("time of all steps", self.time(self.outcome.time())),
        ];
        if let Some(bound) = self.bound {
            rows.push(("time that nothing can beat with these tables", self.time(bound.time)));
            rows.push((
                "the cable that takes so long",
                format!("{} ({})", self.fabric.cable_name(bound.channel), self.fabric.rate(bound.channel)),
            ));
            rows.push(("efficiency: the one time over the other", format!("{:.3}", bound.time / self.outcome.time())));
        }
        let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        writeln!(out, "{}", output::table(&["QUANTITY", "VALUE"], rows, &[]))?;
        self.write_collisions(out)?;
        self.write_totals(out)?;
        self.write_alternatives(out)
    }

    fn write_collisions(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(step) = self.outcome.steps.get(self.step) else { return Ok(()) };
        let which = if self.command.step.is_some() { "" } else { ", the slowest" };
        let (time, cable) = (self.time(step.time), self.fabric.cable_name(step.channel));
        writeln!(out, "\nStep {}{which}: {time} for {cable}; {} cables carry several messages", self.step, self.collisions.len())?;
        let shown = if self.command.step.is_some() { usize::MAX } else { self.command.top };
        let rows: Vec<Vec<String>> = self
            .collisions
            .iter()
            .take(shown)
            .map(|(channel, messages)| vec![self.fabric.cable_name(*channel), messages.len().to_string(), self.pairs(messages)])
            .collect();
        if !rows.is_empty() {
            writeln!(out, "{}", output::table(&["CABLE", "MESSAGES", "OF"], rows, &[false, true, false]))?;
        }
        Ok(())
    }

    /// The hosts of some messages.
    fn pairs(&self, messages: &[(u32, u32)]) -> String {
        const SHOWN: usize = 4;
        let host = |rank: u32| &self.fabric.details.hosts[self.job.terminals()[rank as usize].index()];
        let mut text: Vec<String> = messages.iter().take(SHOWN).map(|&(from, to)| format!("{} to {}", host(from), host(to))).collect();
        if messages.len() > SHOWN {
            text.push(format!("{} more", messages.len() - SHOWN));
        }
        text.join(", ")
    }

    /// The channels between switches with their bytes over all steps, the busiest first.
    fn busiest(&self) -> Vec<(ChannelId, u64)> {
        let bytes = |channel: ChannelId| self.outcome.totals[channel.index()];
        by_time(self.fabric, |channel| bytes(channel) as f64).into_iter().map(|channel| (channel, bytes(channel))).collect()
    }

    fn write_totals(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let busy = self.busiest();
        if busy.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nAll steps together: the busiest of {} cables in use", busy.len())?;
        let row = |&(channel, bytes): &(ChannelId, u64)| {
            vec![self.fabric.cable_name(channel), self.fabric.rate(channel).to_owned(), bytes.to_string()]
        };
        let rows = busy.iter().take(self.command.top).map(row).collect();
        writeln!(out, "{}", output::table(&["CABLE", "RATE", "BYTES"], rows, &[false, false, true]))?;
        Ok(())
    }

    fn write_alternatives(&self, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "\nWhat else these ranks could do")?;
        let row = |found: &Alternative| {
            let efficiency = self.bound.map_or_else(String::new, |bound| format!("{:.3}", bound.time / found.time));
            vec![found.schedule.to_owned(), found.order.name().to_owned(), found.steps.to_string(), self.time(found.time), efficiency]
        };
        let rows = self.alternatives.iter().map(row).collect();
        let heading = ["SCHEDULE", "RANKS IN ORDER", "STEPS", "TIME", "EFFICIENCY"];
        writeln!(out, "{}", output::table(&heading, rows, &[false, false, true, true, true]))?;
        Ok(())
    }

    /// Rates are in Gbit/s, so times are in ns; without rates they are cycles of a byte.
    fn time(&self, time: f64) -> String {
        match self.fabric.details.gbit_per_second.is_empty() {
            true => format!("{time:.0} byte times"),
            false => format!("{:.2} us", time / 1000.0),
        }
    }

    fn json(&self) -> Json {
        let channel = |channel: ChannelId| self.fabric.cable_name(channel);
        let steps: Vec<Json> = self
            .outcome
            .steps
            .iter()
            .map(|step| {
                json!({
                    "time_ns": step.time, "busiest_cable": channel(step.channel), "bytes": step.bytes, "messages": step.messages,
                    "shared_cables": step.shared,
                })
            })
            .collect();
        let collisions: Vec<Json> =
            self.collisions.iter().map(|(cable, messages)| json!({ "cable": channel(*cable), "messages": messages })).collect();
        let alternatives: Vec<Json> = self
            .alternatives
            .iter()
            .map(|found| {
                json!({
                    "schedule": found.schedule, "order": found.order.name(), "steps": found.steps, "time_ns": found.time,
                    "efficiency": self.bound.map(|bound| bound.time / found.time),
                })
            })
            .collect();
        let totals: BTreeMap<String, u64> = self.busiest().into_iter().map(|(cable, bytes)| (channel(cable), bytes)).collect();
        let names = self.fabric.network.terminal_names();
        json!({
            "ranks": self.job.terminals().iter().map(|terminal| names.of(terminal.0)).collect::<Vec<_>>(),
            "collective": self.command.collective,
            "bytes": self.command.size,
            "schedule": self.schedule,
            "time_ns": self.outcome.time(),
            "bound_ns": self.bound.map(|bound| bound.time),
            "bound_cable": self.bound.map(|bound| channel(bound.channel)),
            "efficiency": self.bound.map(|bound| bound.time / self.outcome.time()),
            "steps": steps,
            "step": self.step,
            "collisions": collisions,
            "cables": totals,
            "alternatives": alternatives,
        })
    }
}
