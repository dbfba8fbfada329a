//! A point of an experiment with its document: sections and errors. No section is known here.

use super::document::{Document, Part};
use super::error::ConfigError;
use super::point::Point;
use super::schemas::Schemas;
use super::shape;
use super::shown::shown;
use toml::{Table, Value};

/// A point and the document that it comes from: where values and messages meet.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) document: &'a Document,
    pub(super) point: &'a Point,
    pub(super) schemas: &'a Schemas,
}

impl<'a> Context<'a> {
    /// An error at a key's value. A value that comes from `[sweep]` is shown there.
    pub(super) fn error(self, path: &str, part: Part, message: impl Into<String>) -> ConfigError {
        let beside = !self.document.has_place(path);
        match self.point.place_of(path, false).or_else(|| self.point.place_of(path, beside)) {
            Some(place) => self.document.error_at(self.document.locate(place, part), path, message),
            None => self.document.error(path, part, message),
        }
    }

    pub(super) fn fault(self, section: &str, fault: shape::Fault) -> ConfigError {
        let path = if fault.path.is_empty() { section.to_owned() } else { format!("{section}.{}", fault.path) };
        self.error(&path, if fault.at_key { Part::Key } else { Part::Value }, fault.message)
    }

    /// A section that may be missing.
    pub(super) fn table(self, name: &str) -> Result<Option<&'a Table>, ConfigError> {
        match self.point.table.get(name) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(other) => Err(self.error(name, Part::Value, format!("is {}; it must be a section: [{name}]", shown(other)))),
        }
    }

    pub(super) fn required_table(self, name: &str, example: &str) -> Result<&'a Table, ConfigError> {
        let missing =
            || self.error(name, Part::Key, format!("the section is missing; it begins with [{name}], for example with {example}"));
        self.table(name)?.ok_or_else(missing)
    }
}
