//! One set of virtual channels per output port of the next router, over any routing: the queues of crosspoint-buffered and
//! virtual-output-queued routers.

use super::branches::Branches;
use super::choice::{Choice, CongestionView};
use super::contract::{Routing, RoutingFacts};
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
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
/// deadlock remains so. What a routing draws at a router it draws one router ahead; the draws are as likely as before.
///
/// A routing that weighs congestion weighs it one router ahead, too: the congestion of an output is what the router before knows of it by its
/// own account, flits in the queue for this output at the end of its channel; a source knows the queues of its first router. Packets of
/// other inputs for the same output it does not see.
#[derive(Clone, Debug)]
pub struct PerOutput {
    network: Arc<Network>,
    routing: Arc<dyn Routing>,
    each: u16,
    /// A fact of the routing underneath that each packet asks for.
    observes_congestion: bool,
}

impl PerOutput {
    /// Takes the paths of a routing that knows this many virtual channels of each channel.
    pub fn over(network: Arc<Network>, routing: Arc<dyn Routing>, each: u16) -> Self {
        let observes_congestion = routing.facts().observes_congestion;
        Self { network, routing, each: each.max(1), observes_congestion }
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

    /// The output of a hop of the routing underneath. Its queues are seen by `port` of the router before, for a packet that may take these
    /// virtual channels.
    fn output(&self, hop: &Hop, mut state: u32, choice: &mut dyn Choice, port: Port, channels: VirtualChannels) -> Port {
        let mut candidates = Vec::with_capacity(1);
        if self.observes_congestion {
            choice.draw_ahead();
            let mut before = Before { queues: self, choice, port, channels };
            self.routing.route(hop, &mut state, &mut before, &mut candidates);
        } else {
            self.routing.route(hop, &mut state, choice, &mut candidates);
        }
        candidates.first().map_or(0, |candidate| candidate.port)
    }

    /// What was chosen one router before: of the paths that there are, the one by the output of the queue.
    fn chosen_before(&self, hop: &Hop, state: u32, output: Port, choice: &mut dyn Choice) -> Option<(Candidate, u32)> {
        let mut taken: Option<(Candidate, u32)> = None;
        if self.observes_congestion {
            // Drawn as before, by whatever congestion led there.
            let mut again = Again { choice, trail: Vec::new(), position: 0 };
            let mut candidates = Vec::with_capacity(1);
            loop {
                let mut after = state;
                again.position = 0;
                candidates.clear();
                self.routing.route(hop, &mut after, &mut again, &mut candidates);
                taken = candidates.iter().find(|candidate| candidate.port == output).map(|candidate| (*candidate, after));
                if taken.is_some() || !again.advance() {
                    break;
                }
            }
        }
        if taken.is_none() {
            Branches::default().of_hop(&*self.routing, hop, state, |found, after, _| {
                let chosen = found.iter().find(|candidate| candidate.port == output);
                taken = taken.or(chosen.map(|candidate| (*candidate, after)));
            });
        }
        taken
    }
}

/// The choice of a router that decides for the next one.
struct Before<'c> {
    queues: &'c PerOutput,
    choice: &'c mut dyn Choice,
    /// Its port towards the next router, and the virtual channels that the packet may take there.
    port: Port,
    channels: VirtualChannels,
}

impl Choice for Before<'_> {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        self.choice.uniform(alternatives)
    }

    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        let Self { queues, port, channels, .. } = *self;
        self.choice.least(alternatives, &|view, alternative| cost(&QueuesAhead { queues, view, port, channels }, alternative))
    }

    fn least_occupied(&mut self, alternatives: u32, occupied: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        let Self { queues, port, channels, .. } = *self;
        let before: &dyn Fn(&dyn CongestionView, u32) -> i64 =
            &|view, alternative| occupied(&QueuesAhead { queues, view, port, channels }, alternative);
        self.choice.least_occupied(alternatives, before)
    }
}

/// The outputs of the next router, by the queues for them at the end of the channel.
struct QueuesAhead<'v> {
    queues: &'v PerOutput,
    view: &'v dyn CongestionView,
    port: Port,
    channels: VirtualChannels,
}

