//! All routes to a destination as one graph: where packets to it can come, and over which channels with which probability.
//!
//! Nodes are places (a router with whatever else the routing reads: input port, virtual channel, source, state); hops that
//! differ in nothing the routing reads share one. The deadlock check and the analysis of channel loads are built on it.

use super::branches::Branches;
use super::contract::Routing;
use super::hop::{Hop, Reads, VirtualChannels};
use crate::id::{ChannelId, RouterId, TerminalId};
use crate::network::{Endpoint, NONE, Network};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Marks the step that delivers.
pub const DELIVERED: u32 = u32::MAX;

/// Where there are more places than this for one destination, because packets begin in many states or a hop has many branches, a sample of
/// these is walked (`valiant` and `ugal` have 10^8 on 10,000 routers).
pub(crate) const MANY_PLACES: usize = 1 << 20;

/// Steps of a place in a walk that is kept small.
const STEPS_OF_PLACE: usize = 8;

/// Where there are more than this although nothing branches, the routing state is taken to grow without end.
const MAX_PLACES: usize = 1 << 22;

/// Walks the routes of one traffic class to one destination after the other.
#[derive(Debug)]
pub struct Walker<'a> {
    network: &'a Network,
    routing: &'a dyn Routing,
    available: VirtualChannels,
    reads: Reads,
    /// The first terminal of each group of sources.
    groups: Vec<TerminalId>,
    group_of: Vec<u32>,
    branches: Branches,
    /// The states in which packets of a group begin, each with its probability.
    initial: Vec<(u32, f64)>,
    /// Places, and steps, that may be made for a destination.
    most_places: usize,
    most_steps: usize,
    /// States of each group, and branches of each hop, that may be walked.
    most_branches: usize,
    /// The most that there have been of either.
    widest: usize,
    places: KnownPlaces,
}

/// What the routing reads of a hop, the rest set to 0: router; input and virtual channel, source, state.
type Key = (u32, u32, u32, u32);

/// The places that have been found, by what the routing reads there.
#[derive(Debug, Default)]
struct KnownPlaces {
    /// By router, where the routing reads nothing else or all else is 0, or [`NONE`]: found without hashing.
    of_router: Vec<u32>,
    /// All others. Looked up only, never iterated.
    others: HashMap<Key, u32, BuildHasherDefault<KeyHasher>>,
}

/// The routes to one destination.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// Where packets can come.
    pub places: Vec<Place>,
    /// All steps; those of place `i` are `steps[places[i].first_step..places[i + 1].first_step]`.
    pub steps: Vec<Step>,
    /// Where packets begin.
    pub starts: Vec<Start>,
    /// The part of the packets, by the states in which they begin, whose routes these are: 1 is all.
    pub share: f64,
    /// The least part of the branches of a hop that was walked; those walked have the probability of all.
    pub branch_share: f64,
}

/// A router and what else the routing reads.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// A hop that stands for all that come here.
    pub hop: Hop,
    /// The routing state on arrival.
    pub state: u32,
    /// The first of its steps.
    pub first_step: u32,
    /// The place from which it was first reached; itself at a start.
    pub parent: u32,
}

/// One path on from a place.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The place that it leaves.
    pub from: u32,
    /// The place that it reaches, or [`DELIVERED`].
    pub to: u32,
    /// The channel that it takes.
    pub channel: ChannelId,
    /// The virtual channels that it may take there.
    pub virtual_channels: VirtualChannels,
    /// The probability of this step at its place.
    pub probability: f64,
}

/// The sources of one group begin here.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The group of sources, see [`Walker::group_of`].
    pub group: u32,
    /// The place.
    pub place: u32,
    /// The probability that a packet of the group begins here (and not in another state or virtual channel).
    pub probability: f64,
}

/// A packet that cannot arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Where it comes from.
    pub source: TerminalId,
    /// Where it should go.
    pub destination: TerminalId,
    /// What happens to it.
    pub problem: String,
}

