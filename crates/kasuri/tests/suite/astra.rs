//! `kasuri astra` and `kasuri algorithm` on the extracts of reference data, and on files that are wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name)
}

fn kasuri(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kasuri")).args(arguments).stdin(Stdio::null()).output().expect("the binary that cargo has just built")
}

/// The files of a run; a test may replace each of them.
struct Run {
    workload: String,
    system: String,
    network: String,
    groups: Option<String>,
    more: Vec<&'static str>,
}

impl Run {
    fn of(workload: &str, network: &str) -> Self {
        let text = |name: String| data("astra").join(name).display().to_string();
        Self {
            workload: text(format!("traces/{workload}/t")),
            system: text("configs/ring_4chunks.json".to_owned()),
            network: text(format!("configs/{network}.yml")),
            groups: None,
            more: vec!["--backend", "aware", "--astra-rules", "--format", "json"],
        }
    }

    fn output(&self) -> Output {
        let mut arguments = vec!["astra", "--workload", &self.workload, "--system", &self.system, "--network", &self.network];
        arguments.extend(self.groups.iter().flat_map(|groups| ["--groups", groups.as_str()]));
        arguments.extend(&self.more);
        kasuri(&arguments)
    }

    fn times(&self) -> Vec<u64> {
        let output = self.output();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let npus = answer["npus"].as_array().unwrap();
        assert!(npus.iter().enumerate().all(|(number, npu)| npu["npu"] == number), "{answer}");
        npus.iter().map(|npu| npu["finish_ns"].as_u64().unwrap()).collect()
    }

    /// The message on wrong input.
    fn message(&self) -> String {
        let output = self.output();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{message}");
        message
    }
}

/// The rows of a table of results: its columns by name.
fn table(path: &Path) -> Vec<Vec<(String, String)>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let names = reader.headers().unwrap().clone();
    let row = |record: csv::StringRecord| names.iter().zip(&record).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    reader.records().map(|record| row(record.unwrap())).collect()
}

fn value<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    &row.iter().find(|(key, _)| key == name).unwrap().1
}

/// Every NPU of the pipelines and groups of the extract, as ASTRA-sim had them.
#[test]
fn every_npu_ends_when_it_ends_in_astra_sim() {
    let rows = table(&data("astra/results/workload.csv"));
    let each = table(&data("astra/results/workload_per_npu.csv"));
    let mut compared = 0;
    for row in rows.iter().filter(|row| ["pipeline", "groups_tp_dp"].contains(&value(row, "workload"))) {
        let backend = if value(row, "backend") == "aware" { "aware" } else { "unaware" };
        let mut run = Run::of(value(row, "workload"), value(row, "network"));
        run.more[1] = backend;
        run.groups = (value(row, "workload") == "groups_tp_dp").then(|| data("astra/groups/groups_8_tp4_dp2.json").display().to_string());
        let times = run.times();
        assert_eq!(times.iter().max().unwrap().to_string(), value(row, "finish_max_ns"), "{row:?}");
        assert_eq!(times.iter().min().unwrap().to_string(), value(row, "finish_min_ns"), "{row:?}");
        let same =
            |other: &&Vec<(String, String)>| ["workload", "backend", "network"].iter().all(|key| value(other, key) == value(row, key));
        for npu in each.iter().filter(same) {
            assert_eq!(times[value(npu, "npu").parse::<usize>().unwrap()].to_string(), value(npu, "finish_ns"), "{npu:?}");
            compared += 1;
        }
    }
    assert!(compared >= 48, "{compared}");
}

/// Formulas answer in the same form as the engines, with the time of collectives by dimension, and with the features left out.
#[test]
fn formulas_answer_in_the_form_of_the_engines() {
    let of = |engine| {
        let groups = Some(data("astra/groups/groups_8_tp4_dp2.json").display().to_string());
        Run { groups, more: vec!["--engine", engine, "--format", "json"], ..Run::of("groups_tp_dp", "FullyConnected8_bw50_lat500") }
    };
    let (formulas, flows) = (of("analysis"), of("flow").times());
    assert_eq!(formulas.times().len(), flows.len());
    let answer: serde_json::Value = serde_json::from_slice(&formulas.output().stdout).unwrap();
    let collectives = answer["collectives"].as_array().unwrap();
    let times: f64 = collectives.iter().map(|one| one["time_ns"].as_f64().unwrap() * one["times"].as_f64().unwrap()).sum();
    assert!(!collectives.is_empty() && times > 0.0, "{answer}");
    for phase in collectives.iter().flat_map(|one| one["phases"].as_array().unwrap()) {
        let part = |name: &str| phase[name].as_f64().unwrap();
        let sum = part("latency_ns") + part("serialisation_ns") + part("endpoint_ns");
        assert!((part("time_ns") - sum).abs() < 1e-6 * sum, "{phase}: rings of equal links take the sum of their parts");
    }
    let bound = answer["bound_ns"].as_f64().unwrap();
    assert!(bound > 0.0 && bound <= *flows.iter().max().unwrap() as f64, "{answer}");
    assert_eq!(answer["busiest_link"]["dimension"], 0);
    assert!(answer["not_modelled"].as_array().unwrap()[0].as_str().unwrap().contains("contention"));
    assert!(answer["not_modelled"].as_array().unwrap()[3].as_str().unwrap().contains("chunks of a collective"));
    let table = String::from_utf8(Run { more: vec!["--engine", "analysis"], ..of("analysis") }.output().stdout).unwrap();
    assert!(table.contains("COLLECTIVE") && table.contains("no run ends before: ") && table.contains("left out: contention"), "{table}");
}

