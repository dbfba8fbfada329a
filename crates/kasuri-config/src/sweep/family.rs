//! Keys whose value says which other keys their table has: the name of a topology, a routing, a pattern, an allocator.
//!
//! Where the sweep gives a table another member than the file does, the file's parameters of the old member mean nothing any more: they
//! are left out of that run, unless the new member has a parameter of the same name. A parameter that the sweep itself sets always stays,
//! so that one which does not fit is an error.

use super::setting::Setting;
use crate::pattern::ALL_PATTERNS;
use crate::routing::ALL_ROUTINGS;
use crate::topology::ALL_TOPOLOGIES;
use kasuri_network::registry::{Entry, find};
use kasuri_workload::endpoint::ENDPOINTS;
use kasuri_workload::traffic::process::PROCESSES;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The parameters of the members that a sweep and its file name.
#[derive(Clone, Debug, Default)]
pub(super) struct Families {
    /// By selecting key and member.
    parameters: BTreeMap<(&'static str, String), &'static [&'static str]>,
}

/// The keys of which a closed workload has one: what is run.
const WORKLOADS: [&str; 3] = ["collective", "application", "trace"];

/// The selecting keys of a table.
fn selectors(table: &str) -> &'static [&'static str] {
    let section = table.rsplit('.').find(|part| part.parse::<usize>().is_err());
    match section.unwrap_or_default() {
        "network" => &["topology"],
        "routing" => &["algorithm"],
        "traffic" | "class" => &["pattern", "process"],
        "endpoint" => &["model"],
        "vc_allocator" | "switch_allocator" => &["name"],
        "workload" => &WORKLOADS,
        _ => &[],
    }
}

/// The parameters of a member; `None` where they are not known, or there is no such member.
fn parameters(selector: &str, member: &str) -> Option<&'static [&'static str]> {
    fn keys<F: ?Sized>(table: &[Entry<F>], member: &str) -> Option<&'static [&'static str]> {
        find(table, member).map(Entry::keys)
    }
    match selector {
        "topology" => keys(ALL_TOPOLOGIES, member),
        "algorithm" => keys(ALL_ROUTINGS, member),
        "pattern" => keys(ALL_PATTERNS, member),
        "process" => keys(PROCESSES, member),
        "model" => keys(ENDPOINTS, member),
        _ => None,
    }
}

/// The table of a key and the key's name in it.
fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

/// The table at a dotted key; numbers are positions in lists.
fn table_at<'t>(table: &'t Table, key: &str) -> Option<&'t Table> {
    let mut parts = key.split('.');
    let mut value = table.get(parts.next()?)?;
    for part in parts {
        value = match value {
            Value::Table(table) => table.get(part)?,
            Value::Array(elements) => elements.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    value.as_table()
}

impl Families {
    /// Those that matter to a file and what its sweep sets.
    pub(super) fn of<'s>(file: &Table, settings: impl Iterator<Item = &'s Setting>) -> Self {
        let mut families = Self::default();
        for setting in settings {
            let (place, name) = split(&setting.key);
            if !selectors(place).contains(&name) {
                continue;
            }
            let file = table_at(file, place);
            for &selector in selectors(place) {
                let of_file = file.and_then(|file| file.get(selector));
                [Some(&setting.value).filter(|_| selector == name), of_file]
                    .into_iter()
                    .flatten()
                    .for_each(|value| families.learn(selector, value));
            }
        }
        families
    }

    fn learn(&mut self, selector: &'static str, value: &Value) {
        if let Some(member) = value.as_str()
            && let Some(keys) = parameters(selector, member)
        {
            self.parameters.entry((selector, member.to_owned())).or_insert(keys);
        }
    }

    fn keys_of(&self, selector: &'static str, member: &Value) -> &'static [&'static str] {
        let member = member.as_str().unwrap_or_default().to_owned();
        self.parameters.get(&(selector, member)).copied().unwrap_or_default()
    }

    /// Takes out of the file's tables what belongs to members that the settings replace.
    pub(super) fn leave(&self, file: &mut Table, settings: &[&Setting]) {
        for setting in settings {
            let (place, name) = split(&setting.key);
            let Some(&selector) = selectors(place).iter().find(|&&selector| selector == name) else { continue };
            let Some(table) = table_at(file, place) else { continue };
            let is_set = |key: &str| settings.iter().any(|other| crate::path::is_within(&other.key, &format!("{place}.{key}")));
            let leaving: Vec<String> = table.keys().filter(|key| self.leaves(selector, key, table, place, settings)).cloned().collect();
            let leaving: Vec<String> = leaving.into_iter().filter(|key| !is_set(key)).collect();
            if let Some(Value::Table(table)) = crate::path::at_mut(file, place) {
                leaving.iter().for_each(|key| {
                    table.remove(key);
                });
            }
        }
    }

    /// Does a key of the file's table belong to the member that `selector` names there, and not to those that are chosen now?
    fn leaves(&self, selector: &'static str, key: &str, table: &Table, place: &str, settings: &[&Setting]) -> bool {
        let chosen =
            |selector: &str| settings.iter().find(|setting| split(&setting.key) == (place, selector)).map(|setting| &setting.value);
        if WORKLOADS.contains(&selector) {
            return key != selector && WORKLOADS.contains(&key);
        }
        let Some(old) = table.get(selector) else { return false };
        if Some(old) == chosen(selector) || key == selector {
            return false;
        }
        if selector == "name" {
            return true;
        }
        let stays = selectors(place).iter().any(|&other| {
            let now = chosen(other).or_else(|| table.get(other));
            now.is_some_and(|member| self.keys_of(other, member).contains(&key))
        });
        self.keys_of(selector, old).contains(&key) && !stays
    }
}
