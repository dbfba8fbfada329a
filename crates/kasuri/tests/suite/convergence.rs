//! The promise of `converged`, on the engines: sources that are not a fair sample of their law, late answers, searches.

use kasuri::plan::{self, RunOptions, Summary};
use kasuri::results::{Numbers, RunRow, Vector};
use kasuri_config::Document;
use kasuri_network::topology::NoFiles;

const MESH: &str = r#"
    [network]
    topology = "mesh"
    dimensions = [4, 4]
    [routing]
    algorithm = "dimension-order"
    [measure]
    precision = 0.1
    [traffic]
    pattern = "uniform"
    packet_flits = 5
"#;

/// `head` precedes the tables, `traffic` and more tables come at the end.
fn run(head: &str, traffic: &str) -> Summary {
    let document = Document::parse("test.toml", &format!("{head}{MESH}{traffic}")).unwrap();
    plan::run(&document, &NoFiles, &RunOptions { jobs: Some(2), paranoid: true, ..RunOptions::default() }).unwrap()
}

fn number(row: &RunRow, name: &str) -> f64 {
    row.number(name).unwrap_or_else(|| panic!("{name} is {}", row.get(name)))
}

/// The measured packets have equal numbers of requests and answers, and an answer counts its delay: the mean is that of a lone packet plus
/// half of the delay, whether the delay is shorter than the measured time or longer than a run without answers would take.
#[test]
fn requests_and_answers_are_measured_in_equal_numbers() {
    for engine in ["flit", "flow"] {
        for delay in [0u32, 400, 4_000, 60_000] {
            let traffic = format!("load = 0.1\nreply = {{ packet_flits = 5, delay = {delay} }}");
            let summary = run(&format!("engine = \"{engine}\""), &traffic);
            let row = &summary.rows[0];
            assert_eq!(row.status(), "converged", "{engine} {delay}: {}", row.text("message"));
            let mean = number(row, "packet_latency_mean") - f64::from(delay) / 2.0;
            assert!((5.0..80.0).contains(&mean), "{engine}, delay {delay}: mean {mean} besides half of the delay");
            if delay >= 400 {
                // Requests take less than the delay, answers at least that.
                let (requests, answers) = counts(&summary.vectors[0], f64::from(delay));
                assert_eq!(requests, answers, "{engine}, delay {delay}");
            }
        }
    }
}

/// Of the histogram of packet latencies: how many lie below a value, how many not.
fn counts(vectors: &[Vector], value: f64) -> (u64, u64) {
    let histogram = vectors.iter().find(|vector| vector.name == "packet_latency_histogram").expect("a histogram");
    let Numbers::Whole(lines) = &histogram.values else { panic!("whole numbers") };
    let below = |line: &&[u64]| (line[0] as f64) < value;
    let sum = |lines: Vec<&[u64]>| lines.iter().map(|line| line[1]).sum();
    let (short, long) = lines.chunks_exact(2).partition(below);
    (sum(short), sum(long))
}

/// Sources that are on for a million cycles at a time: no run of half a million sees a fair sample of them, whatever its latency looks like.
#[test]
fn bursts_longer_than_the_run_do_not_converge() {
    let traffic = "load = 0.02\nprocess = \"on-off\"\nalpha = 1e-7\nbeta = 1e-6\n[sweep]\n\"measure.seed\" = [1, 2]";
    let summary = run("", &traffic.replace("[sweep]", "[sweep]\n\"measure.max_cycles\" = [60000]"));
    for row in &summary.rows {
        assert_eq!(row.status(), "max_cycles", "{}", row.text("message"));
    }
    assert_eq!(summary.messages.len(), 2);
    assert!(summary.messages[1].starts_with("run with measure.seed = 2: max_cycles"), "{:?}", summary.messages);
}

