//! The network of the Cenju-4: boards of 16 lines, joined by cables.
//!
//! A board is an omega network of two stages of four 4x4 routers. Up to 16 nodes are one board. More are layers of N/16 boards each, two
//! layers for up to 256 nodes and three for up to 1024, with every line of every board in use. The paper says that boards are joined by
//! cables to a multistage network and not how; what it leaves open are [`Cabling`] and [`Cable`].

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lines of a board.
const LINES: u32 = 16;
/// Inputs and outputs of a router, and routers of a stage of a board.
const RADIX: u32 = 4;

/// Boards of 8 routers of 4x4, which are 2 stages on 16 lines, joined by cables: for N terminals one board up to 16, else 2 layers of N/16
/// boards up to 256 and 3 layers up to 1024, with every line of every board in use.
///
/// A board's line l enters router l mod 4 of its first stage by input l div 4; output d there leads to input w of router d of its second
/// stage, w being the router's number; output d of router w there is the board's output 4w + d. Let a terminal's position be p, B the boards
/// of a layer, and G the groups of boards to which a board of the first layer has cables: G = B in two layers, B/16 in three. It has 16/G
/// cables to each group. Terminals enter at input p mod 16 of board p div 16 of the first layer and leave by the same output of the same
/// board of the last. With two layers cable f of board b leads to input b(16/B) + f of board g of the second. With three, let X = b(16/G) + f: it
/// leads to input X div 16 of board 16g + X mod 16 of the second layer, and output u of board 16g + v there to input v of board 16g + u of
/// the third. Labels: routers `stage`, `position` (the number within the stage), `board` (the number within its layer); attributes
/// `tag_radix`, `tags` (the output of each stage, by stage, cable and destination), `cable_from`, `cable_to` (the cable from s to d is
/// `cable_from[s] + cable_to[d]`, modulo the cables of a bundle).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cenju4Network {
    /// Terminals: 8, 16, 32, 64, 128, 256, 512 or 1024.
    pub terminals: u32,
    /// On which boards the terminals are, and which outputs of a board are the cables to which board.
    #[serde(default)]
    pub cabling: Cabling,
    /// Which cable of those between two boards a packet takes.
    #[serde(default)]
    pub cable: Cable,
}

/// How terminals are dealt to boards, and how cables are bundled. Of G groups of boards, g is the one and f the cable to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cabling {
    /// Terminals n to n + 15 share a board (position n), and output g(16/G) + f is cable f to group g: bundles lie beside each other.
    #[default]
    HalvesStraight,
    /// Terminals n to n + 15 share a board, and output fG + g is cable f to group g.
    HalvesInterleaved,
    /// Terminal n is on board n mod B (position 16(n mod B) + n div B), and output g(16/G) + f is cable f to group g.
    RoundRobinStraight,
    /// Terminal n is on board n mod B, and output fG + g is cable f to group g.
    RoundRobinInterleaved,
}

/// Which cable of a bundle of c a packet from terminal s to terminal d takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cable {
    /// Cable d mod c: every router looks at the destination alone.
    #[default]
    Destination,
    /// Cable (d div 2) mod c.
    DestinationPair,
    /// Cable s mod c.
    Source,
    /// Cable (s + d) mod c.
    Sum,
}

impl Cable {
    /// What the source adds to the cable's number.
    fn of_source(self, source: u32) -> u32 {
        match self {
            Self::Destination | Self::DestinationPair => 0,
            Self::Source | Self::Sum => source,
        }
    }

    /// What the destination adds to it.
    fn of_destination(self, destination: u32) -> u32 {
        match self {
            Self::Destination | Self::Sum => destination,
            Self::DestinationPair => destination / 2,
            Self::Source => 0,
        }
    }
}

impl Member for Cenju4Network {
    const NAME: &'static str = "cenju4";
    const SUMMARY: &'static str = "multistage network of the Cenju-4: boards with 16 lines, joined by cables";
    const SOURCE: &'static str =
        "Kano et al., User-level Network Interface for a Parallel Computer Cenju-4, IPSJ Journal 41 (2000), section 3; the cabling is ours";
    const EXAMPLE: &'static str = "terminals = 32";
}

impl Topology for Cenju4Network {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let machine = Boards::new(self)?;
        context.channels.check(machine.stages() as usize - 1)?;
        let mut builder = NetworkBuilder::new(format!("cenju4 {} nodes {} stages", self.terminals, machine.stages()));
        for _ in 0..machine.stages() * machine.routers_of_a_stage() {
            builder.add_router(RADIX as usize)?;
        }
        machine.join(&mut builder, context);
        machine.label(&mut builder);
        builder.finish()
    }
}

/// A machine's numbers.
struct Boards {
    terminals: u32,
    cabling: Cabling,
    cable: Cable,
    layers: u32,
    /// Of a layer.
    boards: u32,
    /// To which a board of the first layer has cables.
    groups: u32,
}

