//! Programs: a graph of sends, receives and computations for each rank.
//!
//! An operation starts when all operations that it *requires* have ended and all that it *irequires* have started. A send ends
//! when its message has left (it is eager: it waits for no receive), a receive when it has started and its message has arrived, a
//! computation after its time. Computations of one rank on one of its processors run one after the other in the order in which
//! they may start; one of no time needs no processor. Messages of the same source, destination and tag are received in the order
//! in which they are sent, where *order* is that of the dependencies, then that of the description. The model is that of
//! LogGOPSim's GOAL (Hoefler, Schneider and Lumsdaine, HPDC 2010) without its overheads: what a message costs the network says.

use super::{Action, Event, Execution, Message, Token, Workload};
use crate::units::Units;
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Streams;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use thiserror::Error;

/// A program as it was written: in bytes and nanoseconds, without terminals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// How many ranks there are.
    pub ranks: u32,
    /// What they do; the operations of a rank stand together, the ranks in ascending order.
    pub operations: Vec<Operation>,
    /// What waits for what, within a rank.
    pub dependencies: Vec<Dependency>,
    /// The network interface of a send or receive, by its position; 0 if absent.
    pub interfaces: BTreeMap<u32, u32>,
}

/// Something that a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The rank.
    pub rank: u32,
    /// The processor of the rank; a send or receive takes no time of it.
    pub cpu: u32,
    /// What is done.
    pub kind: Kind,
    /// The line on which it stands, for messages; 0 if there is none.
    pub line: u32,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sends a message.
    Send {
        /// The rank that receives it.
        to: u32,
        /// Its size.
        bytes: u64,
        /// What it is called.
        tag: u32,
    },
    /// Receives a message.
    Receive {
        /// The rank that sends it.
        from: u32,
        /// The size of its place. The message may have another one, which then counts.
        bytes: u64,
        /// What it is called.
        tag: u32,
    },
    /// Computes.
    Compute {
        /// How long, in nanoseconds.
        ns: u64,
    },
}

/// One operation waits for another one of the same rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// Which waits, by its position in the list of operations.
    pub operation: u32,
    /// For which it waits.
    pub on: u32,
    /// For its start (`irequires`) or its end (`requires`)?
    pub on_start: bool,
}

/// What is wrong with a program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct ProgramError {
    /// The line of the operation; 0 if the whole is meant.
    pub line: u32,
    /// What was found and what would be right.
    pub problem: String,
}

/// What a computation of no time and a message from a rank to itself have in common: they end at once.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The message and the receive that it ends.
    Send {
        message: Message,
        receive: u32,
    },
    /// A message that needs no network.
    SendToSelf {
        receive: u32,
    },
    Receive,
    /// On which processor of which rank, numbered through.
    Compute {
        cycles: f64,
        processor: u32,
    },
}

/// A program on terminals.
#[derive(Debug)]
pub struct Program {
    steps: Vec<Step>,
    /// For how many things each operation waits.
    waits_for: Vec<u32>,
    after_start: Successors,
    after_end: Successors,
    /// The terminal of each processor.
    processors: Vec<TerminalId>,
    messages: u64,
    longest: u32,
    /// The network interface of an operation, by its position; 0 if absent.
    interfaces: BTreeMap<u32, u32>,
}

/// Who waits for whom: the list of each operation, one after the other.
#[derive(Debug)]
struct Successors {
    /// Shape `[operations + 1]`.
    begins: Vec<u32>,
    list: Vec<u32>,
}

impl Successors {
    fn new(operations: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut begins = vec![0; operations + 1];
        pairs.clone().for_each(|(on, _)| begins[on as usize + 1] += 1);
        for operation in 0..operations {
            begins[operation + 1] += begins[operation];
        }
        let mut list = vec![0; begins[operations] as usize];
        let mut free = begins.clone();
        for (on, operation) in pairs {
            let place = &mut free[on as usize];
            list[*place as usize] = operation;
            *place += 1;
        }
        Self { begins, list }
    }

