//! `[workload]`: closed workloads.

use super::error::ConfigError;
use super::section::Section;
use super::traffic::Setting;
use kasuri_formats::chakra::{self, ReadError};
use kasuri_formats::names::unknown;
use kasuri_formats::traffic::parse_sizes;
use kasuri_formats::{astra, goal, goal_binary, layers};
use kasuri_model::scenario::{ClosedWorkload, WorkloadPart};
use kasuri_network::id::TerminalId;
use kasuri_network::network::{TerminalRef, Terminals};
use kasuri_workload::collective::alltoallv::{self, Alltoallv, Sizes};
use kasuri_workload::collective::{
    ALL_TO_ALL, Collective, CollectiveError, Entry, Least, MESSAGE, MessageSize, Parameters, operations, schedules,
};
use kasuri_workload::execution::cluster::{Cluster, Dimension, Groups, MAX_NPUS, System, Topology};
use kasuri_workload::execution::trace::Trace as ExecutionTrace;
use kasuri_workload::execution::workload::{Places, TraceWorkload, Traces};
use kasuri_workload::schedule::{self, Job, SCHEDULES, ScheduleError, Scheduled};
use kasuri_workload::traffic::MAX_PACKET_FLITS;
use kasuri_workload::units::Units;
use kasuri_workload::workload::application::APPLICATIONS;
use kasuri_workload::workload::program::Program;
use kasuri_workload::workload::rounds::{Options, Rounds, Synchronisation};
use kasuri_workload::workload::stages::Stages;
use kasuri_workload::workload::{Workload, placement};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::Table;

/// The keys of `[workload]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadSection {
    /// A file that says what each rank sends, receives and computes, in the text or the binary form of GOAL, in place of a collective. With
    /// `system`: what stands before `.0.et`, `.1.et`, … in the names of the files of a Chakra execution trace, plain or gzipped, or a file
    /// with a table of layers as ASTRA-sim 1.0 and SimAI take them.
    trace: Option<String>,
    /// ASTRA-sim's system file (.json), which says how the collectives of a Chakra execution trace become messages. The NPUs are the ranks.
    system: Option<String>,
    /// Communicator groups (.json) of a Chakra execution trace.
    groups: Option<String>,
    /// How many NPUs each dimension has by which the collectives of a Chakra execution trace go; their product is the number of NPUs. One
    /// dimension with a NPU for each terminal (or entry of `placement`) unless given.
    dimensions: Option<Vec<u32>>,
    /// Queues of each dimension (ASTRA-sim's num-queues-per-dim), at least 1.
    #[serde(default = "one")]
    queues: u32,
    /// A whole application that is run, in place of a collective. `schedule` and `synchronisation` are those of its all-to-alls.
    application: Option<String>,
    /// The class of an application's problem: S, W, A, B, C, D or E.
    class: Option<String>,
    /// The rate at which each rank of an application computes, in 10^9 operations a second; without it, computing takes no time.
    gflops_per_rank: Option<f64>,
    /// All-to-alls of each transform of an application, at least 1; its ranks compute an equal part before each.
    #[serde(default = "one")]
    transposes: u32,
    /// How many terminals are on one host and share its memory: the first so many on the first host, and so on.
    #[serde(default = "one")]
    terminals_per_host: u32,
    /// The rate at which the memory of a host moves an application's data before each all-to-all, in 10^9 bytes a second, for one
    /// terminal at a time; without it, that takes no time.
    host_gbyte_per_second: Option<f64>,
    /// The collective operation that is run.
    collective: Option<String>,
    /// The algorithm of the collective; the first that `kasuri list schedules` shows for it unless given.
    schedule: Option<String>,
    /// The size of a message in flits: in an all-to-all of the block for each destination, elsewhere of the data of each rank (of the
    /// root in a broadcast). Without meaning for a barrier, whose messages are of 1 flit.
    message_flits: Option<u32>,
    /// The same in bytes; a message has as many flits as hold it, at least 1. Needs `network.flit_bytes`.
    message_bytes: Option<u64>,
    /// Of `alltoallv`: what each rank has for each other one, in flits, as a list of rows (row s, column d is what rank s has for rank d) or
    /// the name of a file with them, a row a line, the sizes separated by blanks or commas. What a rank has for itself is not sent.
    matrix_flits: Option<SizesOfPairs>,
    /// The same in bytes; a message has as many flits as hold it. Needs `network.flit_bytes`.
    matrix_bytes: Option<SizesOfPairs>,
    /// How many ranks take part, at least 2. As many as there are terminals (or as `placement` lists) unless given.
    ranks: Option<u32>,
    /// Which terminal each rank runs on. A schedule made for a network takes from it only which terminals take part.
    #[serde(default)]
    placement: Placement,
    /// With `placement = "cyclic"`: how far apart the terminals of neighbouring ranks are, at least 1.
    placement_stride: Option<u32>,
    /// Which random placement; `measure.seed` does not matter.
    #[serde(default)]
    placement_seed: u64,
    /// The rank at which a broadcast begins, and the root of a barrier's tree.
    #[serde(default)]
    root: u32,
    /// When a rank goes on to its next round. The least that the schedule allows unless given: `none` where ranks send only what they
    /// had from the beginning, else `receive`.
    synchronisation: Option<Synchronisation>,
    /// Each rank starts after a random time, uniform between 0 and this many cycles.
    #[serde(default)]
    start_skew_cycles: f64,
    /// Before each of its messages a rank waits for a random time, uniform between 0 and this many cycles.
    #[serde(default)]
    jitter_cycles: f64,
    /// How often the collective is run, one run after the other, at least 1.
    #[serde(default = "one")]
    repeat: u32,
    /// A message is cut into packets of this many flits, the last one shorter.
    #[serde(default = "sixteen")]
    packet_flits: u32,
    /// The virtual channels that the packets may use: the first, and one past the last. All unless given.
    virtual_channels: Option<[u32; 2]>,
}

