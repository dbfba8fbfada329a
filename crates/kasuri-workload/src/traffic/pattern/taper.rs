//! Half near, half anywhere.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::weighted::Weighted;
use kasuri_network::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// Of N terminals in rows of r = `row`, s sends half its packets to (s + a r + b) mod N, a and b drawn from -1, 0 and 1, and half
/// to any terminal. `include_self` changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Taper {
    /// Terminals of a row, r.
    pub row: u32,
}

impl Member for Taper {
    const NAME: &'static str = "taper";
    const SUMMARY: &'static str = "half to the neighbourhood in rows of terminals, half uniform";
    const SOURCE: &'static str = "As in BookSim 2 (taper64: 64 terminals in rows of 8)";
    const EXAMPLE: &'static str = "row = 4";
}

impl TrafficPattern for Taper {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let (terminals, row) = (context.network.terminal_count(), self.row);
        if row == 0 || row >= terminals {
            let problem = format!("is {row}; with {terminals} terminals it must be 1 to {}", terminals.saturating_sub(1));
            return Err(PatternError::Parameter { key: "row".to_owned(), problem });
        }
        let weights = |source: u32| {
            let anywhere = (0..terminals).map(|destination| (destination, 0.5 / f64::from(terminals)));
            let near = [terminals - row, 0, row].into_iter().flat_map(|rows| [terminals - 1, 0, 1].map(|columns| rows + columns));
            anywhere.chain(near.map(|offset| ((source + offset) % terminals, 0.5 / 9.0))).collect()
        };
        Ok(Weighted::pattern((0..terminals).map(weights).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::id::TerminalId;
    use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, Topology, mesh::Mesh};

    /// Terminal 0 of 64 has itself, 1, 7 to 9, 55 to 57 and 63 near.
    #[test]
    fn nine_terminals_are_near() {
        let build = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let network = Mesh { dimensions: vec![8, 8], concentration: 1 }.build(&build).unwrap();
        let context = PatternContext { network: &network, include_self: false, files: &NoFiles };
        let weights = Taper { row: 8 }.compile(&context).unwrap().weights(TerminalId(0));
        let near: Vec<u32> = weights.iter().filter(|(_, weight)| *weight > 0.05).map(|(terminal, _)| terminal.0).collect();
        assert_eq!(near, [0, 1, 7, 8, 9, 55, 56, 57, 63]);
        assert!(Taper { row: 64 }.compile(&context).is_err());
    }
}
