//! `kasuri run`: computes the runs of an experiment that are not in its folder of results yet.

use super::running::Running;
use super::{Exit, Failure};
use crate::input::{FolderFiles, read_experiment};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Runs an experiment file
#[derive(Debug, Args)]
pub(super) struct Run {
    /// The experiment file
    file: PathBuf,
    /// Sets a key of the file, for example traffic.load=0.3
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Compute only the run with this key, or with the only key that begins so
    #[arg(long, value_name = "KEY")]
    point: Option<String>,
    #[command(flatten)]
    running: Running,
}

impl Run {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let (document, text) = read_experiment(&self.file, &self.set)?;
        let name = self.file.file_stem().map_or("experiment".to_owned(), |stem| stem.to_string_lossy().into_owned());
        self.running.run(&document, &FolderFiles::beside(&self.file), &name, text, self.point.as_deref(), out)
    }
}
