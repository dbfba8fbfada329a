//! A collective, run rank by rank and round by round.
//!
//! Nothing is listed: who sends what to whom follows from the schedule's formulas when it is due, in a time that does not depend
//! on the number of ranks or rounds. What a rank keeps is its round and which messages have arrived before it needs them.

use super::program::{Dependency, Description, Kind, Operation};
use super::{Action, Event, Execution, Message, TOKEN_BITS, Token, Workload};
use crate::collective::{Collective, Least, Transfer};
use kasuri_network::id::TerminalId;
use kasuri_network::rng::{Purpose, Streams, split_mix};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::mem;
use thiserror::Error;

/// When a rank goes on to its next round. In every case its own message of the round must have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Synchronisation {
    /// Nothing more: the next message follows when the one before has left.
    None,
    /// What it receives in the round has arrived.
    Receive,
    /// All ranks have sent and received what the round has for them: an ideal barrier that takes no time.
    Barrier,
}

/// How a collective is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// When a rank goes on to its next round; `None` for the least that the schedule allows.
    pub synchronisation: Option<Synchronisation>,
    /// Each rank starts after a random time from 0 to this many cycles, 0 or more.
    pub start_skew_cycles: f64,
    /// Before each of its messages a rank waits for a random time from 0 to this many cycles, 0 or more.
    pub jitter_cycles: f64,
    /// How often the collective is run, one run after the other, at least 1.
    pub repeat: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { synchronisation: None, start_skew_cycles: 0.0, jitter_cycles: 0.0, repeat: 1 }
    }
}

/// Why a collective cannot be run as asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key} {problem}")]
pub struct RoundsError {
    /// The key of `[workload]`.
    pub key: &'static str,
    /// What was found and what would be right, to be read after the key.
    pub problem: String,
}

/// A collective on terminals.
#[derive(Debug)]
pub struct Rounds {
    collective: Box<dyn Collective>,
    /// The terminal of each rank.
    placement: Vec<TerminalId>,
    synchronisation: Synchronisation,
    start_skew_cycles: f64,
    jitter_cycles: f64,
    /// Rounds of one run of the collective, and of all.
    once: u32,
    total: u32,
    messages: u64,
    longest: u32,
    /// What is run, if that has a name.
    operation: Option<Named>,
}

/// An operation, the schedule by which it is done, and what it asks of the terminals at least.
#[derive(Clone, Copy, Debug)]
struct Named {
    name: &'static str,
    schedule: &'static str,
    least: Option<Least>,
    message_flits: u32,
}

impl Rounds {
    /// Rank r of the collective runs on terminal `placement[r]`.
    ///
    /// # Errors
    /// `synchronisation` is less than the schedule needs, a number of `options` is outside its range, or the rounds of all
    /// repetitions are 2^26 or more.
    pub fn new(collective: Box<dyn Collective>, placement: Vec<TerminalId>, options: &Options) -> Result<Self, RoundsError> {
        let synchronisation = synchronisation(&*collective, options.synchronisation)?;
        let Options { start_skew_cycles, jitter_cycles, .. } = *options;
        for (key, cycles) in [("start_skew_cycles", start_skew_cycles), ("jitter_cycles", jitter_cycles)] {
            if !(cycles >= 0.0 && cycles.is_finite()) {
                return Err(RoundsError { key, problem: format!("is {cycles}; it must be 0 or more cycles") });
            }
        }
        let once = collective.rounds();
        let total = once.checked_mul(options.repeat).filter(|&total| total > 0 && total < START).ok_or_else(|| {
            let most = (START - 1) / once.max(1);
            RoundsError { key: "repeat", problem: format!("is {}; it must be 1 to {most}", options.repeat) }
        })?;
        let (messages, longest) = volume(&*collective, placement.len() as u32);
        let messages = messages * u64::from(options.repeat);
        let operation = None;
        Ok(Self { collective, placement, synchronisation, start_skew_cycles, jitter_cycles, once, total, messages, longest, operation })
    }

