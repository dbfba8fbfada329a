//! The messages of a closed workload, cut into packets.

use super::control::ControlEvent;
use super::packets::Packet;
use super::state::{Message, Run};
use kasuri_model::router::SourceTurns;

impl Run<'_> {
    /// Lets the workload answer to what has happened before this cycle.
    pub(super) fn proceed(&mut self) {
        let now = self.calendar.now();
        let Some(workload) = &mut self.workload else { return };
        for message in workload.left.drain(..) {
            workload.agenda.sent(workload.messages[message as usize].token);
        }
        workload.arrived.sort_unstable();
        for (_, message) in workload.arrived.drain(..) {
            workload.agenda.arrives(workload.messages[message as usize].token, now as f64, now as f64);
            workload.free.push(message);
        }
        workload.agenda.proceed(now as f64);
        let ready = workload.agenda.take_ready();
        let mut woken = Vec::new();
        for message in &ready {
            let part = workload.closed.part_of(message.token);
            let packet_flits = workload.closed.parts[part].packet_flits;
            let record = Message {
                token: message.token,
                source: message.source.0,
                destination: message.destination.0,
                left: message.flits,
                packet_flits,
                packets: message.flits.div_ceil(packet_flits),
                begun: 0,
                sent: 0,
                arrived: 0,
                next: 0,
                since: now,
                class: workload.first_class + part as u8,
            };
            let place = workload.free.pop().unwrap_or(workload.messages.len() as u32);
            if place as usize == workload.messages.len() {
                workload.messages.push(record);
            } else {
                workload.messages[place as usize] = record;
            }
            let queue = &mut self.terminals.all[message.source.index()].messages;
            if queue.is_empty() {
                woken.push(message.source.0);
            }
            queue.push_back(place);
        }
        workload.agenda.put_ready(ready);
        self.note_due();
        woken.into_iter().for_each(|terminal| self.serve_terminal(terminal));
    }

    /// Notes when the workload does something next.
    pub(super) fn note_due(&mut self) {
        self.due = self.workload.as_ref().map_or(u64::MAX, |workload| workload.next_due(self.calendar.now()));
    }

    /// The next packet of the message whose turn it is at a terminal.
    pub(super) fn next_of_message(&mut self, terminal: u32) -> Option<u32> {
        let workload = self.workload.as_mut()?;
        let queue = &mut self.terminals.all[terminal as usize].messages;
        let place = queue.pop_front()?;
        let message = &mut workload.messages[place as usize];
        let flits = message.left.min(message.packet_flits);
        message.left -= flits;
        message.begun += 1;
        if message.left > 0 {
            match self.scenario.router.source_turns {
                SourceTurns::Packet => queue.push_back(place),
                SourceTurns::Message => queue.push_front(place),
            }
        }
        let Message { source, destination, since, class, begun, .. } = *message;
        let packet = Packet::new([source, destination], flits, class, [since; 2]);
        Some(self.begin(Packet { message: place, number: begun - 1, ..packet }))
    }

    /// A packet begins to leave its terminal, its last flit in cycle `last`. Packets of a message leave in their order the first time.
    pub(super) fn message_leaves(&mut self, message: u32, number: u32, last: u64) {
        let Some(workload) = &mut self.workload else { return };
        let record = &mut workload.messages[message as usize];
        if number == record.sent {
            record.sent += 1;
            if record.sent == record.packets {
                self.control.note(last, ControlEvent::MessageLeft(message));
            }
        }
    }

    /// The last flit of a message leaves its terminal in this cycle.
    pub(super) fn message_left(&mut self, message: u32) {
        if let Some(workload) = &mut self.workload {
            workload.left.push(message);
        }
        self.note_due();
    }

    /// A packet of a message has arrived. Was it the last one?
    pub(super) fn message_arrived(&mut self, packet: &Packet) -> bool {
        let Some(workload) = &mut self.workload else { return false };
        let message = &mut workload.messages[packet.message as usize];
        message.arrived += 1;
        let is_late = packet.number < message.next;
        if let Some(count) = &mut self.counts.queues.late {
            *count += u64::from(is_late);
        }
        message.next = message.next.max(packet.number + 1);
        let is_last = message.arrived == message.packets;
        if is_last {
            workload.arrived.push((packet.destination, packet.message));
            self.note_due();
        }
        is_last
    }
}
