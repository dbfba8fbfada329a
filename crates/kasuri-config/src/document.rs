//! The text of an experiment file as values, each with its place.

use super::error::{ConfigError, Location};
use super::flatten::{flatten, flatten_cases};
use super::known::Known;
use super::path::{MAX_DEPTH, assign, deep_key, is_within};
use super::point::CASE;
use super::shown::shown;
use kasuri_formats::names::unknown;
use kasuri_formats::recognise::{self, Form};
use serde::Deserialize;
use std::cell::Cell;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue, Deserializer};
use toml::{Spanned, Table, Value};

/// The sections and keys at the top of the file, the engines' own sections apart.
const ROOT_KEYS: [&str; 17] = [
    "title",
    "engine",
    "network",
    "faults",
    "routing",
    "router",
    "traffic",
    "workload",
    "endpoint",
    "hosts",
    "user",
    "users",
    "translation",
    "measure",
    "sweep",
    "plot",
    "record",
];

/// An experiment: the values of the file with their places, changed by [`Document::set`], not yet checked against the models.
///
/// # Examples
/// ```
/// use kasuri_config::Document;
/// use kasuri_network::topology::NoFiles;
///
/// let text = r#"
///     [network]
///     topology = "mesh"
///     dimensions = [4, 4]
///     [routing]
///     algorithm = "dimension-order"
///     [traffic]
///     pattern = "uniform"
///     load = 0.1
/// "#;
/// let mut document = Document::parse("mesh.toml", text).unwrap();
/// document.set_text("traffic.load=0.2").unwrap();
/// let points = document.points().unwrap();
/// let study = document.study(&points[0], &NoFiles).unwrap();
/// assert_eq!(study.scenario.network.terminal_count(), 16);
/// assert_eq!(study.scenario.classes[0].load, 0.2);
/// ```
#[derive(Clone, Debug)]
pub struct Document {
    name: String,
    table: Table,
    /// The sections of the program's engines.
    engine_sections: Vec<&'static str>,
    /// By dotted path, list positions as numbers: `traffic.class.0.load`.
    places: BTreeMap<String, Place>,
    /// Keys of `[sweep]` that the text gives twice, as `"traffic.load"` and under `[sweep.traffic]`: the first of them, and the second place.
    twice: Option<(String, Location)>,
    /// The keys that were set, in their order.
    set: Vec<String>,
    /// The place of values without a place of their own.
    default: Location,
}

#[derive(Clone, Debug)]
struct Place {
    key: Location,
    value: Location,
}

/// Which part of `key = value` a message points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Key,
    Value,
}

