//! The runs of an experiment, and their ends.

use super::*;
use crate::results::COSTS;
use kasuri_model::engine::{Command, Controller, Engine, EngineError, Interval, Outcome, Prepared, Status};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::routing::extents::Extents;
use kasuri_network::topology::NoFiles;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const FILE: &str = r#"
    title = "T"
    [network]
    topology = "mesh"
    dimensions = [2, 2]
    [routing]
    algorithm = "dimension-order"
    [traffic]
    pattern = "uniform"
    [measure]
    warmup = 100
    cycles = 1000
    [sweep]
    "measure.seed" = [1, 2]
    "traffic.load" = [0.1, 0.2, 0.3]
"#;

fn document(text: &str) -> Document {
    Document::parse("t.toml", text).unwrap()
}

/// Acts like an engine that delivers everything; its other behaviour depends on the load.
#[derive(Default)]
struct Fake {
    runs: AtomicU64,
    /// Requests a stop during run number `.0`.
    stop: Option<(u64, Stop)>,
    panics_at: Option<f64>,
    refuses_at: Option<f64>,
}

/// An engine with the name of the default one, implemented by a function.
macro_rules! engine {
    ($engine:ty) => {
        impl Engine for $engine {
            fn name(&self) -> &'static str {
                "flit"
            }

            fn summary(&self) -> &'static str {
                "a fake"
            }

            fn section(&self) -> fn() -> schemars::Schema {
                kasuri_flit::FlitEngine.section()
            }

            fn method(&self) -> Method {
                Method::Cycles
            }

            fn prepare<'s>(&'s self, scenario: &'s Scenario) -> Result<Box<dyn Prepared + 's>, Vec<Refusal>> {
                Ok(Box::new(Answering(Box::new(move |controller| self.answer(scenario, controller)))))
            }
        }
    };
}

engine!(Fake);
engine!(Saturating);

type Answer<'s> = dyn Fn(&mut dyn Controller) -> Result<Outcome, EngineError> + 's;

struct Answering<'s>(Box<Answer<'s>>);

impl Prepared for Answering<'_> {
    fn memory_bytes(&self, _extents: &mut Extents) -> u64 {
        0
    }

    fn run(self: Box<Self>, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        (self.0)(controller)
    }
}

