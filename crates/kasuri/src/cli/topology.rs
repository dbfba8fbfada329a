//! `kasuri topology`: one network in numbers, or as a graph.

use super::{Exit, Failure, output};
use crate::input::{FolderFiles, KNOWN};
use clap::{Args, ValueEnum};
use kasuri_config::Document;
use kasuri_config::format;
use kasuri_network::network::metrics::{Basis, Metrics};
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
    /// Print the network as a graph instead
    #[arg(long, value_enum)]
    export: Option<Export>,
}

/// A graph format.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Export {
    /// Graphviz
    Dot,
    /// GraphML, which networkx reads
    Graphml,
    /// Everything: columns of channels, labels, names; `topology file` and Python read it
    Json,
}

impl Topology {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let network = Table::from_iter([("topology".to_owned(), Value::String(self.name.clone()))]);
        let table = Table::from_iter([("network".to_owned(), Value::Table(network))]);
        let mut document = Document::from_table_for(*KNOWN, "kasuri topology", table)?;
        for parameter in &self.parameters {
            document.set_argument("network", parameter, parameter)?;
        }
        let network = document.network(&document.sweep()?.point(0)?, &FolderFiles::new(""))?;
        if let Some(export) = self.export {
            let text = match export {
                Export::Dot => format::dot::write(&network),
                Export::Graphml => format::graphml::write(&network),
                Export::Json => format::network_json::write(&network),
            };
            write!(out, "{text}")?;
            return Ok(Exit::DONE);
        }
        let metrics = Metrics::of(&network);
        let distances = &metrics.distances;
        let sampled = if distances.walked < distances.sources { " (from a sample of the routers)" } else { "" };
        let bisection = metrics.bisection.as_ref().map_or("none".to_owned(), |cut| {
            let basis = if matches!(cut.basis, Basis::ClosedForm(_)) { "" } else { " (upper bound)" };
            format!("{}{basis}", cut.channels)
        });
        let (diameter, average) = match distances.unreachable {
            None => (format!("{}{sampled}", distances.diameter), format!("{:.4}{sampled}", distances.average)),
            Some((from, to)) => {
                let pair = format!("{} cannot reach {}", network.terminal_name(from), network.terminal_name(to));
                (format!("none: disconnected, {pair}"), "none: disconnected".to_owned())
            }
        };
        let rows = [
            ("network", network.name().to_owned()),
            ("terminals", metrics.terminals.to_string()),
            ("routers", metrics.routers.to_string()),
            ("ports of the widest router", metrics.radix.to_string()),
            ("channels", network.channel_count().to_string()),
            ("channels between routers", metrics.router_channels.to_string()),
            ("links between routers", metrics.links.to_string()),
            ("diameter, hops", diameter),
            ("average distance, hops", average),
            ("bisection, channels", bisection),
        ];
        let rows = rows.map(|(name, value)| vec![name.to_owned(), value]).to_vec();
        writeln!(out, "{}", output::table(&["QUANTITY", "VALUE"], rows, &[]))?;
        Ok(Exit::DONE)
    }
}
