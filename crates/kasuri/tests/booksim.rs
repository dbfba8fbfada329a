//! `kasuri booksim` from a configuration to a row.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Runs settings by BookSim's rules and returns the row. `test` names the folder for results.
fn run(test: &str, settings: &[&str]) -> Value {
    let out: PathBuf = [env!("CARGO_TARGET_TMPDIR"), "booksim", test].iter().collect();
    let _ = std::fs::remove_dir_all(&out);
    let mut command = Command::new(env!("CARGO_BIN_EXE_kasuri"));
    let command = command.arg("booksim").args(settings).args(["--booksim-rules", "--format", "json", "--out"]).arg(&out);
    let output = command.output().expect("the binary that cargo has just built starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("standard output is one JSON object");
    let [row] = answer["runs"].as_array().unwrap().as_slice() else { panic!("one row, not {answer}") };
    row.clone()
}

/// One flit through R routers of P cycles, with channel latency L everywhere but 1 at the terminals, takes
/// 1 + 1 + R P + (R - 1) L + 1 cycles; P = routing + allocations + traversal. A load of 0.001 leaves next to no contention.
#[test]
fn a_nearly_empty_network_has_the_latency_of_the_formula() {
    let common = ["injection_rate=0.001", "sample_period=20000", "warmup_periods=1", "num_vcs=2"];
    for (number, (settings, cycles, latency)) in [
        (vec!["topology=mesh", "k=4", "n=2", "routing_function=dor"], 4.0, 1.0),
        (vec!["topology=torus", "k=4", "n=2", "routing_function=dim_order"], 4.0, 2.0),
        (vec!["topology=torus", "k=4", "n=2", "routing_function=dim_order", "use_noc_latency=0"], 4.0, 1.0),
        (vec!["topology=fattree", "k=2", "n=3", "routing_function=nca", "routing_delay=0"], 3.0, 1.0),
        (vec!["topology=fly", "k=4", "n=2", "routing_function=dest_tag", "st_prepare_delay=2"], 6.0, 1.0),
        (vec!["topology=mesh", "k=4", "n=2", "routing_function=dor", "speculative=1"], 3.0, 1.0),
    ]
    .into_iter()
    .enumerate()
    {
        let row = run(&format!("formula-{number}"), &[&settings[..], &common].concat());
        let hops = row["hops_mean"].as_f64().unwrap();
        let expected = 3.0 + hops * cycles + (hops - 1.0) * latency;
        let measured = row["network_latency_mean"].as_f64().unwrap();
        assert_eq!(row["status"], "converged");
        assert!((measured - expected).abs() < 0.05, "{settings:?}: {measured}, not {expected}");
    }
}

/// A batch of n packets of M flits cannot be sent in less than n M cycles.
#[test]
fn a_batch_takes_at_least_as_long_as_its_flits() {
    let settings = ["topology=fattree", "k=4", "n=2", "routing_function=nca", "sim_type=batch", "batch_size=3", "packet_size=7"];
    let row = run("batch", &settings);
    assert_eq!(row["status"], "completed");
    assert_eq!(row["measured_packets"].as_u64(), Some(16 * 3));
    let time = row["completion_time"].as_f64().unwrap();
    assert!((21.0..400.0).contains(&time), "{time}");
}

/// With an odd number of virtual channels BookSim's dateline classes share the middle one. That can deadlock, so that Kasuri alone
/// would refuse it; BookSim runs it, and so does its configuration here.
#[test]
fn a_torus_with_three_virtual_channels_is_delivered() {
    let settings = ["topology=torus", "k=5", "n=2", "routing_function=dim_order", "sim_type=batch", "batch_size=40", "num_vcs=3"];
    let row = run("odd", &settings);
    assert_eq!(row["status"], "completed");
    assert_eq!(row["measured_packets"].as_u64(), Some(25 * 40));
}

/// Scripts look for these labels, in this order, with the values of the row.
#[test]
fn the_summary_has_booksims_labels_and_the_rows_values() {
    let settings = ["topology=mesh", "k=4", "n=2", "routing_function=dor", "injection_rate=0.05", "packet_size=4", "sample_period=2000"];
    let row = run("summary-row", &settings);
    let out: PathBuf = [env!("CARGO_TARGET_TMPDIR"), "booksim", "summary"].iter().collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kasuri"));
    let command = command.arg("booksim").args(settings).args(["--booksim-rules", "--as-booksim", "--out"]).arg(&out);
    let output = command.output().expect("the binary that cargo has just built starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut values = Vec::new();
    for line in text.lines().filter(|line| line.contains(" average = ")) {
        let (label, rest) = line.split_once(" average = ").unwrap();
        let value: f64 = rest.strip_suffix(" (1 samples)").unwrap().parse().unwrap();
        values.push((label.to_owned(), value));
    }
    let rate = |name: &str, flits: f64| row[name].as_f64().unwrap() / flits;
    let expected = [
        ("Packet latency", rate("packet_latency_mean", 1.0)),
        ("Network latency", rate("network_latency_mean", 1.0)),
        ("Flit latency", rate("flit_latency_mean", 1.0)),
        ("Injected packet rate", rate("injected_load", 4.0)),
        ("Accepted packet rate", rate("accepted_throughput_mean", 4.0)),
        ("Injected flit rate", rate("injected_load", 1.0)),
        ("Accepted flit rate", rate("accepted_throughput_mean", 1.0)),
        ("Injected packet size", 4.0),
        ("Accepted packet size", 4.0),
        ("Hops", rate("hops_mean", 1.0)),
    ];
    assert_eq!(values.len(), expected.len(), "{text}");
    for ((label, value), (wanted, number)) in values.iter().zip(expected) {
        assert!(label == wanted && (value - number).abs() <= 1e-5 * number.abs(), "{label} {value}, not {wanted} {number}");
    }
    assert!(text.starts_with("Time taken is "), "{text}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Fragmentation"));
}
