//! The input of a run of NPUs, and what must fit there.

use crate::execution::cluster::{Cluster, Groups, System};
use crate::execution::trace::{MAX_NS, Trace};
use std::collections::BTreeMap;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The network: its dimensions shape the collectives.
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
}

impl Job<'_> {
    /// Whether there is a trace for each NPU, with durations that can be simulated, and at most as many implementations as dimensions.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn check(&self) -> Result<(), String> {
        let npus = self.cluster.npus() as usize;
        if self.traces.len() != npus {
            return Err(format!("the network has {npus} NPUs, but there are {} traces", self.traces.len()));
        }
        (0..).zip(self.traces).try_for_each(|(npu, trace)| check_durations(npu, trace))?;
        let dimensions = self.cluster.dimensions.len();
        for (pattern, choices) in &self.system.implementations {
            if choices.len() > dimensions {
                let problem = "ASTRA-sim stops by an assertion where a collective has more implementations than the network has dimensions";
                return Err(format!("{problem}: {}-implementation has {}, the network {dimensions}", pattern.name(), choices.len()));
            }
        }
        Ok(())
    }
}

/// Refuses an NPU with computations that are too long to be simulated.
fn check_durations(npu: u32, trace: &Trace) -> Result<(), String> {
    let mut all = 0_u64;
    for node in &trace.nodes {
        all = all.checked_add(node.duration_ns).filter(|&all| all <= MAX_NS).ok_or_else(|| {
            let (id, name, ns) = (node.id, &node.name, node.duration_ns);
            format!("NPU {npu}: node {id} (`{name}`) lasts {ns} ns; all nodes of an NPU may last at most 2^60 ns (36 years)")
        })?;
    }
    Ok(())
}
