//! Every two values of different families of keys, on every engine: checking and running agree, nothing panics, flits and credits are
//! conserved, a lone packet takes the cycles of its formula, tiles change no bit of the flit engine's results, and every refusal is in a
//! table.
//!
//! A sample of the pairs; `KASURI_MATRIX=all` takes all, `KASURI_MATRIX=5` every fifth.

#[path = "matrix/exceptions.rs"]
mod exceptions;
#[path = "matrix/values.rs"]
mod values;

use crate::chakra::{self, Does, SYSTEM};
use exceptions::{Excuse, FAULTS, MACHINE, MISSING, ONLY_RUN};
use kasuri::engines::ENGINES;
use kasuri::input::KNOWN;
use kasuri::measure::{Fixed, Offer, controller};
use kasuri::plan::{Plan, RunError, RunOptions};
use kasuri_config::{Document, Preparation, Study};
use kasuri_flow::analysis::zero_load;
use kasuri_model::engine::{Controller, Engine, EngineError, Feature, Method, Outcome, Threads};
use kasuri_model::scenario::Scenario;
use kasuri_network::topology::Files;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use toml::{Table, Value as Toml};
use values::{BASE, VALUES, Value};

/// One pair on one engine; a single value if both are the same.
#[derive(Clone, Copy)]
struct Case {
    engine: &'static dyn Engine,
    values: [&'static Value; 2],
}

impl Case {
    /// All, in a fixed order.
    fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for &engine in ENGINES {
            let values: Vec<&Value> = VALUES.iter().filter(|value| ["", engine.name()].contains(&value.engine) && is_here(value)).collect();
            for (number, one) in values.iter().enumerate() {
                let apart = |other: &&&Value| other.family != one.family;
                cases.push(Self { engine, values: [one, one] });
                cases.extend(values[number..].iter().filter(apart).map(|other| Self { engine, values: [one, other] }));
            }
        }
        cases
    }

    fn name(&self) -> String {
        let of = |value: &Value| format!("{} `{}`", value.family, value.name);
        let [one, other] = self.values;
        if std::ptr::eq(one, other) {
            format!("{}: {}", self.engine.name(), of(one))
        } else {
            format!("{}: {} with {}", self.engine.name(), of(one), of(other))
        }
    }

    fn is_about(&self, families: &str) -> bool {
        self.values.iter().any(|value| value.family.starts_with(families))
    }

    fn has(&self, name: &str) -> bool {
        self.values.iter().any(|value| format!("{} {}", value.family, value.name).starts_with(name))
    }

    /// The base with both values.
    fn table(&self) -> Table {
        let mut table: Table = BASE.parse().expect("the base is TOML");
        table.insert("engine".to_owned(), self.engine.name().into());
        // A workload has the machine to itself, unless the other value is about background traffic. Users have their own traffic.
        if self.is_about("users") || self.values.iter().any(|value| value.set.contains(&"-traffic")) && !self.is_about("traffic") {
            table.remove("traffic");
        }
        let assignments = || self.values.iter().flat_map(|value| value.set);
        assignments().filter_map(|assignment| assignment.strip_prefix('?')).for_each(|assignment| assign(&mut table, assignment));
        assignments().filter(|assignment| !assignment.starts_with('?')).for_each(|assignment| assign(&mut table, assignment));
        table
    }
}