impl<'a> Walker<'a> {
    /// Prepares to walk the routes of packets that may use these virtual channels.
    pub fn new(network: &'a Network, routing: &'a dyn Routing, available: VirtualChannels) -> Self {
        let reads = routing.facts().reads;
        let mut known = HashMap::<Key, u32, BuildHasherDefault<KeyHasher>>::default();
        let mut groups = Vec::new();
        let group_of = (0..network.terminal_count())
            .map(TerminalId)
            .map(|source| {
                let (router, input) = network.injection_port(source);
                let input = if reads.input { u32::from(input) } else { 0 };
                let key = (router.0, input, 0, if reads.source { source.0 } else { 0 });
                *known.entry(key).or_insert_with(|| {
                    groups.push(source);
                    groups.len() as u32 - 1
                })
            })
            .collect();
        Self {
            network,
            routing,
            available,
            reads,
            groups,
            group_of,
            branches: Branches::default(),
            initial: Vec::new(),
            most_places: MANY_PLACES,
            most_steps: usize::MAX,
            most_branches: usize::MAX,
            widest: 1,
            places: KnownPlaces::default(),
        }
    }

    /// Walks a sample where there are more places than these, or many more steps.
    #[must_use]
    pub(crate) fn with_most_places(mut self, most_places: usize) -> Self {
        if most_places < MANY_PLACES {
            (self.most_places, self.most_steps) = (most_places, STEPS_OF_PLACE * most_places);
        }
        self
    }

    /// Walks the routes of packets of which each is alone in the network: choices by congestion find every buffer empty.
    #[must_use]
    pub fn idle(self) -> Self {
        Self { branches: Branches::idle(), ..self }
    }

    /// Bytes of what finds places again. While it grows its old memory stands beside the new one.
    pub(crate) fn bytes(&self) -> u64 {
        let lists = self.groups.len() + self.group_of.len() + 4 * self.initial.capacity();
        self.places.bytes() + 4 * lists as u64
    }

    /// The group of each source: the sources of one group take the same routes.
    pub fn group_of(&self) -> &[u32] {
        &self.group_of
    }

    /// One terminal for each set of destinations whose routes differ in their last channel only.
    pub fn destinations(&self) -> Vec<TerminalId> {
        self.destination_groups().0
    }

    /// As [`Walker::destinations`], and for each terminal the position of the one that stands for it.
    pub fn destination_groups(&self) -> (Vec<TerminalId>, Vec<u32>) {
        let mut group_of_router = vec![NONE; self.network.router_count() as usize];
        let mut representatives = Vec::new();
        let group_of = (0..self.network.terminal_count())
            .map(TerminalId)
            .map(|terminal| {
                let known = group_of_router[self.network.ejection_port(terminal).0.index()];
                if known != NONE && !self.reads.terminal {
                    return known;
                }
                group_of_router[self.network.ejection_port(terminal).0.index()] = representatives.len() as u32;
                representatives.push(terminal);
                representatives.len() as u32 - 1
            })
            .collect();
        (representatives, group_of)
    }

    /// How many groups of sources there are.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Finds all routes to a destination, from every source that may send there; where there are too many, those of packets that begin in
    /// an evenly spaced sample of the states that the routing may give them ([`Routes::share`]).
    ///
    /// # Errors
    /// A packet that no candidate, a wrong candidate or an endless growth of its state keeps from arriving.
    pub fn walk(&mut self, destination: TerminalId, routes: &mut Routes) -> Result<(), Lost> {
        while !self.walk_some(destination, routes)? {
            // What was too much for this destination is too much for the next. Who wants a small walk gets the smallest at once.
            let fewer = if self.most_places < MANY_PLACES { 1 } else { self.most_branches.min(self.widest) / 4 };
            self.most_branches = fewer.max(1);
        }
        Ok(())
    }

    /// As [`Self::walk`], but where there are too many places it stops, with `false`: for who asks how large a walk gets.
    ///
    /// # Errors
    /// As [`Self::walk`].
    pub(crate) fn glance(&mut self, destination: TerminalId, routes: &mut Routes) -> Result<bool, Lost> {
        self.walk_some(destination, routes)
    }

