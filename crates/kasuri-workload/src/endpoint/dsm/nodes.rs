//! The nodes of a distributed shared memory in time: what each interface works on, and what its processor waits for.

use super::programs::Step;
use super::{Access, Machine, Parcel};
use crate::endpoint::running::{Effect, MachinePacket, RunningMachine, Work};
use kasuri_network::id::TerminalId;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// What an interface works on.
#[derive(Clone, Copy, Debug)]
enum Job {
    Issue(Parcel),
    Serve(Parcel),
    Accept(Parcel),
}

/// What ends at a time, in the order in which it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Job(u32),
    Computation(u32),
}

/// A node in time.
#[derive(Debug, Default)]
struct Node {
    /// The place in the program.
    step: usize,
    /// Does the processor compute?
    computes: bool,
    /// Has the program ended, and are all its requests answered?
    ended: bool,
    /// When its last request was answered or its last computation ended.
    last: u64,
    /// Requests that are not answered, by number.
    open: BTreeSet<u32>,
    /// The next request's number.
    next: u32,
    /// Writes to this memory by phase.
    written: Vec<u32>,
    /// What the interface works on.
    job: Option<Job>,
    /// Packets before the interface.
    waiting: VecDeque<(Parcel, u32)>,
    /// Cycles for which the interface has worked.
    busy: u64,
    /// Packets for this node in its router, since when there is one, and the cycles for which there has been one before.
    held: u32,
    held_since: u64,
    held_cycles: u64,
}

/// All nodes.
#[derive(Debug)]
pub struct Nodes<'a> {
    machine: &'a Machine,
    nodes: Vec<Node>,
    agenda: BinaryHeap<Reverse<(u64, u64, Due)>>,
    scheduled: u64,
    unfinished: usize,
    /// When the last request was answered or the last computation ended.
    last: u64,
    /// Requests that have been answered.
    answered: u64,
    /// The first request that was answered although it was not open: a defect of Kasuri.
    broken: Option<String>,
}

impl<'a> Nodes<'a> {
    /// The nodes before time 0; [`RunningMachine::start`] lets them begin.
    pub fn new(machine: &'a Machine) -> Self {
        let nodes: Vec<Node> = machine.programs.iter().map(|_| Node::default()).collect();
        let unfinished = nodes.len();
        Self { machine, nodes, agenda: BinaryHeap::new(), scheduled: 0, unfinished, last: 0, answered: 0, broken: None }
    }

    fn schedule(&mut self, time: u64, due: Due) {
        self.scheduled += 1;
        self.agenda.push(Reverse((time, self.scheduled, due)));
    }

    /// The interface has nothing to do: it issues a request of its processor, or else takes a packet that stands before it.
    fn begin_job(&mut self, node: u32, now: u64, effects: &mut Vec<Effect>) {
        if self.nodes[node as usize].job.is_some() {
            return;
        }
        let issued = self.next_request(node).map(Job::Issue);
        let Some(job) = issued.or_else(|| self.next_arrived(node, now, effects)) else { return };
        let constants = &self.machine.constants;
        let memory = if matches!(job, Job::Serve(_)) { constants.memory_cycles } else { 0 };
        let cycles = u64::from(constants.interface_cycles) + u64::from(memory);
        let record = &mut self.nodes[node as usize];
        (record.job, record.busy) = (Some(job), record.busy + cycles);
        self.schedule(now + cycles, Due::Job(node));
    }

    /// The packet that has stood before the interface for longest.
    fn next_arrived(&mut self, node: u32, now: u64, effects: &mut Vec<Effect>) -> Option<Job> {
        let (parcel, name) = self.nodes[node as usize].waiting.pop_front()?;
        self.take(node, now);
        effects.push(Effect::Taken { node: TerminalId(node), name });
        Some(if parcel.is_reply { Job::Accept(parcel) } else { Job::Serve(parcel) })
    }

    /// The router has one packet less for its own node.
    fn take(&mut self, node: u32, now: u64) {
        let node = &mut self.nodes[node as usize];
        node.held -= 1;
        if node.held == 0 {
            node.held_cycles += now - node.held_since;
        }
    }

    /// The access that the program comes to, if the window allows it.
    fn next_request(&mut self, node: u32) -> Option<Parcel> {
        let window = self.machine.constants.window as usize;
        let record = &mut self.nodes[node as usize];
        let (home, access, phase) = match self.machine.programs[node as usize].get(record.step)? {
            Step::Read { home } => (*home, Access::Read, 0),
            Step::Write { home, phase } => (*home, Access::Write, *phase),
            Step::Settle | Step::Await { .. } | Step::Compute { .. } => return None,
        };
        if record.open.len() >= window {
            return None;
        }
        let number = record.next;
        record.next += 1;
        record.step += 1;
        record.open.insert(number);
        Some(Parcel { requester: TerminalId(node), home: TerminalId(home), access, number, phase, is_reply: false })
    }

