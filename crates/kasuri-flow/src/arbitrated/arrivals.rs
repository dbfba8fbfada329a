//! What becomes of a message that has left its source, and of one that has arrived.

use super::Run;
use super::records::NONE;
use crate::statistics::Arrival;
use kasuri_model::engine::{EngineError, Phase};
use kasuri_network::id::TerminalId;

impl Run<'_> {
    /// The last flit of a terminal's message has left it.
    pub(super) fn sent(&mut self, source: TerminalId) -> Result<(), EngineError> {
        let number = std::mem::replace(&mut self.sending[source.0], NONE);
        let message = self.messages.messages[number as usize];
        if let (Some(agenda), true) = (&mut self.agenda, message.class >= self.classes) {
            agenda.sent(message.token);
        }
        if !message.is_there {
            self.messages.release(number);
        }
        self.begin_next(source)
    }

    /// The last flit of a message has arrived.
    pub(super) fn arrived(&mut self, number: u32) {
        let (message, load) = (self.messages.messages[number as usize], self.transit.loads[number]);
        let source = TerminalId(load.source);
        let time = self.transit.arrival(number).max(message.begun) as f64;
        // The last flit arrives within this cycle: who waits for it goes on in the next.
        let end = time + f64::from(u8::from(self.with_latency));
        let of_workload = self.agenda.is_some() && message.class >= self.classes;
        let hops = load.channels - 1;
        let arrival = Arrival { created: message.created, asked: message.asked, begun: message.begun as f64, time, hops };
        self.counts.arrive(of_workload, message.class, message.flits, &arrival);
        self.counts.flit_hops += f64::from(message.flits) * f64::from(hops);
        if self.counts.statistics.counting.rates && message.destination == source {
            self.counts.statistics.to_self += f64::from(message.flits);
        }
        self.messages.end(number, &load);
        if self.sending[source.0] != number {
            self.messages.release(number);
        }
        let answers = |class: usize| self.scenario.classes.get(class).is_some_and(|class| class.reply.is_some());
        let is_answered = !message.is_reply && answers(usize::from(message.class));
        // An answer takes the place of the message that it answers among those that are waited for.
        let counting = &self.counts.statistics.counting;
        let is_waited_for = counting.phase == Phase::Draining && counting.covers(message.asked);
        self.outstanding -= u64::from(is_waited_for && !is_answered);
        if of_workload || self.agenda.is_none() {
            self.count_down(source, message.destination, message.is_reply, end);
        }
        if of_workload {
            self.tell_workload(number, end);
        } else if is_answered {
            let at = time.ceil().max(self.transit.now() as f64) as u64;
            self.sources.reply(self.scenario, message.destination, source, message.class, at, message.asked);
            self.sleep(message.destination);
        } else if self.sources.has_windows() {
            let waiting = if message.is_reply { message.destination } else { source };
            self.sources.release_slot(message.class, waiting, time.max(self.transit.now() as f64) as u64 + 1);
            self.sleep(waiting);
        }
    }

    /// One message fewer is to come.
    fn count_down(&mut self, source: TerminalId, destination: TerminalId, is_reply: bool, end: f64) {
        let Some(to_come) = &mut self.ends.to_come else { return };
        *to_come -= 1;
        let completion = &mut self.ends.completion[destination.index()];
        *completion = completion.max(end);
        if !self.ends.first_finished && self.agenda.is_none() && (!is_reply || self.scenario.counts_answers()) {
            self.ends.first_finished = self.sources.is_exhausted(source);
        }
    }

    fn tell_workload(&mut self, number: u32, end: f64) {
        let message = &self.messages.messages[number as usize];
        let now = self.transit.now() as f64;
        if let Some(agenda) = &mut self.agenda {
            agenda.arrives(message.token, end, now);
        }
        if let Some((to_come, last)) = self.parts.get_mut(usize::from(message.class - self.classes)) {
            *to_come -= 1;
            *last = last.max(end);
        }
    }
}