impl Document {
    /// Reads TOML text. `name` is the file's name in messages.
    ///
    /// # Errors
    /// The text is no TOML, or has a section or key at its top that does not exist.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        Self::parse_for(Known::default(), name, text)
    }

    /// As [`Document::parse`], of a program that knows these engines.
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub fn parse_for(known: Known<'_>, name: &str, text: &str) -> Result<Self, ConfigError> {
        let syntax = |error: toml::de::Error| ConfigError {
            document: name.to_owned(),
            location: error.span().map_or(Location::Text { line: 1, column: 1 }, |span| Lines::new(text).at(span.start)),
            key: String::new(),
            message: match error.span().and_then(|span| text.get(span)).filter(|_| error.message() == "duplicate key") {
                Some(key) => format!("duplicate key `{key}`; each key of a table has one value"),
                None => match recognise::recognise(text.as_bytes()) {
                    Some(form) if form != Form::Experiment => form.describe(name),
                    _ => format!("this is not TOML: {}", error.message()),
                },
            },
        };
        if let Some(offset) = deep_key(text) {
            let location = Lines::new(text).at(offset);
            let message = format!(
                "is a key of more than {MAX_DEPTH} parts; those of an experiment have at most six, such as traffic.class.0.reply.delay"
            );
            return Err(ConfigError { document: name.to_owned(), location, key: String::new(), message });
        }
        let spanned = DeTable::parse(text).map_err(syntax)?;
        let lines = Lines::new(text);
        let mut recorded = Recorded { lines: &lines, places: BTreeMap::new(), twice: None };
        for (key, value) in spanned.get_ref() {
            recorded.record(key.get_ref(), key.span().start, value);
        }
        let Recorded { places, twice, .. } = recorded;
        let table = Table::deserialize(Deserializer::from(spanned)).map_err(syntax)?;
        let (name, engine_sections) = (name.to_owned(), known.engine_names().collect());
        Self { name, table, engine_sections, places, twice, set: Vec::new(), default: Location::Text { line: 1, column: 1 } }.normalised()
    }

    /// Takes a table that has no text (a Python dictionary, a translated file). `name` stands in messages: `dict`.
    ///
    /// # Errors
    /// A section or key at its top that does not exist.
    pub fn from_table(name: &str, table: Table) -> Result<Self, ConfigError> {
        Self::from_table_for(Known::default(), name, table)
    }

    /// As [`Document::from_table`], of a program that knows these engines.
    ///
    /// # Errors
    /// As [`Document::from_table`].
    pub fn from_table_for(known: Known<'_>, name: &str, table: Table) -> Result<Self, ConfigError> {
        let (name, engine_sections) = (name.to_owned(), known.engine_names().collect());
        Self { name, table, engine_sections, places: BTreeMap::new(), twice: None, set: Vec::new(), default: Location::Table }.normalised()
    }

    /// The file's name as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All values, `[sweep]` with one dotted key per line.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Sets a dotted key, and takes it out of `[sweep]`: `traffic.load`, `sweep.traffic.load`, `traffic.class.0.load`.
    ///
    /// # Errors
    /// The key does not begin with a section of the file, or goes on below a value that is no table.
    pub fn set(&mut self, key: &str, value: Value) -> Result<(), ConfigError> {
        let location = match self.default {
            Location::Table => Location::Table,
            _ => Location::Argument(format!("--set {key}={}", super::shown::compact(&value))),
        };
        self.set_at(key, value, location)
    }

    /// The keys that were set, in their order.
    pub(super) fn set_keys(&self) -> &[String] {
        &self.set
    }

    /// Records a key as set without setting it: a translator has already put the value of a foreign setting into the table.
    pub fn note_set(&mut self, key: &str) {
        if !self.set.iter().any(|known| known == key) {
            self.set.push(key.to_owned());
        }
    }

    /// Sets a key from the text `key=value` of the option `--set`. The value is TOML; what is no TOML is taken as a string.
    ///
    /// # Errors
    /// As [`Document::set`], and text without `=`.
    pub fn set_text(&mut self, assignment: &str) -> Result<(), ConfigError> {
        self.set_argument("", assignment, &format!("--set {assignment}"))
    }

    /// Sets a key of a section from the text `key=value`; `origin` is what messages show as the place.
    ///
    /// # Errors
    /// As [`Document::set_text`].
    pub fn set_argument(&mut self, section: &str, assignment: &str, origin: &str) -> Result<(), ConfigError> {
        let location = Location::Argument(origin.to_owned());
        let (key, value) = parse_assignment(assignment).map_err(|message| self.error_at(location.clone(), "", message))?;
        let key = if section.is_empty() { key } else { format!("{section}.{key}") };
        self.set_at(&key, value, location)
    }

    fn set_at(&mut self, key: &str, value: Value, location: Location) -> Result<(), ConfigError> {
        let section = key.split('.').next().unwrap_or_default();
        if let Some(problem) = self.section_problem(section) {
            return Err(self.error_at(location, section, problem));
        }
        if let Some(swept) = key.strip_prefix("sweep.") {
            self.set_swept(swept, value).map_err(|message| self.error_at(location.clone(), key, message))?;
        } else {
            assign(&mut self.table, key, value).map_err(|message| self.error_at(location.clone(), key, message))?;
            self.take_out_of_sweep(key).map_err(|message| self.error_at(location.clone(), key, message))?;
        }
        self.places.retain(|path, _| !is_within(path, key));
        self.places.insert(key.to_owned(), Place { key: location.clone(), value: location });
        self.note_set(key);
        self.normalise()
    }

    /// Sets a key of `[sweep]`, or with `case.N.KEY` a key of one of its cases.
    fn set_swept(&mut self, key: &str, value: Value) -> Result<(), String> {
        let Value::Table(sweep) = self.table.entry("sweep").or_insert_with(|| Value::Table(Table::new())) else { return Ok(()) };
        let Some((number, inner)) = key.strip_prefix("case.").and_then(|rest| rest.split_once('.')) else {
            sweep.insert(key.to_owned(), value);
            return Ok(());
        };
        let cases = sweep.get_mut(CASE).and_then(Value::as_array_mut);
        let count = cases.as_ref().map_or(0, |cases| cases.len());
        let case = cases.zip(number.parse::<usize>().ok()).and_then(|(cases, number)| cases.get_mut(number)).and_then(Value::as_table_mut);
        let case = case.ok_or_else(|| format!("there is no case {number}; there are {count}, the first is 0"))?;
        case.retain(|known, _| !is_within(known, inner));
        case.insert(inner.to_owned(), value);
        Ok(())
    }

    /// Takes a key that has got one value out of all that `[sweep]` sets.
    fn take_out_of_sweep(&mut self, key: &str) -> Result<(), String> {
        let Some(Value::Table(sweep)) = self.table.get_mut("sweep") else { return Ok(()) };
        let before = sweep.len();
        let names: Vec<String> = sweep.keys().cloned().collect();
        for name in names {
            if name != CASE && is_within(&name, key) {
                sweep.remove(&name);
                continue;
            }
            let Some(Value::Array(values)) = sweep.get_mut(&name) else { continue };
            let within = if name == CASE { Some(key) } else { key.strip_prefix(&name).and_then(|rest| rest.strip_prefix('.')) };
            let Some(within) = within else { continue };
            let changed = values.iter_mut().try_fold(false, |changed, value| Ok(take_out(value, within)? | changed));
            if changed.map_err(|kind: &str| format!("lies in `{name}`, which [sweep] varies as {kind}; set sweep.{name}"))? {
                let mut distinct: Vec<Value> = Vec::new();
                values.drain(..).for_each(|value| {
                    if !distinct.contains(&value) {
                        distinct.push(value)
                    }
                });
                *values = distinct;
                if values.iter().all(|value| value.as_table().is_some_and(Table::is_empty)) {
                    sweep.remove(&name);
                }
            }
        }
        if sweep.is_empty() && before > 0 {
            self.table.remove("sweep");
        }
        Ok(())
    }

    /// The place of a key or its value, or of the nearest table around it.
    pub(super) fn locate(&self, path: &str, part: Part) -> Location {
        let mut around = path;
        loop {
            if let Some(place) = self.places.get(around) {
                return if part == Part::Key { place.key.clone() } else { place.value.clone() };
            }
            match around.rfind('.') {
                Some(dot) => around = &around[..dot],
                None => return self.default.clone(),
            }
        }
    }

    /// Is this exact path in the file?
    pub(super) fn has_place(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }

    /// An error at a value.
    pub(super) fn error(&self, path: &str, part: Part, message: impl Into<String>) -> ConfigError {
        self.error_at(self.locate(path, part), path, message)
    }

    pub(super) fn error_at(&self, location: Location, key: &str, message: impl Into<String>) -> ConfigError {
        ConfigError { document: self.name.clone(), location, key: key.to_owned(), message: message.into() }
    }

    /// The reason that a name is no section of the file, if it is none.
    pub(super) fn section_problem(&self, section: &str) -> Option<String> {
        // Where no engine is known, the one that the file names may have a section.
        let of_named = || self.engine_sections.is_empty() && self.table.get("engine").and_then(Value::as_str) == Some(section);
        if ROOT_KEYS.contains(&section) || self.engine_sections.contains(&section) || of_named() {
            return None;
        }
        Some(unknown("key", section, ROOT_KEYS.into_iter().chain(self.engine_sections.iter().copied())))
    }

    fn normalised(mut self) -> Result<Self, ConfigError> {
        if let Some((key, second)) = self.twice.take() {
            let first = match self.locate(&key, Part::Key) {
                Location::Text { line, .. } => format!(" in line {line}"),
                _ => String::new(),
            };
            return Err(self.error_at(second, &key, format!("is already set{first}; keep one of the two")));
        }
        for key in self.table.keys() {
            if let Some(problem) = self.section_problem(key) {
                return Err(self.error(key, Part::Key, problem));
            }
        }
        self.normalise()?;
        Ok(self)
    }

    /// Gives each line of `[sweep]` its whole dotted key.
    fn normalise(&mut self) -> Result<(), ConfigError> {
        match self.table.get_mut("sweep") {
            None => Ok(()),
            Some(Value::Table(nested)) => {
                let mut flat = Table::new();
                let mut result = flatten(std::mem::take(nested), "", &mut flat).map_err(|key| format!("sweep.{key}"));
                if let Some(cases) = flat.get_mut(CASE) {
                    result = result.and_then(|()| flatten_cases(cases));
                }
                *nested = flat;
                result.map_err(|key| self.error(&key, Part::Key, "is set twice; keep one of the two"))
            }
            Some(other) => {
                let message = format!("is {}; it must be a section: [sweep], then \"traffic.load\" = [0.1, 0.2]", shown(other));
                Err(self.error("sweep", Part::Value, message))
            }
        }
    }
}

