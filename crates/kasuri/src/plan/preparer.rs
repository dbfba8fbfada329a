//! The gate before all runs: checks a point and computes its key.

use super::planned::Key;
use super::wait_graph::WaitGraph;
use super::{RESULTS_VERSION, RunError, shown};
use crate::engines;
use crate::measure::saturation;
use kasuri_config::{Built, ConfigError, ConfigErrors, Document, Known, Point, Preparation, Study};
use kasuri_model::engine::{Engine, Method};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::{Epoch, Scenario};
use kasuri_network::deadlock::{self, Verdict};
use kasuri_network::topology::Files;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Checks points; common parts are built and checked once.
pub(crate) struct Preparer<'a> {
    known: Known<'a>,
    document: &'a Document,
    files: &'a (dyn Files + Sync),
    preparation: Preparation<'a>,
    /// Hashes of the files that points name.
    hashes: BTreeMap<String, String>,
    checked: Vec<DeadlockFree>,
}

impl<'a> Preparer<'a> {
    /// Begins with nothing checked.
    pub(crate) fn new(known: Known<'a>, document: &'a Document, files: &'a (dyn Files + Sync)) -> Self {
        Self::sharing(known, &Built::default(), document, files)
    }

    /// As [`Preparer::new`], with the networks and routings of others.
    pub(crate) fn sharing(known: Known<'a>, built: &Built, document: &'a Document, files: &'a (dyn Files + Sync)) -> Self {
        let preparation = Preparation::sharing(built, document, files, known);
        Self { known, document, files, preparation, hashes: BTreeMap::new(), checked: Vec::new() }
    }

    /// The existing files that the checked points name, with the hashes of their contents.
    pub(crate) fn named_files(&self) -> BTreeMap<String, String> {
        self.hashes.iter().filter(|(_, hash)| !hash.is_empty()).map(|(name, hash)| (name.clone(), hash.clone())).collect()
    }

    /// Checks whether a point can be run, apart from its routes: `kasuri check` and all ways of running use it.
    ///
    /// # Errors
    /// All errors of the point, and all refusals of its engine.
    pub(crate) fn study(&mut self, point: &Point) -> Result<Study, RunError> {
        let document = || self.document.name().to_owned();
        shown::check_point(point).map_err(|problem| RunError::Defect { document: document(), problem })?;
        let (study, mut errors) = self.preparation.examine(point);
        if let Some(study) = &study {
            let is_right = errors.is_empty();
            errors.extend(self.measuring_errors(point, study, is_right));
            let refusals = self.engine(study).prepare(&study.scenario).err().unwrap_or_default();
            let mut refused = located(self.document, point, &refusals);
            // An error of the key itself, or of one of its section, says more.
            let is_known = |key: &str| {
                errors.iter().any(|known| known.key.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
            };
            refused.retain(|refusal| !is_known(&refusal.key));
            errors.extend(refused);
        }
        ConfigErrors::check(errors)?;
        Ok(study.expect("a study of which nothing is wrong"))
    }

    /// Errors in the measurement of a point, which has no other errors if `is_right`.
    fn measuring_errors(&mut self, point: &Point, study: &Study, is_right: bool) -> Vec<ConfigError> {
        let method = self.engine(study).method();
        let mut errors = Vec::new();
        if study.measure.search.is_some() {
            errors.extend(check_search(self.document, point, study, method).err());
        }
        if is_right && errors.is_empty() && shown::searches(study, method) {
            let loads = [saturation::ZERO_LOAD, greatest_load(study)];
            let wrong = loads.into_iter().map(|load| self.preparation.examine(&at_load(point, load)).1).find(|wrong| !wrong.is_empty());
            errors.extend(wrong.unwrap_or_default());
        }
        let threads = format!("{}.{THREADS}", study.engine);
        if point.assignments.iter().any(|(key, _)| *key == threads) {
            let message = "is swept, but changes no result: its runs would be one and the same; give it once, or --threads";
            errors.push(self.document.refusal(point, &threads, message));
        }
        if let Some((key, _)) = point.assignments.iter().find(|(key, _)| shown::is_overridden_by_all_classes(key, point)) {
            let message = "is swept, but every [[traffic.class]] has a value of its own, so that it changes nothing; sweep those";
            errors.push(self.document.refusal(point, key, message));
        }
        errors
    }

    /// The engine of a study.
    pub(crate) fn engine(&self, study: &Study) -> &'a dyn Engine {
        engines::of_study(self.known, study).1
    }

