//! Bernoulli injection.

use super::contract::{InjectionProcess, Process};
use kasuri_network::registry::Member;
use kasuri_network::rng::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

/// In every cycle a packet is created with the same probability, load / mean packet length.
///
/// The gaps are drawn from the geometric law, which is the same in distribution as a coin in every cycle.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bernoulli {}

impl Member for Bernoulli {
    const NAME: &'static str = "bernoulli";
    const SUMMARY: &'static str = "a packet in each cycle with the same probability";
    const SOURCE: &'static str = "Dally and Towles (2004), section 24.2.2";
    const EXAMPLE: &'static str = "";
}

impl InjectionProcess for Bernoulli {
    fn compile(&self, packet_rate: f64) -> Result<Box<dyn Process>, String> {
        Ok(Box::new(Compiled { log_failure: (-packet_rate).ln_1p() }))
    }
}

#[derive(Debug)]
struct Compiled {
    log_failure: f64,
}

impl Process for Compiled {
    fn next(&self, _index: u64, previous: Option<u64>, stream: &mut Stream) -> Option<u64> {
        if self.log_failure == 0.0 {
            return None;
        }
        // A coin that always shows the same side is not thrown.
        let gap = if self.log_failure == f64::NEG_INFINITY { 1 } else { stream.trials(self.log_failure) };
        Some(previous.map_or(gap - 1, |cycle| cycle.saturating_add(gap)))
    }
}
