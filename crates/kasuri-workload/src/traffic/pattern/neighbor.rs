//! Nearest neighbour.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::fixed::{Digits, Fixed};
use kasuri_network::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// Each digit d of radix k becomes (d + 1) mod k. The digits are those of `tornado`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Neighbor {
    /// The radices of the digits, as for `tornado`.
    #[serde(default)]
    pub digits: Option<Vec<u32>>,
}

impl Member for Neighbor {
    const NAME: &'static str = "neighbor";
    const SUMMARY: &'static str = "one step on in every dimension";
    const SOURCE: &'static str = "Dally and Towles (2004), table 3.1";
    const EXAMPLE: &'static str = "";
}

impl TrafficPattern for Neighbor {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let digits = Digits::given_or_of(self.digits.as_deref(), context.network)?;
        Ok(Fixed::pattern(context.network.terminal_count(), |source| {
            digits.map(source, |position, values| (values[position] + 1) % digits.radices[position])
        }))
    }
}
