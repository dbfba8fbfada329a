//! The common part of all commands that run an experiment: options, the runs, and the output in the chosen form.

use super::{Exit, Failure, output};
use crate::busiest::busiest;
use crate::estimate::Costs;
use crate::fidelity::{Comparison, side_by_side};
use crate::input::KNOWN;
use crate::plan::{Plan, RunError, RunOptions, Summary};
use crate::results::{self, RunRow};
use crate::slowdown::LoneRuns;
use crate::spread::{PERCENTILES, Spread, spreads};
use crate::stop::Stop;
use crate::tally::Tally;
use clap::{Args, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;
use kasuri_config::{CASE, Document};
use kasuri_model::engine::Method;
use kasuri_network::topology::Files;
use serde_json::Value;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

// Options of the commands that run an experiment. A doc comment would replace the command's description in its help.
#[derive(Clone, Debug, Args)]
pub(super) struct Running {
    /// The folder for results; existing runs are not computed again [default: out/<name of the file>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs at the same time; with an executor, worker processes or jobs [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) jobs: Option<u16>,
    /// Threads of each run; "auto": all that speed up the run, once fewer runs than cores are left; flows use at most two, or one for each
    /// user
    #[arg(long, value_name = "N|auto", value_parser = threads, default_value = "auto")]
    threads: Threads,
    /// The form of the results on standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(super) format: Format,
    /// Check the conservation of flits and credits while running
    #[arg(long)]
    pub(super) paranoid: bool,
    /// Write the timeline of the endpoints, or of the ranks of a workload (compute, send, receive, wait), as a file for trace viewers such
    /// as Perfetto (JSON; gzipped if its name ends in .gz); the experiment must have exactly one run
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
}

/// The texts of an experiment for its folder of results.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    /// The experiment file as read.
    pub(super) input: String,
    /// The common source text of the experiments of one table, if it differs from `input`.
    pub(super) origin: Option<String>,
    /// True if the rows join those of the same origin.
    pub(super) joins: bool,
}

impl From<String> for Texts {
    fn from(input: String) -> Self {
        Self { input, origin: None, joins: false }
    }
}

/// A number of threads, or `None` for the program's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threads(Option<usize>);

impl Threads {
    /// The number, if one was given.
    pub(super) fn count(self) -> Option<usize> {
        self.0
    }
}

/// Parses `--threads`.
pub(super) fn threads(text: &str) -> Result<Threads, String> {
    let wrong = || "it must be a whole number from 1 to 4096, or auto".to_owned();
    match text {
        "auto" => Ok(Threads(None)),
        _ => text.parse().ok().filter(|count| (1..=4096).contains(count)).map(|count| Threads(Some(count))).ok_or_else(wrong),
    }
}

/// The form of the results on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// The main columns, for people
    Table,
    /// {"runs": [...]}, every column
    Json,
    /// Every column
    Csv,
}

impl Format {
    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }
}

/// Writes a text into a file, packed if its name ends in `.gz`.
fn write_packed(file: &Path, text: &str) -> io::Result<()> {
    if file.extension().is_none_or(|ending| ending != "gz") {
        return fs::write(file, text);
    }
    let mut packed = GzEncoder::new(fs::File::create(file)?, Compression::default());
    packed.write_all(text.as_bytes())?;
    packed.finish().map(drop)
}

impl Running {
    /// The threads of each run, if their number was given.
    pub(super) fn threads(&self) -> Option<usize> {
        self.threads.count()
    }

