//! Dotted keys: `traffic.class.0.load`, where numbers are positions in lists.

use super::shown::shown;
use toml::{Table, Value};

/// The most parts of a dotted key: tables in tables are read and dropped by functions that call themselves.
pub(super) const MAX_DEPTH: usize = 32;

/// Where a dotted key begins that has more parts than [`MAX_DEPTH`], if there is one. Numbers and versions in a text have fewer.
pub(super) fn deep_key(text: &str) -> Option<usize> {
    let (mut begin, mut dots, mut after_dot) = (0, 0, true);
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            b'.' if !after_dot => (dots, after_dot) = (dots + 1, true),
            b' ' | b'\t' => {}
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => after_dot = false,
            _ => (begin, dots, after_dot) = (offset + 1, 0, true),
        }
        if dots > MAX_DEPTH {
            return Some(begin);
        }
    }
    None
}

/// Puts a value at a dotted path; missing tables are made, numbers are positions in lists.
pub(super) fn assign(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    if path.bytes().filter(|&byte| byte == b'.').count() > MAX_DEPTH {
        return Err(format!("is a key of more than {MAX_DEPTH} parts; those of an experiment have at most six"));
    }
    assign_part(table, path, value)
}

fn assign_part(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    if name.is_empty() {
        return Err(format!("`{path}` has an empty part; write a dotted key such as traffic.load"));
    }
    let Some(rest) = rest else {
        table.insert(name.to_owned(), value);
        return Ok(());
    };
    let inner = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
    assign_within(inner, name, rest, value)
}

fn assign_within(container: &mut Value, name: &str, path: &str, value: Value) -> Result<(), String> {
    match container {
        Value::Table(table) => assign_part(table, path, value),
        Value::Array(elements) => {
            let (position, rest) = path.split_once('.').map_or((path, None), |(position, rest)| (position, Some(rest)));
            let length = elements.len();
            let element = position.parse::<usize>().ok().and_then(|position| elements.get_mut(position));
            let element =
                element.ok_or_else(|| format!("invalid position `{position}` in the list `{name}` of {length}; the first is 0"))?;
            match rest {
                Some(rest) => assign_within(element, position, rest, value),
                None => {
                    *element = value;
                    Ok(())
                }
            }
        }
        other => Err(format!("`{name}` is {}; it has no key `{path}`", shown(other))),
    }
}

/// Is `path` this key or something in it?
pub(super) fn is_within(path: &str, key: &str) -> bool {
    path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The value of a dotted key; numbers are positions in lists.
pub(super) fn at_mut<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Value> {
    let mut parts = key.split('.');
    let mut value = table.get_mut(parts.next()?)?;
    for part in parts {
        value = match value {
            Value::Table(table) => table.get_mut(part)?,
            Value::Array(elements) => elements.get_mut(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}
