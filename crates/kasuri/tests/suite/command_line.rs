//! The command line as a user sees it: sessions under `tests/cmd`, and properties that no session can show.

use std::process::{Command, Output};

#[test]
fn sessions_are_as_written() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

fn kasuri(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kasuri")).args(arguments).output().expect("the binary that cargo has just built starts")
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_slice(&kasuri(arguments).stdout).expect("standard output is one JSON object")
}

#[test]
fn every_member_of_a_family_is_listed() {
    let names = |family: &str| -> Vec<String> {
        let listed = json(&["list", family, "--format", "json"]);
        listed[family].as_array().unwrap().iter().map(|member| member["name"].as_str().unwrap().to_owned()).collect()
    };
    let expected: Vec<&str> = kasuri_config::topology::ALL_TOPOLOGIES.iter().map(|entry| entry.name).collect();
    assert_eq!(names("topologies"), expected);
    let expected: Vec<&str> = kasuri_config::pattern::ALL_PATTERNS.iter().map(|entry| entry.name).collect();
    assert_eq!(names("patterns"), expected);
    let table = String::from_utf8(kasuri(&["list", "routings"]).stdout).unwrap();
    for entry in kasuri_config::routing::ALL_ROUTINGS {
        assert!(table.lines().any(|line| line.starts_with(entry.name) && line.ends_with(entry.summary)), "{}", entry.name);
    }
}

/// The table of an engine has a word for every column of every feature.
#[test]
fn every_engine_is_listed_with_its_features() {
    let listed = json(&["list", "engines", "--format", "json"]);
    let engines = listed["engines"].as_array().unwrap();
    let names: Vec<&str> = engines.iter().map(|engine| engine["name"].as_str().unwrap()).collect();
    assert_eq!(names, kasuri::engines::ENGINES.iter().map(|engine| engine.name()).collect::<Vec<_>>());
    for engine in engines {
        let features = engine["features"].as_array().unwrap();
        assert!(features.len() > 10, "{}", engine["name"]);
        let columns = |feature: &serde_json::Value| feature["support"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert!(features.iter().all(|feature| columns(feature) == columns(&features[0])), "{}", engine["name"]);
    }
}

#[test]
fn the_schema_offers_every_topology() {
    let schema = json(&["schema"]).to_string();
    for entry in kasuri_config::topology::ALL_TOPOLOGIES {
        assert!(schema.contains(&format!("\"const\":\"{}\"", entry.name)), "{}", entry.name);
    }
}

/// Two halves of a mesh; the second offers half as much.
const USERS: &str = r#"
[network]
topology = "mesh"
dimensions = [4, 4]
[routing]
algorithm = "dimension-order"
[router]
virtual_channels = 2
[measure]
cycles = 2000
[[user]]
name = "left"
nodes = 8
[user.traffic]
pattern = "uniform"
load = 0.2
[[user]]
name = "right"
nodes = 8
[user.traffic]
pattern = "uniform"
load = 0.1
"#;

#[test]
fn a_table_has_a_line_for_each_user() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.toml");
    std::fs::write(&file, USERS).unwrap();
    let out = folder.path().join("out");
    let arguments = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let row = &json(&[&arguments[..], &["--format", "json"]].concat())["runs"][0];
    let table = String::from_utf8(kasuri(&arguments).stdout).unwrap();
    for (user, (name, load)) in row["users"].as_array().unwrap().iter().zip([("left", 0.2), ("right", 0.1)]) {
        let throughput = user["accepted_throughput"].as_f64().unwrap();
        assert!((throughput / load - 1.0).abs() < 0.1, "{name}: {throughput}");
        let cells = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let line = cells.filter(|cells| cells.first() == Some(&name)).next_back().expect("each user has a line");
        assert_eq!(line[1..4], ["8", &format!("{load:.4}"), &format!("{throughput:.4}")], "{table}");
    }
}

/// A network with a clock under two pipelines, and a network of another kind.
const CASES: &str = r#"
[network]
topology = "mesh"
dimensions = [2, 2]
cycle_ns = 20
[routing]
algorithm = "dimension-order"
[traffic]
pattern = "uniform"
load = 0.1
[measure]
cycles = 500
[sweep]
"router.lookahead" = [false, true]
[[sweep.case]]
router.pipeline = ["RC", "VSA", "ST"]
[[sweep.case]]
label = "ring"
network = { topology = "torus", dimensions = [6] }
router.virtual_channels = 2
"#;

/// The values that distinguish runs are never an empty field: lists, truth values and labels appear as in the file, and where the length of
/// a cycle is known a time is the number of cycles times that.
#[test]
fn a_table_shows_whatever_varies_and_times() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cases.toml");
    std::fs::write(&file, CASES).unwrap();
    let out = folder.path().join("out");
    let output = kasuri(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let table = String::from_utf8(output.stdout).unwrap();
    let cells = |line: &str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = table.lines().map(cells).collect();
    let inputs = |line: &[String], wanted: &[&str]| wanted.iter().all(|cell| line.iter().any(|other| other == cell));
    assert!(
        inputs(&lines[0], &["case", "router.pipeline", "network.topology", "network.dimensions", "router.virtual_channels"]),
        "{table}"
    );
    for (line, lookahead) in [(1, "false"), (3, "true")] {
        assert!(inputs(&lines[line], &["pipeline = [RC, VSA, ST]", "[RC, VSA, ST]", "mesh", "[2, 2]", lookahead]), "{table}");
        assert!(inputs(&lines[line + 1], &["ring", "torus", "[6]", "2", lookahead]), "{table}");
    }
    let heading = table.lines().next().unwrap();
    assert!(heading.contains("packet_latency_mean  packet_latency_mean (ns)"), "{table}");
    let answers = &lines[1][lines[1].iter().position(|cell| cell == "converged").unwrap()..];
    // The time has no confidence interval.
    let [cycles, time] = [3, 4].map(|place| answers[place].split(" ± ").next().unwrap().parse::<f64>().unwrap());
    assert!((time / cycles - 20.0).abs() < 1e-3, "{table}");
}
