//! `kasuri reproduce`: the papers' figures, made by the Python package `kasuri_papers` with this program's engines.

use super::python::{PAPERS, Python};
use super::{Exit, Failure};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Reproduce {
    /// Papers, or figures of them (mfs/F6) [default: all]
    #[arg(value_name = "PAPER[/FIGURE]")]
    figures: Vec<String>,
    /// The form of the verdicts on standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// The folder for runs, data, plots and pages; existing runs are not computed again
    #[arg(long, value_name = "DIR", default_value = "out/reproduce")]
    out: PathBuf,
    /// Runs at the same time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The folder of the papers' experiments [default: those of the package]
    #[arg(long, value_name = "DIR")]
    experiments: Option<PathBuf>,
    /// End with status 1 if a verdict is not the expected one
    #[arg(long)]
    strict: bool,
}

/// The form of the verdicts on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// {"figures": [...]}
    Json,
}

impl Reproduce {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        Python::find().run(PAPERS, |command| {
            command.args(&self.figures).arg("--out").arg(&self.out);
            command.args(["--format", if self.format == Format::Json { "json" } else { "table" }]);
            if let Some(jobs) = self.jobs {
                command.args(["--jobs", &jobs.to_string()]);
            }
            if let Some(experiments) = &self.experiments {
                command.arg("--experiments").arg(experiments);
            }
            if self.strict {
                command.arg("--strict");
            }
            // Runs with measured time or memory get a process of this program each.
            if let Ok(program) = std::env::current_exe() {
                command.arg("--command").arg(program);
            }
        })
    }
}