/// Puts `key=value` into a table, or takes `-key` out. Where there are users, the traffic is the first one's and the workload the second one's.
fn assign(table: &mut Table, assignment: &str) {
    if assignment == "-traffic" {
        return;
    }
    if let Some((section, key)) = assignment.strip_prefix('-').and_then(|path| path.split_once('.')) {
        table.get_mut(section).and_then(Toml::as_table_mut).expect("a section").remove(key);
        return;
    }
    let (path, value) = assignment.split_once('=').expect("key=value");
    let value = format!("x = {value}").parse::<Table>().unwrap_or_else(|error| panic!("{assignment}: {error}"))["x"].clone();
    let mut place = &mut *table;
    if let Some(users) = place.get("user").and_then(Toml::as_array).map(Vec::len).filter(|_| !path.starts_with("user")) {
        let own = |number: usize| number.min(users - 1);
        let user = ["traffic", "workload"].iter().position(|section| path.split('.').next() == Some(section)).map(own);
        if let Some(user) = user {
            place = table["user"][user].as_table_mut().expect("a user is a table");
            if path == "workload" {
                place.remove("traffic");
            }
        }
    }
    let (sections, key) = path.rsplit_once('.').unwrap_or(("", path));
    for section in sections.split('.').filter(|section| !section.is_empty()) {
        let inner = place.entry(section).or_insert_with(|| Table::new().into());
        place = inner.as_table_mut().unwrap_or_else(|| panic!("{path}: {section} is no section"));
    }
    place.insert(key.to_owned(), value);
}

/// The files that the values name; all others are a permutation in which one terminal sends.
struct Named;

impl Files for Named {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        Ok(match path {
            "program.goal" => {
                b"num_ranks 3\nrank 0 {\nsend 40b to 1\n}\nrank 1 {\na: recv 40b from 0\nb: calc 9\nb requires a\n}\nrank 2 {\n}\n".to_vec()
            }
            "program.bin" => include_bytes!("../../../../tests/data/goal/dissemination_16.bin").to_vec(),
            "system.json" => SYSTEM.into(),
            // Ranks of one or two digits.
            _ if path.contains(".et") && path.bytes().filter(u8::is_ascii_digit).count() > 2 => return Err("no such file".to_owned()),
            _ if path.ends_with(".et") => chakra::file(&[(Does::Compute(0), vec![]), (Does::AllGather(99), vec![0])]),
            _ => b"0 5\n".to_vec(),
        })
    }
}

/// Refused keys, with messages.
fn refused(error: &RunError) -> Vec<(String, String)> {
    match error {
        RunError::Config(errors) => errors.iter().map(|error| (error.key.clone(), error.message.clone())).collect(),
        RunError::Deadlock { finding, .. } | RunError::Unroutable { finding, .. } => {
            vec![("routing.algorithm".to_owned(), finding.clone())]
        }
        other => vec![(String::new(), other.to_string())],
    }
}

/// True if a table of the engine lists the refused feature as missing.
fn is_in_table(features: &[Feature], key: &str, message: &str) -> bool {
    let lacks = |feature: &&Feature| feature.support.iter().any(|&(_, word)| word == "no");
    let is_named = |feature: &Feature| message.contains(feature.name.rsplit(": ").next().unwrap_or(&feature.name));
    features.iter().filter(lacks).any(|feature| is_named(feature) && (feature.key == key || key == "flit.layout"))
}

/// The findings of a case: the errors, and the lines of the lists of exceptions that it needed.
#[derive(Default)]
struct Shown {
    wrong: Vec<String>,
    excused: BTreeSet<usize>,
    faults: BTreeSet<usize>,
    ran: usize,
    lone: usize,
}

impl Shown {
    fn add(&mut self, mut other: Self) {
        self.wrong.append(&mut other.wrong);
        self.excused.append(&mut other.excused);
        self.faults.append(&mut other.faults);
        self.ran += other.ran;
        self.lone += other.lone;
    }
}

/// The study and the document of a case.
fn study(document: &Document) -> Option<Study> {
    let point = &document.points().ok()?[0];
    Preparation::new(document, &Named, *KNOWN).study(point).ok()
}

fn options() -> RunOptions {
    RunOptions { jobs: Some(1), paranoid: true, ..RunOptions::default() }
}

