//! Compares topologies for a number of terminals and of ports per router: sizes, cables, price, and the efficiency of an all-to-all.
//!
//! Closed forms find the smallest instance of each topology; it is then built and its properties are counted on the network. Trees of
//! commercial switches (`price_list.rs`, `bought.rs`) are found and counted by closed forms alone.

mod bought;
mod candidates;
mod price_list;
mod prices;
mod recommended;

pub use bought::{Family, PricedTree, TreeOffer, TreeRequest, offer};
pub use candidates::{Candidate, largest, smallest};
pub use price_list::{CableKind, Cost, EXAMPLE_LIST, Lengths, OpticsPrice, PriceList, SwitchPrice, TerminalPrice};
pub use prices::{CablePrice, CablePrices, EXAMPLE, Floor, Prices, RouterPrice};
pub use recommended::{MAX_SCHEDULED_TERMINALS, RecommendedSchedule};

use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::connectivity::separated;
use kasuri_network::network::metrics::Bisection;
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::registry::find;
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};
use rayon::prelude::*;
use serde::Serialize;
use std::sync::Arc;
use toml::Table;

/// One topology's answer, counted on the built network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Design {
    /// The family in words.
    pub family: &'static str,
    /// The network's one-line form.
    pub network: String,
    /// `network.topology`.
    pub topology: &'static str,
    /// Its keys.
    pub parameters: Table,
    /// Terminals, at least the requested number.
    pub terminals: u32,
    /// Routers.
    pub routers: u32,
    /// Ports of the widest router.
    pub ports: u32,
    /// Ports in use on all routers together.
    pub ports_used: u64,
    /// Cables between routers.
    pub links: u64,
    /// Those short enough for copper.
    pub copper: u64,
    /// The others.
    pub optical: u64,
    /// Terminals per router.
    pub terminals_per_router: f64,
    /// Channels between routers on the longest of the shortest paths between terminals.
    pub diameter: u32,
    /// Channels between the halves, both directions, of the narrowest known cut into halves.
    pub bisection: Option<u64>,
    /// The share of the terminals' bandwidth that an all-to-all on shortest paths can reach, equal paths shared equally: at most 1.
    pub all_to_all: f64,
    /// How an all-to-all is best sent, and how near that comes; nothing of designs of more than [`MAX_SCHEDULED_TERMINALS`] terminals.
    pub recommended: Option<RecommendedSchedule>,
    /// Routers, all as wide as the widest, and cables, with those of the terminals.
    pub price: f64,
    /// Watts of all ports in use.
    pub watts: f64,
}

/// The smallest instance of each family of topologies for `terminals` terminals on routers of at most `ports` ports. With `search`,
/// schedules of all-to-alls are searched for large ones too, which takes minutes.
///
/// # Errors
/// An instance that cannot be built or measured, which is an internal error.
pub fn design(terminals: u64, ports: u64, prices: &Prices, search: bool) -> Result<Vec<(&'static str, Option<Design>)>, String> {
    smallest(terminals, ports)
        .into_par_iter()
        .map(|(family, candidate)| Ok((family, candidate.map(|candidate| one(candidate, prices, search)).transpose()?)))
        .collect()
}

/// Builds a candidate.
///
/// # Errors
/// Parameters that the topology refuses.
pub fn build(candidate: &Candidate) -> Result<Network, String> {
    built(candidate.topology, &candidate.parameters)
}

/// Builds a topology of these keys.
fn built(name: &str, parameters: &Table) -> Result<Network, String> {
    let entry = find(TOPOLOGIES, name).ok_or_else(|| format!("unknown topology `{name}`"))?;
    let topology = (entry.parse)(parameters.clone()).map_err(|error| error.to_string())?;
    let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
    topology.build(&context).map_err(|error| format!("{name}: {error}"))
}

fn one(candidate: Candidate, prices: &Prices, search: bool) -> Result<Design, String> {
    let network = Arc::new(build(&candidate)?);
    let recommended = RecommendedSchedule::of(&network, candidate.topology, search);
    Ok(Design { recommended, ..measure(candidate, &network, prices)? })
}

