//! Verdicts on virtual channels of fabrics, and where trees send packets, against what a program without any of this code has found.

use crate::common::{network, routing};
use kasuri_network::deadlock::{Coverage, Verdict, check};
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::routing::{Routing, VirtualChannels};
use std::collections::BTreeMap;

const VERDICTS: &str = include_str!("../../../../tests/data/fabrics/deadlock.out");
const VECTORS: &str = include_str!("../../../../tests/data/fabrics/vectors.csv");

/// What a line is about: topology and keys, routing and keys, and virtual channels.
type Case = ((&'static str, String), (&'static str, &'static str), u16);

/// The numbers in a text, in their order.
fn numbers(text: &str) -> Vec<u32> {
    text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

fn case(title: &str) -> Case {
    let virtual_channels = |text: &str| *numbers(text).last().expect("a number of classes") as u16;
    if title.starts_with("twisted kk2k k=") {
        let parts: Vec<&str> = title.split(',').collect();
        let k = numbers(parts[0])[1..].last().copied().expect("a size");
        return (("twisted-torus", format!("shape = \"kk2k\"\nk = {k}")), ("shortest-vector", ""), virtual_channels(parts[3]));
    }
    if title.starts_with("hxmesh") {
        let all = numbers(title);
        let [a, b, x, y, classes] = all[..] else { panic!("{title}") };
        return (("hxmesh", format!("a = {a}\nb = {b}\nx = {x}\ny = {y}")), ("hxmesh-order", ""), classes as u16);
    }
    if title.starts_with("rail-only 4x4") {
        // The lowest port of a GPU leads to the switch of its domain. Both orders are all shortest paths.
        let keys = match (title.contains("HB first"), virtual_channels(title)) {
            (true, _) => "tie = \"lowest\"\nclasses = \"none\"",
            (false, 1) => "classes = \"none\"",
            (false, _) => "classes = \"topology\"",
        };
        return (("rail-only", "domains = 4\ngpus = 4".to_owned()), ("minimal", keys), virtual_channels(title));
    }
    assert!(title.starts_with("dragonfly a=4 h=2 g=9"), "{title}");
    let arrangement = if title.contains("circulant") { "circulant" } else { "absolute" };
    let keys = if title.contains("Valiant group") { "through = \"group\"" } else { "" };
    (
        ("dragonfly", format!("p = 1\na = 4\nh = 2\ngroups = 9\narrangement = \"{arrangement}\"")),
        ("dragonfly-groups", keys),
        virtual_channels(title),
    )
}

/// Every line: whether the dependencies close a cycle, and how many they are.
#[test]
fn every_verdict_on_virtual_channels_is_found() {
    let (mut lines, mut wrong) = (0, Vec::new());
    for line in VERDICTS.lines() {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [title, _, dependencies, verdict] = parts[..] else { panic!("{line}") };
        let ((topology, keys), (name, parameters), count) = case(title);
        let network = network(topology, &keys);
        let routing = routing(name, parameters, &network).expect("a routing of this network");
        let report = check(&network, routing.as_ref(), &[VirtualChannels { begin: 0, end: count }]);
        assert_eq!((report.coverage, report.unroutable.clone()), (Coverage::Exact, None), "{line}");
        let promised = u32::from(count) >= routing.facts().virtual_channels_required && routing.facts().is_deadlock_free;
        assert!(!promised || report.is_safe(), "{line}");
        let is_free = report.verdict == Verdict::Acyclic;
        if is_free != (verdict == "acyclic") || report.dependencies != u64::from(numbers(dependencies)[0]) {
            wrong.push(format!("{line}: found {} dependencies, free of cycles: {is_free}", report.dependencies));
        }
        lines += 1;
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(lines, 29);
}

/// Where the packets to a destination go from a terminal, under a routing that depends on nothing else.
fn path(network: &Network, routing: &dyn Routing, from: TerminalId, to: TerminalId) -> Vec<(RouterId, u16)> {
    let (mut router, mut path) = (network.injection_port(from).0, Vec::new());
    loop {
        let port = routing.port_to(router, to).expect("one port for each destination");
        match network.destination(network.output_channel(router, port).expect("a connected port")) {
            Endpoint::Terminal(terminal) => {
                assert_eq!(terminal, to);
                return path;
            }
            Endpoint::Router(next, _) => {
                path.push((router, port));
                assert!(path.len() < 20, "{from:?} to {to:?} goes round");
                router = next;
            }
        }
    }
}

/// Under d-mod-k the busiest link over all cyclic shifts carries as many packets as the taper, parallel links included; and the ports up are
/// those that were written down for one tree.
#[test]
fn d_mod_k_sends_shifts_over_different_links() {
    let mut rows = 0;
    for row in VECTORS.lines().filter(|row| row.starts_with("pgft d-mod-k")) {
        let row: Vec<&str> = row.split('"').collect();
        let (shape, question) = row[1].split_once(": ").expect("a shape and what is asked of it");
        let expected = row[2].trim_start_matches(',');
        let keys = shape.replace("] ", "]\n").replace('=', " = ");
        let tree = network("xgft", &keys);
        let routing = routing("nca", "up_port = \"d-mod-k\"", &tree).expect("a tree");
        let terminals = tree.terminal_count();
        if question.starts_with("busiest link") {
            let mut busiest = 0;
            for shift in 1..terminals {
                let mut loads: BTreeMap<(RouterId, u16), u32> = BTreeMap::new();
                for source in 0..terminals {
                    let to = TerminalId((source + shift) % terminals);
                    path(&tree, routing.as_ref(), TerminalId(source), to).into_iter().for_each(|step| *loads.entry(step).or_default() += 1);
                }
                busiest = busiest.max(loads.into_values().max().unwrap_or(0));
            }
            assert_eq!(busiest.to_string(), expected, "{shape}");
        } else {
            // From terminal 63 to the first ones packets go up to the top. Ports up begin behind 4 ports down on level 1, and 4 x 2 on level 2.
            let up = |to: u32| {
                let steps = path(&tree, routing.as_ref(), TerminalId(63), TerminalId(to));
                format!("{}/{}", steps[0].1 - 4, steps[1].1 - 8)
            };
            let found: Vec<String> = (0..16).map(up).collect();
            assert_eq!(found.join(" "), expected);
        }
        rows += 1;
    }
    assert_eq!(rows, 7);
}

/// Every policy of `nca` brings packets home on trees with tapers and parallel links, without a cycle on one virtual channel.
#[test]
fn every_policy_arrives_on_trees_of_any_shape() {
    for (name, keys) in
        [("xgft", "m = [4, 3, 2]\nw = [1, 2, 2]\nparallel = [1, 2, 3]"), ("leaf-spine", "leaves = 4\nspines = 3\ndown = 5\ntrunk = 2")]
    {
        let tree = network(name, keys);
        for policy in ["random", "d-mod-k", "s-mod-k", "straight", "adaptive", "better-of-two"] {
            let routing = routing("nca", &format!("up_port = \"{policy}\""), &tree).expect("a tree");
            let report = check(&tree, routing.as_ref(), &[VirtualChannels { begin: 0, end: 1 }]);
            assert!(report.is_safe() && report.coverage == Coverage::Exact, "{policy}: {}", report.describe(&tree));
        }
    }
}
