//! What an experiment may say, and what it plans to run.

use crate::errors;
use kasuri::input::KNOWN;
use kasuri_config::{Document, json_schema};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

/// The JSON Schema of the experiment file.
#[pyfunction]
pub(crate) fn schema() -> String {
    json_schema(*KNOWN).to_string()
}

/// The swept values of each run of an experiment, as a JSON list of objects; the label of a case is its `case`.
#[pyfunction]
pub(crate) fn points(name: &str, text: &str) -> PyResult<String> {
    let document = Document::parse_for(*KNOWN, name, text).map_err(errors::config)?;
    let points = document.points().map_err(errors::config)?;
    let object = |assignments: &[(String, toml::Value)]| -> Map<String, Value> {
        assignments.iter().map(|(key, value)| (key.clone(), json!(value))).collect()
    };
    Ok(json!(points.iter().map(|point| object(&point.assignments)).collect::<Vec<_>>()).to_string())
}
