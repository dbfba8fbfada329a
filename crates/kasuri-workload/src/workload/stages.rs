//! Stages that all ranks go through together: each computes, then moves data in the memory of its host, then all exchange messages.
//!
//! A stage part begins when every rank has ended the part before. The memory of a host serves the ranks on it one after the other,
//! so that a host's part lasts as long as all of them need together.

use super::rounds::Rounds;
use super::{Action, Event, Execution, Message, Token, Workload};
use kasuri_network::rng::Streams;

/// What ranks do in a stage, and how often there is one.
#[derive(Debug)]
pub struct Stages {
    exchange: Rounds,
    /// The ranks of each host that has any.
    hosts: Vec<Vec<u32>>,
    compute_cycles: f64,
    memory_cycles: f64,
    repeat: u32,
}

impl Stages {
    /// In each of `repeat` stages every rank computes for `compute_cycles`, needs the memory of its host for `memory_cycles`, and
    /// takes part in the exchange. Terminals 0 to t - 1 are on the first host, the next t on the second, where t is
    /// `terminals_per_host`, at least 1.
    pub fn new(exchange: Rounds, terminals_per_host: u32, compute_cycles: f64, memory_cycles: f64, repeat: u32) -> Self {
        let mut hosts: Vec<Vec<u32>> = Vec::new();
        for rank in 0..exchange.ranks() {
            let host = (exchange.terminal(rank).0 / terminals_per_host.max(1)) as usize;
            if hosts.len() <= host {
                hosts.resize(host + 1, Vec::new());
            }
            hosts[host].push(rank);
        }
        hosts.retain(|ranks| !ranks.is_empty());
        Self { exchange, hosts, compute_cycles, memory_cycles, repeat }
    }
}

impl Workload for Stages {
    fn messages(&self) -> u64 {
        self.exchange.messages() * u64::from(self.repeat)
    }

    fn each_message(&self, each: &mut dyn FnMut(&Message)) {
        (0..self.repeat).for_each(|_| self.exchange.each_message(each));
    }

    fn longest_message(&self) -> u32 {
        self.exchange.longest_message()
    }

    fn begin(&self, streams: &Streams) -> Box<dyn Execution + '_> {
        Box::new(Pass { stages: self, streams: *streams, stage: 0, part: Part::Compute, outstanding: 0, exchange: None })
    }
}

/// The part of a stage that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Compute,
    Memory,
    Exchange,
}

#[derive(Debug)]
struct Pass<'a> {
    stages: &'a Stages,
    streams: Streams,
    stage: u32,
    part: Part,
    /// What has to happen before the next part: computations that end, messages that leave, messages that arrive.
    outstanding: u64,
    exchange: Option<Box<dyn Execution + 'a>>,
}

impl Pass<'_> {
    fn begin_part(&mut self, actions: &mut Vec<Action>) {
        let stages = self.stages;
        match self.part {
            Part::Compute => {
                let ranks = stages.exchange.ranks();
                self.outstanding = u64::from(ranks);
                actions.extend((0..ranks).map(|rank| Action::Compute { token: Token::from(rank), cycles: stages.compute_cycles }));
            }
            Part::Memory => {
                self.outstanding = u64::from(stages.exchange.ranks());
                (0..stages.hosts.len()).for_each(|host| actions.extend(self.turn(host, 0)));
            }
            Part::Exchange => {
                self.outstanding = 2 * stages.exchange.messages();
                let mut exchange = stages.exchange.begin(&self.streams);
                exchange.start(actions);
                self.exchange = Some(exchange);
            }
        }
    }

    /// The memory of a host serves its rank number `turn`, if it has so many.
    fn turn(&self, host: usize, turn: usize) -> Option<Action> {
        let token = (host as Token) << 32 | turn as Token;
        (turn < self.stages.hosts[host].len()).then_some(Action::Compute { token, cycles: self.stages.memory_cycles })
    }

    fn next_part(&mut self, actions: &mut Vec<Action>) {
        self.part = match self.part {
            Part::Compute => Part::Memory,
            Part::Memory => Part::Exchange,
            Part::Exchange => {
                self.stage += 1;
                Part::Compute
            }
        };
        if self.stage < self.stages.repeat {
            self.begin_part(actions);
        }
    }
}

