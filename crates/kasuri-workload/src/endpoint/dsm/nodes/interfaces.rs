//! What the interfaces of a node do: they issue its requests, serve those of others from its memory, and accept answers.

use super::super::accesses::Request;
use super::super::interface::{Job, Stage};
use super::super::memory::{Memory, Written};
use super::super::node::Unit;
use super::super::pages::Segments;
use super::super::steps::Access;
use super::super::steps::{WORD_BYTES, Word};
use super::{Due, Nodes};
use crate::endpoint::running::Effect;
use crate::translation::SYSTEM;
use kasuri_network::id::TerminalId;

impl Nodes<'_> {
    /// Each interface of a node that has nothing to do issues a request of its node, or else takes a packet that stands before it. Has one
    /// taken the request of the unit?
    pub(super) fn begin_jobs(&mut self, node: u32, now: u64, effects: &mut Vec<Effect>) -> bool {
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
    pub(super) fn take_ready(&mut self, node: u32, terminal: TerminalId) -> Option<Job> {
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
    pub(super) fn next_arrived(&mut self, terminal: TerminalId, now: u64, effects: &mut Vec<Effect>) -> Option<Job> {
        let interface = &mut self.interfaces[terminal.index()];
        let (request, is_reply, name) = interface.waiting.pop_front()?;
        interface.take(now);
        effects.push(Effect::Taken { node: terminal, name });
        Some(if is_reply { Job::Accept(request) } else { Job::Serve(request, Stage::Received) })
    }

    pub(super) fn end_job(&mut self, terminal: u32, now: u64, effects: &mut Vec<Effect>) {
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
    pub(super) fn serve(&mut self, terminal: TerminalId, name: u32, mut stage: Stage, now: u64) -> bool {
        loop {
            let (next, end) = match stage {
                Stage::Received => self.look_up_page(terminal, name, now),
                Stage::LookedUp { walk_cycles } => (Stage::Translated, self.memory_at(terminal).serve(now, walk_cycles)),
                Stage::Translated if self.is_missing(name) => (Stage::Accessed, now),
                Stage::Translated => {
                    let cycles = self.memory_cycles(name);
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

    /// Cycles for which a request has the memory: each of its words takes them.
    pub(super) fn memory_cycles(&self, name: u32) -> u32 {
        self.machine.constants.memory_cycles.saturating_mul(self.requests[name].access.words())
    }

    pub(super) fn memory_at(&mut self, terminal: TerminalId) -> &mut Memory {
        &mut self.nodes[self.machine.layout.node(terminal) as usize].memory
    }

    /// Global addresses: the unit of the receiving node looks the pages up, one after the other; a word has one.
    pub(super) fn look_up_page(&mut self, terminal: TerminalId, name: u32, now: u64) -> (Stage, u64) {
        let Request { processor, word, access, .. } = self.requests[name];
        let (user, sharing) = (self.table_of(processor), &self.machine.sharing);
        if !sharing.addresses.are_global || user == SYSTEM {
            return (Stage::Translated, now);
        }
        let segments = &self.machine.processors.segments;
        let pages = segments.page(word.address)..=segments.page(word.address + (access.words() - 1) * WORD_BYTES);
        let node = self.machine.layout.node(terminal) as usize;
        let counts = &mut self.counts[usize::from(self.machine.processors.all[processor as usize].part)];
        let (mut hit_cycles, mut walk_cycles) = (0, 0);
        for page in pages {
            let is_hit = self.nodes[node].pages.access((user, word.home, page));
            counts.page_hits += u64::from(is_hit);
            counts.page_misses += u64::from(!is_hit);
            hit_cycles += u64::from(sharing.costs.hit_cycles);
            walk_cycles += if is_hit { 0 } else { sharing.costs.walk_cycles };
        }
        (Stage::LookedUp { walk_cycles }, now + hit_cycles)
    }

    /// Where a word lies at its node; `None` if its page is missing.
    fn place(&self, processor: u32, word: Word) -> Option<u64> {
        if self.table_of(processor) == SYSTEM {
            return Some(Segments::place_of_system(word.address));
        }
        let home = self.machine.processors.find(self.part(processor) as u8, word.home)?;
        self.machine.processors.segments.place(home, word.address)
    }

    /// Is a page missing that a request needs?
    pub(super) fn is_missing(&mut self, name: u32) -> bool {
        let Request { processor, word, access, .. } = self.requests[name];
        let is_missing = word.and_following(access.words()).any(|word| self.place(processor, word).is_none());
        if is_missing {
            let part = self.part(self.requests[name].processor);
            self.counts[part].page_faults += 1;
            self.requests[name].is_error = true;
        }
        is_missing
    }

    /// The memory of a request's node does what it asks for. `by`: the interface through which it came.
    pub(super) fn access(&mut self, name: u32, by: Option<TerminalId>) {
        let Request { word, access, is_error, .. } = self.requests[name];
        if !is_error {
            word.and_following(access.words()).for_each(|word| self.access_word(name, word, by));
        }
    }

    fn access_word(&mut self, name: u32, word: Word, by: Option<TerminalId>) {
        let Request { processor, access, destination, .. } = self.requests[name];
        let Some(place) = self.place(processor, word) else { return };
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
            Access::Write { phase, .. } => {
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

    pub(super) fn end_local(&mut self, name: u32, now: u64, effects: &mut Vec<Effect>) {
        if !self.is_missing(name) {
            self.access(name, None);
        }
        let node = self.machine.processors.all[self.requests[name].processor as usize].node;
        self.complete(name, now);
        self.write_tables(now, effects);
        self.go_on(node, now, effects);
    }
}
