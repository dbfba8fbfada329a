//! Properties of prediction on random networks with random routers: no flit is lost, order is kept, no killed copy leaves.
//!
//! Each case draws a network, a routing that is free of deadlock on it, a router and a workload from a seed, and runs it with
//! every predictor that knows the network, every `on_miss` and every kind of switching. The engine's own invariants (`--paranoid`)
//! are balanced all the time.

use crate::common::{Setup, ToTheEnd};
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_model::router::{
    AllocatorParameters, ForwardCopies, OnMiss, PipelineEntry, PredictorMatch, RouterParameters, Switching, VcRelease,
};
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::id::{Port, RouterId, TerminalId};
use kasuri_network::network::{Link, Network, NetworkBuilder};
use kasuri_network::predictor::{EXPRESS, PREDICTORS, hint::Hint};
use kasuri_network::rng::{Purpose, Stream, Streams};
use kasuri_network::routing::per_destination::PerDestination;
use kasuri_network::routing::walk::{Routes, Walker};
use kasuri_network::routing::{ROUTINGS, VirtualChannels};
use kasuri_network::topology::{ChannelParameters, PerDimension};
use kasuri_workload::workload::{Action, Event, Execution, Message, Workload};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Messages that their sources send at drawn moments, and the order in which they arrived.
#[derive(Debug)]
struct Watched {
    /// By terminal, in the order of sending; the token is the place in the list times the terminals plus the terminal.
    messages: Vec<Vec<Message>>,
    /// Cycles before each message.
    pauses: Vec<Vec<u32>>,
    arrived: Mutex<Vec<Message>>,
}

impl Watched {
    fn draw(terminals: u32, stream: &mut Stream) -> Self {
        let (count, longest, pause) = (3 + stream.below(6), 1 + stream.below(9), 1 + stream.below(40));
        let message = |source: u32, place: u32, stream: &mut Stream| Message {
            token: u64::from(place * terminals + source),
            source: TerminalId(source),
            // Few destinations, so that the messages of a pair are many.
            destination: TerminalId((source + 1 + stream.below((terminals - 1).min(3))) % terminals),
            flits: 1 + stream.below(longest),
        };
        let mut of_terminal = |source: u32| (0..count).map(|place| message(source, place, stream)).collect();
        let messages = (0..terminals).map(&mut of_terminal).collect();
        let pauses = (0..terminals).map(|_| (0..count).map(|_| stream.below(pause)).collect()).collect();
        Self { messages, pauses, arrived: Mutex::default() }
    }

    fn flits(&self) -> u64 {
        self.messages.iter().flatten().map(|message| u64::from(message.flits)).sum()
    }

    fn all(&self) -> impl Iterator<Item = Message> {
        self.messages.iter().flatten().copied()
    }
}

impl Workload for Watched {
    fn messages(&self) -> u64 {
        self.all().count() as u64
    }

    fn each_message(&self, each: &mut dyn FnMut(&Message)) {
        self.messages.iter().flatten().for_each(each);
    }

    fn longest_message(&self) -> u32 {
        self.all().map(|message| message.flits).max().unwrap_or(1)
    }

    fn begin(&self, _streams: &Streams) -> Box<dyn Execution + '_> {
        Box::new(Pass { watched: self })
    }
}

#[derive(Debug)]
struct Pass<'w> {
    watched: &'w Watched,
}

impl Pass<'_> {
    /// Terminal and place of a token.
    fn of_token(&self, token: u64) -> (usize, usize) {
        let terminals = self.watched.messages.len();
        (token as usize % terminals, token as usize / terminals)
    }

    fn pause_before(&self, terminal: usize, place: usize, actions: &mut Vec<Action>) {
        if let Some(message) = self.watched.messages[terminal].get(place) {
            actions.push(Action::Compute { token: message.token, cycles: f64::from(self.watched.pauses[terminal][place]) });
        }
    }
}

impl Execution for Pass<'_> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        (0..self.watched.messages.len()).for_each(|terminal| self.pause_before(terminal, 0, actions));
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Sent(_) => {}
            Event::Computed(token) => {
                let (terminal, place) = self.of_token(token);
                actions.push(Action::Send(self.watched.messages[terminal][place]));
                self.pause_before(terminal, place + 1, actions);
            }
            Event::Arrived(token) => {
                let (terminal, place) = self.of_token(token);
                self.watched.arrived.lock().unwrap().push(self.watched.messages[terminal][place]);
            }
        }
    }
}

