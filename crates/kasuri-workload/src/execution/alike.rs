//! Symmetric traces: one NPU represents all.
//!
//! A trace is symmetric where a rotation of each dimension (of halving-doubling: an exchange of bits) changes nothing: the same trace everywhere,
//! collectives of all, one chunk at a time. Then at any time every NPU sends over the same distance, so each link carries what the same
//! link of any other NPU carries; and what an NPU sends to the one d places ahead is what it receives from the one d places behind
//! ([`mirrored`]). What is left out is where the order of events of one time could differ between NPUs and matter: messages of an NPU itself
//! that join forwarded ones on a ring later than at the beginning, the second half of a direct all-reduce, which looks at how many messages
//! have come, and halving-doubling on a ring with contention, where distances overlap.

use super::cluster::{Choice, Cluster, Dimension, Implementation, Pattern, Topology};
use super::npus::{Job, Sending, pattern};
use super::trace::{Kind, Operation};

/// Whether all NPUs do the same at the same time, on links that messages share or not.
pub fn is_symmetric(job: &Job<'_>, shares_links: bool) -> bool {
    let first = &job.traces[0];
    let one_at_a_time = job.queues == 1 && job.system.active_chunks == 1;
    // A message that takes no time at all would arrive among the sends of its own moment.
    let takes_time = job.cluster.dimensions.iter().all(|dimension| dimension.latency_ns >= 1.0);
    if !one_at_a_time || !takes_time || job.traces.len() < 3 || !job.system.custom_nodes.is_empty() {
        return false;
    }
    let fits = first.nodes.iter().all(|node| match &node.kind {
        Kind::Collective(collective) if !job.system.replay_only => {
            collective.group == 0 && collective.operation.is_some_and(|operation| operation_fits(job, operation, shares_links))
        }
        Kind::Send(_) | Kind::Receive(_) | Kind::Metadata { .. } => false,
        _ => true,
    });
    fits && job.traces.iter().all(|trace| trace.nodes == first.nodes)
}

fn operation_fits(job: &Job<'_>, operation: Operation, shares_links: bool) -> bool {
    let Some(pattern) = pattern(operation) else { return true };
    let (dimensions, choices) = (&job.cluster.dimensions, job.system.implementations.get(&pattern).map_or(&[][..], Vec::as_slice));
    let of_all = |choice: &Choice| choice.over_all && dimensions.len() > 1;
    !job.system.custom.contains_key(&pattern)
        && choices.len() == dimensions.len()
        && choices
            .iter()
            .zip(dimensions)
            .all(|(choice, dimension)| !of_all(choice) && implementation_fits(choice.implementation, pattern, dimension, shares_links))
}

fn implementation_fits(implementation: Implementation, pattern: Pattern, dimension: &Dimension, shares_links: bool) -> bool {
    let shares_ring = shares_links && dimension.topology == Topology::Ring;
    match implementation {
        Implementation::Ring => true,
        Implementation::Direct { .. } if pattern == Pattern::AllReduce => false,
        Implementation::Direct { window } => !shares_ring || window.is_none_or(|window| window >= dimension.npus - 1),
        Implementation::HalvingDoubling => !shares_ring && dimension.npus.is_power_of_two(),
        Implementation::DoubleBinaryTree => false,
    }
}

/// What NPU 0, which stands for all, receives when it sends a message: that of the NPU from which its like comes.
pub fn mirrored(message: &Sending, cluster: &Cluster) -> Sending {
    let Sending { destination, exchanged, .. } = *message;
    let (mut source, mut stride) = (0, 1);
    for dimension in &cluster.dimensions {
        let place = destination / stride % dimension.npus;
        source += (dimension.npus - place) % dimension.npus * stride;
        stride *= dimension.npus;
    }
    Sending { source: if exchanged { destination } else { source }, ..*message }
}