/// The valid names of experiment files if there is only this engine.
fn only<'a>(engines: &'a [&'a dyn Engine; 1]) -> Known<'a> {
    Known { engines, ..*KNOWN }
}

impl Fake {
    fn answer(&self, scenario: &Scenario, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        let load = scenario.classes[0].load;
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        assert_ne!(Some(load), self.panics_at, "the fake engine fails");
        if Some(load) == self.refuses_at {
            return Err(Refusal::new("traffic.load", "the fake engine is small").into());
        }
        let mut end_cycle = 0;
        loop {
            let cycles = controller.interval_cycles();
            end_cycle += cycles;
            if let Some((at, stop)) = &self.stop
                && *at == number
            {
                stop.request(2);
            }
            let accepted_flits = (load * cycles as f64 * 4.0) as u64;
            let interval = Interval { end_cycle, cycles, accepted_flits, ..Interval::default() };
            if let Command::End(status) = controller.interval_ended(&interval) {
                return Ok(Outcome { status, ..outcome(load, 1000.0 * scenario.streams.get(PURPOSE, 0).unit()) });
            }
        }
    }
}

const PURPOSE: kasuri_network::rng::Purpose = kasuri_network::rng::Purpose::Creation;

fn outcome(load: f64, latency: f64) -> Outcome {
    let mut outcome = crate::results::tests::outcome();
    outcome.packet_latency.sum = latency * outcome.packet_latency.count as f64;
    outcome.accepted_flits = vec![(load * 100.0) as u64; 4];
    outcome.injected_flits = outcome.accepted_flits.clone();
    outcome.channel_flits = vec![1; 16];
    outcome.router_occupancy = vec![0.0; 4];
    outcome
}

fn run_with(engine: &Fake, options: &RunOptions) -> Result<Summary, RunError> {
    let document = document(FILE);
    Plan::prepare_for(only(&[engine]), &document, &NoFiles)?.run(options)
}

fn options(folder: &Path) -> RunOptions {
    RunOptions { out: Some(folder.to_owned()), jobs: Some(1), ..RunOptions::default() }
}

/// The rows without machine-dependent columns.
fn table(summary: &Summary) -> Vec<Value> {
    let row = |row: &RunRow| {
        let mut row = row.clone();
        COSTS.iter().for_each(|column| row.set(column, Value::Null));
        row.to_json()
    };
    summary.rows.iter().map(row).collect()
}

#[test]
fn rows_have_the_order_and_inputs_of_the_points() {
    let summary = run_with(&Fake::default(), &RunOptions::default()).unwrap();
    let inputs: Vec<_> =
        summary.rows.iter().map(|row| (row.number("measure.seed").unwrap(), row.number("traffic.load").unwrap())).collect();
    assert_eq!(inputs, [(1.0, 0.1), (1.0, 0.2), (1.0, 0.3), (2.0, 0.1), (2.0, 0.2), (2.0, 0.3)]);
    assert_eq!((summary.computed, summary.reused, summary.exit_status()), (6, 0, 0));
    assert_eq!(summary.rows[0].text("network.topology"), "mesh");
    assert!(summary.vectors.iter().all(|vectors| vectors.len() == 5));
}

#[test]
fn the_table_does_not_depend_on_the_number_of_threads() {
    let tables = [1, 2, 5].map(|jobs| {
        let options = RunOptions { jobs: Some(jobs), ..RunOptions::default() };
        table(&run_with(&Fake::default(), &options).unwrap())
    });
    assert!(tables[0] == tables[1] && tables[0] == tables[2]);
}

#[test]
fn a_second_run_computes_nothing_and_a_lost_run_alone_is_computed() {
    let folder = tempfile::tempdir().unwrap();
    let first = run_with(&Fake::default(), &options(folder.path())).unwrap();
    let second = run_with(&Fake::default(), &options(folder.path())).unwrap();
    assert_eq!((second.computed, second.reused), (0, 6));
    assert!(table(&first) == table(&second));
    std::fs::write(folder.path().join(format!("runs/{}.json", first.rows[2].key())), "{").unwrap();
    let third = run_with(&Fake::default(), &options(folder.path())).unwrap();
    assert_eq!((third.computed, third.reused, third.messages.len()), (1, 5, 1));
    assert!(table(&first) == table(&third));
}

#[test]
fn a_stop_keeps_finished_runs_and_the_next_run_continues() {
    let folder = tempfile::tempdir().unwrap();
    let stop = Stop::default();
    let engine = Fake { stop: Some((3, stop.clone())), ..Fake::default() };
    let stopped = run_with(&engine, &RunOptions { stop, ..options(folder.path()) }).unwrap();
    assert_eq!((stopped.rows.len(), stopped.exit_status(), stopped.interrupted), (3, 130, Some(2)));
    assert!(stopped.messages[0].starts_with("stopped: 3 of 6 runs are finished and kept in"), "{:?}", stopped.messages);
    assert!(!folder.path().join("runs.csv").exists());
    let rest = run_with(&Fake::default(), &options(folder.path())).unwrap();
    assert_eq!((rest.computed, rest.reused), (3, 3));
    assert!(table(&rest) == table(&run_with(&Fake::default(), &RunOptions::default()).unwrap()));
}

#[test]
fn a_defect_in_one_run_leaves_the_others_alone_and_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Fake { panics_at: Some(0.2), ..Fake::default() };
    let summary = run_with(&engine, &options(folder.path())).unwrap();
    let statuses: Vec<&str> = summary.rows.iter().map(RunRow::status).collect();
    assert_eq!(statuses, ["converged", "failed", "converged", "converged", "failed", "converged"]);
    assert!(summary.rows[1].text("message").starts_with("internal error: "), "{}", summary.rows[1].text("message"));
    assert_eq!(summary.exit_status(), 1);
    let mended = run_with(&Fake::default(), &options(folder.path())).unwrap();
    assert_eq!((mended.computed, mended.exit_status()), (2, 0));
}

