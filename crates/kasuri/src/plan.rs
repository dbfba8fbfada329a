//! All runs of an experiment: the existing and the missing ones, and the table.
//!
//! Each run is computed by one thread and depends only on its own input, so the table is the same for any number of threads, wall-clock
//! times apart. A failed run does not stop the others.

mod binding;
mod cores;
mod overdue;
mod planned;
mod preparer;
mod progress;
mod run_executor;
mod shown;
mod wait_graph;

pub use planned::Key;
pub(crate) use planned::{Runs, assignments};
pub(crate) use preparer::{CLOSED_ESCAPE_PATH_HINT, ErrorList, Preparer, deadlock_budget, holds_buffers, located, since};
pub(crate) use run_executor::panic_text;
pub(crate) use wait_graph::WaitGraph;

use crate::checksums::Table;
use crate::cost::resident_memory_mib;
use crate::estimate::{Costs, MeasuredRun, Work};
use crate::input::KNOWN;
use crate::measure::controller;
use crate::record;
use crate::results::{PEAK_MEMORY, RowHead, RunRow, Vector};
use crate::stop::Stop;
use crate::store::{Access, Store, StoreError};
use crate::tally::Tally;
use crate::timeline::Timeline;
use cores::{Cores, seconds_together};
use kasuri_config::{ConfigError, ConfigErrors, Document, Known, Point, Study};
use kasuri_model::engine::Method;
use kasuri_network::topology::Files;
use planned::CheckedRun;
use run_executor::{RunEnd, RunExecutor, RunReport};
use serde_json::Value;
use shown::Facts;
use std::path::PathBuf;
use thiserror::Error;

/// A part of every run's key: it rises when Kasuri gives other results for the same input, so that old runs are not reused.
pub const RESULTS_VERSION: u64 = 6;

/// How an experiment is run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Runs at the same time, each on at least one core; the number of cores if `None`.
    pub jobs: Option<usize>,
    /// Threads of each run. If `None`, the last runs get free cores of `jobs` as long as these speed them up.
    pub threads: Option<usize>,
    /// The folder of the run store; nothing is kept if `None`.
    pub out: Option<PathBuf>,
    /// Run only the point with this key (or the only one with this prefix), and do not write the table.
    pub point: Option<String>,
    /// Check the conservation of flits and credits while running.
    pub paranoid: bool,
    /// Show a progress bar on standard error, if that is a terminal, and report overdue runs there.
    pub progress: bool,
    /// Counts the finished runs, for a caller's display.
    pub tally: Tally,
    /// Ends the runs early when requested.
    pub stop: Stop,
    /// The text of the experiment file, kept in the store as `input.toml`.
    pub input: Option<String>,
    /// The common text of experiments that share a table, if it is not `input`: a text that settings do not change.
    pub origin: Option<String>,
    /// The rows join those of the same origin in the folder's table, as for an experiment with settings.
    pub joins: bool,
    /// The costs of runs on this machine, for the remaining time in the progress bar.
    pub costs: Costs,
}

/// The elapsed time of runs of these sizes together on this machine, s, with `jobs` runs at a time and `threads` threads each, if given. No
/// result depends on it.
pub fn seconds_of_runs(costs: &Costs, works: &[Work], jobs: Option<usize>, threads: Option<usize>) -> f64 {
    let mut longest_first: Vec<&Work> = works.iter().collect();
    longest_first.sort_by(|one, other| other.order(one));
    let runs: Vec<_> = longest_first.into_iter().map(|work| (costs.seconds(work), work.threads as usize, work.kind)).collect();
    seconds_together(&Cores::new(runs.len(), jobs, threads, available_cores()), &runs)
}

