//! What a discovery found: nodes, and the cables at their ports, each as both ends see it.

use crate::error::FormatError;
use crate::rate::Rate;
use crate::tool_messages::Messages;
use std::collections::BTreeMap;

/// All that one file of discovery says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// The file's name, for messages.
    pub name: String,
    /// Switches and adapters.
    pub nodes: Vec<Node>,
    /// The ports that have a cable.
    pub ends: Vec<End>,
    /// Whether a cable may be written at one of its ends alone, as in files that people wrote.
    pub one_sided: bool,
    /// Messages of the tools between its lines.
    pub messages: Messages,
}

/// A switch or an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// By what its neighbours name it.
    pub id: Id,
    /// Its GUID.
    pub guid: Option<u64>,
    /// The GUID of the system that it belongs to, if the file gives it.
    pub system: Option<u64>,
    /// Its description.
    pub name: String,
    /// Its ports, where they are told.
    pub ports: Option<u32>,
    /// The LID of a switch; 0 where it has none.
    pub lid: u32,
    /// Where it is described.
    pub line: usize,
}

impl Node {
    /// Whether both describe the node alike, apart from their lines.
    pub fn is_alike(&self, other: &Self) -> bool {
        *self == Self { line: self.line, ..other.clone() }
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A switch.
    Switch,
    /// A channel adapter.
    Adapter,
    /// A router to another subnet.
    Router,
}

/// By what neighbours name a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id {
    /// A GUID, however it was padded.
    Guid(u64),
    /// Any word, in files of ibsim.
    Word(String),
}

impl std::fmt::Display for Id {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Guid(guid) => write!(formatter, "0x{guid:016x}"),
            Self::Word(word) => write!(formatter, "{word}"),
        }
    }
}

/// A port with a cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The position of its node.
    pub node: u32,
    /// The port, from 1.
    pub port: u32,
    /// The port's own GUID, where it is told.
    pub guid: Option<u64>,
    /// The LID of an adapter's port; 0 where it has none.
    pub lid: u32,
    /// The port answers to 2^lmc consecutive LIDs.
    pub lmc: u8,
    /// The node at the other end.
    pub peer: Id,
    /// The port there.
    pub peer_port: u32,
    /// Width and speed, where they are told.
    pub rate: Option<Rate>,
    /// The line.
    pub line: usize,
}

impl End {
    /// Whether both describe the port alike, apart from their lines.
    pub fn is_alike(&self, other: &Self) -> bool {
        *self == Self { line: self.line, ..other.clone() }
    }
}

/// The largest number of a port.
pub const MAX_PORT: u32 = 254;

/// The largest LID that is read: one of 24 bits, as Omni-Path has them. InfiniBand's unicast LIDs end at 0xbfff.
pub const MAX_LID: u32 = (1 << 24) - 1;

/// The largest LMC.
pub const MAX_LMC: u8 = 7;

impl Discovery {
    /// Checks that every port has one cable and that both ends say the same; gives the node of each id and the cables, those of lower ports
    /// first.
    ///
    /// # Errors
    /// A node that is described twice, or named and not described; a port that its node does not have, or that has two cables; a cable of
    /// which the other end says something else or nothing.
    pub fn cables(&self) -> Result<Vec<CableEnds>, FormatError> {
        let mut nodes: BTreeMap<&Id, u32> = BTreeMap::new();
        for (node, number) in self.nodes.iter().zip(0..) {
            if let Some(first) = nodes.insert(&node.id, number) {
                let first = self.nodes[first as usize].line;
                return Err(self.error(node.line, format!("describes node {} again; line {first} describes it, too", node.id)));
            }
        }
        let mut at: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for (end, number) in self.ends.iter().zip(0..) {
            let node = &self.nodes[end.node as usize];
            self.check_port(end.line, node, end.port)?;
            if let Some(first) = at.insert((end.node, end.port), number) {
                let first = self.ends[first as usize].line;
                let problem = format!("a second cable on port {} of `{}`; the first is in line {first}", end.port, node.name);
                return Err(self.error(end.line, problem));
            }
        }
        let mut cables = Vec::with_capacity(self.ends.len() / 2);
        for (&(node, port), &number) in &at {
            let end = &self.ends[number as usize];
            let peer = *nodes.get(&end.peer).ok_or_else(|| {
                let problem = format!("names node {}, which the file does not describe; was the dump cut short?", end.peer);
                self.error(end.line, problem)
            })?;
            let there = &self.nodes[peer as usize];
            self.check_port(end.line, there, end.peer_port)?;
            match at.get(&(peer, end.peer_port)) {
                Some(&back) => {
                    let other = &self.ends[back as usize];
                    if nodes.get(&other.peer) != Some(&node) || other.peer_port != port {
                        let problem = format!(
                            "says that port {port} of `{}` leads to port {} of `{}`, from which line {} leads elsewhere",
                            self.nodes[node as usize].name, end.peer_port, there.name, other.line
                        );
                        return Err(self.error(end.line, problem));
                    }
                    if number == back {
                        return Err(self.error(end.line, format!("leads port {port} of `{}` to itself", there.name)));
                    }
                    // Of two ends the one that comes first in the order of nodes and ports.
                    if (node, port) < (peer, end.peer_port) {
                        cables.push(CableEnds { one: number, other: Some(back), peer });
                    }
                }
                None if self.one_sided => cables.push(CableEnds { one: number, other: None, peer }),
                None => {
                    let problem = format!(
                        "says that a cable leads to port {} of `{}`, where the file has no cable; was the dump cut short?",
                        end.peer_port, there.name
                    );
                    return Err(self.error(end.line, problem));
                }
            }
        }
        self.check_one_sided(&cables)?;
        Ok(cables)
    }

    /// Two cables, each written at one end, may still meet at a port.
    fn check_one_sided(&self, cables: &[CableEnds]) -> Result<(), FormatError> {
        let mut taken: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for cable in cables.iter().filter(|cable| cable.other.is_none()) {
            let end = &self.ends[cable.one as usize];
            if let Some(first) = taken.insert((cable.peer, end.peer_port), end.line) {
                let name = &self.nodes[cable.peer as usize].name;
                let problem = format!("a second cable on port {} of `{name}`; line {first} leads one there", end.peer_port);
                return Err(self.error(end.line, problem));
            }
        }
        Ok(())
    }

    fn check_port(&self, line: usize, node: &Node, port: u32) -> Result<(), FormatError> {
        let most = node.ports.unwrap_or(MAX_PORT);
        if (1..=most).contains(&port) {
            return Ok(());
        }
        Err(self.error(line, format!("names port {port} of `{}`, whose ports are 1 to {most}", node.name)))
    }

    /// An error in a line of the file.
    pub fn error(&self, line: usize, problem: impl Into<String>) -> FormatError {
        FormatError::new(&self.name, line, problem)
    }
}

/// A cable: the end at which it was found first, and the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CableEnds {
    /// The position of an end.
    pub one: u32,
    /// The position of the other end; `None` if the file has one end only.
    pub other: Option<u32>,
    /// The node at the other end.
    pub peer: u32,
}

/// The number after a keyword: `lid 18`.
pub fn number_after(text: &str, keyword: &str) -> Option<u32> {
    let mut words = text.split_whitespace();
    words.find(|word| *word == keyword)?;
    words.next()?.parse().ok()
}

/// Reads hexadecimal digits, with or without `0x` before them.
pub fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.is_empty() || digits.starts_with('+') { None } else { u64::from_str_radix(digits, 16).ok() }
}
