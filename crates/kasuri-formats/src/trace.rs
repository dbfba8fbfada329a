//! Traces of open traffic: a line for each message with its time, source, destination and size.
//!
//! ```text
//! time, source, destination, bytes
//! 0, 0, 5, 4096
//! 1.5us, host-3, host-4, 64
//! ```
//!
//! Words are separated by blanks or commas, `#` starts a comment, lines come in any order. A time is a number of cycles, or has a unit (`ns`,
//! `us`, `ms`, `s`). A first line that begins with a word names the columns, in any order: `time` (`time_ns`, … if all times have that unit),
//! `source`, `destination`, and `bytes` or `flits`; without it they are time, source, destination, bytes. Terminals are numbers or names.

use crate::error::FormatError;
use crate::text::{NotText, decode};
use crate::words::{Word, words};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Terminals;
use kasuri_workload::units::Units;
use kasuri_workload::workload::trace::Sending;

/// No time is later, in cycles: up to here every whole number is one in floating point.
const MAX_TIME: f64 = (1u64 << 53) as f64;

/// Most messages of a trace: some tens of gigabytes.
const MAX_MESSAGES: usize = 1 << 31;

/// Bytes of the longest line: a file of one line may be larger than memory.
const MAX_LINE: usize = 1 << 20;

/// Units of time and the nanoseconds of each.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Reads a trace whose bytes come in pieces, each line as soon as it is whole.
///
/// # Examples
/// ```
/// use kasuri_formats::trace::Lines;
/// use kasuri_workload::units::Units;
/// let mut lines = Lines::new("t.csv", 4.into(), Units { flit_bytes: Some(64), cycle_ns: None });
/// assert!(lines.take(b"0, 0, 1, 64\n5, 2,"));
/// assert!(lines.take(b"3, 128\n"));
/// assert_eq!(lines.finish().unwrap()[1].flits, 2);
/// ```
#[derive(Debug)]
pub struct Lines<'a> {
    name: &'a str,
    reader: Reader<'a>,
    /// The beginning of a line whose end has not come.
    open: Vec<u8>,
    /// Lines that have been read.
    lines: usize,
    /// Has a line been read that says something?
    begun: bool,
    sendings: Vec<Sending>,
    error: Option<FormatError>,
}

impl<'a> Lines<'a> {
    /// Begins a file. `name` is how messages call it.
    pub fn new(name: &'a str, terminals: Terminals<'a>, units: Units) -> Self {
        let reader = Reader { columns: Columns::default(), terminals, units };
        Self { name, reader, open: Vec::new(), lines: 0, begun: false, sendings: Vec::new(), error: None }
    }

    /// Reads on. Returns whether more is wanted: not after a line that is wrong.
    pub fn take(&mut self, mut piece: &[u8]) -> bool {
        while let Some(end) = piece.iter().position(|&byte| byte == b'\n').filter(|_| self.error.is_none()) {
            let (line, rest) = piece.split_at(end);
            if self.open.is_empty() {
                self.line(line);
            } else {
                let mut whole = std::mem::take(&mut self.open);
                whole.extend_from_slice(line);
                self.line(&whole);
            }
            piece = &rest[1..];
        }
        self.open.extend_from_slice(piece);
        if self.open.len() > MAX_LINE && self.error.is_none() {
            self.error = Some(FormatError::new(self.name, self.lines + 1, format!("is longer than {MAX_LINE} bytes; is this a trace?")));
        }
        self.error.is_none()
    }

    /// The messages, after the last piece.
    ///
    /// # Errors
    /// A line of another form, a word that is no terminal, a message from a terminal to itself, a time or size without the units that it
    /// needs, no message at all.
    pub fn finish(mut self) -> Result<Vec<Sending>, FormatError> {
        if self.error.is_none() {
            let last = std::mem::take(&mut self.open);
            self.line(&last);
        }
        match self.error {
            Some(error) => Err(error),
            None if self.sendings.is_empty() => {
                Err(FormatError::new(self.name, 1, "has no messages; a line is a time, a source, a destination and a number of bytes"))
            }
            None => Ok(self.sendings),
        }
    }

