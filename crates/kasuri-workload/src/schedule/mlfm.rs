//! The multi-layer full mesh, with as many phases as a terminal has partners.

use super::contract::{Entry, Schedule, ScheduleError};
use super::layered_mesh::LayeredMesh;
use super::product::{combinations, corner, digits, within};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;

const NAME: &str = "mlfm";

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "multi-layer full mesh: no contention; N - 1 phases for some layers, positions and places on the leaves, or all",
    source: "construction and proof: kasuri_workload, schedule::layered_mesh; for routing `minimal` with tie = \"destination\"",
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

/// Of all shapes with so many terminals the one of the most places on a leaf, then of the most positions; else the first so many.
fn choose(network: &Network, count: u32) -> Result<Vec<TerminalId>, ScheduleError> {
    let [layers, positions, terminals] = shape(network).unwrap_or([1, 1, 1]);
    let radices = [terminals, positions, layers];
    let shapes = || (1..=terminals).rev().flat_map(move |p| (1..=positions).rev().flat_map(move |m| (1..=layers).map(move |k| [k, m, p])));
    let is_right = |&shape: &[u32; 3]| works(shape, positions) && shape.iter().product::<u32>() == count;
    if let Some([k, m, p]) = shapes().find(is_right) {
        return Ok(corner(&radices, &[p, m, k]));
    }
    let mut usable = corner(&radices, &[terminals.min(positions - 1), positions, layers]);
    if usable.len() < count as usize {
        let problem = format!(
            "{count} terminals of {}: without contention it serves at most {} terminals a leaf, one fewer than positions; the nearest \
             possible: {}",
            network.name(),
            positions - 1,
            usable.len()
        );
        return Err(ScheduleError::Job { schedule: NAME, problem });
    }
    usable.truncate(count as usize);
    Ok(usable)
}

/// The smallest product that holds the job; with all positions, if the job's own are too few for its terminals on a leaf.
fn build(network: &Network, _: &dyn Routing, job: &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError> {
    let [layers, positions, terminals] = shape(network).unwrap_or([1, 1, 1]);
    let radices = [terminals, positions, layers];
    let mut digits = digits(job, &radices);
    let counts = |digits: &[Vec<u32>]| [2, 1, 0].map(|digit: usize| digits[digit].len() as u32);
    if !works(counts(&digits), positions) {
        digits[1] = (0..positions).collect();
    }
    let [k, m, p] = counts(&digits);
    // Places that send by the same spine to their own position in other layers.
    let mut spines: Vec<u32> = digits[0].iter().map(|place| place % (positions - 1)).collect();
    spines.sort_unstable();
    spines.dedup();
    let collide = k > 1 && spines.len() < p as usize;
    if !works([k, m, p], positions) || collide {
        let most = positions - 1;
        let problem =
            format!("{p} terminals a leaf at {m} positions without contention: at most {most} terminals a leaf, such as 0 to {}", most - 1);
        return Err(ScheduleError::Job { schedule: NAME, problem });
    }
    let schedule = LayeredMesh { layers: k, positions: m, terminals: p };
    Ok(within(Box::new(schedule), &combinations(&radices, &digits), job))
}
