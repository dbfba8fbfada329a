//! Terminals with several ports, each port as a terminal of its own: so engines see planes, and switches that serve a terminal together.

use super::connectivity::components;
use super::{NONE, Network, NetworkBuilder, NetworkError};
use crate::id::TerminalId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Labels and attributes that hold however terminals are numbered.
const KEPT: [&str; 2] = ["hops_per_class", "planes"];

/// What begins the name of an attribute that holds of each plane by itself.
pub(crate) const OF_PLANE: &str = "plane.";

impl Network {
    /// The network whose terminals are the ports of the terminals of this one: those of terminal 0 first, each terminal's in the order of its
    /// homes, named by terminal and port (`3.1`). Routers, their ports and the channels between them stay the same, failed ones included;
    /// attributes by terminal number are left out.
    pub fn by_terminal_ports(self: &Arc<Self>) -> Self {
        let mut builder = NetworkBuilder::with_routers_of(self);
        let mut names = Vec::new();
        for terminal in (0..self.terminal_count()).map(TerminalId) {
            let link = self.link(self.injection_channel(terminal));
            for (port, (router, at)) in self.homes(terminal).into_iter().enumerate() {
                builder.add_terminal(router, at, link);
                names.push(format!("{}.{port}", self.terminal_names().of(terminal.0)));
            }
        }
        builder.copy_labels_of(self, |name| KEPT.contains(&name) || name.starts_with(OF_PLANE));
        builder.name_terminals(names);
        let network = builder.finish().expect("each port is taken once, as before");
        let network = match self.damage() {
            // Injection and ejection channels come before those between routers.
            Some(damage) => network.with_damage_of(damage, 2 * self.terminal_count()),
            None => network,
        };
        Self { owners: Some(Arc::clone(self)), ..network }
    }

    /// This network as a network by the ports of the terminals that `of` describes.
    ///
    /// # Errors
    /// The ports of `of` are more or fewer than the terminals of this network, a terminal has none, or its ports differ in speed.
    pub fn as_ports_of(self, of: PortOwners) -> Result<Self, NetworkError> {
        let wrong = |problem: String| Err(NetworkError::parameter("of_terminals", problem));
        let total: u64 = of.ports.iter().map(|&ports| u64::from(ports)).sum();
        if total != u64::from(self.terminal_count()) || of.ports.contains(&0) {
            return wrong(format!("has {total} ports; expected {}, and at least 1 of each terminal", self.terminal_count()));
        }
        let mut builder = NetworkBuilder::with_routers_of(&self);
        let mut first = 0;
        for (terminal, &count) in (0..).map(TerminalId).zip(&of.ports) {
            let link = self.link(self.injection_channel(TerminalId(first)));
            for port in (first..first + count).map(TerminalId) {
                let (router, at) = self.injection_port(port);
                if port.0 == first {
                    builder.add_terminal(router, at, link);
                } else {
                    builder.add_home(terminal, router, at);
                }
                if self.link(self.injection_channel(port)) != link || self.ejection_port(port) != (router, at) {
                    return wrong(format!(
                        "port {} of terminal {terminal} differs in speed from the first one, or has its ejection at another place",
                        port.0 - first
                    ));
                }
            }
            first += count;
        }
        builder.copy_labels_of(&self, |_| false);
        of.attributes.into_iter().for_each(|(name, values)| builder.set_attribute(name, values));
        of.names.into_iter().for_each(|names| builder.name_terminals(names));
        Ok(Self { owners: Some(Arc::new(builder.finish()?)), ..self })
    }

    /// The argument with which [`Self::as_ports_of`] makes this network by ports again, if it is one.
    pub fn port_owners(&self) -> Option<PortOwners> {
        let owners = self.owners.as_deref()?;
        let labels = owners.labels();
        let attribute = |name: &str| Some((name.to_owned(), labels.attribute(name)?.to_vec()));
        Some(PortOwners {
            ports: (0..owners.terminal_count()).map(|terminal| owners.homes(TerminalId(terminal)).len() as u32).collect(),
            names: owners.terminal_names().all().map(<[String]>::to_vec),
            attributes: labels.attribute_names().filter_map(attribute).collect(),
        })
    }

