//! Recursive diagonal torus: a torus whose routers have links of a few larger, diagonal tori too.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// RDT(2, R, m): a torus of side x side routers, rank 0, and above it the diagonal tori of ranks 1 to R.
///
/// With the unit vectors a0 = (1, 0) and b0 = (0, 1) of the torus, those of rank r + 1 are a' = 2 (a + b) and b' = 2 (b - a): rank
/// 1 has (2, 2) and (-2, 2), rank 2 (0, 8) and (-8, 0). A router that has rank r is linked to those at +-a and +-b of it. Every
/// router has the torus. It has one upper rank too, as its coordinates are even or odd: R = 2: 1 2 in even rows and 2 1 in odd
/// ones; R = 3: 1 2 and 2 3; R = 4: 4 2 and 1 3. Or it has all of them (`perfect`).
///
/// Router y * side + x is at (x, y). Ports: +x, -x, +y, -y, then +a, -a, +b, -b of each of its upper ranks, then the terminals.
/// Labels: routers `coordinate.0`, `coordinate.1` and `rank` (0 if `perfect`); attributes `rdt` = [side, ranks, perfect],
/// `unit_vectors` = [ax, ay, bx, by] of each rank from 0, modulo side, and `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rdt {
    /// Routers in each dimension of the torus: a power of two, 8 to 1024.
    pub side: u32,
    /// The highest rank R, 1 to 4; the largest whose rings have at least 4 routers if left out.
    pub ranks: Option<u32>,
    /// Has every router all upper ranks (m = R) instead of one (m = 1)?
    #[serde(default)]
    pub perfect: bool,
    /// Terminals on each router: more than one are several interfaces of one node.
    #[serde(default = "one")]
    pub concentration: u32,
}

fn one() -> u32 {
    1
}

/// The highest rank that the assignment of one rank to a router knows.
const MAX_RANKS: u32 = 4;

impl Member for Rdt {
    const NAME: &'static str = "rdt";
    const SUMMARY: &'static str = "recursive diagonal torus: a torus with one or all of several larger diagonal tori on each router";
    const SOURCE: &'static str = "Yang, Amano, Shibamura and Sueyoshi, SPDP 1993; Yang, Funahashi, Jouraku, Nishi, Amano and Sueyoshi, IEEE TPDS 12(7) \
                                  2001: RDT(2, 4, 1) with 65,536 nodes has diameter 11";
    const EXAMPLE: &'static str = "side = 8";
}

/// A vector on the torus.
type Vector = [i32; 2];

/// The unit vectors a and b of a rank.
fn unit_vectors(rank: u32) -> (Vector, Vector) {
    (0..rank).fold(([1, 0], [0, 1]), |(a, b), _| ([2 * (a[0] + b[0]), 2 * (a[1] + b[1])], [2 * (b[0] - a[0]), 2 * (b[1] - a[1])]))
}

/// The one upper rank of the router at (x, y).
fn rank_at(ranks: u32, x: u32, y: u32) -> u32 {
    let pattern: [[u32; 2]; 2] = match ranks {
        1 => [[1, 1], [1, 1]],
        2 => [[1, 2], [2, 1]],
        3 => [[1, 2], [2, 3]],
        _ => [[4, 2], [1, 3]],
    };
    pattern[(y % 2) as usize][(x % 2) as usize]
}

/// Does a router have this upper rank, and by which port does its +a channel leave then? The ports of -a, +b and -b follow.
fn first_port(ranks: u32, perfect: bool, rank: u32, at: [u32; 2]) -> Option<Port> {
    if perfect {
        return Some(4 * rank as Port);
    }
    (rank_at(ranks, at[0], at[1]) == rank).then_some(4)
}

/// Routers on a ring of this rank.
fn ring(side: u32, rank: u32) -> u32 {
    let (a, _) = unit_vectors(rank);
    side / a[0].unsigned_abs().max(a[1].unsigned_abs())
}

