//! Windows as flows: their throughput, by formula; cases that they do not change; and the flit engine's results for the same.

use crate::common::UntilDone;
use kasuri_config::{Document, Known, Preparation};
use kasuri_flit::FlitEngine;
use kasuri_flow::{FlowEngine, analysis};
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_model::scenario::Scenario;
use kasuri_network::topology::NoFiles;

const FULL_MESH: &str = "network = { topology = \"full-mesh\", routers = 8, concentration = 1, channel_latency = 30 }\n\
                         routing = { algorithm = \"minimal\" }\nrouter = { virtual_channels = 4, buffer_flits = 256 }\n";

const MESH: &str = "network = { topology = \"mesh\", dimensions = [4, 4] }\nrouting = { algorithm = \"dimension-order\" }\n\
                    router = { virtual_channels = 4, buffer_flits = 16 }\n";

fn scenario(text: &str) -> Scenario {
    let document = Document::parse("windows.toml", text).expect("TOML");
    let points = document.points().expect("one point");
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&points[0]).expect("traffic");
    Scenario { paranoid: true, ..study.scenario }
}

/// Every flit that is sent arrives.
fn run(engine: &dyn Engine, scenario: &Scenario) -> Outcome {
    let outcome = engine.run(scenario, &mut UntilDone).expect("a run");
    assert_eq!(outcome.status, Status::Completed);
    let [sent, arrived] = [&outcome.injected_flits, &outcome.accepted_flits].map(|flits| flits.iter().sum::<u64>());
    assert_eq!(sent, arrived, "{}", engine.name());
    outcome
}

fn time(outcome: &Outcome) -> f64 {
    outcome.completion_time.expect("an end")
}

const PACKETS: u64 = 400;

/// Batches with a window between undisturbed pairs.
fn pairs(flits: u32, window: &str) -> String {
    format!(
        "{FULL_MESH}traffic = {{ pattern = \"bit-complement\", process = \"batch\", batch_packets = {PACKETS}, packet_flits = {flits}{window} }}"
    )
}

/// With a window of W packets of L flits and a round trip of R cycles a terminal sends min(1, W L / R) flits a cycle. More exactly: a packet
/// begins L cycles after the one before, and R after the one W before.
#[test]
fn a_window_lets_through_its_flits_in_each_round_trip() {
    for flits in [1, 5, 20, 64] {
        let latency = analysis::zero_load(&scenario(&pairs(flits, ""))).expect("a formula").packet_latency;
        let round_trip = latency + 1.0;
        for window in [1, 2, 3, 7, 40] {
            let text = pairs(flits, &format!(", outstanding_packets = {window}"));
            let mut begun = vec![0.0f64; PACKETS as usize];
            for packet in 1..PACKETS as usize {
                let returned = packet.checked_sub(window).map_or(0.0, |before| begun[before] + round_trip);
                begun[packet] = returned.max(begun[packet - 1] + f64::from(flits));
            }
            let end = begun[PACKETS as usize - 1] + round_trip;
            let rate = (window as f64 * f64::from(flits) / round_trip).min(1.0);
            assert!((PACKETS as f64 * f64::from(flits) / end / rate - 1.0).abs() < 0.2, "the formula is that of the long run");
            let flow = time(&run(&FlowEngine, &scenario(&text)));
            assert!((flow - end).abs() < 1e-6, "{window} of {flits} flits: {flow}, by formula {end}");
            let flit = time(&run(&FlitEngine, &scenario(&text)));
            assert!((flow / flit - 1.0).abs() < 0.01, "{window} of {flits} flits: {flow} as flows, {flit} flit by flit");
        }
    }
}

/// Features that a window may be combined with.
const BESIDE: &[&str] = &[
    "",
    "reply = { packet_flits = 4, virtual_channels = [2, 4] }, virtual_channels = [0, 2]",
    "counts_answers = true, reply = { packet_flits = 4, delay = 7, virtual_channels = [2, 4] }, virtual_channels = [0, 2]",
    "class = [{ pattern = \"uniform\" }, { pattern = \"bit-complement\", packet_flits = 9 }]",
    "class = [{ pattern = \"uniform\", shares_coins = true }, { pattern = \"bit-complement\", packet_flits = 9, shares_coins = true }]",
];

fn batches(beside: &str, window: &str) -> Scenario {
    scenario(&format!(
        "{MESH}traffic = {{ pattern = \"uniform\", process = \"batch\", batch_packets = 60, packet_flits = 4, {window}{beside} }}"
    ))
}

/// As flows, with either sharing.
fn with_sharing(sharing: &str, scenario: &Scenario) -> Outcome {
    let engine_options = format!("sharing = \"{sharing}\"").parse().expect("TOML");
    run(&FlowEngine, &Scenario { engine_options, ..scenario.clone() })
}

/// A window that holds the whole batch and all that it is answered holds nothing back.
#[test]
fn a_window_that_is_never_full_is_none_bit_for_bit() {
    for sharing in ["equal-share", "max-min"] {
        for beside in BESIDE {
            let [none, wide] = ["", "outstanding_packets = 120, "].map(|window| with_sharing(sharing, &batches(beside, window)));
            assert_eq!(none, wide, "{sharing}: {beside}");
        }
    }
}

