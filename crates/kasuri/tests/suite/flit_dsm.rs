//! Distributed shared memories on routers with virtual channels: closed forms, conservation, back-pressure, and the curves of queues.

use crate::flit_common::ToTheEnd;
use kasuri_config::{Document, Known, Preparation};
use kasuri_flit::FlitEngine;
use kasuri_model::engine::{Engine, Interfaces, Outcome, Status};
use kasuri_model::scenario::Scenario;
use kasuri_network::topology::NoFiles;

/// 16 nodes on a torus, packets of 4 flits, routers of three stages.
const MACHINE: &str = r#"
engine = "flit"
network = { topology = "torus", dimensions = [4, 4] }
routing = { algorithm = "dimension-order" }
router = { virtual_channels = 4, buffer_flits = 4, switching = "virtual-cut-through", pipeline = ["RC", "VSA", "ST"] }
endpoint = { model = "dsm", interface_cycles = 7, window = 8, command_flits = 4, data_flits = 4 }
workload = { program = "matrix-vector" }
measure = { max_cycles = 10_000_000 }
"#;

fn run(changes: &[&str]) -> Outcome {
    let mut document = Document::parse("dsm.toml", MACHINE).expect("TOML");
    changes.iter().for_each(|change| document.set_text(change).expect("a key and a value"));
    let points = document.points().expect("one point");
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&points[0]).expect("a machine");
    FlitEngine.run(&Scenario { paranoid: true, ..study.scenario }, &mut ToTheEnd).expect("a run")
}

fn time(outcome: &Outcome) -> f64 {
    outcome.completion_time.expect("it completes")
}