/// Cores that this process may use.
pub(crate) fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Errors that prevent an experiment from running at all.
#[derive(Debug, Error)]
pub enum RunError {
    /// Errors in the experiment file, or refusals of its engine: all that were found.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Packets could deadlock. Choose another routing or more virtual channels, or allow it.
    #[error(
        "{document}: routing.algorithm: {finding}\n\
         choose another routing or more virtual channels; routing.allow_deadlock = true runs it nevertheless"
    )]
    Deadlock {
        /// The experiment file.
        document: String,
        /// The findings of the check of the channel dependency graph, over several lines.
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
    /// A row would show other input than its run's: an internal error.
    #[error("{document}: internal error: {problem}")]
    Defect {
        /// The experiment file.
        document: String,
        /// The contradiction.
        problem: String,
    },
    /// A file has changed between the check of a run and its turn. Run the experiment again: finished runs are kept.
    #[error(
        "{document}: a file has changed since the experiment was checked ({files}); what is finished is kept, the same command computes \
         the rest"
    )]
    Changed {
        /// The experiment file.
        document: String,
        /// The files that the run names.
        files: String,
    },
    /// There is no single run of endpoints to be followed.
    #[error("{document}: --timeline: {problem}")]
    Timeline {
        /// The experiment file.
        document: String,
        /// The obstacle and the remedy.
        problem: String,
    },
    /// No run has this key, or several have.
    #[error("{document}: --point {point}: {problem}")]
    Point {
        /// The experiment file.
        document: String,
        /// The key as given.
        point: String,
        /// The number of matching runs.
        problem: String,
    },
    /// A list of runs does not belong to this experiment.
    #[error("{document}: {problem}")]
    Listed {
        /// The experiment file.
        document: String,
        /// The line, its content, and the remedy.
        problem: String,
    },
    /// The operating system refuses to start threads. Use fewer.
    #[error("--jobs: the threads cannot be started: {0}")]
    Threads(String),
}

impl From<ConfigError> for RunError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error.into())
    }
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
    /// The input part of its row, with the key.
    pub head: RowHead,
    /// The values of the file with those of the sweep put in.
    pub point: Point,
    /// The input of the engine.
    pub study: Study,
    facts: Facts,
}

impl PreparedPoint {
    /// The key of the run: the name of its file in the store.
    pub fn key(&self) -> &str {
        &self.head.key
    }

    /// How its engine comes to its answer.
    pub fn method(&self) -> Method {
        self.facts.method
    }
}

/// All runs of an experiment, checked. Memory holds only the number, the key and a few facts of each.
pub struct Plan<'a> {
    runs: Runs<'a>,
    /// True if these are all runs of the experiment. A part of them shares its folder of results with the others.
    whole: bool,
}

impl std::fmt::Debug for Plan<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Plan").field("document", &self.runs.document().name()).field("runs", &self.len()).finish()
    }
}

/// The results of an experiment's runs.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The rows in the order of the points. After an interruption those of the finished runs only.
    pub rows: Vec<RunRow>,
    /// The vectors of each row if there is no store; empty lists otherwise.
    pub vectors: Vec<Vec<Vector>>,
    /// Runs taken from the store.
    pub reused: usize,
    /// Runs computed now, the failed ones among them.
    pub computed: usize,
    /// All runs of the experiment (1 with `point`).
    pub planned: usize,
    /// The signal that cut the experiment short.
    pub interrupted: Option<u8>,
    /// Sentences for standard error: files set aside, failed runs, next steps.
    pub messages: Vec<String>,
    /// The costs of the computed runs, for estimates of others.
    pub measured: Vec<MeasuredRun>,
    /// The largest of them and the growth of the process in bytes, if it computed one after the other.
    pub memory: Option<(Work, f64)>,
    /// True if an engine refused the input of a run.
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

/// Runs an experiment: [`Plan::prepare`], then [`Plan::run`].
///
/// # Errors
/// As these two.
pub fn run(document: &Document, files: &(dyn Files + Sync), options: &RunOptions) -> Result<Summary, RunError> {
    Plan::prepare(document, files)?.run(options)
}

impl<'a> Plan<'a> {
    /// Checks all points of an experiment and names their runs. `files` reads the files that the experiment names.
    ///
    /// # Errors
    /// All errors of all points.
    pub fn prepare(document: &'a Document, files: &'a (dyn Files + Sync)) -> Result<Self, RunError> {
        Self::prepare_for(*KNOWN, document, files)
    }

    /// As [`Plan::prepare`], with other engines than this program's.
    ///
    /// # Errors
    /// As [`Plan::prepare`].
    pub fn prepare_for(known: Known<'a>, document: &'a Document, files: &'a (dyn Files + Sync)) -> Result<Self, RunError> {
        Ok(Self { runs: Runs::all(known, document, files)?, whole: true })
    }

