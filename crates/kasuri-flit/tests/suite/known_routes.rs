//! Routes that the engine remembers are those that the routing would give again.

use crate::common::{Fixed, Setup};
use kasuri_model::engine::Engine;
use kasuri_model::router::RouterParameters;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{Port, TerminalId};
use kasuri_network::registry::find;
use kasuri_network::routing::{Candidate, Choice, Hop, ROUTINGS, Reads, Routing, RoutingFacts, VirtualChannels};
use std::sync::Arc;

/// A routing that says that it looks at everything, so that nobody remembers its answers.
#[derive(Debug)]
struct LooksAtEverything(Arc<dyn Routing>);

impl Routing for LooksAtEverything {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: self.0.facts().virtual_channels_required,
            reads: Reads::EVERYTHING,
            observes_congestion: self.0.facts().observes_congestion,
            offers_several: self.0.facts().offers_several,
            restricts_entry: self.0.facts().restricts_entry,
            ..RoutingFacts::default()
        }
    }

    fn initial_state(&self, source: TerminalId, destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        self.0.initial_state(source, destination, choice)
    }

    fn accepts(&self, hop: &Hop, state: u32, port: Port) -> Option<VirtualChannels> {
        self.0.accepts(hop, state, port)
    }

    fn entering(&self, hop: &Hop, state: u32, choice: &mut dyn Choice) -> VirtualChannels {
        self.0.entering(hop, state, choice)
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        self.0.route(hop, state, choice, candidates);
    }
}

/// Whatever routing goes over whatever network: with and without memory the outcome is the same, in plain routers and in general ones.
#[test]
fn remembered_routes_change_nothing() {
    let topologies = [
        ("mesh", "dimensions = [4, 3]"),
        ("torus", "dimensions = [4, 5]"),
        ("fat-tree", "up = 3\ndown = 3\nlevels = 3"),
        ("butterfly", "radix = 2\nstages = 3"),
        ("flattened-butterfly", "dimensions = [3, 3]\nconcentration = 2"),
        ("dragonfly", "terminals_per_router = 1\nrouters_per_group = 2\nglobal_channels = 1"),
        ("slim-fly", "order = 3"),
    ];
    let mut compared = 0;
    for (topology, parameters) in topologies {
        for (entry, output_buffer_flits) in ROUTINGS.iter().zip([None, Some(60_000)].into_iter().cycle()) {
            let router = RouterParameters { virtual_channels: 8, buffer_flits: 4, output_buffer_flits, ..RouterParameters::default() };
            let setup = Setup { topology: (topology, parameters.to_owned()), load: 0.2, packet_flits: 3, router, ..Setup::mesh(&[2]) };
            let algorithm = (find(ROUTINGS, entry.name).unwrap().parse)(entry.example.parse().unwrap()).unwrap();
            let Ok(routing) = algorithm.compile(&setup.network()) else { continue };
            let plain = Setup { routing: ("minimal", ""), ..setup };
            let mut scenario = plain.build();
            scenario.routing = Arc::from(routing);
            let run = |scenario: &Scenario| kasuri_flit::FlitEngine.run(scenario, &mut Fixed::new(100, 400)).unwrap();
            let remembering = run(&scenario);
            scenario.routing = Arc::new(LooksAtEverything(Arc::clone(&scenario.routing)));
            assert_eq!(remembering, run(&scenario), "{} on {topology}", entry.name);
            assert!(remembering.flit_hops > 0);
            compared += 1;
        }
    }
    assert!(compared > 25, "only {compared} pairs of a network and a routing fit");
}
