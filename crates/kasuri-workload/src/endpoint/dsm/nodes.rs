//! The nodes of a distributed shared memory in time: what their processors wait for, and what becomes due when.

mod interfaces;
mod turns;
mod unit;

use super::Machine;
use super::accesses::{Request, Requests};
use super::interface::Interface;
use super::node::{Computes, Node, Running};
use super::rotation::Rotation;
use super::steps::Step;
use crate::endpoint::running::{Effect, MachinePacket, RunningMachine, Work};
use crate::translation::{SYSTEM, Tables, TranslationCounts, VirtualNode};
use kasuri_network::id::TerminalId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What ends at a time, in the order in which it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// What an interface works on.
    Job(u32),
    /// A computation of a virtual processor, by its serial number.
    Computation(u32, u32),
    /// A look-up in the unit of a node.
    LookUp(u32),
    /// An access of a processor to its own node's memory.
    Local(u32),
    /// A change of a table begins.
    Write(u32),
    /// A slice, by its number.
    Slice(u32),
    /// A switch between users.
    Switch,
}

/// How far the machine is.
#[derive(Debug, Default)]
struct Progress {
    unfinished: usize,
    /// When the last access was answered or the last computation ended.
    last: u64,
    /// Accesses that have been answered.
    answered: u64,
    /// Writes that have been done, of which each has a number.
    writes: u64,
    /// The first thing that may not be: a defect of Kasuri.
    broken: Option<String>,
}

/// All nodes.
#[derive(Debug)]
pub struct Nodes<'a> {
    machine: &'a Machine,
    nodes: Vec<Node>,
    interfaces: Vec<Interface>,
    processors: Vec<Running>,
    requests: Requests,
    tables: Tables,
    rotation: Rotation,
    agenda: BinaryHeap<Reverse<(u64, u64, Due)>>,
    scheduled: u64,
    /// By part.
    counts: Vec<TranslationCounts>,
    /// By table, node and address: what was written last, to be compared with what is read.
    expected: BTreeMap<(u16, u32, u32), u64>,
    /// Nodes whose requests a change of a table holds.
    held: Vec<u32>,
    progress: Progress,
}

impl<'a> Nodes<'a> {
    /// The nodes before time 0; [`RunningMachine::start`] lets them begin.
    pub fn new(machine: &'a Machine) -> Self {
        let processors: Vec<Running> = machine.processors.all.iter().map(|_| Running::default()).collect();
        Self {
            machine,
            nodes: (0..machine.layout.nodes()).map(|_| Node::new(machine.sharing.costs)).collect(),
            interfaces: machine.layout.node_of.iter().map(|_| Interface::default()).collect(),
            requests: Requests::default(),
            tables: machine.sharing.tables.clone(),
            rotation: Rotation::new(machine.processors.turns.max(1)),
            agenda: BinaryHeap::new(),
            scheduled: 0,
            counts: vec![TranslationCounts::default(); machine.processors.parts.len()],
            expected: BTreeMap::new(),
            held: Vec::new(),
            progress: Progress { unfinished: processors.len(), ..Progress::default() },
            processors,
        }
    }

    fn schedule(&mut self, time: u64, due: Due) {
        self.scheduled += 1;
        self.agenda.push(Reverse((time, self.scheduled, due)));
    }

    fn part(&self, processor: u32) -> usize {
        usize::from(self.machine.processors.all[processor as usize].part)
    }

    /// The user by whose table a processor's accesses are translated.
    fn table_of(&self, processor: u32) -> u16 {
        let part = self.machine.processors.parts[self.part(processor)];
        if part.is_system { SYSTEM } else { part.user }
    }

    fn may_run(&self, processor: u32) -> bool {
        self.rotation.lets(self.machine.processors.sets[self.part(processor)])
    }

    /// A request as engines carry it. It belongs to the part of its requester.
    fn packet(&self, name: u32, is_reply: bool) -> MachinePacket {
        let Request { processor, access, source, destination, is_error, .. } = self.requests[name];
        let (source, destination) = if is_reply { (destination, source) } else { (source, destination) };
        let flits = self.machine.constants.flits(access, is_reply, is_error);
        MachinePacket { source, destination, flits, part: self.part(processor) as u8, is_reply, access: name }
    }

    /// All processors of a node go on with their programs as far as they can, and so do its unit and its interfaces.
    fn go_on(&mut self, node: u32, now: u64, effects: &mut Vec<Effect>) {
        let machine = self.machine;
        let here = &machine.processors.on_node[node as usize];
        here.iter().for_each(|&processor| self.advance(processor));
        self.compute(node, now);
        self.send_and_take(node, now, effects);
        // Accesses that were faults may have let a program go on.
        self.compute(node, now);
        here.iter().for_each(|&processor| self.end_program(processor));
        self.turn_over(now);
    }

    /// The unit and the interfaces of a node take what there is for them.
    fn send_and_take(&mut self, node: u32, now: u64, effects: &mut Vec<Effect>) {
        loop {
            self.fill_unit(node, now);
            if !self.begin_jobs(node, now, effects) {
                break;
            }
        }
    }

