//! The Cenju-4's network in all sixteen readings of how its boards are joined: paths, multicasts and synchronisations.

use crate::common::{network, routing};
use kasuri_network::id::{Port, RouterId, TerminalId};
use kasuri_network::multicast::{GROUP, Tables};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::rng::{Purpose, Stream, Streams};
use kasuri_network::routing::{Hop, Routing, VirtualChannels, every_hop};
use std::collections::BTreeSet;
use std::sync::Arc;

const CABLINGS: [&str; 4] = ["halves-straight", "halves-interleaved", "round-robin-straight", "round-robin-interleaved"];
const CABLES: [&str; 4] = ["destination", "destination-pair", "source", "sum"];

fn readings() -> impl Iterator<Item = (&'static str, &'static str)> {
    CABLINGS.into_iter().flat_map(|cabling| CABLES.map(|cable| (cabling, cable)))
}

fn machine(terminals: u32, cabling: &str, cable: &str) -> (Arc<Network>, Box<dyn Routing>) {
    let network = network("cenju4", &format!("terminals = {terminals}\ncabling = \"{cabling}\"\ncable = \"{cable}\""));
    let tags = routing("destination-tag", "", &network).unwrap();
    (network, tags)
}

/// The only way of a packet: the routers that it enters, with the input and the output.
fn way(network: &Network, routing: &dyn Routing, source: u32, destination: u32) -> Vec<(RouterId, Port, Port)> {
    let (source, destination) = (TerminalId(source), TerminalId(destination));
    let (mut router, mut input) = network.injection_port(source);
    let mut way = Vec::new();
    loop {
        let available = VirtualChannels { begin: 0, end: 1 };
        let hops = every_hop(routing, &Hop { router, input, virtual_channel: 0, source, destination, available }, 0);
        let [(candidates, 0)] = &hops[..] else { panic!("chance decides") };
        let [candidate] = &candidates[..] else { panic!("{} outputs", candidates.len()) };
        way.push((router, input, candidate.port));
        match network.destination(network.output_channel(router, candidate.port).unwrap()) {
            Endpoint::Router(next, entered) => (router, input) = (next, entered),
            Endpoint::Terminal(terminal) => {
                assert_eq!(terminal, destination);
                return way;
            }
        }
    }
}

/// The board and the line of a terminal, and the cable that its packets take, by the definitions.
fn place(terminal: u32, boards: u32, cabling: &str) -> (u32, u32) {
    if cabling.starts_with("halves") { (terminal / 16, terminal % 16) } else { (terminal % boards, terminal / boards) }
}

fn cable_by(cable: &str, source: u32, destination: u32, cables: u32) -> u32 {
    let number = match cable {
        "destination" => destination,
        "destination-pair" => destination / 2,
        "source" => source,
        _ => source + destination,
    };
    number % cables
}

/// Every pair of terminals has one way, of one router a stage, by the cable that the reading says; where terminals
/// are dealt by halves every router is crossed.
#[test]
fn all_pairs_have_one_way_by_the_cable_of_the_reading() {
    for terminals in [8u32, 16, 32, 64, 128, 256, 512, 1024] {
        let boards = terminals.div_ceil(16);
        let groups = if boards <= 16 { boards } else { boards / 16 };
        let cables = if boards == 1 { 1 } else { 16 / groups };
        for (cabling, cable) in readings() {
            let (network, tags) = machine(terminals, cabling, cable);
            let stages = network.labels().router("stage").unwrap();
            let mut crossed = BTreeSet::new();
            // All sources of small machines, and every line and every board of larger ones.
            for source in (0..terminals).step_by((terminals as usize / 64) | 1) {
                for destination in 0..terminals {
                    let way = way(&network, &*tags, source, destination);
                    assert!(way.iter().map(|hop| stages[hop.0.index()]).eq(0..stages[stages.len() - 1] + 1));
                    crossed.extend(way.iter().map(|hop| hop.0));
                    if boards == 1 {
                        continue;
                    }
                    let output = way[1].0.0 % 4 * 4 + u32::from(way[1].2);
                    let group = place(destination, boards, cabling).0 / (boards / groups);
                    let cable = cable_by(cable, source, destination, cables);
                    let expected = if cabling.ends_with("straight") { group * cables + cable } else { cable * groups + group };
                    assert_eq!(output, expected, "{terminals} {cabling} {cable}: {source} to {destination}");
                    let first = way[0].0.0 / 4;
                    assert_eq!(first, place(source, boards, cabling).0);
                }
            }
            // With 8 terminals half of the routers of the second stage lead to nobody. Terminals dealt in turn and cables by their numbers
            // are bound to each other: some cables stay idle then, as the readings have it.
            let expected = if terminals == 8 { 6 } else { network.router_count() };
            let all = crossed.len() as u32 == expected;
            assert!(all || terminals > 64 || cabling.starts_with("round-robin"), "{terminals} {cabling} {cable}");
        }
    }
}

