//! What routers in the full layout need to know beyond the other parameters.

use crate::record::allocators::allocator::RouterShape;
use crate::record::shared_buffers::flits_of_port;
use kasuri_model::refusal::Refusal;
use kasuri_model::router::{AllocatorParameters, Arbiter, ArbiterParameters, LongStages, RouterParameters};
use kasuri_network::id::RouterId;
use kasuri_network::network::Network;
use kasuri_network::rng::Streams;

/// What the full layout needs to know beyond [`Parameters`].
#[derive(Clone, Debug)]
pub(crate) struct FullParameters {
    pub(crate) router: RouterParameters,
    /// Steps of route computation and of switch traversal.
    pub(crate) computation_steps: u32,
    pub(crate) traversal_steps: u32,
    pub(crate) streams: Streams,
    /// Has a head candidates of several ports? Do heads bid for the switch before they have a virtual channel?
    pub(crate) offers_several: bool,
    pub(crate) speculates: bool,
    /// Does anything fail during the run?
    pub(crate) fails: bool,
    /// Do the allocators of virtual channels and of the switch turn while somebody waits, also if nobody can ask?
    pub(crate) vc_turns: bool,
    pub(crate) switch_turns: bool,
}

impl FullParameters {
    /// Cycles that a flit may wait for its channel behind the switch, and a credit for its own, at most: until the buffer downstream or
    /// here is full.
    pub(crate) fn longest_wait(&self) -> u32 {
        let batches = if self.router.long_stages == LongStages::Batched { self.traversal_steps } else { 0 };
        let queues = self.router.output_speedup > 1 || self.router.internal_speedup > 1.0 || batches > 0;
        batches + if queues { flits_of_port(&self.router) } else { 0 }
    }
}

/// Histories of matrix arbiters take at most this many bytes.
const MAX_HISTORY: u64 = 1 << 34;

impl FullParameters {
    /// Matrix arbiters know each pair of an input and an output of a router.
    ///
    /// # Errors
    /// They take too much memory together.
    pub(crate) fn check_size(&self, network: &Network) -> Result<(), Refusal> {
        let is_matrix = |allocator: &AllocatorParameters| match allocator.arbiter() {
            ArbiterParameters::Single(arbiter) | ArbiterParameters::Tree { of: arbiter, .. } => arbiter == Arbiter::Matrix,
        };
        let allocators = [&self.router.vc_allocator, &self.router.switch_allocator];
        let of_router = |ports: u32| {
            let pairs = shapes(ports, &self.router).map(|shape| u64::from(shape.rows) * u64::from(shape.columns));
            pairs.iter().zip(allocators).map(|(pairs, allocator)| if is_matrix(allocator) { 8 * pairs } else { 0 }).sum::<u64>()
        };
        let all: u64 = (0..network.router_count()).map(|router| of_router(network.port_count(RouterId(router)))).sum();
        if all > MAX_HISTORY {
            let key = if is_matrix(&self.router.vc_allocator) { "router.vc_allocator" } else { "router.switch_allocator" };
            let reason = format!("matrix arbiters of these routers take {} GiB", all >> 30);
            return Err(Refusal::new(key, reason).instead("take round-robin ones"));
        }
        Ok(())
    }
}

/// The sides of a router's virtual-channel allocation and of its switch allocation.
pub(crate) fn shapes(ports: u32, router: &RouterParameters) -> [RouterShape; 2] {
    let channels = ports * router.virtual_channels;
    let switch = RouterShape { rows: ports * router.input_speedup, columns: ports * router.output_speedup };
    [RouterShape { rows: channels, columns: channels }, switch]
}
