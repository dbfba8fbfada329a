//! Flows and the channels that they share, in flat arrays.
//!
//! A flow on the h-th channel of its way is *entry* `flow << shift | h`; the entries of a channel are a doubly linked list, so
//! that flows come and go in constant time.

use crate::heap::Heap;
use crate::sharing::Sharing;

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;

/// One channel of a flow's way. 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    channel: u32,
    next: u32,
    previous: u32,
}

/// What a flow has to send and how fast it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Flits that had not arrived at time `since`.
    left: f64,
    since: f64,
    /// Flits per cycle since then.
    rate: f64,
    /// Channels of its way; 0 while it is not in use.
    length: u32,
    /// The last round in which its rate was looked at.
    round: u32,
}

/// A channel. 32 bytes, so that whatever happens to it touches one cache line.
#[derive(Clone, Copy, Debug)]
struct Channel {
    /// Flits per cycle.
    bandwidth: f64,
    level: f64,
    /// Flows that cross it, and the first entry of their list.
    count: u32,
    first: u32,
    is_dirty: bool,
    is_changed: bool,
}

/// The channels, the flows on them, and when each flow ends at its present rate.
#[derive(Debug)]
pub(crate) struct Graph {
    shift: u32,
    entries: Vec<Entry>,
    flows: Vec<Flow>,
    ends: Heap,
    channels: Vec<Channel>,
    /// Channels whose flows have changed.
    pub(crate) dirty: Vec<u32>,
    /// Channels whose level has changed in this round, with the level before; each once.
    changed: Vec<(u32, f64)>,
    /// Flows that have begun in this round.
    fresh: Vec<u32>,
    round: u32,
}

impl Graph {
    /// Channels of these bandwidths, in flits per cycle, and room for flows numbered below `flows`.
    pub(crate) fn new(bandwidth: Vec<f64>, flows: usize) -> Self {
        let channel =
            |bandwidth: f64| Channel { bandwidth, level: f64::INFINITY, count: 0, first: NONE, is_dirty: false, is_changed: false };
        let unused = Flow { left: 0.0, since: 0.0, rate: 0.0, length: 0, round: 0 };
        Self {
            shift: 3,
            entries: vec![Entry { channel: 0, next: NONE, previous: NONE }; flows << 3],
            flows: vec![unused; flows],
            ends: Heap::new(flows),
            channels: bandwidth.into_iter().map(channel).collect(),
            dirty: Vec::new(),
            changed: Vec::new(),
            fresh: Vec::new(),
            round: 0,
        }
    }

    /// Begins a flow over these channels. It has no rate before [`Self::share`].
    pub(crate) fn begin(&mut self, flow: u32, path: &[u32], flits: f64, now: f64) {
        if path.len() > 1 << self.shift {
            self.make_room(path.len());
        }
        self.flows[flow as usize] = Flow { left: flits, since: now, rate: 0.0, length: path.len() as u32, round: 0 };
        for (hop, &channel) in path.iter().enumerate() {
            let entry = flow << self.shift | hop as u32;
            let next = std::mem::replace(&mut self.channels[channel as usize].first, entry);
            if next != NONE {
                self.entries[next as usize].previous = entry;
            }
            self.entries[entry as usize] = Entry { channel, next, previous: NONE };
            self.channels[channel as usize].count += 1;
            self.touch(channel);
        }
        self.fresh.push(flow);
    }

    /// The flow that ends next, and when.
    pub(crate) fn next_end(&self) -> Option<(f64, u32)> {
        self.ends.first()
    }

    /// Ends the flow that ends next.
    pub(crate) fn end_first(&mut self) -> Option<u32> {
        let (_, flow) = self.ends.pop()?;
        for position in self.path(flow) {
            let Entry { channel, next, previous } = self.entries[position as usize];
            match previous {
                NONE => self.channels[channel as usize].first = next,
                before => self.entries[before as usize].next = next,
            }
            if next != NONE {
                self.entries[next as usize].previous = previous;
            }
            self.channels[channel as usize].count -= 1;
            self.touch(channel);
        }
        self.flows[flow as usize].length = 0;
        Some(flow)
    }

