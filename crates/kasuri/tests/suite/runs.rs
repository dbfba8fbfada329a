//! Whole experiments on the flit engine: the rules of measurement meet a real network.

use kasuri::input::KNOWN;
use kasuri::plan::{self, RunOptions, Summary};
use kasuri::results::{COSTS, RunRow};
use kasuri_config::Document;
use kasuri_network::topology::NoFiles;
use serde_json::Value;

/// An 8x8 mesh, one-cycle stages and channels, 5-flit packets.
const MESH: &str = r#"
    [network]
    topology = "mesh"
    dimensions = [8, 8]
    [routing]
    algorithm = "dimension-order"
    [router]
    virtual_channels = 4
    buffer_flits = 8
    [traffic]
    pattern = "uniform"
    packet_flits = 5
    load = 0.1
"#;

fn run(text: &str, jobs: usize) -> Summary {
    let document = Document::parse_for(*KNOWN, "test.toml", text).unwrap();
    plan::run(&document, &NoFiles, &RunOptions { jobs: Some(jobs), paranoid: true, ..RunOptions::default() }).unwrap()
}

fn number(row: &RunRow, name: &str) -> f64 {
    row.number(name).unwrap_or_else(|| panic!("{name} is {}", row.get(name)))
}

/// Mean over all pairs of distinct nodes of (P + 1) R + 2 + (M - 1), with P = 4 stages and R routers; the mean distance of
/// distinct nodes in a k x k mesh is 2 (k^2 - 1) / (3 k) * k^2 / (k^2 - 1) = 2 k / 3.
#[test]
fn a_low_load_converges_to_the_zero_load_latency() {
    let summary = run(&format!("{MESH}\n[sweep]\n\"traffic.load\" = [0.002]"), 1);
    let row = &summary.rows[0];
    let routers = 2.0 * 8.0 / 3.0 + 1.0;
    let expected = 5.0 * routers + 2.0 + 4.0;
    let (latency, width) = (number(row, "packet_latency_mean"), number(row, "packet_latency_ci95"));
    assert_eq!(row.status(), "converged");
    // Contention at 1 % of the capacity adds at most a few parts in a hundred.
    assert!(latency > expected - 2.0 * width && latency < 1.02 * expected + 2.0 * width, "{latency} +- {width}, not {expected}");
    assert!((number(row, "hops_mean") - routers).abs() < 0.2);
}

/// The purpose of a confidence interval: the means of other seeds differ from each other by no more than it says.
#[test]
fn confidence_intervals_bound_the_difference_between_seeds() {
    let summary = run(&format!("{MESH}\n[sweep]\n\"traffic.load\" = [0.3]\n\"measure.seed\" = [1, 2, 3, 4, 5, 6]"), 2);
    let means: Vec<f64> = summary.rows.iter().map(|row| number(row, "packet_latency_mean")).collect();
    let width = summary.rows.iter().map(|row| number(row, "packet_latency_ci95")).fold(0.0, f64::max);
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    assert!(width <= 0.0101 * mean);
    assert!(means.iter().all(|other| (other - mean).abs() < 1.6 * width), "{means:?} {width}");
    for row in &summary.rows {
        assert!((number(row, "accepted_throughput_mean") / 0.3 - 1.0).abs() < 0.03);
        assert!(number(row, "fairness_jain") > 0.98);
    }
}

#[test]
fn overload_is_saturated_and_accepts_the_same_whatever_is_offered() {
    let summary = run(&format!("{MESH}\n[sweep]\n\"traffic.load\" = [0.55, 0.9]"), 2);
    let accepted: Vec<f64> = summary.rows.iter().map(|row| number(row, "accepted_throughput_mean")).collect();
    assert!(summary.rows.iter().all(|row| row.status() == "saturated" && row.get("packet_latency_ci95").is_null()));
    assert_eq!(summary.exit_status(), 0);
    // The bisection of an 8x8 mesh bounds uniform traffic to 0.5 flits/terminal/cycle (Dally and Towles, section 3.3).
    assert!(accepted.iter().all(|&rate| (0.3..0.5).contains(&rate)), "{accepted:?}");
    assert!((accepted[0] / accepted[1] - 1.0).abs() < 0.06, "{accepted:?}");
}

