//! What a terminal sends next: packets that were lost, answers, and in turn open traffic and messages.

use super::control::ControlEvent;
use super::packets::{NONE, Packet};
use super::state::Run;
use kasuri_model::sources::SourceMessage;
use kasuri_network::id::TerminalId;
use kasuri_network::routing::{SourceChoice, packet_key};

impl Run<'_> {
    /// Sends the next packet of a terminal if its channel is free, or looks again when there is one.
    pub(super) fn serve_terminal(&mut self, terminal: u32) {
        if !self.ports[terminal as usize].is_ready() {
            return;
        }
        let packet = match self.terminals.all[terminal as usize].resend.pop_front() {
            Some(lost) => {
                self.counts.queues.resent += 1;
                Some(self.begin_again(lost))
            }
            None => self.draw(terminal),
        };
        match packet {
            Some(packet) => self.inject(terminal, packet),
            None => self.await_next(terminal),
        }
    }

    fn inject(&mut self, terminal: u32, packet: u32) {
        let now = self.calendar.now();
        let record = self.packets.get_mut(packet);
        (record.injected, record.tail, record.came_by, record.hops) = (now, now, NONE, 0);
        self.counts.queues.sent += 1;
        self.counts.interval.injected_flits += u64::from(record.flits);
        self.send(terminal, packet);
    }

    /// A new packet of a terminal, if it has any to send.
    fn draw(&mut self, terminal: u32) -> Option<u32> {
        let now = self.calendar.now();
        if let Some(answer) = self.terminals.sources.draw_answer(TerminalId(terminal), now as f64) {
            let beyond = self.terminals.sources.begin_answer(self.scenario, &answer, TerminalId(terminal), now);
            self.ends.to_come += i64::from(beyond && self.ends.counts_open);
            return Some(self.begin_open(terminal, &answer));
        }
        let has_message = !self.terminals.all[terminal as usize].messages.is_empty();
        if (self.terminals.all[terminal as usize].open_goes_first || !has_message)
            && let Some(drawn) = self.terminals.sources.draw_new(self.scenario, TerminalId(terminal), now as f64)
        {
            self.terminals.all[terminal as usize].open_goes_first = false;
            return Some(self.begin_open(terminal, &drawn));
        }
        self.terminals.all[terminal as usize].open_goes_first = true;
        self.next_of_message(terminal)
    }

    fn begin_open(&mut self, terminal: u32, drawn: &SourceMessage) -> u32 {
        if let Some(until) = self.counts.counting.rates_until {
            // The queue goes on waiting if its next packet is measured too.
            let next = !drawn.is_reply && self.terminals.sources.has_next_before(TerminalId(terminal), drawn.class, until);
            self.counts.outstanding += u64::from(next);
        }
        let times = [drawn.created as u64, drawn.asked];
        let packet = Packet::new([terminal, drawn.destination.0], drawn.flits, drawn.class, times);
        self.begin(Packet { is_reply: drawn.is_reply, ..packet })
    }

    /// Gives a packet its number, and what its routing decides at its source.
    pub(super) fn begin(&mut self, packet: Packet) -> u32 {
        self.terminals.all[packet.source as usize].under_way += 1;
        let place = self.packets.add(packet);
        self.begin_again(place)
    }

    fn begin_again(&mut self, place: u32) -> u32 {
        let packet = self.packets.get_mut(place);
        let serial = &mut self.terminals.all[packet.source as usize].serial;
        packet.serial = *serial;
        *serial = serial.wrapping_add(1);
        packet.is_cut = false;
        self.decide_at_source(place);
        place
    }

    /// What the routing of now decides at a packet's source.
    pub(super) fn decide_at_source(&mut self, place: u32) {
        let packet = self.packets.get_mut(place);
        let mut choice = SourceChoice::new(packet_key(self.routing_seed, packet.source, packet.serial), packet.serial);
        packet.routed_in = self.failures.known;
        packet.route_state = self.routing.initial_state(TerminalId(packet.source), TerminalId(packet.destination), &mut choice);
    }

    /// Looks at a terminal again when its next packet is created.
    pub(super) fn await_next(&mut self, terminal: u32) {
        if !self.terminals.has_open {
            return;
        }
        let Some(next) = self.terminals.sources.next(TerminalId(terminal)) else { return };
        let next = (next as u64).max(self.calendar.now());
        let awaited = &mut self.terminals.awaited[terminal as usize];
        if *awaited == u64::MAX {
            *awaited = next;
            self.calendar.plan(2 * self.ports.len() as u32 + terminal, next);
        } else if next < *awaited {
            self.control.note(next, ControlEvent::Look(terminal));
        }
    }

    /// A terminal is looked at that may have something to send.
    pub(super) fn terminal_wakes(&mut self, terminal: u32) {
        self.terminals.awaited[terminal as usize] = u64::MAX;
        self.serve_terminal(terminal);
    }
}
