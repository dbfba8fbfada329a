//! What the adapters of all terminals do, and when. Times are in cycles.
//!
//! Each resource serves one message after the other, in the order in which it is asked: the processor of a host (posts and polls), the
//! sending and the receiving side of its interface, and its bus in each direction. Latencies hold nothing up: reads and writes over
//! the bus overlap.

use super::Hosts;
use crate::endpoint::contract::RunningInterfaces;
use crate::timeline::Span;
use crate::workload::combined::{name_of_part, own_name};
use crate::workload::{Event, Message, Token};
use kasuri_network::id::TerminalId;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// What is to be done at a time.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A message joins the queue to the network.
    Enter(u32),
    /// Its last flit has arrived at its destination.
    Arrive(u32),
    /// Its acknowledgement is back at its source.
    Acknowledge(u32),
    /// A completion entry lies in a terminal's memory; from it a program of this part learns of an event. The number is the message's.
    Find(TerminalId, usize, Event, u64),
    /// A program of this part of the workload sees an event.
    See(usize, Event),
}

/// A step that is due. What is due at the same time is done in the order in which it was noted.
#[derive(Clone, Copy, Debug)]
struct Due {
    time: f64,
    number: u64,
    step: Step,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.time.total_cmp(&other.time).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The host of a terminal: from when on its parts are free, and what waits.
#[derive(Clone, Debug, Default)]
struct Host {
    processor: f64,
    sender: f64,
    reads: f64,
    receiver: f64,
    writes: f64,
    /// Messages posted and not acknowledged; those that wait for a place among them.
    posted: u32,
    waiting: VecDeque<(Message, usize)>,
}

/// A message that has been posted and not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Record {
    message: Message,
    /// The part of the workload that it belongs to.
    part: usize,
    /// Which message it is, in the order of posting.
    number: u64,
    /// When the interface had its first packet.
    begun: f64,
}

/// The adapters of all terminals.
#[derive(Debug)]
pub(super) struct Adapters {
    constants: Arc<Hosts>,
    /// By part of the workload.
    packet_flits: Vec<u32>,
    last_seen: Vec<f64>,
    hosts: Vec<Host>,
    due: BinaryHeap<Reverse<Due>>,
    /// Steps noted and messages posted so far.
    steps: u64,
    messages: u64,
    /// Messages under way; a message's place is its name in the network.
    records: Vec<Record>,
    free: Vec<u32>,
    spans: Option<Vec<Span>>,
}

/// Occupies a resource, which is free from a time on, for a duration as soon as the work is there. When does that end?
fn serve(free: &mut f64, ready: f64, duration: f64) -> f64 {
    *free = free.max(ready) + duration;
    *free
}

impl Adapters {
    /// Adapters that have done nothing.
    pub(super) fn new(constants: Arc<Hosts>, packet_flits: Vec<u32>, timeline: bool) -> Self {
        Self {
            last_seen: vec![0.0; packet_flits.len()],
            packet_flits,
            hosts: vec![Host::default(); constants.injection.len()],
            constants,
            due: BinaryHeap::new(),
            steps: 0,
            messages: 0,
            records: Vec::new(),
            free: Vec::new(),
            spans: timeline.then(Vec::new),
        }
    }

    fn note(&mut self, time: f64, step: Step) {
        self.due.push(Reverse(Due { time, number: self.steps, step }));
        self.steps += 1;
    }

    /// Keeps what a part of a host did for a message, if that was asked for.
    fn keep(&mut self, name: &'static str, part: &'static str, node: TerminalId, parcel: u64, [begin, end]: [f64; 2]) {
        if let Some(spans) = &mut self.spans {
            let ns = |cycles: f64| cycles * self.constants.cycle_ns;
            spans.push(Span { name, node: node.0, part, parcel, flits: 0, begin_ns: ns(begin), end_ns: ns(end) });
        }
    }

    /// Flits of the first and of the last packet of a message of a part.
    fn packets(&self, flits: u32, part: usize) -> [u32; 2] {
        let most = self.packet_flits[part];
        [flits.min(most), (flits - 1) % most + 1]
    }

    /// The processor posts a message for which there is a place; the interface takes it from there.
    fn begin(&mut self, message: Message, part: usize, now: f64) {
        let number = self.messages;
        self.messages += 1;
        let constants = Arc::clone(&self.constants);
        let host = &mut self.hosts[message.source.index()];
        host.posted += 1;
        let posted = serve(&mut host.processor, now, constants.post);
        let described = posted + constants.announce;
        let handled = serve(&mut host.sender, described, constants.descriptor);
        let is_inline = message.flits <= constants.inline_flits;
        if is_inline || !constants.signalled {
            self.note(posted, Step::See(part, Event::Sent(message.token)));
        }
        let [begun, enters] = if is_inline { [handled; 2] } else { self.read(&message, part, number, handled) };
        let record = Record { message, part, number, begun };
        let place = self.free.pop().unwrap_or(self.records.len() as u32);
        if place as usize == self.records.len() {
            self.records.push(record);
        } else {
            self.records[place as usize] = record;
        }
        self.note(enters, Step::Enter(place));
        self.keep("post", "processor", message.source, number, [posted - constants.post, posted]);
        self.keep("doorbell", "bus", message.source, number, [posted, described]);
        self.keep("descriptor", "interface", message.source, number, [handled - constants.descriptor, handled]);
    }

