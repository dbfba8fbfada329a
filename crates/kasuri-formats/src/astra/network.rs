//! The network: YAML with one list for each property, an entry for each dimension.

use crate::error::FormatError;
use crate::text::{short, text_of};
use kasuri_workload::execution::cluster::{Cluster, Dimension, MAX_NPUS, Topology};
use std::collections::BTreeMap;
use yaml_rust2::parser::{Event, MarkedEventReceiver, Parser};
use yaml_rust2::scanner::Marker;

/// A value of the file with its line.
#[derive(Clone, Debug)]
struct Entry {
    text: String,
    line: usize,
}

/// What a key of the top level holds.
#[derive(Debug)]
struct List {
    line: usize,
    entries: Vec<Entry>,
    /// No value but `[…]` or a list of lines.
    is_list: bool,
}

const KEYS: [&str; 4] = ["topology", "npus_count", "bandwidth", "latency"];

/// Reads a network.
///
/// # Errors
/// No YAML, a list that is missing or shorter than the others, a word in place of a number, an unknown topology.
pub fn network(name: &str, bytes: &[u8]) -> Result<Cluster, FormatError> {
    let lists = lists(name, bytes)?;
    let list = |key: &str| match lists.get(key) {
        Some(list) if list.is_list => Ok(list),
        Some(list) => {
            Err(FormatError::new(name, list.line, format!("{key} is not a list; write one entry for each dimension: `{key}: [ … ]`")))
        }
        None => Err(FormatError::new(name, 1, format!("has no `{key}`; a network has {}", KEYS.join(", ")))),
    };
    let [topologies, npus, bandwidths, latencies] = [list(KEYS[0])?, list(KEYS[1])?, list(KEYS[2])?, list(KEYS[3])?];
    let count = topologies.entries.len();
    if count == 0 {
        return Err(FormatError::new(name, topologies.line, "topology is empty; it has one entry for each dimension"));
    }
    for (key, list) in KEYS.into_iter().zip([topologies, npus, bandwidths, latencies]) {
        if list.entries.len() != count {
            let problem = format!("{key} has {} entries, topology has {count}; both must have one for each dimension", list.entries.len());
            return Err(FormatError::new(name, list.line, problem));
        }
    }
    let dimensions = (0..count).map(|index| {
        let npus: u32 = whole(name, "npus_count", &npus.entries[index])?;
        let bandwidth = number(name, "bandwidth", &bandwidths.entries[index], "above 0 (GB/s)", |value| value > 0.0)?;
        let latency_ns = number(name, "latency", &latencies.entries[index], "at least 0 (ns)", |value| value >= 0.0)?;
        Ok(Dimension { topology: topology(name, &topologies.entries[index])?, npus, bandwidth, latency_ns })
    });
    let cluster = Cluster { dimensions: dimensions.collect::<Result<_, FormatError>>()? };
    let all = cluster.dimensions.iter().try_fold(1_u32, |all, dimension| all.checked_mul(dimension.npus));
    if all.is_none_or(|all| all > MAX_NPUS) {
        return Err(FormatError::new(
            name,
            npus.line,
            format!("npus_count multiplies to more than {MAX_NPUS} NPUs, the most that are simulated"),
        ));
    }
    Ok(cluster)
}

fn topology(name: &str, entry: &Entry) -> Result<Topology, FormatError> {
    let found = Topology::ALL.into_iter().find(|topology| topology.name() == entry.text);
    found.ok_or_else(|| {
        let known = Topology::ALL.map(Topology::name).join(", ");
        FormatError::new(name, entry.line, format!("topology is `{}`; it must be one of {known}", short(&entry.text)))
    })
}

fn whole(name: &str, key: &str, entry: &Entry) -> Result<u32, FormatError> {
    let found = entry.text.parse().ok().filter(|&npus| (2..=MAX_NPUS).contains(&npus));
    found.ok_or_else(|| {
        let problem = format!("{key} is `{}`; it must be a whole number, 2 to {MAX_NPUS}", short(&entry.text));
        FormatError::new(name, entry.line, problem)
    })
}

