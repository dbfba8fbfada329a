//! Fat tree with its own number of up and down links per router; the k-ary n-tree is the case of equal numbers.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// The (p, q, r) fat tree: p = `up` and q = `down` links per router, r = `levels` levels, q^r terminals.
///
/// Level 1 holds the leaves, level r the top. Router (l, high, low), high in 0..q^(r-l) and low in 0..p^(l-1), has the number
/// (routers of the levels below l) + high p^(l-1) + low. Ports 0..q-1 lead down, q..q+p-1 up; the top has no up ports. Terminal
/// b sits on leaf (1, b div q, 0), port b mod q. Up port j of (l, high, low) leads to (l+1, high div q, low + j p^(l-1)), and
/// arrives at its down port high mod q.
///
/// With `sides = 2` two copies of the levels below the top share it; each top router has q down ports to the first copy and q
/// to the second, and the routers of the first copy come first, then those of the second, then the top.
///
/// Labels: routers `level`, `side`, `position.high`, `position.low`, `first_terminal` (the least terminal below); attributes
/// `fat_tree` = [up, down, levels, sides], `terminal_digits` and `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Links of a router towards the top, p.
    pub up: u32,
    /// Links of a router towards the terminals, q.
    pub down: u32,
    /// Levels of routers, r.
    pub levels: u32,
    /// 1, or 2 for two trees that share their top routers (then `up` must equal `down`).
    #[serde(default = "one")]
    pub sides: u32,
}

fn one() -> u32 {
    1
}

impl Member for FatTree {
    const NAME: &'static str = "fat-tree";
    const SUMMARY: &'static str = "(p, q, r) fat tree: p links up and q down per router, r levels, one or two sides";
    const SOURCE: &'static str =
        "Petrini and Vanneschi, k-ary n-trees (IPPS 1997), with p up and q down links; Dally and Towles (2004), section 6.3";
    const EXAMPLE: &'static str = "up = 2\ndown = 3\nlevels = 3";
}

impl Topology for FatTree {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        self.check()?;
        context.channels.check(self.levels as usize - 1)?;
        let mut tree = Builder { shape: self, network: NetworkBuilder::new(self.name()), columns: Columns::default() };
        for side in 0..self.sides {
            for level in 1..self.levels {
                tree.add_level(side, level)?;
            }
        }
        tree.add_level(0, self.levels)?;
        for side in 0..self.sides {
            tree.add_links(side, context);
            tree.add_terminals(side, context);
        }
        tree.finish()
    }
}

impl FatTree {
    fn name(&self) -> String {
        let sides = if self.sides == 2 { ", two-sided" } else { "" };
        format!("fat-tree ({}, {}, {}){sides}", self.up, self.down, self.levels)
    }

    fn check(&self) -> Result<(), NetworkError> {
        if self.up == 0 {
            return Err(NetworkError::parameter("up", "is 0; a router below the top needs at least 1 link up"));
        }
        if self.down < 2 {
            return Err(NetworkError::parameter("down", format!("is {}; a router needs at least 2 links down", self.down)));
        }
        if self.levels == 0 {
            return Err(NetworkError::parameter("levels", "is 0; a tree has at least 1 level of routers"));
        }
        if self.sides != 1 && self.sides != 2 {
            return Err(NetworkError::parameter("sides", format!("is {}; a tree has 1 side or 2", self.sides)));
        }
        if self.sides == 2 && self.up != self.down {
            let problem = format!("is 2 with up = {} and down = {}; two sides need up = down", self.up, self.down);
            return Err(NetworkError::parameter("sides", problem));
        }
        let size = |radix: u32| radix.checked_pow(self.levels).filter(|&size| size <= 1 << 27);
        if size(self.down).is_none() || size(self.up).is_none() {
            return Err(NetworkError::TooLarge(format!("{}; the limit is 2^27 terminals a side", self.name())));
        }
        Ok(())
    }

    /// Routers of one side and level.
    fn routers_at(&self, level: u32) -> u32 {
        self.down.pow(self.levels - level) * self.up.pow(level - 1)
    }

    /// The number of router (level, high, low) of one side.
    fn router(&self, side: u32, level: u32, high: u32, low: u32) -> RouterId {
        let below_top: u32 = (1..self.levels).map(|level| self.routers_at(level)).sum();
        let base = if level == self.levels {
            self.sides * below_top
        } else {
            side * below_top + (1..level).map(|level| self.routers_at(level)).sum::<u32>()
        };
        RouterId(base + high * self.up.pow(level - 1) + low)
    }
}

/// One column per router label.
#[derive(Default)]
struct Columns {
    level: Vec<u32>,
    side: Vec<u32>,
    high: Vec<u32>,
    low: Vec<u32>,
    first_terminal: Vec<u32>,
}

struct Builder<'a> {
    shape: &'a FatTree,
    network: NetworkBuilder,
    columns: Columns,
}

