//! In which direction heads cross routers that have levels: up, down, or up before and down from there on.

use super::contract::inputs;
use crate::id::{Port, RouterId};
use crate::network::{Endpoint, Network};

/// The directions, in the order in which they are counted: up: from below and on upwards; turn: from below and down, or the reverse; down: from
/// above and on downwards. A terminal lies below all levels.
pub const DIRECTIONS: [&str; 3] = ["up", "turn", "down"];

/// Cases of a level: whether a head comes from above, times 2, and whether it goes up.
pub const CASES: usize = 4;

/// Of each level, the lowest first, and of each of [`DIRECTIONS`]: chances, and those that were hits.
pub type ByLevel = Vec<[[u64; 2]; 3]>;

/// Sums up counts by case for each level.
pub fn by_level<N: Copy + std::ops::Add<Output = N>>(cases: &[[N; 2]]) -> Vec<[[N; 2]; 3]> {
    let sum = |one: [N; 2], other: [N; 2]| [one[0] + other[0], one[1] + other[1]];
    let of_level = |cases: &[[N; 2]]| [cases[1], sum(cases[0], cases[3]), cases[2]];
    cases.chunks_exact(CASES).map(of_level).collect()
}

/// The directions across the routers of a network that have levels.
#[derive(Clone, Debug)]
pub struct Directions {
    levels: usize,
    /// By port, as numbered by [`Network::port_index`]: the case of heads that come by it and go down, and whether it leads up.
    case: Vec<u16>,
    leads_up: Vec<bool>,
}

impl Directions {
    /// Those of a network whose routers have levels.
    pub fn of(network: &Network) -> Option<Self> {
        let level = network.labels().router("level")?;
        let (&lowest, &highest) = (level.iter().min()?, level.iter().max()?);
        let (mut case, mut leads_up) = (vec![0; inputs(network)], vec![false; inputs(network)]);
        for router in (0..network.router_count()).map(RouterId) {
            let here = level[router.index()];
            let is_above = |end: Endpoint| matches!(end, Endpoint::Router(other, _) if level[other.index()] > here);
            for port in 0..network.port_count(router) as Port {
                let from_above = network.input_channel(router, port).is_some_and(|channel| is_above(network.source(channel)));
                let index = network.port_index(router, port);
                case[index] = (here - lowest) as u16 * CASES as u16 + 2 * u16::from(from_above);
                leads_up[index] = network.output_channel(router, port).is_some_and(|channel| is_above(network.destination(channel)));
            }
        }
        Some(Self { levels: (highest - lowest) as usize + 1, case, leads_up })
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// The case of heads that come to a router by an input port and go down from there.
    pub fn case_of_input(&self, input: usize) -> u16 {
        self.case[input]
    }

    /// Does an output port lead up?
    pub fn leads_up(&self, output: usize) -> bool {
        self.leads_up[output]
    }

    /// The case of heads that come by an input port and leave by an output port.
    pub fn case(&self, input: usize, output: usize) -> usize {
        usize::from(self.case[input]) + usize::from(self.leads_up[output])
    }
}
