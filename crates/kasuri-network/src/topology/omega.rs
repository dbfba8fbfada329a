//! Omega: a multistage network whose stages are joined by perfect shuffles.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// `stages` stages of routers with `radix` inputs and outputs each, on `radix^stages` lines; terminals are on the first lines.
///
/// Before each stage line l of L = radix^stages lines goes to line (radix l mod L) + (radix l div L); router l div radix of the stage has
/// it as its input l mod radix, and its output d is line radix (l div radix) + d. Only the routers are built that a path between two
/// terminals crosses; they are numbered stage after stage, in a stage by position. Labels: routers `stage`, `position` (the number within a
/// full stage); attributes `tag_radix`, `tag_weights` (one per stage), `lines`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Omega {
    /// Inputs (and outputs) of each router, 2 to 16.
    #[serde(default = "four")]
    pub radix: u32,
    /// Stages, at least 1. The fewest that reach all terminals unless given.
    pub stages: Option<u32>,
    /// Terminals, at least 2. As many as there are lines unless given.
    pub terminals: Option<u32>,
}

fn four() -> u32 {
    4
}

impl Member for Omega {
    const NAME: &'static str = "omega";
    const SUMMARY: &'static str = "multistage network of perfect shuffles, one path between any two terminals";
    const SOURCE: &'static str = "Lawrie, Access and alignment of data in an array processor, IEEE Trans. Comput. C-24 (1975)";
    const EXAMPLE: &'static str = "radix = 4\nstages = 3\nterminals = 32";
}

impl Topology for Omega {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        if !(2..=16).contains(&self.radix) {
            return Err(NetworkError::parameter("radix", format!("is {}; a router has 2 to 16 outputs", self.radix)));
        }
        let (stages, terminals) = match (self.stages, self.terminals) {
            (Some(stages), terminals) => (stages, terminals.unwrap_or(self.radix.saturating_pow(stages))),
            (None, Some(terminals)) => (stages_for(self.radix, terminals), terminals),
            (None, None) => return Err(NetworkError::parameter("terminals", "is missing; give terminals, or stages")),
        };
        let shape = Shape::new(self.radix, stages, terminals)?;
        shape.build(format!("omega radix {} stages {stages} terminals {terminals}", self.radix), context)
    }
}

/// The fewest stages of routers with `radix` outputs that reach this many terminals.
pub(super) fn stages_for(radix: u32, terminals: u32) -> u32 {
    (1..32).find(|&stages| radix.checked_pow(stages).is_none_or(|lines| lines >= terminals)).unwrap_or(32)
}

/// An omega network's numbers.
pub(super) struct Shape {
    radix: u32,
    stages: u32,
    terminals: u32,
    lines: u32,
}

impl Shape {
    /// Checks the numbers.
    pub(super) fn new(radix: u32, stages: u32, terminals: u32) -> Result<Self, NetworkError> {
        if stages == 0 {
            return Err(NetworkError::parameter("stages", "is 0; the network has at least 1 stage"));
        }
        let lines = match radix.checked_pow(stages) {
            Some(lines) if lines <= 1 << 24 => lines,
            _ => return Err(NetworkError::TooLarge(format!("{stages} stages of radix {radix}; the limit is 2^24 lines"))),
        };
        if !(2..=lines).contains(&terminals) {
            let problem = format!("is {terminals}; {stages} stages of radix {radix} have {lines} lines, so it must be 2 to {lines}");
            return Err(NetworkError::parameter("terminals", problem));
        }
        Ok(Self { radix, stages, terminals, lines })
    }

    /// Routers of a stage that a path crosses: the low digits of the source, then the digits of the destination taken before.
    fn routers_of(&self, stage: u32) -> Vec<u32> {
        let below = self.radix.pow(self.stages - 1 - stage);
        let taken = self.radix.pow(stage);
        let prefixes = (self.terminals - 1) / (self.lines / taken) + 1;
        (0..self.terminals.min(below)).flat_map(|low| (0..prefixes).map(move |prefix| low * taken + prefix)).collect()
    }

