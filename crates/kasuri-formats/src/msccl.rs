//! MSCCL algorithms (`.xml`): what the threadblocks of each GPU do step by step. Reader and writer; [`check`] proves what one does.
//!
//! Source: the schedulers and tools of Azure/msccl-scheduler (a0bfca14a) and microsoft/msccl-tools (030a750fc); Cai et al.,
//! Synthesizing Optimal Collective Algorithms, PPoPP 2021. What MSCCL itself accepts: `loader.rs`.

mod check;
mod compose;
mod loader;

pub use check::{Checked, check};
pub use compose::compose;
pub use loader::as_run;

use crate::error::FormatError;
use crate::text::short;
use crate::xml::{self, Xml};
use roxmltree::Node;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// An algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// Its name.
    pub name: String,
    /// Simple, LL or LL128.
    pub protocol: String,
    /// Channels.
    pub channels: u32,
    /// Chunks of the larger of input and output.
    pub chunks: u32,
    /// What it computes.
    pub collective: Collective,
    /// Whether it may work in place.
    pub in_place: bool,
    /// Whether it may have an output of its own.
    pub out_of_place: bool,
    /// The smallest message for which it is taken, in bytes.
    pub min_bytes: u64,
    /// The largest; 0 for no limit.
    pub max_bytes: u64,
    /// The GPUs, by number.
    pub gpus: Vec<Gpu>,
    /// Notes on skipped elements of the file, one for each kind.
    pub notes: Vec<String>,
}

/// What an algorithm computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Everyone has the sum.
    AllReduce,
    /// Everyone has everything.
    AllGather,
    /// Everyone has a part of the sum.
    ReduceScatter,
    /// Everyone has a part of everyone.
    AllToAll,
    /// Everyone has what GPU 0 had.
    Broadcast,
    /// Something whose result is not known here.
    Other(&'static str),
}

/// Names in a file, the one that the scheduler knows first.
const COLLECTIVES: [(&str, Collective); 14] = [
    ("allreduce", Collective::AllReduce),
    ("allgather", Collective::AllGather),
    ("reducescatter", Collective::ReduceScatter),
    ("reduce_scatter", Collective::ReduceScatter),
    ("alltoall", Collective::AllToAll),
    ("reduce", Collective::Other("reduce")),
    ("broadcast", Collective::Broadcast),
    ("gather", Collective::Other("gather")),
    ("scatter", Collective::Other("scatter")),
    ("send", Collective::Other("send")),
    ("recv", Collective::Other("recv")),
    ("alltoallv", Collective::Other("alltoallv")),
    ("allgatherv", Collective::Other("allgatherv")),
    ("custom", Collective::Other("custom")),
];

impl Collective {
    /// Its name for the scheduler.
    pub fn name(self) -> &'static str {
        COLLECTIVES.iter().find(|(_, collective)| *collective == self).map_or("custom", |(name, _)| name)
    }
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Chunks of input, output and scratch as the file says them; of a buffer used in place it may say 0.
    pub chunks: [u32; 3],
    /// Its threadblocks, by number.
    pub blocks: Vec<ThreadBlock>,
}

/// A threadblock: its steps run in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadBlock {
    /// To whom it sends.
    pub send: Option<u32>,
    /// From whom it receives.
    pub receive: Option<u32>,
    /// The channel of both.
    pub channel: u32,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub kind: StepKind,
    /// From where.
    pub source: Place,
    /// To where.
    pub destination: Place,
    /// Chunks.
    pub count: u32,
    /// The threadblock and step of the same GPU that have to be done before.
    pub waits_for: Option<(u32, u32)>,
    /// Whether somebody waits for this step.
    pub has_dependents: bool,
}

/// A chunk of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub buffer: Buffer,
    /// The chunk.
    pub offset: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}[{}]", self.buffer.name(), self.offset)
    }
}

/// A buffer of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// What goes in.
    Input,
    /// What comes out.
    Output,
    /// A place between.
    Scratch,
}

impl Buffer {
    const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Scratch];

    fn name(self) -> &'static str {
        ["i", "o", "s"][self as usize]
    }
}

/// What a step does with its destination, its source and a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Sends the source.
    Send,
    /// Receives into the destination.
    Receive,
    /// Copies the source to the destination.
    Copy,
    /// Adds the source to the destination.
    Reduce,
    /// Receives into the destination and passes it on.
    ReceiveCopySend,
    /// Passes on what is received plus the source, and keeps nothing.
    ReceiveReduceSend,
    /// Puts what is received plus the source into the destination.
    ReceiveReduceCopy,
    /// The same, and passes it on.
    ReceiveReduceCopySend,
    /// Waits.
    Nothing,
}

