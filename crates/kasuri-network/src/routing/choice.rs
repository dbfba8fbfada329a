//! Choices that a routing leaves to its caller: uniform draws, and costs from a view of the deciding router.

use super::hop::VirtualChannels;
use crate::id::Port;
use crate::rng::Stream;

/// What a routing may know of congestion: the state of the router that it stands at.
pub trait CongestionView {
    /// Flits of downstream buffer space in use, summed over these virtual channels of an output port of the deciding router.
    fn occupied(&self, port: Port, virtual_channels: VirtualChannels) -> u32;

    /// A packet gets on equally well at ports whose occupied flits differ by less; at least 1.
    fn grain(&self) -> u32 {
        1
    }
}

/// How a routing decides where it may decide.
pub trait Choice {
    /// One of `0..alternatives`, each equally likely. `alternatives` is positive.
    fn uniform(&mut self, alternatives: u32) -> u32;

    /// The alternative of `0..alternatives` whose cost is least; equal costs are drawn.
    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32;

    /// The port of `0..alternatives` that is least occupied, among ports at which a packet gets on equally well: those within the
    /// [grain](CongestionView::grain) of the least are drawn.
    fn least_occupied(&mut self, alternatives: u32, occupied: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        self.least(alternatives, occupied)
    }

    /// Draws from here on what will be drawn at the packet's next router: who decides one router ahead draws the same there again.
    fn draw_ahead(&mut self) {}

    /// The packet's number among those of its source, in their order, where that is known: to an engine in `initial_state`.
    fn serial(&mut self) -> Option<u32> {
        None
    }
}

/// The choice of an engine: random draws from a stream, costs from a view of the deciding router.
pub struct MeasuredChoice<'a> {
    /// Draws ties and uniform choices.
    pub stream: &'a mut Stream,
    /// The deciding router.
    pub view: &'a dyn CongestionView,
}

impl std::fmt::Debug for MeasuredChoice<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("MeasuredChoice")
    }
}

impl Choice for MeasuredChoice<'_> {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        if alternatives == 1 { 0 } else { self.stream.below(alternatives) }
    }

    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        let (mut best, mut best_cost, mut equal) = (0, i64::MAX, 0);
        for alternative in 0..alternatives {
            let cost = cost(self.view, alternative);
            if cost < best_cost {
                (best, best_cost, equal) = (alternative, cost, 1);
            } else if cost == best_cost {
                // Reservoir sampling: the i-th of equal alternatives replaces the earlier ones with probability 1/i.
                equal += 1;
                if self.stream.below(equal) == 0 {
                    best = alternative;
                }
            }
        }
        best
    }
}