    /// Gives all flows their rates after some have begun or ended at time `now`.
    pub(crate) fn share(&mut self, sharing: &mut dyn Sharing, now: f64) {
        self.round = self.round.wrapping_add(1).max(1);
        sharing.level(self);
        let mut fresh = std::mem::take(&mut self.fresh);
        for flow in fresh.drain(..) {
            // A flow may have begun and ended in one round only if it has nothing to send.
            if self.flows[flow as usize].length > 0 {
                self.set_rate(flow, now);
            }
        }
        self.fresh = fresh;
        let mut changed = std::mem::take(&mut self.changed);
        for (channel, before) in changed.drain(..) {
            self.channels[channel as usize].is_changed = false;
            let level = self.channels[channel as usize].level;
            let mut entry = self.channels[channel as usize].first;
            while entry != NONE {
                let flow = entry >> self.shift;
                let rate = self.flows[flow as usize].rate;
                // A lower level matters to those above it, a higher one to those that the old one may have held.
                if if level < before { level < rate } else { rate >= before } {
                    self.set_rate(flow, now);
                }
                entry = self.entries[entry as usize].next;
            }
        }
        self.changed = changed;
    }

    /// The least level on the way becomes the flow's rate.
    fn set_rate(&mut self, flow: u32, now: f64) {
        if self.flows[flow as usize].round == self.round {
            return;
        }
        let rate = self
            .path(flow)
            .map(|position| self.channels[self.entries[position as usize].channel as usize].level)
            .fold(f64::INFINITY, f64::min);
        let record = &mut self.flows[flow as usize];
        record.round = self.round;
        if rate != record.rate {
            record.left = (record.left - (now - record.since) * record.rate).max(0.0);
            (record.since, record.rate) = (now, rate);
            let end = now + record.left / rate;
            self.ends.set(flow, end);
        }
    }

    /// Flits that a flow has still to send.
    pub(crate) fn left(&self, flow: u32, now: f64) -> f64 {
        let flow = &self.flows[flow as usize];
        (flow.left - (now - flow.since) * flow.rate).max(0.0)
    }

