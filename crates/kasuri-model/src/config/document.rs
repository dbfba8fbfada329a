//! The text of an experiment file as values, each with its place.

use super::error::{ConfigError, Location};
use super::names::{shown, unknown};
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// The sections and keys at the top of the file.
const ROOT_KEYS: [&str; 17] = [
    "title",
    "engine",
    "network",
    "routing",
    "router",
    "traffic",
    "workload",
    "endpoint",
    "user",
    "users",
    "translation",
    "measure",
    "sweep",
    "plot",
    "analysis",
    "flow",
    "flit",
];

/// An experiment: the values of the file with their places, changed by [`Document::set`], not yet checked against the models.
///
/// # Examples
/// ```
/// use kasuri_model::config::Document;
/// use kasuri_model::topology::NoFiles;
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
    /// By dotted path, list positions as numbers: `traffic.class.0.load`.
    places: BTreeMap<String, Place>,
    /// Where a value without a place of its own stands.
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
        let syntax = |error: toml::de::Error| ConfigError {
            document: name.to_owned(),
            location: error.span().map_or(Location::Text { line: 1, column: 1 }, |span| Lines::new(text).at(span.start)),
            key: String::new(),
            message: format!("this is not TOML: {}", error.message()),
        };
        let spanned = DeTable::parse(text).map_err(syntax)?;
        let table: Table = toml::from_str(text).map_err(syntax)?;
        let mut places = BTreeMap::new();
        let lines = Lines::new(text);
        for (key, value) in spanned.get_ref() {
            record(&lines, key.get_ref(), key.span().start, value, &mut places);
        }
        Self { name: name.to_owned(), table, places, default: Location::Text { line: 1, column: 1 } }.normalised()
    }

    /// Takes a table that has no text (a Python dictionary, a translated file). `name` stands in messages: `dict`.
    ///
    /// # Errors
    /// A section or key at its top that does not exist.
    pub fn from_table(name: &str, table: Table) -> Result<Self, ConfigError> {
        Self { name: name.to_owned(), table, places: BTreeMap::new(), default: Location::Table }.normalised()
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
            _ => Location::Argument(format!("--set {key}={}", super::names::compact(&value))),
        };
        self.set_at(key, value, location)
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
        if let Some(problem) = section_problem(section) {
            return Err(self.error_at(location, section, problem));
        }
        if let Some(swept) = key.strip_prefix("sweep.") {
            if let Value::Table(sweep) = self.table.entry("sweep").or_insert_with(|| Value::Table(Table::new())) {
                sweep.insert(swept.to_owned(), value);
            }
        } else {
            assign(&mut self.table, key, value).map_err(|message| self.error_at(location.clone(), key, message))?;
            if let Some(Value::Table(sweep)) = self.table.get_mut("sweep") {
                let was_last = sweep.remove(key).is_some() && sweep.is_empty();
                if was_last {
                    self.table.remove("sweep");
                }
            }
        }
        self.places.retain(|path, _| !is_within(path, key));
        self.places.insert(key.to_owned(), Place { key: location.clone(), value: location });
        self.normalise()
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

    fn normalised(mut self) -> Result<Self, ConfigError> {
        for key in self.table.keys() {
            if let Some(problem) = section_problem(key) {
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
                flatten(std::mem::take(nested), "", &mut flat);
                *nested = flat;
                Ok(())
            }
            Some(other) => {
                let message = format!("is {}; it must be a section: [sweep], then \"traffic.load\" = [0.1, 0.2]", shown(other));
                Err(self.error("sweep", Part::Value, message))
            }
        }
    }
}

/// Why a name cannot stand at the top of the file, if it cannot.
pub(super) fn section_problem(section: &str) -> Option<String> {
    match section {
        known if ROOT_KEYS.contains(&known) => None,
        other => Some(unknown("key", other, ROOT_KEYS)),
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

/// Puts a value at a dotted path; missing tables are made, numbers are positions in lists.
pub(super) fn assign(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    if name.is_empty() {
        return Err(format!("`{path}` has an empty part; write a dotted key such as traffic.load"));
    }
    let Some(rest) = rest else {
        table.insert(name.to_owned(), value);
        return Ok(());
    };
    let inner = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
    assign_within(inner, name, rest, value)
}

fn assign_within(container: &mut Value, name: &str, path: &str, value: Value) -> Result<(), String> {
    match container {
        Value::Table(table) => assign(table, path, value),
        Value::Array(elements) => {
            let (position, rest) = path.split_once('.').map_or((path, None), |(position, rest)| (position, Some(rest)));
            let length = elements.len();
            let element = position.parse::<usize>().ok().and_then(|position| elements.get_mut(position));
            let element =
                element.ok_or_else(|| format!("`{name}` is a list of {length}; `{position}` is no position in it (the first is 0)"))?;
            match rest {
                Some(rest) => assign_within(element, position, rest, value),
                None => {
                    *element = value;
                    Ok(())
                }
            }
        }
        other => Err(format!("`{name}` is {}; it has no key `{path}`", shown(other))),
    }
}

/// Is `path` this key or something in it?
pub(super) fn is_within(path: &str, key: &str) -> bool {
    path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Makes `traffic.load = …` and `[sweep.traffic]` in `[sweep]` the same as `"traffic.load" = …`.
fn flatten(nested: Table, prefix: &str, flat: &mut Table) {
    for (key, value) in nested {
        let path = format!("{prefix}{key}");
        match value {
            Value::Table(inner) if !is_range(&inner) => flatten(inner, &format!("{path}."), flat),
            other => {
                flat.insert(path, other);
            }
        }
    }
}

/// `{ from, to, step }`, possibly with a mistake in it. No section has a key of these names.
fn is_range(table: &Table) -> bool {
    table.is_empty() || ["from", "to", "step"].iter().any(|key| table.contains_key(*key))
}

fn record(lines: &Lines<'_>, path: &str, key: usize, value: &Spanned<DeValue<'_>>, places: &mut BTreeMap<String, Place>) {
    places.insert(path.to_owned(), Place { key: lines.at(key), value: lines.at(value.span().start) });
    match value.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table {
                record(lines, &format!("{path}.{}", key.get_ref()), key.span().start, value, places);
            }
        }
        DeValue::Array(elements) => {
            for (position, element) in elements.iter().enumerate() {
                record(lines, &format!("{path}.{position}"), element.span().start, element, places);
            }
        }
        _ => {}
    }
}

/// Byte offsets to lines and columns.
struct Lines<'a> {
    text: &'a str,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(offset, _)| offset + 1);
        Self { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    fn at(&self, offset: usize) -> Location {
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1];
        let column = self.text.get(start..offset).map_or(offset - start, |before| before.chars().count()) + 1;
        Location::Text { line, column }
    }
}