    /// Checks a point, its routes too.
    pub(crate) fn prepare(&mut self, point: &Point) -> Result<Study, RunError> {
        let study = self.study(point)?;
        check_deadlock(self.document, &study, self.engine(&study).method(), &mut self.checked)?;
        Ok(study)
    }

    /// The key of a point's run. Each file that points name is read for it once.
    pub(crate) fn key(&mut self, point: &Point, study: &Study) -> Key {
        key(point, study, self.files, &mut self.hashes)
    }

    /// The next key is computed from the files' content at that time.
    pub(crate) fn forget_files(&mut self) {
        self.hashes.clear();
    }

    /// Makes studies of points, without checking whether they can be run.
    pub(crate) fn preparation(&mut self) -> &mut Preparation<'a> {
        &mut self.preparation
    }
}

/// The errors of an experiment's points, each one once.
#[derive(Debug, Default)]
pub(crate) struct ErrorList(Vec<ConfigError>);

impl ErrorList {
    /// The largest number of errors to report.
    const MAX_ERRORS: usize = 20;

    /// Adds an error of one more point.
    ///
    /// # Errors
    /// All errors so far, if there are enough or if no file is at fault; the present one, if it is the first.
    pub(crate) fn note(&mut self, error: RunError) -> Result<(), RunError> {
        let errors = match error {
            RunError::Config(errors) => errors,
            other => return Err(std::mem::take(self).end().err().unwrap_or(other)),
        };
        for error in errors {
            if !self.0.contains(&error) {
                self.0.push(error);
            }
        }
        if self.0.len() < Self::MAX_ERRORS { Ok(()) } else { std::mem::take(self).end() }
    }

    /// # Errors
    /// All errors so far.
    pub(crate) fn end(mut self) -> Result<(), RunError> {
        self.0.truncate(Self::MAX_ERRORS);
        ConfigErrors::check(self.0)?;
        Ok(())
    }
}

/// An engine's refusals of a point, each with its place in the file.
pub(crate) fn located(document: &Document, point: &Point, refusals: &[Refusal]) -> Vec<ConfigError> {
    refusals.iter().map(|refusal| document.refusal(point, &refusal.key, refusal.message())).collect()
}

/// Graphs found free of deadlocks, or allowed to have them.
struct DeadlockFree {
    graph: WaitGraph,
    allowed: bool,
}

/// The reason why an escape path does not count, and the remedy.
pub(crate) const CLOSED_ESCAPE_PATH_HINT: &str = "\nthe escape path does not count: a packet that gets an adaptive virtual channel whose buffer is full waits for \
     that one alone; router.vc_release = \"tail-credit\" or router.vc_busy_when_full = true keeps the escape path open";

/// Places and steps of routes checked before a run that may deadlock by request: some milliseconds.
const SAMPLE_BUDGET: u64 = 20_000;

/// The same where the routing promises to be free of deadlocks: less than the start of a program takes.
const PROMISED_BUDGET: u64 = 4_000;

/// True if messages hold buffers of the network while they wait. Rates hold none; parcels of the arbitrated sharing do.
pub(crate) fn holds_buffers(study: &Study, method: Method) -> bool {
    let sharing = study.scenario.engine_options.get("sharing").and_then(toml::Value::as_str);
    method != Method::Rates || sharing == Some("arbitrated")
}

/// True if the possibility of a deadlock is known without all routes.
fn is_trusted(study: &Study, method: Method) -> bool {
    study.allow_deadlock || study.promises_no_deadlock() || !holds_buffers(study, method)
}

/// Places and steps of routes to check before a run; `None` for no check.
pub(crate) fn deadlock_budget(study: &Study, method: Method) -> Option<u64> {
    match is_trusted(study, method) {
        // The engine itself reports an undeliverable message.
        true if method == Method::Rates => None,
        true if study.promises_no_deadlock() => Some(PROMISED_BUDGET),
        true => Some(SAMPLE_BUDGET),
        false => Some(deadlock::STEP_BUDGET),
    }
}

