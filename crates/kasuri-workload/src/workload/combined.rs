//! The workloads of several users, side by side on one machine.
//!
//! Each user's workload names its logical nodes; here they become the terminals that its table gives them. The workloads know
//! nothing of each other: whatever one waits for because of another, it waits for in the network.

use super::{Action, Event, Execution, Message, TOKEN_BITS, Token, Workload};
use crate::translation::users::MAX_USERS;
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Streams;
use std::sync::Arc;

/// One user's workload.
#[derive(Clone, Debug)]
pub struct UserWorkload {
    /// What has to be done, in logical nodes.
    pub workload: Arc<dyn Workload>,
    /// The terminal of each logical node.
    pub terminals: Vec<TerminalId>,
    /// The user's number, which chooses its random streams: the same whether others run beside it or not.
    pub user: u32,
}

impl UserWorkload {
    fn placed(&self, message: Message) -> Message {
        let [source, destination] = [message.source, message.destination].map(|node| self.terminals[node.index()]);
        Message { source, destination, ..message }
    }
}

/// Several workloads at once.
#[derive(Debug)]
pub struct CombinedWorkload {
    parts: Vec<UserWorkload>,
}

impl CombinedWorkload {
    /// Puts workloads together, at most [`MAX_USERS`].
    pub fn new(parts: Vec<UserWorkload>) -> Self {
        debug_assert!(parts.len() <= MAX_USERS);
        Self { parts }
    }
}

/// Bits of a token that tell whose it is: the low ones, above them the part's own name. So events come in the order of the parts' names.
const BITS: u32 = Token::BITS - TOKEN_BITS;

/// The name among all parts of what a part calls so.
pub(crate) fn name_of_part(token: Token, part: usize) -> Token {
    debug_assert_eq!(token >> TOKEN_BITS, 0, "a workload names nothing above its own bits");
    token << BITS | part as Token
}

/// What its part calls it.
pub(crate) fn own_name(token: Token) -> Token {
    token >> BITS
}

fn part_of(token: Token) -> usize {
    (token & ((1 << BITS) - 1)) as usize
}

impl Workload for CombinedWorkload {
    fn messages(&self) -> u64 {
        self.parts.iter().map(|part| part.workload.messages()).sum()
    }

    fn each_message(&self, each: &mut dyn FnMut(&Message)) {
        for (number, part) in self.parts.iter().enumerate() {
            part.workload
                .each_message(&mut |message| each(&Message { token: name_of_part(message.token, number), ..part.placed(*message) }));
        }
    }

    fn longest_message(&self) -> u32 {
        self.parts.iter().map(|part| part.workload.longest_message()).max().unwrap_or(1)
    }

    fn part_of(&self, token: Token) -> usize {
        part_of(token)
    }

    fn unmodelled(&self) -> Vec<String> {
        self.parts.iter().flat_map(|part| part.workload.unmodelled()).collect()
    }

    fn begin(&self, streams: &Streams) -> Box<dyn Execution + '_> {
        let of_part = |(number, part)| PartPass::new(number, part, streams);
        Box::new(Pass { parts: self.parts.iter().enumerate().map(of_part).collect() })
    }

    fn begin_part(&self, part: usize, streams: &Streams) -> Option<Box<dyn Execution + '_>> {
        Some(Box::new(PartPass::new(part, self.parts.get(part)?, streams)))
    }
}

/// One pass through all of them.
#[derive(Debug)]
struct Pass<'a> {
    parts: Vec<PartPass<'a>>,
}

impl Execution for Pass<'_> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        self.parts.iter_mut().for_each(|part| part.start(actions));
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        let (Event::Sent(token) | Event::Arrived(token) | Event::Computed(token)) = event;
        self.parts[part_of(token)].happened(event, actions);
    }

    fn hears_arrivals(&self) -> bool {
        self.parts.iter().any(Execution::hears_arrivals)
    }

    fn hears_arrival_of(&self, message: Token) -> bool {
        self.parts[part_of(message)].hears_arrivals()
    }

    fn standstill(&self) -> Option<String> {
        self.parts.iter().find_map(Execution::standstill)
    }
}

