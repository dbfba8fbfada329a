//! A connection matrix: `.cm`, `.tm`.

use super::shown;
use crate::error::FormatError;
use crate::text::text_of;
use kasuri_workload::ethernet::fabric::MAX_HOSTS;
use kasuri_workload::ethernet::matrix::{Begin, Connection, Matrix, Trigger, TriggerKind};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Split;

/// The latest start, µs.
const MAX_START_US: f64 = 1e12;

/// The most bytes of a flow: a signed number of 32 bits.
const MAX_BYTES: u64 = i32::MAX as u64;

/// A connection matrix, and what it says that nothing models.
#[derive(Clone, Debug)]
pub struct Read {
    /// The flows and triggers.
    pub matrix: Matrix,
    /// Words that have no effect, with the number of flows that have them.
    pub ignored: BTreeMap<&'static str, u64>,
}

/// The flows of a connection matrix.
///
/// # Errors
/// A line of another form, hosts, flows or triggers that are not there or are there twice, counts that the file does not hold, and what
/// the simulator whose format this is does not survive: a flow of no bytes, or to its own host, a trigger told more often than it can be.
pub fn matrix(name: &str, bytes: &[u8]) -> Result<Read, FormatError> {
    let mut file = File {
        name,
        header: BTreeMap::new(),
        is_header: true,
        flows: Vec::new(),
        ids: BTreeMap::new(),
        triggers: BTreeMap::new(),
        ignored: BTreeMap::new(),
    };
    for (number, line) in (1..).zip(text_of(name, bytes)?.split('\n')) {
        file.line(number, line.trim_end_matches(['\r', ' ']))?;
    }
    file.matrix()
}

/// A flow as it is written, with numbers of triggers in place of indices.
#[derive(Debug)]
struct Flow {
    line: usize,
    connection: Connection,
    begins: Option<u32>,
    tells: Option<u32>,
    hears_reception: Option<u32>,
}

struct File<'a> {
    name: &'a str,
    header: BTreeMap<&'static str, (u64, usize)>,
    is_header: bool,
    flows: Vec<Flow>,
    /// The line of each flow number.
    ids: BTreeMap<u32, usize>,
    /// Kind and line of each trigger.
    triggers: BTreeMap<u32, (TriggerKind, usize)>,
    ignored: BTreeMap<&'static str, u64>,
}

type Words<'a> = Peekable<Split<'a, char>>;

