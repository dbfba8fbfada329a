//! Traces of open traffic: messages that are created at their times, whatever has become of those before.

use super::{Action, Event, Execution, Message, Token, Workload};
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Streams;

/// A message of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The cycle in which it is created.
    pub time: u64,
    /// Who sends it.
    pub source: TerminalId,
    /// Who receives it.
    pub destination: TerminalId,
    /// Its length, at least 1.
    pub flits: u32,
}

/// The messages of a trace by ascending time.
#[derive(Debug)]
pub struct Trace {
    sendings: Vec<Sending>,
}

impl Trace {
    /// A trace in any order; messages of one time keep theirs.
    pub fn new(mut sendings: Vec<Sending>) -> Self {
        if !sendings.is_sorted_by_key(|sending| sending.time) {
            sendings.sort_by_key(|sending| sending.time);
        }
        sendings.shrink_to_fit();
        Self { sendings }
    }

    fn message(&self, place: usize) -> Message {
        let Sending { source, destination, flits, .. } = self.sendings[place];
        Message { token: place as Token, source, destination, flits }
    }
}

impl Workload for Trace {
    fn messages(&self) -> u64 {
        self.sendings.len() as u64
    }

    fn each_message(&self, each: &mut dyn FnMut(&Message)) {
        (0..self.sendings.len()).for_each(|place| each(&self.message(place)));
    }

    fn longest_message(&self) -> u32 {
        self.sendings.iter().map(|sending| sending.flits).max().unwrap_or(1)
    }

    fn begin(&self, _streams: &Streams) -> Box<dyn Execution + '_> {
        Box::new(Pass { trace: self, next: 0 })
    }

    fn offered_flits_per_cycle(&self) -> Option<f64> {
        let flits: u64 = self.sendings.iter().map(|sending| u64::from(sending.flits)).sum();
        self.sendings.last().map(|last| flits as f64 / (last.time + 1) as f64)
    }
}

/// How far a pass has come.
#[derive(Debug)]
struct Pass<'a> {
    trace: &'a Trace,
    next: usize,
}

impl Pass<'_> {
    /// Sends what is created now, and says when to be asked again.
    fn send(&mut self, now: u64, actions: &mut Vec<Action>) {
        while let Some(sending) = self.trace.sendings.get(self.next) {
            if sending.time > now {
                actions.push(Action::Compute { token: self.next as Token, cycles: (sending.time - now) as f64 });
                return;
            }
            actions.push(Action::Send(self.trace.message(self.next)));
            self.next += 1;
        }
    }
}

impl Execution for Pass<'_> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        self.send(0, actions);
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        // The time of the message for which was waited, not one that an engine rounds.
        if let (Event::Computed(_), Some(sending)) = (event, self.trace.sendings.get(self.next)) {
            self.send(sending.time, actions);
        }
    }

    fn hears_arrivals(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending(time: u64, source: u32) -> Sending {
        Sending { time, source: TerminalId(source), destination: TerminalId(9), flits: 4 }
    }

    #[test]
    fn messages_are_sent_at_their_times_in_the_order_of_the_trace() {
        let trace = Trace::new([(7, 0), (0, 1), (7, 2), (9, 3)].map(|(time, source)| sending(time, source)).to_vec());
        let mut pass = trace.begin(&Streams::new(1));
        let mut actions = Vec::new();
        let mut now = 0.0;
        let mut sent = Vec::new();
        pass.start(&mut actions);
        while !actions.is_empty() {
            let mut due = None;
            for action in actions.drain(..) {
                match action {
                    Action::Send(message) => sent.push((now, message.source.0)),
                    Action::Compute { token, cycles } => due = Some((token, cycles)),
                    Action::Finished(_) => {}
                }
            }
            if let Some((token, cycles)) = due {
                now += cycles;
                pass.happened(Event::Computed(token), &mut actions);
            }
        }
        assert_eq!(sent, [(0.0, 1), (7.0, 0), (7.0, 2), (9.0, 3)]);
        assert_eq!((trace.messages(), trace.longest_message()), (4, 4));
        // 16 flits in the cycles 0 to 9.
        assert_eq!(trace.offered_flits_per_cycle(), Some(1.6));
    }
}