    /// Says which operation these rounds are, by which schedule, what it asks of the terminals at least, and how long its message is (the
    /// longest).
    #[must_use]
    pub fn named(self, name: &'static str, schedule: &'static str, least: Option<Least>, message_flits: u32) -> Self {
        Self { operation: Some(Named { name, schedule, least, message_flits }), ..self }
    }

    /// How many ranks take part.
    pub fn ranks(&self) -> u32 {
        self.placement.len() as u32
    }

    /// The terminal that a rank runs on.
    pub fn terminal(&self, rank: u32) -> TerminalId {
        self.placement[rank as usize]
    }

    /// The rounds of all repetitions.
    pub fn rounds(&self) -> u32 {
        self.total
    }

    /// When ranks go on.
    pub fn synchronisation(&self) -> Synchronisation {
        self.synchronisation
    }

    /// What a rank sends in a round of all repetitions.
    pub fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        self.collective.send(rank, self.step(round))
    }

    /// From whom a rank receives in a round of all repetitions.
    pub fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        self.collective.receive(rank, self.step(round))
    }

    /// The same as a program, a flit of `flit_bytes` bytes: the messages, and what each one waits for.
    ///
    /// # Errors
    /// Ranks start at random times, or go on in step: a program has no word for either.
    pub fn description(&self, flit_bytes: u32) -> Result<Description, RoundsError> {
        for (key, cycles) in [("start_skew_cycles", self.start_skew_cycles), ("jitter_cycles", self.jitter_cycles)] {
            if cycles > 0.0 {
                let problem = "is above 0, and a program cannot say that ranks wait for random times; leave it out";
                return Err(RoundsError { key, problem: problem.to_owned() });
            }
        }
        if self.synchronisation == Synchronisation::Barrier {
            let problem = "is \"barrier\", and a program has no barrier that takes no time; it must be \"none\" or \"receive\"";
            return Err(RoundsError { key: "synchronisation", problem: problem.to_owned() });
        }
        let mut description = Description { ranks: self.ranks(), ..Description::default() };
        (0..self.ranks()).for_each(|rank| self.describe_rank(rank, flit_bytes, &mut description));
        Ok(description)
    }

    fn describe_rank(&self, rank: u32, flit_bytes: u32, description: &mut Description) {
        let bytes = |transfer: Transfer| u64::from(transfer.flits) * u64::from(flit_bytes);
        // What the next send waits for: the last one, and what has been received since.
        let mut before: Vec<u32> = Vec::new();
        for round in 0..self.total {
            // Two messages of a sender for one receiver differ in their round.
            let mut add = |kind| {
                description.operations.push(Operation { rank, cpu: 0, kind, line: 0 });
                description.operations.len() as u32 - 1
            };
            let send = self.send(rank, round).map(|transfer| add(Kind::Send { to: transfer.peer, bytes: bytes(transfer), tag: round }));
            let received = self.receive(rank, round).and_then(|from| Some((from, self.send(from, round)?)));
            let receive = received.map(|(from, transfer)| add(Kind::Receive { from, bytes: bytes(transfer), tag: round }));
            if let Some(operation) = send {
                let waits = mem::take(&mut before).into_iter().map(|on| Dependency { operation, on, on_start: false });
                description.dependencies.extend(waits);
                before.push(operation);
            }
            if self.synchronisation == Synchronisation::Receive {
                before.extend(receive);
            }
        }
    }

    /// The round within one run of the collective.
    #[inline]
    fn step(&self, round: u32) -> u32 {
        if round < self.once { round } else { round % self.once }
    }

    #[inline]
    fn message(&self, rank: u32, round: u32, transfer: Transfer) -> Message {
        let (source, destination) = (self.placement[rank as usize], self.placement[transfer.peer as usize]);
        Message { token: token(rank, round), source, destination, flits: transfer.flits }
    }

    /// Makes the ranks start: at once, or each after its time.
    fn start(&self, streams: &Streams, actions: &mut Vec<Action>, mut begin: impl FnMut(u32, &mut Vec<Action>)) {
        for rank in 0..self.ranks() {
            if self.start_skew_cycles > 0.0 {
                let cycles = streams.get(Purpose::Start, rank).unit() * self.start_skew_cycles;
                actions.push(Action::Compute { token: token(rank, START), cycles });
            } else {
                begin(rank, actions);
            }
        }
    }

    /// The message of a rank in a round sets out: at once, or after its time.
    #[inline]
    fn depart(&self, message: Message, streams: &Streams) -> Action {
        if self.jitter_cycles == 0.0 {
            return Action::Send(message);
        }
        // Drawn by the message's name, so that the order of events does not matter.
        let unit = (split_mix(streams.key(Purpose::Jitter) ^ message.token) >> 11) as f64 / (1u64 << 53) as f64;
        Action::Compute { token: message.token, cycles: unit * self.jitter_cycles }
    }

    /// The message whose time before it sets out has ended; `None` if the time is that before a rank's start.
    fn departed(&self, token: Token) -> Option<Message> {
        let (rank, round) = (rank_of(token), round_of(token));
        (round != START).then(|| self.send(rank, round).map(|transfer| self.message(rank, round, transfer)))?
    }
}