impl Boards {
    fn new(network: &Cenju4Network) -> Result<Self, NetworkError> {
        let &Cenju4Network { terminals, cabling, cable } = network;
        if !terminals.is_power_of_two() || !(8..=1024).contains(&terminals) {
            let problem = format!(
                "is {terminals}; it must be 8, 16, 32, 64, 128, 256, 512 or 1024: boards have 16 lines, and cables join all boards of a layer \
                 to all of the next only if they share these lines evenly"
            );
            return Err(NetworkError::parameter("terminals", problem));
        }
        let boards = terminals.div_ceil(LINES);
        let (layers, groups) = match boards {
            1 => (1, 1),
            2..=16 => (2, boards),
            _ => (3, boards / LINES),
        };
        Ok(Self { terminals, cabling, cable, layers, boards, groups })
    }

    fn stages(&self) -> u32 {
        2 * self.layers
    }

    fn routers_of_a_stage(&self) -> u32 {
        RADIX * self.boards
    }

    /// Cables from a board of the first layer to a group; 1 where a packet has no choice.
    fn cables(&self) -> u32 {
        if self.layers == 1 { 1 } else { LINES / self.groups }
    }

    /// 16 times the board of a terminal, and its line there.
    fn place(&self, terminal: u32) -> u32 {
        match self.cabling {
            Cabling::HalvesStraight | Cabling::HalvesInterleaved => terminal,
            Cabling::RoundRobinStraight | Cabling::RoundRobinInterleaved => LINES * (terminal % self.boards) + terminal / self.boards,
        }
    }

    /// The output of a board of the first layer that is a cable to a group.
    fn output(&self, group: u32, cable: u32) -> u32 {
        match self.cabling {
            Cabling::HalvesStraight | Cabling::RoundRobinStraight => group * self.cables() + cable,
            Cabling::HalvesInterleaved | Cabling::RoundRobinInterleaved => cable * self.groups + group,
        }
    }

    /// The router of a stage that has a place of its boards: a board and a router of it.
    fn router(&self, stage: u32, board: u32, router: u32) -> RouterId {
        RouterId(stage * self.routers_of_a_stage() + RADIX * board + router)
    }

    fn input_of(&self, layer: u32, board: u32, line: u32) -> (RouterId, Port) {
        (self.router(2 * layer, board, line % RADIX), (line / RADIX) as Port)
    }

    fn output_of(&self, layer: u32, board: u32, line: u32) -> (RouterId, Port) {
        (self.router(2 * layer + 1, board, line / RADIX), (line % RADIX) as Port)
    }

    /// The board of the second layer, and its input, at the end of a cable of a board of the first.
    fn end(&self, board: u32, group: u32, cable: u32) -> (u32, u32) {
        let cable = board * self.cables() + cable;
        if self.layers == 2 { (group, cable) } else { (LINES * group + cable % LINES, cable / LINES) }
    }

    fn join(&self, builder: &mut NetworkBuilder, context: &BuildContext<'_>) {
        let link = |stage: u32| context.channels.link(stage as usize);
        for layer in 0..self.layers {
            for board in 0..self.boards {
                for (router, output) in (0..RADIX).flat_map(|router| (0..RADIX).map(move |output| (router, output))) {
                    let from = (self.router(2 * layer, board, router), output as Port);
                    builder.add_channel(from, (self.router(2 * layer + 1, board, output), router as Port), link(2 * layer));
                }
            }
        }
        if self.layers > 1 {
            for board in 0..self.boards {
                for (group, cable) in (0..self.groups).flat_map(|group| (0..self.cables()).map(move |cable| (group, cable))) {
                    let (other, line) = self.end(board, group, cable);
                    builder.add_channel(self.output_of(0, board, self.output(group, cable)), self.input_of(1, other, line), link(1));
                }
            }
        }
        if self.layers > 2 {
            for (board, output) in (0..self.boards).flat_map(|board| (0..LINES).map(move |output| (board, output))) {
                let (group, within) = (board / LINES, board % LINES);
                builder.add_channel(self.output_of(1, board, output), self.input_of(2, LINES * group + output, within), link(3));
            }
        }
        for terminal in 0..self.terminals {
            let (board, line) = (self.place(terminal) / LINES, self.place(terminal) % LINES);
            let (enters, leaves) = (self.input_of(0, board, line), self.output_of(self.layers - 1, board, line));
            builder.add_split_terminal(enters, leaves, context.channels.terminal_link());
        }
    }

    /// The outputs of all stages on the way by a cable to a terminal.
    fn tag(&self, cable: u32, terminal: u32) -> Vec<u32> {
        let place = self.place(terminal);
        let (board, line) = (place / LINES, place % LINES);
        let outputs = match self.layers {
            1 => vec![line],
            2 => vec![self.output(board, cable), line],
            _ => vec![self.output(board / LINES, cable), board % LINES, line],
        };
        outputs.into_iter().flat_map(|output| [output / RADIX, output % RADIX]).collect()
    }

