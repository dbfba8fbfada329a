//! The efficiency of collectives against their bounds, and the hints for those far from them.

use crate::lone_packets::{Drawn, drawn_network};
use kasuri::input::KNOWN;
use kasuri::plan::{self, RunOptions};
use kasuri::results::RunRow;
use kasuri_config::Document;
use kasuri_network::topology::NoFiles;
use proptest::prelude::*;

fn run(network: &str, routing: &str, workload: &str) -> RunRow {
    let text = format!("engine = \"flow\"\n[network]\n{network}\n[routing]\n{routing}\n[workload]\n{workload}\n");
    let document = Document::parse("efficiency.toml", &text).unwrap();
    let options = RunOptions { jobs: Some(1), ..RunOptions::default() };
    plan::run(&document, &NoFiles, &options).unwrap_or_else(|error| panic!("{error}\n{text}")).rows.remove(0)
}

fn number(row: &RunRow, name: &str) -> f64 {
    row.number(name).unwrap_or_else(|| panic!("{name} is {}", row.get(name)))
}

/// Applies a hint: its keys and values, those of `[routing]` and those of `[workload]`.
fn applied(hint: &str, routing: &str, workload: &str) -> (String, String) {
    let (keys, _) = hint.split_once(" would need").expect("a hint names keys first");
    let (mut routing, mut workload) = (routing.to_owned(), workload.to_owned());
    for key in keys.split(" with ") {
        let (section, assignment) = key.split_once('.').unwrap();
        let section = if section == "routing" { &mut routing } else { &mut workload };
        section.push_str(&format!("\n{assignment}"));
    }
    (routing, workload)
}

/// Each rank of N sends and receives N - 1 messages. On networks with as much bandwidth inside that is the bound; on a mesh of k x k in
/// dimension order the middle channels carry k^3 / 4 messages.
#[test]
fn the_bound_of_an_all_to_all_is_that_of_terminals_or_of_the_busiest_channel() {
    let workload = "collective = \"alltoall\"\nmessage_flits = 32";
    for (network, routing, messages) in [
        ("topology = \"full-mesh\"\nrouters = 8\nconcentration = 1", "algorithm = \"minimal\"", 7.0),
        ("topology = \"mesh\"\ndimensions = [8, 8]", "algorithm = \"dimension-order\"", 128.0),
        ("topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2", "algorithm = \"nca\"", 15.0),
    ] {
        let row = run(network, routing, workload);
        assert_eq!(number(&row, "completion_bound"), messages * 32.0, "{network}");
        let efficiency = number(&row, "completion_bound") / number(&row, "completion_time");
        assert!((number(&row, "efficiency") - efficiency).abs() < 1e-12 && efficiency <= 1.0);
    }
}

/// A ring allreduce moves just 2 (N - 1) / N of the vector; an allgather N - 1 blocks; a barrier has no data.
#[test]
fn other_collectives_are_bounded_by_their_data() {
    let mesh = ("topology = \"full-mesh\"\nrouters = 8\nconcentration = 1", "algorithm = \"minimal\"");
    let bound = |workload: &str| run(mesh.0, mesh.1, workload).number("completion_bound");
    assert_eq!(bound("collective = \"allreduce\"\nschedule = \"ring\"\nmessage_flits = 800"), Some(1400.0));
    assert_eq!(bound("collective = \"allgather\"\nmessage_flits = 50\nrepeat = 2"), Some(700.0));
    assert_eq!(bound("collective = \"broadcast\"\nmessage_flits = 50"), Some(50.0));
    // The parts of a vector of one flit are flits that are almost empty.
    assert_eq!(bound("collective = \"allreduce\"\nschedule = \"ring\"\nmessage_flits = 1"), Some(1.0));
    assert_eq!(bound("collective = \"barrier\""), None);
}

/// A flit occupies a channel of period 40 for longer than it takes over three channels of latency 1, 2 cycles each, and two routers. So n flits
/// need 40 (n - 1) cycles, and 2 + 2 for the injection or ejection channel that holds them up and the one at the other end.
#[test]
fn the_last_flit_of_a_slow_channel_arrives_before_the_bound() {
    let network = "topology = \"mesh\"\ndimensions = [2]\nchannel_period = 40\nterminal_channel_period = 40";
    for (flits, bound) in [(1, 4.0), (3, 84.0)] {
        let text = |engine: &str| {
            format!(
                "engine = \"{engine}\"\n[network]\n{network}\n[routing]\nalgorithm = \"minimal\"\n\
                 [workload]\ncollective = \"alltoall\"\nmessage_flits = {flits}\n"
            )
        };
        for engine in ["analysis", "flow", "flit"] {
            let document = Document::parse_for(*KNOWN, "slow.toml", &text(engine)).unwrap();
            let row = plan::run(&document, &NoFiles, &RunOptions::default()).unwrap().rows.remove(0);
            assert_eq!([number(&row, "completion_bound"), number(&row, "routing_bound")], [bound; 2], "{engine}");
            assert!(number(&row, "completion_time") >= bound && number(&row, "efficiency") <= 1.0, "{engine}");
        }
    }
}

