//! From a router and a port to the next router, in little memory.
//!
//! Who follows many messages through a large network mostly waits for the network's tables. But topologies number their channels
//! by rules: on a fat tree the channels that leave a router by its down ports have numbers at equal distances, the routers at
//! their ends too, and so have those of its up ports. One such *run* of ports takes 16 bytes.

use kasuri_network::id::{ChannelId, Port, RouterId};
use kasuri_network::memory::Column;
use kasuri_network::network::{MAX_PORTS, Network};

/// Ports in a row. Numbers are those of the first port and the differences from port to port, which wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Run {
    channel: u32,
    channel_step: u32,
    place: u32,
    place_step: u32,
}

/// The ports of a router: those before `split`, and the others.
#[derive(Clone, Copy, Debug, Default)]
struct Ports {
    count: u32,
    split: u32,
    runs: [Run; 2],
}

/// Where each port of a network leads.
#[derive(Debug)]
pub(crate) struct Steps {
    terminals: u32,
    routers: Column<Ports>,
}

/// A place is its router times this, and its port.
const PORTS: u32 = MAX_PORTS as u32;

impl Steps {
    /// The steps of a network, if the ports of each router are two runs or one and all in use.
    pub(crate) fn of(network: &Network) -> Option<Self> {
        let ports_of = |router| ports(network, RouterId(router));
        let routers = (0..network.router_count()).map(ports_of).collect::<Option<Vec<_>>>()?;
        Some(Self { terminals: network.terminal_count(), routers: routers.into() })
    }

    /// The channel that leaves by this port, and where it ends if not at a terminal. `None` if the router has no such port.
    #[inline(always)]
    pub(crate) fn step(&self, router: RouterId, port: Port) -> Option<(ChannelId, Option<(RouterId, Port)>)> {
        let ports = &self.routers[router.0];
        let port = u32::from(port);
        if port >= ports.count {
            return None;
        }
        let (run, index) = if port < ports.split { (&ports.runs[0], port) } else { (&ports.runs[1], port - ports.split) };
        let channel = run.channel.wrapping_add(run.channel_step.wrapping_mul(index));
        let place = run.place.wrapping_add(run.place_step.wrapping_mul(index));
        let ends_at_terminal = channel.wrapping_sub(self.terminals) < self.terminals;
        let end = (!ends_at_terminal).then_some((RouterId(place / PORTS), (place % PORTS) as Port));
        Some((ChannelId(channel), end))
    }
}

/// The runs of a router's ports.
fn ports(network: &Network, router: RouterId) -> Option<Ports> {
    let step = |port: u32| -> Option<[u32; 2]> {
        let channel = network.output_channel(router, port as Port)?;
        let place = match network.ejected_terminal(channel) {
            Some(_) => 0,
            None => {
                let (router, port) = network.input_port(channel);
                router.0 * PORTS + u32::from(port)
            }
        };
        Some([channel.0, place])
    };
    let count = network.port_count(router);
    let mut ports = Ports { count, ..Ports::default() };
    let mut at = 0;
    for run in &mut ports.runs {
        if at == count {
            break;
        }
        ports.split = at;
        let first = step(at)?;
        let second = if at + 1 < count { step(at + 1)? } else { first };
        let steps = [0, 1].map(|which| second[which].wrapping_sub(first[which]));
        let expected = |index: u32| [0, 1].map(|which| first[which].wrapping_add(steps[which].wrapping_mul(index)));
        let mut length = 1;
        while at + length < count && step(at + length)? == expected(length) {
            length += 1;
        }
        *run = Run { channel: first[0], channel_step: steps[0], place: first[1], place_step: steps[1] };
        at += length;
    }
    if ports.split == 0 {
        ports.split = count;
    }
    (at == count).then_some(ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};

    fn network(name: &str, parameters: &str) -> Network {
        let entry = TOPOLOGIES.iter().find(|entry| entry.name == name).unwrap();
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        (entry.parse)(parameters.parse().unwrap()).unwrap().build(&context).unwrap()
    }

    /// Does every port lead where the network says? `None` if the network has other ports than runs.
    fn agree(network: &Network) -> Option<bool> {
        let steps = Steps::of(network)?;
        let leads_there = |router: RouterId, port: Port| {
            let channel = network.output_channel(router, port).unwrap();
            let end = network.ejected_terminal(channel).is_none().then(|| network.input_port(channel));
            steps.step(router, port) == Some((channel, end))
        };
        let ports = |router: RouterId| 0..network.port_count(router) as Port;
        Some((0..network.router_count()).map(RouterId).all(|router| ports(router).all(|port| leads_there(router, port))))
    }

    #[test]
    fn the_ports_of_trees_are_runs_that_lead_where_the_network_does() {
        for parameters in ["up = 4\ndown = 4\nlevels = 3", "up = 2\ndown = 3\nlevels = 2", "up = 16\ndown = 16\nlevels = 3"] {
            assert_eq!(agree(&network("fat-tree", parameters)), Some(true), "{parameters}");
        }
    }

    #[test]
    fn other_networks_agree_or_are_left_alone() {
        for (name, parameters) in [("mesh", "dimensions = [4, 4]"), ("torus", "dimensions = [5, 3]"), ("full-mesh", "routers = 5")] {
            assert_ne!(agree(&network(name, parameters)), Some(false), "{name}");
        }
        // A router in the middle of a mesh has ports in four directions and one to its terminal.
        assert_eq!(agree(&network("mesh", "dimensions = [4, 4]")), None);
    }
}
