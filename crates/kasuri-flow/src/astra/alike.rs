//! Whether one NPU stands for all.
//!
//! It does where a rotation of the ranks (of halving-doubling: an exchange of bits) changes nothing: one dimension, the same trace
//! everywhere, collectives of all, one chunk at a time. Then at any time every NPU sends to the same distance, so each link carries what
//! the same link of any other NPU carries. What is left out is where the order of events of one time could differ between NPUs and
//! matter: messages of an NPU itself that join forwarded ones on a ring later than at the beginning, the second half of a direct
//! all-reduce, which looks at how many messages have come, and halving-doubling on a ring with contention, where distances overlap.

use super::{Backend, Input};
use kasuri_workload::execution::cluster::{Choice, Implementation, Pattern, Topology};
use kasuri_workload::execution::trace::{Kind, Operation};

/// Whether all NPUs do the same at the same time.
pub(super) fn holds(input: &Input<'_>) -> bool {
    let [dimension] = input.job.cluster.dimensions.as_slice() else { return false };
    let first = &input.job.traces[0];
    let one_at_a_time = input.job.queues == 1 && input.job.system.active_chunks == 1;
    // A message that takes no time at all would arrive among the sends of its own moment.
    let takes_time = dimension.latency_ns >= 1.0;
    if !one_at_a_time || !takes_time || input.job.traces.len() < 3 || !input.job.system.custom_nodes.is_empty() {
        return false;
    }
    let fits = first.nodes.iter().all(|node| match &node.kind {
        Kind::Collective(collective) if !input.job.system.replay_only => {
            collective.group == 0 && collective.operation.is_some_and(|operation| operation_fits(input, operation, dimension.topology))
        }
        Kind::Send(_) | Kind::Receive(_) | Kind::Metadata { .. } => false,
        _ => true,
    });
    fits && input.job.traces.iter().all(|trace| trace.nodes == first.nodes)
}

fn operation_fits(input: &Input<'_>, operation: Operation, topology: Topology) -> bool {
    let Some(pattern) = kasuri_workload::execution::npus::pattern(operation) else { return true };
    let choices = input.job.system.implementations.get(&pattern).map_or(&[][..], Vec::as_slice);
    let [Choice { implementation, .. }] = choices else { return false };
    let shared_ring = input.backend == Backend::Aware && topology == Topology::Ring;
    let npus = input.job.cluster.npus();
    !input.job.system.custom.contains_key(&pattern)
        && match implementation {
            Implementation::Ring => true,
            Implementation::Direct { .. } if pattern == Pattern::AllReduce => false,
            Implementation::Direct { window } => !shared_ring || window.is_none_or(|window| window >= npus - 1),
            Implementation::HalvingDoubling => !shared_ring && npus.is_power_of_two(),
            Implementation::DoubleBinaryTree => false,
        }
}
