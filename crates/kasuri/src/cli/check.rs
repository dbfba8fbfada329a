//! `kasuri check`: validates an experiment, estimates its size, and checks it for deadlocks.

use super::running::{Threads, threads};
use super::{Exit, Failure};
use crate::estimate::{Costs, Total, Work, duration as seconds};
use crate::input::{FolderFiles, KNOWN, read_experiment};
use crate::listing::Listing;
use crate::measure::controller;
use crate::plan::{CLOSED_ESCAPE_PATH_HINT, ErrorList, Plan, Preparer, WaitGraph, holds_buffers, located, seconds_of_runs, since};
use clap::Args;
use kasuri_config::{ConfigErrors, Document, Point, Study};
use kasuri_model::engine::{Engine, EngineError, Method};
use kasuri_model::router::OnMiss;
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::deadlock;
use kasuri_network::predictor;
use kasuri_network::routing::extents::Extents;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Check {
    /// The experiment file
    file: PathBuf,
    /// Sets a key of the file, for example traffic.load=0.3
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// List only the runs: the key of each (for `kasuri run --point`) and the values of the sweep
    #[arg(long)]
    points: bool,
    /// List only the costs of the runs: key, seconds of processor time, MiB of memory and the values of the sweep
    #[arg(long, conflicts_with = "points")]
    costs: bool,
    /// Runs at the same time, for the estimate of the total time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Threads of each run, for the estimate of the total time
    #[arg(long, value_name = "N|auto", value_parser = threads, default_value = "auto")]
    threads: Threads,
}

impl Check {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let (document, _) = read_experiment(&self.file, &self.set)?;
        let files = FolderFiles::next_to(&self.file).with_copies_of(&document)?;
        if self.points {
            return list_points(&Plan::prepare(&document, &files)?, out);
        }
        if self.costs {
            return list_costs(&Listing::of(&document, &files, &Costs::of_this_machine())?, out);
        }
        let sweep = document.sweep()?;
        let mut preparer = Preparer::new(*KNOWN, &document, &files);
        let (mut seen, mut extents) = (PrintedOnce::default(), Extents::default());
        let mut works = Vec::with_capacity(sweep.count());
        let (mut verdict, mut wrong) = (Verdict::Fine, ErrorList::default());
        let costs = Costs::of_this_machine();
        for number in 0..sweep.count() {
            let point = sweep.point(number)?;
            let study = match preparer.study(&point) {
                Ok(study) => study,
                Err(error) => {
                    wrong.note(error)?;
                    continue;
                }
            };
            let engine = preparer.engine(&study);
            let work = Work::of(&study, engine, &mut extents);
            works.push(work);
            if let Some(text) = study.scenario.workload.as_ref().and_then(|closed| seen.workload(describe_workload(closed))) {
                writeln!(out, "{text}")?;
            }
            let holds_buffers = holds_buffers(&study, engine.method());
            if seen.routing(&study, holds_buffers) {
                verdict = verdict.max(describe(&study, holds_buffers, out)?);
            }
            if engine.method() == Method::Formulas && seen.traffic(&point) {
                match costs.seconds(&work) {
                    ..MAX_TRIED_SECONDS => try_formulas(&document, &point, &study, engine)?,
                    long => writeln!(out, "  formulas: not tried here, for they take about {}", seconds(long))?,
                }
            }
        }
        wrong.end()?;
        let together = seconds_of_runs(&costs, &works, self.jobs.map(usize::from), self.threads.count());
        writeln!(out, "{}", describe_costs(&Total::of(&costs, works), together))?;
        let (count, text) = (sweep.count(), verdict.text());
        writeln!(out, "{}: {text}: {count} run{}", self.file.display(), if count == 1 { "" } else { "s" })?;
        Ok(if verdict == Verdict::Fine { Exit::DONE } else { Exit::DEADLOCK_POSSIBLE })
    }
}

/// The verdict on an experiment as a whole, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Fine,
    CanDeadlock,
    CannotDeliver,
}