/// One packet of 2,000 flits among 100,000: a time that holds none says nothing of the queues that it makes.
#[test]
fn rare_large_packets_are_waited_for() {
    let traffic = "load = 0.1\npacket_flits = [{ flits = 1, weight = 0.99999 }, { flits = 2000, weight = 0.00001 }]";
    let text = format!("{}\n[sweep]\n\"measure.max_cycles\" = [50000]", traffic);
    let document = format!("{}{text}", MESH.replace("packet_flits = 5", ""));
    let document = Document::parse("test.toml", &document).unwrap();
    let summary = plan::run(&document, &NoFiles, &RunOptions::default()).unwrap();
    let row = &summary.rows[0];
    assert_eq!(row.status(), "max_cycles");
    assert!(row.text("message").contains("rare packets"), "{}", row.text("message"));
}

/// A permutation of periodic sources has another mean for each draw of phases. Runs of different seeds answer for the mean over phases: they
/// agree within what their intervals say of their differences.
#[test]
fn seeds_agree_on_the_mean_over_phases() {
    let traffic = "load = 0.15\nprocess = \"periodic\"\n[sweep]\n\"measure.seed\" = [1, 2, 3, 4, 5, 6]";
    let text = MESH.replace("\"uniform\"", "\"transpose\"").replace("precision = 0.1", "precision = 0.03");
    let document = Document::parse("test.toml", &format!("{text}{traffic}")).unwrap();
    let summary = plan::run(&document, &NoFiles, &RunOptions::default()).unwrap();
    let answers: Vec<(f64, f64)> =
        summary.rows.iter().map(|row| (number(row, "packet_latency_mean"), number(row, "packet_latency_ci95"))).collect();
    let mean = answers.iter().map(|answer| answer.0).sum::<f64>() / answers.len() as f64;
    for (row, &(answer, width)) in summary.rows.iter().zip(&answers) {
        assert_eq!(row.status(), "converged", "{}", row.text("message"));
        assert!((answer - mean).abs() < 1.7 * width, "{answers:?}");
        assert!(row.text("message").contains("mean over phases"));
    }
}

/// A run of a fixed length keeps the phases of its seed, and says that it knows no interval over others.
#[test]
fn fixed_lengths_keep_their_phases_and_say_so() {
    let traffic = "load = 0.2\nprocess = \"periodic\"";
    let text = MESH.replace("precision = 0.1", "warmup = 1000\ncycles = 5000");
    let document = Document::parse("test.toml", &format!("{text}{traffic}")).unwrap();
    let summary = plan::run(&document, &NoFiles, &RunOptions::default()).unwrap();
    let row = &summary.rows[0];
    assert_eq!((row.status(), row.number("packet_latency_ci95")), ("converged", None));
    assert!(row.text("message").contains("measure.seed"), "{}", row.text("message"));
}

/// A hot spot that is offered 1.02 of its capacity has no mean latency, however small its share of the traffic.
#[test]
fn an_overloaded_hot_spot_never_converges() {
    let hot = "pattern = \"hotspot\"\nterminals = [5]\n";
    for seed in 1..=3 {
        let text = MESH.replace("pattern = \"uniform\"\n", hot);
        let text = format!("{text}load = 0.068\n[sweep]\n\"measure.seed\" = [{seed}]\n\"measure.max_cycles\" = [60000]");
        let document = Document::parse("test.toml", &text).unwrap();
        let summary = plan::run(&document, &NoFiles, &RunOptions::default()).unwrap();
        assert_ne!(summary.rows[0].status(), "converged", "seed {seed}: {}", summary.rows[0].get("packet_latency_mean"));
    }
}

/// A search has its answer whatever became of the trial that shows it.
#[test]
fn a_search_with_trials_cut_short_succeeds() {
    let text = format!("{MESH}\n[sweep]\n\"measure.search\" = [\"saturation\"]\n\"measure.max_cycles\" = [3000]");
    let document = Document::parse("test.toml", &text).unwrap();
    let summary = plan::run(&document, &NoFiles, &RunOptions::default()).unwrap();
    let row = &summary.rows[0];
    assert!(number(row, "saturation_load") > 0.1);
    assert_eq!((row.status(), summary.exit_status()), ("saturated", 0), "{}", row.text("message"));
}
