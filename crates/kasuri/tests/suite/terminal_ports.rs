//! Terminals with several ports: planes, switches that serve a terminal together, and the state after their failure.

use crate::common::UntilDone;
use kasuri::engines::CyclesEngine;
use kasuri::input::KNOWN;
use kasuri::measure::controller;
use kasuri::plan::{self, RunOptions};
use kasuri_config::{Document, Preparation, Study};
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_model::scenario::Scenario;
use kasuri_network::topology::NoFiles;

const INPUT_QUEUED: &str = "[router]\nvirtual_channels = 4\nbuffer_flits = 16\n";
const OUTPUT_QUEUED: &str = "[router]\narchitecture = \"output-queued\"\nlatency = 3\nswitching = \"virtual-cut-through\"\n";

fn study(text: &str) -> Result<Study, String> {
    let document = Document::parse_for(*KNOWN, "test.toml", text).map_err(|error| error.to_string())?;
    Preparation::new(&document, &NoFiles, *KNOWN).study(&document.points().unwrap()[0]).map_err(|errors| errors.to_string())
}

fn run_with(engine: &dyn Engine, text: &str) -> Outcome {
    let study = study(text).unwrap_or_else(|error| panic!("{error}"));
    let outcome = engine.run(&Scenario { paranoid: true, ..study.scenario }, &mut UntilDone).unwrap();
    assert_eq!(outcome.status, Status::Completed);
    outcome
}

/// When a workload is complete, by each engine that has its routers.
fn completions(text: &str) -> Vec<f64> {
    let of_cycles = [INPUT_QUEUED, OUTPUT_QUEUED].map(|router| run_with(&CyclesEngine, &format!("{text}{router}")));
    let of_flows = run_with(&FlowEngine, &format!("engine = \"flow\"\n{text}{INPUT_QUEUED}"));
    of_cycles.iter().chain([&of_flows]).map(|outcome| outcome.completion_time.unwrap()).collect()
}

fn leaf_spine(planes: u32, more: &str) -> String {
    let topology = if planes == 1 {
        "topology = \"leaf-spine\"".to_owned()
    } else {
        format!("topology = \"planes\"\nplanes = {planes}\nof = \"leaf-spine\"")
    };
    format!("[network]\n{topology}\nleaves = 4\nspines = 2\ndown = 2\n[routing]\nalgorithm = \"ecmp\"\n{more}")
}

fn shifts(flits: u32) -> String {
    format!("[workload]\ncollective = \"alltoall\"\nschedule = \"pairwise\"\nmessage_flits = {flits}\npacket_flits = 10\n")
}

/// Two terminals at one switch in each plane: a message of P times the packets takes the same time over P ports as the short one over one
/// port, and by destination the time of a single port.
#[test]
fn ports_carry_a_message_together() {
    let pair = |planes: u32, choice: &str, flits: u32| {
        let topology =
            if planes == 1 { "topology = \"mesh\"".to_owned() } else { format!("topology = \"planes\"\nplanes = {planes}\nof = \"mesh\"") };
        let choice = if planes == 1 { String::new() } else { format!("terminal_ports = \"{choice}\"\n") };
        completions(&format!(
            "[network]\n{topology}\ndimensions = [2]\n[routing]\nalgorithm = \"dimension-order\"\n{choice}{}",
            shifts(flits)
        ))
    };
    let one = pair(1, "", 600);
    for planes in [2, 3, 4] {
        assert_eq!(pair(planes, "by-packet", 600 * planes), one, "{planes} planes");
        assert_eq!(pair(planes, "by-message", 600), one);
        assert_eq!(pair(planes, "by-destination", 600), one);
    }
    // 61 packets, the last of 4 flits: 31 in one plane, with the last one, and 30 in the other.
    let short = pair(2, "by-packet", 604);
    assert_eq!(short, pair(1, "", 304));
}

/// The bound of an all-to-all is that of the data over all ports: half of that of one plane.
#[test]
fn the_bound_is_that_of_all_ports() {
    let bound = |text: &str| {
        let document = Document::parse_for(*KNOWN, "test.toml", text).unwrap();
        let summary = plan::run(&document, &NoFiles, &RunOptions::default()).unwrap();
        ["completion_bound", "efficiency"].map(|name| summary.rows[0].get(name).as_f64())
    };
    let [one, two] = [1, 2].map(|planes| bound(&format!("engine = \"flow\"\n{}{INPUT_QUEUED}", leaf_spine(planes, &shifts(400)))));
    // Seven messages of 400 flits.
    assert_eq!((one[0], two[0]), (Some(2800.0), Some(1400.0)));
    assert!(two[1].unwrap() > 0.4 && two[1].unwrap() <= 1.0, "{two:?}");
}