fn number(name: &str, key: &str, entry: &Entry, wanted: &str, fits: impl Fn(f64) -> bool) -> Result<f64, FormatError> {
    let found = entry.text.parse().ok().filter(|&value: &f64| value.is_finite() && fits(value));
    found.ok_or_else(|| FormatError::new(name, entry.line, format!("{key} is `{}`; it must be a number {wanted}", short(&entry.text))))
}

/// Reads a file that gives nodes of the workload a trace of their own: the id of the node, and the prefix of the trace's files.
///
/// # Errors
/// No YAML, a key that is not the number of a node, a value that is no text.
pub fn custom_nodes(name: &str, bytes: &[u8]) -> Result<BTreeMap<u64, String>, FormatError> {
    let mut found = BTreeMap::new();
    for (key, list) in lists(name, bytes)? {
        let error = |problem: &str| FormatError::new(name, list.line, format!("`{}` {problem}", short(&key)));
        let node: u64 = key.parse().map_err(|_| error("is not the number of a node; write `NODE: PREFIX`"))?;
        match list.entries.as_slice() {
            [prefix] if !list.is_list => found.insert(node, prefix.text.clone()),
            _ => return Err(error("has no prefix of a trace behind it; write `NODE: PREFIX`")),
        };
    }
    Ok(found)
}

/// The mapping of a file: keys, each with one value or a list of values.
fn lists(name: &str, bytes: &[u8]) -> Result<BTreeMap<String, List>, FormatError> {
    let text = text_of(name, bytes)?;
    let mut collector = Collector::default();
    let mut parser = Parser::new_from_str(text);
    if let Err(error) = parser.load(&mut collector, false) {
        let place = error.marker();
        return Err(FormatError::new(name, place.line().max(1), format!("invalid YAML: {}", error.info())).in_column(place.col() + 1));
    }
    match collector.problem {
        Some((line, problem)) => Err(FormatError::new(name, line, problem)),
        None => Ok(collector.lists),
    }
}

/// Takes in the events of the parser: one mapping, whose values are scalars or lists of scalars.
#[derive(Default)]
struct Collector {
    lists: BTreeMap<String, List>,
    /// The key whose value comes.
    key: Option<String>,
    depth: usize,
    problem: Option<(usize, String)>,
}

impl Collector {
    fn refuse(&mut self, line: usize, problem: impl Into<String>) {
        self.problem.get_or_insert((line, problem.into()));
    }

    fn open(&mut self, is_list: bool, line: usize) {
        self.depth += 1;
        match (self.depth, is_list, &self.key) {
            (1, false, None) => {}
            (2, true, Some(key)) => {
                if let Some(list) = self.lists.get_mut(key) {
                    list.is_list = true;
                }
            }
            _ => self.refuse(line, "has a list or table inside another; the file is `key: [ value, … ]`, line by line"),
        }
    }

    fn scalar(&mut self, text: String, line: usize) {
        match (self.depth, self.key.take()) {
            (1, None) => {
                let list = List { line, entries: Vec::new(), is_list: false };
                if self.lists.insert(text.clone(), list).is_some() {
                    self.refuse(line, format!("duplicate key {}", short(&text)));
                }
                self.key = Some(text);
            }
            (depth, Some(key)) => {
                if let Some(list) = self.lists.get_mut(&key) {
                    list.entries.push(Entry { text, line });
                }
                self.key = (depth == 2).then_some(key);
            }
            _ => self.refuse(line, "has a value without a key; the file is `key: [ value, … ]`, line by line"),
        }
    }
}

impl MarkedEventReceiver for Collector {
    fn on_event(&mut self, event: Event, place: Marker) {
        let line = place.line().max(1);
        match event {
            Event::Scalar(text, ..) => self.scalar(text, line),
            Event::SequenceStart(..) => self.open(true, line),
            Event::MappingStart(..) => self.open(false, line),
            Event::SequenceEnd | Event::MappingEnd => {
                self.depth = self.depth.saturating_sub(1);
                self.key = None;
            }
            Event::Alias(_) => self.refuse(line, "has an alias (`*name`), which is not read here"),
            _ => {}
        }
    }
}
