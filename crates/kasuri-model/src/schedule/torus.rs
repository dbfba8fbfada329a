//! The torus: shifts in every dimension.

use super::{Entry, Schedule, ScheduleError, first};
use crate::id::TerminalId;
use crate::network::Network;
use crate::routing::Routing;

const NAME: &str = "torus";

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "torus: a shift in every dimension a phase, so that all channels of a direction carry the same",
    source: "for routing `dimension-order`; why no schedule is free of contention from radix 8 on: Dally and Towles (2004), section 3.3.1",
    fits: |network| network.labels().attribute("wrap") == Some(&[1]),
    choose,
    build,
};

fn choose(network: &Network, count: u32) -> Result<Vec<TerminalId>, ScheduleError> {
    let all = network.terminal_count();
    if count == all { first(network, count) } else { Err(not_all(count as usize, all)) }
}

fn not_all(count: usize, all: u32) -> ScheduleError {
    ScheduleError::Job { schedule: NAME, problem: format!("{count} terminals: it needs all {all} of the torus") }
}

fn build(network: &Network, _: &dyn Routing, job: &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError> {
    let all = network.terminal_count();
    if job.len() as u32 != all {
        return Err(not_all(job.len(), all));
    }
    let mut radices = vec![all / network.router_count()];
    radices.extend_from_slice(network.labels().attribute("dimensions").unwrap_or_default());
    Ok(Box::new(Shifts { ranks: all, radices }))
}

/// The digits of phase + 1 are how far a rank's digits are shifted. With one terminal a router, a shift by s in a ring of k loads
/// its channels in one direction with min(s, k - s) messages each.
#[derive(Debug)]
struct Shifts {
    ranks: u32,
    /// Of a rank's digits, the fastest first.
    radices: Vec<u32>,
}

impl Shifts {
    fn shifted(&self, rank: u32, by: u32, back: bool) -> u32 {
        let (mut rank, mut by, mut stride, mut result) = (rank, by, 1, 0);
        for &radix in &self.radices {
            let step = if back { radix - by % radix } else { by % radix };
            result += (rank % radix + step) % radix * stride;
            (rank, by, stride) = (rank / radix, by / radix, stride * radix);
        }
        result
    }
}

impl Schedule for Shifts {
    fn phases(&self) -> u32 {
        self.ranks - 1
    }

    fn destination(&self, rank: u32, phase: u32) -> Option<u32> {
        Some(self.shifted(rank, phase + 1, false))
    }

    fn source(&self, rank: u32, phase: u32) -> Option<u32> {
        Some(self.shifted(rank, phase + 1, true))
    }
}
