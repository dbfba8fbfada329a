//! Clusters in dimensions: accelerators (NPUs) on products of rings, full meshes and switches, each dimension with a link of its own.
//!
//! NPU x has the address x mod n0, (x / n0) mod n1, … An NPU is a router with a port for each of its links, and a terminal for each of
//! them, so that it can send on all its links at once; each terminal's channels are as fast as the link that they belong to. The terminal by
//! which a message leaves is that of its first link, the one at which it arrives that of its last ([`Cluster::terminals`]). Where a switch
//! is all there is, terminals are attached to it and the NPU needs no router. A switch of more than [`MAX_PORTS`] ports is built of several
//! routers, each linked to each by channels of one cycle a flit: it blocks nothing if links are slow enough
//! ([`Cluster::least_period`]).

use crate::id::{ChannelId, Port, RouterId, TerminalId};
use crate::network::{Endpoint, Link, MAX_PORTS, Network, NetworkBuilder, NetworkError};
use crate::routing::{Candidate, Choice, Hop, Reads, Routing, RoutingFacts, VirtualChannels};

/// How the NPUs of a dimension are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wiring {
    /// Each to the one before and the one behind it.
    Ring,
    /// Each to each.
    Full,
    /// Each to one switch.
    Switch,
}

/// One dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// How its NPUs are linked.
    pub wiring: Wiring,
    /// How many there are, at least 2.
    pub size: u32,
    /// A link of it.
    pub link: Link,
}

impl Dimension {
    /// Links that an NPU has in it.
    fn links(&self) -> u32 {
        match self.wiring {
            Wiring::Ring => 2.min(self.size - 1),
            Wiring::Full => self.size - 1,
            Wiring::Switch => 1,
        }
    }

    /// The link by which a message leaves place `here` for place `there`, the shorter way round; up where both are equal.
    fn link_to(&self, here: u32, there: u32) -> u32 {
        let up = (there + self.size - here) % self.size;
        match self.wiring {
            Wiring::Ring => u32::from(2 * up > self.size),
            Wiring::Full => up - 1,
            Wiring::Switch => 0,
        }
    }

    /// The link of place `there` at which a message arrives that came from `here` alone in this dimension. What goes up a ring counts with
    /// the link up, by which it would go on.
    fn arrives_at(&self, here: u32, there: u32) -> u32 {
        match self.wiring {
            Wiring::Ring => self.link_to(here, there),
            _ => self.link_to(there, here),
        }
    }

    /// Routers of its switch.
    fn leaves(&self) -> u32 {
        if self.size as usize > MAX_PORTS { self.size.div_ceil(LEAF) } else { 1 }
    }

    /// NPUs of each of these.
    fn leaf_size(&self) -> u32 {
        if self.size as usize > MAX_PORTS { LEAF } else { self.size }
    }
}

/// NPUs on a router of a switch that is built of several.
const LEAF: u32 = 256;

/// The dimensions of a cluster, and how its routers, terminals and ports are numbered.
#[derive(Clone, Debug)]
pub struct Cluster {
    dimensions: Vec<Dimension>,
    npus: u32,
    /// By dimension: the number of the first NPU of the next place.
    strides: Vec<u32>,
    /// By dimension: links of an NPU in those before; one more entry.
    first_link: Vec<u32>,
    /// By dimension: its first router of a switch; one more entry.
    first_switch: Vec<u32>,
}

impl Cluster {
    /// A cluster of at least one dimension.
    ///
    /// # Errors
    /// More NPUs than 32-bit numbers name.
    pub fn new(dimensions: Vec<Dimension>) -> Result<Self, NetworkError> {
        let too_large = || NetworkError::TooLarge("more NPUs than 2^24".to_owned());
        let (mut npus, mut strides, mut first_link) = (1_u32, Vec::new(), vec![0]);
        for dimension in &dimensions {
            strides.push(npus);
            npus = npus.checked_mul(dimension.size).filter(|&npus| npus <= 1 << 24).ok_or_else(too_large)?;
            first_link.push(first_link.last().copied().unwrap_or(0) + dimension.links());
        }
        let mut cluster = Self { dimensions, npus, strides, first_link, first_switch: Vec::new() };
        let mut next = if cluster.is_one_switch() { 0 } else { npus };
        for dimension in &cluster.dimensions {
            cluster.first_switch.push(next);
            next += if dimension.wiring == Wiring::Switch { npus / dimension.size * dimension.leaves() } else { 0 };
        }
        cluster.first_switch.push(next);
        Ok(cluster)
    }

