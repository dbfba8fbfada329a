//! Distributed shared memories in the flow engine, packet by packet: closed forms, conservation, and the curves of models that this one follows.

use crate::common::UntilDone;
use kasuri_config::{Document, Known, Preparation};
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_model::scenario::Scenario;
use kasuri_network::topology::NoFiles;

/// Cycles of a packet between routers: the unit of time.
const UNIT: f64 = 840.0;

/// Cycles for which an interface works on a packet: a fifth of the unit.
const WORK: f64 = 168.0;

/// A machine of 64 nodes with packets that take a unit between routers and a unit over x between router and interface, without latency.
const MACHINE: &str = r#"
engine = "flow"
network = { topology = "rdt", side = 8, channel_period = 840, terminal_channel_period = 840 }
routing = { algorithm = "vector" }
router = { virtual_channels = 6 }
endpoint = { model = "dsm", interface_cycles = 168, window = 64, command_flits = 1, data_flits = 1 }
workload = { program = "matrix-vector" }
flow = { latency = false }
measure = { max_cycles = 100_000_000 }
"#;

fn study(text: &str, changes: &[&str]) -> Result<Scenario, String> {
    let mut document = Document::parse("dsm.toml", text).expect("TOML");
    changes.iter().for_each(|change| document.set_text(change).expect("a key and a value"));
    let points = document.points().expect("one point");
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&points[0]).map_err(|error| error.to_string())?;
    Ok(Scenario { paranoid: true, ..study.scenario })
}

fn run(changes: &[&str]) -> Outcome {
    FlowEngine.run(&study(MACHINE, changes).expect("a machine"), &mut UntilDone).expect("a run")
}

/// The same on a torus, where the hops between nodes y * 8 + x are known.
fn on_torus(changes: &[&str]) -> Outcome {
    let text = MACHINE.replace("topology = \"rdt\", side = 8", "topology = \"torus\", dimensions = [8, 8]");
    let changes = [&["routing.algorithm=dimension-order", "router.virtual_channels=4"], changes].concat();
    FlowEngine.run(&study(&text, &changes).expect("a machine"), &mut UntilDone).expect("a run")
}

fn time(outcome: &Outcome) -> f64 {
    outcome.completion_time.expect("it completes")
}

fn answered(outcome: &Outcome) -> u64 {
    outcome.interfaces.as_ref().expect("interfaces").answered
}

/// The mean NR and NIU rates.
fn rates(outcome: &Outcome) -> [f64; 2] {
    let interfaces = outcome.interfaces.as_ref().expect("interfaces");
    [&interfaces.awaited, &interfaces.busy].map(|values| values.iter().sum::<f64>() / values.len() as f64)
}

fn throughput(x: u32) -> String {
    format!("network.terminal_channel_period={}", 840 / x)
}

/// One read on an idle network: issued, served and accepted in 3 t, twice over h channels between routers and 2 / x for the interfaces.
#[test]
fn one_remote_read_takes_three_times_the_interface_and_two_paths() {
    for x in [1, 2, 5, 8] {
        for (home, hops) in [(1, 1), (3, 3), (9, 2), (36, 8)] {
            let pairs = format!("workload.pairs=[[0,{home}]]");
            let outcome = on_torus(&["workload.program=remote-access", &pairs, "workload.accesses=1", &throughput(x)]);
            let expected = 3.0 * WORK + 2.0 * UNIT * (f64::from(hops) + 2.0 / f64::from(x));
            assert_eq!((time(&outcome), answered(&outcome)), (expected, 1), "x {x}, {hops} hops");
            // Both packets go over h + 1 routers.
            assert_eq!(outcome.hops.mean(), Some(f64::from(hops + 1)));
        }
    }
}