/// Checks a case and runs it.
fn tried(case: &Case) -> Shown {
    let mut shown = Shown::default();
    let text = case.table().to_string();
    let document = Document::parse_for(*KNOWN, "matrix.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    match Plan::prepare(&document, &Named) {
        Ok(plan) => {
            shown.ran = 1;
            shown.wrong.extend(run(case, &plan));
            shown.wrong.extend(cut(case, &document));
        }
        Err(error) => {
            let refused = refused(&error);
            shown.wrong.extend(refused_otherwise(case, &document, &refused));
            for (key, message) in refused {
                match undocumented(case, &key, &message) {
                    Ok(line) => shown.excused.extend(line),
                    Err(problem) => shown.wrong.push(problem),
                }
            }
        }
    }
    if shown.wrong.is_empty() && shown.ran == 1 {
        match lone(case) {
            Some(Ok(())) => shown.lone = 1,
            Some(Err(problem)) => shown.wrong.push(problem),
            None => {}
        }
    }
    shown
}

/// The error of a prepared run.
fn run(case: &Case, plan: &Plan<'_>) -> Option<String> {
    let summary = match plan.run(&options()) {
        Ok(summary) => summary,
        Err(error) => return Some(format!("prepared, but does not run: {error}")),
    };
    let row = summary.rows.first()?;
    let message = row.text("message");
    let is_known = || ONLY_RUN.iter().any(|(engine, part, _)| *engine == case.engine.name() && message.contains(part));
    (row.status() == "failed" && !is_known()).then(|| format!("prepared, but the run fails: {message}"))
}

/// The number of tiles of a network, and of threads that run them.
const TILES: i64 = 4;
const THREADS: usize = 2;

/// A run in tiles, on threads.
fn in_tiles(engine: &dyn Engine, scenario: &Scenario, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
    let mut prepared = engine.prepare(scenario)?;
    prepared.use_threads(Threads::new(THREADS))?;
    prepared.run(controller)
}

/// The error of a run of the flit engine with a network cut into tiles: it must equal the uncut run, bit for bit.
fn cut(case: &Case, document: &Document) -> Option<String> {
    let study = study(document).filter(|_| case.engine.name() == "flit")?;
    let mut scenario = study.scenario.clone();
    scenario.paranoid = true;
    let whole = case.engine.run(&scenario, &mut *controller(&study));
    scenario.engine_options.insert("tiles".to_owned(), TILES.into());
    match (whole, in_tiles(case.engine, &scenario, &mut *controller(&study))) {
        (Ok(whole), Ok(cut)) => (whole != cut).then(|| format!("{TILES} tiles on {THREADS} threads give another result than one")),
        (_, Err(error)) => Some(format!("in {TILES} tiles: {error}")),
        (Err(_), Ok(_)) => None,
    }
}

/// The difference between the refusals of an engine run without the check and those of the check.
fn refused_otherwise(case: &Case, document: &Document, refused: &[(String, String)]) -> Option<String> {
    let study = study(document)?;
    let by_engine = case.engine.prepare(&study.scenario).err()?;
    let run = case.engine.run(&study.scenario, &mut *controller(&study));
    let EngineError::Refused(by_run) = run.err()? else { return Some("the engine refuses when asked, and runs otherwise".to_owned()) };
    let is_told =
        |key: &str, message: &str| refused.iter().any(|(known, said)| known.starts_with(key) && (known != key || said == message));
    let told = by_engine.iter().all(|refusal| is_told(&refusal.key, &refusal.message()));
    (by_engine != by_run || !told).then(|| format!("refused {refused:?}, run says {by_run:?}"))
}

/// The excuses for refusals outside the engine's table.
fn excused() -> impl Iterator<Item = &'static Excuse> {
    MACHINE.iter().chain(MISSING)
}

