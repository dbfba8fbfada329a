//! Properties of the families' tables themselves.

use crate::common::example;
use kasuri_config::pattern::ALL_PATTERNS;
use kasuri_config::routing::ALL_ROUTINGS;
use kasuri_config::topology::ALL_TOPOLOGIES;
use kasuri_network::registry::Entry;
use kasuri_workload::traffic::process::PROCESSES;
use std::collections::BTreeSet;

fn check<F: ?Sized>(table: &[Entry<F>]) {
    let names: BTreeSet<&str> = table.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), table.len(), "two members have one name");
    for entry in table {
        let written = |text: &str| !text.trim().is_empty() && !text.ends_with('.');
        assert!(written(entry.summary) && written(entry.source), "{}: a summary and a source, without a full stop", entry.name);
        // A plus may end a name of the literature: Dragonfly+.
        let plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
        assert!(entry.name.trim_end_matches('+').chars().all(plain), "`{}` is in kebab case", entry.name);
        let parameters = example(entry.example);
        let keys = entry.keys();
        // Keys of the member that this one wraps are checked with that one's schema.
        let is_known = |key: &String| keys.contains(&key.as_str()) || entry.wraps.is_some();
        assert!(parameters.keys().all(is_known), "{}: the example uses keys of the schema", entry.name);
        assert!((entry.parse)(parameters.clone()).is_ok(), "{}: the example is read", entry.name);
        let mut unknown = parameters;
        unknown.insert("no_such_key".to_owned(), toml::Value::Integer(1));
        assert!(entry.wraps.is_some() || (entry.parse)(unknown).is_err(), "{}: unknown keys are refused", entry.name);
        for key in keys {
            let property = (entry.schema)();
            let description = property.pointer(&format!("/properties/{key}/description")).and_then(|text| text.as_str());
            let reference = property.pointer(&format!("/properties/{key}/$ref"));
            assert!(description.is_some() || reference.is_some(), "{}.{key} is described", entry.name);
        }
    }
}

#[test]
fn members_have_names_sources_and_examples() {
    check(ALL_TOPOLOGIES);
    check(ALL_ROUTINGS);
    check(ALL_PATTERNS);
    check(PROCESSES);
}

/// The names that experiment files rely on.
#[test]
fn the_promised_members_are_there() {
    let has = |names: &[&str], table: Vec<&str>| names.iter().for_each(|name| assert!(table.contains(name), "{name}"));
    has(&["mesh", "torus", "fat-tree", "full-mesh", "butterfly", "file"], ALL_TOPOLOGIES.iter().map(|entry| entry.name).collect());
    has(&["dimension-order", "nca", "destination-tag", "minimal", "up-down"], ALL_ROUTINGS.iter().map(|entry| entry.name).collect());
    let patterns = [
        "uniform",
        "bit-complement",
        "bit-reverse",
        "shuffle",
        "transpose",
        "tornado",
        "neighbor",
        "random-permutation",
        "diagonal",
        "asymmetric",
        "hotspot",
        "permutation",
        "matrix",
    ];
    has(&patterns, ALL_PATTERNS.iter().map(|entry| entry.name).collect());
    has(&["bernoulli", "periodic", "batch"], PROCESSES.iter().map(|entry| entry.name).collect());
}