impl CongestionView for QueuesAhead<'_> {
    fn occupied(&self, output: Port, _virtual_channels: VirtualChannels) -> u32 {
        self.view.occupied(self.port, self.queues.towards(output, self.channels))
    }

    fn grain(&self) -> u32 {
        self.view.grain()
    }
}

/// A decision that is made again, by the same draws: what was left to them, or which alternative of how many, where congestion decided.
struct Again<'c> {
    choice: &'c mut dyn Choice,
    trail: Vec<(u32, Option<u32>)>,
    position: usize,
}

impl Again<'_> {
    fn next(&mut self, first: impl FnOnce(&mut dyn Choice) -> (u32, Option<u32>)) -> u32 {
        if self.position == self.trail.len() {
            self.trail.push(first(self.choice));
        }
        self.position += 1;
        self.trail[self.position - 1].0
    }

    /// Takes another alternative where congestion may have decided otherwise. Is there one?
    fn advance(&mut self) -> bool {
        while let Some((taken, alternatives)) = self.trail.pop() {
            if alternatives.is_some_and(|alternatives| taken + 1 < alternatives) {
                self.trail.push((taken + 1, alternatives));
                return true;
            }
        }
        false
    }
}

impl Choice for Again<'_> {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        self.next(|choice| (choice.uniform(alternatives), None))
    }

    fn least(&mut self, alternatives: u32, _cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        self.next(|_| (0, Some(alternatives)))
    }
}

impl Routing for PerOutput {
    fn facts(&self) -> RoutingFacts {
        let inner = self.routing.facts();
        RoutingFacts {
            virtual_channels_required: inner.virtual_channels_required,
            reads: Reads { virtual_channel: true, terminal: true, ..inner.reads },
            is_deadlock_free: inner.is_deadlock_free,
            observes_congestion: inner.observes_congestion,
            table_bytes: inner.table_bytes,
            build_peak_bytes: inner.build_peak_bytes,
            ..RoutingFacts::default()
        }
    }

    fn connects(&self, source: TerminalId, destination: TerminalId) -> bool {
        self.routing.connects(source, destination)
    }

    fn initial_state(&self, source: TerminalId, destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        self.routing.initial_state(source, destination, choice)
    }

