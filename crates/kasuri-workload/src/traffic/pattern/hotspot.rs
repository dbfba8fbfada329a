//! Hot spots: all traffic goes to a few terminals.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::weighted::Weighted;
use kasuri_network::network::{Network, TerminalRef};
use kasuri_network::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// Every packet goes to one of the hot terminals, drawn by weight.
///
/// Without `include_self` a hot terminal sends to the other hot terminals only, and nothing if there is no other.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hotspot {
    /// The hot terminals, at least one, by number or name.
    pub terminals: Vec<TerminalRef>,
    /// Their relative weights, one for each; equal unless given.
    #[serde(default)]
    pub weights: Option<Vec<f64>>,
}

impl Member for Hotspot {
    const NAME: &'static str = "hotspot";
    const SUMMARY: &'static str = "all packets to a few hot terminals, by weight";
    const SOURCE: &'static str = "Pfister and Norton, IEEE Trans. Comput. C-34 (1985); as in BookSim 2 (hotspot)";
    const EXAMPLE: &'static str = "terminals = [0, 3]\nweights = [2, 1]";
}

impl TrafficPattern for Hotspot {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let terminals = context.network.terminal_count();
        let (hot, weights) = (self.hot(context.network)?, self.checked_weights()?);
        let row = |source: u32| {
            let spots = hot.iter().copied().zip(weights.iter().copied());
            spots.filter(|&(spot, weight)| weight > 0.0 && (context.include_self || spot != source)).collect()
        };
        Ok(Weighted::pattern((0..terminals).map(row).collect()))
    }
}

impl Hotspot {
    fn hot(&self, network: &Network) -> Result<Vec<u32>, PatternError> {
        let wrong = |problem: String| PatternError::Parameter { key: "terminals".to_owned(), problem };
        if self.terminals.is_empty() {
            return Err(wrong("is empty; name at least one hot terminal".to_owned()));
        }
        let find = |terminal: &TerminalRef| terminal.find(network.into()).map_err(|problem| wrong(format!("holds {problem}")));
        self.terminals.iter().map(find).collect()
    }

    fn checked_weights(&self) -> Result<Vec<f64>, PatternError> {
        let wrong = |key: &str, problem: String| Err(PatternError::Parameter { key: key.to_owned(), problem });
        let weights = self.weights.clone().unwrap_or_else(|| vec![1.0; self.terminals.len()]);
        if weights.len() != self.terminals.len() {
            return wrong(
                "weights",
                format!("has {} numbers for {} hot terminals; give one for each", weights.len(), self.terminals.len()),
            );
        }
        let total: f64 = weights.iter().sum();
        if weights.iter().any(|weight| weight.is_nan() || *weight < 0.0) || !total.is_finite() || total <= 0.0 {
            return wrong("weights", format!("{weights:?} must be 0 or more and sum to more than 0"));
        }
        Ok(weights)
    }
}