    /// Checks only the points of these numbers. Running them leaves room in the store for processes that compute others, and writes no
    /// table.
    ///
    /// # Errors
    /// All errors of any of these points.
    pub fn prepare_some(document: &'a Document, files: &'a (dyn Files + Sync), numbers: &[usize]) -> Result<Self, RunError> {
        Ok(Self { runs: Runs::some(*KNOWN, document, files, numbers)?, whole: false })
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        self.runs.planned().len()
    }

    /// True if there is nothing to run. Only if no numbers were given.
    pub fn is_empty(&self) -> bool {
        self.runs.planned().is_empty()
    }

    /// The keys of the runs, in the order of the table.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.runs.planned().iter().map(|planned| planned.key)
    }

    /// The runs in the order of the table, each with its values and its engine's input. They are made one at a time.
    pub fn points(&self) -> impl Iterator<Item = Result<PreparedPoint, RunError>> {
        let mut preparer = self.runs.preparer();
        self.runs.planned().iter().map(move |planned| self.runs.prepare(planned, &mut preparer))
    }

    /// The key of each run, and the keys and values that the sweep sets for it, separated by tabs.
    pub fn assignments(&self) -> impl Iterator<Item = Result<(Key, String), RunError>> {
        self.runs.planned().iter().map(|planned| Ok((planned.key, assignments(&self.runs.point(planned)?))))
    }

    /// Computes the runs missing in the store and returns all.
    ///
    /// # Errors
    /// A point that does not exist, a store that cannot be used. Failed runs are rows, not errors.
    pub fn run(&self, options: &RunOptions) -> Result<Summary, RunError> {
        let chosen = match &options.point {
            Some(point) => std::slice::from_ref(self.find(point)?),
            None => self.runs.planned(),
        };
        let access = if options.point.is_some() || !self.whole { Access::Point } else { Access::Whole };
        let store = options.out.as_deref().map(|folder| Store::open(folder, access)).transpose()?;
        if let (Some(store), Some(text), Access::Whole) = (&store, &options.input, access) {
            store.keep_input(text)?;
        }
        let effective = match &store {
            Some(store) if self.whole => Some(record::keep(&self.runs, store)?),
            _ => None,
        };
        let cores = Cores::new(chosen.len(), options.jobs, options.threads, available_cores());
        // More threads than runs would only wait.
        let jobs = cores.jobs();
        let before = resident_memory_mib();
        let executor = RunExecutor::new(&self.runs, options, store.as_ref(), cores, chosen);
        let ends = if executor.needs_threads() {
            let threads = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
            threads.map_err(|error| RunError::Threads(error.to_string()))?.install(|| executor.finish_all(chosen))?
        } else {
            executor.finish_all(chosen)?
        };
        let mut summary = Summary { planned: chosen.len(), interrupted: options.stop.signal(), ..Summary::default() };
        let mut peak = None;
        for ((end, message), planned) in ends.into_iter().zip(chosen) {
            if let RunEnd::Computed { row, threads, .. } = &end
                && let Some(seconds) = row.number("cpu_seconds")
            {
                peak = if row.number(PEAK_MEMORY) > peak { row.number(PEAK_MEMORY) } else { peak };
                // Estimates are for one thread.
                let seconds = seconds / planned.work.kind.processor_time_factor(*threads);
                summary.measured.push(MeasuredRun { work: planned.work, seconds });
            }
            summary.add((end, message));
        }
        summary.report_failures();
        if jobs == 1 {
            summary.memory = largest_run_memory(&summary.measured, before, peak);
        }
        if summary.rows.len() == chosen.len() {
            // All runs were finished before the signal could cut one short.
            summary.interrupted = None;
            if let (Some(store), Access::Whole) = (&store, access) {
                let (runs, is_changed) = (std::mem::take(&mut summary.rows), options.joins || self.runs.document().is_changed());
                let table = Table { runs, input: effective, origin: origin(options), is_changed, ..Table::default() };
                store.keep_table(&table)?;
                summary.rows = table.runs;
            }
        }
        if summary.interrupted.is_some() {
            summary.messages.push(summary.next_steps(store.as_ref()));
        }
        Ok(summary)
    }

    /// Runs the only point, or the one with this key, and returns the timeline of its endpoints or, without any, of its terminals (compute,
    /// send, receive). It is not kept in a store.
    ///
    /// # Errors
    /// There are several points, the point has neither endpoint nor workload, or the engine cannot run it.
    pub fn timeline(&self, key: Option<&str>) -> Result<Timeline, RunError> {
        let problem = |problem: String| RunError::Timeline { document: self.name(), problem };
        let planned = match (key, self.runs.planned()) {
            (Some(key), _) => self.find(key)?,
            (None, [planned]) => planned,
            (None, runs) => return Err(problem(format!("there are {} runs; choose one with --point KEY", runs.len()))),
        };
        let mut preparer = self.runs.preparer();
        let mut study = self.runs.prepare(planned, &mut preparer)?.study;
        let scenario = &study.scenario;
        if scenario.endpoint.is_none() && scenario.workload.is_none() {
            let none = "shows what endpoints do, and messages of a workload; without [endpoint] and [workload] there is nothing to show";
            return Err(problem(none.to_owned()));
        }
        study.scenario.timeline = true;
        let mut controller = controller(&study);
        let outcome = preparer.engine(&study).run(&study.scenario, &mut *controller);
        outcome.map(|outcome| Timeline::of(&study.scenario, outcome)).map_err(|error| problem(error.to_string()))
    }

    fn name(&self) -> String {
        self.runs.document().name().to_owned()
    }

    /// The run with this key, or the only one with this prefix.
    fn find(&self, key: &str) -> Result<&CheckedRun, RunError> {
        let fits = |planned: &&CheckedRun| !key.is_empty() && planned.key.to_string().starts_with(key);
        let matching: Vec<&CheckedRun> = self.runs.planned().iter().filter(fits).collect();
        let problem = match matching[..] {
            [planned] => return Ok(planned),
            [] => format!("none of the {} runs has this key; `kasuri check FILE --points` lists them", self.len()),
            _ => format!("{} runs have keys that begin so; give more digits", matching.len()),
        };
        Err(RunError::Point { document: self.name(), point: key.to_owned(), problem })
    }
}

