//! `kasuri pack`: packs a folder of results into one file, which `kasuri run` can repeat on another machine.

use super::running::say;
use super::{Exit, Failure};
use crate::archive::{ArchiveError, pack};
use crate::listing::planned_runs;
use crate::store::StoreError;
use clap::Args;
use std::io::{self, Write};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Pack {
    /// The folder of results that `kasuri run` wrote
    directory: PathBuf,
    /// The archive to write [default: DIRECTORY.tar.gz]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Pack {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let output = self.output.clone().map_or_else(|| self.default_output(), Ok)?;
        // With an unreadable experiment or a damaged copy of a file, the archive could not be run.
        let runs = planned_runs(&self.directory).map_err(Failure::Input)?;
        let files = pack(&self.directory, &output)?;
        let missing = runs.iter().filter(|run| !run.is_finished).count();
        if missing > 0 {
            say(&[format!("{missing} of {} runs are missing in {}", runs.len(), self.directory.display())]);
        }
        writeln!(out, "{}: {files} files; `kasuri run {}` repeats the experiment", output.display(), output.display())?;
        Ok(Exit::DONE)
    }

    /// The archive next to the folder.
    fn default_output(&self) -> Result<PathBuf, Failure> {
        let wrong = |problem: &dyn std::fmt::Display| Failure::Input(format!("{}: {problem}", self.directory.display()));
        let folder = self.directory.canonicalize().map_err(|error| wrong(&error))?;
        let name = folder.file_name().ok_or_else(|| wrong(&"has no name; name the archive with -o"))?;
        let mut name = name.to_owned();
        name.push(".tar.gz");
        let named_by_last = self.directory.file_name().is_some();
        Ok(if named_by_last { self.directory.with_file_name(name) } else { folder.with_file_name(name) })
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Store(StoreError::Io { ref source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Self::Input(error.to_string())
            }
            ArchiveError::Store(error) if !error.is_usage() => Self::Other(error.to_string()),
            ArchiveError::Io { ref source, .. } if source.kind() != io::ErrorKind::NotFound => Self::Other(error.to_string()),
            error => Self::Input(error.to_string()),
        }
    }
}
