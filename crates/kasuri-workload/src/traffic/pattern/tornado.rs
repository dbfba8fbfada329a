//! Tornado: almost half-way round in every dimension.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::fixed::{Digits, Fixed};
use kasuri_network::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each digit d of radix k becomes (d + shift(k)) mod k; `shift` rounds k/2 - 1 up or down, which matters for odd k.
///
/// The digits are the coordinates of a grid or the path in a tree (one digit, the terminal's number, where the network has
/// neither). Terminals on one router keep their order.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tornado {
    /// How to round k/2 - 1 for odd k.
    #[serde(default)]
    pub shift: Shift,
    /// The radices of the digits, the least significant first, in place of the network's. Where their product is less than the
    /// number of terminals, what is above them is dropped.
    #[serde(default)]
    pub digits: Option<Vec<u32>>,
}

/// Rounding of k/2 - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shift {
    /// floor(k/2) - 1, at least 0.
    Floor,
    /// ceil(k/2) - 1, as in the book and in BookSim 2.
    #[default]
    Ceil,
}

impl Member for Tornado {
    const NAME: &'static str = "tornado";
    const SUMMARY: &'static str = "almost half-way round in every dimension; shift rounds k/2 - 1";
    const SOURCE: &'static str = "Dally and Towles (2004), table 3.1 (ceil)";
    const EXAMPLE: &'static str = "shift = \"floor\"";
}

impl TrafficPattern for Tornado {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let digits = Digits::given_or_of(self.digits.as_deref(), context.network)?;
        let shift = |radix: u32| match self.shift {
            Shift::Floor => (radix / 2).saturating_sub(1),
            Shift::Ceil => radix.div_ceil(2).saturating_sub(1),
        };
        Ok(Fixed::pattern(context.network.terminal_count(), |source| {
            digits.map(source, |position, values| (values[position] + shift(digits.radices[position])) % digits.radices[position])
        }))
    }
}
