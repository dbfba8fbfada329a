//! Properties of every routing of the table on every network that accepts it.

use crate::common::{network, networks, routing, routing_variants, terminals};
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::connectivity::separated;
use kasuri_network::network::{Endpoint, Network, cables, drawn};
use kasuri_network::routing::{Candidate, Hop, Routing, VirtualChannels, check_survival, every_hop, every_initial_state};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Walks every branch from `source` to `destination`; the longest path in routers. Panics if one ends elsewhere or never.
fn longest_route(network: &Network, routing: &dyn Routing, source: TerminalId, destination: TerminalId) -> u32 {
    let available = VirtualChannels { begin: 0, end: routing.facts().virtual_channels_required as u16 };
    let (router, input) = network.injection_port(source);
    let bound = 4 * network.router_count();
    // A stack of (hop, state, depth), and the depths at which each place was seen: deeper again means that it goes on growing.
    let mut stack: Vec<(Hop, u32, u32)> = Vec::new();
    for state in every_initial_state(routing, source, destination) {
        let hop = Hop { router, input, virtual_channel: 0, source, destination, available };
        stack.push((hop, state, 1));
    }
    let mut seen = BTreeMap::new();
    let mut longest = 0;
    while let Some((hop, state, depth)) = stack.pop() {
        assert!(depth <= bound, "{}: {source} to {destination} does not arrive within {bound} routers", network.name());
        let key = (hop.router, hop.input, hop.virtual_channel, state);
        if seen.get(&key).is_some_and(|&before| before >= depth) {
            continue;
        }
        seen.insert(key, depth);
        let outcomes = every_hop(routing, &hop, state);
        if let Some(port) = routing.port_to(hop.router, destination) {
            assert_eq!(outcomes, [(vec![Candidate::new(port, available)], state)], "{}: {port} is the only port", network.name());
        }
        for (candidates, after) in outcomes {
            assert!(!candidates.is_empty(), "{}: stuck at {:?}", network.name(), hop.router);
            for candidate in candidates {
                let channel = network.output_channel(hop.router, candidate.port).expect("a connected port");
                let channels = candidate.virtual_channels;
                assert!(
                    channels.begin >= available.begin && channels.end <= available.end,
                    "{}: {channels:?} of {available:?}",
                    network.name()
                );
                assert!(candidate.virtual_channels.count() > 0);
                match network.destination(channel) {
                    Endpoint::Terminal(terminal) => {
                        assert_eq!(terminal, destination, "{}: delivered to the wrong terminal", network.name());
                        longest = longest.max(depth);
                    }
                    Endpoint::Router(router, input) => {
                        for virtual_channel in candidate.virtual_channels.begin..candidate.virtual_channels.end {
                            stack.push((Hop { router, input, virtual_channel, ..hop }, after, depth + 1));
                        }
                    }
                }
            }
        }
    }
    longest
}

#[test]
fn every_branch_of_every_routing_arrives() {
    let mut fits = BTreeMap::new();
    for network in networks() {
        for (name, parameters) in routing_variants() {
            let Some(routing) = routing(name, parameters, &network) else { continue };
            *fits.entry(name).or_insert(0) += 1;
            for source in terminals(&network) {
                for destination in terminals(&network) {
                    longest_route(&network, routing.as_ref(), source, destination);
                }
            }
        }
    }
    for (name, _) in routing_variants() {
        assert!(fits.get(name).is_some_and(|&count| count > 0), "routing `{name}` fits no example");
    }
}

/// Without some links that leave every terminal within reach, a routing arrives on every branch, or is refused with a packet; those that search
/// always arrive, and dimension order on a mesh never does, where each link is on the path of some packet.
#[test]
fn routings_lead_round_what_is_down_or_are_refused() {
    let mut refused = BTreeMap::new();
    for whole in networks() {
        let all = cables(&whole);
        for (seed, count) in [(1, 1), (2, 1), (3, 2)] {
            let network = Arc::new((*whole).clone().without(&drawn(&all, count, seed), &[]));
            if separated(&network).is_some() || network.damage().is_none() {
                continue;
            }
            for (name, parameters) in routing_variants() {
                let Some(routing) = routing(name, parameters, &network) else { continue };
                if let Err(lost) = check_survival(&network, routing.as_ref()) {
                    assert!(lost.problem.contains("down") || lost.problem.contains("more paths"), "{name}: {}", lost.problem);
                    assert!(!routing.facts().searches_paths, "{name}");
                    *refused.entry((name, network.name().starts_with("mesh"))).or_insert(0) += 1;
                    continue;
                }
                assert!(name != "dimension-order" || !network.name().starts_with("mesh"), "{parameters} on {}", network.name());
                for source in terminals(&network) {
                    for destination in terminals(&network).step_by(5) {
                        longest_route(&network, routing.as_ref(), source, destination);
                    }
                }
            }
        }
    }
    assert!(refused.contains_key(&("dimension-order", true)) && refused.contains_key(&("nca", false)), "{refused:?}");
}

