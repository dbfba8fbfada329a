//! What comes from Python as text: experiments as TOML or JSON.

use crate::errors;
use kasuri_model::config::{Document, Point};
use pyo3::prelude::*;

/// A document that has one section only, given as JSON.
pub(crate) fn document_of_section(section: &str, json: &str) -> PyResult<Document> {
    let mut table = toml::Table::new();
    table.insert(section.to_owned(), toml::Value::Table(table_of_json(json)?));
    Document::from_table("dict", table).map_err(errors::config)
}

/// The single point of a document without `[sweep]`.
pub(crate) fn only_point(document: &Document) -> PyResult<Point> {
    let points = document.points().map_err(errors::config)?;
    points.into_iter().next().ok_or_else(|| errors::exception("ConfigError", "the experiment has no point".to_owned()))
}

/// A dictionary that Python has written as JSON.
pub(crate) fn table_of_json(json: &str) -> PyResult<toml::Table> {
    serde_json::from_str(json).map_err(|error| {
        let message = format!("dict: {error}; None has no place in an experiment: leave the key out");
        errors::exception("ConfigError", message)
    })
}