fn interfaces(outcome: &Outcome) -> &Interfaces {
    outcome.interfaces.as_ref().expect("interfaces")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A lone packet takes 3 cycles in each router, 1 on each channel, and 1 for each of its flits; the interfaces take 3 t in all.
#[test]
fn one_remote_read_takes_three_times_the_interface_and_two_packets() {
    for (home, routers) in [(1, 2), (2, 3), (5, 3), (10, 5)] {
        let pairs = format!("workload.pairs=[[0,{home}]]");
        let outcome = run(&["workload.program=remote-access", &pairs, "workload.accesses=1", "endpoint.memory_cycles=5"]);
        let packet = f64::from(3 * routers + (routers + 1) + 4);
        assert_eq!(time(&outcome), 3.0 * 7.0 + 5.0 + 2.0 * packet, "{routers} routers");
        assert_eq!(outcome.packet_latency.mean(), Some(packet));
        assert_eq!(interfaces(&outcome).busy[home as usize] * time(&outcome), 7.0 + 5.0, "the home serves");
        assert!((interfaces(&outcome).busy[0] * time(&outcome) - 14.0).abs() < 1e-9, "the requester issues and accepts");
    }
}

/// The same in routers that know every output: a packet takes one cycle in each. The home's router holds the request from the arrival of its
/// head until the interface has taken it, which is the time of its four flits, one channel and the service.
#[test]
fn interfaces_hear_of_packets_that_pass_routers_on_predictions() {
    let share_held = |predictor: &str| {
        let outcome = run(&[
            "workload.program=remote-access",
            "workload.pairs=[[0,1]]",
            "workload.accesses=1",
            "endpoint.memory_cycles=5",
            &format!("router.predictor={predictor}"),
        ]);
        (interfaces(&outcome).awaited[1] * time(&outcome), time(&outcome))
    };
    let (held, cycles) = share_held("none");
    let (held_on_hits, cycles_on_hits) = share_held("oracle");
    // Two routers there and two back, each in one cycle in place of three; the home sees only the two cycles saved in its own router.
    assert_eq!(cycles - cycles_on_hits, 4.0 * 2.0);
    assert_eq!((held - held_on_hits).round(), 2.0, "{held} and {held_on_hits} cycles");
}

/// The books are balanced while it runs, those of the buffers before interfaces too.
#[test]
fn every_request_is_answered_once() {
    for (program, more, requests) in [
        ("matrix-vector", "workload.size=64", 16 * 60),
        ("stencil", "workload.points=3", 16 * 4 * 3 * 4),
        ("random-access", "workload.write_fraction=0.3", 16 * 100),
        ("producer-consumer", "workload.room=1", 8 * 16 * (8 + 1 + 1)),
        ("remote-access", "workload.pairs=[[1,0],[2,0],[2,5]]", 300),
    ] {
        for buffer in ["router.buffer_flits=4", "router.buffer_flits=9"] {
            let outcome = run(&[&format!("workload.program={program}"), more, buffer, "endpoint.command_flits=1"]);
            assert_eq!((outcome.status, interfaces(&outcome).answered), (Status::Completed, requests), "{program}");
            assert_eq!(outcome.packet_latency.count, 2 * requests, "{program}: a request and a reply each");
        }
    }
}

/// An edge of twelve words in packets of at most five is three packets there and three short ones back, each with the latency of its own
/// length where it meets no other; the words arrive, and the next iteration waits for them as for words written one by one.
#[test]
fn messages_carry_several_words() {
    let stencil = ["workload.program=stencil", "workload.points=12", "workload.iterations=2", "router.buffer_flits=14"];
    let messages = ["endpoint.message_words=5", "workload.messages_from=12", "endpoint.data_flits=6"];
    let by_words = run(&[&stencil[..], &["endpoint.data_flits=6"]].concat());
    let by_messages = run(&[&stencil[..], &messages[..]].concat());
    assert_eq!((interfaces(&by_words).answered, interfaces(&by_messages).answered), (16 * 4 * 12 * 2, 16 * 4 * 3 * 2));
    // Six flits for the first word, two for each other: packets of 14, 14 and 8.
    let flits = |outcome: &Outcome| outcome.accepted_flits.iter().sum::<u64>();
    assert_eq!((flits(&by_words), flits(&by_messages)), (16 * 4 * 12 * 2 * (6 + 4), 16 * 4 * 2 * (14 + 14 + 8 + 3 * 4)));
    assert!(time(&by_messages) < 0.5 * time(&by_words), "{} {}", time(&by_messages), time(&by_words));
    // The processor prepares them, one after the other.
    let prepared = run(&[&stencil[..], &messages[..], &["endpoint.message_cycles=1000"]].concat());
    let more = time(&prepared) - 2.0 * 4.0 * 1000.0;
    assert!(more > 0.0 && more < time(&by_messages), "{more}");
    // Only the long edges, here those to the left and to the right.
    let both = run(&[&stencil[..], &messages[..], &["workload.points=4", "workload.lines=12"]].concat());
    assert_eq!(interfaces(&both).answered, 16 * 2 * (2 * 3 + 2 * 4));
}

/// On crosspoint routers requests and replies have separate queues at each crossing: a lone read takes three times the interface and two
/// packets, and where requests fill the queues before a slow interface, replies pass them. With virtual-output queues the same packets take
/// the same paths, one at a time of each input, which is not faster.
#[test]
fn crosspoint_routers_keep_requests_and_replies_apart() {
    let crosspoint = "router.architecture=crosspoint";
    for (home, routers) in [(1, 2), (5, 3), (10, 5)] {
        let pairs = format!("workload.pairs=[[0,{home}]]");
        let cycles = "router.pipeline=[\"RC\", \"VA\", \"SA\", \"ST\"]";
        let read = ["workload.program=remote-access", &pairs, "workload.accesses=1", crosspoint, cycles];
        let packet = f64::from(4 * routers + (routers + 1) + 4);
        assert_eq!(time(&run(&read)), 3.0 * 7.0 + 2.0 * packet, "{routers} routers");
    }
    for switching in ["wormhole", "virtual-cut-through", "store-and-forward"] {
        let switching = format!("router.switching={switching}");
        for (program, requests) in [("matrix-vector", 16 * 15), ("random-access", 16 * 100)] {
            let program = format!("workload.program={program}");
            let cycles = "router.pipeline=[\"RC\", \"VA\", \"SA\", \"ST\"]";
            let [apart, shared] = [crosspoint, "router.architecture=virtual-output-queued"]
                .map(|architecture| run(&[&program, &switching, architecture, cycles, "endpoint.command_flits=1"]));
            assert_eq!((apart.status, interfaces(&apart).answered), (Status::Completed, requests), "{program} {switching}");
            assert_eq!(apart.packet_latency.count, 2 * requests);
            assert!(time(&apart) < 1.05 * time(&shared), "{program} {switching}: {} {}", time(&apart), time(&shared));
        }
    }
    let pairs: Vec<String> = (1..16).map(|node| format!("[{node},0]")).collect();
    let pairs = format!("workload.pairs=[{}]", pairs.join(","));
    let all = ["workload.program=remote-access", &pairs, "workload.accesses=20", "endpoint.memory_cycles=193", crosspoint];
    let outcome = run(&[&all[..], &["router.pipeline=[\"RC\", \"VA\", \"SA\", \"ST\"]"]].concat());
    assert!(time(&outcome) < 1.02 * 15.0 * 20.0 * 200.0 && interfaces(&outcome).busy[0] > 0.98, "{}", time(&outcome));
    assert!(outcome.packet_latency.quantile(0.4) < Some(120), "replies: {:?}", outcome.packet_latency.quantile(0.4));
}

/// All others read one node with a slow interface: it is always busy, its router always holds packets for it, and the waiting packets fill
/// the buffers of the network.
#[test]
fn a_slow_interface_holds_up_the_network() {
    let pairs: Vec<String> = (1..16).map(|node| format!("[{node},0]")).collect();
    let pairs = format!("workload.pairs=[{}]", pairs.join(","));
    let outcome = run(&["workload.program=remote-access", &pairs, "workload.accesses=20", "endpoint.memory_cycles=193"]);
    let (time, home) = (time(&outcome), interfaces(&outcome));
    assert!(time > 15.0 * 20.0 * 200.0 && time < 1.02 * 15.0 * 20.0 * 200.0, "{time}");
    assert!(home.busy[0] > 0.98 && home.awaited[0] > 0.97, "{} {}", home.busy[0], home.awaited[0]);
    // Half of the packets are replies, which nothing holds up; requests wait for those of the other nodes.
    assert!(outcome.packet_latency.quantile(0.4) < Some(100), "{:?}", outcome.packet_latency.quantile(0.4));
    assert!(outcome.packet_latency.quantile(0.75) > Some(5_000), "{:?}", outcome.packet_latency.quantile(0.75));
    assert!(mean(&outcome.router_occupancy) > 4.0, "{:?}", outcome.router_occupancy);
}

#[test]
fn layouts_and_repetitions_give_equal_results() {
    // The vector layout supports only wormhole switching.
    let random = |simd: &str| run(&["workload.program=random-access", "router.switching=wormhole", &format!("flit.simd={simd}")]);
    assert_eq!(random("portable"), random("portable"));
    assert_eq!(random("portable"), random("always"));
}

/// Figures 5 and 6 of Sato and Tanaka in small: the time falls with the throughput x between router and interface, much at first and no more
/// after 5, and routers that hold packets for their nodes most of the time at 1 do so about as long as interfaces work at 5.
#[test]
fn the_throughput_to_the_interface_matters_up_to_five() {
    let at = |x: u32| {
        run(&[
            "network={ topology = \"rdt\", side = 8, channel_period = 60 }",
            &format!("network.terminal_channel_period={}", 60 / x),
            "routing.algorithm=vector",
            "router={ virtual_channels = 24, buffer_flits = 16, switching = \"store-and-forward\" }",
            "endpoint={ model = \"dsm\", interface_cycles = 48, window = 64, command_flits = 4, data_flits = 4 }",
        ])
    };
    let outcomes: Vec<Outcome> = [1, 2, 5, 6].map(at).into();
    let times: Vec<f64> = outcomes.iter().map(time).collect();
    assert!(times[0] / times[2] > 1.7 && times[2] / times[3] < 1.06, "{times:?}");
    assert!(times[0] - times[1] > times[1] - times[2], "{times:?}");
    let gap = |outcome: &Outcome| mean(&interfaces(outcome).awaited) - mean(&interfaces(outcome).busy);
    assert!(mean(&interfaces(&outcomes[0]).awaited) > 2.5 * mean(&interfaces(&outcomes[0]).busy));
    assert!(gap(&outcomes[2]).abs() < 0.35 * gap(&outcomes[0]), "{} {}", gap(&outcomes[2]), gap(&outcomes[0]));
}
