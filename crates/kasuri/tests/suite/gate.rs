//! `kasuri check` and `kasuri run` never disagree on whether an experiment can be run.

use proptest::prelude::*;
use std::path::Path;
use std::process::{Command, Output};

/// Experiments to which features are added; each is valid without them.
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
const FEATURES: [&str; 43] = [
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
    "flit.layout=plain",
    "flit.layout=full",
    "flit.layout=avx512",
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

/// Exit statuses of `check` and `run`, and their standard error.
struct Verdicts {
    check: Option<i32>,
    run: Option<i32>,
    of_check: String,
    of_run: String,
}

impl Verdicts {
    fn of(base: &str, features: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.toml"), format!("{base}\n[measure]\nmax_cycles = 400\n")).expect("the file is written");
        let [check, run] = ["check", "run"].map(|command| kasuri(command, folder.path(), features));
        let [of_check, of_run] = [&check.stderr, &run.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        Self { check: check.status.code(), run: run.status.code(), of_check, of_run }
    }

    fn said(&self) -> String {
        format!("{}\n{}", self.of_check, self.of_run)
    }
}

/// Exit statuses of `check` and `run`, and their messages.
fn verdicts(base: &str, features: &[&str]) -> (Option<i32>, Option<i32>, String) {
    let verdicts = Verdicts::of(base, features);
    (verdicts.check, verdicts.run, verdicts.said())
}

/// Both refuse the same experiments with the same list, and the others run, if only into their limit of cycles.
fn agree(name: &str, base: &str, features: &[&str]) -> Result<(), TestCaseError> {
    let verdicts = Verdicts::of(base, features);
    let (check, run, said) = (verdicts.check, verdicts.run, verdicts.said());
    let what = format!("{name} {features:?}: check {check:?}, run {run:?}\n{said}");
    prop_assert!(!said.contains("internal error") && !said.contains("panicked"), "{}", what);
    prop_assert!(matches!(check, Some(0 | 2)) && matches!(run, Some(0..=2)), "{}", what);
    prop_assert_eq!(check == Some(2), run == Some(2), "{}", what);
    // A possible deadlock is described on standard output by the one and on standard error by the other.
    if run == Some(2) && verdicts.of_check.contains("error: ") {
        prop_assert_eq!(&verdicts.of_check, &verdicts.of_run, "{}", what);
    }
    Ok(())
}

#[test]
fn the_experiments_without_features_are_right() {
    for (name, base) in BASES {
        let (check, run, said) = verdicts(base, &[]);
        assert!(check == Some(0) && run != Some(2), "{name}: {check:?} {run:?}\n{said}");
    }
}

/// Pairs of settings; each is valid alone.
#[test]
fn incompatible_settings_are_refused_before_the_run() {
    let base = |wanted: &str| BASES.iter().find(|(name, _)| *name == wanted).expect("a base of this name").1;
    for (name, features, expected) in [
        (
            "mesh",
            &["engine=flow", "router.predictor=latest-port"][..],
            "router.predictor: is \"latest-port\", which conflicts with engine = \"flow\": the flow engine cannot model a predictor that learns",
        ),
        (
            "collective",
            &["engine=analysis", "router.predictor=static-xy"],
            "router.predictor: is \"static-xy\", which conflicts with engine = \"analysis\": the analysis engine cannot model predictors under a closed workload",
        ),
        ("mesh", &["engine=analysis", "router.predictor=latest-port"], "learns"),
        (
            "rdma",
            &["engine=analysis"],
            "endpoint.model: is \"rdma\", which conflicts with engine = \"analysis\": the analysis engine cannot model host adapters",
        ),
        ("mesh", &["measure.search=saturation", "traffic.process=batch", "traffic.batch_packets=2"], "measure.search: a batch has no load"),
        ("mesh", &["router.predictor=static-xy", FEATURES[10]], "router.pipeline: a router with a predictor needs"),
        ("mlfm", &["router.predictor=static-straight"], "router.predictor"),
        ("dsm", &["router.architecture=virtual-output-queued", "router.virtual_channels=64"], "at most 256"),
        (
            "mesh",
            &["router.architecture=crosspoint", "router.priority=age"],
            "router.priority: is \"age\", which conflicts with router.architecture = \"crosspoint\"",
        ),
        (
            "users",
            &["users.isolation=channels-and-shares", "flit.layout=avx512"],
            "flit.layout: is \"avx512\", which conflicts with users.isolation = \"channels-and-shares\"",
        ),
        (
            "mesh",
            &["flit.layout=avx512", "router.switching=store-and-forward"],
            "flit.layout: is \"avx512\", which conflicts with router.switching = \"store-and-forward\"",
        ),
    ] {
        let (check, run, said) = verdicts(base(name), features);
        assert!(check == Some(2) && run == Some(2), "{name} {features:?}: {check:?} {run:?}\n{said}");
        assert!(
            said.matches(expected).count() >= 2 && !said.contains("panicked"),
            "{name} {features:?} does not say `{expected}` twice:\n{said}"
        );
    }
}

/// Features that have nothing to do with each other: the section, the engine and the path of measuring.
#[test]
fn everything_that_is_refused_is_listed_with_its_place() {
    let base = |wanted: &str| BASES.iter().find(|(name, _)| *name == wanted).expect("a base of this name").1;
    for (name, features, expected) in [
        (
            "mesh",
            &["router.predictor=up-priority", "router.priority=age", "flit.layout=plain", "measure.until=first-terminal"][..],
            &["measure.until: ", "flit.layout: is \"plain\"", "router.predictor: up-priority does not fit"][..],
        ),
        (
            "mesh",
            &["engine=flow", "router.predictor=latest-port", "flow.sharing=fair"],
            &["flow.sharing: unknown value `fair`", "router.predictor: "],
        ),
        ("mesh", &["router.input_speedup=0", "measure.precision=-1"], &["measure.precision: ", "router.input_speedup: is 0"]),
    ] {
        let verdicts = Verdicts::of(base(name), features);
        assert!(verdicts.check == Some(2) && verdicts.run == Some(2), "{name} {features:?}\n{}", verdicts.said());
        assert_eq!(verdicts.of_check, verdicts.of_run, "{name} {features:?}");
        let lines: Vec<&str> = verdicts.of_check.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{name} {features:?}: {lines:#?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with("error: --set ") && line.contains(expected), "{name} {features:?}: {expected}: {lines:#?}");
        }
    }
}

/// All errors of all points of a sweep, each one once.
#[test]
fn every_point_of_a_sweep_has_its_refusals_listed() {
    let mesh = BASES[0].1;
    let sweep = ["router.predictor=none", "sweep.router.predictor=[\"latest-port\", \"up-priority\"]", "sweep.engine=[\"flit\", \"flow\"]"];
    let verdicts = Verdicts::of(mesh, &sweep[1..]);
    assert_eq!((verdicts.check, verdicts.run), (Some(2), Some(2)), "{}", verdicts.said());
    assert_eq!(verdicts.of_check, verdicts.of_run);
    let lines: Vec<&str> = verdicts.of_check.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    for (line, expected) in lines.iter().zip(["is \"latest-port\", which conflicts with engine = \"flow\"", "up-priority does not fit"]) {
        assert!(line.contains(expected), "{lines:#?}");
    }
    let right = Verdicts::of(mesh, &sweep[..1]);
    assert_eq!(right.check, Some(0), "{}", right.said());
}

/// A sample; set `PROPTEST_CASES` for more.
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
