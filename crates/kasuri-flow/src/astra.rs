//! Execution traces by the rules of ASTRA-sim's analytical backends, to the nanosecond.
//!
//! An event-driven model of its own: whole nanoseconds, events of one time in the order in which they were entered. [`run`] gives the
//! finish time of every NPU, or says why there is none: where ASTRA-sim stops by an assertion, never ends or ends without a word.
//!
//! Where all NPUs do the same in a network in which none stands out, one stands for all ([`alike`]): what it sends to the NPU d places
//! ahead is what it receives from the NPU d places behind. Source of the rules: Won et al., ASTRA-sim2.0, ISPASS 2023, and what the
//! program does (revision 518bd513a with astra-network-analytical 599a0473a).

mod algorithm;
mod alike;
mod calendar;
mod engine;
mod graph;
mod issue;
mod messages;
mod phases;
mod streams;
mod wires;

use kasuri_workload::execution::cluster::{Cluster, Groups, System};
use kasuri_workload::execution::trace::Trace;
use std::collections::BTreeMap;

/// Which of the two backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Each link carries one message at a time.
    Aware,
    /// Messages do not disturb each other.
    Unaware,
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The network.
    pub cluster: &'a Cluster,
    /// How collectives become messages.
    pub system: &'a System,
    /// Communicator groups.
    pub groups: &'a Groups,
    /// What each NPU does.
    pub traces: &'a [Trace],
    /// Collectives that are traces of their own, by the prefix of their files: a trace for each place.
    pub algorithms: &'a BTreeMap<String, Vec<Trace>>,
    /// Queues of a dimension, at least 1.
    pub queues: u32,
    /// Which backend.
    pub backend: Backend,
    /// Whether one NPU may stand for all where they are alike. The results are the same.
    pub use_symmetry: bool,
}

/// When each NPU has finished, in nanoseconds.
///
/// # Errors
/// A sentence that says where ASTRA-sim stops, hangs or leaves an NPU unfinished, and why.
pub fn run(input: &Input<'_>) -> Result<Vec<u64>, String> {
    check(input)?;
    let npus = input.cluster.npus() as usize;
    let alike = input.use_symmetry && alike::holds(input);
    let finished = engine::Engine::new(input, alike)?.run()?;
    Ok(if alike { vec![finished[0]; npus] } else { finished })
}

fn check(input: &Input<'_>) -> Result<(), String> {
    let npus = input.cluster.npus() as usize;
    if input.traces.len() != npus {
        return Err(format!("the network has {npus} NPUs, but there are {} traces", input.traces.len()));
    }
    let dimensions = input.cluster.dimensions.len();
    for (pattern, choices) in &input.system.implementations {
        if choices.len() > dimensions {
            let problem = "ASTRA-sim stops by an assertion where a collective has more implementations than the network has dimensions";
            return Err(format!("{problem}: {}-implementation has {}, the network {dimensions}", pattern.name(), choices.len()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
