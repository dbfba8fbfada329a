//! Max-min fairness: no flow can have more without another, that has no more than it, having less.
//!
//! Each channel has a water level: what a flow gets there that is limited nowhere else. A level follows from the channel's
//! bandwidth and from the limits that its flows meet elsewhere; channels whose level may have changed are worked off in turn
//! until none does. Only the part of the network is touched that an arriving or ending flow reaches.

use super::contract::Sharing;
use crate::graph::{Beside, Graph, NONE, min};
use std::collections::VecDeque;

/// Levels that differ by less, relative to themselves, are equal: the rounding of the sums that they come from.
const EQUAL: f64 = 1e-11;

/// Water levels.
#[derive(Debug, Default)]
pub(crate) struct MaxMin {
    queue: VecDeque<u32>,
    limits: Vec<f64>,
}

impl Sharing for MaxMin {
    fn level(&mut self, graph: &mut Graph) {
        // In the order in which flows touched them: first in, first out converges fastest.
        self.queue.extend(graph.dirty.drain(..));
        while let Some(channel) = self.queue.pop_front() {
            graph.clean(channel);
            let before = graph.level(channel);
            let level = self.water_level(graph, channel);
            if level == before || (level - before).abs() <= EQUAL * level.min(before) {
                continue;
            }
            graph.set_level(channel, level);
            self.disturb(graph, channel, before.min(level), before.max(level));
        }
    }

    fn begin_another(&self) -> Box<dyn Sharing> {
        Box::<Self>::default()
    }
}

impl MaxMin {
    /// The level at which the channel's flows fill it, each as far as its limit elsewhere. Infinite if they cannot.
    fn water_level(&mut self, graph: &Graph, channel: u32) -> f64 {
        self.limits.clear();
        let mut entry = graph.first(channel);
        while entry != NONE {
            if let Some(beside) = graph.beside(entry) {
                self.limits.push(min(beside.levels[0], beside.levels[1]));
                entry = beside.next;
            } else {
                self.limits.push(graph.limit_elsewhere(entry));
                entry = graph.next(entry);
            }
        }
        let mut open = self.limits.len();
        let mut left = graph.bandwidth(channel);
        // Flows that are limited below the level leave it to the others, which raises it.
        loop {
            if open == 0 {
                return f64::INFINITY;
            }
            let level = left / open as f64;
            let before = open;
            let mut position = 0;
            while position < open {
                if self.limits[position] < level {
                    left -= self.limits[position];
                    open -= 1;
                    self.limits.swap(position, open);
                } else {
                    position += 1;
                }
            }
            if open == before {
                return level;
            }
        }
    }

    /// Queues the channels that see a flow's limit move between `low` and `high` below their own level.
    fn disturb(&mut self, graph: &mut Graph, channel: u32, low: f64, high: f64) {
        let mut entry = graph.first(channel);
        while entry != NONE {
            if let Some(Beside { next, channels: [first, second], levels }) = graph.beside(entry) {
                self.disturb_channel(graph, first, min(low, levels[1]), min(high, levels[1]));
                self.disturb_channel(graph, second, min(low, levels[0]), min(high, levels[0]));
                entry = next;
            } else {
                self.disturb_flow(graph, entry, low, high);
                entry = graph.next(entry);
            }
        }
    }

    fn disturb_flow(&mut self, graph: &mut Graph, entry: u32, low: f64, high: f64) {
        let limits = graph.limits_elsewhere(entry);
        for at in graph.path_of(entry).filter(|&at| at != entry) {
            let third = limits.without(at);
            self.disturb_channel(graph, graph.channel_of(at), min(low, third), min(high, third));
        }
    }

    /// Queues a channel that sees the limit of a flow move between `low` and `high`, if there is one.
    #[inline(always)]
    fn disturb_channel(&mut self, graph: &mut Graph, channel: u32, low: f64, high: f64) {
        if low != high && channel != NONE && low < graph.level(channel) * (1.0 + EQUAL) && graph.soil(channel) {
            self.queue.push_back(channel);
        }
    }
}