const KINDS: [(&str, StepKind); 9] = [
    ("s", StepKind::Send),
    ("r", StepKind::Receive),
    ("cpy", StepKind::Copy),
    ("re", StepKind::Reduce),
    ("rcs", StepKind::ReceiveCopySend),
    ("rrs", StepKind::ReceiveReduceSend),
    ("rrc", StepKind::ReceiveReduceCopy),
    ("rrcs", StepKind::ReceiveReduceCopySend),
    ("nop", StepKind::Nothing),
];

impl StepKind {
    fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("nop", |(name, _)| name)
    }

    /// Whether a message comes in.
    pub fn receives(self) -> bool {
        !matches!(self, Self::Send | Self::Copy | Self::Reduce | Self::Nothing)
    }

    /// Whether a message goes out.
    pub fn sends(self) -> bool {
        matches!(self, Self::Send | Self::ReceiveCopySend | Self::ReceiveReduceSend | Self::ReceiveReduceCopySend)
    }

    /// Whether the source is read.
    fn reads(self) -> bool {
        !matches!(self, Self::Receive | Self::ReceiveCopySend | Self::Nothing)
    }

    /// Whether the destination is written.
    fn writes(self) -> bool {
        !matches!(self, Self::Send | Self::ReceiveReduceSend | Self::Nothing)
    }
}

/// The largest number of chunks of a buffer: more are no algorithm.
const MAX_CHUNKS: u64 = 1 << 20;

/// Reads an algorithm.
///
/// # Errors
/// No XML, an attribute that is missing or wrong, numbers that do not count up; with the line.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Algorithm, FormatError> {
    let document = xml::document(name, bytes)?;
    Reader(Xml { name, document: &document }, RefCell::default()).algorithm()
}

/// A document, and for each skipped kind of element, with its parent: their number and the first one's line.
struct Reader<'a>(Xml<'a>, RefCell<BTreeMap<(&'a str, &'a str), (u32, usize)>>);

impl<'a> Reader<'a> {
    fn number(&self, node: Node<'a, 'a>, key: &str, most: u64) -> Result<u64, FormatError> {
        self.number_in(node, key, self.0.needed(node, key)?, most)
    }

    fn number_in(&self, node: Node<'_, '_>, key: &str, text: &str, most: u64) -> Result<u64, FormatError> {
        let found = text.trim().parse().ok().filter(|&number| number <= most);
        found.ok_or_else(|| self.0.error(node, format!("{key} is `{}`; it must be a whole number, 0 to {most}", short(text))))
    }

    fn optional(&self, node: Node<'a, 'a>, key: &str, most: u64) -> Result<Option<u64>, FormatError> {
        node.attribute(key).map(|text| self.number_in(node, key, text, most)).transpose()
    }

    /// A number, or -1 for none.
    fn or_none(&self, node: Node<'a, 'a>, key: &str, most: u64) -> Result<Option<u32>, FormatError> {
        if self.0.needed(node, key)?.trim() == "-1" { Ok(None) } else { Ok(Some(self.number(node, key, most)? as u32)) }
    }

    /// The children of this name. Others are skipped, as by MSCCL's loader, with a note.
    fn children(&self, node: Node<'a, 'a>, tag: &str) -> Vec<Node<'a, 'a>> {
        let (found, others): (Vec<_>, Vec<_>) = node.children().filter(Node::is_element).partition(|child| child.tag_name().name() == tag);
        for other in others {
            let mut skipped = self.1.borrow_mut();
            let known = skipped.entry((other.tag_name().name(), node.tag_name().name())).or_insert((0, self.0.line(other)));
            known.0 += 1;
        }
        found
    }

    fn notes(&self) -> Vec<String> {
        let note = |(&(name, parent), &(count, line)): (&(&str, &str), &(u32, usize))| {
            let elements = if count == 1 { "element" } else { "elements" };
            format!("{}:{line}: {count} {elements} <{}> in <{parent}> skipped, as by MSCCL's loader", self.0.name, short(name))
        };
        self.1.borrow().iter().map(note).collect()
    }