    fn line(&mut self, bytes: &[u8]) {
        self.lines += 1;
        if let Err(problem) = self.read(bytes) {
            self.error = Some(FormatError::new(self.name, self.lines, problem));
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), String> {
        // Only the first line may begin with a byte-order mark, and shows what else the file is.
        let line = match self.lines {
            1 => decode(bytes),
            _ => std::str::from_utf8(bytes).map_err(|error| NotText::Invalid { byte: error.valid_up_to() }),
        };
        let line = line.map_err(|problem| problem.to_string())?;
        let words = words(line, true)?;
        let Some(first) = words.first() else { return Ok(()) };
        if !std::mem::replace(&mut self.begun, true) && first.text.starts_with(char::is_alphabetic) {
            self.reader.columns = Columns::of(&words)?;
            return Ok(());
        }
        if self.sendings.len() == MAX_MESSAGES {
            return Err(format!("is one message too many; a trace has at most {MAX_MESSAGES}"));
        }
        self.sendings.push(self.reader.sending(&words)?);
        Ok(())
    }
}

/// Which word is what.
#[derive(Clone, Copy, Debug)]
struct Columns {
    time: usize,
    source: usize,
    destination: usize,
    size: usize,
    count: usize,
    /// Is the size in flits?
    in_flits: bool,
    /// Nanoseconds of a time without a unit; cycles if `None`.
    time_ns: Option<f64>,
}

impl Default for Columns {
    fn default() -> Self {
        Self { time: 0, source: 1, destination: 2, size: 3, count: 4, in_flits: false, time_ns: None }
    }
}

impl Columns {
    fn of(head: &[Word<'_>]) -> Result<Self, String> {
        const RIGHT: &str = "the columns are time (or time_ns, time_us, time_ms, time_s), source, destination, and bytes or flits";
        let mut columns = Self { count: head.len(), ..Self::default() };
        let mut seen = [None; 4];
        for (place, word) in head.iter().enumerate() {
            let (column, unit) = word.text.split_once('_').map_or((&*word.text, None), |(column, unit)| (column, Some(unit)));
            let ns = unit.map(|unit| TIMES.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns));
            let which = match (column, ns) {
                ("time", None) => 0,
                ("time", Some(Some(ns))) => {
                    columns.time_ns = Some(ns);
                    0
                }
                ("source", None) => 1,
                ("destination", None) => 2,
                ("bytes" | "flits", None) => {
                    columns.in_flits = column == "flits";
                    3
                }
                _ => return Err(format!("unknown column `{}`; {RIGHT}", word.text)),
            };
            if seen[which].replace(place).is_some() {
                return Err(format!("`{}` says again what another column says; {RIGHT}", word.text));
            }
        }
        let [Some(time), Some(source), Some(destination), Some(size)] = seen else { return Err(format!("leaves out a column; {RIGHT}")) };
        Ok(Self { time, source, destination, size, ..columns })
    }
}

#[derive(Debug)]
struct Reader<'a> {
    columns: Columns,
    terminals: Terminals<'a>,
    units: Units,
}