impl<'a> File<'a> {
    fn error(&self, line: usize, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, line.max(1), problem)
    }

    fn line(&mut self, number: usize, line: &'a str) -> Result<(), FormatError> {
        if line.is_empty() || self.is_header && line.starts_with('#') {
            return Ok(());
        }
        let mut words = line.split(' ').peekable();
        let first = words.next().unwrap_or_default();
        if let Some((source, destination)) = first.split_once("->") {
            self.is_header = false;
            return self.connection(number, source, destination, words);
        }
        match first {
            "trigger" => {
                self.is_header = false;
                self.trigger(number, words)
            }
            "failure" => Err(self.error(
                number,
                "failure: missing links are not modelled; the simulator whose format this is ends at the first packet that needs one",
            )),
            _ if self.is_header => self.header_line(number, first, words),
            _ if first.starts_with('#') => Err(self.error(number, "comments are allowed before the first connection only")),
            _ => Err(self.error(number, format!("`{}` begins neither a connection (`0->13 …`) nor a trigger", shown(first)))),
        }
    }

    fn header_line(&mut self, number: usize, key: &str, mut words: Words<'a>) -> Result<(), FormatError> {
        let known = ["Nodes", "Connections", "Triggers", "Failures"].into_iter().find(|known| *known == key);
        if let Some(key) = known {
            let value = self.whole(number, key, words.next(), u64::from(u32::MAX))?;
            self.header.insert(key, (value, number));
        }
        Ok(())
    }

    /// A whole number up to a limit.
    fn whole(&self, line: usize, key: &str, word: Option<&str>, limit: u64) -> Result<u64, FormatError> {
        let Some(word) = word else {
            return Err(self.error(line, format!("{key}: the number behind it is missing")));
        };
        let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let value = if digits { word.parse().ok().filter(|&value: &u64| value <= limit) } else { None };
        value.ok_or_else(|| {
            self.error(line, format!("{key}: invalid number `{}`; expected a whole number from 0 to {limit}, after one blank", shown(word)))
        })
    }

    fn small(&self, line: usize, key: &str, word: Option<&str>) -> Result<u32, FormatError> {
        Ok(self.whole(line, key, word, i32::MAX as u64)? as u32)
    }

    fn nodes(&self) -> Result<u32, FormatError> {
        match self.header.get("Nodes") {
            Some(&(nodes, _)) if (1..=u64::from(MAX_HOSTS)).contains(&nodes) => Ok(nodes as u32),
            Some(&(nodes, line)) => Err(self.error(line, format!("Nodes: {nodes} hosts; there may be 1 to {MAX_HOSTS}"))),
            None => Err(self.error(1, "Nodes is missing before the first connection")),
        }
    }

    fn connection(&mut self, line: usize, source: &str, destination: &str, mut words: Words<'a>) -> Result<(), FormatError> {
        let hosts = u64::from(self.nodes()?);
        let source = self.whole(line, "source", Some(source), hosts - 1)? as u32;
        let destination = self.whole(line, "destination", Some(destination), hosts - 1)? as u32;
        if source == destination {
            return Err(self.error(line, format!("the flow leads from host {source} to itself")));
        }
        let mut flow = FlowWords::default();
        while let Some(word) = words.next() {
            self.word(line, word, &mut words, &mut flow)?;
        }
        let Some(bytes) = flow.bytes else {
            return Err(self.error(line, "size is missing: how many bytes the flow has"));
        };
        if flow.start_ps.is_none() && flow.begins.is_none() {
            return Err(self.error(line, "neither start nor trigger says when the flow begins"));
        }
        let begin = Begin::At(flow.start_ps.unwrap_or(0));
        let id = flow.id.unwrap_or(0);
        let connection = Connection { source, destination, bytes, id, begin, tells: None };
        self.flows.push(Flow { line, connection, begins: flow.begins, tells: flow.tells, hears_reception: flow.hears_reception });
        Ok(())
    }

    /// One word of a connection, with the number behind it.
    fn word(&mut self, line: usize, word: &str, words: &mut Words<'a>, flow: &mut FlowWords) -> Result<(), FormatError> {
        match word {
            "start" => {
                if flow.begins.is_some() {
                    return Err(self.error(line, "start behind trigger: the trigger begins the flow; leave start out, or write it before"));
                }
                flow.start_ps = Some(self.start(line, words.next())?);
            }
            "size" => match self.whole(line, "size", words.next(), MAX_BYTES)? {
                0 => return Err(self.error(line, "size: a flow of 0 bytes begins and never ends")),
                bytes => flow.bytes = Some(bytes),
            },
            "id" => flow.id = Some(self.id(line, words.next())?),
            "trigger" => {
                if flow.id.is_none() {
                    return Err(self.error(line, "trigger: the flow needs an `id` before it on the line"));
                }
                flow.begins = Some(self.small(line, "trigger", words.next())?);
            }
            "send_done_trigger" => flow.tells = Some(self.small(line, word, words.next())?),
            "recv_done_trigger" => {
                flow.hears_reception = Some(self.small(line, word, words.next())?);
                *self.ignored.entry("recv_done_trigger").or_default() += 1;
            }
            "prio" => {
                self.small(line, word, words.next())?;
                *self.ignored.entry("prio").or_default() += 1;
            }
            "msg" => return Err(self.error(line, "msg: connections that send several messages in turn (-conn_reuse) are not modelled")),
            "" => return Err(self.error(line, "two blanks in a row; words are separated by one")),
            _ => {
                let known = "start, size, id, trigger, send_done_trigger, recv_done_trigger, prio";
                return Err(self.error(line, format!("unknown word `{}` of a connection; known words: {known}", shown(word))));
            }
        }
        Ok(())
    }

    fn id(&mut self, line: usize, word: Option<&str>) -> Result<u32, FormatError> {
        let id = self.small(line, "id", word)?;
        if id == 0 {
            return Err(self.error(line, "id: invalid flow number 0; flow numbers begin with 1"));
        }
        match self.ids.insert(id, line) {
            None => Ok(id),
            Some(before) => Err(self.error(line, format!("id: flow {id} is also on line {before}"))),
        }
    }

    /// Whole microseconds in picoseconds, read with the 24 digits of a 32-bit floating-point number.
    fn start(&self, line: usize, word: Option<&str>) -> Result<u64, FormatError> {
        let word = word.unwrap_or_default();
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
        match word.parse::<f32>() {
            Ok(start) if is_number && start >= 0.0 && f64::from(start) <= MAX_START_US => Ok(start.trunc() as u64 * 1_000_000),
            _ => Err(self.error(line, format!("start: invalid time `{}`; expected µs from 0 to {MAX_START_US:.0}", shown(word)))),
        }
    }

    fn trigger(&mut self, line: usize, mut words: Words<'a>) -> Result<(), FormatError> {
        if words.next() != Some("id") {
            return Err(self.error(line, "a trigger is written `trigger id 1 oneshot`, `… multishot` or `… barrier count 16`"));
        }
        let id = self.small(line, "id", words.next())?;
        let kind = match words.next().unwrap_or_default() {
            "oneshot" => TriggerKind::Oneshot,
            "multishot" => TriggerKind::Multishot,
            "barrier" => TriggerKind::Barrier(0),
            other => {
                return Err(self.error(line, format!("unknown trigger kind `{}`; expected oneshot, multishot or barrier", shown(other))));
            }
        };
        let mut count = None;
        if words.next_if_eq(&"count").is_some() {
            count = Some(self.small(line, "count", words.next())?);
        }
        if let Some(word) = words.next() {
            return Err(self.error(line, format!("unexpected `{}` after the trigger; expected `count` and a number", shown(word))));
        }
        let kind = match (kind, count) {
            (TriggerKind::Barrier(_), None | Some(0)) => {
                return Err(self.error(line, "barrier: `count` and a number of signals are missing, or 0"));
            }
            (TriggerKind::Barrier(_), Some(count)) => TriggerKind::Barrier(count),
            (kind, _) => kind,
        };
        match self.triggers.insert(id, (kind, line)) {
            None => Ok(()),
            Some((_, before)) => Err(self.error(line, format!("trigger {id} is described a second time; the first is on line {before}"))),
        }
    }

    fn matrix(mut self) -> Result<Read, FormatError> {
        let hosts = self.nodes()?;
        self.check_count("Connections", self.flows.len())?;
        self.check_count("Triggers", self.triggers.len())?;
        self.check_count("Failures", 0)?;
        self.check_triggers()?;
        self.number_flows();
        let indices: BTreeMap<u32, u32> = self.triggers.keys().copied().zip(0..).collect();
        let described = self.triggers.iter().map(|(&id, &(kind, _))| Trigger { id, kind, flows: Vec::new() });
        let mut triggers: Vec<Trigger> = described.collect();
        let mut connections = Vec::with_capacity(self.flows.len());
        for (flow, index) in self.flows.iter().zip(0..) {
            let mut connection = flow.connection;
            if let Some(trigger) = flow.begins.map(|id| indices[&id]) {
                triggers[trigger as usize].flows.push(index);
                connection.begin = Begin::Trigger(trigger);
            }
            connection.tells = flow.tells.map(|id| indices[&id]);
            connections.push(connection);
        }
        Ok(Read { matrix: Matrix { hosts, connections, triggers }, ignored: self.ignored })
    }

    fn check_count(&self, key: &str, found: usize) -> Result<(), FormatError> {
        let (said, line) = self.header.get(key).copied().unwrap_or((0, 1));
        if said == found as u64 { Ok(()) } else { Err(self.error(line, format!("{key}: the header says {said}, the file holds {found}"))) }
    }

    /// Every trigger that is used is described, and is told as often as it can stand.
    fn check_triggers(&self) -> Result<(), FormatError> {
        let mut told: BTreeMap<u32, u32> = BTreeMap::new();
        let mut begun: BTreeMap<u32, u32> = BTreeMap::new();
        for flow in &self.flows {
            let used = [("trigger", flow.begins), ("send_done_trigger", flow.tells), ("recv_done_trigger", flow.hears_reception)];
            for (key, id) in used {
                if let Some(id) = id.filter(|id| !self.triggers.contains_key(id)) {
                    return Err(self.error(flow.line, format!("{key}: trigger {id} is not described; add `trigger id {id} oneshot`")));
                }
            }
            flow.begins.into_iter().for_each(|id| *begun.entry(id).or_default() += 1);
            let Some(id) = flow.tells else { continue };
            let times = told.entry(id).or_default();
            *times += 1;
            let most = match self.triggers[&id].0 {
                TriggerKind::Oneshot => 1,
                TriggerKind::Multishot => u32::MAX,
                TriggerKind::Barrier(count) => count,
            };
            if *times > most {
                let problem = format!(
                    "send_done_trigger: trigger {id} (line {}) would be signalled {times} times; at most {most} are possible",
                    self.triggers[&id].1
                );
                return Err(self.error(flow.line, problem));
            }
        }
        match self.triggers.iter().find(|(id, (kind, _))| *kind == TriggerKind::Oneshot && told.contains_key(id) && !begun.contains_key(id))
        {
            None => Ok(()),
            Some((id, (_, line))) => Err(self.error(*line, format!("trigger {id} is signalled and starts no flow"))),
        }
    }

    /// Flows without a number get the least that is free.
    fn number_flows(&mut self) {
        let mut next = 1;
        for flow in &mut self.flows {
            if flow.connection.id == 0 {
                while self.ids.contains_key(&next) {
                    next += 1;
                }
                flow.connection.id = next;
                next += 1;
            }
        }
    }
}

/// What the words of a connection say.
#[derive(Debug, Default)]
struct FlowWords {
    start_ps: Option<u64>,
    bytes: Option<u64>,
    id: Option<u32>,
    begins: Option<u32>,
    tells: Option<u32>,
    hears_reception: Option<u32>,
}