    /// Whether a switch is all there is.
    fn is_one_switch(&self) -> bool {
        self.dimensions.len() == 1 && self.dimensions[0].wiring == Wiring::Switch
    }

    /// Links must take at least so many cycles for a flit, lest a switch of several routers blocks.
    pub fn least_period(&self) -> u32 {
        if self.dimensions.iter().any(|dimension| dimension.leaves() > 1 && dimension.wiring == Wiring::Switch) { 2 * LEAF } else { 1 }
    }

    /// All NPUs.
    pub fn npus(&self) -> u32 {
        self.npus
    }

    /// Terminals of an NPU: as many as links.
    pub fn links(&self) -> u32 {
        self.first_link[self.dimensions.len()]
    }

    fn place(&self, npu: u32, dimension: usize) -> u32 {
        npu / self.strides[dimension] % self.dimensions[dimension].size
    }

    fn terminal(&self, npu: u32, dimension: usize, link: u32) -> TerminalId {
        TerminalId(npu * self.links() + self.first_link[dimension] + link)
    }

    /// The terminals between which a message goes from one NPU to another one: that of its first link, and that of its last.
    pub fn terminals(&self, source: u32, destination: u32) -> (TerminalId, TerminalId) {
        let differs = |&dimension: &usize| self.place(source, dimension) != self.place(destination, dimension);
        let first = (0..self.dimensions.len()).find(differs).unwrap_or(0);
        let last = (0..self.dimensions.len()).rev().find(differs).unwrap_or(0);
        if source == destination {
            return (self.terminal(source, 0, 0), self.terminal(source, 0, 0));
        }
        let link = self.dimensions[first].link_to(self.place(source, first), self.place(destination, first));
        let arrival = self.dimensions[last].arrives_at(self.place(source, last), self.place(destination, last));
        (self.terminal(source, first, link), self.terminal(destination, last, arrival))
    }

    /// The NPU of a terminal.
    pub fn npu(&self, terminal: TerminalId) -> u32 {
        terminal.0 / self.links()
    }

    /// The group of a switch's dimension in which an NPU is, by number.
    fn group(&self, npu: u32, dimension: usize) -> u32 {
        let stride = self.strides[dimension];
        npu / (stride * self.dimensions[dimension].size) * stride + npu % stride
    }

    /// The router of a switch to which an NPU is linked, and its port there.
    fn switch_port(&self, npu: u32, dimension: usize) -> (RouterId, Port) {
        let of = &self.dimensions[dimension];
        let (place, size) = (self.place(npu, dimension), of.leaf_size());
        let router = self.first_switch[dimension] + self.group(npu, dimension) * of.leaves() + place / size;
        (RouterId(router), (place % size) as Port)
    }

    /// Where each NPU does what any other does: by channel, the channel of NPU 0 in its place, that of the same link. Channels within a switch
    /// stand for themselves.
    pub fn channels_of_first(&self, network: &Network) -> Vec<u32> {
        let of_port = |endpoint: Endpoint| match endpoint {
            Endpoint::Router(router, port) if !self.is_one_switch() && router.0 < self.npus => Some(port),
            _ => None,
        };
        let links = self.links();
        let of_first = |channel: ChannelId| {
            let (source, destination) = (network.source(channel), network.destination(channel));
            match (source, destination) {
                (Endpoint::Terminal(terminal), _) => Some(network.injection_channel(TerminalId(terminal.0 % links))),
                (_, Endpoint::Terminal(terminal)) => Some(network.ejection_channel(TerminalId(terminal.0 % links))),
                _ => of_port(source).map(|port| network.output_channel(RouterId(0), port)).unwrap_or_else(|| {
                    // From a switch: the port at which it arrives tells the link.
                    of_port(destination).and_then(|port| network.input_channel(RouterId(0), port))
                }),
            }
        };
        (0..network.channel_count()).map(|number| of_first(ChannelId(number)).map_or(number, |channel| channel.0)).collect()
    }