    /// The folder for results; `name` is its default name.
    pub(super) fn out_folder(&self, name: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| PathBuf::from("out").join(name))
    }

    /// Computes the missing runs of an experiment. `name` is the default name of the folder for results, `input` are the texts to keep.
    pub(super) fn compute(
        &self,
        document: &Document,
        files: &(dyn Files + Sync),
        name: &str,
        input: impl Into<Texts>,
        point: Option<&str>,
    ) -> Result<Summary, Failure> {
        self.compute_plan(&Plan::prepare(document, files)?, name, input, point)
    }

    /// As [`Running::compute`], for checked runs.
    fn compute_plan(&self, plan: &Plan<'_>, name: &str, input: impl Into<Texts>, point: Option<&str>) -> Result<Summary, Failure> {
        let Texts { input, origin, joins } = input.into();
        let options = RunOptions {
            jobs: self.jobs.map(usize::from),
            threads: self.threads.count(),
            out: Some(self.out_folder(name)),
            point: point.map(str::to_owned),
            paranoid: self.paranoid,
            progress: true,
            tally: Tally::default(),
            stop: Stop::on_signals().map_err(|error| Failure::Other(format!("signals cannot be awaited: {error}")))?,
            input: Some(input),
            origin,
            joins,
            costs: Costs::of_this_machine(),
        };
        if let Some(file) = &self.timeline {
            let trace = plan.timeline(point)?.chrome_trace();
            write_packed(file, &trace).map_err(|error| Failure::Other(format!("{}: cannot be written: {error}", file.display())))?;
        }
        let summary = plan.run(&options)?;
        if !self.paranoid {
            Costs::learn_on_this_machine(&summary.measured, summary.memory);
        }
        say(&summary.messages);
        Ok(summary)
    }

    /// Runs an experiment and prints its results in the chosen form.
    pub(super) fn run(
        &self,
        document: &Document,
        files: &(dyn Files + Sync),
        name: &str,
        input: impl Into<Texts>,
        point: Option<&str>,
        out: &mut dyn Write,
    ) -> Result<Exit, Failure> {
        let summary = self.compute(document, files, name, input, point)?;
        print(&summary.rows, Some(&self.out_folder(name)), self.format, out)?;
        Ok(Exit(summary.exit_status()))
    }

    /// Prints rows in the chosen form; `name` is the default folder of results.
    pub(super) fn print(&self, rows: &[RunRow], name: &str, out: &mut dyn Write) -> Result<(), Failure> {
        print(rows, Some(&self.out_folder(name)), self.format, out)
    }

    /// As [`Running::run`], for checked runs.
    pub(super) fn run_plan(&self, plan: &Plan<'_>, name: &str, input: impl Into<Texts>, out: &mut dyn Write) -> Result<Exit, Failure> {
        let summary = self.compute_plan(plan, name, input, None)?;
        print(&summary.rows, Some(&self.out_folder(name)), self.format, out)?;
        Ok(Exit(summary.exit_status()))
    }
}

/// Prints messages on standard error.
pub(super) fn say(messages: &[String]) {
    for message in messages {
        let _ = writeln!(io::stderr(), "kasuri: {message}");
    }
}

/// Prints rows in the chosen form. If the folder of results is known and there are few runs, a table of the busiest channels follows.
pub(super) fn print(rows: &[RunRow], folder: Option<&Path>, format: Format, out: &mut dyn Write) -> Result<(), Failure> {
    match format {
        Format::Table => {
            writeln!(out, "{}", table(rows))?;
            hints(rows).iter().try_for_each(|hint| writeln!(out, "{hint}"))?;
            if let Some(users) = users_table(rows) {
                writeln!(out, "\n{users}")?;
            }
            if let Some(busiest) = folder.and_then(|folder| busiest_table(folder, rows)) {
                writeln!(out, "\n{busiest}")?;
            }
            let spreads = spreads(rows);
            if !spreads.is_empty() {
                writeln!(out, "\n{}", spread_table(&spreads))?;
            }
            let comparisons = side_by_side(rows);
            if !comparisons.is_empty() {
                writeln!(out, "\n{}", comparison_table(&comparisons))?;
            }
        }
        Format::Json => {
            results::write_json(rows, false, &mut *out)?;
            writeln!(out)?;
        }
        Format::Csv => results::write_csv(rows, out)?,
    }
    Ok(())
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Config(errors) => errors.into(),
            error if error.exit_status() == 2 => Self::Input(error.to_string()),
            error => Self::Other(error.to_string()),
        }
    }
}

/// The columns of the printed table.
const TABLE_COLUMNS: [&str; 12] = [
    "status",
    SEARCH_ANSWER,
    "offered_load",
    "accepted_throughput_mean",
    "self_share",
    "packet_latency_mean",
    "network_latency_mean",
    "hops_mean",
    "completion_time",
    "efficiency",
    "packets_dropped",
    "packets_lost",
];

/// The answer of a search. Formulas give it without a search.
const SEARCH_ANSWER: &str = "saturation_load";

/// The hints under the table: each one once, with the number of its runs if there are several.
fn hints(rows: &[RunRow]) -> Vec<String> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for hint in rows.iter().map(|row| row.text("hint")).filter(|hint| !hint.is_empty()) {
        match found.iter_mut().find(|(known, _)| *known == hint) {
            Some((_, runs)) => *runs += 1,
            None => found.push((hint, 1)),
        }
    }
    let of_runs = |runs: usize| if rows.len() == 1 { String::new() } else { format!(" ({runs} of {} runs)", rows.len()) };
    found.into_iter().map(|(hint, runs)| format!("hint: {hint}{}", of_runs(runs))).collect()
}

/// True if a column of the printed table has a value worth showing in this row. Zeros are not: a share of self-traffic, or losses.
fn answers(row: &RunRow, name: &str) -> bool {
    match name {
        SEARCH_ANSWER => !of_formulas(row) && !row.get(name).is_null(),
        "self_share" | "packets_dropped" | "packets_lost" => row.number(name) > Some(0.0),
        _ => !row.get(name).is_null(),
    }
}

