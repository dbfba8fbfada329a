//! The multi-layer full mesh, with as many phases as a terminal has partners.

use super::layered_mesh::LayeredMesh;
use super::product::{corner, factors};
use super::{Entry, Schedule, ScheduleError};
use crate::id::TerminalId;
use crate::network::Network;
use crate::routing::Routing;

const NAME: &str = "mlfm";

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "multi-layer full mesh: no contention in N - 1 phases; some layers, positions and places on the leaves, or all",
    source: "construction and proof: kasuri_model, schedule::layered_mesh; for routing `minimal` with tie = \"destination\"",
    fits: |network| shape(network).is_some(),
    choose,
    build,
};

/// Layers, positions, terminals a leaf.
fn shape(network: &Network) -> Option<[u32; 3]> {
    network.labels().attribute("mlfm")?.try_into().ok()
}

/// Does the construction work for so many layers, positions and places on the leaves, in a network of `all` positions?
fn works([layers, positions, terminals]: [u32; 3], all: u32) -> bool {
    match (positions, layers) {
        (1, 1) => true,
        (1, _) => terminals < all,
        _ => terminals < positions,
    }
}

/// Of all shapes with so many terminals the one of the most places on a leaf, then of the most positions.
fn choose(network: &Network, count: u32) -> Result<Vec<TerminalId>, ScheduleError> {
    let [layers, positions, terminals] = shape(network).unwrap_or([1, 1, 1]);
    let shapes = || (1..=terminals).rev().flat_map(move |p| (1..=positions).rev().flat_map(move |m| (1..=layers).map(move |k| [k, m, p])));
    let size = |shape: &[u32; 3]| shape.iter().product::<u32>();
    let possible = || shapes().filter(move |&shape| works(shape, positions));
    if let Some([k, m, p]) = possible().find(|shape| size(shape) == count) {
        return Ok(corner(&[terminals, positions, layers], &[p, m, k]));
    }
    let below = possible().map(|shape| size(&shape)).filter(|&size| (2..count).contains(&size)).max();
    let above = possible().map(|shape| size(&shape)).filter(|&size| size > count).min();
    let near: Vec<String> = [below, above].into_iter().flatten().map(|size| size.to_string()).collect();
    let problem = format!(
        "{count} terminals of {}: a job is k layers x m positions x p places on each leaf with p <= m - 1; the nearest possible: {}",
        network.name(),
        near.join(" and ")
    );
    Err(ScheduleError::Job { schedule: NAME, problem })
}

fn build(network: &Network, _: &dyn Routing, job: &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError> {
    let [layers, positions, terminals] = shape(network).unwrap_or([1, 1, 1]);
    let error = |problem: String| Err(ScheduleError::Job { schedule: NAME, problem });
    let Some(factors) = factors(job, &[terminals, positions, layers]) else {
        return error(format!(
            "these {} terminals: a job must hold the same places of the leaves at the same positions in each of its layers",
            job.len()
        ));
    };
    let [p, m, k] = [0, 1, 2].map(|digit| factors[digit].len() as u32);
    // Places that send by the same spine to their own position in other layers.
    let mut spines: Vec<u32> = factors[0].iter().map(|place| place % (positions - 1)).collect();
    spines.sort_unstable();
    spines.dedup();
    let collide = k > 1 && spines.len() < p as usize;
    if !works([k, m, p], positions) || collide {
        let most = if m == 1 { positions - 1 } else { m - 1 };
        return error(format!(
            "{p} terminals a leaf at {m} positions without contention: at most {most} terminals a leaf, or more positions"
        ));
    }
    Ok(Box::new(LayeredMesh { layers: k, positions: m, terminals: p }))
}
