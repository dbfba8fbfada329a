//! Texts from Python: experiments as TOML or JSON, and the files that they name.

use crate::errors;
use kasuri::input::{FolderFiles, KNOWN};
use kasuri_config::{Document, Point};
use kasuri_network::topology::Files;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// A document that has one section only, given as JSON.
pub(crate) fn document_of_section(section: &str, json: &str) -> PyResult<Document> {
    let mut table = toml::Table::new();
    table.insert(section.to_owned(), toml::Value::Table(table_of_json(json)?));
    Document::from_table_for(*KNOWN, "dict", table).map_err(errors::config)
}

/// The single point of a document without `[sweep]`.
pub(crate) fn only_point(document: &Document) -> PyResult<Point> {
    document.sweep().and_then(|sweep| sweep.point(0)).map_err(errors::config)
}

/// A dictionary that Python has written as JSON.
pub(crate) fn table_of_json(json: &str) -> PyResult<toml::Table> {
    serde_json::from_str(json).map_err(|error| {
        let message = format!("dict: {error}; None has no place in an experiment: leave the key out");
        errors::exception("ConfigError", message)
    })
}

/// The damage of a file in a folder of results, given its path in the folder.
#[pyfunction]
pub(crate) fn damage(path: &str, content: &[u8]) -> Option<String> {
    kasuri::checksums::damage(path, content)
}

/// The runs of the last experiment of a folder of results, as JSON text: a list of objects with `key`, `inputs`, `is_finished`.
#[pyfunction]
pub(crate) fn planned_runs(py: Python<'_>, folder: &str) -> PyResult<String> {
    let runs = py.detach(|| kasuri::listing::planned_runs(folder.as_ref()));
    let runs = runs.map_err(|problem| errors::exception("ResultsError", problem))?;
    Ok(serde_json::to_string(&runs).unwrap_or_default())
}

/// The files that a description names: texts that Python holds, and the rest in a folder.
pub(crate) struct Sources {
    texts: BTreeMap<String, String>,
    folder: FolderFiles,
}

impl Sources {
    /// `texts` by path; other paths are relative to `folder`.
    pub(crate) fn new(folder: &str, texts: BTreeMap<String, String>) -> Self {
        Self { texts, folder: FolderFiles::new(folder) }
    }

    /// Reads a file from its copy where the experiment records one.
    pub(crate) fn with_copies_of(self, document: &Document) -> PyResult<Self> {
        Ok(Self { folder: self.folder.with_copies_of(document).map_err(errors::config)?, ..self })
    }
}

impl Files for Sources {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.texts.get(path) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => self.folder.read(path),
        }
    }

    fn read_pieces(&self, path: &str, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), String> {
        match self.texts.get(path) {
            Some(text) => {
                take(text.as_bytes());
                Ok(())
            }
            None => self.folder.read_pieces(path, take),
        }
    }

    fn is_there(&self, path: &str) -> bool {
        self.texts.contains_key(path) || self.folder.is_there(path)
    }
}

/// The JSON Schema of the experiment file.
#[pyfunction]
pub(crate) fn schema() -> String {
    kasuri_config::json_schema(*kasuri::input::KNOWN).to_string()
}
