use super::hint::Hint;
use super::tree::Tree;
use super::*;
use crate::id::{Port, RouterId, TerminalId};
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
    let problem = build("static-strait", &tree(2, 2, 2), &Options::default()).err().unwrap();
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
        let (Ok(mut one), Ok(mut same)) =
            (build(entry.name, network, &Options::default()), build(entry.name, network, &Options::default()))
        else {
            continue;
        };
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

/// An express way leads past the routers between: none past the first router, past the top of a tree, nor down.
#[test]
fn express_ways_lead_past_the_routers_between() {
    let network = tree(4, 4, 3);
    let (express, straight) =
        (build("express", &network, &Options::default()).unwrap(), build("static-straight", &network, &Options::default()).unwrap());
    let shape = Tree::of(&network).unwrap();
    for (router, input) in routers(&network).flat_map(|router| (0..network.port_count(router) as Port).map(move |input| (router, input))) {
        let port = network.port_index(router, input);
        let expected = if shape.level(router) == 2 && input < 4 { straight.predict(port) } else { None };
        assert_eq!(express.predict(port), expected, "router {router:?}, input {input}");
    }
    let mesh = network_of_three();
    let express = build("express", &mesh, &Options::default()).unwrap();
    let past = |router, input| express.predict(mesh.port_index(RouterId(router), input));
    // In the middle of three routers: on from left to right and back; from its terminal, and at either end, nothing.
    assert_eq!((past(1, 0), past(1, 1), past(1, 2)), (Some(1), Some(0), None));
    assert_eq!((past(0, 0), past(2, 1)), (None, None));
    let problem = build("express", &network_of_stages(), &Options::default()).err().unwrap();
    assert!(problem.contains("fat trees, meshes and tori"), "{problem}");
    assert!(check("by-level", &Options { levels: Some(vec!["express".to_owned()]), ..Options::default() }).is_err());
}

fn network_of_three() -> Arc<Network> {
    network("mesh", "dimensions = [3]")
}

fn network_of_stages() -> Arc<Network> {
    network("butterfly", "radix = 2\nstages = 3")
}

