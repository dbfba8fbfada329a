//! Chakra execution traces (`.et`): records of protobuf, each behind its length.
//!
//! Record 0 is the global metadata, every further one a node. There are two schemas: that of October 2023 and later, and the one before
//! (v0.0.3 and older, `proto2`), in which attributes have other numbers and dependencies are called parents; each node says which it is.
//! The reader takes pieces of a file as they come, so that a trace need not lie in memory as bytes. Source: `et_def.proto` of
//! mlcommons/chakra at a1120dd and 29de3e1.

mod node;
mod wire;

use kasuri_network::topology::Files;
use kasuri_workload::execution::trace::Trace;
use thiserror::Error;
use wire::Varint;

/// What is wrong in a trace, and in which record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}: {place}: {problem}")]
pub struct TraceError {
    /// The file's name as the user gave it.
    pub name: String,
    /// Which record, or node, and where it begins.
    pub place: String,
    /// What was found and what would be right.
    pub problem: String,
}

/// Bytes of the largest record: a node of a real trace has some hundred, the metadata may hold the whole text that it was made from.
const MAX_RECORD: u64 = 1 << 30;

/// Reads a trace whose bytes come in pieces.
#[derive(Debug)]
pub struct Reader<'a> {
    name: &'a str,
    /// What has come and is not read yet.
    waiting: Vec<u8>,
    /// Records that were read.
    records: u64,
    /// Bytes before `waiting`.
    offset: u64,
    trace: Trace,
}

impl<'a> Reader<'a> {
    /// Of an empty file so far.
    pub fn new(name: &'a str) -> Self {
        Self { name, waiting: Vec::new(), records: 0, offset: 0, trace: Trace::default() }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// A record that ends with this piece is no node of Chakra.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), TraceError> {
        let mut bytes = std::mem::take(&mut self.waiting);
        bytes.extend_from_slice(piece);
        let mut begin = 0;
        loop {
            let rest = &bytes[begin..];
            let (length, header) = match wire::varint(rest) {
                Varint::Number { value, length } => (value, length),
                Varint::CutOff => break,
                Varint::TooLong => {
                    return Err(self.error("begins with a length of more than 64 bits; a trace of Chakra begins with a small one"));
                }
            };
            if length > MAX_RECORD {
                let problem = format!("says that it has {length} bytes; at most 2^30 are read. Is this a trace of Chakra?");
                return Err(self.error(problem));
            }
            let Some(record) = rest.get(header..header + length as usize) else { break };
            self.record(record)?;
            begin += header + record.len();
            self.offset += (header + record.len()) as u64;
            self.records += 1;
        }
        bytes.drain(..begin);
        self.waiting = bytes;
        Ok(())
    }

    /// The trace, when all pieces have come.
    ///
    /// # Errors
    /// The file ends within a record, has none, or a duplicate id.
    pub fn finish(mut self) -> Result<Trace, TraceError> {
        if !self.waiting.is_empty() {
            let problem = format!("the file ends within it, after {} bytes; is it cut off?", self.waiting.len());
            return Err(self.error(problem));
        }
        if self.records == 0 {
            return Err(self.error("the file is empty; a trace of Chakra begins with its metadata"));
        }
        let nodes = &mut self.trace.nodes;
        nodes.sort_by_key(|node| node.id);
        nodes.shrink_to_fit();
        if let Some(pair) = nodes.windows(2).find(|pair| pair[0].id == pair[1].id) {
            let place = format!("node {}", pair[0].id);
            let problem = format!("duplicate id (`{}` and `{}`); each node has its own", pair[0].name, pair[1].name);
            return Err(TraceError { name: self.name.to_owned(), place, problem });
        }
        Ok(self.trace)
    }

    fn record(&mut self, record: &[u8]) -> Result<(), TraceError> {
        if self.records == 0 {
            return node::check_metadata(record).map_err(|problem| self.error(problem));
        }
        let node = node::parse(record, &mut self.trace.unmodelled).map_err(|problem| self.error(problem))?;
        self.trace.nodes.push(node);
        Ok(())
    }

