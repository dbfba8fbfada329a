//! `kasuri check` and `kasuri run` never disagree on whether an experiment can be run.

use proptest::prelude::*;
use std::path::Path;
use std::process::{Command, Output};

/// Experiments to which features are added; each is right as it stands.
const BASES: [(&str, &str); 12] = [
    (
        "mesh",
        "[network]\ntopology = \"mesh\"\ndimensions = [3, 3]\n[routing]\nalgorithm = \"dimension-order\"\n[traffic]\npattern = \"uniform\"\nload = 0.1",
    ),
    (
        "torus",
        "[network]\ntopology = \"torus\"\ndimensions = [4]\n[routing]\nalgorithm = \"dimension-order\"\n[router]\nvirtual_channels = 2\n[traffic]\npattern = \"uniform\"\nload = 0.1",
    ),
    (
        "mlfm",
        "[network]\ntopology = \"mlfm\"\ndegree = 2\n[routing]\nalgorithm = \"minimal\"\n[router]\nvirtual_channels = 2\n[traffic]\npattern = \"uniform\"\nload = 0.1",
    ),
    (
        "tree",
        "[network]\ntopology = \"fat-tree\"\nup = 2\ndown = 2\nlevels = 2\n[routing]\nalgorithm = \"nca\"\n[traffic]\npattern = \"uniform\"\nload = 0.1",
    ),
    (
        "classes",
        "[network]\ntopology = \"mesh\"\ndimensions = [3]\n[routing]\nalgorithm = \"dimension-order\"\n[traffic]\npattern = \"uniform\"\n[[traffic.class]]\nload = 0.1\n[[traffic.class]]\nload = 0.2",
    ),
    (
        "collective",
        "[network]\ntopology = \"mesh\"\ndimensions = [2, 2]\n[routing]\nalgorithm = \"dimension-order\"\n[workload]\ncollective = \"alltoall\"\nmessage_flits = 4",
    ),
    (
        "rdma",
        "[network]\ntopology = \"mesh\"\ndimensions = [2]\nflit_bytes = 8\nchannel_gbit_per_second = 8\n[routing]\nalgorithm = \"dimension-order\"\n[endpoint]\nmodel = \"rdma\"\n[workload]\ncollective = \"alltoall\"\nmessage_bytes = 16",
    ),
    (
        "dsm",
        "[network]\ntopology = \"mesh\"\ndimensions = [2, 2]\n[routing]\nalgorithm = \"dimension-order\"\n[router]\nvirtual_channels = 2\n[endpoint]\nmodel = \"dsm\"\n[workload]\nprogram = \"random-access\"\naccesses = 3",
    ),
    (
        "background",
        "[network]\ntopology = \"mesh\"\ndimensions = [2, 2]\n[routing]\nalgorithm = \"dimension-order\"\n[traffic]\npattern = \"uniform\"\nload = 0.1\n[workload]\ncollective = \"alltoall\"\nmessage_flits = 4",
    ),
    (
        "background of dsm",
        "[network]\ntopology = \"mesh\"\ndimensions = [2, 2]\n[routing]\nalgorithm = \"dimension-order\"\n[router]\nvirtual_channels = 2\n[endpoint]\nmodel = \"dsm\"\n[traffic]\npattern = \"uniform\"\nload = 0.1\n[workload]\nprogram = \"random-access\"\naccesses = 3",
    ),
    (
        "open users",
        "[network]\ntopology = \"mesh\"\ndimensions = [4]\n[routing]\nalgorithm = \"dimension-order\"\n[[user]]\nname = \"a\"\nnodes = 2\n[user.traffic]\npattern = \"uniform\"\nload = 0.1\n[[user]]\nname = \"b\"\nnodes = 2\n[user.traffic]\npattern = \"uniform\"\nload = 0.2",
    ),
    (
        "users",
        "[network]\ntopology = \"mesh\"\ndimensions = [4]\n[routing]\nalgorithm = \"dimension-order\"\n[router]\nvirtual_channels = 2\n[[user]]\nname = \"a\"\nnodes = 2\n[user.traffic]\npattern = \"uniform\"\nload = 0.1\n[[user]]\nname = \"b\"\nnodes = 2\n[user.workload]\ncollective = \"alltoall\"\nmessage_flits = 4",
    ),
];

