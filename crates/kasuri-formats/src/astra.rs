//! ASTRA-sim's files: the network (`.yml`), the system (`.json`), communicator groups (`.json`).

mod groups;
mod network;
mod system;

pub use groups::groups;
pub use network::{custom_nodes, network};
pub use system::system;

use crate::error::FormatError;
use serde_json::{Map, Value};

/// The object that a JSON file holds.
fn object(name: &str, bytes: &[u8], what: &str) -> Result<Map<String, Value>, FormatError> {
    let text = crate::text::text_of(name, bytes)?;
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(FormatError::new(name, 1, format!("expected an object; {what} is written {{\"key\": value, …}}"))),
        Err(error) => Err(FormatError::new(name, error.line().max(1), format!("invalid JSON: {error}")).in_column(error.column().max(1))),
    }
}

/// The line of the first mention of a key; 1 if there is none.
fn line_of(bytes: &[u8], key: &str) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let quoted = format!("\"{key}\"");
    text.find(&quoted).map_or(1, |position| 1 + text[..position].bytes().filter(|&byte| byte == b'\n').count())
}

/// A value as a message shows it, cut short.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    let short: String = text.chars().take(60).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests;
