//! Estimates the cost of a run before it is computed: processor time and memory, to order and pack many runs.
//!
//! The size of a run follows from its description: channels x cycles x load, if it is simulated cycle by cycle. The price of a unit is
//! learnt from finished runs on this machine ([`Costs`]). No result depends on an estimate.

use crate::measure::{Offer, min_run_cycles};
use crate::networks::MAX_KEPT_CHANNELS;
use crate::plan::deadlock_budget;
use kasuri_config::{Search, Study};
use kasuri_flow::analysis::is_counted_by_routers;
use kasuri_model::engine::{Engine, Method};
use kasuri_model::scenario::Scenario;
use kasuri_network::deadlock;
use kasuri_network::routing::extents::Extents;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The size of a run, not yet in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// The kind of run: units of different kinds have different prices.
    pub kind: Kind,
    /// Its units: channels x cycles x load, or their equivalent.
    pub units: f64,
    /// Peak memory of the run, bytes.
    pub state_bytes: f64,
    /// Threads that make the run faster, or the number in its file.
    pub threads: u32,
}

/// Kinds of runs, each with its own price per unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Formulas.
    Analysis,
    /// Rates of messages of open traffic and of batches.
    Flow,
    /// Rates of messages of a closed workload: many messages begin and end together.
    FlowClosed,
    /// Cycle by cycle, for a given number of cycles.
    FlitCycles,
    /// Cycle by cycle, until the answer is precise.
    FlitPrecision,
    /// Cycle by cycle, until everything has arrived.
    FlitClosed,
    /// Cycle by cycle, load after load until the saturation load is found.
    FlitSearch,
    /// A machine of network interfaces with its programs.
    Endpoint,
}

impl Kind {
    /// The kind of a study's run by this engine.
    pub fn of(study: &Study, method: Method) -> Self {
        let open_until_precise = study.measure.cycles.is_none() && !study.scenario.is_closed();
        match method {
            _ if study.scenario.endpoint.is_some() => Self::Endpoint,
            Method::Formulas => Self::Analysis,
            Method::Rates if study.scenario.workload.is_some() => Self::FlowClosed,
            Method::Rates => Self::Flow,
            Method::Cycles if study.measure.search == Some(Search::Saturation) => Self::FlitSearch,
            Method::Cycles if study.scenario.is_closed() => Self::FlitClosed,
            Method::Cycles if open_until_precise => Self::FlitPrecision,
            Method::Cycles => Self::FlitCycles,
        }
    }

    /// Seconds of a unit on an unknown machine: measured once, right within a small factor.
    fn unit_seconds(self) -> f64 {
        match self {
            Self::Analysis => 1.5e-7,
            Self::Flow => 1e-6,
            Self::FlowClosed => 1.5e-7,
            Self::FlitCycles => 2.5e-8,
            Self::FlitPrecision | Self::FlitClosed | Self::FlitSearch => 5e-8,
            Self::Endpoint => 1e-3,
        }
    }
}

/// The share of a run that its threads compute serially or spend waiting for each other. Two threads made the worthwhile runs of
/// `benches/threads.py` 1.5 to 2 times as fast, with a median of 1.67.
const SERIAL_SHARE: f64 = 0.2;

/// The serial share of a run of users, as flows: two threads make it 1.9 times as fast if no user shares a channel.
const USERS_SERIAL_SHARE: f64 = 0.05;

/// The time of flows on several threads, and their processor time, over those on one: a second one only finds paths, and sleeps otherwise.
const THREADED_FLOW_TIME_FACTOR: f64 = 0.85;
const THREADED_FLOW_CPU_FACTOR: f64 = 1.15;

impl Kind {
    /// True if a run uses all given threads, whether they are worth it or not.
    pub fn takes_any_threads(self) -> bool {
        !matches!(self, Self::Analysis | Self::Flow | Self::FlowClosed)
    }

