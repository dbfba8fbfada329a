//! Every schedule on random shapes and jobs, counted by code of this file alone: neither the formulas nor `verify` take part.

use crate::common::{network, routing};
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::rng::{Purpose, Stream, Streams};
use kasuri_network::routing::{Choice, CongestionView, Hop, Routing, VirtualChannels};
use kasuri_workload::schedule::{Entry, Job, Plan, SCHEDULES, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CASES: u32 = 200;

/// What is asked of one schedule in one case.
struct Case {
    topology: &'static str,
    parameters: String,
    routing: (&'static str, &'static str),
    /// The most messages that a channel may carry in a phase; `None` where nothing is promised.
    most: Option<u32>,
    /// Terminals of a router that may take part.
    on_a_router: u32,
}

/// A random network that the schedule fits.
fn case(schedule: &str, draw: &mut Stream) -> Case {
    let mut between = |least: u32, most: u32| least + draw.below(most - least + 1);
    let destination = ("minimal", "tie = \"destination\"");
    let positive = ("dimension-order", "tie = \"positive\"");
    let case = |topology, parameters, routing, most, on_a_router| Case { topology, parameters, routing, most, on_a_router };
    match schedule {
        "mlfm" => {
            let (layers, positions, terminals) = (between(1, 5), between(2, 7), between(1, 7));
            let parameters = format!("layers = {layers}\npositions = {positions}\nterminals_per_leaf = {terminals}");
            case("mlfm", parameters, destination, Some(1), positions - 1)
        }
        "oft" => {
            let order = [2, 2, 3, 3, 4][between(0, 4) as usize];
            case("oft", format!("order = {order}\nsides = {}", between(1, 2)), destination, Some(1), u32::MAX)
        }
        "full-mesh" => {
            let (routers, concentration) = (between(2, 9), between(1, 8));
            case("full-mesh", format!("routers = {routers}\nconcentration = {concentration}"), destination, Some(1), routers - 1)
        }
        "hypercube" => {
            let dimensions = vec![2; between(1, 6) as usize];
            case(["mesh", "torus"][between(0, 1) as usize], format!("dimensions = {dimensions:?}"), positive, Some(1), u32::MAX)
        }
        "torus" => {
            let number = between(1, 3);
            let dimensions: Vec<u32> = (0..number).map(|_| between(2, [17, 9, 5][number as usize - 1])).collect();
            let (longest, concentration) = (dimensions.iter().max().unwrap(), between(1, 2));
            // Up to radix 7 each terminal of a router adds one message to a channel.
            let most = (*longest <= 7).then_some(concentration);
            case("torus", format!("dimensions = {dimensions:?}\nconcentration = {concentration}"), positive, most, u32::MAX)
        }
        "general" => {
            let (positions, terminals) = (between(2, 5), between(1, 3));
            let parameters = format!("layers = {}\npositions = {positions}\nterminals_per_leaf = {terminals}", between(1, 3));
            case("mlfm", parameters, destination, Some(1), u32::MAX)
        }
        "shift" => {
            let (d, levels) = (between(2, 4), between(1, 3));
            case("fat-tree", format!("up = {d}\ndown = {d}\nlevels = {levels}"), ("nca", "up_port = \"d-mod-k\""), None, u32::MAX)
        }
        other => panic!("{other} needs a random network here"),
    }
}

/// The whole network where the schedule can serve it, or a random part of what it can.
fn job(network: &Network, on_a_router: u32, draw: &mut Stream) -> Job {
    let mut seen: BTreeMap<RouterId, u32> = BTreeMap::new();
    let mut usable: Vec<TerminalId> = (0..network.terminal_count())
        .map(TerminalId)
        .filter(|&terminal| {
            let Endpoint::Router(router, _) = network.destination(network.injection_channel(terminal)) else { return false };
            let number = seen.entry(router).or_default();
            *number += 1;
            *number <= on_a_router
        })
        .collect();
    let all = usable.len() as u32;
    match draw.below(4) {
        0 if all == network.terminal_count() => Job::All,
        1 => Job::Count(2 + draw.below(all - 1)),
        _ => {
            // The first of a random order.
            (1..usable.len()).for_each(|last| usable.swap(last, draw.below(last as u32 + 1) as usize));
            usable.truncate(2 + draw.below(all - 1) as usize);
            Job::Terminals(usable)
        }
    }
}

/// Answers that nothing depends on: the routings here have no choices.
struct NoChoice;

impl Choice for NoChoice {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        assert_eq!(alternatives, 1);
        0
    }

    fn least(&mut self, alternatives: u32, _cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        self.uniform(alternatives)
    }
}

