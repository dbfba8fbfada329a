//! How near collectives come to their bounds, and what is said where they do not.

use kasuri::plan::{self, RunOptions};
use kasuri::results::RunRow;
use kasuri_config::Document;
use kasuri_network::topology::NoFiles;

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
    assert_eq!(bound("collective = \"barrier\""), None);
}

/// Where the default is far from the bound, the hint names keys that bring it as near as it says, by a run with these keys.
#[test]
fn hints_keep_their_promise() {
    let workload = "collective = \"alltoall\"\nmessage_flits = 256";
    for (network, routing) in [
        ("topology = \"flattened-butterfly\"\ndimensions = [4, 4]\nconcentration = 4", "algorithm = \"minimal\""),
        ("topology = \"mlfm\"\ndegree = 3", "algorithm = \"minimal\""),
        ("topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2\nsides = 2", "algorithm = \"nca\""),
        ("topology = \"slim-fly\"\norder = 4\nconcentration = 2", "algorithm = \"minimal\""),
    ] {
        let before = run(network, routing, workload);
        let hint = before.text("hint");
        let promised: f64 = hint.rsplit_once("efficiency about ").unwrap_or_else(|| panic!("no hint on {network}")).1.parse().unwrap();
        let (routing, workload) = applied(hint, routing, workload);
        let after = number(&run(network, &routing, &workload), "efficiency");
        assert!(promised > 1.1 * number(&before, "efficiency"), "{network}: {hint}");
        assert!((after / promised - 1.0).abs() < 0.1, "{network}: {hint}, and it is {after}");
    }
}

#[test]
fn what_is_near_its_bound_gets_no_hint() {
    let row = run(
        "topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2",
        "algorithm = \"nca\"\nup_port = \"d-mod-k\"",
        "collective = \"alltoall\"\nmessage_flits = 256",
    );
    assert!(number(&row, "efficiency") > 0.95 && row.get("hint").is_null(), "{} {}", row.get("efficiency"), row.get("hint"));
}
