//! Which terminals can be reached from each output of a router, and which can reach each of its inputs.

use kasuri_model::engine::EngineError;
use kasuri_model::id::{Port, RouterId, TerminalId};
use kasuri_model::network::{Endpoint, Network};

/// Terminals in a group: a word of a cone.
pub(crate) const GROUP: usize = 64;

/// The cones of a network in which no path comes back and any two terminals have one path.
pub(crate) struct Cones {
    ports: usize,
    groups: usize,
    /// By router, output and group.
    destinations: Vec<u64>,
    /// By router and input, if all terminals are in one group; else empty.
    sources: Vec<u64>,
}

impl Cones {
    /// Works them out.
    ///
    /// # Errors
    /// A path leads back to its router, or two outputs of a router lead to the same terminal.
    pub(crate) fn new(network: &Network, ports: usize) -> Result<Self, EngineError> {
        let groups = (network.terminal_count() as usize).div_ceil(GROUP);
        let routers = network.router_count() as usize;
        let mut cones = Self { ports, groups, destinations: vec![0; routers * ports * groups], sources: Vec::new() };
        let order = in_order(network)?;
        for &router in order.iter().rev() {
            cones.reach(network, router)?;
        }
        if groups == 1 {
            cones.sources = vec![0; routers * ports];
            for terminal in 0..network.terminal_count() {
                let (router, port) = network.injection_port(TerminalId(terminal));
                cones.sources[router.index() * ports + usize::from(port)] |= 1 << terminal;
            }
            for &router in &order {
                let all = cones.sources[router.index() * ports..][..ports].iter().fold(0, |all, input| all | input);
                for (next, input) in successors(network, router) {
                    cones.sources[next.index() * ports + usize::from(input)] |= all;
                }
            }
        }
        Ok(cones)
    }

    fn reach(&mut self, network: &Network, router: RouterId) -> Result<(), EngineError> {
        let mut all = vec![0u64; self.groups];
        for port in 0..network.port_count(router) as Port {
            let Some(channel) = network.output_channel(router, port) else { continue };
            let mut cone = vec![0u64; self.groups];
            match network.destination(channel) {
                Endpoint::Terminal(terminal) => cone[terminal.0 as usize / GROUP] |= 1 << (terminal.0 as usize % GROUP),
                Endpoint::Router(next, _) => {
                    for output in 0..self.ports {
                        let at = self.place(next.index(), output);
                        cone.iter_mut().zip(&self.destinations[at..at + self.groups]).for_each(|(cone, word)| *cone |= word);
                    }
                }
            }
            if cone.iter().zip(&all).any(|(one, other)| one & other != 0) {
                return Err(refuse("several paths between two terminals"));
            }
            all.iter_mut().zip(&cone).for_each(|(all, cone)| *all |= cone);
            let at = self.place(router.index(), usize::from(port));
            self.destinations[at..at + self.groups].copy_from_slice(&cone);
        }
        Ok(())
    }

    fn place(&self, router: usize, output: usize) -> usize {
        (router * self.ports + output) * self.groups
    }

    /// The outputs of a router that lead to some of a group's terminals.
    pub(crate) fn outputs(&self, router: u32, group: usize, terminals: u64) -> u32 {
        (0..self.ports)
            .filter(|&output| self.destinations[self.place(router as usize, output) + group] & terminals != 0)
            .map(|output| 1 << output)
            .sum()
    }

    /// The inputs of a router to which some of the terminals lead; all terminals are in one group.
    pub(crate) fn inputs(&self, router: u32, terminals: u64) -> u32 {
        let inputs = &self.sources[router as usize * self.ports..][..self.ports];
        inputs.iter().enumerate().filter(|(_, sources)| **sources & terminals != 0).map(|(input, _)| 1 << input).sum()
    }
}

/// The routers, each after all that lead to it.
fn in_order(network: &Network) -> Result<Vec<RouterId>, EngineError> {
    let count = network.router_count();
    let mut incoming = vec![0u32; count as usize];
    for router in (0..count).map(RouterId) {
        successors(network, router).for_each(|(next, _)| incoming[next.index()] += 1);
    }
    let mut order: Vec<RouterId> = (0..count).map(RouterId).filter(|router| incoming[router.index()] == 0).collect();
    let mut done = 0;
    while let Some(&router) = order.get(done) {
        done += 1;
        for (next, _) in successors(network, router) {
            incoming[next.index()] -= 1;
            if incoming[next.index()] == 0 {
                order.push(next);
            }
        }
    }
    if order.len() < count as usize { Err(refuse("paths that lead back to a router")) } else { Ok(order) }
}

/// The routers to which a router's outputs lead, and the inputs there.
fn successors(network: &Network, router: RouterId) -> impl Iterator<Item = (RouterId, Port)> + '_ {
    (0..network.port_count(router) as Port).filter_map(move |port| match network.destination(network.output_channel(router, port)?) {
        Endpoint::Router(next, input) => Some((next, input)),
        Endpoint::Terminal(_) => None,
    })
}

fn refuse(what: &str) -> EngineError {
    EngineError::NotModelled {
        key: "network.topology".to_owned(),
        engine: "flit",
        what: format!("crosspoint routers on a network with {what}; use cenju4, omega or butterfly"),
    }
}