#[test]
fn the_saturation_search_agrees_with_the_accepted_throughput_of_overload() {
    let text = format!("{MESH}\n[measure]\nsearch = \"saturation\"\nprecision = 0.05\nmax_cycles = 100_000");
    let summary = run(&text, 1);
    let row = &summary.rows[0];
    let load = number(row, "saturation_load");
    assert!((0.3..0.45).contains(&load), "{load}");
    assert!((number(row, "offered_load") - load).abs() < 1e-9);
    assert!((number(row, "zero_load_latency") - 37.7).abs() < 2.0);
}

#[test]
fn a_batch_is_completed_and_every_terminal_receives_its_share() {
    let batch = MESH.replace("load = 0.1", "process = \"batch\"\nbatch_packets = 20").replace("uniform", "bit-complement");
    let summary = run(&batch, 1);
    let row = &summary.rows[0];
    assert_eq!((row.status(), summary.exit_status()), ("completed", 0));
    // Each terminal receives 20 packets of 5 flits, so no terminal completes before cycle 100.
    assert!(number(row, "completion_time") > 100.0);
    let per_cycle = 100.0 / number(row, "measured_cycles");
    assert!(
        (number(row, "accepted_throughput_min") - per_cycle).abs() < 1e-12
            && (number(row, "accepted_throughput_max") - per_cycle).abs() < 1e-12
    );
    assert_eq!(number(row, "measured_packets"), 64.0 * 20.0);
    assert!(summary.vectors[0].iter().any(|vector| vector.name == "completion_cycles" && vector.shape == [64]));
}

#[test]
fn the_rules_of_booksim_end_a_run_as_booksim_does() {
    let rules = |more: &str| format!("{MESH}\n[measure]\nrules = \"booksim\"\n[measure.booksim]\n{more}");
    let steady = run(&rules("sample_period = 1000"), 1);
    let row = &steady.rows[0];
    assert_eq!((row.status(), row.text("booksim_status")), ("converged", "ok"));
    // Three periods of warm-up, at least three measured ones.
    assert_eq!(number(row, "warmup_cycles"), 3000.0);
    assert!(number(row, "measured_cycles") >= 3000.0 && number(row, "measured_cycles") <= 7000.0);
    let unstable = run(&rules("sample_period = 1000").replace("load = 0.1", "load = 0.9"), 1);
    assert_eq!((unstable.rows[0].status(), unstable.rows[0].text("booksim_status")), ("saturated", "unstable"));
    let throughput = run(&rules("sim_type = \"throughput\"").replace("load = 0.1", "load = 0.9"), 1);
    // BookSim accepts a rate that no longer changes; the verdict that it is below the offered one is Kasuri's.
    assert_eq!((throughput.rows[0].status(), throughput.rows[0].text("booksim_status")), ("saturated", "ok"));
    assert!((0.3..0.5).contains(&number(&throughput.rows[0], "accepted_throughput_mean")));
}

/// The table of three loads and two seeds, apart from its costs, is the same for one and for several threads.
#[test]
fn threads_change_nothing() {
    let text =
        format!("{MESH}\n[measure]\nwarmup = 500\ncycles = 2000\n[sweep]\n\"traffic.load\" = [0.05, 0.2, 0.35]\n\"measure.seed\" = [1, 2]");
    let table = |jobs| {
        let summary = run(&text, jobs);
        let rows = summary.rows.into_iter().map(|mut row| {
            COSTS.iter().for_each(|column| row.set(column, Value::Null));
            row.to_json()
        });
        (rows.collect::<Vec<_>>(), summary.vectors)
    };
    let (one, several) = (table(1), table(5));
    assert!(one == several);
    assert_eq!(one.0.len(), 6);
}

