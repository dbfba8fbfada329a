//! The network of the Cenju-4: an omega network built of boards of two stages.

use super::omega::Shape;
use super::{BuildContext, Topology};
use crate::network::{Network, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// An omega network of 4x4 routers in boards of 8 routers, which are 2 stages on 16 lines: 2 ceil(log16 N) stages for N terminals.
///
/// Routers, ports and labels are those of `omega` with radix 4.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cenju4Network {
    /// Terminals, 8 to 1024.
    pub terminals: u32,
}

impl Member for Cenju4Network {
    const NAME: &'static str = "cenju4";
    const SUMMARY: &'static str = "multistage network of the Cenju-4: an omega network of boards with 16 lines";
    const SOURCE: &'static str = "Kano et al., User-level Network Interface for a Parallel Computer Cenju-4, IPSJ Journal 41 (2000)";
    const EXAMPLE: &'static str = "terminals = 32";
}

impl Topology for Cenju4Network {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let terminals = self.terminals;
        if !(8..=1024).contains(&terminals) {
            return Err(NetworkError::parameter("terminals", format!("is {terminals}; the machine has 8 to 1024 nodes")));
        }
        let stages = 2 * super::omega::stages_for(16, terminals);
        Shape::new(4, stages, terminals)?.build(format!("cenju4 {terminals} nodes {stages} stages"), context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{ChannelParameters, NoFiles};

    #[test]
    fn stages_follow_from_the_boards() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        for (terminals, stages) in [(8, 2), (16, 2), (32, 4), (64, 4), (128, 4), (256, 4), (512, 6), (1024, 6)] {
            let network = Cenju4Network { terminals }.build(&context).unwrap();
            let last = network.labels().router("stage").unwrap().iter().max().copied();
            assert_eq!((network.terminal_count(), last), (terminals, Some(stages - 1)));
        }
        // One board: 8 routers.
        assert_eq!(Cenju4Network { terminals: 16 }.build(&context).unwrap().router_count(), 8);
        assert!(Cenju4Network { terminals: 7 }.build(&context).is_err());
        assert!(Cenju4Network { terminals: 1025 }.build(&context).is_err());
    }
}