    fn of(&self, operation: u32) -> &[u32] {
        &self.list[self.begins[operation as usize] as usize..self.begins[operation as usize + 1] as usize]
    }
}

impl Program {
    /// Rank r runs on terminal `placement[r]`. Bytes and nanoseconds become flits and cycles by `units`.
    ///
    /// # Errors
    /// A rank that does not exist or has no terminal, a send without a receive or a receive without a send, operations that wait for
    /// each other in a cycle, also across ranks; bytes or nanoseconds without units for them, a message of 2^32 flits or more.
    pub fn new(description: &Description, placement: &[TerminalId], units: Units) -> Result<Self, ProgramError> {
        description.check()?;
        if placement.len() != description.ranks as usize {
            let problem = format!("has {} ranks, but {} have a terminal", description.ranks, placement.len());
            return Err(ProgramError { line: 0, problem });
        }
        let graph = Graph::new(description);
        let order = graph.order()?;
        let received_by = graph.matching(&order)?;
        graph.check_acyclic(&received_by)?;
        let Graph { after_start, after_end, .. } = graph;
        let mut compiler = Compiler { description, placement, units, processors: BTreeMap::new() };
        let steps: Vec<Step> =
            (0..description.operations.len() as u32).map(|operation| compiler.step(operation, &received_by)).collect::<Result<_, _>>()?;
        let sizes = steps.iter().filter_map(|step| if let Step::Send { message, .. } = step { Some(message.flits) } else { None });
        let (messages, longest) = sizes.fold((0, 1), |(count, longest), flits| (count + 1, longest.max(flits)));
        let mut waits_for = vec![0; steps.len()];
        description.dependencies.iter().for_each(|dependency| waits_for[dependency.operation as usize] += 1);
        let mut processors = vec![TerminalId(0); compiler.processors.len()];
        compiler.processors.iter().for_each(|(&(rank, _), &processor)| processors[processor as usize] = placement[rank as usize]);
        let interfaces = description.interfaces.clone();
        Ok(Self { steps, waits_for, after_start, after_end, processors, messages, longest, interfaces })
    }
}

impl Description {
    /// The line of an operation, and what is wrong with it.
    fn error(&self, operation: u32, problem: impl Into<String>) -> ProgramError {
        ProgramError { line: self.operations[operation as usize].line, problem: problem.into() }
    }

    /// An operation in words.
    fn words(&self, operation: u32) -> String {
        let Operation { rank, kind, .. } = self.operations[operation as usize];
        match kind {
            Kind::Send { to, tag, .. } => format!("rank {rank}: send to {to} tag {tag}"),
            Kind::Receive { from, tag, .. } => format!("rank {rank}: recv from {from} tag {tag}"),
            Kind::Compute { ns } => format!("rank {rank}: calc {ns}"),
        }
    }

    /// An operation in words, with its line.
    fn name(&self, operation: u32) -> String {
        let (words, line) = (self.words(operation), self.operations[operation as usize].line);
        if line > 0 { format!("{words} (line {line})") } else { words }
    }

    /// Refuses a send or receive on an interface that the terminal of its rank lacks: `ports` counts those of the terminal of a rank.
    ///
    /// # Errors
    /// The first of them, with its line.
    pub fn check_interfaces(&self, ports: impl Fn(u32) -> u32) -> Result<(), ProgramError> {
        let has_none = |&(&operation, &interface): &(&u32, &u32)| interface >= ports(self.operations[operation as usize].rank);
        let Some((&operation, interface)) = self.interfaces.iter().find(has_none) else { return Ok(()) };
        let found = match ports(self.operations[operation as usize].rank) {
            1 => "one port, nic 0".to_owned(),
            count => format!("{count} ports, nic 0 to {}", count - 1),
        };
        let problem = format!(
            "{} is on nic {interface}, and its terminal has {found}; take a network with a port for each interface, such as topology = \"planes\" with \
             planes = {}, or leave `nic` out",
            self.words(operation),
            self.interfaces.values().max().map_or(1, |most| most.saturating_add(1))
        );
        Err(self.error(operation, problem))
    }