/// Splits `key=value` and reads the value.
fn parse_assignment(assignment: &str) -> Result<(String, Value), String> {
    let (key, text) =
        assignment.split_once('=').ok_or_else(|| "there is no `=`; write key=value, for example traffic.load=0.3".to_owned())?;
    let key = key.trim();
    if key.is_empty() {
        return Err("there is no key before `=`; write key=value, for example traffic.load=0.3".to_owned());
    }
    let mut parsed: Table = toml::from_str(&format!("value = {text}")).unwrap_or_default();
    // More than one key: the text held a line break, and no value does.
    let value = if parsed.len() == 1 { parsed.remove("value") } else { None };
    Ok((key.to_owned(), value.unwrap_or_else(|| Value::String(text.trim().to_owned()))))
}

/// Takes a dotted key out of the tables of one value of `[sweep]`, in whichever form it is written. Returns whether anything changed.
///
/// # Errors
/// The key lies in a value that is no table: what kind of value that is.
fn take_out(value: &mut Value, key: &str) -> Result<bool, &'static str> {
    let Value::Table(table) = value else { return Err(if value.is_array() { "a list" } else { "one value" }) };
    let before = table.len();
    table.retain(|name, _| !is_within(name, key));
    let mut changed = table.len() < before;
    for (name, inner) in table.iter_mut() {
        if let Some(rest) = key.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('.')) {
            changed |= take_out(inner, rest)?;
        }
    }
    Ok(changed)
}

