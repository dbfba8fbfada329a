//! Running experiments: the plan runs on a thread of its own, so that the interpreter can handle signals.

use crate::errors;
use crate::text::{Sources, table_of_json};
use kasuri::estimate::Costs;
use kasuri::input::KNOWN;
use kasuri::plan::{self, RunError, RunOptions};
use kasuri::stop::Stop;
use kasuri::tally::Tally;
use kasuri_config::Document;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// SIGINT: the signal that a stop from Python is reported as.
const SIGINT: u8 = 2;

/// Runs at once, and threads of each; `None` where the plan decides.
type Cores = (Option<usize>, Option<usize>);

/// Begins an experiment given as TOML text. `changes` is a JSON object of dotted keys and values that replace those of the text.
#[pyfunction]
#[pyo3(signature = (name, text, changes, folder, out, cores = (None, None)))]
pub(crate) fn run_text(name: &str, text: &str, changes: &str, folder: &str, out: &str, cores: Cores) -> PyResult<Job> {
    let document = Document::parse_for(*KNOWN, name, text).map_err(errors::config)?;
    Job::begin(document, changes, Sources::new(folder, BTreeMap::new()), text.to_owned(), out, cores)
}

/// Begins an experiment given as a JSON object. `texts` are files that it names, by path.
#[pyfunction]
#[pyo3(signature = (table, changes, texts, out, cores = (None, None)))]
pub(crate) fn run_table(table: &str, changes: &str, texts: BTreeMap<String, String>, out: &str, cores: Cores) -> PyResult<Job> {
    let table = table_of_json(table)?;
    let input = toml::to_string(&table).unwrap_or_default();
    let document = Document::from_table_for(*KNOWN, "dict", table).map_err(errors::config)?;
    Job::begin(document, changes, Sources::new(".", texts), input, out, cores)
}

/// An experiment that is being computed.
#[pyclass(frozen, module = "kasuri._kasuri")]
pub(crate) struct Job {
    shared: Arc<Shared>,
    stop: Stop,
    tally: Tally,
}

/// The results of the computing thread.
#[derive(Default)]
struct Shared {
    end: Mutex<End>,
    ended: Condvar,
}

#[derive(Default)]
struct End {
    has_come: bool,
    /// The keys of the rows, in their order.
    keys: Vec<String>,
    problem: Option<Problem>,
}

/// A failure of the run.
enum Problem {
    Run(RunError),
    /// An internal error, with its message.
    Panic(String),
}

#[pymethods]
impl Job {
    /// Waits at most this long for the end, with the interpreter released; returns whether the run has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let patience = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| {
            let end = self.shared.end.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.shared.ended.wait_timeout_while(end, patience, |end| !end.has_come);
            waited.unwrap_or_else(PoisonError::into_inner).0.has_come
        })
    }

    /// Requests an early end of the runs, as Ctrl-C does for the command; finished runs stay in the store.
    fn stop(&self) {
        self.stop.request(SIGINT);
    }

    /// Runs finished and runs planned; (0, 0) while the experiment is being checked.
    fn progress(&self) -> (usize, usize) {
        self.tally.look()
    }

    /// The keys of the experiment's rows in their order, once it has ended; the folder may hold rows of other experiments.
    fn keys(&self) -> Vec<String> {
        self.shared.end.lock().unwrap_or_else(PoisonError::into_inner).keys.clone()
    }

    /// Raises what went wrong, once.
    fn check(&self) -> PyResult<()> {
        let problem = self.shared.end.lock().unwrap_or_else(PoisonError::into_inner).problem.take();
        problem.map_or(Ok(()), |problem| Err(exception(problem)))
    }
}

impl Job {
    fn begin(mut document: Document, changes: &str, files: Sources, input: String, out: &str, cores: Cores) -> PyResult<Self> {
        for (key, value) in table_of_json(changes)? {
            document.set(&key, value).map_err(errors::config)?;
        }
        let files = files.with_copies_of(&document)?;
        let job = Self { shared: Arc::default(), stop: Stop::default(), tally: Tally::default() };
        let options = RunOptions {
            jobs: cores.0,
            threads: cores.1,
            out: Some(PathBuf::from(out)),
            point: None,
            paranoid: false,
            progress: false,
            tally: job.tally.clone(),
            stop: job.stop.clone(),
            input: Some(input),
            origin: None,
            joins: false,
            costs: Costs::default(),
        };
        let shared = Arc::clone(&job.shared);
        let compute = move || {
            let result = catch_unwind(AssertUnwindSafe(|| plan::run(&document, &files, &options)));
            let mut end = shared.end.lock().unwrap_or_else(PoisonError::into_inner);
            end.problem = match result {
                Ok(Ok(summary)) => {
                    end.keys = summary.rows.iter().map(|row| row.key().to_owned()).collect();
                    None
                }
                Ok(Err(error)) => Some(Problem::Run(error)),
                Err(payload) => Some(Problem::Panic(text_of(&*payload))),
            };
            end.has_come = true;
            shared.ended.notify_all();
        };
        let thread = thread::Builder::new().name("kasuri".to_owned()).spawn(compute);
        thread.map_err(|error| errors::exception("RunError", format!("no thread can be started: {error}")))?;
        Ok(job)
    }
}

impl Drop for Job {
    /// The result is not needed any more.
    fn drop(&mut self) {
        self.stop.request(SIGINT);
    }
}

fn exception(problem: Problem) -> PyErr {
    match problem {
        Problem::Run(RunError::Config(error)) => errors::config(error),
        Problem::Run(error @ RunError::Store(_)) => errors::exception("ResultsError", error.to_string()),
        Problem::Run(error @ RunError::Deadlock { .. }) => errors::exception("DeadlockError", error.to_string()),
        Problem::Run(error) => errors::exception("ConfigError", error.to_string()),
        Problem::Panic(message) => errors::exception("RunError", format!("internal error: {message}")),
    }
}

fn text_of(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("panic without a message").to_owned()
}
