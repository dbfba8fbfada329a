//! Properties of the tables of routers that multicast, on every network with every routing.

use crate::common::{network, networks, routing, routing_variants, terminals};
use kasuri_network::deadlock;
use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::multicast::{GROUP, Tables};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::rng::{Purpose, Streams};
use kasuri_network::routing::{Hop, Routing, VirtualChannels, every_hop, every_initial_state};
use std::collections::BTreeSet;
use std::sync::Arc;

const ONE: VirtualChannels = VirtualChannels { begin: 0, end: 1 };

/// The only route between two terminals as channels, if there is only one whatever the routing draws or weighs.
fn route(network: &Network, routing: &dyn Routing, source: TerminalId, destination: TerminalId) -> Option<Vec<ChannelId>> {
    let (router, input) = network.injection_port(source);
    let start = Hop { router, input, virtual_channel: 0, source, destination, available: ONE };
    let states = every_initial_state(routing, source, destination);
    let mut open: Vec<(Hop, u32, Vec<ChannelId>)> = states.into_iter().map(|state| (start, state, Vec::new())).collect();
    let mut only = None;
    while let Some((hop, state, path)) = open.pop() {
        assert!(path.len() < network.router_count() as usize * 4, "it arrives");
        for (candidates, after) in every_hop(routing, &hop, state) {
            for candidate in candidates {
                let channel = network.output_channel(hop.router, candidate.port).unwrap();
                let path = [&path[..], &[channel]].concat();
                match network.destination(channel) {
                    Endpoint::Router(router, input) => open.push((Hop { router, input, ..hop }, after, path)),
                    Endpoint::Terminal(_) if only.as_ref().is_some_and(|only| *only != path) => return None,
                    Endpoint::Terminal(_) => only = Some(path),
                }
            }
        }
    }
    only
}

/// The copies of a multicast of a terminal: the channels that each of its terminals is reached by, and how often.
fn copies(network: &Network, tables: &Tables, source: u32, group: usize, terminals: u64) -> Vec<(u32, Vec<ChannelId>)> {
    let mut reached = Vec::new();
    let (router, input) = network.injection_port(TerminalId(source));
    let mut copies = vec![(router, input, terminals, Vec::new())];
    while let Some((router, input, terminals, path)) = copies.pop() {
        let outputs = tables.outputs(router.0, input.into(), group, terminals);
        for port in (0..32u16).filter(|port| outputs & 1 << port != 0) {
            let channel = network.output_channel(router, port).unwrap();
            let carried = terminals & tables.behind(router.0, input.into(), port.into(), group);
            let mut path = path.clone();
            path.push(channel);
            match network.destination(channel) {
                Endpoint::Terminal(terminal) => {
                    assert_eq!((terminal.0 as usize / GROUP, 1 << (terminal.0 as usize % GROUP)), (group, carried));
                    reached.push((terminal.0, path));
                }
                Endpoint::Router(next, port) => copies.push((next, port, carried, path)),
            }
        }
    }
    reached.sort();
    reached
}

fn group_of(network: &Network, group: usize) -> u64 {
    (0..network.terminal_count()).filter(|&terminal| terminal as usize / GROUP == group).map(|terminal| 1 << (terminal % 64)).sum()
}

/// The networks whose routes are soon walked.
fn small_networks() -> impl Iterator<Item = Arc<Network>> {
    networks().into_iter().filter(|network| network.terminal_count() <= 80)
}

