//! Flows that begin together while no other is under way, as those of a schedule's rounds do.
//!
//! The list of a channel's flows serves to find those whose rates a change concerns. Flows that begin together and end together change
//! none: where levels follow from counts, the counts tell all their rates. So lists are made, and the heap of ends is filled, only when
//! some flow begins or ends apart from the others.

use super::{Bandwidth, Channel, Entry, Graph, INSIDE, LISTED, NONE, SOLE, lesser};
use crate::sharing::LevelByCount;

/// What the flows under way have done together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// They stand in lists, and those that have rates in the heap of ends.
    Apart,
    /// They have all begun since the rates were shared last: they are [`Graph::fresh`].
    Beginning,
    /// They have rates.
    Flowing,
    /// They end.
    Ending,
}

/// The flows that have begun together.
#[derive(Debug)]
pub(super) struct Together {
    level_by_count: Option<LevelByCount>,
    /// The levels for small counts, where all channels have the same bandwidth.
    levels: Vec<f64>,
    pub(super) phase: Phase,
    /// They, while they flow or end.
    flows: Vec<u32>,
    /// When the first and the last of them end.
    pub(super) first_end: f64,
    last_end: f64,
}

impl Together {
    pub(super) fn new(level_by_count: Option<LevelByCount>, bandwidth: &Bandwidth) -> Self {
        let levels = match (level_by_count, bandwidth) {
            (Some(by_count), Bandwidth::Equal(bandwidth)) => (0..KNOWN_LEVELS).map(|flows| by_count(*bandwidth, flows)).collect(),
            _ => Vec::new(),
        };
        Self { level_by_count, levels, phase: Phase::Apart, flows: Vec::new(), first_end: f64::INFINITY, last_end: 0.0 }
    }
}

/// Counts whose levels are remembered.
const KNOWN_LEVELS: u32 = 16;

impl Graph {
    /// A flow begins: the first of those that begin together, one of them, or one apart from those under way.
    #[inline(always)]
    pub(super) fn prepare_to_begin(&mut self) {
        if self.in_use == 0 {
            self.begin_together();
        } else if self.together.phase != Phase::Beginning {
            self.make_lists();
        }
    }

    fn begin_together(&mut self) {
        if self.together.level_by_count.is_some() {
            self.forget_ended();
            self.fresh.clear();
            self.together.phase = Phase::Beginning;
        }
    }

    /// As [`Graph::enter`] for each channel of a flow that begins together with others; what is usual is done here.
    pub(super) fn enter_together(&mut self, flow: u32, channels: &[u32], destination: u32) {
        let place_unlisted = flow * self.room_unlisted;
        let (mut listed, mut unlisted) = (self.flows[flow].listed, self.flows[flow].unlisted);
        for (position, &channel) in channels.iter().enumerate() {
            let channel = channel - self.left_out;
            let Channel { state, first, .. } = self.channels[channel];
            if state & LISTED != 0 && u32::from(listed) < INSIDE {
                self.flows[flow].entries[usize::from(listed)].channel = channel;
                self.channels[channel].state = state + 1;
                listed += 1;
            } else if state & (LISTED | SOLE) == SOLE && first == destination && u32::from(unlisted) < self.room_unlisted {
                self.unlisted[place_unlisted + u32::from(unlisted)] = channel;
                unlisted += 1;
            } else {
                (self.flows[flow].listed, self.flows[flow].unlisted) = (listed, unlisted);
                return channels[position..].iter().for_each(|&channel| self.enter(flow, channel, destination));
            }
        }
        (self.flows[flow].listed, self.flows[flow].unlisted) = (listed, unlisted);
    }

    /// The level of a channel, where it follows from its count.
    #[inline(always)]
    fn counted_level(&self, channel: u32) -> f64 {
        let count = self.channels[channel].count();
        let level = |by_count: LevelByCount| by_count(self.bandwidth.of(channel), count);
        let known = self.together.levels.get(count as usize).copied();
        known.unwrap_or_else(|| self.together.level_by_count.map_or(f64::INFINITY, level))
    }

    /// Gives flows that have begun together their rates.
    pub(super) fn share_together(&mut self, now: f64) {
        let flows = std::mem::replace(&mut self.fresh, std::mem::take(&mut self.together.flows));
        let (mut first_end, mut last_end) = (f64::INFINITY, 0.0);
        for &flow in &flows {
            let mut rate = f64::INFINITY;
            self.visit(flow, |_, entry| rate = lesser(self.counted_level(entry.channel), rate));
            let record = &mut self.flows[flow];
            record.rate = rate;
            let end = now + record.left / rate;
            first_end = lesser(end, first_end);
            last_end = if end > last_end { end } else { last_end };
        }
        self.fresh.clear();
        (self.together.flows, self.together.phase) = (flows, Phase::Flowing);
        (self.together.first_end, self.together.last_end) = (first_end, last_end);
    }

    /// Lists all flows, by number, if they have begun together and all end up to this time.
    pub(super) fn take_together(&mut self, limit: f64, into: &mut Vec<u32>) -> bool {
        if self.together.phase != Phase::Flowing {
            return false;
        }
        if self.together.last_end > limit {
            self.make_lists();
            return false;
        }
        into.extend_from_slice(&self.together.flows);
        // They mostly are in order already.
        into.sort_unstable();
        self.together.phase = Phase::Ending;
        true
    }

    /// Makes the lists of flows that have begun together: from now on they are looked after one by one.
    #[inline(always)]
    pub(super) fn make_lists(&mut self) {
        if self.together.phase != Phase::Apart {
            self.list_together();
        }
    }

    #[cold]
    fn list_together(&mut self) {
        let phase = std::mem::replace(&mut self.together.phase, Phase::Apart);
        let is_beginning = phase == Phase::Beginning;
        let flows = std::mem::take(if is_beginning { &mut self.fresh } else { &mut self.together.flows });
        for &flow in &flows {
            for index in 0..u32::from(self.flows[flow].listed) {
                let at = self.place(flow, index);
                let channel = self.entry(at).channel;
                let next = self.put_first(at, channel);
                *self.entry_mut(at) = Entry { channel, next, previous: NONE };
                if is_beginning {
                    self.touch(channel);
                } else {
                    self.channels[channel].level = self.counted_level(channel);
                }
            }
            if phase == Phase::Flowing {
                let record = &self.flows[flow];
                self.ends.set(flow, record.since + record.left / record.rate);
            }
        }
        // Who begins has no rate yet.
        *(if is_beginning { &mut self.fresh } else { &mut self.together.flows }) = flows;
    }
}
