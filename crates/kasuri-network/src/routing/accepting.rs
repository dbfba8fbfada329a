//! The paths of packets in routers that predict: those of the routing, and those that it would accept in their place.

use super::choice::Choice;
use super::contract::{Routing, RoutingFacts};
use super::hop::{Candidate, Hop, VirtualChannels};
use crate::id::{Port, TerminalId};
use crate::network::Network;
use std::sync::Arc;

/// Chooses at each hop between the answer of another routing and each output port that it [accepts](Routing::accepts).
///
/// A right prediction takes a packet by a port that the routing accepts, whether `route` could have chosen it or not. Who asks
/// what packets can wait for (the deadlock check) has to look at these paths too.
#[derive(Clone, Debug)]
pub struct Accepting {
    network: Arc<Network>,
    routing: Arc<dyn Routing>,
}

impl Accepting {
    /// Widens a routing on its network.
    pub fn over(network: Arc<Network>, routing: Arc<dyn Routing>) -> Self {
        Self { network, routing }
    }
}

impl Routing for Accepting {
    fn facts(&self) -> RoutingFacts {
        let inner = self.routing.facts();
        RoutingFacts { spreading_key: "routing.algorithm", restricts_entry: false, redraws_entry: false, ..inner }
    }

    fn connects(&self, source: TerminalId, destination: TerminalId) -> bool {
        self.routing.connects(source, destination)
    }

    fn initial_state(&self, source: TerminalId, destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        self.routing.initial_state(source, destination, choice)
    }

    fn escape_channels(&self, available: VirtualChannels) -> Option<VirtualChannels> {
        self.routing.escape_channels(available)
    }

    fn accepts(&self, hop: &Hop, state: u32, port: Port) -> Option<VirtualChannels> {
        self.routing.accepts(hop, state, port)
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let ports = 0..self.network.port_count(hop.router) as Port;
        let accepted = ports.filter_map(|port| Some(Candidate::new(port, self.routing.accepts(hop, *state, port)?)));
        let accepted: Vec<Candidate> = accepted.collect();
        // The alternative after the accepted ports is the routing's own answer.
        match accepted.get(choice.uniform(accepted.len() as u32 + 1) as usize) {
            Some(&candidate) => candidates.push(candidate),
            None => self.routing.route(hop, state, choice, candidates),
        }
    }
}
