//! Cases beyond the recorded sessions: a full disk, a reader that goes away, networks too large for the machine.

use kasuri::engines::ENGINES;
use std::fs;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const MESH: &str = "[network]\ntopology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\n\
    [traffic]\npattern = \"uniform\"\nload = 0.1\n[measure]\nwarmup = 100\ncycles = 500\n\
    [sweep]\n\"measure.seed\" = [1, 2, 3]\n";

fn kasuri(folder: &Path, arguments: &[&str]) -> Command {
    fs::write(folder.join("mesh.toml"), MESH).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kasuri"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn buffers_beyond_the_machine_are_refused_by_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let large = ["router.virtual_channels=256", "router.buffer_flits=65535", "network.dimensions=[64,64]", "measure.seed=1"];
    let arguments: Vec<&str> = ["run", "mesh.toml"].into_iter().chain(large.iter().flat_map(|key| ["--set", key])).collect();
    let output = kasuri(folder.path(), &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", message(&output));
    assert!(message(&output).contains("256 virtual channels and 65535 flits each take too much memory"), "{}", message(&output));
}

/// A reader that goes away is no error; a standard output that cannot be written is one.
#[test]
fn a_reader_that_goes_away_ends_a_command_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["list", "patterns"][..], &["schema"], &["check", "mesh.toml"], &["topology", "mesh", "dimensions=[8,8]"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = kasuri(folder.path(), arguments).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), message(&output).as_str()), (Some(0), ""), "{arguments:?}");
        if let Ok(full) = OpenOptions::new().write(true).open("/dev/full") {
            let output = kasuri(folder.path(), arguments).stdout(full).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{arguments:?}");
            assert!(message(&output).starts_with("error: standard output cannot be written: "), "{}", message(&output));
        }
    }
}

/// The shell's limit on the size of files plays the part of a disk that is too small for a run's vectors.
#[test]
fn a_disk_that_is_too_small_keeps_the_runs_that_are_finished() {
    let folder = tempfile::tempdir().unwrap();
    let first = kasuri(folder.path(), &["run", "mesh.toml", "--set", "measure.seed=1", "--out", "out"]).output().unwrap();
    assert!(first.status.success(), "{}", message(&first));
    let rows = |folder: &Path| fs::read_dir(folder.join("out/runs")).unwrap().count();
    let before = rows(folder.path());
    // SIGXFSZ is ignored, so that a write beyond the limit is an error as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" run mesh.toml --out out";
    let program = env!("CARGO_BIN_EXE_kasuri");
    let output = Command::new("bash").args(["-c", script, program]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", message(&output));
    assert!(message(&output).starts_with("error: out/runs/"), "{}", message(&output));
    assert_eq!(rows(folder.path()), before, "nothing is lost and nothing is left half written");
    let output = kasuri(folder.path(), &["run", "mesh.toml", "--out", "out"]).output().unwrap();
    assert!(output.status.success(), "{}", message(&output));
}

/// The keys of a section of the experiment file that take whole numbers, with those of its dimensions and classes.
fn whole_numbers(schema: &serde_json::Value, section: &str) -> Vec<String> {
    let properties = schema["properties"][section]["properties"].as_object().into_iter().flatten();
    let is_whole = |value: &serde_json::Value| {
        let of = |value: &serde_json::Value| match &value["type"] {
            serde_json::Value::Array(types) => types.iter().any(|kind| kind == "integer"),
            kind => kind == "integer",
        };
        of(value) || value["anyOf"].as_array().into_iter().flatten().any(of)
    };
    properties.filter(|(_, value)| is_whole(value)).map(|(key, _)| format!("{section}.{key}")).collect()
}

/// Whatever whole number a key is given: the range is named, or it works, and no run is longer than its limit of cycles.
#[test]
fn whole_numbers_are_refused_with_their_range_or_work() {
    let folder = tempfile::tempdir().unwrap();
    let schema = kasuri(folder.path(), &["schema"]).output().unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).unwrap();
    let mut keys: Vec<String> = ["router", "measure", "flit"].iter().flat_map(|section| whole_numbers(&schema, section)).collect();
    assert!(keys.len() > 10, "{keys:?}");
    keys.retain(|key| key != "measure.max_cycles");
    keys.extend(
        ["channel_latency", "channel_period", "terminal_channel_latency", "terminal_channel_period"].map(|key| format!("network.{key}")),
    );
    keys.push("traffic.packet_flits".to_owned());
    let values = ["0", "1", "2147483648", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808", "-1"];
    for key in &keys {
        for value in values {
            let set = format!("{key}={value}");
            let arguments = ["run", "mesh.toml", "--set", "measure.seed=1", "--set", "measure.max_cycles=1500", "--set", &set];
            let output = kasuri(folder.path(), &arguments).output().unwrap();
            let message = message(&output);
            assert!(matches!(output.status.code(), Some(0..=2)), "{set}: {:?} {message}", output.status);
            assert!(!message.contains("panicked") && !message.contains("defect"), "{set}: {message}");
            if output.status.code() == Some(2) {
                assert!(message.starts_with("error: "), "{set}: {message}");
            }
        }
    }
}

/// A section is checked by its schema whichever engine runs, so a word that is none has to be seen there: no key takes any text.
#[test]
fn words_of_engines_sections_are_enumerations() {
    let is_text = |value: &serde_json::Value| value["type"] == "string" && value["enum"].is_null() && value["const"].is_null();
    for engine in ENGINES {
        let schema = serde_json::Value::from((engine.section())());
        for (key, value) in schema["properties"].as_object().into_iter().flatten() {
            let forms = value["anyOf"].as_array().into_iter().chain(value["oneOf"].as_array()).flatten();
            assert!(!forms.chain([value]).any(is_text), "{}.{key} takes any text: {value}", engine.name());
        }
    }
}
