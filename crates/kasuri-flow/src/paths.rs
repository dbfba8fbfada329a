//! The way of a message: the channels that the scenario's routing takes, and what they add to its latency.

use kasuri_model::engine::EngineError;
use kasuri_model::id::{ChannelId, Port, RouterId, TerminalId};
use kasuri_model::network::Network;
use kasuri_model::rng::Purpose;
use kasuri_model::router::{Bidding, Switching};
use kasuri_model::routing::{Candidate, CongestionView, HashedChoice, Hop, VirtualChannels};
use kasuri_model::scenario::Scenario;

/// Finds ways, one after the other, without allocating.
#[derive(Debug)]
pub(crate) struct Paths {
    seed: u64,
    /// By kind of link: cycles from the decision to send a head on an injection channel, one between routers and an ejection
    /// channel to the decision at the next router (or to the arrival).
    head_cycles: Vec<[u32; 3]>,
    /// Cycles by which each further flit of a message follows, at every router that waits for the whole of it.
    stores: bool,
    candidates: Vec<Candidate>,
    /// The way that was found last: injection, between routers, ejection.
    pub(crate) channels: Vec<u32>,
}

/// A message before it has a way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) source: TerminalId,
    pub(crate) destination: TerminalId,
    /// Running number at its source.
    pub(crate) serial: u32,
    pub(crate) available: VirtualChannels,
}

impl Paths {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let network = &scenario.network;
        Self {
            seed: scenario.streams.key(Purpose::Routing),
            head_cycles: network.links().iter().map(|link| head_cycles(scenario, link.latency)).collect(),
            stores: scenario.router.switching == Switching::StoreAndForward,
            candidates: Vec::new(),
            channels: Vec::new(),
        }
    }

    /// Leaves the way of a message in `channels`. `flows` tells the flows on each channel: a routing that looks for the least
    /// congested way sees them.
    ///
    /// # Errors
    /// The routing does not bring the message to its destination.
    pub(crate) fn find(&mut self, scenario: &Scenario, request: &Request, flows: &dyn Fn(u32) -> u32) -> Result<(), EngineError> {
        let network = &*scenario.network;
        let Request { source, destination, serial, available } = *request;
        let mut state = scenario.routing.initial_state(source, destination, &mut HashedChoice::at_source(self.seed, source.0, serial));
        let mut virtual_channel = available.begin;
        let mut channel = network.injection_channel(source);
        self.channels.clear();
        self.channels.push(channel.0);
        loop {
            if let Some(terminal) = network.ejected_terminal(channel) {
                let arrives = terminal == destination;
                return if arrives { Ok(()) } else { Err(lost(request, &format!("it comes to terminal {}", terminal.0))) };
            }
            let (router, input) = network.input_port(channel);
            let hop = Hop { router, input, virtual_channel, source, destination, available };
            let view = Flows { network, router, flows };
            let mut choice = HashedChoice::at_hop(self.seed, source.0, serial, self.channels.len() as u32, view);
            self.candidates.clear();
            scenario.routing.route(&hop, &mut state, &mut choice, &mut self.candidates);
            let next = self.candidates.first().and_then(|candidate| network.output_channel(router, candidate.port));
            let Some(next) = next else { return Err(lost(request, &format!("router {} knows no way", router.0))) };
            virtual_channel = self.candidates[0].virtual_channels.begin;
            channel = next;
            self.channels.push(channel.0);
            if self.channels.len() > network.channel_count() as usize {
                return Err(lost(request, "it goes round in circles"));
            }
        }
    }

    /// Cycles that a lone message of `flits` takes on this way beyond those of its flits: its latency less its length.
    pub(crate) fn head_latency(&self, network: &Network, flits: u32) -> f64 {
        let last = self.channels.len() - 1;
        let place = |hop: usize| if hop == 0 { 0 } else { 1 + usize::from(hop == last) };
        let kind = |channel: u32| if self.head_cycles.len() == 1 { 0 } else { network.link_number(ChannelId(channel)) as usize };
        let ways = self.channels.iter().enumerate();
        let cycles: u64 = ways.map(|(hop, &channel)| u64::from(self.head_cycles[kind(channel)][place(hop)])).sum();
        let stored = if self.stores {
            let ways = &self.channels[..self.channels.len() - 1];
            ways.iter().map(|&channel| u64::from(network.link(ChannelId(channel)).period)).sum::<u64>() * u64::from(flits - 1)
        } else {
            0
        };
        // The last flit arrives in the cycle in which its transfer ends, not one later.
        (cycles + stored) as f64 - 1.0
    }
}

/// As the flit engine has them, without contention.
fn head_cycles(scenario: &Scenario, latency: u32) -> [u32; 3] {
    let pipeline = &scenario.pipeline;
    let out_of_router = pipeline.route_cycles + u32::from(pipeline.bidding == Bidding::InTurn) + pipeline.traversal_cycles;
    let into_router = pipeline.switch_extra_cycles;
    let way = latency + 1;
    [way + into_router, way + into_router + out_of_router, way + out_of_router]
}

fn lost(request: &Request, problem: &str) -> EngineError {
    EngineError::Option {
        key: "routing.algorithm".to_owned(),
        problem: format!("a message from terminal {} to terminal {} does not arrive: {problem}", request.source.0, request.destination.0),
    }
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
