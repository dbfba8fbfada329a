//! All runs of an experiment: which there are, which are missing, the table.
//!
//! Each run is computed by one thread and depends on nothing but its own input, so the table is the same for any number of
//! threads, wall-clock times apart. A run that fails does not stop the others.

mod shown;
mod workshop;

pub(crate) use workshop::panic_text;

use crate::cost::{peak_memory_mib, resident_memory_mib};
use crate::engines;
use crate::estimate::{Measured, Work};
use crate::input::KNOWN;
use crate::measure::{controller, saturation};
use crate::results::{RowHead, RunRow, Vector};
use crate::stop::Stop;
use crate::store::{Access, Store, StoreError};
use crate::tally::Tally;
use kasuri_model::config::{ConfigError, Document, EngineName, Point, Preparation, Study};
use kasuri_model::deadlock::{self, Verdict};
use kasuri_model::engine::{Engine, EngineError, Span};
use kasuri_model::network::Network;
use kasuri_model::routing::{Routing, VirtualChannels};
use kasuri_model::topology::Files;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;
use workshop::{End, Finished, Workshop};

/// Part of every run's key: it rises when Kasuri gives other results for the same input, so that old runs are not reused.
pub const RESULTS_VERSION: u64 = 2;

/// How an experiment is run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Threads; all cores if `None`.
    pub jobs: Option<usize>,
    /// The folder of the run store; nothing is kept if `None`.
    pub out: Option<PathBuf>,
    /// Run only the point with this key (or the only one whose key begins so), and do not write the table.
    pub point: Option<String>,
    /// Check the conservation of flits and credits while running.
    pub paranoid: bool,
    /// Show a progress bar on standard error, if that is a terminal.
    pub progress: bool,
    /// Counts the runs that are finished, for a display of one's own.
    pub tally: Tally,
    /// Ends the runs early when requested.
    pub stop: Stop,
    /// The text of the experiment file, kept in the store as `input.toml`.
    pub input: Option<String>,
}

/// Why an experiment cannot be run at all.
#[derive(Debug, Error)]
pub enum RunError {
    /// The experiment file says something wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Packets could wait for each other for ever. Choose another routing or more virtual channels, or allow it.
    #[error(
        "{document}: routing.algorithm: {finding}\n\
         choose another routing or more virtual channels; with routing.allow_deadlock = true it runs all the same"
    )]
    Deadlock {
        /// The experiment file.
        document: String,
        /// What the check of the channel dependency graph found, over several lines.
        finding: String,
    },
    /// Some packets could not arrive. Choose a routing that fits the network.
    #[error("{document}: routing.algorithm: {finding}")]
    Unroutable {
        /// The experiment file.
        document: String,
        /// Which packet, and why.
        finding: String,
    },
    /// The network does not fit the engine's limits. Choose another engine, or a smaller network.
    #[error("{document}: {problem}")]
    TooLarge {
        /// The experiment file.
        document: String,
        /// Which limit.
        problem: EngineError,
    },
    /// A row would show what its run does not use: a defect of Kasuri.
    #[error("{document}: a defect of Kasuri: {problem}")]
    Defect {
        /// The experiment file.
        document: String,
        /// What is at odds.
        problem: String,
    },
    /// There is no single run of endpoints to be followed.
    #[error("{document}: --timeline: {problem}")]
    Timeline {
        /// The experiment file.
        document: String,
        /// What stands in the way and what would be right.
        problem: String,
    },
    /// No run has this key, or several have.
    #[error("{document}: --point {point}: {problem}")]
    Point {
        /// The experiment file.
        document: String,
        /// The key as given.
        point: String,
        /// How many runs it fits.
        problem: String,
    },
    /// A list of runs does not belong to this experiment.
    #[error("{document}: {problem}")]
    Listed {
        /// The experiment file.
        document: String,
        /// Which line, what it says, and what would be right.
        problem: String,
    },
    /// The operating system gives no threads. Ask for fewer.
    #[error("--jobs: the threads cannot be started: {0}")]
    Threads(String),
}

