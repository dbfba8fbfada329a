//! The experiment as it is run, with all settings, as one file (`OUT/effective.toml`), and its section `[record]`.

use super::document::{Document, Part};
use super::error::ConfigError;
use super::path::is_within;
use super::point::CASE;
use super::shape;
use super::shown::shown;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use toml::{Table, Value};

/// The section `[record]`, which a run adds to its `effective.toml`. It changes no result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Keys that are columns of the table although they are not swept: those that were set on the command line or in Python.
    pub columns: Vec<String>,
    /// Copies of files: from the name in the experiment to the path of the copy, relative to this file.
    pub files: BTreeMap<String, String>,
}

/// The name of the section.
const RECORD: &str = "record";

/// Sections without an effect on runs: setting one of their keys adds no column.
const WITHOUT_RESULTS: [&str; 4] = ["title", "plot", "sweep", RECORD];

impl Document {
    /// The section `[record]`.
    ///
    /// # Errors
    /// A key of it is unknown or of a wrong type.
    pub fn record(&self) -> Result<Record, ConfigError> {
        let wrong = |value: &Value| self.error(RECORD, Part::Value, format!("is {}; it must be a section", shown(value)));
        let Some(value) = self.table().get(RECORD) else { return Ok(Record::default()) };
        let table = value.as_table().ok_or_else(|| wrong(value))?;
        shape::check(schema_for!(Record).as_value(), table).map_err(|fault| {
            let part = if fault.at_key { Part::Key } else { Part::Value };
            self.error(&format!("{RECORD}.{}", fault.path), part, fault.message)
        })?;
        Record::deserialize(value.clone()).map_err(|error| self.error(RECORD, Part::Value, error.message()))
    }

    /// The keys that are columns of the table although they are not swept, each once: those of `[record]`, and those that
    /// [`Document::set`] has set. Of a table that was set, its keys.
    ///
    /// # Errors
    /// A wrong section `[record]`.
    pub fn shown_columns(&self) -> Result<Vec<String>, ConfigError> {
        let mut columns = self.record()?.columns;
        for key in self.set_keys() {
            if !WITHOUT_RESULTS.iter().any(|section| is_within(key, section)) {
                let value = value_at(self.table(), key);
                value.into_iter().for_each(|value| leaves(key, value, &mut columns));
            }
        }
        Ok(columns)
    }

    /// Was a key set after the file was read?
    pub fn is_changed(&self) -> bool {
        !self.set_keys().is_empty()
    }

    /// The experiment as it is run, with all settings, as the text of one experiment file. `copies` maps the files that it names to
    /// their copies, relative to this file.
    ///
    /// # Errors
    /// A wrong section `[record]`.
    pub fn effective(&self, copies: BTreeMap<String, String>) -> Result<String, ConfigError> {
        let record = Record { columns: self.shown_columns()?, files: copies };
        let mut table = self.table().clone();
        let sweep = table.remove("sweep");
        table.remove(RECORD);
        let problem = |error: toml::ser::Error| self.error("", Part::Value, format!("cannot be written as TOML: {error}"));
        let mut text = toml::to_string(&table).map_err(problem)?;
        if record != Record::default() {
            let section = Table::from_iter([(RECORD.to_owned(), Value::try_from(record).map_err(problem)?)]);
            let _ = write!(text, "\n{}", toml::to_string(&section).map_err(problem)?);
        }
        // By hand: the order of its keys is that of the runs, and TOML's writer moves cases to the end.
        if let Some(Value::Table(sweep)) = sweep {
            text.push_str("\n[sweep]\n");
            for (key, values) in sweep {
                let key = if key == CASE { key } else { quoted(&key) };
                let _ = writeln!(text, "{key} = {}", inline(&values));
            }
        }
        Ok(text)
    }
}

