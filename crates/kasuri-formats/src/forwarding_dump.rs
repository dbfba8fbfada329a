//! Forwarding tables of switches as `dump_lfts`, `dump_fts`, `ibroute` and OpenSM (`opensm-lfts.dump`) print them.
//!
//! ```text
//! Unicast lids [0x0-0x30] of switch Lid 2 guid 0x0002c90000001000 (leaf 0):
//!   Lid  Out   Destination
//!        Port     Info
//! 0x0001 005 : (Channel Adapter portguid 0x0002c90300001001: 'node1 HCA-1')
//! 1 valid lids dumped
//! ```
//!
//! OpenSM writes `#` for `:` and no titles; `ibroute -n` leaves out what stands behind the port; instead of `Lid 2` a directed path may
//! stand. LIDs are hexadecimal, ports decimal; 255 is no path. Tables of multicast are passed over. A switch's table ends with the number of
//! its rows (OpenSM counts LIDs without a path, too, which have no row); where `ibroute` failed in the middle its message stands instead, and
//! the table is taken as far as it goes; warnings of the tools (`ibwarn: …`) may be anywhere. Source: rdma-core 44,
//! `infiniband-diags/ibroute.c`; OpenSM 3.3, `osm_dump.c`.

use crate::discovery::{MAX_LID, hexadecimal};
use crate::error::FormatError;
use crate::text::text_of;
use crate::tool_messages::is_message;

/// A piece of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// The table of this switch begins.
    Switch {
        /// Its GUID.
        guid: u64,
        /// Its description.
        name: &'a str,
    },
    /// A row of it.
    Row(Row),
    /// The tool that wrote it failed before the end.
    Failed,
}

/// Where packets to a LID leave the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The destination.
    pub lid: u32,
    /// The port: 0 is the switch itself, 255 none.
    pub port: u16,
    /// The GUID of the port that has the LID, where it is told.
    pub port_guid: Option<u64>,
}

/// Gives all tables of a dump to `take`, row by row. `name` is the file's name for messages.
///
/// # Errors
/// A line of another form; a table without its number of rows, or with another; what `take` refuses, with its line.
pub fn parse<'a>(name: &str, bytes: &'a [u8], take: &mut dyn FnMut(Item<'a>) -> Result<(), String>) -> Result<(), FormatError> {
    let mut state = State::Outside;
    let mut last = 1;
    for (index, line) in text_of(name, bytes)?.lines().enumerate() {
        last = index + 1;
        let error = |problem: String| FormatError::new(name, index + 1, problem);
        let text = line.trim();
        if let Some(rest) = text.strip_prefix("0x") {
            match &mut state {
                State::Table { rows, .. } => {
                    *rows += 1;
                    take(Item::Row(row(rest).ok_or_else(|| error(wrong_row(text)))?)).map_err(error)?;
                }
                State::Multicast => {}
                State::Outside => return Err(error(format!("`{}` is a row outside of any table", shown(text)))),
            }
        } else if text.starts_with("Unicast lids") {
            if state.check_ended().map_err(error)? {
                take(Item::Failed).map_err(error)?;
            }
            let (guid, name) = switch(text).ok_or_else(|| error(format!("`{}` names no switch: guid 0x… is missing", shown(text))))?;
            take(Item::Switch { guid, name }).map_err(error)?;
            state = State::Table { line: index + 1, rows: 0, warned: false };
        } else if text.starts_with("Multicast mlids") {
            if state.check_ended().map_err(error)? {
                take(Item::Failed).map_err(error)?;
            }
            state = State::Multicast;
        } else if let Some(count) = text.strip_suffix("lids dumped") {
            state.end(count).map_err(error)?;
        } else if is_failure(text) {
            if let State::Table { .. } = state {
                take(Item::Failed).map_err(error)?;
                state = State::Outside;
            }
        } else if is_message(text) {
            // The tool continues; if the table then has no end, the tool could not finish it.
            if let State::Table { warned, .. } = &mut state {
                *warned = true;
            }
        } else if !is_title(text) && !matches!(state, State::Multicast) {
            return Err(error(format!(
                "`{}` is neither the head of a table (Unicast lids …), nor a row of one (0x0001 005 …)",
                shown(text)
            )));
        }
    }
    let error = |problem: String| FormatError::new(name, last, problem);
    match state.check_ended().map_err(error)? {
        true => take(Item::Failed).map_err(error),
        false => Ok(()),
    }
}

/// The place of a line in a dump.
enum State {
    Outside,
    Multicast,
    /// `warned`: the tool has printed a warning.
    Table {
        line: usize,
        rows: u64,
        warned: bool,
    },
}

impl State {
    /// Checks that no table is open at the head of the next one or at the end of the file; `true` if one is, but after a warning.
    fn check_ended(&self) -> Result<bool, String> {
        match self {
            Self::Table { warned: true, .. } => Ok(true),
            Self::Table { line, rows, .. } => Err(format!(
                "the table that begins in line {line} ends after {rows} rows without saying how many it has (`… lids dumped`); was the dump \
                 cut short?"
            )),
            _ => Ok(false),
        }
    }

    fn end(&mut self, count: &str) -> Result<(), String> {
        if let Self::Table { line, rows, .. } = self {
            let said = count.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
            // OpenSM counts LIDs without a path, too, for which it prints no row; `ibroute` says `valid` and counts rows.
            let is_right = if count.contains("valid") { said == Some(*rows) } else { said >= Some(*rows) };
            if !is_right {
                return Err(format!("says `{} lids dumped`, but the table that begins in line {line} has {rows} rows", count.trim()));
            }
        }
        *self = Self::Outside;
        Ok(())
    }
}

