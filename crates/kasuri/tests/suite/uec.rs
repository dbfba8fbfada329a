//! `kasuri uec` on the extract of reference data, and on files that are wrong.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/uec").join(name)
}

fn kasuri(topology: &Path, matrix: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kasuri"));
    command.arg("uec").arg("--topo").arg(topology).arg("--cm").arg(matrix).args(more).stdin(Stdio::null());
    command.output().expect("the binary that cargo has just built")
}

fn answer(topology: &str, matrix: &str, more: &[&str]) -> Value {
    let paths = [data(&format!("topologies/own/{topology}.topo")), data(&format!("matrices/own/{matrix}.cm"))];
    let output = kasuri(&paths[0], &paths[1], &[more, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(name: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    csv::Reader::from_path(data(name)).unwrap().deserialize().map(Result::unwrap).collect()
}

/// The options of the command for those of htsim.
fn translated(options: &str) -> Vec<&str> {
    let words: Vec<&str> = options.split(' ').collect();
    let name = |word: &str| match word {
        "-linkspeed" => Some("--link-speed"),
        "-mtu" => Some("--mtu"),
        "-paths" => Some("--paths"),
        "-sack_threshold" => Some("--sack-threshold"),
        _ => None,
    };
    words.windows(2).filter_map(|pair| Some([name(pair[0])?, pair[1]])).flatten().collect()
}

/// Where paths are fixed there is one right time, to the picosecond: acknowledgements, triggers and ties included.
#[test]
fn flows_of_fixed_paths_end_when_they_end_in_htsim() {
    let flows = rows("flows.csv");
    let mut compared = 0;
    for run in rows("runs.csv").iter().filter(|run| run["class"].contains("one-way")).step_by(3) {
        let found = answer(&run["topology"], &run["matrix"], &translated(&run["options"]));
        for flow in flows.iter().filter(|flow| flow["run"] == run["run"]) {
            let ours = &found["flows"][flow["connection"].parse::<usize>().unwrap() - 1];
            for time in ["start_us", "received_us", "finish_us"] {
                let theirs: f64 = flow[time].parse().unwrap();
                assert!((ours[time].as_f64().unwrap() - theirs).abs() < 1.5e-6, "{run:?} {flow:?}: {ours}");
            }
            compared += 1;
        }
        let last = found["flows"].as_array().unwrap().iter().filter_map(|flow| flow["finish_us"].as_f64()).fold(0.0, f64::max);
        assert!((last - run["tail_us"].parse::<f64>().unwrap()).abs() < 1.5e-6, "{run:?}: {last}");
        assert_eq!(found["counts"]["acknowledgements"].to_string(), run["acks"], "{run:?}");
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn the_formula_and_the_packets_of_a_lone_flow_agree() {
    for engine in ["flit", "flow", "analysis"] {
        let found = answer("ls16", "one_16_far_1000000", &["--paths", "1", "--engine", engine]);
        assert_eq!((found["flows"][0]["received_us"].as_f64(), found["flows"][0]["finish_us"].as_f64()), (Some(86.2504), Some(90.27088)));
        assert_eq!(found["bound_us"].as_f64(), Some(90.27088), "{engine}");
    }
}

/// A full packet and a short one of 978 bytes (914 of payload), and one of 74: on another spine the short one overtakes. The full packet
/// alone takes 4 x 4,150 x 80 ps and 4 us, its acknowledgement 4 x 64 x 80 ps and 4 us.
#[test]
fn a_short_last_packet_may_overtake_and_keeps_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    for bytes in [5000, 4096] {
        let matrix = folder.path().join("m.cm");
        fs::write(&matrix, format!("Nodes 16\nConnections 1\n15->3 id 1 start 0 size {bytes}\n")).unwrap();
        for more in [["--spray", "hash"], ["--spray", "random"], ["--engine", "flow"], ["--engine", "analysis"]] {
            let output = kasuri(&data("topologies/own/ls16.topo"), &matrix, &[&more[..], &["--format", "json"]].concat());
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(found["bound_us"].as_f64(), Some(9.34848), "{bytes} {more:?}");
            assert!(found["flows"][0]["finish_us"].as_f64() >= Some(9.34848), "{bytes} {more:?}: {found}");
        }
    }
}

#[test]
fn published_bounds_are_those_of_the_formula() {
    for row in rows("published.csv").iter().step_by(10) {
        let topology = data("topologies/upstream").join(&row["topology"]);
        let output = kasuri(&topology, &data("matrices/upstream").join(&row["cm"]), &["--engine", "analysis", "--format", "json"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(
            (found["bound_us"].as_f64().unwrap() - row["bound_us"].parse::<f64>().unwrap()).abs() < 1.01e-4,
            "{row:?}: {}",
            found["bound_us"]
        );
    }
}

#[test]
fn a_seed_gives_one_result_and_each_way_of_spraying_another() {
    let last = |more: &[&str]| {
        let found = answer("ls16", "perm_16_1000000_s1", more);
        found["flows"].as_array().unwrap().iter().filter_map(|flow| flow["finish_us"].as_f64()).fold(0.0, f64::max)
    };
    assert_eq!(last(&["--seed", "5"]), last(&["--seed", "5"]));
    assert_ne!(last(&["--seed", "5"]), last(&["--seed", "6"]));
    let bound = answer("ls16", "perm_16_1000000_s1", &["--engine", "analysis"])["bound_us"].as_f64().unwrap();
    let [turns, drawn, hashed, one] = ["round-robin", "random", "hash", "one"].map(|spray| last(&["--spray", spray]));
    assert!(bound < turns && turns < drawn && drawn < hashed && hashed < one, "{bound} {turns} {drawn} {hashed} {one}");
}

#[test]
fn a_table_says_when_all_is_done() {
    let output = kasuri(&data("topologies/own/ls16.topo"), &data("matrices/own/one_16_far_1000000.cm"), &["--spray", "one"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("RECEIVED, US") && text.contains("86.250400"), "{text}");
    assert!(text.ends_with("all acknowledged at 90.270880 us; no network without losses could be done before 90.270880 us\n"), "{text}");
}

#[test]
fn wrong_input_ends_with_status_2_and_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let [topology, matrix] = [data("topologies/own/ls16.topo"), data("matrices/own/one_16_far_1000000.cm")];
    let wrong = |topology: &Path, matrix: &Path, more: &[&str], expected: &str| {
        let output = kasuri(topology, matrix, more);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{message}");
        assert!(message.contains(expected), "{message}");
    };
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    wrong(&file("f.topo", "Nodes 16\nTiers 2\n"), &matrix, &[], "f.topo:1: podsize is missing");
    let many = file("many.cm", "Nodes 17\nConnections 1\n0->16 start 0 size 1\n");
    wrong(&topology, &many, &[], "Nodes is 17, but the fabric");
    wrong(&topology, &file("m.cm", "Nodes 16\nConnections 1\n0->16 start 0 size 1\n"), &[], "m.cm:3: destination: invalid number `16`");
    wrong(&topology, Path::new("nowhere.cm"), &[], "nowhere.cm: cannot be read");
    wrong(&topology, &matrix, &["--paths", "3"], "expected a power of two");
    wrong(&topology, &matrix, &["--mtu", "64"], "nothing is left for payload");
}
