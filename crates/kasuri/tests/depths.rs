//! The same description at several depths.

use kasuri::plan::{self, RunOptions};
use kasuri::results::RunRow;
use kasuri_model::config::Document;
use kasuri_model::topology::NoFiles;

fn rows(text: &str) -> Vec<RunRow> {
    let document = Document::parse("test.toml", text).unwrap();
    plan::run(&document, &NoFiles, &RunOptions::default()).unwrap().rows
}

fn number(row: &RunRow, name: &str) -> f64 {
    row.number(name).unwrap_or_else(|| panic!("{name} is {}", row.get(name)))
}

/// At a quarter of the load that the busiest channel can carry, the formulas' latency is up to 7 % below the simulated one, for they
/// know no blocking; hops and channel utilisation agree within what a run's randomness allows.
#[test]
fn formulas_agree_with_flits_at_moderate_loads() {
    for (network, routing, load) in [
        ("topology = \"mesh\"\ndimensions = [8, 8]", "dimension-order", 0.12),
        ("topology = \"torus\"\ndimensions = [8, 8]", "dimension-order", 0.2),
        ("topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 3", "nca", 0.25),
    ] {
        let rows = rows(&format!(
            "[network]\n{network}\n[routing]\nalgorithm = \"{routing}\"\n[router]\nvirtual_channels = 4\nbuffer_flits = 16\n\
             [traffic]\npattern = \"uniform\"\npacket_flits = 5\nload = {load}\n[measure]\nprecision = 0.01\n\
             [sweep]\nengine = [\"analysis\", \"flit\"]\n"
        ));
        let (formula, flits) = (&rows[0], &rows[1]);
        assert_eq!((formula.status(), flits.status()), ("completed", "converged"), "{network}");
        let ratio = |name: &str| number(formula, name) / number(flits, name);
        assert!((0.93..1.01).contains(&ratio("packet_latency_mean")), "{network}: latency {}", ratio("packet_latency_mean"));
        assert!((ratio("hops_mean") - 1.0).abs() < 0.01, "{network}: hops {}", ratio("hops_mean"));
        assert!((ratio("channel_utilisation_mean") - 1.0).abs() < 0.02, "{network}: {}", ratio("channel_utilisation_mean"));
        assert!((ratio("accepted_throughput_mean") - 1.0).abs() < 0.02, "{network}: {}", ratio("accepted_throughput_mean"));
    }
}

/// No simulation beats the bound of the busiest channel, and the fat tree comes within a third of it.
#[test]
fn accepted_throughput_stays_below_the_bound() {
    for (network, routing) in
        [("topology = \"mesh\"\ndimensions = [4, 4]", "dimension-order"), ("topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2", "nca")]
    {
        let rows = rows(&format!(
            "[network]\n{network}\n[routing]\nalgorithm = \"{routing}\"\n[router]\nvirtual_channels = 4\nbuffer_flits = 16\n\
             [traffic]\npattern = \"uniform\"\npacket_flits = 5\nload = 1.0\n[measure]\nwarmup = 2000\ncycles = 10000\n\
             [sweep]\nengine = [\"analysis\", \"flit\"]\n"
        ));
        let (bound, accepted) = (number(&rows[0], "static_throughput"), number(&rows[1], "accepted_throughput_mean"));
        assert_eq!((rows[0].status(), rows[0].number("packet_latency_mean")), (if bound < 0.95 { "saturated" } else { "completed" }, None));
        assert!(accepted < 1.01 * bound && accepted > bound * 0.5, "{network}: {accepted} of {bound}");
    }
}