/// True for a row of formulas.
fn of_formulas(row: &RunRow) -> bool {
    KNOWN.engine(row.text("engine")).is_some_and(|engine| engine.method() == Method::Formulas)
}

/// A value of a row in readable form; with the half-width of its 95 % confidence interval, if known.
fn shown(row: &RunRow, name: &str) -> String {
    let value = row.number(name).map_or_else(|| text(row.get(name)), number);
    let half_width = name.strip_suffix("_mean").and_then(|name| row.number(&format!("{name}_ci95")));
    half_width.map_or(value.clone(), |half_width| format!("{value} ± {}", number(half_width)))
}

/// A value that is not a number: names without quotes, lists and tables as in the experiment file.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(name) => name.clone(),
        Value::Array(values) => format!("[{}]", values.iter().map(text).collect::<Vec<_>>().join(", ")),
        Value::Object(table) => {
            let pairs: Vec<String> = table.iter().map(|(key, value)| format!("{key} = {}", text(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        other => other.to_string(),
    }
}

/// The inputs that distinguish runs.
fn varying(rows: &[RunRow]) -> impl Iterator<Item = &str> {
    let varies = |name: &str| rows.iter().any(|row| row.get(name) != rows[0].get(name));
    results::names(rows).into_iter().filter(move |name| (results::is_input(name) || *name == "engine") && varies(name))
}

/// A column of the table: its heading, and the value of each row.
struct TableColumn<'a> {
    heading: String,
    value: Box<dyn Fn(&RunRow) -> String + 'a>,
}

impl<'a> TableColumn<'a> {
    fn plain(name: &'a str) -> Self {
        Self { heading: name.to_owned(), value: Box::new(move |row| shown(row, name)) }
    }

    /// The column and, where the length of a cycle is known, the same as time, in the unit that fits the longest one.
    fn with_time(name: &'a str, rows: &[RunRow]) -> Vec<Self> {
        let in_ns = format!("{name}_ns");
        let longest = rows.iter().filter_map(|row| row.number(&in_ns)).reduce(f64::max);
        let Some(longest) = longest else { return vec![Self::plain(name)] };
        let (unit, of_ns) = match longest {
            ..1e4 => ("ns", 1.0),
            1e4..1e7 => ("us", 1e3),
            _ => ("ms", 1e6),
        };
        let time = move |row: &RunRow| row.number(&in_ns).map_or_else(String::new, |time| number(time / of_ns));
        vec![Self::plain(name), Self { heading: format!("{name} ({unit})"), value: Box::new(time) }]
    }
}

/// The columns of users in the printed table.
const USER_TABLE_COLUMNS: [&str; 7] =
    ["nodes", "offered_load", "accepted_throughput", "packet_latency_mean", "packet_latency_max", "completion_time", "foreign_packets"];

/// One line for each user of each run, if there are users.
fn users_table(rows: &[RunRow]) -> Option<String> {
    let inputs: Vec<&str> = varying(rows).collect();
    let alone = LoneRuns::of(rows);
    let of_user = |row: &RunRow, user: &Value| -> Vec<String> {
        let name = user["name"].as_str().unwrap_or_default().to_owned();
        let or_empty = |value: Option<f64>| value.map_or_else(String::new, number);
        let columns = USER_TABLE_COLUMNS.map(|column| or_empty(user[column].as_f64()));
        let slowdown = or_empty(alone.slowdown(row, &name));
        inputs.iter().map(|input| shown(row, input)).chain([name]).chain(columns).chain([slowdown]).collect()
    };
    let users = |row: &RunRow| row.get("users").as_array().cloned().unwrap_or_default();
    let mut lines: Vec<_> = rows
        .iter()
        .flat_map(|row| users(row).into_iter().filter(|user| user["runs"] == true).map(|user| of_user(row, &user)).collect::<Vec<_>>())
        .collect();
    let mut heading: Vec<&str> = inputs.iter().copied().chain(["user"]).chain(USER_TABLE_COLUMNS).chain(["slowdown"]).collect();
    if lines.iter().all(|line| line.last().is_none_or(String::is_empty)) {
        heading.pop();
        lines.iter_mut().for_each(|line| drop(line.pop()));
    }
    let right: Vec<bool> = heading.iter().map(|name| !matches!(*name, "user" | "engine" | CASE)).collect();
    (!lines.is_empty()).then(|| output::table(&heading, lines, &right))
}

/// The largest number of runs with their busiest channels printed.
const MAX_BUSIEST_RUNS: usize = 3;

/// Printed channels of each run.
const BUSIEST_CHANNELS: usize = 5;

/// One line for each of the busiest channels of each run, if there are few runs.
fn busiest_table(folder: &Path, rows: &[RunRow]) -> Option<String> {
    if rows.len() > MAX_BUSIEST_RUNS {
        return None;
    }
    let inputs: Vec<&str> = varying(rows).collect();
    let lines: Vec<Vec<String>> = rows
        .iter()
        .flat_map(|row| busiest(folder, row, BUSIEST_CHANNELS).into_iter().map(move |busy| (row, busy)))
        .map(|(row, busy)| {
            let run = row.key().chars().take(8).collect();
            let inputs = inputs.iter().map(|input| shown(row, input));
            [run].into_iter().chain(inputs).chain([busy.channel, format!("{:.4}", busy.utilisation)]).collect()
        })
        .collect();
    let heading: Vec<&str> = ["run"].into_iter().chain(inputs.iter().copied()).chain(["busiest channels", "utilisation"]).collect();
    let right: Vec<bool> = heading.iter().map(|name| !matches!(*name, "run" | "busiest channels" | "engine")).collect();
    (!lines.is_empty()).then(|| output::table(&heading, lines, &right))
}

/// One line for each run: the values that distinguish it, then the columns of [`TABLE_COLUMNS`] with a value in some run.
fn table(rows: &[RunRow]) -> String {
    let varying: Vec<&str> = varying(rows).collect();
    let is_known = |name: &str| rows.iter().any(|row| !row.get(name).is_null());
    let inputs = results::names(rows).into_iter().filter(|name| varying.contains(name) || *name == "traffic.load" && is_known(name));
    let answers = TABLE_COLUMNS
        .into_iter()
        .filter(|name| rows.iter().any(|row| answers(row, name)))
        .flat_map(|name| TableColumn::with_time(name, rows));
    let columns: Vec<TableColumn<'_>> = inputs.map(TableColumn::plain).chain(answers).collect();
    let lines = rows.iter().map(|row| columns.iter().map(|column| (column.value)(row)).collect()).collect();
    let headings: Vec<&str> = columns.iter().map(|column| column.heading.as_str()).collect();
    output::table(&headings, lines, &headings.iter().map(|name| !matches!(*name, "status" | "engine" | CASE)).collect::<Vec<_>>())
}

fn number(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number}") } else { format!("{number:.4}") }
}

