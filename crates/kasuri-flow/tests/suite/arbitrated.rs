//! The arbitrated sharing: lone messages, shares, conservation, deadlock, the same results every time.

use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Command, Controller, Engine, EngineError, Interval, Outcome, Status};
use kasuri_model::router::{RouterParameters, Switching};
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::id::TerminalId;
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::rng::Streams;
use kasuri_network::routing::{ROUTINGS, VirtualChannels};
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, PerDimension, TOPOLOGIES};
use kasuri_workload::workload::{Action, Event, Execution, Message, Workload};
use proptest::prelude::*;
use std::sync::Arc;

/// Runs to the end, in intervals.
struct ToTheEnd(u64);

impl Controller for ToTheEnd {
    fn interval_cycles(&mut self) -> u64 {
        self.0
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.completed { Command::End(Status::Completed) } else { Command::Continue }
    }
}

/// Messages that are all queued after a wait.
#[derive(Debug)]
struct Listed {
    messages: Vec<Message>,
    wait: f64,
}

#[derive(Debug)]
struct Pass<'a>(&'a Listed);

impl Workload for Listed {
    fn messages(&self) -> u64 {
        self.messages.len() as u64
    }

    fn each_message(&self, each: &mut dyn FnMut(&Message)) {
        self.messages.iter().for_each(each);
    }

    fn longest_message(&self) -> u32 {
        self.messages.iter().map(|message| message.flits).max().unwrap_or(1)
    }

    fn begin(&self, _: &Streams) -> Box<dyn Execution + '_> {
        Box::new(Pass(self))
    }
}

impl Execution for Pass<'_> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        actions.push(Action::Compute { token: 0, cycles: self.0.wait });
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        if matches!(event, Event::Computed(_)) {
            actions.extend(self.0.messages.iter().map(|message| Action::Send(*message)));
        }
    }
}

/// What a case is made of.
#[derive(Clone, Debug)]
struct Case {
    topology: (&'static str, &'static str),
    channels: ChannelParameters,
    routing: (&'static str, &'static str),
    router: RouterParameters,
    packet: u32,
    /// `[flow]`.
    options: String,
    /// Source, destination, flits.
    messages: Vec<(u32, u32, u32)>,
    wait: f64,
}

impl Case {
    fn new(topology: (&'static str, &'static str), routing: (&'static str, &'static str), virtual_channels: u32) -> Self {
        Self {
            topology,
            channels: ChannelParameters::default(),
            routing,
            router: RouterParameters { virtual_channels, buffer_flits: 8, ..RouterParameters::default() },
            packet: 16,
            options: "sharing = 'arbitrated'".to_owned(),
            messages: Vec::new(),
            wait: 0.0,
        }
    }

    fn network(&self) -> Arc<Network> {
        let entry = TOPOLOGIES.iter().find(|entry| entry.name == self.topology.0).expect("a topology");
        let topology = (entry.parse)(self.topology.1.parse().expect("TOML")).expect("parameters");
        let context = BuildContext { channels: &self.channels, files: &NoFiles, structure_seed: 0 };
        Arc::new(topology.build(&context).expect("a network"))
    }

    fn scenario(&self) -> Scenario {
        let network = self.network();
        let routing = ROUTINGS.iter().find(|entry| entry.name == self.routing.0).expect("a routing");
        let routing = (routing.parse)(self.routing.1.parse().expect("TOML")).expect("parameters");
        let routing = routing.compile(&network).expect("a routing that fits");
        let message = |(&(source, destination, flits), token): (&(u32, u32, u32), u64)| Message {
            token,
            source: TerminalId(source),
            destination: TerminalId(destination),
            flits,
        };
        let messages = self.messages.iter().zip(1..).map(message).collect();
        let all = VirtualChannels { begin: 0, end: self.router.virtual_channels as u16 };
        let workload = ClosedWorkload::new(Arc::new(Listed { messages, wait: self.wait }), self.packet, all);
        Scenario {
            network,
            routing: routing.into(),
            pipeline: self.router.check().expect("a router"),
            router: self.router.clone(),
            classes: Vec::new(),
            workload: Some(workload),
            hosts: None,
            units: kasuri_workload::units::Units::default(),
            streams: Streams::new(1),
            max_cycles: 1 << 50,
            resend_after: None,
            failure: None,
            engine_options: self.options.parse().expect("TOML"),
            paranoid: true,
            timeline: false,
            endpoint: None,
            users: None,
        }
    }

    fn run(&self) -> Result<Outcome, EngineError> {
        FlowEngine.run(&self.scenario(), &mut ToTheEnd(64))
    }

