//! Diagonal traffic.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::weighted::Weighted;
use kasuri_network::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// Two thirds of a terminal's packets go to itself, one third to the next terminal. `include_self` changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagonal {}

impl Member for Diagonal {
    const NAME: &'static str = "diagonal";
    const SUMMARY: &'static str = "two thirds to itself, one third to the next terminal";
    const SOURCE: &'static str = "McKeown, The iSLIP scheduling algorithm (1999); as in BookSim 2 (diagonal)";
    const EXAMPLE: &'static str = "";
}

impl TrafficPattern for Diagonal {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let terminals = context.network.terminal_count();
        Ok(Weighted::pattern((0..terminals).map(|source| vec![(source, 2.0), ((source + 1) % terminals, 1.0)]).collect()))
    }
}
