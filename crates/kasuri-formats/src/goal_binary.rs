//! GOAL, the binary form that LogGOPSim reads: what its `txt2bin` makes of a text.
//!
//! Little endian, packed: a magic number (64 bits), ranks (32), the highest `cpu` and `nic` (8 each); for each rank where its part begins
//! and ends (64 each, counted from byte 8). A part: nodes and roots (32 each), the roots (32 each), the nodes, and a list of those that wait
//! for a node, to which the nodes point. A node of LogGOPSim 2 has 104 bytes, one of LogGOPSim 1 the first 39 of them; the magic number
//! is the same and no version says which, so that the one is taken that fits every part. Source: files that LogGOPSim 2's tools wrote.

use kasuri_workload::workload::program::{Dependency, Description, Kind, MAX_OPERATIONS, Operation};
use thiserror::Error;

/// With which a file begins.
const MAGIC: u64 = 4223;
/// The same of a file that a run has spoiled.
const SPOILED: u64 = 2342;

/// Bytes before the table of ranks.
const HEADER: usize = 14;
/// From which on the table counts.
const BASE: usize = 8;
/// Bytes of a node of LogGOPSim 2, and of LogGOPSim 1.
const NODE_SIZES: [usize; 2] = [104, 39];

/// What is wrong in a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}: {place}: {problem}")]
pub struct BinaryError {
    /// The file's name as the user gave it.
    pub name: String,
    /// The rank and node.
    pub place: String,
    /// What was found and what would be right.
    pub problem: String,
}

/// Whether a file is in the binary form.
pub fn is_binary(bytes: &[u8]) -> bool {
    matches!(number::<8>(bytes, 0), Some(MAGIC | SPOILED))
}

/// Reads a program.
///
/// # Errors
/// The first thing that is not GOAL's binary form, or that Kasuri does not simulate, with its rank and node.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Description, BinaryError> {
    let reader = Reader { name, bytes };
    if number::<8>(bytes, 0) != Some(MAGIC) {
        let problem = "is marked as invalid by LogGOPSim, which writes into the file that it runs; take a copy that has not been run";
        return Err(reader.error("the header", problem));
    }
    let ranks = number::<4>(bytes, 8).unwrap_or(0) as u32;
    let parts = reader.parts(ranks)?;
    let size = reader.node_size(&parts)?;
    let mut description = Description { ranks, ..Description::default() };
    for (rank, part) in (0..).zip(&parts) {
        reader.read_part(rank, part, size, &mut description)?;
    }
    Ok(description)
}

/// The unsigned number of `N` bytes at a place.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(N)?)?;
    Some(found.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// The part of a rank.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    bytes: &'a [u8],
    nodes: usize,
    /// Where the nodes begin.
    first: usize,
}

/// A node of the file.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: u8,
    peer: u32,
    size: u64,
    tag: u32,
    cpu: u32,
    nic: u32,
    /// How many wait for its end, and where their list begins; the same of its start.
    after_end: (u64, u64),
    after_start: (u64, u64),
}

impl Part<'_> {
    fn node(&self, node: usize, size: usize) -> Option<Node> {
        let at = self.first.checked_add(node.checked_mul(size)?)?;
        let of_4 = |offset: usize| number::<4>(self.bytes, at + offset);
        Some(Node {
            kind: number::<1>(self.bytes, at + 4)? as u8,
            peer: of_4(5)? as u32,
            size: number::<8>(self.bytes, at + 9)?,
            tag: of_4(17)? as u32,
            cpu: number::<1>(self.bytes, at + 21)? as u32,
            nic: number::<1>(self.bytes, at + 22)? as u32,
            after_end: (of_4(23)?, of_4(27)?),
            after_start: (of_4(31)?, of_4(35)?),
        })
    }

    /// Whether nodes of this size and the list behind them fill the part.
    fn fits(&self, size: usize) -> bool {
        let waiting = (0..self.nodes).try_fold(0_u64, |sum, node| {
            let node = self.node(node, size)?;
            sum.checked_add(node.after_end.0 + node.after_start.0)
        });
        let nodes = self.nodes.checked_mul(size).map(|bytes| (bytes + self.first) as u64);
        matches!((waiting, nodes), (Some(waiting), Some(nodes)) if waiting.checked_mul(4).map(|list| list + nodes) == Some(self.bytes.len() as u64))
    }
}