    #[track_caller]
    fn completion(&self) -> f64 {
        let outcome = self.run().expect("a run");
        assert_eq!(outcome.status, Status::Completed, "{self:?}");
        outcome.completion_time.expect("a closed workload")
    }
}

const MESH: (&str, &str) = ("mesh", "dimensions = [4, 4]");
const LINE: (&str, &str) = ("mesh", "dimensions = [8]");
const TORUS: (&str, &str) = ("torus", "dimensions = [4, 4]");
const TREE: (&str, &str) = ("fat-tree", "up = 2\ndown = 2\nlevels = 3");
const DRAGONFLY: (&str, &str) = ("dragonfly", "terminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2");
const GRID_ROUTING: (&str, &str) = ("dimension-order", "");
const MINIMAL: (&str, &str) = ("minimal", "");

/// A name and its parameters.
type Named = (&'static str, &'static str);

/// Networks whose routing is free of deadlock with so many virtual channels.
const SAFE: [(Named, Named, u32); 6] = [
    (MESH, GRID_ROUTING, 1),
    (LINE, GRID_ROUTING, 1),
    (TORUS, GRID_ROUTING, 2),
    (TREE, ("nca", ""), 1),
    (DRAGONFLY, MINIMAL, 4),
    (("full-mesh", "routers = 6\nconcentration = 2"), MINIMAL, 4),
];

/// A lone packet takes its zero-load latency to the cycle, whatever the switching; a lone message of packets that follow each other in
/// several lanes is off by at most two cycles a packet of a parcel. Equal shares know no blocking, and so are exact here.
#[test]
fn lone_messages_take_their_zero_load_latency() {
    for (topology, routing, least) in SAFE {
        for switching in [Switching::Wormhole, Switching::VirtualCutThrough, Switching::StoreAndForward] {
            for (flits, grain) in [(1, 1), (7, 1), (16, 1), (100, 1), (100, 2), (1000, 1), (1000, 4), (1000, 16)] {
                let mut case = Case::new(topology, routing, 2 * least);
                case.router.switching = switching;
                case.router.buffer_flits = 16;
                let last = case.network().terminal_count() - 1;
                case.messages = vec![(1, last, flits)];
                case.options = format!("sharing = 'arbitrated'\ngrain = {grain}");
                let found = case.completion();
                case.packet = 1000;
                case.options = "sharing = 'equal-share'".to_owned();
                // Only the first packet of a message waits at each router for the rest of it.
                let mut first = case.clone();
                first.messages = vec![(1, last, flits.min(16))];
                let expected = first.completion() + f64::from(flits - flits.min(16));
                let tolerance = if flits <= 16 { 0.0 } else { f64::from(2 * grain) };
                let is_one_lane = switching != Switching::Wormhole && flits > 16;
                let late = found - expected;
                assert!(
                    late.abs() <= tolerance || is_one_lane && late > 0.0 && late < 0.5 * expected,
                    "{topology:?}, {switching:?}, {flits} flits, grain {grain}: {found}, not {expected}"
                );
            }
        }
    }
}

/// The parking lot: all send to the end of a line through one lane. At each router the input from the line and the terminal's own take
/// turns, so the last terminal gets half of the channel, the one before a quarter, and so on.
#[test]
fn inputs_of_a_router_take_turns() {
    let mut case = Case::new(LINE, GRID_ROUTING, 1);
    case.options = "sharing = 'arbitrated'\ngrain = 1".to_owned();
    case.messages = (0..7).map(|source| (source, 7, 16 * 640)).collect();
    let mut scenario = case.scenario();
    scenario.max_cycles = 8_000;
    let outcome = FlowEngine.run(&scenario, &mut ToTheEnd(64)).expect("a run");
    assert_eq!(outcome.status, Status::MaxCycles);
    let whole: u64 = outcome.injected_flits.iter().sum();
    for (source, part) in [(6, 2.0), (5, 4.0), (4, 8.0), (3, 16.0), (2, 32.0)] {
        let share = outcome.injected_flits[source] as f64 / whole as f64;
        assert!((share * part - 1.0).abs() < 0.12, "terminal {source}: {share} of {whole} flits, not 1/{part}");
    }
}

