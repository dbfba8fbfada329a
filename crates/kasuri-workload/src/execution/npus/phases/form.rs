//! The phases of a collective for formulas: those of all its chunks, each kind once.

use super::super::super::cluster::{Implementation, Optimization, Pattern};
use super::super::algorithm::{Algorithm, Members, Step};
use super::{Scope, Turns};
use std::collections::BTreeMap;

/// A phase, as steps of its members.
#[derive(Clone, Debug)]
pub struct PhaseForm {
    /// The dimension in which all messages stay; none for a communicator group and for a ring over all NPUs.
    pub dimension: Option<usize>,
    /// What is done.
    pub pattern: Pattern,
    /// By which algorithm.
    pub implementation: Implementation,
    /// The NPUs that take part, in the order of their ring.
    pub members: Vec<u32>,
    /// Whether it is a communicator group, whose step delay is another.
    pub grouped: bool,
    /// What follows each other.
    pub steps: Vec<Step>,
    /// Bytes that are reduced behind the last step.
    pub reduces: Option<u64>,
}

/// A collective: its phases, and its chunks.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// The kinds of phases.
    pub phases: Vec<PhaseForm>,
    /// The phases of each chunk in their order: which kind, and in which queue it waits.
    pub chunks: Vec<Vec<(usize, usize)>>,
}

/// What tells kinds apart: dimension, what is done, direction, bytes, tree.
type Key = (usize, Pattern, bool, u64, bool);

impl Scope {
    /// The form of a collective of so many chunks of so many bytes that is the first to use its queues.
    pub(in super::super) fn form(&self, queues: u32, optimization: Optimization, chunks: u64, bytes: u64) -> Result<Form, String> {
        let mut turns = Turns::new(self.places.len(), queues);
        let (mut form, mut known): (Form, BTreeMap<Key, usize>) = (Form::default(), BTreeMap::new());
        for _ in 0..chunks {
            let (mut data, mut chunk) = (bytes, Vec::new());
            for (dimension, pattern, half) in self.order(optimization) {
                let (queue, up) = turns.queue(dimension, half);
                let (phase, left) = self.phase(&mut turns, dimension, pattern, (queue, up), data)?;
                let root_last = matches!(&phase.algorithm, Algorithm::Tree(tree) if tree.root_last);
                let next = form.phases.len();
                let kind = *known.entry((dimension, pattern, up, data, root_last)).or_insert(next);
                if kind == next {
                    form.phases.push(self.phase_form(dimension, pattern, &phase.algorithm)?);
                }
                chunk.push((kind, queue));
                data = left;
            }
            form.chunks.push(chunk);
        }
        Ok(form)
    }

    fn phase_form(&self, dimension: usize, pattern: Pattern, algorithm: &Algorithm) -> Result<PhaseForm, String> {
        let place = &self.places[dimension];
        let (steps, reduces) = algorithm.steps(place)?;
        let is_one_dimension = matches!(place.members, Members::Strided { .. }) && !self.choices[dimension].over_all;
        Ok(PhaseForm {
            dimension: is_one_dimension.then_some(dimension),
            pattern,
            implementation: self.choices[dimension].implementation,
            members: (0..place.count).map(|index| place.members.npu(index)).collect(),
            grouped: place.grouped,
            steps,
            reduces,
        })
    }

    /// All that take part: in every dimension that does, all places.
    pub(in super::super) fn members(&self, npu: u32) -> Vec<u32> {
        let mut members = vec![npu];
        for dimension in (0..self.places.len()).filter(|&dimension| self.takes_part(dimension)) {
            let place = &self.places[dimension];
            members = match &place.members {
                Members::Listed(list) => list.to_vec(),
                Members::Strided { stride, .. } => {
                    let of_row = |&member: &u32| {
                        let first = member - member / stride % place.count * stride;
                        (0..place.count).map(move |index| first + index * stride)
                    };
                    members.iter().flat_map(of_row).collect()
                }
            };
        }
        members
    }
}
