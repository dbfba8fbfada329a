//! The parts of a network that no channel joins, each as a network of its own.

use super::connectivity::components;
use super::terminal_ports::OF_PLANE;
use super::{Endpoint, NONE, Network, NetworkBuilder, cables};
use crate::id::{ChannelId, RouterId, TerminalId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A number in the whole network as that of a part and the number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPart {
    /// The part.
    pub part: u32,
    /// The number in it.
    pub number: u32,
}

/// A network cut into parts that no channel joins, up or down.
#[derive(Clone, Debug)]
pub struct Parts {
    /// By part; equal parts are the same network. They have no names.
    pub networks: Vec<Arc<Network>>,
    /// Where each router is.
    pub routers: Vec<InPart>,
    /// Where each terminal is.
    pub terminals: Vec<InPart>,
    /// By router: those that reach each other over what is up have the same number. [`CUT_OFF`]: it is down.
    pub live: Vec<u32>,
}

/// In place of a number: a router is down.
pub const CUT_OFF: u32 = NONE;

impl Parts {
    /// Cuts a network. Routers, terminals and channels keep their order in each part, and what is down is down there.
    pub fn of(network: &Network) -> Self {
        let routers = numbered(&groups(network));
        let count = routers.iter().map(|place| place.part + 1).max().unwrap_or(0) as usize;
        let mut builders: Vec<NetworkBuilder> = (0..count).map(|_| NetworkBuilder::new(network.name())).collect();
        for (router, place) in (0..).map(RouterId).zip(&routers) {
            builders[place.part as usize].add_router(network.port_count(router) as usize).expect("as many ports as before");
        }
        let at = |router: RouterId| (routers[router.index()].part as usize, RouterId(routers[router.index()].number));
        let mut terminals = Vec::with_capacity(network.terminal_count() as usize);
        for terminal in (0..network.terminal_count()).map(TerminalId) {
            let ((into, input), (from, output)) = (network.injection_port(terminal), network.ejection_port(terminal));
            let (part, into) = at(into);
            let link = network.link(network.injection_channel(terminal));
            let added = builders[part].add_split_terminal((into, input), (at(from).1, output), link);
            terminals.push(InPart { part: part as u32, number: added.0 });
        }
        // By part: the channels between its routers, in their order.
        let mut channels: Vec<Vec<ChannelId>> = vec![Vec::new(); count];
        for channel in network.all_router_channels() {
            if let (Endpoint::Router(from, output), Endpoint::Router(to, input)) = (network.source(channel), network.destination(channel)) {
                let (part, from) = at(from);
                builders[part].add_channel((from, output), (at(to).1, input), network.link(channel));
                channels[part].push(channel);
            }
        }
        let mut networks: Vec<Arc<Network>> = Vec::with_capacity(count);
        for (part, mut builder) in builders.into_iter().enumerate() {
            label(network, &mut builder, |router| routers[router].part as usize == part);
            let built = builder.finish().expect("each port is taken once, as before");
            let built = damaged(network, built, &channels[part], |router| at(router).0 == part, |router| at(router).1);
            let same = networks.iter().find(|known| ***known == built).cloned();
            networks.push(same.unwrap_or_else(|| Arc::new(built)));
        }
        let mut live = components(network);
        network.damage().into_iter().flat_map(|damage| damage.routers()).for_each(|router| live[router.index()] = CUT_OFF);
        Self { networks, routers, terminals, live }
    }

    /// The number in [`Self::live`] of the router that serves a terminal.
    pub fn live_of(&self, network: &Network, terminal: TerminalId) -> u32 {
        self.live[network.ejection_port(terminal).0.index()]
    }

    /// The sets of terminals of a part that live channels connect: for each set its terminals, by their numbers in the whole network, and the
    /// part with these terminals alone; its routers and the channels between them stay. For routings that search paths to all terminals.
    pub fn connected_components(&self, network: &Network, part: u32) -> Vec<(Vec<TerminalId>, Network)> {
        let mut sets: BTreeMap<u32, Vec<TerminalId>> = BTreeMap::new();
        for (terminal, _) in (0..).map(TerminalId).zip(&self.terminals).filter(|(_, place)| place.part == part) {
            sets.entry(self.live_of(network, terminal)).or_default().push(terminal);
        }
        sets.remove(&CUT_OFF);
        let whole = &self.networks[part as usize];
        let only = |terminals: Vec<TerminalId>| {
            let places: Vec<TerminalId> = terminals.iter().map(|terminal| TerminalId(self.terminals[terminal.index()].number)).collect();
            let network = with_terminals(whole, &places);
            (terminals, network)
        };
        sets.into_values().map(only).collect()
    }
}

/// A network with these of its terminals only, in this order.
fn with_terminals(network: &Network, terminals: &[TerminalId]) -> Network {
    let mut builder = NetworkBuilder::with_routers_of(network);
    for &terminal in terminals {
        let link = network.link(network.injection_channel(terminal));
        builder.add_split_terminal(network.injection_port(terminal), network.ejection_port(terminal), link);
    }
    let channels: Vec<ChannelId> = network.all_router_channels().collect();
    label(network, &mut builder, |_| true);
    let built = builder.finish().expect("each port is taken once, as before");
    damaged(network, built, &channels, |_| true, |router| router)
}

/// The router that stands for all that are joined with this one so far.
fn root(parent: &mut [u32], mut router: u32) -> u32 {
    while parent[router as usize] != router {
        parent[router as usize] = parent[parent[router as usize] as usize];
        router = parent[router as usize];
    }
    router
}

/// By router: a number that all have in common who are joined by channels.
fn groups(network: &Network) -> Vec<u32> {
    let mut parent: Vec<u32> = (0..network.router_count()).collect();
    let mut join = |one: RouterId, other: RouterId| {
        let (one, other) = (root(&mut parent, one.0), root(&mut parent, other.0));
        // The least number stands for all.
        parent[one.max(other) as usize] = one.min(other);
    };
    for channel in network.all_router_channels() {
        if let (Endpoint::Router(from, _), Endpoint::Router(to, _)) = (network.source(channel), network.destination(channel)) {
            join(from, to);
        }
    }
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        join(network.injection_port(terminal).0, network.ejection_port(terminal).0);
    }
    (0..network.router_count()).map(|router| root(&mut parent, router)).collect()
}