fn one() -> u32 {
    1
}

fn sixteen() -> u32 {
    16
}

/// `matrix_flits` and `matrix_bytes`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum SizesOfPairs {
    /// In a file.
    File(String),
    /// A row for each rank.
    Rows(Vec<Vec<u64>>),
}

/// `placement`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Placement {
    /// By a rule.
    Rule(Rule),
    /// The terminal of each rank, by number or name.
    List(Vec<TerminalRef>),
}

/// How ranks are placed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Rule {
    /// Rank r on terminal r.
    Linear,
    /// On different terminals at random.
    Random,
    /// On terminals 0, s, 2 s and so on, then 1, s + 1 and so on, with s = `placement_stride`.
    Cyclic,
}

impl Default for Placement {
    fn default() -> Self {
        Self::Rule(Rule::Linear)
    }
}

impl Setting<'_> {
    /// The closed workload that `[workload]` describes.
    pub(super) fn workload(&self, table: &Table, units: Units) -> Result<ClosedWorkload, ConfigError> {
        let (workload, part) = self.workload_of("workload", table, units)?;
        Ok(ClosedWorkload { workload, parts: vec![part], interfaces: None })
    }

    /// What a section of this name describes, and how its messages are sent.
    pub(super) fn workload_of(&self, name: &str, table: &Table, units: Units) -> Result<(Arc<dyn Workload>, WorkloadPart), ConfigError> {
        let section = Section::new(self.context, name, table);
        let keys: WorkloadSection = section.whole()?;
        if keys.packet_flits == 0 || keys.packet_flits > MAX_PACKET_FLITS {
            return Err(section.error("packet_flits", format!("is {}; a packet has 1 to {MAX_PACKET_FLITS} flits", keys.packet_flits)));
        }
        let default = self.default_channels.unwrap_or(self.all_channels());
        let virtual_channels = self.virtual_channels(&section, "virtual_channels", keys.virtual_channels, default)?;
        if let (None, Some(key)) = (&keys.application, OF_APPLICATIONS.into_iter().find(|key| table.contains_key(*key))) {
            return Err(section.error_at_key(key, "has a meaning only for an application; name one with workload.application"));
        }
        if let (None, Some(key)) = (&keys.system, OF_EXECUTION_TRACES.into_iter().find(|key| table.contains_key(*key))) {
            return Err(
                section.error_at_key(key, "has a meaning only for a Chakra execution trace; name its system file with workload.system")
            );
        }
        let workload: Arc<dyn Workload> = match (&keys.trace, &keys.application) {
            (None, _) if keys.system.is_some() => {
                return Err(section.error_at_key("system", "has no meaning without trace, the execution trace that it belongs to"));
            }
            (Some(prefix), _) if keys.system.is_some() => Arc::new(self.execution_trace(&section, &keys, prefix, units)?),
            (Some(path), _) => Arc::new(self.trace(&section, &keys, path, units)?),
            (None, Some(name)) => Arc::new(self.application(&section, &keys, name, units)?),
            (None, None) => Arc::new(self.collective(&section, &keys, units)?),
        };
        let part = WorkloadPart::new(&*workload, keys.packet_flits, virtual_channels);
        Ok((workload, part))
    }

    fn trace(&self, section: &Section<'_>, keys: &WorkloadSection, path: &str, units: Units) -> Result<Program, ConfigError> {
        if let Some(key) = OF_COLLECTIVES.into_iter().find(|key| section.table.contains_key(*key)) {
            return Err(section.error_at_key(key, "conflicts with trace, which gives all that ranks do; keep one of the two"));
        }
        let bytes = self.files.read(path).map_err(|problem| section.error("trace", problem))?;
        let description = if goal_binary::is_binary(&bytes) {
            goal_binary::parse(path, &bytes).map_err(|error| section.error("trace", error.to_string()))?
        } else {
            goal::parse(path, &bytes).map_err(|error| section.error("trace", error.to_string()))?
        };
        let placement = self.placement(section, keys, Some(("trace", description.ranks)))?;
        let ports = |rank: u32| {
            self.ports.zip(placement.get(rank as usize)).map_or(1, |(chosen, &terminal)| chosen.ports.ports_of(terminal).len() as u32)
        };
        let program = description.check_interfaces(ports).and_then(|()| Program::new(&description, &placement, units));
        program.map_err(|error| match error.line {
            0 => section.error("trace", format!("{path}: {}", error.problem)),
            line => section.error("trace", format!("{path}:{line}: {}", error.problem)),
        })
    }

    /// A Chakra execution trace, each NPU on the terminal of its rank.
    fn execution_trace(
        &self,
        section: &Section<'_>,
        keys: &WorkloadSection,
        prefix: &str,
        units: Units,
    ) -> Result<TraceWorkload, ConfigError> {
        if let Some(key) = OF_COLLECTIVES.into_iter().find(|key| section.table.contains_key(*key)) {
            return Err(section.error_at_key(key, "conflicts with trace, which gives all that ranks do; keep one of the two"));
        }
        if keys.queues == 0 || keys.queues > MAX_QUEUES {
            return Err(section.error("queues", format!("is {}; a dimension has 1 to {MAX_QUEUES} queues", keys.queues)));
        }
        let cluster = npus_of(section, keys.dimensions.as_deref())?;
        let given = cluster.as_ref().map(|cluster| ("dimensions", cluster.npus()));
        let placement = self.placement(section, keys, given)?;
        let cluster = cluster.unwrap_or_else(|| dimensions_of(&[placement.len() as u32]));
        let npus = cluster.npus();
        let read = |key: &str, path: &str| self.files.read(path).map_err(|problem| section.error(key, problem));
        let path = keys.system.as_deref().unwrap_or_default();
        let (mut system, nodes) =
            astra::system(path, &read("system", path)?).map_err(|error| section.error("system", error.to_string()))?;
        if let Some(path) = nodes {
            system.custom_nodes =
                astra::custom_nodes(&path, &read("system", &path)?).map_err(|error| section.error("system", error.to_string()))?;
        }
        let mut besides = Vec::new();
        let (groups, traces) = self.execution_programs(section, keys, &cluster, &mut system, &mut besides)?;
        let mut algorithms = BTreeMap::new();
        for prefix in system.custom.values().chain(system.custom_nodes.values()) {
            let traces = chakra::read_algorithm(self.files, prefix, npus).map_err(|unread| section.error("system", unread.problem()))?;
            algorithms.insert(prefix.clone(), traces);
        }
        let traces = Traces { cluster, system, groups, traces, algorithms, queues: keys.queues, besides };
        TraceWorkload::new(traces, Places::Terminals(placement), units)
            .map_err(|problem| section.error("trace", format!("{prefix}: {problem}")))
    }

    /// The groups of NPUs and what each does: by Chakra's files, or by a table of layers, if there is a file of that name instead. What such a
    /// table says that is not modelled joins `besides`.
    fn execution_programs(
        &self,
        section: &Section<'_>,
        keys: &WorkloadSection,
        cluster: &Cluster,
        system: &mut System,
        besides: &mut Vec<String>,
    ) -> Result<(Groups, Vec<ExecutionTrace>), ConfigError> {
        let prefix = keys.trace.as_deref().unwrap_or_default();
        let read = |key: &str, path: &str| self.files.read(path).map_err(|problem| section.error(key, problem));
        if !chakra::is_there(self.files, prefix) && self.files.is_there(prefix) {
            if keys.groups.is_some() {
                return Err(section.error("groups", "has no meaning with a table of layers, where the header gives the groups"));
            }
            let table = layers::parse(prefix, &read("trace", prefix)?).map_err(|error| section.error("trace", error.to_string()))?;
            besides.extend(table.leave_out(system, cluster.npus()));
            return table.programs(cluster).map_err(|problem| section.error("trace", format!("{prefix}:1: {problem}")));
        }
        let npus = cluster.npus();
        let groups = match &keys.groups {
            None => Groups::new(),
            Some(path) => astra::groups(path, &read("groups", path)?, npus).map_err(|error| section.error("groups", error.to_string()))?,
        };
        besides.extend(chakra::surplus(self.files, prefix, npus));
        let of_npu = |npu: u32| {
            let wrong = |error: ReadError| section.error("trace", format!("{} (NPU {npu})", error.problem()));
            chakra::read_of(self.files, prefix, npu).map_err(wrong)
        };
        Ok((groups, (0..npus).map(of_npu).collect::<Result<_, _>>()?))
    }

    fn application(&self, section: &Section<'_>, keys: &WorkloadSection, name: &str, units: Units) -> Result<Stages, ConfigError> {
        if let Some(key) = NOT_OF_APPLICATIONS.into_iter().find(|key| section.table.contains_key(*key)) {
            return Err(section.error_at_key(key, "conflicts with application, which determines it; keep one of the two"));
        }
        let entry = APPLICATIONS
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| section.error("application", unknown("application", name, APPLICATIONS.iter().map(|entry| entry.name))))?;
        let Some(class) = &keys.class else {
            return Err(section.error_at_key("class", "is missing; it is the size of the application's problem, such as \"A\""));
        };
        let (Some(_), Some(cycle_ns)) = (units.flit_bytes, units.cycle_ns) else {
            let problem = "counts bytes and seconds; say with network.flit_bytes and network.cycle_ns (or channel_gbit_per_second) \
                           what a flit and a cycle are";
            return Err(section.error("application", problem));
        };
        if keys.terminals_per_host == 0 {
            return Err(section.error("terminals_per_host", "is 0; a host has at least 1 terminal"));
        }
        if keys.transposes == 0 {
            return Err(section.error("transposes", "is 0; a transform has at least 1 all-to-all"));
        }
        let ranks = self.placement(section, keys, keys.ranks.map(|ranks| ("ranks", ranks)))?.len() as u32;
        let demand = (entry.demand)(class, ranks).map_err(|error| match error.key {
            "ranks" if keys.ranks.is_none() => section.error_at_key(error.key, error.problem),
            key => section.error(key, error.problem),
        })?;
        let all_to_all =
            WorkloadSection { collective: Some(ALL_TO_ALL.to_owned()), message_bytes: Some(demand.block_bytes), ..keys.clone() };
        let exchange = self.collective(section, &all_to_all, units)?;
        // A rate of 10^9 a second is one a nanosecond.
        let flops = demand.flops / f64::from(keys.transposes);
        let compute = flops * ns_each(section, "gflops_per_rank", keys.gflops_per_rank)? / cycle_ns;
        let memory = demand.memory_bytes as f64 * ns_each(section, "host_gbyte_per_second", keys.host_gbyte_per_second)? / cycle_ns;
        let stages = demand.stages.checked_mul(keys.transposes).ok_or_else(|| {
            section.error(
                "transposes",
                format!("is {}, which makes too many all-to-alls; it must be below 2^32 / {}", keys.transposes, demand.stages),
            )
        })?;
        Ok(Stages::new(exchange, keys.terminals_per_host, compute, memory, stages))
    }

    fn collective(&self, section: &Section<'_>, keys: &WorkloadSection, units: Units) -> Result<Rounds, ConfigError> {
        let algorithm = algorithm(section, keys)?;
        let (operation, schedule) = match algorithm {
            Algorithm::OfRanks(entry) => (entry.collective, entry.schedule),
            Algorithm::OfNetwork(entry) => (ALL_TO_ALL, entry.name),
        };
        let sizes = self.sizes_of_pairs(section, keys, units)?;
        let (operation, ranks) = sizes.as_ref().map_or((operation, keys.ranks), |sizes| (alltoallv::NAME, Some(sizes.ranks())));
        let keys = &WorkloadSection { ranks, ..keys.clone() };
        let size = message_size(section, keys, operation, units)?;
        let (collective, placement) = match algorithm {
            Algorithm::OfRanks(entry) => self.by_ranks(section, keys, entry, size)?,
            Algorithm::OfNetwork(entry) if self.of_user => {
                let problem =
                    format!("is \"{}\", which suits a whole network; a user knows logical nodes, so name one of ranks", entry.name);
                return Err(section.error("schedule", problem));
            }
            Algorithm::OfNetwork(entry) => self.by_network(section, keys, entry, size)?,
        };
        let WorkloadSection { synchronisation, start_skew_cycles, jitter_cycles, repeat, .. } = *keys;
        let options = Options { synchronisation, start_skew_cycles, jitter_cycles, repeat };
        let parameters = Parameters { ranks: placement.len() as u32, root: keys.root, size: size.0 };
        let (least, message_flits) = match &sizes {
            None => (Least::of(operation, &parameters), parameters.size.whole(1)),
            Some(sizes) => (Some(sizes.least()), sizes.longest()),
        };
        let collective = match sizes {
            None => collective,
            Some(sizes) => straight(section, schedule, collective, sizes)?,
        };
        let rounds = Rounds::new(collective, placement, &options).map_err(|error| section.error(error.key, error.problem))?;
        Ok(rounds.named(operation, schedule, least, message_flits))
    }

    /// The sizes of an `alltoallv`; `None` of another collective.
    fn sizes_of_pairs(&self, section: &Section<'_>, keys: &WorkloadSection, units: Units) -> Result<Option<Sizes>, ConfigError> {
        let Some((key, matrix)) = matrix(section, keys)? else { return Ok(None) };
        let per_flit = match units.flit_bytes {
            _ if key == MATRIX_FLITS => 1,
            Some(flit_bytes) => flit_bytes,
            None => return Err(section.error(key, NO_FLIT_BYTES)),
        };
        let wrong = |problem: String| section.error(key, problem);
        let sizes = match matrix {
            SizesOfPairs::Rows(rows) => Sizes::of(rows, per_flit).map_err(wrong)?,
            SizesOfPairs::File(path) => {
                let file = self.files.read(path).map_err(wrong)?;
                let rows = parse_sizes(path, &file).map_err(|error| wrong(error.to_string()))?;
                Sizes::of(&rows, per_flit).map_err(|problem| wrong(format!("{path} {problem}")))?
            }
        };
        let (ranks, terminals) = (sizes.ranks(), self.network.terminal_count());
        if let Some(asked) = keys.ranks.filter(|&asked| asked != ranks) {
            return Err(section.error("ranks", format!("is {asked}, but {key} has {ranks} rows, one for each rank; leave ranks out")));
        }
        if ranks > terminals {
            return Err(wrong(format!("has {ranks} rows, one for each rank; the network has {terminals} terminals, one for each rank")));
        }
        Ok(Some(sizes))
    }

    /// A schedule that knows only ranks, and where these are placed.
    fn by_ranks(
        &self,
        section: &Section<'_>,
        keys: &WorkloadSection,
        entry: &Entry,
        (size, size_key): (MessageSize, &'static str),
    ) -> Result<Placed, ConfigError> {
        let placement = self.placement(section, keys, keys.ranks.map(|ranks| ("ranks", ranks)))?;
        if section.table.contains_key("root") && !entry.rooted {
            return Err(rootless(section, entry.schedule));
        }
        let parameters = Parameters { ranks: placement.len() as u32, root: keys.root, size };
        let collective = entry.build(&parameters).map_err(|error| collective_error(section, error, size_key))?;
        Ok((collective, placement))
    }

    /// An all-to-all that suits the network: the construction places the ranks itself.
    fn by_network(
        &self,
        section: &Section<'_>,
        keys: &WorkloadSection,
        entry: &schedule::Entry,
        (size, size_key): (MessageSize, &'static str),
    ) -> Result<Placed, ConfigError> {
        if section.table.contains_key("root") {
            return Err(rootless(section, entry.name));
        }
        if self.ports.is_some() {
            let problem =
                "is made for terminals with one port, and those of this network have several; take a schedule of ranks, such as \"shift\"";
            return Err(section.error("schedule", problem));
        }
        let job = match (&keys.placement, keys.ranks) {
            (Placement::Rule(Rule::Linear), None) => Job::All,
            (Placement::Rule(Rule::Linear), Some(ranks)) if ranks == self.network.terminal_count() => Job::All,
            (Placement::Rule(Rule::Linear), Some(ranks)) => Job::Count(ranks),
            (_, ranks) => Job::Terminals(self.placement(section, keys, ranks.map(|ranks| ("ranks", ranks)))?),
        };
        let plan = entry.plan(self.network, self.routing, &job).map_err(|error| {
            let key = match error {
                ScheduleError::Network { .. } | ScheduleError::Routes(_) => "schedule",
                ScheduleError::Job { .. } => {
                    ["placement", "ranks"].into_iter().find(|key| section.table.contains_key(*key)).unwrap_or("schedule")
                }
            };
            section.error(key, error.to_string())
        })?;
        let parameters = Parameters { ranks: plan.terminals.len() as u32, root: 0, size };
        parameters.check().map_err(|error| collective_error(section, error, size_key))?;
        Ok((Box::new(Scheduled::new(plan.schedule, size.whole(1))), plan.terminals))
    }

    /// The terminal of each rank. `given` is how many ranks there are and the key that says so.
    fn placement(&self, section: &Section<'_>, keys: &WorkloadSection, given: Option<(&str, u32)>) -> Result<Vec<TerminalId>, ConfigError> {
        let terminals = self.network.terminal_count();
        let (key, ranks) = given.unwrap_or(match &keys.placement {
            Placement::List(list) => ("placement", list.len() as u32),
            Placement::Rule(_) => ("ranks", terminals),
        });
        if ranks > terminals {
            return Err(section.error(key, format!("asks for {ranks} ranks; the network has {terminals} terminals, one for each rank")));
        }
        let is_cyclic = matches!(keys.placement, Placement::Rule(Rule::Cyclic));
        let stride = match keys.placement_stride {
            Some(stride) if is_cyclic && stride > 0 => stride,
            Some(0) => return Err(section.error("placement_stride", "is 0; it must be 1 or more")),
            Some(_) => {
                return Err(section.error("placement_stride", "has a meaning with placement = \"cyclic\" alone; leave one of the two out"));
            }
            None if is_cyclic => return Err(section.error("placement", "is \"cyclic\", which needs a placement_stride")),
            None => 1,
        };
        match &keys.placement {
            Placement::Rule(Rule::Linear) => Ok(placement::linear(ranks)),
            Placement::Rule(Rule::Cyclic) => Ok(placement::cyclic(ranks, terminals, stride)),
            Placement::Rule(Rule::Random) => Ok(placement::random(ranks, terminals, keys.placement_seed)),
            Placement::List(list) => listed(list, ranks, (&**self.network).into()).map_err(|problem| section.error("placement", problem)),
        }
    }
}

/// The keys that only a collective has.
const OF_COLLECTIVES: [&str; 13] = [
    "application",
    "collective",
    "schedule",
    "message_flits",
    "message_bytes",
    "matrix_flits",
    "matrix_bytes",
    "ranks",
    "root",
    "synchronisation",
    "start_skew_cycles",
    "jitter_cycles",
    "repeat",
];

/// The keys that only a Chakra execution trace has, besides its system.
const OF_EXECUTION_TRACES: [&str; 3] = ["groups", "dimensions", "queues"];

/// The most queues of a dimension.
const MAX_QUEUES: u32 = 4096;

/// The dimensions that collectives go by, if they are given.
fn npus_of(section: &Section<'_>, sizes: Option<&[u32]>) -> Result<Option<Cluster>, ConfigError> {
    let Some(sizes) = sizes else { return Ok(None) };
    let product = sizes.iter().try_fold(1_u32, |product, &size| product.checked_mul(size).filter(|&product| product <= MAX_NPUS));
    if sizes.is_empty() || sizes.iter().any(|&size| size < 2) || product.is_none() {
        let problem = format!("is {sizes:?}; write the NPUs of each dimension, at least 2 in each and at most {MAX_NPUS} in all");
        return Err(section.error("dimensions", problem));
    }
    Ok(Some(dimensions_of(sizes)))
}

/// Dimensions of these sizes. What they are wired like does not matter where the network is another.
fn dimensions_of(sizes: &[u32]) -> Cluster {
    let dimension = |&npus: &u32| Dimension { topology: Topology::Switch, npus, bandwidth: 1.0, latency_ns: 0.0 };
    Cluster { dimensions: sizes.iter().map(dimension).collect() }
}

/// The keys that only an application has.
const OF_APPLICATIONS: [&str; 5] = ["class", "gflops_per_rank", "transposes", "terminals_per_host", "host_gbyte_per_second"];

/// The keys of collectives that an application sets itself, or that it has no use for.
const NOT_OF_APPLICATIONS: [&str; 9] = [
    "collective",
    "message_flits",
    "message_bytes",
    "matrix_flits",
    "matrix_bytes",
    "root",
    "start_skew_cycles",
    "jitter_cycles",
    "repeat",
];

/// The nanoseconds for each one at so many a nanosecond; 0 without a rate.
fn ns_each(section: &Section<'_>, key: &str, rate: Option<f64>) -> Result<f64, ConfigError> {
    match rate {
        None => Ok(0.0),
        Some(rate) if rate > 0.0 && rate.is_finite() => Ok(1.0 / rate),
        Some(rate) => Err(section.error(key, format!("is {rate}; it must be above 0"))),
    }
}

/// The terminals of a list, one for each rank.
fn listed(list: &[TerminalRef], ranks: u32, terminals: Terminals<'_>) -> Result<Vec<TerminalId>, String> {
    if list.len() != ranks as usize {
        return Err(format!("lists {} terminals; there are {ranks} ranks, and each needs one", list.len()));
    }
    let mut rank_on = vec![None; terminals.count() as usize];
    let mut placed = Vec::with_capacity(list.len());
    for (rank, terminal) in list.iter().enumerate() {
        let terminal = terminal.find(terminals).map_err(|problem| format!("puts rank {rank} where there is none: {problem}"))?;
        if let Some(other) = rank_on[terminal as usize].replace(rank) {
            let name = terminals.name(terminal);
            return Err(format!("puts ranks {other} and {rank} on terminal {name}; each rank needs one of its own"));
        }
        placed.push(TerminalId(terminal));
    }
    Ok(placed)
}

/// A schedule, and the terminal of each rank.
type Placed = (Box<dyn Collective>, Vec<TerminalId>);

/// By which algorithm a collective is done.
enum Algorithm {
    /// It goes by the ranks' numbers.
    OfRanks(&'static Entry),
    /// It goes by the network.
    OfNetwork(&'static schedule::Entry),
}

/// The constructions for networks whose names are not those of schedules by ranks already.
pub(super) fn of_network() -> impl Iterator<Item = &'static schedule::Entry> {
    SCHEDULES.iter().filter(|entry| schedules(ALL_TO_ALL).all(|known| known.schedule != entry.name))
}

/// The algorithm that the section names.
fn algorithm(section: &Section<'_>, keys: &WorkloadSection) -> Result<Algorithm, ConfigError> {
    let Some(collective) = &keys.collective else {
        let message = format!("is missing; it must be one of {}; a trace may take its place", operations().join(", "));
        return Err(section.error_at_key("collective", message));
    };
    let Some(default) = schedules(collective).next() else {
        return Err(section.error("collective", unknown("collective", collective, operations())));
    };
    let Some(name) = &keys.schedule else { return Ok(Algorithm::OfRanks(default)) };
    if let Some(entry) = schedules(collective).find(|entry| entry.schedule == name) {
        return Ok(Algorithm::OfRanks(entry));
    }
    let constructions = || of_network().filter(|_| collective == ALL_TO_ALL || collective == alltoallv::NAME);
    constructions().find(|entry| entry.name == name).map(Algorithm::OfNetwork).ok_or_else(|| {
        let names = schedules(collective).map(|entry| entry.schedule).chain(constructions().map(|entry| entry.name));
        section.error("schedule", format!("{} (of `{collective}`)", unknown("schedule", name, names)))
    })
}

const MATRIX_FLITS: &str = "matrix_flits";
const MATRIX_BYTES: &str = "matrix_bytes";

/// The matrix of an `alltoallv` and the key that gives it; `None` of another collective.
fn matrix<'k>(section: &Section<'_>, keys: &'k WorkloadSection) -> Result<Option<(&'static str, &'k SizesOfPairs)>, ConfigError> {
    let is_asked = keys.collective.as_deref() == Some(alltoallv::NAME);
    let found = match (&keys.matrix_flits, &keys.matrix_bytes) {
        (None, None) if is_asked => {
            let problem = "is missing; give what each rank has for each other one, as rows or a file, or matrix_bytes in its place";
            return Err(section.error_at_key(MATRIX_FLITS, problem));
        }
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(section.error(MATRIX_BYTES, "conflicts with matrix_flits; both give the sizes of messages, so keep one"));
        }
        (Some(matrix), None) => (MATRIX_FLITS, matrix),
        (None, Some(matrix)) => (MATRIX_BYTES, matrix),
    };
    if !is_asked {
        return Err(section.error_at_key(found.0, "has a meaning with collective = \"alltoallv\" alone; leave one of the two out"));
    }
    Ok(Some(found))
}