/// In shift k, terminal n sends to n + k. Of the 16 terminals of a board max(16 - k, k) send to the same board, over the cables of a bundle;
/// on one board a shift has no two packets on a channel.
#[test]
fn shifts_of_one_board_meet_nowhere_and_those_of_several_in_the_bundles() {
    for (terminals, cables) in [(16u32, 16u32), (32, 8), (64, 4), (256, 1)] {
        let (network, tags) = machine(terminals, "halves-straight", "destination");
        for shift in 0..16 {
            let mut loads = vec![0u32; network.channel_count() as usize];
            for source in 0..terminals {
                for (router, _, port) in way(&network, &*tags, source, (source + shift) % terminals) {
                    loads[network.output_channel(router, port).unwrap().index()] += 1;
                }
            }
            let most = loads.into_iter().max().unwrap();
            let expected = (16 - shift).max(shift).div_ceil(cables);
            assert_eq!(most, expected, "{terminals} nodes, shift {shift}");
        }
    }
}

fn subset(stream: &mut Stream, terminals: u32) -> u64 {
    let bits = u64::from(stream.below(u32::MAX)) << 32 | u64::from(stream.below(u32::MAX));
    (bits & (u64::MAX >> (64 - terminals.min(64)))).max(1)
}

/// The copies of a multicast, each with the terminals that it carries, reach all members once, each on the way of a packet to it alone.
#[test]
fn multicasts_reach_each_member_on_its_way() {
    for terminals in [32, 64, 1024] {
        for (cabling, cable) in readings() {
            if terminals == 1024 && (cabling, cable) != ("halves-straight", "destination") && (cabling, cable) != (CABLINGS[3], CABLES[3]) {
                continue;
            }
            let (network, tags) = machine(terminals, cabling, cable);
            let tables = Tables::new(&network, &*tags).unwrap();
            let mut stream = Streams::new(7).get(Purpose::Destination, terminals);
            for _ in 0..20 {
                let (source, group) = (stream.below(terminals), stream.below(terminals.div_ceil(64)) as usize);
                let set = subset(&mut stream, terminals);
                let (router, input) = network.injection_port(TerminalId(source));
                let mut copies = vec![(router, input, set, Vec::new())];
                let mut reached = Vec::new();
                while let Some((router, input, carried, path)) = copies.pop() {
                    let outputs = tables.outputs(router.0, input.into(), group, carried);
                    for port in (0..4 as Port).filter(|port| outputs & 1 << port != 0) {
                        let carried = carried & tables.behind(router.0, input.into(), port.into(), group);
                        let path = [&path[..], &[(router, input, port)]].concat();
                        match network.destination(network.output_channel(router, port).unwrap()) {
                            Endpoint::Router(next, entered) => copies.push((next, entered, carried, path)),
                            Endpoint::Terminal(terminal) => {
                                assert_eq!(path, way(&network, &*tags, source, terminal.0));
                                reached.push(terminal.index());
                            }
                        }
                    }
                }
                reached.sort_unstable();
                let members: Vec<usize> = (0..64).filter(|bit| set >> bit & 1 == 1).map(|bit| GROUP * group + bit).collect();
                assert_eq!(reached, members, "{terminals} {cabling} {cable}");
            }
        }
    }
}

/// Packets of a synchronisation move in a random order: nobody's round ends before all have entered, and everybody's ends once.
#[test]
fn a_synchronisation_ends_once_for_each_when_all_have_entered() {
    for terminals in [8, 16, 32, 64] {
        for (cabling, cable) in readings() {
            let (network, tags) = machine(terminals, cabling, cable);
            let tables = Tables::new(&network, &*tags).unwrap();
            let synchronisation = tables.synchronisation().unwrap();
            assert_eq!(synchronisation.rows(), 2);
            let mut stream = Streams::new(9).get(Purpose::Destination, terminals);
            for _ in 0..20 {
                let set = subset(&mut stream, terminals);
                let mut arrived = vec![0u32; network.router_count() as usize];
                let mut ended = Vec::new();
                let mut outside: Vec<u32> = (0..terminals).filter(|bit| set >> bit & 1 == 1).collect();
                let mut packets = Vec::new();
                while !(outside.is_empty() && packets.is_empty()) {
                    let place = stream.below((outside.len() + packets.len()) as u32) as usize;
                    let channel = match place.checked_sub(outside.len()) {
                        None => network.injection_channel(TerminalId(outside.swap_remove(place))),
                        Some(place) => packets.swap_remove(place),
                    };
                    match network.destination(channel) {
                        Endpoint::Terminal(terminal) => {
                            assert!(outside.is_empty(), "{terminal} left before {outside:?} entered");
                            ended.push(terminal.0);
                        }
                        Endpoint::Router(router, input) => {
                            let step = synchronisation.step(router.0, input.into(), set);
                            assert_eq!(arrived[router.index()] & 1 << input, 0);
                            arrived[router.index()] |= 1 << input;
                            assert!(step.expected.unwrap() & 1 << input != 0, "a packet on an input that nobody waits for");
                            if Some(arrived[router.index()]) == step.expected {
                                let outputs = (0..4 as Port).filter(|port| step.outputs & 1 << port != 0);
                                packets.extend(outputs.map(|port| network.output_channel(router, port).unwrap()));
                            }
                        }
                    }
                }
                ended.sort_unstable();
                assert!(ended.into_iter().eq((0..terminals).filter(|bit| set >> bit & 1 == 1)), "{terminals} {cabling} {cable} {set:#x}");
            }
        }
    }
}
