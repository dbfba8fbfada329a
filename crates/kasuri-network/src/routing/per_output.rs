//! One set of virtual channels per output port of the next router, over any routing: the queues of crosspoint-buffered and
//! virtual-output-queued routers.

use super::{Branches, Candidate, Choice, Hop, Reads, Routing, VirtualChannels};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::{Endpoint, Network};
use std::sync::Arc;

/// Takes the paths of another routing, and chooses the output port of the next router one router ahead.
///
/// Virtual channel *v* towards output *p* of the next router is number *p* x `each` + *v*, where `each` is the number of virtual channels
/// that the routing underneath knows. So an input port has a queue for each of its router's outputs, and a packet that waits keeps none
/// back that goes elsewhere. `Hop::available` stays what the routing underneath understands.
///
/// A wait of one such queue for another is a wait of the channels and virtual channels underneath, so that a routing that is free of
/// deadlock remains so. What a routing draws at a router it draws one router ahead; the draws are as likely as before. One that weighs
/// congestion cannot do so from there: the configuration refuses it.
#[derive(Clone, Debug)]
pub struct PerOutput {
    network: Arc<Network>,
    routing: Arc<dyn Routing>,
    each: u16,
}

impl PerOutput {
    /// Takes the paths of a routing that knows this many virtual channels of each channel.
    pub fn over(network: Arc<Network>, routing: Arc<dyn Routing>, each: u16) -> Self {
        Self { network, routing, each: each.max(1) }
    }

    /// The virtual channels that a network needs: `each` for each output of its widest router.
    pub fn virtual_channels(network: &Network, each: u32) -> u32 {
        let ports = (0..network.router_count()).map(|router| network.port_count(RouterId(router)));
        ports.max().unwrap_or(0) * each
    }

    /// These virtual channels towards an output of the next router.
    fn towards(&self, output: Port, channels: VirtualChannels) -> VirtualChannels {
        let first = output * self.each;
        VirtualChannels { begin: first + channels.begin, end: first + channels.end }
    }

    /// The output of a hop of the routing underneath.
    fn output(&self, hop: &Hop, mut state: u32, choice: &mut dyn Choice) -> Port {
        let mut candidates = Vec::with_capacity(1);
        self.routing.route(hop, &mut state, choice, &mut candidates);
        candidates.first().map_or(0, |candidate| candidate.port)
    }
}

impl Routing for PerOutput {
    fn virtual_channels_required(&self) -> u32 {
        self.routing.virtual_channels_required()
    }

    fn reads(&self) -> Reads {
        Reads { virtual_channel: true, terminal: true, ..self.routing.reads() }
    }

    fn connects(&self, source: TerminalId, destination: TerminalId) -> bool {
        self.routing.connects(source, destination)
    }

    fn is_deadlock_free(&self) -> bool {
        self.routing.is_deadlock_free()
    }

    fn initial_state(&self, source: TerminalId, destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        self.routing.initial_state(source, destination, choice)
    }

    fn observes_congestion(&self) -> bool {
        self.routing.observes_congestion()
    }

    fn entering(&self, hop: &Hop, state: u32, choice: &mut dyn Choice) -> VirtualChannels {
        self.towards(self.output(hop, state, choice), hop.available)
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        // What was drawn one router before: of the paths that there are, the one by the output of the queue.
        let output = hop.virtual_channel / self.each;
        let here = Hop { virtual_channel: hop.virtual_channel % self.each, ..*hop };
        let mut taken: Option<(Candidate, u32)> = None;
        Branches::default().of_hop(&*self.routing, &here, *state, |found, after, _| {
            let chosen = found.iter().find(|candidate| candidate.port == output);
            taken = taken.or(chosen.map(|candidate| (*candidate, after)));
        });
        let Some((mut candidate, after)) = taken else { return };
        *state = after;
        let next = self.network.output_channel(hop.router, candidate.port).map(|channel| self.network.destination(channel));
        if let Some(Endpoint::Router(router, input)) = next {
            let virtual_channel = candidate.virtual_channels.begin;
            let ahead = Hop { router, input, virtual_channel, ..*hop };
            candidate.virtual_channels = self.towards(self.output(&ahead, after, choice), candidate.virtual_channels);
        }
        candidates.push(candidate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;
    use crate::routing::nca::Nca;
    use crate::routing::{HashedChoice, NoView, RoutingAlgorithm, packet_key};
    use crate::topology::fat_tree::FatTree;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    /// Random paths up a fat tree: each packet arrives, by a path of the routing underneath, always in the queue of the output that it takes,
    /// and as often by each upward port as it should.
    #[test]
    fn packets_take_the_paths_of_the_routing_in_the_queues_of_their_outputs() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let tree: FatTree = toml::from_str("up = 4\ndown = 4\nlevels = 3").unwrap();
        let network = Arc::new(tree.build(&context).unwrap());
        let random: Nca = toml::from_str("up_port = \"random\"").unwrap();
        let routing: Arc<dyn Routing> = random.compile(&network).map(Arc::from).unwrap();
        let apart = PerOutput::over(Arc::clone(&network), Arc::clone(&routing), 2);
        let available = VirtualChannels { begin: 0, end: 2 };
        let seed = Streams::new(1).key(crate::rng::Purpose::Routing);
        let (source, destination) = (TerminalId(0), TerminalId(63));
        let mut first = [0u32; 8];
        for serial in 0..4000 {
            let key = packet_key(seed, 0, serial);
            let (router, input) = network.injection_port(source);
            let mut hop = Hop { router, input, virtual_channel: 0, source, destination, available };
            let mut state = apart.initial_state(source, destination, &mut HashedChoice::at_source(key));
            hop.virtual_channel = apart.entering(&hop, state, &mut HashedChoice::at_source(key)).begin;
            for number in 1.. {
                let before = state;
                let mut candidates = Vec::new();
                apart.route(&hop, &mut state, &mut HashedChoice::at_hop(key, number, NoView), &mut candidates);
                let [taken] = candidates.as_slice() else { panic!("one candidate") };
                assert_eq!(taken.port, hop.virtual_channel / 2, "the output of the queue");
                let below = Hop { virtual_channel: hop.virtual_channel % 2, ..hop };
                let known = crate::routing::every_hop(&*routing, &below, before);
                assert!(known.iter().any(|(found, after)| found[0].port == taken.port && *after == state));
                first[usize::from(taken.port)] += u32::from(number == 1);
                match network.destination(network.output_channel(hop.router, taken.port).unwrap()) {
                    Endpoint::Terminal(terminal) => {
                        assert_eq!((terminal, number), (destination, 5));
                        break;
                    }
                    Endpoint::Router(router, input) => {
                        hop = Hop { router, input, virtual_channel: taken.virtual_channels.begin, ..hop };
                    }
                }
            }
        }
        // 1000 of 4000 by each of the 4 upward ports, within 5 standard deviations of sqrt(4000 x 1/4 x 3/4) = 27.
        let up: Vec<u32> = first.into_iter().filter(|&count| count > 0).collect();
        assert!(up.len() == 4 && up.iter().all(|count| count.abs_diff(1000) < 137), "{up:?}");
    }
}