/// Six routers in a row, tornado with a shift of 2: terminals 0 to 3 send two routers up, two flows on the channels 1-2, 2-3 and 3-4; each
/// flow crosses one of them; terminals 4 and 5 send four routers down, both on three channels. So every rate is 1/2.
#[test]
fn a_run_until_the_first_terminal_gives_the_rates_of_its_first_interval() {
    let summary = run(
        r#"
        [network]
        topology = "mesh"
        dimensions = [6]
        channel_latency = 0
        terminal_channel_latency = 0
        [routing]
        algorithm = "dimension-order"
        [router]
        pipeline = [{ stages = ["RC", "VA", "SA", "ST"], cycles = 1 }]
        [traffic]
        pattern = "tornado"
        shift = "floor"
        process = "batch"
        batch_packets = 200
        packet_flits = 40
        [flow]
        latency = false
        [measure]
        until = "first-terminal"
        [sweep]
        engine = ["flow", "flit"]
        "#,
        1,
    );
    let [flow, flit] = &summary.rows[..] else { panic!("{} rows", summary.rows.len()) };
    assert_eq!((flow.status(), flit.status()), ("completed", "completed"));
    // 8000 flits at rate 1/2; all terminals finish together.
    assert_eq!((number(flow, "cycles"), number(flow, "atr")), (16_000.0, 0.5));
    // Round-robin divides as equally: the first terminal is done after as long, the others but for a packet or two as well.
    assert!((number(flit, "atr") - 0.5).abs() < 0.01, "{}", number(flit, "atr"));
    assert!((number(flit, "cycles") / 16_000.0 - 1.0).abs() < 0.02, "{}", number(flit, "cycles"));
}

/// At offered load 1 are the terminals that send; the others offer nothing, as in every other rate.
#[test]
fn silent_terminals_do_not_count_in_the_throughput_rate() {
    let text = r#"
        [network]
        topology = "mesh"
        dimensions = [4]
        [routing]
        algorithm = "dimension-order"
        [traffic]
        pattern = "permutation"
        path = "pairs.txt"
        process = "batch"
        batch_packets = 100
        packet_flits = 10
        [flow]
        latency = false
        [measure]
        until = "first-terminal"
        [sweep]
        engine = ["flow"]
    "#;
    struct Pairs;
    impl kasuri_network::topology::Files for Pairs {
        fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
            Ok(b"0 3\n1 2\n".to_vec())
        }
    }
    let document = Document::parse_for(*KNOWN, "test.toml", text).unwrap();
    let summary = plan::run(&document, &Pairs, &RunOptions { jobs: Some(1), ..RunOptions::default() }).unwrap();
    // 0 -> 3 and 1 -> 2 share the channel 1-2: rates 1/2; terminals 2 and 3 are silent.
    assert_eq!(number(&summary.rows[0], "atr"), (0.5 + 0.5) / 2.0);
}

/// Tornado on an 8 x 8 mesh: with one virtual channel for each destination no packet waits behind one to another destination, so the
/// network carries more (0.15 and 0.29 of the terminals' bandwidth; 1/3 would be fair).
#[test]
fn a_virtual_channel_per_destination_takes_away_head_of_line_blocking() {
    let text = |router: &str| {
        format!(
            r#"
            [network]
            topology = "mesh"
            dimensions = [8, 8]
            channel_latency = 0
            terminal_channel_latency = 0
            [routing]
            algorithm = "dimension-order"
            [router]
            {router}
            buffer_flits = 2
            pipeline = [{{ stages = ["RC", "VA", "SA", "ST"], cycles = 1 }}]
            [traffic]
            pattern = "tornado"
            shift = "floor"
            load = 1.0
            packet_flits = 40
            [measure]
            warmup = 4000
            cycles = 4000
            "#
        )
    };
    let atr = |router: &str| number(&run(&text(router), 1).rows[0], "atr");
    let (one, own) = (atr("virtual_channels = 1"), atr("vc_per_destination = true"));
    assert!(one < 0.2 && own > 0.25 && own <= 1.0 / 3.0, "{one} {own}");
}