/// One pass through one of them. Its messages and computations have the names that they have among all.
#[derive(Debug)]
struct PartPass<'a> {
    number: usize,
    part: &'a UserWorkload,
    execution: Box<dyn Execution + 'a>,
    /// What it wants, in its own names.
    actions: Vec<Action>,
}

impl<'a> PartPass<'a> {
    fn new(number: usize, part: &'a UserWorkload, streams: &Streams) -> Self {
        Self { number, part, execution: part.workload.begin(&streams.of_user(part.user)), actions: Vec::new() }
    }

    fn named(&self, message: Message) -> Message {
        Message { token: name_of_part(message.token, self.number), ..self.part.placed(message) }
    }

    /// Passes on what the execution wants.
    fn pass_on(&mut self, actions: &mut Vec<Action>) {
        let mut wanted = std::mem::take(&mut self.actions);
        actions.extend(wanted.drain(..).filter_map(|action| match action {
            Action::Send(message) => Some(Action::Send(self.named(message))),
            Action::Compute { token, cycles } => Some(Action::Compute { token: name_of_part(token, self.number), cycles }),
            // Ranks of several workloads have the same numbers.
            Action::Finished(_) => None,
        }));
        self.actions = wanted;
    }
}

impl Execution for PartPass<'_> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        self.execution.start(&mut self.actions);
        self.pass_on(actions);
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        let event = match event {
            Event::Sent(token) => Event::Sent(own_name(token)),
            Event::Arrived(token) => Event::Arrived(own_name(token)),
            Event::Computed(token) => Event::Computed(own_name(token)),
        };
        self.execution.happened(event, &mut self.actions);
        self.pass_on(actions);
    }

    fn hears_arrivals(&self) -> bool {
        self.execution.hears_arrivals()
    }

    fn follows(&self) -> bool {
        self.execution.follows()
    }

    fn follow(&mut self, sent: Token) -> Option<Message> {
        self.execution.follow(own_name(sent)).map(|message| self.named(message))
    }

    fn standstill(&self) -> Option<String> {
        self.execution.standstill()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{COLLECTIVES, Entry, MessageSize, Parameters};
    use crate::workload::placement;
    use crate::workload::rounds::{Options, Rounds, Synchronisation};
    use std::collections::BTreeSet;

    fn collective(entry: &Entry, ranks: u32, options: &Options) -> Option<Arc<dyn Workload>> {
        let collective = entry.build(&Parameters { ranks, root: 0, size: MessageSize::of_flits(3) }).unwrap();
        Some(Arc::new(Rounds::new(collective, placement::linear(ranks), options).ok()?))
    }

    fn all_to_all(ranks: u32) -> Arc<dyn Workload> {
        let entry = COLLECTIVES.iter().find(|entry| (entry.collective, entry.schedule) == ("alltoall", "pairwise")).unwrap();
        collective(entry, ranks, &Options { start_skew_cycles: 10.0, ..Options::default() }).unwrap()
    }

    fn together() -> CombinedWorkload {
        let part = |user: u32, terminals: &[u32]| UserWorkload {
            workload: all_to_all(terminals.len() as u32),
            terminals: terminals.iter().copied().map(TerminalId).collect(),
            user,
        };
        CombinedWorkload::new(vec![part(0, &[9, 4, 7, 1]), part(2, &[2, 3])])
    }

    /// Lets everything happen at once: all that was sent, and when each start was due.
    fn sent(workload: &dyn Workload) -> (Vec<Message>, Vec<f64>) {
        let mut pass = workload.begin(&Streams::new(1));
        let (mut messages, mut starts, mut actions, mut events) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        pass.start(&mut actions);
        loop {
            for action in actions.drain(..) {
                match action {
                    Action::Send(message) => {
                        messages.push(message);
                        events.extend([Event::Sent(message.token), Event::Arrived(message.token)]);
                    }
                    Action::Compute { token, cycles } => {
                        starts.push(cycles);
                        events.push(Event::Computed(token));
                    }
                    Action::Finished(_) => {}
                }
            }
            if events.is_empty() {
                return (messages, starts);
            }
            events.drain(..).for_each(|event| pass.happened(event, &mut actions));
        }
    }

    #[test]
    fn each_part_sends_all_its_messages_between_its_own_terminals() {
        let workload = together();
        assert_eq!(workload.messages(), 4 * 3 + 2);
        let (messages, _) = sent(&workload);
        let pairs: BTreeSet<_> = messages.iter().map(|message| (message.source.0, message.destination.0)).collect();
        assert_eq!((messages.len(), pairs.len()), (14, 14));
        let of_first = [9, 4, 7, 1];
        for message in &messages {
            let first = of_first.contains(&message.source.0);
            assert_eq!(first, of_first.contains(&message.destination.0));
            assert_eq!(workload.part_of(message.token), usize::from(!first));
        }
        let mut listed = Vec::new();
        workload.each_message(&mut |message| listed.push((message.source.0, message.destination.0)));
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), pairs);
    }

    /// Whatever the collective, and whether ranks start together, apart, or wait before each message: a part sends just what its workload
    /// has in it, each message once, and one start is drawn for each rank that does not start at once.
    #[test]
    fn every_collective_is_sent_whole_wherever_its_ranks_start() {
        let ways = [None, Some(Synchronisation::None), Some(Synchronisation::Receive), Some(Synchronisation::Barrier)];
        for entry in COLLECTIVES {
            for (skew, jitter, repeat) in [(0.0, 0.0, 1), (20.0, 0.0, 1), (20.0, 0.0, 3), (20.0, 5.0, 2), (0.0, 5.0, 3)] {
                for synchronisation in ways {
                    let options = Options { synchronisation, start_skew_cycles: skew, jitter_cycles: jitter, repeat };
                    // What passes on what it has received cannot do without that.
                    let Some(workload) = collective(entry, 4, &options) else { continue };
                    let terminals = [9, 4, 7, 1].map(TerminalId).to_vec();
                    let user = |user: u32| UserWorkload { workload: Arc::clone(&workload), terminals: terminals.clone(), user };
                    let whole = CombinedWorkload::new(vec![user(0), user(1)]);
                    let (mut messages, times) = sent(&whole);
                    let mut expected = Vec::new();
                    whole.each_message(&mut |message| expected.push(*message));
                    messages.sort_unstable_by_key(|message| message.token);
                    expected.sort_unstable_by_key(|message| message.token);
                    assert_eq!(messages, expected, "{} {}: {options:?}", entry.collective, entry.schedule);
                    let starts = if skew > 0.0 { 2 * 4 } else { 0 };
                    let waits = if jitter > 0.0 { messages.len() } else { 0 };
                    assert_eq!(times.len(), starts + waits);
                }
            }
        }
    }

    /// Simulated alone or together, a part sends the same messages under the same names, and draws the same starts.
    #[test]
    fn a_part_alone_does_what_it_does_among_the_others() {
        /// One part of a workload as a workload of its own.
        #[derive(Debug)]
        struct Alone<'w>(&'w CombinedWorkload, usize);

        impl Workload for Alone<'_> {
            fn messages(&self) -> u64 {
                self.0.parts[self.1].workload.messages()
            }

            fn each_message(&self, _: &mut dyn FnMut(&Message)) {}

            fn longest_message(&self) -> u32 {
                self.0.longest_message()
            }

            fn begin(&self, streams: &Streams) -> Box<dyn Execution + '_> {
                self.0.begin_part(self.1, streams).expect("a part")
            }
        }

        let whole = together();
        let (mut of_all, starts) = sent(&whole);
        let (mut of_each, mut starts_of_each) = (Vec::new(), Vec::new());
        for part in 0..2 {
            let (messages, starts) = sent(&Alone(&whole, part));
            of_each.extend(messages);
            starts_of_each.extend(starts);
        }
        of_all.sort_unstable_by_key(|message| message.token);
        of_each.sort_unstable_by_key(|message| message.token);
        assert_eq!((of_each, starts_of_each), (of_all, starts));
        assert!(whole.begin_part(2, &Streams::new(1)).is_none());
    }

    /// What is random depends on the user's number alone.
    #[test]
    fn a_user_starts_when_he_starts_alone() {
        let whole = together();
        let alone = CombinedWorkload::new(vec![whole.parts[1].clone()]);
        let (_, starts) = sent(&whole);
        let (_, of_second) = sent(&alone);
        assert_eq!(starts[4..], of_second[..]);
        assert_ne!(starts[..2], of_second[..]);
    }
}
