//! One point of a sweep. How points are made is not known here.

use super::path::is_within;
use std::sync::Arc;
use toml::{Table, Value};

/// The key of the cases in `[sweep]`, and the column that holds their labels.
pub const CASE: &str = "case";

/// One run of an experiment: the file's values with those of the sweep put in.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Everything but `[sweep]`, `[[plot]]` and `[record]`.
    pub table: Table,
    /// What the sweep sets for this point, in the order of the file: the label of its case under [`CASE`], and leaf keys with their values.
    pub assignments: Vec<(String, Value)>,
    /// All columns that the points of this sweep differ in: [`CASE`] where there are cases, and every leaf key that is set for some point.
    pub columns: Arc<[String]>,
    /// The place of each of `assignments`, as a path of the document.
    pub(super) places: Vec<Arc<str>>,
}

impl Point {
    /// Where the sweep sets a key, or something in it or around it; else, with `beside`, a key of the same table.
    pub(super) fn place_of(&self, path: &str, beside: bool) -> Option<&str> {
        let table = |key: &str| key.rsplit_once('.').map(|(table, _)| table.to_owned());
        let sets = |key: &str| is_within(path, key) || beside && table(key) == table(path);
        let found = self.assignments.iter().position(|(key, _)| key != CASE && sets(key))?;
        Some(&self.places[found])
    }
}