/// A tree of routers, and chords between them; a terminal or two each.
fn graph(stream: &mut Stream, chords: u32) -> Network {
    let routers = 4 + stream.below(7);
    let mut links: Vec<(u32, u32)> = (1..routers).map(|router| (router, stream.below(router))).collect();
    for _ in 0..chords {
        let one = stream.below(routers);
        links.push((one, (one + 1 + stream.below(routers - 1)) % routers));
    }
    let terminals: Vec<u32> = (0..routers).map(|_| 1 + stream.below(2)).collect();
    let mut ports = vec![0usize; routers as usize];
    let mut next = |router: u32| {
        ports[router as usize] += 1;
        (RouterId(router), (ports[router as usize] - 1) as Port)
    };
    let links: Vec<_> = links.into_iter().map(|(one, other)| (next(one), next(other))).collect();
    let terminals: Vec<_> = (0..routers).flat_map(|router| vec![router; terminals[router as usize] as usize]).map(next).collect();
    let mut builder = NetworkBuilder::new(format!("graph of {routers} routers and {} links", links.len()));
    for count in ports {
        builder.add_router(count).unwrap();
    }
    for (one, other) in links {
        builder.add_link(one, other, Link { latency: 1 + stream.below(3), period: 1 + stream.below(2) });
    }
    for (router, port) in terminals {
        builder.add_terminal(router, port, Link { latency: 1 + stream.below(3), period: 1 });
    }
    builder.finish().unwrap()
}

/// A network that is free of deadlock with a routing and that many virtual channels.
fn paths(case: u32, stream: &mut Stream) -> (Option<Network>, Setup, u32) {
    let side = |stream: &mut Stream| 2 + stream.below(3);
    let of = |topology: &'static str, keys: String, routing: (&'static str, &'static str)| Setup {
        topology: (topology, keys),
        routing,
        ..Setup::mesh(&[2])
    };
    let up_ports = ["up_port = \"random\"", "up_port = \"straight\"", "up_port = \"d-mod-k\"", "up_port = \"adaptive\""];
    match case % 7 {
        0 => (
            None,
            of(
                "mesh",
                format!("dimensions = [{}, {}]\nconcentration = {}", side(stream), side(stream), side(stream) - 1),
                ("dimension-order", ""),
            ),
            1,
        ),
        1 => (
            None,
            of("torus", format!("dimensions = [{}, {}]", 1 + side(stream), 1 + side(stream)), ("dimension-order", "tie = \"positive\"")),
            2,
        ),
        2 | 3 => {
            let keys = format!("up = {}\ndown = {}\nlevels = {}", 1 + stream.below(3), 2 + stream.below(2), 1 + stream.below(3));
            (None, of("fat-tree", keys, ("nca", up_ports[stream.below(4) as usize])), 1)
        }
        4 => (None, of("butterfly", format!("radix = 2\nstages = {}", 2 + stream.below(3)), ("destination-tag", "")), 1),
        5 => (None, of("full-mesh", format!("routers = {}\nconcentration = 2", 3 + stream.below(4)), ("minimal", "")), 1),
        _ => {
            let chords = stream.below(2) * stream.below(6);
            (Some(graph(stream, chords)), of("mesh", "dimensions = [2]".to_owned(), ("up-down", "")), 1)
        }
    }
}

fn pipeline(stream: &mut Stream) -> Vec<PipelineEntry> {
    let stage = |name: &str, cycles| PipelineEntry::Timed { stage: name.to_owned(), cycles };
    let computation = 1 + stream.below(4);
    match stream.below(3) {
        0 => vec![stage("RC", computation), stage("VSA", 1), stage("ST", 1)],
        1 => vec![stage("RC", computation), stage("VA", 1), stage("SA", 1), stage("ST", 1 + stream.below(2))],
        _ => {
            let (serial, link) = (1 + stream.below(3), stream.below(2));
            let mut stages = vec![stage("Des", 1), stage("RC", computation), stage("VSA", 1), stage("ST", 1), stage("Ser", serial)];
            stages.extend((link > 0).then(|| stage("LT", link)));
            stages
        }
    }
}