impl Execution for Pass<'_> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        self.begin_part(actions);
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        match (event, &mut self.exchange) {
            (Event::Computed(token), _) => {
                if self.part == Part::Memory {
                    actions.extend(self.turn((token >> 32) as usize, token as u32 as usize + 1));
                }
            }
            (event, Some(exchange)) => exchange.happened(event, actions),
            // Messages are under way in an exchange only.
            (_, None) => return,
        }
        self.outstanding -= 1;
        if self.outstanding == 0 {
            self.next_part(actions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{COLLECTIVES, MessageSize, Parameters};
    use crate::workload::placement;
    use crate::workload::rounds::{Options, Synchronisation};

    const COMPUTE: f64 = 100.0;
    const MEMORY: f64 = 10.0;
    const FLITS: u64 = 7;

    fn stages(ranks: u32, terminals_per_host: u32, repeat: u32, synchronisation: Synchronisation) -> Stages {
        let entry = COLLECTIVES.iter().find(|entry| (entry.collective, entry.schedule) == ("alltoall", "shift")).unwrap();
        let collective = entry.build(&Parameters { ranks, root: 0, size: MessageSize::of_flits(FLITS) }).unwrap();
        let options = Options { synchronisation: Some(synchronisation), ..Options::default() };
        let exchange = Rounds::new(collective, placement::linear(ranks), &options).unwrap();
        Stages::new(exchange, terminals_per_host, COMPUTE, MEMORY, repeat)
    }

    /// Lets everything happen on a network where a message takes its flits: the time of the end and the messages.
    fn time_of(stages: &Stages) -> (f64, u64) {
        let mut pass = stages.begin(&Streams::new(1));
        let (mut now, mut messages) = (0.0, 0);
        let mut due: Vec<(f64, Event)> = Vec::new();
        let mut actions = Vec::new();
        pass.start(&mut actions);
        loop {
            for action in actions.drain(..) {
                match action {
                    Action::Compute { token, cycles } => due.push((now + cycles, Event::Computed(token))),
                    Action::Finished(_) => {}
                    Action::Send(message) => {
                        let end = now + f64::from(message.flits);
                        messages += 1;
                        due.extend([(end, Event::Sent(message.token)), (end, Event::Arrived(message.token))]);
                    }
                }
            }
            due.sort_by(|one, other| one.0.total_cmp(&other.0));
            if due.is_empty() {
                return (now, messages);
            }
            let (time, event) = due.remove(0);
            now = time;
            pass.happened(event, &mut actions);
        }
    }

    /// A stage lasts as long as one computation, the memory's work for all ranks of the fullest host, and the rounds of messages.
    #[test]
    fn the_ranks_of_a_host_wait_for_its_memory() {
        for synchronisation in [Synchronisation::None, Synchronisation::Receive, Synchronisation::Barrier] {
            for (ranks, terminals_per_host, fullest) in [(8, 1, 1), (8, 4, 4), (6, 4, 4), (3, 4, 3), (8, 2, 2)] {
                let (end, messages) = time_of(&stages(ranks, terminals_per_host, 3, synchronisation));
                let exchange = f64::from(ranks - 1) * FLITS as f64;
                assert_eq!(end, 3.0 * (COMPUTE + f64::from(fullest) * MEMORY + exchange), "{ranks} ranks, {terminals_per_host} a host");
                assert_eq!(messages, u64::from(3 * ranks * (ranks - 1)));
            }
        }
    }

    #[test]
    fn the_messages_are_those_of_all_stages() {
        let stages = stages(5, 2, 4, Synchronisation::Barrier);
        let mut listed = 0;
        stages.each_message(&mut |_| listed += 1);
        assert_eq!((stages.messages(), listed, stages.longest_message()), (4 * 5 * 4, 4 * 5 * 4, 7));
    }
}
