//! Networks in which no path leads back and any two terminals have one path: the links say it all.

use super::{Behind, GROUP, Synchronisation};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::{Endpoint, Network};

/// The terminals that can be reached from each output, and the routers in the order of the paths.
pub(super) struct Cones {
    pub(super) behind: Behind,
    order: Vec<RouterId>,
}

impl Cones {
    /// Works them out; nothing if a path leads back to its router, or two outputs of a router lead to the same terminal.
    pub(super) fn new(network: &Network, ports: usize) -> Option<Self> {
        let mut cones = Self { behind: Behind::empty(network, ports, 1), order: in_order(network)? };
        for number in (0..cones.order.len()).rev() {
            cones.reach(network, cones.order[number])?;
        }
        Some(cones)
    }

    fn reach(&mut self, network: &Network, router: RouterId) -> Option<()> {
        let groups = self.behind.groups;
        let mut all = vec![0u64; groups];
        for port in 0..network.port_count(router) as Port {
            let Some(channel) = network.output_channel(router, port) else { continue };
            let mut cone = vec![0u64; groups];
            match network.destination(channel) {
                Endpoint::Terminal(terminal) => cone[terminal.0 as usize / GROUP] |= 1 << (terminal.0 as usize % GROUP),
                Endpoint::Router(next, _) => {
                    for output in 0..self.behind.ports {
                        let at = self.behind.place(next.index(), 0, output);
                        cone.iter_mut().zip(&self.behind.terminals[at..at + groups]).for_each(|(cone, word)| *cone |= word);
                    }
                }
            }
            if cone.iter().zip(&all).any(|(one, other)| one & other != 0) {
                return None;
            }
            all.iter_mut().zip(&cone).for_each(|(all, cone)| *all |= cone);
            let at = self.behind.place(router.index(), 0, usize::from(port));
            self.behind.terminals[at..at + groups].copy_from_slice(&cone);
        }
        Some(())
    }

    /// All routers combine at once: each expects packets on the inputs to which participants lead, and sends to all whom it leads to.
    pub(super) fn synchronisation(&self, network: &Network) -> Synchronisation {
        let ports = self.behind.ports;
        let mut before = vec![0; network.router_count() as usize * ports];
        for terminal in 0..network.terminal_count() {
            let (router, port) = network.injection_port(TerminalId(terminal));
            before[router.index() * ports + usize::from(port)] |= 1 << terminal;
        }
        for &router in &self.order {
            let all = before[router.index() * ports..][..ports].iter().fold(0, |all, input| all | input);
            for (next, input) in successors(network, router) {
                before[next.index() * ports + usize::from(input)] |= all;
            }
        }
        Synchronisation::everywhere(ports, before, self.behind.terminals.clone())
    }
}

/// Does no path of a network lead back?
pub(super) fn is_one_way(network: &Network) -> bool {
    in_order(network).is_some()
}

/// The routers, each after all that lead to it; nothing if a path leads back.
fn in_order(network: &Network) -> Option<Vec<RouterId>> {
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
    (order.len() == count as usize).then_some(order)
}

/// The routers to which a router's outputs lead, and the inputs there.
fn successors(network: &Network, router: RouterId) -> impl Iterator<Item = (RouterId, Port)> + '_ {
    (0..network.port_count(router) as Port).filter_map(move |port| match network.destination(network.output_channel(router, port)?) {
        Endpoint::Router(next, input) => Some((next, input)),
        Endpoint::Terminal(_) => None,
    })
}