#[test]
fn input_that_an_engine_refuses_is_status_2() {
    let engine = Fake { refuses_at: Some(0.3), ..Fake::default() };
    let summary = run_with(&engine, &RunOptions::default()).unwrap();
    assert_eq!(summary.exit_status(), 2);
    assert!(summary.messages[0].ends_with("the fake engine is small"));
}

#[test]
fn one_point_runs_by_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let document = document(FILE);
    let engine = Fake::default();
    let engines: [&dyn Engine; 1] = [&engine];
    let plan = Plan::prepare_for(only(&engines), &document, &NoFiles).unwrap();
    let keys: Vec<String> = plan.keys().map(|key| key.to_string()).collect();
    let run = |point: &str| {
        let options = RunOptions { point: Some(point.to_owned()), ..options(folder.path()) };
        plan.run(&options)
    };
    let summary = run(&keys[4][..12]).unwrap();
    assert_eq!((summary.rows.len(), summary.rows[0].key(), summary.planned), (1, keys[4].as_str(), 1));
    assert!(!folder.path().join("runs.csv").exists());
    for wrong in ["xyz", ""] {
        let error = run(wrong).unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains("none of the 6 runs"), "{error}");
    }
    assert_eq!(run_with(&Fake::default(), &options(folder.path())).unwrap().reused, 1);
}

#[test]
fn keys_follow_the_values_and_nothing_else() {
    let keys = |text: &str| {
        let document = document(text);
        Plan::prepare(&document, &NoFiles).unwrap().keys().map(|key| key.to_string()).collect::<Vec<_>>()
    };
    let first = keys(FILE);
    assert!(first.iter().all(|key| key.len() == 32 && key.chars().all(|digit| digit.is_ascii_hexdigit())));
    assert_eq!(first.iter().collect::<std::collections::BTreeSet<_>>().len(), 6);
    assert_eq!(first, keys(&FILE.replace("title = \"T\"", "title = \"U\"")));
    // The order of keys in the file does not count.
    assert_eq!(first, keys(&FILE.replace("warmup = 100\n        cycles = 1000", "cycles = 1000\n        warmup = 100")));
    assert!(keys(&FILE.replace("[2, 2]", "[2, 3]")).iter().all(|key| !first.contains(key)));
}

#[test]
fn the_contents_of_named_files_belong_to_the_key() {
    struct One(&'static [u8]);
    impl Files for One {
        fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
            Ok(self.0.to_vec())
        }
    }
    let document = document(FILE);
    let mut point = document.points().unwrap().remove(0);
    let study = document.study(&point, &NoFiles).unwrap();
    for named in ["path = \"a.txt\"", "trace = \"a.txt\""] {
        let named = toml::from_str(named).unwrap();
        point.table.insert("traffic".to_owned(), toml::Value::Array(vec![toml::Value::Table(named)]));
        let key = |content| preparer::key(&point, &study, &One(content), &mut BTreeMap::new());
        assert_eq!(key(b"1"), key(b"1"));
        assert_ne!(key(b"1"), key(b"2"));
    }
}

