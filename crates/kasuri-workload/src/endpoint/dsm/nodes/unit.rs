//! What the unit of a node does, that translates node numbers: look-ups, faults, changes of tables.

use super::super::accesses::Request;
use super::super::node::{Computes, Unit};
use super::super::steps::Step;
use super::{Due, Nodes};
use crate::endpoint::running::Effect;
use crate::translation::{Level, Refusal, VirtualNode};

impl Nodes<'_> {
    /// The unit takes the next access of a program, if it has nothing else and the window allows one.
    pub(super) fn fill_unit(&mut self, node: u32, now: u64) {
        while matches!(self.nodes[node as usize].unit, Unit::Idle) {
            let Some(name) = self.next_request(node) else { return };
            let Request { processor, word, .. } = self.requests[name];
            let target = VirtualNode { user: self.table_of(processor), node: word.home };
            let rank = if self.machine.sharing.costs.unit_tables > 0 { self.rank(node, processor) } else { 0 };
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

    pub(super) fn count_look_up(&mut self, processor: u32, is_miss: bool) {
        if self.machine.sharing.costs.level == Level::Hardware {
            let part = self.part(processor);
            self.counts[part].hits += u64::from(!is_miss);
            self.counts[part].misses += u64::from(is_miss);
        }
    }

    /// The place of a processor's user among those that are active at a node.
    pub(super) fn rank(&self, node: u32, processor: u32) -> u32 {
        let (own, processors) = (self.part(processor), &self.machine.processors);
        // Processors stand in the order of their parts.
        let here = processors.on_node[node as usize].chunk_by(|&one, &other| self.part(one) == self.part(other));
        let parts = here.map(|of_part| self.part(of_part[0]));
        parts.filter(|&part| part < own && self.rotation.lets(processors.sets[part])).count() as u32
    }

    /// The access that one of the programs comes to, if the window allows it: all have their turns.
    pub(super) fn next_request(&mut self, node: u32) -> Option<u32> {
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
    pub(super) fn end_look_up(&mut self, node: u32, now: u64) {
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
    pub(super) fn translate(&mut self, node: u32, name: u32, now: u64) {
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
        let cycles = self.memory_cycles(name);
        let end = self.nodes[node as usize].memory.serve(now, cycles);
        self.schedule(end, Due::Local(name));
    }

    /// A request is no longer in the unit: the program goes on behind it.
    pub(super) fn leave_unit(&mut self, processor: u32) {
        let running = &mut self.processors[processor as usize];
        (running.is_in_unit, running.step) = (false, running.step + 1);
    }

    /// A request has ended, or was a fault. Was it open?
    pub(super) fn close(&mut self, name: u32, node: u32) -> bool {
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
    pub(super) fn complete(&mut self, name: u32, now: u64) {
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
    pub(super) fn begin_write(&mut self, number: u32, now: u64, effects: &mut Vec<Effect>) {
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
    pub(super) fn write_tables(&mut self, now: u64, effects: &mut Vec<Effect>) {
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