    /// Builds the network.
    ///
    /// # Errors
    /// An NPU with more links than a router has ports for.
    pub fn build(&self, name: String) -> Result<Network, NetworkError> {
        let mut builder = NetworkBuilder::new(name);
        let links = self.links();
        if !self.is_one_switch() {
            if 2 * links as usize > MAX_PORTS {
                let problem = format!("an NPU of {links} links, each with a terminal; a router has at most {MAX_PORTS} ports");
                return Err(NetworkError::TooLarge(problem));
            }
            for _ in 0..self.npus {
                builder.add_router(2 * links as usize)?;
            }
        }
        self.add_switches(&mut builder)?;
        for npu in 0..self.npus {
            for (dimension, of) in self.dimensions.iter().enumerate() {
                if self.is_one_switch() {
                    let (router, port) = self.switch_port(npu, dimension);
                    builder.add_terminal(router, port, of.link);
                    continue;
                }
                for link in 0..of.links() {
                    let port = self.first_link[dimension] + link;
                    builder.add_terminal(RouterId(npu), port as Port, Link { latency: 1, period: of.link.period });
                }
            }
        }
        if !self.is_one_switch() {
            (0..self.npus).for_each(|npu| (0..self.dimensions.len()).for_each(|dimension| self.add_links(&mut builder, npu, dimension)));
        }
        builder.finish()
    }

    fn add_switches(&self, builder: &mut NetworkBuilder) -> Result<(), NetworkError> {
        let fast = Link { latency: 1, period: 1 };
        for (dimension, of) in self.dimensions.iter().enumerate().filter(|(_, of)| of.wiring == Wiring::Switch) {
            let leaves = of.leaves();
            for group in 0..self.npus / of.size {
                for _ in 0..leaves {
                    builder.add_router((of.leaf_size() + leaves - 1) as usize)?;
                }
                let router = |leaf: u32| RouterId(self.first_switch[dimension] + group * leaves + leaf);
                for one in 0..leaves {
                    for other in (0..leaves).filter(|&other| other != one) {
                        builder.add_channel((router(one), leaf_port(one, other)), (router(other), leaf_port(other, one)), fast);
                    }
                }
            }
        }
        Ok(())
    }

    /// The channels of an NPU in one dimension: those that leave it, and those from its switch.
    fn add_links(&self, builder: &mut NetworkBuilder, npu: u32, dimension: usize) {
        let of = &self.dimensions[dimension];
        let place = self.place(npu, dimension);
        let port = |link: u32| (self.links() + self.first_link[dimension] + link) as Port;
        if of.wiring == Wiring::Switch {
            builder.add_link((RouterId(npu), port(0)), self.switch_port(npu, dimension), of.link);
            return;
        }
        for link in 0..of.links() {
            let next = match (of.wiring, link) {
                (Wiring::Ring, 0) => (place + 1) % of.size,
                (Wiring::Ring, _) => (place + of.size - 1) % of.size,
                _ => (place + link + 1) % of.size,
            };
            let other = npu - place * self.strides[dimension] + next * self.strides[dimension];
            // The port of the other end that leads back here; both links of a ring of two places are one.
            let back = if of.wiring == Wiring::Ring { of.links() - 1 - link } else { of.link_to(next, place) };
            builder.add_channel((RouterId(npu), port(link)), (RouterId(other), port(back)), of.link);
        }
    }

