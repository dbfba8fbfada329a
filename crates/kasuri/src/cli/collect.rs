//! `kasuri collect`: the table of runs that several processes have computed into one folder.

use super::running::{Format, print, say};
use super::{Exit, Failure};
use crate::listing::{ListingError, collect};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Collect {
    /// The folder of results
    directory: PathBuf,
    /// The form of the results on standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// The largest number of missing runs to name; more are only counted.
const MAX_NAMED_RUNS: usize = 20;

impl Collect {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        if !self.directory.is_dir() {
            return Err(Failure::Input(format!("{}: not a folder; give the folder of results", self.directory.display())));
        }
        let collected = collect(&self.directory)?;
        say(&collected.summary.messages);
        print(&collected.summary.rows, Some(&self.directory), self.format, out)?;
        let (missing, planned) = (&collected.missing, collected.summary.planned);
        if missing.is_empty() {
            return Ok(Exit(collected.summary.exit_status()));
        }
        let mut lines = vec![format!("{} of {planned} runs are missing in {}:", missing.len(), self.directory.display())];
        lines.extend(missing.iter().take(MAX_NAMED_RUNS).map(|run| format!("  {run}")));
        if missing.len() > MAX_NAMED_RUNS {
            lines.push(format!("  … and {} more", missing.len() - MAX_NAMED_RUNS));
        }
        lines.push("the same commands again compute what is missing".to_owned());
        say(&lines);
        Ok(Exit(collected.summary.exit_status().max(1)))
    }
}

impl From<ListingError> for Failure {
    fn from(error: ListingError) -> Self {
        match error.exit_status() {
            2 => Self::Input(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }
}