    /// A program goes on to what it has to wait for.
    fn advance(&mut self, processor: u32) {
        let machine = self.machine;
        let program = &machine.processors.all[processor as usize].program;
        let running = &mut self.processors[processor as usize];
        while running.computes == Computes::No && !running.is_in_unit {
            match program.get(running.step) {
                Some(Step::Settle) if running.open == 0 => running.step += 1,
                Some(Step::Await { phase, writes }) if running.written.get(*phase as usize).copied().unwrap_or(0) >= *writes => {
                    running.step += 1
                }
                Some(Step::Compute { cycles }) => running.computes = Computes::Waits(u64::from(*cycles)),
                _ => break,
            }
        }
    }

    /// The processor element computes for one of the programs that wait for it.
    fn compute(&mut self, node: u32, now: u64) {
        if self.nodes[node as usize].computing.is_some() {
            return;
        }
        let machine = self.machine;
        let waits = |&&processor: &&u32| matches!(self.processors[processor as usize].computes, Computes::Waits(_));
        let next = machine.processors.on_node[node as usize].iter().filter(waits).find(|&&processor| self.may_run(processor));
        let Some(&processor) = next else { return };
        let running = &mut self.processors[processor as usize];
        let Computes::Waits(cycles) = running.computes else { return };
        running.computes = Computes::Until(now + cycles);
        running.serial += 1;
        let serial = running.serial;
        self.nodes[node as usize].computing = Some(processor);
        self.schedule(now + cycles, Due::Computation(processor, serial));
    }

    fn end_computation(&mut self, processor: u32, now: u64, effects: &mut Vec<Effect>) {
        let running = &mut self.processors[processor as usize];
        running.computes = Computes::No;
        running.step += 1;
        running.last = now;
        self.progress.last = self.progress.last.max(now);
        let node = self.machine.processors.all[processor as usize].node;
        self.nodes[node as usize].computing = None;
        self.go_on(node, now, effects);
    }

    fn end_program(&mut self, processor: u32) {
        let length = self.machine.processors.all[processor as usize].program.len();
        let running = &mut self.processors[processor as usize];
        if !running.has_ended && running.step == length && running.open == 0 {
            running.has_ended = true;
            self.progress.unfinished -= 1;
        }
    }
}

impl RunningMachine for Nodes<'_> {
    fn start(&mut self, effects: &mut Vec<Effect>) {
        for (number, write) in (0..).zip(&self.machine.sharing.writes) {
            self.schedule(write.cycle, Due::Write(number));
        }
        for node in 0..self.nodes.len() as u32 {
            self.go_on(node, 0, effects);
        }
        self.begin_slice(0);
        self.proceed(0, effects);
    }

    fn come(&mut self, node: TerminalId, now: u64) {
        self.interfaces[node.index()].come(now);
    }

    fn arrive(&mut self, packet: MachinePacket, name: u32, now: u64, effects: &mut Vec<Effect>) {
        let terminal = packet.destination;
        let Request { processor, word, .. } = self.requests[packet.access];
        let (user, part) = (self.table_of(processor), self.part(processor));
        let logical = if packet.is_reply { self.machine.processors.all[processor as usize].logical } else { word.home };
        let meant = VirtualNode { user, node: logical };
        let is_own = packet.is_reply && user == SYSTEM;
        self.counts[part].misdelivered += u64::from(!is_own && self.tables.demultiplex(terminal, meant).is_none());
        self.interfaces[terminal.index()].waiting.push_back((packet.access, packet.is_reply, name));
        self.send_and_take(self.machine.layout.node(terminal), now, effects);
    }

    fn proceed(&mut self, now: u64, effects: &mut Vec<Effect>) {
        while let Some(&Reverse((time, _, due))) = self.agenda.peek().filter(|next| next.0.0 <= now) {
            self.agenda.pop();
            match due {
                Due::Job(terminal) => self.end_job(terminal, time, effects),
                Due::Computation(processor, serial) if self.processors[processor as usize].serial == serial => {
                    self.end_computation(processor, time, effects);
                }
                Due::LookUp(node) => {
                    self.end_look_up(node, time);
                    self.go_on(node, time, effects);
                }
                Due::Local(name) => self.end_local(name, time, effects),
                Due::Write(number) => self.begin_write(number, time, effects),
                Due::Slice(slice) if slice == self.rotation.slice => self.end_slice(time),
                Due::Switch => self.switch(time, effects),
                Due::Computation(..) | Due::Slice(_) => {}
            }
        }
    }

    fn next_due(&self) -> Option<u64> {
        self.agenda.peek().map(|next| next.0.0)
    }

    fn unfinished(&self) -> usize {
        self.progress.unfinished
    }

    fn end_of(&self, part: usize) -> Option<u64> {
        let own = || self.processors.iter().zip(0..).filter(move |&(_, number)| self.part(number) == part).map(|(running, _)| running);
        own().all(|running| running.has_ended).then(|| own().map(|running| running.last).max().unwrap_or(0))
    }

    fn work(&self, now: u64) -> Work {
        let part = |cycles: u64| if now == 0 { 0.0 } else { cycles as f64 / now as f64 };
        let (busy, awaited) = self.interfaces.iter().map(|interface| (part(interface.busy), part(interface.awaited(now)))).unzip();
        let Rotation { switches, switch_cycles, .. } = self.rotation;
        Work { answered: self.progress.answered, busy, awaited, translations: self.counts.clone(), switches, switch_cycles }
    }

    fn last(&self) -> u64 {
        self.progress.last
    }

    fn broken(&self) -> Option<&str> {
        self.progress.broken.as_deref()
    }
}
