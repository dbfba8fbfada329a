//! Compares a table with the JSON Schema of the structure that it will become, before serde reads it.
//!
//! Serde stops at the first fault with a message about types of Rust and without a place. The schema, which every section
//! and every family member has anyway (`kasuri schema` prints it), tells the exact key and what would be right. Known here
//! are the forms that schemars gives to structures, unit enumerations, untagged enumerations, options, numbers and lists.

use super::shown::shown;
use kasuri_formats::names::unknown;
use serde_json::{Map, Value as Json};
use toml::{Table, Value};

/// What is wrong and where, relative to the table that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Dotted path; empty for the table itself.
    pub(crate) path: String,
    /// The message belongs to the key rather than to its value.
    pub(crate) at_key: bool,
    /// What was found and what would be right.
    pub(crate) message: String,
}

/// Finds the first fault of a table.
pub(crate) fn check(schema: &Json, table: &Table) -> Result<(), Fault> {
    let shape = Shape { root: schema };
    shape.check(schema, &Value::Table(table.clone()), "")
}

/// Does serde, if it reads a table, refuse all that the schema would? What it takes more generously is numbers that are none, lists in place
/// of tables, and empty lists and tables in place of words.
pub(crate) fn is_plain(table: &Table) -> bool {
    table.values().all(|value| match value {
        Value::Float(number) => number.is_finite(),
        Value::Table(table) => !table.is_empty() && is_plain(table),
        // Of words, or of whole numbers.
        Value::Array(elements) => !elements.is_empty() && (elements.iter().all(Value::is_str) || elements.iter().all(Value::is_integer)),
        _ => true,
    })
}

#[derive(Clone, Copy)]
struct Shape<'a> {
    root: &'a Json,
}

impl<'a> Shape<'a> {
    fn check(self, schema: &'a Json, value: &Value, path: &str) -> Result<(), Fault> {
        let schema = self.resolve(schema);
        if let Some(names) = self.names(schema) {
            return self.check_name(&names, value, path);
        }
        if let Some(branches) = branches(schema) {
            return self.check_branches(branches, schema, value, path);
        }
        let fits = match value {
            Value::Integer(_) => has_type(schema, "integer") || has_type(schema, "number"),
            other => has_type(schema, type_name(other)),
        };
        if !fits {
            return Err(self.fault(schema, value, path));
        }
        match value {
            Value::Integer(number) => check_range(schema, *number).map_err(|wanted| fault(value, path, &wanted)),
            Value::Float(number) if !number.is_finite() => Err(self.fault(schema, value, path)),
            Value::Array(elements) => self.check_elements(schema, elements, path),
            Value::Table(table) => self.check_table(schema, table, path),
            _ => Ok(()),
        }
    }

    fn check_elements(self, schema: &'a Json, elements: &[Value], path: &str) -> Result<(), Fault> {
        let count = |key: &str| schema.get(key).and_then(Json::as_u64);
        let length = elements.len() as u64;
        if count("minItems").is_some_and(|least| length < least) || count("maxItems").is_some_and(|most| length > most) {
            return Err(self.fault(schema, &Value::Array(elements.to_vec()), path));
        }
        let Some(items) = schema.get("items") else { return Ok(()) };
        elements.iter().enumerate().try_for_each(|(position, element)| self.check(items, element, &join(path, &position.to_string())))
    }

    /// Every table of the file is closed, also those of untagged variants, for which serde cannot say so. Only a schema
    /// without properties that does not close itself lets everything pass.
    fn check_table(self, schema: &'a Json, table: &Table, path: &str) -> Result<(), Fault> {
        let none = Map::new();
        let properties = match schema.get("properties").and_then(Json::as_object) {
            Some(properties) => properties,
            None if schema.get("additionalProperties") == Some(&Json::Bool(false)) => &none,
            None => return Ok(()),
        };
        for (key, value) in table {
            let Some(property) = properties.get(key) else {
                let message = unknown("key", key, properties.keys().map(String::as_str));
                return Err(Fault { path: join(path, key), at_key: true, message });
            };
            self.check(property, value, &join(path, key))?;
        }
        let mut required = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        match required.find(|key| !table.contains_key(*key)) {
            Some(key) => {
                let wanted = properties.get(key).map(|property| self.wanted(property)).unwrap_or_default();
                Err(Fault { path: join(path, key), at_key: true, message: format!("is missing; it must be {wanted}") })
            }
            None => Ok(()),
        }
    }

    fn check_name(self, names: &[&str], value: &Value, path: &str) -> Result<(), Fault> {
        match value {
            Value::String(name) if names.contains(&name.as_str()) => Ok(()),
            Value::String(name) => {
                Err(Fault { path: path.to_owned(), at_key: false, message: unknown("value", name, names.iter().copied()) })
            }
            other => Err(fault(other, path, &one_of(names))),
        }
    }

    /// One of several forms: the fault within the form that the value comes nearest to, if its kind is that of one of them.
    fn check_branches(self, branches: &'a [Json], schema: &'a Json, value: &Value, path: &str) -> Result<(), Fault> {
        let mut nearest: Option<(usize, Fault)> = None;
        for branch in branches {
            let Err(fault) = self.check(branch, value, path) else { return Ok(()) };
            let branch = self.resolve(branch);
            let same_kind = match value {
                Value::Table(_) | Value::Array(_) => has_type(branch, type_name(value)),
                _ => self.names(branch).is_some() && value.is_str(),
            };
            let foreign = match (value, branch.get("properties").and_then(Json::as_object)) {
                (Value::Table(table), Some(properties)) => table.keys().filter(|key| !properties.contains_key(*key)).count(),
                _ => 0,
            };
            if same_kind && nearest.as_ref().is_none_or(|(fewest, _)| foreign < *fewest) {
                nearest = Some((foreign, fault));
            }
        }
        let Some((_, mut fault)) = nearest else { return Err(self.fault(schema, value, path)) };
        // Of a word that is unknown: it need not be a word.
        let number =
            branches.iter().map(|branch| self.resolve(branch)).find(|branch| has_type(branch, "integer") || has_type(branch, "number"));
        if let (Value::String(_), Some(number)) = (value, number) {
            fault.message += &format!("; or {}", self.wanted(number));
        }
        Err(fault)
    }