/// If the default is far from the bound, the hint names keys, and a run with these keys has the efficiency that the hint gives. That run
/// has no hint to set the same keys. Messages are packets, since packets of one message follow each other with gaps if each hop has its own
/// virtual channel.
#[test]
fn hints_keep_their_promise() {
    let workload = "collective = \"alltoall\"\nmessage_flits = 256\npacket_flits = 256";
    for (network, routing) in [
        ("topology = \"flattened-butterfly\"\ndimensions = [4, 4]\nconcentration = 4", "algorithm = \"minimal\""),
        ("topology = \"mlfm\"\ndegree = 3", "algorithm = \"minimal\""),
        ("topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2\nsides = 2", "algorithm = \"nca\""),
        ("topology = \"slim-fly\"\norder = 4\nconcentration = 2", "algorithm = \"minimal\""),
    ] {
        let before = run(network, routing, workload);
        let hint = before.text("hint");
        let promised: f64 = hint.rsplit_once("efficiency ").unwrap_or_else(|| panic!("no hint on {network}")).1.parse().unwrap();
        let (routing, workload) = applied(hint, routing, workload);
        let after = run(network, &routing, &workload);
        assert!(promised > 1.05 * number(&before, "efficiency"), "{network}: {hint}");
        let reached = number(&after, "efficiency");
        assert!((promised..promised + 0.01).contains(&reached), "{network}: {hint}, and it is {reached}");
        assert!(number(&after, "completion_time") * 1.1 <= number(&before, "completion_time"), "{network}: {hint}");
        let again = after.get("hint").as_str().unwrap_or_default();
        assert!(again != hint, "{network}: {hint}");
    }
}

/// Short messages, for which a barrier between phases costs more than it gains, and slow links: a run confirms each hint.
#[test]
fn hints_have_the_result_of_the_suggested_run() {
    let networks = [
        ("topology = \"torus\"\ndimensions = [4, 4]\nchannel_latency = 20", "algorithm = \"dimension-order\""),
        ("topology = \"torus\"\ndimensions = [4, 4]\nchannel_period = 4", "algorithm = \"dimension-order\"\ntie = \"positive\""),
        ("topology = \"flattened-butterfly\"\ndimensions = [4, 4]\nconcentration = 2", "algorithm = \"minimal\""),
    ];
    for (network, routing) in networks {
        for flits in [1, 4, 64] {
            let workload = format!("collective = \"alltoall\"\nmessage_flits = {flits}");
            let before = run(network, routing, &workload);
            let Some(hint) = before.get("hint").as_str() else { continue };
            let promised: f64 = hint.rsplit_once("efficiency ").expect("an efficiency").1.parse().unwrap();
            let (routing, workload) = applied(hint, routing, &workload);
            let reached = number(&run(network, &routing, &workload), "efficiency");
            assert!((promised..promised + 0.01).contains(&reached), "{network}, {flits} flits: {hint}, and it is {reached}");
        }
    }
}

#[test]
fn collectives_near_their_bound_get_no_hint() {
    let row = run(
        "topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2",
        "algorithm = \"nca\"\nup_port = \"d-mod-k\"",
        "collective = \"alltoall\"\nmessage_flits = 256",
    );
    assert!(number(&row, "efficiency") > 0.95 && row.get("hint").is_null(), "{} {}", row.get("efficiency"), row.get("hint"));
}

