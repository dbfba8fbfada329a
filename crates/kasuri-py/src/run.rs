//! Running experiments: the façade's plan, with the interpreter released.

use crate::errors;
use crate::text::{Sources, table_of_json};
use kasuri::plan::{self, RunError, RunOptions};
use kasuri::stop::Stop;
use kasuri_model::config::Document;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Runs an experiment given as TOML text. `changes` is a JSON object of dotted keys and values that replace those of the text.
#[pyfunction]
#[pyo3(signature = (name, text, changes, folder, out, jobs = None))]
pub(crate) fn run_text(
    py: Python<'_>,
    name: &str,
    text: &str,
    changes: &str,
    folder: &str,
    out: &str,
    jobs: Option<usize>,
) -> PyResult<()> {
    let document = Document::parse(name, text).map_err(errors::config)?;
    run(py, document, changes, Sources::new(folder, BTreeMap::new()), text.to_owned(), out, jobs)
}

/// Runs an experiment given as a JSON object. `texts` are files that it names, by path.
#[pyfunction]
#[pyo3(signature = (table, changes, texts, out, jobs = None))]
pub(crate) fn run_table(
    py: Python<'_>,
    table: &str,
    changes: &str,
    texts: BTreeMap<String, String>,
    out: &str,
    jobs: Option<usize>,
) -> PyResult<()> {
    let table = table_of_json(table)?;
    let input = toml::to_string(&table).unwrap_or_default();
    let document = Document::from_table("dict", table).map_err(errors::config)?;
    run(py, document, changes, Sources::new(".", texts), input, out, jobs)
}

fn run(
    py: Python<'_>,
    mut document: Document,
    changes: &str,
    files: Sources,
    input: String,
    out: &str,
    jobs: Option<usize>,
) -> PyResult<()> {
    for (key, value) in table_of_json(changes)? {
        document.set(&key, value).map_err(errors::config)?;
    }
    let options = RunOptions {
        jobs,
        out: Some(PathBuf::from(out)),
        point: None,
        paranoid: false,
        progress: false,
        stop: Stop::default(),
        input: Some(input),
    };
    let summary = py.detach(|| plan::run(&document, &files, &options));
    summary.map(|_| ()).map_err(|error| match error {
        RunError::Config(error) => errors::config(error),
        RunError::Store(error) => errors::exception("ResultsError", error.to_string()),
        RunError::Deadlock { .. } => errors::exception("DeadlockError", error.to_string()),
        other => errors::exception("ConfigError", other.to_string()),
    })
}
