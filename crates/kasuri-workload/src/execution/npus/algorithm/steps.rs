//! A phase as steps that follow each other: what formulas need of it.
//!
//! The steps come from the same state machines that run, as if all members were always at the same point.

use super::{Algorithm, Halving, Place, Ring, Tree};
use std::ops::Range;

/// A step of a phase: the members wait for the endpoint, some reduce, all that send do so at once, and it ends when that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// So many of them follow each other.
    pub times: u64,
    /// Bytes that are reduced before.
    pub reduces: Option<u64>,
    /// Bytes of a message.
    pub bytes: u64,
    /// Who sends to whom.
    pub sends: Sends,
}

/// Who sends to whom in a step, by places among the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sends {
    /// Everybody to those at some distances.
    Shift {
        /// From 1.
        distances: Range<u32>,
        /// Ahead, or behind.
        ahead: bool,
    },
    /// From one place to another.
    Listed(Vec<(u32, u32)>),
}

/// The steps of a phase, and what is reduced behind the last.
pub(in super::super) type Steps = (Vec<Step>, Option<u64>);

impl Algorithm {
    /// The steps of a phase that has not begun, in which one of its members has this place.
    pub(in super::super) fn steps(&self, place: &Place) -> Result<Steps, String> {
        match self.clone() {
            Self::Ring(ring) => Ok(ring.steps()),
            Self::Halving(halving) => halving.steps(),
            Self::Tree(tree) => Ok(tree.steps(place)),
            Self::Custom(_) => Ok((Vec::new(), None)),
        }
    }
}

/// Adds a step; one like the last is counted with it.
fn push(steps: &mut Vec<Step>, step: Step) {
    match steps.last_mut() {
        Some(last) if (last.reduces, last.bytes) == (step.reduces, step.bytes) && last.sends == step.sends => last.times += step.times,
        _ => steps.push(step),
    }
}

impl Ring {
    fn steps(mut self) -> Steps {
        let (mut steps, mut ready) = (Vec::new(), self.parallel);
        let others = self.place.count - 1;
        // Packets that are under way at once are charged one by one: only the one that is charged most often counts.
        let mut charges = vec![0_u32; self.parallel as usize];
        loop {
            let reduces = self.insert_several(ready, &mut charges).then_some(self.bytes);
            if self.sends_left == 0 {
                return (steps, reduces);
            }
            let place = (self.sent % u64::from(others)) as u32;
            // A direct all-reduce begins its second half when all of the first have come.
            let count = self.parallel.min(self.sends_left).min(if self.direct { others - place } else { 1 });
            let first = if self.direct { 1 + place } else { 1 };
            self.sends_left -= count;
            self.sent += u64::from(count);
            let sends = Sends::Shift { distances: first..first + count, ahead: self.up };
            push(&mut steps, Step { times: 1, reduces, bytes: self.bytes, sends });
            ready = count;
        }
    }

    /// Inserts packets in turn: whether one of them is now charged more often than any before.
    fn insert_several(&mut self, count: u32, charges: &mut [u32]) -> bool {
        let most = |charges: &[u32]| charges.iter().copied().max();
        let before = most(charges);
        for _ in 0..count {
            let turn = (self.inserted % u64::from(self.parallel)) as usize;
            charges[turn] += u32::from(self.insert());
        }
        most(charges) > before
    }
}

impl Halving {
    fn steps(mut self) -> Result<Steps, String> {
        let mut steps = Vec::new();
        loop {
            let distance = self.distance;
            let (charged, bytes) = self.insert();
            let reduces = charged.then_some(bytes);
            if self.sends_left == 0 {
                return Ok((steps, reduces));
            }
            let n = self.place.count;
            let partner = |place: u32| Self::partner_of(place, distance, n);
            if (0..n).any(|place| partner(partner(place)) != place) {
                return Err(format!(
                    "halvingDoubling over {n} NPUs has no pairs in which each waits for the other; it needs a power of two"
                ));
            }
            self.sends_left -= 1;
            let sends = Sends::Listed((0..n).map(|place| (place, partner(place))).collect());
            push(&mut steps, Step { times: 1, reduces, bytes, sends });
        }
    }
}

impl Tree {
    /// Level by level up to the root, and down again.
    fn steps(&self, place: &Place) -> Steps {
        let count = place.count;
        let levels = count.trailing_zeros();
        let mut up: Vec<Vec<(u32, u32)>> = vec![Vec::new(); levels as usize];
        for position in 0..count {
            let tree = Self::new(self.bytes, position, count, self.root_last, |place| place);
            if let Some(parent) = tree.parent {
                let number = if self.root_last { position + 1 } else { position };
                up[number.trailing_zeros() as usize].push((position, parent));
            }
        }
        let down = up.iter().rev().map(|level| level.iter().map(|&(child, parent)| (parent, child)).collect());
        let all: Vec<_> = up.iter().cloned().chain(down).collect();
        let step = |(number, level): (usize, &Vec<(u32, u32)>)| Step {
            times: 1,
            reduces: (number > 0).then_some(self.bytes),
            bytes: self.bytes,
            sends: Sends::Listed(level.clone()),
        };
        (all.iter().enumerate().map(step).collect(), None)
    }
}

impl Step {
    /// Each message of one step: sender and receiver by their places, among `count`.
    pub fn each_message(&self, count: u32, each: &mut dyn FnMut(u32, u32)) {
        match &self.sends {
            Sends::Listed(list) => list.iter().for_each(|&(from, to)| each(from, to)),
            Sends::Shift { .. } => (0..count).for_each(|place| self.each_of_first(place, count, each)),
        }
    }

    /// Those of the member at one place, where all do the same.
    fn each_of_first(&self, place: u32, count: u32, each: &mut dyn FnMut(u32, u32)) {
        if let Sends::Shift { distances, ahead } = &self.sends {
            distances.clone().for_each(|distance| each(place, (place + if *ahead { distance } else { count - distance }) % count));
        }
    }

    /// Those of the first member, if all others send over the same distances.
    pub fn each_of_one(&self, count: u32, each: &mut dyn FnMut(u32, u32)) -> bool {
        self.each_of_first(0, count, each);
        matches!(self.sends, Sends::Shift { .. })
    }

    /// Whether everybody sends to the next alone.
    pub fn is_to_next(&self) -> bool {
        matches!(&self.sends, Sends::Shift { distances, .. } if *distances == (1..2))
    }
}
