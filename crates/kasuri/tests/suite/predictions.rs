//! Predicting routers: formulas for hit rates and latencies against simulation.

use kasuri::plan::{self, RunOptions};
use kasuri::results::RunRow;
use kasuri_config::Document;
use kasuri_network::topology::NoFiles;

fn rows(text: &str) -> Vec<RunRow> {
    let document = Document::parse("test.toml", text).unwrap();
    plan::run(&document, &NoFiles, &RunOptions::default()).unwrap().rows
}

fn number(row: &RunRow, name: &str) -> f64 {
    row.number(name).unwrap_or_else(|| panic!("{name} is {}", row.get(name)))
}

const ON_CHIP: &str = "pipeline = [{ stage = \"RC\", cycles = 3 }, \"VSA\", \"ST\"]\nvirtual_channels = 2\nbuffer_flits = 8";

/// Lone packets: so little traffic that two hardly ever meet.
fn all_agree(network: &str, routing: &str, router: &str, pattern: &str, flits: u32) {
    agree("\"analysis\", \"flow\", \"flit\"", network, routing, router, pattern, flits, 1);
}

/// The same without flows.
fn both_agree(network: &str, routing: &str, router: &str, pattern: &str, flits: u32) {
    agree("\"analysis\", \"flit\"", network, routing, router, pattern, flits, 1);
}

/// The same where a flit takes several cycles on a channel. All flits of a message pass at one rate, while flit by flit the last one only
/// begins the last period: flows are later by this difference.
fn agree(engines: &str, network: &str, routing: &str, router: &str, pattern: &str, flits: u32, period: u32) {
    let rows = rows(&format!(
        "[network]\n{network}\n[routing]\n{routing}\n[router]\n{router}\n\
         [traffic]\n{pattern}\npacket_flits = {flits}\nload = 0.0005\n[measure]\nwarmup = 1000\ncycles = 8000000\nmax_cycles = 100000000\n\
         [sweep]\nengine = [{engines}]\n"
    ));
    let formula = &rows[0];
    for row in &rows[1..] {
        let what = format!("{}: {network}, {router}, {pattern}", row.text("engine"));
        assert!(number(row, "measured_packets") > 5_000.0, "{what}");
        let (expected, found) = (number(formula, "prediction_hit_rate"), number(row, "prediction_hit_rate"));
        assert!((expected - found).abs() < 0.01, "{what}: hit rate {found}, by formula {expected}");
        let attempts = |row: &RunRow| number(row, "prediction_attempts") / number(row, "prediction_hits");
        assert!((attempts(formula) / attempts(row) - 1.0).abs() < 0.02, "{what}: {} and {}", attempts(formula), attempts(row));
        let later = if row.text("engine") == "flow" { f64::from(flits * (period - 1)) } else { 0.0 };
        let (expected, found) = (number(formula, "zero_load_latency"), number(row, "packet_latency_mean"));
        let ratio = found / expected;
        assert!((0.99 * expected..1.01 * expected + later).contains(&found), "{what}: latency {ratio} of the formula's");
    }
    for row in rows.iter().filter(|row| row.text("engine") != "flit") {
        assert_eq!(row.number("prediction_wasted_flits"), None, "neither formulas nor flows tell");
    }
}

#[test]
fn formulas_agree_with_flows_and_flits_on_trees() {
    let tree = "topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 3";
    let nca = |up_port: &str| format!("algorithm = \"nca\"\nup_port = \"{up_port}\"");
    let router = |predictor: &str, more: &str| format!("{ON_CHIP}\npredictor = \"{predictor}\"\n{more}");
    let uniform = "pattern = \"uniform\"";
    for predictor in ["static-straight", "up-priority", "oracle", "express"] {
        all_agree(tree, &nca("random"), &router(predictor, ""), uniform, 5);
    }
    all_agree(tree, &nca("d-mod-k"), &router("static-straight", ""), uniform, 5);
    all_agree(tree, &nca("random"), &router("static-straight", "predictor_match = \"exact\""), uniform, 5);
    all_agree(tree, &nca("straight"), &router("static-straight", "on_miss = \"hint\""), "pattern = \"neighbor\"", 1);
    all_agree(tree, &nca("random"), &router("static-straight", "on_miss = \"forward\""), "pattern = \"bit-reverse\"", 5);
}