/// Stands for a round in the name of the time before a rank starts: the last one that a name has room for beside its rank.
const START: u32 = (1 << (TOKEN_BITS - 32)) - 1;

/// A message is named after its round and its sender.
#[inline]
fn token(rank: u32, round: u32) -> Token {
    Token::from(round) << 32 | Token::from(rank)
}

#[inline]
fn rank_of(token: Token) -> u32 {
    token as u32
}

#[inline]
fn round_of(token: Token) -> u32 {
    (token >> 32) as u32
}

fn synchronisation(collective: &dyn Collective, asked: Option<Synchronisation>) -> Result<Synchronisation, RoundsError> {
    match asked {
        Some(Synchronisation::None) if collective.needs_receive() => {
            let problem =
                "is \"none\", but with this schedule a rank passes on what it has received; it must be \"receive\" or \"barrier\"";
            Err(RoundsError { key: "synchronisation", problem: problem.to_owned() })
        }
        Some(asked) => Ok(asked),
        None if collective.needs_receive() => Ok(Synchronisation::Receive),
        None => Ok(Synchronisation::None),
    }
}

/// The messages of one run of a collective, and the length of the longest.
fn volume(collective: &dyn Collective, ranks: u32) -> (u64, u32) {
    if let Some(volume) = collective.volume(ranks) {
        return volume;
    }
    let sends = (0..collective.rounds()).flat_map(|round| (0..ranks).filter_map(move |rank| collective.send(rank, round)));
    sends.fold((0, 1), |(messages, longest), transfer| (messages + 1, longest.max(transfer.flits)))
}

impl Workload for Rounds {
    fn messages(&self) -> u64 {
        self.messages
    }

    fn collective(&self) -> Option<super::Collective<'_>> {
        let Named { name, schedule, least, message_flits } = self.operation?;
        let times = self.total / self.once.max(1);
        let is_direct = self.collective.is_direct();
        Some(super::Collective { operation: name, schedule, terminals: &self.placement, ports: 1, least, message_flits, times, is_direct })
    }

    fn placement(&self) -> Option<&[TerminalId]> {
        Some(&self.placement)
    }

    fn each_message(&self, each: &mut dyn FnMut(&Message)) {
        for round in 0..self.total {
            for rank in 0..self.ranks() {
                if let Some(transfer) = self.send(rank, round) {
                    each(&self.message(rank, round, transfer));
                }
            }
        }
    }

    fn longest_message(&self) -> u32 {
        self.longest
    }

    fn is_local(&self) -> bool {
        self.synchronisation != Synchronisation::Barrier
    }

    fn place_of(&self, computation: Token) -> Option<TerminalId> {
        self.placement.get(rank_of(computation) as usize).copied()
    }

    fn begin(&self, streams: &Streams) -> Box<dyn Execution + '_> {
        let streams = *streams;
        match self.synchronisation {
            Synchronisation::Barrier => Box::new(InStep { rounds: self, streams, round: 0, outstanding: 0 }),
            Synchronisation::None | Synchronisation::Receive => {
                let waits = self.synchronisation == Synchronisation::Receive;
                Box::new(OwnPace { rounds: self, streams, waits, ranks: vec![Rank::default(); self.placement.len()] })
            }
        }
    }
}