    /// Walks from so many states as are allowed. Were the places enough?
    fn walk_some(&mut self, destination: TerminalId, routes: &mut Routes) -> Result<bool, Lost> {
        routes.places.clear();
        routes.steps.clear();
        routes.starts.clear();
        self.places.clear(self.network.router_count());
        self.initial.clear();
        routes.branch_share = 1.0;
        let mut connected = 0u32;
        for group in 0..self.groups.len() as u32 {
            if self.routing.connects(self.groups[group as usize], destination) {
                connected += 1;
                if !self.start(group, destination, routes) {
                    return Ok(false);
                }
            }
        }
        let mut next = 0;
        while next < routes.places.len() {
            if let Err(problem) = self.leave(next as u32, destination, routes) {
                return Err(self.lost(next as u32, destination, routes, problem));
            }
            let is_much = routes.places.len() > self.most_places || routes.steps.len() > self.most_steps;
            if is_much && self.widest.min(self.most_branches) > 1 {
                return Ok(false);
            }
            if routes.places.len() > MAX_PLACES {
                let problem = format!("more than {MAX_PLACES} states on the path: its routing state seems to grow without end");
                return Err(self.lost(next as u32, destination, routes, problem));
            }
            next += 1;
        }
        let begun: f64 = routes.starts.iter().map(|start| start.probability).sum();
        let whole = self.initial.len() <= self.most_branches;
        routes.share = if whole { 1.0 } else { begun / f64::from(connected.max(1)) };
        Ok(true)
    }

    fn lost(&self, place: u32, destination: TerminalId, routes: &Routes, problem: String) -> Lost {
        let mut start = place;
        while routes.places[start as usize].parent != start {
            start = routes.places[start as usize].parent;
        }
        Lost { source: routes.places[start as usize].hop.source, destination, problem }
    }

    /// Begins at the sources of a group. Are there places for all states in which their packets may begin?
    fn start(&mut self, group: u32, destination: TerminalId, routes: &mut Routes) -> bool {
        let source = self.groups[group as usize];
        let (router, input) = self.network.injection_port(source);
        if self.reads.source || self.initial.is_empty() {
            let (branches, initial) = (&mut self.branches, &mut self.initial);
            initial.clear();
            branches.of_initial_state(self.routing, source, destination, |state, probability| initial.push((state, probability)));
        }
        let initial = std::mem::take(&mut self.initial);
        self.widest = self.widest.max(initial.len());
        let taken = initial.len().min(self.most_branches);
        let fits = taken == 1 || routes.places.len() + taken <= self.most_places;
        for index in (0..taken).filter(|_| fits) {
            // Other states for other destinations: a sample of these covers more of those.
            let is_sample = taken < initial.len();
            let place = if is_sample { (index * initial.len() / taken + destination.index()) % initial.len() } else { index };
            let (state, probability) = initial[place];
            for virtual_channel in distinguished(self.reads, self.available) {
                let hop = Hop { router, input, virtual_channel: virtual_channel.begin, source, destination, available: self.available };
                let place = self.places.place(self.reads, hop, state, None, &mut routes.places);
                let share = f64::from(virtual_channel.count()) / f64::from(self.available.count().max(1));
                routes.starts.push(Start { group, place, probability: probability * share });
            }
        }
        self.initial = initial;
        fits
    }

    fn leave(&mut self, from: u32, destination: TerminalId, routes: &mut Routes) -> Result<(), String> {
        routes.places[from as usize].first_step = routes.steps.len() as u32;
        let Place { hop, state, .. } = routes.places[from as usize];
        let Self { network, routing, reads, branches, places, .. } = self;
        let mut result = Ok(());
        let stride = stride_of_branches(*routing, &hop, state, self.most_branches, branches);
        routes.branch_share = routes.branch_share.min(1.0 / stride as f64);
        let (mut branch, mut walked) = (destination.index(), 0.0);
        let first_step = routes.steps.len();
        branches.of_hop(*routing, &hop, state, |candidates, after, probability| {
            branch += 1;
            if result.is_err() || stride > 1 && branch % stride != 0 || routes.places.len() > MAX_PLACES {
                return;
            }
            walked += probability;
            if candidates.is_empty() {
                result = Err(format!("the routing gives no output port at {}", network.router_name(hop.router)));
            }
            for candidate in candidates {
                let step = checked_channel(network, hop.router, candidate.port, candidate.virtual_channels, destination);
                let (channel, end) = match step {
                    Ok(found) => found,
                    Err(problem) => {
                        result = Err(problem);
                        return;
                    }
                };
                let share = probability / candidates.len() as f64 / f64::from(candidate.virtual_channels.count());
                for virtual_channels in distinguished(*reads, candidate.virtual_channels) {
                    let to = match end {
                        Endpoint::Terminal(_) => DELIVERED,
                        Endpoint::Router(router, input) => {
                            let hop = Hop { router, input, virtual_channel: virtual_channels.begin, ..hop };
                            places.place(*reads, hop, after, Some(from), &mut routes.places)
                        }
                    };
                    let probability = share * f64::from(virtual_channels.count());
                    routes.steps.push(Step { from, to, channel, virtual_channels, probability });
                }
            }
        });
        if stride > 1 && walked > 0.0 {
            routes.steps[first_step..].iter_mut().for_each(|step| step.probability /= walked);
        }
        self.widest = self.widest.max(branch - destination.index());
        result
    }
}