    /// The network of the terminals that own the ports, if this one is [by ports](Self::by_terminal_ports).
    pub fn owners(&self) -> Option<&Arc<Self>> {
        self.owners.as_ref()
    }
}

/// Terminals with several ports: what a network by their ports does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortOwners {
    /// The number of ports of each terminal.
    pub ports: Vec<u32>,
    /// Their names, if they have any.
    pub names: Option<Vec<String>>,
    /// All attributes of the network of these terminals.
    pub attributes: BTreeMap<String, Vec<u32>>,
}

/// Which port belongs to which terminal, and which ports can reach each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalPorts {
    /// By terminal: its first port; one more entry than terminals.
    first: Vec<u32>,
    terminal_of: Vec<u32>,
    /// By port: the connected part of what is up that it leads into; [`NONE`] where its router is down.
    part: Vec<u32>,
}

impl TerminalPorts {
    /// Of the terminals of `network`, whose ports are the terminals of `ports` ([`Network::by_terminal_ports`]), of which something may be down.
    pub fn of(network: &Network, ports: &Network) -> Self {
        let (mut first, mut terminal_of) = (vec![0], Vec::with_capacity(ports.terminal_count() as usize));
        for terminal in 0..network.terminal_count() {
            terminal_of.extend(network.homes(TerminalId(terminal)).iter().map(|_| terminal));
            first.push(terminal_of.len() as u32);
        }
        debug_assert_eq!(terminal_of.len(), ports.terminal_count() as usize);
        let parts = components(ports);
        let is_down = |router| ports.damage().is_some_and(|damage| damage.routers().binary_search(&router).is_ok());
        let part_of = |port: u32| {
            let router = ports.injection_port(TerminalId(port)).0;
            if is_down(router) { NONE } else { parts[router.index()] }
        };
        let part = (0..ports.terminal_count()).map(part_of).collect();
        Self { first, terminal_of, part }
    }

