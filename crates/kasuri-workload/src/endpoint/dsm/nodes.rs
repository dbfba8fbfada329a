//! The nodes of a distributed shared memory in time: what each interface works on, and what its processors wait for.

use super::accesses::{Request, Requests};
use super::interface::{Interface, Job, Stage};
use super::memory::Written;
use super::node::{Computes, Node, Running, Unit};
use super::pages::Segments;
use super::programs::Step;
use super::rotation::Rotation;
use super::{Access, Machine};
use crate::endpoint::running::{Effect, MachinePacket, RunningMachine, Work};
use crate::translation::sharing::Draining;
use crate::translation::{Level, Refusal, SYSTEM, Tables, TranslationCounts, VirtualNode};
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

/// The unit that translates.
impl Nodes<'_> {
    /// The unit takes the next access of a program, if it has nothing else and the window allows one.
    fn fill_unit(&mut self, node: u32, now: u64) {
        while matches!(self.nodes[node as usize].unit, Unit::Idle) {
            let Some(name) = self.next_request(node) else { return };
            let Request { processor, word, .. } = self.requests[name];
            let target = VirtualNode { user: self.table_of(processor), node: word.home };
            let rank = self.rank(node, processor);
            let translator = &mut self.nodes[node as usize].translator;
            let misses = translator.misses();
            let look_up = translator.look_up(target, rank);
            let is_miss = translator.misses() > misses;
            self.count_look_up(processor, is_miss);
            self.nodes[node as usize].unit = Unit::LooksUp(name, look_up.walk_cycles);
            if look_up.cycles > 0 {
                return self.schedule(now + u64::from(look_up.cycles), Due::LookUp(node));
            }
            self.end_look_up(node, now);
        }
    }

    fn count_look_up(&mut self, processor: u32, is_miss: bool) {
        if self.machine.sharing.costs.level == Level::Hardware {
            let part = self.part(processor);
            self.counts[part].hits += u64::from(!is_miss);
            self.counts[part].misses += u64::from(is_miss);
        }
    }

    /// The place of a processor's user among those that are active at a node.
    fn rank(&self, node: u32, processor: u32) -> u32 {
        let own = self.part(processor);
        let others = self.machine.processors.on_node[node as usize].iter().map(|&other| self.part(other));
        let mut before: Vec<usize> = others.filter(|&part| part < own && self.rotation.lets(self.machine.processors.sets[part])).collect();
        before.dedup();
        before.len() as u32
    }

    /// The access that one of the programs comes to, if the window allows it: all have their turns.
    fn next_request(&mut self, node: u32) -> Option<u32> {
        let machine = self.machine;
        if self.nodes[node as usize].open >= machine.constants.window {
            return None;
        }
        let here = &machine.processors.on_node[node as usize];
        let first = self.nodes[node as usize].turn;
        let in_turn = (0..here.len()).map(|step| (first + step) % here.len());
        let access_of = |place: usize| {
            let running = &self.processors[here[place] as usize];
            let is_free = !running.is_in_unit && running.computes == Computes::No && self.may_run(here[place]);
            match machine.processors.all[here[place] as usize].program.get(running.step) {
                Some(&Step::Access(word, access)) if is_free => Some((place, word, access)),
                _ => None,
            }
        };
        let (place, word, access) = in_turn.filter_map(access_of).next()?;
        let running = &mut self.processors[here[place] as usize];
        (running.is_in_unit, running.open) = (true, running.open + 1);
        let node = &mut self.nodes[node as usize];
        (node.turn, node.open) = (place + 1, node.open + 1);
        Some(self.requests.begin(Request::new(here[place], word, access)))
    }

    /// A look-up in the unit, or the read of memory that followed it, is done.
    fn end_look_up(&mut self, node: u32, now: u64) {
        let Unit::LooksUp(name, walk_cycles) = self.nodes[node as usize].unit else { return };
        if walk_cycles > 0 {
            let record = &mut self.nodes[node as usize];
            record.unit = Unit::LooksUp(name, 0);
            let end = record.memory.serve(now, walk_cycles);
            return self.schedule(end, Due::LookUp(node));
        }
        self.translate(node, name, now);
    }

    /// The unit has found the entry: the access goes to a node, is held, or is a fault of which the processor learns.
    fn translate(&mut self, node: u32, name: u32, now: u64) {
        let Request { processor, word, .. } = self.requests[name];
        let machine = self.machine;
        let (user, from) = (self.table_of(processor), machine.processors.all[processor as usize].logical);
        let part = machine.processors.parts[self.part(processor)];
        let found = if part.is_system && !part.is_supervisor {
            None
        } else {
            match self.tables.begin(user, from, word.home, word.address.into()) {
                Err(Refusal::Held) => {
                    self.held.push(node);
                    self.nodes[node as usize].unit = Unit::Held(name, now);
                    return;
                }
                found => found.ok(),
            }
        };
        let counts = &mut self.counts[usize::from(machine.processors.all[processor as usize].part)];
        let Some(destination) = found else {
            counts.faults += 1;
            self.nodes[node as usize].unit = Unit::Idle;
            self.leave_unit(processor);
            self.close(name, node);
            return self.advance(processor);
        };
        counts.accesses += 1;
        self.requests[name].destination = destination;
        if machine.layout.node(destination) != node {
            self.nodes[node as usize].unit = Unit::Ready(name);
            return;
        }
        // Its own memory: not through an interface.
        self.nodes[node as usize].unit = Unit::Idle;
        self.leave_unit(processor);
        let end = self.nodes[node as usize].memory.serve(now, machine.constants.memory_cycles);
        self.schedule(end, Due::Local(name));
    }

    /// A request is no longer in the unit: the program goes on behind it.
    fn leave_unit(&mut self, processor: u32) {
        let running = &mut self.processors[processor as usize];
        (running.is_in_unit, running.step) = (false, running.step + 1);
    }

    /// A request has ended, or was a fault. Was it open?
    fn close(&mut self, name: u32, node: u32) -> bool {
        let processor = self.requests[name].processor;
        if !self.requests.end(name) {
            let part = self.part(processor);
            self.counts[part].ended_wrongly += 1;
            let what = format!("access {name} of node {node} was answered although it was not open");
            self.progress.broken.get_or_insert(what);
            return false;
        }
        self.processors[processor as usize].open -= 1;
        self.nodes[node as usize].open -= 1;
        true
    }

    /// An access has come to its end at its requester.
    fn complete(&mut self, name: u32, now: u64) {
        let Request { processor, word, .. } = self.requests[name];
        let (part, machine) = (self.part(processor), self.machine);
        let place = &machine.processors.all[processor as usize];
        if !self.close(name, place.node) {
            return;
        }
        self.tables.ended(self.table_of(processor), place.logical, word.home);
        self.counts[part].ended += 1;
        self.progress.answered += 1;
        self.processors[processor as usize].last = now;
        self.progress.last = self.progress.last.max(now);
    }

    /// A change of a table begins: its entry takes no more accesses, and the units forget it.
    fn begin_write(&mut self, number: u32, now: u64, effects: &mut Vec<Effect>) {
        let write = &self.machine.sharing.writes[number as usize];
        if self.tables.begin_update(write.user, vec![(write.node, write.physical.clone())]).is_err() {
            // The change before it is not written yet.
            return self.schedule(now + 1, Due::Write(number));
        }
        let target = VirtualNode { user: write.user, node: write.node };
        self.nodes.iter_mut().for_each(|node| {
            node.translator.invalidate(target);
        });
        self.write_tables(now, effects);
    }

    /// Writes the changes for which no access is under way any more, and lets go what they have held.
    fn write_tables(&mut self, now: u64, effects: &mut Vec<Effect>) {
        if !self.tables.is_updating() {
            return;
        }
        let (parts, counts) = (&self.machine.processors.parts, &mut self.counts);
        let has_written = self.tables.finish_updates(|written| {
            let own = (0..parts.len()).filter(|&part| parts[part].user == written.user);
            own.for_each(|part| counts[part].changes += 1);
        });
        if !has_written {
            return;
        }
        for node in std::mem::take(&mut self.held) {
            let Unit::Held(name, since) = self.nodes[node as usize].unit else { continue };
            let part = self.part(self.requests[name].processor);
            self.counts[part].held_cycles += now - since;
            self.translate(node, name, now);
            self.go_on(node, now, effects);
        }
    }
}

