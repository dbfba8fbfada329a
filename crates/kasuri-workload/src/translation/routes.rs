//! The channels that the packets of one pair of terminals take.

use kasuri_network::id::{ChannelId, Port, RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::routing::{Branches, Hop, Routing, VirtualChannels};
use std::collections::BTreeMap;

/// More hops than this are taken for a packet that goes round for ever.
const MAX_HOPS: usize = 4096;

/// Follows a routing from one terminal to another, taking every branch with its probability.
///
/// For many destinations of all terminals [`kasuri_network::routing::walk::Walker`] is quicker; this one's cost is that of the pair alone.
#[derive(Debug)]
pub struct RoutedPaths<'a> {
    network: &'a Network,
    routing: &'a dyn Routing,
    available: VirtualChannels,
    branches: Branches,
}

/// What of a place may differ: router, input port, virtual channel, routing state.
type Place = (RouterId, Port, u16, u32);

impl<'a> RoutedPaths<'a> {
    /// Packets that may use these virtual channels.
    pub fn new(network: &'a Network, routing: &'a dyn Routing, available: VirtualChannels) -> Self {
        Self { network, routing, available, branches: Branches::default() }
    }

    /// The channels between routers that a packet takes, each with its probability, in ascending order. Empty if both terminals
    /// stand at one router.
    pub fn between(&mut self, source: TerminalId, destination: TerminalId) -> Vec<(ChannelId, f64)> {
        let mut taken = BTreeMap::new();
        if source == destination {
            return Vec::new();
        }
        let (router, input) = self.network.injection_port(source);
        let mut front: BTreeMap<Place, f64> = BTreeMap::new();
        let share = 1.0 / f64::from(self.available.count().max(1));
        self.branches.of_initial_state(self.routing, source, destination, |state, probability| {
            for channel in self.available.begin..self.available.end {
                *front.entry((router, input, channel, state)).or_default() += probability * share;
            }
        });
        for _ in 0..MAX_HOPS {
            if front.is_empty() {
                break;
            }
            front = self.step(source, destination, &front, &mut taken);
        }
        taken.into_iter().collect()
    }

    /// One hop on from all places.
    fn step(
        &mut self,
        source: TerminalId,
        destination: TerminalId,
        front: &BTreeMap<Place, f64>,
        taken: &mut BTreeMap<ChannelId, f64>,
    ) -> BTreeMap<Place, f64> {
        let (network, reads) = (self.network, self.routing.facts().reads);
        let mut next = BTreeMap::new();
        for (&(router, input, virtual_channel, state), &here) in front {
            let hop = Hop { router, input, virtual_channel, source, destination, available: self.available };
            self.branches.of_hop(self.routing, &hop, state, |candidates, after, probability| {
                for candidate in candidates {
                    let Some(channel) = network.output_channel(router, candidate.port) else { continue };
                    let Endpoint::Router(to, at) = network.destination(channel) else { continue };
                    let share = here * probability / candidates.len() as f64;
                    *taken.entry(channel).or_default() += share;
                    let range = candidate.virtual_channels;
                    // Virtual channels that the routing does not tell apart lead on in the same way.
                    let (step, last) = if reads.virtual_channel { (1, range.end) } else { (range.count().max(1), range.begin + 1) };
                    let count = f64::from(if reads.virtual_channel { range.count().max(1) } else { 1 });
                    for virtual_channel in (range.begin..last).step_by(usize::from(step)) {
                        *next.entry((to, at, virtual_channel, after)).or_default() += share / count;
                    }
                }
            });
        }
        next
    }
}