/// Everything but what the properties range over.
fn draw(case: u32) -> Scenario {
    let mut stream = Streams::new(7).get(Purpose::Structure, case);
    let stream = &mut stream;
    let (network, setup, least) = paths(case, stream);
    let latency = 1 + stream.below(3);
    let channels = ChannelParameters {
        channel_latency: PerDimension::All(latency),
        channel_period: PerDimension::All(1 + stream.below(latency)),
        terminal_channel_latency: 1 + stream.below(3),
        terminal_channel_period: 1,
    };
    let per_destination = stream.below(3) == 0;
    let packet_flits = 1 + stream.below(5);
    let allocators = ["islip", "separable-input-first"];
    let router = RouterParameters {
        buffer_flits: packet_flits + stream.below(4),
        pipeline: pipeline(stream),
        lookahead: stream.below(4) == 0,
        credit_delay: stream.below(3),
        vc_release: if stream.below(2) == 0 { VcRelease::Tail } else { VcRelease::TailCredit },
        switch_allocator: AllocatorParameters::Name(allocators[stream.below(2) as usize].to_owned()),
        predictor_match: if stream.below(3) == 0 { PredictorMatch::Exact } else { PredictorMatch::AnyUp },
        virtual_channels: least + stream.below(2),
        ..RouterParameters::default()
    };
    let mut scenario = Setup { channels, router, paranoid: true, seed: u64::from(case), ..setup }.build();
    if let Some(network) = network {
        scenario.network = Arc::new(network);
        let up_down = (kasuri_network::registry::find(ROUTINGS, "up-down").unwrap().parse)(toml::Table::new()).unwrap();
        scenario.routing = Arc::from(up_down.compile(&scenario.network).unwrap());
    }
    let terminals = scenario.network.terminal_count();
    if per_destination {
        scenario.router.vc_per_destination = true;
        scenario.router.virtual_channels = terminals;
        scenario.routing = Arc::new(PerDestination::over(Arc::clone(&scenario.routing)));
    }
    let virtual_channels = VirtualChannels { begin: 0, end: scenario.router.virtual_channels as u16 };
    scenario.classes.clear();
    scenario.workload = Some(ClosedWorkload::new(Arc::new(Watched::draw(terminals, stream)), packet_flits, virtual_channels));
    scenario.max_cycles = 200_000;
    scenario
}

/// Do all packets of a pair of terminals take the same virtual channels, so that they must arrive in their order?
fn has_one_path(scenario: &Scenario) -> bool {
    let available = scenario.workload.as_ref().unwrap().parts[0].virtual_channels;
    let paths = scenario.possible_routing();
    let mut walker = Walker::new(&scenario.network, &*paths, available);
    let mut routes = Routes::default();
    (0..scenario.network.terminal_count()).map(TerminalId).all(|destination| {
        walker.walk(destination, &mut routes).unwrap();
        let enters_by_one = scenario.router.entering(destination, available).count() == 1;
        let goes_by_one = (0..routes.places.len() as u32).all(|place| {
            let steps = routes.steps_of(place);
            steps.iter().all(|step| step.channel == steps[0].channel && step.virtual_channels == steps[0].virtual_channels)
                && steps[0].virtual_channels.count() == 1
        });
        enters_by_one && goes_by_one
    })
}

/// Runs a scenario with the messages of its case and returns what arrived too.
fn run(scenario: &Scenario, case: u32) -> (Outcome, Vec<Message>) {
    let mut scenario = scenario.clone();
    let mut stream = Streams::new(11).get(Purpose::Start, case);
    let watched = Arc::new(Watched::draw(scenario.network.terminal_count(), &mut stream));
    let part = scenario.workload.as_ref().unwrap().parts[0];
    scenario.workload = Some(ClosedWorkload::new(Arc::clone(&watched) as Arc<dyn Workload>, part.packet_flits, part.virtual_channels));
    let described = || format!("case {case}, {}, {:?}", scenario.network.name(), scenario.router);
    let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut ToTheEnd).unwrap_or_else(|error| panic!("{error}: {}", described()));
    assert_eq!(outcome.status, Status::Completed, "{}", described());
    let arrived = watched.arrived.lock().unwrap().clone();
    let (mut sent, mut received): (Vec<u64>, Vec<u64>) = (watched.all().map(|message| message.token).collect(), Vec::new());
    received.extend(arrived.iter().map(|message| message.token));
    sent.sort_unstable();
    received.sort_unstable();
    assert_eq!(sent, received, "{}", described());
    assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), watched.flits(), "{}", described());
    (outcome, arrived)
}

/// The messages of each pair of terminals arrive as they were sent: their tokens rise.
fn assert_order(arrived: &[Message], described: &str) {
    let mut last = BTreeMap::new();
    for message in arrived {
        let before = last.insert((message.source, message.destination), message.token);
        assert!(before.is_none_or(|before| before < message.token), "{message:?} after {before:?}: {described}");
    }
}

