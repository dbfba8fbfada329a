//! The deadlock check against what is known, and its cycle search against another one.

use crate::common::{network, networks, routing, routing_variants};
use kasuri_network::deadlock::{Coverage, EscapePath, Rules, Verdict, check, check_within, find_cycle};
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::routing::accepting::Accepting;
use kasuri_network::routing::{Candidate, Choice, Hop, Routing, VirtualChannels};
use petgraph::algo::{is_cyclic_directed, tarjan_scc};
use petgraph::graph::DiGraph;
use proptest::prelude::*;
use std::sync::Arc;

fn channels(count: u16) -> VirtualChannels {
    VirtualChannels { begin: 0, end: count }
}

#[test]
fn routings_keep_their_promise() {
    for network in networks() {
        for (name, parameters) in routing_variants() {
            let Some(routing) = routing(name, parameters, &network) else { continue };
            for extra in 0..3 {
                let report = check(&network, routing.as_ref(), &[channels(routing.facts().virtual_channels_required as u16 + extra)]);
                assert_eq!(report.unroutable, None, "{name} on {}", network.name());
                assert_eq!(report.coverage, Coverage::Exact);
                assert!(!routing.facts().is_deadlock_free || report.verdict == Verdict::Acyclic, "{name} on {}", network.name());
            }
        }
    }
}

/// Rings that never fill up wait for nobody in particular; what leads from ring to ring counts, and routings that turn at will have cycles there.
#[test]
fn rings_with_bubbles_need_no_dateline() {
    let rules = |bubbles| Rules { escape_path: EscapePath::Open, bubbles, never_blocks: false };
    for dimensions in ["dimensions = [8]", "dimensions = [4, 3]", "dimensions = [2, 4, 5]"] {
        let torus = network("torus", dimensions);
        let verdict = |name: &str, parameters: &str, bubbles: bool| {
            let routing = routing(name, parameters, &torus).unwrap();
            let available = [channels(routing.facts().virtual_channels_required as u16)];
            check_within(&torus, routing.as_ref(), &available, rules(bubbles), u64::MAX)
        };
        let plain = "dateline = false";
        assert!(matches!(verdict("dimension-order", plain, false).verdict, Verdict::Cycle(_)), "{dimensions}");
        let report = verdict("dimension-order", plain, true);
        assert!(report.is_safe() && report.describe(&torus).contains("packets that enter a ring leave room"), "{dimensions}");
        // Shortest paths in any order of dimensions turn in cycles beside the rings.
        let is_plane = dimensions.contains(',');
        assert_eq!(matches!(verdict("minimal", "classes = \"none\"", true).verdict, Verdict::Cycle(_)), is_plane, "{dimensions}");
    }
    let mesh = network("mesh", "dimensions = [3, 3]");
    let routing = routing("dimension-order", "", &mesh).unwrap();
    assert!(!check_within(&mesh, routing.as_ref(), &[channels(1)], rules(true), u64::MAX).bubbles);
}

/// A part of the virtual channels for each terminal: as many channels as terminals, so on small networks alone. Two phases within
/// one part promise nothing, and a cycle shows why.
#[test]
fn parts_for_each_terminal_keep_their_promise() {
    for (name, dimensions) in [("mesh", "dimensions = [3, 2]"), ("torus", "dimensions = [4, 2]")] {
        let network = network(name, dimensions);
        let routing = routing("dimension-order", "isolation = \"destination\"", &network).unwrap();
        let available = [channels(routing.facts().virtual_channels_required as u16)];
        assert!(routing.facts().is_deadlock_free);
        assert_eq!(check(&network, routing.as_ref(), &available).verdict, Verdict::Acyclic, "{name}");
    }
    let mesh = network("mesh", "dimensions = [3, 3]");
    let routing = routing("two-phase", "isolated = true", &mesh).unwrap();
    let report = check(&mesh, routing.as_ref(), &[channels(9)]);
    assert_eq!(report.unroutable, None);
    assert!(!routing.facts().is_deadlock_free && matches!(report.verdict, Verdict::Cycle(_)));
}

/// What a routing promises covers the ports that it accepts, which packets take on right predictions.
#[test]
fn routings_keep_their_promise_on_the_paths_that_they_accept() {
    let mut widened = 0;
    for network in networks() {
        for (name, parameters) in routing_variants() {
            let Some(routing) = routing(name, parameters, &network) else { continue };
            let routing: Arc<dyn Routing> = Arc::from(routing);
            let available = [channels(routing.facts().virtual_channels_required as u16)];
            let plain = check(&network, &*routing, &available);
            let report = check(&network, &Accepting::over(Arc::clone(&network), Arc::clone(&routing)), &available);
            assert_eq!(report.unroutable, None, "{name} on {}", network.name());
            assert!(!routing.facts().is_deadlock_free || report.verdict == Verdict::Acyclic, "{name} on {}", network.name());
            assert!(report.dependencies >= plain.dependencies);
            widened += u32::from(report.dependencies > plain.dependencies);
        }
    }
    assert!(widened > 0, "straight up ports, where any would be accepted");
}