/// However terminals choose, no flows end before the formula's bound.
#[test]
fn no_choice_ends_before_its_bound() {
    for choice in ["by-packet", "by-message", "by-destination"] {
        for faults in ["", "[faults]\nrouters = [0]\n"] {
            let time = |engine: &str| {
                let text = leaf_spine(2, &format!("terminal_ports = \"{choice}\"\n{faults}{INPUT_QUEUED}{}", shifts(75)));
                let document = Document::parse_for(*KNOWN, "test.toml", &format!("engine = \"{engine}\"\n{text}")).unwrap();
                let summary = plan::run(&document, &NoFiles, &RunOptions::default()).unwrap();
                summary.rows[0].get("completion_time").as_f64().unwrap()
            };
            let [bound, flow, flit] = ["analysis", "flow", "flit"].map(time);
            assert!(bound <= flow && bound <= flit && bound > 0.2 * flow, "{choice} {faults}: {bound}, {flow}, {flit}");
        }
    }
}

/// A failed plane leaves all its work to the other: the work of two planes takes the time of a single plane.
#[test]
fn a_plane_that_is_down_leaves_one_plane() {
    let one = completions(&leaf_spine(1, &shifts(400)));
    let both = completions(&leaf_spine(2, &shifts(800)));
    let left = completions(&leaf_spine(2, &format!("[faults]\nplanes = [1]\n{}", shifts(400))));
    for ((one, both), left) in one.iter().zip(&both).zip(&left) {
        assert!(
            (both / one - 1.0).abs() < 0.1 && (left / one - 1.0).abs() < 0.02,
            "{one} alone, {both} by two planes, {left} by what is left"
        );
    }
}

/// One of a pod's two switches for a rail fails: its interfaces continue with one port each, at most at half the rate (sprayed packets
/// collide more often with more of them on one plane), and none is cut off.
#[test]
fn a_switch_that_is_down_halves_its_interfaces() {
    let pod = "[network]\ntopology = \"hpn-pod\"\nsegments = 2\nhosts = 2\nrails = 1\naggregation = 2\n[routing]\nalgorithm = \"ecmp\"\n\
        policy = \"random\"\n";
    let whole = completions(&format!("{pod}{}", shifts(2000)));
    let left = completions(&format!("{pod}[faults]\nrouters = [0]\n{}", shifts(2000)));
    for (whole, left) in whole.iter().zip(&left) {
        assert!((1.9..2.6).contains(&(left / whole)), "{whole}, {left}");
    }
    let cut = study(&format!("{pod}[faults]\nrouters = [0, 1]\n{}{INPUT_QUEUED}", shifts(10))).unwrap_err();
    assert!(cut.contains("no port of terminal 2 reaches one of terminal 0"), "{cut}");
}

/// Switches that share the terminals of one tree.
#[test]
fn terminals_of_one_tree_may_have_several_switches() {
    for algorithm in ["ecmp", "minimal", "up-down"] {
        let text =
            format!("[network]\ntopology = \"xgft\"\nm = [2, 2]\nw = [2, 2]\n[routing]\nalgorithm = \"{algorithm}\"\n{}", shifts(40));
        let times = completions(&text);
        // Three messages of 4 packets by two ports: 60 flits of each.
        assert!(times.iter().all(|time| (60.0..300.0).contains(time)), "{algorithm}: {times:?}");
    }
}

/// Loads and rates are those of a port, and two planes do what one does.
#[test]
fn open_traffic_of_two_planes_is_that_of_one() {
    for engine in ["flit", "flow", "analysis"] {
        for router in [INPUT_QUEUED, OUTPUT_QUEUED] {
            if engine != "flit" && router == OUTPUT_QUEUED {
                continue;
            }
            let traffic = "[traffic]\npattern = \"uniform\"\nload = 0.4\npacket_flits = 4\n[measure]\nwarmup = 3000\ncycles = 20000\n";
            let row =
                |text: &str| plan::run(&Document::parse_for(*KNOWN, "test.toml", text).unwrap(), &NoFiles, &RunOptions::default()).unwrap();
            let rows = [1, 2].map(|planes| row(&format!("engine = \"{engine}\"\n{}", leaf_spine(planes, &format!("{traffic}{router}")))));
            let value = |number: usize, name: &str| rows[number].rows[0].get(name).as_f64();
            for name in ["accepted_load", "packet_latency_mean", "hops_mean"] {
                let (Some(one), Some(two)) = (value(0, name), value(1, name)) else { continue };
                assert!((two / one - 1.0).abs() < 0.03, "{engine} {name}: {one}, {two}");
            }
            assert_eq!((value(1, "terminals"), value(1, "terminal_ports"), value(0, "terminal_ports")), (Some(8.0), Some(16.0), None));
        }
    }
}

/// A permutation with one plane for each pair: ports without a hashed pair send nothing, the others twice the load.
#[test]
fn by_destination_a_permutation_takes_one_port_of_each_terminal() {
    let text = leaf_spine(
        2,
        "terminal_ports = \"by-destination\"\n[traffic]\npattern = \"bit-complement\"\nload = 0.2\npacket_flits = 4\n[measure]\nwarmup = 2000\ncycles = 20000\n",
    );
    let study = study(&format!("{text}{INPUT_QUEUED}")).unwrap();
    let outcome = CyclesEngine.run(&study.scenario, &mut *controller(&study)).unwrap();
    let rates: Vec<f64> = outcome.channel_flits[..16].iter().map(|&flits| flits as f64 / outcome.measured_cycles as f64).collect();
    for pair in rates.chunks(2) {
        let [least, most] = [pair[0].min(pair[1]), pair[0].max(pair[1])];
        assert!(least == 0.0 && (most / 0.4 - 1.0).abs() < 0.05, "{rates:?}");
    }
}

