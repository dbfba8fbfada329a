//! Closed workloads, cut into packets: which message a packet belongs to, and when a message has left and arrived.

use super::feed::{AccessId, Arrival, Ask, Drawn, Moves, Next, PacketFeed, Report};
use super::queues::Queues;
use super::ranks::Ranks;
use crate::tile::NONE;
use kasuri_model::engine::EngineError;
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::id::TerminalId;
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
pub(super) struct Messages<'a> {
    closed: &'a ClosedWorkload,
    agenda: Agenda<'a>,
    /// The class of the first part's packets.
    first_class: u8,
    ranks: Ranks,
    /// By queue of the agenda: of each terminal, and of each rank that moves.
    heads: Vec<Option<Head>>,
    records: Vec<Record>,
    free: Vec<u32>,
    /// By packet number: the record of its message, or [`NONE`].
    of_packet: Vec<u32>,
    /// Messages that have not arrived, and of each part; when those have arrived that have.
    to_come: u64,
    parts_to_come: Vec<u64>,
    parts_done: Vec<Option<u64>>,
}

impl<'a> Messages<'a> {
    /// The messages of a scenario's workload, if it has one.
    pub(super) fn new(scenario: &'a Scenario) -> Option<Self> {
        let closed = scenario.workload.as_ref()?;
        let first_class = scenario.classes.len() as u8;
        let ranks = Ranks::new(scenario, first_class..first_class + closed.parts.len() as u8);
        let mut agenda = scenario.agenda()?;
        agenda.add_queues(ranks.count());
        Some(Self {
            agenda,
            closed,
            first_class,
            heads: vec![None; scenario.network.terminal_count() as usize + ranks.count()],
            ranks,
            records: Vec::new(),
            free: Vec::new(),
            of_packet: Vec::new(),
            to_come: closed.workload.messages(),
            parts_to_come: closed.parts.iter().map(|part| part.messages).collect(),
            parts_done: vec![None; closed.parts.len()],
        })
    }

    /// Since when the message at the head of a queue has been there.
    fn head_since(&self, queue: u32) -> Option<u64> {
        let joined = || self.agenda.head_since(queue).map(|since| since.ceil() as u64);
        self.heads[queue as usize].map(|head| head.created).or_else(joined)
    }

    /// The next packet of a terminal: its own, or that of a rank that is there at present, first come, first served.
    fn draw(&mut self, terminal: u32) -> Option<Drawn> {
        let mut queue = terminal;
        for &of_rank in self.ranks.here(terminal) {
            let since = self.head_since(of_rank);
            if since.is_some_and(|since| self.head_since(queue).is_none_or(|other| since < other)) {
                queue = of_rank;
            }
        }
        self.draw_from(queue)
    }

    /// The next packet of the message at the head of a queue.
    fn draw_from(&mut self, queue: u32) -> Option<Drawn> {
        let mut head = match self.heads[queue as usize] {
            Some(head) => head,
            None => self.begin(queue)?,
        };
        let flits = head.left.min(self.closed.parts[usize::from(head.part)].packet_flits);
        head.left -= flits;
        self.heads[queue as usize] = (head.left > 0).then_some(head);
        let Head { created, destination, record: message, .. } = head;
        let class = self.first_class + head.part;
        Some(Drawn { created, asked: created, destination, flits, class, is_reply: false, access: AccessId::default(), message })
    }

    fn begin(&mut self, queue: u32) -> Option<Head> {
        let (Message { token, destination, flits, .. }, since) = self.agenda.draw_from(queue)?;
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

    /// The last packet of a message has arrived: it is there at the end of the cycle.
    fn message_arrived(&mut self, place: u32, now: u64) {
        let token = self.records[place as usize].token;
        self.agenda.arrives(token, (now + 1) as f64, (now + 1) as f64);
        self.free.push(place);
        self.to_come -= 1;
        let part = self.closed.part_of(token);
        self.parts_to_come[part] -= 1;
        if self.parts_to_come[part] == 0 {
            self.parts_done[part] = Some(now + 1);
        }
    }
}

impl PacketFeed for Messages<'_> {
    fn start(&mut self, queues: &mut Queues) {
        self.proceed(0, queues);
    }

    fn next_packet(&mut self, ask: Ask<'_>) -> Next {
        // All parts share a queue.
        if ask.queue.is_some_and(|queue| !queue.has(self.first_class)) {
            return Next::Nothing;
        }
        Next::or_later(self.draw(ask.terminal), || false)
    }

    fn began(&mut self, packet: u32, drawn: &Drawn, _terminal: u32, _now: u64) {
        if packet as usize >= self.of_packet.len() {
            self.of_packet.resize(packet as usize + 1, NONE);
        }
        self.of_packet[packet as usize] = drawn.message;
    }

    fn tail_left(&mut self, packet: u32, _terminal: u32, _now: u64) -> bool {
        let place = self.of_packet.get(packet as usize).copied().unwrap_or(NONE);
        if place != NONE {
            let record = &mut self.records[place as usize];
            record.to_send -= 1;
            if record.to_send == 0 {
                self.agenda.sent(record.token);
            }
        }
        true
    }

    fn packet_arrived(&mut self, arrival: &Arrival<'_>, _queues: &mut Queues) {
        let place = std::mem::replace(&mut self.of_packet[arrival.packet as usize], NONE);
        let record = &mut self.records[place as usize];
        record.to_arrive -= 1;
        if record.to_arrive == 0 {
            self.message_arrived(place, arrival.now);
        }
    }

    fn proceed(&mut self, now: u64, queues: &mut Queues) {
        self.agenda.proceed(now as f64);
        let ready = self.agenda.take_ready();
        for &message in &ready {
            let class = self.first_class + self.closed.part_of(message.token) as u8;
            let (queue, place) = self.ranks.queue_of(class, message.source);
            self.agenda.queue_at(queue, message, now as f64);
            queues.wake(place.0);
        }
        self.agenda.put_ready(ready);
    }

    fn nodes_moved(&mut self, moves: &Moves<'_>, queues: &mut Queues) {
        self.ranks.moved(moves, queues);
    }

    fn next_due(&self, now: u64, limit: u64) -> Result<u64, EngineError> {
        if self.agenda.is_idle() {
            return Err(EngineError::never_sent(self.to_come));
        }
        Ok((self.agenda.next_due().ceil() as u64).clamp(now, limit.max(now)))
    }

    fn ends(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        self.to_come == 0 && self.agenda.is_idle()
    }

    fn report(&mut self, report: &mut Report) {
        let seen = |part: usize| self.agenda.last_seen(part).ceil() as u64;
        let ends = self.parts_done.iter().enumerate().map(|(part, done)| done.map(|done| done.max(seen(part))));
        report.class_ends.extend((usize::from(self.first_class)..).zip(ends));
        report.last_done = report.last_done.max(self.agenda.last_done.ceil() as u64);
        report.timeline.append(&mut self.agenda.take_timeline());
    }
}