/// Every which branch of a hop is walked, so that they are at most as many as may be.
fn stride_of_branches(routing: &dyn Routing, hop: &Hop, state: u32, most: usize, branches: &mut Branches) -> usize {
    if most == usize::MAX {
        return 1;
    }
    let mut count = 0usize;
    branches.of_hop(routing, hop, state, |_, _, _| count += 1);
    count.div_ceil(most).max(1)
}

fn checked_channel(
    network: &Network,
    router: RouterId,
    port: u16,
    virtual_channels: VirtualChannels,
    destination: TerminalId,
) -> Result<(ChannelId, Endpoint), String> {
    if u32::from(port) >= network.port_count(router) {
        let (name, ports) = (network.router_name(router), network.port_count(router));
        return Err(format!("the routing takes port {port} of {name}, which has {ports} ports"));
    }
    if virtual_channels.begin >= virtual_channels.end {
        return Err(format!("the routing gives no virtual channel at {} port {port}", network.router_name(router)));
    }
    let Some(channel) = network.output_channel(router, port) else {
        let is_down = network
            .damage()
            .is_some_and(|damage| damage.channels().iter().any(|&channel| network.source(channel) == Endpoint::Router(router, port)));
        let problem = if is_down { "whose link is down" } else { "where no channel leaves" };
        return Err(format!("the routing takes port {port} of {}, {problem}", network.router_name(router)));
    };
    match network.destination(channel) {
        Endpoint::Terminal(other) if other != destination => {
            Err(format!("the routing delivers it to {} at {}", network.terminal_name(other), network.router_name(router)))
        }
        end => Ok((channel, end)),
    }
}

/// The parts of a range that the routing tells apart: single channels if it reads them, else the whole.
fn distinguished(reads: Reads, range: VirtualChannels) -> impl Iterator<Item = VirtualChannels> + use<> {
    let parts = if reads.virtual_channel { range.count() } else { range.count().min(1) };
    let length = if reads.virtual_channel { 1 } else { range.count() };
    let part = move |number| range.begin + number * length;
    (0..parts).map(move |number| VirtualChannels { begin: part(number), end: part(number + 1) })
}

impl KnownPlaces {
    /// Forgets all places, in a network of so many routers.
    fn clear(&mut self, routers: u32) {
        self.of_router.clear();
        self.of_router.resize(routers as usize, NONE);
        self.others.clear();
    }

    /// The number of the place where the routing reads this, [`NONE`] if it has none yet.
    fn number(&mut self, key: Key) -> &mut u32 {
        match key {
            (router, 0, 0, 0) => &mut self.of_router[router as usize],
            _ => self.others.entry(key).or_insert(NONE),
        }
    }

    /// The number of a place where packets come with this state, which is among the places from now on.
    fn place(&mut self, reads: Reads, hop: Hop, state: u32, parent: Option<u32>, places: &mut Vec<Place>) -> u32 {
        let input = if reads.input { u32::from(hop.input) } else { 0 };
        let virtual_channel = if reads.virtual_channel { u32::from(hop.virtual_channel) } else { 0 };
        let source = if reads.source { hop.source.0 } else { 0 };
        let known = self.number((hop.router.0, input << 16 | virtual_channel, source, state));
        if *known == NONE {
            *known = places.len() as u32;
            places.push(Place { hop, state, first_step: 0, parent: parent.unwrap_or(*known) });
        }
        *known
    }

    fn bytes(&self) -> u64 {
        let buckets = (self.others.capacity() * 8 / 7).next_power_of_two() as u64;
        buckets * 3 / 2 * (1 + size_of::<(Key, u32)>() as u64) + 4 * self.of_router.capacity() as u64
    }
}

impl Routes {
    /// Bytes in memory: the largest walk so far has left as many.
    pub(crate) fn bytes(&self) -> u64 {
        let of = |capacity: usize, size: usize| (capacity * size) as u64;
        of(self.places.capacity(), size_of::<Place>())
            + of(self.steps.capacity(), size_of::<Step>())
            + of(self.starts.capacity(), size_of::<Start>())
    }

