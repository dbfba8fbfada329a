//! The general scheduler on random terminals of many networks, whole and with links that are dead.

#![allow(clippy::print_stdout, reason = "the ratios are worth seeing, with --nocapture")]

use crate::common::{network, routing};
use kasuri_network::id::{ChannelId, Port, RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network, NetworkBuilder};
use kasuri_network::rng::{Purpose, Stream, Streams};
use kasuri_network::routing::Routing;
use kasuri_workload::schedule::{Counted, Job, Plan, SCHEDULES, ScheduleError, Verification, default_for, fastest, verify};
use std::sync::Arc;

const STATIC: (&str, &str) = ("minimal", "tie = \"destination\"");
const D_MOD_K: (&str, &str) = ("nca", "up_port = \"d-mod-k\"");
const POSITIVE: (&str, &str) = ("dimension-order", "tie = \"positive\"");

/// The families, two sizes each, and the routing in use.
const NETWORKS: [(&str, &str, (&str, &str)); 10] = [
    ("fat-tree", "up = 6\ndown = 6\nlevels = 2", D_MOD_K),
    ("fat-tree", "up = 4\ndown = 4\nlevels = 3", D_MOD_K),
    ("mlfm", "degree = 4", STATIC),
    ("mlfm", "layers = 3\npositions = 5\nterminals_per_leaf = 4", STATIC),
    ("oft", "order = 3", STATIC),
    ("oft", "order = 2\nsides = 2", STATIC),
    ("torus", "dimensions = [8, 8]", POSITIVE),
    ("torus", "dimensions = [4, 4, 4]", POSITIVE),
    ("dragonfly", "terminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2", STATIC),
    ("dragonfly", "terminals_per_router = 2\nrouters_per_group = 3\nglobal_channels = 1", STATIC),
];

fn general(network: &Network, routing: &dyn Routing, job: &Job) -> Result<Plan, ScheduleError> {
    SCHEDULES.iter().find(|entry| entry.name == "general").expect("a schedule of the table").plan(network, routing, job)
}

/// Every pair once and no two messages on a channel; the phases over the bound.
#[track_caller]
fn ratio(network: &Network, routing: &dyn Routing, job: &Job) -> f64 {
    let found: Verification = verify(network, routing, &general(network, routing, job).unwrap()).unwrap();
    assert!(found.is_complete() && found.is_contention_free(), "{}: {:?}", network.name(), found.shortfall);
    found.loads.len() as f64 / found.lower_bound() as f64
}

/// From 3 terminals on, as many as the network has at most.
fn some_terminals(network: &Network, stream: &mut Stream) -> Job {
    let mut terminals: Vec<TerminalId> = (0..network.terminal_count()).map(TerminalId).collect();
    let count = 3 + stream.below(network.terminal_count() - 2);
    for i in 0..count {
        terminals.swap(i as usize, (i + stream.below(network.terminal_count() - i)) as usize);
    }
    terminals.truncate(count as usize);
    Job::Terminals(terminals)
}

/// At most 1.3 times the bound for half of them and 1.6 times for all.
#[track_caller]
fn assert_near_minimal(mut ratios: Vec<f64>) {
    ratios.sort_by(f64::total_cmp);
    let (median, worst) = (ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    println!("{} jobs: phases over the bound {median:.3} in the median, {worst:.3} at worst", ratios.len());
    assert!(median <= 1.3 && worst <= 1.6, "median {median}, worst {worst}");
}

#[test]
fn random_terminals_have_near_minimal_phases() {
    let mut stream = Streams::new(1).get(Purpose::Structure, 0);
    let mut ratios = Vec::new();
    for (topology, parameters, (algorithm, options)) in NETWORKS {
        let network = network(topology, parameters);
        let routing = routing(algorithm, options, &network).unwrap();
        ratios.extend((0..20).map(|_| ratio(&network, routing.as_ref(), &some_terminals(&network, &mut stream))));
    }
    assert_eq!(ratios.len(), 200);
    assert_near_minimal(ratios);
}

/// The ends of a channel between routers, once for the two directions of a link.
fn link(network: &Network, channel: ChannelId) -> Option<(ChannelId, (RouterId, Port), (RouterId, Port))> {
    match (network.source(channel), network.destination(channel)) {
        (Endpoint::Router(from, output), Endpoint::Router(to, input)) if from < to => Some((channel, (from, output), (to, input))),
        _ => None,
    }
}

/// The network without some of its links; `None` if that cuts it in two.
fn without(network: &Network, stream: &mut Stream, dead: u32) -> Option<(Arc<Network>, Box<dyn Routing>)> {
    let mut links: Vec<_> = (0..network.channel_count()).filter_map(|channel| link(network, ChannelId(channel))).collect();
    for _ in 0..dead {
        links.remove(stream.below(links.len() as u32) as usize);
    }
    let mut builder = NetworkBuilder::new("dead links");
    for router in (0..network.router_count()).map(RouterId) {
        builder.add_router(network.port_count(router) as usize).unwrap();
    }
    links.into_iter().for_each(|(channel, one, other)| builder.add_link(one, other, network.link(channel)));
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        let (router, port) = network.injection_port(terminal);
        builder.add_terminal(router, port, network.link(network.injection_channel(terminal)));
    }
    let network = Arc::new(builder.finish().unwrap());
    let routing = routing("minimal", "tie = \"destination\"\nclasses = \"none\"", &network)?;
    Some((network, routing))
}

