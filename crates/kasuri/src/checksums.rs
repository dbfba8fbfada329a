//! Checksums of the files in a folder of results: changes by a disk or a copy are found before the data is used.

use crate::results::{RunRow, SCHEMA_VERSION};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

/// The key of the checksum of a row, a table or a list.
pub(crate) const CHECKSUM: &str = "checksum";

/// What is wrong with a file that has another checksum than its content.
const DIFFERS: &str = "the file is damaged (its checksum differs)";

/// The CRC-32 of a file, as eight hexadecimal digits.
pub(crate) fn checksum(bytes: &[u8]) -> Value {
    let mut sum = Crc32Writer::default();
    sum.0.update(bytes);
    sum.text().into()
}

/// The checksum of an object: of its compact JSON text without the checksum.
fn checksum_of<'a>(entries: impl Iterator<Item = (&'a str, &'a Value)>) -> Value {
    let mut text = Vec::new();
    // Writing JSON values into memory cannot fail.
    let _ = serde_json::Serializer::new(&mut text).collect_map(entries.filter(|&(name, _)| name != CHECKSUM));
    checksum(&text)
}

fn checksum_of_object(object: &Value) -> Value {
    checksum_of(object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value)))
}

/// An object with its checksum.
pub(crate) fn sealed(mut object: Value) -> Value {
    object[CHECKSUM] = checksum_of_object(&object);
    object
}

/// True if an object has no checksum, or the right one.
pub(crate) fn is_whole(object: &Value) -> bool {
    object.get(CHECKSUM).is_none_or(|found| *found == checksum_of_object(object))
}

/// The start of the last line of a text that has its checksum: a comment in TOML.
const TEXT_CHECKSUM: &str = "# checksum ";

/// A text in TOML with its checksum.
pub(crate) fn sealed_text(text: &str) -> String {
    let mut sum = Crc32Writer::default();
    sum.0.update(text.as_bytes());
    format!("{text}{TEXT_CHECKSUM}{}\n", sum.text())
}

/// True if a text has the right checksum.
pub(crate) fn is_whole_text(text: &str) -> bool {
    text.rsplit_once(TEXT_CHECKSUM).is_some_and(|(own, _)| sealed_text(own) == text)
}

/// The checksum of a row.
pub(crate) fn checksum_of_row(row: &RunRow) -> Value {
    checksum_of(row.columns())
}

/// The name of a network: a hash of its text.
pub(crate) fn network_id(text: &[u8]) -> String {
    blake3::hash(text).to_hex()[..32].to_owned()
}

/// Reads the row of a run; the error describes the damage in a phrase.
pub(crate) fn read_row(key: &str, bytes: &[u8]) -> Result<RunRow, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| format!("the file is damaged ({error})"))?;
    let row = RunRow::from_json(value).ok_or("the file holds no run")?;
    match row.get("schema_version").as_u64() {
        Some(SCHEMA_VERSION) => {}
        Some(other) => return Err(format!("the file has layout version {other}, this kasuri reads {SCHEMA_VERSION}")),
        None => return Err("the file holds no run of kasuri".to_owned()),
    }
    if row.key() != key {
        return Err(format!("the file holds another run, `{}`", row.key()));
    }
    if row.get(CHECKSUM) != &checksum_of_row(&row) {
        return Err(DIFFERS.to_owned());
    }
    Ok(row)
}

/// The table of a folder of results.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Table {
    /// Its rows.
    pub(crate) runs: Vec<RunRow>,
    /// The experiment as it was run: the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// All experiments, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) experiments: Vec<String>,
    /// Experiments with the same origin share a table: the hash of the file that their settings change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<String>,
    /// True if settings change the experiment's file; its rows then join those of other settings.
    #[serde(skip)]
    pub(crate) is_changed: bool,
}

impl Table {
    /// True if these rows join those of another table: both have the same file with different settings.
    pub(crate) fn belongs_to(&self, known: &Self) -> bool {
        self.is_changed && self.origin.is_some() && self.origin == known.origin
    }

    /// The rows of both tables; for a run in both, the row of this one.
    pub(crate) fn joined(&self, known: Self) -> Self {
        let mut experiments = known.experiments;
        experiments.extend(known.input.filter(|_| experiments.is_empty()));
        experiments.retain(|text| Some(text) != self.input.as_ref());
        experiments.extend(self.input.clone());
        if experiments.len() == 1 {
            experiments.clear();
        }
        let mut own: BTreeMap<&str, &RunRow> = self.runs.iter().map(|row| (row.key(), row)).collect();
        let mut runs: Vec<RunRow> = known.runs.into_iter().map(|row| own.remove(row.key()).cloned().unwrap_or(row)).collect();
        runs.extend(self.runs.iter().filter(|row| own.contains_key(row.key())).cloned());
        Self { runs, experiments, input: self.input.clone(), origin: self.origin.clone(), is_changed: self.is_changed }
    }

    /// The texts of all experiments with runs in the table.
    pub(crate) fn all_experiments(&self) -> Vec<&str> {
        if self.experiments.is_empty() {
            self.input.iter().map(String::as_str).collect()
        } else {
            self.experiments.iter().map(String::as_str).collect()
        }
    }
}

