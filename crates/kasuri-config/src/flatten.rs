//! `[sweep]` and its cases with a whole dotted key in each line, however they are nested.

use super::point::CASE;
use toml::{Table, Value};

/// Makes `traffic.load = …` and `[sweep.traffic]` in `[sweep]` the same as `"traffic.load" = …`.
///
/// # Errors
/// A key that is there twice.
pub(super) fn flatten(nested: Table, prefix: &str, flat: &mut Table) -> Result<(), String> {
    for (key, value) in nested {
        let path = format!("{prefix}{key}");
        match value {
            Value::Table(inner) if !is_range(&inner) => flatten(inner, &format!("{path}."), flat)?,
            other => {
                if flat.insert(path.clone(), other).is_some() {
                    return Err(path);
                }
            }
        }
    }
    Ok(())
}

/// `{ from, to, step }`, possibly with a mistake in it. No section has a key of these names.
pub(super) fn is_range(table: &Table) -> bool {
    table.is_empty() || ["from", "to", "step"].iter().any(|key| table.contains_key(*key))
}

/// Gives each key of each case its whole dotted name, as `[sweep]` itself has them.
///
/// # Errors
/// The path of a key that is set twice.
pub(super) fn flatten_cases(cases: &mut Value) -> Result<(), String> {
    for (number, case) in cases.as_array_mut().into_iter().flatten().enumerate() {
        let Value::Table(nested) = case else { continue };
        let mut flat = Table::new();
        flatten_case(std::mem::take(nested), "", &mut flat).map_err(|key| format!("sweep.{CASE}.{number}.{key}"))?;
        *nested = flat;
    }
    Ok(())
}

fn flatten_case(nested: Table, prefix: &str, flat: &mut Table) -> Result<(), String> {
    for (key, value) in nested {
        let path = format!("{prefix}{key}");
        match value {
            // An empty table changes nothing.
            Value::Table(inner) if inner.is_empty() || !is_range(&inner) => flatten_case(inner, &format!("{path}."), flat)?,
            other => {
                if flat.insert(path.clone(), other).is_some() {
                    return Err(path);
                }
            }
        }
    }
    Ok(())
}
