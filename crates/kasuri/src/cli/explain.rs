//! `kasuri explain`: what a key of the experiment file means, out of the same schema that editors and the reference pages use.

use super::{Exit, Failure, output};
use crate::input::KNOWN;
use clap::Args;
use kasuri_config::json_schema;
use serde_json::Value;
use std::io::Write;

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The dotted key, for example router.pipeline, or a section; without it all sections
    key: Option<String>,
}

impl Explain {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let schema = json_schema(*KNOWN);
        let key = self.key.as_deref().unwrap_or_default();
        let parts: Vec<&str> = key.split('.').filter(|part| !part.is_empty()).collect();
        let found = Search::of(&schema, &parts);
        if found.is_empty() {
            return Err(Failure::Input(unknown(&schema, &parts)));
        }
        for meaning in &found {
            let of = if meaning.choices.is_empty() { String::new() } else { format!(" (of {})", meaning.choices.join(" or ")) };
            writeln!(out, "{}{of}", if key.is_empty() { "the experiment file" } else { key })?;
            meaning.describe(&schema, out)?;
        }
        let keys = keys_within(&schema, &parts);
        if !keys.is_empty() {
            writeln!(out, "\n{}", output::table(&["KEY", "DEFAULT", "MEANING"], keys, &[]))?;
        }
        Ok(Exit::DONE)
    }
}

/// What a key means, and for which choices of the section (`topology = mesh`); none if for all.
#[derive(Debug, PartialEq)]
struct Meaning {
    choices: Vec<String>,
    schema: Value,
}

/// Follows a path through all alternatives of a schema.
struct Search<'a> {
    root: &'a Value,
    found: Vec<Meaning>,
}

/// Where a schema has others that hold for the same value.
const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

impl<'a> Search<'a> {
    fn of(root: &'a Value, path: &[&str]) -> Vec<Meaning> {
        let mut search = Search { root, found: Vec::new() };
        search.follow(root, path, None);
        search.found
    }

    fn follow(&mut self, node: &'a Value, path: &[&str], choice: Option<&str>) {
        let node = self.resolved(node, path.is_empty());
        let Some((first, rest)) = path.split_first() else { return self.add(node, choice) };
        let own = choice_of(node, first);
        let choice = own.as_deref().or(choice);
        if let Some(property) = node["properties"].get(*first) {
            self.follow(property, rest, choice);
        }
        if let items @ Value::Object(_) = &node["items"] {
            // `traffic.class.0.load` and `traffic.class.load` mean the same.
            let path = if first.parse::<usize>().is_ok() { rest } else { path };
            self.follow(items, path, choice);
        }
        for alternatives in ALTERNATIVES {
            node[alternatives].as_array().into_iter().flatten().for_each(|other| self.follow(other, path, choice));
        }
        ["then", "else"].into_iter().filter_map(|name| node.get(name)).for_each(|other| self.follow(other, path, choice));
    }

    /// What a reference points at. A reference with words of its own explains itself.
    fn resolved(&self, node: &'a Value, is_last: bool) -> &'a Value {
        match target(self.root, node) {
            Some(target) if !(is_last && node.get("description").is_some()) => target,
            _ => node,
        }
    }

    fn add(&mut self, node: &Value, choice: Option<&str>) {
        let mut schema = node.clone();
        if let (Some(Value::Object(target)), Value::Object(columns)) = (target(self.root, node), &mut schema) {
            for (key, value) in target {
                columns.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        // A choice itself is explained by `kasuri list`.
        if schema.get("const").is_some() {
            return;
        }
        let known = self.found.iter_mut().find(|meaning| meaning.schema == schema);
        match (known, choice) {
            (Some(meaning), Some(choice)) if !meaning.choices.iter().any(|known| known == choice) => {
                meaning.choices.push(choice.to_owned())
            }
            (Some(_), _) => {}
            (None, choice) => self.found.push(Meaning { choices: choice.map(str::to_owned).into_iter().collect(), schema }),
        }
    }
}

/// What a schema that is a reference points at.
fn target<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema["$ref"].as_str()?.trim_start_matches('#'))
}

/// Which choice this alternative of a section stands for: `topology = mesh`.
fn choice_of(node: &Value, asked: &str) -> Option<String> {
    let properties = node["properties"].as_object()?;
    properties.iter().filter(|(name, _)| *name != asked).find_map(|(name, value)| Some(format!("{name} = {}", value["const"].as_str()?)))
}

impl Meaning {
    fn describe(&self, root: &Value, out: &mut dyn Write) -> Result<(), Failure> {
        let schema = &self.schema;
        for line in schema["description"].as_str().unwrap_or_default().lines() {
            writeln!(out, "  {line}")?;
        }
        let values = values(root, schema);
        if !values.is_empty() {
            writeln!(out, "  values: {values}")?;
        }
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            writeln!(out, "  default: {default}")?;
        }
        Ok(())
    }
}