    /// The channels of a flow's way.
    pub(crate) fn channels_of(&self, flow: u32) -> impl Iterator<Item = u32> + '_ {
        self.path(flow).map(|position| self.entries[position as usize].channel)
    }

    /// Flits per cycle of a flow.
    #[cfg(test)]
    pub(crate) fn rate(&self, flow: u32) -> f64 {
        self.flows[flow as usize].rate
    }

    /// Checks every rate against a recount of the levels of an equal share or against the definition of max-min fairness: every
    /// flow has a channel that is full and on which no flow has more (or, of equal shares, the least share on its way).
    pub(crate) fn is_fair(&self, by_equal_shares: bool) -> bool {
        let mut used = vec![0.0; self.channels.len()];
        let mut greatest = vec![0.0f64; self.channels.len()];
        let active = || (0..self.flows.len() as u32).filter(|&flow| self.flows[flow as usize].length > 0);
        for flow in active() {
            for position in self.path(flow) {
                let channel = self.entries[position as usize].channel as usize;
                used[channel] += self.flows[flow as usize].rate;
                greatest[channel] = greatest[channel].max(self.flows[flow as usize].rate);
            }
        }
        let close = |one: f64, other: f64| (one - other).abs() <= 1e-9 * other;
        let fits = |channel: usize| used[channel] <= self.channels[channel].bandwidth * (1.0 + 1e-9);
        let is_served = |flow: u32| {
            let rate = self.flows[flow as usize].rate;
            let mut channels = self.path(flow).map(|position| self.entries[position as usize].channel as usize);
            if by_equal_shares {
                let share = channels
                    .map(|channel| self.channels[channel].bandwidth / f64::from(self.channels[channel].count))
                    .fold(f64::INFINITY, f64::min);
                return close(rate, share);
            }
            channels.any(|channel| close(used[channel], self.channels[channel].bandwidth) && close(greatest[channel], rate))
        };
        (0..used.len()).all(fits) && active().all(is_served)
    }

    // What sharings see.

    /// Flits per cycle of a channel.
    pub(crate) fn bandwidth(&self, channel: u32) -> f64 {
        self.channels[channel as usize].bandwidth
    }

    /// How many flows cross a channel.
    pub(crate) fn flows_on(&self, channel: u32) -> u32 {
        self.channels[channel as usize].count
    }

    pub(crate) fn level(&self, channel: u32) -> f64 {
        self.channels[channel as usize].level
    }

    /// Sets a level. Flows get their rates when the sharing is done.
    pub(crate) fn set_level(&mut self, channel: u32, level: f64) {
        let before = std::mem::replace(&mut self.channels[channel as usize].level, level);
        if level != before && !self.channels[channel as usize].is_changed {
            self.channels[channel as usize].is_changed = true;
            self.changed.push((channel, before));
        }
    }

    /// A channel leaves the dirty ones.
    pub(crate) fn clean(&mut self, channel: u32) {
        self.channels[channel as usize].is_dirty = false;
    }

    /// Marks a channel as dirty without listing it; was it clean?
    pub(crate) fn soil(&mut self, channel: u32) -> bool {
        !std::mem::replace(&mut self.channels[channel as usize].is_dirty, true)
    }

    fn touch(&mut self, channel: u32) {
        if self.soil(channel) {
            self.dirty.push(channel);
        }
    }

    /// The first entry of a channel.
    pub(crate) fn first(&self, channel: u32) -> u32 {
        self.channels[channel as usize].first
    }

    /// The next entry of the same channel.
    pub(crate) fn next(&self, entry: u32) -> u32 {
        self.entries[entry as usize].next
    }

    /// The channel of an entry.
    pub(crate) fn channel_at(&self, entry: u32) -> u32 {
        self.entries[entry as usize].channel
    }

    /// All entries of the flow of an entry.
    pub(crate) fn path_of(&self, entry: u32) -> std::ops::Range<u32> {
        self.path(entry >> self.shift)
    }

    fn path(&self, flow: u32) -> std::ops::Range<u32> {
        let first = flow << self.shift;
        first..first + self.flows[flow as usize].length
    }

    /// The least level on a flow's way but for the channel of this entry.
    pub(crate) fn limit_elsewhere(&self, entry: u32) -> f64 {
        self.limit_beside(entry, entry)
    }

    /// The least level on a flow's way but for the channels of these two entries.
    pub(crate) fn limit_beside(&self, entry: u32, other: u32) -> f64 {
        let others = self.path_of(entry).filter(|&position| position != entry && position != other);
        others.map(|position| self.channels[self.entries[position as usize].channel as usize].level).fold(f64::INFINITY, f64::min)
    }

    /// Lays the entries out anew, with room for longer ways.
    fn make_room(&mut self, length: usize) {
        let (old, shift) = (self.shift, length.next_power_of_two().trailing_zeros());
        let moved = |entry: u32| if entry == NONE { NONE } else { (entry >> old) << shift | entry & ((1 << old) - 1) };
        let mut entries = vec![Entry { channel: 0, next: NONE, previous: NONE }; self.flows.len() << shift];
        for (place, entry) in self.entries.iter().enumerate() {
            entries[moved(place as u32) as usize] =
                Entry { channel: entry.channel, next: moved(entry.next), previous: moved(entry.previous) };
        }
        self.channels.iter_mut().for_each(|channel| channel.first = moved(channel.first));
        (self.entries, self.shift) = (entries, shift);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharing;
    use kasuri_model::rng::{Purpose, Stream, Streams};

    /// Progressive filling, from the definition: all rates rise together; where a channel is full its flows stop.
    fn fill(bandwidth: &[f64], paths: &[Vec<u32>]) -> Vec<f64> {
        let mut left = bandwidth.to_vec();
        let mut rates: Vec<Option<f64>> = vec![None; paths.len()];
        while rates.iter().any(Option::is_none) {
            let open = |channel: u32| paths.iter().zip(&rates).filter(|(path, rate)| rate.is_none() && path.contains(&channel)).count();
            let levels = (0..left.len() as u32)
                .filter(|&channel| open(channel) > 0)
                .map(|channel| (left[channel as usize] / open(channel) as f64, channel));
            let (level, full) = levels.min_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
            for (path, rate) in paths.iter().zip(&mut rates).filter(|(path, rate)| rate.is_none() && path.contains(&full)) {
                *rate = Some(level);
                path.iter().for_each(|&channel| left[channel as usize] -= level);
            }
        }
        rates.into_iter().flatten().collect()
    }

    fn shares(bandwidth: &[f64], paths: &[Vec<u32>]) -> Vec<f64> {
        let flows = |channel: u32| paths.iter().filter(|path| path.contains(&channel)).count() as f64;
        let rate = |path: &Vec<u32>| path.iter().map(|&channel| bandwidth[channel as usize] / flows(channel)).fold(f64::INFINITY, f64::min);
        paths.iter().map(rate).collect()
    }

    fn random_path(stream: &mut Stream, channels: u32) -> Vec<u32> {
        let mut path: Vec<u32> = Vec::new();
        for _ in 0..=stream.below(12) {
            let channel = stream.below(channels);
            if !path.contains(&channel) {
                path.push(channel);
            }
        }
        path
    }

    /// Flows come and go on random networks; after each step every rate is that of a calculation from nothing.
    fn follows(name: &str, expected: impl Fn(&[f64], &[Vec<u32>]) -> Vec<f64>) {
        for seed in 0..1000 {
            let mut stream = Streams::new(seed).get(Purpose::Structure, 0);
            let channels = 1 + stream.below(20);
            let bandwidth: Vec<f64> = (0..channels).map(|_| 1.0 / f64::from(1 + stream.below(3))).collect();
            let mut graph = Graph::new(bandwidth.clone(), 64);
            let mut policy = sharing::build(name).unwrap();
            let mut active: Vec<(u32, Vec<u32>)> = Vec::new();
            let mut now = 0.0;
            for flow in 0..20 {
                if stream.below(3) == 0 && !active.is_empty() {
                    let (time, first) = graph.next_end().unwrap();
                    now = time;
                    assert_eq!(graph.end_first(), Some(first));
                    active.retain(|(flow, _)| *flow != first);
                }
                let path = random_path(&mut stream, channels);
                graph.begin(flow, &path, f64::from(1 + stream.below(100)), now);
                active.push((flow, path));
                graph.share(&mut *policy, now);
                let paths: Vec<_> = active.iter().map(|(_, path)| path.clone()).collect();
                for ((flow, _), expected) in active.iter().zip(expected(&bandwidth, &paths)) {
                    assert!((graph.rate(*flow) - expected).abs() <= 1e-9 * expected, "seed {seed}: {} {expected}", graph.rate(*flow));
                }
                assert!(graph.is_fair(name == "equal-share"));
            }
        }
    }

    #[test]
    fn max_min_rates_are_those_of_progressive_filling() {
        follows("max-min", fill);
    }

    #[test]
    fn equal_shares_are_those_of_a_recount() {
        follows("equal-share", shares);
    }

    #[test]
    fn two_flows_on_one_channel_get_half_each_and_the_rest_when_one_ends() {
        for entry in sharing::SHARINGS {
            let mut graph = Graph::new(vec![1.0, 1.0, 0.5], 2);
            let mut policy = sharing::build(entry.name).unwrap();
            graph.begin(0, &[0, 1], 10.0, 0.0);
            graph.begin(1, &[0], 5.0, 0.0);
            graph.share(&mut *policy, 0.0);
            assert_eq!((graph.rate(0), graph.rate(1), graph.next_end()), (0.5, 0.5, Some((10.0, 1))));
            graph.end_first();
            graph.share(&mut *policy, 10.0);
            assert_eq!((graph.rate(0), graph.left(0, 10.0), graph.next_end()), (1.0, 5.0, Some((15.0, 0))));
        }
    }

    /// Flow 0 is held to 1/4 by a slow channel. Equal shares lose what it leaves to flow 1, max-min gives it away.
    #[test]
    fn what_a_flow_leaves_is_lost_or_given_to_the_others() {
        for (name, expected) in [("equal-share", 0.5), ("max-min", 0.75)] {
            let mut graph = Graph::new(vec![1.0, 0.25], 2);
            graph.begin(0, &[0, 1], 10.0, 0.0);
            graph.begin(1, &[0], 10.0, 0.0);
            graph.share(&mut *sharing::build(name).unwrap(), 0.0);
            assert_eq!((graph.rate(0), graph.rate(1)), (0.25, expected), "{name}");
        }
    }
}