/// Along a line to and fro, and round the ring that closes it only where a prediction says so.
#[derive(Debug)]
struct Line {
    network: Arc<Network>,
    accepts_the_closing_channel: bool,
}

impl Routing for Line {
    fn accepts(&self, hop: &Hop, _state: u32, port: u16) -> Option<VirtualChannels> {
        let here = self.network.ejection_port(hop.destination).0;
        let closes = port == 0 && hop.router != here;
        (self.accepts_the_closing_channel && closes).then_some(hop.available)
    }

    fn route(&self, hop: &Hop, _state: &mut u32, _choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (end, eject) = self.network.ejection_port(hop.destination);
        let port = match end.cmp(&hop.router) {
            std::cmp::Ordering::Equal => eject,
            std::cmp::Ordering::Greater => 0,
            std::cmp::Ordering::Less => 1,
        };
        candidates.push(Candidate::new(port, hop.available));
    }
}

/// The routing alone is safe; what it accepts round the ring closes a cycle, which only the widened check finds.
#[test]
fn a_cycle_that_only_predictions_can_close_is_found() {
    let ring = network("torus", "dimensions = [5]");
    for accepts_the_closing_channel in [false, true] {
        let routing: Arc<dyn Routing> = Arc::new(Line { network: Arc::clone(&ring), accepts_the_closing_channel });
        assert_eq!(check(&ring, &*routing, &[channels(1)]).verdict, Verdict::Acyclic);
        let report = check(&ring, &Accepting::over(Arc::clone(&ring), routing), &[channels(1)]);
        assert_eq!(report.is_safe(), !accepts_the_closing_channel);
        if accepts_the_closing_channel {
            assert_cycle(&ring, &report.verdict);
        }
    }
}

/// Each channel of a cycle ends where the next begins.
fn assert_cycle(network: &Network, verdict: &Verdict) {
    let Verdict::Cycle(cycle) = verdict else { panic!("no cycle found") };
    for (index, (channel, _)) in cycle.iter().enumerate() {
        let next = cycle[(index + 1) % cycle.len()].0;
        let (Endpoint::Router(end, _), Endpoint::Router(begin, _)) = (network.destination(*channel), network.source(next)) else {
            panic!("a terminal on a cycle");
        };
        assert_eq!(end, begin);
    }
}

/// A ring of k routers needs k channels for a cycle, and routes of at least 2 channels for a dependency.
#[test]
fn a_torus_without_datelines_has_a_cycle_round_a_ring() {
    for (parameters, virtual_channels) in [("dateline = false", 4), ("", 1)] {
        let torus = network("torus", "dimensions = [5, 4]");
        let routing = routing("dimension-order", parameters, &torus).unwrap();
        let report = check(&torus, routing.as_ref(), &[channels(virtual_channels)]);
        assert_cycle(&torus, &report.verdict);
        let Verdict::Cycle(cycle) = &report.verdict else { unreachable!() };
        assert!(cycle.len() == 5 || cycle.len() == 4, "{cycle:?}");
        assert!(report.describe(&torus).contains(&torus.channel_name(cycle[0].0)));
        assert_eq!(report.unroutable, None);
    }
}

#[test]
fn minimal_routing_on_a_ring_has_a_cycle_but_up_down_has_none() {
    let ring = network("torus", "dimensions = [6]");
    let minimal = routing("minimal", "", &ring).unwrap();
    assert_cycle(&ring, &check(&ring, minimal.as_ref(), &[channels(2)]).verdict);
    let up_down = routing("up-down", "", &ring).unwrap();
    assert_eq!(check(&ring, up_down.as_ref(), &[channels(1)]).verdict, Verdict::Acyclic);
}