/// Allocators, priorities, speed-ups and shared buffers change nothing for lone packets, except for the steps that fit into a cycle.
#[test]
fn formulas_agree_with_flits_in_routers_beyond_the_plain_one() {
    let tree = "topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 3";
    for more in [
        "internal_speedup = 2.0",
        "internal_speedup = 4.0\noutput_buffer_flits = 2",
        "priority = \"age\"\nswitch_allocator = \"select\"\ninput_speedup = 2",
        "buffer_policy = \"shared\"\nvc_allocator = \"wavefront\"",
    ] {
        let router = format!("{ON_CHIP}\npredictor = \"static-straight\"\n{more}");
        both_agree(tree, "algorithm = \"nca\"\nup_port = \"random\"", &router, "pattern = \"uniform\"", 5);
    }
}

#[test]
fn formulas_agree_with_flows_and_flits_on_grids_and_butterflies() {
    let order = "algorithm = \"dimension-order\"";
    let router = |predictor: &str| format!("{ON_CHIP}\npredictor = \"{predictor}\"");
    for network in ["topology = \"mesh\"\ndimensions = [5, 4]", "topology = \"torus\"\ndimensions = [5, 5]"] {
        for predictor in ["static-straight", "static-xy", "oracle", "express"] {
            all_agree(network, order, &router(predictor), "pattern = \"uniform\"", 5);
        }
        all_agree(network, order, &router("static-xy"), "pattern = \"tornado\"", 3);
    }
    let butterfly = "topology = \"butterfly\"\nradix = 4\nstages = 2";
    all_agree(butterfly, "algorithm = \"destination-tag\"", &router("static-straight"), "pattern = \"uniform\"", 5);
}

/// The serial routers of a system-area network: a hit saves the transfer of a flit and four stages.
#[test]
fn formulas_agree_with_flows_and_flits_on_serial_routers() {
    let all = ["both", "stages", "wait"];
    for (transfer, flits, hit_saves) in [(4, 8, "both"), (4, 8, "wait")].into_iter().chain(all.map(|saves| (32, 1, saves))) {
        for period in [1, transfer] {
            let channels = format!("channel_latency = {transfer}\nterminal_channel_latency = {transfer}\nchannel_period = {period}");
            let network = format!("topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2\n{channels}\nterminal_channel_period = {period}");
            let router = format!(
                "switching = \"virtual-cut-through\"\nvirtual_channels = 4\nbuffer_flits = {flits}\npredictor = \"up-priority\"\nhit_saves = \"{hit_saves}\"\n\
                 on_miss = \"hint\"\npipeline = [\"Des\", \"RC\", \"VSA\", \"ST\", \"Ser\", {{ stage = \"LT\", cycles = {transfer} }}]"
            );
            agree(
                "\"analysis\", \"flow\", \"flit\"",
                &network,
                "algorithm = \"nca\"\nup_port = \"random\"",
                &router,
                "pattern = \"uniform\"",
                flits,
                period,
            );
        }
    }
}

/// Hint bits take their time on every channel, by the formulas as in the engine; flows know nothing of them.
#[test]
fn formulas_agree_with_flits_on_the_time_of_hint_bits() {
    for (transfer, flits, period, hint) in [(4, 8, 4, 1), (4, 8, 1, 3), (32, 1, 32, 2)] {
        let channels = format!("channel_latency = {transfer}\nterminal_channel_latency = {transfer}\nchannel_period = {period}");
        let network = format!("topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2\n{channels}\nterminal_channel_period = {period}");
        let router = format!(
            "switching = \"virtual-cut-through\"\nvirtual_channels = 4\nbuffer_flits = {flits}\npredictor = \"up-priority\"\n\
             on_miss = \"hint\"\nhint_cycles = {hint}\n\
             pipeline = [\"Des\", \"RC\", \"VSA\", \"ST\", \"Ser\", {{ stage = \"LT\", cycles = {transfer} }}]"
        );
        both_agree(&network, "algorithm = \"nca\"\nup_port = \"random\"", &router, "pattern = \"uniform\"", flits);
    }
    let mesh = "topology = \"mesh\"\ndimensions = [5, 4]";
    let router = format!("{ON_CHIP}\npredictor = \"static-straight\"\non_miss = \"hint\"\nhint_cycles = 2");
    both_agree(mesh, "algorithm = \"dimension-order\"", &router, "pattern = \"uniform\"", 5);
}

/// Predictors without a formula are refused by name.
#[test]
fn formulas_refuse_predictors_that_learn() {
    let text = "engine = \"analysis\"\n[network]\ntopology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\n\
         [router]\npipeline = [\"RC\", \"VSA\", \"ST\"]\npredictor = \"finite-context\"\n[traffic]\npattern = \"uniform\"\nload = 0.1\n\
         packet_flits = 5\n";
    let document = Document::parse("test.toml", text).unwrap();
    let problem = plan::run(&document, &NoFiles, &RunOptions::default()).unwrap_err().to_string();
    assert!(problem.contains("router.predictor") && problem.contains("learns"), "{problem}");
}
