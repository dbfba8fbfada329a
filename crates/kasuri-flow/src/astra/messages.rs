//! Messages on their way over links.

use super::Backend;
use super::calendar::Event;
use super::engine::Clockwork;
use super::wires::{NONE, Route};
use kasuri_workload::execution::alike::mirrored;
use kasuri_workload::execution::npus::Sending;

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) sending: Sending,
    route: Route,
    /// Who waits behind it for the same link.
    next: u32,
}

impl Clockwork<'_> {
    /// Sends a message now. Where one NPU stands for all it is mirrored: sent to the NPU from which its like comes.
    pub(super) fn carry(&mut self, sending: &Sending) {
        let Sending { source, destination, bytes, .. } = *sending;
        let sending = if self.alike { mirrored(sending, self.input.job.cluster) } else { *sending };
        let mut message = Message { sending, route: Route::default(), next: NONE };
        if self.input.backend == Backend::Unaware {
            let delay = self.wires.delay(source, destination, bytes);
            let Some(time) = self.time_of_message(source, bytes, delay) else { return };
            let message = self.keep(message);
            self.enter(time, Event::Arrival(message));
            return;
        }
        let Some(route) = self.wires.route(source, destination) else { return };
        message.route = route;
        let message = self.keep(message);
        self.go_on(message);
    }

    /// The arrival of a message that takes `delay`.
    fn time_of_message(&mut self, source: u32, bytes: u64, delay: Result<u64, String>) -> Option<u64> {
        match delay {
            Ok(delay) => self.after(source, delay),
            Err(problem) => {
                self.refuse(format!("NPU {source}: a message of {bytes} bytes {problem}"));
                None
            }
        }
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
        let Message { route, sending, .. } = self.messages[message as usize];
        let number = self.wires.next_link(route, sending.destination);
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
        let Sending { source, bytes, .. } = self.messages[message as usize].sending;
        let times = self.wires.times(bytes);
        let occupied = times.as_ref().map_or(0, |&(occupied, _)| occupied);
        let Some(arrival) = self.time_of_message(source, bytes, times.map(|(_, arrival)| arrival)) else { return };
        self.enter(arrival, Event::Arrival(message));
        // No later than the arrival.
        self.enter(self.calendar.now() + occupied, Event::Free(number));
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

    /// A message is at the end of a link; returned if that was the last.
    pub(super) fn arrive(&mut self, place: u32) -> Option<Message> {
        let message = &mut self.messages[place as usize];
        if self.input.backend == Backend::Aware {
            message.route = self.wires.behind(message.route);
            if message.route.links != 0 {
                self.go_on(place);
                return None;
            }
        }
        let message = *message;
        self.free_messages.push(place);
        Some(message)
    }
}