    /// The interface reads the data of a message, packet after packet, each of which it sends when it has the whole of it. When has it the first
    /// packet, and when does the message enter the network, so that no packet overtakes its data?
    fn read(&mut self, message: &Message, part: usize, number: u64, handled: f64) -> [f64; 2] {
        let (bus, injection) = (self.constants.bus, self.constants.injection[message.source.index()]);
        let [first, last] = self.packets(message.flits, part).map(f64::from);
        let flits = f64::from(message.flits);
        let end = serve(&mut self.hosts[message.source.index()].reads, handled + self.constants.read, flits * bus);
        let begin = end - flits * bus;
        self.keep("read", "bus", message.source, number, [handled, end]);
        let begun = begin + first * bus;
        [begun, begun.max(end - (flits - last) * injection)]
    }

    /// A message has arrived in whole: its end is written to memory, and a completion entry behind it.
    fn land(&mut self, place: u32, now: f64) {
        let Record { message: Message { token, destination, flits, .. }, part, number, begun } = self.records[place as usize];
        let constants = Arc::clone(&self.constants);
        let [_, last] = self.packets(flits, part).map(f64::from);
        let host = &mut self.hosts[destination.index()];
        let handled = serve(&mut host.receiver, now, constants.descriptor);
        // Data is written while more arrives, from the time on from which it can have come: senders with slow buses send slowly.
        let writes = serve(&mut host.writes, begun, constants.bus * f64::from(flits));
        let written = writes.max(handled + last * constants.bus);
        self.note(written + constants.write, Step::Find(destination, part, Event::Arrived(token), number));
        self.note(now + constants.acknowledgement, Step::Acknowledge(place));
        self.keep("network", "network", destination, number, [begun, now]);
        self.keep("descriptor", "interface", destination, number, [handled - constants.descriptor, handled]);
        self.keep("write", "bus", destination, number, [handled, written + constants.write]);
    }

    /// The acknowledgement frees a place in the send queue, and lets a completion entry be written that a program waits for.
    fn acknowledge(&mut self, place: u32, now: f64) {
        let Record { message: Message { token, source, flits, .. }, part, number, .. } = self.records[place as usize];
        self.free.push(place);
        if self.constants.signalled && flits > self.constants.inline_flits {
            let written = now + self.constants.write;
            self.note(written, Step::Find(source, part, Event::Sent(token), number));
            self.keep("completion", "bus", source, number, [now, written]);
        }
        let host = &mut self.hosts[source.index()];
        host.posted -= 1;
        if let Some((next, part)) = host.waiting.pop_front() {
            self.begin(next, part, now);
        }
    }

    /// The processor takes a completion entry that lies in memory.
    fn find(&mut self, terminal: TerminalId, part: usize, event: Event, number: u64, now: f64) {
        let poll = self.constants.poll;
        let seen = serve(&mut self.hosts[terminal.index()].processor, now, poll);
        self.note(seen, Step::See(part, event));
        self.keep("poll", "processor", terminal, number, [seen - poll, seen]);
    }
}

impl RunningInterfaces for Adapters {
    fn post(&mut self, message: Message, part: usize, now: f64) {
        let host = &mut self.hosts[message.source.index()];
        if host.posted == self.constants.entries {
            host.waiting.push_back((message, part));
        } else {
            self.begin(message, part, now);
        }
    }

    fn arrives(&mut self, name: Token, time: f64) {
        self.note(time, Step::Arrive(own_name(name) as u32));
    }

    fn next_due(&self) -> f64 {
        self.due.peek().map_or(f64::INFINITY, |Reverse(due)| due.time)
    }

    fn proceed(&mut self, now: f64, entering: &mut Vec<Message>, happened: &mut Vec<Event>) -> Option<f64> {
        let mut last = None;
        while let Some(&Reverse(Due { time, step, .. })) = self.due.peek()
            && time <= now
        {
            self.due.pop();
            match step {
                Step::Enter(place) => {
                    let Record { message, part, .. } = self.records[place as usize];
                    entering.push(Message { token: name_of_part(Token::from(place), part), ..message });
                }
                Step::Arrive(place) => self.land(place, time),
                Step::Acknowledge(place) => self.acknowledge(place, time),
                Step::Find(terminal, part, event, number) => self.find(terminal, part, event, number, time),
                Step::See(part, event) => {
                    happened.push(event);
                    (last, self.last_seen[part]) = (Some(time), time);
                }
            }
        }
        last
    }

    fn last_seen(&self, part: usize) -> f64 {
        self.last_seen[part]
    }

    fn take_timeline(&mut self) -> Vec<Span> {
        self.spans.take().unwrap_or_default()
    }
}
