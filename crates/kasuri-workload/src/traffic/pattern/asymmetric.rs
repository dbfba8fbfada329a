//! Asymmetric traffic.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::weighted::Weighted;
use kasuri_network::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// Of N terminals, s sends to (s mod N/2) and to (s mod N/2) + N/2, each half the time. `include_self` changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asymmetric {}

impl Member for Asymmetric {
    const NAME: &'static str = "asymmetric";
    const SUMMARY: &'static str = "s sends to s mod N/2 and to s mod N/2 + N/2, each half the time";
    const SOURCE: &'static str = "As in BookSim 2 (asymmetric)";
    const EXAMPLE: &'static str = "";
}

impl TrafficPattern for Asymmetric {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let terminals = context.network.terminal_count();
        if terminals % 2 == 1 {
            return Err(PatternError::Mismatch {
                pattern: Self::NAME,
                network: context.network.name().to_owned(),
                problem: format!("it needs an even number of terminals, not {terminals}"),
            });
        }
        let half = terminals / 2;
        Ok(Weighted::pattern((0..terminals).map(|source| vec![(source % half, 1.0), (source % half + half, 1.0)]).collect()))
    }
}
