//! Valiant's routing and UGAL on the topologies that ask for them: routes, virtual-channel classes, choices.

use crate::common::{network, routing};
use kasuri_network::deadlock::{Coverage, Verdict, check};
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::routing::{Choice, CongestionView, Hop, Routing, VirtualChannels};

const DRAGONFLY: (&str, &str) = ("dragonfly", "terminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2");

/// Network, classes of `minimal`, classes of `valiant` and `ugal`: with one hop a class the longest routes in hops (a dragonfly's
/// path to a group is at most 2, on from there 3); with classes of up and down 1 and 2.
const CLASSES: [((&str, &str), u32, u32); 8] = [
    (("mlfm", "degree = 3"), 1, 2),
    (("oft", "order = 2\nsides = 2"), 1, 2),
    (("fat-tree", "up = 2\ndown = 2\nlevels = 3"), 1, 2),
    (("full-mesh", "routers = 5\nconcentration = 2"), 1, 2),
    (("slim-fly", "order = 5\nconcentration = 1"), 2, 4),
    (DRAGONFLY, 3, 5),
    (("flattened-butterfly", "dimensions = [3, 3]\nconcentration = 2"), 2, 4),
    (("flattened-butterfly", "dimensions = [2, 2, 3]"), 3, 6),
];

#[test]
fn classes_make_every_route_free_of_deadlock() {
    for ((name, parameters), minimal, detour) in CLASSES {
        let network = network(name, parameters);
        for (routing_name, classes) in [("minimal", minimal), ("valiant", detour), ("ugal", detour)] {
            let routing = routing(routing_name, "", &network).unwrap();
            assert!(routing.facts().is_deadlock_free, "{routing_name} on {}", network.name());
            assert_eq!(routing.facts().virtual_channels_required, classes, "{routing_name} on {}", network.name());
            let report = check(&network, routing.as_ref(), &[VirtualChannels { begin: 0, end: classes as u16 }]);
            assert_eq!(report.unroutable, None);
            assert_eq!((report.verdict, report.coverage), (Verdict::Acyclic, Coverage::Exact), "{routing_name} on {}", network.name());
        }
    }
}

/// The classes are needed: without them two packets that go round by each other's routers can wait for each other.
#[test]
fn without_classes_detours_can_deadlock() {
    for ((name, parameters), ..) in CLASSES {
        let network = network(name, parameters);
        let routing = routing("valiant", "classes = \"none\"", &network).unwrap();
        assert!(!routing.facts().is_deadlock_free);
        assert_eq!(routing.facts().virtual_channels_required, 1);
        let report = check(&network, routing.as_ref(), &[VirtualChannels { begin: 0, end: 4 }]);
        assert!(matches!(report.verdict, Verdict::Cycle(_)), "{}", network.name());
    }
}

/// Draws as it is told, and sees so many flits wait at each port.
struct Script<'a> {
    draws: &'a mut dyn Iterator<Item = u32>,
    occupied: &'a dyn Fn(u16) -> u32,
}

struct View<'a>(&'a dyn Fn(u16) -> u32);

impl CongestionView for View<'_> {
    fn occupied(&self, port: u16, _virtual_channels: VirtualChannels) -> u32 {
        self.0(port)
    }
}

impl Choice for Script<'_> {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        self.draws.next().unwrap_or(0) % alternatives
    }

    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        (0..alternatives).min_by_key(|&path| cost(&View(self.occupied), path)).unwrap()
    }
}

/// The routers of a packet's route, and the class of the virtual channel (one each) on every channel between them.
fn route(network: &Network, routing: &dyn Routing, pair: (u32, u32), choice: &mut Script<'_>) -> (Vec<u32>, Vec<u16>) {
    let (source, destination) = (TerminalId(pair.0), TerminalId(pair.1));
    let available = VirtualChannels { begin: 0, end: routing.facts().virtual_channels_required as u16 };
    let mut state = routing.initial_state(source, destination, choice);
    let (router, input) = network.injection_port(source);
    let mut hop = Hop { router, input, virtual_channel: 0, source, destination, available };
    let (mut routers, mut classes) = (vec![router.0], Vec::new());
    loop {
        let mut candidates = Vec::new();
        routing.route(&hop, &mut state, choice, &mut candidates);
        let [candidate] = candidates[..] else { panic!("one path on") };
        match network.destination(network.output_channel(hop.router, candidate.port).unwrap()) {
            Endpoint::Terminal(end) => {
                assert_eq!(end, destination);
                return (routers, classes);
            }
            Endpoint::Router(router, input) => {
                hop = Hop { router, input, virtual_channel: candidate.virtual_channels.begin, ..hop };
                routers.push(router.0);
                classes.push(candidate.virtual_channels.begin);
            }
        }
    }
}