/// With one request at a time nothing overlaps; an access to memory adds its cycles to each.
#[test]
fn a_window_of_one_adds_round_trips() {
    let ten = ["workload.program=remote-access", "workload.pairs=[[0,3]]", "workload.accesses=10", "endpoint.window=1"];
    let each = 3.0 * WORK + 2.0 * UNIT * (3.0 + 2.0);
    assert_eq!(time(&on_torus(&ten)), 10.0 * each);
    let with_memory: Vec<&str> = ten.into_iter().chain(["endpoint.memory_cycles=77"]).collect();
    assert_eq!(time(&on_torus(&with_memory)), 10.0 * (each + 77.0));
}

/// Data goes with the reply to a read and with the request of a write.
#[test]
fn only_packets_with_data_are_long() {
    for write_fraction in ["0.0", "1.0"] {
        let fraction = format!("workload.write_fraction={write_fraction}");
        let one = ["workload.program=remote-access", "workload.pairs=[[0,1]]", "workload.accesses=1", "endpoint.data_flits=3", &fraction];
        // Three channels each way: one flit one way, three the other.
        assert_eq!(time(&on_torus(&one)), 3.0 * WORK + 3.0 * UNIT * (1.0 + 3.0));
    }
}

/// Each node reads the 63 others once: 63 issued, 63 served, 63 accepted, and 126 packets over the channel to each interface.
#[test]
fn no_run_is_faster_than_its_interfaces() {
    for x in 1..=8 {
        let outcome = run(&[&throughput(x)]);
        assert_eq!(answered(&outcome), 64 * 63);
        let (time, [_, busy]) = (time(&outcome), rates(&outcome));
        assert!((busy * time - 3.0 * 63.0 * WORK).abs() < 1e-6 * time, "x {x}: the interfaces work {} cycles", busy * time);
        assert!(time >= (3.0 * 63.0 * WORK).max(2.0 * 63.0 * UNIT / f64::from(x)), "x {x}: {time}");
    }
}

/// The numbers of another program for the same model (its nodes are numbered by columns): times in units, NR and NIU rates.
#[test]
fn curves_are_those_of_an_independent_program() {
    type Row = (f64, f64, f64);
    let tables: [(u32, [Row; 8]); 2] = [
        (
            16,
            [
                (133.0, 0.945, 0.283),
                (73.0, 0.874, 0.517),
                (62.0, 0.739, 0.610),
                (61.0, 0.623, 0.622),
                (60.0, 0.552, 0.634),
                (59.0, 0.492, 0.639),
                (59.0, 0.472, 0.641),
                (59.0, 0.453, 0.646),
            ],
        ),
        (
            64,
            [
                (138.0, 0.982, 0.274),
                (75.0, 0.973, 0.502),
                (56.0, 0.944, 0.678),
                (54.0, 0.784, 0.701),
                (52.0, 0.694, 0.727),
                (53.0, 0.659, 0.720),
                (52.0, 0.649, 0.729),
                (52.0, 0.634, 0.729),
            ],
        ),
    ];
    for (window, expected) in tables {
        for (x, (units, router, interface)) in (1..).zip(expected) {
            let outcome = run(&[&throughput(x), &format!("endpoint.window={window}")]);
            let ([nr, niu], measured) = (rates(&outcome), time(&outcome) / UNIT);
            assert!((measured / units - 1.0).abs() < 0.05, "window {window}, x {x}: {measured} units, {units} there");
            assert!((nr - router).abs() < 0.04 && (niu - interface).abs() < 0.04, "window {window}, x {x}: NR {nr}, NIU {niu}");
        }
    }
}

/// All nodes read the same memory at the same time.
#[test]
fn the_same_order_makes_a_hot_spot() {
    let order = |order: &str| time(&run(&["endpoint.window=16", &format!("workload.order={order}")])) / UNIT;
    let (staggered, same) = (order("staggered"), order("same"));
    assert!((same / staggered / (206.0 / 133.0) - 1.0).abs() < 0.05, "{same} and {staggered}; 206 and 133 elsewhere");
}

