//! Each row of terminals sends to the column of the same number.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use kasuri_network::id::TerminalId;
use kasuri_network::registry::Member;
use kasuri_network::rng::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

/// Of the terminals of a square of `side` x `side`, numbered row by row, s sends to any of column s div side: to x side + s div
/// side, x drawn from 0..side-1. On a flattened butterfly all packets of a row then meet in a column.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowToColumn {
    /// Terminals of a row: `side`^2 terminals in all.
    pub side: u32,
}

impl Member for RowToColumn {
    const NAME: &'static str = "row-to-column";
    const SUMMARY: &'static str = "square of terminals: each row to the column of its number";
    const SOURCE: &'static str = "As in BookSim 2 (badperm_yarc)";
    const EXAMPLE: &'static str = "side = 4";
}

impl TrafficPattern for RowToColumn {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let (terminals, side) = (context.network.terminal_count(), self.side);
        if side.checked_mul(side) != Some(terminals) {
            let problem = format!("is {side}; its square must be the {terminals} terminals");
            return Err(PatternError::Parameter { key: "side".to_owned(), problem });
        }
        Ok(Box::new(Compiled { side }))
    }
}

#[derive(Debug)]
struct Compiled {
    side: u32,
}

impl Pattern for Compiled {
    fn destination(&self, source: TerminalId, stream: &mut Stream) -> Option<TerminalId> {
        Some(TerminalId(stream.below(self.side) * self.side + source.0 / self.side))
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        let column = source.0 / self.side;
        (0..self.side).map(|row| (TerminalId(row * self.side + column), 1.0 / f64::from(self.side))).collect()
    }
}
