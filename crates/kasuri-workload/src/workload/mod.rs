//! Closed workloads: messages that are sent because something has happened, until all are done.
//!
//! A [`Workload`] is what has to be done; an [`Execution`] is one pass through it. It knows neither time nor network: an engine
//! tells it what has happened (a message has left or arrived, a computation has ended), it answers with what happens next. So
//! every engine runs the same workloads, and no engine knows what an all-to-all is.

pub mod agenda;
pub mod application;
pub mod combined;
mod notes;
pub mod placement;
pub mod program;
pub mod rounds;
pub mod stages;
pub mod trace;

use crate::collective::{ALL_TO_ALL, Least};
use crate::translation::users::MAX_USERS;
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Streams;
use std::fmt::Debug;

/// Names a message or a computation between an engine and an execution, in the low [`TOKEN_BITS`] bits: workloads that run together
/// need the others to tell whose it is.
pub type Token = u64;

/// Bits of a token that a workload has for its own names.
pub const TOKEN_BITS: u32 = Token::BITS - MAX_USERS.trailing_zeros();

/// What has to be done. Immutable; each run begins it anew.
pub trait Workload: Debug + Send + Sync {
    /// Messages that will have arrived at the end.
    fn messages(&self) -> u64;

    /// Calls `each` with every message, in no particular order (for bounds and tables).
    fn each_message(&self, each: &mut dyn FnMut(&Message));

    /// Flits of the longest message, at least 1.
    fn longest_message(&self) -> u32;

    /// Which part of the workload a message belongs to, where it has several.
    fn part_of(&self, _token: Token) -> usize {
        0
    }

    /// The network interfaces that send and receive a message, as port numbers of its terminals, if the workload names them.
    fn interfaces_of(&self, _message: Token) -> Option<(u32, u32)> {
        None
    }

    /// The collective operation that this is, if it is one and nothing else.
    fn collective(&self) -> Option<Collective<'_>> {
        None
    }

    /// The terminal of each rank, where it knows ranks.
    fn placement(&self) -> Option<&[TerminalId]> {
        None
    }

    /// Flits that its messages offer per cycle, where they have times of their own, whatever the network does with them.
    fn offered_flits_per_cycle(&self) -> Option<f64> {
        None
    }

    /// What its files say that it leaves out, in words.
    fn unmodelled(&self) -> Vec<String> {
        Vec::new()
    }

    /// Does everything that an event brings about take place at the terminal of that event: where the message has left, where it has
    /// arrived, where the computation is? Then an engine may begin several passes, and tell each only of events at terminals of its own. A
    /// pass of such a workload says neither [`Action::Finished`] nor what a standstill waits for.
    fn is_local(&self) -> bool {
        false
    }

    /// Where a computation of a local workload takes place.
    fn place_of(&self, _computation: Token) -> Option<TerminalId> {
        None
    }

    /// Where one rank stands for all, of which nothing else is sent: by channel of the network, the channel that carries what it would carry
    /// and on which it counts. Flows that share channels know this.
    fn folded(&self) -> Option<&[u32]> {
        None
    }

    /// Begins one pass.
    fn begin(&self, streams: &Streams) -> Box<dyn Execution + '_>;

    /// Begins one pass through a part alone, with the names that its messages have among all; `None` of a workload that is all one.
    fn begin_part(&self, _part: usize, _streams: &Streams) -> Option<Box<dyn Execution + '_>> {
        None
    }
}

/// A collective operation that a workload consists of.
#[derive(Clone, Copy, Debug)]
pub struct Collective<'a> {
    /// The operation: `workload.collective`.
    pub operation: &'static str,
    /// The algorithm: `workload.schedule`.
    pub schedule: &'static str,
    /// The terminal of each rank; where terminals have several ports, the first of its ports.
    pub terminals: &'a [TerminalId],
    /// Over how many ports the terminal of each rank sends and receives.
    pub ports: u32,
    /// What it asks of the terminals at least, each time that it is run.
    pub least: Option<Least>,
    /// Flits of one message: of the block for each destination in an all-to-all.
    pub message_flits: u32,
    /// How often it is run.
    pub times: u32,
    /// Is each block a message of its own, sent straight to its destination?
    pub is_direct: bool,
}

impl Collective<'_> {
    /// Is it an all-to-all with exactly one message of each ordered pair of ranks, each time?
    pub fn is_one_message_a_pair(&self, messages: u64) -> bool {
        let ranks = self.terminals.len() as u64;
        let pairs = ranks * ranks.saturating_sub(1) * u64::from(self.times);
        self.operation == ALL_TO_ALL && self.is_direct && self.ports == 1 && messages == pairs
    }
}

/// One pass through a workload.
pub trait Execution: Debug + Send {
    /// What happens at the beginning.
    fn start(&mut self, actions: &mut Vec<Action>);

    /// What happens because of an event. Events of one cycle come in their order ([`Event`] is ordered).
    fn happened(&mut self, event: Event, actions: &mut Vec<Action>);

    /// Does an arriving message make anything happen? If not, engines need not tell of arrivals.
    fn hears_arrivals(&self) -> bool {
        true
    }

    /// Does the arrival of this message, of those of a workload that hears of arrivals?
    fn hears_arrival_of(&self, _message: Token) -> bool {
        true
    }

    /// Does a message that leaves bring about at most the next one of its source, at once, and nothing else? Then an engine may ask
    /// [`Execution::follow`] in place of telling [`Event::Sent`].
    fn follows(&self) -> bool {
        false
    }

    /// The message that follows one which has left.
    fn follow(&mut self, _sent: Token) -> Option<Message> {
        None
    }

    /// Where a computation that has not ended takes place, if it is one of a single rank and no time that a rank lets pass.
    fn computes_at(&self, _computation: Token) -> Option<TerminalId> {
        None
    }

    /// Where nothing is under way any more and something is left to do: what that waits for.
    fn standstill(&self) -> Option<String> {
        None
    }
}

/// What an execution wants done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// The message joins the queue of its source. A terminal sends its messages one after the other, first come, first served.
    Send(Message),
    /// The event [`Event::Computed`] is due after this many cycles.
    Compute {
        /// Its name.
        token: Token,
        /// Its duration, 0 or more.
        cycles: f64,
    },
    /// A rank has done everything: the outcome says when. Workloads whose ranks differ in nothing but their messages leave it out.
    Finished(u32),
}

/// A message from a terminal to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its name: no two messages of an execution that are under way have the same.
    pub token: Token,
    /// Who sends it.
    pub source: TerminalId,
    /// Who receives it.
    pub destination: TerminalId,
    /// Its length in flits, at least 1.
    pub flits: u32,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The last flit of a message has left its source: the sender may use the buffer again.
    Sent(Token),
    /// The last flit of a message has arrived.
    Arrived(Token),
    /// A computation has ended.
    Computed(Token),
}
