//! Butterfly (k-ary n-fly): a unidirectional multistage network with one path between any two terminals.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// `stages` stages of `radix^(stages - 1)` routers with `radix` inputs and outputs each.
///
/// Router number = stage x radix^(stages - 1) + position. Output `j` of position `a` of stage `s - 1` leads to the position of
/// stage `s` that is `a` with its digit of weight radix^(stages - s - 1) replaced by `j`, and arrives at the input whose number
/// is the old digit. Terminal `t` injects into input `t mod radix` of position `t / radix` of the first stage and is served by
/// the same output and position of the last. Labels: routers `stage`; attributes `tag_radix`, `tag_weights` (one per stage),
/// `terminal_digits`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Butterfly {
    /// Inputs (and outputs) of each router, at least 2.
    pub radix: u32,
    /// Stages, at least 1.
    pub stages: u32,
}

impl Member for Butterfly {
    const NAME: &'static str = "butterfly";
    const SUMMARY: &'static str = "k-ary n-fly, unidirectional, one path between any two terminals";
    const SOURCE: &'static str = "Dally and Towles (2004), chapter 4";
    const EXAMPLE: &'static str = "radix = 3\nstages = 3";
}

impl Topology for Butterfly {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let per_stage = self.routers_per_stage()?;
        context.channels.check(self.stages as usize - 1)?;
        let mut builder = NetworkBuilder::new(format!("butterfly {}-ary {}-fly", self.radix, self.stages));
        for _ in 0..self.stages * per_stage {
            builder.add_router(self.radix as usize)?;
        }
        for stage in 1..self.stages {
            self.connect_to(stage, per_stage, &mut builder, context);
        }
        for position in 0..per_stage {
            for port in 0..self.radix as Port {
                let last = RouterId((self.stages - 1) * per_stage + position);
                builder.add_split_terminal((RouterId(position), port), (last, port), context.channels.terminal_link());
            }
        }
        builder.label_routers("stage", (0..self.stages * per_stage).map(|router| router / per_stage).collect());
        builder.set_attribute("tag_radix", vec![self.radix]);
        builder.set_attribute("tag_weights", (0..self.stages).rev().map(|power| self.radix.pow(power)).collect());
        builder.set_attribute("terminal_digits", vec![self.radix; self.stages as usize]);
        builder.finish()
    }
}

impl Butterfly {
    fn routers_per_stage(&self) -> Result<u32, NetworkError> {
        if self.radix < 2 {
            return Err(NetworkError::parameter("radix", format!("is {}; a router needs at least 2 outputs", self.radix)));
        }
        if self.stages == 0 {
            return Err(NetworkError::parameter("stages", "is 0; a butterfly has at least 1 stage"));
        }
        match self.radix.checked_pow(self.stages) {
            Some(terminals) if terminals <= 1 << 28 => Ok(terminals / self.radix),
            _ => Err(NetworkError::TooLarge(format!("{} stages of radix {}; the limit is 2^28 terminals", self.stages, self.radix))),
        }
    }

    fn connect_to(&self, stage: u32, per_stage: u32, builder: &mut NetworkBuilder, context: &BuildContext<'_>) {
        let weight = self.radix.pow(self.stages - stage - 1);
        let link = context.channels.link(stage as usize - 1);
        for position in 0..per_stage {
            let digit = position / weight % self.radix;
            for output in 0..self.radix {
                let next = position - digit * weight + output * weight;
                let from = (RouterId((stage - 1) * per_stage + position), output as Port);
                builder.add_channel(from, (RouterId(stage * per_stage + next), digit as Port), link);
            }
        }
    }
}