impl RunError {
    /// The exit status: 2 if the input has to be changed, 1 if the machine failed.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Store(error) if !error.is_usage() => 1,
            Self::Threads(_) | Self::Defect { .. } => 1,
            _ => 2,
        }
    }
}

/// One run, checked and ready.
#[derive(Clone, Debug)]
pub struct PreparedPoint {
    /// What its row says of its input, the key among it.
    pub head: RowHead,
    /// The values of the file with those of the sweep put in.
    pub point: Point,
    /// What the engine receives.
    pub study: Study,
}

impl PreparedPoint {
    /// The key of the run: the name of its file in the store.
    pub fn key(&self) -> &str {
        &self.head.key
    }
}

/// All runs of an experiment, checked.
pub struct Plan<'a> {
    document: &'a Document,
    files: &'a (dyn Files + Sync),
    points: Vec<PreparedPoint>,
    /// Are these all runs of the experiment? A part of them shares its folder of results with the others.
    whole: bool,
}

impl std::fmt::Debug for Plan<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Plan").field("document", &self.document.name()).field("points", &self.points.len()).finish()
    }
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The rows in the order of the points. After an interruption those of the finished runs only.
    pub rows: Vec<RunRow>,
    /// The vectors of each row where nothing is kept in a store; empty lists otherwise.
    pub vectors: Vec<Vec<Vector>>,
    /// Runs taken from the store.
    pub reused: usize,
    /// Runs computed now, the failed ones among them.
    pub computed: usize,
    /// All runs of the experiment (1 with `point`).
    pub planned: usize,
    /// The signal that cut the experiment short.
    pub interrupted: Option<u8>,
    /// Sentences for standard error: files set aside, runs that failed, how to go on.
    pub messages: Vec<String>,
    /// What the computed runs cost, for estimates of others.
    pub measured: Vec<Measured>,
    /// The largest of them and the bytes by which the process grew, if it computed one after the other.
    pub memory: Option<(Work, f64)>,
    /// Did an engine refuse some run's input?
    refused: bool,
}

impl Summary {
    /// The exit status: 128 + signal after an interruption; 2 if an engine refused the input; 1 if some run ended as
    /// `max_cycles`, `deadlock` or `failed`; else 0.
    pub fn exit_status(&self) -> u8 {
        let is_result = |row: &RunRow| matches!(row.status(), "converged" | "saturated" | "completed");
        match self.interrupted {
            Some(signal) => 128u8.saturating_add(signal),
            None if self.refused => 2,
            None => u8::from(!self.rows.iter().all(is_result)),
        }
    }
}

/// Checks points; what several have in common is built and checked once.
pub(crate) struct Preparer<'a> {
    document: &'a Document,
    files: &'a (dyn Files + Sync),
    preparation: Preparation<'a>,
    /// Of the files that points name.
    hashes: BTreeMap<String, String>,
    checked: Vec<Checked>,
}

impl<'a> Preparer<'a> {
    /// Begins with nothing checked.
    pub(crate) fn new(document: &'a Document, files: &'a (dyn Files + Sync)) -> Self {
        let preparation = Preparation::new(document, files, *KNOWN);
        Self { document, files, preparation, hashes: BTreeMap::new(), checked: Vec::new() }
    }

    /// The files that the checked points name.
    pub(crate) fn named_files(&self) -> Vec<String> {
        self.hashes.keys().cloned().collect()
    }

    /// Decides whether a point can be run, but for what its routes tell: `kasuri check` and all ways of running ask here.
    pub(crate) fn study(&mut self, point: &Point) -> Result<Study, RunError> {
        let document = || self.document.name().to_owned();
        shown::check_point(point).map_err(|problem| RunError::Defect { document: document(), problem })?;
        let study = self.preparation.study(point)?;
        if study.measure.search.is_some() {
            check_search(self.document, point, &study)?;
        }
        if shown::searches(&study) {
            for load in [saturation::ZERO_LOAD, greatest_load(&study)] {
                self.preparation.study(&at_load(point, load))?;
            }
        }
        if let Some((key, _)) = point.assignments.iter().find(|(key, _)| shown::every_class_has_its_own(key, point)) {
            let message = "is swept, but every [[traffic.class]] has a value of its own, so that it changes nothing; sweep those";
            return Err(self.document.refusal(point, key, message).into());
        }
        engines::engine(study.engine).check(&study.scenario).map_err(|problem| match problem.key() {
            Some(key) => self.document.refusal(point, key, problem.message()).into(),
            None => RunError::TooLarge { document: document(), problem },
        })?;
        Ok(study)
    }

