//! What routers that predict save a message: its head crosses them as that of a packet alone, which finds every buffer empty.

use crate::analysis::Guided;
use kasuri_model::engine::Prediction;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::ChannelId;
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::predictor::direction::{self, CASES};
use std::sync::Arc;

/// The guesses of the routers, and how often they were right for measured messages.
#[derive(Debug)]
pub(crate) struct Predictions {
    guided: Arc<Guided>,
    /// Cycles by which a right guess brings a head to the next router earlier.
    saved: u32,
    counts: Prediction,
    /// Attempts and hits by the way across routers that have levels.
    cases: Vec<[u64; 2]>,
}

/// Cycles by which a right guess brings a lone head to the next router earlier: it needs the steps of the switch traversal only, and its front
/// does not wait for its end. Several steps in a cycle are left out, as elsewhere among flows.
fn saved_cycles(scenario: &Scenario) -> u32 {
    scenario.pipeline.skipped_cycles() + scenario.pipeline.front_cycles(scenario.router.hit_saves)
}

impl Predictions {
    pub(crate) fn new(scenario: &Scenario, guided: Arc<Guided>) -> Self {
        let cases = vec![[0; 2]; CASES * guided.levels()];
        let mut predictions = Self { guided, saved: saved_cycles(scenario), counts: Prediction::default(), cases };
        predictions.clear(&scenario.network);
        predictions
    }

    /// Nothing has been counted yet.
    pub(crate) fn clear(&mut self, network: &Network) {
        self.counts = Prediction { heads_only: true, by_channel: vec![[0; 3]; network.channel_count() as usize], ..Prediction::default() };
        self.cases.fill([0; 2]);
    }

    /// Cycles that right guesses save a message on a path from the injection to the ejection.
    pub(crate) fn saved_cycles(&mut self, network: &Network, path: &[u32], is_measured: bool) -> f32 {
        let mut hits = 0;
        for pair in path.windows(2) {
            let (router, input) = network.input_port(ChannelId(pair[0]));
            let Endpoint::Router(_, output) = network.source(ChannelId(pair[1])) else { continue };
            let (attempt, hit) = self.guided.outcome(router, input, output);
            hits += u32::from(hit);
            if is_measured {
                self.count(pair[0], [true, attempt, hit]);
                if let Some(case) = self.guided.case(router, input, output) {
                    self.cases[case].iter_mut().zip([attempt, hit]).for_each(|(sum, seen)| *sum += u64::from(seen));
                }
            }
        }
        (hits * self.saved) as f32
    }

    fn count(&mut self, channel: u32, seen: [bool; 3]) {
        let Prediction { switches, attempts, hits, by_channel, .. } = &mut self.counts;
        for (place, seen) in seen.map(u64::from).into_iter().enumerate() {
            by_channel[channel as usize][place] += seen;
            *[&mut *switches, &mut *attempts, &mut *hits][place] += seen;
        }
    }

    /// What has been counted.
    pub(crate) fn take(&mut self) -> Prediction {
        Prediction { by_level: direction::by_level(&self.cases), ..std::mem::take(&mut self.counts) }
    }
}
