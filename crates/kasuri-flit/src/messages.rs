//! Closed workloads, cut into packets: which message a packet belongs to, and when a message has left and arrived.

use crate::source::Drawn;
use crate::state::NONE;
use crate::users::AccessId;
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::id::TerminalId;
use kasuri_workload::timeline::Span;
use kasuri_workload::workload::agenda::Agenda;
use kasuri_workload::workload::{Message, Token};

/// A message that a terminal sends at present.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// Its record.
    record: u32,
    destination: TerminalId,
    part: u8,
    created: u64,
    /// Flits for which there is no packet yet.
    left: u32,
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
struct Record {
    token: Token,
    /// Packets whose tails have not entered the network, and that have not arrived.
    to_send: u32,
    to_arrive: u32,
}

/// The messages of a running workload. Its times are those of cycles: what happens in a cycle has consequences in the next.
#[derive(Debug)]
pub(crate) struct Messages<'a> {
    closed: &'a ClosedWorkload,
    agenda: Agenda<'a>,
    /// The class of the first part's packets.
    first_class: u8,
    /// By terminal.
    heads: Vec<Option<Head>>,
    records: Vec<Record>,
    free: Vec<u32>,
    /// By packet number: the record of its message, or [`NONE`].
    of_packet: Vec<u32>,
    /// Messages that have not arrived, and of each part; when those have arrived that have.
    pub(crate) to_come: u64,
    parts_to_come: Vec<u64>,
    parts_done: Vec<Option<u64>>,
}

impl<'a> Messages<'a> {
    /// The messages of a scenario's workload, if it has one.
    pub(crate) fn new(scenario: &'a Scenario) -> Option<Self> {
        let closed = scenario.workload.as_ref()?;
        let terminals = scenario.network.terminal_count() as usize;
        Some(Self {
            agenda: scenario.agenda()?,
            closed,
            first_class: scenario.classes.len() as u8,
            heads: vec![None; terminals],
            records: Vec::new(),
            free: Vec::new(),
            of_packet: Vec::new(),
            to_come: closed.workload.messages(),
            parts_to_come: closed.parts.iter().map(|part| part.messages).collect(),
            parts_done: vec![None; closed.parts.len()],
        })
    }

    /// Lets the workload answer to what has happened before cycle `now`; `wake` is told of terminals that may have something to
    /// send.
    pub(crate) fn proceed(&mut self, now: u64, mut wake: impl FnMut(u32)) {
        self.agenda.proceed(now as f64);
        let ready = self.agenda.take_ready();
        for &message in &ready {
            self.agenda.queue(message, now as f64);
            wake(message.source.0);
        }
        self.agenda.put_ready(ready);
    }

    /// The next packet of the message at the head of a terminal's queue.
    pub(crate) fn draw(&mut self, terminal: u32) -> Option<Drawn> {
        let mut head = match self.heads[terminal as usize] {
            Some(head) => head,
            None => self.begin(terminal)?,
        };
        let flits = head.left.min(self.closed.parts[usize::from(head.part)].packet_flits);
        head.left -= flits;
        self.heads[terminal as usize] = (head.left > 0).then_some(head);
        let Head { created, destination, record: message, .. } = head;
        let class = self.first_class + head.part;
        Some(Drawn { created, asked: created, destination, flits, class, is_reply: false, access: AccessId::default(), message })
    }

    fn begin(&mut self, terminal: u32) -> Option<Head> {
        let (Message { token, destination, flits, .. }, since) = self.agenda.draw(TerminalId(terminal))?;
        let part = self.closed.part_of(token);
        let packets = flits.div_ceil(self.closed.parts[part].packet_flits);
        let record = Record { token, to_send: packets, to_arrive: packets };
        let place = self.free.pop().unwrap_or(self.records.len() as u32);
        if place as usize == self.records.len() {
            self.records.push(record);
        } else {
            self.records[place as usize] = record;
        }
        Some(Head { record: place, destination, part: part as u8, created: since.ceil() as u64, left: flits })
    }

    /// A packet of a message, or of none, has got its number.
    pub(crate) fn name_packet(&mut self, packet: u32, message: u32) {
        if packet as usize >= self.of_packet.len() {
            self.of_packet.resize(packet as usize + 1, NONE);
        }
        self.of_packet[packet as usize] = message;
    }

    /// A packet's tail has entered the network.
    pub(crate) fn packet_sent(&mut self, packet: u32) {
        let place = self.of_packet[packet as usize];
        if place == NONE {
            return;
        }
        let record = &mut self.records[place as usize];
        record.to_send -= 1;
        if record.to_send == 0 {
            self.agenda.sent(record.token);
        }
    }

    /// A packet's tail has arrived in cycle `now`. Is it part of a message?
    pub(crate) fn packet_arrived(&mut self, packet: u32, now: u64) -> bool {
        let place = self.of_packet[packet as usize];
        if place == NONE {
            return false;
        }
        let record = &mut self.records[place as usize];
        record.to_arrive -= 1;
        if record.to_arrive == 0 {
            // It is there at the end of the cycle.
            self.agenda.arrives(record.token, (now + 1) as f64, (now + 1) as f64);
            self.free.push(place);
            self.to_come -= 1;
            let part = self.closed.part_of(record.token);
            self.parts_to_come[part] -= 1;
            if self.parts_to_come[part] == 0 {
                self.parts_done[part] = Some(now + 1);
            }
        }
        true
    }

    /// By class of the packets: the end of the cycle in which the last of a part's messages has arrived.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (usize, Option<u64>)> + '_ {
        (usize::from(self.first_class)..).zip(self.parts_done.iter().copied())
    }

    /// Has everything arrived and ended?
    pub(crate) fn are_done(&self) -> bool {
        self.to_come == 0 && self.agenda.is_idle()
    }

    /// The first cycle from `now` on in which something is due, at most `limit`.
    pub(crate) fn next_due(&self, now: u64, limit: u64) -> u64 {
        (self.agenda.next_due().ceil() as u64).clamp(now, limit.max(now))
    }

    /// Will nothing ever happen again unless a packet does something?
    pub(crate) fn wait_for_nothing(&self) -> bool {
        self.agenda.is_idle()
    }

    /// The cycle in which the last computation ended, or a program last saw something.
    pub(crate) fn last_done(&self) -> u64 {
        self.agenda.last_done.ceil() as u64
    }

    /// What interfaces did when, if that was asked for.
    pub(crate) fn take_timeline(&mut self) -> Vec<Span> {
        self.agenda.take_timeline()
    }
}
