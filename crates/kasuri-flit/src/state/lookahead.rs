//! What heads bring with them where adaptive lookahead decides on departure.

use crate::facts;
use kasuri_model::scenario::Scenario;
use kasuri_network::routing::Candidate;

/// What a packet will do at the router that it is on its way to, or waits in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decision {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) state: u32,
}

/// The decisions that heads bring with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookahead {
    /// By packet.
    pub(crate) decisions: Vec<Decision>,
    /// Heads that have won the switch in this cycle: the packet, and the input slot that it goes to.
    pub(crate) departed: Vec<(u32, u32)>,
}

impl Lookahead {
    /// Where lookahead decides on departure and it makes a difference.
    pub(crate) fn of(scenario: &Scenario) -> Option<Self> {
        facts::decides_on_departure(scenario).then(Self::default)
    }

    /// The decision of a packet, into `candidates`, without taking it.
    pub(crate) fn known(&self, packet: u32, candidates: &mut Vec<Candidate>) -> u32 {
        let decision = &self.decisions[packet as usize];
        candidates.clone_from(&decision.candidates);
        decision.state
    }

    /// Takes the decision of a packet: into `candidates`. Returns its routing state after that.
    pub(crate) fn take(&mut self, packet: u32, candidates: &mut Vec<Candidate>) -> u32 {
        let decision = &mut self.decisions[packet as usize];
        candidates.clear();
        candidates.append(&mut decision.candidates);
        decision.state
    }
}
