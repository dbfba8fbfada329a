//! The virtual processors of a machine: each runs the program of one logical node of one user, at the node that the user's table names.

use super::layout::Layout;
use super::pages::Segments;
use super::steps::{Step, WORD_BYTES};
use crate::translation::Table;
use crate::translation::sharing::Sharing;
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Streams;
use kasuri_network::routing::VirtualChannels;

/// One user's part of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The user's number.
    pub user: u16,
    /// Do its accesses name physical nodes, by the table of the operating system?
    pub is_system: bool,
    /// May they?
    pub is_supervisor: bool,
    /// The virtual channels of requests, and those of replies.
    pub channels: [VirtualChannels; 2],
}

/// A logical node's processor.
#[derive(Clone, Debug)]
pub struct Processor {
    /// Its part.
    pub part: u8,
    /// The logical node.
    pub logical: u32,
    /// The node on which it runs.
    pub node: u32,
    /// What it does.
    pub program: Vec<Step>,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Processors {
    /// The users' parts.
    pub parts: Vec<Part>,
    /// In the order of parts and logical nodes.
    pub all: Vec<Processor>,
    /// By part and logical node: its processor; `None` where the table names no node.
    pub places: Vec<Vec<Option<u32>>>,
    /// By node: its processors, in that order.
    pub on_node: Vec<Vec<u32>>,
    /// By part: the set of parts that are active together, in time sharing; `None`: always active.
    pub sets: Vec<Option<u32>>,
    /// How many sets take turns: 0 without time sharing.
    pub turns: u32,
    /// Where the words of logical nodes lie.
    pub segments: Segments,
}

impl Processors {
    /// The processors of these parts.
    ///
    /// # Errors
    /// A logical node on two nodes, or users on one node that have no slices.
    pub fn new(parts: Vec<(Part, Vec<Vec<Step>>)>, layout: &Layout, sharing: &Sharing, streams: &Streams) -> Result<Self, String> {
        let span = parts.iter().flat_map(|(_, steps)| steps).flatten().map(address_after).max().unwrap_or(0);
        let (mut all, mut places, mut on_node) = (Vec::new(), Vec::new(), vec![Vec::new(); layout.nodes() as usize]);
        for (number, (part, steps)) in parts.iter().enumerate() {
            let table = sharing.tables.table(part.user);
            let mut own = vec![None; steps.len()];
            for (logical, program) in (0..).zip(steps) {
                let Some(node) = node_of(table, logical, layout)? else { continue };
                own[logical as usize] = Some(all.len() as u32);
                on_node[node as usize].push(all.len() as u32);
                all.push(Processor { part: number as u8, logical, node, program: program.clone() });
            }
            places.push(own);
        }
        for write in &sharing.writes {
            refuse_moves(write.user, write.node, &write.physical, sharing, layout)?;
        }
        let parts: Vec<Part> = parts.into_iter().map(|(part, _)| part).collect();
        let (sets, turns) = turns(&parts, &all, &on_node, sharing)?;
        let segments = Segments::new(&on_node, span, sharing.addresses, streams);
        Ok(Self { parts, all, places, on_node, sets, turns, segments })
    }

    /// The processor of a part's logical node.
    pub fn find(&self, part: u8, logical: u32) -> Option<u32> {
        self.places[usize::from(part)].get(logical as usize).copied().flatten()
    }
}

/// The first address that a step does not reach.
fn address_after(step: &Step) -> u32 {
    match step {
        Step::Access(word, access) => word.address + access.words() * WORD_BYTES,
        Step::Settle | Step::Await { .. } | Step::Compute { .. } => 0,
    }
}

/// The node that a logical node is, if the table names one.
fn node_of(table: &Table, logical: u32, layout: &Layout) -> Result<Option<u32>, String> {
    let physical = table.physical(logical);
    let Some(&first) = physical.first() else { return Ok(None) };
    match physical.iter().find(|&&other| layout.node(other) != layout.node(first)) {
        None => Ok(Some(layout.node(first))),
        Some(other) => Err(format!(
            "logical node {logical} is terminals {first} and {other}, which are two nodes with a memory each; aliases of a node are its own \
             interfaces (endpoint.interfaces)"
        )),
    }
}

/// A change of a table may give a node more or fewer interfaces, but not another memory.
fn refuse_moves(user: u16, logical: u32, physical: &[TerminalId], sharing: &Sharing, layout: &Layout) -> Result<(), String> {
    let home = node_of(sharing.tables.table(user), logical, layout)?;
    match physical.iter().find(|&&terminal| Some(layout.node(terminal)) != home) {
        None => Ok(()),
        Some(terminal) => Err(format!(
            "a change of the table puts logical node {logical} on terminal {terminal}, which is no interface of its node; the words of a node \
             are in its memory"
        )),
    }
}

/// Users on the same nodes take turns: each joins the first set in which no other has its nodes. Who shares no node is always active, and so is
/// the operating system.
fn turns(parts: &[Part], all: &[Processor], on_node: &[Vec<u32>], sharing: &Sharing) -> Result<(Vec<Option<u32>>, u32), String> {
    let mut sets: Vec<Option<u32>> = vec![None; parts.len()];
    let mut count = 0;
    for number in (0..parts.len()).filter(|&number| !parts[number].is_supervisor) {
        let nodes = all.iter().filter(|processor| usize::from(processor.part) == number).map(|processor| processor.node as usize);
        let others = nodes.flat_map(|node| &on_node[node]).map(|&other| usize::from(all[other as usize].part));
        let rivals: Vec<usize> = others.filter(|&other| other != number && !parts[other].is_supervisor).collect();
        if rivals.is_empty() {
            continue;
        }
        let taken: Vec<u32> = rivals.iter().filter_map(|&other| sets[other]).collect();
        let set = (0..).find(|set| !taken.contains(set)).unwrap_or(0);
        count = count.max(set + 1);
        sets[number] = Some(set);
    }
    match sharing.slices {
        _ if count < 2 => Ok((vec![None; parts.len()], 0)),
        Some(_) => Ok((sets, count)),
        None => {
            Err("two users share a node, whose processor runs one program at a time; give users.slice_cycles, and they take turns"
                .to_owned())
        }
    }
}
