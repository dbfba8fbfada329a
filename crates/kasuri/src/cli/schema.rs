//! `kasuri schema`: the JSON Schema of the experiment file.

use super::{Exit, Failure};
use crate::input::KNOWN;
use clap::Args;
use kasuri_config::json_schema;
use std::io::Write;

#[derive(Debug, Args)]
pub(super) struct Schema {}

impl Schema {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        writeln!(out, "{:#}", json_schema(*KNOWN))?;
        Ok(Exit::DONE)
    }
}
