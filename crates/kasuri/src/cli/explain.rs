//! `kasuri explain`: the meaning of a key of the experiment file, from the same schema that editors and the reference pages use.

mod search;

use super::{Exit, Failure, list, output};
use crate::input::KNOWN;
use clap::Args;
use kasuri_config::json_schema;
use kasuri_formats::names::nearest;
use search::{Form, Found, Meaning};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// A dotted key (router.pipeline), a section (router), or a key with one of its values (network.topology=xgft); without it all
    /// sections
    key: Option<String>,
}

impl Explain {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let schema = json_schema(*KNOWN);
        let text = self.key.as_deref().unwrap_or_default();
        let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key.trim(), Some(value.trim().trim_matches('"'))));
        let path = Path::of(&schema, key).ok_or_else(|| Failure::Input(unknown(&schema, key)))?;
        match value {
            None => path.explain(out)?,
            Some(_) if path.parts.is_empty() => return Err(Failure::Input(format!("`{text}` has no key before the `=`"))),
            Some(value) => path.explain_value(value, out)?,
        }
        Ok(Exit::DONE)
    }
}

/// A key that the schema knows.
struct Path<'a> {
    schema: &'a Value,
    /// The key as the user wrote it.
    key: &'a str,
    /// Its parts in the schema.
    parts: Vec<&'a str>,
    found: Found,
}

impl<'a> Path<'a> {
    /// A swept key (`sweep.traffic.load`, `sweep.case.traffic.load`) has the meaning of the key itself.
    fn of(schema: &'a Value, key: &'a str) -> Option<Self> {
        let parts: Vec<&str> = key.split('.').map(|part| part.trim_matches('"')).filter(|part| !part.is_empty()).collect();
        let found = search::find(schema, &parts);
        if !found.is_empty() {
            return Some(Self { schema, key, parts, found });
        }
        let swept = parts.strip_prefix(&["sweep"])?;
        let swept = swept.strip_prefix(&["case"]).unwrap_or(swept);
        let swept = if swept.first()?.parse::<usize>().is_ok() { &swept[1..] } else { swept };
        let found = search::find(schema, swept);
        if !found.is_empty() {
            return Some(Self { schema, key, parts: swept.to_vec(), found });
        }
        let (last, known) = swept.split_last()?;
        if search::find(schema, known).is_empty() {
            return None;
        }
        let found = search::find(&schema["properties"]["sweep"]["additionalProperties"], &[last]);
        (!found.is_empty()).then(|| Self { schema, key, parts: parts.clone(), found })
    }

    fn explain(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for meaning in &self.found.meanings {
            let of = if meaning.choices.is_empty() { String::new() } else { format!(" (of {})", meaning.choices.join(" or ")) };
            writeln!(out, "{}{of}", if self.key.is_empty() { "the experiment file" } else { self.key })?;
            self.describe(meaning, out)?;
        }
        let values = self.values_with_meanings();
        if values.iter().any(|row| !row[1].is_empty()) {
            writeln!(out, "\n{}", output::table(&["VALUE", "MEANING"], values, &[]))?;
            if !self.found.forms.is_empty() {
                writeln!(out, "\n`kasuri explain {}=VALUE` explains the keys of one.", self.key)?;
            }
        }
        let keys = search::names_within(self.schema, &self.parts).into_iter().map(|name| self.row_of(&name, &self.find_within(&name)));
        let keys: Vec<Vec<String>> = keys.collect();
        if !keys.is_empty() {
            writeln!(out, "\n{}", output::table(&["KEY", "DEFAULT", "MEANING"], keys, &[]))?;
        }
        Ok(())
    }

    fn describe(&self, meaning: &Meaning, out: &mut dyn Write) -> Result<(), Failure> {
        let schema = &meaning.schema;
        for line in schema["description"].as_str().unwrap_or_default().lines() {
            writeln!(out, "  {line}")?;
        }
        let names: Vec<String> = self.found.forms.iter().map(|form| format!("\"{}\"", form.value)).collect();
        let values = if names.is_empty() { search::values(self.schema, schema) } else { names.join(", ") };
        if !values.is_empty() {
            writeln!(out, "  values: {values}")?;
        }
        let selected = self.found.default_form().map(|form| format!("\"{}\"", form.value));
        let default = schema.get("default").filter(|default| !default.is_null()).map(ToString::to_string).or(selected);
        match default {
            Some(default) => writeln!(out, "  default: {default}")?,
            None if meaning.is_required => writeln!(out, "  default: none; the key is required")?,
            None if self.parts.len() > 1 => writeln!(out, "  default: none; the key is optional")?,
            None => {}
        }
        Ok(())
    }