/// By path of another leaf an MLFM takes four hops, the first two in class 0 and the last two in class 1.
#[test]
fn a_non_minimal_route_on_an_mlfm_passes_a_leaf_between_two_pairs_of_hops() {
    let network = network("mlfm", "layers = 2\npositions = 4\nterminals_per_leaf = 2");
    let routing = routing("valiant", "", &network).unwrap();
    // From leaf (0, 0) by leaf (1, 2), router 6, to leaf (0, 1).
    let (routers, classes) = route(&network, routing.as_ref(), (0, 2), &mut Script { draws: &mut [6].into_iter(), occupied: &|_| 0 });
    let spine = |low: u32, high: u32| 8 + low * 4 - low * (low + 1) / 2 + high - low - 1;
    assert_eq!(routers, [0, spine(0, 2), 6, spine(1, 2), 1]);
    assert_eq!(classes, [0, 0, 1, 1]);
}

/// On a dragonfly the packet turns at the first router of the drawn group: never more than one local hop there.
#[test]
fn a_dragonfly_is_crossed_in_five_hops_by_another_group() {
    let network = network(DRAGONFLY.0, DRAGONFLY.1);
    let routing = routing("valiant", "", &network).unwrap();
    let mut longest = 0;
    for (destination, group) in (8..72).flat_map(|destination| (0..9).map(move |group| (destination, group))) {
        let draws = &mut [group].into_iter();
        let (routers, classes) = route(&network, routing.as_ref(), (0, destination), &mut Script { draws, occupied: &|_| 0 });
        assert!(routers.iter().any(|router| router / 4 == group) || group == destination / 8);
        assert!(classes.windows(2).all(|pair| pair[0] < pair[1]));
        longest = longest.max(classes.len());
    }
    assert_eq!(longest, 5);
}

/// Two global links may lead to a router sooner than a local hop, a global link and a local hop; they are not taken: a global
/// link between two groups carries their traffic alone.
#[test]
fn minimal_routes_on_a_dragonfly_leave_a_group_once() {
    let network = network("dragonfly", "terminals_per_router = 1\nrouters_per_group = 4\nglobal_channels = 2");
    let routing = routing("minimal", "", &network).unwrap();
    let mut longest = 0;
    for (source, destination) in (0..36).flat_map(|source| (0..36).map(move |destination| (source, destination))) {
        let (routers, classes) =
            route(&network, routing.as_ref(), (source, destination), &mut Script { draws: &mut std::iter::empty(), occupied: &|_| 0 });
        let global = routers.windows(2).filter(|pair| pair[0] / 4 != pair[1] / 4).count();
        assert_eq!(global, usize::from(source / 4 != destination / 4));
        longest = longest.max(classes.len());
    }
    assert_eq!(longest, 3);
}

/// q H > q' H' + threshold: with 2 hops against 4 the detour is taken as soon as more than twice as much waits on the short path.
#[test]
fn ugal_weighs_queues_by_hops() {
    let network = network("mlfm", "layers = 2\npositions = 4\nterminals_per_leaf = 2");
    let (spine_of_1, spine_of_2) = (2, 3);
    for (threshold, waiting, elsewhere, detours) in
        [(0, 0, 0, false), (0, 10, 5, false), (0, 11, 5, true), (2, 11, 5, false), (2, 12, 5, true)]
    {
        let routing = routing("ugal", &format!("threshold = {threshold}"), &network).unwrap();
        assert!(routing.facts().observes_congestion);
        let occupied = |port: u16| match port {
            port if port == spine_of_1 => waiting,
            port if port == spine_of_2 => elsewhere,
            _ => 0,
        };
        // The first draw would be the short path's, of which there is one: leaf (1, 2) is drawn.
        let draws = &mut [0, 6, 0].into_iter();
        let (routers, _) = route(&network, routing.as_ref(), (0, 2), &mut Script { draws, occupied: &occupied });
        assert_eq!(routers.contains(&6), detours, "{threshold} {waiting} {elsewhere}");
    }
}

/// Terminal i of its leaf is reached by path i: the static rule by which d-mod-k spreads on a two-level tree.
#[test]
fn ties_by_destination_and_source_spread_the_terminals_of_a_leaf() {
    let mlfm = network("mlfm", "degree = 3");
    let oft = network("oft", "order = 2\nsides = 2");
    // From leaf 1 to the leaf of the same position in the next layer, or on the other side.
    for (network, leaf, terminals) in [(mlfm, 1 + 4, 3), (oft, 1 + 7, 3)] {
        for (i, j) in (0..terminals).flat_map(|i| (0..terminals).map(move |j| (i, j))) {
            let pair = (terminals + i, leaf * terminals + j);
            for (tie, port) in [("destination", j), ("source", i)] {
                let routing = routing("minimal", &format!("tie = \"{tie}\""), &network).unwrap();
                let (routers, _) =
                    route(&network, routing.as_ref(), pair, &mut Script { draws: &mut std::iter::empty(), occupied: &|_| 0 });
                let up = network.output_channel(RouterId(1), (terminals + port) as u16).unwrap();
                assert!(matches!(network.destination(up), Endpoint::Router(spine, _) if spine.0 == routers[1]));
            }
        }
    }
}

#[test]
fn a_unidirectional_network_has_no_path_on_from_its_last_stage() {
    let fly = network("butterfly", "radix = 2\nstages = 3");
    assert!(routing("valiant", "", &fly).is_none() && routing("ugal", "", &fly).is_none());
}
