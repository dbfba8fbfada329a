//! `kasuri report`: one HTML page of a folder of results, made by the Python package.

use super::python::Python;
use super::{Exit, Failure};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Report {
    /// The folder that `kasuri run` wrote
    directory: PathBuf,
    /// The page to write [default: DIRECTORY/report.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Report {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        if !self.directory.is_dir() {
            return Err(Failure::Input(format!("{}: not a folder; give the folder that `kasuri run` wrote", self.directory.display())));
        }
        let output = self.output.clone().unwrap_or_else(|| self.directory.join("report.html"));
        Python::find().run("kasuri.report", |command| {
            command.arg(&self.directory).arg("-o").arg(output);
        })
    }
}
