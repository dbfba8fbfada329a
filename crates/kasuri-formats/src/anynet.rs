//! BookSim 2's network files (`topology = anynet`): one line for each router, with what it is linked to.
//!
//! ```text
//! router 0 node 0 node 1 router 1 10
//! router 1 node 2
//! ```
//!
//! A number after a link is the latency of that direction in cycles, 1 unless given; the way back of a link between routers has
//! its own, which is 1 unless a line of the other router tells it. For a terminal it holds both ways. Routers and nodes are
//! numbered from 0 without gaps.

use crate::error::FormatError;
use kasuri_network::network::MAX_CHANNEL_CYCLES;
use std::collections::BTreeMap;

/// The largest number of a router or node.
const MAX_NUMBER: u32 = 1 << 22;

/// A network as its file describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnyNet {
    /// How many routers there are.
    pub routers: u32,
    /// By terminal: its router and the latency of its channels.
    pub terminals: Vec<(u32, u32)>,
    /// Channels between routers, by (from, to): the latency.
    pub channels: BTreeMap<(u32, u32), u32>,
}

/// Reads a network file. `name` is the file's name for messages.
///
/// # Errors
/// A line of another form, a node on two routers, numbers with gaps.
pub fn parse(name: &str, bytes: &[u8]) -> Result<AnyNet, FormatError> {
    let mut reader = Reader { name, line: 0, terminals: BTreeMap::new(), channels: BTreeMap::new(), routers: BTreeMap::new() };
    for (line, text) in crate::text::meaningful_lines(name, bytes)? {
        reader.line = line;
        reader.links(text)?;
    }
    reader.finish()
}

/// One end of a link.
#[derive(Clone, Copy, Debug)]
enum End {
    Router(u32),
    Node(u32),
}

struct Reader<'a> {
    name: &'a str,
    line: usize,
    /// By node: its router, latency and line.
    terminals: BTreeMap<u32, (u32, u32, usize)>,
    /// By channel: its latency, if a line told this direction.
    channels: BTreeMap<(u32, u32), Option<u32>>,
    /// The line that names each router first.
    routers: BTreeMap<u32, usize>,
}