    /// Children whose numbers in this attribute are 0, 1, 2, … in any order, in that order.
    fn numbered(&self, node: Node<'a, 'a>, tag: &str, key: &str) -> Result<Vec<Node<'a, 'a>>, FormatError> {
        let elements = self.children(node, tag);
        let mut found: Vec<Option<Node<'a, 'a>>> = vec![None; elements.len()];
        for &element in &elements {
            let number = self.number(element, key, u64::from(u32::MAX))? as usize;
            match found.get_mut(number) {
                Some(place) if place.is_none() => *place = Some(element),
                _ => {
                    let problem =
                        format!("{key} of <{tag}> is {number}; the {} in this place are numbered from 0 without gaps", elements.len());
                    return Err(self.0.error(element, problem));
                }
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn algorithm(&self) -> Result<Algorithm, FormatError> {
        let node = self.0.document.root_element();
        if node.tag_name().name() != "algo" {
            return Err(self
                .0
                .error(node, format!("begins with <{}>; an algorithm of MSCCL begins with <algo>", short(node.tag_name().name()))));
        }
        let coll = self.0.needed(node, "coll")?;
        let collective = COLLECTIVES.iter().find(|(name, _)| *name == coll).map(|(_, collective)| *collective).ok_or_else(|| {
            let known: Vec<&str> = COLLECTIVES.iter().map(|(name, _)| *name).collect();
            self.0.error(node, format!("coll is `{}`; it must be one of {}", short(coll), known.join(", ")))
        })?;
        let protocol = self.0.needed(node, "proto")?;
        if !["Simple", "LL", "LL128"].contains(&protocol) {
            return Err(self.0.error(node, format!("proto is `{}`; it must be Simple, LL or LL128", short(protocol))));
        }
        let in_place = self.number(node, "inplace", 1)? == 1;
        let gpus = self.numbered(node, "gpu", "id")?;
        if gpus.len() as u64 != self.number(node, "ngpus", u64::from(u32::MAX))? || gpus.is_empty() {
            return Err(self.0.error(node, format!("ngpus is {}, but there are {} <gpu>", self.0.needed(node, "ngpus")?, gpus.len())));
        }
        if let Some(threads) = self.optional(node, "nthreads", u64::from(u32::MAX))?.filter(|threads| !threads.is_multiple_of(32)) {
            return Err(self.0.error(node, format!("nthreads is {threads}; it must be a multiple of 32")));
        }
        let count = gpus.len() as u32;
        let mut algorithm = Algorithm {
            name: self.0.needed(node, "name")?.to_owned(),
            protocol: protocol.to_owned(),
            channels: self.number(node, "nchannels", MAX_CHUNKS)? as u32,
            chunks: self.number(node, "nchunksperloop", MAX_CHUNKS)? as u32,
            collective,
            in_place,
            out_of_place: self.optional(node, "outofplace", 1)?.map_or(!in_place, |flag| flag == 1),
            min_bytes: self.optional(node, "minBytes", u64::MAX)?.unwrap_or(0),
            max_bytes: self.optional(node, "maxBytes", u64::MAX)?.unwrap_or(0),
            gpus: gpus.into_iter().map(|gpu| self.gpu(gpu, count)).collect::<Result<_, _>>()?,
            notes: Vec::new(),
        };
        algorithm.notes = self.notes();
        Ok(algorithm)
    }

    fn gpu(&self, node: Node<'a, 'a>, gpus: u32) -> Result<Gpu, FormatError> {
        let chunks = |key| Ok(self.number(node, key, MAX_CHUNKS)? as u32);
        let blocks = self.numbered(node, "tb", "id")?;
        Ok(Gpu {
            chunks: [chunks("i_chunks")?, chunks("o_chunks")?, chunks("s_chunks")?],
            blocks: blocks.into_iter().map(|block| self.block(block, gpus)).collect::<Result<_, _>>()?,
        })
    }

    fn block(&self, node: Node<'a, 'a>, gpus: u32) -> Result<ThreadBlock, FormatError> {
        let peer = |key| self.or_none(node, key, u64::from(gpus) - 1);
        let mut block = ThreadBlock {
            send: peer("send")?,
            receive: peer("recv")?,
            channel: self.number(node, "chan", MAX_CHUNKS)? as u32,
            steps: Vec::new(),
        };
        for (place, step) in self.children(node, "step").into_iter().enumerate() {
            if self.number(step, "s", u64::from(u32::MAX))? != place as u64 {
                let problem = format!(
                    "s of <step> is {}; MSCCL runs steps in the order of the file, in which this is step {place}",
                    self.0.needed(step, "s")?
                );
                return Err(self.0.error(step, problem));
            }
            let read = self.step(step)?;
            for (needed, peer, key) in [(read.kind.sends(), block.send, "send"), (read.kind.receives(), block.receive, "recv")] {
                if needed && peer.is_none() {
                    return Err(self.0.error(step, format!("type `{}` needs a peer, but `{key}` of its <tb> is -1", read.kind.name())));
                }
            }
            block.steps.push(read);
        }
        Ok(block)
    }

    fn step(&self, node: Node<'a, 'a>) -> Result<Step, FormatError> {
        let kind = self.0.needed(node, "type")?;
        let kind = KINDS.iter().find(|(name, _)| *name == kind).map(|(_, kind)| *kind).ok_or_else(|| {
            let known = KINDS.map(|(name, _)| name).join(", ");
            self.0.error(node, format!("type is `{}`; it must be one of {known}", short(kind)))
        })?;
        let most = u64::from(u32::MAX);
        let place = |buffer: &str, offset: &str, is_used: bool| {
            let name = self.0.needed(node, buffer)?;
            let found = Buffer::ALL.into_iter().find(|buffer| buffer.name() == name);
            let buffer = found.ok_or_else(|| self.0.error(node, format!("{buffer} is `{}`; it must be i, o or s", short(name))))?;
            let text = self.0.needed(node, offset)?;
            // A step needs no offset in a buffer that it does not use.
            let offset = if !is_used && text.trim() == "-1" { 0 } else { self.number(node, offset, most)? };
            Ok(Place { buffer, offset: offset as u32 })
        };
        let waits_for = self.or_none(node, "depid", most)?.zip(self.or_none(node, "deps", most)?);
        Ok(Step {
            kind,
            source: place("srcbuf", "srcoff", kind.reads())?,
            destination: place("dstbuf", "dstoff", kind.writes())?,
            count: self.number(node, "cnt", MAX_CHUNKS)? as u32,
            waits_for,
            has_dependents: self.number(node, "hasdep", 1)? == 1,
        })
    }
}

/// Writes an algorithm with all attributes that the scheduler needs. Reading the text gives the same algorithm, without notes.
pub fn write(algorithm: &Algorithm) -> String {
    let none = |number: Option<u32>| number.map_or("-1".to_owned(), |number| number.to_string());
    let mut text = format!(
        "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" inplace=\"{}\" outofplace=\"{}\" \
         minBytes=\"{}\" maxBytes=\"{}\">\n",
        escaped(&algorithm.name),
        algorithm.protocol,
        algorithm.channels,
        algorithm.chunks,
        algorithm.gpus.len(),
        algorithm.collective.name(),
        u8::from(algorithm.in_place),
        u8::from(algorithm.out_of_place),
        algorithm.min_bytes,
        algorithm.max_bytes,
    );
    for (id, gpu) in algorithm.gpus.iter().enumerate() {
        let [input, output, scratch] = gpu.chunks;
        let _ = writeln!(text, "  <gpu id=\"{id}\" i_chunks=\"{input}\" o_chunks=\"{output}\" s_chunks=\"{scratch}\">");
        for (id, block) in gpu.blocks.iter().enumerate() {
            let (send, receive) = (none(block.send), none(block.receive));
            let _ = writeln!(text, "    <tb id=\"{id}\" send=\"{send}\" recv=\"{receive}\" chan=\"{}\">", block.channel);
            for (s, step) in block.steps.iter().enumerate() {
                write_step(&mut text, s, step);
            }
            text.push_str("    </tb>\n");
        }
        text.push_str("  </gpu>\n");
    }
    text.push_str("</algo>\n");
    text
}

fn write_step(text: &mut String, number: usize, step: &Step) {
    let (depid, deps) = step.waits_for.map_or((-1, -1), |(block, step)| (i64::from(block), i64::from(step)));
    let _ = writeln!(
        text,
        "      <step s=\"{number}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{}\" depid=\"{depid}\" \
         deps=\"{deps}\" hasdep=\"{}\"/>",
        step.kind.name(),
        step.source.buffer.name(),
        step.source.offset,
        step.destination.buffer.name(),
        step.destination.offset,
        step.count,
        u8::from(step.has_dependents),
    );
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(escaped, "&#{};", u32::from(character));
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
