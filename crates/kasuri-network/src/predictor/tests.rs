use super::hint::Hint;
use super::tree::Tree;
use super::*;
use crate::id::{RouterId, TerminalId};
use crate::registry::find;
use crate::routing::{Hop, ROUTINGS, Routing, VirtualChannels, every_hop};
use crate::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};
use std::sync::Arc;

fn network(topology: &str, keys: &str) -> Arc<Network> {
    let topology = (find(TOPOLOGIES, topology).unwrap().parse)(keys.parse().unwrap()).unwrap();
    let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 1 };
    Arc::new(topology.build(&context).unwrap())
}

fn tree(up: u32, down: u32, levels: u32) -> Arc<Network> {
    network("fat-tree", &format!("up = {up}\ndown = {down}\nlevels = {levels}"))
}

fn routers(network: &Network) -> impl Iterator<Item = RouterId> + use<> {
    (0..network.router_count()).map(RouterId)
}

#[test]
fn every_predictor_is_described_once() {
    for (position, entry) in PREDICTORS.iter().enumerate() {
        assert!(entry.name.bytes().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-'), "{entry:?}");
        assert!(!entry.summary.is_empty() && !entry.source.is_empty() && entry.name != NONE, "{entry:?}");
        assert!(PREDICTORS[..position].iter().all(|other| other.name != entry.name), "{entry:?}");
    }
    let problem = build("static-strait", &tree(2, 2, 2)).err().unwrap();
    assert!(problem.contains("none, static-straight"), "{problem}");
}

/// What an input port is taught: at time `step` the output with the number of a small generator, of those that have a channel.
fn lesson(network: &Network, router: RouterId, step: usize) -> Port {
    let outputs: Vec<Port> =
        (0..network.port_count(router) as Port).filter(|&port| network.output_channel(router, port).is_some()).collect();
    outputs[(step * step + step / 3) % outputs.len()]
}

/// Whatever it has learnt, a predictor guesses ports that have a channel, the same for the same history; what one input port learns
/// changes no other one's guess, and one that says that it never changes does not.
#[test]
fn every_predictor_guesses_what_is_there_by_its_own_history() {
    let networks = [tree(2, 3, 3), network("mesh", "dimensions = [3, 3]"), network("butterfly", "radix = 2\nstages = 3")];
    for (network, entry) in networks.iter().flat_map(|network| PREDICTORS.iter().map(move |entry| (network, entry))) {
        let (Ok(mut one), Ok(mut same)) = (build(entry.name, network), build(entry.name, network)) else { continue };
        let (router, taught) = (RouterId(1), network.port_index(RouterId(1), 0));
        let guesses = |predictor: &dyn Predictor| (0..inputs(network)).map(|input| predictor.predict(input)).collect::<Vec<_>>();
        let before = guesses(&*one);
        for step in 0..200 {
            let output = lesson(network, router, step);
            one.learn(taught, output);
            same.learn(taught, output);
            let guess = one.predict(taught);
            assert_eq!(guess, same.predict(taught), "{}", entry.name);
            assert!(guess.is_none_or(|port| network.output_channel(router, port).is_some()), "{}: {guess:?}", entry.name);
        }
        let after = guesses(&*one);
        assert!(before.iter().zip(&after).enumerate().all(|(input, (before, after))| input == taught || before == after), "{}", entry.name);
        assert!(!one.is_fixed() || before == after, "{}", entry.name);
    }
}

/// With p = q the predicted connections of a router join each input with another output; where p < q, inputs share the paths up.
#[test]
fn straight_predictions_are_a_bijection_in_every_switch() {
    for (network, switches) in [(tree(4, 4, 3), 48), (tree(2, 2, 4), 32), (tree(16, 16, 2), 32)] {
        let predictor = build("static-straight", &network).unwrap();
        assert_eq!(routers(&network).count(), switches);
        for router in routers(&network) {
            let ports = 0..network.port_count(router) as Port;
            let mut outputs: Vec<Port> = ports.clone().map(|input| predictor.predict(network.port_index(router, input)).unwrap()).collect();
            assert!(ports.clone().all(|input| outputs[usize::from(input)] != input), "no packet leaves as it came");
            outputs.sort_unstable();
            assert_eq!(outputs, ports.collect::<Vec<_>>());
        }
    }
}

#[test]
fn up_priority_guesses_below_the_top_and_from_below_only() {
    let network = tree(2, 4, 3);
    let predictor = build("up-priority", &network).unwrap();
    let labels = Tree::of(&network).unwrap();
    for router in routers(&network) {
        for input in 0..network.port_count(router) as Port {
            let expected = (!labels.is_top(router) && input < 4).then_some(4 + input % 2);
            assert_eq!(predictor.predict(network.port_index(router, input)), expected);
        }
    }
}

/// In the middle of a mesh straight on; at its edge nothing lies straight on.
#[test]
fn straight_in_a_mesh_ends_at_the_edge() {
    let network = network("mesh", "dimensions = [4, 3]");
    let predictor = build("static-straight", &network).unwrap();
    let at = |router: u32, input: Port| predictor.predict(network.port_index(RouterId(router), input));
    assert_eq!((at(5, 0), at(5, 1), at(5, 2), at(5, 3), at(5, 4)), (Some(1), Some(0), Some(3), Some(2), None));
    assert_eq!((at(4, 0), at(7, 1)), (None, None));
}

/// Router (x, y) of a 4x3 mesh. From the lower x at x = 1: 2 columns of 3 lie ahead, 2 + 1 routers in the column: straight. At
/// x = 3: 1 above, 1 below, 1 here: the lowest port. A terminal at x = 0 has 9 destinations at higher x, 1 + 1 + 1 in its column.
#[test]
fn static_xy_takes_the_greatest_share_of_destinations() {
    let network = network("mesh", "dimensions = [4, 3]");
    let predictor = build("static-xy", &network).unwrap();
    let at = |x: u32, y: u32, input: Port| predictor.predict(network.port_index(RouterId(4 * y + x), input));
    assert_eq!(at(1, 1, 1), Some(0));
    assert_eq!(at(3, 1, 1), Some(2));
    assert_eq!(at(3, 2, 1), Some(3));
    assert_eq!(at(0, 0, 4), Some(0));
    assert_eq!(at(2, 2, 3), Some(4), "the column ends here");
}

#[test]
fn a_predictor_refuses_networks_that_it_does_not_know() {
    let full_mesh = network("full-mesh", "routers = 5\nconcentration = 2");
    for (name, names) in
        [("static-straight", "fat trees, meshes, tori and butterflies"), ("up-priority", "fat trees"), ("static-xy", "tori")]
    {
        let problem = build(name, &full_mesh).err().unwrap();
        assert!(problem.contains(names) && problem.contains("full-mesh"), "{problem}");
    }
    assert!(Hint::of(&full_mesh).is_err());
}

/// The predictors that learn are right for ever once a regular stream of outputs has been seen twice.
#[test]
fn learning_predictors_find_a_period() {
    let network = tree(4, 4, 2);
    for (name, period, warmup) in
        [("latest-port", vec![3], 1), ("finite-context", vec![1, 2, 5], 9), ("sampled-pattern", vec![1, 2, 1, 5], 12)]
    {
        let mut predictor = build(name, &network).unwrap();
        for (position, &output) in period.iter().cycle().take(100).enumerate() {
            assert!(position < warmup || predictor.predict(3) == Some(output), "{name} at {position}");
            predictor.learn(3, output);
            assert_eq!(predictor.predict(4), None, "{name}: every input port for itself");
        }
    }
}

fn route(routing: &dyn Routing, network: &Network, router: RouterId, input: Port, source: u32, destination: u32) -> Vec<Port> {
    let hop = Hop {
        router,
        input,
        virtual_channel: 0,
        source: TerminalId(source),
        destination: TerminalId(destination),
        available: VirtualChannels { begin: 0, end: 1 },
    };
    let ports: Vec<Port> = every_hop(routing, &hop, 0).into_iter().map(|(candidates, _)| candidates[0].port).collect();
    assert!(ports.iter().all(|&port| network.output_channel(router, port).is_some()));
    ports
}

/// Of all pairs, at each router that a packet may meet on its way up: the hint is at least the level exactly where it goes up.
#[test]
fn hint_bits_tell_of_every_pair_whether_up_is_right() {
    for (up, down, levels, bits) in [(16, 16, 2, 1), (4, 4, 3, 2), (2, 3, 4, 2), (2, 2, 5, 3)] {
        let network = tree(up, down, levels);
        let routing = (find(ROUTINGS, "nca").unwrap().parse)("up_port = \"straight\"".parse().unwrap()).unwrap().compile(&network).unwrap();
        let hint = Hint::of(&network).unwrap();
        assert_eq!(hint.bits(), bits);
        for (source, destination) in
            (0..network.terminal_count()).flat_map(|one| (0..network.terminal_count()).map(move |other| (one, other)))
        {
            let (mut router, mut input) = network.injection_port(TerminalId(source));
            loop {
                let output = route(&*routing, &network, router, input, source, destination)[0];
                let goes_up = !Tree::of(&network).unwrap().is_top(router) && u32::from(output) >= down;
                let shown = hint.shows_wrong(router, down as Port, TerminalId(source), TerminalId(destination));
                assert_eq!(!shown, goes_up || Tree::of(&network).unwrap().is_top(router), "{source} to {destination} at {router:?}");
                if !goes_up {
                    break;
                }
                let channel = network.output_channel(router, output).unwrap();
                let crate::network::Endpoint::Router(next, port) = network.destination(channel) else { unreachable!() };
                (router, input) = (next, port);
            }
        }
    }
}
