//! Flows and the channels that they share, in flat arrays.
//!
//! A flow on one of its channels is an *entry*; the entries of a channel are a doubly linked list, so that flows come and go in
//! constant time. Channels that have only ever led to one terminal have no list: whatever crosses them crosses the terminal's
//! ejection channel too, which limits it at least as much.
//!
//! Who follows a list asks each entry for the next one and its flow for its rate, and in a large network waits for memory both
//! times. So the first entries of a flow stand in its own record, which is one cache line.

mod fetch;
mod levels;

use crate::heap::Heap;
use kasuri_network::memory::{Column, large_vec};
pub(crate) use levels::Beside;

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;

/// Channels of the longest path of a flow.
pub(crate) const LONGEST: usize = u16::MAX as usize;

/// One channel of a flow's path, with its neighbours in the channel's list. 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    channel: u32,
    next: u32,
    previous: u32,
}

const NO_ENTRY: Entry = Entry { channel: 0, next: NONE, previous: NONE };

/// Entries in the record of a flow: as many as a cache line holds. Those of longer paths are in [`Overflow`].
const INSIDE: u32 = 3;

/// What a flow has to send, how fast it does, and its first entries. 64 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Flow {
    /// Flits that had not arrived at time `since`.
    left: f64,
    since: f64,
    /// Flits per cycle since then.
    rate: f64,
    entries: [Entry; INSIDE as usize],
    /// Channels of its path that have lists, and that have none. Neither while it is not in use.
    listed: u16,
    unlisted: u16,
}

const NO_FLOW: Flow = Flow { left: 0.0, since: 0.0, rate: 0.0, entries: [NO_ENTRY; INSIDE as usize], listed: 0, unlisted: 0 };

impl Flow {
    fn is_in_use(&self) -> bool {
        self.listed > 0 || self.unlisted > 0
    }
}

/// A channel. 16 bytes, so that none lies across two cache lines.
#[derive(Clone, Copy, Debug)]
struct Channel {
    level: f64,
    /// The first entry of its list; of a channel that has led to one terminal only, that terminal.
    first: u32,
    /// Flows in the list, and above [`COUNT`] the flags.
    state: u32,
}

/// The most entries for which a list of a round keeps its memory.
const KEPT: usize = 1 << 14;

/// The part of a channel's state that counts.
const COUNT: u32 = (1 << 28) - 1;

/// Its flows have changed.
const DIRTY: u32 = 1 << 28;

/// Its level has changed in this round.
const CHANGED: u32 = 1 << 29;

/// It has a list.
const LISTED: u32 = 1 << 30;

/// It has led to one terminal only.
const SOLE: u32 = 1 << 31;

impl Channel {
    fn count(&self) -> u32 {
        self.state & COUNT
    }
}

/// How fast channels are, flits per cycle.
#[derive(Clone, Debug)]
pub(crate) enum Bandwidth {
    /// All the same.
    Equal(f64),
    /// One by one, shape `[channels]`.
    Each(Box<[f64]>),
}

impl Bandwidth {
    #[inline(always)]
    fn of(&self, channel: u32) -> f64 {
        match self {
            Self::Equal(bandwidth) => *bandwidth,
            Self::Each(column) => column[channel as usize],
        }
    }
}

/// The entries of long paths that do not fit into the records of their flows.
#[derive(Debug)]
struct Overflow {
    /// The first such entry, and how many there are for each flow.
    first: u32,
    room: u32,
    entries: Column<Entry>,
}

/// Channels without lists, and room for how many of each flow's path.
#[derive(Debug)]
struct Unlisted {
    channels: Column<u32>,
    room: u32,
}