impl Builder<'_> {
    fn add_level(&mut self, side: u32, level: u32) -> Result<(), NetworkError> {
        let FatTree { up, down, levels, sides } = *self.shape;
        let ports = if level == levels { down * sides } else { down + up };
        let width = up.pow(level - 1);
        for router in 0..self.shape.routers_at(level) {
            self.network.add_router(ports as usize)?;
            self.columns.level.push(level);
            self.columns.side.push(side);
            self.columns.high.push(router / width);
            self.columns.low.push(router % width);
            self.columns.first_terminal.push(side * down.pow(levels) + router / width * down.pow(level));
        }
        Ok(())
    }

    fn add_links(&mut self, side: u32, context: &BuildContext<'_>) {
        let FatTree { up, down, levels, .. } = *self.shape;
        for level in 1..levels {
            let link = context.channels.link(level as usize - 1);
            let width = up.pow(level - 1);
            let (here, above) = (self.shape.router(side, level, 0, 0), self.shape.router(side, level + 1, 0, 0));
            // The top serves the second side by the ports after those of the first.
            let first_port = if level + 1 == levels { side * down } else { 0 };
            for router in 0..self.shape.routers_at(level) {
                let (high, low) = (router / width, router % width);
                for j in 0..up {
                    let parent = above.0 + high / down * (width * up) + low + j * width;
                    let from = (RouterId(here.0 + router), (down + j) as Port);
                    self.network.add_link(from, (RouterId(parent), (first_port + high % down) as Port), link);
                }
            }
        }
    }

    fn add_terminals(&mut self, side: u32, context: &BuildContext<'_>) {
        let FatTree { down, levels, .. } = *self.shape;
        let leaf = self.shape.router(side, 1, 0, 0);
        let first_port = if levels == 1 { side * down } else { 0 };
        for terminal in 0..down.pow(levels) {
            let port = (first_port + terminal % down) as Port;
            self.network.add_terminal(RouterId(leaf.0 + terminal / down), port, context.channels.terminal_link());
        }
    }

    fn finish(mut self) -> Result<Network, NetworkError> {
        let FatTree { up, down, levels, sides } = *self.shape;
        self.network.label_routers("level", self.columns.level);
        self.network.label_routers("side", self.columns.side);
        self.network.label_routers("position.high", self.columns.high);
        self.network.label_routers("position.low", self.columns.low);
        self.network.label_routers("first_terminal", self.columns.first_terminal);
        self.network.set_attribute("fat_tree", vec![up, down, levels, sides]);
        // Shortest paths go up and then down, and never up again.
        self.network.set_attribute("hops_per_class", vec![(2 * (levels - 1)).max(1)]);
        let mut digits = vec![down; levels as usize];
        if sides == 2 {
            digits.push(2);
        }
        self.network.set_attribute("terminal_digits", digits);
        self.network.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TerminalId;
    use crate::network::Endpoint;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(up: u32, down: u32, levels: u32, sides: u32) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        FatTree { up, down, levels, sides }.build(&context)
    }

    /// S_l = q^(r-l) p^(l-1) routers on level l, p S_l links above it.
    #[test]
    fn counts_follow_the_closed_forms() {
        for (p, q, r) in [(4, 4, 3), (16, 16, 2), (2, 4, 3), (3, 2, 4), (5, 5, 1)] {
            let network = build(p, q, r, 1).unwrap();
            let at = |l: u32| q.pow(r - l) * p.pow(l - 1);
            assert_eq!(network.terminal_count(), q.pow(r));
            assert_eq!(network.router_count(), (1..=r).map(at).sum::<u32>());
            assert_eq!(network.router_channels().count() as u32, 2 * (1..r).map(|l| p * at(l)).sum::<u32>());
            let top = RouterId(network.router_count() - 1);
            assert_eq!(network.port_count(top), q);
        }
    }

    /// Two levels and p = q = d: 2 d^2 terminals, 3 d routers; three levels: 2 d^3 and 5 d^2. Every port is used.
    #[test]
    fn two_sides_share_the_top() {
        for d in 2..6 {
            let two = build(d, d, 2, 2).unwrap();
            assert_eq!((two.terminal_count(), two.router_count()), (2 * d * d, 3 * d));
            let three = build(d, d, 3, 2).unwrap();
            assert_eq!((three.terminal_count(), three.router_count()), (2 * d.pow(3), 5 * d * d));
            // Terminals a router: 2 d / 3 and 2 d / 5.
            let per_router = |network: &Network| f64::from(network.terminal_count()) / f64::from(network.router_count());
            assert!((per_router(&two) - 2.0 * f64::from(d) / 3.0).abs() < 1e-12);
            assert!((per_router(&three) - 2.0 * f64::from(d) / 5.0).abs() < 1e-12);
            for router in (0..three.router_count()).map(RouterId) {
                assert_eq!(three.port_count(router), 2 * d);
                assert!((0..2 * d).all(|port| three.output_channel(router, port as Port).is_some()));
            }
        }
    }

    /// Down port d of (l, high, low) leads to (l-1, high q + d, low mod p^(l-2)), arriving at its up port low div p^(l-2).
    #[test]
    fn down_ports_are_the_inverse_of_up_ports() {
        let (p, q) = (3, 4);
        let tree = FatTree { up: p, down: q, levels: 3, sides: 1 };
        let network = build(p, q, 3, 1).unwrap();
        for level in 2..=3 {
            for (high, low) in (0..q.pow(3 - level)).flat_map(|high| (0..p.pow(level - 1)).map(move |low| (high, low))) {
                for down in 0..q {
                    let channel = network.output_channel(tree.router(0, level, high, low), down as Port).unwrap();
                    let width = p.pow(level - 2);
                    let below = tree.router(0, level - 1, high * q + down, low % width);
                    assert_eq!(network.destination(channel), Endpoint::Router(below, (q + low / width) as Port));
                }
            }
        }
        assert_eq!(network.ejection_port(TerminalId(37)), (RouterId(37 / 4), 37 % 4));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (up, down, levels, sides, key) in
            [(0, 4, 3, 1, "up"), (4, 1, 3, 1, "down"), (4, 4, 0, 1, "levels"), (4, 4, 2, 3, "sides"), (2, 4, 2, 2, "sides")]
        {
            assert!(matches!(build(up, down, levels, sides), Err(NetworkError::Parameter { key: found, .. }) if found == key));
        }
        assert!(matches!(build(4, 4, 40, 1), Err(NetworkError::TooLarge(_))));
        assert!(matches!(build(300, 300, 2, 1), Err(NetworkError::TooLarge(_))));
    }
}
