//! One axis of a sweep: which keys each of its values sets.

use super::family::Families;
use super::set;
use super::setting::Setting;
use crate::shown::compact;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use toml::{Table, Value};

/// The values of one entry of `[sweep]`.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    choices: Choices,
    /// The leaf keys that some value sets; of two of which one lies under the other, the upper one.
    leaves: Vec<String>,
    /// Of cases.
    pub(super) labels: Vec<String>,
}

#[derive(Clone, Debug)]
enum Choices {
    /// A value of one key each, and none is a table.
    Plain(Vec<Setting>),
    /// Several keys each.
    Several(Vec<Vec<Setting>>),
}

impl Axis {
    /// The axis of a key with its values.
    ///
    /// # Errors
    /// The path of the document where a value names a key twice, and a sentence.
    pub(super) fn of_values(key: &str, values: Vec<Value>) -> Result<Self, (String, String)> {
        let (name, place): (Arc<str>, Arc<str>) = (Arc::from(key), Arc::from(format!("sweep.{key}")));
        if !values.iter().any(Value::is_table) {
            let setting = |value| Setting { key: Arc::clone(&name), written: key.len(), value, place: Arc::clone(&place) };
            let choices = Choices::Plain(values.into_iter().map(setting).collect());
            return Ok(Self { choices, leaves: vec![key.to_owned()], labels: Vec::new() });
        }
        let mut sets = Vec::with_capacity(values.len());
        for (number, value) in values.into_iter().enumerate() {
            let mut settings = Vec::new();
            leaves_of(key, key.len(), value, &format!("{place}.{number}"), &mut settings)?;
            sets.push(settings);
        }
        Ok(Self::of_sets(sets))
    }

    /// An axis of values that set several keys each.
    pub(super) fn of_sets(sets: Vec<Vec<Setting>>) -> Self {
        let mut leaves: Vec<String> = Vec::new();
        let mut known = BTreeSet::new();
        for setting in sets.iter().flatten() {
            if known.insert(setting.key.to_string()) {
                leaves.push(setting.key.to_string());
            }
        }
        leaves.retain(|leaf| !above(leaf).any(|upper| known.contains(upper)));
        Self { choices: Choices::Several(sets), leaves, labels: Vec::new() }
    }

    /// How many values it has.
    pub(super) fn len(&self) -> usize {
        match &self.choices {
            Choices::Plain(values) => values.len(),
            Choices::Several(sets) => sets.len(),
        }
    }

    /// The label of a case.
    pub(super) fn label(&self, chosen: usize) -> Option<&str> {
        self.labels.get(chosen).map(String::as_str)
    }

    /// What a value sets.
    pub(super) fn settings(&self, chosen: usize) -> &[Setting] {
        match &self.choices {
            Choices::Plain(values) => std::slice::from_ref(&values[chosen]),
            Choices::Several(sets) => &sets[chosen],
        }
    }

    /// What all values set.
    pub(super) fn all_settings(&self) -> impl Iterator<Item = &Setting> {
        (0..self.len()).flat_map(|chosen| self.settings(chosen))
    }

    /// Its columns in the results.
    pub(super) fn columns(&self) -> impl Iterator<Item = String> {
        let label = (!self.labels.is_empty()).then(|| super::CASE.to_owned());
        label.into_iter().chain(self.leaves.iter().cloned())
    }

    /// Refuses two values that make the same run.
    ///
    /// # Errors
    /// The place of the second one, and a sentence.
    pub(super) fn check_distinct(&self, file: &Table, families: &Families) -> Result<(), (String, String)> {
        let mut known = BTreeMap::new();
        for chosen in 0..self.len() {
            let settings: Vec<&Setting> = self.settings(chosen).iter().collect();
            let same = known.insert(self.run_of(&settings, file, families), chosen);
            let (Some(first), number) = (same, chosen + 1) else { continue };
            return Err(match (&self.choices, self.label(chosen)) {
                (Choices::Plain(values), _) => {
                    let value = compact(&values[chosen].value);
                    let message = format!("duplicate value {value}; each value makes a run of its own, so give it once");
                    (format!("{}.{chosen}", values[chosen].place), message)
                }
                (_, Some(label)) => {
                    let other = self.label(first).unwrap_or_default();
                    (
                        format!("sweep.{}.{chosen}", super::CASE),
                        format!("`{label}` makes the same run as the case `{other}`; keep one of them"),
                    )
                }
                _ => {
                    let place =
                        settings.first().or(self.settings(first).iter().collect::<Vec<_>>().first()).map_or("sweep", |one| &*one.place);
                    (place.to_owned(), format!("value {number} makes the same run as value {}; keep one of them", first + 1))
                }
            });
        }
        Ok(())
    }

    /// What tells the run of a value from those of others.
    fn run_of(&self, settings: &[&Setting], file: &Table, families: &Families) -> String {
        if let (Choices::Plain(_), [setting]) = (&self.choices, settings) {
            return compact(&setting.value);
        }
        let mut table = file.clone();
        // What cannot be put in is said where the point is made.
        let _ = set::apply(&mut table, settings, families);
        table.remove("title");
        compact(&Value::Table(table))
    }
}

/// Takes a value apart into leaf keys.
///
/// # Errors
/// The place of a key that is set twice, and a sentence.
pub(super) fn leaves_of(key: &str, written: usize, value: Value, place: &str, found: &mut Vec<Setting>) -> Result<(), (String, String)> {
    let Value::Table(table) = value else {
        if let Some(other) = found.iter().find(|other| is_same_or_under(&other.key, key) || is_same_or_under(key, &other.key)) {
            return Err((
                place.to_owned(),
                format!("sets `{key}` beside `{}`; a run has one value of it, so keep one of the two", other.key),
            ));
        }
        found.push(Setting { key: Arc::from(key), written, value, place: Arc::from(place) });
        return Ok(());
    };
    table
        .into_iter()
        .try_for_each(|(inner, value)| leaves_of(&format!("{key}.{inner}"), written, value, &format!("{place}.{inner}"), found))
}

fn is_same_or_under(key: &str, other: &str) -> bool {
    crate::path::is_within(key, other)
}

/// The keys above a key, from the top.
fn above(key: &str) -> impl Iterator<Item = &str> {
    key.match_indices('.').map(|(dot, _)| &key[..dot])
}

/// Which entry of `[sweep]` sets which key.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Leaf keys, and the keys above them, each with a leaf key's place.
    leaves: BTreeMap<String, Arc<str>>,
    upper: BTreeMap<String, Arc<str>>,
}

impl Claims {
    /// Adds what an axis sets.
    ///
    /// # Errors
    /// It sets what another one sets: its place, the key, the place of the other one.
    pub(super) fn add(&mut self, axis: &Axis) -> Result<(), (String, String, String)> {
        let mut first: BTreeMap<&str, &Arc<str>> = BTreeMap::new();
        for setting in axis.all_settings() {
            first.entry(&setting.key).or_insert(&setting.place);
        }
        for (&key, &place) in &first {
            let other = above(key).chain([key]).find_map(|upper| self.leaves.get(upper)).or_else(|| self.upper.get(key));
            if let Some(other) = other {
                return Err((place.to_string(), key.to_owned(), other.to_string()));
            }
        }
        for (key, place) in first {
            self.leaves.insert(key.to_owned(), Arc::clone(place));
            above(key).for_each(|upper| {
                self.upper.entry(upper.to_owned()).or_insert_with(|| Arc::clone(place));
            });
        }
        Ok(())
    }
}