/// Each rank goes on by itself.
#[derive(Debug)]
struct OwnPace<'a> {
    rounds: &'a Rounds,
    streams: Streams,
    /// Must what a round receives have arrived before the next one?
    waits: bool,
    ranks: Vec<Rank>,
}

/// Where a rank is.
#[derive(Clone, Debug, Default)]
struct Rank {
    /// The round, of all repetitions and within the present one.
    round: u32,
    step: u32,
    /// The message of the round has left, or there is none. False before the rank starts.
    has_left: bool,
    arrivals: Arrivals,
}

/// The rounds whose message has arrived, from the present one on.
///
/// Senders may be far ahead, so that messages arrive early: 64 rounds, aligned, lie in the rank itself, more in a list that is
/// empty as a rule.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    near: u64,
    /// Each word is 64 rounds.
    #[expect(clippy::box_collection, reason = "ranks stay small: all of them are visited in every round")]
    far: Option<Box<VecDeque<u64>>>,
}

impl Arrivals {
    /// Notes a round, `present` or a later one.
    #[inline]
    fn note(&mut self, round: u32, present: u32) {
        let (word, bit) = ((round / 64 - present / 64) as usize, 1 << (round % 64));
        if word == 0 {
            self.near |= bit;
            return;
        }
        let far = self.far.get_or_insert_default();
        if far.len() < word {
            far.resize(word, 0);
        }
        far[word - 1] |= bit;
    }

    #[inline]
    fn has(&self, present: u32) -> bool {
        self.near >> (present % 64) & 1 == 1
    }

    /// `present` is the new present round, one after the last.
    #[inline]
    fn go_on(&mut self, present: u32) {
        if present.is_multiple_of(64) {
            self.near = self.far.as_mut().and_then(|far| far.pop_front()).unwrap_or(0);
        }
    }
}

impl OwnPace<'_> {
    /// Enters the present round: its message joins the queue.
    fn enter(&mut self, rank: u32, actions: &mut Vec<Action>) {
        if let Some(message) = self.message_of_round(rank) {
            actions.push(self.rounds.depart(message, &self.streams));
        }
    }

    /// The message of the round that a rank enters.
    #[inline]
    fn message_of_round(&mut self, rank: u32) -> Option<Message> {
        let state = &mut self.ranks[rank as usize];
        let transfer = self.rounds.collective.send(rank, state.step);
        state.has_left = transfer.is_none();
        transfer.map(|transfer| self.rounds.message(rank, state.round, transfer))
    }

    /// Goes on as far as the rank may.
    fn go_on(&mut self, rank: u32, actions: &mut Vec<Action>) {
        while let Some(message) = self.next_message(rank) {
            actions.push(self.rounds.depart(message, &self.streams));
        }
    }

    /// Goes on to the next round with a message, if the rank may.
    #[inline]
    fn next_message(&mut self, rank: u32) -> Option<Message> {
        loop {
            let state = &mut self.ranks[rank as usize];
            if !state.has_left || state.round == self.rounds.total {
                return None;
            }
            if self.waits && !state.arrivals.has(state.round) && self.rounds.collective.receive(rank, state.step).is_some() {
                return None;
            }
            state.round += 1;
            state.step = if state.step + 1 == self.rounds.once { 0 } else { state.step + 1 };
            state.arrivals.go_on(state.round);
            if state.round == self.rounds.total {
                return None;
            }
            if let Some(message) = self.message_of_round(rank) {
                return Some(message);
            }
        }
    }

    fn begin(&mut self, rank: u32, actions: &mut Vec<Action>) {
        self.enter(rank, actions);
        self.go_on(rank, actions);
    }

    fn arrived(&mut self, token: Token, actions: &mut Vec<Action>) {
        let (sender, round) = (rank_of(token), round_of(token));
        // Only messages that this execution has sent arrive.
        let Some(transfer) = self.rounds.send(sender, round) else { return };
        let state = &mut self.ranks[transfer.peer as usize];
        state.arrivals.note(round, state.round);
        self.go_on(transfer.peer, actions);
    }
}