fn leads_to_a_terminal(network: &Network, hop: &Hop, outcomes: &[(Vec<Candidate>, u32)]) -> bool {
    let ends = |candidate: &Candidate| {
        let channel = network.output_channel(hop.router, candidate.port).expect("a connected port");
        matches!(network.destination(channel), Endpoint::Terminal(_))
    };
    outcomes.iter().any(|(candidates, _)| candidates.iter().any(ends))
}

/// What a routing says it does not read has no influence on its candidates.
#[test]
fn routings_read_what_they_say() {
    for network in networks() {
        for (name, parameters) in routing_variants() {
            let Some(routing) = routing(name, parameters, &network) else { continue };
            let reads = routing.facts().reads;
            let available = VirtualChannels { begin: 0, end: 4 };
            let count = network.terminal_count();
            for destination in terminals(&network) {
                let at = network.ejection_port(destination).0;
                for router in (0..network.router_count()).map(RouterId).filter(|&router| router != at) {
                    let hop = Hop { router, input: 0, virtual_channel: 0, source: TerminalId(0), destination, available };
                    let expected = every_hop(routing.as_ref(), &hop, 0);
                    // A place that no packet for this destination comes to.
                    if leads_to_a_terminal(&network, &hop, &expected) {
                        continue;
                    }
                    let mut others = Vec::new();
                    if !reads.source {
                        others.push(Hop { source: TerminalId(count - 1), ..hop });
                    }
                    if !reads.input {
                        others.push(Hop { input: network.port_count(router) as u16 - 1, ..hop });
                    }
                    if !reads.virtual_channel {
                        others.push(Hop { virtual_channel: 3, ..hop });
                    }
                    if !reads.terminal {
                        let mates = (0..count).map(TerminalId).filter(|&mate| network.ejection_port(mate).0 == at);
                        others.extend(mates.map(|mate| Hop { destination: mate, ..hop }));
                    }
                    for other in others {
                        assert_eq!(every_hop(routing.as_ref(), &other, 0), expected, "{name} {parameters} on {}", network.name());
                    }
                }
            }
        }
    }
}

/// A packet crosses 2 L - 1 routers, L the least level at which source and destination share an ancestor.
#[test]
fn nca_turns_at_the_nearest_common_ancestor() {
    for (up, down, levels) in [(4u32, 4u32, 3u32), (2, 3, 3), (3, 2, 4)] {
        let tree = network("fat-tree", &format!("up = {up}\ndown = {down}\nlevels = {levels}"));
        for policy in ["random", "d-mod-k", "s-mod-k", "straight", "adaptive"] {
            let routing = routing("nca", &format!("up_port = \"{policy}\""), &tree).unwrap();
            for (a, b) in (0..tree.terminal_count()).flat_map(|a| [0, 1, 7].map(|b| (a, b))) {
                let level = (1..=levels).find(|&l| a / down.pow(l) == b / down.pow(l)).unwrap();
                assert_eq!(longest_route(&tree, routing.as_ref(), TerminalId(a), TerminalId(b)), 2 * level - 1);
            }
        }
    }
}

#[test]
fn minimal_and_dimension_order_take_shortest_paths() {
    for (name, wrap) in [("mesh", false), ("torus", true)] {
        let network = network(name, "dimensions = [5, 4]");
        let distance = |a: u32, b: u32, radix: u32| {
            let direct = a.abs_diff(b);
            if wrap { direct.min(radix - direct) } else { direct }
        };
        for routing_name in ["dimension-order", "minimal"] {
            let routing = routing(routing_name, "", &network).unwrap();
            for (a, b) in (0..20).flat_map(|a| (0..20).map(move |b| (a, b))) {
                let hops = distance(a % 5, b % 5, 5) + distance(a / 5, b / 5, 4);
                assert_eq!(longest_route(&network, routing.as_ref(), TerminalId(a), TerminalId(b)), hops + 1);
            }
        }
    }
}

#[test]
fn routings_refuse_other_networks() {
    let mesh = network("mesh", "dimensions = [3, 3]");
    let tree = network("fat-tree", "up = 2\ndown = 2\nlevels = 2");
    let fly = network("butterfly", "radix = 2\nstages = 3");
    assert!(routing("nca", "", &mesh).is_none());
    assert!(routing("dimension-order", "", &tree).is_none());
    assert!(routing("destination-tag", "", &mesh).is_none());
    assert!(routing("up-down", "root = 9", &mesh).is_none());
    assert!(routing("minimal", "", &fly).is_some());
}
