//! `[[sweep.case]]`: values that go together, under a label.

use super::axis::{Axis, leaves_of};
use super::family::Families;
use super::set;
use super::setting::Setting;
use crate::document::{Document, Part};
use crate::error::ConfigError;
use crate::point::CASE;
use crate::shown::{compact, shown};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// The key of a case's label.
const LABEL: &str = "label";

impl Document {
    /// The axis of all cases.
    pub(super) fn cases(&self, cases: &Value, file: &Table) -> Result<Axis, ConfigError> {
        let path = format!("sweep.{CASE}");
        let wrong = |value: &Value| {
            let message = format!("is {}; a case is a table of keys with one value each, and begins with [[sweep.case]]", shown(value));
            self.error(&path, Part::Value, message)
        };
        let cases = cases.as_array().ok_or_else(|| wrong(cases))?;
        if cases.is_empty() {
            return Err(self.error(&path, Part::Value, "is a sweep over nothing; give at least one case, or leave the key out"));
        }
        let (mut sets, mut labels) = (Vec::with_capacity(cases.len()), Vec::with_capacity(cases.len()));
        for (number, case) in cases.iter().enumerate() {
            let (settings, label) = self.case(&format!("{path}.{number}"), case.as_table().ok_or_else(|| wrong(case))?)?;
            sets.push(settings);
            labels.push(label);
        }
        let mut axis = Axis::of_sets(sets);
        axis.labels = label_all(labels, &axis, file).map_err(|(number, label)| {
            let message = format!("`{label}` is the label of another case, too; each case has its own");
            self.error(&format!("{path}.{number}.{LABEL}"), Part::Value, message)
        })?;
        Ok(axis)
    }

    /// What a case sets, and its label if it has one.
    fn case(&self, path: &str, case: &Table) -> Result<(Vec<Setting>, Option<String>), ConfigError> {
        let (mut settings, mut label) = (Vec::new(), None);
        for (key, value) in case {
            let place = format!("{path}.{key}");
            if key == LABEL {
                let text = value.as_str().filter(|text| !text.trim().is_empty());
                let text = text.ok_or_else(|| self.error(&place, Part::Value, format!("is {}; a label is a string", shown(value))))?;
                label = Some(text.to_owned());
                continue;
            }
            let section = key.split('.').next().unwrap_or_default();
            let problem = match section {
                "sweep" | "plot" | "record" => Some(format!("[{section}] itself cannot be swept")),
                _ => self.section_problem(section),
            };
            if let Some(problem) = problem {
                return Err(self.error(&place, Part::Key, problem));
            }
            if value.is_table() {
                let message = "is a range; in a case each key has one value, and keys that all cases share belong in [sweep]";
                return Err(self.error(&place, Part::Value, message));
            }
            leaves_of(key, 0, value.clone(), &place, &mut settings).map_err(|(place, message)| self.error(&place, Part::Key, message))?;
        }
        Ok((settings, label))
    }
}

/// Gives each case without a label one that is made of what distinguishes it from the others.
///
/// # Errors
/// The number of a case whose label another one has, and the label.
fn label_all(given: Vec<Option<String>>, axis: &Axis, file: &Table) -> Result<Vec<String>, (usize, String)> {
    let mut known = BTreeSet::new();
    for (number, label) in given.iter().enumerate() {
        if let Some(label) = label
            && !known.insert(label.clone())
        {
            return Err((number, label.clone()));
        }
    }
    let mut made = if given.iter().all(Option::is_some) { Vec::new() } else { made_labels(axis, file) }.into_iter();
    let mut label = |given: Option<String>| {
        let mut made = made.next().unwrap_or_default();
        given.unwrap_or_else(|| {
            while !known.insert(made.clone()) {
                made.push('\'');
            }
            made
        })
    };
    Ok(given.into_iter().map(&mut label).collect())
}

/// A label for each case: those of the values that it sets, the first ones first, that tell it from the others.
fn made_labels(axis: &Axis, file: &Table) -> Vec<String> {
    let families = Families::of(file, axis.all_settings());
    let tables = (0..axis.len()).map(|number| {
        let mut table = file.clone();
        // What cannot be put in is said where the point is made.
        let _ = set::apply(&mut table, &axis.settings(number).iter().collect::<Vec<_>>(), &families);
        table
    });
    let mut tables: Vec<Table> = tables.collect();
    let mut values: BTreeMap<&str, Vec<Option<String>>> = BTreeMap::new();
    for setting in axis.all_settings() {
        values.entry(&setting.key).or_insert_with(|| {
            tables.iter_mut().map(|table| crate::path::at_mut(table, &setting.key).map(|value| compact(value))).collect()
        });
    }
    let label = |number: usize| {
        let mut alike: Vec<usize> = (0..axis.len()).collect();
        let mut parts = Vec::new();
        for setting in axis.settings(number) {
            let of_cases = &values[&*setting.key];
            let still: Vec<usize> = alike.iter().copied().filter(|&other| of_cases[other] == of_cases[number]).collect();
            if still.len() < alike.len() || axis.len() == 1 && parts.is_empty() {
                parts.push(text(&setting.key, &setting.value));
                alike = still;
            }
        }
        if parts.is_empty() { "default".to_owned() } else { parts.join(", ") }
    };
    (0..axis.len()).map(label).collect()
}

/// A value in a label: a name alone, anything else after its key.
fn text(key: &str, value: &Value) -> String {
    match value {
        Value::String(name) => name.clone(),
        other => format!("{} = {}", key.rsplit('.').next().unwrap_or(key), compact(other).replace('"', "")),
    }
}
