//! Any terminals of any network under any fixed routing: phases without contention, found by search.
//!
//! A phase is free of contention if no two of its messages share a channel. So phases are the colours of the messages, and messages
//! that share a channel, injection and ejection channels included, must differ: where no channel between routers is shared, it is the
//! edge colouring of the bipartite graph of senders and receivers. No colouring has fewer colours than the busiest channel has
//! messages; the search begins with so many phases:
//!
//! 1. Each message tries its phase of the shift, then the first phase in which its channels are free.
//! 2. A message that finds none takes the phase of the least resistance and ejects those in its way, which search anew. A message that
//!    has been ejected often resists more.
//! 3. Where that does not end, phases are added by and by.

use super::contract::{Entry, Schedule, ScheduleError, first};
use super::verification::Routes;
use kasuri_network::id::TerminalId;
use kasuri_network::network::{NONE, Network};
use kasuri_network::rng::{Purpose, Stream, Streams};
use kasuri_network::routing::Routing;
use std::collections::VecDeque;

const NAME: &str = "general";

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "any terminals of any network under a fixed routing: no contention, near-minimal number of phases, found by search",
    source: "edge colouring with ejection chains: kasuri_workload, schedule::general; bound: the larger of N - 1 and the busiest channel",
    fits: |_| true,
    choose: first,
    build,
};

/// The search keeps every route in memory: 4096 terminals have 16 million.
const MAX_TERMINALS: usize = 4096;
/// Phases that a message looks at before it ejects others.
const WINDOW: u32 = 128;
/// Ejections in a round: one for each message, but at least and at most so many. Each takes some microseconds.
const EJECTIONS: (usize, usize) = (20_000, 100_000);
/// Rounds of the search; phases are added between them.
const ROUNDS: u32 = 12;

fn build(network: &Network, routing: &dyn Routing, terminals: &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError> {
    if terminals.len() > MAX_TERMINALS {
        let problem = format!("{} terminals; it searches, and the limit is {MAX_TERMINALS}", terminals.len());
        return Err(ScheduleError::Job { schedule: NAME, problem });
    }
    let messages = Messages::new(network, routing, terminals)?;
    let phase_of = color(&messages);
    Ok(Box::new(General::new(&messages, &phase_of)))
}

/// The messages of all ordered pairs and the channels on their ways. Message `source * ranks + destination`; those to oneself are empty.
struct Messages {
    ranks: u32,
    /// Where the channels of each message begin; one more entry than messages.
    starts: Vec<u32>,
    /// Channels that the job uses, numbered from 0.
    channels: Vec<u32>,
    /// By channel, how many messages it carries.
    loads: Vec<u32>,
    /// By channel, its period.
    periods: Vec<u32>,
}

impl Messages {
    fn new(network: &Network, routing: &dyn Routing, terminals: &[TerminalId]) -> Result<Self, ScheduleError> {
        let mut number = vec![NONE; network.channel_count() as usize];
        let mut messages =
            Self { ranks: terminals.len() as u32, starts: vec![0], channels: Vec::new(), loads: Vec::new(), periods: Vec::new() };
        let (mut routes, mut path) = (Routes::new(network, routing), Vec::new());
        for &from in terminals {
            for &to in terminals {
                if from != to {
                    routes.follow(from, to, &mut path)?;
                    for channel in &path {
                        let known = &mut number[channel.index()];
                        if *known == NONE {
                            *known = messages.loads.len() as u32;
                            messages.loads.push(0);
                            messages.periods.push(network.link(*channel).period);
                        }
                        messages.loads[*known as usize] += 1;
                        messages.channels.push(*known);
                    }
                }
                messages.starts.push(messages.channels.len() as u32);
            }
        }
        Ok(messages)
    }

    fn path(&self, message: u32) -> &[u32] {
        &self.channels[self.starts[message as usize] as usize..self.starts[message as usize + 1] as usize]
    }

    /// The fewest phases: what the busiest channel carries. Injection channels carry ranks - 1.
    fn bound(&self) -> u32 {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    /// The phase in which a message would be sent by shifts.
    fn shift_phase(&self, message: u32) -> u32 {
        let (source, destination) = (message / self.ranks, message % self.ranks);
        (destination + self.ranks - source - 1) % self.ranks
    }

    /// All messages: those over slow channels first, so that few phases are long; then those over busy channels, because they have the
    /// fewest phases to choose from; then by shifts.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.ranks * self.ranks).filter(|&message| !self.path(message).is_empty()).collect();
        let load = |message: u32| self.path(message).iter().map(|&channel| self.loads[channel as usize]).max();
        let period = |message: u32| self.path(message).iter().map(|&channel| self.periods[channel as usize]).max();
        order.sort_by_cached_key(|&message| {
            (std::cmp::Reverse((period(message), load(message), self.path(message).len())), self.shift_phase(message), message)
        });
        order
    }
}

/// The phase of each message.
fn color(messages: &Messages) -> Vec<u32> {
    let bound = messages.bound();
    let mut coloring = Coloring::new(messages, bound + bound / 2 + 1, bound);
    let mut waiting = VecDeque::new();
    let order = messages.order();
    let mut rest = Vec::new();
    for message in order {
        let phase = messages.shift_phase(message);
        if coloring.is_free(message, phase) { coloring.place(message, phase) } else { rest.push(message) }
    }
    for message in rest {
        match coloring.free_phase(message) {
            Some(phase) => coloring.place(message, phase),
            None => waiting.push_back(message),
        }
    }
    let budget = messages.starts.len().clamp(EJECTIONS.0, EJECTIONS.1);
    for _ in 0..ROUNDS {
        coloring.settle(&mut waiting, budget);
        if waiting.is_empty() {
            break;
        }
        coloring.grow(waiting.make_contiguous());
    }
    coloring.append(waiting.into());
    coloring.phase_of
}

/// Which message has a channel in which phase.
struct Coloring<'a> {
    messages: &'a Messages,
    /// Phases that there may be at most, and are.
    capacity: u32,
    phases: u32,
    /// A bit for each phase in which a channel is taken, `words` for a channel.
    taken: Vec<u64>,
    words: usize,
    /// The message that takes a channel in a phase, by channel and phase.
    holder: Vec<u32>,
    /// The phase of each message.
    phase_of: Vec<u32>,
    /// How often each message has been ejected.
    ejected: Vec<u32>,
    stream: Stream,
}