#[test]
fn features_of_one_port_are_refused() {
    let exchange = shifts(4);
    let with = |more: &str| leaf_spine(2, more);
    let user = "[[user]]\nname = \"a\"\nnodes = 2\ntraffic = { pattern = \"uniform\", load = 0.1 }\n";
    let machine = "[endpoint]\nmodel = \"dsm\"\n[workload]\nprogram = \"random-access\"\naccesses = 3\nwrite_fraction = 0.5\n";
    for (text, wanted) in [
        (with(user), "user: does not go with terminals with several ports"),
        (with(machine), "endpoint: does not go with terminals with several ports"),
        (
            with(&format!("[faults]\nlinks = [\"0 4\"]\nat = 50\n{exchange}")),
            "faults: has something that changes during the run, which does not go with terminals",
        ),
        (with(&format!("terminal_ports = \"by-luck\"\n{exchange}")), "must be \"by-packet\", \"by-message\" or \"by-destination\""),
        (
            leaf_spine(1, &format!("terminal_ports = \"by-packet\"\n{exchange}")),
            "is about terminals with several ports, and these have one",
        ),
        (with(&exchange.replace("\"pairwise\"", "\"general\"")), "is made for terminals with one port"),
        (
            with("terminal_ports = \"by-destination\"\n[traffic]\npattern = \"uniform\"\nprocess = \"batch\"\nbatch_packets = 3\n"),
            "is a batch, of which every port sends as much",
        ),
    ] {
        let error = study(&format!("{text}{INPUT_QUEUED}")).map(|_| ()).unwrap_err();
        assert!(error.contains(wanted), "{wanted}\n{error}");
    }
}

/// The same bits on any number of threads.
#[test]
fn threads_change_nothing() {
    let text = leaf_spine(3, &format!("{INPUT_QUEUED}{}", shifts(90)));
    let on = |threads: usize| {
        let text = format!("{text}[flit]\nthreads = {threads}\n");
        let outcome = run_with(&CyclesEngine, &text);
        (outcome.completion_time, outcome.completion_cycles, outcome.channel_flits)
    };
    assert!(on(1) == on(2) && on(1) == on(4));
}

/// A program with two messages, on interfaces 0 and 1: over two planes they take as long as one message alone, over interface 0 both take
/// twice as long; with one port for each terminal the program is refused.
#[test]
fn interfaces_of_a_program_are_ports() {
    struct One(String);
    impl kasuri_network::topology::Files for One {
        fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
            Ok(self.0.clone().into_bytes())
        }
    }
    let program = |nics: &[u32]| {
        let lines = |verb: &str, to: &str| {
            let line = |(tag, nic): (usize, &u32)| format!("{verb} 4096b {to} tag {tag} nic {nic}\n");
            nics.iter().enumerate().map(line).collect::<String>()
        };
        format!("num_ranks 2\nrank 0 {{\n{}}}\nrank 1 {{\n{}}}\n", lines("send", "to 1"), lines("recv", "from 0"))
    };
    let study = |planes: u32, nics: &[u32]| {
        let topology = if planes > 1 { format!("\"planes\"\nplanes = {planes}\nof = \"mesh\"") } else { "\"mesh\"".to_owned() };
        let text = format!(
            "[network]\ntopology = {topology}\ndimensions = [2]\nflit_bytes = 8\n[routing]\nalgorithm = \"dimension-order\"\n\
             [workload]\ntrace = \"a.goal\"\npacket_flits = 8\n{INPUT_QUEUED}"
        );
        let document = Document::parse_for(*KNOWN, "test.toml", &text).map_err(|error| error.to_string())?;
        let files = One(program(nics));
        Preparation::new(&document, &files, *KNOWN).study(&document.points().unwrap()[0]).map_err(|errors| errors.to_string())
    };
    let completion = |planes: u32, nics: &[u32]| {
        let study = study(planes, nics).unwrap_or_else(|error| panic!("{error}"));
        [&CyclesEngine as &dyn Engine, &FlowEngine]
            .map(|engine| engine.run(&study.scenario, &mut UntilDone).unwrap().completion_time.unwrap())
    };
    // 512 flits a message.
    let (alone, apart, together) = (completion(2, &[1]), completion(2, &[0, 1]), completion(2, &[1, 1]));
    for engine in 0..2 {
        assert_eq!(alone[engine], apart[engine]);
        assert!((together[engine] - alone[engine] - 512.0).abs() <= 16.0, "{together:?} {alone:?}");
    }
    let error = study(1, &[0, 1]).unwrap_err();
    assert!(error.contains("rank 0: send to 1 tag 1 is on nic 1, and its terminal has one port"), "{error}");
    assert!(study(2, &[0, 2]).unwrap_err().contains("its terminal has 2 ports, nic 0 to 1; take a network"), "{error}");
}
