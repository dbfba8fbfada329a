//! A closed workload over all tiles: which messages are to be sent, because of what has left and arrived.
//!
//! Within a window a tile sends the messages that it has ([`Messages`](super::closed::Messages)) and notes which have left and which have
//! arrived. Between windows the dispatcher takes these notes, lets the workload go on, and hands what it wants sent to the tiles of the
//! sources. It works once for each message, not for each packet.

use crate::facts;
use crate::state::feed::{Completions, PacketFeed, Report, SendRequest};
use kasuri_model::engine::EngineError;
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_workload::workload::Token;
use kasuri_workload::workload::agenda::Agenda;

/// The messages of a running workload. Its times are those of cycles: what happens in a cycle has consequences in the next.
#[derive(Debug)]
pub(crate) struct Dispatcher<'a> {
    closed: &'a ClosedWorkload,
    agenda: Agenda<'a>,
    /// The class of the first part's packets.
    first_class: u8,
    /// By record: the message that has it. Records are used again when their message has arrived.
    tokens: Vec<Token>,
    free: Vec<u32>,
    /// Messages that have not arrived, and of each part; when those have arrived that have.
    outstanding: u64,
    outstanding_of_parts: Vec<u64>,
    parts_done: Vec<Option<u64>>,
    /// What tiles have noted; memory to use.
    progress: Completions,
}

impl<'a> Dispatcher<'a> {
    /// Begins a scenario's workload, if it has one whose terminals do not go on by themselves.
    pub(crate) fn new(scenario: &'a Scenario) -> Option<Self> {
        let closed = scenario.workload.as_ref().filter(|_| !facts::is_local(scenario))?;
        Some(Self {
            agenda: scenario.agenda()?,
            closed,
            first_class: scenario.classes.len() as u8,
            tokens: Vec::new(),
            free: Vec::new(),
            outstanding: closed.workload.messages(),
            outstanding_of_parts: closed.parts.iter().map(|part| part.messages).collect(),
            parts_done: vec![None; closed.parts.len()],
            progress: Completions::default(),
        })
    }

    /// Answers to what has happened before cycle `now`. `give` hands a message to the tile of its source.
    pub(crate) fn proceed(&mut self, now: u64, give: &mut dyn FnMut(&SendRequest)) {
        self.hear(now);
        self.agenda.proceed(now as f64);
        let ready = self.agenda.take_ready();
        for &message in &ready {
            let part = self.closed.part_of(message.token);
            let packets = message.flits.div_ceil(self.closed.parts[part].packet_flits);
            let record = self.free.pop().unwrap_or(self.tokens.len() as u32);
            self.tokens.resize(self.tokens.len().max(record as usize + 1), message.token);
            self.tokens[record as usize] = message.token;
            give(&SendRequest {
                source: message.source,
                destination: message.destination,
                flits: message.flits,
                packets,
                class: self.first_class + part as u8,
                record,
                since: now,
            });
        }
        self.agenda.put_ready(ready);
    }

    /// Takes what the feed of a tile has noted.
    pub(crate) fn collect(&mut self, feed: &mut dyn PacketFeed) {
        feed.report_completions(&mut self.progress);
    }

    /// Lets the workload know what has left and arrived in the cycle before `now`: what arrives is there at its end.
    fn hear(&mut self, now: u64) {
        for record in self.progress.left.drain(..) {
            self.agenda.sent(self.tokens[record as usize]);
        }
        // In one order, whatever the tiles.
        self.progress.arrived.sort_unstable();
        for (_, record) in self.progress.arrived.drain(..) {
            let token = self.tokens[record as usize];
            self.agenda.arrives(token, now as f64, now as f64);
            self.free.push(record);
            self.outstanding -= 1;
            let part = self.closed.part_of(token);
            self.outstanding_of_parts[part] -= 1;
            if self.outstanding_of_parts[part] == 0 {
                self.parts_done[part] = Some(now);
            }
        }
    }

    /// The next cycle from `now` on in which a message is due, at most `limit`.
    ///
    /// # Errors
    /// Nothing is due, and messages have not been sent.
    pub(crate) fn next_due(&self, now: u64, limit: u64) -> Result<u64, EngineError> {
        if self.agenda.is_idle() {
            return Err(EngineError::never_sent(self.outstanding, self.agenda.standstill()));
        }
        Ok((self.agenda.next_due().ceil() as u64).clamp(now, limit.max(now)))
    }

    /// Has everything arrived and ended?
    pub(crate) fn is_done(&self) -> bool {
        self.outstanding == 0 && self.agenda.is_idle()
    }

    /// What is to be told at the end.
    pub(crate) fn report(&mut self, report: &mut Report) {
        let seen = |part: usize| self.agenda.last_seen(part).ceil() as u64;
        let ends = self.parts_done.iter().enumerate().map(|(part, done)| done.map(|done| done.max(seen(part))));
        report.class_ends.extend((usize::from(self.first_class)..).zip(ends));
        report.last_done = report.last_done.max(self.agenda.last_done().ceil() as u64);
        report.timeline.append(&mut self.agenda.take_timeline());
        report.finished = self.agenda.take_finished();
        if self.is_done() {
            report.standstill.extend(self.agenda.standstill());
        }
    }
}