    /// Checks a point.
    pub(crate) fn prepare(&mut self, point: Point) -> Result<PreparedPoint, RunError> {
        let study = self.study(&point)?;
        check_deadlock(self.document, &study, &mut self.checked)?;
        let head = head(&point, &study, self.files, &mut self.hashes);
        Ok(PreparedPoint { head, point, study })
    }
}

/// Runs an experiment: [`Plan::prepare`], then [`Plan::run`].
///
/// # Errors
/// As these two.
pub fn run(document: &Document, files: &(dyn Files + Sync), options: &RunOptions) -> Result<Summary, RunError> {
    Plan::prepare(document, files)?.run(options)
}

impl<'a> Plan<'a> {
    /// Checks all points of an experiment and names their runs. `files` reads what the experiment names.
    ///
    /// # Errors
    /// The first thing that is wrong with any of the points.
    pub fn prepare(document: &'a Document, files: &'a (dyn Files + Sync)) -> Result<Self, RunError> {
        let numbers: Vec<usize> = (0..document.sweep()?.count()).collect();
        Ok(Self { whole: true, ..Self::prepare_some(document, files, &numbers)? })
    }

    /// Checks the points of these numbers only. Running them leaves room in the store for processes that compute others, and writes
    /// no table.
    ///
    /// # Errors
    /// The first thing that is wrong with any of these points.
    pub fn prepare_some(document: &'a Document, files: &'a (dyn Files + Sync), numbers: &[usize]) -> Result<Self, RunError> {
        let sweep = document.sweep()?;
        let mut preparer = Preparer::new(document, files);
        let points = numbers.iter().map(|&number| preparer.prepare(sweep.point(number)?)).collect::<Result<_, RunError>>()?;
        Ok(Self { document, files, points, whole: false })
    }

    /// The runs in the order of the table.
    pub fn points(&self) -> &[PreparedPoint] {
        &self.points
    }

    /// Computes the runs that the store does not hold and returns all.
    ///
    /// # Errors
    /// A point that does not exist, a store that cannot be used. Runs that fail are rows, not errors.
    pub fn run(&self, options: &RunOptions) -> Result<Summary, RunError> {
        self.run_on(&|study| engines::engine(study.engine), options)
    }

    /// Runs the only point, or the one with this key, and tells what its endpoints did when. Nothing of it is kept in a store.
    ///
    /// # Errors
    /// There are several points, the point has no endpoint, or the engine cannot run it.
    pub fn timeline(&self, key: Option<&str>) -> Result<Vec<Span>, RunError> {
        let problem = |problem: String| RunError::Timeline { document: self.document.name().to_owned(), problem };
        let point = match (key, &self.points[..]) {
            (Some(key), _) => self.find(key)?,
            (None, [point]) => point,
            (None, points) => return Err(problem(format!("there are {} runs; choose one with --point KEY", points.len()))),
        };
        let scenario = &point.study.scenario;
        if scenario.endpoint.is_none() && scenario.workload.as_ref().is_none_or(|closed| closed.interfaces.is_none()) {
            return Err(problem("shows what endpoints do; without [endpoint] there is nothing to show".to_owned()));
        }
        let mut study = point.study.clone();
        study.scenario.timeline = true;
        let mut controller = controller(&study);
        let outcome = engines::engine(study.engine).run(&study.scenario, &mut *controller);
        outcome.map(|outcome| outcome.timeline).map_err(|error| problem(error.to_string()))
    }

