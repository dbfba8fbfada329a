//! The path of a message: the channels that the scenario's routing takes, and what they add to its latency.

use crate::graph::LONGEST;
use crate::lone::{LoneTimes, Sizes};
use crate::path_cache::PathCache;
use crate::steps::Steps;
use kasuri_model::engine::EngineError;
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, Port, RouterId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::rng::Purpose;
use kasuri_network::routing::{Candidate, CongestionView, HashedChoice, Hop, NoView, SourceChoice, VirtualChannels, packet_key};

/// Finds paths without allocating.
#[derive(Debug)]
pub(crate) struct Paths {
    seed: u64,
    lone: LoneTimes,
    /// Is any path random?
    has_drawn: bool,
    candidates: Vec<Candidate>,
    /// Does the routing know ports that hang on nothing but the destination?
    is_fixed: bool,
    steps: Option<Steps>,
    cache: Option<PathCache>,
    /// Does somebody ask by which virtual channels messages go?
    notes_ranges: bool,
    /// By channel, the one on which flows count in its place; empty: they count on their own.
    folded: Box<[u32]>,
}

/// A message before it has a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) source: TerminalId,
    pub(crate) destination: TerminalId,
    /// Running number at its source.
    pub(crate) serial: u32,
    pub(crate) available: VirtualChannels,
}

/// A message on the search for its path.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    pub(crate) request: Request,
    /// The path so far: injection, between routers, ejection.
    pub(crate) channels: Vec<u32>,
    /// The virtual channels that it may take on each of them, where that is asked for and differs from those of the request; else empty.
    pub(crate) ranges: Vec<VirtualChannels>,
    /// Of what is left to chance.
    key: u64,
    state: u32,
    virtual_channel: u16,
    /// Where the last of the path ends, once that is known.
    place: Option<(RouterId, Port)>,
    /// The port by which it leaves next; `None` at the destination.
    port: Option<(RouterId, Port)>,
    /// Has anything of the path been left to chance?
    has_drawn: bool,
}

impl Walk {
    /// The beginning of a path; `channels` is memory to use.
    pub(crate) fn new(request: Request, mut channels: Vec<u32>) -> Self {
        channels.clear();
        Self {
            request,
            channels,
            ranges: Vec::new(),
            key: 0,
            state: 0,
            virtual_channel: request.available.begin,
            place: None,
            port: None,
            has_drawn: false,
        }
    }

    /// Has anything of the path been left to chance?
    pub(crate) fn has_drawn(&self) -> bool {
        self.has_drawn
    }

    fn last(&self) -> ChannelId {
        ChannelId(self.channels[self.channels.len() - 1])
    }
}

