//! Up to a nearest common ancestor and down again, on fat trees.

use super::choice::{Choice, CongestionView};
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::divisor::Divisor;
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use super::nca_levels::LevelPaths;
pub use super::up_port::UpPort;
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Goes up until the destination lies below, then down the only path that is left.
///
/// Every router of the level of the nearest common ancestor serves; `up_port` chooses among the paths up. All policies are
/// free of deadlock with one virtual channel: a packet's channels rise strictly in the order injection, up by rising level,
/// down by falling level, ejection.
///
/// On an `xgft` or `leaf-spine` with parallel links the policy chooses the copy of a link down, too. D-mod-k takes up port
/// (destination div W) mod (w p) there, W the product of the numbers of routers above a node up to this level, and down the copy of the
/// same digit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nca {
    /// Which path up.
    #[serde(default)]
    pub up_port: UpPort,
}

impl Member for Nca {
    const NAME: &'static str = "nca";
    const SUMMARY: &'static str = "fat tree: up to a nearest common ancestor, then down; up_port chooses the path up";
    const SOURCE: &'static str =
        "Dally and Towles (2004), section 8.2.2 and chapter 9; d-mod-k: Zahavi, J. Parallel Distrib. Comput. 72 (2012)";
    const EXAMPLE: &'static str = "up_port = \"random\"";
}

impl RoutingAlgorithm for Nca {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        if let Some(paths) = LevelPaths::of(network, self.up_port) {
            return Ok(Box::new(paths));
        }
        let labels = network.labels();
        let (Some(&[up, down, levels, sides]), Some(level), Some(first)) =
            (labels.attribute("fat_tree"), labels.router("level"), labels.router("first_terminal"))
        else {
            return Err(RoutingError::Mismatch {
                routing: Self::NAME,
                network: network.name().to_owned(),
                problem: "it needs a fat tree, an xgft, or a leaf-spine network with one port per terminal".to_owned(),
            });
        };
        let below: Vec<Divisor> = (0..levels).map(|level| Divisor::new(down.pow(level))).collect();
        let mut reach: Vec<u32> = (1..=levels).map(|level| down.pow(level)).collect();
        reach[levels as usize - 1] *= sides;
        let routers = level.iter().zip(first).map(|(&level, &first_terminal)| Place { level_below: level - 1, first_terminal }).collect();
        Ok(Box::new(Compiled { up_port: self.up_port, up: Divisor::new(up), down: Divisor::new(down), routers, reach, below }))
    }
}

/// Where a router stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its level less 1.
    level_below: u32,
    /// The least terminal below it.
    first_terminal: u32,
}

#[derive(Debug)]
struct Compiled {
    up_port: UpPort,
    up: Divisor,
    down: Divisor,
    routers: Vec<Place>,
    /// Terminals below a router, by level less 1.
    reach: Vec<u32>,
    /// Terminals below one of its down ports, by level less 1.
    below: Vec<Divisor>,
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            reads: Reads {
                input: matches!(self.up_port, UpPort::Straight | UpPort::SModK),
                terminal: self.up_port == UpPort::DModK,
                ..Reads::DESTINATION_ROUTER
            },
            observes_congestion: matches!(self.up_port, UpPort::Adaptive | UpPort::BetterOfTwo),
            spreading_key: "routing.up_port",
            ..RoutingFacts::default()
        }
    }

    /// A packet that has to go up may take any port up, unless its column is fixed by its terminals.
    fn accepts(&self, hop: &Hop, _state: u32, port: Port) -> Option<VirtualChannels> {
        let free = matches!(self.up_port, UpPort::Random | UpPort::Straight | UpPort::Adaptive | UpPort::BetterOfTwo);
        let place = self.routers[hop.router.index()];
        let below = hop.destination.0.wrapping_sub(place.first_terminal) < self.reach[place.level_below as usize];
        let first = self.down.value;
        let is_up = u32::from(port) >= first && u32::from(port) < first + self.up.value;
        (free && !below && is_up).then_some(hop.available)
    }

    fn port_to(&self, router: RouterId, destination: TerminalId) -> Option<Port> {
        if self.up_port != UpPort::DModK {
            return None;
        }
        let port = match self.stand(router, destination) {
            Stand::Above(port) => port,
            Stand::Elsewhere(below) => self.down.value + self.column(below, destination),
        };
        Some(port as Port)
    }

    fn route(&self, hop: &Hop, _state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let port = match self.stand(hop.router, hop.destination) {
            Stand::Above(port) => port,
            Stand::Elsewhere(below) => self.down.value + self.path_up(hop, below, choice),
        };
        candidates.push(Candidate::new(port as Port, hop.available));
    }
}

/// How a router stands to a destination.
enum Stand {
    /// Above it: the down port that leads there.
    Above(u32),
    /// Elsewhere: the terminals below one of the router's down ports.
    Elsewhere(Divisor),
}

impl Compiled {
    #[inline(always)]
    fn stand(&self, router: RouterId, destination: TerminalId) -> Stand {
        let place = self.routers[router.index()];
        let level = place.level_below as usize;
        let below = self.below[level];
        // A destination before the first terminal wraps to a large number, which lies beyond the reach.
        let offset = destination.0.wrapping_sub(place.first_terminal);
        if offset < self.reach[level] { Stand::Above(below.quotient(offset)) } else { Stand::Elsewhere(below) }
    }

    /// The up port of d-mod-k.
    #[inline(always)]
    fn column(&self, below: Divisor, destination: TerminalId) -> u32 {
        self.up.remainder(self.down.remainder(below.quotient(destination.0)))
    }

    fn occupied(&self, view: &dyn CongestionView, hop: &Hop, up: u32) -> i64 {
        i64::from(view.occupied((self.down.value + up) as Port, hop.available))
    }

    fn path_up(&self, hop: &Hop, below: Divisor, choice: &mut dyn Choice) -> u32 {
        match self.up_port {
            UpPort::Random => choice.uniform(self.up.value),
            UpPort::DModK => self.column(below, hop.destination),
            // The packet came in by the down port that is the source's digit of this level.
            UpPort::SModK | UpPort::Straight => self.up.remainder(u32::from(hop.input)),
            UpPort::Adaptive => choice.least_occupied(self.up.value, &|view, up| self.occupied(view, hop, up)),
            UpPort::BetterOfTwo => {
                let drawn = [0, 1].map(|_| choice.uniform(self.up.value));
                drawn[choice.least_occupied(2, &|view, which| self.occupied(view, hop, drawn[which as usize])) as usize]
            }
        }
    }
}
