//! Uniform random traffic.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use kasuri_network::id::TerminalId;
use kasuri_network::registry::Member;
use kasuri_network::rng::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

/// Every destination with the same probability.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uniform {}

impl Member for Uniform {
    const NAME: &'static str = "uniform";
    const SUMMARY: &'static str = "every terminal with the same probability";
    const SOURCE: &'static str = "Dally and Towles (2004), section 3.2";
    const EXAMPLE: &'static str = "";
}

impl TrafficPattern for Uniform {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let terminals = context.network.terminal_count();
        if terminals == 1 && !context.include_self {
            return Err(PatternError::Mismatch {
                pattern: Self::NAME,
                network: context.network.name().to_owned(),
                problem: "one terminal has nobody to send to; set include_self = true".to_owned(),
            });
        }
        Ok(Box::new(Compiled { terminals, include_self: context.include_self }))
    }
}

#[derive(Debug)]
struct Compiled {
    terminals: u32,
    include_self: bool,
}

impl Pattern for Compiled {
    fn destination(&self, source: TerminalId, stream: &mut Stream) -> Option<TerminalId> {
        if self.include_self {
            return Some(TerminalId(stream.below(self.terminals)));
        }
        // One of the others: numbers from the source on move up by one.
        let other = stream.below(self.terminals - 1);
        Some(TerminalId(other + u32::from(other >= source.0)))
    }

    fn is_silent(&self, _source: TerminalId) -> bool {
        false
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        let choices = self.terminals - u32::from(!self.include_self);
        (0..self.terminals)
            .filter(|&terminal| self.include_self || terminal != source.0)
            .map(|terminal| (TerminalId(terminal), 1.0 / f64::from(choices)))
            .collect()
    }
}