struct Reader<'a> {
    name: &'a str,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn error(&self, place: impl Into<String>, problem: impl Into<String>) -> BinaryError {
        BinaryError { name: self.name.to_owned(), place: place.into(), problem: problem.into() }
    }

    fn parts(&self, ranks: u32) -> Result<Vec<Part<'a>>, BinaryError> {
        if ranks == 0 {
            return Err(self.error("the header", "is a program of 0 ranks; it needs at least 1"));
        }
        (0..ranks).map(|rank| self.part(rank)).collect()
    }

    fn part(&self, rank: u32) -> Result<Part<'a>, BinaryError> {
        let place = format!("rank {rank}");
        let entry = HEADER + 16 * rank as usize;
        let cut_off = || self.error(place.clone(), format!("lies beyond the {} bytes of the file; is it cut off?", self.bytes.len()));
        let (Some(begin), Some(end)) = (number::<8>(self.bytes, entry), number::<8>(self.bytes, entry + 8)) else { return Err(cut_off()) };
        let shifted = |at: u64| usize::try_from(at).ok()?.checked_add(BASE);
        let bytes = shifted(begin).zip(shifted(end)).and_then(|(begin, end)| self.bytes.get(begin..end)).ok_or_else(cut_off)?;
        let (Some(nodes), Some(roots)) = (number::<4>(bytes, 0), number::<4>(bytes, 4)) else { return Err(cut_off()) };
        let first = 8 + 4 * roots as usize;
        if first > bytes.len() || nodes > bytes.len() as u64 {
            return Err(self.error(place, format!("has {} bytes, too few for {nodes} nodes and {roots} roots", bytes.len())));
        }
        Ok(Part { bytes, nodes: nodes as usize, first })
    }

    /// Bytes of a node: those that fit every part.
    fn node_size(&self, parts: &[Part<'_>]) -> Result<usize, BinaryError> {
        let fits = |size: &usize| parts.iter().all(|part| part.fits(*size));
        NODE_SIZES.into_iter().find(fits).ok_or_else(|| {
            let rank = parts.iter().position(|part| !NODE_SIZES.iter().any(|&size| part.fits(size))).unwrap_or(0);
            let problem = "is not filled by nodes of 104 bytes (LogGOPSim 2) or 39 (LogGOPSim 1) and their lists";
            self.error(format!("rank {rank}"), problem)
        })
    }

    fn read_part(&self, rank: u32, part: &Part<'_>, size: usize, description: &mut Description) -> Result<(), BinaryError> {
        let first = description.operations.len();
        if first + part.nodes > MAX_OPERATIONS {
            return Err(self.error(format!("rank {rank}"), format!("the program has more than {MAX_OPERATIONS} operations")));
        }
        let list = part.first + part.nodes * size;
        for number in 0..part.nodes {
            let place = || format!("rank {rank}: node {number}");
            let node = part.node(number, size).ok_or_else(|| self.error(place(), "is cut off"))?;
            let kind = kind(&node).map_err(|problem| self.error(place(), problem))?;
            if !matches!(kind, Kind::Compute { .. }) && node.nic > 0 {
                description.interfaces.insert(description.operations.len() as u32, node.nic);
            }
            description.operations.push(Operation { rank, cpu: node.cpu, kind, line: 0 });
            for ((count, begin), on_start) in [(node.after_end, false), (node.after_start, true)] {
                for entry in begin..begin + count {
                    let at = usize::try_from(entry).ok().and_then(|entry| entry.checked_mul(4)?.checked_add(list));
                    let waiting = at.and_then(|at| self::number::<4>(part.bytes, at)).filter(|&waiting| waiting < part.nodes as u64);
                    let waiting = waiting.ok_or_else(|| self.error(place(), "names an operation after it that is not there"))?;
                    let operation = first as u32 + waiting as u32;
                    description.dependencies.push(Dependency { operation, on: (first + number) as u32, on_start });
                }
            }
        }
        Ok(())
    }
}

