//! `kasuri design`: which topology for so many terminals and ports.

use super::{Exit, Failure, output};
use crate::design::{self, EXAMPLE, Prices, design};
use crate::input::read_text;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Compares topologies for so many terminals: routers, cables, price, diameter, all-to-all
#[derive(Debug, Args)]
pub(super) struct Design {
    /// Terminals, at least
    #[arg(long, value_name = "NUMBER", required_unless_present = "example_prices", value_parser = clap::value_parser!(u64).range(2..=MAX_TERMINALS))]
    terminals: Option<u64>,
    /// Ports of a router, at most
    #[arg(long, value_name = "NUMBER", required_unless_present = "example_prices", value_parser = clap::value_parser!(u64).range(2..=512))]
    ports: Option<u64>,
    /// Prices and the floor plan, TOML, instead of the example's
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Print the example of a price file and its sources, to be changed
    #[arg(long)]
    example_prices: bool,
}

/// More terminals than this would take minutes.
const MAX_TERMINALS: u64 = 200_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each topology
    Table,
    /// One JSON object, a value for each topology
    Json,
}

impl Design {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        // Both are required unless the example is asked for.
        let (Some(terminals), Some(ports), false) = (self.terminals, self.ports, self.example_prices) else {
            write!(out, "{EXAMPLE}")?;
            return Ok(Exit::DONE);
        };
        let prices = self.prices()?;
        let designs = design(terminals, ports, &prices).map_err(Failure::Other)?;
        if self.format == Format::Json {
            let found: Vec<&design::Design> = designs.iter().filter_map(|(_, design)| design.as_ref()).collect();
            let absent: Vec<&str> = designs.iter().filter(|(_, design)| design.is_none()).map(|(family, _)| *family).collect();
            writeln!(out, "{:#}", json!({ "currency": prices.currency, "designs": found, "too_small": absent }))?;
            return Ok(Exit::DONE);
        }
        let heading = [
            "TOPOLOGY",
            "TERMINALS",
            "ROUTERS",
            "PORTS",
            "LINKS",
            "COPPER",
            "OPTICAL",
            "DIAMETER",
            "BISECTION",
            "ALL-TO-ALL",
            "PRICE",
            "KW",
        ];
        let right: Vec<bool> = (0..heading.len()).map(|column| column > 0).collect();
        writeln!(out, "{}", output::table(&heading, designs.iter().map(row).collect(), &right))?;
        writeln!(
            out,
            "\nLinks: cables between routers. Bisection: channels, both directions. All-to-all: part of the terminals' bandwidth."
        )?;
        writeln!(out, "Price: routers and all cables, {}.", prices.currency)?;
        Ok(Exit::DONE)
    }

    fn prices(&self) -> Result<Prices, Failure> {
        let (name, text) = match &self.prices {
            Some(path) => (path.display().to_string(), read_text(path, "a price file is TOML")?),
            None => ("the example".to_owned(), EXAMPLE.to_owned()),
        };
        Prices::parse(&text).map_err(|problem| Failure::Input(format!("{name}: {problem}")))
    }
}

fn row((family, design): &(&'static str, Option<design::Design>)) -> Vec<String> {
    let Some(design) = design else {
        return vec![(*family).to_owned(), "too small".to_owned()];
    };
    vec![
        design.network.clone(),
        design.terminals.to_string(),
        design.routers.to_string(),
        design.ports.to_string(),
        design.links.to_string(),
        design.copper.to_string(),
        design.optical.to_string(),
        design.diameter.to_string(),
        design.bisection.map_or("none".to_owned(), |channels| channels.to_string()),
        format!("{:.3}", design.all_to_all),
        format!("{:.0}", design.price),
        format!("{:.1}", design.watts / 1000.0),
    ]
}