/// The properties of a network that need no walk over all pairs.
fn measure(candidate: Candidate, network: &Network, prices: &Prices) -> Result<Design, String> {
    let (links, copper, cable_price) = cables(network, prices);
    let (terminals, routers) = (network.terminal_count(), network.router_count());
    let terminal_cables = f64::from(terminals) * prices.cable(prices.cable.terminal_m).0;
    let ports_used = 2 * links + u64::from(terminals);
    let graph = Graph::of(network);
    let router_price = prices.router.base + f64::from(graph.radix()) * prices.router.per_port;
    Ok(Design {
        family: candidate.family,
        network: network.name().to_owned(),
        topology: candidate.topology,
        parameters: candidate.parameters,
        terminals,
        routers,
        ports: graph.radix(),
        ports_used,
        links,
        copper,
        optical: links - copper,
        terminals_per_router: f64::from(terminals) / f64::from(routers),
        diameter: graph.diameter(&sources(network)).ok_or_else(|| disconnected(network))?,
        bisection: Bisection::of(network).map(|cut| cut.channels),
        all_to_all: all_to_all(network, &graph),
        recommended: None,
        price: f64::from(routers) * router_price + cable_price + terminal_cables,
        watts: ports_used as f64 * prices.router.watts_per_port,
    })
}

/// The error for a disconnected network.
fn disconnected(network: &Network) -> String {
    let pair = separated(network).map(|(from, to)| format!(": {} cannot reach {}", network.terminal_name(from), network.terminal_name(to)));
    format!("{} is disconnected{}", network.name(), pair.unwrap_or_default())
}

/// Cables between routers, those of copper, and the price of all.
fn cables(network: &Network, prices: &Prices) -> (u64, u64, f64) {
    let (mut links, mut copper, mut price) = (0, 0, 0.0);
    for channel in network.router_channels() {
        let (Endpoint::Router(from, _), Endpoint::Router(to, _)) = (network.source(channel), network.destination(channel)) else {
            continue;
        };
        // All links here have two channels; the one from the lower router represents both.
        if from < to {
            let (one, is_copper) = prices.cable(prices.floor.cable_length(from.0, to.0, network.router_count()));
            links += 1;
            copper += u64::from(is_copper);
            price += one;
        }
    }
    (links, copper, price)
}

/// (N - 1) / the messages of all pairs on the busiest channel between routers, at most 1.
fn all_to_all(network: &Network, graph: &Graph) -> f64 {
    if let Some(&[up, down, ..]) = network.labels().attribute("fat_tree")
        && up >= down
    {
        // As many links up as down on every level: equal paths share equally, and none carries more than a terminal sends.
        return 1.0;
    }
    let busiest = dragonfly_load(network).or_else(|| mesh_load(network)).unwrap_or_else(|| graph.busiest_channel());
    (f64::from(network.terminal_count().saturating_sub(1)) / busiest.max(1.0)).min(1.0)
}

/// Messages of all pairs on the busiest channel of a dragonfly. A global link carries (a p)^2; a local one p^2 within the group, p h a p
/// towards the other groups served by its end and the same from those served by its beginning.
fn dragonfly_load(network: &Network) -> Option<f64> {
    let &[p, a, h] = network.labels().attribute("dragonfly")? else { return None };
    let [p, a, h] = [p, a, h].map(f64::from);
    let local = if a > 1.0 { p * p * (1.0 + 2.0 * a * h) } else { 0.0 };
    Some(local.max(a * p * a * p))
}

