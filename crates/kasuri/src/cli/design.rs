//! `kasuri design`: topologies for a number of terminals and of ports per router.

use super::python::Python;
use super::{Exit, Failure, output};
use crate::design::{self, Candidate, EXAMPLE, MAX_SCHEDULED_TERMINALS, Prices, RecommendedSchedule, design, largest};
use crate::design::{EXAMPLE_LIST, PriceList, TreeRequest, offer};
use crate::input::read_text;
use clap::{Args, ValueEnum};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct Design {
    /// Show networks with at least this many terminals; without it, the largest network of each topology for these ports
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(2..=MAX_TERMINALS))]
    terminals: Option<u64>,
    /// The most ports of a router
    #[arg(long, value_name = "NUMBER", required_unless_present_any = ["example_prices", "price_list", "example_price_list"], value_parser = clap::value_parser!(u64).range(2..=512))]
    ports: Option<u64>,
    /// Mark networks that cost more than this, in the currency of the prices
    #[arg(long, value_name = "PRICE", requires = "terminals", value_parser = parse_budget)]
    budget: Option<f64>,
    /// A TOML file with prices and the floor plan, in place of the built-in ones
    #[arg(long, value_name = "FILE", requires = "terminals")]
    prices: Option<PathBuf>,
    /// Search for all-to-all schedules where no fast one is known, also for many terminals; takes minutes
    #[arg(long, requires = "terminals")]
    search: bool,
    /// A price list of switches, cables, adapters and optics (TOML): shows trees of these, their price, power, and the share lost with a
    /// failed spine
    #[arg(long, value_name = "FILE", requires = "terminals", conflicts_with_all = ["ports", "prices", "budget", "search", "plot"])]
    price_list: Option<PathBuf>,
    /// With a price list: ratios of the rate of a leaf's or a pod's terminals to that of its uplinks
    #[arg(long, value_name = "TAPERS", value_delimiter = ',', default_values = ["1", "2", "3"], value_parser = parse_taper)]
    taper: Vec<f64>,
    /// With a price list: GPUs of a node, for trees in which the GPUs of a leaf have the same number in their nodes
    #[arg(long, value_name = "GPUS", requires = "price_list", value_parser = clap::value_parser!(u64).range(2..=64))]
    rails: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Also draw a figure, as SVG, PDF or PNG: the cost of a terminal; without --terminals, how sizes grow with the ports
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print the built-in prices, with their sources, as a file to start from
    #[arg(long)]
    example_prices: bool,
    /// Print an example of a price list, as a file to start from
    #[arg(long)]
    example_price_list: bool,
}

/// The largest size, which takes minutes.
const MAX_TERMINALS: u64 = 200_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each topology
    Table,
    /// One JSON object, a value for each topology
    Json,
}

fn parse_taper(text: &str) -> Result<f64, String> {
    let taper = text.parse().ok().filter(|taper: &f64| (1.0..=64.0).contains(taper));
    taper.ok_or_else(|| "must be numbers from 1 to 64, such as 1,2,3.5".to_owned())
}

fn parse_budget(text: &str) -> Result<f64, String> {
    let budget = text.parse().ok().filter(|budget: &f64| *budget > 0.0 && budget.is_finite());
    budget.ok_or_else(|| "must be a price above 0, such as 15000000 or 1.5e7".to_owned())
}