/// Without round robin the oldest parcel goes first: in the parking lot the near terminals, whose parcels are young, do not end before the
/// far ones.
#[test]
fn mechanisms_can_be_left_out() {
    let case = |lanes: u32| Case { messages: (0..7).map(|source| (source, 7, 160)).collect(), ..Case::new(LINE, GRID_ROUTING, lanes) };
    let with = |lanes: u32, without: &str| {
        let options = format!("sharing = 'arbitrated'\ngrain = 1\nwithout = [{without}]");
        let outcome = Case { options, ..case(lanes) }.run().expect("a run");
        assert_eq!(outcome.status, Status::Completed);
        (outcome.completion_time.expect("an end"), outcome.packet_latency.min)
    };
    let (one, four) = (with(1, ""), with(4, ""));
    assert!(with(1, "'gap'").0 < one.0, "packets of a lane follow each other at once: {:?}, {one:?}", with(1, "'gap'"));
    assert!(with(1, "'blocking', 'gap'").0 <= with(1, "'gap'").0);
    let oldest = with(4, "'round-robin'");
    assert!(2 * oldest.1 > 3 * four.1, "nobody is far ahead of the others: {oldest:?}, {four:?}");
}

/// Times go on over more cycles than 32 bits count.
#[test]
fn long_waits_change_nothing() {
    let mut case = Case::new(MESH, GRID_ROUTING, 2);
    case.messages = (0..16).flat_map(|source| [(source, (source * 7 + 3) % 16, 200), (source, (source * 5 + 1) % 16, 90)]).collect();
    let begin = 5_000_000_000.0;
    let late = Case { wait: begin, ..case.clone() };
    let run = |case: &Case| FlowEngine.run(&case.scenario(), &mut ToTheEnd(1 << 40)).expect("a run").completion_time.expect("an end");
    assert_eq!(run(&late), run(&case) + begin);
}

/// A torus without a second virtual channel: messages half-way around all rings wait for each other, and the cycle is one.
#[test]
fn a_deadlock_is_told_with_its_cycle() {
    let mut case = Case::new(("torus", "dimensions = [8]"), ("dimension-order", "tie = 'positive'"), 1);
    case.messages = (0..8).flat_map(|source| vec![(source, (source + 3) % 8, 256); 4]).collect();
    let outcome = case.run().expect("a run");
    assert_eq!((outcome.status, outcome.completion_time), (Status::Deadlock, None));
    let (cycle, network) = (&outcome.deadlock, case.network());
    assert!(cycle.len() >= 2, "{cycle:?}");
    for (position, &(channel, _)) in cycle.iter().enumerate() {
        let (next, _) = cycle[(position + 1) % cycle.len()];
        let router = |end: Endpoint| if let Endpoint::Router(router, _) = end { Some(router) } else { None };
        assert_eq!(router(network.destination(channel)), router(network.source(next)), "{cycle:?}");
    }
}

fn small_case() -> impl Strategy<Value = (Case, u32)> {
    let switching =
        prop_oneof![4 => Just(Switching::Wormhole), 1 => Just(Switching::VirtualCutThrough), 1 => Just(Switching::StoreAndForward)];
    let shape = (0..SAFE.len(), 0..3u32, 1..40u32, 1..20u32, 1..9u32, switching, 0..3u32, 1..4u32);
    let messages = prop::collection::vec((0..1000u32, 0..1000u32, 1..400u32), 1..60);
    (shape, messages).prop_map(|((network, more, buffer, packet, grain, switching, credit_delay, latency), messages)| {
        let (topology, routing, least) = SAFE[network];
        let mut case = Case::new(topology, routing, least + more);
        let whole = if switching == Switching::Wormhole { 1 } else { packet };
        case.router = RouterParameters { buffer_flits: buffer.max(whole), switching, credit_delay, ..case.router };
        case.channels.channel_latency = PerDimension::All(latency);
        case.packet = packet;
        let terminals = case.network().terminal_count();
        case.messages = messages.iter().map(|&(from, to, flits)| (from % terminals, to % terminals, flits)).collect();
        (case, grain)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Where the routing is free of deadlock every message arrives, at any grain; what leaves sources arrives, lanes have one owner and
    /// buffers hold no more than they can (checked in each interval); and the next run gives the same.
    #[test]
    fn everything_arrives((case, grain) in small_case()) {
        let case = Case { options: format!("sharing = 'arbitrated'\ngrain = {grain}"), ..case };
        let outcome = case.run().expect("books that balance");
        prop_assert_eq!(outcome.status, Status::Completed);
        let flits: u64 = case.messages.iter().map(|&(_, _, flits)| u64::from(flits)).sum();
        prop_assert_eq!(outcome.injected_flits.iter().sum::<u64>(), flits);
        prop_assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), flits);
        prop_assert_eq!(outcome.packet_latency.count, case.messages.len() as u64);
        let again = FlowEngine.run(&case.scenario(), &mut ToTheEnd(1 << 40)).expect("a run");
        prop_assert_eq!(&again.packet_latency, &outcome.packet_latency);
        prop_assert_eq!(again.completion_cycles, outcome.completion_cycles);
    }
}
