//! Topologies of ns-3 (HPCC and its descendants, ASTRA-sim) and of SimAI: numbers of nodes, which of them are switches, and links with rate
//! and delay.
//!
//! Source: SimAI cef83f9dd, `astra-sim-alibabacloud/inputs/topo` (its generator), astra-sim's ns-3 front end, and ns3-datacenter b3ee6bf75,
//! `examples/PowerTCP` and `examples/Reverie`. ns-3 begins with `nodes switches links`; in ns3-datacenter with `nodes switches tors links`,
//! or with the rates of two kinds of links after these; SimAI with `nodes gpus_per_server nvswitches switches links gputype`, to which
//! ns3-msccl 34b808587 (`examples/allstack`) adds `gpus_per_node`. Then the numbers of the switches (those of SimAI's NVSwitches first);
//! then `source destination rate delay error` for each link. Words are separated by white space, line ends mean nothing, and text after the
//! last link is not read. Rates without unit are bit/s and delays without unit seconds, as ns-3's `DataRate` and `Time` have them.

use crate::error::FormatError;
use crate::text::{short, text_of};
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
    /// What was found that is worth a look.
    pub notes: Vec<String>,
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

/// Prefixes of rates, in Gbit/s: those of ns-3, and T.
const PREFIXES: [(&str, f64); 9] = [
    ("", 1e-9),
    ("k", 1e-6),
    ("K", 1e-6),
    ("M", 1e-3),
    ("G", 1.0),
    ("T", 1e3),
    ("Ki", 1024e-9),
    ("Mi", 1_048_576e-9),
    ("Gi", 1.073_741_824),
];

/// What follows the prefix of a rate, in bits.
const PER_SECOND: [(&str, f64); 4] = [("bps", 1.0), ("b/s", 1.0), ("Bps", 8.0), ("B/s", 8.0)];

/// Units of delays, in ns.
const DELAYS: [(&str, f64); 7] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("ps", 1e-3), ("fs", 1e-6), ("min", 6e10)];

/// The least rate without a unit, in bit/s: in a smaller one the unit was forgotten.
const LEAST_PLAIN_RATE: f64 = 1e6;

/// The number with which a word begins, and its unit.
fn quantity(word: &str) -> Option<(f64, &str)> {
    let split = word.find(|character: char| character.is_alphabetic() && character != 'e' && character != 'E').unwrap_or(word.len());
    let (number, unit) = word.split_at(split);
    Some((number.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)?, unit))
}

/// A rate in Gbit/s.
fn rate(word: &str) -> Option<f64> {
    let (number, unit) = quantity(word)?;
    if unit.is_empty() {
        return (number >= LEAST_PLAIN_RATE || number == 0.0).then_some(number * 1e-9);
    }
    let (prefix, bits) = PER_SECOND.iter().find_map(|(end, bits)| Some((unit.strip_suffix(end)?, bits)))?;
    PREFIXES.iter().find(|(name, _)| *name == prefix).map(|(_, scale)| number * scale * bits)
}

/// A delay in ns.
fn delay(word: &str) -> Option<f64> {
    let (number, unit) = quantity(word)?;
    let unit = if unit.is_empty() { "s" } else { unit };
    DELAYS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| number * scale)
}

/// How a topology begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    /// `nodes switches links`
    Plain,
    /// `nodes switches tors links`
    Tors,
    /// `nodes switches tors links rate rate`
    TorsAndRates,
    /// `nodes gpus_per_server nvswitches switches links gputype`
    SimAi,
    /// The same with `gpus_per_node` at the end, as in ns3-msccl.
    SimAiOfNodes,
}

impl Header {
    fn words(self) -> usize {
        match self {
            Self::Plain => 3,
            Self::Tors => 4,
            Self::TorsAndRates | Self::SimAi => 6,
            Self::SimAiOfNodes => 7,
        }
    }

    fn is_simai(self) -> bool {
        matches!(self, Self::SimAi | Self::SimAiOfNodes)
    }