    /// The time of a run on `threads` threads, over that on one.
    pub fn time_factor(self, threads: usize) -> f64 {
        match self {
            _ if threads <= 1 => 1.0,
            Self::Flow => THREADED_FLOW_TIME_FACTOR,
            Self::FlowClosed => USERS_SERIAL_SHARE + (1.0 - USERS_SERIAL_SHARE) / threads as f64,
            _ => SERIAL_SHARE + (1.0 - SERIAL_SHARE) / threads as f64,
        }
    }

    /// The processor time of a run on `threads` threads, over that on one: waiting threads use some as well.
    pub fn processor_time_factor(self, threads: usize) -> f64 {
        match self {
            Self::Flow if threads > 1 => THREADED_FLOW_CPU_FACTOR,
            _ => threads.max(1) as f64 * self.time_factor(threads),
        }
    }
}

/// Packets for an answer, times the square of its precision: batches of correlated latencies need more than independent samples would.
const PACKETS_TIMES_PRECISION_SQUARED: f64 = 4.0;

/// The fewest packets of a run with a precision, and per terminal.
const MIN_PACKETS: f64 = 2000.0;
const MIN_PACKETS_PER_TERMINAL: f64 = 20.0;

/// Loads tried by a search for saturation.
const SEARCH_TRIALS: f64 = 12.0;

/// Cycles of all trials together, at a precision of 20 % with packets of 5 flits: nearly all are spent next to saturation, where latencies
/// correlate over long times, so that neither the number of packets nor the size of the network matters much. Chosen from thirteen searches
/// of 10 to 64 terminals, which took 0.3 to 1.7 times the processor time of this estimate.
const SEARCH_CYCLES: f64 = 6e5;
const SEARCH_CYCLES_PRECISION: f64 = 0.2;
const SEARCH_CYCLES_PACKET_FLITS: f64 = 5.0;
const PACKET_LENGTH_POWER: f64 = 0.4;

impl Work {
    /// The size of a run on an engine. `extents` caches route lengths of other runs.
    pub fn of(study: &Study, engine: &dyn Engine, extents: &mut Extents) -> Self {
        let kind = Kind::of(study, engine.method());
        let scenario = &study.scenario;
        let network = &scenario.network;
        let (terminals, channels) = (f64::from(network.terminal_count()), f64::from(network.channel_count()));
        let units = match kind {
            Kind::Endpoint => terminals,
            Kind::Analysis => units_of_formulas(scenario),
            Kind::Flow => closed_flits(scenario).map_or(terminals * 100.0, |(messages, _)| messages) * channels.sqrt(),
            // All-to-alls of 4,096 to 46,656 terminals take 50 to 90 ns for a message, rings 180 to 230, users that meet 900.
            Kind::FlowClosed => closed_flits(scenario).map_or(0.0, |(messages, _)| messages),
            Kind::FlitClosed => closed_flits(scenario).map_or(0.0, |(_, flits)| flits) * f64::from(network.router_count() + 1).log2(),
            Kind::FlitCycles | Kind::FlitPrecision => channels * cycles(study) * load(scenario),
            Kind::FlitSearch => channels * search_cycles(study),
        };
        let units = if engine.method() == Method::Cycles { units * size_slowdown(channels) } else { units };
        // A refused run is not computed.
        let (slowness, running, threads) = match engine.prepare(&searched(study)) {
            Ok(prepared) => (prepared.slowness(), prepared.memory_bytes(extents), prepared.useful_threads()),
            Err(_) => (1.0, 0, 1),
        };
        let state_bytes = state_bytes(study, engine.method(), running, extents) as f64;
        Self { kind, units: (units * slowness).max(1.0), state_bytes, threads: u32::try_from(threads).unwrap_or(u32::MAX) }
    }

    /// Seconds of processor time on an unknown machine. The same everywhere: processes that share a sweep agree on its order.
    pub fn seconds(&self) -> f64 {
        self.units * self.kind.unit_seconds()
    }

    /// The order of run times, as far as it does not depend on the machine.
    pub fn order(&self, other: &Self) -> Ordering {
        self.seconds().total_cmp(&other.seconds())
    }
}

