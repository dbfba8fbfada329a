//! The service levels that a subnet administrator gives: a line for each source and destination.
//!
//! `SOURCE_LID DESTINATION_LID LEVEL`, or with the GUID of the source's node for its LID, as `ibdmchk -c` reads them. Numbers are decimal,
//! or hexadecimal after `0x`; a source of more than six digits after `0x` is a GUID. Blanks or commas part them; `#` starts a comment.

use crate::discovery::{MAX_LID, hexadecimal};
use crate::error::FormatError;
use crate::text::meaningful_lines;
use kasuri_network::network::tables::SERVICE_LEVELS;

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Who sends.
    pub source: Source,
    /// To which LID.
    pub destination: u32,
    /// The service level, 0 to 15.
    pub level: u8,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The port of this LID.
    Lid(u32),
    /// All ports of the node of this GUID.
    Guid(u64),
}

/// Digits of a LID, at most.
const LID_DIGITS: usize = 6;

/// Gives all lines to `take`. `name` is the file's name for messages.
///
/// # Errors
/// A line of another form, a level above 15, what `take` refuses, with its line.
pub fn parse(name: &str, bytes: &[u8], take: &mut dyn FnMut(Level) -> Result<(), String>) -> Result<(), FormatError> {
    for (number, line) in meaningful_lines(name, bytes)? {
        let error = |problem: String| FormatError::new(name, number, problem);
        let level = level(line);
        let wrong =
            || error(format!("`{line}` gives no service level; a line is source LID (or node GUID), destination LID, level 0 to 15"));
        take(level.ok_or_else(wrong)?).map_err(error)?;
    }
    Ok(())
}

/// Does this line look like one of such a file?
pub(crate) fn is_level(line: &str) -> bool {
    level(line).is_some()
}

fn level(line: &str) -> Option<Level> {
    let words: Vec<&str> = line.split([',', ' ', '\t']).filter(|word| !word.is_empty()).collect();
    let &[source, destination, level] = words.as_slice() else { return None };
    let source = match source.strip_prefix("0x") {
        Some(digits) if digits.len() > LID_DIGITS => Source::Guid(hexadecimal(source)?),
        _ => Source::Lid(lid(source)?),
    };
    let level = level.parse().ok().filter(|&level| usize::from(level) < SERVICE_LEVELS)?;
    Some(Level { source, destination: lid(destination)?, level })
}

fn lid(word: &str) -> Option<u32> {
    let number = if word.starts_with("0x") { hexadecimal(word)? } else { word.parse().ok()? };
    u32::try_from(number).ok().filter(|&lid| lid <= MAX_LID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_lids_or_guids() {
        let mut levels = Vec::new();
        parse("l", b"1 0x10 3 # first\n0x0002c90300001000,17,15\n", &mut |level| {
            levels.push(level);
            Ok(())
        })
        .unwrap();
        let guid = Source::Guid(0x0002_c903_0000_1000);
        assert_eq!(
            levels,
            [Level { source: Source::Lid(1), destination: 16, level: 3 }, Level { source: guid, destination: 17, level: 15 }]
        );
        for wrong in ["1 2", "1 2 16", "a 2 3", "1 2 3 4", "1 0x1000000 3"] {
            let error = parse("l", wrong.as_bytes(), &mut |_| Ok(())).unwrap_err().to_string();
            assert!(error.starts_with("l:1: ") && error.contains("gives no service level"), "{error}");
        }
    }
}