    /// The header with which the words are a topology; if several fit, the one with as many words as the first line, `first_line`. A file
    /// that fits none has the header of its first line, so that the error names the word that does not fit.
    fn of(words: &[&str], first_line: usize) -> Self {
        if words.get(5).is_some_and(|word| word.starts_with(char::is_alphabetic)) {
            return if first_line == Self::SimAiOfNodes.words() { Self::SimAiOfNodes } else { Self::SimAi };
        }
        let headers = [Self::Plain, Self::Tors, Self::TorsAndRates];
        let fitting: Vec<Self> = headers.into_iter().filter(|header| header.fits(words)).collect();
        let begun = |headers: &[Self]| headers.iter().copied().find(|header| header.words() == first_line);
        begun(&fitting).or(fitting.first().copied()).or(begun(&headers)).unwrap_or(Self::Plain)
    }

    /// Where the first link begins, if the words say how many switches there are.
    fn first_link(self, words: &[&str]) -> Option<usize> {
        let number = |place: usize| words.get(place)?.parse::<u32>().ok().filter(|&number| number <= MAX_NODES);
        let switches = if self.is_simai() { number(2)? + number(3)? } else { number(1)? };
        Some(self.words() + switches as usize)
    }

    /// Whether the first link is where it should be.
    fn fits(self, words: &[&str]) -> bool {
        let link = self.first_link(words).and_then(|first| words.get(first..first + 5));
        link.is_some_and(|link| {
            let are_nodes = link[..2].iter().all(|word| word.parse::<u32>().is_ok());
            let has_unit = link[3].ends_with(char::is_alphabetic);
            are_nodes && rate(link[2]).is_some() && has_unit && delay(link[3]).is_some() && link[4].parse::<f64>().is_ok()
        })
    }
}

/// Whether a file looks like one of these: it begins with three numbers, and has a link where it should be, or at least a rate.
pub fn is_topology(bytes: &[u8]) -> bool {
    let words = || bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let is_number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    if words().take(3).filter(|word| is_number(word)).count() < 3 {
        return false;
    }
    let text = |word| std::str::from_utf8(word).unwrap_or_default();
    let first: Vec<&str> = words().take(MAX_NODES as usize).map(text).collect();
    [Header::Plain, Header::Tors, Header::TorsAndRates, Header::SimAi, Header::SimAiOfNodes].into_iter().any(|header| header.fits(&first))
        || words().skip(3).find(|word| !is_number(word) && word[0].is_ascii_digit()).is_some_and(|word| word.ends_with(b"bps"))
}

/// Reads a topology.
///
/// # Errors
/// A word that is not a number, rate or delay; a missing node, a duplicate switch, a link from a node to itself, or, of SimAI, a second
/// link between two nodes, of which it would keep one; fewer links than are announced.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Topology, FormatError> {
    let text = text_of(name, bytes)?;
    let words = text.lines().zip(1..).flat_map(|(line, number)| line.split_whitespace().map(move |word| (number, word))).collect();
    Words { name, words, next: 0, without_unit: 0 }.topology()
}

struct Words<'a> {
    name: &'a str,
    words: Vec<(usize, &'a str)>,
    next: usize,
    /// Delays without a unit.
    without_unit: u32,
}

