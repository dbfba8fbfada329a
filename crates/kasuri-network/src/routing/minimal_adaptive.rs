//! Minimal adaptive routing with an escape path, on any network.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::dimension_order::DimensionOrder;
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use super::metric::Metric;
use super::shortest::{Shortest, no_path};
use super::table::Destinations;
use super::up_down::UpDown;
use crate::id::{Port, TerminalId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Offers all ports on shortest paths, by the upper virtual channels, and one port of a deadlock-free routing, by the lower ones; the router
/// takes what is free, and its allocator the former first if it heeds priorities. A packet that has taken a lower virtual channel
/// stays on these.
///
/// With as few virtual channels as the escape path needs, all packets take that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MinimalAdaptive {
    /// The routing of the escape path; `dimension-order` on meshes and tori unless given, elsewhere `up-down`.
    #[serde(default)]
    pub escape: Option<Escape>,
    /// Which of the output ports on shortest paths are offered.
    #[serde(default)]
    pub ports: OfferedPorts,
    /// The upper virtual channels by which they are offered, counted from the first that a packet may use: the first, and one past the
    /// last. All above those of the escape path unless given.
    #[serde(default)]
    pub adaptive_channels: Option<[u16; 2]>,
}

/// Which of the output ports on shortest paths are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OfferedPorts {
    /// All of them.
    #[default]
    All,
    /// That of the lowest port alone, as in BookSim 2, whose set of outputs keeps one entry for each priority.
    Lowest,
}

/// The routing of the escape path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Escape {
    /// One virtual channel on meshes, two on tori.
    DimensionOrder,
    /// One virtual channel, on any network.
    UpDown,
}

impl Member for MinimalAdaptive {
    const NAME: &'static str = "minimal-adaptive";
    const SUMMARY: &'static str = "any network: whichever shortest path is free, and a deadlock-free one to escape by";
    const SOURCE: &'static str = "Duato, IEEE Trans. Parallel Distrib. Syst. 4 (1993)";
    const EXAMPLE: &'static str = "";
}

impl RoutingAlgorithm for MinimalAdaptive {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let escape = self.escape_of(network).compile(network)?;
        let least = escape.facts().virtual_channels_required;
        let adaptive_channels = self.adaptive_channels.unwrap_or([least as u16, u16::MAX]);
        let [first, end] = adaptive_channels;
        if u32::from(first) < least || first >= end {
            let problem =
                format!("is [{first}, {end}]; give [first, one past the last], from {least} on: those below are the escape path's");
            return Err(RoutingError::Parameter { key: "adaptive_channels".to_owned(), problem });
        }
        let destinations = Destinations::of(network);
        let targets: Vec<_> = destinations.routers.iter().map(|router| vec![router.0]).collect();
        let shortest = Shortest::find(network, Metric::InnerFirst, &targets, false).map_err(|(source, column)| {
            let destination = destinations.terminals.iter().position(|place| place.column as usize == column).unwrap_or_default();
            no_path(Self::NAME, network, source, &network.terminal_name(TerminalId(destination as u32)))
        })?;
        let mut is_entrance = vec![false; network.port_bases()[network.router_count() as usize] as usize];
        for terminal in (0..network.terminal_count()).map(TerminalId) {
            let (router, port) = network.injection_port(terminal);
            is_entrance[network.port_index(router, port)] = true;
        }
        Ok(Box::new(Compiled {
            network: Arc::clone(network),
            escape,
            destinations,
            shortest,
            is_entrance,
            offered: self.ports,
            adaptive_channels,
        }))
    }

    fn most_table_bytes(&self, network: &Network) -> u64 {
        Shortest::most_bytes(network, Metric::InnerFirst, Destinations::count(network), false)
            + self.escape_of(network).most_table_bytes(network)
    }
}

impl MinimalAdaptive {
    /// The routing of the escape path.
    fn escape_of(&self, network: &Network) -> Box<dyn RoutingAlgorithm> {
        let has_coordinates = network.labels().attribute("wrap").is_some();
        match self.escape.unwrap_or(if has_coordinates { Escape::DimensionOrder } else { Escape::UpDown }) {
            Escape::DimensionOrder => Box::new(toml::from_str::<DimensionOrder>("").expect("every key of dimension-order has a default")),
            Escape::UpDown => Box::new(UpDown { root: None }),
        }
    }
}