impl Design {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        if self.example_price_list {
            write!(out, "{EXAMPLE_LIST}")?;
            return Ok(Exit::DONE);
        }
        if let (Some(path), Some(terminals)) = (&self.price_list, self.terminals) {
            return self.buy(path, terminals, out);
        }
        // Ports are required, except for the example of prices.
        let (Some(ports), false) = (self.ports, self.example_prices) else {
            write!(out, "{EXAMPLE}")?;
            return Ok(Exit::DONE);
        };
        let answer = match self.terminals {
            Some(terminals) => self.compare(terminals, ports, out)?,
            None => self.sizes(ports, out)?,
        };
        match &self.plot {
            Some(path) => Python::find().feed("kasuri.plot.design", &answer.to_string(), |command| {
                command.arg(path);
            }),
            None => Ok(Exit::DONE),
        }
    }

    /// Compares the smallest instance of each topology; returns the answer as JSON.
    fn compare(&self, terminals: u64, ports: u64, out: &mut dyn Write) -> Result<Json, Failure> {
        let prices = self.prices()?;
        let designs = design(terminals, ports, &prices, self.search).map_err(Failure::Other)?;
        let found: Vec<&design::Design> = designs.iter().filter_map(|(_, design)| design.as_ref()).collect();
        let absent: Vec<&str> = designs.iter().filter(|(_, design)| design.is_none()).map(|(family, _)| *family).collect();
        let most: BTreeMap<&str, u64> = largest(ports).into_iter().filter_map(|(family, found)| Some((family, found?.terminals))).collect();
        let at_most: BTreeMap<&str, Option<u64>> = absent.iter().map(|family| (*family, most.get(family).copied())).collect();
        let answer = json!({
            "currency": prices.currency, "budget": self.budget, "designs": found, "too_small": absent, "terminals_at_most": at_most,
        });
        if self.format == Format::Json {
            writeln!(out, "{answer:#}")?;
            return Ok(answer);
        }
        let mut heading = HEADING.to_vec();
        heading.extend(self.budget.map(|_| "BUDGET"));
        let right: Vec<bool> = heading.iter().map(|name| !matches!(*name, "TOPOLOGY" | "SCHEDULE")).collect();
        writeln!(out, "{}", output::table(&heading, designs.iter().map(|design| self.row(design, &most)).collect(), &right))?;
        writeln!(
            out,
            "\nLinks: cables between routers. Used: ports of all routers in use. Bisection: channels, both directions.\nAll-to-all: part of \
             the terminals' bandwidth. Schedule: set workload.schedule to it, and the rule in [routing]; efficiency: the bound over the time\n\
             of its phases, counted for at most {MAX_SCHEDULED_TERMINALS} terminals. Price: routers and all cables, {}.",
            prices.currency
        )?;
        if found.iter().any(|design| design.recommended.as_ref().is_some_and(|found| found.unsearched)) {
            writeln!(out, "*: no schedule was searched; with --search, or by `kasuri schedule`, a faster one (general) may be found.")?;
        }
        if let Some(budget) = self.budget {
            let cheapest = found.iter().min_by(|one, other| one.price.total_cmp(&other.price)).filter(|cheapest| cheapest.price > budget);
            if let Some(cheapest) = cheapest {
                writeln!(out, "Nothing is within the budget; the cheapest is {} for {:.0}.", cheapest.network, cheapest.price)?;
            }
        }
        Ok(answer)
    }

    /// Compares the largest instance of each topology, for the table with all ports, for a plot with fewer too.
    fn sizes(&self, ports: u64, out: &mut dyn Write) -> Result<Json, Failure> {
        let points = (if self.plot.is_some() { 4.min(ports) } else { ports })..=ports;
        let instance = |at: u64, family: &str, found: &Candidate| {
            json!({
                "ports_at_most": at, "family": family, "topology": found.topology, "parameters": found.parameters,
                "terminals": found.terminals, "routers": found.routers, "ports": found.ports,
            })
        };
        let all: Vec<(u64, Vec<_>)> = points.map(|at| (at, largest(at))).collect();
        let found = all
            .iter()
            .flat_map(|(at, families)| families.iter().filter_map(|(family, candidate)| Some(instance(*at, family, candidate.as_ref()?))));
        let answer = json!({ "largest": found.collect::<Vec<_>>() });
        if self.format == Format::Json {
            writeln!(out, "{answer:#}")?;
            return Ok(answer);
        }
        let rows = all.last().map_or(&[][..], |(_, families)| families).iter().map(|(family, candidate)| match candidate {
            None => vec![(*family).to_owned(), "none".to_owned()],
            Some(found) => vec![
                (*family).to_owned(),
                found.terminals.to_string(),
                found.routers.to_string(),
                found.ports.to_string(),
                format!("{:.2}", found.terminals as f64 / found.routers as f64),
            ],
        });
        let heading = ["LARGEST", "TERMINALS", "ROUTERS", "PORTS", "TERMINALS/ROUTER"];
        writeln!(out, "{}", output::table(&heading, rows.collect(), &[false, true, true, true, true]))?;
        Ok(answer)
    }

    /// Compares trees of commercial switches.
    fn buy(&self, path: &Path, terminals: u64, out: &mut dyn Write) -> Result<Exit, Failure> {
        let text = read_text(path, "a price list is TOML")?;
        let wrong = |problem: String| Failure::Input(format!("{}: {problem}", path.display()));
        let list = PriceList::parse(&text).map_err(wrong)?;
        let request = TreeRequest { terminals, tapers: self.taper.clone(), rails: self.rails };
        let found = offer(&request, &list).map_err(wrong)?;
        if self.format == Format::Json {
            let answer = json!({
                "date": list.date, "currency": list.currency, "terminals": terminals, "exactly": found.exactly, "at_least": found.at_least,
            });
            writeln!(out, "{answer:#}")?;
            return Ok(Exit::DONE);
        }
        for (title, rows) in [("Exactly", &found.exactly), ("At least", &found.at_least)] {
            let rows: Vec<Vec<String>> = rows.iter().map(bought_row).collect();
            match rows.is_empty() {
                true => writeln!(out, "{title} {terminals} terminals: no tree of up to three levels\n")?,
                false => writeln!(out, "{title} {terminals} terminals\n{}\n", output::table(&BOUGHT_HEADING, rows, &BOUGHT_RIGHT))?,
            }
        }
        writeln!(
            out,
            "Planes: equal networks side by side. Taper: what terminals of a leaf or pod can send over what its uplinks carry. Free: ports without \
             a cable.\nPrice: switches, cables, optics and adapters, {} of {}. All-to-all: part of the terminals' bandwidth. Left: what one failed \
             switch of\nthe highest level leaves of the bisection and of the all-to-all's rate, traffic shared as is best. --format json has the \
             keys of [network].",
            list.currency, list.date
        )?;
        Ok(Exit::DONE)
    }

    fn prices(&self) -> Result<Prices, Failure> {
        let (name, text) = match &self.prices {
            Some(path) => (path.display().to_string(), read_text(path, "a price file is TOML")?),
            None => ("the example".to_owned(), EXAMPLE.to_owned()),
        };
        Prices::parse(&text).map_err(|problem| Failure::Input(format!("{name}: {problem}")))
    }

    /// The line of a design; for a family without one its largest number of terminals.
    fn row(&self, (family, design): &(&'static str, Option<design::Design>), most: &BTreeMap<&str, u64>) -> Vec<String> {
        let Some(design) = design else {
            let limit = most.get(family).map_or("needs more ports".to_owned(), |terminals| format!("at most {terminals}"));
            return vec![(*family).to_owned(), limit];
        };
        let mut row = vec![
            design.network.clone(),
            design.terminals.to_string(),
            design.routers.to_string(),
            design.ports.to_string(),
            design.ports_used.to_string(),
            format!("{:.1}", design.terminals_per_router),
            design.links.to_string(),
            design.copper.to_string(),
            design.optical.to_string(),
            design.diameter.to_string(),
            design.bisection.map_or("none".to_owned(), |channels| channels.to_string()),
            format!("{:.3}", design.all_to_all),
            design.recommended.as_ref().map_or_else(String::new, RecommendedSchedule::words),
            design
                .recommended
                .as_ref()
                .map_or_else(String::new, |found| format!("{:.3}{}", found.efficiency, if found.unsearched { "*" } else { "" })),
            format!("{:.0}", design.price),
            format!("{:.1}", design.watts / 1000.0),
        ];
        row.extend(self.budget.map(|budget| if design.price <= budget { "within" } else { "above" }.to_owned()));
        row
    }
}

