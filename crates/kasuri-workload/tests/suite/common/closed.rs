//! A network on which everything happens in a random order, for closed workloads.

use kasuri_network::rng::{Purpose, Streams};
use kasuri_workload::workload::{Action, Event, Message, Workload};
use std::collections::BTreeMap;

/// What happened to a message, in the order in which it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Queued,
    Sent,
    Arrived,
}

/// Runs a workload in a random order of events that is possible on some network: what a terminal sends leaves in order, and
/// arrives at some time after that.
pub(crate) fn run(workload: &dyn Workload, seed: u64) -> Vec<(Message, Seen)> {
    let mut stream = Streams::new(seed).get(Purpose::Routing, 0);
    let mut execution = workload.begin(&Streams::new(seed));
    let mut queues: BTreeMap<u32, Vec<Message>> = BTreeMap::new();
    let (mut under_way, mut computing, mut log) = (Vec::new(), Vec::new(), Vec::new());
    let mut actions = Vec::new();
    execution.start(&mut actions);
    loop {
        for action in actions.drain(..) {
            match action {
                Action::Send(message) => {
                    log.push((message, Seen::Queued));
                    queues.entry(message.source.0).or_default().push(message);
                }
                Action::Compute { token, cycles } => {
                    assert!(cycles >= 0.0);
                    computing.push(token);
                }
                Action::Finished(_) => {}
            }
        }
        queues.retain(|_, queue| !queue.is_empty());
        let choices = queues.len() + under_way.len() + computing.len();
        if choices == 0 {
            return log;
        }
        let choice = stream.below(choices as u32) as usize;
        let event = if choice < queues.len() {
            let source = *queues.keys().nth(choice).unwrap();
            let message = queues.get_mut(&source).unwrap().remove(0);
            under_way.push(message);
            log.push((message, Seen::Sent));
            Event::Sent(message.token)
        } else if choice < queues.len() + under_way.len() {
            let message = under_way.swap_remove(choice - queues.len());
            log.push((message, Seen::Arrived));
            Event::Arrived(message.token)
        } else {
            Event::Computed(computing.swap_remove(choice - queues.len() - under_way.len()))
        };
        execution.happened(event, &mut actions);
    }
}

/// The messages that arrive, in the order in which they do.
pub(crate) fn arrived(workload: &dyn Workload, seed: u64) -> Vec<Message> {
    run(workload, seed).into_iter().filter(|(_, seen)| *seen == Seen::Arrived).map(|(message, _)| message).collect()
}