/// Larger networks do not fit into the near caches. Trees of 3,000 to 6,000,000 channels take 21 to 66 ns for a unit, and a power of their
/// size fits them all within a factor of 1.4.
const CHANNELS_IN_CACHE: f64 = 4000.0;
const SLOWNESS_POWER: f64 = 0.18;

/// The time of a unit in a network of `channels` channels, over that in a small network, cycle by cycle.
fn size_slowdown(channels: f64) -> f64 {
    (channels / CHANNELS_IN_CACHE).max(1.0).powf(SLOWNESS_POWER)
}

/// The offered load of all classes together, flits per terminal and cycle, replies included.
fn load(scenario: &Scenario) -> f64 {
    let of_class = |class: &kasuri_model::scenario::TrafficClass| {
        let replies = class.reply.as_ref().map_or(0.0, |reply| reply.sizes.mean() / class.sizes.mean());
        class.load * (1.0 + replies)
    };
    scenario.classes.iter().map(of_class).sum()
}

/// Cycles that a run of open traffic will take.
fn cycles(study: &Study) -> f64 {
    let (scenario, measure) = (&study.scenario, &study.measure);
    let most = measure.max_cycles as f64;
    if let Some(cycles) = measure.cycles {
        return (cycles + measure.warmup.unwrap_or(0)) as f64;
    }
    let terminals = f64::from(scenario.network.terminal_count().max(1));
    let packets = (PACKETS_TIMES_PRECISION_SQUARED / measure.precision.powi(2)).max(MIN_PACKETS).max(MIN_PACKETS_PER_TERMINAL * terminals);
    let least = min_run_cycles(&Offer::of(scenario), measure.max_cycles) as f64;
    (packets * longest_packet(scenario) / (terminals * load(scenario).max(1e-6))).max(least).min(most)
}

/// Mean packet length of the class with the longest packets, flits.
fn longest_packet(scenario: &Scenario) -> f64 {
    scenario.classes.iter().map(|class| class.sizes.mean()).fold(1.0, f64::max)
}

/// Cycles that all trials of a search will take.
fn search_cycles(study: &Study) -> f64 {
    let measure = &study.measure;
    let most = SEARCH_TRIALS * measure.max_cycles as f64;
    if measure.cycles.is_some() {
        return SEARCH_TRIALS * cycles(study);
    }
    let shorter = (SEARCH_CYCLES_PACKET_FLITS / longest_packet(&study.scenario)).powf(PACKET_LENGTH_POWER);
    (SEARCH_CYCLES * shorter * SEARCH_CYCLES_PRECISION / measure.precision).min(most)
}

/// Typical channels of a path.
const CHANNELS_PER_PATH: f64 = 8.0;

/// Route steps, and pairs of terminals, up to which formulas of open traffic are exact; beyond, they sample.
const MAX_EXACT_ROUTE_STEPS: f64 = 8e6;
const MAX_EXACT_PAIRS: f64 = 2e7;

/// Steps of routes that formulas walk. Routes to one router are walked together, unless they differ by the terminal there.
fn units_of_formulas(scenario: &Scenario) -> f64 {
    let network = &scenario.network;
    let terminals = f64::from(network.terminal_count());
    let destinations = if scenario.routing.facts().reads.terminal { terminals } else { terminals.min(f64::from(network.router_count())) };
    let walk = f64::from(network.router_count() + network.channel_count() - 2 * network.terminal_count());
    match &scenario.workload {
        Some(_) if is_counted_by_routers(scenario) => destinations * walk,
        Some(closed) => closed.workload.messages() as f64 * CHANNELS_PER_PATH,
        // Loads, zero load, waiting, distances.
        None => 4.0 * ((destinations * walk).min(MAX_EXACT_ROUTE_STEPS) + (terminals * terminals).min(MAX_EXACT_PAIRS)),
    }
}

