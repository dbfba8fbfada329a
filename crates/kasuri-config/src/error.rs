//! What a wrong description is answered with.

use kasuri_formats::names::printable;
use std::fmt;
use thiserror::Error;

/// One wrong value, key or line of a description: its place, the key, what was found and what would be right.
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

/// All that is wrong with a description: at least one thing, in the order of the checks. It shows one line for each.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", lines(.0))]
pub struct ConfigErrors(Vec<ConfigError>);

fn lines(errors: &[ConfigError]) -> String {
    errors.iter().map(ConfigError::to_string).collect::<Vec<_>>().join("\n")
}

impl ConfigErrors {
    /// Nothing if the list is empty.
    ///
    /// # Errors
    /// What the list holds.
    pub fn check(errors: Vec<ConfigError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }

    /// The first.
    pub fn first(&self) -> &ConfigError {
        &self.0[0]
    }
}

impl IntoIterator for ConfigErrors {
    type Item = ConfigError;
    type IntoIter = std::vec::IntoIter<ConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
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