    /// The port by which a message leaves a router for an NPU, and whether it still has to cross the end of a ring; `None` at the NPU.
    fn next(&self, router: RouterId, destination: u32) -> Option<(Port, bool)> {
        if router.0 >= self.first_switch[0] && self.first_switch[0] != self.first_switch[self.dimensions.len()] {
            let dimension = self.first_switch.partition_point(|&first| first <= router.0) - 1;
            let (leaf, port) = self.switch_port(destination, dimension);
            let of = &self.dimensions[dimension];
            let own = (router.0 - self.first_switch[dimension]) % of.leaves();
            let other = (leaf.0 - self.first_switch[dimension]) % of.leaves();
            let port = if own == other { port } else { leaf_port(own, other) };
            return Some((port, false));
        }
        let differs = |&dimension: &usize| self.place(router.0, dimension) != self.place(destination, dimension);
        let dimension = (0..self.dimensions.len()).find(differs)?;
        let of = &self.dimensions[dimension];
        let (here, there) = (self.place(router.0, dimension), self.place(destination, dimension));
        let link = of.link_to(here, there);
        let crosses = of.wiring == Wiring::Ring && (if link == 0 { there < here } else { there > here });
        Some(((self.links() + self.first_link[dimension] + link) as Port, crosses))
    }
}

/// The port of a router of a switch that leads to another one of them.
fn leaf_port(own: u32, other: u32) -> Port {
    (LEAF + other - u32::from(other > own)) as Port
}

/// One dimension after the other, round rings the shorter way.
///
/// Virtual channels: packets that have still to cross the end of a ring take the upper half, all others the lower one, so that neither half
/// has a cycle (Dally and Towles 2004, section 14.2.3). For engines that know no virtual channels that can be left out.
#[derive(Clone, Debug)]
pub struct ClusterOrder {
    cluster: Cluster,
    divides: bool,
}

impl ClusterOrder {
    /// For a cluster; are virtual channels to be divided where there are rings?
    pub fn new(cluster: Cluster, with_virtual_channels: bool) -> Self {
        let has_rings = cluster.dimensions.iter().any(|dimension| dimension.wiring == Wiring::Ring && dimension.size > 2);
        Self { cluster, divides: has_rings && with_virtual_channels }
    }

    fn ejection(&self, destination: TerminalId) -> Port {
        (destination.0 % self.cluster.links()) as Port
    }
}

