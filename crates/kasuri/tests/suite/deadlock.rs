//! Packets that wait for each other: found before a run, and during a run under every rule of measurement.

use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

/// A torus with one virtual channel, which no dateline can divide.
const TORUS: &str = r#"
[network]
topology = "torus"
dimensions = [4, 4]
[routing]
algorithm = "dimension-order"
[router]
virtual_channels = 1
[traffic]
pattern = "uniform"
packet_flits = 5
load = 0.8
"#;

fn kasuri(text: &str, command: &str, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("torus.toml");
    fs::write(&file, text).unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_kasuri"));
    process.arg(command).arg(&file).args(more);
    if command == "run" {
        process.arg("--out").arg(folder.path().join("out"));
        if !more.contains(&"--format") {
            process.args(["--format", "json"]);
        }
    }
    process.output().unwrap()
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The channels named in a text, from the cycle's heading on: `router A port P -> router B port Q, virtual channel V`.
fn channels(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| line.contains(" -> ") && line.contains(", virtual channel 0")).collect()
}

/// Each channel leads to the router where the next one begins, and the last to the first.
fn assert_ring(channels: &[&str]) {
    let ends = |channel: &str| -> Vec<u32> {
        let numbers = channel.split("router ").skip(1).map(|rest| rest.split(' ').next().unwrap().parse().unwrap());
        numbers.collect()
    };
    for (index, channel) in channels.iter().enumerate() {
        let next = channels[(index + 1) % channels.len()];
        assert_eq!(ends(channel)[1], ends(next)[0], "{channels:?}");
    }
}

#[test]
fn a_torus_with_one_virtual_channel_is_refused_with_its_cycle() {
    let check = kasuri(TORUS, "check", &[]);
    assert_eq!(check.status.code(), Some(2));
    let shown = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(shown.contains("possible deadlock: a cycle of 4 channels that wait for each other"), "{shown}");
    let cycle = channels(&shown);
    assert_eq!(cycle.len(), 4);
    assert_ring(&cycle);

    let run = kasuri(TORUS, "run", &[]);
    assert_eq!((run.status.code(), run.stdout.len()), (Some(2), 0));
    assert_eq!(channels(&message(&run)), cycle);
    assert!(message(&run).contains("routing.allow_deadlock = true"), "{}", message(&run));
}

#[test]
fn a_deadlock_ends_the_run_whatever_the_rules_of_measurement() {
    let rules = [
        "",
        "[measure]\nwarmup = 500\n",
        "[measure]\nwarmup = 500\ncycles = 3000\n",
        "[measure]\nwarmup = 500\ncycles = 100_000\n",
        "[measure]\nmax_cycles = 6000\n",
        "[measure]\nrules = \"booksim\"\n",
        "[measure]\nsearch = \"saturation\"\n",
        "process = \"batch\"\nbatch_packets = 5000\n",
    ];
    let allowed = TORUS.replace("[router]", "allow_deadlock = true\n[router]");
    for rule in rules {
        let text = if rule.starts_with("process") { allowed.replace("load = 0.8\n", "") } else { allowed.clone() };
        let output = kasuri(&format!("{text}{rule}"), "run", &["--paranoid"]);
        assert_eq!(output.status.code(), Some(1), "{rule}: {}", message(&output));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let row = &answer["runs"][0];
        assert_eq!(row["status"], "deadlock", "{rule}: {row:#}");
        assert_eq!(row["saturation_load"], Value::Null, "{rule}");
        let waiting: Vec<&str> = row["deadlock"].as_array().unwrap().iter().map(|channel| channel.as_str().unwrap()).collect();
        assert!(waiting.len() > 1, "{rule}: {waiting:?}");
        assert_eq!(channels(&message(&output)), waiting, "{rule}");
        for expected in [": deadlock: ", "deadlock detected at cycle"] {
            assert!(message(&output).contains(expected), "{}", message(&output));
        }
    }
}