/// A time in the unit that fits it, two digits.
pub(crate) fn duration(seconds: f64) -> String {
    let (number, unit) = match seconds {
        0.0..120.0 => (seconds, "s"),
        120.0..7200.0 => (seconds / 60.0, "min"),
        _ => (seconds / 3600.0, "h"),
    };
    let digits = (1.0 - number.max(1e-3).log10().floor()).clamp(0.0, 4.0) as usize;
    format!("{number:.digits$} {unit}")
}

/// Messages and flits of closed traffic.
fn closed_flits(scenario: &Scenario) -> Option<(f64, f64)> {
    if let Some(closed) = &scenario.workload {
        let messages = closed.workload.messages() as f64;
        return Some((messages, messages * f64::from(closed.workload.longest_message())));
    }
    let batches = scenario.batches().map(|(class, packets)| (packets as f64, class.sizes.mean()));
    let terminals = f64::from(scenario.network.terminal_count());
    batches
        .map(|(packets, flits)| (packets * terminals, packets * terminals * flits))
        .reduce(|one, other| (one.0 + other.0, one.1 + other.1))
}

/// Bytes for each channel while a network is built, while its shortest paths are searched, and while its text is written to name it.
const BUILDING_BYTES: u64 = 80;
const SEARCHING_BYTES: u64 = 110;
const WRITING_BYTES: u64 = 150;

/// Bytes of routings for each terminal, router and port, besides tables that grow faster.
const PORT_BYTES: u64 = 4;

/// Peak memory of a run in bytes, from the network on; the engine itself takes `running`.
fn state_bytes(study: &Study, method: Method, running: u64, extents: &mut Extents) -> u64 {
    let scenario = &study.scenario;
    let network = &scenario.network;
    let (channels, terminals) = (u64::from(network.channel_count()), u64::from(network.terminal_count()));
    let ports = 2 * (channels + terminals);
    let held = network.memory_bytes() + scenario.routing.facts().table_bytes + PORT_BYTES * ports;
    let building = BUILDING_BYTES * channels;
    let compiling = match scenario.routing.facts().build_peak_bytes.saturating_sub(scenario.routing.facts().table_bytes) {
        // Known by formula.
        0 => 0,
        more => more + SEARCHING_BYTES * channels,
    };
    let writing = if network.channel_count() > MAX_KEPT_CHANNELS { 0 } else { WRITING_BYTES * channels };
    held + running.max(building).max(compiling).max(writing).max(checking_bytes(study, method, extents))
}

/// Bytes of the deadlock check before a run.
fn checking_bytes(study: &Study, method: Method, extents: &mut Extents) -> u64 {
    let Some(budget) = deadlock_budget(study, method) else { return 0 };
    let scenario = &study.scenario;
    let routing = scenario.possible_routing();
    let of_channels = |channels| deadlock::check_bytes(&scenario.network, extents.of(&scenario.network, &routing, channels, budget));
    scenario.virtual_channel_ranges().into_iter().map(of_channels).max().unwrap_or(0)
}

/// The scenario, at the greatest load if that is searched.
fn searched(study: &Study) -> Cow<'_, Scenario> {
    if study.measure.search.is_none() {
        return Cow::Borrowed(&study.scenario);
    }
    let mut scenario = study.scenario.clone();
    let load = 1.0 / scenario.classes.len().max(1) as f64;
    scenario.classes.iter_mut().for_each(|class| class.load = load);
    Cow::Owned(scenario)
}

/// A finished run and its cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredRun {
    /// Its size.
    pub work: Work,
    /// Its processor time, s.
    pub seconds: f64,
}

/// The learnt costs of runs on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// By kind of run.
    #[serde(default)]
    kinds: BTreeMap<Kind, LearntFactor>,
    /// Bytes in memory for each byte of [`Work::state_bytes`].
    #[serde(default)]
    memory: Option<LearntFactor>,
}

/// A geometric mean over finished runs, the latest ones weighted most: the ratio of measured to estimated cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct LearntFactor {
    runs: u64,
    log_mean: f64,
}

