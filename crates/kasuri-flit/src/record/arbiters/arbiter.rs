//! What every arbiter implements.

/// Place in an arbiter's order: the least is served.
pub(crate) type Order = (u64, u64);

/// A row of arbiters of the same kind, each with its own history.
pub(crate) trait Arbiters: Send {
    /// Where an input stands at one of the arbiters; no two inputs stand at the same place. `created`: the cycle in which the input's
    /// packet was created.
    fn order(&self, arbiter: u32, input: u32, created: u64) -> Order;

    /// An arbiter has served this input.
    fn served(&mut self, arbiter: u32, input: u32);
}
