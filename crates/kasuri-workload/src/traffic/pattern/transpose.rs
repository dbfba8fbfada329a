//! Matrix transpose.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::fixed::{Digits, Fixed};
use kasuri_network::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// The two halves of the address change places: terminal (x, y) sends to (y, x).
///
/// With 4^m terminals the halves are those of the address bits. Otherwise the network must have an even number of equal
/// digits (dimensions, or levels of a tree), whose halves change places; where both are defined they agree.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transpose {}

impl Member for Transpose {
    const NAME: &'static str = "transpose";
    const SUMMARY: &'static str = "the two halves of the address change places: (x, y) sends to (y, x)";
    const SOURCE: &'static str = "Dally and Towles (2004), table 3.1";
    const EXAMPLE: &'static str = "";
}

impl TrafficPattern for Transpose {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let terminals = context.network.terminal_count();
        let bits = terminals.trailing_zeros();
        if terminals.is_power_of_two() && bits.is_multiple_of(2) {
            let half = bits / 2;
            return Ok(Fixed::pattern(terminals, |source| source >> half | (source & ((1 << half) - 1)) << half));
        }
        let digits = Digits::of(context.network);
        let count = digits.radices.len();
        if count.is_multiple_of(2) && digits.radices.iter().all(|&radix| radix == digits.radices[0]) {
            return Ok(Fixed::pattern(terminals, |source| digits.map(source, |position, digits| digits[(position + count / 2) % count])));
        }
        Err(PatternError::Mismatch {
            pattern: Self::NAME,
            network: context.network.name().to_owned(),
            problem: format!(
                "it swaps the halves of the address and needs 4^m terminals (not {terminals}), or an even number of equal dimensions or levels"
            ),
        })
    }
}
