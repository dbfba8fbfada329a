//! Sources of several classes, answers, and what a routing ahead of a head knows.

use crate::common::{Fixed, Setup, Single, ToTheEnd};
use kasuri_flit::FlitEngine;
use kasuri_model::engine::{Command, Controller, Engine, Interval, Outcome, Status};
use kasuri_model::router::{LookaheadDecides, RouterParameters};
use kasuri_model::scenario::{Reply, Scenario};
use kasuri_network::id::TerminalId;
use kasuri_network::registry::find;
use kasuri_workload::traffic::PacketSizes;
use kasuri_workload::traffic::process::{PROCESSES, Process};
use std::sync::Arc;

/// Four terminals at one router.
fn star(router: RouterParameters) -> Setup {
    let topology = ("butterfly", "radix = 4\nstages = 1".to_owned());
    Setup { topology, routing: ("destination-tag", ""), router, load: 1.0, packet_flits: 8, paranoid: true, ..Setup::mesh(&[2]) }
}

fn process(name: &str, rate: f64) -> Arc<dyn Process> {
    let parameters = (find(PROCESSES, name).unwrap().parse)(toml::Table::new()).unwrap();
    Arc::from(parameters.compile(rate).unwrap())
}

/// Terminal 0 has packets of two classes, of 8 flits to terminal 2 and of 2 flits to terminal 3, each more than it can send.
fn two_classes(router: RouterParameters) -> Scenario {
    let mut scenario = star(router).build();
    scenario.classes.push(scenario.classes[0].clone());
    for ((number, flits), class) in (0..).zip([8, 2]).zip(&mut scenario.classes) {
        class.pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(2 + number) });
        class.sizes = PacketSizes::fixed(flits).unwrap();
        class.process = process("bernoulli", 1.0 / f64::from(flits));
    }
    scenario
}

/// The flits that the two destinations receive, parts of the whole.
fn parts(scenario: &Scenario) -> [f64; 2] {
    let outcome = FlitEngine.run(scenario, &mut Fixed::new(2000, 20_000)).unwrap();
    let flits = [2, 3].map(|terminal| outcome.accepted_flits[terminal] as f64);
    flits.map(|own| own / (flits[0] + flits[1]))
}

/// Packets of 8 and of 2 flits that take turns are 8 and 2 tenths of the flits; queues that take turns flit by flit send the same.
#[test]
fn queues_of_classes_share_their_channel_by_flits() {
    let by = |class_queues| parts(&two_classes(RouterParameters { class_queues, virtual_channels: 4, ..RouterParameters::default() }));
    let [long, short] = by(false);
    assert!((long - 0.8).abs() < 0.005 && (short - 0.2).abs() < 0.005, "{long} {short}");
    let [long, short] = by(true);
    assert!((long - 0.5).abs() < 0.005 && (short - 0.5).abs() < 0.005, "{long} {short}");
}

/// Classes of which one has priority share no more: it has the channel whenever it can send.
#[test]
fn the_queue_of_the_urgent_class_goes_first() {
    let priority = kasuri_model::router::Priority::Class;
    let router = RouterParameters { class_queues: true, priority, virtual_channels: 4, buffer_flits: 64, ..RouterParameters::default() };
    let mut scenario = two_classes(router);
    scenario.classes[0].priority = 1;
    let [urgent, late] = parts(&scenario);
    assert!(urgent > 0.95 && late > 0.0, "{urgent} {late}");
}

/// Whatever the queues, a batch of each class arrives in whole.
#[test]
fn queues_of_classes_lose_nothing() {
    for class_queues in [false, true] {
        let router = RouterParameters { class_queues, virtual_channels: 2, buffer_flits: 2, ..RouterParameters::default() };
        let mut scenario = Setup { packet_flits: 5, router, paranoid: true, ..Setup::mesh(&[3, 3]) }.batch(20).build();
        scenario.classes.push(scenario.classes[0].clone());
        let outcome = FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
        assert_eq!((outcome.status, outcome.packet_latency.count), (Status::Completed, 2 * 20 * 9));
        assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), 2 * 20 * 9 * 5);
    }
}

/// Three of four packets are of the first class. Where all are drawn by one coin it stays so beyond saturation; classes with coins of their
/// own take turns there.
#[test]
fn shared_coins_keep_the_mixture_beyond_saturation() {
    let packets = |joint: bool| {
        let mut scenario = two_classes(RouterParameters::default());
        for (class, rate) in scenario.classes.iter_mut().zip([0.6, 0.2]) {
            class.sizes = PacketSizes::fixed(2).unwrap();
            (class.load, class.process) = (2.0 * rate, process("bernoulli", rate));
            class.joint = joint.then(|| process("bernoulli", 0.8));
        }
        parts(&scenario)
    };
    let [many, few] = packets(true);
    // Six standard deviations of 10000 draws.
    assert!((many - 0.75).abs() < 6.0 * (0.75f64 * 0.25 / 10_000.0).sqrt() && few > 0.2, "{many} {few}");
    let [many, few] = packets(false);
    assert!((many - few).abs() < 0.21, "{many} {few}");
    assert!(many < 0.62, "{many} {few}");
}