/// Numbers the parts, and the routers in each, in the order in which they come.
fn numbered(groups: &[u32]) -> Vec<InPart> {
    let (mut part_of_group, mut sizes) = (vec![NONE; groups.len()], Vec::new());
    let mut place = |&group: &u32| {
        let part = &mut part_of_group[group as usize];
        if *part == NONE {
            *part = sizes.len() as u32;
            sizes.push(0);
        }
        let size: &mut u32 = &mut sizes[*part as usize];
        *size += 1;
        InPart { part: *part, number: *size - 1 }
    };
    groups.iter().map(&mut place).collect()
}

/// Leaves the labels of a part's routers, and the attributes that hold of it.
fn label(network: &Network, builder: &mut NetworkBuilder, is_inside: impl Fn(usize) -> bool) {
    let labels = network.labels();
    for name in labels.router_names().filter(|&name| name != "plane") {
        let column = labels.router(name).unwrap_or_default();
        builder.label_routers(name, (0..column.len()).filter(|&router| is_inside(router)).map(|router| column[router]).collect());
    }
    for name in labels.attribute_names().filter(|&name| name != "planes") {
        let values = labels.attribute(name).unwrap_or_default().to_vec();
        builder.set_attribute(name.strip_prefix(OF_PLANE).unwrap_or(name), values);
    }
}

/// Takes out of a part what is down in the whole; `channels` are its channels between routers.
fn damaged(
    network: &Network,
    part: Network,
    channels: &[ChannelId],
    is_inside: impl Fn(RouterId) -> bool,
    local: impl Fn(RouterId) -> RouterId,
) -> Network {
    let Some(damage) = network.damage() else { return part };
    let routers: Vec<RouterId> = damage.routers().iter().copied().filter(|&router| is_inside(router)).map(local).collect();
    let first = 2 * part.terminal_count();
    let is_down = |channel: ChannelId| network.is_down(channels[(channel.0 - first) as usize]);
    let down: Vec<_> = cables(&part).into_iter().filter(|cable| cable.channels().any(is_down)).collect();
    part.without(&down, &routers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::built;

    /// Each plane is the network that it is made of, labels and all, and what is down in one is down there alone.
    #[test]
    fn planes_are_the_networks_that_they_are_made_of() {
        for (of, keys) in [
            ("mesh", "dimensions = [3, 2]"),
            ("xgft", "m = [3, 3]\nw = [1, 2]"),
            ("dragonfly", "terminals_per_router = 1\nrouters_per_group = 2\nglobal_channels = 1"),
            ("leaf-spine", "leaves = 4\nspines = 2\ndown = 2"),
        ] {
            let base = built(of, keys);
            let whole = Arc::new(built("planes", &format!("planes = 3\nof = \"{of}\"\n{keys}"))).by_terminal_ports();
            let parts = Parts::of(&whole);
            assert_eq!(parts.networks.len(), 3, "{of}");
            assert!(parts.networks.iter().all(|network| Arc::ptr_eq(network, &parts.networks[0])), "{of}");
            let part = &*parts.networks[0];
            assert_eq!(part.labels(), base.labels(), "{of}");
            assert_eq!((part.terminal_count(), part.router_count()), (base.terminal_count(), base.router_count()));
            for channel in (0..base.channel_count()).map(ChannelId) {
                assert_eq!((part.source(channel), part.destination(channel)), (base.source(channel), base.destination(channel)), "{of}");
                assert_eq!(part.link(channel), base.link(channel));
            }
            let cable = cables(&whole)[0];
            let damaged = Parts::of(&whole.without(&[cable], &[]));
            let down: Vec<_> = damaged.networks.iter().map(|network| network.damage().map(|damage| damage.channels().len())).collect();
            assert_eq!(down, [Some(2), None, None], "{of}");
        }
    }
}
