//! Up to a nearest common ancestor and down again on trees whose levels have their own arities and parallel links.

use super::choice::Choice;
use super::contract::{Routing, RoutingFacts};
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use super::up_port::UpPort;
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;

/// A level of routers.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Different nodes below a router, m.
    down: u32,
    /// Parallel links to each of them.
    copies: u32,
    /// Different nodes above a node of the level below, w: its up port q leads to node q mod w.
    width: u32,
    /// Ports up.
    up: u32,
    /// Terminals below one port down, M of the level below.
    below: u32,
    /// The product of the widths up to this level, W, and up to the one below.
    columns: u32,
    columns_below: u32,
}

/// The paths of `nca` on an `xgft`.
#[derive(Debug)]
pub(super) struct LevelPaths {
    up_port: UpPort,
    /// By router: its level, from 0, and the least terminal below.
    routers: Vec<(u32, u32)>,
    levels: Vec<Level>,
}

impl LevelPaths {
    /// The paths of a network, if it has the labels of such a tree.
    pub(super) fn of(network: &Network, up_port: UpPort) -> Option<Self> {
        let labels = network.labels();
        let (&count, numbers) = labels.attribute("xgft")?.split_first()?;
        let count = count as usize;
        let (m, rest) = numbers.split_at_checked(count)?;
        let (w, p) = rest.split_at_checked(count)?;
        let (level, first) = (labels.router("level")?, labels.router("first_terminal")?);
        if p.len() != count || network.further_home_count() > 0 {
            return None;
        }
        let level_at = |place: usize| Level {
            down: m[place],
            copies: p[place],
            width: w[place],
            up: if place + 1 < count { w[place + 1] * p[place + 1] } else { 0 },
            below: m[..place].iter().product(),
            columns: w[..=place].iter().product(),
            columns_below: w[..place].iter().product(),
        };
        let routers = level.iter().zip(first).map(|(&level, &first)| (level - 1, first)).collect();
        Some(Self { up_port, routers, levels: (0..count).map(level_at).collect() })
    }

    /// The level of a router, and the digit of the destination below it, if it lies there.
    fn stand(&self, router: RouterId, destination: TerminalId) -> (Level, Option<u32>) {
        let (level, first) = self.routers[router.index()];
        let level = self.levels[level as usize];
        // A destination before the first terminal wraps to a large number, which lies beyond the reach.
        let offset = destination.0.wrapping_sub(first);
        (level, (offset < level.below * level.down).then(|| offset / level.below))
    }

    /// The port down to a node by the copy that belongs to the column of this terminal.
    fn down(level: Level, digit: u32, terminal: TerminalId) -> u32 {
        digit + level.down * (terminal.0 / level.columns_below % (level.width * level.copies) / level.width)
    }

    /// The port up of the column of this terminal.
    fn up(level: Level, terminal: TerminalId) -> u32 {
        terminal.0 / level.columns % level.up
    }
}

impl Routing for LevelPaths {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            reads: Reads {
                source: self.up_port == UpPort::SModK,
                input: self.up_port == UpPort::Straight,
                // The digits below a router follow from the terminal.
                ..Reads { terminal: true, ..Reads::DESTINATION_ROUTER }
            },
            observes_congestion: matches!(self.up_port, UpPort::Adaptive | UpPort::BetterOfTwo),
            spreading_key: "routing.up_port",
            ..RoutingFacts::default()
        }
    }

    /// A packet that has to go up may take any port up, unless its column is fixed by its terminals.
    fn accepts(&self, hop: &Hop, _state: u32, port: Port) -> Option<VirtualChannels> {
        let free = !matches!(self.up_port, UpPort::DModK | UpPort::SModK);
        let (level, digit) = self.stand(hop.router, hop.destination);
        let first = level.down * level.copies;
        let is_up = (first..first + level.up).contains(&u32::from(port));
        (free && digit.is_none() && is_up).then_some(hop.available)
    }

    fn port_to(&self, router: RouterId, destination: TerminalId) -> Option<Port> {
        if self.up_port != UpPort::DModK {
            return None;
        }
        let port = match self.stand(router, destination) {
            (level, Some(digit)) => Self::down(level, digit, destination),
            (level, None) => level.down * level.copies + Self::up(level, destination),
        };
        Some(port as Port)
    }

    fn route(&self, hop: &Hop, _state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (level, digit) = self.stand(hop.router, hop.destination);
        // The ports among which the packet may choose: the copies of the link down, or all ports up.
        let (first, step, count) = match digit {
            Some(digit) => (digit, level.down, level.copies),
            None => (level.down * level.copies, 1, level.up),
        };
        let port = |index: u32| (first + index * step) as Port;
        let of_terminal = |terminal: TerminalId| match digit {
            Some(digit) => Self::down(level, digit, terminal) as Port,
            None => (first + Self::up(level, terminal)) as Port,
        };
        let chosen = match self.up_port {
            UpPort::Random => port(choice.uniform(count)),
            UpPort::DModK => of_terminal(hop.destination),
            UpPort::SModK => of_terminal(hop.source),
            UpPort::Straight => port(u32::from(hop.input) % count),
            UpPort::Adaptive => port(choice.least_occupied(count, &|view, index| i64::from(view.occupied(port(index), hop.available)))),
            UpPort::BetterOfTwo => {
                let drawn = [0, 1].map(|_| port(choice.uniform(count)));
                let occupied = |which: u32| drawn[which as usize];
                drawn[choice.least_occupied(2, &|view, which| i64::from(view.occupied(occupied(which), hop.available))) as usize]
            }
        };
        candidates.push(Candidate::new(chosen, hop.available));
    }
}
