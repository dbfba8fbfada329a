//! `kasuri identity`: the data that must be the same on all machines of a sweep, for the executors.

use super::{Exit, Failure};
use crate::listing;
use clap::Args;
use std::io::Write;

#[derive(Debug, Args)]
pub(super) struct Identity {}

impl Identity {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let own = serde_json::to_string(&listing::Identity::own()).map_err(|error| Failure::Other(error.to_string()))?;
        writeln!(out, "{own}")?;
        Ok(Exit::DONE)
    }
}