/// What may stand there, in words. References are to `root`.
fn values(root: &Value, schema: &Value) -> String {
    if let Some(target) = target(root, schema) {
        return values(root, target);
    }
    if let Some(names) = schema["enum"].as_array() {
        return names.iter().filter(|name| !name.is_null()).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    }
    if let Some(name) = schema.get("const") {
        return name.to_string();
    }
    for alternatives in ["anyOf", "oneOf"] {
        if let Some(others) = schema[alternatives].as_array() {
            let mut words: Vec<String> = others.iter().map(|other| values(root, other)).filter(|words| !words.is_empty()).collect();
            words.dedup();
            return words.join(", or ");
        }
    }
    let kind = |name: &str| match name {
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "string" => "a text",
        "array" => "a list",
        "object" => "a table",
        _ => "",
    };
    let names: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![kind(name)],
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(kind).collect(),
        _ => Vec::new(),
    };
    names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(" or ")
}

/// Characters of a default in a table of keys.
const LONGEST_DEFAULT: usize = 32;

/// The keys of a section or table, each once: key, default, the first sentence about it.
fn keys_within(schema: &Value, path: &[&str]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut names = Vec::new();
    Search::of(schema, path).iter().for_each(|meaning| property_names(schema, &meaning.schema, &mut names, 0));
    for name in names {
        let inner: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
        let found = Search::of(schema, &inner);
        let Some(first) = found.first().map(|meaning| &meaning.schema) else { continue };
        let default = first.get("default").filter(|default| !default.is_null()).map(ToString::to_string).unwrap_or_default();
        // The key's own page shows it whole.
        let default = if default.len() > LONGEST_DEFAULT { "…".to_owned() } else { default };
        let text = first["description"].as_str().unwrap_or_default().replace('\n', " ");
        let sentence = text.split_inclusive(". ").next().unwrap_or_default().trim().to_owned();
        rows.push(vec![inner.join("."), default, sentence]);
    }
    rows
}

/// The names of the properties of a schema and of its alternatives.
fn property_names(root: &Value, node: &Value, names: &mut Vec<String>, depth: u32) {
    if depth > 8 {
        return;
    }
    for node in [Some(node), target(root, node)].into_iter().flatten() {
        for name in node["properties"].as_object().into_iter().flat_map(|properties| properties.keys()) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        for alternatives in ALTERNATIVES {
            node[alternatives].as_array().into_iter().flatten().for_each(|other| property_names(root, other, names, depth + 1));
        }
        ["then", "else", "items"]
            .into_iter()
            .filter_map(|name| node.get(name))
            .for_each(|other| property_names(root, other, names, depth + 1));
    }
}

/// Says which part of a key is unknown, and which keys there are.
fn unknown(schema: &Value, parts: &[&str]) -> String {
    let known = (0..parts.len()).rev().find(|&length| !Search::of(schema, &parts[..length]).is_empty()).unwrap_or(0);
    let names: Vec<String> = keys_within(schema, &parts[..known]).into_iter().filter_map(|row| row.into_iter().next()).collect();
    let wrong = parts[..=known].join(".");
    let nearest = names.iter().map(|name| (strsim::damerau_levenshtein(name, &wrong), name)).min().filter(|(distance, _)| *distance <= 3);
    let meant = nearest.map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"));
    format!("unknown key `{wrong}`{meant} known keys: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key that the schema of the experiment file lists is explained, with words.
    #[test]
    fn every_key_is_explained() {
        let schema = json_schema(*KNOWN);
        let mut paths: Vec<String> = Vec::new();
        for section in keys_within(&schema, &[]) {
            let inner = keys_within(&schema, &[&section[0]]);
            paths.extend(inner.into_iter().map(|row| row[0].clone()));
            paths.push(section[0].clone());
        }
        assert!(paths.len() > 100 && paths.contains(&"router.pipeline".to_owned()), "{paths:?}");
        for path in paths.iter().filter(|path| path.contains('.')) {
            let found = Search::of(&schema, &path.split('.').collect::<Vec<_>>());
            let has_words = |meaning: &Meaning| meaning.schema["description"].is_string() || !values(&schema, &meaning.schema).is_empty();
            assert!(found.iter().any(has_words), "{path}");
        }
    }

    #[test]
    fn a_misspelt_key_gets_the_nearest() {
        let schema = json_schema(*KNOWN);
        assert!(Search::of(&schema, &["router", "pipline"]).is_empty());
        assert!(unknown(&schema, &["router", "pipline"]).contains("unknown key `router.pipline`; did you mean `router.pipeline`?"));
    }

    #[test]
    fn words_and_numbers_are_both_values() {
        let schema = json_schema(*KNOWN);
        let found = Search::of(&schema, &["flit", "threads"]);
        assert_eq!(values(&schema, &found[0].schema), "\"auto\", or a whole number");
    }

    #[test]
    fn a_key_of_one_topology_says_so() {
        let schema = json_schema(*KNOWN);
        let found = Search::of(&schema, &["network", "dimensions"]);
        assert!(found.iter().any(|meaning| meaning.choices.contains(&"topology = mesh".to_owned())), "{found:?}");
    }
}