    fn resolve(self, schema: &'a Json) -> &'a Json {
        let mut schema = schema;
        // schemars never refers to a reference more than once; the bound keeps a foreign schema from a loop.
        for _ in 0..8 {
            let Some(reference) = schema.get("$ref").and_then(Json::as_str) else { break };
            let Some(target) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else { break };
            schema = target;
        }
        schema
    }

    /// The words of a unit enumeration.
    fn names(self, schema: &'a Json) -> Option<Vec<&'a str>> {
        if let Some(word) = schema.get("const").and_then(Json::as_str) {
            return Some(vec![word]);
        }
        if let Some(words) = schema.get("enum").and_then(Json::as_array) {
            return words.iter().map(Json::as_str).collect();
        }
        let parts = branches(schema)?;
        let names: Option<Vec<Vec<&str>>> = parts.iter().filter(|part| !is_null(part)).map(|part| self.names(self.resolve(part))).collect();
        names.map(|names| names.concat()).filter(|names| !names.is_empty())
    }

    fn fault(self, schema: &'a Json, value: &Value, path: &str) -> Fault {
        let quoted_number = matches!(value, Value::String(text) if text.trim().parse::<f64>().is_ok())
            && (has_type(schema, "integer") || has_type(schema, "number"));
        let wanted = self.wanted(schema) + if quoted_number { ", without quotes" } else { "" };
        fault(value, path, &wanted)
    }

    /// What would be right, in words.
    fn wanted(self, schema: &'a Json) -> String {
        let schema = self.resolve(schema);
        if let Some(names) = self.names(schema) {
            return one_of(&names);
        }
        if let Some(parts) = branches(schema) {
            let wanted: Vec<String> = parts.iter().filter(|part| !is_null(part)).map(|part| self.wanted(part)).collect();
            return wanted.join(", or ");
        }
        let kinds = [
            ("integer", whole_number(schema)),
            ("number", "a number".to_owned()),
            ("string", "a string".to_owned()),
            ("boolean", "true or false".to_owned()),
            ("array", self.list(schema)),
            ("object", table_of(schema)),
        ];
        let wanted: Vec<String> = kinds.into_iter().filter(|(kind, _)| has_type(schema, kind)).map(|(_, text)| text).collect();
        wanted.join(", or ")
    }

    fn list(self, schema: &'a Json) -> String {
        schema.get("items").map_or_else(|| "a list".to_owned(), |items| format!("a list, each element {}", self.wanted(items)))
    }
}

fn fault(value: &Value, path: &str, wanted: &str) -> Fault {
    Fault { path: path.to_owned(), at_key: false, message: format!("is {}; it must be {wanted}", shown(value)) }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(" or ")
}

fn table_of(schema: &Json) -> String {
    let keys: Vec<&str> =
        schema.get("properties").and_then(Json::as_object).into_iter().flat_map(|all| all.keys()).map(String::as_str).collect();
    if keys.is_empty() { "a table".to_owned() } else { format!("a table with the keys {}", keys.join(", ")) }
}

fn branches(schema: &Json) -> Option<&[Json]> {
    ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key).and_then(Json::as_array)).map(Vec::as_slice)
}

fn is_null(schema: &Json) -> bool {
    schema.get("type").and_then(Json::as_str) == Some("null")
}

fn has_type(schema: &Json, name: &str) -> bool {
    match schema.get("type") {
        Some(Json::String(only)) => only == name,
        Some(Json::Array(several)) => several.iter().any(|one| one.as_str() == Some(name)),
        _ => false,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::String(_) | Value::Datetime(_) => "string",
        Value::Integer(_) => "integer",
        Value::Float(_) => "number",
        Value::Boolean(_) => "boolean",
        Value::Array(_) => "array",
        Value::Table(_) => "object",
    }
}

/// The range that the schema states or its format implies.
fn check_range(schema: &Json, number: i64) -> Result<(), String> {
    let (least, most) = range(schema);
    match (least, most) {
        (Some(least), _) if number < least => Err(whole_number(schema)),
        (_, Some(most)) if number > most => Err(format!("{}, at most {most}", whole_number(schema))),
        _ => Ok(()),
    }
}

fn range(schema: &Json) -> (Option<i64>, Option<i64>) {
    let most = match schema.get("format").and_then(Json::as_str) {
        Some("uint32") => Some(i64::from(u32::MAX)),
        Some("uint16") => Some(i64::from(u16::MAX)),
        Some("uint8") => Some(i64::from(u8::MAX)),
        _ => None,
    };
    let stated = |key: &str| schema.get(key).and_then(Json::as_f64).map(|bound| bound as i64);
    (stated("minimum"), stated("maximum").or(most))
}

fn whole_number(schema: &Json) -> String {
    match range(schema) {
        (Some(least), Some(most)) if most < i64::from(u32::MAX) => format!("a whole number from {least} to {most}"),
        (Some(least), _) => format!("a whole number, {least} or more"),
        _ => "a whole number".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