    fn end_job(&mut self, node: u32, now: u64, effects: &mut Vec<Effect>) {
        let record = &mut self.nodes[node as usize];
        match record.job.take() {
            Some(Job::Issue(parcel)) => effects.push(Effect::Send(self.machine.packet(&parcel))),
            Some(Job::Serve(parcel)) => {
                if parcel.access == Access::Write {
                    let phase = parcel.phase as usize;
                    record.written.resize(record.written.len().max(phase + 1), 0);
                    record.written[phase] += 1;
                }
                effects.push(Effect::Send(self.machine.packet(&Parcel { is_reply: true, ..parcel })));
            }
            Some(Job::Accept(parcel)) => {
                if !record.open.remove(&parcel.number) && self.broken.is_none() {
                    self.broken = Some(format!("request {} of node {node} was answered although it was not open", parcel.number));
                }
                self.answered += 1;
                record.last = now;
                self.last = self.last.max(now);
            }
            None => {}
        }
        self.go_on(node, now, effects);
    }

    /// The processor goes on with its program as far as it can, and so does the interface.
    fn go_on(&mut self, node: u32, now: u64, effects: &mut Vec<Effect>) {
        let program = &self.machine.programs[node as usize];
        let record = &mut self.nodes[node as usize];
        while !record.computes {
            match program.get(record.step) {
                Some(Step::Settle) if record.open.is_empty() => record.step += 1,
                Some(Step::Await { phase, writes }) if record.written.get(*phase as usize).copied().unwrap_or(0) >= *writes => {
                    record.step += 1
                }
                Some(Step::Compute { cycles }) => {
                    record.computes = true;
                    let due = now + u64::from(*cycles);
                    self.schedule(due, Due::Computation(node));
                    break;
                }
                _ => break,
            }
        }
        self.begin_job(node, now, effects);
        let record = &mut self.nodes[node as usize];
        if !record.ended && record.step == program.len() && record.open.is_empty() {
            record.ended = true;
            self.unfinished -= 1;
        }
    }
}

impl RunningMachine for Nodes<'_> {
    fn start(&mut self, effects: &mut Vec<Effect>) {
        for node in 0..self.nodes.len() as u32 {
            self.go_on(node, 0, effects);
        }
        self.proceed(0, effects);
    }

    fn come(&mut self, node: TerminalId, now: u64) {
        let node = &mut self.nodes[node.index()];
        if node.held == 0 {
            node.held_since = now;
        }
        node.held += 1;
    }

    fn arrive(&mut self, packet: MachinePacket, name: u32, now: u64, effects: &mut Vec<Effect>) {
        let node = packet.destination;
        self.nodes[node.index()].waiting.push_back((packet.into(), name));
        self.begin_job(node.0, now, effects);
    }

    fn proceed(&mut self, now: u64, effects: &mut Vec<Effect>) {
        while let Some(&Reverse((time, _, due))) = self.agenda.peek().filter(|next| next.0.0 <= now) {
            self.agenda.pop();
            match due {
                Due::Job(node) => self.end_job(node, time, effects),
                Due::Computation(node) => {
                    self.nodes[node as usize].computes = false;
                    self.nodes[node as usize].step += 1;
                    self.nodes[node as usize].last = time;
                    self.last = self.last.max(time);
                    self.go_on(node, time, effects);
                }
            }
        }
    }

    fn next_due(&self) -> Option<u64> {
        self.agenda.peek().map(|next| next.0.0)
    }

    fn unfinished(&self) -> usize {
        self.unfinished
    }

    fn end_of(&self, part: usize) -> Option<u64> {
        let own = || self.nodes.iter().zip(&self.machine.part_of).filter(move |&(_, &of)| usize::from(of) == part).map(|(node, _)| node);
        own().all(|node| node.ended).then(|| own().map(|node| node.last).max().unwrap_or(0))
    }

    fn work(&self, now: u64) -> Work {
        let part = |cycles: u64| if now == 0 { 0.0 } else { cycles as f64 / now as f64 };
        let held = |node: &Node| node.held_cycles + if node.held > 0 { now.saturating_sub(node.held_since) } else { 0 };
        let (busy, awaited) = self.nodes.iter().map(|node| (part(node.busy), part(held(node)))).unzip();
        Work { answered: self.answered, busy, awaited }
    }

    fn last(&self) -> u64 {
        self.last
    }

    fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }
}