/// Whatever is accepted brings a multicast to each of its terminals once, on the path of a packet to that terminal alone, and its queues
/// wait for each other in no cycle.
#[test]
fn what_is_accepted_multicasts_on_the_routes_and_cannot_deadlock() {
    let mut accepted = BTreeSet::new();
    for network in small_networks() {
        for (name, parameters) in routing_variants() {
            let Some(routing) = routing(name, parameters, &network) else { continue };
            let Ok(tables) = Tables::new(&network, &*routing) else { continue };
            accepted.insert(network.name().split(' ').next().unwrap().to_owned());
            assert!(deadlock::check(&network, &*routing, &[ONE]).is_safe(), "{} {name}", network.name());
            for source in terminals(&network).map(|terminal| terminal.0) {
                for group in 0..(network.terminal_count() as usize).div_ceil(GROUP) {
                    let copies = copies(&network, &tables, source, group, group_of(&network, group));
                    let all = (0..network.terminal_count()).filter(|&terminal| terminal as usize / GROUP == group);
                    assert!(copies.iter().map(|copy| copy.0).eq(all), "{} {name}: each is reached once", network.name());
                    for (terminal, path) in copies {
                        let alone = route(&network, &*routing, TerminalId(source), TerminalId(terminal));
                        assert_eq!(Some(path), alone, "{} {name}: {source} to {terminal}", network.name());
                    }
                }
            }
        }
    }
    for topology in ["mesh", "fat-tree", "butterfly", "omega", "cenju4", "full-mesh"] {
        assert!(accepted.contains(topology), "{topology} is not among {accepted:?}");
    }
}

/// What is refused has a cycle of queues, or packets that have several paths, or links that lead in one direction only.
#[test]
fn what_is_refused_has_a_reason() {
    let mut reasons = BTreeSet::new();
    for network in small_networks() {
        for (name, parameters) in routing_variants() {
            let Some(routing) = routing(name, parameters, &network) else { continue };
            let Err(refusal) = Tables::new(&network, &*routing) else { continue };
            let safe = deadlock::check(&network, &*routing, &[ONE]).is_safe();
            let reason = if refusal.problem.contains("in a cycle of") {
                // A routing with an escape path may be safe where not every route is, but not for packets that must wait for all queues.
                assert!(!safe || routing.escape_channels(ONE).is_some(), "{} {name}: {refusal}", network.name());
                "cycle"
            } else if refusal.problem.contains("as chance, congestion or their source has it") {
                let unique = |source| terminals(&network).all(|to| route(&network, &*routing, source, to).is_some());
                assert!(routing.facts().reads.source || !terminals(&network).all(unique), "{} {name}: {refusal}", network.name());
                "ways"
            } else {
                panic!("{} {name}: {refusal}", network.name())
            };
            reasons.insert(reason);
        }
    }
    assert_eq!(reasons.len(), 2);
}

#[test]
fn a_torus_is_refused_with_its_cycle_and_random_paths_up_with_what_to_take() {
    let torus = network("torus", "dimensions = [5]");
    let order = routing("dimension-order", "", &torus).unwrap();
    let refusal = Tables::new(&torus, &*order).unwrap_err();
    let cycle: Vec<String> = (0..5).map(|router| format!("router {router} port 0 -> router {} port 1", (router + 1) % 5)).collect();
    assert!(refusal.problem.contains(&format!("in a cycle of 5 channels ({})", cycle.join(", "))), "{refusal}");
    assert_eq!((refusal.section, refusal.key), ("network", "topology"));
    let tree = network("fat-tree", "up = 2\ndown = 2\nlevels = 3");
    let random = routing("nca", "up_port = \"random\"", &tree).unwrap();
    let refusal = Tables::new(&tree, &*random).unwrap_err();
    assert!(refusal.problem.contains("by port 2 or by port 3") && refusal.problem.contains("up_port = \"s-mod-k\""), "{refusal}");
    assert_eq!((refusal.section, refusal.key), ("routing", "algorithm"));
}

