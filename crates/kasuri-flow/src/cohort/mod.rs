//! Messages that begin together while no other is under way, as those of a schedule's rounds do.
//!
//! The lists of the [`Graph`] serve to find the flows whose rates a change concerns. Flows that begin together and end together change
//! none: how many of them cross each channel tells all their rates. So they are only counted here, and go to the graph when some of them
//! end before the others, or when other flows begin.

use crate::graph::{Graph, min};
use crate::sharing::LevelByCount;
use kasuri_model::sources::SourceMessage;
use kasuri_network::memory::Column;
use kasuri_workload::workload::Token;

/// A message among those that have begun together. It is a terminal's, whose injection channel has the same number. 40 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) token: Token,
    pub(crate) created: f64,
    pub(crate) flow: u32,
    pub(crate) destination: u32,
    pub(crate) flits: u32,
    /// Where its path begins: among those that are remembered or, if not, in [`Cohort::paths`].
    path: u32,
    is_remembered: bool,
    /// Cycles from the end of the transfer to the arrival of the last flit, of either sign.
    pub(crate) head_latency: f32,
    /// Channels of its path but that of injection.
    pub(crate) hops: u16,
}

impl Member {
    /// A message that has no path yet.
    pub(crate) fn new(flow: u32, token: Token, drawn: &SourceMessage) -> Self {
        let SourceMessage { created, destination, flits, .. } = *drawn;
        Self { token, created, flow, destination: destination.0, flits, path: 0, is_remembered: false, head_latency: 0.0, hops: 0 }
    }
}

/// What crosses a channel. 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    /// Flits of all rounds, those under way included.
    flits: f64,
    /// The round of the last message, times [`ROUND`], and how many there are in it.
    messages: u64,
}

/// More than the messages of a round.
const ROUND: u64 = 1 << 24;

/// What the messages have done together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There are none.
    Nothing,
    /// They have begun and have no rates yet.
    Beginning,
    /// They have rates.
    Flowing,
}

/// The messages that have begun together: a round.
#[derive(Debug)]
pub(crate) struct Cohort {
    level_by_count: Option<LevelByCount>,
    phase: Phase,
    members: Vec<Member>,
    /// Are they in the order of their numbers?
    is_ordered: bool,
    /// Their paths without the injection channels, unless these are remembered.
    paths: Vec<u32>,
    /// By channel. Nobody shares an injection channel, so that they have no part in it.
    crossings: Column<Crossing>,
    /// The number of the round, times [`ROUND`].
    round: u64,
    /// The messages of all channels by or.
    any: u64,
    /// Are the flits counted that cross channels?
    is_counted: bool,
    /// When the messages began, and when the first and the last of them end.
    pub(crate) begun: f64,
    first_end: f64,
    last_end: f64,
}

impl Cohort {
    /// For flows over so many channels, 0 if it is not to be used. Those who will share them say how a channel's level follows from the
    /// number of its flows, if it does; a flow that is alone on each of its channels has them whole in any sharing.
    pub(crate) fn new(channels: usize, level_by_count: Option<LevelByCount>) -> Self {
        Self {
            level_by_count,
            phase: Phase::Nothing,
            members: Vec::new(),
            is_ordered: true,
            paths: Vec::new(),
            crossings: Column::filled(channels, Crossing { flits: 0.0, messages: 0 }),
            round: 0,
            any: 0,
            is_counted: true,
            begun: 0.0,
            first_end: f64::INFINITY,
            last_end: 0.0,
        }
    }