    /// The number of terminals.
    pub fn terminal_count(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// The number of ports of all terminals.
    pub fn port_count(&self) -> u32 {
        self.terminal_of.len() as u32
    }

    /// The ports of a terminal.
    pub fn ports_of(&self, terminal: TerminalId) -> impl ExactSizeIterator<Item = TerminalId> + use<> {
        (self.first[terminal.index()]..self.first[terminal.index() + 1]).map(TerminalId)
    }

    /// How many ports each terminal has, if all have as many.
    pub fn of_each(&self) -> Option<u32> {
        let each = self.port_count() / self.terminal_count().max(1);
        self.first.windows(2).all(|pair| pair[1] - pair[0] == each).then_some(each)
    }

    /// The terminal to which a port belongs.
    pub fn terminal_of(&self, port: TerminalId) -> TerminalId {
        TerminalId(self.terminal_of[port.index()])
    }

    /// Can packets go from one port to the other?
    pub fn are_joined(&self, one: TerminalId, other: TerminalId) -> bool {
        self.part[one.index()] != NONE && self.part[one.index()] == self.part[other.index()]
    }

    /// Can every port send to the port of the same number of every other terminal, so that no pair needs a look of its own?
    pub fn are_all_up(&self) -> bool {
        let Some(each) = self.of_each() else { return false };
        let (first, rest) = self.part.split_at(each.min(self.port_count()) as usize);
        first.iter().all(|&part| part != NONE) && rest.chunks(each.max(1) as usize).all(|ports| ports == first)
    }

    /// Puts into `pairs` the port that sends and the port that receives for each way from one terminal to another: ports of the same number
    /// where such a pair is joined, else all pairs that are.
    pub fn ways(&self, source: TerminalId, destination: TerminalId, pairs: &mut Vec<(TerminalId, TerminalId)>) {
        pairs.clear();
        let joined = |&(from, to): &(TerminalId, TerminalId)| self.are_joined(from, to);
        pairs.extend(self.ports_of(source).zip(self.ports_of(destination)).filter(joined));
        if pairs.is_empty() {
            let all = self.ports_of(source).flat_map(|from| self.ports_of(destination).map(move |to| (from, to)));
            pairs.extend(all.filter(joined));
        }
    }

    /// Two terminals of which the first cannot reach the second.
    pub fn separated(&self) -> Option<(TerminalId, TerminalId)> {
        let mut kinds: BTreeMap<&[u32], Vec<TerminalId>> = BTreeMap::new();
        for terminal in (0..self.terminal_count()).map(TerminalId) {
            let parts = &self.part[self.first[terminal.index()] as usize..self.first[terminal.index() + 1] as usize];
            let known = kinds.entry(parts).or_default();
            // Two of a kind stand for all of it.
            if known.len() < 2 {
                known.push(terminal);
            }
        }
        let mut pairs = Vec::new();
        let terminals: Vec<TerminalId> = kinds.into_values().flatten().collect();
        let all = terminals.iter().flat_map(|&source| terminals.iter().map(move |&destination| (source, destination)));
        all.filter(|(source, destination)| source != destination).find(|&(source, destination)| {
            self.ways(source, destination, &mut pairs);
            pairs.is_empty()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RouterId;
    use crate::topology::built;

    /// Every port keeps its place, every terminal all of its homes, and the network between routers stays what it is.
    #[test]
    fn ports_are_the_homes_of_their_terminals() {
        for (topology, keys, each) in [
            ("planes", "planes = 3\nof = \"mesh\"\ndimensions = [3, 2]", 3),
            ("hpn-pod", "segments = 2\nhosts = 3\nrails = 2\naggregation = 2", 2),
            ("xgft", "m = [3, 3]\nw = [2, 2]", 2),
        ] {
            let network = Arc::new(built(topology, keys));
            let by_ports = network.by_terminal_ports();
            let ports = TerminalPorts::of(&network, &by_ports);
            assert_eq!((ports.of_each(), ports.port_count()), (Some(each), each * network.terminal_count()), "{topology}");
            assert_eq!(by_ports.router_channels().count(), network.router_channels().count());
            for terminal in (0..network.terminal_count()).map(TerminalId) {
                let places: Vec<_> = ports.ports_of(terminal).map(|port| by_ports.ejection_port(port)).collect();
                assert_eq!(places, network.homes(terminal), "{topology}");
                assert!(ports.ports_of(terminal).all(|port| ports.terminal_of(port) == terminal));
            }
            assert!(ports.are_all_up() && ports.separated().is_none(), "{topology}");
            assert_eq!(by_ports.terminal_name(TerminalId(each + 1)), "terminal 1.1");
        }
    }

    /// A plane that is down leaves the others; a terminal whose switches are all down is cut off.
    #[test]
    fn what_is_down_leaves_the_other_ports() {
        let network = Arc::new(built("planes", "planes = 2\nof = \"leaf-spine\"\nleaves = 2\nspines = 1\ndown = 2"));
        let whole = network.by_terminal_ports();
        let ways = |down: &[u32]| {
            let routers: Vec<RouterId> = down.iter().copied().map(RouterId).collect();
            let ports = TerminalPorts::of(&network, &whole.clone().without(&[], &routers));
            let mut pairs = Vec::new();
            ports.ways(TerminalId(0), TerminalId(3), &mut pairs);
            (pairs.into_iter().map(|(from, to)| (from.0, to.0)).collect::<Vec<_>>(), ports.separated().is_some(), ports.are_all_up())
        };
        assert_eq!(ways(&[]), (vec![(0, 6), (1, 7)], false, true));
        // The spine of the first plane; a leaf of the second; a leaf in each plane: routers of a plane are two leaves and a spine.
        assert_eq!(ways(&[2]), (vec![(1, 7)], false, false));
        assert_eq!(ways(&[3]), (vec![(0, 6)], false, false));
        assert_eq!(ways(&[0, 4]), (vec![], true, false));
    }
}