impl Topology for Rdt {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let ranks = self.check()?;
        context.channels.check(1 + ranks as usize)?;
        let upper = if self.perfect { ranks } else { 1 };
        let name = if self.perfect { "perfect " } else { "" };
        let mut builder = NetworkBuilder::new(format!("{name}rdt {0} x {0}, ranks to {ranks}", self.side));
        let first_terminal_port = 4 + 4 * upper as usize;
        for _ in 0..self.side * self.side {
            builder.add_router(first_terminal_port + self.concentration as usize)?;
        }
        for router in 0..self.side * self.side {
            self.link(&mut builder, context, ranks, router);
        }
        for router in 0..self.side * self.side {
            for terminal in 0..self.concentration {
                let port = (first_terminal_port + terminal as usize) as Port;
                builder.add_terminal(RouterId(router), port, context.channels.terminal_link());
            }
        }
        self.label(&mut builder, ranks);
        builder.finish()
    }
}

impl Rdt {
    /// The highest rank.
    fn check(&self) -> Result<u32, NetworkError> {
        if !self.side.is_power_of_two() || !(8..=1024).contains(&self.side) {
            let nearest = self.side.clamp(8, 1024).next_power_of_two();
            return Err(NetworkError::parameter(
                "side",
                format!("is {}; it must be a power of two from 8 to 1024, e.g. {nearest}", self.side),
            ));
        }
        if self.concentration == 0 {
            return Err(NetworkError::parameter("concentration", "is 0; each router needs at least 1 terminal"));
        }
        let most = (1..=MAX_RANKS).rev().find(|&rank| ring(self.side, rank) >= 4).unwrap_or(1);
        match self.ranks {
            Some(ranks) if !(1..=most).contains(&ranks) => Err(NetworkError::parameter(
                "ranks",
                format!("is {ranks}; with side = {} it must be 1 to {most}, so that every ring has at least 4 routers", self.side),
            )),
            asked => Ok(asked.unwrap_or(most)),
        }
    }

    /// Adds the links that leave a router in positive directions.
    fn link(&self, builder: &mut NetworkBuilder, context: &BuildContext<'_>, ranks: u32, router: u32) {
        let at = [router % self.side, router / self.side];
        let mut link = |by: Vector, port: Port, rank: u32| {
            let wrapped = |dimension: usize| (at[dimension] as i32 + by[dimension]).rem_euclid(self.side as i32) as u32;
            let next = RouterId(wrapped(1) * self.side + wrapped(0));
            builder.add_link((RouterId(router), port), (next, port + 1), context.channels.link(rank as usize));
        };
        for rank in 0..=ranks {
            let port = if rank == 0 { Some(0) } else { first_port(ranks, self.perfect, rank, at) };
            if let Some(port) = port {
                let (a, b) = unit_vectors(rank);
                link(a, port, rank);
                link(b, port + 2, rank);
            }
        }
    }

    fn label(&self, builder: &mut NetworkBuilder, ranks: u32) {
        let column =
            |of: &dyn Fn(u32, u32) -> u32| (0..self.side * self.side).map(|router| of(router % self.side, router / self.side)).collect();
        builder.label_routers("coordinate.0", column(&|x, _| x));
        builder.label_routers("coordinate.1", column(&|_, y| y));
        builder.label_routers("rank", column(&|x, y| if self.perfect { 0 } else { rank_at(ranks, x, y) }));
        builder.set_attribute("rdt", vec![self.side, ranks, u32::from(self.perfect)]);
        let vectors = (0..=ranks).map(unit_vectors).flat_map(|(a, b)| [a[0], a[1], b[0], b[1]]);
        builder.set_attribute("unit_vectors", vectors.map(|coordinate| coordinate.rem_euclid(self.side as i32) as u32).collect());
        builder.set_attribute("hops_per_class", vec![1]);
    }
}
