//! The full mesh: one layer of a multi-layer full mesh, with links in place of spines.

use super::layered_mesh::LayeredMesh;
use super::product::factors;
use super::{Entry, Schedule, ScheduleError};
use crate::id::TerminalId;
use crate::network::Network;
use crate::routing::Routing;

const NAME: &str = "full-mesh";

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "full mesh: no contention in N - 1 phases, with fewer terminals on a router than other routers",
    source: "the first two parts of the schedule `mlfm`, with one layer",
    fits: |network| shape(network).is_some(),
    choose,
    build,
};

/// Routers, terminals on each.
fn shape(network: &Network) -> Option<[u32; 2]> {
    network.labels().attribute("full_mesh")?.try_into().ok()
}

/// The same number on each of as few routers as possible.
fn choose(network: &Network, count: u32) -> Result<Vec<TerminalId>, ScheduleError> {
    let [routers, concentration] = shape(network).unwrap_or([1, 1]);
    let works = |&p: &u32| count.is_multiple_of(p) && count / p <= routers && (count == p || p < count / p);
    match (1..=concentration).rev().find(works) {
        Some(p) => Ok(super::product::corner(&[concentration, routers], &[p, count / p])),
        None => Err(ScheduleError::Job {
            schedule: NAME,
            problem: format!(
                "{count} terminals of {}: a job is r routers with p terminals each, p <= {concentration}, p <= r - 1, r <= {routers}",
                network.name()
            ),
        }),
    }
}

fn build(network: &Network, _: &dyn Routing, job: &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError> {
    let [routers, concentration] = shape(network).unwrap_or([1, 1]);
    let Some(factors) = factors(job, &[concentration, routers]) else {
        let problem = format!("these {} terminals: a job must hold the same places on each of its routers", job.len());
        return Err(ScheduleError::Job { schedule: NAME, problem });
    };
    let [p, m] = [0, 1].map(|digit| factors[digit].len() as u32);
    if m > 1 && p >= m {
        let problem = format!("{p} terminals a router on {m} routers without contention: at most {} a router, or more routers", m - 1);
        return Err(ScheduleError::Job { schedule: NAME, problem });
    }
    Ok(Box::new(LayeredMesh { layers: 1, positions: m, terminals: p }))
}