    /// Ranks exist, dependencies stay within a rank.
    fn check(&self) -> Result<(), ProgramError> {
        if self.operations.len() > MAX_OPERATIONS {
            let problem = format!("has {} operations; it may have {MAX_OPERATIONS}", self.operations.len());
            return Err(ProgramError { line: 0, problem });
        }
        for (position, operation) in self.operations.iter().enumerate() {
            let named = match operation.kind {
                Kind::Send { to, .. } => [operation.rank, to],
                Kind::Receive { from, .. } => [operation.rank, from],
                Kind::Compute { .. } => [operation.rank; 2],
            };
            if let Some(rank) = named.into_iter().find(|&rank| rank >= self.ranks) {
                let problem = format!("names rank {rank}; the ranks are 0 to {}", self.ranks.saturating_sub(1));
                return Err(self.error(position as u32, problem));
            }
        }
        let rank = |operation: u32| self.operations.get(operation as usize).map(|operation| operation.rank);
        for dependency in &self.dependencies {
            if rank(dependency.operation).is_none() || rank(dependency.operation) != rank(dependency.on) {
                let problem = format!("operation {} waits for {}, which is none of its rank", dependency.operation, dependency.on);
                return Err(ProgramError { line: 0, problem });
            }
        }
        Ok(())
    }
}

/// Turns operations into steps.
struct Compiler<'a> {
    description: &'a Description,
    placement: &'a [TerminalId],
    units: Units,
    /// The number of each rank's processors.
    processors: BTreeMap<(u32, u32), u32>,
}

impl Compiler<'_> {
    fn step(&mut self, position: u32, received_by: &[u32]) -> Result<Step, ProgramError> {
        let operation = self.description.operations[position as usize];
        match operation.kind {
            Kind::Send { to, .. } if to == operation.rank => Ok(Step::SendToSelf { receive: received_by[position as usize] }),
            Kind::Send { to, bytes, .. } => {
                let (source, destination) = (self.placement[operation.rank as usize], self.placement[to as usize]);
                let message = Message { token: Token::from(position), source, destination, flits: self.flits(position, bytes)? };
                Ok(Step::Send { message, receive: received_by[position as usize] })
            }
            Kind::Receive { .. } => Ok(Step::Receive),
            Kind::Compute { ns } => {
                let next = self.processors.len() as u32;
                let processor = *self.processors.entry((operation.rank, operation.cpu)).or_insert(next);
                Ok(Step::Compute { cycles: self.cycles(position, ns)?, processor })
            }
        }
    }

    fn flits(&self, position: u32, bytes: u64) -> Result<u32, ProgramError> {
        let Some(flits) = self.units.flits(bytes) else {
            let problem = format!("a message of {bytes} bytes; say with network.flit_bytes how many bytes a flit holds");
            return Err(self.description.error(position, problem));
        };
        let problem = || self.description.error(position, format!("a message of {flits} flits; it may have at most {}", u32::MAX));
        u32::try_from(flits).map_err(|_| problem())
    }

    fn cycles(&self, position: u32, ns: u64) -> Result<f64, ProgramError> {
        if ns == 0 {
            return Ok(0.0);
        }
        self.units.cycles(ns as f64).ok_or_else(|| {
            let problem = format!(
                "a calc of {ns} ns; say with network.cycle_ns (or network.channel_gbit_per_second and network.flit_bytes) how long a cycle is"
            );
            self.description.error(position, problem)
        })
    }
}

/// An operation without a message that belongs to it.
const NOBODY: u32 = u32::MAX;

/// The dependencies of a program.
struct Graph<'a> {
    description: &'a Description,
    after_start: Successors,
    after_end: Successors,
}

/// The start or the end of an operation: its position, doubled, plus 1 for the end.
type Instant = u32;

impl<'a> Graph<'a> {
    fn new(description: &'a Description) -> Self {
        let pairs = |on_start| {
            let wanted = description.dependencies.iter().filter(move |dependency| dependency.on_start == on_start);
            wanted.map(|dependency| (dependency.on, dependency.operation))
        };
        let operations = description.operations.len();
        Self { description, after_start: Successors::new(operations, pairs(true)), after_end: Successors::new(operations, pairs(false)) }
    }