/// Only about this many of the last runs determine a price.
const REMEMBERED_RUNS: u64 = 200;

impl LearntFactor {
    fn add(&mut self, factor: f64) {
        if factor.is_finite() && factor > 0.0 {
            self.runs += 1;
            self.log_mean += (factor.ln() - self.log_mean) / self.runs.min(REMEMBERED_RUNS) as f64;
        }
    }

    fn factor(self) -> f64 {
        self.log_mean.exp()
    }
}

/// A process with a small network.
const PROCESS_BYTES: f64 = 16.0 * MIB;

/// Shorter processes reveal more about their start than about the runs, seconds.
const MIN_LEARNT_SECONDS: f64 = 0.05;

/// Memory is learnt from large networks only: in small ones the fixed memory of a process dominates.
const MIN_LEARNT_BYTES: f64 = 4.0 * MIB;

const MIB: f64 = 1024.0 * 1024.0;

impl Costs {
    /// The learnt costs of this machine: none if there is no file, or it cannot be read.
    pub fn of_this_machine() -> Self {
        file().and_then(|file| fs::read(file).ok()).and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Learns from runs, and stores it for the next process. Estimates are a convenience: an unwritable folder is not an error.
    pub fn learn_on_this_machine(measured: &[MeasuredRun], memory: Option<(Work, f64)>) {
        let seconds: f64 = measured.iter().map(|run| run.seconds).sum();
        let Some(file) = file().filter(|_| seconds >= MIN_LEARNT_SECONDS) else { return };
        let mut costs = Self::of_this_machine();
        costs.learn(measured);
        if let Some((work, bytes)) = memory {
            costs.learn_memory(&work, bytes);
        }
        let _ = costs.keep(&file);
    }

    /// Learns the cost of runs.
    pub fn learn(&mut self, measured: &[MeasuredRun]) {
        for run in measured {
            self.kinds.entry(run.work.kind).or_default().add(run.seconds / run.work.seconds());
        }
    }

    /// Learns from the growth of a process that computed runs up to this size, bytes.
    pub fn learn_memory(&mut self, work: &Work, bytes: f64) {
        if bytes.min(work.state_bytes) >= MIN_LEARNT_BYTES {
            self.memory.get_or_insert_default().add(bytes / work.state_bytes);
        }
    }

    /// Finished runs of this kind behind the estimate.
    pub fn runs(&self, kind: Kind) -> u64 {
        self.kinds.get(&kind).map_or(0, |price| price.runs)
    }

    /// Processor time of a run, s.
    pub fn seconds(&self, work: &Work) -> f64 {
        work.seconds() * self.kinds.get(&work.kind).map_or(1.0, |price| price.factor())
    }

    /// Memory of a process that computes a run, MiB: a promise to a scheduler, so learning can only raise it.
    pub fn memory_mib(&self, work: &Work) -> f64 {
        let state = work.state_bytes * self.memory.map_or(1.0, LearntFactor::factor).max(1.0);
        (PROCESS_BYTES + state) / MIB
    }

    /// Two processes may write at the same time: one of the results is lost, none is mixed.
    fn keep(&self, file: &Path) -> io::Result<()> {
        let temporary = file.with_extension(format!("json.{}", std::process::id()));
        file.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&temporary, serde_json::to_vec(self)?)?;
        fs::rename(&temporary, file)
    }
}

/// `$XDG_CACHE_HOME/kasuri/costs.json`, else `~/.cache/kasuri/costs.json`.
fn file() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("kasuri").join("costs.json"))
}

/// The cost of many runs together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Total {
    /// Their number.
    pub runs: usize,
    /// Processor time of all, s.
    pub seconds: f64,
    /// Of the shortest run, s.
    pub shortest: f64,
    /// Of the longest run, s.
    pub longest: f64,
    /// Of the largest run, MiB.
    pub memory_mib: f64,
    /// Finished runs behind the least certain estimate.
    pub known_runs: u64,
}