/// The output ports on the way between two terminals; the last leads to the terminal.
fn way(network: &Network, routing: &dyn Routing, source: TerminalId, destination: TerminalId) -> Vec<(RouterId, u16)> {
    let available = VirtualChannels { begin: 0, end: routing.facts().virtual_channels_required as u16 };
    let mut state = routing.initial_state(source, destination, &mut NoChoice);
    let (mut ports, mut virtual_channel) = (Vec::new(), 0);
    let mut at = network.destination(network.injection_channel(source));
    while let Endpoint::Router(router, input) = at {
        assert!(ports.len() < 100);
        let hop = Hop { router, input, virtual_channel, source, destination, available };
        let mut candidates = Vec::new();
        routing.route(&hop, &mut state, &mut NoChoice, &mut candidates);
        assert_eq!(candidates.len(), 1);
        ports.push((router, candidates[0].port));
        virtual_channel = candidates[0].virtual_channels.begin;
        at = network.destination(network.output_channel(router, candidates[0].port).unwrap());
    }
    assert!(matches!(at, Endpoint::Terminal(terminal) if terminal == destination));
    ports
}

/// By phase, the most messages that leave a router by one port; each terminal sends and receives one at most.
fn loads(network: &Network, routing: &dyn Routing, Plan { terminals, schedule }: &Plan) -> Vec<u32> {
    let ranks = terminals.len() as u32;
    let mut served = BTreeSet::new();
    let count_phase = |phase| {
        let (mut load, mut receivers) = (BTreeMap::new(), BTreeSet::new());
        for rank in 0..ranks {
            let Some(peer) = schedule.destination(rank, phase) else { continue };
            assert!(peer < ranks && peer != rank && receivers.insert(peer), "phase {phase}, rank {rank}");
            assert_eq!(schedule.source(peer, phase), Some(rank));
            assert!(served.insert((rank, peer)), "phase {phase}: {rank} sends to {peer} again");
            for port in way(network, routing, terminals[rank as usize], terminals[peer as usize]) {
                *load.entry(port).or_insert(0) += 1;
            }
        }
        // Nobody receives from anybody who does not send to it.
        assert!((0..ranks).all(|rank| schedule.source(rank, phase).is_some() == receivers.contains(&rank)));
        load.into_values().max().unwrap_or(0)
    };
    let loads = (0..schedule.phases()).map(count_phase).collect();
    assert_eq!(served.len() as u64, u64::from(ranks) * u64::from(ranks - 1));
    loads
}

fn check(entry: &Entry, case: &Case, job: &Job, network: &Arc<Network>) {
    let routing = routing(case.routing.0, case.routing.1, network).unwrap();
    let plan = entry.plan(network, routing.as_ref(), job).unwrap();
    let place = format!("{} on {} for {job:?}", entry.name, network.name());
    let counted = loads(network, routing.as_ref(), &plan);
    if let Some(most) = case.most {
        assert!(counted.iter().all(|&load| load <= most), "{place}: {counted:?}");
    }
    let verified = verify(network, routing.as_ref(), &plan).unwrap();
    assert_eq!(verified.loads, counted, "{place}");
    assert!(verified.is_complete() && verified.time() >= verified.lower_bound(), "{place}");
}

#[test]
fn every_schedule_serves_every_pair_of_any_job_once() {
    for (number, entry) in (0..).zip(SCHEDULES) {
        let mut draw = Streams::new(7).get(Purpose::Structure, number);
        for _ in 0..CASES {
            let case = case(entry.name, &mut draw);
            let network = network(case.topology, &case.parameters);
            assert!((entry.fits)(&network), "{}", entry.name);
            let job = job(&network, case.on_a_router, &mut draw);
            check(entry, &case, &job, &network);
        }
    }
}