impl Reader<'_> {
    fn error(&self, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, self.line, problem)
    }

    /// One line.
    fn links(&mut self, text: &str) -> Result<(), FormatError> {
        let mut words = text.split_whitespace().peekable();
        let head = self.end(&mut words)?;
        while words.peek().is_some() {
            let body = self.end(&mut words)?;
            let weight = match words.peek() {
                Some(word) if !matches!(*word, "router" | "node") => Some(self.latency(word)?),
                _ => None,
            };
            if weight.is_some() {
                words.next();
            }
            self.link(head, body, weight.unwrap_or(1))?;
        }
        Ok(())
    }

    fn end<'w>(&mut self, words: &mut impl Iterator<Item = &'w str>) -> Result<End, FormatError> {
        let kind = words.next().unwrap_or("the end of the line");
        if kind != "router" && kind != "node" {
            return Err(self.error(format!("expected `router NUMBER` or `node NUMBER`, found `{kind}`")));
        }
        let word = words.next().unwrap_or("the end of the line");
        let number = word.parse::<u32>().ok().filter(|&number| number <= MAX_NUMBER);
        let number = number.ok_or_else(|| self.error(format!("`{kind} {word}`: expected a number, 0 to {MAX_NUMBER}")))?;
        if kind == "node" {
            return Ok(End::Node(number));
        }
        self.routers.entry(number).or_insert(self.line);
        Ok(End::Router(number))
    }

    fn latency(&self, word: &str) -> Result<u32, FormatError> {
        let latency = word.parse::<u32>().ok().filter(|latency| (1..=MAX_CHANNEL_CYCLES).contains(latency));
        latency.ok_or_else(|| self.error(format!("`{word}`: expected `router`, `node`, or a latency of 1 to {MAX_CHANNEL_CYCLES} cycles")))
    }

    fn link(&mut self, head: End, body: End, latency: u32) -> Result<(), FormatError> {
        match (head, body) {
            (End::Node(_), End::Node(_)) => Err(self.error("links two nodes; a node is linked to a router")),
            (End::Router(one), End::Router(other)) if one == other => Err(self.error(format!("links router {one} to itself"))),
            (End::Router(from), End::Router(to)) => {
                self.channels.insert((from, to), Some(latency));
                self.channels.entry((to, from)).or_insert(None);
                Ok(())
            }
            (End::Router(router), End::Node(node)) | (End::Node(node), End::Router(router)) => {
                match self.terminals.get(&node) {
                    Some(&(other, _, line)) if other != router => {
                        return Err(self.error(format!("node {node} is on router {router}, but line {line} puts it on router {other}")));
                    }
                    _ => {}
                }
                self.terminals.insert(node, (router, latency, self.line));
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<AnyNet, FormatError> {
        self.check_numbers("router", self.routers.iter().map(|(&number, &line)| (number, line)))?;
        self.check_numbers("node", self.terminals.iter().map(|(&number, &(_, _, line))| (number, line)))?;
        if self.terminals.is_empty() {
            return Err(FormatError::new(self.name, 1, "no line names a node; a network needs at least one"));
        }
        Ok(AnyNet {
            routers: self.routers.len() as u32,
            terminals: self.terminals.into_values().map(|(router, latency, _)| (router, latency)).collect(),
            channels: self.channels.into_iter().map(|(ends, latency)| (ends, latency.unwrap_or(1))).collect(),
        })
    }

    /// Numbers begin with 0 and leave none out.
    fn check_numbers(&self, kind: &str, numbers: impl Iterator<Item = (u32, usize)>) -> Result<(), FormatError> {
        match numbers.enumerate().find(|&(expected, (number, _))| expected as u32 != number) {
            Some((expected, (number, line))) => {
                let problem = format!("{kind} {number} without {kind} {expected}; number them from 0 without gaps");
                Err(FormatError::new(self.name, line, problem))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<AnyNet, FormatError> {
        parse("net.txt", text.as_bytes())
    }

    /// The way back that no line tells has a latency of 1, however long the way there is.
    #[test]
    fn latencies_belong_to_directions() {
        let network = read("router 0 node 0 node 1 3 router 1 10\nrouter 1 node 2 router 2 5\nrouter 2 node 3 router 1 7\n").unwrap();
        assert_eq!(network.routers, 3);
        assert_eq!(network.terminals, [(0, 1), (0, 3), (1, 1), (2, 1)]);
        let channels: Vec<_> = network.channels.into_iter().collect();
        assert_eq!(channels, [((0, 1), 10), ((1, 0), 1), ((1, 2), 5), ((2, 1), 7)]);
    }

    #[test]
    fn wrong_lines_are_told() {
        for (text, wanted) in [
            ("switch 0 node 0", "net.txt:1: expected `router NUMBER` or `node NUMBER`, found `switch`"),
            ("router 0 node 0\nrouter x", "net.txt:2: `router x`: expected a number"),
            ("router 0 node 0 router 1 fast", "net.txt:1: `fast`: expected `router`, `node`, or a latency"),
            ("router 0 node 0 router 1 0", "net.txt:1: `0`: expected"),
            ("router 0 node 0\nrouter 1 node 0", "net.txt:2: node 0 is on router 1, but line 1 puts it on router 0"),
            ("node 0 node 1", "net.txt:1: links two nodes"),
            ("router 0 node 0 router 0", "net.txt:1: links router 0 to itself"),
            ("router 0 node 0 router 2", "net.txt:1: router 2 without router 1"),
            ("router 0 node 0\n\nrouter 1 node 2", "net.txt:3: node 2 without node 1"),
            ("router 0 router 1", "net.txt:1: no line names a node"),
            ("router 0 node", "net.txt:1: `node the end of the line`"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.starts_with(wanted), "{text:?} gives {message:?}, not {wanted:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), text in "((router|node) [0-9]{1,3} ?){0,8}\n?") {
            let _ = parse("net.txt", &bytes);
            let _ = parse("net.txt", text.as_bytes());
        }
    }
}