    /// All operations so that none stands before one for which it waits; otherwise as they are written.
    fn order(&self) -> Result<Vec<u32>, ProgramError> {
        let count = self.description.operations.len();
        let mut waits_for = vec![0_u32; count];
        self.description.dependencies.iter().for_each(|dependency| waits_for[dependency.operation as usize] += 1);
        let mut ready: BinaryHeap<Reverse<u32>> = (0..count as u32).filter(|&one| waits_for[one as usize] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse(operation)) = ready.pop() {
            order.push(operation);
            for &next in self.after_start.of(operation).iter().chain(self.after_end.of(operation)) {
                waits_for[next as usize] -= 1;
                if waits_for[next as usize] == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
        if order.len() < count { Err(self.cycle(&[])) } else { Ok(order) }
    }

    /// The receive of each send, first in first out for each source, destination and tag; [`NOBODY`] for what is no send.
    fn matching(&self, order: &[u32]) -> Result<Vec<u32>, ProgramError> {
        let mut open: BTreeMap<(u32, u32, u32), [VecDeque<u32>; 2]> = BTreeMap::new();
        let mut received_by = vec![NOBODY; order.len()];
        for &operation in order {
            let Operation { rank, kind, .. } = self.description.operations[operation as usize];
            let (key, is_send) = match kind {
                Kind::Send { to, tag, .. } => ((rank, to, tag), true),
                Kind::Receive { from, tag, .. } => ((from, rank, tag), false),
                Kind::Compute { .. } => continue,
            };
            let [sends, receives] = open.entry(key).or_default();
            let (own, other) = if is_send { (sends, receives) } else { (receives, sends) };
            match other.pop_front() {
                None => own.push_back(operation),
                Some(partner) if is_send => received_by[operation as usize] = partner,
                Some(partner) => received_by[partner as usize] = operation,
            }
        }
        let alone = open.values().flatten().filter_map(|queue| queue.front()).min();
        match alone {
            None => Ok(received_by),
            Some(&operation) => Err(self.unmatched(operation)),
        }
    }

    fn unmatched(&self, operation: u32) -> ProgramError {
        let (rank, problem) = (self.description.operations[operation as usize].rank, self.description.words(operation));
        let missing = match self.description.operations[operation as usize].kind {
            Kind::Send { to, tag, .. } => format!("rank {to} has no `recv … from {rank} tag {tag}` for it"),
            Kind::Receive { from, tag, .. } => format!("rank {from} has no `send … to {rank} tag {tag}` for it"),
            Kind::Compute { .. } => String::new(),
        };
        self.description.error(operation, format!("{problem}: {missing}; each send needs a receive of its own and each receive a send"))
    }

    /// No operation waits for itself, be it through messages.
    fn check_acyclic(&self, received_by: &[u32]) -> Result<(), ProgramError> {
        let stuck = self.stuck(received_by).iter().any(|&waits_for| waits_for > 0);
        if stuck { Err(self.cycle(received_by)) } else { Ok(()) }
    }

    /// For how many things each instant waits in the end, when everything has happened that can.
    fn stuck(&self, received_by: &[u32]) -> Vec<u32> {
        let mut waits_for = self.instants_before(received_by);
        let mut ready: Vec<Instant> = (0..waits_for.len() as u32).filter(|&instant| waits_for[instant as usize] == 0).collect();
        while let Some(instant) = ready.pop() {
            self.each_next(instant, received_by, |next| {
                waits_for[next as usize] -= 1;
                if waits_for[next as usize] == 0 {
                    ready.push(next);
                }
            });
        }
        waits_for
    }

    /// How many instants each one waits for.
    fn instants_before(&self, received_by: &[u32]) -> Vec<u32> {
        let mut counts = vec![0; 2 * self.description.operations.len()];
        (0..counts.len() as u32).for_each(|instant| self.each_next(instant, received_by, |next| counts[next as usize] += 1));
        counts
    }

    /// What waits for an instant. Without matches, messages make nothing wait.
    fn each_next(&self, instant: Instant, received_by: &[u32], mut each: impl FnMut(Instant)) {
        let operation = instant / 2;
        if instant % 2 == 1 {
            self.after_end.of(operation).iter().for_each(|next| each(2 * next));
            return;
        }
        each(instant + 1);
        self.after_start.of(operation).iter().for_each(|next| each(2 * next));
        if let Some(&receive) = received_by.get(operation as usize).filter(|&&receive| receive != NOBODY) {
            each(2 * receive + 1);
        }
    }

    /// Describes one of the cycles that there are.
    fn cycle(&self, received_by: &[u32]) -> ProgramError {
        let waits_for = self.stuck(received_by);
        // Whatever is left waits for something that is left: going back from it must come to a cycle.
        let mut before = vec![NOBODY; waits_for.len()];
        for instant in (0..waits_for.len() as u32).filter(|&instant| waits_for[instant as usize] > 0) {
            self.each_next(instant, received_by, |next| before[next as usize] = instant);
        }
        let first = (0..waits_for.len()).find(|&instant| waits_for[instant] > 0).unwrap_or_default() as u32;
        let (mut at, mut seen) = (first, vec![false; waits_for.len()]);
        while !std::mem::replace(&mut seen[at as usize], true) {
            at = before[at as usize];
        }
        let mut cycle = vec![at];
        while before[cycle[cycle.len() - 1] as usize] != at {
            cycle.push(before[cycle[cycle.len() - 1] as usize]);
        }
        self.describe_cycle(&cycle)
    }

    fn describe_cycle(&self, cycle: &[Instant]) -> ProgramError {
        let mut operations: Vec<u32> = cycle.iter().map(|instant| instant / 2).collect();
        operations.dedup();
        if operations.len() > 1 && operations.first() == operations.last() {
            operations.pop();
        }
        // A cycle can be read from anywhere; it begins with the operation that stands first in the description.
        let least = operations.iter().enumerate().min_by_key(|(_, operation)| **operation).map_or(0, |(position, _)| position);
        operations.rotate_left(least);
        let shown: Vec<String> = operations.iter().take(SHOWN).map(|&operation| self.description.name(operation)).collect();
        let more = if operations.len() > SHOWN { format!(", and {} more", operations.len() - SHOWN) } else { String::new() };
        let problem =
            format!("operations wait for each other for ever, each for the next and the last for the first: {}{more}", shown.join("; "));
        self.description.error(operations[0], problem)
    }
}

/// How many operations a program may have: starts and ends together are counted by 32 bits.
pub const MAX_OPERATIONS: usize = 1 << 30;

/// How many operations of a cycle a message shows.
const SHOWN: usize = 12;

impl Workload for Program {
    fn messages(&self) -> u64 {
        self.messages
    }

    fn each_message(&self, each: &mut dyn FnMut(&Message)) {
        for step in &self.steps {
            if let Step::Send { message, .. } = step {
                each(message);
            }
        }
    }

    fn longest_message(&self) -> u32 {
        self.longest
    }

    fn interfaces_of(&self, message: Token) -> Option<(u32, u32)> {
        let Some(Step::Send { receive, .. }) = self.steps.get(message as usize).filter(|_| !self.interfaces.is_empty()) else {
            return None;
        };
        let of = |operation: u32| self.interfaces.get(&operation).copied().unwrap_or(0);
        Some((of(message as u32), of(*receive)))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn place_of(&self, computation: Token) -> Option<TerminalId> {
        match self.steps.get(computation as usize)? {
            Step::Compute { processor, .. } => self.processors.get(*processor as usize).copied(),
            _ => None,
        }
    }

    fn begin(&self, _streams: &Streams) -> Box<dyn Execution + '_> {
        Box::new(Pass {
            program: self,
            released: vec![0; self.steps.len()],
            half_received: vec![false; self.steps.len()],
            processors: vec![Processor::default(); self.processors.len()],
            ready: VecDeque::new(),
        })
    }
}

/// One pass through a program.
#[derive(Debug)]
struct Pass<'a> {
    program: &'a Program,
    /// How many things each operation need not wait for any more. All zero at first, as is what follows: an engine may begin many passes of
    /// which each goes through a few ranks, and the memory of the others is never touched.
    released: Vec<u32>,
    /// A receive that has started without its message, or a message that has arrived before.
    half_received: Vec<bool>,
    processors: Vec<Processor>,
    /// Operations that may start now, in the order in which they became so.
    ready: VecDeque<u32>,
}

/// A processor of a rank.
#[derive(Clone, Debug, Default)]
struct Processor {
    is_busy: bool,
    /// Computations that may start.
    waiting: VecDeque<u32>,
}

impl Pass<'_> {
    fn run_ready(&mut self, actions: &mut Vec<Action>) {
        while let Some(operation) = self.ready.pop_front() {
            let program = self.program;
            self.release(program.after_start.of(operation));
            match program.steps[operation as usize] {
                Step::Send { message, .. } => actions.push(Action::Send(message)),
                Step::SendToSelf { receive } => {
                    self.end(operation);
                    self.half_receive(receive);
                }
                Step::Receive => self.half_receive(operation),
                Step::Compute { cycles, processor } => self.compute(operation, cycles, processor, actions),
            }
        }
    }