/// Files outside the conventional keys: the study names its sources.
#[test]
fn the_contents_of_files_that_a_workload_was_read_from_belong_to_the_key() {
    struct One(&'static [u8]);
    impl Files for One {
        fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
            Ok(self.0.to_vec())
        }
    }
    let workload = "[workload]\n    collective = \"alltoallv\"\n    matrix_flits = \"sizes.csv\"";
    let text = FILE.replace("[traffic]\n    pattern = \"uniform\"", workload).replace("\"traffic.load\" = [0.1, 0.2, 0.3]", "");
    let document = document(&text);
    let keys = |content| Plan::prepare(&document, &One(content)).unwrap().keys().map(|key| key.to_string()).collect::<Vec<_>>();
    assert_eq!(keys(b"0 1\n2 0\n"), keys(b"0 1\n2 0\n"));
    assert_ne!(keys(b"0 1\n2 0\n"), keys(b"0 1\n3 0\n"));
}

/// A network of this many terminals.
struct Growing(AtomicU64);

impl Files for Growing {
    fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
        let routers = self.0.load(Ordering::Relaxed);
        let line = |router: u64| format!("router {router} node {router} router {}\n", (router + 1) % routers);
        Ok((0..routers).map(line).collect::<String>().into_bytes())
    }
}

/// A run uses the content of its files at the time of the check; if they are too large to be kept and have changed, nothing is computed
/// under the key of the old ones.
#[test]
fn a_file_that_changes_after_the_check_changes_no_run() {
    let file = "topology = \"anynet\"\npath = \"a.anynet\"";
    let text = FILE.replace("topology = \"mesh\"\n    dimensions = [2, 2]", file).replace("dimension-order", "minimal");
    let document = document(&text.replace("[routing]", "[router]\nvirtual_channels = 2\n[routing]"));
    let engine = Fake::default();
    let engines: [&dyn Engine; 1] = [&engine];
    let run = |plan: &Plan<'_>| plan.run(&RunOptions::default());
    let growing = Growing(AtomicU64::new(2));
    let plan = Plan::prepare_for(only(&engines), &document, &growing).unwrap();
    growing.0.store(3, Ordering::Relaxed);
    let rows = run(&plan).unwrap().rows;
    assert!(rows.len() == 6 && rows.iter().all(|row| row.number("terminals") == Some(2.0)));
    let runs = Runs::keeping(only(&engines), &document, &growing, 0).unwrap();
    growing.0.store(4, Ordering::Relaxed);
    let error = run(&Plan { runs, whole: true }).unwrap_err();
    assert!(error.exit_status() == 2 && error.to_string().contains("has changed since the experiment was checked (a.anynet)"), "{error}");
}

#[test]
fn a_predictor_that_does_not_know_the_network_is_refused_before_anything_runs() {
    let text = format!("{FILE}\n[router]\npredictor = \"up-priority\"\n");
    let error = Plan::prepare(&document(&text), &NoFiles).unwrap_err();
    assert_eq!(error.exit_status(), 2);
    assert!(error.to_string().contains("router.predictor: up-priority does not fit mesh [2, 2]"), "{error}");
}

#[test]
fn a_routing_that_can_deadlock_is_refused_unless_allowed() {
    // Minimal routes round a ring of four wait for each other.
    let torus = FILE.replace("mesh", "torus").replace("[2, 2]", "[4, 4]").replace("dimension-order", "minimal");
    let error = Plan::prepare(&document(&torus), &NoFiles).unwrap_err();
    assert_eq!(error.exit_status(), 2);
    assert!(error.to_string().contains("possible deadlock: a cycle of"), "{error}");
    let allowed = document(&torus.replace("[traffic]", "allow_deadlock = true\n[traffic]"));
    assert_eq!(Plan::prepare(&allowed, &NoFiles).unwrap().len(), 6);
}

/// A network that accepts up to 0.42 flits/terminal/cycle.
struct Saturating;

impl Saturating {
    fn answer(&self, scenario: &Scenario, _controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        let load = scenario.classes[0].load;
        let status = if load < 0.42 { Status::Converged } else { Status::Saturated };
        Ok(Outcome { status, ..outcome(load, 20.0) })
    }
}