    fn shuffled(&self, line: u32) -> u32 {
        // At most 2^24 lines of radix 16: no overflow.
        line * self.radix % self.lines + line * self.radix / self.lines
    }

    /// Builds the network.
    pub(super) fn build(&self, name: String, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        context.channels.check(self.stages as usize - 1)?;
        let mut builder = NetworkBuilder::new(name);
        let stages: Vec<Vec<u32>> = (0..self.stages).map(|stage| self.routers_of(stage)).collect();
        let mut first = vec![0];
        for routers in &stages {
            for _ in routers {
                builder.add_router(self.radix as usize)?;
            }
            first.push(first[first.len() - 1] + routers.len() as u32);
        }
        let at =
            |stage: usize, position: u32| stages[stage].binary_search(&position).ok().map(|place| RouterId(first[stage] + place as u32));
        for stage in 1..stages.len() {
            let link = context.channels.link(stage - 1);
            for &position in &stages[stage - 1] {
                for output in 0..self.radix {
                    let line = self.shuffled(position * self.radix + output);
                    if let (Some(from), Some(to)) = (at(stage - 1, position), at(stage, line / self.radix)) {
                        builder.add_channel((from, output as Port), (to, (line % self.radix) as Port), link);
                    }
                }
            }
        }
        for terminal in 0..self.terminals {
            let line = self.shuffled(terminal);
            let (Some(enters), Some(leaves)) = (at(0, line / self.radix), at(stages.len() - 1, terminal / self.radix)) else { continue };
            let leave = (leaves, (terminal % self.radix) as Port);
            builder.add_split_terminal((enters, (line % self.radix) as Port), leave, context.channels.terminal_link());
        }
        let of_stage = |stage: usize| std::iter::repeat_n(stage as u32, stages[stage].len());
        builder.label_routers("stage", (0..stages.len()).flat_map(of_stage).collect());
        builder.label_routers("position", stages.concat());
        builder.set_attribute("tag_radix", vec![self.radix]);
        builder.set_attribute("tag_weights", (0..self.stages).rev().map(|power| self.radix.pow(power)).collect());
        builder.set_attribute("lines", vec![self.lines]);
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(radix: u32, stages: Option<u32>, terminals: Option<u32>) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        Omega { radix, stages, terminals }.build(&context)
    }

    /// N/4 routers in each of log4 N stages.
    #[test]
    fn a_full_network_has_all_routers_of_all_stages() {
        for (terminals, stages) in [(16, 2), (64, 3), (256, 4), (1024, 5)] {
            let network = build(4, None, Some(terminals)).unwrap();
            assert_eq!((network.router_count(), network.terminal_count()), (stages * terminals / 4, terminals));
        }
        assert_eq!(build(3, Some(3), None).unwrap().router_count(), 27);
    }

    /// Sources 0 to 31 have 16 different low pairs of digits and one high digit of the destination at the first of three stages,
    /// then 4 low digits x 2, then 1 x 8.
    #[test]
    fn routers_that_no_path_crosses_are_left_out() {
        let network = build(4, Some(3), Some(32)).unwrap();
        let stages = network.labels().router("stage").unwrap();
        let count = |stage| stages.iter().filter(|&&of| of == stage).count();
        assert_eq!([count(0), count(1), count(2)], [16, 8, 8]);
    }

    #[test]
    fn what_is_no_omega_network_is_refused() {
        for (radix, stages, terminals) in [
            (1, Some(2), None),
            (17, Some(2), None),
            (4, Some(0), None),
            (4, Some(2), Some(17)),
            (4, None, None),
            (4, Some(2), Some(1)),
            (4, Some(40), None),
        ] {
            assert!(build(radix, stages, terminals).is_err(), "{radix} {stages:?} {terminals:?}");
        }
    }
}
