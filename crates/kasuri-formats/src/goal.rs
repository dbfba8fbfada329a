//! GOAL, the text form of LogGOPSim's schedules: reader and writer.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! l1: calc 1000               // nanoseconds
//! l2: send 65536b to 1 tag 7
//! l2 requires l1
//! }
//! rank 1 {
//! l1: recv 65536b from 0 tag 7
//! }
//! ```
//! The grammar and what Kasuri makes of it stand in `docs/reference/file-formats.md`. Source: Hoefler, Siebert and Lumsdaine, Group
//! Operation Assembly Language, ICPP 2009; the text reader of LogGOPSim 2.

use crate::error::FormatError;
use crate::text::{NotText, decode};
use kasuri_workload::workload::program::{Dependency, Description, Kind, MAX_OPERATIONS, Operation};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Reads a program.
///
/// # Errors
/// The first thing that is not GOAL, or that Kasuri does not simulate, with its line and column and what would be right there.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Description, FormatError> {
    let text = decode(bytes).map_err(|problem| match problem {
        NotText::Invalid { byte } => {
            let before = decode(&bytes[..byte]).unwrap_or_default();
            let place = Place::behind(before);
            FormatError::new(name, place.line, format!("{problem}, and does not begin as the binary form of GOAL does"))
                .in_column(place.column(before))
        }
        _ => FormatError::new(name, 1, problem.to_string()),
    })?;
    let mut parser = Parser { name, words: Words::new(text), ranks: 0, blocks: BTreeMap::new() };
    parser.program()?;
    parser.description()
}

/// Writes a program. Reading the text gives the same operations and dependencies.
pub fn write(description: &Description) -> String {
    let mut text = format!("num_ranks {}\n", description.ranks);
    let mut dependencies = description.dependencies.clone();
    dependencies.sort_by_key(|dependency| dependency.operation);
    let (mut next, mut waiting) = (0, dependencies.iter().peekable());
    for rank in 0..description.ranks {
        let first = next;
        let label = |operation: u32| format!("l{}", operation as usize - first + 1);
        let _ = writeln!(text, "\nrank {rank} {{");
        while let Some(operation) = description.operations.get(next).filter(|operation| operation.rank == rank) {
            let nic = description.interfaces.get(&(next as u32)).map_or(String::new(), |interface| format!(" nic {interface}"));
            let _ = writeln!(text, "{}: {}{nic}", label(next as u32), statement(operation));
            while let Some(dependency) = waiting.next_if(|dependency| dependency.operation as usize == next) {
                let verb = if dependency.on_start { "irequires" } else { "requires" };
                let _ = writeln!(text, "{} {verb} {}", label(dependency.operation), label(dependency.on));
            }
            next += 1;
        }
        text.push_str("}\n");
    }
    text
}

fn statement(operation: &Operation) -> String {
    let what = match operation.kind {
        Kind::Send { to, bytes, tag } => format!("send {bytes}b to {to} tag {tag}"),
        Kind::Receive { from, bytes, tag } => format!("recv {bytes}b from {from} tag {tag}"),
        Kind::Compute { ns } => format!("calc {ns}"),
    };
    if operation.cpu == 0 { what } else { format!("{what} cpu {}", operation.cpu) }
}

/// Operations of Portals 4 in LogGOPSim 2.
const PORTALS: [&str; 7] = ["put", "get", "append", "tput", "tget", "tappend", "test"];

/// The place of a word.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The line, from 1.
    line: usize,
    /// The byte with which the line begins, and the word.
    start: usize,
    at: usize,
}

impl Place {
    /// The place behind a text.
    fn behind(before: &str) -> Self {
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        Self { line, start: before.rfind('\n').map_or(0, |position| position + 1), at: before.len() }
    }

    /// The column, from 1, in characters.
    fn column(self, text: &str) -> usize {
        1 + text.get(self.start..self.at).map_or(0, |before| before.chars().count())
    }
}

