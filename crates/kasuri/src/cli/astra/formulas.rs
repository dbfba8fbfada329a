//! How the answers of formulas are printed.

use super::output;
use kasuri_flow::analysis::programs::{Answer, Busiest, LEFT_OUT, Occurring, PhaseTime};
use kasuri_workload::execution::cluster::{Cluster, Implementation, Topology};
use serde_json::{Value as Json, json};
use std::io::{self, Write};

/// One JSON object.
pub(super) fn as_json(answer: &Answer, cluster: &Cluster) -> Json {
    let whole = |ns: f64| ns.round() as u64;
    let npus: Vec<Json> = (0_u32..)
        .zip(&answer.npus)
        .map(|(npu, times)| {
            json!({
                "npu": npu,
                "finish_ns": whole(times.finish_ns),
                "compute_ns": whole(times.compute_ns),
                "host_ns": whole(times.host_ns),
                "collective_ns": whole(times.collective_ns),
                "message_ns": whole(times.message_ns),
            })
        })
        .collect();
    let phase = |phase: &PhaseTime| {
        json!({
            "dimension": phase.dimension,
            "operation": phase.pattern.name(),
            "algorithm": algorithm(phase.implementation),
            "npus": phase.npus,
            "steps": phase.steps,
            "latency_ns": phase.latency_ns,
            "serialisation_ns": phase.serialisation_ns,
            "endpoint_ns": phase.endpoint_ns,
            "time_ns": phase.time_ns,
        })
    };
    let collective = |occurring: &Occurring| {
        json!({
            "operation": occurring.gathering.operation.name(),
            "group": occurring.gathering.group,
            "npus": occurring.gathering.members.len(),
            "bytes": occurring.gathering.bytes,
            "times": occurring.times,
            "chunks": occurring.time.chunks,
            "time_ns": occurring.time.time_ns,
            "phases": occurring.time.phases.iter().map(phase).collect::<Vec<_>>(),
        })
    };
    let busiest = answer.busiest.map(|busiest| {
        let Busiest { link, busy_ns } = busiest;
        json!({"npu": link.npu, "dimension": link.dimension, "link": name_of_link(&busiest, cluster), "busy_ns": busy_ns})
    });
    json!({
        "npus": npus,
        "collectives": answer.collectives.iter().map(collective).collect::<Vec<_>>(),
        "busiest_link": busiest,
        "bound_ns": answer.bound_ns,
        "not_modelled": LEFT_OUT,
    })
}

/// Tables and sentences.
pub(super) fn print(answer: &Answer, cluster: &Cluster, out: &mut dyn Write) -> io::Result<()> {
    let whole = |ns: f64| format!("{ns:.0}");
    let npus = (0_u32..).zip(&answer.npus).map(|(npu, times)| {
        let all = [times.finish_ns, times.compute_ns, times.host_ns, times.collective_ns, times.message_ns];
        [npu.to_string()].into_iter().chain(all.map(whole)).collect()
    });
    let heads = ["NPU", "FINISH, NS", "COMPUTING", "ON THE HOST", "COLLECTIVES", "MESSAGES"];
    writeln!(out, "{}", output::table(&heads, npus.collect(), &[true; 6]))?;
    if !answer.collectives.is_empty() {
        let rows = answer.collectives.iter().flat_map(rows).collect();
        let heads = [
            "COLLECTIVE",
            "BYTES",
            "TIMES",
            "TIME, NS",
            "CHUNKS",
            "PHASE",
            "DIMENSION",
            "ALGORITHM",
            "NPUS",
            "STEPS",
            "LATENCY",
            "SERIALISATION",
            "ENDPOINT",
        ];
        let right = [false, true, true, true, true, false, true, false, true, true, true, true, true];
        writeln!(out, "\n{}", output::table(&heads, rows, &right))?;
    }
    if let Some(busiest) = answer.busiest {
        let (link, busy) = (name_of_link(&busiest, cluster), whole(busiest.busy_ns));
        writeln!(out, "\nbusiest link: {link}, in dimension {}: {busy} ns", busiest.link.dimension)?;
    }
    writeln!(out, "no run ends before: {} ns", whole(answer.bound_ns))?;
    writeln!(out, "left out: {}", LEFT_OUT.join("; "))
}

/// A row for each phase; the first also has the values of the whole collective.
fn rows(occurring: &Occurring) -> Vec<Vec<String>> {
    let whole = |ns: f64| format!("{ns:.0}");
    let row = |(number, phase): (usize, &PhaseTime)| {
        let of_all = [
            occurring.gathering.operation.name().to_owned(),
            occurring.gathering.bytes.to_string(),
            occurring.times.to_string(),
            whole(occurring.time.time_ns),
            occurring.time.chunks.to_string(),
        ];
        let of_all = of_all.map(|text| if number == 0 { text } else { String::new() });
        let own = [
            phase.pattern.name().to_owned(),
            phase.dimension.map_or("-".to_owned(), |dimension| dimension.to_string()),
            algorithm(phase.implementation),
            phase.npus.to_string(),
            phase.steps.to_string(),
            whole(phase.latency_ns),
            whole(phase.serialisation_ns),
            whole(phase.endpoint_ns),
        ];
        of_all.into_iter().chain(own).collect()
    };
    occurring.time.phases.iter().enumerate().map(row).collect()
}

/// As system files call it.
fn algorithm(implementation: Implementation) -> String {
    match implementation {
        Implementation::Ring => "ring".to_owned(),
        Implementation::Direct { window: None } => "direct".to_owned(),
        Implementation::Direct { window: Some(window) } => format!("direct{window}"),
        Implementation::HalvingDoubling => "halvingDoubling".to_owned(),
        Implementation::DoubleBinaryTree => "doubleBinaryTree".to_owned(),
    }
}

fn name_of_link(busiest: &Busiest, cluster: &Cluster) -> String {
    let link = busiest.link;
    match (cluster.dimensions[link.dimension as usize].topology, link.number) {
        (Topology::Ring, 0) => format!("from NPU {} up the ring", link.npu),
        (Topology::Ring, _) => format!("from NPU {} down the ring", link.npu),
        (Topology::FullyConnected, number) => {
            let dimensions = &cluster.dimensions[..=link.dimension as usize];
            let size = dimensions[link.dimension as usize].npus;
            let stride = dimensions.iter().map(|dimension| dimension.npus).product::<u32>() / size;
            let place = link.npu / stride % size;
            let to = link.npu - place * stride + (place + number + 1) % size * stride;
            format!("from NPU {} to NPU {to}", link.npu)
        }
        (Topology::Switch, 0) => format!("from NPU {} to the switch", link.npu),
        (Topology::Switch, _) => format!("from the switch to NPU {}", link.npu),
    }
}