/// Features; of those with the same key the last one counts.
const FEATURES: [&str; 40] = [
    "engine=analysis",
    "engine=flow",
    "engine=analysis",
    "engine=flow",
    "router.predictor=static-straight",
    "router.predictor=static-xy",
    "router.predictor=latest-port",
    "router.predictor=oracle",
    "router.on_miss=hint",
    "router.predictor_match=any-up",
    "router.pipeline=[{ stages = [\"RC\", \"VA\", \"SA\", \"ST\"], cycles = 1 }]",
    "router.pipeline=[\"RC\", \"VSA\", \"ST\"]",
    "router.pipeline=[\"Des\", \"RC\", \"VSA\", \"ST\", \"Ser\", { stage = \"LT\", cycles = 3 }]",
    "router.architecture=virtual-output-queued",
    "router.architecture=crosspoint",
    "router.virtual_channels=1",
    "router.virtual_channels=64",
    "router.virtual_channels=256",
    "router.vc_per_destination=true",
    "router.switching=store-and-forward",
    "router.switching=virtual-cut-through",
    "router.hold_switch=true",
    "router.internal_speedup=2",
    "router.buffer_policy=shared",
    "router.priority=age",
    "router.vc_allocator={ name = \"separable-input-first\", arbiter = \"matrix\" }",
    "router.class_queues=true",
    "routing.algorithm=minimal",
    "routing.algorithm=minimal-adaptive",
    "routing.algorithm=valiant",
    "routing.algorithm=up-down",
    "routing.allow_deadlock=true",
    "measure.search=saturation",
    "measure.rules=booksim",
    "measure.until=first-terminal",
    "traffic.process=batch",
    "traffic.process=on-off",
    "traffic.reply={ packet_flits = 2 }",
    "network.channel_latency=40000",
    "network.channel_period=3",
];

fn kasuri(command: &str, folder: &Path, features: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_kasuri"));
    program.current_dir(folder).args([command, "a.toml"]);
    features.iter().for_each(|feature| {
        program.args(["--set", feature]);
    });
    if command == "run" {
        program.args(["--jobs", "1"]);
    }
    program.output().expect("the binary that cargo has just built starts")
}

/// Exit statuses of `check` and `run`, and what they said.
fn verdicts(base: &str, features: &[&str]) -> (Option<i32>, Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.toml"), format!("{base}\n[measure]\nmax_cycles = 400\n")).expect("the file is written");
    let [check, run] = ["check", "run"].map(|command| kasuri(command, folder.path(), features));
    let said = [&check.stderr, &run.stderr, &check.stdout].map(|text| String::from_utf8_lossy(text).into_owned()).join("\n");
    (check.status.code(), run.status.code(), said)
}

/// What is refused is refused by both, and what is not runs, if only into its limit of cycles.
fn agree(name: &str, base: &str, features: &[&str]) -> Result<(), TestCaseError> {
    let (check, run, said) = verdicts(base, features);
    let what = format!("{name} {features:?}: check {check:?}, run {run:?}\n{said}");
    prop_assert!(!said.contains("defect of Kasuri") && !said.contains("panicked"), "{}", what);
    prop_assert!(matches!(check, Some(0 | 2)) && matches!(run, Some(0..=2)), "{}", what);
    prop_assert_eq!(check == Some(2), run == Some(2), "{}", what);
    Ok(())
}

#[test]
fn the_experiments_without_features_are_right() {
    for (name, base) in BASES {
        let (check, run, said) = verdicts(base, &[]);
        assert!(check == Some(0) && run != Some(2), "{name}: {check:?} {run:?}\n{said}");
    }
}

/// Pairs of which each part is right alone.
#[test]
fn what_does_not_go_together_is_refused_before_it_runs() {
    let base = |wanted: &str| BASES.iter().find(|(name, _)| *name == wanted).expect("a base of this name").1;
    for (name, features, expected) in [
        ("mesh", &["engine=flow", "router.predictor=static-xy"][..], "router.predictor: the flow engine cannot model predictors"),
        ("collective", &["engine=analysis", "router.predictor=static-xy"], "router.predictor: the analysis engine cannot model predictors"),
        ("mesh", &["engine=analysis", "router.predictor=latest-port"], "learns"),
        ("rdma", &["engine=analysis"], "endpoint.model: the analysis engine cannot model the endpoint rdma"),
        ("mesh", &["measure.search=saturation", "traffic.process=batch", "traffic.batch_packets=2"], "measure.search: a batch has no load"),
        ("mesh", &["router.predictor=static-xy", FEATURES[10]], "router.pipeline: a router with a predictor needs"),
        ("mlfm", &["router.predictor=static-straight"], "router.predictor"),
        ("dsm", &["router.architecture=virtual-output-queued", "router.virtual_channels=64"], "at most 256"),
    ] {
        let (check, run, said) = verdicts(base(name), features);
        assert!(check == Some(2) && run == Some(2), "{name} {features:?}: {check:?} {run:?}\n{said}");
        assert!(
            said.matches(expected).count() >= 2 && !said.contains("panicked"),
            "{name} {features:?} does not say `{expected}` twice:\n{said}"
        );
    }
}

/// A sample; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(120);
    ProptestConfig { cases, max_shrink_iters: 30, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn check_and_run_agree(base in 0..BASES.len(), features in proptest::collection::vec(0..FEATURES.len(), 0..4)) {
        let features: Vec<&str> = features.iter().map(|&feature| FEATURES[feature]).collect();
        agree(BASES[base].0, BASES[base].1, &features)?;
    }
}