/// The reason of a refusal: in the engine's table, or a line of the impossible machines.
fn undocumented(case: &Case, key: &str, message: &str) -> Result<Option<usize>, String> {
    if is_in_table(&case.engine.features(), key, message) {
        return Ok(None);
    }
    let key = key.trim_start_matches("user.0.").trim_start_matches("user.1.");
    let found = excused().position(|(keys, part, _)| keys.contains(&key) && message.contains(part));
    found.map(Some).ok_or_else(|| format!("refused for a reason in no table: {key}: {message}"))
}

/// Cycles between two packets of three flits: longer than any packet here and its credits are under way.
const PACKET_DISTANCE: u64 = 200;

/// Packets of one pair of terminals that never meet: their mean latency is that of the formula, to the cycle where nothing is left to
/// chance, else within five standard errors. `None` where the case is about more than routes, routers and channels, or has no exact formula.
fn lone(case: &Case) -> Option<Result<(), String>> {
    let about =
        ["users", "traffic: process", "traffic: classes", "traffic: pattern", "traffic: reply", "endpoint", "hosts", "workload", "measure"];
    if about.iter().any(|families| case.is_about(families)) || case.is_about("predictor") || case.engine.name() == "analysis" {
        return None;
    }
    let mut table = case.table();
    let traffic = table["traffic"].as_table_mut().expect("open traffic");
    for (key, value) in [("pattern", "permutation"), ("path", "pair"), ("process", "periodic")] {
        traffic.insert(key.to_owned(), value.into());
    }
    traffic.insert("load".to_owned(), (3.0 / PACKET_DISTANCE as f64).into());
    table.insert("measure".to_owned(), Table::new().into());
    let document = Document::parse_for(*KNOWN, "matrix.toml", &table.to_string()).expect("a document");
    let study = study(&document)?;
    let expected = zero_load(&study.scenario).ok().filter(|formula| formula.exact)?;
    // Of longer packets fewer are created; twenty of a terminal in any case.
    let flits = u64::from(study.scenario.classes.iter().map(|class| class.sizes.max()).max().unwrap_or(1));
    let mut controller = Fixed::new(Offer::of(&study.scenario), Some(0), 20 * PACKET_DISTANCE * flits.div_ceil(3), 1_000_000);
    let outcome = match case.engine.run(&study.scenario, &mut controller) {
        Ok(outcome) => outcome,
        Err(error) => return Some(Err(format!("lone packets: {error}"))),
    };
    let latency = &outcome.packet_latency;
    let (count, mean) = (latency.count as f64, latency.mean()?);
    let square: f64 = latency.buckets.iter().map(|&(value, count)| (value as f64 - mean).powi(2) * count as f64).sum();
    let error = (square / count / (count - 1.0)).sqrt();
    let off = (mean - expected.packet_latency).abs();
    let late = if case.engine.method() == Method::Rates { mean - expected.packet_latency } else { 0.0 };
    if off <= 1e-6 + 5.0 * error || (0.0..=rounding(&study.scenario)).contains(&late) {
        return Some(Ok(()));
    }
    // An engine may leave something out, and says so.
    let is_left_out = |key: &str| outcome.not_modelled.iter().any(|left_out| left_out == key);
    let keys = case.values.iter().flat_map(|value| value.set).filter_map(|assignment| assignment.split('=').next());
    let problem = || format!("lone packets take {mean} +- {error} cycles, not {}", expected.packet_latency);
    if keys.into_iter().any(is_left_out) { None } else { Some(Err(problem())) }
}

/// A rate lets all M flits of a packet pass in M periods of the slowest channel; flit by flit the last one only begins the last period, and
/// at best follows one cycle after the other: a rate may be late by this many cycles.
fn rounding(scenario: &Scenario) -> f64 {
    let flits = scenario.classes.iter().map(|class| class.sizes.max()).max().unwrap_or(0);
    let period = scenario.network.links().iter().map(|link| link.period).max().unwrap_or(1);
    f64::from(flits * (period - 1))
}