    fn compute(&mut self, operation: u32, cycles: f64, processor: u32, actions: &mut Vec<Action>) {
        let processor = &mut self.processors[processor as usize];
        if cycles == 0.0 {
            self.end(operation);
        } else if processor.is_busy {
            processor.waiting.push_back(operation);
        } else {
            processor.is_busy = true;
            actions.push(Action::Compute { token: Token::from(operation), cycles });
        }
    }

    /// A receive ends at the second of two things: its start and the arrival of its message.
    fn half_receive(&mut self, receive: u32) {
        if std::mem::replace(&mut self.half_received[receive as usize], true) {
            self.end(receive);
        }
    }

    fn end(&mut self, operation: u32) {
        let program = self.program;
        self.release(program.after_end.of(operation));
    }

    fn release(&mut self, operations: &[u32]) {
        for &operation in operations {
            let released = &mut self.released[operation as usize];
            *released += 1;
            if *released == self.program.waits_for[operation as usize] {
                self.ready.push_back(operation);
            }
        }
    }

    fn computed(&mut self, operation: u32, actions: &mut Vec<Action>) {
        self.end(operation);
        let Step::Compute { processor, .. } = self.program.steps[operation as usize] else { return };
        let processor = &mut self.processors[processor as usize];
        processor.is_busy = false;
        let Some(next) = processor.waiting.pop_front() else { return };
        if let Step::Compute { cycles, processor } = self.program.steps[next as usize] {
            self.compute(next, cycles, processor, actions);
        }
    }
}