/// Refuses a routing that can deadlock, unless the experiment allows it, and one that cannot deliver, before and after a failure during the
/// run. Equal graphs are checked once.
fn check_deadlock(document: &Document, study: &Study, method: Method, checked: &mut Vec<DeadlockFree>) -> Result<(), RunError> {
    let graph = WaitGraph::of(&study.scenario);
    if graph.is_empty() {
        return Ok(());
    }
    // The networks that are gone cannot occur again.
    checked.retain(|known| known.graph.is_alive());
    let allowed = study.allow_deadlock;
    if checked.iter().any(|known| known.allowed == allowed && known.graph.is_same(&graph)) {
        return Ok(());
    }
    // The whole graph of a large network takes longer than many a run. Where its verdict decides nothing, only a sample of the destinations
    // is checked; `kasuri check` always builds it.
    let Some(budget) = deadlock_budget(study, method) else { return Ok(()) };
    judge_graph(document, &study.scenario, budget, is_trusted(study, method), "")?;
    for epoch in study.scenario.changed_epochs() {
        // A promise is about whole networks.
        let budget = if allowed { budget } else { deadlock::STEP_BUDGET };
        judge_graph(document, &study.scenario.in_epoch(epoch), budget, allowed, &since(epoch))?;
    }
    checked.push(DeadlockFree { graph, allowed });
    Ok(())
}

/// Refuses packets that may deadlock, unless the scenario is trusted, and packets that cannot arrive.
fn judge_graph(document: &Document, scenario: &Scenario, budget: u64, trusted: bool, prefix: &str) -> Result<(), RunError> {
    let report = scenario.check_deadlock(budget);
    let mut finding = format!("{prefix}{}", report.describe(&scenario.network));
    if scenario.takes_accepted_ports() {
        finding += "\nthe paths that predictions may take are included; router.predictor_match = \"exact\" leaves them out";
    }
    let is_acyclic = report.verdict == Verdict::Acyclic;
    if scenario.closes_escape_path() && !is_acyclic {
        finding += CLOSED_ESCAPE_PATH_HINT;
    }
    let document = document.name().to_owned();
    if !is_acyclic && !trusted {
        return Err(RunError::Deadlock { document, finding });
    }
    if report.unroutable.is_some() {
        return Err(RunError::Unroutable { document, finding });
    }
    Ok(())
}

/// The prefix of a finding on an epoch of the run.
pub(crate) fn since(epoch: &Epoch) -> String {
    format!("from cycle {} on: ", epoch.cycle)
}

/// A search sets `traffic.load`, so no class may have a load of its own, and nothing else may set it.
fn check_search(document: &Document, point: &Point, study: &Study, method: Method) -> Result<(), ConfigError> {
    let problem = |problem: &str| Err(document.refusal(point, "measure.search", problem));
    let classes = shown::at(&point.table, "traffic.class").and_then(toml::Value::as_array);
    if classes.into_iter().flatten().any(|class| class.get("load").is_some()) {
        return problem("it varies traffic.load, but a [[traffic.class]] has a load of its own; take that out");
    }
    let of_users = traffic_of_users(&point.table).filter_map(|traffic| traffic.get("class")).filter_map(toml::Value::as_array);
    if of_users.flatten().any(|class| class.get("load").is_some()) {
        return problem("it varies the load of all users, but a [[user.traffic.class]] has a load of its own; take that out");
    }
    if study.scenario.users.as_ref().is_some_and(|users| !users.reach_all()) {
        return problem(
            "it asks what the network sustains, but accesses to nodes that are not in the users' tables fail; give each node a terminal, and leave out change_every",
        );
    }
    if point.table.contains_key("workload") {
        return problem("a closed workload has no load to search; take the search out, or describe open traffic in [traffic]");
    }
    if study.scenario.classes.iter().any(|class| class.packets_per_terminal.is_some()) {
        return problem("a batch has no load to search; take the search out, or use another traffic.process");
    }
    let is_load = |key: &str| key == "traffic.load" || key.starts_with("user.") && key.ends_with(".traffic.load");
    if let Some((key, _)) = point.assignments.iter().find(|(key, _)| shown::searches(study, method) && is_load(key)) {
        let message = "is swept, but measure.search = \"saturation\" varies it; take it out of [sweep], or take the search out";
        return Err(document.refusal(point, key, message));
    }
    Ok(())
}