    /// Are there none?
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.phase == Phase::Nothing
    }

    /// May a message that begins now join, `others` being under way?
    #[inline(always)]
    pub(crate) fn admits(&self, others: u64) -> bool {
        self.phase == Phase::Beginning || others == 0 && self.is_empty() && !self.crossings.is_empty()
    }

    /// Begins a message that is admitted and has its path.
    #[inline(always)]
    pub(crate) fn begin(&mut self, member: Member) {
        self.phase = Phase::Beginning;
        self.is_ordered &= self.members.last().is_none_or(|last| last.flow < member.flow);
        self.members.push(member);
    }

    /// Gives a message a path that is remembered, and which begins here.
    #[inline(always)]
    pub(crate) fn enter_remembered(&mut self, member: &mut Member, first: u32, others: &[u32]) {
        (member.path, member.hops, member.is_remembered) = (first, others.len() as u16, true);
        self.cross(member.flits, others);
    }

    /// Gives a message a path over these channels after that of injection.
    pub(crate) fn enter(&mut self, member: &mut Member, others: &[u32]) {
        (member.path, member.hops, member.is_remembered) = (self.paths.len() as u32, others.len() as u16, false);
        self.paths.extend_from_slice(others);
        self.cross(member.flits, others);
    }

    #[inline(always)]
    fn cross(&mut self, flits: u32, channels: &[u32]) {
        let flits = if self.is_counted { f64::from(flits) } else { 0.0 };
        for &channel in channels {
            let crossing = &mut self.crossings[channel];
            let messages = crossing.messages.max(self.round) + 1;
            crossing.messages = messages;
            crossing.flits += flits;
            self.any |= messages;
        }
    }

    /// How many of the messages cross a channel.
    pub(crate) fn flows_on(&self, channel: u32) -> u32 {
        if self.is_empty() { 0 } else { self.crossings[channel].messages.saturating_sub(self.round) as u32 }
    }

    /// Gives the messages that have begun their rates, if their counts tell them. `remembered` are the paths that are.
    pub(crate) fn share(&mut self, graph: &Graph, remembered: &[u32], now: f64) -> bool {
        let are_alone = self.any <= self.round + 1;
        if self.phase != Phase::Beginning || !are_alone && self.level_by_count.is_none() {
            return false;
        }
        (self.phase, self.begun, self.first_end, self.last_end) = (Phase::Flowing, now, f64::INFINITY, 0.0);
        let of_all = if are_alone { graph.equal_bandwidth() } else { None };
        for member in &self.members {
            let end = now + f64::from(member.flits) / of_all.unwrap_or_else(|| self.rate(graph, remembered, member));
            self.first_end = min(end, self.first_end);
            self.last_end = if end > self.last_end { end } else { self.last_end };
        }
        true
    }

    #[inline(always)]
    fn rate(&self, graph: &Graph, remembered: &[u32], member: &Member) -> f64 {
        let own = if graph.leaves_out(member.flow) { f64::INFINITY } else { graph.bandwidth_of(member.flow) };
        self.path(member, remembered).iter().fold(own, |rate, &channel| min(self.level(graph, channel), rate))
    }

    fn path<'a>(&'a self, member: &Member, remembered: &'a [u32]) -> &'a [u32] {
        let paths = if member.is_remembered { remembered } else { &self.paths };
        &paths[member.path as usize..][..usize::from(member.hops)]
    }

    #[inline(always)]
    fn level(&self, graph: &Graph, channel: u32) -> f64 {
        let bandwidth = graph.bandwidth_of(channel);
        match (self.flows_on(channel), self.level_by_count) {
            (count, Some(by_count)) if count > 1 => by_count(bandwidth, count),
            _ => bandwidth,
        }
    }

    /// When the first of the messages ends, if they have rates.
    pub(crate) fn first_end(&self) -> Option<f64> {
        (self.phase == Phase::Flowing).then_some(self.first_end)
    }

    /// Do all of the messages end up to this time?
    pub(crate) fn end_by(&self, limit: f64) -> bool {
        self.phase == Phase::Flowing && self.last_end <= limit
    }

    /// Ends all messages. Returns them in the order of their flows.
    pub(crate) fn end(&mut self) -> Vec<Member> {
        if !self.is_ordered {
            self.members.sort_unstable_by_key(|member| member.flow);
        }
        self.clear();
        std::mem::take(&mut self.members)
    }

    /// Goes on with the messages that have ended, others in their place, which have got their paths meanwhile.
    pub(crate) fn go_on(&mut self, members: Vec<Member>) {
        self.phase = if members.is_empty() { Phase::Nothing } else { Phase::Beginning };
        self.members = members;
    }

    fn clear(&mut self) {
        self.paths.clear();
        (self.phase, self.is_ordered) = (Phase::Nothing, true);
        self.round += ROUND;
        self.any = self.round;
    }

    /// Removes all messages: calls `begin` with each one, its path after the injection and when it began. Returns the time since which they
    /// have rates.
    pub(crate) fn dissolve(&mut self, remembered: &[u32], now: f64, mut begin: impl FnMut(&Member, &[u32], f64)) -> Option<f64> {
        let had_rates = self.phase == Phase::Flowing;
        let begun = if had_rates { self.begun } else { now };
        let members = std::mem::take(&mut self.members);
        for member in &members {
            let flits = if self.is_counted { f64::from(member.flits) } else { 0.0 };
            let path = if member.is_remembered { remembered } else { &*self.paths };
            let path = &path[member.path as usize..][..usize::from(member.hops)];
            path.iter().for_each(|&channel| self.crossings[channel].flits -= flits);
            begin(member, path, begun);
        }
        self.clear();
        had_rates.then_some(begun)
    }

    /// Calls `carry` with each channel and its flits, and forgets them. From now on they are counted or not. None may be under way.
    pub(crate) fn take_carried(&mut self, is_counted: bool, mut carry: impl FnMut(u32, f64)) {
        self.is_counted = is_counted;
        for (crossing, channel) in self.crossings.iter_mut().zip(0..) {
            if crossing.flits > 0.0 {
                carry(channel, std::mem::take(&mut crossing.flits));
            }
        }
    }
}

#[cfg(test)]
mod tests;