impl<'a> Coloring<'a> {
    fn new(messages: &'a Messages, capacity: u32, phases: u32) -> Self {
        let (channels, words) = (messages.loads.len(), capacity.div_ceil(64) as usize);
        let pairs = messages.starts.len() - 1;
        Self {
            messages,
            capacity,
            phases,
            taken: vec![0; channels * words],
            words,
            holder: vec![NONE; channels * capacity as usize],
            phase_of: vec![NONE; pairs],
            ejected: vec![0; pairs],
            stream: Streams::new(0).get(Purpose::Structure, 0),
        }
    }

    fn holder_at(&self, channel: u32, phase: u32) -> usize {
        channel as usize * self.capacity as usize + phase as usize
    }

    fn is_free(&self, message: u32, phase: u32) -> bool {
        self.messages.path(message).iter().all(|&channel| self.holder[self.holder_at(channel, phase)] == NONE)
    }

    /// The first phase in which all channels of a message are free.
    fn free_phase(&self, message: u32) -> Option<u32> {
        let path = self.messages.path(message);
        (0..self.phases.div_ceil(64)).find_map(|word| {
            let taken = path.iter().fold(0, |taken, &channel| taken | self.taken[channel as usize * self.words + word as usize]);
            let phase = word * 64 + taken.trailing_ones();
            (taken != u64::MAX && phase < self.phases).then_some(phase)
        })
    }

    fn place(&mut self, message: u32, phase: u32) {
        for &channel in self.messages.path(message) {
            let at = self.holder_at(channel, phase);
            self.holder[at] = message;
            self.taken[channel as usize * self.words + phase as usize / 64] |= 1 << (phase % 64);
        }
        self.phase_of[message as usize] = phase;
    }

    fn remove(&mut self, message: u32) {
        let phase = self.phase_of[message as usize];
        for &channel in self.messages.path(message) {
            let at = self.holder_at(channel, phase);
            self.holder[at] = NONE;
            self.taken[channel as usize * self.words + phase as usize / 64] &= !(1 << (phase % 64));
        }
        self.phase_of[message as usize] = NONE;
        self.ejected[message as usize] += 1;
    }

