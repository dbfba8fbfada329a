//! All outcomes of a routing's decisions, with their probabilities.

use super::choice::{Choice, CongestionView};
use super::contract::Routing;
use super::hashed::NoView;
use super::hop::{Candidate, Hop};
use crate::id::TerminalId;

/// Every outcome of one routing decision: the candidates and the packet's state after it, in a fixed order, without repeats.
///
/// The routing is asked again and again with a [`Choice`] that replays a prefix of decisions and then takes the first
/// alternative, until no branch is left. See [`Branches`] for the probabilities.
pub fn every_hop(routing: &dyn Routing, hop: &Hop, state: u32) -> Vec<(Vec<Candidate>, u32)> {
    let mut outcomes = Vec::new();
    Branches::default().of_hop(routing, hop, state, |candidates, after, _| {
        let outcome = (candidates.to_vec(), after);
        if !outcomes.contains(&outcome) {
            outcomes.push(outcome);
        }
    });
    outcomes
}

/// Every initial state that the routing may give a packet.
pub fn every_initial_state(routing: &dyn Routing, source: TerminalId, destination: TerminalId) -> Vec<u32> {
    let mut states = Vec::new();
    Branches::default().of_initial_state(routing, source, destination, |state, _| {
        if !states.contains(&state) {
            states.push(state);
        }
    });
    states
}

/// Takes every branch of a routing's decisions, each with its probability; reused, it allocates nothing.
///
/// A uniform choice gives each alternative the same probability, and so does a choice by congestion, of which nothing is known; or the
/// network is idle ([`Branches::idle`]), and congestion leaves the alternatives of the least cost.
#[derive(Debug, Default)]
pub struct Branches {
    replay: Replay,
    candidates: Vec<Candidate>,
}

impl Branches {
    /// The branches of a packet that is alone in the network: no buffer holds anything.
    pub fn idle() -> Self {
        Self { replay: Replay { idle: true, ..Replay::default() }, candidates: Vec::new() }
    }

    /// Calls `visit` with the candidates, the state after the hop and the probability of each branch. The probabilities sum to
    /// 1; branches with the same outcome are not merged.
    pub fn of_hop(&mut self, routing: &dyn Routing, hop: &Hop, state: u32, mut visit: impl FnMut(&[Candidate], u32, f64)) {
        loop {
            let mut after = state;
            self.replay.position = 0;
            self.candidates.clear();
            routing.route(hop, &mut after, &mut self.replay, &mut self.candidates);
            visit(&self.candidates, after, self.replay.probability());
            if !self.replay.advance() {
                return;
            }
        }
    }

    /// Calls `visit` with each initial state and its probability.
    pub fn of_initial_state(
        &mut self,
        routing: &dyn Routing,
        source: TerminalId,
        destination: TerminalId,
        mut visit: impl FnMut(u32, f64),
    ) {
        loop {
            self.replay.position = 0;
            let state = routing.initial_state(source, destination, &mut self.replay);
            visit(state, self.replay.probability());
            if !self.replay.advance() {
                return;
            }
        }
    }
}

/// The decisions of one branch: which alternative of how many.
#[derive(Debug, Default)]
struct Replay {
    decisions: Vec<(u32, u32)>,
    position: usize,
    /// Are costs those of empty buffers, and not unknown?
    idle: bool,
}

impl Replay {
    fn probability(&self) -> f64 {
        self.decisions.iter().map(|&(_, alternatives)| 1.0 / f64::from(alternatives)).product()
    }

    /// Odometer: raises the last decision that has an alternative left and forgets what came after it. Is there one?
    fn advance(&mut self) -> bool {
        while let Some((taken, alternatives)) = self.decisions.pop() {
            if taken + 1 < alternatives {
                self.decisions.push((taken + 1, alternatives));
                return true;
            }
        }
        false
    }
}

impl Choice for Replay {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        if self.position == self.decisions.len() {
            self.decisions.push((0, alternatives));
        }
        self.position += 1;
        self.decisions[self.position - 1].0
    }

    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        if !self.idle {
            return self.uniform(alternatives);
        }
        let least = (0..alternatives).map(|alternative| cost(&NoView, alternative)).min();
        let best: Vec<u32> = (0..alternatives).filter(|&alternative| Some(cost(&NoView, alternative)) == least).collect();
        let taken = self.uniform(best.len() as u32);
        best[taken as usize]
    }
}
