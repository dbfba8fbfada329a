//! Part of a schedule: what is left of it between some of its ranks.

use super::contract::Schedule;

/// Only the messages between some ranks of a schedule; phases without any are left out. No channel carries more than in the whole.
#[derive(Debug)]
pub(super) struct Part {
    of: Box<dyn Schedule>,
    /// The number of each rank in the whole, and of the whole's ranks here.
    whole: Vec<u32>,
    here: Vec<Option<u32>>,
    /// The phases that are left.
    phases: Vec<u32>,
}

impl Part {
    /// The part between these ranks of a schedule for `ranks` ranks.
    pub(super) fn new(of: Box<dyn Schedule>, ranks: u32, whole: Vec<u32>) -> Self {
        let mut here = vec![None; ranks as usize];
        (0..).zip(&whole).for_each(|(rank, &number)| here[number as usize] = Some(rank));
        let mut part = Self { of, whole, here, phases: Vec::new() };
        let has_message = |&phase: &u32| {
            part.whole.iter().any(|&rank| part.of.destination(rank, phase).is_some_and(|to| part.here[to as usize].is_some()))
        };
        part.phases = (0..part.of.phases()).filter(has_message).collect();
        part
    }

    fn phase(&self, phase: u32) -> u32 {
        self.phases[phase as usize]
    }
}

impl Schedule for Part {
    fn phases(&self) -> u32 {
        self.phases.len() as u32
    }

    fn is_full(&self) -> bool {
        false
    }

    fn destination(&self, rank: u32, phase: u32) -> Option<u32> {
        self.here[self.of.destination(self.whole[rank as usize], self.phase(phase))? as usize]
    }

    fn source(&self, rank: u32, phase: u32) -> Option<u32> {
        self.here[self.of.source(self.whole[rank as usize], self.phase(phase))? as usize]
    }
}