impl Reader<'_> {
    fn sending(&self, words: &[Word<'_>]) -> Result<Sending, String> {
        let Columns { time, source, destination, size, count, .. } = self.columns;
        if words.len() != count {
            let size = if self.columns.in_flits { "flits" } else { "bytes" };
            return Err(format!("has {} words; a line has {count}: time, source, destination, {size}", words.len()));
        }
        let [source, destination] = [source, destination].map(|place| self.terminals.find(&words[place].text));
        let (source, destination) = (source?, destination?);
        if source == destination {
            return Err(format!(
                "is from `{}` to itself; such a message crosses no network, so leave it out",
                words[self.columns.source].text
            ));
        }
        let (time, flits) = (self.time(&words[time].text)?, self.flits(&words[size].text)?);
        Ok(Sending { time, source: TerminalId(source), destination: TerminalId(destination), flits })
    }

    /// The first cycle that does not begin before a time.
    fn time(&self, word: &str) -> Result<u64, String> {
        let wrong = || format!("`{word}` is not a time; give cycles from 0 on, or a number with ns, us, ms or s");
        let end = word.find(|character: char| character.is_alphabetic() && !matches!(character, 'e' | 'E')).unwrap_or(word.len());
        let (number, unit) = word.split_at(end);
        let number: f64 = number.parse().ok().filter(|number| (0.0..=f64::MAX).contains(number)).ok_or_else(wrong)?;
        let ns = match unit {
            "" => self.columns.time_ns,
            unit => Some(TIMES.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1),
        };
        let cycles = match ns {
            None => number,
            Some(ns) => self.units.cycles(number * ns).ok_or_else(|| {
                format!(
                    "`{word}` is a time in {}; say how long a cycle is with network.cycle_ns",
                    if unit.is_empty() { "seconds" } else { unit }
                )
            })?,
        };
        // A quotient of decimal fractions may miss a whole number by a rounding.
        let cycle = (cycles - 1e-9 * cycles.max(1.0)).ceil().max(0.0);
        if cycle > MAX_TIME { Err(format!("`{word}` is later than 2^53 cycles")) } else { Ok(cycle as u64) }
    }

    fn flits(&self, word: &str) -> Result<u32, String> {
        let wrong = |least: u64| format!("`{word}` is not a size; give a whole number, {least} or more");
        let number: u64 = word.parse().map_err(|_| wrong(u64::from(self.columns.in_flits)))?;
        let flits = match self.columns.in_flits {
            true if number == 0 => return Err(wrong(1)),
            true => number,
            false => self.units.flits(number).ok_or(
                "has a size in bytes; say with network.flit_bytes what a flit holds, or name the column `flits` in the first line",
            )?,
        };
        u32::try_from(flits).map_err(|_| format!("`{word}` is {flits} flits; a message has at most {}", u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNITS: Units = Units { flit_bytes: Some(64), cycle_ns: Some(5.12) };

    fn parse(bytes: &[u8], piece: usize, units: Units) -> Result<Vec<Sending>, String> {
        let mut lines = Lines::new("t.csv", 4.into(), units);
        bytes.chunks(piece).all(|piece| lines.take(piece));
        lines.finish().map_err(|error| error.to_string())
    }

    fn read(text: &str, units: Units) -> Result<Vec<(u64, u32, u32, u32)>, String> {
        let sendings = parse(text.as_bytes(), 1000, units)?;
        Ok(sendings.into_iter().map(|sending| (sending.time, sending.source.0, sending.destination.0, sending.flits)).collect())
    }

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(read("0 0 1 64\n# nothing\n51.2ns,1,2,65\n1us 2 3 0\n", UNITS).unwrap(), [(0, 0, 1, 1), (10, 1, 2, 2), (196, 2, 3, 1)]);
        let named = "destination flits time_us source\n1 7 0.0512 0\n2 1 1e-3s 0\n";
        assert_eq!(read(named, UNITS).unwrap(), [(10, 0, 1, 7), (195_313, 0, 2, 1)]);
        assert_eq!(read("time source destination flits\n2.5 0 1 3\n", Units::default()).unwrap(), [(3, 0, 1, 3)]);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("0 0 1 64\n0 4 1 64\n", "t.csv:2: `4` is not a terminal; they are numbered 0 to 3"),
            ("0 0 1\n", "t.csv:1: has 3 words; a line has 4: time, source, destination, bytes"),
            ("-1 0 1 64\n", "t.csv:1: `-1` is not a time"),
            ("1h 0 1 64\n", "t.csv:1: `1h` is not a time"),
            ("0 0 1 x\n", "t.csv:1: `x` is not a size"),
            ("0 1 1 64\n", "t.csv:1: is from `1` to itself"),
            ("time source bytes\n", "t.csv:1: leaves out a column"),
            ("time source destination bytes tag\n", "t.csv:1: unknown column `tag`"),
            ("time source destination bytes flits\n", "t.csv:1: `flits` says again"),
            ("time source destination flits\n0 0 1 0\n", "t.csv:2: `0` is not a size; give a whole number, 1 or more"),
            ("# nothing\n", "t.csv:1: has no messages"),
            ("1e300 0 1 64\n", "t.csv:1: `1e300` is later"),
        ] {
            let error = read(text, UNITS).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        assert!(read("0 0 1 64\n", Units::default()).unwrap_err().contains("network.flit_bytes"));
        assert!(read("time source destination flits\n1ns 0 1 64\n", Units::default()).unwrap_err().contains("network.cycle_ns"));
        assert_eq!(parse(b"0 0 1 64\n\xff\n", 1000, UNITS).unwrap_err(), "t.csv:2: is not text in UTF-8");
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_pieces_change_nothing(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            text in "([0-9]{1,2} [0-4] [0-4] [0-9]{1,3}\n){0,5}([0-9.e\\-]{0,6}(ns|s)?[ ,]){0,5}\n?",
            piece in 1..9_usize,
        ) {
            let _ = parse(&bytes, piece, UNITS);
            prop_assert_eq!(parse(text.as_bytes(), piece, UNITS), parse(text.as_bytes(), 1000, UNITS));
        }
    }
}