/// A packet and its answer alone: whoever takes 7 cycles to answer adds them to the answer's latency.
#[test]
fn an_answer_is_delayed_by_its_terminal() {
    let latencies = |delay| {
        let mut scenario = star(RouterParameters::default()).batch(1).build();
        let class = &mut scenario.classes[0];
        class.pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(2) });
        let (sizes, virtual_channels) = (class.sizes.clone(), class.virtual_channels);
        class.reply = Some(Reply { sizes, delay, virtual_channels });
        let outcome = FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
        (outcome.packet_latency.count, outcome.packet_latency.sum)
    };
    let (packets, at_once) = latencies(0);
    assert_eq!(packets, 2);
    assert_eq!(latencies(7), (2, at_once + 7.0));
}

/// Warms up, measures, and drains; what is measured, its first command says.
struct Measuring {
    commands: Vec<Command>,
    cycles: u64,
}

impl Controller for Measuring {
    fn interval_cycles(&mut self) -> u64 {
        self.cycles
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        match self.commands.pop() {
            Some(command) => command,
            None if interval.outstanding_packets > 0 => Command::Continue,
            None => Command::End(Status::Converged),
        }
    }
}

/// Two terminals offer a packet of 8 flits every 8 cycles to a third one, which takes half. So when 8000 cycles are over, packets of 4000
/// cycles wait at each source; then 8000 cycles are measured, in which each source creates 1000 packets.
#[test]
fn packets_that_wait_for_their_source_count_if_that_is_asked() {
    let measured = |command| {
        let mut scenario = star(RouterParameters::default()).build();
        let periodic = process("periodic", 1.0 / 8.0);
        scenario.classes[0].process = Arc::clone(&periodic);
        scenario.classes.push(scenario.classes[0].clone());
        for (number, class) in (0..).zip(&mut scenario.classes) {
            class.pattern = Arc::new(Single { source: TerminalId(number), destination: TerminalId(3) });
        }
        let mut controller = Measuring { commands: vec![Command::Drain, command], cycles: 8000 };
        let outcome: Outcome = FlitEngine.run(&scenario, &mut controller).unwrap();
        outcome.packet_latency.count as f64
    };
    let (created, with_waiting) = (measured(Command::Measure), measured(Command::MeasureWaiting));
    // A few packets are in the network when the measurement begins.
    assert!((created - 2000.0).abs() <= 2.0, "{created}");
    assert!((with_waiting - 3000.0).abs() <= 10.0, "{with_waiting}");
}

/// A fat tree whose packets take the emptiest port up, with lookahead.
fn adaptive_tree(lookahead_decides: LookaheadDecides, routing: &'static str) -> Outcome {
    let router = RouterParameters { lookahead: true, lookahead_decides, virtual_channels: 4, ..RouterParameters::default() };
    let setup = Setup { routing: ("nca", routing), router, load: 0.6, packet_flits: 2, paranoid: true, ..Setup::fat_tree(4, 3) };
    FlitEngine.run(&setup.build(), &mut Fixed::new(2000, 6000)).unwrap()
}

/// What a router knew when the head left for it is older than what it knows when the head has come; random ports need to know nothing.
#[test]
fn who_decides_on_departure_knows_less() {
    use LookaheadDecides::{OnArrival, OnDeparture};
    let latency = |decides| adaptive_tree(decides, "up_port = \"better-of-two\"").packet_latency.mean().unwrap();
    let (fresh, old) = (latency(OnArrival), latency(OnDeparture));
    assert!(old > 1.01 * fresh, "{old} {fresh}");
    let random = |decides| adaptive_tree(decides, "up_port = \"random\"").packet_latency;
    assert_eq!(random(OnArrival), random(OnDeparture));
}

/// Packets of one flit offered without pause enter a dragonfly by a virtual channel that is drawn. Whoever draws again when it is taken finds
/// a free one sooner than whoever waits for it.
#[test]
fn who_draws_another_virtual_channel_enters_sooner() {
    let accepted = |routing| {
        let topology = ("dragonfly", "terminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2".to_owned());
        let router = RouterParameters { virtual_channels: 2, ..RouterParameters::default() };
        let pattern = ("diagonal", "");
        let setup =
            Setup { topology, routing: ("dragonfly-phases", routing), router, pattern, load: 1.0, packet_flits: 1, ..Setup::mesh(&[2]) };
        let outcome = FlitEngine.run(&setup.build(), &mut Fixed::new(2000, 4000)).unwrap();
        outcome.accepted_flits.iter().sum::<u64>() as f64 / outcome.measured_cycles as f64 / 72.0
    };
    let (kept, again) = (accepted(""), accepted("redraw_entry = true"));
    assert!(again > 1.02 * kept, "{again} {kept}");
}