/// The same messages in both engines. A window of one passes one message per round trip, which they share. The wider it is, the more
/// messages of few flits meet: as flows they delay each other on all channels of their paths at once, which takes up to a fifth longer.
#[test]
fn flows_and_flits_agree_on_the_throughput_of_windows() {
    for beside in BESIDE {
        for (window, longest) in [(1, 1.065), (2, 1.12), (4, 1.23)] {
            let batches = batches(beside, &format!("outstanding_packets = {window}, "));
            let flit = run(&FlitEngine, &batches);
            for sharing in ["equal-share", "max-min"] {
                let flow = with_sharing(sharing, &batches);
                let ratio = time(&flow) / time(&flit);
                assert!((0.99..longest).contains(&ratio), "{sharing}, window {window}, {beside}: {ratio}");
                // The answers beyond a batch depend on the order.
                if !beside.contains("counts_answers") {
                    assert_eq!(flow.injected_flits, flit.injected_flits, "{sharing}, window {window}, {beside}");
                }
            }
        }
    }
}

/// Answers count: pairs that exchange requests send half of their packets as answers, the same number as flit by flit.
#[test]
fn batches_that_count_answers_end_with_them() {
    let answered = "reply = { packet_flits = 6, virtual_channels = [2, 4] }, virtual_channels = [0, 2], outstanding_packets = 1";
    let pairs = |counts: bool| {
        let batch = format!("pattern = \"bit-complement\", process = \"batch\", batch_packets = 50, packet_flits = 2, {answered}");
        scenario(&format!("{FULL_MESH}traffic = {{ {batch}, counts_answers = {counts} }}"))
    };
    let (all, half) = (run(&FlowEngine, &pairs(false)), run(&FlowEngine, &pairs(true)));
    // Each terminal sends 50 requests and 50 answers, or 25 of each.
    assert_eq!((all.packet_latency.count, half.packet_latency.count), (8 * 100, 8 * 50));
    assert!(all.injected_flits.iter().all(|&flits| flits == 50 * 8));
    assert!(half.injected_flits.iter().all(|&flits| flits == 25 * 8));
    assert!((time(&all) / time(&half) - 2.0).abs() < 0.02, "{} and {}", time(&all), time(&half));
    let flit = run(&FlitEngine, &pairs(true));
    assert_eq!(half.injected_flits, flit.injected_flits);
    assert!((time(&half) / time(&flit) - 1.0).abs() < 0.01, "{} and {}", time(&half), time(&flit));
}

/// Batches with a window in parallel to a workload, with messages through host adapters or not, on one machine or as another user's.
fn beside_workload(window: &str, adapters: bool, users: bool) -> Scenario {
    let batch = format!("pattern = \"uniform\"\nprocess = \"batch\"\nbatch_packets = 10\npacket_flits = 8\n{window}");
    let workload = "collective = \"alltoall\"\nschedule = \"shift\"\nmessage_flits = 100";
    let endpoint = if adapters { "[endpoint]\nmodel = \"rdma\"\nsend_queue_entries = 2\n" } else { "" };
    let network = MESH.replace("dimensions = [4, 4]", "dimensions = [4, 4], flit_bytes = 64, cycle_ns = 1.28");
    let all: Vec<u32> = (0..16).collect();
    scenario(&if users {
        format!(
            "{network}{endpoint}[[user]]\nname = \"batch\"\nnodes = {all:?}\n[user.traffic]\n{batch}\n\
             [[user]]\nname = \"workload\"\nnodes = {all:?}\noverlap = [\"batch\"]\n[user.workload]\n{workload}\n"
        )
    } else {
        format!("{network}{endpoint}[traffic]\n{batch}\n[workload]\n{workload}\n")
    })
}

/// Two ways to one answer, and one limit: who keeps the window is the machine's business, not the workload's.
#[test]
fn windows_hold_with_workloads_and_host_adapters() {
    for (adapters, sharing) in [(false, "equal-share"), (false, "max-min"), (true, "equal-share"), (true, "max-min")] {
        let of_window = |window: &str, users: bool| with_sharing(sharing, &beside_workload(window, adapters, users));
        let wide = of_window("outstanding_packets = 10", false);
        assert_eq!(wide, of_window("", false), "a window that is never full is none");
        let one = of_window("outstanding_packets = 1", false);
        let users = of_window("outstanding_packets = 1", true);
        assert_eq!((one.completion_time, &one.channel_flits), (users.completion_time, &users.channel_flits), "{sharing}");
        let background = one.background.expect("a background");
        assert_eq!((background.packets, background.accepted_flits), (16 * 10, 16 * 10 * 8));
    }
}

/// The slowdown of a workload by batches with a window is the same in both engines within a tenth; through host adapters, which take most
/// of the time, the whole time is.
#[test]
fn flows_and_flits_agree_on_workloads_with_windows() {
    for window in [1, 4] {
        for (adapters, sharing, tolerance) in [(false, "equal-share", 0.1), (false, "max-min", 0.1), (true, "max-min", 0.005)] {
            let with = beside_workload(&format!("outstanding_packets = {window}"), adapters, false);
            let without = Scenario { classes: Vec::new(), ..with.clone() };
            let (flow, flit) = (with_sharing(sharing, &with), run(&FlitEngine, &with));
            assert_eq!(flow.injected_flits, flit.injected_flits, "the same messages");
            let mut ratio = time(&flow) / time(&flit);
            if !adapters {
                ratio /= time(&with_sharing(sharing, &without)) / time(&run(&FlitEngine, &without));
            }
            assert!((ratio - 1.0).abs() < tolerance, "adapters {adapters}, {sharing}, window {window}: {ratio}");
        }
    }
}