    /// [`Plan::run`] on any engines.
    fn run_on(&self, engine: &EngineOf<'_>, options: &RunOptions) -> Result<Summary, RunError> {
        let chosen = match &options.point {
            Some(point) => std::slice::from_ref(self.find(point)?),
            None => &self.points[..],
        };
        let engines: Vec<_> = chosen.iter().map(|point| engine(&point.study)).collect();
        let access = if options.point.is_some() || !self.whole { Access::Point } else { Access::Whole };
        let store = options.out.as_deref().map(|folder| Store::open(folder, access)).transpose()?;
        if let (Some(store), Some(text), Access::Whole) = (&store, &options.input, access) {
            store.keep_input(text)?;
        }
        // A thread more than there are runs would only wait.
        let jobs = options.jobs.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
        let threads = rayon::ThreadPoolBuilder::new().num_threads(jobs.clamp(1, chosen.len().max(1))).build();
        let threads = threads.map_err(|error| RunError::Threads(error.to_string()))?;
        let before = resident_memory_mib();
        let works: Vec<Work> = chosen.iter().map(|point| Work::of(&point.study)).collect();
        let workshop = Workshop::new(self, options, store.as_ref(), chosen.len());
        let ends = threads.install(|| workshop.finish_all(chosen, &engines, &works))?;
        let mut summary = Summary { planned: chosen.len(), interrupted: options.stop.signal(), ..Summary::default() };
        for ((end, message), work) in ends.into_iter().zip(works) {
            if let End::Computed(row, _) = &end
                && let Some(seconds) = row.number("cpu_seconds")
            {
                summary.measured.push(Measured { work, seconds });
            }
            summary.add((end, message));
        }
        summary.tell_ends();
        if jobs == 1 {
            summary.memory = memory_of_largest(&summary.measured, before);
        }
        if summary.rows.len() == chosen.len() {
            // All runs were finished before the signal could cut one short.
            summary.interrupted = None;
            if let (Some(store), Access::Whole) = (&store, access) {
                store.keep_table(&summary.rows)?;
            }
        }
        if summary.interrupted.is_some() {
            summary.messages.push(summary.how_to_go_on(store.as_ref()));
        }
        Ok(summary)
    }

    /// The point whose key is, or alone begins with, this text.
    fn find(&self, key: &str) -> Result<&PreparedPoint, RunError> {
        let matching: Vec<&PreparedPoint> = self.points.iter().filter(|point| !key.is_empty() && point.key().starts_with(key)).collect();
        let problem = match matching[..] {
            [point] => return Ok(point),
            [] => format!("none of the {} runs has this key; `kasuri check FILE --points` lists them", self.points.len()),
            _ => format!("{} runs have keys that begin so; give more digits", matching.len()),
        };
        Err(RunError::Point { document: self.document.name().to_owned(), point: key.to_owned(), problem })
    }
}

/// The largest run, and by how many bytes the process has grown since it had `before` MiB.
fn memory_of_largest(measured: &[Measured], before: Option<f64>) -> Option<(Work, f64)> {
    let largest = measured.iter().map(|run| run.work).max_by(|one, other| one.state_bytes.total_cmp(&other.state_bytes))?;
    Some((largest, (peak_memory_mib()? - before?) * 1024.0 * 1024.0))
}

type EngineOf<'a> = dyn Fn(&Study) -> SomeEngine<'a> + 'a;

type SomeEngine<'a> = &'a dyn Engine;

/// What a deadlock depends on, and whether it is allowed.
struct Checked {
    network: Arc<Network>,
    routing: Arc<dyn Routing>,
    /// Those of its traffic.
    channels: Vec<VirtualChannels>,
    allowed: bool,
    /// Are the ways that predictions may take included?
    widened: bool,
}

/// The places and steps of routes to look at before a run whose routing is trusted not to deadlock: some milliseconds.
const SAMPLE_BUDGET: u64 = 20_000;