/// With p = q the predicted connections of a router join each input with another output; where p < q, inputs share the paths up.
#[test]
fn straight_predictions_are_a_bijection_in_every_switch() {
    for (network, switches) in [(tree(4, 4, 3), 48), (tree(2, 2, 4), 32), (tree(16, 16, 2), 32)] {
        let predictor = build("static-straight", &network, &Options::default()).unwrap();
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

/// Each fold is a permutation of the top's ports: `next` one cycle of all, without a port of its own; `pairs` swaps; `back` leaves
/// each port by itself. Below the top nothing changes.
#[test]
fn each_fold_is_a_bijection_at_the_top() {
    let network = tree(4, 4, 3);
    let labels = Tree::of(&network).unwrap();
    let folded = |fold| build("static-straight", &network, &Options { fold, ..Options::default() }).unwrap();
    let usual = folded(None);
    for (fold, at_top) in [(Fold::Next, [1, 2, 3, 0]), (Fold::Pairs, [1, 0, 3, 2]), (Fold::Back, [0, 1, 2, 3])] {
        let predictor = folded(Some(fold));
        for router in routers(&network) {
            let ports = 0..network.port_count(router) as Port;
            let of = |predictor: &dyn Predictor| {
                ports.clone().map(|input| predictor.predict(network.port_index(router, input)).unwrap()).collect::<Vec<_>>()
            };
            let outputs = of(&*predictor);
            if labels.is_top(router) {
                assert_eq!(outputs, at_top, "{fold:?}");
            } else {
                assert_eq!(outputs, of(&*usual));
            }
            let mut sorted = outputs;
            sorted.sort_unstable();
            assert_eq!(sorted, ports.collect::<Vec<_>>(), "{fold:?}");
        }
    }
}

#[test]
fn folds_are_refused_where_nothing_is_folded() {
    let problem = |network: &Network, fold| {
        build("static-straight", network, &Options { fold: Some(fold), ..Options::default() }).err().unwrap_or_default()
    };
    assert!(problem(&tree(3, 3, 2), Fold::Pairs).contains("an even number of ports at the top, and there are 3"));
    assert!(problem(&network("mesh", "dimensions = [3, 3]"), Fold::Next).contains("the top of a fat tree"));
    assert_eq!(problem(&tree(3, 3, 2), Fold::Back), "");
}

/// A line of the table of a period is wanted for each context that occurs: the period 1 1 2 has two with one output remembered, of
/// which 1 is followed by 1 and by 2, and three with two, each of which has one follower. With one line in all nothing can be told
/// apart.
#[test]
fn longer_histories_and_more_lines_tell_more_contexts_apart() {
    let network = tree(4, 4, 2);
    let rate = |entries, history, period: &[Port]| {
        let options = Options { entries: Some(entries), history: Some(history), ..Options::default() };
        let mut predictor = build("finite-context", &network, &options).unwrap();
        let mut hits = 0;
        for (step, &output) in period.iter().cycle().take(3000).enumerate() {
            hits += u32::from(step >= 1500 && predictor.predict(3) == Some(output));
            predictor.learn(3, output);
        }
        f64::from(hits) / 1500.0
    };
    assert!(rate(64, 1, &[1, 1, 2]) < 0.7);
    assert_eq!(rate(64, 2, &[1, 1, 2]), 1.0);
    assert!(rate(64, 3, &[1, 1, 1, 1, 2]) < 0.9);
    assert_eq!(rate(1024, 4, &[1, 1, 1, 1, 2]), 1.0);
    assert!(rate(1, 4, &[1, 2]) < 0.6);
    assert_eq!(rate(2, 1, &[1, 2]), 1.0);
}

/// At each level the predictor that the list names, and none where it says so.
#[test]
fn each_level_has_the_predictor_that_the_list_names() {
    let network = tree(4, 4, 3);
    let labels = Tree::of(&network).unwrap();
    let levels = |names: [&str; 3]| Options { levels: Some(names.map(String::from).to_vec()), ..Options::default() };
    let mixed = build("by-level", &network, &levels(["up-priority", "none", "static-straight"])).unwrap();
    assert!(mixed.is_fixed());
    let [up, straight] = ["up-priority", "static-straight"].map(|name| build(name, &network, &Options::default()).unwrap());
    for router in routers(&network) {
        for input in (0..network.port_count(router) as Port).map(|input| network.port_index(router, input)) {
            let expected = [up.predict(input), None, straight.predict(input)][labels.level(router) as usize - 1];
            assert_eq!(mixed.predict(input), expected);
        }
    }
    let mut learning = build("by-level", &network, &levels(["none", "latest-port", "finite-context"])).unwrap();
    assert!(!learning.is_fixed());
    for (router, guess) in [(0, None), (16, Some(2)), (32, Some(2))] {
        let input = network.port_index(RouterId(router), 1);
        learning.learn(input, 2);
        learning.learn(input, 2);
        learning.learn(input, 2);
        assert_eq!(learning.predict(input), guess, "router {router}");
    }
    assert!(build("by-level", &network, &levels(["none"; 3])).unwrap().predict(0).is_none());
    let two = Options { levels: Some(vec!["none".to_owned(); 2]), ..Options::default() };
    assert!(build("by-level", &network, &two).err().unwrap().contains("has 2 predictors, and there are 3 levels"));
}

#[test]
fn what_a_predictor_does_not_take_is_refused_by_its_key() {
    let levels = |name: &str| Some(vec![name.to_owned(); 2]);
    for (name, options, key, wanted) in [
        ("latest-port", Options { fold: Some(Fold::Next), ..Options::default() }, "predictor_fold", "only to static-straight"),
        ("none", Options { entries: Some(4), ..Options::default() }, "predictor_entries", "only to finite-context"),
        ("finite-context", Options { entries: Some(1025), ..Options::default() }, "predictor_entries", "1 to 1024"),
        ("finite-context", Options { history: Some(0), ..Options::default() }, "predictor_history", "1 to 4"),
        ("static-straight", Options { levels: levels("none"), ..Options::default() }, "predictor_levels", "only to by-level"),
        ("by-level", Options { levels: levels("oracle"), ..Options::default() }, "predictor_levels", "for all levels"),
        ("by-level", Options { levels: levels("best"), ..Options::default() }, "predictor_levels", "no predictor best"),
        ("by-level", Options::default(), "predictor", "predictor_levels = "),
        ("table", Options::default(), "predictor", "predictor_table = "),
    ] {
        let (found, problem) = check(name, &options).unwrap_err();
        assert!(found == key && problem.contains(wanted), "{name}: {found}: {problem}");
    }
    let nested = Options { levels: levels("finite-context"), entries: Some(4), history: Some(3), ..Options::default() };
    assert_eq!(check("by-level", &nested), Ok(()));
}

#[test]
fn a_table_says_what_is_guessed_and_where_it_is_wrong() {
    let network = network("mesh", "dimensions = [3, 2]");
    let of = |text: &str| {
        let table = Table::read("guesses.csv", text)?;
        build("table", &network, &Options { table: Some(std::sync::Arc::new(table)), ..Options::default() })
    };
    let predictor = of("# straight on\nrouter, input, output\n1,1,0\n\n1,0,1\n4,4,1\n").unwrap();
    assert!(predictor.is_fixed());
    let at = |router, input| predictor.predict(network.port_index(RouterId(router), input));
    assert_eq!((at(1, 1), at(1, 0), at(4, 4), at(0, 0)), (Some(0), Some(1), Some(1), None));
    for (text, wanted) in [
        ("", "guesses.csv: begins with ``"),
        ("input,router,output\n", "the first line must be `router,input,output`"),
        ("router,input,output\n1,2\n", "guesses.csv:2: `1,2` has 2 values"),
        ("router,input,output\n\n1,x,2\n", "guesses.csv:3: input is `x`"),
        ("router,input,output\n6,0,0\n", "guesses.csv:2: there is no router 6; there are 0 to 5"),
        ("router,input,output\n1,0,9\n", "guesses.csv:2: router 1 has no output port 9"),
        ("router,input,output\n0,1,0\n", "guesses.csv:2: router 0 has no input port 1"),
        ("router,input,output\n1,0,1\n1,0,4\n", "guesses.csv:3: router 1 has a guess for input port 0 already"),
    ] {
        let problem = of(text).err().unwrap();
        assert!(problem.contains(wanted), "{text}: {problem}");
    }
}

#[test]
fn up_priority_guesses_below_the_top_and_from_below_only() {
    let network = tree(2, 4, 3);
    let predictor = build("up-priority", &network, &Options::default()).unwrap();
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
    let predictor = build("static-straight", &network, &Options::default()).unwrap();
    let at = |router: u32, input: Port| predictor.predict(network.port_index(RouterId(router), input));
    assert_eq!((at(5, 0), at(5, 1), at(5, 2), at(5, 3), at(5, 4)), (Some(1), Some(0), Some(3), Some(2), None));
    assert_eq!((at(4, 0), at(7, 1)), (None, None));
}

/// Router (x, y) of a 4x3 mesh. From the lower x at x = 1: 2 columns of 3 lie ahead, 2 + 1 routers in the column: straight. At
/// x = 3: 1 above, 1 below, 1 here: the lowest port. A terminal at x = 0 has 9 destinations at higher x, 1 + 1 + 1 in its column.
#[test]
fn static_xy_takes_the_greatest_share_of_destinations() {
    let network = network("mesh", "dimensions = [4, 3]");
    let predictor = build("static-xy", &network, &Options::default()).unwrap();
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
        let problem = build(name, &full_mesh, &Options::default()).err().unwrap();
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
        let mut predictor = build(name, &network, &Options::default()).unwrap();
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
