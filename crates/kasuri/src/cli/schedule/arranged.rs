//! Collectives other than the all-to-all: counted, proved, printed.

use super::{Exit, Export, Failure, Schedule, names, output};
use kasuri_formats::hosts::Hosts;
use kasuri_formats::{goal, mpi, msccl};
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;
use kasuri_workload::collective::{MessageSize, Parameters};
use kasuri_workload::schedule::arranged::{Arranged, arrange};
use kasuri_workload::units::Units;
use kasuri_workload::workload::program::MAX_OPERATIONS;
use kasuri_workload::workload::rounds::{Options, Rounds};
use serde_json::{Value as Json, json};
use std::io::Write;

impl Schedule {
    pub(super) fn arrange(
        &self,
        network: &Network,
        routing: &dyn Routing,
        hosts: Option<&Hosts>,
        units: Units,
        out: &mut dyn Write,
    ) -> Result<Exit, Failure> {
        let operation = self.collective.operation();
        let job = self.job(hosts);
        let found = arrange(operation, self.schedule.as_deref(), network, routing, &job)
            .map_err(|error| Failure::Input(format!("{}: {error}", self.network.display())))?;
        match self.export {
            None => writeln!(out, "{}", table(network, &found))?,
            Some(Export::Csv) => write_csv(&found, out)?,
            Some(Export::Json) => write_json(network, &found, out)?,
            Some(Export::Goal) => write_goal(found, operation, self.message_bytes, out)?,
            Some(Export::Msccl) => {
                let parameters = parameters(&found);
                let name = format!("{operation}-{}-{}", found.entry.schedule, found.terminals.len());
                let algorithm = msccl::compose(&name, operation, &*found.collective, &parameters).map_err(Failure::Input)?;
                write!(out, "{}", msccl::write(&algorithm))?;
            }
            Some(Export::Ranks) => match hosts {
                None => found.terminals.iter().try_for_each(|terminal| writeln!(out, "{terminal}"))?,
                Some(hosts) => names(hosts, &found.terminals)?.iter().try_for_each(|name| writeln!(out, "{name}"))?,
            },
            Some(Export::Mpi) => {
                let hosts = hosts.map_or(Ok(Vec::new()), |hosts| names(hosts, &found.terminals))?;
                let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
                let min_bytes = self.min_bytes.unwrap_or_else(|| mpi::min_bytes(units));
                let bytes = mpi::write_rounds(operation, &*found.collective, &parameters(&found), &hosts, min_bytes);
                out.write_all(&bytes.map_err(|error| Failure::Input(error.to_string()))?)?;
            }
        }
        Ok(Exit::DONE)
    }
}

fn parameters(found: &Arranged) -> Parameters {
    Parameters { ranks: found.terminals.len() as u32, root: found.root, size: MessageSize::of_flits(u64::from(found.units)) }
}

/// The lower bound over the time of the phases.
fn efficiency(found: &Arranged) -> Option<f64> {
    found.least.map(|least| least as f64 / found.time().max(1) as f64)
}

fn table(network: &Network, found: &Arranged) -> String {
    let unit = if found.units == 1 { "blocks" } else { "parts of the message, one for each rank" };
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let rows = [
        ("network", network.name().to_owned()),
        ("algorithm", found.entry.schedule.to_owned()),
        ("order of ranks", found.order.to_owned()),
        ("terminals", found.terminals.len().to_string()),
        ("phases", found.loads.len().to_string()),
        ("every rank ends with what it should", "proved".to_owned()),
        ("messages on a channel in a phase, at most", found.max_load().to_string()),
        ("unit", unit.to_owned()),
        ("units on the busiest channels of all phases", found.time().to_string()),
        ("units that some rank has to send or receive", or_none(found.least.map(|least| least.to_string()))),
        ("efficiency: the one over the other", or_none(efficiency(found).map(|efficiency| format!("{efficiency:.3}")))),
    ];
    output::table(&["QUANTITY", "VALUE"], rows.map(|(name, value)| vec![name.to_owned(), value]).to_vec(), &[])
}

fn write_csv(found: &Arranged, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "phase,source,destination,rank,units")?;
    for phase in 0..found.collective.rounds() {
        for (rank, source) in (0..).zip(&found.terminals) {
            if let Some(transfer) = found.collective.send(rank, phase) {
                writeln!(out, "{phase},{source},{},{rank},{}", found.terminals[transfer.peer as usize], transfer.flits)?;
            }
        }
    }
    Ok(())
}

fn write_json(network: &Network, found: &Arranged, out: &mut dyn Write) -> Result<(), Failure> {
    let ranks = 0..found.terminals.len() as u32;
    let message = |rank: u32, phase: u32| {
        let transfer = found.collective.send(rank, phase)?;
        let blocks: Vec<Json> = found.collective.blocks(rank, phase).iter().map(|block| json!([block.origin, block.part])).collect();
        Some(json!({"from": rank, "to": transfer.peer, "units": transfer.flits, "blocks": blocks}))
    };
    let phase = |phase: u32| -> Vec<Json> { ranks.clone().filter_map(|rank| message(rank, phase)).collect() };
    let phases: Vec<Vec<Json>> = (0..found.collective.rounds()).map(phase).collect();
    let answer = json!({
        "network": network.name(),
        "collective": found.entry.collective,
        "algorithm": found.entry.schedule,
        "order": found.order,
        "root": found.root,
        "units_of_a_message": found.units,
        "loads": found.loads.iter().map(|load| load.messages).collect::<Vec<_>>(),
        "units": found.loads.iter().map(|load| load.units).collect::<Vec<_>>(),
        "time_units": found.time(),
        "least_units": found.least,
        "terminals": found.terminals.iter().map(|terminal| terminal.0).collect::<Vec<_>>(),
        "phases": phases,
    });
    writeln!(out, "{answer}")?;
    Ok(())
}

/// Each rank sends the message of a phase when that of the phase before has left and arrived.
fn write_goal(found: Arranged, operation: &'static str, message_bytes: u32, out: &mut dyn Write) -> Result<(), Failure> {
    let operations = 2 * found.terminals.len() as u64 * found.loads.len() as u64;
    if operations > MAX_OPERATIONS as u64 {
        let problem = format!("--export goal: the program would have {operations} operations; it may have {MAX_OPERATIONS}");
        return Err(Failure::Input(problem));
    }
    // A flit of the program is a byte.
    let size = MessageSize::of_flits(u64::from(message_bytes));
    let parameters = Parameters { size, ..parameters(&found) };
    let collective = found.entry.build(&parameters).map_err(|error| Failure::Input(format!("--message-bytes: {operation}: {error}")))?;
    let rounds = Rounds::new(collective, found.terminals, &Options::default());
    let description = rounds.and_then(|rounds| rounds.description(1)).map_err(|error| Failure::Other(error.to_string()))?;
    write!(out, "{}", goal::write(&description))?;
    Ok(())
}