    fn error(&self, problem: impl Into<String>) -> TraceError {
        let place = match self.records {
            0 => "record 0, the metadata".to_owned(),
            records => format!("record {records} (at byte {})", self.offset),
        };
        TraceError { name: self.name.to_owned(), place, problem: problem.into() }
    }
}

/// Reads a trace that lies in memory.
///
/// # Errors
/// See [`Reader`].
pub fn parse(name: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
    let mut reader = Reader::new(name);
    reader.push(bytes)?;
    reader.finish()
}

/// The error of reading a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// There is no such file.
    Absent(String),
    /// The file cannot be read, or is not a trace.
    Invalid(String),
}

impl ReadError {
    /// The message.
    pub fn problem(self) -> String {
        match self {
            Self::Absent(problem) | Self::Invalid(problem) => problem,
        }
    }
}

/// Reads the trace in a file.
///
/// # Errors
/// It is not there, cannot be read or is no trace.
pub fn read(files: &dyn Files, path: &str) -> Result<Trace, ReadError> {
    let mut reader = Reader::new(path);
    let mut wrong = None;
    let read = files.read_pieces(path, &mut |piece| match reader.push(piece) {
        Ok(()) => true,
        Err(error) => {
            wrong = Some(error);
            false
        }
    });
    read.map_err(|problem| if files.is_there(path) { ReadError::Invalid(problem) } else { ReadError::Absent(problem) })?;
    wrong.map_or_else(|| reader.finish(), Err).map_err(|error| ReadError::Invalid(error.to_string()))
}

/// Is there a trace of NPU 0, or of the first position of an algorithm?
pub fn is_there(files: &dyn Files, prefix: &str) -> bool {
    file_names(prefix, 0).iter().any(|name| files.is_there(name))
}

/// What the file of an NPU may be called.
fn file_names(prefix: &str, npu: u32) -> [String; 2] {
    let plain = format!("{prefix}.{npu}.et");
    let packed = format!("{plain}.gz");
    [plain, packed]
}

/// Reads the trace of an NPU, or of a position of an algorithm: `PREFIX.0.et`, `PREFIX.1.et` and so on, plain or with `.gz` behind.
///
/// # Errors
/// As [`read`].
pub fn read_of(files: &dyn Files, prefix: &str, npu: u32) -> Result<Trace, ReadError> {
    let [plain, packed] = file_names(prefix, npu);
    match read(files, &plain) {
        Err(ReadError::Absent(problem)) => match read(files, &packed) {
            Err(ReadError::Absent(_)) => Err(ReadError::Absent(format!("{problem}; there is no {packed} either"))),
            found => found,
        },
        found => found,
    }
}

/// A phrase about the ranks of a trace's files that a network of `npus` NPUs does not have; `None` if there are none.
pub fn surplus(files: &dyn Files, prefix: &str, npus: u32) -> Option<String> {
    let is_there = |&npu: &u32| file_names(prefix, npu).iter().any(|name| files.is_there(name));
    let ranks = npus + (npus..).take_while(is_there).count() as u32;
    let words = || {
        let last = ranks - 1;
        format!("the part of ranks {npus} to {last} in the trace ({ranks} ranks on {npus} NPUs: the times are not those of the trace)")
    };
    (ranks > npus).then(words)
}

/// Reads the traces of an algorithm for groups of NPUs: those of its positions, as many as there are, at most `npus`.
///
/// # Errors
/// That of position 0 is not there, or one of them cannot be read or is no trace.
pub fn read_algorithm(files: &dyn Files, prefix: &str, npus: u32) -> Result<Vec<Trace>, ReadError> {
    let mut traces = vec![read_of(files, prefix, 0)?];
    for position in 1..npus {
        match read_of(files, prefix, position) {
            Err(ReadError::Absent(_)) => break,
            found => traces.push(found?),
        }
    }
    Ok(traces)
}

#[cfg(test)]
mod tests;