/// A text in quotes on one line. TOML has all escapes of JSON and requires one more.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// A value on one line.
fn inline(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let pairs: Vec<String> = table.iter().map(|(key, value)| format!("{} = {}", quoted(key), inline(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// The value of a dotted key; numbers are positions in lists.
fn value_at<'t>(table: &'t Table, key: &str) -> Option<&'t Value> {
    let mut parts = key.split('.');
    let first = table.get(parts.next()?)?;
    parts.try_fold(first, |value, part| match value {
        Value::Array(elements) => elements.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

/// Adds the keys of all values within a value, except tables and lists of tables, that are not in the list yet.
fn leaves(key: &str, value: &Value, columns: &mut Vec<String>) {
    match value {
        Value::Table(table) => table.iter().for_each(|(name, value)| leaves(&format!("{key}.{name}"), value, columns)),
        Value::Array(elements) if elements.iter().any(Value::is_table) => {
            elements.iter().enumerate().for_each(|(number, value)| leaves(&format!("{key}.{number}"), value, columns));
        }
        _ if columns.iter().any(|column| column == key) => {}
        _ => columns.push(key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = "title = 'a \"mesh\"'\n[network]\ntopology = 'mesh'\ndimensions = [4, 4]\n[routing]\nalgorithm = 'dimension-order'\n\
        [[traffic.class]]\nload = 0.1\n[sweep]\n'router.buffer_flits' = [2, 4]\n\
        case = [{ label = 'a', network = { dimensions = [2, 2] } }, { label = 'b', 'measure.seed' = 2 }]\n\
        'measure.warmup' = { from = 1, to = 3, step = 1 }\n[[plot]]\nx = 'router.buffer_flits'\ny = 'hops_mean'\n";

    fn reread(document: &Document) -> Document {
        let text = document.effective(BTreeMap::from([("../m.txt".to_owned(), "files/m.txt".to_owned())])).unwrap();
        Document::parse("effective.toml", &text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
    }

    /// The runs of a document, with the order in which they come.
    fn points(document: &Document) -> Vec<(String, Vec<(String, Value)>)> {
        let points = document.points().unwrap();
        points.into_iter().map(|point| (toml::to_string(&point.table).unwrap(), point.assignments)).collect()
    }

    #[test]
    fn settings_are_in_the_file_and_their_keys_are_columns() {
        let mut document = Document::parse("a.toml", FILE).unwrap();
        assert!(!document.is_changed());
        for set in ["traffic.class.0.load=0.2", "measure={seed = 3, precision = 0.1}", "sweep.router.credit_delay=[1, 2]", "plot=[]"] {
            document.set_text(set).unwrap();
        }
        let read = reread(&document);
        let columns = ["traffic.class.0.load", "measure.seed", "measure.precision"];
        assert_eq!(document.shown_columns().unwrap(), columns);
        assert_eq!(read.shown_columns().unwrap(), columns);
        assert_eq!(read.record().unwrap().files["../m.txt"], "files/m.txt");
        assert!(document.is_changed() && !read.is_changed());
        assert_eq!(points(&read), points(&document));
        assert_eq!(reread(&read).table(), read.table());
    }

    #[test]
    fn a_wrong_record_is_refused_at_its_place() {
        for (section, message) in [("record = 1\n", "record: is 1"), ("[record]\ncolumn = []\n", "record.column: unknown key")] {
            let error = Document::parse("a.toml", section).unwrap().points().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::Integer),
            any::<f64>().prop_filter("equals itself", |number| !number.is_nan()).prop_map(Value::Float),
            any::<bool>().prop_map(Value::Boolean),
            any::<String>().prop_map(Value::String),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                prop::collection::vec(("[a-zé \"'.\n]{1,4}", inner), 0..3).prop_map(|pairs| Value::Table(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// The written file has the values of any file and sweep, in the same order.
        #[test]
        fn any_values_are_written_and_read_again(own in prop::collection::vec(values(), 0..4), swept in prop::collection::vec(values(), 0..4)) {
            let table = |name: &str, values: Vec<Value>| {
                Value::Table(values.into_iter().enumerate().map(|(number, value)| (format!("{name}{number}"), value)).collect())
            };
            let mut whole = Table::from_iter([("network".to_owned(), table("key", own))]);
            if !swept.is_empty() {
                let lists = swept.into_iter().map(|value| Value::Array(vec![value])).collect();
                whole.insert("sweep".to_owned(), Value::Table(Table::from_iter([("router".to_owned(), table("key", lists))])));
            }
            let document = Document::from_table("dict", whole).unwrap();
            let text = document.effective(BTreeMap::new()).unwrap();
            let read = Document::parse("effective.toml", &text).unwrap();
            prop_assert_eq!(read.table(), document.table(), "{}", text);
            let order = |document: &Document| document.table().get("sweep").map(|sweep| sweep.to_string());
            prop_assert_eq!(order(&read), order(&document));
        }
    }
}