/// The places of keys and values, while a text is read.
struct Recorded<'a> {
    lines: &'a Lines<'a>,
    places: BTreeMap<String, Place>,
    twice: Option<(String, Location)>,
}

impl Recorded<'_> {
    fn record(&mut self, path: &str, key: usize, value: &Spanned<DeValue<'_>>) {
        let place = Place { key: self.lines.at(key), value: self.lines.at(value.span().start) };
        let is_table = matches!(value.get_ref(), DeValue::Table(_));
        // A key that names a position of a list looks like that element; duplicates of it are found without places.
        let is_position = path.rsplit('.').next().is_some_and(|part| part.parse::<usize>().is_ok());
        match self.places.get(path) {
            // Only there is a dotted key in quotes the same as one in tables.
            Some(_) if path.starts_with("sweep.") && !is_table && !is_position => {
                self.twice.get_or_insert_with(|| (path.to_owned(), place.key));
            }
            _ => {
                self.places.insert(path.to_owned(), place);
            }
        }
        match value.get_ref() {
            DeValue::Table(table) => {
                for (key, value) in table {
                    self.record(&format!("{path}.{}", key.get_ref()), key.span().start, value);
                }
            }
            DeValue::Array(elements) => {
                for (position, element) in elements.iter().enumerate() {
                    self.record(&format!("{path}.{position}"), element.span().start, element);
                }
            }
            _ => {}
        }
    }
}

/// Byte offsets to lines and columns.
struct Lines<'a> {
    text: &'a str,
    /// Where each line begins.
    starts: Vec<usize>,
    /// The last place that was asked for: its line, offset and column. Places are mostly asked for in the order of the text, and a line may
    /// hold a million of them.
    last: Cell<(usize, usize, usize)>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(offset, _)| offset + 1);
        Self { text, starts: std::iter::once(0).chain(breaks).collect(), last: Cell::new((1, 0, 1)) }
    }

    fn at(&self, offset: usize) -> Location {
        let line = self.starts.partition_point(|&start| start <= offset);
        let (start, first) = match self.last.get() {
            (known, before, column) if known == line && before <= offset => (before, column),
            _ => (self.starts[line - 1], 1),
        };
        let column = self.text.get(start..offset).map_or(offset - start, |between| between.chars().count()) + first;
        self.last.set((line, offset, column));
        Location::Text { line, column }
    }
}
