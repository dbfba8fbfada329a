//! Periodic injection.

use super::contract::{InjectionProcess, Process};
use kasuri_network::registry::Member;
use kasuri_network::rng::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

/// A packet every 1/rate cycles, from a phase that each terminal draws.
///
/// A run that measures until its answer is precise has the phases drawn anew from time to time: an average over one choice of phases would
/// be one of the seed. Runs of a fixed length keep theirs.
///
/// Where 1/rate is not whole the gaps are its two neighbours in turn, so that the mean rate is exact.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Periodic {}

impl Member for Periodic {
    const NAME: &'static str = "periodic";
    const SUMMARY: &'static str = "a packet at fixed spacing, each terminal with a random phase";
    const SOURCE: &'static str = "Dally and Towles (2004), section 24.2.2";
    const EXAMPLE: &'static str = "";
}

impl InjectionProcess for Periodic {
    fn compile(&self, packet_rate: f64) -> Result<Box<dyn Process>, String> {
        Ok(Box::new(Compiled { spacing: 1.0 / packet_rate }))
    }
}

#[derive(Debug)]
struct Compiled {
    /// Cycles between packets, at least 1; infinite at rate 0.
    spacing: f64,
}

impl Process for Compiled {
    fn next(&self, index: u64, previous: Option<u64>, stream: &mut Stream) -> Option<u64> {
        if !self.spacing.is_finite() {
            return None;
        }
        let elapsed = |packets: u64| (packets as f64 * self.spacing) as u64;
        match previous {
            None => Some((stream.unit() * self.spacing) as u64),
            Some(cycle) => Some(cycle.saturating_add(elapsed(index) - elapsed(index - 1))),
        }
    }

    fn has_phase(&self) -> bool {
        // At one packet a cycle there is one phase only.
        self.spacing.is_finite() && self.spacing > 1.0
    }
}