/// Refuses a routing that can deadlock, unless the experiment allows it, and one that cannot deliver. Equal ones are checked once.
fn check_deadlock(document: &Document, study: &Study, checked: &mut Vec<Checked>) -> Result<(), RunError> {
    let scenario = &study.scenario;
    let channels = scenario.virtual_channel_ranges();
    if channels.is_empty() {
        // Nothing is sent.
        return Ok(());
    }
    let widened = scenario.takes_accepted_ports();
    let is_known = |known: &Checked| {
        let same = Arc::ptr_eq(&known.network, &scenario.network) && Arc::ptr_eq(&known.routing, &scenario.routing);
        same && known.channels == channels && known.allowed == study.allow_deadlock && known.widened == widened
    };
    if checked.iter().any(is_known) {
        return Ok(());
    }
    // The whole graph of a large network takes longer than many a run, so where nothing hangs on its verdict only a sample of
    // the destinations is tried; `kasuri check` builds it in any case.
    let trusted = study.allow_deadlock || study.promises_no_deadlock();
    if trusted && study.engine == EngineName::Flow {
        // Flows hold no buffers while they wait, and the engine tells itself of a message that does not arrive.
        return Ok(());
    }
    let budget = if trusted { SAMPLE_BUDGET } else { deadlock::STEP_BUDGET };
    let report = deadlock::check_within(&scenario.network, &*scenario.possible_ways(), &channels, budget);
    let (name, mut finding) = (document.name().to_owned(), report.describe(&scenario.network));
    if widened {
        finding += "\nthe ways that predictions may take are included; router.predictor_match = \"exact\" leaves them out";
    }
    if report.verdict != Verdict::Acyclic && !trusted {
        return Err(RunError::Deadlock { document: name, finding });
    }
    if report.unroutable.is_some() {
        return Err(RunError::Unroutable { document: name, finding });
    }
    let (network, routing) = (Arc::clone(&scenario.network), Arc::clone(&scenario.routing));
    checked.push(Checked { network, routing, channels, allowed: study.allow_deadlock, widened });
    Ok(())
}

/// A search sets `traffic.load`, so no class may have a load of its own, and nothing else may set it.
fn check_search(document: &Document, point: &Point, study: &Study) -> Result<(), ConfigError> {
    let problem = |problem: &str| Err(document.refusal(point, "measure.search", problem));
    let classes = shown::at(&point.table, "traffic.class").and_then(toml::Value::as_array);
    if classes.into_iter().flatten().any(|class| class.get("load").is_some()) {
        return problem("it varies traffic.load, but a [[traffic.class]] has a load of its own; take that out");
    }
    if point.table.contains_key("workload") {
        return problem("a closed workload has no load to search; take the search out, or describe open traffic in [traffic]");
    }
    if study.scenario.classes.iter().any(|class| class.packets_per_terminal.is_some()) {
        return problem("a batch has no load to search; take the search out, or use another traffic.process");
    }
    if shown::searches(study) && point.assignments.iter().any(|(key, _)| key == "traffic.load") {
        let message = "is swept, but measure.search = \"saturation\" varies it; take it out of [sweep], or take the search out";
        return Err(document.refusal(point, "traffic.load", message));
    }
    Ok(())
}

/// A point of a search at one of its loads.
fn at_load(point: &Point, load: f64) -> Point {
    let mut point = point.clone();
    if let Some(toml::Value::Table(traffic)) = point.table.get_mut("traffic") {
        traffic.insert("load".to_owned(), toml::Value::Float(load));
    }
    point
}

/// The greatest load of a search: all classes share the terminal's channel.
fn greatest_load(study: &Study) -> f64 {
    1.0 / study.scenario.classes.len().max(1) as f64
}

fn head(point: &Point, study: &Study, files: &dyn Files, hashes: &mut BTreeMap<String, String>) -> RowHead {
    let (title, inputs) = (study.title.clone(), shown::inputs(point, study));
    RowHead { key: key(point, study, files, hashes), title, engine: study.engine, seed: study.measure.seed, inputs }
}

/// The key of a run: 32 hexadecimal digits of the BLAKE3 hash over everything that its result depends on, as JSON with sorted
/// keys: the engine, the point's values without the title, the contents of the files that it names, and [`RESULTS_VERSION`].
fn key(point: &Point, study: &Study, files: &dyn Files, hashes: &mut BTreeMap<String, String>) -> String {
    let table = || point.table.iter().filter(|(key, _)| !matches!(key.as_str(), "title" | "engine"));
    let mut names = Vec::new();
    table().for_each(|(_, value)| collect_paths(value, &mut names));
    let contents: serde_json::Map<String, Value> = names
        .into_iter()
        .map(|name| {
            // Where it cannot be read the study was built without it, so that nothing depends on its contents.
            let hash = hashes.entry(name.clone()).or_insert_with(|| hash_of(files, &name).unwrap_or_default());
            (name, json!(hash))
        })
        .collect();
    let mut whole = json!({
        "engine": study.engine.name(),
        "files": contents,
        "input": table().map(|(key, value)| (key.clone(), shown::to_json(value))).collect::<serde_json::Map<_, _>>(),
        "results": RESULTS_VERSION,
    });
    whole.sort_all_objects();
    blake3::hash(whole.to_string().as_bytes()).to_hex()[..32].to_owned()
}

