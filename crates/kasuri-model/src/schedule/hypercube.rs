//! The hypercube: partners that differ in the same bits.

use super::{Entry, Schedule, ScheduleError};
use crate::id::TerminalId;
use crate::network::Network;
use crate::routing::Routing;

const NAME: &str = "hypercube";

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "mesh or torus of radix 2 in each dimension: phase i pairs rank and rank xor i; no contention",
    source: "Johnsson and Ho, Optimum Broadcasting and Personalized Communication in Hypercubes, IEEE Trans. Comput. 38 (1989); for \
             routing `dimension-order`",
    fits: |network| {
        let dimensions = network.labels().attribute("dimensions").unwrap_or_default();
        let one_each = network.terminal_count() == network.router_count();
        !dimensions.is_empty() && dimensions.iter().all(|&radix| radix == 2) && one_each
    },
    choose,
    build,
};

/// The subcube of the lowest dimensions.
fn choose(network: &Network, count: u32) -> Result<Vec<TerminalId>, ScheduleError> {
    if count.is_power_of_two() {
        return super::first(network, count);
    }
    let below = 1 << count.ilog2();
    let problem = format!("{count} terminals: a subcube has a power of two; the nearest possible: {below} and {}", 2 * below);
    Err(ScheduleError::Job { schedule: NAME, problem })
}

/// Phase i corrects the bits of i in the order of the dimensions. In dimension b the message of terminal r has come to the
/// terminal r xor (the lower bits of i): different ones for different r, so that no channel is used twice.
fn build(_network: &Network, _: &dyn Routing, job: &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError> {
    let least = job[0].0;
    let free = job.iter().fold(0, |bits, terminal| bits | (terminal.0 ^ least));
    if least & free != 0 || job.len() != 1 << free.count_ones() {
        let problem = format!("these {} terminals: they are no subcube", job.len());
        return Err(ScheduleError::Job { schedule: NAME, problem });
    }
    Ok(Box::new(Exchange { ranks: job.len() as u32 }))
}

/// In ascending order the ranks of a subcube differ in rank bits where the terminals differ in dimensions.
#[derive(Debug)]
struct Exchange {
    ranks: u32,
}

impl Schedule for Exchange {
    fn phases(&self) -> u32 {
        self.ranks - 1
    }

    fn destination(&self, rank: u32, phase: u32) -> Option<u32> {
        Some(rank ^ (phase + 1))
    }

    fn source(&self, rank: u32, phase: u32) -> Option<u32> {
        self.destination(rank, phase)
    }
}
