//! Topologies of ns-3 (as ASTRA-sim reads them) and of SimAI: numbers of nodes, which of them are switches, and links with rate and delay.
//!
//! Source: SimAI cef83f9dd, `astra-sim-alibabacloud/inputs/topo` (its generator), and astra-sim's ns-3 front end. ns-3 begins with
//! `nodes switches links`, SimAI with `nodes gpus_per_server nvswitches switches links gputype`; then the numbers of the switches (those of
//! SimAI's NVSwitches first); then `source destination rate delay error` for each link. Words are separated by white space, line ends mean
//! nothing.

use super::{FormatError, short, text_of};
use std::collections::BTreeMap;

/// A topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The file's name.
    pub name: String,
    /// What each node is, by its number.
    pub nodes: Vec<Kind>,
    /// GPUs of a server, where it is told.
    pub gpus_per_server: Option<u32>,
    /// The links.
    pub links: Vec<TopologyLink>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A GPU of SimAI.
    Gpu,
    /// A host of ns-3.
    Host,
    /// The NVSwitch of a server.
    NvSwitch,
    /// A switch of the network.
    Switch,
}

/// A link in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopologyLink {
    /// Its nodes.
    pub ends: [u32; 2],
    /// Gbit/s in each direction.
    pub gbit_per_second: f64,
    /// Delay in ns.
    pub delay_ns: f64,
    /// The probability that a packet is lost.
    pub loss: f64,
    /// The line.
    pub line: usize,
}

/// Nodes, at most.
const MAX_NODES: u32 = 1 << 20;

/// Links, at most.
const MAX_LINKS: u32 = 1 << 24;

/// Units of rates, in Gbit/s.
const RATES: [(&str, f64); 5] = [("bps", 1e-9), ("Kbps", 1e-6), ("Mbps", 1e-3), ("Gbps", 1.0), ("Tbps", 1e3)];

/// Units of delays, in ns.
const DELAYS: [(&str, f64); 5] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("ps", 1e-3)];

/// Does a file look like one of these: does it begin with a number, and has it a rate?
pub fn is_topology(bytes: &[u8]) -> bool {
    let words = || bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let is_number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    words().take(3).filter(|word| is_number(word)).count() == 3
        && words().skip(3).find(|word| !is_number(word) && word[0].is_ascii_digit()).is_some_and(|word| word.ends_with(b"bps"))
}

/// Reads a topology.
///
/// # Errors
/// A word that is no number, rate or delay; a node that is not there, a switch that stands twice, a link that leads to its own beginning, or,
/// of SimAI, a second link between two nodes, of which it would keep one; fewer or more links than are announced.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Topology, FormatError> {
    let text = text_of(name, bytes)?;
    let words = text.lines().zip(1..).flat_map(|(line, number)| line.split_whitespace().map(move |word| (number, word))).collect();
    Words { name, words, next: 0 }.topology()
}

struct Words<'a> {
    name: &'a str,
    words: Vec<(usize, &'a str)>,
    next: usize,
}