impl Paths {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let network = &scenario.network;
        Self {
            seed: scenario.streams.key(Purpose::Routing),
            lone: LoneTimes::new(scenario),
            has_drawn: false,
            candidates: Vec::new(),
            is_fixed: scenario.routing.port_to(RouterId(0), TerminalId(0)).is_some(),
            steps: Steps::of(network),
            cache: PathCache::of(scenario),
            notes_ranges: false,
            folded: folded(scenario).unwrap_or_default().into(),
        }
    }

    /// For those who ask by which virtual channels messages go.
    pub(crate) fn with_ranges(scenario: &Scenario) -> Self {
        Self { notes_ranges: true, cache: None, ..Self::new(scenario) }
    }

    /// Brings messages to their destinations, all in step: what one waits for from memory comes while the others are looked at.
    /// `flows` tells the flows on each channel: a routing that looks for the least congested path sees them.
    ///
    /// # Errors
    /// The routing does not bring a message to its destination.
    pub(crate) fn find(&mut self, scenario: &Scenario, walks: &mut [Walk], flows: &dyn Fn(u32) -> u32) -> Result<(), EngineError> {
        let network = &*scenario.network;
        if let [walk] = walks {
            return self.find_one(scenario, walk, flows);
        }
        if let (true, Some(steps)) = (self.is_fixed, &self.steps) {
            walks.iter_mut().try_for_each(|walk| go(scenario, steps, walk))?;
            walks.iter_mut().for_each(|walk| self.fold(walk));
            return Ok(());
        }
        for walk in &mut *walks {
            self.start(scenario, walk);
            network.fetch_input_port(walk.last());
        }
        let mut on_their_way = walks.len();
        while on_their_way > 0 {
            on_their_way = 0;
            for walk in &mut *walks {
                walk.port = self.decide(scenario, walk, flows)?;
                on_their_way += usize::from(walk.port.is_some());
            }
            for walk in &mut *walks {
                self.follow(network, walk)?;
            }
        }
        self.has_drawn |= walks.iter().any(|walk| walk.has_drawn);
        walks.iter_mut().for_each(|walk| self.fold(walk));
        Ok(())
    }

    /// Puts the channels of a path in the place of those that count for them.
    #[inline(always)]
    fn fold(&self, walk: &mut Walk) {
        if !self.folded.is_empty() {
            walk.channels.iter_mut().for_each(|channel| *channel = self.folded[*channel as usize]);
        }
    }

    fn start(&self, scenario: &Scenario, walk: &mut Walk) {
        let Request { source, destination, serial, .. } = walk.request;
        walk.key = packet_key(self.seed, source.0, serial);
        let mut choice = SourceChoice::new(walk.key, serial);
        walk.state = scenario.routing.initial_state(source, destination, &mut choice);
        if self.notes_ranges {
            let entry = entry_range(scenario, walk);
            walk.virtual_channel = entry.begin;
            walk.ranges.push(entry);
        }
        walk.has_drawn = choice.has_drawn();
        walk.channels.push(scenario.network.injection_channel(source).0);
    }

    /// The path that a message takes, if it is known from one before: where it begins among all that are, and its channels after that of
    /// injection.
    #[inline(always)]
    pub(crate) fn remembered(&self, network: &Network, source: TerminalId, destination: TerminalId) -> Option<(u32, &[u32])> {
        self.cache.as_ref()?.find(network.injection_port(source).0, destination)
    }

    /// All paths that are remembered.
    pub(crate) fn all_remembered(&self) -> &[u32] {
        self.cache.as_ref().map_or(&[], PathCache::paths)
    }

    /// Brings one message to its destination, and remembers its path where it would be the same again.
    fn find_one(&mut self, scenario: &Scenario, walk: &mut Walk, flows: &dyn Fn(u32) -> u32) -> Result<(), EngineError> {
        let network = &*scenario.network;
        match &self.steps {
            Some(steps) if self.is_fixed => go(scenario, steps, walk)?,
            _ => self.draw_on(scenario, walk, flows)?,
        }
        self.has_drawn |= walk.has_drawn;
        self.fold(walk);
        if let Some(remembered) = &mut self.cache
            && !walk.has_drawn
        {
            let Request { source, destination, .. } = walk.request;
            let (first, _) = network.injection_port(source);
            remembered.keep(first, destination, &walk.channels[1..]);
        }
        Ok(())
    }

    fn draw_on(&mut self, scenario: &Scenario, walk: &mut Walk, flows: &dyn Fn(u32) -> u32) -> Result<(), EngineError> {
        self.start(scenario, walk);
        loop {
            walk.port = self.decide(scenario, walk, flows)?;
            if walk.port.is_none() {
                return Ok(());
            }
            self.follow(&scenario.network, walk)?;
        }
    }

    /// The port by which a message leaves the router that it has come to.
    #[inline(always)]
    fn decide(
        &mut self,
        scenario: &Scenario,
        walk: &mut Walk,
        flows: &dyn Fn(u32) -> u32,
    ) -> Result<Option<(RouterId, Port)>, EngineError> {
        let network = &*scenario.network;
        let channel = walk.last();
        let Request { source, destination, available, .. } = walk.request;
        if let Some(terminal) = network.ejected_terminal(channel) {
            return if terminal == destination { Ok(None) } else { Err(comes_to(walk, terminal)) };
        }
        let (router, input) = walk.place.unwrap_or_else(|| network.input_port(channel));
        let hop = Hop { router, input, virtual_channel: walk.virtual_channel, source, destination, available };
        let view = Flows { network, router, flows };
        let mut choice = HashedChoice::at_hop(walk.key, walk.channels.len() as u32, view);
        self.candidates.clear();
        scenario.routing.route(&hop, &mut walk.state, &mut choice, &mut self.candidates);
        walk.has_drawn |= choice.has_drawn();
        let Some(candidate) = self.candidates.first() else { return Err(knows_no_port(walk, router)) };
        walk.virtual_channel = candidate.virtual_channels.begin;
        if self.notes_ranges {
            walk.ranges.push(candidate.virtual_channels);
        }
        if self.steps.is_none() {
            network.fetch_output_channel(router, candidate.port);
        }
        Ok(Some((router, candidate.port)))
    }

    /// Follows a message through the port that it has decided for.
    #[inline(always)]
    fn follow(&self, network: &Network, walk: &mut Walk) -> Result<(), EngineError> {
        let Some((router, port)) = walk.port else { return Ok(()) };
        let step = match &self.steps {
            Some(steps) => steps.step(router, port),
            None => network.output_channel(router, port).map(|next| (next, None)),
        };
        let Some((next, place)) = step else { return Err(knows_no_port(walk, router)) };
        walk.place = place;
        if self.steps.is_none() && network.ejected_terminal(next).is_none() {
            network.fetch_input_port(next);
        }
        walk.channels.push(next.0);
        if walk.channels.len() > longest_path(network) { Err(goes_on(walk)) } else { Ok(()) }
    }

    /// Cycles from when a flit begins to cross the channel at a place of a path, from the injection to the ejection, until it can go on.
    pub(crate) fn head_cycles(&self, network: &Network, path: &[u32], place: usize) -> u64 {
        let kind = usize::from(place > 0) + usize::from(place + 1 == path.len());
        self.lone.head_cycles(network.link_number(ChannelId(path[place])), kind)
    }

    /// Cycles from the end of its transfer at the rate of its slowest channel to the arrival of a lone message, over its terminal's
    /// injection channel and these others; less than 0 if it arrives while that channel is still busy with the last flit.
    #[inline(always)]
    pub(crate) fn head_latency(&self, network: &Network, source: TerminalId, others: &[u32], sizes: Sizes) -> f64 {
        let Some((&ejection, between)) = others.split_last() else { return 0.0 };
        let link = |channel: u32| network.link_number(ChannelId(channel));
        let injection = network.injection_channel(source).0;
        let mut heads = self.lone.head_cycles(link(injection), 0) + self.lone.head_cycles(link(ejection), 2);
        for &channel in between {
            heads += self.lone.head_cycles(link(channel), 1);
        }
        if let Some(period) = self.lone.simple_period() {
            return self.lone.beyond_alike(heads, others.len(), sizes, period);
        }
        self.lone.beyond_transfer(heads, std::iter::once(injection).chain(others.iter().copied()).map(link), sizes)
    }

    /// Cycles from the creation of a lone message to the arrival of its last flit.
    pub(crate) fn lone_latency(&self, network: &Network, source: TerminalId, others: &[u32], sizes: Sizes) -> f64 {
        let injection = network.injection_channel(source).0;
        let periods = std::iter::once(injection).chain(others.iter().copied()).map(|channel| network.link(ChannelId(channel)).period);
        self.head_latency(network, source, others, sizes) + f64::from(sizes.flits) * f64::from(periods.max().unwrap_or(1))
    }

    /// Has any path been random so far?
    pub(crate) fn has_drawn(&self) -> bool {
        self.has_drawn
    }

    /// Takes over what `other` knows of its paths.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.has_drawn |= other.has_drawn;
    }
}

