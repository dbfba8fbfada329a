//! The torus: turns of rings in every dimension at once.

use super::contract::{Entry, Schedule, ScheduleError};
use super::product::{combinations, corner, digits, within};
use super::ring::Ring;
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "torus",
    summary: "torus: no contention up to radix 7, then the fewest messages on a channel that are known; whole rings, or parts of them",
    source: "construction: kasuri_workload, schedule::ring; for routing `dimension-order` with tie = \"positive\"; why no schedule is free of \
             contention from radix 8 on: Dally and Towles (2004), section 3.3.1",
    fits: |network| network.labels().attribute("wrap") == Some(&[1]),
    choose,
    build,
};

/// Terminals on a router, and the radix of each dimension, the fastest digit of a terminal first.
fn radices(network: &Network) -> Vec<u32> {
    let mut radices = vec![network.terminal_count() / network.router_count()];
    radices.extend_from_slice(network.labels().attribute("dimensions").unwrap_or_default());
    radices
}

/// Whole rings in as few dimensions as possible where that gives the number, else the first so many.
fn choose(network: &Network, count: u32) -> Result<Vec<TerminalId>, ScheduleError> {
    let radices = radices(network);
    let (concentration, dimensions) = (radices[0], &radices[1..]);
    let counts = |whole: u32| -> Option<Vec<u32>> {
        let mut counts: Vec<u32> = (0..).zip(dimensions).map(|(place, &radix)| if whole >> place & 1 == 1 { radix } else { 1 }).collect();
        let rings: u32 = counts.iter().product();
        counts.insert(0, count / rings);
        (count.is_multiple_of(rings) && count / rings <= concentration).then_some(counts)
    };
    let mut choices: Vec<u32> = (0..1 << dimensions.len().min(16)).collect();
    choices.sort_by_key(|whole: &u32| whole.count_ones());
    match choices.into_iter().find_map(counts) {
        Some(counts) => Ok(corner(&radices, &counts)),
        None => super::contract::first(network, count),
    }
}

/// In every dimension a job holds one position or all: a ring is closed.
fn build(network: &Network, _: &dyn Routing, job: &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError> {
    let radices = radices(network);
    let mut digits = digits(job, &radices);
    for (values, &radix) in digits.iter_mut().zip(&radices).skip(1) {
        if values.len() > 1 {
            *values = (0..radix).collect();
        }
    }
    let shifts = Ring::Shifts(digits[0].len() as u32);
    let rings = std::iter::once(shifts).chain(digits[1..].iter().map(|values| Ring::of(values.len() as u32)));
    let radices_here = digits.iter().map(|values| values.len() as u32);
    let turns = Turns { rings: radices_here.zip(rings).collect() };
    Ok(within(Box::new(turns), &combinations(&radices, &digits), job))
}

/// The digits of a phase are the turns of the rings, the fastest first. With one terminal a router a phase loads a channel with as
/// many messages as the turn of its dimension does.
#[derive(Debug)]
struct Turns {
    /// Radices of the digits of a rank, the fastest first, and their turns.
    rings: Vec<(u32, Ring)>,
}

impl Turns {
    /// The first phase may send nothing at all.
    fn skipped(&self) -> u32 {
        u32::from(self.rings.iter().all(|(_, ring)| ring.begins_at_rest()))
    }

    fn peer(&self, rank: u32, phase: u32, of: impl Fn(Ring, u32, u32) -> Option<u32>) -> Option<u32> {
        let (mut rest, mut phase, mut stride, mut result) = (rank, phase + self.skipped(), 1, 0);
        for &(radix, ring) in &self.rings {
            result += of(ring, rest % radix, phase % ring.turns())? * stride;
            (rest, phase, stride) = (rest / radix, phase / ring.turns(), stride * radix);
        }
        Some(result).filter(|&peer| peer != rank)
    }
}

impl Schedule for Turns {
    fn phases(&self) -> u32 {
        self.rings.iter().map(|(_, ring)| ring.turns()).product::<u32>() - self.skipped()
    }

    fn is_full(&self) -> bool {
        self.skipped() == 1
    }

    fn destination(&self, rank: u32, phase: u32) -> Option<u32> {
        self.peer(rank, phase, Ring::destination)
    }

    fn source(&self, rank: u32, phase: u32) -> Option<u32> {
        self.peer(rank, phase, Ring::source)
    }
}