    fn entering(&self, hop: &Hop, state: u32, choice: &mut dyn Choice) -> VirtualChannels {
        // A source has one port.
        self.towards(self.output(hop, state, choice, 0, hop.available), hop.available)
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let output = hop.virtual_channel / self.each;
        let here = Hop { virtual_channel: hop.virtual_channel % self.each, ..*hop };
        let Some((mut candidate, after)) = self.chosen_before(&here, *state, output, choice) else { return };
        *state = after;
        let next = self.network.output_channel(hop.router, candidate.port).map(|channel| self.network.destination(channel));
        if let Some(Endpoint::Router(router, input)) = next {
            let virtual_channel = candidate.virtual_channels.begin;
            let ahead = Hop { router, input, virtual_channel, ..*hop };
            let channels = candidate.virtual_channels;
            candidate.virtual_channels = self.towards(self.output(&ahead, after, choice, candidate.port, channels), channels);
        }
        candidates.push(candidate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;
    use crate::routing::nca::Nca;
    use crate::routing::{HashedChoice, NoView, RoutingAlgorithm, SourceChoice, packet_key};
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
            let mut state = apart.initial_state(source, destination, &mut SourceChoice::new(key, serial));
            hop.virtual_channel = apart.entering(&hop, state, &mut SourceChoice::new(key, serial)).begin;
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

    /// A view in which these virtual channels are full.
    struct Full(VirtualChannels);

    impl CongestionView for Full {
        fn occupied(&self, _port: Port, channels: VirtualChannels) -> u32 {
            u32::from(channels.begin < self.0.end && self.0.begin < channels.end) * 100
        }
    }

    /// Six routers that are all linked, and packets from the first to the last. Where the queue for the direct channel is full, a source
    /// chooses a queue for a detour, and the first router leads by the place that was drawn: each of the four others equally often. Where
    /// it is empty, nobody takes one.
    #[test]
    fn a_decision_for_the_next_router_is_carried_out_there() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let mesh: crate::topology::full_mesh::FullMesh = toml::from_str("routers = 6\nconcentration = 1").unwrap();
        let network = Arc::new(mesh.build(&context).unwrap());
        let ugal: crate::routing::ugal::Ugal = toml::from_str("").unwrap();
        let apart = PerOutput::over(Arc::clone(&network), ugal.compile(&network).map(Arc::from).unwrap(), 2);
        let available = VirtualChannels { begin: 0, end: 2 };
        let (source, destination) = (TerminalId(0), TerminalId(5));
        let (router, input) = network.injection_port(source);
        let mut hop = Hop { router, input, virtual_channel: 0, source, destination, available };
        let direct = apart.entering(&hop, 0, &mut HashedChoice::at_hop(0, 0, NoView));
        for (full, by_others) in [(direct, 5000.0f64 / 6.0), (VirtualChannels { begin: 0, end: 0 }, 0.0)] {
            let mut to = [0.0f64; 6];
            for serial in 0..5000 {
                let key = packet_key(7, 0, serial);
                hop.virtual_channel = apart.entering(&hop, 0, &mut HashedChoice::at_hop(key, 0, Full(full))).begin;
                let (mut state, mut candidates) = (0, Vec::new());
                apart.route(&hop, &mut state, &mut HashedChoice::at_hop(key, 1, NoView), &mut candidates);
                let next = network.output_channel(router, candidates[0].port).map(|channel| network.destination(channel));
                let Some(Endpoint::Router(next, _)) = next else { panic!("a router") };
                // Of the queues there it has chosen the one for the last router, or for the terminal where it is that.
                let ahead = candidates[0].virtual_channels.begin / 2;
                let after = network.output_channel(next, ahead).map(|channel| network.destination(channel));
                assert!(matches!(after, Some(Endpoint::Router(RouterId(5), _) | Endpoint::Terminal(TerminalId(5)))), "{after:?}");
                to[next.index()] += 1.0;
            }
            // Each of six places is drawn equally often, within 5 standard deviations; the two ends of the path are no detours.
            assert!(to[1..5].iter().all(|&packets| (packets - by_others).abs() < 132.0), "{to:?}");
            assert!((to[5] - (5000.0 - 4.0 * by_others)).abs() < 200.0, "{to:?}");
        }
    }

    /// On a ring several places of detours lie behind the same queue: a packet keeps the one that was drawn when the queue was chosen.
    #[test]
    fn the_place_of_a_detour_is_the_one_that_was_drawn_before() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let ring: crate::topology::torus::Torus = toml::from_str("dimensions = [9]").unwrap();
        let network = Arc::new(ring.build(&context).unwrap());
        let ugal: crate::routing::ugal::Ugal = toml::from_str("").unwrap();
        let ways: Arc<dyn Routing> = ugal.compile(&network).map(Arc::from).unwrap();
        let apart = PerOutput::over(Arc::clone(&network), Arc::clone(&ways), 4);
        let available = VirtualChannels { begin: 0, end: 4 };
        let (source, destination) = (TerminalId(0), TerminalId(3));
        let (router, input) = network.injection_port(source);
        let mut hop = Hop { router, input, virtual_channel: 0, source, destination, available };
        let direct = apart.entering(&hop, 0, &mut HashedChoice::at_hop(0, 0, NoView));
        let mut after = std::collections::BTreeMap::<u32, f64>::new();
        for serial in 0..9000 {
            let key = packet_key(7, 0, serial);
            hop.virtual_channel = apart.entering(&hop, 0, &mut HashedChoice::at_hop(key, 0, Full(direct))).begin;
            let (mut state, mut candidates) = (0, Vec::new());
            apart.route(&hop, &mut state, &mut HashedChoice::at_hop(key, 1, NoView), &mut candidates);
            *after.entry(state).or_default() += 1.0;
        }
        let mut packets: Vec<f64> = after.into_values().collect();
        packets.sort_unstable_by(f64::total_cmp);
        // Of nine places four lie on the way that is free, a ninth of the packets each, within 5 standard deviations; all others go straight on.
        assert_eq!(packets.len(), 5, "{packets:?}");
        assert!(packets[..4].iter().all(|&packets| (packets - 1000.0).abs() < 149.0), "{packets:?}");
    }
}