impl Routing for ClusterOrder {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: if self.divides { 2 } else { 1 },
            reads: Reads::DESTINATION_ROUTER,
            is_deadlock_free: self.divides
                || self.cluster.dimensions.iter().all(|dimension| dimension.wiring != Wiring::Ring || dimension.size <= 3),
            observes_congestion: false,
            ..RoutingFacts::default()
        }
    }

    fn port_to(&self, router: RouterId, destination: TerminalId) -> Option<Port> {
        if self.divides {
            return None;
        }
        let next = self.cluster.next(router, self.cluster.npu(destination));
        Some(next.map_or_else(|| self.ejection(destination), |(port, _)| port))
    }

    fn route(&self, hop: &Hop, _state: &mut u32, _choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let Some((port, crosses)) = self.cluster.next(hop.router, self.cluster.npu(hop.destination)) else {
            candidates.push(Candidate::new(self.ejection(hop.destination), hop.available));
            return;
        };
        let channels: VirtualChannels = if self.divides { hop.available.class(u16::from(crosses), 2) } else { hop.available };
        candidates.push(Candidate::new(port, channels));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadlock;
    use std::sync::Arc;

    fn dimension(wiring: Wiring, size: u32) -> Dimension {
        Dimension { wiring, size, link: Link { latency: 7, period: 2 } }
    }

    fn clusters() -> Vec<Vec<Dimension>> {
        let one = [Wiring::Ring, Wiring::Full, Wiring::Switch];
        let mut all: Vec<Vec<Dimension>> = one.iter().flat_map(|&wiring| [2, 3, 4, 7].map(|size| vec![dimension(wiring, size)])).collect();
        for first in one {
            for second in one {
                all.push(vec![dimension(first, 3), dimension(second, 4)]);
                all.push(vec![dimension(first, 4), dimension(second, 2), dimension(Wiring::Ring, 3)]);
            }
        }
        all
    }

    /// The channels of a message, followed through the network.
    fn path(network: &Network, routing: &ClusterOrder, from: TerminalId, to: TerminalId) -> Vec<crate::id::ChannelId> {
        let mut channels = vec![network.injection_channel(from)];
        while let Endpoint::Router(router, _) = network.destination(channels[channels.len() - 1]) {
            let port = routing.port_to(router, to).unwrap();
            channels.push(network.output_channel(router, port).unwrap());
            assert!(channels.len() < 40, "a message goes round for ever");
        }
        assert_eq!(channels.last(), Some(&network.ejection_channel(to)));
        channels
    }

    /// Every message arrives at the terminal that it is for, over as many links as its dimensions need.
    #[test]
    fn messages_arrive_over_as_few_links_as_there_can_be() {
        for dimensions in clusters() {
            let cluster = Cluster::new(dimensions.clone()).unwrap();
            let network = cluster.build("cluster".to_owned()).unwrap();
            let routing = ClusterOrder::new(cluster.clone(), false);
            for source in 0..cluster.npus() {
                for destination in (0..cluster.npus()).filter(|&other| other != source) {
                    let (from, to) = cluster.terminals(source, destination);
                    assert_eq!((cluster.npu(from), cluster.npu(to)), (source, destination));
                    let slow = path(&network, &routing, from, to).iter().filter(|&&channel| network.link(channel).latency == 7).count();
                    let hops = |(number, of): (usize, &Dimension)| {
                        let (one, other) = (cluster.place(source, number), cluster.place(destination, number));
                        let up = (other + of.size - one) % of.size;
                        match of.wiring {
                            Wiring::Ring => up.min(of.size - up),
                            Wiring::Full => u32::from(up > 0),
                            Wiring::Switch => 2 * u32::from(up > 0),
                        }
                    };
                    assert_eq!(slow as u32, dimensions.iter().enumerate().map(hops).sum::<u32>(), "{dimensions:?} {source} {destination}");
                }
            }
        }
    }

    #[test]
    fn packets_cannot_wait_for_each_other() {
        let channels = [VirtualChannels { begin: 0, end: 2 }];
        for dimensions in clusters() {
            let cluster = Cluster::new(dimensions.clone()).unwrap();
            let network = Arc::new(cluster.build("cluster".to_owned()).unwrap());
            let routing = ClusterOrder::new(cluster, true);
            assert!(routing.facts().is_deadlock_free);
            let report = deadlock::check(&network, &routing, &channels);
            assert_eq!((report.verdict, report.unroutable), (deadlock::Verdict::Acyclic, None), "{dimensions:?}");
        }
    }

    /// A switch of more ports than a router has: two routers apart at most, and no message goes by another's terminal.
    #[test]
    fn a_large_switch_is_one() {
        let cluster = Cluster::new(vec![dimension(Wiring::Switch, 1000)]).unwrap();
        assert_eq!(cluster.least_period(), 512);
        let network = cluster.build("cluster".to_owned()).unwrap();
        assert_eq!((network.router_count(), network.terminal_count()), (4, 1000));
        let routing = ClusterOrder::new(cluster.clone(), false);
        for (source, destination) in [(0, 255), (0, 256), (999, 3), (600, 601), (511, 768)] {
            let (from, to) = cluster.terminals(source, destination);
            let expected = if source / LEAF == destination / LEAF { 2 } else { 3 };
            assert_eq!(path(&network, &routing, from, to).len(), expected);
        }
        let wide = Cluster::new(vec![dimension(Wiring::Full, 300)]).unwrap().build("cluster".to_owned());
        assert!(wide.unwrap_err().to_string().contains("299 links"));
    }
}