/// The tables `[user.traffic]` of all users with one.
fn traffic_of_users(table: &toml::Table) -> impl Iterator<Item = &toml::Table> {
    let users = table.get("user").and_then(toml::Value::as_array);
    users.into_iter().flatten().filter_map(|user| user.get("traffic")?.as_table())
}

/// A point of a search at one of its loads: that of all classes, and of all users.
pub(super) fn at_load(point: &Point, load: f64) -> Point {
    let mut point = point.clone();
    let set = |traffic: &mut toml::Value| {
        if let toml::Value::Table(traffic) = traffic {
            traffic.insert("load".to_owned(), toml::Value::Float(load));
        }
    };
    point.table.get_mut("traffic").into_iter().for_each(set);
    let users = point.table.get_mut("user").and_then(toml::Value::as_array_mut);
    users.into_iter().flatten().filter_map(|user| user.get_mut("traffic")).for_each(set);
    point
}

/// The most classes that share a terminal's channel.
pub(super) fn classes_of_terminal(scenario: &Scenario) -> usize {
    let classes = scenario.users.as_ref().map(|users| users.most_classes_of_terminal(&scenario.network));
    classes.unwrap_or(scenario.classes.len()).max(1)
}

/// The greatest load of a search: all classes of a terminal share its channel.
pub(super) fn greatest_load(study: &Study) -> f64 {
    1.0 / classes_of_terminal(&study.scenario) as f64
}

/// A section as JSON, without the threads of the study's engine, which change no result. `None` if nothing else is in it.
fn on_any_threads(section: &str, value: &toml::Value, study: &Study) -> Option<Value> {
    let mut json = shown::to_json(value);
    if section == study.engine
        && let Some(keys) = json.as_object_mut()
        && keys.remove(THREADS).is_some()
        && keys.is_empty()
    {
        return None;
    }
    Some(json)
}

/// The key of an engine's section with its number of threads.
const THREADS: &str = "threads";

/// The key of a run: the first 16 bytes of the BLAKE3 hash over everything that its result depends on, as JSON with sorted
/// keys: the engine, the point's values without the title, the contents of the files that it names or that those name, and [`RESULTS_VERSION`].
pub(super) fn key(point: &Point, study: &Study, files: &dyn Files, hashes: &mut BTreeMap<String, String>) -> Key {
    let table = || point.table.iter().filter(|(key, _)| !matches!(key.as_str(), "title" | "engine"));
    let mut names = study.files.clone();
    table().for_each(|(_, value)| collect_paths(value, &mut names));
    let contents: serde_json::Map<String, Value> = names
        .into_iter()
        .map(|name| {
            // An unreadable file was not used by the study, so that nothing depends on its contents.
            let hash = hashes.entry(name.clone()).or_insert_with(|| hash_of(files, &name).unwrap_or_default());
            (name, json!(hash))
        })
        .collect();
    let mut whole = json!({
        "engine": study.engine,
        "files": contents,
        "input": table().filter_map(|(key, value)| Some((key.clone(), on_any_threads(key, value, study)?))).collect::<serde_json::Map<_, _>>(),
        "results": RESULTS_VERSION,
    });
    whole.sort_all_objects();
    let hash = blake3::hash(whole.to_string().as_bytes());
    Key(std::array::from_fn(|byte| hash.as_bytes()[byte]))
}

/// The BLAKE3 hash of a file, which may be larger than memory.
fn hash_of(files: &dyn Files, name: &str) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let mut add = |piece: &[u8]| {
        hasher.update(piece);
        true
    };
    files.read_pieces(name, &mut add).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

/// Keys with names of files as values, by convention.
const FILE_KEYS: [&str; 3] = ["path", "trace", "predictor_table"];

/// The files that a table names: the strings under [`FILE_KEYS`].
fn collect_paths(value: &toml::Value, paths: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                match value {
                    toml::Value::String(path) if FILE_KEYS.contains(&key.as_str()) => paths.push(path.clone()),
                    other => collect_paths(other, paths),
                }
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|value| collect_paths(value, paths)),
        _ => {}
    }
}
