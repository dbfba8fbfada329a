//! What routers and terminals have to do, expected or measured: tiles have equal parts of it.

use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network};

/// Ports of routers that take about as much work as a terminal.
const PORTS_OF_TERMINAL: u64 = 2;

/// Work is counted in so many parts of a port that is in use, or of one that sends a flit.
const PORT: u64 = 256;

/// The parts of a port or terminal of which nothing is expected, or that sends nothing in a cycle: it may still be passed through.
const IDLE_PORT: u64 = 8;

/// The work of each terminal and each router.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) of_terminal: Vec<u64>,
    pub(crate) of_router: Vec<u64>,
}

impl Work {
    /// What is expected. `is_busy` tells of which terminals something is: a job on a part of a machine is shared out among all tiles.
    pub(crate) fn expected(network: &Network, is_busy: &dyn Fn(TerminalId) -> bool) -> Self {
        let part = |terminal: u32| if is_busy(TerminalId(terminal)) { PORT } else { IDLE_PORT };
        let parts: Vec<u64> = (0..network.terminal_count()).map(part).collect();
        let of_router = routers_work(network, &parts);
        Self { of_terminal: parts.into_iter().map(|part| PORTS_OF_TERMINAL * part).collect(), of_router }
    }

    /// What so many flits on each channel take, which were sent in so many cycles: who sends a flit has work, and a terminal that gets one.
    pub(crate) fn measured(network: &Network, flits_of_channel: &[u64], cycles: u64) -> Self {
        let idle_port = IDLE_PORT * cycles;
        let ports = |router| u64::from(network.port_count(RouterId(router)));
        let mut of_router: Vec<u64> = (0..network.router_count()).map(|router| ports(router) * idle_port).collect();
        let mut of_terminal = vec![PORTS_OF_TERMINAL * idle_port; network.terminal_count() as usize];
        for (channel, flits) in (0..).map(ChannelId).zip(flits_of_channel) {
            let source = network.source(channel);
            if let Endpoint::Router(router, _) = source {
                of_router[router.index()] += PORT * flits;
            }
            for end in [source, network.destination(channel)] {
                if let Endpoint::Terminal(terminal) = end {
                    of_terminal[terminal.index()] += PORT * flits;
                }
            }
        }
        Self { of_terminal, of_router }
    }

    /// That of all.
    pub(crate) fn all(&self) -> u64 {
        self.of_terminal.iter().sum::<u64>() + self.of_router.iter().sum::<u64>()
    }
}

/// By router: its work, its ports times the parts of a port that its terminals have on average. Routers without terminals have what their
/// neighbours have that are nearer to terminals.
fn routers_work(network: &Network, parts: &[u64]) -> Vec<u64> {
    let routers = network.router_count() as usize;
    let (mut sums, mut counts) = (vec![0; routers], vec![0; routers]);
    for (terminal, part) in (0..).map(TerminalId).zip(parts) {
        let home = network.injection_port(terminal).0.index();
        (sums[home], counts[home]) = (sums[home] + part, counts[home] + 1);
    }
    let mut known: Vec<u32> = (0..routers as u32).filter(|&router| counts[router as usize] > 0).collect();
    let mut is_known: Vec<bool> = counts.iter().map(|&count| count > 0).collect();
    while !known.is_empty() {
        let mut next = Vec::new();
        for &router in &known {
            let part = sums[router as usize] / counts[router as usize];
            for neighbour in neighbours(network, router).filter(|neighbour| !is_known[neighbour.index()]) {
                if counts[neighbour.index()] == 0 {
                    next.push(neighbour.0);
                }
                (sums[neighbour.index()], counts[neighbour.index()]) = (sums[neighbour.index()] + part, counts[neighbour.index()] + 1);
            }
        }
        next.iter().for_each(|&router| is_known[router as usize] = true);
        known = next;
    }
    let part = |router: usize| u64::checked_div(sums[router], counts[router]).unwrap_or(IDLE_PORT);
    (0..routers).map(|router| part(router) * u64::from(network.port_count(RouterId(router as u32)))).collect()
}

/// The routers to which channels of a router lead, each as often as channels do.
pub(crate) fn neighbours(network: &Network, router: u32) -> impl Iterator<Item = RouterId> + '_ {
    let channels = (0..network.port_count(RouterId(router))).filter_map(move |port| network.output_channel(RouterId(router), port as u16));
    channels.filter_map(|channel| match network.destination(channel) {
        Endpoint::Router(next, _) => Some(next),
        Endpoint::Terminal(_) => None,
    })
}
