//! What users that share nodes do in turn: slices end, what was begun comes to its end, all nodes switch.

use super::super::node::Computes;
use super::{Due, Nodes};
use crate::endpoint::running::Effect;
use crate::translation::sharing::Draining;

impl Nodes<'_> {
    pub(super) fn is_shared(&self) -> bool {
        self.machine.processors.turns > 1
    }

    pub(super) fn has_work(&self, set: u32) -> bool {
        let sets = &self.machine.processors.sets;
        (0..self.processors.len()).any(|number| sets[self.part(number as u32)] == Some(set) && !self.processors[number].has_ended)
    }

    /// Other sets than the one that runs have something to do.
    pub(super) fn others_wait(&self) -> bool {
        (0..self.machine.processors.turns).any(|set| !self.rotation.is_active(Some(set)) && self.has_work(set))
    }

    /// The processors of the set that runs, or comes to its end.
    pub(super) fn active(&self) -> impl Iterator<Item = u32> + '_ {
        let of_set = |&processor: &u32| self.rotation.is_active(self.machine.processors.sets[self.part(processor)]);
        (0..self.processors.len() as u32).filter(of_set)
    }

    /// Ends the slice of a set that has nothing more to do, and switches when what it has begun has come to its end.
    pub(super) fn turn_over(&mut self, now: u64) {
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

    pub(super) fn is_drained(&self) -> bool {
        let waits = self.machine.sharing.slices.is_some_and(|slices| slices.draining == Draining::Answered);
        self.active().all(|processor| {
            let running = &self.processors[processor as usize];
            !running.is_in_unit && !(waits && running.open > 0)
        })
    }

    /// A slice ends: the processors leave their computations.
    pub(super) fn end_slice(&mut self, now: u64) {
        if !self.rotation.runs() {
            return;
        }
        // Who has ended never has anything to do again: there are no slices any more.
        if !self.others_wait() {
            return;
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

    pub(super) fn begin_slice(&mut self, now: u64) {
        if let Some(slices) = self.machine.sharing.slices.filter(|_| self.is_shared() && self.progress.unfinished > 0) {
            let slice = self.rotation.slice;
            self.schedule(now + slices.cycles, Due::Slice(slice));
        }
    }

    pub(super) fn switch(&mut self, now: u64, effects: &mut Vec<Effect>) {
        let with_work: Vec<bool> = (0..self.machine.processors.turns).map(|set| self.has_work(set)).collect();
        self.rotation.switched(now, |set| with_work[set as usize]);
        self.begin_slice(now);
        for node in 0..self.nodes.len() as u32 {
            self.go_on(node, now, effects);
        }
    }
}