const MISSES: [OnMiss; 3] = [OnMiss::Kill, OnMiss::Hint, OnMiss::Forward];
const SWITCHINGS: [Switching; 3] = [Switching::Wormhole, Switching::VirtualCutThrough, Switching::StoreAndForward];

/// The predictors that know a network, with each `on_miss` that does.
fn predictions(scenario: &Scenario) -> Vec<(&'static str, OnMiss)> {
    let network = &*scenario.network;
    // Express packets go first where a flit crosses a router as a whole.
    let is_serial = scenario.pipeline.serialisation_cycles + scenario.pipeline.link_cycles > 0;
    let knows = |name: &str| kasuri_network::predictor::build(name, network, &kasuri_network::predictor::Options::default()).is_ok();
    let names = PREDICTORS.iter().map(|entry| entry.name).filter(|name| knows(name) && !(is_serial && *name == EXPRESS));
    let misses = MISSES.into_iter().filter(|&on_miss| on_miss != OnMiss::Hint || Hint::of(network).is_ok());
    names.flat_map(|name| misses.clone().map(move |on_miss| (name, on_miss))).collect()
}

/// What the properties were shown on.
#[derive(Debug, Default)]
struct Seen {
    ordered: u32,
    one_path: u32,
    hits: u64,
    refused: u64,
    wasted: u64,
}

/// One prediction on one scenario, against the outcome without it.
fn check(scenario: &Scenario, case: u32, without: &Outcome, seen: &mut Seen) {
    let (outcome, arrived) = run(scenario, case);
    let prediction = outcome.prediction.as_ref().unwrap();
    let described = format!("case {case}, {}, {:?}", scenario.network.name(), scenario.router);
    assert!(prediction.hits + prediction.refused <= prediction.attempts && prediction.attempts <= prediction.switches, "{described}");
    assert!(prediction.wasted_flits == 0 || scenario.router.on_miss == OnMiss::Forward, "{described}");
    if has_one_path(scenario) {
        assert_order(&arrived, &described);
        seen.ordered += 1;
    }
    // Where the paths do not depend on chance, each channel carries the flits that it carries without prediction, and the copies that leave.
    if has_one_channel_each(scenario) {
        let copies = outcome.channel_flits.iter().zip(&without.channel_flits).map(|(with, without)| with - without);
        assert_eq!(copies.sum::<u64>(), prediction.wasted_flits, "{described}");
        assert_eq!(outcome.hops.mean(), without.hops.mean(), "{described}");
        seen.one_path += 1;
    }
    seen.hits += prediction.hits;
    seen.refused += prediction.refused;
    seen.wasted += prediction.wasted_flits;
}

/// Do all packets of a pair of terminals take the same channels?
fn has_one_channel_each(scenario: &Scenario) -> bool {
    let available = scenario.workload.as_ref().unwrap().parts[0].virtual_channels;
    let paths = scenario.possible_routing();
    let mut walker = Walker::new(&scenario.network, &*paths, available);
    let mut routes = Routes::default();
    (0..scenario.network.terminal_count()).map(TerminalId).all(|destination| {
        walker.walk(destination, &mut routes).unwrap();
        (0..routes.places.len() as u32)
            .all(|place| routes.steps_of(place).iter().all(|step| step.channel == routes.steps_of(place)[0].channel))
    })
}

#[test]
fn nothing_is_lost_reordered_or_let_out_on_random_networks() {
    let mut seen = Seen::default();
    for case in 0..126 {
        for switching in SWITCHINGS {
            let mut scenario = draw(case);
            scenario.router.switching = switching;
            let without = run(&scenario, case).0;
            assert_eq!(without.prediction, None);
            for (predictor, on_miss) in predictions(&scenario) {
                (scenario.router.predictor, scenario.router.on_miss) = (predictor.to_owned(), on_miss);
                let until_route = on_miss == OnMiss::Forward && case % 2 == 1;
                scenario.router.forward_copies = until_route.then_some(ForwardCopies::UntilRoute);
                check(&scenario, case, &without, &mut seen);
            }
        }
    }
    // The properties were not shown on nothing.
    assert!(
        seen.ordered > 1_000 && seen.one_path > 1_000 && seen.hits > 100_000 && seen.refused > 100_000 && seen.wasted > 10_000,
        "{seen:?}"
    );
}
