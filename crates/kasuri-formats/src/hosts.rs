//! The hosts of terminals: the file of `kasuri schedule --hosts`, and lists of terminals.
//!
//! A line is the name of a host and its terminals: `node017 12`, `node018 16-19,24`. A host may have several lines. `#` starts a comment.

use crate::error::FormatError;
use crate::text::meaningful_lines;
use kasuri_network::id::TerminalId;
use std::collections::BTreeMap;

/// More terminals than any network has are refused before they are listed.
const MAX_TERMINALS: u64 = 1 << 25;

/// The host at each terminal that has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    at: BTreeMap<TerminalId, String>,
}

impl Hosts {
    /// The terminals at which there are hosts, ascending.
    pub fn terminals(&self) -> impl Iterator<Item = TerminalId> + '_ {
        self.at.keys().copied()
    }

    /// The host at a terminal.
    pub fn at(&self, terminal: TerminalId) -> Option<&str> {
        self.at.get(&terminal).map(String::as_str)
    }
}

/// Reads the hosts of a network of `terminals` terminals.
///
/// # Errors
/// A line of another form, a terminal that the network does not have, or one that has two hosts.
pub fn parse(name: &str, bytes: &[u8], terminals: u32) -> Result<Hosts, FormatError> {
    let mut at: BTreeMap<TerminalId, String> = BTreeMap::new();
    for (number, line) in meaningful_lines(name, bytes)? {
        let error = |problem: String| FormatError::new(name, number, problem);
        let Some((host, list)) = line.split_once(char::is_whitespace) else {
            return Err(error(format!(
                "`{line}` has no terminal; a line is a host and its terminals, such as `node017 12` or `node018 16-19`"
            )));
        };
        for terminal in parse_terminals(list).map_err(error)? {
            if terminal.0 >= terminals {
                let last = terminals.saturating_sub(1);
                return Err(error(format!("puts `{host}` at terminal {terminal}; the network's are 0 to {last}")));
            }
            if let Some(other) = at.insert(terminal, host.to_owned()) {
                return Err(error(format!("puts `{host}` at terminal {terminal}, where `{other}` is already")));
            }
        }
    }
    Ok(Hosts { at })
}

/// Reads a list of terminals: numbers and ranges, `0-7,16`.
///
/// # Errors
/// What is neither, and a range that ends before it begins or is longer than any network.
pub fn parse_terminals(text: &str) -> Result<Vec<TerminalId>, String> {
    let mut terminals = Vec::new();
    for part in text.split(',') {
        let number =
            |digits: &str| digits.trim().parse::<u32>().map_err(|_| format!("invalid terminal or range `{part}`; expected e.g. 7 or 0-7"));
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(format!("`{part}` ends before it begins"));
        }
        if u64::from(last - first) + terminals.len() as u64 >= MAX_TERMINALS {
            return Err(format!("`{part}` is too long; the limit is {MAX_TERMINALS} terminals"));
        }
        terminals.extend((first..=last).map(TerminalId));
    }
    Ok(terminals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_terminals_are_numbers_and_ranges() {
        let list = |text: &str| parse_terminals(text).map(|list| list.iter().map(|terminal| terminal.0).collect::<Vec<_>>());
        assert_eq!(list("3"), Ok(vec![3]));
        assert_eq!(list("0-2, 7,9-9"), Ok(vec![0, 1, 2, 7, 9]));
        for wrong in ["", "a", "3-1", "1-", "-1", "0-4294967295"] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_has_the_terminals_of_its_lines() {
        let hosts = parse("h.txt", b"# rack 1\nb 4-5\na\t0 # first\n\nb 2\n", 6).unwrap();
        let listed: Vec<_> = hosts.terminals().map(|terminal| (terminal.0, hosts.at(terminal).unwrap())).collect();
        assert_eq!(listed, [(0, "a"), (2, "b"), (4, "b"), (5, "b")]);
        assert_eq!(hosts.at(TerminalId(1)), None);
    }

    #[test]
    fn errors_name_the_line_and_what_would_be_right() {
        for (text, expected) in [
            ("a 0\nb\n", "h.txt:2: `b` has no terminal; a line is a host and its terminals"),
            ("a x\n", "h.txt:1: invalid terminal or range `x`"),
            ("a 3-6\n", "h.txt:1: puts `a` at terminal 6; the network's are 0 to 5"),
            ("a 0-1\nb 1\n", "h.txt:2: puts `b` at terminal 1, where `a` is already"),
        ] {
            let error = parse("h.txt", text.as_bytes(), 6).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