    fn explain_value(&self, value: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let known = self.values_with_meanings();
        let meanings: Vec<&String> = known.iter().filter(|row| row[0] == value).map(|row| &row[1]).collect();
        if meanings.is_empty() {
            return Err(Failure::Input(self.unknown_value(value, &known)));
        }
        let form = self.found.forms.iter().find(|form| form.value == value);
        let default = if form.is_some_and(|form| form.is_default) { " (default)" } else { "" };
        writeln!(out, "{} = \"{value}\"{default}", self.key)?;
        for meaning in form.and_then(|form| form.schema["description"].as_str()).into_iter().chain(meanings.into_iter().map(String::as_str))
        {
            writeln!(out, "  {meaning}")?;
            if form.is_some() {
                break;
            }
        }
        let rows = form.map(|form| self.rows_of(form)).unwrap_or_default();
        if !rows.is_empty() {
            writeln!(out, "\n{}", output::table(&["KEY", "DEFAULT", "MEANING"], rows, &[]))?;
        }
        Ok(())
    }

    /// The keys that are valid with a value.
    fn rows_of(&self, form: &Form) -> Vec<Vec<String>> {
        let own = self.parts.last().copied().unwrap_or_default();
        let keys = form.schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys()).filter(|name| *name != own);
        let section = &self.parts[..self.parts.len() - 1];
        let found = |name: &str| {
            let mut found = search::find_from(self.schema, &form.schema, &[name]);
            found.meanings.iter_mut().for_each(|meaning| meaning.choices.clear());
            found
        };
        keys.map(|name| row(&[section, &[name.as_str()]].concat().join("."), &found(name))).collect()
    }

    fn find_within(&self, name: &str) -> Found {
        search::find(self.schema, &[&self.parts[..], &[name]].concat())
    }

    fn row_of(&self, name: &str, found: &Found) -> Vec<String> {
        row(&[&self.parts[..], &[name]].concat().join("."), found)
    }

    /// The named values, each with its meaning: those of a family as `kasuri list` prints them.
    fn values_with_meanings(&self) -> Vec<Vec<String>> {
        let parts = self.parts.iter().copied().filter(|part| !matches!(*part, "user" | "class" | "name") && part.parse::<usize>().is_err());
        let key = parts.collect::<Vec<_>>().join(".");
        // The topology of each plane.
        let of_family = list::summaries(if key == "network.of" { "network.topology" } else { &key });
        let from_schema = || {
            let named = self.found.meanings.iter().flat_map(|meaning| search::named_values(self.schema, &meaning.schema));
            named.map(|(name, meaning)| vec![name, meaning]).collect()
        };
        let rows = if of_family.is_empty() { from_schema() } else { of_family };
        let mut seen = BTreeSet::new();
        rows.into_iter().filter(|row: &Vec<String>| seen.insert(row.clone())).collect()
    }

    fn unknown_value(&self, value: &str, known: &[Vec<String>]) -> String {
        let key = self.key;
        if known.is_empty() {
            let what = self.found.meanings.first().map(|meaning| search::values(self.schema, &meaning.schema)).unwrap_or_default();
            return format!("the values of `{key}` have no names (it takes {what}); `kasuri explain {key}` explains it");
        }
        let names: Vec<&str> = known.iter().map(|row| row[0].as_str()).collect();
        let meant = nearest(value, &names).map_or_else(String::new, |name| format!("did you mean `{key}={name}`? "));
        format!("unknown value `{value}` of `{key}`; {meant}`kasuri explain {key}` lists the values")
    }
}

/// The longest default in a table of keys, characters.
const LONGEST_DEFAULT: usize = 32;

/// A row in a table of keys: key, default, the first sentence of its meaning.
fn row(key: &str, found: &Found) -> Vec<String> {
    let first = found.meanings.first();
    let selected = found.default_form().map(|form| format!("\"{}\"", form.value));
    let default = first.and_then(|meaning| meaning.schema.get("default")).filter(|default| !default.is_null());
    let default = default.map(ToString::to_string).or(selected).unwrap_or_default();
    // The key's own page shows the whole default.
    let default = if default.len() > LONGEST_DEFAULT { "…".to_owned() } else { default };
    let is_required = default.is_empty() && first.is_some_and(|meaning| meaning.is_required);
    let default = if is_required { "(required)".to_owned() } else { default };
    let text = first.and_then(|meaning| meaning.schema["description"].as_str()).unwrap_or_default().replace('\n', " ");
    vec![key.to_owned(), default, text.split_inclusive(". ").next().unwrap_or_default().trim().to_owned()]
}