    /// The steps that leave a place.
    pub fn steps_of(&self, place: u32) -> &[Step] {
        let begin = self.places[place as usize].first_step as usize;
        let end = self.places.get(place as usize + 1).map_or(self.steps.len(), |next| next.first_step as usize);
        &self.steps[begin..end]
    }

    /// The places in an order in which every step leads forwards; or, if packets can go round, the places of one cycle.
    ///
    /// # Errors
    /// The places of a cycle, each one step before the next.
    pub fn order(&self) -> Result<Vec<u32>, Vec<u32>> {
        let mut entering = vec![0u32; self.places.len()];
        for step in self.steps.iter().filter(|step| step.to != DELIVERED) {
            entering[step.to as usize] += 1;
        }
        let mut order: Vec<u32> = (0..self.places.len() as u32).filter(|&place| entering[place as usize] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            for step in self.steps_of(order[next]).iter().filter(|step| step.to != DELIVERED) {
                entering[step.to as usize] -= 1;
                if entering[step.to as usize] == 0 {
                    order.push(step.to);
                }
            }
            next += 1;
        }
        if order.len() == self.places.len() { Ok(order) } else { Err(self.cycle(&entering)) }
    }

    /// Follows steps backwards among the places that are still entered: each has a predecessor there, so one comes twice.
    fn cycle(&self, entering: &[u32]) -> Vec<u32> {
        let mut before = vec![DELIVERED; self.places.len()];
        for step in self.steps.iter().filter(|step| step.to != DELIVERED && entering[step.from as usize] > 0) {
            before[step.to as usize] = step.from;
        }
        let mut seen = vec![false; self.places.len()];
        let mut place = entering.iter().position(|&count| count > 0).unwrap_or_default() as u32;
        while !std::mem::replace(&mut seen[place as usize], true) {
            place = before[place as usize];
        }
        let mut cycle = vec![place];
        let mut previous = before[place as usize];
        while previous != place {
            cycle.push(previous);
            previous = before[previous as usize];
        }
        cycle.reverse();
        cycle
    }
}

/// Multiplies and rotates: the keys are few small numbers, and nobody chooses them to collide.
#[derive(Clone, Copy, Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(26) ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;
    use crate::routing::ROUTINGS;
    use crate::topology::mesh::Mesh;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};
    use std::sync::Arc;

    fn compiled(routing: &str, network: &Arc<Network>) -> Box<dyn Routing> {
        (find(ROUTINGS, routing).unwrap().parse)(toml::Table::new()).unwrap().compile(network).unwrap()
    }

    /// Detours by each of 36 routers from each of 36: where so many places are too many, a sample of the detours is walked. It delivers,
    /// and each of its places is one of those of the whole walk.
    #[test]
    fn too_many_paths_are_sampled() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let network = Arc::new(Mesh { dimensions: vec![6, 6], concentration: 1 }.build(&context).unwrap());
        for routing in ["valiant", "ugal"] {
            let routing = compiled(routing, &network);
            let available = VirtualChannels { begin: 0, end: 2 };
            let (mut whole, mut part) = (Routes::default(), Routes::default());
            Walker::new(&network, routing.as_ref(), available).walk(TerminalId(7), &mut whole).unwrap();
            let mut walker = Walker::new(&network, routing.as_ref(), available).with_most_places(300);
            walker.walk(TerminalId(7), &mut part).unwrap();
            assert_eq!((whole.share, whole.branch_share), (1.0, 1.0));
            assert!(part.share.min(part.branch_share) < 0.5 && part.places.len() <= 300 && whole.places.len() > 300);
            let known: Vec<_> = whole.places.iter().map(|place| (place.hop.router, place.state)).collect();
            assert!(part.places.iter().all(|place| known.contains(&(place.hop.router, place.state))));
            assert!(part.steps.iter().any(|step| step.to == DELIVERED));
            for place in 0..part.places.len() as u32 {
                let sum: f64 = part.steps_of(place).iter().map(|step| step.probability).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{sum}");
            }
            let begun: f64 = part.starts.iter().map(|start| start.probability).sum();
            assert!((begun / 36.0 - part.share).abs() < 1e-9, "{begun}");
        }
    }
}
