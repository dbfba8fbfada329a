//! The input columns of a row, and the check that the run used these values.

use super::PreparedPoint;
use crate::engines;
use crate::results::RunRow;
use kasuri_config::{CASE, Known, Point, Search, Study};
use kasuri_model::engine::Method;
use kasuri_workload::collective;
use serde_json::{Value, json};

/// Keys that every row of open traffic shows, swept or not.
const OPEN_COLUMNS: [&str; 5] = ["network.topology", "routing.algorithm", "traffic.pattern", "traffic.load", "measure.seed"];

/// Keys that every row of a closed workload shows, swept or not.
const CLOSED_COLUMNS: [&str; 8] = [
    "network.topology",
    "routing.algorithm",
    "workload.collective",
    "workload.schedule",
    "workload.message_flits",
    "workload.message_bytes",
    "workload.trace",
    "measure.seed",
];

/// Further keys in every row of a closed workload with open traffic in the background.
const BACKGROUND_COLUMNS: [&str; 2] = ["traffic.pattern", "traffic.load"];

/// Keys that every row of a trace of open traffic shows, swept or not.
const TRACE_COLUMNS: [&str; 4] = ["network.topology", "routing.algorithm", "traffic.trace", "measure.seed"];

/// The input of a run that is not among the displayed values of its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// The index of the engine among the known ones.
    pub(super) engine: u8,
    pub(super) method: Method,
    pub(super) seed: u64,
    /// True if the run chooses its loads.
    searches: bool,
    /// True if it has a workload or a machine of interfaces in place of open traffic.
    is_closed: bool,
}

impl Facts {
    /// Those of a study.
    pub(super) fn of(known: Known<'_>, study: &Study) -> Self {
        let (place, engine) = engines::of_study(known, study);
        let method = engine.method();
        let is_closed = study.scenario.workload.is_some() || study.scenario.endpoint.is_some();
        Self { engine: place as u8, method, seed: study.measure.seed, searches: searches(study, method), is_closed }
    }
}

/// The columns of a run's input with their values: the keys of every row, all keys that the sweep sets for some point, and `further` ones.
pub(super) fn inputs(point: &Point, facts: &Facts, further: &[String]) -> Vec<(String, Value)> {
    let always: &[&str] = if at(&point.table, "traffic.trace").is_some() {
        &TRACE_COLUMNS
    } else if facts.is_closed {
        &CLOSED_COLUMNS
    } else {
        &OPEN_COLUMNS
    };
    let of_background: &[&str] = if facts.is_closed && point.table.contains_key("traffic") { &BACKGROUND_COLUMNS } else { &[] };
    let always = || always.iter().chain(of_background.iter().filter(|key| !always.contains(key))).copied();
    // `engine` and `title` have their own columns.
    let swept = point.columns.iter().map(String::as_str).filter(|key| key.contains('.') || *key == CASE);
    let swept = swept.filter(|key| always().all(|shown| shown != *key));
    let is_new = |key: &&str| key.contains('.') && always().all(|shown| shown != *key) && point.columns.iter().all(|swept| swept != *key);
    let further = further.iter().map(String::as_str).filter(is_new);
    always().chain(swept).chain(further).map(|key| (key.to_owned(), shown(key, point, facts))).collect()
}

/// The value of a key in a row: the default where the file omits it, nothing where the run has no such value.
fn shown(key: &str, point: &Point, facts: &Facts) -> Value {
    let given = at(&point.table, key).map(to_json);
    match key {
        CASE => point.assignments.iter().find(|(key, _)| key == CASE).map_or(Value::Null, |(_, label)| to_json(label)),
        "measure.seed" => json!(facts.seed),
        "workload.schedule" => given.unwrap_or_else(|| {
            let collective = at(&point.table, "workload.collective").and_then(toml::Value::as_str).unwrap_or_default();
            collective::schedules(collective).next().map_or(Value::Null, |entry| json!(entry.schedule))
        }),
        "traffic.load" if facts.searches => Value::Null,
        _ if is_overridden_by_all_classes(key, point) => Value::Null,
        _ => given.unwrap_or(Value::Null),
    }
}

/// True if the run chooses its loads. Formulas know the saturation load without a search.
pub(super) fn searches(study: &Study, method: Method) -> bool {
    study.measure.search == Some(Search::Saturation) && method != Method::Formulas
}

/// True for a key of `[traffic]` that every class overrides.
pub(super) fn is_overridden_by_all_classes(key: &str, point: &Point) -> bool {
    let Some(name) = key.strip_prefix("traffic.").filter(|name| !name.contains('.')) else { return false };
    let classes = at(&point.table, "traffic.class").and_then(toml::Value::as_array);
    classes.is_some_and(|classes| !classes.is_empty() && classes.iter().all(|class| class.get(name).is_some()))
}

/// The value of a dotted key; numbers are positions in lists.
pub(super) fn at<'t>(table: &'t toml::Table, key: &str) -> Option<&'t toml::Value> {
    let mut parts = key.split('.');
    let first = table.get(parts.next()?)?;
    parts.try_fold(first, |value, part| match value {
        toml::Value::Array(elements) => elements.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

pub(super) fn to_json(value: &toml::Value) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// Checks that the table of a point has the values of its sweep, whatever else was set after it.
///
/// # Errors
/// An internal error: the key, and both values.
pub(super) fn check_point(point: &Point) -> Result<(), String> {
    for (key, value) in point.assignments.iter().filter(|(key, _)| key != CASE) {
        let found = at(&point.table, key);
        // As text, too: `nan` equals nothing.
        if !found.is_some_and(|found| found == value || found.to_string() == value.to_string()) {
            let found = found.map_or_else(|| "nothing".to_owned(), toml::Value::to_string);
            return Err(format!("[sweep] sets {key} to {value}, but the run would have {found}"));
        }
    }
    Ok(())
}

/// Checks that a row shows its point's input, and that the study used the same values as far as it reports them.
///
/// # Errors
/// An internal error: the column, and both values.
pub(super) fn check_row(row: &RunRow, prepared: &PreparedPoint) -> Result<(), String> {
    let PreparedPoint { head, point, study, facts } = prepared;
    for (key, value) in &head.inputs {
        let of_point = shown(key, point, facts);
        if row.get(key) != value || *value != of_point {
            return Err(format!("the row shows {key} = {}, but its point has {of_point}", row.get(key)));
        }
        if let Some(used) = used(key, study)
            && !value.is_null()
            && value.as_f64() != Some(used)
        {
            return Err(format!("the row shows {key} = {value}, but the run had {used}"));
        }
    }
    let (engine, seed) = (row.text("engine"), row.get("seed").as_u64());
    if engine != study.engine || seed != Some(study.measure.seed) || row.key() != head.key {
        return Err(format!("the row is that of the engine {engine} with seed {seed:?} under {}", row.key()));
    }
    Ok(())
}

/// The value of a key in the study, if it has it in the same form.
fn used(key: &str, study: &Study) -> Option<f64> {
    let (scenario, router) = (&study.scenario, &study.scenario.router);
    match key {
        "measure.seed" => Some(study.measure.seed as f64),
        "router.virtual_channels" => Some(f64::from(router.virtual_channels)),
        "router.buffer_flits" => Some(f64::from(router.buffer_flits)),
        "router.credit_delay" => Some(f64::from(router.credit_delay)),
        "traffic.load" if scenario.users.is_none() => match &scenario.classes[..] {
            [class] if class.packets_per_terminal.is_none() => Some(class.load),
            _ => None,
        },
        _ => None,
    }
}
