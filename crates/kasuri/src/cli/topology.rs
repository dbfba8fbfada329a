//! `kasuri topology`: one network in numbers, or as a graph.

use super::{Exit, Failure, output};
use crate::input::{FolderFiles, KNOWN};
use clap::{Args, ValueEnum};
use kasuri_config::Document;
use kasuri_config::words::assignments;
use kasuri_formats as format;
use kasuri_network::network::Network;
use kasuri_network::network::metrics::{Basis, Metrics, Summary};
use serde_json::json;
use std::io::Write;
use toml::{Table, Value};

#[derive(Debug, Args)]
pub(super) struct Topology {
    /// The topology (kasuri list topologies)
    name: String,
    /// Its keys, for example dimensions=[8,8] concentration=2; failed components: faults.routers=[3] faults.link_count=2
    #[arg(value_name = "KEY=VALUE")]
    parameters: Vec<String>,
    /// Print the network as a graph instead
    #[arg(long, value_enum)]
    export: Option<Export>,
    /// Output format of the numbers
    #[arg(long, value_enum, default_value = "table", conflicts_with = "export")]
    format: Format,
}

/// The form of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// One JSON object: counts, exact distances, and digests of the links
    Json,
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
        for parameter in assignments(&self.parameters) {
            match parameter.strip_prefix("faults.") {
                Some(fault) => document.set_argument("faults", fault, &parameter)?,
                None => document.set_argument("network", &parameter, &parameter)?,
            }
        }
        let network = document.network(&document.sweep()?.point(0)?, &FolderFiles::new(""))?;
        if let Some(export) = self.export {
            let text = match export {
                Export::Dot => format::dot::write(&network),
                Export::Graphml if network.further_home_count() > 0 => {
                    let problem = "--export graphml: a terminal has one edge each way there, and those of this network have several ports; \
                                   --export json keeps them";
                    return Err(Failure::Input(problem.to_owned()));
                }
                Export::Graphml => format::graphml::write(&network),
                Export::Json => format::network_json::write(&network),
            };
            write!(out, "{text}")?;
            return Ok(Exit::DONE);
        }
        if self.format == Format::Json {
            return self.write_summary(&network, out);
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
        let damage = network.damage().map(|damage| ("down", damage.describe(&network)));
        let rows = [
            ("network", network.name().to_owned()),
            ("terminals", metrics.terminals.to_string()),
            ("routers", metrics.routers.to_string()),
            ("ports of the widest router", metrics.radix.to_string()),
            ("channels", (network.channel_count() + 2 * network.further_home_count()).to_string()),
            ("channels between routers", metrics.router_channels.to_string()),
            ("links between routers", metrics.links.to_string()),
            ("diameter, hops", diameter),
            ("average distance, hops", average),
            ("bisection, channels", bisection),
        ];
        let rows = rows.into_iter().chain(damage).map(|(name, value)| vec![name.to_owned(), value]).collect();
        writeln!(out, "{}", output::table(&["QUANTITY", "VALUE"], rows, &[]))?;
        Ok(Exit::DONE)
    }

    /// One JSON object with the columns that tables of networks have.
    fn write_summary(&self, network: &Network, out: &mut dyn Write) -> Result<Exit, Failure> {
        let summary = Summary::of(network);
        let answer = json!({
            "topology": self.name,
            "parameters": self.parameters.join(" "),
            "terminals": summary.terminals,
            "routers": summary.routers,
            "links": summary.links,
            "terminal_links": summary.terminal_links,
            "max_ports": summary.max_ports,
            "min_ports": summary.min_ports,
            "components": summary.components,
            "diameter_terminals": summary.diameter_terminals,
            "diameter_routers": summary.diameter_routers,
            "sum_hops": summary.sum_hops,
            "pairs": summary.pairs,
            "mean_hops": summary.mean_hops().map(|mean| (mean * 1e6).round() / 1e6),
            "histogram": summary.histogram_text(),
            "links_across_half": summary.links_across_half,
            "edges_sha256": summary.edges_sha256,
            "ports_sha256": summary.ports_sha256,
        });
        writeln!(out, "{answer:#}")?;
        Ok(Exit::DONE)
    }
}
