//! Perfect shuffle.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::fixed::{Fixed, address_bits};
use kasuri_network::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// Terminal s sends to the terminal whose address bits are those of s rotated left by one. Needs a power of two of terminals.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shuffle {}

impl Member for Shuffle {
    const NAME: &'static str = "shuffle";
    const SUMMARY: &'static str = "destination = source with its address bits rotated left by one";
    const SOURCE: &'static str = "Dally and Towles (2004), table 3.1; Stone, IEEE Trans. Comput. C-20 (1971)";
    const EXAMPLE: &'static str = "";
}

impl TrafficPattern for Shuffle {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let bits = address_bits(context, Self::NAME)?;
        let terminals = context.network.terminal_count();
        Ok(Fixed::pattern(terminals, |source| source << 1 & (terminals - 1) | source >> bits.saturating_sub(1) & 1))
    }
}