/// An n x n mesh under dimension order: all 4 n (n - 1) channels are used. A channel in x depends on its successor in x and on
/// both channels in y: per row and direction n - 2 and, at the n - 1 routers where it ends, the y channels that leave them; a
/// channel in y depends on its successor alone.
#[test]
fn dependencies_of_dimension_order_on_a_mesh_are_counted() {
    for n in 3..7u64 {
        let mesh = network("mesh", &format!("dimensions = [{n}, {n}]"));
        let routing = routing("dimension-order", "", &mesh).unwrap();
        let report = check(&mesh, routing.as_ref(), &[channels(3)]);
        assert_eq!(report.channels, 4 * n * (n - 1));
        let straight = 2 * 2 * n * (n - 2);
        let turns = 2 * (n - 1) * 2 * (n - 1);
        assert_eq!(report.dependencies, straight + turns);
        // A fourth virtual channel, or a second class in the same channels, changes nothing; a class of its own doubles all.
        assert_eq!(check(&mesh, routing.as_ref(), &[channels(4), channels(4)]), report);
        let apart = check(&mesh, routing.as_ref(), &[channels(2), VirtualChannels { begin: 2, end: 4 }]);
        assert_eq!((apart.channels, apart.dependencies), (2 * report.channels, 2 * report.dependencies));
        // Overlapping classes are cut into three; each class depends on all parts of itself.
        let overlap = check(&mesh, routing.as_ref(), &[channels(2), VirtualChannels { begin: 1, end: 3 }]);
        assert_eq!((overlap.channels, overlap.dependencies), (3 * report.channels, 7 * report.dependencies));
    }
}

#[test]
fn a_sample_says_so() {
    let mesh = network("mesh", "dimensions = [6, 6]");
    let routing = routing("dimension-order", "", &mesh).unwrap();
    let report = check_within(&mesh, routing.as_ref(), &[channels(1)], EscapePath::Open, 400);
    let Coverage::Sampled { walked, of, states_percent: 100 } = report.coverage else { panic!("{report:?}") };
    assert!(of == 36 && (2..36).contains(&walked), "{report:?}");
    let said = report.describe(&mesh);
    assert!(said.starts_with(&format!("no cycle found in a sample, the routes to {walked} of 36 destinations (")), "{said}");
    assert!(said.ends_with("this is not a proof") && !said.contains("no deadlock"), "{said}");
}

/// A routing that always takes port 0, and delivers nothing.
#[derive(Debug)]
struct AlwaysPort(u16);

impl Routing for AlwaysPort {
    fn route(&self, hop: &Hop, _state: &mut u32, _choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        candidates.push(Candidate::new(self.0, hop.available));
    }
}

#[test]
fn packets_that_never_arrive_are_found() {
    let ring = network("torus", "dimensions = [4]");
    let report = check(&ring, &AlwaysPort(0), &[channels(1)]);
    assert_cycle(&ring, &report.verdict);
    let (_, _, problem) = report.unroutable.unwrap();
    assert!(problem.contains("go round for ever through routers"), "{problem}");
    let wrong = check(&ring, &AlwaysPort(2), &[channels(1)]);
    let (source, destination, problem) = wrong.unroutable.unwrap();
    assert_eq!((source, destination), (TerminalId(1), TerminalId(0)));
    assert!(problem.contains("delivers it to terminal 1"), "{problem}");
    let nowhere = check(&ring, &AlwaysPort(7), &[channels(1)]);
    assert!(nowhere.unroutable.unwrap().2.contains("has 3 ports"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A cycle is found exactly where there is a strongly connected component with more than one node or a loop, and it is one.
    #[test]
    fn cycles_agree_with_strongly_connected_components(nodes in 1usize..20, edges in proptest::collection::vec((0u32..20, 0u32..20), 0..40)) {
        let mut successors = vec![Vec::new(); nodes];
        for (from, to) in edges {
            successors[from as usize % nodes].push(to % nodes as u32);
        }
        let edges = successors.iter().enumerate().flat_map(|(from, list)| list.iter().map(move |&to| (from as u32, to)));
        let graph = DiGraph::<(), ()>::from_edges((0..nodes as u32).map(|node| (node, node)).filter(|_| false).chain(edges));
        let cycle = find_cycle(&successors);
        prop_assert_eq!(cycle.is_some(), is_cyclic_directed(&graph));
        if let Some(cycle) = cycle {
            for (index, &node) in cycle.iter().enumerate() {
                prop_assert!(successors[node as usize].contains(&cycle[(index + 1) % cycle.len()]));
            }
            let together = tarjan_scc(&graph).into_iter().any(|part| cycle.iter().all(|&node| part.iter().any(|other| other.index() == node as usize)));
            prop_assert!(together);
        }
    }
}

/// Channels in any report lie between routers.
#[test]
fn terminal_channels_lie_on_no_cycle() {
    let ring = network("torus", "dimensions = [5]\nconcentration = 2");
    let minimal = routing("minimal", "", &ring).unwrap();
    let Verdict::Cycle(cycle) = check(&ring, minimal.as_ref(), &[channels(1)]).verdict else { panic!("no cycle") };
    assert!(cycle.iter().all(|(channel, _)| *channel >= ChannelId(2 * ring.terminal_count())));
}