#[test]
fn a_gzipped_trace_is_read() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    for npu in 0..8 {
        let bytes = fs::read(data("astra").join(format!("traces/pipeline/t.{npu}.et"))).unwrap();
        let file = fs::File::create(folder.path().join(format!("t.{npu}.et"))).unwrap();
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        packed.write_all(&bytes).unwrap();
        packed.finish().unwrap();
    }
    let plain = Run::of("pipeline", "Ring8_bw50_lat500");
    let packed = Run { workload: folder.path().join("t").display().to_string(), ..Run::of("pipeline", "Ring8_bw50_lat500") };
    assert_eq!(packed.times(), plain.times());
}

/// Wrong files: the message names the file, and the line, the node or the NPU.
#[test]
fn errors_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).unwrap();
        folder.path().join(name).display().to_string()
    };
    let run = || Run::of("groups_tp_dp", "Ring8_bw50_lat500");
    let network = |text: &str| Run { network: write("n.yml", text.as_bytes()), ..run() }.message();
    assert!(
        network("topology: [ Ring ]\nnpus_count: [ 8, 2 ]\nbandwidth: [ 50 ]\nlatency: [ 5 ]\n")
            .contains("n.yml:2: npus_count has 2 entries")
    );
    assert!(network("topology: [ Mesh ]\nnpus_count: [ 8 ]\nbandwidth: [ 50 ]\nlatency: [ 5 ]\n").contains("n.yml:1: topology is `Mesh`"));
    assert!(
        network("topology: [ Ring ]\nnpus_count: [ 9 ]\nbandwidth: [ 50 ]\nlatency: [ 5 ]\n").contains("t.8.et: there is no such file")
    );
    assert!(
        network("topology: [ Ring, Ring ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 5, 5 ]\nlatency: [ 5, 5 ]\n").contains("one dimension only")
    );
    let groups = |text: &str| Run { groups: Some(write("g.json", text.as_bytes())), ..run() }.message();
    assert!(groups("{\"1\": [0, 1, 1]}").contains("g.json:1: group `1` has NPU 1 twice"));
    assert!(groups("{\"9\": [0, 1]}").contains("names the communicator group 1, which is not defined"));
    let first = fs::read(data("astra/traces/groups_tp_dp/t.0.et")).unwrap();
    let trace = |bytes: &[u8]| {
        write("t.0.et", bytes);
        for npu in 1..8 {
            write(&format!("t.{npu}.et"), b"\x00");
        }
        Run { workload: folder.path().join("t").display().to_string(), ..run() }.message()
    };
    assert!(trace(&first[..first.len() - 3]).contains("cut off"));
    // Node 1 waits for node 5, which is not there; nodes 1 and 2 wait for each other.
    assert!(trace(b"\x00\x06\x08\x01\x18\x04\x20\x05").contains("node 1 (``) waits for node 5, which is not in the file"));
    assert!(trace(b"\x00\x06\x08\x01\x18\x04\x20\x02\x06\x08\x02\x18\x04\x20\x01").contains("wait for each other in a cycle"));
    assert!(Run { more: vec!["--backend", "aware"], ..run() }.message().contains("--astra-rules"));
}

/// Ranks of a trace without an NPU in the network are named; a network with an NPU for each rank gives no note.
#[test]
fn ranks_without_npus_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for npu in 0..6 {
        fs::write(folder.path().join(format!("t.{npu}.et")), b"\x00").unwrap();
    }
    let notes = |npus: u32| {
        let network = folder.path().join("n.yml");
        fs::write(&network, format!("topology: [ Ring ]\nnpus_count: [ {npus} ]\nbandwidth: [ 50 ]\nlatency: [ 5 ]\n")).unwrap();
        let workload = folder.path().join("t").display().to_string();
        let output =
            Run { workload, network: network.display().to_string(), more: vec![], ..Run::of("pipeline", "Ring8_bw50_lat500") }.output();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    let expected = "note: the part of ranks 4 to 5 in the trace (6 ranks on 4 NPUs: the times are not those of the trace) is not modelled";
    assert!(notes(4).contains(expected), "{}", notes(4));
    assert!(!notes(6).contains("ranks"));
}

/// The verdict of every algorithm of the extract; the block that is wrong is named.
#[test]
fn algorithms_have_the_verdicts_of_their_index() {
    let rows = table(&data("msccl/index.csv"));
    for row in &rows {
        let path = ["xml", "xml.gz"].map(|end| data("msccl").join(format!("{}.{end}", value(row, "file"))));
        let path = path.iter().find(|path| path.exists()).unwrap().display().to_string();
        let output = kasuri(&["algorithm", "check", &path]);
        let (text, message) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        if value(row, "verdict") != "correct" {
            assert_eq!(output.status.code(), Some(2), "{row:?}: {text}");
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{row:?}: {message}");
        let counts = ["threadblocks", "steps", "sends", "chunks_sent", "slots_needed"].map(|name| value(row, name));
        let [blocks, steps, sends, chunks, slots] = counts;
        let expected = format!("{blocks} threadblocks, {steps} steps, {sends} messages of {chunks} chunks in all; {slots} of");
        assert!(text.contains(&expected), "{row:?}: {text}");
    }
    assert!(rows.len() > 20);
    let message = |name: &str| String::from_utf8(kasuri(&["algorithm", "check", &data(name).display().to_string()]).stderr).unwrap();
    assert!(message("msccl/damaged/wrong_offset.xml").contains("gpu 0 output 3 is wrong"));
    assert!(message("msccl/damaged/a2a_swapped_outputs.xml.gz").contains("gpu 0 output 0 holds nothing"));
}