/// The BLAKE3 hash of a file, which may be larger than memory.
fn hash_of(files: &dyn Files, name: &str) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let mut add = |piece: &[u8]| {
        hasher.update(piece);
        true
    };
    files.read_pieces(name, &mut add).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

/// The files that a table names: by convention the strings under keys `path`, and `trace` in `[workload]` and `[traffic]`.
fn collect_paths(value: &toml::Value, paths: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                match value {
                    toml::Value::String(path) if key == "path" || key == "trace" => paths.push(path.clone()),
                    other => collect_paths(other, paths),
                }
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|value| collect_paths(value, paths)),
        _ => {}
    }
}

impl Summary {
    /// Adds a row that another process computed.
    pub(crate) fn collect(&mut self, row: RunRow) {
        self.add((End::Reused(row), None));
    }

    /// Adds a run that came to no result in another process; `refused` if its input is to blame.
    pub(crate) fn collect_failure(&mut self, row: RunRow, refused: bool) {
        self.add((End::Failed { row, refused }, None));
    }

    fn add(&mut self, (end, message): Finished) {
        self.messages.extend(message);
        let (row, vectors) = match end {
            End::Stopped => return,
            End::Reused(row) => {
                self.reused += 1;
                (row, Vec::new())
            }
            End::Computed(row, vectors) => {
                self.computed += 1;
                (row, vectors)
            }
            End::Failed { row, refused } => {
                self.computed += 1;
                self.refused |= refused;
                (row, Vec::new())
            }
        };
        self.rows.push(row);
        self.vectors.push(vectors);
    }

    /// Says of the runs without a result why they have none, each by the values in which it differs from the others.
    pub(crate) fn tell_ends(&mut self) {
        let varies = |name: &str| self.rows.iter().any(|row| row.get(name) != self.rows[0].get(name));
        let inputs = self.rows.first().into_iter().flat_map(RunRow::columns).map(|(name, _)| name);
        let varying: Vec<&str> = inputs.filter(|name| (name.contains('.') || *name == "engine") && varies(name)).collect();
        let told: Vec<String> = self.rows.iter().filter_map(|row| no_result(row, &varying)).collect();
        self.messages.extend(told);
    }

    fn how_to_go_on(&self, store: Option<&Store>) -> String {
        let (finished, planned) = (self.rows.len(), self.planned);
        match store {
            Some(store) => format!(
                "stopped: {finished} of {planned} runs are finished and kept in {}; run the same command again to compute the rest",
                store.folder().display()
            ),
            None => format!("stopped: {finished} of {planned} runs were finished; without --out nothing is kept"),
        }
    }
}

/// What to say of a run that ended without a result: that it could not be computed, a deadlock with the channels that wait, or too few
/// cycles. `varying`: the columns in which runs differ.
fn no_result(row: &RunRow, varying: &[&str]) -> Option<String> {
    let value = |name: &&str| format!("{name} = {}", row.get(name));
    let name = match varying {
        [] => "run".to_owned(),
        _ => format!("run with {}", varying.iter().map(value).collect::<Vec<_>>().join(", ")),
    };
    match row.status() {
        "failed" => return Some(format!("{name}: {}", row.text("message"))),
        "deadlock" | "max_cycles" => {}
        _ => return None,
    }
    let waiting = row.get("deadlock").as_array().into_iter().flatten().filter_map(Value::as_str);
    let lines: String = waiting.map(|channel| format!("\n  {channel}")).collect();
    Some(format!("{name}: {}: {}{lines}", row.status(), row.text("message")))
}

#[cfg(test)]
mod tests;
