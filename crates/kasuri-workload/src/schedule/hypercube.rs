//! The hypercube: partners that differ in the same bits.

use super::contract::{Entry, Schedule, ScheduleError, first};
use super::product::{combinations, digits, within};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "hypercube",
    summary: "mesh or torus of radix 2 in each dimension: phase i pairs rank and rank xor i; no contention",
    source: "Johnsson and Ho, Optimum Broadcasting and Personalized Communication in Hypercubes, IEEE Trans. Comput. 38 (1989); for \
             routing `dimension-order`",
    fits: |network| {
        let dimensions = network.labels().attribute("dimensions").unwrap_or_default();
        let one_each = network.terminal_count() == network.router_count();
        !dimensions.is_empty() && dimensions.iter().all(|&radix| radix == 2) && one_each
    },
    choose: first,
    build,
};

/// Phase i corrects the bits of i in the order of the dimensions. In dimension b the message of terminal r has come to the
/// terminal r xor (the lower bits of i): different ones for different r, so that no channel is used twice.
fn build(network: &Network, _: &dyn Routing, job: &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError> {
    let radices = network.labels().attribute("dimensions").unwrap_or_default();
    let subcube = combinations(radices, &digits(job, radices));
    let exchange = Exchange { ranks: subcube.len() as u32 };
    Ok(within(Box::new(exchange), &subcube, job))
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