/// A terminal sends 10 packets of 8 flits to another one, of which `outstanding` may be on their way, answered or not. How long it takes.
fn of_a_pair(outstanding: Option<u32>, packets: u64, answered: bool) -> u64 {
    let mut scenario = star(RouterParameters { buffer_flits: 64, ..RouterParameters::default() }).batch(packets).build();
    let class = &mut scenario.classes[0];
    class.pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(2) });
    class.window.outstanding = outstanding;
    let (sizes, virtual_channels) = (class.sizes.clone(), class.virtual_channels);
    class.reply = answered.then_some(Reply { sizes, delay: 0, virtual_channels });
    let outcome = FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
    assert_eq!((outcome.status, outcome.packet_latency.count), (Status::Completed, packets * if answered { 2 } else { 1 }));
    outcome.completion_cycles.iter().copied().max().unwrap()
}

/// With a window of one packet each waits for the one before, so that n take n times as long as one. Where the whole batch fits into the
/// window they follow each other as if there were none: a flit a cycle.
#[test]
fn a_window_of_one_packet_sends_one_after_the_other() {
    for answered in [false, true] {
        let alone = of_a_pair(Some(1), 1, answered);
        assert_eq!(of_a_pair(Some(1), 10, answered), 10 * alone);
        assert_eq!(of_a_pair(None, 10, answered), alone + 9 * 8);
        assert_eq!(of_a_pair(Some(10), 10, answered), alone + 9 * 8);
        // Two at a time, unless their flits take longer than their way there and back.
        let [with_two, at_best] = [of_a_pair(Some(2), 10, answered), alone + 9 * 8];
        assert!((at_best..=at_best.max(5 * alone + 8)).contains(&with_two), "{with_two}");
    }
}

/// Little's law: of each terminal's packets no more are outstanding at a time than the window holds, and where the network is slow,
/// hardly fewer until the batch is out.
#[test]
fn no_more_packets_are_outstanding_than_the_window_holds() {
    for window in [1, 2, 5] {
        let mut scenario = Setup { packet_flits: 3, paranoid: true, ..Setup::mesh(&[4, 4]) }.batch(300).build();
        scenario.classes[0].window.outstanding = Some(window);
        let outcome = FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
        let cycles = outcome.completion_cycles.iter().copied().max().unwrap();
        let outstanding = outcome.packet_latency.sum / cycles as f64 / 16.0;
        let most = f64::from(window);
        // Between two packets of a place in the window lies the cycle in which the first has arrived.
        assert!(outstanding < most && outstanding > 0.7 * most, "{outstanding} of {most}");
    }
}

/// Reads and writes of one batch, in which answers count: each terminal sends its packets, and answers to the others beyond them. Most
/// arrive; what is not answered at the end are the last requests.
#[test]
fn a_batch_that_counts_answers_is_half_of_answers() {
    let packets = 100;
    let router = RouterParameters { virtual_channels: 4, ..RouterParameters::default() };
    let mut scenario = Setup { router, packet_flits: 1, paranoid: true, ..Setup::mesh(&[4, 4]) }.batch(packets).build();
    let class = &mut scenario.classes[0];
    let [requests, answers] = [0, 2].map(|begin| kasuri_network::routing::VirtualChannels { begin, end: begin + 2 });
    let sizes = PacketSizes::fixed(4).unwrap();
    class.reply = Some(Reply { sizes: sizes.clone(), delay: 1, virtual_channels: answers });
    (class.virtual_channels, class.joint) = (requests, Some(Arc::clone(&class.process)));
    class.window = kasuri_workload::traffic::process::Window { outstanding: Some(4), counts_answers: true };
    let mut writes = class.clone();
    writes.sizes = sizes;
    writes.reply.as_mut().unwrap().sizes = PacketSizes::fixed(1).unwrap();
    scenario.classes.push(writes);
    let outcome = FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
    assert_eq!(outcome.status, Status::Completed);
    let arrived = outcome.packet_latency.count;
    assert!((16 * packets..16 * packets * 11 / 10).contains(&arrived), "{arrived}");
    // A request and its answer are five flits, whichever of them is the long one.
    let flits: u64 = outcome.accepted_flits.iter().sum();
    assert!((flits as f64 / arrived as f64 - 2.5).abs() < 0.1, "{flits} {arrived}");
}