/// A hash of the common part of experiments that share a table. A different hash means a different table.
fn origin(options: &RunOptions) -> Option<String> {
    let text = options.origin.as_ref().or(options.input.as_ref())?;
    Some(blake3::hash(format!("{RESULTS_VERSION}\n{text}").as_bytes()).to_hex()[..32].to_owned())
}

/// The largest run, and the growth of the process from `before` to `peak` MiB, in bytes.
fn largest_run_memory(measured: &[MeasuredRun], before: Option<f64>, peak: Option<f64>) -> Option<(Work, f64)> {
    let largest = measured.iter().map(|run| run.work).max_by(|one, other| one.state_bytes.total_cmp(&other.state_bytes))?;
    Some((largest, (peak? - before?) * 1024.0 * 1024.0))
}

impl Summary {
    /// Adds a row that another process computed.
    pub(crate) fn collect(&mut self, row: RunRow) {
        self.add((RunEnd::Reused(row), None));
    }

    /// Adds a run that failed in another process; `refused` if its input is to blame.
    pub(crate) fn collect_failure(&mut self, row: RunRow, refused: bool) {
        self.add((RunEnd::Failed { row, refused }, None));
    }

    fn add(&mut self, (end, message): RunReport) {
        self.messages.extend(message);
        let (row, vectors) = match end {
            RunEnd::Stopped => return,
            RunEnd::Reused(row) => {
                self.reused += 1;
                (row, Vec::new())
            }
            RunEnd::Computed { row, vectors, .. } => {
                self.computed += 1;
                (row, vectors)
            }
            RunEnd::Failed { row, refused } => {
                self.computed += 1;
                self.refused |= refused;
                (row, Vec::new())
            }
        };
        self.rows.push(row);
        self.vectors.push(vectors);
    }

    /// Adds messages on the runs without a result, each with the values that distinguish it.
    pub(crate) fn report_failures(&mut self) {
        let varies = |name: &str| self.rows.iter().any(|row| row.get(name) != self.rows[0].get(name));
        let inputs = self.rows.first().into_iter().flat_map(RunRow::columns).map(|(name, _)| name);
        let varying: Vec<&str> = inputs.filter(|name| (name.contains('.') || *name == "engine") && varies(name)).collect();
        let sentences: Vec<String> = self.rows.iter().filter_map(|row| no_result(row, &varying)).collect();
        self.messages.extend(sentences);
    }

    fn next_steps(&self, store: Option<&Store>) -> String {
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

/// The message for a run without a result: not computed, a deadlock with the waiting channels, or too few cycles. `varying`: the columns in
/// which runs differ.
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