#[test]
fn a_search_finds_the_saturation_load() {
    let text = FILE.replace("warmup = 100", "search = \"saturation\"").replace("\"traffic.load\" = [0.1, 0.2, 0.3]", "");
    let document = document(&text);
    let plan = Plan::prepare_for(only(&[&Saturating]), &document, &NoFiles).unwrap();
    let summary = plan.run(&RunOptions::default()).unwrap();
    let row = &summary.rows[0];
    let load = row.number("saturation_load").unwrap();
    assert!((0.42..=0.425).contains(&load), "{load}");
    assert_eq!((row.number("offered_load"), row.number("zero_load_latency")), (Some(load), Some(20.0)));
    assert_eq!((row.status(), summary.exit_status()), ("saturated", 0));
}

/// Two users, each on two of the four terminals, offer the same load; where they share all four, a terminal has both loads.
#[test]
fn a_search_gives_all_users_the_same_load() {
    let of_users = |first: &str, second: &str| {
        let users = format!(
            "[[user]]\nname = \"a\"\nnodes = {first}\n[user.traffic]\npattern = \"uniform\"\n\
             [[user]]\nname = \"b\"\nnodes = {second}\noverlap = [\"a\"]\n[user.traffic]\npattern = \"uniform\"\n"
        );
        FILE.replace("[traffic]\n    pattern = \"uniform\"\n", &users)
            .replace("warmup = 100", "search = \"saturation\"")
            .replace("\"traffic.load\" = [0.1, 0.2, 0.3]", "")
    };
    let apart = document(&of_users("[0, 1]", "[2, 3]"));
    let plan = Plan::prepare_for(only(&[&Saturating]), &apart, &NoFiles).unwrap();
    let summary = plan.run(&RunOptions::default()).unwrap();
    let load = summary.rows[0].number("saturation_load").unwrap();
    assert!((0.42..=0.43).contains(&load), "{load}");
    let shared = document(&of_users("[0, 1, 2, 3]", "[0, 1, 2, 3]"));
    let study = preparer::Preparer::new(*KNOWN, &shared, &NoFiles).study(&shared.points().unwrap()[0]).unwrap();
    assert_eq!(preparer::greatest_load(&study), 0.5);
    let own = of_users("[0, 1]", "[2, 3]").replacen("[user.traffic]\n", "[[user.traffic.class]]\nload = 0.1\n", 1);
    let error = Plan::prepare(&document(&own), &NoFiles).unwrap_err();
    assert!(error.to_string().contains("a load of its own"), "{error}");
    let changing = of_users("[0, 1]", "[2, 3]").replacen("name = \"a\"\n", "name = \"a\"\nchange_every = 100\n", 1);
    let error = Plan::prepare(&document(&changing), &NoFiles).unwrap_err();
    assert!(error.to_string().contains("leave out change_every"), "{error}");
}

#[test]
fn a_search_over_classes_with_their_own_loads_is_refused() {
    let text = FILE.replace("warmup = 100", "search = \"saturation\"").replace("\"traffic.load\" = [0.1, 0.2, 0.3]", "");
    let text = text.replace("pattern = \"uniform\"", "[[traffic.class]]\n pattern = \"uniform\"\n load = 0.1");
    let error = Plan::prepare(&document(&text), &NoFiles).unwrap_err();
    assert!(error.to_string().contains("a load of its own"), "{error}");
}

/// NaN equals nothing, not even itself: it is refused by its key, not mistaken for a lost value.
#[test]
fn a_sweep_over_no_number_is_refused_by_its_key() {
    for sweep in ["\"traffic.load\" = [nan]", "\"network\" = [nan]", "\"traffic\" = [{ load = nan }]"] {
        let text = FILE.replace("\"traffic.load\" = [0.1, 0.2, 0.3]", sweep);
        let Err(error) = Plan::prepare(&document(&text), &NoFiles) else { panic!("{sweep}") };
        let message = error.to_string();
        assert!(matches!(error, RunError::Config(_)) && !message.contains("would have"), "{sweep}: {message}");
    }
}