impl Total {
    /// Adds up the costs of runs.
    pub fn of(costs: &Costs, works: impl IntoIterator<Item = Work>) -> Self {
        let mut total = Self { runs: 0, seconds: 0.0, shortest: f64::INFINITY, longest: 0.0, memory_mib: 0.0, known_runs: u64::MAX };
        for work in works {
            let seconds = costs.seconds(&work);
            total.runs += 1;
            total.seconds += seconds;
            total.shortest = total.shortest.min(seconds);
            total.longest = total.longest.max(seconds);
            total.memory_mib = total.memory_mib.max(costs.memory_mib(&work));
            total.known_runs = total.known_runs.min(costs.runs(work.kind));
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_config::Document;
    use kasuri_network::topology::NoFiles;

    /// The size of an experiment of one run on the flit engine.
    fn size(text: &str) -> Work {
        Work::of(&study(text), &kasuri_flit::FlitEngine, &mut Extents::default())
    }

    fn study(text: &str) -> Study {
        let document = Document::parse("t.toml", text).unwrap();
        document.study(&document.points().unwrap()[0], &NoFiles).unwrap()
    }

    fn work(load: f64, cycles: u64, side: u32) -> Work {
        let text = format!(
            "[network]\ntopology = \"mesh\"\ndimensions = [{side}, {side}]\n[routing]\nalgorithm = \"dimension-order\"\n\
             [traffic]\npattern = \"uniform\"\nload = {load}\n[measure]\nwarmup = 0\ncycles = {cycles}\n"
        );
        size(&text)
    }

    /// A mesh of side k has 2 k^2 channels of terminals and 4 k (k - 1) between routers.
    #[test]
    fn the_size_is_channels_times_cycles_times_load() {
        let channels = f64::from(2 * 16 + 4 * 4 * 3);
        assert_eq!(work(0.25, 4000, 4).units, channels * 4000.0 * 0.25);
        assert_eq!(work(0.5, 1000, 8).units, f64::from(2 * 64 + 4 * 8 * 7) * 500.0);
    }

    /// A run with a precision takes the intervals of a warm-up and of two checks, for any number of packets in them. The cycles are those
    /// of runs of these meshes.
    #[test]
    fn a_precise_answer_takes_its_intervals() {
        for (side, load, took) in [(16, 0.1, 12_630.0), (32, 0.05, 12_776.0), (64, 0.02, 13_024.0)] {
            let text = format!(
                "[network]\ntopology = \"mesh\"\ndimensions = [{side}, {side}]\n[routing]\nalgorithm = \"dimension-order\"\n\
                 [traffic]\npattern = \"uniform\"\nload = {load}\npacket_flits = 5\n"
            );
            let cycles = cycles(&study(&text));
            assert!((cycles / took).ln().abs() < 1.5f64.ln(), "{side}x{side} at {load}: {cycles} cycles, not about {took}");
        }
    }

    #[test]
    fn a_longer_run_comes_first_whatever_the_machine() {
        assert_eq!(work(0.1, 5000, 4).order(&work(0.1, 4000, 4)), Ordering::Greater);
        assert_eq!(work(0.1, 4000, 4).order(&work(0.1, 4000, 4)), Ordering::Equal);
        assert_eq!(work(0.1, 4000, 4).order(&work(0.1, 4000, 5)), Ordering::Less);
    }

    /// Routers without fast layouts cost more for the same cycles.
    #[test]
    fn dearer_routers_count_more() {
        let text = |holds: bool| {
            format!(
                "[network]\ntopology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\n[router]\n\
                 hold_switch = {holds}\n[traffic]\npattern = \"uniform\"\npacket_flits = 5\n[measure]\nsearch = \"saturation\"\n"
            )
        };
        let units = |holds: bool| size(&text(holds)).units;
        assert!(units(true) > 2.0 * units(false), "{} {}", units(true), units(false));
    }

    /// At the median of the measurements: on two threads 1.67 times as fast, for a fifth more of processor time.
    #[test]
    fn threads_take_less_time_and_more_processor_time() {
        let cycles = Kind::FlitCycles;
        assert_eq!((cycles.time_factor(1), cycles.processor_time_factor(1)), (1.0, 1.0));
        assert!((1.0 / cycles.time_factor(2) - 1.67).abs() < 0.01);
        assert!((cycles.processor_time_factor(2) - 1.2).abs() < 1e-12);
        assert!(cycles.time_factor(4) < cycles.time_factor(2) && cycles.time_factor(1000) > 0.2);
        assert_eq!((Kind::Flow.time_factor(1), Kind::Flow.processor_time_factor(1)), (1.0, 1.0));
        assert!(Kind::Flow.time_factor(2) > cycles.time_factor(2));
        assert!((1.0 / Kind::FlowClosed.time_factor(2) - 1.9).abs() < 0.01);
    }

    /// As measured (k-ary 3-trees, uniform 0.2, vector layout): 21 ns in small networks, 59 of 1.6 million channels, 66 of 6 million.
    #[test]
    fn large_networks_take_longer_for_each_flit() {
        assert_eq!(size_slowdown(3072.0), 1.0);
        for (channels, nanoseconds) in [(24_576.0, 21.4), (82_944.0, 27.5), (279_936.0, 55.0), (1_572_864.0, 58.9), (6_000_000.0, 66.1)] {
            let ratio = size_slowdown(channels) / (nanoseconds / 20.7);
            assert!((1.0 / 1.4..1.4).contains(&ratio), "{channels} channels: {ratio}");
        }
    }

    /// Runs that take twice and half of the same estimate have the geometric mean 1; those that always take 3 times as long, 3.
    #[test]
    fn estimates_follow_finished_runs() {
        let (one, other) = (work(0.1, 4000, 4), work(0.3, 9000, 8));
        let measured = |work: Work, factor: f64| MeasuredRun { work, seconds: factor * work.seconds() };
        let mut costs = Costs::default();
        assert_eq!((costs.seconds(&one), costs.runs(one.kind)), (one.seconds(), 0));
        costs.learn(&[measured(one, 2.0), measured(one, 0.5)]);
        assert!((costs.seconds(&other) / other.seconds() - 1.0).abs() < 1e-12);
        costs.learn(&[measured(one, 3.0); 5000]);
        assert!((costs.seconds(&other) / other.seconds() - 3.0).abs() < 1e-9);
        assert_eq!(costs.runs(one.kind), 5002);
        costs.learn(&[measured(one, 0.0)]);
        assert_eq!(costs.runs(one.kind), 5002, "a run that took no measurable time says nothing");
    }

    #[test]
    fn memory_grows_with_the_network_and_with_experience() {
        let (small, large) = (work(0.1, 100, 4), work(0.1, 100, 64));
        let mut costs = Costs::default();
        let before = costs.memory_mib(&large);
        assert!(costs.memory_mib(&small) < before);
        costs.learn_memory(&small, 100.0 * MIB);
        costs.learn_memory(&large, 1000.0);
        assert_eq!(costs.memory_mib(&large), before, "too little to learn from");
        costs.learn_memory(&large, 4.0 * large.state_bytes);
        assert!(costs.memory_mib(&large) > before);
    }

    #[test]
    fn learnt_costs_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/costs.json");
        let mut costs = Costs::default();
        costs.learn(&[MeasuredRun { work: work(0.1, 100, 4), seconds: 1.0 }]);
        costs.keep(&file).unwrap();
        assert_eq!(serde_json::from_slice::<Costs>(&fs::read(&file).unwrap()).unwrap(), costs);
    }

    #[test]
    fn a_total_knows_the_extremes() {
        let works = [work(0.1, 1000, 4), work(0.2, 1000, 4), work(0.3, 1000, 4)];
        let total = Total::of(&Costs::default(), works);
        assert_eq!((total.runs, total.known_runs), (3, 0));
        assert!((total.seconds - 6.0 * total.shortest).abs() < 1e-12 && (total.longest - 3.0 * total.shortest).abs() < 1e-12);
    }
}