impl Execution for Pass<'_> {
    fn computes_at(&self, computation: Token) -> Option<TerminalId> {
        self.program.place_of(computation)
    }

    fn start(&mut self, actions: &mut Vec<Action>) {
        self.ready.extend((0..self.program.steps.len() as u32).filter(|&operation| self.program.waits_for[operation as usize] == 0));
        self.run_ready(actions);
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Sent(token) => self.end(token as u32),
            Event::Computed(token) => self.computed(token as u32, actions),
            Event::Arrived(token) => {
                if let Step::Send { receive, .. } = self.program.steps[token as usize] {
                    self.half_receive(receive);
                }
            }
        }
        self.run_ready(actions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::placement::linear;

    const UNITS: Units = Units { flit_bytes: Some(8), cycle_ns: Some(2.0) };

    fn send(rank: u32, to: u32, tag: u32, line: u32) -> Operation {
        Operation { rank, cpu: 0, kind: Kind::Send { to, bytes: 20, tag }, line }
    }

    fn receive(rank: u32, from: u32, tag: u32, line: u32) -> Operation {
        Operation { rank, cpu: 0, kind: Kind::Receive { from, bytes: 20, tag }, line }
    }

    fn calc(rank: u32, cpu: u32, ns: u64) -> Operation {
        Operation { rank, cpu, kind: Kind::Compute { ns }, line: 0 }
    }

    fn after(operation: u32, on: u32) -> Dependency {
        Dependency { operation, on, on_start: false }
    }

    fn program(ranks: u32, operations: &[Operation], dependencies: &[Dependency]) -> Result<Program, ProgramError> {
        let description =
            Description { ranks, operations: operations.to_vec(), dependencies: dependencies.to_vec(), ..Description::default() };
        Program::new(&description, &linear(ranks), UNITS)
    }

    /// Runs a program of which everything but computing takes no time; the times at which messages were sent.
    fn times(program: &Program) -> Vec<(Token, f64)> {
        let mut execution = program.begin(&Streams::new(1));
        let (mut now, mut sent, mut due, mut actions) = (0.0, Vec::new(), Vec::new(), Vec::new());
        execution.start(&mut actions);
        loop {
            while let Some(action) = actions.pop() {
                match action {
                    Action::Compute { token, cycles } => due.push((now + cycles, token)),
                    Action::Finished(_) => {}
                    Action::Send(message) => {
                        sent.push((message.token, now));
                        execution.happened(Event::Sent(message.token), &mut actions);
                        execution.happened(Event::Arrived(message.token), &mut actions);
                    }
                }
            }
            due.sort_by(|one: &(f64, Token), other| other.0.total_cmp(&one.0));
            let Some((time, token)) = due.pop() else { return sent };
            now = time;
            execution.happened(Event::Computed(token), &mut actions);
        }
    }

    #[test]
    fn a_message_waits_for_what_it_requires() {
        // Rank 0 computes 6 ns = 3 cycles, then sends; rank 1 answers after 10 ns = 5 cycles.
        let operations = [calc(0, 0, 6), send(0, 1, 7, 0), receive(0, 1, 0, 0), receive(1, 0, 7, 0), calc(1, 0, 10), send(1, 0, 0, 0)];
        let program = program(2, &operations, &[after(1, 0), after(4, 3), after(5, 4)]).unwrap();
        assert_eq!((program.messages(), program.longest_message()), (2, 3), "20 bytes are 3 flits of 8");
        assert_eq!(times(&program), [(1, 3.0), (5, 8.0)]);
    }

    #[test]
    fn computations_of_one_processor_run_one_after_the_other() {
        let of = |cpu| {
            let operations = [calc(0, 0, 6), calc(0, cpu, 10), send(0, 1, 0, 0), receive(1, 0, 0, 0)];
            times(&program(2, &operations, &[after(2, 0), after(2, 1)]).unwrap())[0].1
        };
        assert_eq!((of(0), of(1)), (8.0, 5.0));
    }

    #[test]
    fn irequires_waits_only_for_the_start() {
        let operations = [calc(0, 0, 20), send(0, 1, 0, 0), receive(1, 0, 0, 0)];
        let dependency = Dependency { on_start: true, ..after(1, 0) };
        assert_eq!(times(&program(2, &operations, &[dependency]).unwrap()), [(1, 0.0)]);
    }

    #[test]
    fn a_message_to_oneself_needs_no_network() {
        let operations = [calc(0, 0, 4), send(0, 0, 0, 0), receive(0, 0, 0, 0), send(0, 1, 0, 0), receive(1, 0, 0, 0)];
        let program = program(2, &operations, &[after(1, 0), after(3, 2)]).unwrap();
        assert_eq!(program.messages(), 1);
        assert_eq!(times(&program), [(3, 2.0)]);
    }

    /// The first message in the order of the dependencies is the second in the description.
    #[test]
    fn messages_of_one_tag_are_received_in_the_order_in_which_they_are_sent() {
        let operations =
            [send(0, 1, 0, 0), send(0, 1, 0, 0), receive(0, 1, 1, 0), receive(1, 0, 0, 0), send(1, 0, 1, 0), receive(1, 0, 0, 0)];
        // 0 is sent after the answer to 1.
        let program = program(2, &operations, &[after(0, 2), after(4, 3), after(5, 4)]).unwrap();
        assert_eq!(times(&program).iter().map(|(token, _)| *token).collect::<Vec<_>>(), [1, 4, 0]);
    }

    #[test]
    fn sends_and_receives_without_a_partner_are_named() {
        let error = program(2, &[send(0, 1, 5, 3), receive(1, 0, 6, 8)], &[]).unwrap_err();
        let expected = "rank 0: send to 1 tag 5: rank 1 has no `recv … from 0 tag 5` for it; \
            each send needs a receive of its own and each receive a send";
        assert_eq!((error.line, error.problem.as_str()), (3, expected));
        let error = program(2, &[send(0, 1, 5, 3), receive(1, 0, 5, 8), receive(1, 0, 5, 9)], &[]).unwrap_err();
        assert!(error.line == 9 && error.problem.contains("rank 0 has no `send … to 1 tag 5`"), "{error}");
        assert!(program(2, &[send(0, 2, 5, 3)], &[]).unwrap_err().problem.contains("names rank 2; the ranks are 0 to 1"));
    }

    #[test]
    fn cycles_are_found_within_ranks_and_across_them() {
        let error = program(1, &[calc(0, 0, 1), calc(0, 0, 2)], &[after(0, 1), after(1, 0)]).unwrap_err();
        let begin = "operations wait for each other for ever, each for the next and the last for the first:";
        assert_eq!(error.problem, format!("{begin} rank 0: calc 1; rank 0: calc 2"));
        // Each receives before it sends.
        let operations = [receive(0, 1, 0, 2), send(0, 1, 0, 3), receive(1, 0, 0, 6), send(1, 0, 0, 7)];
        let error = program(2, &operations, &[after(1, 0), after(3, 2)]).unwrap_err();
        let names = [
            "rank 0: recv from 1 tag 0 (line 2)",
            "rank 1: send to 0 tag 0 (line 7)",
            "rank 1: recv from 0 tag 0 (line 6)",
            "rank 0: send to 1 tag 0 (line 3)",
        ];
        assert_eq!((error.line, error.problem), (2, format!("{begin} {}", names.join("; "))));
        // A send does not wait for its receive.
        assert!(program(2, &operations, &[after(0, 1), after(2, 3)]).is_ok());
    }

    #[test]
    fn units_are_asked_for_where_they_are_needed() {
        let of = |operations: &[Operation], units| {
            let description = Description { ranks: 2, operations: operations.to_vec(), ..Description::default() };
            Program::new(&description, &linear(2), units)
        };
        let messages = [send(0, 1, 0, 4), receive(1, 0, 0, 9)];
        assert!(of(&messages, Units::default()).unwrap_err().problem.contains("network.flit_bytes"));
        let units = Units { flit_bytes: Some(1), cycle_ns: None };
        assert!(of(&messages, units).is_ok() && of(&[calc(0, 0, 0)], units).is_ok());
        assert!(of(&[calc(0, 0, 3)], units).unwrap_err().problem.contains("network.cycle_ns"));
    }

    #[test]
    fn interfaces_that_a_terminal_lacks_are_refused() {
        let send = Operation { rank: 0, cpu: 0, kind: Kind::Send { to: 1, bytes: 8, tag: 7 }, line: 4 };
        let description = Description { ranks: 2, operations: vec![send], interfaces: [(0, 3)].into(), ..Description::default() };
        let problem = |ports: u32| description.check_interfaces(|_| ports).map_err(|error| (error.line, error.problem));
        let (line, of_one) = problem(1).unwrap_err();
        assert!(line == 4 && of_one.contains("rank 0: send to 1 tag 7 is on nic 3, and its terminal has one port, nic 0;"), "{of_one}");
        assert!(of_one.contains("topology = \"planes\" with planes = 4"), "{of_one}");
        assert!(problem(3).unwrap_err().1.contains("its terminal has 3 ports, nic 0 to 2"));
        assert_eq!(problem(4), Ok(()));
    }
}
