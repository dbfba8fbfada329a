//! What a wrong description is answered with.

use super::names::printable;
use std::fmt;
use thiserror::Error;

/// One wrong value, key or line of a description: where it stands, which key it is, what was found and what would be right.
///
/// It shows itself as `FILE:LINE:COLUMN key: message`. Change the named key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ConfigError {
    /// The file's name, or `dict` for a description that came as a table.
    pub document: String,
    /// Where in it.
    pub location: Location,
    /// The dotted key; empty if the text is no TOML at all.
    pub key: String,
    /// What was found and what would be right.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = match &self.location {
            Location::Text { line, column } => format!("{}:{line}:{column}", self.document),
            Location::Argument(text) => text.clone(),
            Location::Table => self.document.clone(),
        };
        if !self.key.is_empty() {
            text.push(' ');
            text.push_str(&self.key);
        }
        formatter.write_str(&printable(&format!("{text}: {}", self.message)))
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A place in the text, both numbers from 1; columns count characters.
    Text {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// An argument of the command line as it was written: `--set key=value`.
    Argument(String),
    /// A table without text, such as a Python dictionary.
    Table,
}
