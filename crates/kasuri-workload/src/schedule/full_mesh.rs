//! The full mesh: one layer of a multi-layer full mesh, with links in place of spines.

use super::contract::{Entry, Schedule, ScheduleError};
use super::layered_mesh::LayeredMesh;
use super::product::{combinations, corner, digits, within};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;

const NAME: &str = "full-mesh";

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "full mesh: no contention, with fewer terminals on a router than other routers",
    source: "the first two parts of the schedule `mlfm`, with one layer",
    fits: |network| shape(network).is_some(),
    choose,
    build,
};

/// Routers, terminals on each.
fn shape(network: &Network) -> Option<[u32; 2]> {
    network.labels().attribute("full_mesh")?.try_into().ok()
}

/// The same number on each of as few routers as possible where that gives the number, else the first so many of the places that
/// the construction can serve.
fn choose(network: &Network, count: u32) -> Result<Vec<TerminalId>, ScheduleError> {
    let [routers, concentration] = shape(network).unwrap_or([1, 1]);
    let radices = [concentration, routers];
    let works = |&p: &u32| count.is_multiple_of(p) && count / p <= routers && (count == p || p < count / p);
    if let Some(p) = (1..=concentration).rev().find(works) {
        return Ok(corner(&radices, &[p, count / p]));
    }
    let mut usable = corner(&radices, &[concentration.min(routers - 1), routers]);
    if usable.len() < count as usize {
        let problem = format!(
            "{count} terminals of {}: without contention it serves at most {} terminals a router, one fewer than routers; the nearest \
             possible: {}",
            network.name(),
            routers - 1,
            usable.len()
        );
        return Err(ScheduleError::Job { schedule: NAME, problem });
    }
    usable.truncate(count as usize);
    Ok(usable)
}

/// The smallest product that holds the job; with all routers, if the job's own are too few for its terminals on a router.
fn build(network: &Network, _: &dyn Routing, job: &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError> {
    let radices @ [concentration, routers] = {
        let [routers, concentration] = shape(network).unwrap_or([1, 1]);
        [concentration, routers]
    };
    let mut digits = digits(job, &radices);
    let works = |digits: &[Vec<u32>]| digits[1].len() == 1 || digits[0].len() < digits[1].len();
    if !works(&digits) {
        digits[1] = (0..routers).collect();
    }
    if !works(&digits) {
        let (p, most) = (digits[0].len(), (routers - 1).min(concentration));
        let problem = format!("{p} terminals a router on {routers} routers without contention: at most {most} a router, or more routers");
        return Err(ScheduleError::Job { schedule: NAME, problem });
    }
    let schedule = LayeredMesh { layers: 1, positions: digits[1].len() as u32, terminals: digits[0].len() as u32 };
    Ok(within(Box::new(schedule), &combinations(&radices, &digits), job))
}