/// A word of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word<'a> {
    /// A name: letters, digits and `_`.
    Name(&'a str),
    /// Digits.
    Number(&'a str),
    /// `{`, `}`, `:` or what does not belong here.
    Sign(&'a str),
    End,
}

impl Word<'_> {
    /// The word as a message shows it.
    fn shown(self) -> String {
        match self {
            Word::End => "the end of the file".to_owned(),
            Word::Name(text) | Word::Number(text) | Word::Sign(text) => {
                let short: String = text.chars().take(40).collect();
                format!("`{short}`")
            }
        }
    }
}

/// Cuts the text into words.
#[derive(Clone, Copy)]
struct Words<'a> {
    text: &'a str,
    /// Where the rest begins.
    place: Place,
    /// A comment that is not closed begins here.
    open_comment: Option<Place>,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, place: Place { line: 1, start: 0, at: 0 }, open_comment: None }
    }

    fn next(&mut self) -> (Word<'a>, Place) {
        self.skip();
        let place = self.place;
        let rest = self.text.get(place.at..).unwrap_or_default();
        let Some(first) = rest.chars().next() else { return (Word::End, place) };
        let length = |wanted: fn(&u8) -> bool| rest.bytes().position(|byte| !wanted(&byte)).unwrap_or(rest.len());
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let (length, word): (usize, fn(&'a str) -> Word<'a>) = match first {
            '0'..='9' => (length(u8::is_ascii_digit), Word::Number),
            'a'..='z' | 'A'..='Z' | '_' => (length(is_name), Word::Name),
            first => (first.len_utf8(), Word::Sign),
        };
        self.place.at += length;
        (word(&rest[..length]), place)
    }

    /// Goes over blanks and comments.
    fn skip(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.place.at) {
            let next = bytes.get(self.place.at + 1);
            match (byte, next) {
                (b'\n' | b' ' | b'\t' | b'\r', _) => self.step(),
                (b'/', Some(b'/')) => {
                    while bytes.get(self.place.at).is_some_and(|&byte| byte != b'\n') {
                        self.place.at += 1;
                    }
                }
                (b'/', Some(b'*')) => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// `/*` up to `*/`.
    fn skip_comment(&mut self) {
        let begin = self.place;
        self.place.at += 2;
        while !self.text.as_bytes()[self.place.at..].starts_with(b"*/") {
            if self.place.at == self.text.len() {
                self.open_comment = Some(begin);
                return;
            }
            self.step();
        }
        self.place.at += 2;
    }

    /// Goes over one byte.
    fn step(&mut self) {
        self.place.at += 1;
        if self.text.as_bytes()[self.place.at - 1] == b'\n' {
            self.place = Place { line: self.place.line + 1, start: self.place.at, at: self.place.at };
        }
    }
}

/// The block of a rank.
#[derive(Debug, Default)]
struct Block {
    operations: Vec<Operation>,
    /// Positions within the block.
    dependencies: Vec<Dependency>,
    /// Positions within the block, and the network interfaces of these.
    interfaces: Vec<(u32, u32)>,
}

struct Parser<'a> {
    name: &'a str,
    words: Words<'a>,
    ranks: u32,
    blocks: BTreeMap<u32, Block>,
}

/// A line `label requires label`, before all labels are known.
struct Wait<'a> {
    operation: (&'a str, Place),
    on: (&'a str, Place),
    on_start: bool,
}

impl<'a> Parser<'a> {
    fn program(&mut self) -> Result<(), FormatError> {
        self.keyword("num_ranks", "`num_ranks` and a number, with which a GOAL program begins")?;
        let place = self.place();
        self.ranks = self.number("the number of ranks")?;
        if self.ranks == 0 {
            return Err(self.error(place, "is a program of 0 ranks; it needs at least 1"));
        }
        loop {
            match self.words.next() {
                (Word::End, place) => return self.complete(place),
                (Word::Name("rank"), _) => self.block()?,
                (word, place) => return Err(self.expected(word, place, "`rank` and its number")),
            }
        }
    }

    /// All ranks have a block.
    fn complete(&self, end: Place) -> Result<(), FormatError> {
        self.check_comment()?;
        let missing = (0..self.ranks).zip(self.blocks.keys()).find(|(wanted, present)| wanted != *present).map(|(wanted, _)| wanted);
        let missing = missing.or_else(|| (self.blocks.len() < self.ranks as usize).then_some(self.blocks.len() as u32));
        match missing {
            None => Ok(()),
            Some(rank) => {
                let problem = format!(
                    "the file ends without rank {rank} of {}; is it cut off? A rank that does nothing is written `rank {rank} {{ }}`",
                    self.ranks
                );
                Err(self.error(end, problem))
            }
        }
    }

    /// `rank` has been read: its number and its statements.
    fn block(&mut self) -> Result<(), FormatError> {
        let place = self.place();
        let rank: u32 = self.number("the number of a rank")?;
        self.check_rank(rank, place)?;
        if self.blocks.contains_key(&rank) {
            return Err(self.error(place, format!("duplicate block of rank {rank}; put all its operations into one block")));
        }
        self.sign("{", "`{`, which opens the rank")?;
        let mut block = Block::default();
        let mut labels: BTreeMap<&str, u32> = BTreeMap::new();
        let mut waits: Vec<Wait<'_>> = Vec::new();
        loop {
            match self.words.next() {
                (Word::Sign("}"), _) => break,
                (Word::Name(name), place) => self.statement(rank, (name, place), &mut block, &mut labels, &mut waits)?,
                (Word::End, place) => {
                    self.check_comment()?;
                    let problem = format!("the file ends within rank {rank}; is it cut off? `}}` closes a rank");
                    return Err(self.error(place, problem));
                }
                (word, place) => return Err(self.expected(word, place, "an operation, a label or `}`")),
            }
        }
        for wait in waits {
            let position = |(label, place): (&str, Place)| {
                let problem = || self.error(place, format!("unknown label `{label}` of rank {rank}; a label is written `{label}: send …`"));
                labels.get(label).copied().ok_or_else(problem)
            };
            block.dependencies.push(Dependency { operation: position(wait.operation)?, on: position(wait.on)?, on_start: wait.on_start });
        }
        self.blocks.insert(rank, block);
        Ok(())
    }

    /// A statement that begins with a name: an operation with or without label, or what waits for what.
    fn statement(
        &mut self,
        rank: u32,
        (name, place): (&'a str, Place),
        block: &mut Block,
        labels: &mut BTreeMap<&'a str, u32>,
        waits: &mut Vec<Wait<'a>>,
    ) -> Result<(), FormatError> {
        let (word, next) = self.peek();
        match word {
            Word::Sign(":") => {
                self.words.next();
                if labels.insert(name, block.operations.len() as u32).is_some() {
                    return Err(self.error(place, format!("duplicate label `{name}` in rank {rank}")));
                }
                match self.words.next() {
                    (Word::Name(verb), place) => self.operation(rank, (verb, place), block),
                    (word, place) => Err(self.expected(word, place, "`send`, `recv` or `calc` after a label")),
                }
            }
            Word::Name(verb @ ("requires" | "irequires")) => {
                self.words.next();
                match self.words.next() {
                    (Word::Name(on), on_place) => {
                        waits.push(Wait { operation: (name, place), on: (on, on_place), on_start: verb == "irequires" });
                        Ok(())
                    }
                    (word, place) => Err(self.expected(word, place, &format!("a label after `{verb}`"))),
                }
            }
            Word::Number(_) => self.operation(rank, (name, place), block),
            _ if PORTALS.contains(&name) => self.operation(rank, (name, place), block),
            word => {
                let wanted = match name {
                    "send" | "recv" => "a number of bytes, for example `65536b`",
                    "calc" => "a number of nanoseconds",
                    _ => "`:`, `requires` or `irequires` after a label",
                };
                Err(self.expected(word, next, wanted))
            }
        }
    }

    /// The verb has been read.
    fn operation(&mut self, rank: u32, (verb, place): (&str, Place), block: &mut Block) -> Result<(), FormatError> {
        let mut kind = match verb {
            "send" => {
                let bytes = self.bytes()?;
                Kind::Send { to: self.peer("to")?, bytes, tag: 0 }
            }
            "recv" => {
                let bytes = self.bytes()?;
                Kind::Receive { from: self.peer("from")?, bytes, tag: 0 }
            }
            "calc" => Kind::Compute { ns: self.number("a number of nanoseconds")? },
            portals if PORTALS.contains(&portals) => {
                let problem = format!("`{portals}` is an operation of Portals 4, which is not simulated; there are send, recv and calc");
                return Err(self.error(place, problem));
            }
            other => {
                let problem = format!("unknown operation `{}`; expected send, recv or calc", other.chars().take(40).collect::<String>());
                return Err(self.error(place, problem));
            }
        };
        let (cpu, interface) = self.options(&mut kind)?;
        if interface > 0 {
            block.interfaces.push((block.operations.len() as u32, interface));
        }
        block.operations.push(Operation { rank, cpu, kind, line: u32::try_from(place.line).unwrap_or(u32::MAX) });
        Ok(())
    }

    /// `tag`, `cpu` and `nic` in any order, each at most once: the processor and the network interface.
    fn options(&mut self, kind: &mut Kind) -> Result<(u32, u32), FormatError> {
        let (mut cpu, mut interface, mut seen) = (0, 0, Vec::new());
        loop {
            let (word, place) = self.peek();
            let Word::Name(name @ ("tag" | "cpu" | "nic")) = word else { return Ok((cpu, interface)) };
            // A label may have such a name.
            let mut ahead = self.words;
            ahead.next();
            if !matches!(ahead.next().0, Word::Number(_)) {
                return Ok((cpu, interface));
            }
            self.words.next();
            if seen.contains(&name) {
                return Err(self.error(place, format!("duplicate `{name}` in one operation")));
            }
            seen.push(name);
            let value: u32 = self.number("a number")?;
            match (name, &mut *kind) {
                ("tag", Kind::Send { tag, .. } | Kind::Receive { tag, .. }) => *tag = value,
                ("cpu", _) => cpu = value,
                ("nic", Kind::Send { .. } | Kind::Receive { .. }) => interface = value,
                _ => return Err(self.error(place, format!("a calc has no `{name}`; it may have `cpu`"))),
            }
        }
    }

    /// `8b` or `8 b`.
    fn bytes(&mut self) -> Result<u64, FormatError> {
        let bytes = self.number("a number of bytes, for example `65536b`")?;
        match self.words.next() {
            (Word::Name("b"), _) => Ok(bytes),
            (word, place) => Err(self.expected(word, place, "`b` after a number of bytes")),
        }
    }

    /// `to 3` or `from 3`.
    fn peer(&mut self, preposition: &str) -> Result<u32, FormatError> {
        self.keyword(preposition, &format!("`{preposition}` and a rank"))?;
        let place = self.place();
        let rank = self.number("the number of a rank")?;
        self.check_rank(rank, place)?;
        Ok(rank)
    }

    fn check_rank(&self, rank: u32, place: Place) -> Result<(), FormatError> {
        if rank < self.ranks {
            return Ok(());
        }
        Err(self.error(place, format!("is rank {rank}; with num_ranks {} the ranks are 0 to {}", self.ranks, self.ranks - 1)))
    }

    /// All blocks in one list.
    fn description(self) -> Result<Description, FormatError> {
        let count: usize = self.blocks.values().map(|block| block.operations.len()).sum();
        if count > MAX_OPERATIONS {
            let problem = format!("the program has {count} operations; it may have {MAX_OPERATIONS}");
            return Err(FormatError::new(self.name, 1, problem));
        }
        let mut description = Description { ranks: self.ranks, operations: Vec::with_capacity(count), ..Description::default() };
        for block in self.blocks.into_values() {
            let first = description.operations.len() as u32;
            let placed = |wait: Dependency| Dependency { operation: first + wait.operation, on: first + wait.on, ..wait };
            description.dependencies.extend(block.dependencies.into_iter().map(placed));
            description.operations.extend(block.operations);
            description.interfaces.extend(block.interfaces.into_iter().map(|(operation, interface)| (first + operation, interface)));
        }
        Ok(description)
    }

    fn peek(&self) -> (Word<'a>, Place) {
        let mut ahead = self.words;
        ahead.next()
    }

    fn place(&self) -> Place {
        self.peek().1
    }

    fn keyword(&mut self, keyword: &str, wanted: &str) -> Result<(), FormatError> {
        match self.words.next() {
            (Word::Name(name), _) if name == keyword => Ok(()),
            (word, place) => Err(self.expected(word, place, wanted)),
        }
    }

    fn sign(&mut self, sign: &str, wanted: &str) -> Result<(), FormatError> {
        match self.words.next() {
            (Word::Sign(found), _) if found == sign => Ok(()),
            (word, place) => Err(self.expected(word, place, wanted)),
        }
    }

    fn number<T: std::str::FromStr>(&mut self, wanted: &str) -> Result<T, FormatError> {
        match self.words.next() {
            (Word::Number(digits), place) => {
                digits.parse().map_err(|_| self.error(place, format!("{} is too large", Word::Number(digits).shown())))
            }
            (word, place) => Err(self.expected(word, place, wanted)),
        }
    }

    fn check_comment(&self) -> Result<(), FormatError> {
        match self.words.open_comment {
            Some(place) => Err(self.error(place, "the comment that begins here with `/*` is not closed by `*/`")),
            None => Ok(()),
        }
    }

    fn expected(&self, found: Word<'_>, place: Place, wanted: &str) -> FormatError {
        match (found, self.words.open_comment) {
            (Word::End, Some(_)) => self.check_comment().err().unwrap_or_else(|| self.error(place, wanted)),
            (Word::End, None) => self.error(place, format!("the file ends here; is it cut off? There must follow {wanted}")),
            _ => self.error(place, format!("unexpected {}; expected {wanted}", found.shown())),
        }
    }

    fn error(&self, place: Place, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, place.line, problem).in_column(place.column(self.words.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse("a.goal", text.as_bytes()).map_or_else(|error| error.to_string(), |_| "no error".to_owned())
    }

    #[test]
    fn operations_and_dependencies_are_read() {
        let text = "num_ranks 2 // two\nrank 1 { }\nrank 0 {\nb: calc 5 cpu 2\na: send 8b to 1 cpu 1 tag 3 nic 0\n/* not\nhere */ a requires b\n\
            recv 4 b from 1\nc irequires a c: calc 0 }\n";
        let description = parse("a.goal", text.as_bytes()).unwrap();
        let operation = |cpu, kind, line| Operation { rank: 0, cpu, kind, line };
        let expected = [
            operation(2, Kind::Compute { ns: 5 }, 4),
            operation(1, Kind::Send { to: 1, bytes: 8, tag: 3 }, 5),
            operation(0, Kind::Receive { from: 1, bytes: 4, tag: 0 }, 8),
            operation(0, Kind::Compute { ns: 0 }, 9),
        ];
        assert_eq!(description.operations, expected);
        let expected = [Dependency { operation: 1, on: 0, on_start: false }, Dependency { operation: 3, on: 1, on_start: true }];
        assert_eq!((description.ranks, description.dependencies), (2, expected.to_vec()));
    }

    #[test]
    fn a_program_is_read_as_it_was_written() {
        let text = "num_ranks 3\nrank 0 {\nl1: calc 5 cpu 2\nl2: send 8b to 1 nic 2 tag 3\nl2 requires l1\nl2 irequires l1\n}\nrank 1 {\nl1: recv 8b from 0 tag 3 nic 1\n}\nrank 2 { }";
        let read = parse("a.goal", text.as_bytes()).unwrap();
        let again = parse("b.goal", write(&read).as_bytes()).unwrap();
        let kinds = |description: &Description| {
            description.operations.iter().map(|operation| Operation { line: 0, ..*operation }).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&read), kinds(&again));
        assert_eq!((read.ranks, read.dependencies), (again.ranks, again.dependencies));
        assert_eq!(read.interfaces, [(1, 2), (2, 1)].into());
        assert_eq!(again.interfaces, read.interfaces);
    }

    #[test]
    fn errors_name_line_and_column_and_what_would_be_right() {
        for (text, expected) in [
            ("", "a.goal:1:1: the file ends here; is it cut off? There must follow `num_ranks` and a number"),
            ("ranks 4", "a.goal:1:1: unexpected `ranks`; expected `num_ranks` and a number, with which a GOAL program begins"),
            ("num_ranks x", "a.goal:1:11: unexpected `x`; expected the number of ranks"),
            ("num_ranks 0", "a.goal:1:11: is a program of 0 ranks"),
            ("num_ranks 5000000000", "a.goal:1:11: `5000000000` is too large"),
            ("num_ranks 4000000000\n", "a.goal:2:1: the file ends without rank 0 of 4000000000; is it cut off?"),
            (
                "num_ranks 2\nrank 0 { }\n",
                "a.goal:3:1: the file ends without rank 1 of 2; is it cut off? A rank that does nothing is written `rank 1 { }`",
            ),
            ("num_ranks 2\nrank 1 { }", "a.goal:2:11: the file ends without rank 0 of 2"),
            ("num_ranks 2\nrank 2 { }", "a.goal:2:6: is rank 2; with num_ranks 2 the ranks are 0 to 1"),
            ("num_ranks 2\nrank 0 { } rank 0 { }", "a.goal:2:17: duplicate block of rank 0"),
            ("num_ranks 1\nrank 0 {\ncalc 3", "a.goal:3:7: the file ends within rank 0; is it cut off?"),
            ("num_ranks 1\nrank 0 {\nsend 8b to", "a.goal:3:11: the file ends here; is it cut off? There must follow the number of a rank"),
            ("num_ranks 1\nrank 0 {\nsend 8 to 0 }", "a.goal:3:8: unexpected `to`; expected `b` after a number of bytes"),
            ("num_ranks 1\nrank 0 {\nsend 8b 0 }", "a.goal:3:9: unexpected `0`; expected `to` and a rank"),
            ("num_ranks 1\nrank 0 {\nsend 8b to 1 }", "a.goal:3:12: is rank 1; with num_ranks 1 the ranks are 0 to 0"),
            ("num_ranks 1\nrank 0 {\ncalc }", "a.goal:3:6: unexpected `}`; expected a number of nanoseconds"),
            ("num_ranks 1\nrank 0 {\ncalc 1 tag 2 }", "a.goal:3:8: a calc has no `tag`"),
            ("num_ranks 1\nrank 0 {\ncalc 1 nic 1 }", "a.goal:3:8: a calc has no `nic`"),
            ("num_ranks 1\nrank 0 {\nsend 1b to 0 nic 5000000000 }", "a.goal:3:18: `5000000000` is too large"),
            ("num_ranks 1\nrank 0 {\nsend 1b to 0 tag 1 tag 2 }", "a.goal:3:20: duplicate `tag`"),
            ("num_ranks 1\nrank 0 {\na: a requires a }", "a.goal:3:4: unknown operation `a`"),
            ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 1 }", "a.goal:4:1: duplicate label `a` in rank 0"),
            ("num_ranks 1\nrank 0 {\na: calc 1\na requires b }", "a.goal:4:12: unknown label `b` of rank 0"),
            ("num_ranks 1\nrank 0 {\na: put 8b to 0 }", "a.goal:3:4: `put` is an operation of Portals 4, which is not simulated"),
            ("num_ranks 1\nrank 0 {\nl1 l2 }", "a.goal:3:4: unexpected `l2`; expected `:`, `requires` or `irequires`"),
            ("num_ranks 1\nrank 0 {\né: calc 1 }", "a.goal:3:1: unexpected `é`; expected an operation, a label or `}`"),
            ("num_ranks 1 /* é\n", "a.goal:1:13: the comment that begins here with `/*` is not closed"),
        ] {
            let found = error(text);
            assert!(found.starts_with(expected), "{text}\n   is: {found}\n  not: {expected}");
        }
        assert!(parse("a.bin", b"\x7f\x10\n\xff").unwrap_err().to_string().starts_with("a.bin:2:1: is not text in UTF-8"));
    }
}
