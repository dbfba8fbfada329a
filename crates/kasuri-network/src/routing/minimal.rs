//! Shortest paths by table, on any network.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::hop::{Candidate, Hop};
use super::minimal_adaptive::OfferedPorts;
use super::shortest::{HopClasses, Progress, Shortest, no_path, places_at_router};
use super::table::{Destinations, edges};
use crate::id::{Port, TerminalId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub use super::metric::{Metric, NO_NODE, NODE_LABEL};
pub use super::shortest::{Classes, MinimalTie};

/// Takes a shortest path; among several output ports that lie on one, `tie` decides anew at each router.
///
/// On slim fly, dragonfly and flattened butterfly hop number i uses class i of the virtual channels, so that no cycle of
/// dependencies can close; on full mesh, MLFM, OFT and fat trees shortest paths need no classes. On other networks it does
/// nothing against deadlock unless `classes = "hop"`: on a ring, or on any network whose shortest paths depend on each other in
/// a cycle, it can deadlock. `up-down` cannot.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Minimal {
    /// Which of several shortest paths.
    #[serde(default)]
    pub tie: MinimalTie,
    /// What is shortest.
    #[serde(default)]
    pub metric: Metric,
    /// How the virtual channels are divided among the hops.
    #[serde(default)]
    pub classes: Classes,
    /// On trees (networks whose routers have levels): which of the shortest paths up are offered to the router at once, of which it takes
    /// one whose virtual channel it gets. Unless given, `tie` chooses upwards as downwards.
    #[serde(default)]
    pub ports_up: Option<OfferedPorts>,
}

impl Member for Minimal {
    const NAME: &'static str = "minimal";
    const SUMMARY: &'static str = "any network: a shortest path by table; classes by hop where the topology needs them";
    const SOURCE: &'static str = "Dijkstra, Numer. Math. 1 (1959); Dally and Towles (2004), section 11.1 (table-based routing); classes by \
                                  hop: Gunther, IEEE Trans. Commun. 29 (1981)";
    const EXAMPLE: &'static str = "tie = \"random\"";
}

impl RoutingAlgorithm for Minimal {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let destinations = Destinations::of(network);
        let targets: Vec<_> = destinations.routers.iter().map(|router| vec![router.0]).collect();
        let shortest = Shortest::find(network, self.metric, &targets, false).map_err(|(source, column)| {
            let destination = destinations.terminals.iter().position(|place| place.column as usize == column).unwrap_or_default();
            no_path(Self::NAME, network, source, &network.terminal_name(TerminalId(destination as u32)))
        })?;
        let hops_per_class = self.classes.hops_per_class(network);
        let classes = HopClasses::new(hops_per_class, &[shortest.diameter]);
        let places = places_at_router(network);
        let ports_up = self.ports_up.map(|offered| ports_up(network).map(|leads_up| PortsUp { offered, leads_up })).transpose()?;
        let (network, is_safe) = (Arc::clone(network), hops_per_class.is_some());
        Ok(Box::new(Compiled { network, tie: self.tie, ports_up, is_safe, classes, destinations, shortest, places }))
    }

    fn most_table_bytes(&self, network: &Network) -> u64 {
        Shortest::most_bytes(network, self.metric, Destinations::count(network), false)
    }
}

/// By port of the whole network: does it lead to a router of a higher level?
///
/// # Errors
/// A network whose routers have no levels.
fn ports_up(network: &Network) -> Result<Vec<bool>, RoutingError> {
    let Some(level) = network.labels().router("level") else {
        let problem = format!("has no path up on {}, whose routers have no levels; leave it out", network.name());
        return Err(RoutingError::Parameter { key: "ports_up".to_owned(), problem });
    };
    let mut leads_up = vec![false; network.port_bases()[network.router_count() as usize] as usize];
    for edge in edges(network) {
        leads_up[network.port_index(edge.from, edge.port)] = level[edge.to.index()] > level[edge.from.index()];
    }
    Ok(leads_up)
}

/// What is offered upwards.
#[derive(Debug)]
struct PortsUp {
    offered: OfferedPorts,
    /// By port of the whole network.
    leads_up: Vec<bool>,
}