/// An all-to-all of N ranks at each of two leaves over U links of period p: N x N blocks cross them, whatever the routing and the schedule,
/// and with a link down still count on U.
#[test]
fn the_bound_is_that_of_the_network_alone() {
    let spread = "topology = \"leaf-spine\"\nleaves = 2\nspines = 2\ndown = 8\nchannel_period = 3";
    let bound = |network: &str, routing: &str, schedule: &str| {
        let workload = format!("collective = \"alltoall\"\nmessage_flits = 10\nschedule = \"{schedule}\"");
        let row = run(network, routing, &workload);
        assert!(number(&row, "routing_bound") >= number(&row, "completion_bound"), "{routing}");
        assert!(number(&row, "completion_time") >= number(&row, "routing_bound"), "{routing}");
        (number(&row, "completion_bound"), number(&row, "efficiency"))
    };
    let crossing = f64::from(8 * 8 * 10 * 3 / 2);
    let mut whole = Vec::new();
    for routing in ["algorithm = \"nca\"", "algorithm = \"minimal\"\ntie = \"lowest\"", "algorithm = \"ecmp\""] {
        for schedule in ["shift", "pairwise", "bruck", "ring"] {
            let (found, efficiency) = bound(spread, routing, schedule);
            assert_eq!(found, crossing, "{routing}, {schedule}");
            whole.push(efficiency);
        }
    }
    let damaged = format!("{spread}\n[faults]\nlink_count = 1\n");
    let (found, efficiency) = bound(&damaged, "algorithm = \"minimal\"\ntie = \"lowest\"", "shift");
    assert_eq!(found, crossing);
    assert!(efficiency <= whole.iter().copied().fold(0.0, f64::max), "{efficiency}");
}

/// Collectives that send something across a network.
const COLLECTIVES: [(&str, &str); 12] = [
    ("alltoall", "shift"),
    ("alltoall", "bruck"),
    ("alltoall", "ring"),
    ("allreduce", "ring"),
    ("allreduce", "recursive-doubling"),
    ("allreduce", "rabenseifner"),
    ("allgather", "ring"),
    ("allgather", "bruck"),
    ("reducescatter", "ring"),
    ("broadcast", "binomial"),
    ("gather", "binomial"),
    ("scatter", "binomial"),
];

/// Engines, as keys of a file.
const ANSWERS: [&str; 6] = [
    "engine = \"analysis\"\n",
    "engine = \"flow\"\nflow.sharing = \"equal-share\"\n",
    "engine = \"flow\"\nflow.sharing = \"max-min\"\n",
    "engine = \"flow\"\nflow.sharing = \"arbitrated\"\n",
    "engine = \"flit\"\n",
    "engine = \"flit\"\n[router]\narchitecture = \"output-queued\"\nlatency = 2\n",
];

/// The row of a collective on a drawn network, if the network supports the routing and the router.
fn row_on(network: &Drawn, answer: &str, routing: &str, workload: &str) -> Option<RunRow> {
    let router = if answer.contains("[router]") { "" } else { "[router]\nvirtual_channels = 4\nbuffer_flits = 16\n" };
    let text = format!(
        "{answer}{router}[network]\ntopology = \"file\"\npath = \"network\"\n[routing]\nallow_deadlock = true\n{routing}\n\
         [workload]\n{workload}\n\
         [measure]\nmax_cycles = 1000000\n"
    );
    let document = Document::parse_for(*KNOWN, "bounds.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = RunOptions { jobs: Some(1), ..RunOptions::default() };
    plan::run(&document, network, &options).ok().map(|mut summary| summary.rows.remove(0))
}

/// Networks of `PROPTEST_CASES`, or a sample.
fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    /// On networks with links of different speed no engine ends a collective before either bound, and all routings and engines have the
    /// same bound of the network.
    #[test]
    fn nothing_ends_before_its_bounds(network in drawn_network(), collective in 0..COLLECTIVES.len(), flits in 1u32..50, times in 1u32..3) {
        let (operation, schedule) = COLLECTIVES[collective];
        let workload =
            format!("collective = \"{operation}\"\nschedule = \"{schedule}\"\nmessage_flits = {flits}\nrepeat = {times}\npacket_flits = 8");
        let mut bounds = Vec::new();
        for routing in ["algorithm = \"minimal\"\ntie = \"lowest\"", "algorithm = \"minimal\"", "algorithm = \"up-down\""] {
            for answer in ANSWERS {
                let Some(row) = row_on(&network, answer, routing, &workload) else { continue };
                let Some(completion) = row.number("completion_time") else { continue };
                let [bound, routed] = ["completion_bound", "routing_bound"].map(|name| number(&row, name));
                let text = format!("{routed} and {bound}: {operation} by {schedule} of {flits} flits, {routing}, {answer}{}", network.edges);
                prop_assert!(bound <= routed && routed <= completion + 1e-6, "{completion} cycles, bounds {text}");
                prop_assert!(bound >= 1.0 && bound.fract() == 0.0, "{text}");
                bounds.push(bound);
            }
        }
        prop_assert!(bounds.len() >= ANSWERS.len(), "{operation} by {schedule}\n{}", network.edges);
        prop_assert!(bounds.windows(2).all(|pair| pair[0] == pair[1]), "{bounds:?}");
    }
}
