//! One section of the file, or one class of traffic, with what its messages need.

use super::context::Context;
use super::document::Part;
use super::error::ConfigError;
use super::shape;
use super::shown::{compact, shown};
use kasuri_formats::names::unknown;
use kasuri_network::fields::fields_of;
use kasuri_network::registry::{Entry, find};
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use toml::de::Error;
use toml::{Table, Value};

/// A table of the file whose keys belong to several structures: a family's member and its surroundings.
pub(super) struct Section<'a> {
    context: Context<'a>,
    pub(super) name: &'a str,
    /// The section from which the table inherits keys.
    inherited_from: Option<&'a str>,
    pub(super) table: &'a Table,
}

impl<'a> Section<'a> {
    pub(super) fn new(context: Context<'a>, name: &'a str, table: &'a Table) -> Self {
        Self { context, name, inherited_from: None, table }
    }

    /// A section whose missing keys were filled in from another one.
    pub(super) fn inheriting(context: Context<'a>, name: &'a str, from: &'a str, table: &'a Table) -> Self {
        Self { context, name, inherited_from: Some(from), table }
    }

    /// The dotted path of a key.
    pub(super) fn path(&self, key: &str) -> String {
        let first = key.split('.').next().unwrap_or_default();
        match self.inherited_from {
            Some(base) if !self.context.document.has_place(&format!("{}.{first}", self.name)) && self.is_inherited(base, first) => {
                format!("{base}.{key}")
            }
            _ => format!("{}.{key}", self.name),
        }
    }

    fn is_inherited(&self, base: &str, key: &str) -> bool {
        self.context.point.table.get(base).and_then(|table| table.get(key)).is_some()
    }

    /// An error at a key's value.
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> ConfigError {
        self.context.error(&self.path(key), Part::Value, message)
    }

    /// An error at a key itself, or at the section if the key is missing.
    pub(super) fn error_at_key(&self, key: &str, message: impl Into<String>) -> ConfigError {
        self.context.error(&self.path(key), Part::Key, message)
    }

    /// The family member that `key` names, found in its table.
    pub(super) fn member<'t, F: ?Sized>(
        &self,
        table: &'t [Entry<F>],
        key: &str,
        default: Option<&str>,
    ) -> Result<&'t Entry<F>, ConfigError> {
        let names = || table.iter().map(|entry| entry.name);
        let name = match (self.table.get(key), default) {
            (Some(Value::String(name)), _) => name.as_str(),
            (None, Some(default)) => default,
            (None, None) => {
                let message = format!("is missing; it must be one of {}", names().collect::<Vec<_>>().join(", "));
                return Err(self.error_at_key(key, message));
            }
            (Some(other), _) => {
                let hint = if other.is_array() {
                    format!("; list several values in [sweep]: \"{}\" = {}", self.path(key), compact(other))
                } else {
                    String::new()
                };
                let message = format!("is {}; it must be a string, one of {}{hint}", shown(other), names().collect::<Vec<_>>().join(", "));
                return Err(self.error(key, message));
            }
        };
        // The key `of` names a topology.
        let kind = if key == "of" { "topology" } else { key };
        find(table, name).ok_or_else(|| self.error(key, unknown(kind, name, names())))
    }

    /// Refuses keys in none of the lists. `whose` says whose keys the list shows.
    pub(super) fn refuse_unknown(&self, known: &[&[&str]], whose: &str) -> Result<(), ConfigError> {
        let known = || known.iter().flat_map(|keys| keys.iter().copied());
        match self.table.keys().find(|key| !known().any(|name| name == key.as_str())) {
            Some(key) => Err(self.error_at_key(key, format!("{} (with {whose})", unknown("key", key, known())))),
            None => Ok(()),
        }
    }

    /// Reads a member's parameters out of the section.
    pub(super) fn parse<F: ?Sized>(&self, entry: &Entry<F>, name_key: &str) -> Result<Box<F>, ConfigError> {
        let own = self.subset(entry.keys());
        match read(&own, entry.parse) {
            Some(member) => Ok(member),
            None => {
                self.check(entry, &own)?;
                // The shape is right, so serde refuses only what a schema cannot say.
                (entry.parse)(own).map_err(|error| self.error(name_key, error.message()))
            }
        }
    }

    /// As [`Self::parse`], with the keys of another member beside those of the first.
    pub(super) fn parse_around<F: ?Sized>(&self, entry: &Entry<F>, inner: &Entry<F>, name_key: &str) -> Result<Box<F>, ConfigError> {
        let mut own = self.subset(inner.keys());
        self.check(inner, &own)?;
        let around = self.subset(entry.keys());
        self.check(entry, &around)?;
        own.extend(around);
        (entry.parse)(own).map_err(|error| self.error(name_key, error.message()))
    }

    /// The member that another one wraps; the keys of both are in one section.
    pub(super) fn wrapped<'t, F: ?Sized>(&self, entry: &Entry<F>, table: &'t [Entry<F>]) -> Result<Option<&'t Entry<F>>, ConfigError> {
        entry.wraps.map(|key| self.member(table, key, None)).transpose()
    }

    /// Checks a member's keys, in the form that it asks for.
    fn check<F: ?Sized>(&self, entry: &Entry<F>, own: &Table) -> Result<(), ConfigError> {
        shape::check(self.context.schemas.get(entry.schema).as_value(), own).map_err(|mut fault| {
            if fault.at_key && !entry.example.is_empty() {
                fault.message.push_str(&format!("; an example: {}", entry.example.trim().replace('\n', ", ")));
            }
            self.fault(fault)
        })
    }

    /// Reads the keys of a structure out of the section.
    pub(super) fn structure<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, ConfigError> {
        self.read(self.subset(fields_of::<T>()))
    }

    /// Reads the whole section as a structure.
    pub(super) fn whole<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, ConfigError> {
        self.read(self.table.clone())
    }

    fn read<T: DeserializeOwned + JsonSchema>(&self, own: Table) -> Result<T, ConfigError> {
        match read(&own, Table::try_into) {
            Some(structure) => Ok(structure),
            None => {
                shape::check(self.context.schemas.get(|| schema_for!(T)).as_value(), &own).map_err(|fault| self.fault(fault))?;
                own.try_into().map_err(|error: Error| self.context.error(self.name, Part::Value, error.message()))
            }
        }
    }

    /// A truth value with a default.
    pub(super) fn boolean(&self, key: &str, default: bool) -> Result<bool, ConfigError> {
        match self.table.get(key) {
            None => Ok(default),
            Some(Value::Boolean(value)) => Ok(*value),
            Some(other) => Err(self.error(key, format!("is {}; it must be true or false", shown(other)))),
        }
    }

    pub(super) fn fault(&self, fault: shape::Fault) -> ConfigError {
        if fault.at_key { self.error_at_key(&fault.path, fault.message) } else { self.error(&fault.path, fault.message) }
    }

    fn subset(&self, keys: &[&str]) -> Table {
        self.table.iter().filter(|(key, _)| keys.contains(&key.as_str())).map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// What serde makes of a table, if nothing can be wrong with that: a schema, which takes longer to make than most tables to read, tells the
/// place of a fault, and refuses what serde takes more generously.
fn read<T>(own: &Table, parse: impl FnOnce(Table) -> Result<T, Error>) -> Option<T> {
    if shape::is_plain(own) { parse(own.clone()).ok() } else { None }
}
