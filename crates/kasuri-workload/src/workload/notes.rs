//! What is noted of a running workload for a timeline: messages on their way from joining their queue to their arrival, and computations.

use super::{Message, Token};
use crate::timeline::{COMPUTE, QUEUE, RECEIVE, SEND, Span};
use kasuri_network::id::TerminalId;
use std::collections::BTreeMap;

/// The notes of a run.
#[derive(Debug)]
pub(super) struct Notes {
    /// Nanoseconds of a cycle.
    cycle_ns: f64,
    /// The messages that have not left, or not arrived, by name.
    open: BTreeMap<Token, Open>,
    /// By terminal, when the last message left that was sent before.
    last_left: BTreeMap<TerminalId, f64>,
    messages: u64,
    computations: u64,
    spans: Vec<Span>,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
struct Open {
    message: Message,
    /// Its place in the order of all.
    number: u64,
    /// When it joined its queue.
    joined: f64,
    /// When its first flit could leave, and its last one did.
    left: Option<[f64; 2]>,
    arrived: Option<f64>,
}

impl Notes {
    /// Of a network whose cycles last so many nanoseconds.
    pub(super) fn new(cycle_ns: f64) -> Self {
        Self { cycle_ns, open: BTreeMap::new(), last_left: BTreeMap::new(), messages: 0, computations: 0, spans: Vec::new() }
    }

    /// A message joins its queue.
    pub(super) fn joins(&mut self, message: &Message, now: f64) {
        self.open.insert(message.token, Open { message: *message, number: self.messages, joined: now, left: None, arrived: None });
        self.messages += 1;
    }

    /// Its last flit has left its terminal, which sends its messages one after the other.
    pub(super) fn left(&mut self, token: Token, now: f64) {
        let Some(open) = self.open.get_mut(&token) else { return };
        let before = self.last_left.insert(open.message.source, now).unwrap_or(0.0);
        open.left = Some([open.joined.max(before).min(now), now]);
        self.close(token);
    }

    /// Its last flit arrives at this time.
    pub(super) fn arrives(&mut self, token: Token, time: f64) {
        if let Some(open) = self.open.get_mut(&token) {
            open.arrived = Some(time);
            self.close(token);
        }
    }

    /// A terminal computes for so many cycles.
    pub(super) fn computes(&mut self, terminal: TerminalId, now: f64, cycles: f64) {
        self.keep(COMPUTE, terminal, self.computations, 0, [now, now + cycles]);
        self.computations += 1;
    }

    /// Keeps what is known of a message that has left and arrived.
    fn close(&mut self, token: Token) {
        let Some(&Open { message, number, joined, left: Some([begun, left]), arrived: Some(arrived) }) = self.open.get(&token) else {
            return;
        };
        self.open.remove(&token);
        // An engine may hear a little late that it has left.
        let (begun, left) = (begun.min(arrived), left.min(arrived));
        if begun > joined {
            self.keep(QUEUE, message.source, number, message.flits, [joined, begun]);
        }
        self.keep(SEND, message.source, number, message.flits, [begun, left]);
        self.keep(RECEIVE, message.destination, number, message.flits, [left, arrived]);
    }

    fn keep(&mut self, what: &'static str, node: TerminalId, parcel: u64, flits: u32, cycles: [f64; 2]) {
        let [begin_ns, end_ns] = cycles.map(|cycles| cycles * self.cycle_ns);
        self.spans.push(Span { name: what, node: node.0, part: what, parcel, flits, begin_ns, end_ns });
    }

    /// All that has ended; empty afterwards.
    pub(super) fn take(&mut self) -> Vec<Span> {
        // Whoever has arrived has left: an engine that ends then need not say so.
        let arrived = |(&token, open): (&Token, &Open)| open.arrived.map(|time| (token, time));
        let unheard: Vec<(Token, f64)> = self.open.iter().filter_map(arrived).collect();
        unheard.into_iter().for_each(|(token, time)| self.left(token, time));
        std::mem::take(&mut self.spans)
    }
}
