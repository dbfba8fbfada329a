//! The error of all formats.

use thiserror::Error;

/// What is wrong in a text, and where. Mend the named line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}:{line}{}: {problem}", column.map(|column| format!(":{column}")).unwrap_or_default())]
pub struct FormatError {
    /// The file's name as the user gave it.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1, where one is meant.
    pub column: Option<usize>,
    /// What was found and what would be right.
    pub problem: String,
}

impl FormatError {
    /// A problem in one line (from 1).
    pub fn new(name: &str, line: usize, problem: impl Into<String>) -> Self {
        Self { name: name.to_owned(), line, column: None, problem: problem.into() }
    }

    /// The same problem in a column (from 1) of its line.
    pub fn in_column(self, column: usize) -> Self {
        Self { column: Some(column), ..self }
    }
}
