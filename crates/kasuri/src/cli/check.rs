//! `kasuri check`: is the experiment right, how large is it, can it deadlock?

use super::{Exit, Failure};
use crate::input::{FolderFiles, KNOWN, read_experiment};
use crate::plan::Plan;
use clap::Args;
use kasuri_model::config::{Preparation, Study};
use kasuri_model::deadlock;
use kasuri_model::network::Network;
use kasuri_model::predictor;
use kasuri_model::routing::Routing;
use kasuri_model::scenario::ClosedWorkload;
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
    /// Only list the runs: the key of each (for `kasuri run --point`) and the values of the sweep
    #[arg(long)]
    points: bool,
}

impl Check {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let (document, _) = read_experiment(&self.file, &self.set)?;
        let files = FolderFiles::beside(&self.file);
        if self.points {
            return list_points(&Plan::prepare(&document, &files)?, out);
        }
        let points = document.points()?;
        let mut preparation = Preparation::new(&document, &files, *KNOWN);
        let mut seen: Vec<(Arc<Network>, Arc<dyn Routing>)> = Vec::new();
        let mut workloads: Vec<String> = Vec::new();
        let mut exit = Exit::DONE;
        for point in &points {
            let study = preparation.study(point)?;
            let (network, routing) = (&study.scenario.network, &study.scenario.routing);
            let workload = study.scenario.workload.as_ref().map(describe_workload).filter(|text| !workloads.contains(text));
            if let Some(text) = workload {
                writeln!(out, "{text}")?;
                workloads.push(text);
            }
            if seen.iter().any(|(known, by)| Arc::ptr_eq(known, network) && Arc::ptr_eq(by, routing)) {
                continue;
            }
            seen.push((Arc::clone(network), Arc::clone(routing)));
            if !describe(&study, out)? && !study.allow_deadlock {
                exit = Exit::DEADLOCK_POSSIBLE;
            }
        }
        let verdict = if exit == Exit::DONE { "right" } else { "can deadlock" };
        writeln!(out, "{}: {verdict}; {} run{}", self.file.display(), points.len(), if points.len() == 1 { "" } else { "s" })?;
        Ok(exit)
    }
}

/// One line for each run: its key and what distinguishes it, separated by tabs.
fn list_points(plan: &Plan<'_>, out: &mut dyn Write) -> Result<Exit, Failure> {
    for prepared in plan.points() {
        write!(out, "{}", prepared.key())?;
        for (key, value) in &prepared.point.assignments {
            write!(out, "\t{key}={value}")?;
        }
        writeln!(out)?;
    }
    Ok(Exit::DONE)
}

/// What a closed workload comes to.
fn describe_workload(closed: &ClosedWorkload) -> String {
    let (mut flits, mut packets) = (0, 0);
    closed.workload.each_message(&mut |message| {
        flits += u64::from(message.flits);
        packets += u64::from(message.flits.div_ceil(closed.packet_flits));
    });
    let (messages, longest) = (closed.workload.messages(), closed.workload.longest_message());
    format!("workload: {messages} messages of at most {longest} flits, in all {flits} flits in {packets} packets")
}

/// Describes a network with its routing. Is it free of deadlock?
fn describe(study: &Study, out: &mut dyn Write) -> Result<bool, Failure> {
    let scenario = &study.scenario;
    let network = &scenario.network;
    let counts =
        format!("{} terminals, {} routers, {} channels", network.terminal_count(), network.router_count(), network.channel_count());
    writeln!(out, "network {}: {counts}", network.name())?;
    // A formula for open traffic.
    let zero_load = scenario.workload.is_none().then(|| kasuri_flow::analysis::zero_load(scenario));
    match zero_load.transpose() {
        Ok(None) => {}
        Ok(Some(zero_load)) => {
            let exact = if zero_load.exact { "" } else { " (approximate)" };
            writeln!(out, "  zero load: latency {:.2} cycles{exact}, {:.3} routers on the way", zero_load.packet_latency, zero_load.hops)?;
        }
        Err(reason) => writeln!(out, "  zero load: not known: {reason}")?,
    }
    let report = deadlock::check(network, &*scenario.possible_ways(), &scenario.virtual_channel_ranges());
    writeln!(out, "  {}", report.describe(network).replace('\n', "\n  "))?;
    if scenario.router.predictor != predictor::NONE {
        let ways = if scenario.takes_accepted_ports() {
            "the ways that they may take are included; "
        } else {
            "they take the routing's ways only; "
        };
        writeln!(out, "  predictions: {ways}wrong copies hold nothing and wait for nothing")?;
    }
    Ok(report.is_safe())
}