impl Verdict {
    /// The verdict of a deadlock report, where deadlocks are allowed or not.
    fn of(report: &deadlock::Report, allowed: bool) -> Self {
        match report.unroutable {
            Some(_) => Self::CannotDeliver,
            None if report.is_safe() || allowed => Self::Fine,
            None => Self::CanDeadlock,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Fine => "OK",
            Self::CanDeadlock => "can deadlock",
            Self::CannotDeliver => "cannot deliver every packet",
        }
    }
}

/// Descriptions already printed: each distinct one is printed once.
#[derive(Default)]
struct PrintedOnce {
    /// Also whether messages hold buffers while they wait.
    graphs: Vec<(WaitGraph, bool)>,
    workloads: BTreeSet<Digest>,
    traffic: BTreeSet<Digest>,
}

/// A hash in place of a text: a sweep may have a million texts.
type Digest = [u8; 32];

fn digest(text: &str) -> Digest {
    *blake3::hash(text.as_bytes()).as_bytes()
}

impl PrintedOnce {
    /// The description of a workload, unless already printed.
    fn workload(&mut self, text: String) -> Option<String> {
        self.workloads.insert(digest(&text)).then_some(text)
    }

    /// True if the waiting of packets in this study has not been described yet.
    fn routing(&mut self, study: &Study, holds_buffers: bool) -> bool {
        let graph = WaitGraph::of(&study.scenario);
        // The networks that are gone cannot occur again.
        self.graphs.retain(|(known, _)| known.is_alive());
        let is_new = !self.graphs.iter().any(|(known, held)| *held == holds_buffers && known.is_same(&graph));
        if is_new {
            self.graphs.push((graph, holds_buffers));
        }
        is_new
    }

    /// True if the formulas have not seen this traffic. Its load does not change whether they hold.
    fn traffic(&mut self, point: &Point) -> bool {
        let mut table = point.table.clone();
        ["title", "measure"].into_iter().for_each(|section| {
            table.remove(section);
        });
        if let Some(toml::Value::Table(traffic)) = table.get_mut("traffic") {
            traffic.remove("load");
        }
        self.traffic.insert(digest(&table.to_string()))
    }
}

/// Formulas that take longer are not evaluated: a check is short.
const MAX_TRIED_SECONDS: f64 = 10.0;

/// Evaluates the formulas: only they show whether they apply to the routes, and they are mostly cheap.
fn try_formulas(document: &Document, point: &Point, study: &Study, engine: &dyn Engine) -> Result<(), Failure> {
    let mut controller = controller(study);
    match engine.run(&study.scenario, &mut *controller) {
        Ok(_) => Ok(()),
        Err(EngineError::Refused(refusals)) => Ok(ConfigErrors::check(located(document, point, &refusals))?),
        Err(error) => Err(Failure::Input(format!("{}: {error}", document.name()))),
    }
}

/// One line for each run, separated by tabs: its key and the values that distinguish it.
fn list_points(plan: &Plan<'_>, out: &mut dyn Write) -> Result<Exit, Failure> {
    for run in plan.assignments() {
        let (key, assignments) = run?;
        writeln!(out, "{key}{}{assignments}", if assignments.is_empty() { "" } else { "\t" })?;
    }
    Ok(Exit::DONE)
}

/// One line for each run, separated by tabs: its key, its costs, and the values that distinguish it.
fn list_costs(listing: &Listing<'_>, out: &mut dyn Write) -> Result<Exit, Failure> {
    let costs = Costs::of_this_machine();
    for run in listing.runs() {
        let run = run?;
        write!(out, "{}\t{:.3}\t{:.1}", run.key, costs.seconds(&run.work), costs.memory_mib(&run.work))?;
        writeln!(out, "{}{}", if run.assignments.is_empty() { "" } else { "\t" }, run.assignments)?;
    }
    Ok(Exit::DONE)
}

/// The costs of the runs, their elapsed time `together`, and the basis of the estimate.
fn describe_costs(total: &Total, together: f64) -> String {
    let basis = match total.known_runs {
        0 => "a guess: this machine has finished no run of this kind".to_owned(),
        1 => "by a finished run of this machine".to_owned(),
        runs => format!("by {runs} finished runs of this machine"),
    };
    let each =
        if total.runs == 1 { String::new() } else { format!(" in all, {} to {} each", seconds(total.shortest), seconds(total.longest)) };
    // On one core that is the processor time.
    let here = if together < 0.99 * total.seconds { format!(", {} on this machine", seconds(together)) } else { String::new() };
    format!("cost: about {} of processor time{each}{here}; at most {:.0} MiB of memory ({basis})", seconds(total.seconds), total.memory_mib)
}