/// Messages of all pairs on the busiest channel of a mesh or torus in dimension order, equal paths round a ring shared equally: R / k
/// of the pairs of a line for each pair of positions. A line of k has floor(k / 2) ceil(k / 2) pairs over its middle, a ring k^2 / 8
/// in a direction, rounded down for odd k (Dally and Towles, section 3.3).
fn mesh_load(network: &Network) -> Option<f64> {
    let labels = network.labels();
    let (dimensions, &[wrap]) = (labels.attribute("dimensions")?, labels.attribute("wrap")?) else { return None };
    let routers = f64::from(network.router_count());
    let concentration = f64::from(network.terminal_count()) / routers;
    let load = |&radix: &u32| {
        let half = f64::from(radix / 2) * f64::from(radix.div_ceil(2));
        let pairs = match (wrap, radix % 2) {
            (0, _) => half,
            (_, 0) => half / 2.0,
            _ => (f64::from(radix).powi(2) - 1.0) / 8.0,
        };
        pairs * routers / f64::from(radix) * concentration.powi(2)
    };
    dimensions.iter().map(load).reduce(f64::max)
}

/// Routers with terminals at the greatest distance from another one. In a mesh the corner is such a router, and in a torus all routers are
/// alike.
fn sources(network: &Network) -> Vec<u32> {
    if network.labels().attribute("wrap").is_some() {
        return vec![0];
    }
    let mut routers: Vec<u32> = (0..network.terminal_count()).map(|terminal| network.injection_port(TerminalId(terminal)).0.0).collect();
    routers.dedup();
    routers
}

/// Words of bits for sources walked together: a cache line.
const WORDS: usize = 8;

/// Routers and the channels between them, each channel at the router that it leaves.
struct Graph {
    /// Where each router's channels begin; one more entry than routers.
    first: Vec<usize>,
    /// The routers at their ends.
    ends: Vec<u32>,
    /// Cycles that a flit occupies each of them.
    periods: Vec<f64>,
    /// Terminals on each router.
    terminals: Vec<f64>,
}

impl Graph {
    fn of(network: &Network) -> Self {
        let mut graph = Self { first: vec![0], ends: Vec::new(), periods: Vec::new(), terminals: Vec::new() };
        for router in (0..network.router_count()).map(RouterId) {
            let mut terminals = 0.0;
            for port in 0..network.port_count(router) {
                let Some(channel) = network.output_channel(router, port as u16) else { continue };
                match network.destination(channel) {
                    Endpoint::Router(end, _) => {
                        graph.ends.push(end.0);
                        graph.periods.push(f64::from(network.link(channel).period));
                    }
                    Endpoint::Terminal(_) => terminals += 1.0,
                }
            }
            graph.first.push(graph.ends.len());
            graph.terminals.push(terminals);
        }
        graph
    }

    fn channels(&self, router: u32) -> std::ops::Range<usize> {
        self.first[router as usize]..self.first[router as usize + 1]
    }

    /// Ports in use of the widest router: links lead in both directions, terminals have a port each.
    fn radix(&self) -> u32 {
        let ports = |router: u32| self.channels(router).len() as u32 + self.terminals[router as usize] as u32;
        (0..self.terminals.len() as u32).map(ports).max().unwrap_or(0)
    }

    /// Channels on the longest of the shortest paths from these routers to all with terminals. Many sources are walked at once, a bit each.
    /// `None` if a path is missing.
    fn diameter(&self, sources: &[u32]) -> Option<u32> {
        sources.chunks(64 * WORDS).try_fold(0, |longest, block| Some(longest.max(self.eccentricity(block)?)))
    }

    fn eccentricity(&self, sources: &[u32]) -> Option<u32> {
        let mut all = [0; WORDS];
        let mut reached = vec![[0; WORDS]; self.terminals.len()];
        for (number, &source) in sources.iter().enumerate() {
            all[number / 64] |= 1 << (number % 64);
            reached[source as usize][number / 64] |= 1 << (number % 64);
        }
        let is_done =
            |reached: &[[u64; WORDS]]| reached.iter().zip(&self.terminals).all(|(bits, &terminals)| terminals == 0.0 || *bits == all);
        let mut next = reached.clone();
        // On a connected graph no path is longer than there are routers.
        (0..self.terminals.len() as u32).find(|_| {
            let done = is_done(&reached);
            for (router, bits) in next.iter_mut().enumerate().filter(|_| !done) {
                *bits = reached[router];
                for &end in &self.ends[self.channels(router as u32)] {
                    bits.iter_mut().zip(&reached[end as usize]).for_each(|(word, from)| *word |= from);
                }
            }
            std::mem::swap(&mut reached, &mut next);
            done
        })
    }