#[test]
fn every_request_is_answered_once() {
    for (program, more, requests) in [
        ("matrix-vector", "workload.size=128", 64 * 126),
        ("stencil", "workload.points=3", 64 * 4 * 3 * 4),
        ("random-access", "workload.write_fraction=0.3", 64 * 100),
        ("producer-consumer", "workload.room=1", 32 * 16 * (8 + 1 + 1)),
        ("remote-access", "workload.pairs=[[1,0],[2,0],[2,5]]", 300),
    ] {
        let outcome = run(&[&format!("workload.program={program}"), more]);
        assert_eq!((outcome.status, answered(&outcome)), (Status::Completed, requests), "{program}");
        assert_eq!(outcome.packet_latency.count, 2 * requests, "{program}: a request and a reply each");
    }
}

/// Points at edges go out before each iteration; computing comes on top.
#[test]
fn stencils_compute_between_exchanges() {
    let stencil = |more: &str| time(&run(&["workload.program=stencil", "workload.points=2", "workload.iterations=3", more]));
    let (without, with) = (stencil("workload.compute_cycles=0"), stencil("workload.compute_cycles=1000000"));
    assert!(with >= 3e6 && with <= without + 3e6, "{with} with computation, {without} without");
}

/// A consumer with room for one item lets its producer make the next one only when it has used the last.
#[test]
fn room_lets_producer_and_consumer_overlap() {
    let time = |room: u32| {
        let room = format!("workload.room={room}");
        time(&run(&["workload.program=producer-consumer", "workload.items=10", "workload.compute_cycles=1000000", &room]))
    };
    assert!(time(1) >= 20e6, "one after the other: {}", time(1));
    assert!(time(2) <= 12e6, "both at the same time: {}", time(2));
}

#[test]
fn equal_runs_are_equal_and_seeds_matter_only_to_random_draws() {
    let random = |seed: u32| run(&["workload.program=random-access", &format!("measure.seed={seed}")]);
    assert_eq!(random(1), random(1));
    assert_ne!(time(&random(1)), time(&random(2)));
    assert_eq!(run(&["measure.seed=1"]), run(&["measure.seed=2"]));
}

#[test]
fn impossible_values_are_refused_at_their_key() {
    for (changes, expected) in [
        (vec!["endpoint.window=0"], "endpoint.window: is 0; it must be 1 to 65535"),
        (vec!["router.virtual_channels=5"], "router.virtual_channels: is 5; it must be even"),
        (vec!["workload.size=65"], "workload.size: is 65; it must be a multiple of the 64 nodes"),
        (vec!["workload.points=4"], "workload.points: has no meaning in this program, which reads size, order"),
        (vec!["workload.program=matrix"], "unknown value `matrix`; known values: matrix-vector, stencil"),
        (vec!["workload.program=stencil", "workload.messages_from=4"], "a packet of a message carries: endpoint.message_words"),
        (vec!["endpoint.message_words=5000"], "endpoint.message_words: is 5000; it must be 1 to 4096"),
        (vec!["endpoint.message_words=4096", "endpoint.data_flits=40"], "endpoint.message_words: makes packets of"),
        (vec!["workload.program=remote-access"], "workload.pairs: is missing"),
        (vec!["workload.program=remote-access", "workload.pairs=[[0,64]]"], "names node 64; the network has nodes 0 to 63"),
        (vec!["workload.program=remote-access", "workload.pairs=[[3,3]]"], "lets node 3 access itself"),
        (vec!["workload.program=random-access", "workload.write_fraction=1.5"], "is 1.5; it must be 0 to 1"),
        (vec!["router.switching=store-and-forward", "endpoint.data_flits=40"], "a packet of 40 flits waits in one buffer"),
    ] {
        let message = study(MACHINE, &changes).map(|_| String::new()).unwrap_or_else(|error| error);
        assert!(message.contains(expected), "{changes:?}: {message}");
    }
}
