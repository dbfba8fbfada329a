//! `kasuri topology`: one network in numbers, or as a graph.

use super::{Exit, Failure, output};
use crate::input::FolderFiles;
use clap::Args;
use kasuri_model::config::Document;
use std::io::Write;
use toml::{Table, Value};

/// Shows a network: counts, diameter, distances, bisection
#[derive(Debug, Args)]
pub(super) struct Topology {
    /// The topology (kasuri list topologies)
    name: String,
    /// Its keys, for example dimensions=[8,8] concentration=2
    #[arg(value_name = "KEY=VALUE")]
    parameters: Vec<String>,
}

impl Topology {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let network = Table::from_iter([("topology".to_owned(), Value::String(self.name.clone()))]);
        let table = Table::from_iter([("network".to_owned(), Value::Table(network))]);
        let mut document = Document::from_table("kasuri topology", table)?;
        for parameter in &self.parameters {
            document.set_argument("network", parameter, parameter)?;
        }
        let network = document.network(&document.points()?[0], &FolderFiles::new(""))?;
        let rows = [
            ("network", network.name().to_owned()),
            ("terminals", network.terminal_count().to_string()),
            ("routers", network.router_count().to_string()),
            ("channels", network.channel_count().to_string()),
        ];
        let rows = rows.map(|(name, value)| vec![name.to_owned(), value]).to_vec();
        writeln!(out, "{}", output::table(&["QUANTITY", "VALUE"], rows, &[]))?;
        Ok(Exit::DONE)
    }
}