    /// Cycles of the busiest channel when every terminal sends one flit to every other on shortest paths, equal paths at each router
    /// sharing equally. All links lead in both directions.
    fn busiest_channel(&self) -> f64 {
        let mut load = vec![0.0; self.ends.len()];
        let mut order = Vec::new();
        for target in (0..self.terminals.len() as u32).filter(|&router| self.terminals[router as usize] > 0.0) {
            let distance = self.distances(target, &mut order);
            let mut through = self.terminals.clone();
            // From the farthest router on: traffic through a router comes from farther ones.
            for &router in order.iter().skip(1).rev() {
                let nearer = |end: u32| distance[end as usize] + 1 == distance[router as usize];
                let paths = self.channels(router).filter(|&channel| nearer(self.ends[channel])).count();
                let share = through[router as usize] / paths as f64;
                for channel in self.channels(router).filter(|&channel| nearer(self.ends[channel])) {
                    load[channel] += share * self.terminals[target as usize];
                    through[self.ends[channel] as usize] += share;
                }
            }
        }
        load.iter().zip(&self.periods).map(|(load, period)| load * period).fold(0.0, f64::max)
    }

    /// Hops from a router, or to it; `order` becomes the routers by rising distance.
    fn distances(&self, from: u32, order: &mut Vec<u32>) -> Vec<u32> {
        let mut distance = vec![u32::MAX; self.terminals.len()];
        distance[from as usize] = 0;
        order.clear();
        order.push(from);
        let mut next = 0;
        while next < order.len() {
            let router = order[next];
            for &end in &self.ends[self.channels(router)] {
                if distance[end as usize] == u32::MAX {
                    distance[end as usize] = distance[router as usize] + 1;
                    order.push(end);
                }
            }
            next += 1;
        }
        distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::network::metrics::Metrics;
    use kasuri_network::routing::walk::{DELIVERED, Routes, Walker};
    use kasuri_network::routing::{ROUTINGS, VirtualChannels};
    use kasuri_workload::schedule::SCHEDULES;

    /// The same by walking all routes of the routing `minimal`, on meshes and tori of `dimension-order`.
    fn walked(network: &Arc<Network>) -> f64 {
        let is_mesh = network.labels().attribute("wrap").is_some();
        let (name, tie) = if is_mesh { ("dimension-order", "tie = 'random'") } else { ("minimal", "") };
        let entry = find(ROUTINGS, name).unwrap();
        let routing = (entry.parse)(tie.parse().unwrap()).unwrap().compile(network).unwrap();
        let routing = routing.as_ref();
        let available = VirtualChannels { begin: 0, end: routing.facts().virtual_channels_required as u16 };
        let (mut walker, mut routes) = (Walker::new(network, routing, available), Routes::default());
        let mut senders = vec![0.0; walker.group_count()];
        walker.group_of().iter().for_each(|&group| senders[group as usize] += 1.0);
        let (destinations, group_of) = walker.destination_groups();
        let mut receivers = vec![0.0; destinations.len()];
        group_of.iter().for_each(|&group| receivers[group as usize] += 1.0);
        let mut load = vec![0.0; network.channel_count() as usize];
        for (&destination, receivers) in destinations.iter().zip(receivers) {
            walker.walk(destination, &mut routes).unwrap();
            let order = routes.order().unwrap();
            let mut here = vec![0.0; routes.places.len()];
            for start in &routes.starts {
                here[start.place as usize] += receivers * senders[start.group as usize] * start.probability;
            }
            for place in order {
                for step in routes.steps_of(place).iter().filter(|step| step.to != DELIVERED) {
                    let share = here[place as usize] * step.probability;
                    load[step.channel.index()] += share;
                    here[step.to as usize] += share;
                }
            }
        }
        load.into_iter().fold(0.0, f64::max)
    }

    #[test]
    fn channel_loads_are_those_of_the_routings() {
        for (terminals, ports) in [(30, 10), (100, 16), (300, 24)] {
            for candidate in smallest(terminals, ports).into_iter().filter_map(|(_, candidate)| candidate) {
                let network = Arc::new(build(&candidate).unwrap());
                let closed = dragonfly_load(&network).or_else(|| mesh_load(&network));
                let one = closed.unwrap_or_else(|| Graph::of(&network).busiest_channel());
                let other = walked(&network);
                assert!((one - other).abs() < 1e-6 * other, "{}: {one} {other}", network.name());
                if candidate.topology == "fat-tree" {
                    // The assumption of `all_to_all`.
                    assert!(one <= f64::from(network.terminal_count() - 1), "{}: {one}", network.name());
                }
            }
        }
    }

    fn designs(terminals: u64, ports: u64) -> Vec<Design> {
        let prices = Prices::parse(EXAMPLE).unwrap();
        design(terminals, ports, &prices, false).unwrap().into_iter().filter_map(|(_, design)| design).collect()
    }

    /// The closed forms that choose the instances agree with the built networks.
    #[test]
    fn closed_forms_agree_with_the_built_networks() {
        for (terminals, ports) in [(10, 12), (100, 16), (500, 24), (1000, 36), (3000, 48)] {
            for (_, candidate) in smallest(terminals, ports) {
                let Some(candidate) = candidate else { continue };
                let metrics = Metrics::of(&build(&candidate).unwrap());
                let counted = (u64::from(metrics.terminals), u64::from(metrics.routers), u64::from(metrics.radix));
                assert_eq!(counted, (candidate.terminals, candidate.routers, candidate.ports), "{candidate:?}");
                assert!(candidate.terminals >= terminals && candidate.ports <= ports, "{candidate:?}");
            }
        }
        for candidate in (4..14).flat_map(largest).filter_map(|(_, candidate)| candidate) {
            let network = build(&candidate).unwrap();
            let counted = [u64::from(network.terminal_count()), u64::from(network.router_count()), u64::from(Graph::of(&network).radix())];
            assert_eq!(counted, [candidate.terminals, candidate.routers, candidate.ports], "{candidate:?}");
        }
    }

    /// A design has the same values as the metrics of its network, which share no code with it.
    #[test]
    fn designs_are_measured_as_the_metrics_measure() {
        for (terminals, ports) in [(30, 10), (64, 12), (300, 24), (1000, 36)] {
            for (_, candidate) in smallest(terminals, ports) {
                let Some(candidate) = candidate else { continue };
                let network = build(&candidate).unwrap();
                let metrics = Metrics::of(&network);
                let design = measure(candidate, &network, &Prices::parse(EXAMPLE).unwrap()).unwrap();
                assert_eq!(metrics.distances.walked, metrics.distances.sources);
                let counted = (metrics.radix, metrics.links, metrics.distances.diameter, metrics.bisection.map(|cut| cut.channels));
                assert_eq!((design.ports, design.links, design.diameter, design.bisection), counted, "{design:?}");
            }
        }
    }

    /// On routers of 2 d ports: 2 d^2 terminals with two levels, 2 d^3 with three, d^2 (d + 1) on a multi-layer full mesh.
    #[test]
    fn largest_instances_grow_with_the_degree_as_published() {
        for d in 2..20 {
            let terminals = |family: &str| largest(2 * d).into_iter().find(|(name, _)| *name == family)?.1.map(|found| found.terminals);
            assert_eq!(terminals("fat tree, 2 levels"), Some(2 * d.pow(2)));
            assert_eq!(terminals("fat tree, 3 levels"), Some(2 * d.pow(3)));
            assert_eq!(terminals("multi-layer full mesh"), Some(d.pow(2) * (d + 1)));
        }
    }

    /// Where the wanted size is just that of a full instance, it is found: 2 d^2 and 3 d, 2 d^3 and 5 d^2, and
    /// 2 d (d^2 - d + 1) and 3 (d^2 - d + 1) terminals and routers with 2 d ports.
    #[test]
    fn full_instances_are_found() {
        let found = |family: &str, terminals: u64, ports: u64| {
            let all = smallest(terminals, ports);
            let one = all.into_iter().find(|(name, _)| *name == family).unwrap().1;
            one.map(|candidate| (candidate.terminals, candidate.routers))
        };
        assert_eq!(found("fat tree, 2 levels", 128, 16), Some((128, 24)));
        assert_eq!(found("fat tree, 3 levels", 1024, 16), Some((1024, 320)));
        assert_eq!(found("orthogonal fat tree, two-sided", 3192, 24), Some((3192, 399)));
        assert_eq!(found("multi-layer full mesh", 6156, 36), Some((6156, 513)));
        assert_eq!(found("fat tree, 2 levels", 129, 16), None);
        assert_eq!(found("multi-layer full mesh", 6157, 36), None);
    }

    /// A full mesh of R routers with c terminals each: c^2 messages on a channel. MLFM, OFT and fat trees carry an all-to-all at
    /// the full rate.
    #[test]
    fn all_to_all_bounds_are_those_of_the_formulas() {
        for design in designs(200, 30) {
            match design.family {
                "full mesh" => {
                    let concentration = design.terminals / design.routers;
                    let bound = f64::from(design.terminals - 1) / f64::from(concentration * concentration);
                    assert!((design.all_to_all - bound.min(1.0)).abs() < 1e-9);
                    assert_eq!(design.diameter, 1);
                }
                "multi-layer full mesh" | "orthogonal fat tree" | "fat tree, 3 levels" => assert_eq!(design.all_to_all, 1.0, "{design:?}"),
                _ => assert!(design.all_to_all > 0.0 && design.all_to_all <= 1.0, "{design:?}"),
            }
        }
    }

    /// Recommendations equal the counts of `kasuri schedule`, and are no faster than the bandwidth of the channels allows. On a full mesh,
    /// fat trees, MLFM and OFT a known schedule reaches the bound.
    #[test]
    fn recommended_schedules_come_as_near_to_the_bound_as_is_known() {
        for design in designs(24, 10) {
            let found = design.recommended.clone().unwrap_or_else(|| panic!("{design:?}"));
            assert!(found.efficiency > 0.0 && found.efficiency <= 1.0, "{design:?}");
            assert!(SCHEDULES.iter().any(|entry| entry.name == found.schedule), "{found:?}");
            if matches!(design.topology, "full-mesh" | "fat-tree" | "mlfm" | "oft") {
                assert!(found.efficiency > 0.95, "{design:?}");
            }
        }
        let large = designs(2 * u64::from(MAX_SCHEDULED_TERMINALS), 48);
        assert!(large.iter().all(|design| design.recommended.is_none()));
    }

    /// Price and power are sums of their parts.
    #[test]
    fn prices_are_sums_of_routers_and_cables() {
        let prices = Prices::parse(EXAMPLE).unwrap();
        let longest_copper = Prices { cable: CablePrices { copper_up_to_m: 1e9, ..prices.cable.clone() }, ..prices.clone() };
        let (_, Some(all_copper)) = &design(100, 16, &longest_copper, false).unwrap()[5] else { panic!("an MLFM of 100 terminals") };
        assert_eq!((all_copper.optical, all_copper.copper), (0, all_copper.links));
        assert_eq!(all_copper.ports_used, 2 * all_copper.links + u64::from(all_copper.terminals));
        assert!((all_copper.watts - 2.8 * all_copper.ports_used as f64).abs() < 1e-6);
        let routers = f64::from(all_copper.routers) * (350.4 * f64::from(all_copper.ports) - 892.3);
        let cables = all_copper.price - routers - f64::from(all_copper.terminals) * (23.084 + 16.316);
        let least = all_copper.links as f64 * (23.084 + 16.316 * prices.floor.within_rack_m);
        assert!(cables >= least - 1e-6, "{cables} {least}");
    }
}
