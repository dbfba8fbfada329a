//! What sharings see: channels with their levels and flows, and what limits a flow elsewhere.

use super::{CHANGED, DIRTY, Flow, Graph, INSIDE, NONE, min, place};

/// The two other channels of a flow that has three at most, or [`NONE`], with their levels, and the next entry of the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    pub(crate) next: u32,
    pub(crate) channels: [u32; 2],
    pub(crate) levels: [f64; 2],
}

/// The two least levels on a part of a flow's path, and the entry that has the least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    least: f64,
    second: f64,
    at: u32,
}

impl Limits {
    /// The least level of the others than this entry.
    #[inline(always)]
    pub(crate) fn without(&self, entry: u32) -> f64 {
        if entry == self.at { self.second } else { self.least }
    }
}

impl Graph {
    /// Flits per cycle of a channel.
    pub(crate) fn bandwidth(&self, channel: u32) -> f64 {
        self.bandwidth.of(channel)
    }

    /// How many flows cross a channel that has a list.
    pub(crate) fn flows_on(&self, channel: u32) -> u32 {
        self.channels[channel].count()
    }

    /// The level of a channel.
    pub(crate) fn level(&self, channel: u32) -> f64 {
        self.channels[channel].level
    }

    /// Sets the level of a channel; its flows get their rates at the end of the round.
    pub(crate) fn set_level(&mut self, channel: u32, level: f64) {
        let record = &mut self.channels[channel];
        if level == record.level {
            return;
        }
        if record.state & CHANGED == 0 {
            record.state |= CHANGED;
            self.changed.push((channel, record.level));
        }
        record.level = level;
    }

    /// Marks a channel as worked off.
    pub(crate) fn clean(&mut self, channel: u32) {
        self.channels[channel].state &= !DIRTY;
    }

    /// Marks a channel as to be worked off. Was it clean?
    pub(crate) fn soil(&mut self, channel: u32) -> bool {
        let state = &mut self.channels[channel].state;
        let was_clean = *state & DIRTY == 0;
        *state |= DIRTY;
        was_clean
    }

    pub(super) fn touch(&mut self, channel: u32) {
        if self.soil(channel) {
            self.dirty.push(channel);
        }
    }

    /// The first entry of a channel.
    pub(crate) fn first(&self, channel: u32) -> u32 {
        self.channels[channel].first
    }

    /// The next entry of the same channel.
    pub(crate) fn next(&self, entry: u32) -> u32 {
        self.entry(entry).next
    }

    /// What a flow meets beside the channel of an entry, if its record has all of its entries: most flows of most networks have few.
    #[inline(always)]
    pub(crate) fn beside(&self, entry: u32) -> Option<Beside> {
        if entry >= self.overflow.first {
            return None;
        }
        let Flow { entries, listed, .. } = &self.flows[entry / 4];
        if u32::from(*listed) > INSIDE {
            return None;
        }
        let own = entry as usize % 4;
        let other = |index: usize| {
            let is_used = index < usize::from(*listed);
            let channel = entries[index].channel;
            if is_used { (channel, self.channels[channel].level) } else { (NONE, f64::INFINITY) }
        };
        let (first, second) = (other(usize::from(own == 0)), other(2 - usize::from(own == 2)));
        Some(Beside { next: entries.get(own)?.next, channels: [first.0, second.0], levels: [first.1, second.1] })
    }

    /// The least level on a flow's path but for the channel of this entry.
    #[inline(always)]
    pub(crate) fn limit_elsewhere(&self, entry: u32) -> f64 {
        let mut least = f64::INFINITY;
        self.visit(self.flow_of(entry), |at, other| {
            let level = if at == entry { f64::INFINITY } else { self.channels[other.channel].level };
            least = min(level, least);
        });
        least
    }

    /// The levels on a flow's path but for the channel of this entry.
    #[inline(always)]
    pub(crate) fn limits_elsewhere(&self, entry: u32) -> Limits {
        let mut limits = Limits { least: f64::INFINITY, second: f64::INFINITY, at: NONE };
        self.visit(self.flow_of(entry), |at, other| {
            let level = if at == entry { f64::INFINITY } else { self.channels[other.channel].level };
            if level < limits.least {
                limits = Limits { least: level, second: limits.least, at };
            } else {
                limits.second = min(level, limits.second);
            }
        });
        limits
    }

    /// The entries of the flow of an entry.
    #[inline(always)]
    pub(crate) fn path_of(&self, entry: u32) -> impl Iterator<Item = u32> + use<> {
        let flow = self.flow_of(entry);
        let (room, overflow) = (self.overflow.room, self.overflow.first);
        (0..u32::from(self.flows[flow].listed)).map(move |index| place(flow, index, overflow, room))
    }

    /// The channel of an entry.
    #[inline(always)]
    pub(crate) fn channel_of(&self, entry: u32) -> u32 {
        self.entry(entry).channel
    }
}
