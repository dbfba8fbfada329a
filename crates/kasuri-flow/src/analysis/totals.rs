//! Sums over the messages of a closed workload.

/// Sums over the messages of a workload.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// By channel.
    pub(super) channel_flits: Vec<u64>,
    /// Flits that terminals send to themselves.
    pub(super) to_self: u64,
    pub(super) messages: u64,
    /// Routers that messages cross.
    pub(super) hops: f64,
    /// Of messages that are alone in the network.
    pub(super) latency: f64,
    /// Routers that flits cross.
    pub(super) flit_hops: u64,
    /// Cycles of the busiest channel if its flits are a mean; otherwise they follow from `channel_flits`.
    pub(super) bound: Option<u64>,
    /// Entries of `not_modelled` for what is a mean or an estimate.
    pub(super) approximations: Vec<String>,
}
