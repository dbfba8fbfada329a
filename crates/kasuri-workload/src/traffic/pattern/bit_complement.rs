//! Bit complement.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::fixed::{Fixed, address_bits};
use kasuri_network::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// Terminal s sends to the terminal whose address bits are those of s inverted. Needs a power of two of terminals.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BitComplement {}

impl Member for BitComplement {
    const NAME: &'static str = "bit-complement";
    const SUMMARY: &'static str = "destination = source with every address bit inverted";
    const SOURCE: &'static str = "Dally and Towles (2004), table 3.1";
    const EXAMPLE: &'static str = "";
}

impl TrafficPattern for BitComplement {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let bits = address_bits(context, Self::NAME)?;
        let terminals = context.network.terminal_count();
        Ok(Fixed::pattern(terminals, |source| source ^ ((1 << bits) - 1)))
    }
}