/// The interfaces.
impl Nodes<'_> {
    /// Each interface of a node that has nothing to do issues a request of its node, or else takes a packet that stands before it. Has one
    /// taken the request of the unit?
    fn begin_jobs(&mut self, node: u32, now: u64, effects: &mut Vec<Effect>) -> bool {
        let machine = self.machine;
        let mut has_issued = false;
        for &terminal in &machine.layout.interfaces[node as usize] {
            if self.interfaces[terminal.index()].job.is_some() {
                continue;
            }
            let issued = if has_issued { None } else { self.take_ready(node, terminal) };
            has_issued |= issued.is_some();
            let Some(job) = issued.or_else(|| self.next_arrived(terminal, now, effects)) else { continue };
            let cycles = u64::from(machine.constants.interface_cycles);
            let interface = &mut self.interfaces[terminal.index()];
            (interface.job, interface.busy) = (Some(job), interface.busy + cycles);
            self.schedule(now + cycles, Due::Job(terminal.0));
        }
        has_issued
    }

    /// The request that waits in the unit, if this interface is one of those that the user's table names.
    fn take_ready(&mut self, node: u32, terminal: TerminalId) -> Option<Job> {
        let Unit::Ready(name) = self.nodes[node as usize].unit else { return None };
        let processor = self.requests[name].processor;
        let user = self.table_of(processor);
        let logical = self.machine.processors.all[processor as usize].logical;
        if user != SYSTEM && !self.tables.table(user).physical(logical).contains(&terminal) {
            return None;
        }
        self.requests[name].source = terminal;
        self.nodes[node as usize].unit = Unit::Idle;
        self.leave_unit(processor);
        Some(Job::Issue(name))
    }

    /// The packet that has stood before an interface for longest.
    fn next_arrived(&mut self, terminal: TerminalId, now: u64, effects: &mut Vec<Effect>) -> Option<Job> {
        let interface = &mut self.interfaces[terminal.index()];
        let (request, is_reply, name) = interface.waiting.pop_front()?;
        interface.take(now);
        effects.push(Effect::Taken { node: terminal, name });
        Some(if is_reply { Job::Accept(request) } else { Job::Serve(request, Stage::Received) })
    }

    fn end_job(&mut self, terminal: u32, now: u64, effects: &mut Vec<Effect>) {
        match self.interfaces[terminal as usize].job.take() {
            Some(Job::Issue(name)) => effects.push(Effect::Send(self.packet(name, false))),
            Some(Job::Serve(name, stage)) => {
                if !self.serve(TerminalId(terminal), name, stage, now) {
                    return;
                }
                effects.push(Effect::Send(self.packet(name, true)));
            }
            Some(Job::Accept(name)) => {
                self.complete(name, now);
                self.write_tables(now, effects);
            }
            None => {}
        }
        self.go_on(self.machine.layout.node_of[terminal as usize], now, effects);
    }

    /// A request is served one stage further. Is it done?
    fn serve(&mut self, terminal: TerminalId, name: u32, mut stage: Stage, now: u64) -> bool {
        loop {
            let (next, end) = match stage {
                Stage::Received => self.look_up_page(terminal, name, now),
                Stage::LookedUp { walk_cycles } => (Stage::Translated, self.memory_at(terminal).serve(now, walk_cycles)),
                Stage::Translated if self.is_missing(name) => (Stage::Accessed, now),
                Stage::Translated => {
                    let cycles = self.machine.constants.memory_cycles;
                    (Stage::Accessed, self.memory_at(terminal).serve(now, cycles))
                }
                Stage::Accessed => {
                    self.access(name, Some(terminal));
                    return true;
                }
            };
            if end > now {
                let interface = &mut self.interfaces[terminal.index()];
                (interface.job, interface.busy) = (Some(Job::Serve(name, next)), interface.busy + (end - now));
                self.schedule(end, Due::Job(terminal.0));
                return false;
            }
            stage = next;
        }
    }

    fn memory_at(&mut self, terminal: TerminalId) -> &mut super::memory::Memory {
        &mut self.nodes[self.machine.layout.node(terminal) as usize].memory
    }

    /// Global addresses: the unit of the receiving node looks the page up.
    fn look_up_page(&mut self, terminal: TerminalId, name: u32, now: u64) -> (Stage, u64) {
        let Request { processor, word, .. } = self.requests[name];
        let (user, sharing) = (self.table_of(processor), &self.machine.sharing);
        if !sharing.addresses.are_global || user == SYSTEM {
            return (Stage::Translated, now);
        }
        let page = self.machine.processors.segments.page(word.address);
        let node = self.machine.layout.node(terminal) as usize;
        let is_hit = self.nodes[node].pages.access((user, word.home, page));
        let counts = &mut self.counts[usize::from(self.machine.processors.all[processor as usize].part)];
        counts.page_hits += u64::from(is_hit);
        counts.page_misses += u64::from(!is_hit);
        let walk_cycles = if is_hit { 0 } else { sharing.costs.walk_cycles };
        (Stage::LookedUp { walk_cycles }, now + u64::from(sharing.costs.hit_cycles))
    }

    /// Where the word of a request lies at its node; `None` if its page is missing.
    fn place(&self, name: u32) -> Option<u64> {
        let Request { processor, word, .. } = self.requests[name];
        if self.table_of(processor) == SYSTEM {
            return Some(Segments::place_of_system(word.address));
        }
        let home = self.machine.processors.find(self.part(processor) as u8, word.home)?;
        self.machine.processors.segments.place(home, word.address)
    }

    fn is_missing(&mut self, name: u32) -> bool {
        let is_missing = self.place(name).is_none();
        if is_missing {
            let part = self.part(self.requests[name].processor);
            self.counts[part].page_faults += 1;
            self.requests[name].is_error = true;
        }
        is_missing
    }

    /// The memory of a request's node does what it asks for. `by`: the interface through which it came.
    fn access(&mut self, name: u32, by: Option<TerminalId>) {
        let Request { processor, word, access, destination, is_error, .. } = self.requests[name];
        let Some(place) = self.place(name).filter(|_| !is_error) else { return };
        let (part, user, node) = (self.part(processor), self.table_of(processor), self.machine.layout.node(destination));
        // The operating system names the memory of a node by any of its numbers.
        let word_of = (user, if user == SYSTEM { node } else { word.home }, word.address);
        let memory = &mut self.nodes[node as usize].memory;
        match access {
            Access::Read => {
                let Written { value, by: written_by } = memory.read(place);
                let counts = &mut self.counts[part];
                counts.wrong_words += u64::from(self.expected.get(&word_of).copied().unwrap_or(0) != value);
                counts.words_through_others += u64::from(by.is_some() && written_by.is_some_and(|other| Some(other) != by));
            }
            Access::Write { phase } => {
                self.progress.writes += 1;
                memory.write(place, Written { value: self.progress.writes, by });
                self.expected.insert(word_of, self.progress.writes);
                if let Some(home) = self.machine.processors.find(part as u8, word.home).filter(|_| user != SYSTEM) {
                    let written = &mut self.processors[home as usize].written;
                    written.resize(written.len().max(phase as usize + 1), 0);
                    written[phase as usize] += 1;
                }
            }
        }
    }

    fn end_local(&mut self, name: u32, now: u64, effects: &mut Vec<Effect>) {
        if !self.is_missing(name) {
            self.access(name, None);
        }
        let node = self.machine.processors.all[self.requests[name].processor as usize].node;
        self.complete(name, now);
        self.write_tables(now, effects);
        self.go_on(node, now, effects);
    }
}