#[derive(Debug)]
struct Compiled {
    network: Arc<Network>,
    tie: MinimalTie,
    ports_up: Option<PortsUp>,
    is_safe: bool,
    classes: HopClasses,
    destinations: Destinations,
    shortest: Shortest,
    /// Each terminal's number at its router.
    places: Vec<u32>,
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: self.classes.count,
            reads: self.tie.reads(),
            is_deadlock_free: self.is_safe,
            searches_paths: true,
            observes_congestion: false,
            offers_several: self.ports_up.as_ref().is_some_and(|up| up.offered == OfferedPorts::All),
            table_bytes: self.shortest.bytes(),
            build_peak_bytes: self.shortest.build_peak_bytes(),
            ..RoutingFacts::default()
        }
    }

    /// The state is the progress in the classes.
    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let destination = self.destinations.terminals[hop.destination.index()];
        if destination.router == hop.router {
            candidates.push(Candidate::new(destination.port, hop.available));
            return;
        }
        let ports = self.shortest.ports(hop.router, destination.column);
        let progress = Progress::unpack(*state);
        let candidate = |port| Candidate::new(port, self.classes.channels(hop.available, progress));
        match self.offered_upwards(ports, hop) {
            Some([]) => return,
            Some(up) => {
                // Who looks at one candidate alone is not to take the same port always.
                let first = choice.uniform(up.len() as u32) as usize;
                candidates.extend(up[first..].iter().chain(&up[..first]).copied().map(candidate));
            }
            None => {
                let Some(port) = self.tie.pick(ports, hop, &self.places, choice) else { return };
                candidates.push(candidate(port));
            }
        }
        *state = self.classes.after_hop(progress).pack();
    }
}

impl Compiled {
    /// What a packet is offered of the shortest paths, if they lead up and the paths up are offered together.
    fn offered_upwards<'a>(&self, ports: &'a [Port], hop: &Hop) -> Option<&'a [Port]> {
        let up = self.ports_up.as_ref()?;
        let all_up = ports.iter().all(|&port| up.leads_up[self.network.port_index(hop.router, port)]);
        all_up.then(|| match up.offered {
            OfferedPorts::All => ports,
            OfferedPorts::Lowest => &ports[..ports.len().min(1)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{RouterId, TerminalId};
    use crate::routing::{VirtualChannels, every_hop};
    use crate::topology::mesh::Mesh;
    use crate::topology::tree4::Tree4;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    const CONTEXT: fn(&ChannelParameters) -> BuildContext<'_> = |channels| BuildContext { channels, files: &NoFiles, structure_seed: 0 };

    /// The ports that a packet to terminal 63 is offered, in every outcome of a decision.
    fn offered(parameters: &str, router: u32) -> Vec<Vec<Port>> {
        let network = Arc::new(Tree4 {}.build(&CONTEXT(&ChannelParameters::default())).unwrap());
        let minimal: Minimal = toml::from_str(parameters).unwrap();
        let routing = minimal.compile(&network).unwrap();
        let available = VirtualChannels { begin: 0, end: 2 };
        let (source, destination) = (TerminalId(0), TerminalId(63));
        let hop = Hop { router: RouterId(router), input: 0, virtual_channel: 0, source, destination, available };
        let mut outcomes: Vec<Vec<Port>> = every_hop(routing.as_ref(), &hop, 0)
            .into_iter()
            .map(|(candidates, _)| candidates.iter().map(|candidate| candidate.port).collect::<std::collections::BTreeSet<_>>())
            .map(|ports| ports.into_iter().collect())
            .collect();
        outcomes.sort();
        outcomes.dedup();
        outcomes
    }

    /// On the tree of 64 terminals: from a leaf (router 12) both links up, from the middle (4) the four roots, all at once or the lowest
    /// alone; from a root (0) to the last terminal either of two routers of the middle, one of which is drawn in any case, and from
    /// there (10) the one port to its leaf.
    #[test]
    fn ports_up_are_offered_together_and_ports_down_one_by_one() {
        let down = vec![vec![6], vec![7]];
        for (parameters, leaf, middle) in [
            ("ports_up = \"all\"", vec![vec![4, 5]], vec![vec![4, 5, 6, 7]]),
            ("ports_up = \"lowest\"", vec![vec![4]], vec![vec![4]]),
            ("", vec![vec![4], vec![5]], vec![vec![4], vec![5], vec![6], vec![7]]),
        ] {
            assert_eq!(
                [12, 4, 0, 10].map(|router| offered(parameters, router)),
                [leaf, middle, down.clone(), vec![vec![3]]],
                "{parameters}"
            );
        }
    }

    #[test]
    fn without_levels_there_is_no_path_up() {
        let network = Arc::new(Mesh { dimensions: vec![3], concentration: 1 }.build(&CONTEXT(&ChannelParameters::default())).unwrap());
        let minimal: Minimal = toml::from_str("ports_up = \"all\"").unwrap();
        let problem = minimal.compile(&network).unwrap_err().to_string();
        assert!(problem.starts_with("ports_up: has no path up on mesh"), "{problem}");
    }
}
