//! Messages: sent, on their way over links, and matched with receives.

use super::Backend;
use super::calendar::Event;
use super::engine::Engine;
use super::wires::{NONE, Route};
use std::collections::VecDeque;

/// Whom to tell.
#[derive(Clone, Copy, Debug)]
pub(super) enum Done {
    Nobody,
    /// A node of the NPU's own trace.
    Node(u32),
    /// A phase of a collective.
    Stream(u32),
    /// A node of a collective that is a trace.
    Custom(u32, u32),
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    bytes: u64,
    tag: u32,
    source: u32,
    destination: u32,
    route: Route,
    /// Who waits behind it for the same link.
    next: u32,
    sent: Done,
}

/// What is called alike between two NPUs: tag, source, size.
pub(super) type Key = (u32, u32, u64);

/// Messages without receives, or receives without messages.
#[derive(Debug)]
pub(super) enum Meeting {
    Arrived(u32),
    Posted(Done),
    ManyPosted(VecDeque<Done>),
}

/// Tags of a program are cut to this; those of collectives begin with it.
pub(super) const TAGS: u32 = 500_000_000;

impl Engine<'_> {
    /// Sends a message now. `exchanged` says how it is mirrored where one NPU stands for all: sent to the NPU from which its like comes.
    pub(super) fn send(&mut self, source: u32, destination: u32, tag: u32, bytes: u64, sent: Done, exchanged: bool) {
        if bytes == 0 {
            self.refuse(format!("NPU {source} sends a message of 0 bytes, at which ASTRA-sim stops by an assertion"));
            return;
        }
        if destination >= self.npu_count || (source == destination && !self.sends_to_itself()) {
            let problem = "ASTRA-sim stops where an NPU sends to itself or to one that does not exist";
            self.refuse(format!("NPU {source} sends to NPU {destination} of {}; {problem}", self.npu_count));
            return;
        }
        let mut message = Message { bytes, tag, source, destination, route: Route::default(), next: NONE, sent };
        if self.alike {
            message.source = if exchanged { destination } else { (self.npu_count - destination) % self.npu_count };
        }
        if self.input.backend == Backend::Unaware {
            let time = self.calendar.now().saturating_add(self.wires.delay(source, destination, bytes));
            let message = self.keep(message);
            self.enter(time, Event::Arrival(message));
            return;
        }
        let Some(route) = self.wires.route(source, destination) else { return };
        message.route = route;
        let message = self.keep(message);
        self.go_on(message);
    }

    fn sends_to_itself(&self) -> bool {
        use kasuri_workload::execution::cluster::Topology;
        self.input.backend == Backend::Aware && self.input.cluster.dimensions[0].topology == Topology::Switch
    }

    fn keep(&mut self, message: Message) -> u32 {
        if let Some(place) = self.free_messages.pop() {
            self.messages[place as usize] = message;
            return place;
        }
        self.messages.push(message);
        self.messages.len() as u32 - 1
    }

    /// A message joins its next link.
    fn go_on(&mut self, message: u32) {
        let Message { route, destination, .. } = self.messages[message as usize];
        let number = self.wires.next_link(route, destination);
        let link = self.wires.link(number);
        if !link.busy {
            self.transmit(number, message);
            return;
        }
        let last = std::mem::replace(&mut link.last, message);
        if last == NONE {
            link.first = message;
        } else {
            self.messages[last as usize].next = message;
        }
    }

    fn transmit(&mut self, number: u32, message: u32) {
        self.wires.link(number).busy = true;
        let (occupied, arrival) = self.wires.times(self.messages[message as usize].bytes);
        let now = self.calendar.now();
        self.enter(now.saturating_add(arrival), Event::Arrival(message));
        self.enter(now.saturating_add(occupied), Event::Free(number));
    }

    /// A link is free again.
    pub(super) fn free(&mut self, number: u32) {
        let link = self.wires.link(number);
        link.busy = false;
        let first = link.first;
        if first == NONE {
            return;
        }
        let next = std::mem::replace(&mut self.messages[first as usize].next, NONE);
        let link = self.wires.link(number);
        link.first = next;
        if next == NONE {
            link.last = NONE;
        }
        self.transmit(number, first);
    }

    /// A message is at the end of a link.
    pub(super) fn arrive(&mut self, place: u32) {
        let message = &mut self.messages[place as usize];
        if self.input.backend == Backend::Aware {
            message.route = self.wires.behind(message.route);
            if message.route.links != 0 {
                self.go_on(place);
                return;
            }
        }
        let message = *message;
        self.free_messages.push(place);
        let destination = if self.alike { 0 } else { message.destination };
        let receive = self.take_posted(destination, (message.tag, message.source, message.bytes));
        self.tell(message.source, message.sent);
        if let Some(receive) = receive {
            self.tell(destination, receive);
        }
    }

    /// The receive that waits for a message, or the message waits for a receive.
    fn take_posted(&mut self, npu: u32, key: Key) -> Option<Done> {
        let meetings = &mut self.npus[npu as usize].meetings;
        match meetings.get_mut(&key) {
            None => {
                meetings.insert(key, Meeting::Arrived(1));
                None
            }
            Some(Meeting::Arrived(count)) => {
                *count += 1;
                None
            }
            Some(Meeting::Posted(done)) => {
                let done = *done;
                meetings.remove(&key);
                Some(done)
            }
            Some(Meeting::ManyPosted(posted)) => {
                let done = posted.pop_front();
                if posted.is_empty() {
                    meetings.remove(&key);
                }
                done
            }
        }
    }

    /// Posts a receive now.
    pub(super) fn receive(&mut self, npu: u32, source: u32, tag: u32, bytes: u64, done: Done) {
        let key = (tag, source, bytes);
        let meetings = &mut self.npus[npu as usize].meetings;
        match meetings.get_mut(&key) {
            None => {
                meetings.insert(key, Meeting::Posted(done));
            }
            Some(Meeting::Arrived(count)) => {
                *count -= 1;
                if *count == 0 {
                    meetings.remove(&key);
                }
                let place = self.late.len() as u32;
                self.late.push((npu, done));
                self.enter(self.calendar.now(), Event::Received(place));
            }
            Some(Meeting::ManyPosted(posted)) => posted.push_back(done),
            Some(posted @ Meeting::Posted(_)) => {
                if let Meeting::Posted(first) = *posted {
                    *posted = Meeting::ManyPosted(VecDeque::from([first, done]));
                }
            }
        }
    }

    /// A message was sent, or received.
    pub(super) fn tell(&mut self, npu: u32, done: Done) {
        match done {
            Done::Nobody => {}
            Done::Node(node) => self.node_ends(npu, node),
            Done::Stream(stream) => self.stream_receives(stream),
            Done::Custom(stream, node) => self.custom_ends(stream, node),
        }
    }
}