impl<'a> Words<'a> {
    fn error(&self, line: usize, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, line, problem)
    }

    fn take(&mut self, what: &str) -> Result<(usize, &'a str), FormatError> {
        self.next += 1;
        self.words.get(self.next - 1).copied().ok_or_else(|| {
            let last = self.words.last().map_or(1, |(line, _)| *line);
            self.error(last, format!("ends before {what}"))
        })
    }

    fn number(&mut self, what: &str, least: u32, most: u32) -> Result<u32, FormatError> {
        let (line, word) = self.take(what)?;
        let number = word.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.error(line, format!("{what} is `{}`; it must be a whole number, {least} to {most}", short(word))))
    }

    /// A number with a unit, which `read` knows.
    fn quantity(&mut self, what: &str, read: fn(&str) -> Option<f64>, right: &str) -> Result<f64, FormatError> {
        let (line, word) = self.take(what)?;
        read(word).ok_or_else(|| self.error(line, format!("{what} is `{}`; it must be a number with a unit, such as {right}", short(word))))
    }

    fn header(&self) -> Header {
        let begin = self.words.first().map_or(1, |(line, _)| *line);
        let first_line = self.words.iter().take_while(|(line, _)| *line == begin).count();
        let words: Vec<&str> = self.words.iter().take(MAX_NODES as usize).map(|(_, word)| *word).collect();
        Header::of(&words, first_line)
    }

    fn topology(&mut self) -> Result<Topology, FormatError> {
        let header = self.header();
        let is_simai = header.is_simai();
        let nodes = self.number("the number of nodes", 1, MAX_NODES)?;
        let gpus_per_server = if is_simai { Some(self.number("GPUs of a server", 1, MAX_NODES)?) } else { None };
        let nvswitches = if is_simai { self.number("the number of NVSwitches", 0, nodes)? } else { 0 };
        let switches = self.number("the number of switches", 0, nodes - nvswitches)?;
        if matches!(header, Header::Tors | Header::TorsAndRates) {
            self.number("the number of top-of-rack switches", 0, switches)?;
        }
        let links = self.number("the number of links", 0, MAX_LINKS)?;
        match header {
            Header::SimAi => drop(self.take("the kind of GPU")?),
            Header::SimAiOfNodes => {
                self.take("the kind of GPU")?;
                self.number("GPUs of a node", 1, MAX_NODES)?;
            }
            Header::TorsAndRates => {
                self.quantity("the rate of links to servers", rate, "400Gbps")?;
                self.quantity("the rate of links to spines", rate, "400Gbps")?;
            }
            _ => {}
        }
        let nodes = self.kinds(nodes, nvswitches, switches, is_simai)?;
        let mut found = Topology { name: self.name.to_owned(), nodes, gpus_per_server, links: Vec::new(), notes: Vec::new() };
        let mut lines: BTreeMap<[u32; 2], usize> = BTreeMap::new();
        for _ in 0..links {
            let link = self.link(found.nodes.len() as u32)?;
            let [one, other] = link.ends;
            if let Some(first) = lines.insert([one.min(other), one.max(other)], link.line).filter(|_| is_simai) {
                let problem =
                    format!("a second link between {one} and {other}, which line {first} links, too; SimAI would keep one of them");
                return Err(self.error(link.line, problem));
            }
            found.links.push(link);
        }
        found.notes.extend(self.notes(links));
        Ok(found)
    }

    /// What each node is.
    fn kinds(&mut self, nodes: u32, nvswitches: u32, switches: u32, is_simai: bool) -> Result<Vec<Kind>, FormatError> {
        let mut kinds = vec![if is_simai { Kind::Gpu } else { Kind::Host }; nodes as usize];
        for place in 0..nvswitches + switches {
            let id = self.number("a switch", 0, nodes - 1)?;
            let kind = if place < nvswitches { Kind::NvSwitch } else { Kind::Switch };
            if !matches!(std::mem::replace(&mut kinds[id as usize], kind), Kind::Gpu | Kind::Host) {
                return Err(self.error(self.words[self.next - 1].0, format!("names switch {id} a second time")));
            }
        }
        Ok(kinds)
    }

    /// Notes on text after the last link and on delays without a unit.
    fn notes(&self, links: u32) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some((line, word)) = self.words.get(self.next) {
            let looks_like_links = if word.parse::<u32>().is_ok() { "; if these are links, too, their number is wrong" } else { "" };
            notes.push(format!(
                "line {line} has `{}` after the {links} links that the file announces: from there on it is not read, as in \
                 ns-3{looks_like_links}",
                short(word)
            ));
        }
        if self.without_unit > 0 {
            notes.push(format!("{} delays have no unit: they are seconds, as in ns-3", self.without_unit));
        }
        notes
    }

    fn link(&mut self, nodes: u32) -> Result<TopologyLink, FormatError> {
        let ends = [self.number("the source of a link", 0, nodes - 1)?, self.number("the destination of a link", 0, nodes - 1)?];
        let line = self.words[self.next - 1].0;
        if ends[0] == ends[1] {
            return Err(self.error(line, format!("links node {} to itself", ends[0])));
        }
        let gbit_per_second = self.quantity("a rate", rate, "400Gbps")?;
        let delay_ns = self.quantity("a delay", delay, "0.0005ms or 500ns")?;
        self.without_unit += u32::from(delay_ns > 0.0 && !self.words[self.next - 1].1.ends_with(char::is_alphabetic));
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

    /// ns-3 reads the links that are announced and nothing more; HPCC's own file ends with a description of itself.
    #[test]
    fn text_after_the_links_is_noted() {
        let text = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";
        let found = parse("t", text.as_bytes()).unwrap();
        assert_eq!((found.links.len(), found.notes), (2, Vec::new()));
        let found = parse("t", format!("{text}\nFirst line: total node #, switch node #, link #\n").as_bytes()).unwrap();
        let note = "line 6 has `First` after the 2 links that the file announces: from there on it is not read, as in ns-3";
        assert_eq!((found.links.len(), found.notes), (2, vec![note.to_owned()]));
        let more = parse("t", text.replacen("3 1 2", "3 1 1", 1).as_bytes()).unwrap();
        assert!(more.notes[0].ends_with("if these are links, too, their number is wrong"), "{:?}", more.notes);
    }

    #[test]
    fn the_header_of_ns3_msccl_has_one_word_more() {
        let links = "0 3 200Gbps 0.0005ms 0\n1 3 200Gbps 0.0005ms 0\n2 3 200Gbps 0.0005ms 0\n";
        for header in ["4 1 0 1 3 X000 1\n3\n", "4 1 0 1 3 X000\n3\n"] {
            let text = format!("{header}{links}");
            assert!(is_topology(text.as_bytes()), "{header:?}");
            let found = parse("t", text.as_bytes()).unwrap();
            assert_eq!(found.nodes, [Kind::Gpu, Kind::Gpu, Kind::Gpu, Kind::Switch], "{header:?}");
            assert_eq!(found.links.len(), 3, "{header:?}");
        }
    }

    /// The headers of ns3-datacenter, however lines are broken, and the units of ns-3's `DataRate` and `Time`.
    #[test]
    fn headers_and_units_of_ns3_are_known() {
        let links =
            "0 4 25000000000.0 1us 0\n1 4 25Gb/s 0.000001 0\n2 4 3125MB/s 1000ns 0\n3 4 25000000Kbps 1us 0\n4 5 100000000000 1us 0.0\n";
        for header in ["6 2 5\n4 5\n", "6 2 1 5\n4 5\n", "6 2 1 5 25000000000 1e11\n4 5\n", "6 2 1 5 4 5\n", "6 2\n1 5 4\n5 "] {
            let text = format!("{header}{links}");
            assert!(is_topology(text.as_bytes()), "{header:?}");
            let found = parse("t", text.as_bytes()).unwrap();
            assert_eq!(found.nodes, [[Kind::Host; 4].as_slice(), &[Kind::Switch; 2]].concat(), "{header:?}");
            let rates: Vec<f64> = found.links.iter().map(|link| link.gbit_per_second.round()).collect();
            assert_eq!(rates, [25.0, 25.0, 25.0, 25.0, 100.0], "{header:?}");
            assert!(found.links.iter().all(|link| (link.delay_ns - 1000.0).abs() < 1e-6), "{header:?}");
            assert_eq!(found.notes, ["1 delays have no unit: they are seconds, as in ns-3"], "{header:?}");
        }
        assert_eq!(
            (rate("1Gib/s"), rate("8KiB/s"), rate("1Tbps"), rate("1Xbps")),
            (Some(1.073_741_824), Some(65536e-9), Some(1000.0), None)
        );
        for text in ["6 2 1 5\n4 5\n0 4 25000000000.0 1us\n", "6 2 3 5\n4 5\n0 4 25e9 1us 0\n"] {
            assert!(parse("t", text.as_bytes()).is_err(), "{text}");
        }
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
            ("0.000025ms", "0.000025m", "t:3: a delay is `0.000025m`"),
            ("0 4 2880", "4 4 2880", "t:3: links node 4 to itself"),
            ("1 4 2880", "0 4 2880", "t:4: a second link between 0 and 4, which line 3 links, too"),
            ("0.01", "2", "t:10: an error rate is `2`; it must be a number, 0 to 1"),
            ("2 1 8", "2 1 9", "t:10: ends before the source of a link"),
        ] {
            let error = parse("t", SIMAI.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{new}: {error}");
        }
    }
}