const HEADING: [&str; 16] = [
    "TOPOLOGY",
    "TERMINALS",
    "ROUTERS",
    "PORTS",
    "USED",
    "T/ROUTER",
    "LINKS",
    "COPPER",
    "OPTICAL",
    "DIAMETER",
    "BISECTION",
    "ALL-TO-ALL",
    "SCHEDULE",
    "EFFICIENCY",
    "PRICE",
    "KW",
];

/// The line of a tree of commercial switches.
fn bought_row(bought: &design::PricedTree) -> Vec<String> {
    let left = |part: Option<f64>| part.map_or_else(String::new, |part| format!("{part:.3}"));
    vec![
        bought.family.words().to_owned(),
        format!("{} / {}", bought.switch, bought.breakout),
        bought.planes.to_string(),
        format!("{:.2}", bought.taper),
        bought.terminals.to_string(),
        bought.switches.to_string(),
        bought.spines.to_string(),
        bought.free_ports.to_string(),
        (bought.links + bought.terminal_links).to_string(),
        format!("{:.0}", bought.price),
        format!("{:.0}", bought.price_per_terminal),
        format!("{:.1}", bought.watts / 1000.0),
        format!("{:.3}", bought.all_to_all),
        left(bought.bisection_left),
        left(bought.all_to_all_left),
    ]
}

const BOUGHT_HEADING: [&str; 15] = [
    "TREE",
    "SWITCH / BREAKOUT",
    "PLANES",
    "TAPER",
    "TERMINALS",
    "SWITCHES",
    "SPINES",
    "FREE",
    "CABLES",
    "PRICE",
    "/TERMINAL",
    "KW",
    "ALL-TO-ALL",
    "LEFT: BISECTION",
    "LEFT: ALL-TO-ALL",
];

const BOUGHT_RIGHT: [bool; 15] = [false, false, true, true, true, true, true, true, true, true, true, true, true, true, true];