impl Execution for OwnPace<'_> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        let rounds = self.rounds;
        rounds.start(&self.streams.clone(), actions, |rank, actions| self.begin(rank, actions));
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Sent(token) => {
                let rank = rank_of(token);
                self.ranks[rank as usize].has_left = true;
                self.go_on(rank, actions);
            }
            Event::Arrived(token) if self.waits => self.arrived(token, actions),
            Event::Arrived(_) => {}
            Event::Computed(token) => match self.rounds.departed(token) {
                Some(message) => actions.push(Action::Send(message)),
                None => self.begin(rank_of(token), actions),
            },
        }
    }

    fn hears_arrivals(&self) -> bool {
        self.waits
    }

    fn follows(&self) -> bool {
        !self.waits && self.rounds.jitter_cycles == 0.0
    }

    #[inline]
    fn follow(&mut self, sent: Token) -> Option<Message> {
        let rank = rank_of(sent);
        let state = &mut self.ranks[rank as usize];
        // The next round, as a rule: nothing is waited for.
        let (round, step) = (state.round + 1, state.step + 1);
        if round < self.rounds.total
            && step < self.rounds.once
            && let Some(transfer) = self.rounds.collective.send(rank, step)
        {
            (state.round, state.step, state.has_left) = (round, step, false);
            return Some(self.rounds.message(rank, round, transfer));
        }
        state.has_left = true;
        self.next_message(rank)
    }
}

/// All ranks go on together.
#[derive(Debug)]
struct InStep<'a> {
    rounds: &'a Rounds,
    streams: Streams,
    round: u32,
    /// What has to happen before the next round: ranks that start, messages that leave, messages that arrive.
    outstanding: u64,
}

impl InStep<'_> {
    fn send(&mut self, rank: u32, actions: &mut Vec<Action>) {
        if let Some(transfer) = self.rounds.send(rank, self.round) {
            // It has to leave and to arrive.
            self.outstanding += 2;
            actions.push(self.rounds.depart(self.rounds.message(rank, self.round, transfer), &self.streams));
        }
    }

    fn one_less(&mut self, actions: &mut Vec<Action>) {
        self.outstanding -= 1;
        while self.outstanding == 0 && self.round + 1 < self.rounds.total {
            self.round += 1;
            for rank in 0..self.rounds.ranks() {
                self.send(rank, actions);
            }
        }
    }

    fn begin(&mut self, rank: u32, actions: &mut Vec<Action>) {
        self.send(rank, actions);
        self.one_less(actions);
    }
}

impl Execution for InStep<'_> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        let rounds = self.rounds;
        self.outstanding = u64::from(rounds.ranks());
        rounds.start(&self.streams.clone(), actions, |rank, actions| self.begin(rank, actions));
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Sent(_) | Event::Arrived(_) => self.one_less(actions),
            Event::Computed(token) => match self.rounds.departed(token) {
                Some(message) => actions.push(Action::Send(message)),
                None => self.begin(rank_of(token), actions),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_kept_however_early() {
        let mut arrivals = Arrivals::default();
        let early = [0, 1, 5, 63, 64, 130, 700];
        early.iter().for_each(|&round| arrivals.note(round, 0));
        let found: Vec<u32> = (0..800)
            .filter(|&round| {
                if round > 0 {
                    arrivals.go_on(round);
                }
                arrivals.has(round)
            })
            .collect();
        assert_eq!(found, early);
        assert!(arrivals.far.is_some_and(|far| far.is_empty()));
    }
}