/// Writes a table row by row: its rows, the experiments, a checksum of both.
pub(crate) fn write_table(table: &Table, mut out: &mut impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct ChecksummedTable<'a> {
        #[serde(flatten)]
        table: &'a Table,
        #[serde(skip_serializing_if = "Option::is_none")]
        checksum: Option<String>,
    }
    let mut table = ChecksummedTable { table, checksum: None };
    // Texts come in small pieces, and a sum is quicker over large ones.
    let mut sum = BufWriter::new(Crc32Writer::default());
    serde_json::to_writer(&mut sum, &table)?;
    table.checksum = Some(sum.into_inner()?.text());
    serde_json::to_writer_pretty(&mut out, &table)?;
    writeln!(out)
}

/// Writes to it enter a checksum.
#[derive(Default)]
struct Crc32Writer(crc32fast::Hasher);

impl Crc32Writer {
    fn text(self) -> String {
        format!("{:08x}", self.0.finalize())
    }
}

impl Write for Crc32Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a table; the error describes the damage in a phrase. Tables of an older Kasuri have no checksum and are accepted.
pub(crate) fn read_table(bytes: &[u8]) -> Result<Table, String> {
    let table: Value = serde_json::from_slice(bytes).map_err(|error| format!("the file is damaged ({error})"))?;
    if !is_whole(&table) {
        return Err(DIFFERS.to_owned());
    }
    let rows = table.get("runs").and_then(Value::as_array).ok_or("it has no list `runs`")?;
    let runs = rows
        .iter()
        .map(|row| RunRow::from_json(row.clone()).ok_or_else(|| "a run is not an object".to_owned()))
        .collect::<Result<_, _>>()?;
    let text = |name: &str| table.get(name).and_then(Value::as_str).map(str::to_owned);
    let experiments = table.get("experiments").and_then(Value::as_array).into_iter().flatten();
    let experiments = experiments.filter_map(|text| text.as_str().map(str::to_owned)).collect();
    Ok(Table { runs, input: text("input"), experiments, origin: text("origin"), is_changed: false })
}

/// Describes the damage of a file of a folder of results in a phrase: `runs.json`, `effective.toml`, `runs/KEY.json` or `networks/ID.json`.
/// Rows of an older Kasuri have no checksum and are accepted: they are readable, although runs no longer reuse them.
pub fn damage(path: &str, bytes: &[u8]) -> Option<String> {
    let name = |folder: &str| path.strip_prefix(folder)?.strip_suffix(".json");
    match (name("runs/"), name("networks/")) {
        (Some(key), _) => read_row(key, bytes).err().filter(|_| !is_older(bytes)),
        (_, Some(id)) => (network_id(bytes) != id).then(|| "the file is damaged (it is not the network of its name)".to_owned()),
        _ if path.ends_with(".toml") => (!is_whole_text(&String::from_utf8_lossy(bytes))).then(|| DIFFERS.to_owned()),
        _ => read_table(bytes).err(),
    }
}

/// True for an object without a checksum.
fn is_older(bytes: &[u8]) -> bool {
    serde_json::from_slice(bytes).is_ok_and(|row: Value| row.is_object() && row.get(CHECKSUM).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Report;
    use crate::results::{tests as example, write_json};
    use proptest::prelude::*;

    fn kept() -> (Vec<RunRow>, Vec<u8>) {
        let row = RunRow::new(&example::head(), &example::network(), None, &example::outcome(), &Report::default());
        let rows = vec![row.clone(), row];
        let mut text = Vec::new();
        let table = Table { runs: rows.clone(), input: Some("title = \"x\"\n".to_owned()), ..Table::default() };
        write_table(&table, &mut text).unwrap();
        (rows, text)
    }

    proptest! {
        /// A changed bit of a table is found, or it changes no value (a bit of the white space).
        #[test]
        fn a_flipped_bit_of_a_table_never_changes_an_answer(place in 0.0..1.0_f64, bit in 0u32..8) {
            let (rows, mut bytes) = kept();
            prop_assert_eq!(&read_table(&bytes).unwrap().runs, &rows);
            let place = (bytes.len() as f64 * place) as usize;
            bytes[place] ^= 1 << bit;
            if let Ok(found) = read_table(&bytes) {
                prop_assert_eq!(found.runs, rows);
            }
        }
    }

    #[test]
    fn a_table_without_a_checksum_is_believed_and_one_without_runs_is_not() {
        let (rows, _) = kept();
        let mut text = Vec::new();
        write_json(&rows, false, &mut text).unwrap();
        assert_eq!(read_table(&text).unwrap().runs, rows);
        for (text, problem) in [("{\"rows\": []}", "no list `runs`"), ("{\"runs\": [1]}", "is not an object"), ("{", "damaged")] {
            assert!(damage("runs.json", text.as_bytes()).unwrap().contains(problem), "{text}");
        }
    }

    proptest! {
        /// A changed bit of an experiment is found wherever it is, also in the checksum.
        #[test]
        fn a_flipped_bit_of_an_experiment_is_found(place in 0.0..1.0_f64, bit in 0u32..7) {
            let text = sealed_text("title = \"x\"\n# checksum of nothing\n");
            prop_assert!(is_whole_text(&text));
            let mut bytes = text.into_bytes();
            let place = (bytes.len() as f64 * place) as usize;
            bytes[place] ^= 1 << bit;
            prop_assert!(!is_whole_text(&String::from_utf8(bytes).unwrap()));
        }
    }

    #[test]
    fn a_network_under_another_name_is_found() {
        let text = b"{}";
        assert_eq!(damage(&format!("networks/{}.json", network_id(text)), text), None);
        assert!(damage("networks/0123.json", text).is_some());
    }
}