/// The channels, the flows on them, and when each flow ends at its present rate. Channels have numbers of their own here: those
/// that limit nothing are left out, and the others follow.
///
/// Entry `4 f + i` is the i-th in the record of flow f; from [`Overflow::first`] on, [`Overflow::room`] entries a flow follow.
#[derive(Debug)]
pub(crate) struct Graph {
    /// The network's channels below this number are left out.
    left_out: u32,
    /// The ejection channel of terminal 0; the others' follow.
    first_ejection: u32,
    flows: Column<Flow>,
    overflow: Overflow,
    unlisted: Unlisted,
    ends: Heap,
    /// Flows that have ended but stand in `ends` yet: most begin anew, which then moves them only once.
    ended: Vec<u32>,
    bandwidth: Bandwidth,
    channels: Column<Channel>,
    /// Flits that each channel has carried.
    carried: Column<f64>,
    /// Channels whose flows have changed.
    pub(crate) dirty: Vec<u32>,
    /// Channels whose level has changed in this round, with the level before; each once.
    changed: Vec<(u32, f64)>,
    /// Flows that have begun in this round.
    fresh: Vec<u32>,
}

impl Graph {
    /// The network's channels in this range, with their bandwidths in a column of their own, and room for flows numbered below
    /// `flows`. `first_ejection` is the network's number of the ejection channel of terminal 0.
    pub(crate) fn new(bandwidth: Bandwidth, range: std::ops::Range<u32>, first_ejection: u32, flows: usize) -> Self {
        let channel = Channel { level: f64::INFINITY, first: NONE, state: 0 };
        Self {
            left_out: range.start,
            first_ejection: first_ejection - range.start,
            flows: Column::filled(flows, NO_FLOW),
            overflow: Overflow { first: 4 * flows as u32, room: 0, entries: Vec::new().into() },
            unlisted: Unlisted { channels: Vec::new().into(), room: 0 },
            ends: Heap::new(flows),
            ended: Vec::new(),
            bandwidth,
            channels: Column::filled(range.len(), channel),
            carried: Column::filled(range.len(), 0.0),
            dirty: Vec::new(),
            changed: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// Begins anew at an earlier time, as no flow is under way. Channels keep what they have carried.
    pub(crate) fn restart(&mut self) {
        self.ends.restart();
    }

    /// From now on every channel has a list of its flows, so that [`Self::flows_on`] is true of each.
    pub(crate) fn list_all(&mut self) {
        self.channels.iter_mut().for_each(|channel| channel.state |= LISTED);
    }

    /// Begins a flow over an injection channel and these others to a terminal, whose ejection channel is the last of them. It
    /// has no rate before [`Self::apply_levels`].
    pub(crate) fn begin(&mut self, flow: u32, injection: u32, others: &[u32], destination: u32, flits: f64, now: f64) {
        self.fresh.push(flow);
        let record = &mut self.flows[flow];
        (record.left, record.since, record.rate) = (flits, now, 0.0);
        if !self.leaves_out(injection) {
            self.enter(flow, injection, destination);
        }
        others.iter().for_each(|&channel| self.enter(flow, channel, destination));
    }

    /// Is a channel of the network left out?
    pub(crate) fn leaves_out(&self, channel: u32) -> bool {
        channel < self.left_out
    }

    /// Makes a channel of the network part of a flow's path.
    #[inline(always)]
    fn enter(&mut self, flow: u32, channel: u32, destination: u32) {
        let channel = channel - self.left_out;
        if self.is_shared(channel, destination) {
            self.link(flow, channel);
        } else {
            let count = u32::from(self.flows[flow].unlisted);
            if count == self.unlisted.room {
                self.make_room_unlisted();
            }
            self.unlisted.channels[flow * self.unlisted.room + count] = channel;
            self.flows[flow].unlisted += 1;
        }
    }

    /// Does a channel that a new flow takes to its destination need a list?
    #[inline(always)]
    fn is_shared(&mut self, channel: u32, destination: u32) -> bool {
        let Channel { state, first, .. } = self.channels[channel];
        if state & LISTED != 0 {
            return true;
        }
        if state & SOLE != 0 && first == destination {
            return false;
        }
        self.classify(channel, destination)
    }

    /// A channel without a list is used for the first time, or by a flow to another terminal than all before.
    #[cold]
    fn classify(&mut self, channel: u32, destination: u32) -> bool {
        let ejection = self.first_ejection + destination;
        let Channel { state, first: before, .. } = self.channels[channel];
        if state & SOLE == 0 && channel != ejection && self.bandwidth.of(channel) >= self.bandwidth.of(ejection) {
            self.channels[channel].state |= SOLE;
            self.channels[channel].first = destination;
            return false;
        }
        let record = &mut self.channels[channel];
        record.state = record.state & !SOLE | LISTED;
        record.first = NONE;
        if state & SOLE != 0 {
            self.list_flows_to(before, channel);
        }
        true
    }

    /// Makes the list of a channel that has led to one terminal only: its flows are among those that end there.
    fn list_flows_to(&mut self, destination: u32, channel: u32) {
        let mut flows = Vec::new();
        let mut at = self.channels[self.first_ejection + destination].first;
        while at != NONE {
            flows.push(self.flow_of(at));
            at = self.entry(at).next;
        }
        for flow in flows {
            let begin = flow * self.unlisted.room;
            let end = begin + u32::from(self.flows[flow].unlisted);
            if let Some(place) = (begin..end).find(|&place| self.unlisted.channels[place] == channel) {
                self.unlisted.channels[place] = self.unlisted.channels[end - 1];
                self.flows[flow].unlisted -= 1;
                self.link(flow, channel);
            }
        }
    }

    /// Counts a flow on a channel and puts it into the channel's list, if it is kept.
    #[inline(always)]
    fn link(&mut self, flow: u32, channel: u32) {
        let listed = u32::from(self.flows[flow].listed);
        if listed >= INSIDE + self.overflow.room {
            self.grow_overflow();
        }
        self.channels[channel].state += 1;
        let entry = Entry { channel, next: self.put_first(self.place(flow, listed), channel), previous: NONE };
        self.touch(channel);
        let record = &mut self.flows[flow];
        record.listed += 1;
        match record.entries.get_mut(listed as usize) {
            Some(inside) => *inside = entry,
            None => self.overflow.entries[flow * self.overflow.room + listed - INSIDE] = entry,
        }
    }

    /// Puts an entry in front of its channel's list. Returns the next one.
    #[inline(always)]
    fn put_first(&mut self, at: u32, channel: u32) -> u32 {
        let next = std::mem::replace(&mut self.channels[channel].first, at);
        if next != NONE {
            self.entry_mut(next).previous = at;
        }
        next
    }

    /// The number of an entry of a flow.
    #[inline(always)]
    fn place(&self, flow: u32, index: u32) -> u32 {
        place(flow, index, self.overflow.first, self.overflow.room)
    }

    /// Whose entry this is.
    #[inline(always)]
    fn flow_of(&self, entry: u32) -> u32 {
        if entry < self.overflow.first { entry / 4 } else { (entry - self.overflow.first) / self.overflow.room }
    }

    #[inline(always)]
    fn entry(&self, entry: u32) -> &Entry {
        if entry < self.overflow.first {
            &self.flows[entry / 4].entries[entry as usize % 4]
        } else {
            &self.overflow.entries[entry - self.overflow.first]
        }
    }

    #[inline(always)]
    fn entry_mut(&mut self, entry: u32) -> &mut Entry {
        if entry < self.overflow.first {
            &mut self.flows[entry / 4].entries[entry as usize % 4]
        } else {
            &mut self.overflow.entries[entry - self.overflow.first]
        }
    }

    /// Calls `visit` with the entries of a flow, which stand in lists, and their numbers.
    #[inline(always)]
    fn visit(&self, flow: u32, mut visit: impl FnMut(u32, &Entry)) {
        let Flow { entries, listed, .. } = &self.flows[flow];
        let listed = u32::from(*listed);
        for (entry, at) in entries.iter().take(listed as usize).zip(4 * flow..) {
            visit(at, entry);
        }
        if listed > INSIDE {
            let first = flow * self.overflow.room;
            (first..first + listed - INSIDE).for_each(|place| visit(self.overflow.first + place, &self.overflow.entries[place]));
        }
    }

    /// Calls `visit` with the channels of a flow's path that have no lists.
    #[inline(always)]
    fn visit_unlisted(&self, flow: u32, visit: impl FnMut(u32)) {
        let first = (flow * self.unlisted.room) as usize;
        self.unlisted.channels.as_slice()[first..first + usize::from(self.flows[flow].unlisted)].iter().copied().for_each(visit);
    }

    /// All channels of a flow's path, in no order that means anything.
    fn path(&self, flow: u32) -> Vec<usize> {
        let mut path = Vec::new();
        self.visit(flow, |_, entry| path.push(entry.channel as usize));
        self.visit_unlisted(flow, |channel| path.push(channel as usize));
        path
    }

    /// When the next flow ends.
    pub(crate) fn next_end(&mut self) -> Option<f64> {
        self.ends.least()
    }

    /// The flows that end up to this time, by number. Each has to be ended, and the rates shared before anything else is asked.
    pub(crate) fn take_ending(&mut self, limit: f64, into: &mut Vec<u32>) {
        if !self.ends.take_until(limit, into) {
            self.ended.extend_from_slice(into);
        }
    }

    /// Ends a flow, whose channels have carried so many flits of it that are not counted yet.
    pub(crate) fn end(&mut self, flow: u32, flits: f64) {
        for index in 0..u32::from(self.flows[flow].listed) {
            let Entry { channel, next, previous } = *self.entry(self.place(flow, index));
            let record = &mut self.channels[channel];
            record.state -= 1;
            if previous == NONE {
                record.first = next;
            } else {
                self.entry_mut(previous).next = next;
            }
            if next != NONE {
                self.entry_mut(next).previous = previous;
            }
            self.carried[channel] += flits;
            self.touch(channel);
        }
        self.carry_unlisted(flow, flits);
        let record = &mut self.flows[flow];
        (record.listed, record.unlisted) = (0, 0);
    }

    /// Ends the flow that ends next.
    #[cfg(test)]
    pub(crate) fn end_first(&mut self) -> u32 {
        let flow = self.ends.pop();
        self.end(flow, 0.0);
        flow
    }

    /// Gives all flows their rates by the levels that a sharing has set, after some have begun or ended at time `now`.
    pub(crate) fn apply_levels(&mut self, now: f64) {
        self.forget_ended();
        for index in 0..self.fresh.len() {
            let flow = self.fresh[index];
            // A flow that has begun and ended in one round had nothing to send.
            if self.flows[flow].is_in_use() {
                let rate = self.least_level(flow);
                self.set_rate(flow, rate, now);
            }
        }
        self.fresh.clear();
        for index in 0..self.changed.len() {
            let (channel, before) = self.changed[index];
            self.channels[channel].state &= !CHANGED;
            self.pass_on(channel, before, now);
        }
        self.changed.clear();
        give_back(&mut self.fresh);
        give_back(&mut self.changed);
        give_back(&mut self.dirty);
    }

    /// Takes the flows that have ended and not begun anew out of those that will end.
    pub(crate) fn forget_ended(&mut self) {
        for index in 0..self.ended.len() {
            let flow = self.ended[index];
            if !self.flows[flow].is_in_use() {
                self.ends.remove(flow);
            }
        }
        self.ended.clear();
    }

    /// Gives the flows of a channel whose level has changed their rates: a lower level matters to those above it, a higher one
    /// to those that the old one may have held.
    fn pass_on(&mut self, channel: u32, before: f64, now: f64) {
        let level = self.channels[channel].level;
        let mut at = self.channels[channel].first;
        while at != NONE {
            let (flow, next) = if at < self.overflow.first {
                (at / 4, self.flows[at / 4].entries[at as usize % 4].next)
            } else {
                (self.flow_of(at), self.entry(at).next)
            };
            let rate = self.flows[flow].rate;
            if level < rate {
                self.set_rate(flow, level, now);
            } else if level > before && rate >= before {
                let rate = self.least_level(flow);
                self.set_rate(flow, rate, now);
            }
            at = next;
        }
    }

    /// The least level on a flow's path. Channels without a list have none.
    #[inline(always)]
    fn least_level(&self, flow: u32) -> f64 {
        let mut least = f64::INFINITY;
        self.visit(flow, |_, entry| least = min(self.channels[entry.channel].level, least));
        least
    }

    #[inline(always)]
    fn set_rate(&mut self, flow: u32, rate: f64, now: f64) {
        let record = &mut self.flows[flow];
        if rate != record.rate {
            let left = record.left - (now - record.since) * record.rate;
            record.left = if left > 0.0 { left } else { 0.0 };
            (record.since, record.rate) = (now, rate);
            let end = now + record.left / rate;
            self.ends.set(flow, end);
        }
    }

    /// Flits that a flow has still to send.
    pub(crate) fn left(&self, flow: u32, now: f64) -> f64 {
        let flow = &self.flows[flow];
        (flow.left - (now - flow.since) * flow.rate).max(0.0)
    }

    /// Adds flits to what the channels of a flow's path have carried.
    pub(crate) fn carry(&mut self, flow: u32, flits: f64) {
        for index in 0..u32::from(self.flows[flow].listed) {
            let channel = self.entry(self.place(flow, index)).channel;
            self.carried[channel] += flits;
        }
        self.carry_unlisted(flow, flits);
    }

    #[inline(always)]
    fn carry_unlisted(&mut self, flow: u32, flits: f64) {
        let first = flow * self.unlisted.room;
        for place in first..first + u32::from(self.flows[flow].unlisted) {
            let channel = self.unlisted.channels[place];
            self.carried[channel] += flits;
        }
    }

    /// Adds flits to what a channel of the network has carried that is not left out.
    #[inline(always)]
    pub(crate) fn add_carried(&mut self, channel: u32, flits: f64) {
        self.carried[channel - self.left_out] += flits;
    }

    /// Adds what the channels have carried in another graph of the same network.
    pub(crate) fn add_all_carried(&mut self, other: &Self) {
        self.carried.iter_mut().zip(other.carried.iter()).for_each(|(sum, flits)| *sum += flits);
    }

    /// Flits per cycle of every channel, if all have the same.
    pub(crate) fn equal_bandwidth(&self) -> Option<f64> {
        if let Bandwidth::Equal(bandwidth) = self.bandwidth { Some(bandwidth) } else { None }
    }

    /// Flits per cycle of a channel of the network that is not left out.
    #[inline(always)]
    pub(crate) fn bandwidth_of(&self, channel: u32) -> f64 {
        self.bandwidth.of(channel - self.left_out)
    }

    /// Flits that a channel of the network has carried that is not left out.
    pub(crate) fn carried(&self, channel: u32) -> f64 {
        self.carried[channel - self.left_out]
    }

    /// Flits that have come to each terminal.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = f64> + '_ {
        self.carried.iter().skip(self.first_ejection as usize).take(self.flows.len()).copied()
    }

    /// Flows that cross a channel of the network that has a list.
    pub(crate) fn occupancy(&self, channel: u32) -> u32 {
        channel.checked_sub(self.left_out).map_or(0, |channel| self.flows_on(channel))
    }

    /// Nothing has been carried yet.
    pub(crate) fn forget_carried(&mut self) {
        self.carried.iter_mut().for_each(|flits| *flits = 0.0);
    }

    /// Flits per cycle of a flow.
    #[cfg(test)]
    pub(crate) fn rate(&self, flow: u32) -> f64 {
        self.flows[flow].rate
    }

    /// Checks every rate against a recount of the levels of an equal share or against the definition of max-min fairness: every
    /// flow has a channel that is full and on which no flow has more (or, of equal shares, the least share on its path).
    pub(crate) fn is_fair(&self, by_equal_shares: bool) -> bool {
        let mut used = vec![0.0; self.channels.len()];
        let mut greatest = vec![0.0f64; self.channels.len()];
        let mut count = vec![0.0; self.channels.len()];
        let active = || (0..self.flows.len() as u32).filter(|&flow| self.flows[flow].is_in_use());
        for flow in active() {
            let rate = self.flows[flow].rate;
            for channel in self.path(flow) {
                used[channel] += rate;
                greatest[channel] = greatest[channel].max(rate);
                count[channel] += 1.0;
            }
        }
        let close = |one: f64, other: f64| (one - other).abs() <= 1e-9 * other;
        let bandwidth = |channel: usize| self.bandwidth.of(channel as u32);
        let fits = |channel: usize| used[channel] <= bandwidth(channel) * (1.0 + 1e-9);
        let is_served = |flow: u32| {
            let rate = self.flows[flow].rate;
            let mut channels = self.path(flow).into_iter();
            if by_equal_shares {
                return close(rate, channels.map(|channel| bandwidth(channel) / count[channel]).fold(f64::INFINITY, f64::min));
            }
            channels.any(|channel| close(used[channel], bandwidth(channel)) && close(greatest[channel], rate))
        };
        (0..used.len()).all(fits) && active().all(is_served)
    }

    /// Moves the overflow entries to a larger column, with room for longer paths.
    #[cold]
    fn grow_overflow(&mut self) {
        let (old, room, overflow) = (self.overflow.room, more_room(self.overflow.room), self.overflow.first);
        let moved = |entry: u32| {
            if entry < overflow || entry == NONE { entry } else { overflow + (entry - overflow) / old * room + (entry - overflow) % old }
        };
        let moved_whole = |entry: &Entry| Entry { channel: entry.channel, next: moved(entry.next), previous: moved(entry.previous) };
        let size = self.flows.len() * room as usize;
        let mut entries = large_vec(size);
        entries.resize(size, NO_ENTRY);
        for (entry, place) in self.overflow.entries.iter().zip(overflow..) {
            entries[(moved(place) - overflow) as usize] = moved_whole(entry);
        }
        for flow in self.flows.iter_mut() {
            flow.entries = flow.entries.each_ref().map(moved_whole);
        }
        for channel in self.channels.iter_mut().filter(|channel| channel.state & LISTED != 0) {
            channel.first = moved(channel.first);
        }
        (self.overflow.entries, self.overflow.room) = (entries.into(), room);
    }

    /// Makes room for more channels without lists.
    #[cold]
    fn make_room_unlisted(&mut self) {
        let (old, room) = (self.unlisted.room as usize, more_room(self.unlisted.room));
        let size = self.flows.len() * room as usize;
        let mut unlisted = large_vec(size);
        unlisted.resize(size, 0);
        for flow in 0..self.flows.len() {
            unlisted[flow * room as usize..][..old].copy_from_slice(&self.unlisted.channels.as_slice()[flow * old..][..old]);
        }
        (self.unlisted.channels, self.unlisted.room) = (unlisted.into(), room);
    }
}

/// The number of an entry of a flow; overflow entries begin with `overflow`, `room` of each flow.
#[inline(always)]
fn place(flow: u32, index: u32, overflow: u32, room: u32) -> u32 {
    if index < INSIDE { 4 * flow + index } else { overflow + flow * room + index - INSIDE }
}

/// The minimum of two numbers, branch-free: `f64::min` also handles NaN.
#[inline(always)]
pub(crate) fn min(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}

/// Gives the memory of an empty list back if it has become long: the first round of a large network concerns all of it, few later ones
/// a hundredth.
fn give_back<T>(list: &mut Vec<T>) {
    if list.capacity() > KEPT {
        list.clear();
        list.shrink_to(KEPT);
    }
}

/// Half as much again, lest a network of long paths lays its columns out for each.
fn more_room(room: u32) -> u32 {
    if room == 0 { INSIDE } else { room + room / 2 }
}

#[cfg(test)]
mod tests;