/// The largest number of messages to sum up one by one: a second or two of work.
const MAX_COUNTED_MESSAGES: u64 = 1 << 28;

/// The size of a closed workload.
fn describe_workload(closed: &ClosedWorkload) -> String {
    let (messages, longest) = (closed.workload.messages(), closed.workload.longest_message());
    let messages_of = format!("workload: {messages} messages of at most {longest} flits");
    if closed.workload.collective().is_some_and(|collective| collective.is_one_message_a_pair(messages)) {
        let packets = u64::from(longest.div_ceil(closed.parts[0].packet_flits));
        return format!("{messages_of}, in all {} flits in {} packets", messages * u64::from(longest), messages * packets);
    }
    if messages > MAX_COUNTED_MESSAGES {
        return messages_of;
    }
    let (mut flits, mut packets) = (0, 0);
    closed.workload.each_message(&mut |message| {
        flits += u64::from(message.flits);
        packets += u64::from(message.flits.div_ceil(closed.parts[closed.part_of(message.token)].packet_flits));
    });
    format!("{messages_of}, in all {flits} flits in {packets} packets")
}

/// Describes a network with its routing, and its deadlock check.
fn describe(study: &Study, holds_buffers: bool, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let scenario = &study.scenario;
    let network = &scenario.network;
    let terminals = match network.owner_count() {
        Some(owners) => format!("{owners} terminals with {} ports", network.terminal_count()),
        None => format!("{} terminals", network.terminal_count()),
    };
    let counts = format!("{terminals}, {} routers, {} channels", network.router_count(), network.channel_count());
    writeln!(out, "network {}: {counts}", network.name())?;
    if let Some(damage) = network.damage() {
        writeln!(out, "  {}", damage.describe(network))?;
    }
    // A formula for open traffic.
    let zero_load = scenario.workload.is_none().then(|| kasuri_flow::analysis::zero_load(scenario));
    match zero_load.transpose() {
        Ok(None) => {}
        Ok(Some(zero_load)) => {
            let exact = if zero_load.exact { "" } else { " (approximate)" };
            writeln!(out, "  zero load: latency {:.2} cycles{exact}, {:.3} routers on the path", zero_load.packet_latency, zero_load.hops)?;
        }
        Err(reason) => writeln!(out, "  zero load: not known: {reason}")?,
    }
    let allowed = [study.allow_deadlock, !holds_buffers];
    let mut verdict = describe_graph(scenario, allowed, "", out)?;
    for epoch in scenario.changed_epochs() {
        verdict = verdict.max(describe_graph(&scenario.in_epoch(epoch), allowed, &since(epoch), out)?);
    }
    if scenario.router.predictor != predictor::NONE {
        let paths = if scenario.takes_accepted_ports() {
            "the paths that they may take are included; "
        } else {
            "they take the routing's paths only; "
        };
        let held = if scenario.router.on_miss == OnMiss::Forward { "release their buffers" } else { "they hold nothing" };
        writeln!(out, "  predictions: {paths}wrong copies wait for nothing, and {held}")?;
    }
    Ok(verdict)
}

/// Prints whether packets can deadlock, and whether all arrive. Deadlocks may be allowed, and messages may be flows, which hold no buffers.
fn describe_graph(scenario: &Scenario, [allowed, are_flows]: [bool; 2], prefix: &str, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let report = scenario.check_deadlock(deadlock::STEP_BUDGET);
    let why = if scenario.closes_escape_path() && report.verdict != deadlock::Verdict::Acyclic { CLOSED_ESCAPE_PATH_HINT } else { "" };
    let flows = if are_flows && !report.is_safe() { "\nflows hold no buffers and do not wait for each other" } else { "" };
    let text = format!("{prefix}{}{why}{flows}", report.describe(&scenario.network));
    writeln!(out, "  {}", text.replace('\n', "\n  "))?;
    Ok(Verdict::of(&report, allowed || are_flows))
}