#[test]
fn networks_with_dead_links_have_near_minimal_phases() {
    let mut stream = Streams::new(2).get(Purpose::Structure, 0);
    let mut ratios = Vec::new();
    for (topology, parameters, _) in NETWORKS {
        let whole = network(topology, parameters);
        let mut found = 0;
        while found < 5 {
            if let Some((network, routing)) = without(&whole, &mut stream, 1 + found) {
                ratios.push(ratio(&network, routing.as_ref(), &some_terminals(&network, &mut stream)));
                found += 1;
            }
        }
    }
    assert_eq!(ratios.len(), 50);
    assert_near_minimal(ratios);
}

/// Where shifts are free of contention there is nothing to search for.
#[test]
fn the_phases_of_a_whole_tree_are_as_few_as_those_of_shifts() {
    let tree = network("fat-tree", "up = 6\ndown = 6\nlevels = 2");
    let routing = routing(D_MOD_K.0, D_MOD_K.1, &tree).unwrap();
    assert!((ratio(&tree, routing.as_ref(), &Job::All) - 1.0).abs() < 1e-12);
}

#[test]
fn the_same_job_has_the_same_phases() {
    let torus = network("torus", "dimensions = [5, 5]");
    let routing = routing(POSITIVE.0, POSITIVE.1, &torus).unwrap();
    let job = Job::Terminals([0, 3, 4, 9, 11, 17, 20, 24].map(TerminalId).to_vec());
    let list = || {
        let schedule = general(&torus, routing.as_ref(), &job).unwrap().schedule;
        (0..schedule.phases())
            .flat_map(|phase| (0..8).map(|rank| schedule.destination(rank, phase)).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    assert_eq!(list(), list());
}

#[test]
fn routes_must_be_fixed() {
    let mesh = network("fat-tree", "up = 2\ndown = 2\nlevels = 3");
    let drawing = routing("nca", "", &mesh).unwrap();
    let error = general(&mesh, drawing.as_ref(), &Job::All).unwrap_err();
    assert!(matches!(error, ScheduleError::Routes(_)) && error.to_string().contains("the routing has a choice"), "{error}");
}

/// Half the terminals of a large tree and the whole of a torus; run by `make verify`.
#[test]
#[ignore = "takes long: make verify"]
fn a_thousand_terminals_take_less_than_thirty_seconds() {
    for (topology, parameters, (algorithm, options), terminals) in [
        ("fat-tree", "up = 12\ndown = 12\nlevels = 3", D_MOD_K, 1000),
        ("torus", "dimensions = [10, 10, 10]", POSITIVE, 1000),
        ("dragonfly", "terminals_per_router = 4\nrouters_per_group = 8\nglobal_channels = 4", STATIC, 1000),
    ] {
        let network = network(topology, parameters);
        let routing = routing(algorithm, options, &network).unwrap();
        let stride = network.terminal_count() / terminals;
        let job = Job::Terminals((0..terminals).map(|i| TerminalId(i * stride)).collect());
        let begin = processor_seconds();
        general(&network, routing.as_ref(), &job).unwrap();
        let seconds = processor_seconds() - begin;
        println!("{}: {seconds:.1} s", network.name());
        let found = ratio(&network, routing.as_ref(), &job);
        println!("{}: {found:.3} of the bound", network.name());
        assert!(seconds < 30.0 && found <= 1.6, "{}: {seconds} s, {found}", network.name());
    }
}

/// Processor time of this process.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = text.rsplit(')').next().expect("the fields behind the name").split_whitespace().collect();
    fields[11].parse::<f64>().expect("clock ticks, a hundred a second") / 100.0
}

/// A network without a formula would be served by shifts, which meet on its channels; the schedule that is taken unasked is never slower than
/// that or than the search, and keeps the formula where that is as fast as anything can be. Jobs that are too large are not searched.
#[test]
fn the_schedule_taken_unasked_is_the_fastest_known() {
    for (name, parameters, (algorithm, tie)) in
        NETWORKS.into_iter().chain([("slim-fly", "order = 4\nconcentration = 2", STATIC), ("mesh", "dimensions = [4, 4]", POSITIVE)])
    {
        let network = network(name, parameters);
        let routing = routing(algorithm, tie, &network).unwrap();
        let time = |found: &Counted| (found.entry.name, found.counted.time());
        let own = Counted::of(default_for(&network), &network, routing.as_ref(), &Job::All).unwrap();
        let taken = fastest(&network, routing.as_ref(), &Job::All, 200).unwrap();
        let searched = ratio(&network, routing.as_ref(), &Job::All) * taken.counted.lower_bound() as f64;
        assert!(taken.counted.time() <= own.counted.time() && taken.counted.is_complete(), "{:?} {:?}", time(&taken), time(&own));
        if own.counted.time() == own.counted.lower_bound() {
            assert_eq!(taken.entry.name, own.entry.name);
        } else {
            assert!(taken.counted.time() as f64 <= searched + 1e-9, "{:?}, not {searched}, on {}", time(&taken), network.name());
        }
        assert_eq!(time(&fastest(&network, routing.as_ref(), &Job::All, 0).unwrap()), time(&own));
    }
}