/// Channels lose flits, and no source resends: the standstill is then not a cycle of packets. The answer, in any form, names the component
/// that refused a packet and the programs that wait for it.
#[test]
fn a_standstill_without_a_cycle_names_the_blocked_programs() {
    let text = "[network]\ntopology = \"cenju4\"\nterminals = 8\ncycle_ns = 12.5\n[routing]\nalgorithm = \"destination-tag\"\n\
        [router]\narchitecture = \"crosspoint\"\nbuffer_flits = 216\n[endpoint]\nmodel = \"cenju4\"\nflit_loss_rate = 1e-3\n\
        [workload]\ncollective = \"allgather\"\nschedule = \"shift\"\nmessage_bytes = 1000\n";
    let output = kasuri(text, "run", &[]);
    assert_eq!(output.status.code(), Some(1), "{}", message(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = &answer["runs"][0];
    assert_eq!(row["status"], "deadlock", "{row:#}");
    let lines: Vec<&str> = row["deadlock"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let of = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
    assert!(of("refused") > 0 && of("flits are missing") > 0 && of("the program of terminal") > 0, "{lines:?}");
    let refused = format!("{} damaged packets were refused", row["link_packets_refused"]);
    assert!(row["message"].as_str().unwrap().contains(&refused), "{row:#}");
    assert!(message(&output).contains(&refused) && lines.iter().all(|line| message(&output).contains(line)), "{}", message(&output));
    let csv = kasuri(text, "run", &["--format", "csv"]);
    assert!(lines.iter().all(|line| String::from_utf8_lossy(&csv.stdout).contains(line)));
}

/// As BookSim divides three virtual channels, the middle one serves both classes: the head of one class can wait behind a packet of
/// the other, and the datelines cut nothing any more.
#[test]
fn a_virtual_channel_of_both_dateline_classes_can_deadlock() {
    let ring = "[network]\ntopology = \"torus\"\ndimensions = [16]\n[routing]\nalgorithm = \"dimension-order\"\nshare_middle = true\n\
        [router]\nvirtual_channels = 3\nbuffer_flits = 4\n[traffic]\npattern = \"uniform\"\nload = 1.0\n\
        packet_flits = [{ flits = 1, weight = 0.9 }, { flits = 30, weight = 0.1 }]\n[measure]\nwarmup = 1000\ncycles = 200_000\n";
    assert_eq!(kasuri(ring, "check", &[]).status.code(), Some(2));
    let output = kasuri(ring, "run", &["--set", "routing.allow_deadlock=true"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["runs"][0]["status"], "deadlock", "{answer:#}");
    let output = kasuri(&ring.replace("share_middle = true", ""), "run", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
}

/// Flows hold no buffers while they wait, so a cycle of two virtual channels stops packets but not flows; parcels of packets hold buffers.
#[test]
fn flows_run_where_packets_could_wait_for_each_other() {
    let text = TORUS.replace("load = 0.8", "process = \"batch\"\nbatch_packets = 2");
    let with = |engine: &str, command: &str| kasuri(&format!("{engine}\n{text}"), command, &[]);
    for sharing in ["equal-share", "max-min"] {
        let engine = format!("engine = \"flow\"\nflow.sharing = \"{sharing}\"");
        let run = with(&engine, "run");
        assert!(run.status.success(), "{sharing}: {}", message(&run));
        let rows: Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(rows["runs"][0]["status"], "completed", "{sharing}");
        let check = with(&engine, "check");
        let said = String::from_utf8_lossy(&check.stdout).into_owned();
        assert!(check.status.success(), "{sharing}: {said}");
        assert!(said.contains("possible deadlock") && said.contains("flows hold no buffers"), "{sharing}: {said}");
    }
    for engine in ["engine = \"flow\"\nflow.sharing = \"arbitrated\"", "engine = \"flit\""] {
        for command in ["run", "check"] {
            assert_eq!(with(engine, command).status.code(), Some(2), "{engine}: {command}");
        }
    }
}