/// What a node does.
fn kind(node: &Node) -> Result<Kind, String> {
    match node.kind {
        1 => Ok(Kind::Send { to: node.peer, bytes: node.size, tag: node.tag }),
        2 => Ok(Kind::Receive { from: node.peer, bytes: node.size, tag: node.tag }),
        3 => Ok(Kind::Compute { ns: node.size }),
        other @ 4..=11 => {
            Err(format!("is an operation of Portals 4 (type {other}), which is not simulated; there are send, recv and calc"))
        }
        other => Err(format!("has the type {other}; there are 1 (send), 2 (recv) and 3 (calc)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal;

    const TEXT: &str = "num_ranks 2\nrank 0 {\na: calc 500 cpu 1\nb: send 8b to 1 tag 3\nb requires a\nc: calc 7\nc irequires b\n}\n\
                        rank 1 {\nr: recv 8b from 0 tag 3\n}";

    /// A program in the binary form, nodes of `size` bytes.
    fn write(description: &Description, size: usize) -> Vec<u8> {
        let mut parts = Vec::new();
        for rank in 0..description.ranks {
            let own: Vec<usize> = (0..description.operations.len()).filter(|&node| description.operations[node].rank == rank).collect();
            let first = own.first().copied().unwrap_or(0) as u32;
            let (mut nodes, mut list) = (Vec::new(), Vec::<u32>::new());
            for &node in &own {
                let operation = description.operations[node];
                let (kind, peer, bytes, tag) = match operation.kind {
                    Kind::Send { to, bytes, tag } => (1_u8, to, bytes, tag),
                    Kind::Receive { from, bytes, tag } => (2, from, bytes, tag),
                    Kind::Compute { ns } => (3, 0, ns, 0),
                };
                let begin = nodes.len();
                nodes.extend(0_u32.to_le_bytes());
                nodes.push(kind);
                nodes.extend(peer.to_le_bytes());
                nodes.extend(bytes.to_le_bytes());
                nodes.extend(tag.to_le_bytes());
                nodes.extend([operation.cpu as u8, 0]);
                for on_start in [false, true] {
                    let after = |other: &&Dependency| other.on as usize == node && other.on_start == on_start;
                    let waiting: Vec<u32> = description.dependencies.iter().filter(after).map(|other| other.operation - first).collect();
                    nodes.extend((waiting.len() as u32).to_le_bytes());
                    nodes.extend((list.len() as u32).to_le_bytes());
                    list.extend(waiting);
                }
                nodes.resize(begin + size, 0);
            }
            let mut part = Vec::from((own.len() as u32).to_le_bytes());
            part.extend(0_u32.to_le_bytes());
            part.extend(nodes);
            part.extend(list.iter().flat_map(|number| number.to_le_bytes()));
            parts.push(part);
        }
        let mut bytes = Vec::from(MAGIC.to_le_bytes());
        bytes.extend(description.ranks.to_le_bytes());
        bytes.extend([1, 0]);
        let mut at = (HEADER + 16 * parts.len() - BASE) as u64;
        for part in &parts {
            bytes.extend(at.to_le_bytes());
            at += part.len() as u64;
            bytes.extend(at.to_le_bytes());
        }
        bytes.extend(parts.into_iter().flatten());
        bytes
    }

    fn without_lines(mut description: Description) -> Description {
        description.operations.iter_mut().for_each(|operation| operation.line = 0);
        description.dependencies.sort();
        description
    }

    #[test]
    fn both_sizes_of_nodes_are_the_text() {
        let text = without_lines(goal::parse("text", TEXT.as_bytes()).unwrap());
        for size in NODE_SIZES {
            let bytes = write(&text, size);
            assert!(is_binary(&bytes));
            assert_eq!(without_lines(parse("binary", &bytes).unwrap()), text, "{size}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_rank() {
        let bytes = write(&goal::parse("text", TEXT.as_bytes()).unwrap(), 104);
        let problem = |bytes: &[u8]| parse("t.bin", bytes).unwrap_err().to_string();
        assert!(problem(&bytes[..bytes.len() - 1]).contains("t.bin: rank 1: lies beyond"));
        assert!(problem(&bytes[..30]).contains("rank 0: lies beyond the 30 bytes of the file"));
        let with = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            bytes
        };
        let first_node = HEADER + 32 + 8;
        assert!(problem(&with(first_node + 4, 5)).contains("rank 0: node 0: is an operation of Portals 4"));
        assert!(problem(&with(first_node + 4, 77)).contains("type 77"));
        // The send, operation 1, is on interface 3.
        assert_eq!(parse("t.bin", &with(first_node + 104 + 22, 3)).unwrap().interfaces, [(1, 3)].into());
        assert!(problem(&with(first_node + 27, 9)).contains("not there"));
        assert!(problem(&with(first_node + 23, 200)).contains("rank 0: is not filled"));
        assert!(problem(&[&SPOILED.to_le_bytes()[..], &bytes[8..]].concat()).contains("take a copy"));
        for length in 0..bytes.len() {
            assert!(parse("t", &bytes[..length]).is_err() || !is_binary(&bytes[..length]));
        }
    }
}