impl<'a> Words<'a> {
    fn error(&self, line: usize, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, line, problem)
    }

    fn take(&mut self, what: &str) -> Result<(usize, &'a str), FormatError> {
        self.next += 1;
        self.words.get(self.next - 1).copied().ok_or_else(|| {
            let last = self.words.last().map_or(1, |(line, _)| *line);
            self.error(last, format!("ends where {what} should stand"))
        })
    }

    fn number(&mut self, what: &str, least: u32, most: u32) -> Result<u32, FormatError> {
        let (line, word) = self.take(what)?;
        let number = word.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.error(line, format!("{what} is `{}`; it must be a whole number, {least} to {most}", short(word))))
    }

    /// A number with a unit.
    fn quantity(&mut self, what: &str, units: &[(&str, f64)], right: &str) -> Result<f64, FormatError> {
        let (line, word) = self.take(what)?;
        let split = word.find(|character: char| character.is_alphabetic() && character != 'e' && character != 'E').unwrap_or(word.len());
        let (number, unit) = word.split_at(split);
        let scale = units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
        let found = number.parse::<f64>().ok().zip(scale).map(|(number, scale)| number * scale);
        found
            .filter(|value| value.is_finite() && *value >= 0.0)
            .ok_or_else(|| self.error(line, format!("{what} is `{}`; it must be a number with a unit, such as {right}", short(word))))
    }

    fn topology(&mut self) -> Result<Topology, FormatError> {
        // SimAI's sixth word is the kind of GPU, ns-3's a number or a rate.
        let is_simai = self.words.get(5).is_some_and(|(_, word)| word.starts_with(|first: char| first.is_alphabetic()));
        let nodes = self.number("the number of nodes", 1, MAX_NODES)?;
        let gpus_per_server = if is_simai { Some(self.number("GPUs of a server", 1, MAX_NODES)?) } else { None };
        let nvswitches = if is_simai { self.number("the number of NVSwitches", 0, nodes)? } else { 0 };
        let switches = self.number("the number of switches", 0, nodes - nvswitches)?;
        let links = self.number("the number of links", 0, MAX_LINKS)?;
        if is_simai {
            self.take("the kind of GPU")?;
        }
        let mut kinds = vec![if is_simai { Kind::Gpu } else { Kind::Host }; nodes as usize];
        for place in 0..nvswitches + switches {
            let id = self.number("a switch", 0, nodes - 1)?;
            let kind = if place < nvswitches { Kind::NvSwitch } else { Kind::Switch };
            if !matches!(std::mem::replace(&mut kinds[id as usize], kind), Kind::Gpu | Kind::Host) {
                return Err(self.error(self.words[self.next - 1].0, format!("names switch {id} a second time")));
            }
        }
        let mut found = Topology { name: self.name.to_owned(), nodes: kinds, gpus_per_server, links: Vec::new() };
        let mut lines: BTreeMap<[u32; 2], usize> = BTreeMap::new();
        for _ in 0..links {
            let link = self.link(nodes)?;
            let [one, other] = link.ends;
            if let Some(first) = lines.insert([one.min(other), one.max(other)], link.line).filter(|_| is_simai) {
                let problem =
                    format!("a second link between {one} and {other}, which line {first} links, too; SimAI would keep one of them");
                return Err(self.error(link.line, problem));
            }
            found.links.push(link);
        }
        match self.words.get(self.next) {
            Some((line, word)) => Err(self.error(*line, format!("has `{}` behind the {links} links that it announces", short(word)))),
            None => Ok(found),
        }
    }

    fn link(&mut self, nodes: u32) -> Result<TopologyLink, FormatError> {
        let ends = [self.number("the source of a link", 0, nodes - 1)?, self.number("the destination of a link", 0, nodes - 1)?];
        let line = self.words[self.next - 1].0;
        if ends[0] == ends[1] {
            return Err(self.error(line, format!("links node {} to itself", ends[0])));
        }
        let gbit_per_second = self.quantity("a rate", &RATES, "400Gbps")?;
        let delay_ns = self.quantity("a delay", &DELAYS, "0.0005ms or 500ns")?;
        let (at, word) = self.take("the error rate of a link")?;
        let loss = word.parse().ok().filter(|loss: &f64| (0.0..=1.0).contains(loss));
        let loss = loss.ok_or_else(|| self.error(at, format!("an error rate is `{}`; it must be a number, 0 to 1", short(word))))?;
        Ok(TopologyLink { ends, gbit_per_second, delay_ns, loss, line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two servers of two GPUs with an NVSwitch each, joined by a switch.
    const SIMAI: &str = "7 2 2 1 8 H100\n4 5 6\n0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 25ns 0\n2 5 2.88Tbps 0.025us 0\n3 5 2880Gbps 25ns 0\n\
                         0 6 400Gbps 0.0005ms 0\n1 6 400Gbps 0.0005ms 0\n2 6 400Gbps 0.0005ms 0 3 6\n400Gbps 0.0005ms 0.01\n";

    #[test]
    fn both_forms_are_read() {
        let found = parse("t", SIMAI.as_bytes()).unwrap();
        assert_eq!(found.nodes, [[Kind::Gpu; 4].as_slice(), &[Kind::NvSwitch; 2], &[Kind::Switch]].concat());
        assert_eq!((found.gpus_per_server, found.links.len()), (Some(2), 8));
        assert!(found.links[..4].iter().all(|link| (link.gbit_per_second - 2880.0).abs() < 1e-9 && (link.delay_ns - 25.0).abs() < 1e-9));
        assert_eq!((found.links[7].ends, found.links[7].line), ([3, 6], 9));
        assert!((found.links[7].loss - 0.01).abs() < 1e-12 && (found.links[7].delay_ns - 500.0).abs() < 1e-9);
        let ring = "3 0 3\n\n0 1 400Gbps 0.001ms 0\n1 2 400Gbps 0.001ms 0\n2 0 400Gbps 0.001ms 0";
        let found = parse("r", ring.as_bytes()).unwrap();
        assert_eq!((found.nodes, found.gpus_per_server, found.links.len()), (vec![Kind::Host; 3], None, 3));
        assert!(is_topology(SIMAI.as_bytes()) && is_topology(ring.as_bytes()));
        assert!(!is_topology(b"1 10 3\n0x00000021 8 2\n") && !is_topology(b"3 0 3 x") && !is_topology(b""));
    }

    #[test]
    fn what_is_wrong_is_shown_with_its_line() {
        for (old, new, expected) in [
            ("7 2", "0 2", "t:1: the number of nodes is `0`; it must be a whole number, 1 to 1048576"),
            ("2 1 8", "2 9 8", "t:1: the number of switches is `9`; it must be a whole number, 0 to 5"),
            ("4 5 6", "4 4 6", "t:2: names switch 4 a second time"),
            ("4 5 6", "4 5 7", "t:2: a switch is `7`; it must be a whole number, 0 to 6"),
            ("0 4 2880Gbps", "0 4 2880", "t:3: a rate is `2880`; it must be a number with a unit, such as 400Gbps"),
            ("0 4 2880Gbps", "0 4 -1Gbps", "t:3: a rate is `-1Gbps`"),
            ("0.000025ms", "0.000025", "t:3: a delay is `0.000025`"),
            ("0 4 2880", "4 4 2880", "t:3: links node 4 to itself"),
            ("1 4 2880", "0 4 2880", "t:4: a second link between 0 and 4, which line 3 links, too"),
            ("0.01", "2", "t:10: an error rate is `2`; it must be a number, 0 to 1"),
            ("2 1 8", "2 1 9", "t:10: ends where the source of a link should stand"),
            ("2 1 8", "2 1 7", "t:9: has `3` behind the 7 links that it announces"),
        ] {
            let error = parse("t", SIMAI.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{new}: {error}");
        }
    }
}
