//! Bit reversal.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::fixed::{Fixed, address_bits};
use kasuri_network::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// Terminal s sends to the terminal whose address bits are those of s in reverse order. Needs a power of two of terminals.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BitReverse {}

impl Member for BitReverse {
    const NAME: &'static str = "bit-reverse";
    const SUMMARY: &'static str = "destination = source with its address bits in reverse order";
    const SOURCE: &'static str = "Dally and Towles (2004), table 3.1";
    const EXAMPLE: &'static str = "";
}

impl TrafficPattern for BitReverse {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let bits = address_bits(context, Self::NAME)?;
        let terminals = context.network.terminal_count();
        Ok(Fixed::pattern(terminals, |source| (0..bits).fold(0, |reversed, bit| reversed << 1 | source >> bit & 1)))
    }
}