    /// Those who hold a channel of a message in a phase, each once, and how much they resist. Nothing if that is as much as `limit`.
    fn in_the_way(&self, message: u32, phase: u32, limit: u64, found: &mut Vec<u32>) -> Option<u64> {
        found.clear();
        let mut resistance = 0;
        for &channel in self.messages.path(message) {
            let holder = self.holder[self.holder_at(channel, phase)];
            if holder != NONE && !found.contains(&holder) {
                resistance += 1 + u64::from(self.ejected[holder as usize]);
                if resistance >= limit {
                    return None;
                }
                found.push(holder);
            }
        }
        Some(resistance)
    }

    /// Gives phases to waiting messages, with so many ejections at most.
    fn settle(&mut self, waiting: &mut VecDeque<u32>, ejections: usize) {
        let (mut found, mut least) = (Vec::new(), Vec::new());
        let mut left = ejections;
        while let Some(message) = waiting.pop_front() {
            if let Some(phase) = self.free_phase(message) {
                self.place(message, phase);
                continue;
            }
            if left == 0 {
                waiting.push_front(message);
                return;
            }
            left -= 1;
            let phase = self.least_resistance(message, &mut found, &mut least);
            for &holder in &least {
                self.remove(holder);
                waiting.push_back(holder);
            }
            self.place(message, phase);
        }
    }

    /// Of some phases from a random one on, that in which the fewest and least ejected messages are in the way; these in `least`.
    fn least_resistance(&mut self, message: u32, found: &mut Vec<u32>, least: &mut Vec<u32>) -> u32 {
        let begin = self.stream.below(self.phases);
        let (mut best, mut best_phase) = (u64::MAX, begin);
        for step in 0..WINDOW.min(self.phases) {
            let phase = (begin + step) % self.phases;
            if let Some(resistance) = self.in_the_way(message, phase, best, found) {
                (best, best_phase) = (resistance, phase);
                std::mem::swap(found, least);
            }
        }
        best_phase
    }

    /// Adds phases: a part of what the busiest channel of the waiting messages needs.
    fn grow(&mut self, waiting: &[u32]) {
        let mut loads = vec![0u32; self.messages.loads.len()];
        let mut most = 0;
        for &message in waiting {
            for &channel in self.messages.path(message) {
                loads[channel as usize] += 1;
                most = most.max(loads[channel as usize]);
            }
        }
        self.phases = (self.phases + most.div_ceil(4)).min(self.capacity);
    }

    /// Gives phases of their own to messages for which the search has found none.
    fn append(&mut self, mut waiting: Vec<u32>) {
        let mut last = vec![NONE; self.messages.loads.len()];
        while !waiting.is_empty() {
            let phase = self.phases;
            waiting.retain(|&message| {
                let path = self.messages.path(message);
                let is_free = path.iter().all(|&channel| last[channel as usize] != phase);
                if is_free {
                    path.iter().for_each(|&channel| last[channel as usize] = phase);
                    self.phase_of[message as usize] = phase;
                }
                !is_free
            });
            self.phases += 1;
        }
    }
}

/// Who sends to whom, listed.
#[derive(Debug)]
struct General {
    ranks: u32,
    phases: u32,
    /// By phase and rank; `NONE` where there is nobody.
    destinations: Vec<u32>,
    sources: Vec<u32>,
}

impl General {
    fn new(messages: &Messages, phase_of: &[u32]) -> Self {
        let ranks = messages.ranks;
        let phases = phase_of.iter().filter(|&&phase| phase != NONE).max().map_or(0, |last| last + 1);
        let size = ranks as usize * phases as usize;
        let mut general = Self { ranks, phases, destinations: vec![NONE; size], sources: vec![NONE; size] };
        for (message, &phase) in (0..).zip(phase_of).filter(|&(_, &phase)| phase != NONE) {
            let (source, destination) = (message / ranks, message % ranks);
            let at = general.at(source, phase);
            general.destinations[at] = destination;
            let at = general.at(destination, phase);
            general.sources[at] = source;
        }
        general
    }

    fn at(&self, rank: u32, phase: u32) -> usize {
        phase as usize * self.ranks as usize + rank as usize
    }
}

impl Schedule for General {
    fn phases(&self) -> u32 {
        self.phases
    }

    fn is_full(&self) -> bool {
        !self.destinations.contains(&NONE)
    }

    fn destination(&self, rank: u32, phase: u32) -> Option<u32> {
        Some(self.destinations[self.at(rank, phase)]).filter(|&peer| peer != NONE)
    }

    fn source(&self, rank: u32, phase: u32) -> Option<u32> {
        Some(self.sources[self.at(rank, phase)]).filter(|&peer| peer != NONE)
    }
}
