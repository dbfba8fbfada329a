//! Experiment files and the files that they name.

use kasuri_model::config::{ConfigError, Document, EngineName, EngineSection, Known};
use kasuri_model::topology::Files;
use schemars::schema_for;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use thiserror::Error;

/// What only the engines know of an experiment file.
pub static KNOWN: LazyLock<Known<'static>> = LazyLock::new(|| {
    static ALLOCATORS: LazyLock<Vec<&str>> = LazyLock::new(|| kasuri_flit::ALLOCATORS.iter().map(|entry| entry.name).collect());
    Known {
        engines: &EngineName::ALL,
        engine_sections: &[
            EngineSection { engine: EngineName::Analysis, schema: || schema_for!(kasuri_flow::analysis::AnalysisOptions) },
            EngineSection { engine: EngineName::Flow, schema: || schema_for!(kasuri_flow::FlowOptions) },
            EngineSection { engine: EngineName::Flit, schema: || schema_for!(kasuri_flit::FlitOptions) },
        ],
        allocators: &ALLOCATORS,
    }
});

/// Why an experiment file cannot be used.
#[derive(Debug, Error)]
pub enum InputError {
    /// The file cannot be read. Check the path and its permissions.
    #[error("{}: cannot be read: {reason}", path.display())]
    Unreadable {
        /// The path as given.
        path: PathBuf,
        /// The reason that the operating system gives.
        reason: io::Error,
    },
    /// The file is no text.
    #[error("{}: is not UTF-8 text (byte {byte}); {expected}", path.display())]
    NotText {
        /// What it should be, as a sentence.
        expected: &'static str,
        /// The path as given.
        path: PathBuf,
        /// The first byte that is no text, from 0.
        byte: usize,
    },
    /// The file says something wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Reads an experiment file; `assignments` are the texts of `--set`. Returns it with its text.
///
/// # Errors
/// The file cannot be read, is no TOML, or an assignment is wrong.
pub fn read_experiment(path: &Path, assignments: &[String]) -> Result<(Document, String), InputError> {
    let text = read_text(path, "an experiment file is TOML")?;
    let mut document = Document::parse(&path.display().to_string(), &text)?;
    for assignment in assignments {
        document.set_text(assignment)?;
    }
    Ok((document, text))
}

/// Reads a text file. `expected` says what it should be.
///
/// # Errors
/// The file cannot be read or is no text.
pub fn read_text(path: &Path, expected: &'static str) -> Result<String, InputError> {
    let bytes = fs::read(path).map_err(|reason| InputError::Unreadable { path: path.to_owned(), reason })?;
    String::from_utf8(bytes).map_err(|error| InputError::NotText {
        expected,
        path: path.to_owned(),
        byte: error.utf8_error().valid_up_to(),
    })
}

/// The files that an experiment names, relative to a folder: that of the experiment file.
#[derive(Clone, Debug)]
pub struct FolderFiles {
    folder: PathBuf,
}

impl FolderFiles {
    /// Files relative to `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Files relative to the folder in which this file lies.
    pub fn beside(file: &Path) -> Self {
        Self::new(file.parent().unwrap_or(Path::new("")))
    }
}

impl Files for FolderFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let full = self.folder.join(path);
        fs::read(&full).map_err(|reason| format!("`{}` cannot be read: {reason}", full.display()))
    }
}
