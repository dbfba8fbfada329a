//! `[sweep]`: the cartesian product of the values of some keys, and of cases: values that go together.
//!
//! A value that is a table is merged over the file's: it sets the keys that it names, and the file's others stay. So each value of an axis
//! comes down to *leaf keys* with values that are no tables, and all leaf keys that an axis sets anywhere are columns of the results. Two
//! axes never set the same key, so that the order of axes does not matter.

mod axis;
mod case;
mod family;
mod range;
mod set;
mod setting;

use super::document::{Document, Part};
use super::error::{ConfigError, Location};
use super::point::{CASE, Point};
use super::shown::shown;
use axis::{Axis, Claims};
use family::Families;
use std::sync::Arc;
use toml::{Table, Value};

/// The largest number of points of a sweep, and of values in one range.
pub const MAX_POINTS: usize = 1_000_000;

/// All runs of an experiment, made one at a time: [`Document::sweep`].
#[derive(Clone, Debug)]
pub struct Sweep<'a> {
    document: &'a Document,
    /// Everything but `[sweep]`, `[[plot]]` and `[record]`.
    table: Table,
    /// In the order of the file.
    axes: Vec<Axis>,
    columns: Arc<[String]>,
    families: Families,
}

impl Sweep<'_> {
    /// How many runs there are.
    pub fn count(&self) -> usize {
        self.axes.iter().map(Axis::len).product()
    }

    /// What distinguishes the runs: [`CASE`] where there are cases, and every leaf key that the sweep sets, in the order of the file.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The run of this number, from 0; the last key varies fastest.
    ///
    /// # Errors
    /// A swept key lies under a key that has a value of its own.
    pub fn point(&self, number: usize) -> Result<Point, ConfigError> {
        let mut repetitions = self.count();
        let (mut assignments, mut places, mut settings) = (Vec::new(), Vec::new(), Vec::new());
        for axis in &self.axes {
            repetitions /= axis.len();
            let chosen = number / repetitions % axis.len();
            if let Some(label) = axis.label(chosen) {
                assignments.push((CASE.to_owned(), Value::String(label.to_owned())));
                places.push(Arc::from(format!("sweep.{CASE}.{chosen}")));
            }
            settings.extend(axis.settings(chosen));
        }
        let mut table = self.table.clone();
        set::apply(&mut table, &settings, &self.families).map_err(|(place, message)| self.document.error(&place, Part::Key, message))?;
        for setting in settings {
            assignments.push((setting.key.to_string(), setting.value.clone()));
            places.push(Arc::clone(&setting.place));
        }
        Ok(Point { table, assignments, columns: Arc::clone(&self.columns), places })
    }
}

impl Document {
    /// All runs of the experiment: one without `[sweep]`, else the cartesian product in the order of the file, the last key
    /// fastest.
    ///
    /// # Errors
    /// As [`Document::sweep`].
    pub fn points(&self) -> Result<Vec<Point>, ConfigError> {
        let sweep = self.sweep()?;
        (0..sweep.count()).map(|number| sweep.point(number)).collect()
    }

    /// As [`Document::points`], without making them: a large sweep need not lie in memory.
    ///
    /// # Errors
    /// A wrong `[[plot]]` or `[record]`; a key of `[sweep]` that belongs to no section, an axis without values, a wrong range or case, two entries that set
    /// the same key, two values that make the same run, more than [`MAX_POINTS`] points.
    pub fn sweep(&self) -> Result<Sweep<'_>, ConfigError> {
        self.check_plots()?;
        self.record()?;
        let mut table = self.table().clone();
        table.remove("plot");
        table.remove("record");
        let swept = match table.remove("sweep") {
            Some(Value::Table(swept)) => swept,
            _ => Table::new(),
        };
        if swept.is_empty() && self.table().contains_key("sweep") {
            return Err(self.error("sweep", Part::Value, "is a sweep over nothing; give a key with values, or leave [sweep] out"));
        }
        let mut axes: Vec<Axis> = Vec::with_capacity(swept.len());
        for (key, values) in swept {
            let axis = if key == CASE { self.cases(&values, &table)? } else { self.axis(&key, &values)? };
            if axes.iter().map(Axis::len).product::<usize>().saturating_mul(axis.len()) > MAX_POINTS {
                return Err(self.error("sweep", Part::Value, format!("has more than {MAX_POINTS} points; split the experiment")));
            }
            axes.push(axis);
        }
        let families = Families::of(&table, axes.iter().flat_map(Axis::all_settings));
        let mut claims = Claims::default();
        for axis in &axes {
            claims.add(axis).map_err(|(mine, key, theirs)| self.set_twice(&mine, &key, &theirs))?;
            axis.check_distinct(&table, &families).map_err(|(place, message)| self.error(&place, Part::Value, message))?;
        }
        let columns = axes.iter().flat_map(Axis::columns).collect();
        Ok(Sweep { document: self, table, axes, columns, families })
    }

    /// Two entries of `[sweep]` set the same key.
    fn set_twice(&self, place: &str, key: &str, other: &str) -> ConfigError {
        let there = match self.locate(other, Part::Key) {
            Location::Text { line, .. } => format!("line {line}"),
            Location::Argument(argument) => argument,
            Location::Table => format!("`{}`", other.strip_prefix("sweep.").unwrap_or(other)),
        };
        let message =
            format!("sets `{key}`, which another entry of [sweep] sets too ({there}); a run has one value of it, so keep one of the two");
        self.error(place, Part::Key, message)
    }

    /// The values of one key of `[sweep]`.
    fn axis(&self, key: &str, axis: &Value) -> Result<Axis, ConfigError> {
        let path = format!("sweep.{key}");
        let section = key.split('.').next().unwrap_or_default();
        if matches!(section, "sweep" | "plot" | "record") {
            return Err(self.error(&path, Part::Key, format!("[{section}] itself cannot be swept")));
        }
        if key == "title" {
            let message = "changes no run; name runs by cases: [[sweep.case]] with a label";
            return Err(self.error(&path, Part::Key, message));
        }
        if section == CASE {
            let message = "is not a list of cases; each case begins with [[sweep.case]]";
            return Err(self.error(&path, Part::Key, message));
        }
        if let Some(problem) = self.section_problem(section) {
            return Err(self.error(&path, Part::Key, problem));
        }
        let values = match axis {
            Value::Array(values) => values.clone(),
            Value::Table(range) => {
                range::expand(range).map_err(|(inner, message)| self.error(&format!("{path}{inner}"), Part::Value, message))?
            }
            other => {
                let message = format!("is {}; it must be a list of values, or {{ from = 0.1, to = 0.9, step = 0.1 }}", shown(other));
                return Err(self.error(&path, Part::Value, message));
            }
        };
        if values.is_empty() {
            return Err(self.error(&path, Part::Value, "is a sweep over nothing; give at least one value, or leave the key out"));
        }
        Axis::of_values(key, values).map_err(|(place, message)| self.error(&place, Part::Key, message))
    }
}

#[cfg(test)]
mod tests;
