//! `kasuri algorithm`: collective algorithms as files of MSCCL.

use super::{Exit, Failure};
use crate::input::{MAX_TEXT_BYTES, read_gzipped_at_most};
use clap::{Args, Subcommand};
use kasuri_formats::recognise::{self, Form};
use kasuri_formats::{FormatError, msccl};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct Algorithm {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Proves that MSCCL can run it, and that every block of the result is complete, each contribution exactly once, in any interleaving of
    /// the threadblocks
    Check {
        /// The algorithm
        file: PathBuf,
    },
    /// Prints the algorithm with all attributes that MSCCL's scheduler needs, if MSCCL can run it
    Write {
        /// The algorithm
        file: PathBuf,
    },
}

impl Algorithm {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        match &self.action {
            Action::Check { file } => {
                let algorithm = read(file)?;
                let checked = msccl::check(&algorithm).map_err(|problem| Failure::Input(format!("{}: {problem}", file.display())))?;
                let (collective, gpus) = (algorithm.collective.name(), algorithm.gpus.len());
                writeln!(out, "{}: OK: {collective} of {gpus} GPUs", file.display())?;
                writeln!(
                    out,
                    "{} threadblocks, {} steps, {} messages of {} chunks in all; {} of a connection's 8 slots needed",
                    checked.blocks, checked.steps, checked.sends, checked.chunks_sent, checked.slots
                )?;
            }
            Action::Write { file } => {
                let algorithm = read(file)?;
                msccl::as_run(&algorithm).map_err(|problem| Failure::Input(format!("{}: {problem}", file.display())))?;
                write!(out, "{}", msccl::write(&algorithm))?;
            }
        }
        Ok(Exit::DONE)
    }
}

fn read(path: &Path) -> Result<msccl::Algorithm, Failure> {
    let name = path.display().to_string();
    let bytes = read_gzipped_at_most(path, MAX_TEXT_BYTES).map_err(|reason| Failure::Input(format!("{name}: cannot be read: {reason}")))?;
    let explain = |error: FormatError| recognise::explain(&name, &bytes, &[Form::Msccl], error.to_string());
    let algorithm = msccl::parse(&name, &bytes).map_err(|error| Failure::Input(explain(error)))?;
    algorithm.notes.iter().try_for_each(|note| writeln!(io::stderr(), "note: {note}"))?;
    Ok(algorithm)
}