/// One line for each quantity over the drawn faults: its percentiles, and of how many runs.
fn spread_table(spreads: &[Spread]) -> String {
    let inputs = spreads[0].inputs.iter().map(|(name, _)| name.as_str());
    let percentiles: Vec<String> = PERCENTILES.iter().map(|percent| format!("p{percent}")).collect();
    let heading: Vec<&str> = inputs.chain(["draws", "quantity"]).chain(percentiles.iter().map(String::as_str)).collect();
    let line = |spread: &Spread| {
        let value = |value: &Value| value.as_f64().map_or_else(|| text(value), number);
        let inputs = spread.inputs.iter().map(|(_, input)| value(input));
        inputs.chain([spread.runs.to_string(), spread.quantity.to_owned()]).chain(spread.values.map(number)).collect()
    };
    let right: Vec<bool> = heading.iter().map(|name| !matches!(*name, "quantity" | "engine" | CASE)).collect();
    output::table(&heading, spreads.iter().map(line).collect(), &right)
}

/// One line for each quantity of the same question: every engine's answer, and how far it is from the finest engine's.
fn comparison_table(comparisons: &[Comparison]) -> String {
    let names = comparisons[0].inputs.iter().map(|(name, _)| name.as_str());
    let varies =
        |name: &str| comparisons.iter().any(|one| one.inputs.iter().any(|input| input.0 == name && !comparisons[0].inputs.contains(input)));
    let varying: Vec<&str> = names.filter(|name| varies(name)).collect();
    let engines: Vec<_> = comparisons[0].answers.iter().map(|&(engine, _)| engine).collect();
    let differences: Vec<String> = engines.iter().map(|engine| format!("{engine} differs by")).collect();
    let mut heading = varying.clone();
    heading.push("quantity");
    heading.extend(engines.iter().copied());
    heading.extend(differences.iter().take(engines.len() - 1).map(String::as_str));
    let line = |one: &Comparison| {
        let inputs =
            varying.iter().map(|name| one.inputs.iter().find(|input| input.0 == *name).map_or_else(String::new, |input| text(&input.1)));
        let answer = |engine| one.answers.iter().find(|answer| answer.0 == engine).and_then(|answer| answer.1);
        let answers = engines.iter().map(|&engine| answer(engine).map_or_else(String::new, number));
        let percent = |engine| one.difference(engine).map_or_else(String::new, |part| format!("{:+.2} %", 100.0 * part));
        let differences = engines.iter().take(engines.len() - 1).map(|&engine| percent(engine));
        inputs.chain([one.quantity.to_owned()]).chain(answers).chain(differences).collect()
    };
    let right: Vec<bool> = heading.iter().map(|name| *name != "quantity").collect();
    output::table(&heading, comparisons.iter().map(line).collect(), &right)
}
