//! Tests of the readers of ASTRA-sim's files.

use super::*;
use kasuri_workload::execution::cluster::{Choice, Implementation, Optimization, Pattern, Topology};

#[test]
fn a_network_has_one_entry_for_each_dimension() {
    let text = b"topology: [ FullyConnected, Switch ]  # two\nnpus_count: [ 3, 5 ]\nbandwidth:\n- 37.5\n- 12\nlatency: [120.0, 0]\n";
    let cluster = network("n.yml", text).unwrap();
    assert_eq!(cluster.npus(), 15);
    assert_eq!(
        cluster.dimensions.iter().map(|dimension| dimension.topology).collect::<Vec<_>>(),
        [Topology::FullyConnected, Topology::Switch]
    );
    assert_eq!((cluster.dimensions[1].bandwidth, cluster.dimensions[1].latency_ns), (12.0, 0.0));
}

#[test]
fn a_network_that_is_wrong_is_refused_with_line_and_key() {
    let with = |topology: &str, npus: &str, bandwidth: &str| {
        let text = format!("topology: {topology}\nnpus_count: {npus}\nbandwidth: {bandwidth}\nlatency: [ 1, 2 ]\n");
        network("n.yml", text.as_bytes()).unwrap_err().to_string()
    };
    assert_eq!(
        with("[ Ring, Mesh ]", "[ 2, 2 ]", "[ 1, 1 ]"),
        "n.yml:1: topology is `Mesh`; it must be one of Ring, FullyConnected, Switch"
    );
    assert!(with("[ Ring, Ring ]", "[ 2, 2, 2 ]", "[ 1, 1 ]").starts_with("n.yml:2: npus_count has 3 entries, topology has 2"));
    assert!(with("[ Ring, Ring ]", "[ 2, 1 ]", "[ 1, 1 ]").starts_with("n.yml:2: npus_count is `1`"));
    assert!(with("[ Ring, Ring ]", "[ 2, 2 ]", "[ 1, tbd ]").starts_with("n.yml:3: bandwidth is `tbd`"));
    assert!(with("[ Ring, Ring ]", "[ 2, 2 ]", "[ 1, 0 ]").starts_with("n.yml:3: bandwidth is `0`"));
    assert!(with("[ Ring, Ring ]", "[ 70000, 70000 ]", "[ 1, 1 ]").contains("multiplies to more than"));
    assert!(with("Ring", "[ 2, 2 ]", "[ 1, 1 ]").contains("topology is not a list"));
    assert!(with("[ [ Ring ], Ring ]", "[ 2, 2 ]", "[ 1, 1 ]").contains("inside another"));
    assert!(network("n.yml", b"topology: [ Ring\nx: 1").unwrap_err().to_string().contains("invalid YAML"));
    assert!(network("n.yml", b"topology: [ Ring ]\n").unwrap_err().to_string().contains("has no `npus_count`"));
}

#[test]
fn a_system_has_the_defaults_of_astra_sim() {
    let (system, nodes) = system("s.json", b"{}").unwrap();
    assert_eq!((system.endpoint_delay_ns, system.active_chunks, system.splits, nodes), (10, 1, None, None));
    assert_eq!(system.optimization, Optimization::Baseline);
}

#[test]
fn implementations_have_windows_and_may_go_over_all_dimensions() {
    let text = br#"{"all-to-all-implementation": ["direct", "direct12", "oneDirect3", "oneRing", "halvingDoubling"], "colour": 1}"#;
    let (system, _) = system("s.json", text).unwrap();
    let choice = |implementation, over_all| Choice { implementation, over_all };
    let expected = [
        choice(Implementation::Direct { window: None }, false),
        choice(Implementation::Direct { window: Some(12) }, false),
        choice(Implementation::Direct { window: Some(3) }, true),
        choice(Implementation::Ring, true),
        choice(Implementation::HalvingDoubling, false),
    ];
    assert_eq!(system.implementations[&Pattern::AllToAll], expected);
    assert_eq!(system.ignored, ["colour"]);
}

#[test]
fn a_system_that_is_wrong_is_refused_with_line_and_key() {
    let error = |text: &str| system("s.json", text.as_bytes()).unwrap_err().to_string();
    assert!(error("{\n\"all-reduce-implementation\": [\"tree\"]}").starts_with("s.json:2: all-reduce-implementation names \"tree\""));
    assert!(error("{\"all-reduce-implementation\": \"ring\"}").contains("must be a list of names"));
    assert!(error("{\n\n\"preferred-dataset-splits\": 0}").starts_with("s.json:3: preferred-dataset-splits is 0"));
    assert!(error("{\"model-shared-bus\": 1}").contains("not modelled"));
    assert!(error("{\"roofline-enabled\": 1, \"peak-perf\": 3}").contains("needs local-mem-bw"));
    assert!(error("{\"local-mem-bw\": \"fast\"}").contains("local-mem-bw is \"fast\""));
    assert!(error("{\"collective-optimization\": \"none\"}").contains("baseline, localBWAware"));
    assert!(error("[]").contains("expected an object"));
    assert!(error("{").contains("invalid JSON"));
}

#[test]
fn groups_keep_their_order_and_have_nobody_twice() {
    let text = b"{\"2\": [3, 1], \"1\": [0]}";
    assert_eq!(groups("g.json", text, 4).unwrap(), [(1, vec![0]), (2, vec![3, 1])].into());
    let error = |text: &str| groups("g.json", text.as_bytes(), 4).unwrap_err().to_string();
    assert_eq!(error("{\n\"1\": [0, 2, 0]}"), "g.json:2: group `1` has NPU 0 twice");
    assert!(error("{\"0\": [0, 1]}").contains("0 means all"));
    assert!(error("{\"1\": [4]}").contains("the NPUs are 0 to 3"));
    assert!(error("{\"tp\": [1]}").contains("has no number"));
    assert!(error("{\"1\": []}").contains("is empty"));
}

#[test]
fn nodes_may_have_traces_of_their_own() {
    assert_eq!(custom_nodes("c.yml", b"3: a/t\n5: b/t\n").unwrap(), [(3, "a/t".to_owned()), (5, "b/t".to_owned())].into());
    assert!(custom_nodes("c.yml", b"x: a/t\n").unwrap_err().to_string().contains("is not the number of a node"));
    assert!(custom_nodes("c.yml", b"3: [ a, b ]\n").unwrap_err().to_string().contains("has no prefix"));
}