/// The largest number of keys that a message about an unknown key suggests.
const MAX_SUGGESTIONS: usize = 3;

/// The message about an unknown key, with the keys that may be meant.
fn unknown(schema: &Value, key: &str) -> String {
    let keys = search::all_keys(schema);
    let mut text = format!("unknown key `{key}`");
    let meant = suggestions(key, &keys);
    if !meant.is_empty() {
        let _ = write!(text, "; did you mean {}?", meant.join(" or "));
        return text;
    }
    let parts: Vec<&str> = key.split('.').collect();
    let known = (1..parts.len()).rev().map(|length| parts[..length].join(".")).find(|section| keys.contains(section));
    match known {
        Some(section) => text.push_str(&format!("; `kasuri explain {section}` explains `{section}`")),
        None => text.push_str("; `kasuri explain` lists the sections"),
    }
    text
}

/// The meanings that an unknown key may have: a value, a key without its section, or a misspelt key.
fn suggestions(key: &str, keys: &[String]) -> Vec<String> {
    let mut found: Vec<String> = list::keys_with_value(key).into_iter().map(|of| format!("`{of}={key}`")).collect();
    let last = |full: &str| full.rsplit('.').next().unwrap_or_default().to_owned();
    let mut inner: Vec<&String> = keys.iter().filter(|known| last(known) == key).collect();
    inner.sort_by_key(|known| (known.matches('.').count(), known.starts_with("user.")));
    found.extend(inner.first().map(|known| format!("`{known}`")));
    if found.is_empty() {
        // A key below one without keys of its own is not a misspelling of it.
        let others: Vec<&str> = keys.iter().map(String::as_str).filter(|known| !key.starts_with(&format!("{known}."))).collect();
        found.extend(nearest(key, &others).map(|known| format!("`{known}`")));
    }
    found.truncate(MAX_SUGGESTIONS);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_config::pattern::ALL_PATTERNS;
    use kasuri_config::routing::ALL_ROUTINGS;
    use kasuri_config::topology::ALL_TOPOLOGIES;

    /// The output of the command for a key, or its error.
    fn explained(key: &str) -> Result<String, String> {
        let mut out = Vec::new();
        match (Explain { key: Some(key.to_owned()) }.run(&mut out)) {
            Ok(_) => Ok(String::from_utf8(out).unwrap()),
            Err(Failure::Input(message)) => Err(message),
            Err(_) => Err("another error".to_owned()),
        }
    }

    /// The keys of a table and of those in it, as `kasuri explain` takes them.
    fn keys_of(table: &toml::Table, section: &str, found: &mut Vec<String>) {
        for (name, value) in table {
            let key = format!("{section}.{name}");
            match value {
                toml::Value::Table(inner) => keys_of(inner, &key, found),
                toml::Value::Array(elements) => {
                    elements.iter().filter_map(toml::Value::as_table).for_each(|inner| keys_of(inner, &key, found));
                }
                _ => {}
            }
            found.push(key);
        }
    }

    /// Every key that the schema of the experiment file lists is explained, with its meaning, and its values or keys.
    #[test]
    fn every_key_is_explained() {
        let schema = json_schema(*KNOWN);
        let keys = search::all_keys(&schema);
        assert!(keys.len() > 400 && keys.contains(&"user.traffic.class.pattern".to_owned()), "{keys:?}");
        for key in keys {
            let path = Path::of(&schema, &key).unwrap();
            let values = path.values_with_meanings();
            assert_eq!(values.iter().collect::<BTreeSet<_>>().len(), values.len(), "{key} has a value twice");
            for meaning in &path.found.meanings {
                let inner = search::names_within(&schema, &path.parts);
                let has_values = !search::values(&schema, &meaning.schema).is_empty() || !path.found.forms.is_empty();
                assert!(meaning.schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{key} has no meaning");
                assert!(has_values || !inner.is_empty(), "{key} has no values");
            }
        }
    }

    /// Keys of each topology, routing and pattern, from an example of it and not from the schema.
    #[test]
    fn every_key_of_the_examples_is_explained_alone_and_swept() {
        let examples = (ALL_TOPOLOGIES.iter().map(|entry| ("network", "topology", entry.name, entry.example)))
            .chain(ALL_ROUTINGS.iter().map(|entry| ("routing", "algorithm", entry.name, entry.example)))
            .chain(ALL_PATTERNS.iter().map(|entry| ("traffic", "pattern", entry.name, entry.example)));
        let schema = json_schema(*KNOWN);
        for (section, selector, name, example) in examples {
            let mut keys = vec![format!("{section}.{selector}")];
            keys_of(&toml::from_str(example).unwrap(), section, &mut keys);
            for key in keys.iter().flat_map(|key| [key.clone(), format!("sweep.{key}"), format!("sweep.case.0.{key}")]) {
                assert!(Path::of(&schema, &key).is_some(), "{key} of {name}");
            }
            let text = explained(&format!("{section}.{selector}={name}")).unwrap();
            let own = keys[1..].iter().filter(|key| key.matches('.').count() == 1 && **key != format!("{section}.{selector}"));
            let is_wrapper = example.contains("of = ");
            assert!(is_wrapper || own.clone().all(|key| text.contains(&format!("{key} "))), "{name}: {text}");
        }
    }

    #[test]
    fn every_name_of_every_family_is_explained_by_value() {
        for key in ["engine", "network.topology", "routing.algorithm", "traffic.pattern", "traffic.process", "workload.collective"]
            .into_iter()
            .chain(["workload.schedule", "workload.application", "endpoint.model", "router.predictor", "router.vc_allocator"])
        {
            let overview = explained(key).unwrap();
            let names = list::summaries(key);
            assert!(!names.is_empty(), "{key}");
            for row in names {
                assert!(overview.contains(&row[0]), "{key} does not list {}", row[0]);
                assert!(explained(&format!("{key}={}", row[0])).unwrap().lines().count() > 1, "{key}={}", row[0]);
            }
        }
    }

    #[test]
    fn a_value_brings_its_own_keys_and_no_others() {
        let text = explained("network.topology=xgft").unwrap();
        assert!(
            text.starts_with("network.topology = \"xgft\"\n") && text.contains("network.parallel") && text.contains("network.m "),
            "{text}"
        );
        assert!(!text.contains("network.dimensions"), "{text}");
        assert!(explained("traffic.process=bernoulli").unwrap().starts_with("traffic.process = \"bernoulli\" (default)"));
        assert!(explained("router.switching=wormhole").unwrap().contains("Flit by flit."));
        assert!(explained("network.topology").unwrap().contains("default: none; the key is required"));
    }

    #[test]
    fn an_unknown_key_or_value_gets_the_nearest_instead_of_a_list() {
        for (asked, expected) in [
            ("router.pipline", "unknown key `router.pipline`; did you mean `router.pipeline`?"),
            ("topology", "unknown key `topology`; did you mean `network.topology`?"),
            ("xgft", "unknown key `xgft`; did you mean `network.topology=xgft`?"),
            ("ruoter", "unknown key `ruoter`; did you mean `router`?"),
            ("=xgft", "`=xgft` has no key before the `=`"),
            ("network.topology.what", "unknown key `network.topology.what`; `kasuri explain network.topology` explains `network.topology`"),
            ("quite.another", "unknown key `quite.another`; `kasuri explain` lists the sections"),
            ("network.topology=mseh", "unknown value `mseh` of `network.topology`; did you mean `network.topology=mesh`?"),
            ("traffic.load=0.5", "the values of `traffic.load` have no names (it takes a number)"),
        ] {
            let message = explained(asked).unwrap_err();
            assert!(message.starts_with(expected) && message.len() < 200, "{asked}: {message}");
        }
    }

    #[test]
    fn words_and_numbers_are_both_values() {
        let schema = json_schema(*KNOWN);
        let found = search::find(&schema, &["flit", "threads"]);
        assert_eq!(search::values(&schema, &found.meanings[0].schema), "\"auto\", or a whole number");
    }

    #[test]
    fn a_key_of_one_topology_says_so() {
        let schema = json_schema(*KNOWN);
        let found = search::find(&schema, &["network", "dimensions"]);
        assert!(found.meanings.iter().any(|meaning| meaning.choices.contains(&"topology = mesh".to_owned())), "{found:?}");
    }
}