    fn label(&self, builder: &mut NetworkBuilder) {
        let of_stage = self.routers_of_a_stage();
        let routers = || 0..self.stages() * of_stage;
        builder.label_routers("stage", routers().map(|router| router / of_stage).collect());
        builder.label_routers("position", routers().map(|router| router % of_stage).collect());
        builder.label_routers("board", routers().map(|router| router % of_stage / RADIX).collect());
        let terminals = || 0..self.terminals;
        let tags: Vec<Vec<Vec<u32>>> =
            (0..self.cables()).map(|cable| terminals().map(|terminal| self.tag(cable, terminal)).collect()).collect();
        let of_stage = |stage: usize| tags.iter().flatten().map(move |tag| tag[stage]);
        builder.set_attribute("tag_radix", vec![RADIX]);
        builder.set_attribute("tags", (0..self.stages() as usize).flat_map(of_stage).collect());
        let cables = |share: fn(Cable, u32) -> u32| terminals().map(|terminal| share(self.cable, terminal) % self.cables()).collect();
        builder.set_attribute("cable_from", cables(Cable::of_source));
        builder.set_attribute("cable_to", cables(Cable::of_destination));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ChannelId, TerminalId};
    use crate::network::Endpoint;
    use crate::topology::{ChannelParameters, NoFiles};

    const CABLINGS: [Cabling; 4] =
        [Cabling::HalvesStraight, Cabling::HalvesInterleaved, Cabling::RoundRobinStraight, Cabling::RoundRobinInterleaved];

    fn build(terminals: u32, cabling: Cabling) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        Cenju4Network { terminals, cabling, cable: Cable::default() }.build(&context)
    }

    #[test]
    fn stages_and_routers_follow_from_the_boards() {
        for (terminals, stages) in [(8, 2), (16, 2), (32, 4), (64, 4), (128, 4), (256, 4), (512, 6), (1024, 6)] {
            for cabling in CABLINGS {
                let network = build(terminals, cabling).unwrap();
                let last = network.labels().router("stage").unwrap().iter().max().copied();
                assert_eq!((network.terminal_count(), last), (terminals, Some(stages - 1)));
                // 8 routers a board, N/16 boards a layer, two stages a layer.
                assert_eq!(network.router_count(), 8 * (stages / 2) * terminals.div_ceil(16));
            }
        }
    }

    /// No router has a port without a channel from 16 nodes on, so each layer has 16 lines in use for each of its boards.
    #[test]
    fn every_line_of_every_board_is_in_use() {
        for terminals in [16, 32, 64, 128, 256, 512, 1024] {
            for cabling in CABLINGS {
                let network = build(terminals, cabling).unwrap();
                for router in (0..network.router_count()).map(RouterId) {
                    let used = |port| network.output_channel(router, port).is_some() && network.input_channel(router, port).is_some();
                    assert!((0..4).all(used), "{terminals} {cabling:?}: router {router}");
                }
            }
        }
        // The machine of 32 nodes is four boards.
        assert_eq!(build(32, Cabling::default()).unwrap().router_count(), 4 * 8);
    }

    /// In two layers as many cables join each pair of boards; in three each board of the first reaches each group as often.
    #[test]
    fn bundles_of_cables_are_equal() {
        for terminals in [32, 64, 128, 256, 512, 1024] {
            let boards = terminals / 16;
            let groups = if boards <= 16 { boards } else { boards / 16 };
            for cabling in CABLINGS {
                let network = build(terminals, cabling).unwrap();
                let (stage, board) = (network.labels().router("stage").unwrap(), network.labels().router("board").unwrap());
                let mut cables = vec![0; (boards * groups) as usize];
                for channel in (0..network.channel_count()).map(ChannelId) {
                    let (Endpoint::Router(from, _), Endpoint::Router(to, _)) = (network.source(channel), network.destination(channel))
                    else {
                        continue;
                    };
                    if stage[from.index()] == 1 {
                        let group = board[to.index()] / (boards / groups);
                        cables[(board[from.index()] * groups + group) as usize] += 1;
                    }
                }
                assert!(cables.iter().all(|&count| count == 16 / groups), "{terminals} {cabling:?}: {cables:?}");
            }
        }
    }

    #[test]
    fn terminals_are_dealt_to_boards_by_halves_or_in_turn() {
        let first_board = |cabling| {
            let network = build(32, cabling).unwrap();
            let board = |terminal: u32| network.injection_port(TerminalId(terminal)).0.0 / 4;
            (0..32).filter(|&terminal| board(terminal) == 0).collect::<Vec<_>>()
        };
        assert_eq!(first_board(Cabling::HalvesStraight), (0..16).collect::<Vec<_>>());
        assert_eq!(first_board(Cabling::RoundRobinInterleaved), (0..32).step_by(2).collect::<Vec<_>>());
    }

    #[test]
    fn machines_that_leave_lines_unused_are_refused() {
        for terminals in [0, 7, 9, 24, 33, 48, 1000, 1025, 2048] {
            let refused = build(terminals, Cabling::default()).unwrap_err().to_string();
            assert!(refused.contains("terminals") && refused.contains("16 lines"), "{refused}");
        }
    }
}