#[derive(Debug)]
struct Compiled {
    network: Arc<Network>,
    escape: Box<dyn Routing>,
    destinations: Destinations,
    shortest: Shortest,
    /// By port of the whole network: do packets enter here?
    is_entrance: Vec<bool>,
    offered: OfferedPorts,
    /// Counted from the first virtual channel that a packet may use.
    adaptive_channels: [u16; 2],
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        let escape = self.escape.facts();
        RoutingFacts {
            reads: Reads { input: true, virtual_channel: true, ..escape.reads },
            observes_congestion: false,
            spreading_key: "routing.algorithm",
            offers_several: true,
            restricts_entry: false,
            redraws_entry: false,
            table_bytes: self.shortest.bytes() + escape.table_bytes,
            build_peak_bytes: escape.build_peak_bytes.max(escape.table_bytes + self.shortest.build_peak_bytes()),
            ..escape
        }
    }

    fn escape_channels(&self, available: VirtualChannels) -> Option<VirtualChannels> {
        let lower = self.escape.facts().virtual_channels_required.min(u32::from(available.count())) as u16;
        Some(VirtualChannels { end: available.begin + lower, ..available })
    }

    /// The state is that of the escape path, without meaning before the packet has taken it.
    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let destination = self.destinations.terminals[hop.destination.index()];
        if destination.router == hop.router {
            candidates.push(Candidate::new(destination.port, hop.available));
            return;
        }
        let lower = self.escape_channels(hop.available).expect("this routing has an escape path");
        let [begin, end] = self.adaptive_channels.map(|channel| channel.saturating_add(hop.available.begin).min(hop.available.end));
        let upper = VirtualChannels { begin, end };
        let has_entered = !self.is_entrance[self.network.port_index(hop.router, hop.input)];
        let escapes = has_entered && (lower.begin..lower.end).contains(&hop.virtual_channel);
        if !escapes {
            *state = 0;
            let ports = self.shortest.ports(hop.router, destination.column);
            let adaptive = |&port: &Port| Candidate { priority: 1, ..Candidate::new(port, upper) };
            match self.offered {
                _ if upper.count() == 0 => {}
                OfferedPorts::All => {
                    // Who looks at one candidate alone is not to take the same port always.
                    let first = choice.uniform(ports.len() as u32) as usize;
                    candidates.extend(ports[first..].iter().chain(&ports[..first]).map(adaptive));
                }
                OfferedPorts::Lowest => candidates.extend(ports.first().map(adaptive)),
            }
        }
        self.escape.route(&Hop { available: lower, ..*hop }, state, choice, candidates);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RouterId;
    use crate::routing::every_hop;
    use crate::topology::mesh::Mesh;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    fn hop(router: u32, input: u16, virtual_channel: u16) -> Hop {
        Hop {
            router: RouterId(router),
            input,
            virtual_channel,
            source: TerminalId(0),
            destination: TerminalId(8),
            available: VirtualChannels { begin: 0, end: 3 },
        }
    }

    /// From a corner of a 3 x 3 mesh to the opposite one: both ports by channels 1 and 2, the first dimension by channel 0 besides; a packet
    /// that comes by channel 0 goes on by it alone.
    #[test]
    fn both_dimensions_are_offered_until_the_escape_path_is_taken() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let network = Arc::new(Mesh { dimensions: vec![3, 3], concentration: 1 }.build(&context).unwrap());
        let routing = MinimalAdaptive::default().compile(&network).unwrap();
        let (lower, upper) = (VirtualChannels { begin: 0, end: 1 }, VirtualChannels { begin: 1, end: 3 });
        let offered = |hop: &Hop| {
            let mut candidates = every_hop(routing.as_ref(), hop, 0).remove(0).0;
            candidates.sort_by_key(|candidate| (candidate.priority, candidate.port));
            candidates
        };
        let adaptive = |port| Candidate { priority: 1, ..Candidate::new(port, upper) };
        let injected = network.injection_port(TerminalId(0)).1;
        assert_eq!(offered(&hop(0, injected, 0)), [Candidate::new(0, lower), adaptive(0), adaptive(2)]);
        // At the router to the right, from the left: by an upper channel, then by the lower one.
        assert_eq!(offered(&hop(1, 1, 2)), [Candidate::new(0, lower), adaptive(0), adaptive(2)]);
        assert_eq!(offered(&hop(1, 1, 0)), [Candidate::new(0, lower)]);
        let lowest = MinimalAdaptive { ports: OfferedPorts::Lowest, ..MinimalAdaptive::default() }.compile(&network).unwrap();
        let ports = |hop: &Hop| every_hop(lowest.as_ref(), hop, 0).remove(0).0.iter().map(|candidate| candidate.port).collect::<Vec<_>>();
        assert_eq!((ports(&hop(0, injected, 0)), ports(&hop(2, 1, 1))), (vec![0, 0], vec![2, 2]));
        let by = |adaptive_channels| MinimalAdaptive { adaptive_channels, ..MinimalAdaptive::default() }.compile(&network);
        let last = every_hop(by(Some([2, 3])).unwrap().as_ref(), &hop(0, injected, 0), 0).remove(0).0;
        assert!(last.iter().all(|candidate| candidate.virtual_channels.begin == if candidate.priority == 1 { 2 } else { 0 }));
        assert!(by(Some([0, 3])).unwrap_err().to_string().contains("from 1 on"));
    }
}
