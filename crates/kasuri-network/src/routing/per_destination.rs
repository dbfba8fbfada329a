//! One virtual channel per destination (`router.vc_per_destination`), over any routing.

use super::choice::Choice;
use super::contract::{Routing, RoutingFacts};
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use crate::id::{Port, TerminalId};
use std::sync::Arc;

/// Takes the paths of another routing, each packet on the virtual channel that belongs to its destination.
///
/// Packets to different terminals never wait for each other's buffers, as with a queue per destination. What promises the routing
/// underneath makes about deadlock rest on its own use of virtual channels and are void; but where its paths to each destination
/// come together without a cycle (as those of any deterministic routing do that looks at nothing but the destination), no packets
/// can wait for each other in one. The channel dependency graph tells.
#[derive(Clone, Debug)]
pub struct PerDestination {
    routing: Arc<dyn Routing>,
}

impl PerDestination {
    /// Takes the paths of this routing.
    pub fn over(routing: Arc<dyn Routing>) -> Self {
        Self { routing }
    }
}

impl Routing for PerDestination {
    fn facts(&self) -> RoutingFacts {
        let inner = self.routing.facts();
        RoutingFacts {
            reads: Reads { terminal: true, ..inner.reads },
            is_deadlock_free: false,
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

    fn entering(&self, hop: &Hop, _state: u32, _choice: &mut dyn Choice) -> VirtualChannels {
        VirtualChannels::only(hop.destination)
    }

    fn accepts(&self, hop: &Hop, state: u32, port: Port) -> Option<VirtualChannels> {
        self.routing.accepts(hop, state, port).map(|_| VirtualChannels::only(hop.destination))
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        self.routing.route(hop, state, choice, candidates);
        for candidate in candidates {
            candidate.virtual_channels = VirtualChannels::only(hop.destination);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadlock::{self, Verdict};
    use crate::network::Network;
    use crate::routing::RoutingAlgorithm;
    use crate::routing::dimension_order::DimensionOrder;
    use crate::topology::torus::Torus;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    fn torus(side: u32) -> (Arc<Network>, Arc<dyn Routing>) {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let network = Arc::new(Torus { dimensions: vec![side, side], concentration: 1 }.build(&context).unwrap());
        let without_dateline: DimensionOrder = toml::from_str("dateline = false").unwrap();
        let routing = without_dateline.compile(&network).map(Arc::from).unwrap();
        (network, routing)
    }

    /// A ring of 5 without a dateline closes on itself; the paths to one terminal end there.
    #[test]
    fn a_torus_is_safe_without_dateline_when_each_destination_has_its_virtual_channel() {
        let (network, routing) = torus(5);
        let all = [VirtualChannels { begin: 0, end: 25 }];
        assert!(matches!(deadlock::check(&network, &*routing, &all).verdict, Verdict::Cycle(_)));
        let apart = PerDestination::over(routing);
        assert_eq!(deadlock::check(&network, &apart, &all).verdict, Verdict::Acyclic);
    }

    #[test]
    fn a_packet_goes_by_the_virtual_channel_of_its_destination_alone() {
        let (network, routing) = torus(4);
        let available = VirtualChannels { begin: 0, end: 16 };
        let (source, destination) = (TerminalId(3), TerminalId(9));
        let router = network.ejection_port(source).0;
        let hop = Hop { router, input: 0, virtual_channel: 0, source, destination, available };
        let apart = PerDestination::over(Arc::clone(&routing));
        for (of_routing, of_apart) in crate::routing::every_hop(&*routing, &hop, 0).iter().zip(crate::routing::every_hop(&apart, &hop, 0)) {
            assert_eq!(of_routing.0[0].port, of_apart.0[0].port);
            assert_eq!(of_apart.0[0].virtual_channels, VirtualChannels { begin: 9, end: 10 });
        }
    }
}