/// Whether a tool gives up the table with this message.
fn is_failure(text: &str) -> bool {
    ["iberror", "SubnGet"].iter().any(|word| text.contains(word)) || text.contains("failed") && !is_message(text)
}

fn is_title(text: &str) -> bool {
    text.is_empty() || text.starts_with('#') || ["Lid", "LID", "Port"].iter().any(|title| text.starts_with(title))
}

fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

fn wrong_row(text: &str) -> String {
    format!("invalid row `{}`; expected a LID and a port, e.g. 0x0001 005; was the dump cut short?", shown(text))
}

/// GUID and name in `Unicast lids [0x0-0x30] of switch Lid 2 guid 0x0002c90000001000 (leaf 0):`.
fn switch(text: &str) -> Option<(u64, &str)> {
    let (_, rest) = text.split_once("guid ")?;
    let (guid, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = name.trim().trim_end_matches(':').trim_start_matches('(').trim_end_matches(')').trim_matches('\'');
    Some((hexadecimal(guid.trim_end_matches(':'))?, name))
}

/// `0001 005 : (Channel Adapter portguid 0x0002c90300001001: 'node1 HCA-1')`, without its `0x`.
fn row(text: &str) -> Option<Row> {
    let (lid, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let (port, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let lid = u32::try_from(hexadecimal(lid)?).ok().filter(|&lid| lid <= MAX_LID)?;
    let port: u16 = port.parse().ok().filter(|&port| port <= 255)?;
    let port_guid = after.split_once("portguid 0x").and_then(|(_, text)| hexadecimal(text.split(':').next()?.trim()));
    Some(Row { lid, port, port_guid })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "Unicast lids [0x0-0x3] of switch DR path slid 0; dlid 0; 0,1,3 guid 0x0002c900000010a0 (T2 (2)):\n  Lid  Out   Destination\n\
        \x20      Port     Info \n0x0001 010 : (Channel Adapter portguid 0x0002c90300001001: 'h0')\n0x0002 000 : (Switch portguid 0x2: 'T2')\n\
        0x0003 255\n3 valid lids dumped \nMulticast mlids [0xc000-0xc3ff] of switch Lid 2 guid 0x2 (x):\n 0xc000    x\n1 valid mlids dumped\n\
        Unicast lids [0-3] of switch Lid 2 guid 0x0000000000000002 ('T3'):\n0x0001 001 # Channel Adapter portguid 0x01: 'h0'\n1 lids dumped\n\
        Unicast lids [0x0-0x9] of switch Lid 3 guid 0x03 (x):\n0x0001 001 : ()\n/usr/sbin/ibroute: iberror: failed: dump tables: x\n";

    fn items(text: &str) -> Result<Vec<Item<'_>>, FormatError> {
        let mut items = Vec::new();
        parse("d", text.as_bytes(), &mut |item| {
            items.push(item);
            Ok(())
        })?;
        Ok(items)
    }

    #[test]
    fn both_forms_are_read() {
        let row = |lid, port, port_guid| Item::Row(Row { lid, port, port_guid });
        let expected = [
            Item::Switch { guid: 0x0002_c900_0000_10a0, name: "T2 (2" },
            row(1, 10, Some(0x0002_c903_0000_1001)),
            row(2, 0, Some(2)),
            row(3, 255, None),
            Item::Switch { guid: 2, name: "T3" },
            row(1, 1, Some(1)),
            Item::Switch { guid: 3, name: "x" },
            row(1, 1, None),
            Item::Failed,
        ];
        assert_eq!(items(DUMP).unwrap(), expected);
    }

    /// A warning within a table changes nothing; a table without an end after a warning is incomplete.
    #[test]
    fn warnings_within_tables_are_skipped() {
        let warning = "ibwarn: [7] mad_rpc: _do_madrpc failed; dport (Lid 3)\n";
        assert_eq!(items(&DUMP.replacen("0x0002 000", &format!("{warning}0x0002 000"), 1)).unwrap(), items(DUMP).unwrap());
        let left = DUMP.replacen("3 valid lids dumped \n", warning, 1);
        let mut expected = items(DUMP).unwrap();
        expected.insert(4, Item::Failed);
        assert_eq!(items(&left).unwrap(), expected);
    }

    #[test]
    fn a_dump_that_was_cut_short_is_refused() {
        for (old, new, expected) in [
            (
                "3 valid lids dumped",
                "4 valid lids dumped",
                "d:7: says `4 valid lids dumped`, but the table that begins in line 1 has 3 rows",
            ),
            ("1 lids dumped\n", "", "d:13: the table that begins in line 11 ends after 1 rows"),
            ("/usr/sbin/ibroute: iberror: failed: dump tables: x\n", "", "d:15: the table that begins in line 14 ends after 1 rows"),
            ("'T3'):\n", "'T3'):\n0x0002 001\n", "d:14: says `1 lids dumped`, but the table that begins in line 11 has 2 rows"),
            ("0x0003 255", "0x0003", "d:6: invalid row `0x0003`"),
            ("0x0003 255", "0x0003 256", "d:6: invalid row `0x0003 256`"),
            ("Unicast lids [0x0-0x3]", "lids [0x0-0x3]", "d:1: `lids [0x0-0x3]"),
            ("guid 0x0002c900000010a0", "", "d:1: `Unicast lids"),
        ] {
            let error = items(&DUMP.replacen(old, new, 1)).unwrap_err().to_string();
            assert!(error.contains(expected), "{new:?}: {error}");
        }
    }
}
