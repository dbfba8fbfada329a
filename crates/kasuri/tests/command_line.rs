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
    let expected: Vec<&str> = kasuri_model::topology::TOPOLOGIES.iter().map(|entry| entry.name).collect();
    assert_eq!(names("topologies"), expected);
    let expected: Vec<&str> = kasuri_model::traffic::pattern::PATTERNS.iter().map(|entry| entry.name).collect();
    assert_eq!(names("patterns"), expected);
    let table = String::from_utf8(kasuri(&["list", "routings"]).stdout).unwrap();
    for entry in kasuri_model::routing::ROUTINGS {
        assert!(table.lines().any(|line| line.starts_with(entry.name) && line.ends_with(entry.summary)), "{}", entry.name);
    }
}

#[test]
fn the_schema_offers_every_topology() {
    let schema = json(&["schema"]).to_string();
    for entry in kasuri_model::topology::TOPOLOGIES {
        assert!(schema.contains(&format!("\"const\":\"{}\"", entry.name)), "{}", entry.name);
    }
}
