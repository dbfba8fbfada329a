//! A standstill in words: what nodes have refused, and what programs wait for.

use super::simulation::{Simulation, Station};
use kasuri_network::id::TerminalId;
use kasuri_workload::endpoint::cenju4::fault::Interrupt;
use kasuri_workload::endpoint::cenju4::script::Op;
use kasuri_workload::endpoint::cenju4::task::LOG_ENTRY;
use std::collections::BTreeMap;

/// Refusals, and programs, that are described, at most.
const NAMED: usize = 8;

impl Simulation<'_> {
    /// Who refused what, then who waits for what.
    pub(super) fn standstill(&self) -> Vec<String> {
        let nodes = || self.stations.iter().enumerate().map(|(node, station)| (TerminalId(node as u32), station));
        let name = |node: TerminalId| self.scenario.network.terminal_name(node);
        let refused = nodes().flat_map(|(node, station)| {
            let refusals = refusals(station).into_iter();
            refusals.map(move |((what, reason), count)| format!("{} refused {count} {what}{}: {reason}", name(node), plural(count)))
        });
        let waiting = nodes().flat_map(|(node, station)| {
            let programs = &self.machine.programs[node.index()];
            let at = station
                .processors
                .iter()
                .zip(programs)
                .filter_map(|(processor, program)| processor.at(program).map(|op| (processor.cid(), op)));
            at.map(move |(cid, op)| format!("the program of {} waits for {}", name(node), awaited(station, cid, op)))
        });
        let mut lines = first(refused.collect(), "refusals");
        lines.extend(first(waiting.collect(), "programs"));
        lines
    }
}

/// The first few of some lines, and how many more there are.
fn first(mut lines: Vec<String>, what: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(NAMED);
    lines.truncate(NAMED);
    if more > 0 {
        lines.push(format!("and {more} more {what}"));
    }
    lines
}

/// What a node refused, why, and how often.
fn refusals(station: &Station) -> BTreeMap<(&'static str, String), usize> {
    let mut counts = BTreeMap::new();
    for interrupt in &station.node.interrupts {
        let refusal = match interrupt {
            Interrupt::Damaged(damage) => ("packet", damage.to_string()),
            Interrupt::ReceiveFault(_, fault) => ("packet", fault.to_string()),
            Interrupt::SendFault(_, fault) => ("parcel", fault.to_string()),
            _ => continue,
        };
        *counts.entry(refusal).or_insert(0) += 1;
    }
    counts
}

/// What a program waits for.
fn awaited(station: &Station, cid: u8, op: &Op) -> String {
    let buffers = station.node.task(cid).ok().map(|task| &task.buffers);
    match *op {
        Op::AwaitLog { entries } => {
            let come = buffers.map_or(0, |buffers| buffers.log.written / LOG_ENTRY);
            format!("message {entries} to it, of which {come} have come")
        }
        Op::AwaitMessages { buffer, bytes } => {
            let come = buffers.and_then(|buffers| buffers.messages.get(usize::from(buffer))).map_or(0, |ring| ring.written);
            format!("{bytes} bytes in its message buffer {buffer}, of which {come} have come")
        }
        Op::AwaitWord { address, least } => {
            let found = station.node.word(cid, address).map_or_else(|fault| fault.to_string(), |found| found.to_string());
            format!("at least {least} in the double word at address {address:#x}, which is {found}")
        }
        Op::AwaitFaults { count } => format!("{count} refusals"),
        Op::Check { .. } | Op::CheckWord { .. } => "data of a packet that was refused".to_owned(),
        _ => "room in its header queue".to_owned(),
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