/// Time sharing.
impl Nodes<'_> {
    fn is_shared(&self) -> bool {
        self.machine.processors.turns > 1
    }

    fn has_work(&self, set: u32) -> bool {
        let sets = &self.machine.processors.sets;
        (0..self.processors.len()).any(|number| sets[self.part(number as u32)] == Some(set) && !self.processors[number].has_ended)
    }

    /// Other sets than the one that runs have something to do.
    fn others_wait(&self) -> bool {
        (0..self.machine.processors.turns).any(|set| !self.rotation.is_active(Some(set)) && self.has_work(set))
    }

    /// The processors of the set that runs, or comes to its end.
    fn active(&self) -> impl Iterator<Item = u32> + '_ {
        let of_set = |&processor: &u32| self.rotation.is_active(self.machine.processors.sets[self.part(processor)]);
        (0..self.processors.len() as u32).filter(of_set)
    }

    /// Ends the slice of a set that has nothing more to do, and switches when what it has begun has come to its end.
    fn turn_over(&mut self, now: u64) {
        if !self.is_shared() {
            return;
        }
        if self.rotation.runs() && self.active().all(|processor| self.processors[processor as usize].has_ended) && self.others_wait() {
            self.rotation.end_slice(now);
        }
        if self.rotation.drains() && self.is_drained() {
            self.rotation.drained();
            let cycles = self.machine.sharing.slices.map_or(0, |slices| slices.switch_cycles);
            self.schedule(now + cycles, Due::Switch);
        }
    }

    fn is_drained(&self) -> bool {
        let waits = self.machine.sharing.slices.is_some_and(|slices| slices.draining == Draining::Answered);
        self.active().all(|processor| {
            let running = &self.processors[processor as usize];
            !running.is_in_unit && !(waits && running.open > 0)
        })
    }

    /// A slice ends: the processors leave their computations.
    fn end_slice(&mut self, now: u64) {
        if !self.rotation.runs() {
            return;
        }
        if !self.others_wait() {
            return self.begin_slice(now);
        }
        self.rotation.end_slice(now);
        for processor in self.active().collect::<Vec<u32>>() {
            let running = &mut self.processors[processor as usize];
            if let Computes::Until(end) = running.computes {
                running.computes = Computes::Waits(end - now);
                running.serial += 1;
                self.nodes[self.machine.processors.all[processor as usize].node as usize].computing = None;
            }
        }
        self.turn_over(now);
    }

    fn begin_slice(&mut self, now: u64) {
        if let Some(slices) = self.machine.sharing.slices.filter(|_| self.is_shared() && self.progress.unfinished > 0) {
            let slice = self.rotation.slice;
            self.schedule(now + slices.cycles, Due::Slice(slice));
        }
    }

    fn switch(&mut self, now: u64, effects: &mut Vec<Effect>) {
        let with_work: Vec<bool> = (0..self.machine.processors.turns).map(|set| self.has_work(set)).collect();
        self.rotation.switched(now, |set| with_work[set as usize]);
        self.begin_slice(now);
        for node in 0..self.nodes.len() as u32 {
            self.go_on(node, now, effects);
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
