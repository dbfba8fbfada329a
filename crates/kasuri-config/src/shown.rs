//! Values of TOML in messages.

use toml::Value;

/// A value as the file would have it, shortened, with its kind where that is not plain to see.
pub(crate) fn shown(value: &Value) -> String {
    let text = match value {
        Value::Array(values) if values.len() > 100 => format!("[{}, …]", values[..20].iter().map(compact).collect::<Vec<_>>().join(", ")),
        Value::Table(_) | Value::Array(_) => compact(value),
        other => other.to_string(),
    };
    let short: String = text.chars().take(60).collect();
    let short = if short.len() < text.len() { format!("{short}…") } else { short };
    match value {
        Value::String(_) => format!("{short}, a string"),
        Value::Boolean(_) => format!("{short}, a truth value"),
        Value::Datetime(_) => format!("{short}, a date"),
        Value::Table(_) => format!("{short}, a table"),
        Value::Array(_) => format!("{short}, a list"),
        Value::Integer(_) | Value::Float(_) => short,
    }
}

/// One line of TOML for any value.
pub(crate) fn compact(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(compact).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let pairs: Vec<String> = table.iter().map(|(key, value)| format!("{key} = {}", compact(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        other => other.to_string(),
    }
}
