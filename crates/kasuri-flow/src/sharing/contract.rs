//! The contract of sharings by levels.

use crate::graph::Graph;

/// Works out the levels of channels.
pub(crate) trait Sharing: Send + Sync + std::fmt::Debug {
    /// Brings the levels up to date after flows have begun and ended: takes `graph.dirty`, sets levels by [`Graph::set_level`].
    fn level(&mut self, graph: &mut Graph);

    /// Gives all flows their rates after some have begun or ended at time `now`.
    fn share(&mut self, graph: &mut Graph, now: f64) {
        self.level(graph);
        graph.apply_levels(now);
    }

    /// Another of the same kind, which has seen no flows.
    fn begin_another(&self) -> Box<dyn Sharing>;

    /// How a channel's level follows from the number of its flows, if from nothing else.
    fn by_count(&self) -> Option<LevelByCount> {
        None
    }
}

/// The level of a channel of this bandwidth with so many flows.
pub(crate) type LevelByCount = fn(bandwidth: f64, flows: u32) -> f64;