/// The rule of the machine: the digits of the group up to the last three stages; then output d of the prefix P taken so far if the map
/// has a bit in the w = 16, 4, 1 bits from w (4 P + d) on.
#[test]
fn the_outputs_of_a_multicast_are_those_of_the_maps_rule() {
    let network = network("omega", "radix = 4\nstages = 5\nterminals = 1024");
    let tables = Tables::new(&network, &*routing("destination-tag", "", &network).unwrap()).unwrap();
    let (stages, positions) = (network.labels().router("stage").unwrap(), network.labels().router("position").unwrap());
    let mut stream = Streams::new(2).get(Purpose::Destination, 0);
    for router in 0..network.router_count() {
        let (stage, position) = (stages[router as usize], positions[router as usize]);
        // The digits of the destination taken so far are the low digits of the position.
        let taken = position % 4u32.pow(stage);
        let (group, nodes) = (stream.below(16), u64::from(stream.below(u32::MAX)) << 32 | u64::from(stream.below(u32::MAX)) | 1);
        let expected: u32 = if stage < 2 {
            let digit = group / 4u32.pow(1 - stage) % 4;
            if stage == 0 || taken == group / 4 { 1 << digit } else { 0 }
        } else {
            let width = [16, 4, 1][stage as usize - 2];
            let prefix = taken % 4u32.pow(stage - 2);
            let inside = taken / 4u32.pow(stage - 2) == group;
            let has = |digit: u32| nodes >> (width * (4 * prefix + digit)) & (u64::MAX >> (64 - width)) != 0;
            (0..4).filter(|&digit| inside && has(digit)).map(|digit| 1 << digit).sum()
        };
        assert_eq!(tables.outputs(router, 0, group as usize, nodes), expected, "stage {stage}, position {position}");
    }
}

/// Every packet of a round goes up once over each link between a participant and the first router above all, and down once.
#[test]
fn a_synchronisation_crosses_each_link_of_its_tree_once_in_each_direction() {
    for (topology, parameters) in [
        ("mesh", "dimensions = [8, 8]"),
        ("fat-tree", "up = 4\ndown = 4\nlevels = 3"),
        ("fat-tree", "up = 2\ndown = 2\nlevels = 5\nsides = 2"),
    ] {
        let network = network(topology, parameters);
        let routing =
            [("dimension-order", ""), ("nca", "up_port = \"d-mod-k\"")].into_iter().find_map(|(name, keys)| routing(name, keys, &network));
        let tables = Tables::new(&network, &*routing.unwrap()).unwrap();
        let synchronisation = tables.synchronisation().unwrap();
        assert_eq!(synchronisation.rows(), 1);
        let mut stream = Streams::new(5).get(Purpose::Destination, 0);
        for _ in 0..50 {
            let set = (u64::from(stream.below(u32::MAX)) << 32 | u64::from(stream.below(u32::MAX))) & group_of(&network, 0) | 1;
            let mut crossed = BTreeSet::new();
            let mut table = vec![0u32; network.router_count() as usize];
            let mut ended = 0u64;
            let start = |terminal: u32| network.injection_channel(TerminalId(terminal));
            let mut packets: Vec<ChannelId> = (0..64).filter(|bit| set >> bit & 1 == 1).map(start).collect();
            while let Some(channel) = packets.pop() {
                assert!(crossed.insert(channel), "twice over {}", network.channel_name(channel));
                let (router, input) = match network.destination(channel) {
                    Endpoint::Terminal(terminal) => {
                        ended |= 1 << terminal.0;
                        continue;
                    }
                    Endpoint::Router(router, input) => (router, input),
                };
                let step = synchronisation.step(router.0, input.into(), set);
                table[router.index()] |= 1 << input;
                if step.expected.is_none_or(|expected| table[router.index()] == expected) {
                    let outputs = (0..32u16).filter(|port| step.outputs & 1 << port != 0);
                    packets.extend(outputs.map(|port| network.output_channel(router, port).unwrap()));
                }
            }
            assert_eq!(ended, set);
            let links = crossed.iter().filter_map(|&channel| match (network.source(channel), network.destination(channel)) {
                (Endpoint::Router(from, _), Endpoint::Router(to, _)) => Some((from, to)),
                _ => None,
            });
            let links: BTreeSet<(RouterId, RouterId)> = links.collect();
            assert!(links.iter().all(|&(from, to)| links.contains(&(to, from))), "what goes up comes down");
        }
    }
}
