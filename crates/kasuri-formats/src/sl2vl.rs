//! How switches map service levels to virtual lanes: OpenSM's `opensm-sl2vl.dump`.
//!
//! ```text
//! Switch 0x0002c90000001000, base LID 2, "leaf 0"
//! #in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
//! 0   1   : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  7
//! ```
//!
//! A row for each input and output port; lane 15 drops the packet. Adapters have rows, too, which are passed over. Source: OpenSM 3.3.

use crate::discovery::{MAX_PORT, hexadecimal};
use crate::error::FormatError;
use crate::text::text_of;
use kasuri_network::network::tables::SERVICE_LEVELS;

/// A piece of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// The rows of the node of this GUID begin; is it a switch?
    Node(u64, bool),
    /// Input port, output port, and the virtual lane of each service level.
    Row(u16, u16, [u8; SERVICE_LEVELS]),
}

/// Gives all rows to `take`. `name` is the file's name for messages.
///
/// # Errors
/// A line of another form, a lane above 15, what `take` refuses, with its line.
pub fn parse(name: &str, bytes: &[u8], take: &mut dyn FnMut(Item) -> Result<(), String>) -> Result<(), FormatError> {
    let mut has_node = false;
    for (index, line) in text_of(name, bytes)?.lines().enumerate() {
        let error = |problem: String| FormatError::new(name, index + 1, problem);
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if let Some(guid) = text.split_once("0x").filter(|_| text.contains(", base LID")) {
            let digits = guid.1.split(',').next().unwrap_or_default();
            let guid = hexadecimal(digits).ok_or_else(|| error(format!("invalid GUID `0x{digits}`; expected e.g. 0x2c90300001000")))?;
            take(Item::Node(guid, text.starts_with("Switch"))).map_err(error)?;
            has_node = true;
            continue;
        }
        let row = row(text).filter(|_| has_node);
        let wrong = || {
            let shown: String = text.chars().take(60).collect();
            error(format!(
                "invalid row `{shown}`; expected input port, output port, `:` and 16 virtual lanes, below a line Switch 0x…, base LID …"
            ))
        };
        take(row.ok_or_else(wrong)?).map_err(error)?;
    }
    Ok(())
}

fn row(text: &str) -> Option<Item> {
    let (ports, lanes) = text.split_once(':')?;
    let ports: Vec<u16> = ports.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let lanes: Vec<u8> = lanes.split_whitespace().map(|word| word.parse().ok().filter(|&lane| lane <= 15)).collect::<Option<_>>()?;
    let (&[input, output], Ok(lanes)) = (ports.as_slice(), <[u8; SERVICE_LEVELS]>::try_from(lanes)) else { return None };
    (u32::from(input.max(output)) <= MAX_PORT).then_some(Item::Row(input, output, lanes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_belong_to_the_switch_above_them() {
        let text = "Switch 0x02c9, base LID 2, \"T\"\n#in out : 0 1\n0   1   : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  15\n";
        let mut items = Vec::new();
        parse("s", text.as_bytes(), &mut |item| {
            items.push(item);
            Ok(())
        })
        .unwrap();
        assert_eq!(items, [Item::Node(0x2c9, true), Item::Row(0, 1, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 15])]);
        for (old, new) in [(" 15\n", "\n"), (" 15\n", " 16\n"), ("0   1 ", "0 "), ("Switch 0x02c9, base LID 2, \"T\"\n", "")] {
            let error = parse("s", text.replacen(old, new, 1).as_bytes(), &mut |_| Ok(())).unwrap_err().to_string();
            assert!(error.starts_with("s:") && error.contains("invalid row"), "{error}");
        }
    }
}
