//! `kasuri booksim`: runs configuration files of BookSim 2 as they are.

mod summary;

use super::running::{Running, Texts};
use super::{Exit, Failure};
use crate::input::{FolderFiles, KNOWN, read_text};
use clap::Args;
use kasuri_config::Document;
use kasuri_config::booksim::{Rules, translate};
use kasuri_formats::booksim::{BookSimError, Configuration};
use kasuri_formats::recognise::{self, Form};
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
        let texts = self.texts()?;
        let configuration = self.configuration(&texts, true)?;
        let rules = if self.booksim_rules { Rules::BookSim } else { Rules::Kasuri };
        let mut translation = translate(&configuration, rules)?;
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
        let of_files = translate(&self.configuration(&texts, false)?, rules).map(|translation| translation.table).unwrap_or_default();
        changed_keys("", &of_files, &table).iter().for_each(|key| document.note_set(key));
        // Runs with other settings of the same files share a table.
        let text = Texts { input: text, origin: Some(texts.concat()), joins: false };
        if self.as_booksim {
            summary::check(translation.classes)?;
            let summary = self.running.compute(&document, &FolderFiles::new(""), &name, text, None)?;
            summary.rows.iter().try_for_each(|row| write!(out, "{}", summary::block(row, &table)))?;
            let _ = writeln!(io::stderr(), "note: {}", summary::NOT_MEASURED);
            return Ok(Exit(summary.exit_status()));
        }
        self.running.run(&document, &FolderFiles::new(""), &name, text, None, out)
    }

    fn files(&self) -> impl Iterator<Item = &String> {
        self.inputs.iter().filter(|input| !input.contains('='))
    }

    /// The texts of the files.
    fn texts(&self) -> Result<Vec<String>, Failure> {
        self.files().map(|file| Ok(read_text(Path::new(file), "a BookSim configuration is text")?)).collect()
    }

    /// The configuration of the files with these texts, with or without the settings that were given one by one.
    fn configuration(&self, texts: &[String], with_settings: bool) -> Result<Configuration, Failure> {
        let mut configuration = Configuration::default();
        let mut texts = texts.iter();
        for input in &self.inputs {
            if input.contains('=') {
                if with_settings {
                    configuration.assign(input)?;
                }
            } else if let Some(text) = texts.next() {
                let explain = |error: BookSimError| recognise::explain(input, text.as_bytes(), &[Form::BookSim], error.to_string());
                configuration.read(input, text).map_err(|error| Failure::Input(explain(error)))?;
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

/// The dotted paths of the keys of `table` that `base` does not have, or has with another value.
fn changed_keys(path: &str, base: &Table, table: &Table) -> Vec<String> {
    let mut keys = Vec::new();
    for (name, value) in table {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match (base.get(name), value) {
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