/// A case, with its findings or its panic.
fn watched(case: &Case) -> Shown {
    let mut shown = catch_unwind(AssertUnwindSafe(|| tried(case))).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied());
        Shown { wrong: vec![format!("panics: {}", text.unwrap_or("without a word"))], ..Shown::default() }
    });
    shown.wrong.iter_mut().for_each(|problem| *problem = format!("{}: {problem}", case.name()));
    let is_known = |(engine, one, other, _): &(&str, &str, &str, &str)| *engine == case.engine.name() && case.has(one) && case.has(other);
    if let Some(fault) = FAULTS.iter().position(is_known)
        && !shown.wrong.is_empty()
    {
        shown.wrong.clear();
        shown.faults.insert(fault);
    }
    shown
}

/// True if this processor supports a value. Only one value needs special instructions.
fn is_here(value: &Value) -> bool {
    #[cfg(target_arch = "x86_64")]
    let has_vectors = std::is_x86_feature_detected!("avx512vbmi2") && std::is_x86_feature_detected!("avx512bitalg");
    #[cfg(not(target_arch = "x86_64"))]
    let has_vectors = false;
    value.name != "avx512" || has_vectors
}

/// The stride through all cases.
fn stride() -> usize {
    match std::env::var("KASURI_MATRIX").as_deref() {
        Ok("all") => 1,
        Ok(number) => number.parse().expect("KASURI_MATRIX is `all` or a number"),
        Err(_) => 23,
    }
}

#[test]
fn every_two_values_run_together_or_are_refused_for_a_reason_in_a_table() {
    let stride = stride();
    let cases: Vec<Case> = Case::all().into_iter().step_by(stride).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut shown = Shown::default();
    std::thread::scope(|scope| {
        let of_thread = |first: usize| {
            let cases = &cases;
            scope.spawn(move || {
                let mut shown = Shown::default();
                cases.iter().skip(first).step_by(threads).for_each(|case| shown.add(watched(case)));
                shown
            })
        };
        let threads: Vec<_> = (0..threads).map(of_thread).collect();
        threads.into_iter().for_each(|thread| shown.add(thread.join().expect("panics are caught")));
    });
    println!("{} cases, {} run, {} with lone packets", cases.len(), shown.ran, shown.lone);
    shown.wrong.sort();
    assert!(shown.wrong.is_empty(), "{} of {} cases are wrong:\n{}", shown.wrong.len(), cases.len(), shown.wrong.join("\n"));
    assert!(shown.ran * 2 > cases.len() && shown.lone * 10 > cases.len(), "{} cases run, {} with lone packets", shown.ran, shown.lone);
    if stride == 1 {
        let excused: Vec<_> = excused().enumerate().filter(|(line, _)| !shown.excused.contains(line)).map(|(_, entry)| entry).collect();
        assert!(excused.is_empty(), "nothing is refused for these any more: {excused:#?}");
        let mended: Vec<_> = FAULTS.iter().enumerate().filter(|(line, _)| !shown.faults.contains(line)).map(|(_, entry)| entry).collect();
        assert!(mended.is_empty(), "these are mended: {mended:#?}");
    }
}

/// A value that no engine has would make all its pairs agree.
#[test]
fn every_value_alone_runs_on_some_engine() {
    let cases = Case::all();
    for value in VALUES {
        let alone = |case: &&Case| std::ptr::eq(case.values[0], case.values[1]) && std::ptr::eq(case.values[0], value);
        let shown: Vec<Shown> = cases.iter().filter(alone).map(watched).collect();
        let wrong: Vec<&String> = shown.iter().flat_map(|shown| &shown.wrong).collect();
        let is_elsewhere = UNTESTED_LAYOUTS.contains(&value.name);
        assert!(is_elsewhere || shown.iter().any(|shown| shown.ran == 1), "{} {}: {wrong:?}", value.family, value.name);
    }
}

/// Values that need another processor: one with vector instructions.
const UNTESTED_LAYOUTS: [&str; 1] = ["avx512"];