/// By channel, the one on which flows count in its place, where one rank of the scenario's workload stands for all.
pub(crate) fn folded(scenario: &Scenario) -> Option<&[u32]> {
    scenario.workload.as_ref()?.workload.folded()
}

/// The virtual channels by which a message may enter the network: the draws are those of the flit engine.
fn entry_range(scenario: &Scenario, walk: &Walk) -> VirtualChannels {
    let Request { source, destination, available, .. } = walk.request;
    if !scenario.routing.facts().restricts_entry {
        return available;
    }
    let (router, input) = scenario.network.injection_port(source);
    let hop = Hop { router, input, virtual_channel: available.begin, source, destination, available };
    scenario.routing.entering(&hop, walk.state, &mut HashedChoice::at_hop(walk.key, u32::MAX, NoView))
}

/// Brings a message to its destination by ports that hang on nothing but the destination.
#[inline(always)]
fn go(scenario: &Scenario, steps: &Steps, walk: &mut Walk) -> Result<(), EngineError> {
    let network = &*scenario.network;
    let Request { source, destination, .. } = walk.request;
    let (mut router, _) = network.injection_port(source);
    let (routing, longest) = (&*scenario.routing, longest_path(network));
    walk.channels.push(network.injection_channel(source).0);
    while walk.channels.len() < longest {
        let step = routing.port_to(router, destination).and_then(|port| steps.step(router, port));
        let Some((channel, end)) = step else { return Err(knows_no_port(walk, router)) };
        walk.channels.push(channel.0);
        let Some((next, _)) = end else {
            let terminal = network.ejected_terminal(channel);
            return terminal.filter(|&terminal| terminal != destination).map_or(Ok(()), |terminal| Err(comes_to(walk, terminal)));
        };
        router = next;
    }
    Err(goes_on(walk))
}

/// Channels of the longest path that is one.
fn longest_path(network: &Network) -> usize {
    LONGEST.min(network.channel_count() as usize)
}

fn goes_on(walk: &Walk) -> EngineError {
    let problem = if walk.channels.len() >= LONGEST { "its path has more than 65535 channels" } else { "it goes around in a cycle" };
    lost(&walk.request, problem)
}

fn comes_to(walk: &Walk, terminal: TerminalId) -> EngineError {
    lost(&walk.request, &format!("it comes to terminal {}", terminal.0))
}

fn knows_no_port(walk: &Walk, router: RouterId) -> EngineError {
    lost(&walk.request, &format!("router {} knows no output port", router.0))
}

fn lost(request: &Request, problem: &str) -> EngineError {
    let (source, destination) = (request.source.0, request.destination.0);
    let reason = format!("a message from terminal {source} to terminal {destination} does not arrive: {problem}");
    Refusal::new("routing.algorithm", reason).into()
}

/// Flows count as what occupies a port.
struct Flows<'a> {
    network: &'a Network,
    router: RouterId,
    flows: &'a dyn Fn(u32) -> u32,
}

impl CongestionView for Flows<'_> {
    fn occupied(&self, port: Port, _virtual_channels: VirtualChannels) -> u32 {
        self.network.output_channel(self.router, port).map_or(0, |channel| (self.flows)(channel.0))
    }
}