/// The rounds of an all-to-all with a size for each pair.
fn straight(
    section: &Section<'_>,
    schedule: &str,
    all_to_all: Box<dyn Collective>,
    sizes: Sizes,
) -> Result<Box<dyn Collective>, ConfigError> {
    Alltoallv::over(all_to_all, sizes).ok_or_else(|| {
        let problem = format!(
            "is \"{schedule}\", in which ranks pass on blocks of others; with a size for each pair every block goes straight: take \"shift\", \
             \"pairwise\", \"weighted\" or one that is made for the network"
        );
        section.error("schedule", problem)
    })
}

fn rootless(section: &Section<'_>, schedule: &str) -> ConfigError {
    section.error_at_key("root", format!("has no meaning: the schedule `{schedule}` has no root"))
}

/// `size_key` is the key that gives the size of messages.
fn collective_error(section: &Section<'_>, error: CollectiveError, size_key: &str) -> ConfigError {
    let CollectiveError::Parameter { key, problem } = error;
    section.error(if key == MESSAGE { size_key } else { key }, problem)
}

/// What is wrong with bytes where a flit holds an unknown number of them.
const NO_FLIT_BYTES: &str = "cannot be turned into flits; say with network.flit_bytes how many bytes a flit holds";

/// The size of a message and the key that gives it.
fn message_size(
    section: &Section<'_>,
    keys: &WorkloadSection,
    collective: &str,
    units: Units,
) -> Result<(MessageSize, &'static str), ConfigError> {
    let (flits, bytes) = ("message_flits", "message_bytes");
    if collective == alltoallv::NAME {
        return match [flits, bytes].into_iter().find(|key| section.table.contains_key(*key)) {
            Some(key) => {
                Err(section.error_at_key(key, "has no meaning for `alltoallv`, whose matrix has a size for each pair; leave it out"))
            }
            None => Ok((MessageSize::of_flits(1), flits)),
        };
    }
    match (keys.message_flits, keys.message_bytes, units.flit_bytes) {
        (Some(_), Some(_), _) => Err(section.error(bytes, "conflicts with message_flits; both give the size of a message, so keep one")),
        (Some(0), None, _) => Err(section.error(flits, "is 0; a message has at least 1 flit")),
        (Some(size), None, _) => Ok((MessageSize::of_flits(u64::from(size)), flits)),
        (None, Some(size), Some(flit)) => Ok((MessageSize::of_bytes(size, flit), bytes)),
        (None, Some(_), None) => Err(section.error(bytes, NO_FLIT_BYTES)),
        (None, None, _) if collective == "barrier" => Ok((MessageSize::of_flits(1), flits)),
        (None, None, _) => {
            Err(section.error_at_key(flits, "is missing; give the size of a message in flits, or message_bytes with network.flit_bytes"))
        }
    }
}
