//! `kasuri check`: is the experiment right, how large is it, can it deadlock?

use super::{Exit, Failure};
use crate::input::{FolderFiles, KNOWN, read_experiment};
use clap::Args;
use kasuri_model::config::{Preparation, Study};
use kasuri_model::network::Network;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Checks an experiment file without running it
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The experiment file
    file: PathBuf,
    /// Sets a key of the file, for example traffic.load=0.3
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Check {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let (document, _) = read_experiment(&self.file, &self.set)?;
        let points = document.points()?;
        let files = FolderFiles::beside(&self.file);
        let mut preparation = Preparation::new(&document, &files, *KNOWN);
        let mut seen: Vec<Arc<Network>> = Vec::new();
        for point in &points {
            let study = preparation.study(point)?;
            if !seen.iter().any(|network| Arc::ptr_eq(network, &study.scenario.network)) {
                describe(&study, out)?;
                seen.push(Arc::clone(&study.scenario.network));
            }
        }
        writeln!(out, "{}: right; {} run{}", self.file.display(), points.len(), if points.len() == 1 { "" } else { "s" })?;
        Ok(Exit::DONE)
    }
}

fn describe(study: &Study, out: &mut dyn Write) -> Result<(), Failure> {
    let network = &study.scenario.network;
    let counts =
        format!("{} terminals, {} routers, {} channels", network.terminal_count(), network.router_count(), network.channel_count());
    Ok(writeln!(out, "network {}: {counts}", network.name())?)
}
