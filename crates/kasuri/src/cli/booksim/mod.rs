//! `kasuri booksim`: runs configuration files of BookSim 2 as they are.

mod summary;

use super::running::{Running, Texts};
use super::{Exit, Failure};
use crate::input::{FolderFiles, KNOWN, read_text};
use clap::Args;
use kasuri_config::Document;
use kasuri_config::format::booksim::{BookSimError, Configuration, Rules};
use kasuri_config::format::recognise::{self, Form};
use std::io::{self, Write};
use std::path::Path;
use toml::{Table, Value};

#[derive(Debug, Args)]
pub(super) struct BookSim {
    /// Configuration files and single settings, merged in this order
    #[arg(required = true, value_name = "CONFIG|NAME=VALUE")]
    inputs: Vec<String>,
    /// Measure and end the run by BookSim's rules: sample periods and thresholds
    #[arg(long)]
    booksim_rules: bool,
    /// Only print the experiment file with the same meaning
    #[arg(long)]
    to_toml: bool,
    /// Print the summary block that BookSim ends with, with its labels, for scripts that read it
    #[arg(long, conflicts_with_all = ["to_toml", "format"])]
    as_booksim: bool,
    #[command(flatten)]
    running: Running,
}

impl BookSim {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let configuration = self.read()?;
        let rules = if self.booksim_rules { Rules::BookSim } else { Rules::Kasuri };
        let mut translation = configuration.translate(rules)?;
        for note in &translation.notes {
            let _ = writeln!(io::stderr(), "note: {note}");
        }
        let name = self.name();
        translation.table.insert("title".to_owned(), name.as_str().into());
        let text = toml::to_string(&translation.table).map_err(|error| Failure::Other(error.to_string()))?;
        if self.to_toml {
            write!(out, "{text}")?;
            return Ok(Exit::DONE);
        }
        let table = translation.table.clone();
        let mut document = Document::from_table_for(*KNOWN, &name, translation.table)?;
        let own = self.read_files().ok().and_then(|own| own.translate(rules).ok()).map(|own| own.table).unwrap_or_default();
        changed_keys("", &own, &table).iter().for_each(|key| document.note_set(key));
        let text = Texts { input: text, origin: Some(self.files_text()?), joins: false };
        if self.as_booksim {
            summary::check(translation.classes)?;
            let summary = self.running.compute(&document, &FolderFiles::new(""), &name, text, None)?;
            summary.rows.iter().try_for_each(|row| write!(out, "{}", summary::block(row, &table)))?;
            let _ = writeln!(io::stderr(), "note: {}", summary::NOT_MEASURED);
            return Ok(Exit(summary.exit_status()));
        }
        self.running.run(&document, &FolderFiles::new(""), &name, text, None, out)
    }

    fn read(&self) -> Result<Configuration, Failure> {
        Self::read_all(self.inputs.iter())
    }

    /// Only the files, without the single settings.
    fn read_files(&self) -> Result<Configuration, Failure> {
        Self::read_all(self.files())
    }

    fn files(&self) -> impl Iterator<Item = &String> {
        self.inputs.iter().filter(|input| !input.contains('='))
    }

    /// The texts of the files, which experiments with other settings have in common.
    fn files_text(&self) -> Result<String, Failure> {
        self.files().map(|file| Ok(read_text(Path::new(file), IS_TEXT)?)).collect()
    }

    fn read_all<'a>(inputs: impl Iterator<Item = &'a String>) -> Result<Configuration, Failure> {
        let mut configuration = Configuration::default();
        for input in inputs {
            if input.contains('=') {
                configuration.assign(input)?;
            } else {
                let text = read_text(Path::new(input), IS_TEXT)?;
                configuration
                    .read(input, &text)
                    .map_err(|error| Failure::Input(recognise::explain(input, text.as_bytes(), &[Form::BookSim], error.to_string())))?;
            }
        }
        configuration.place_files(|path| Path::new(path).exists());
        Ok(configuration)
    }

    /// The first file's name without its ending.
    fn name(&self) -> String {
        let stem = self.files().next().and_then(|file| Path::new(file).file_stem());
        stem.map_or("booksim".to_owned(), |stem| stem.to_string_lossy().into_owned())
    }
}

/// What a file should be, where it is no text.
const IS_TEXT: &str = "a BookSim configuration is text";

/// The keys whose values differ from those of another table or are not in it, as dotted paths; the keys of tables that both have, one by one.
fn changed_keys(path: &str, own: &Table, table: &Table) -> Vec<String> {
    let mut keys = Vec::new();
    for (name, value) in table {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match (own.get(name), value) {
            (Some(known), value) if known == value => {}
            (Some(Value::Table(known)), Value::Table(table)) => keys.extend(changed_keys(&key, known, table)),
            _ => keys.push(key),
        }
    }
    keys
}

impl From<BookSimError> for Failure {
    fn from(error: BookSimError) -> Self {
        Self::Input(error.to_string())
    }
}
