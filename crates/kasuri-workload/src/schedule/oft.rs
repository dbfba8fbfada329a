//! The orthogonal fat tree, with as many phases as a terminal has partners.

use super::contract::{Entry, Schedule, ScheduleError};
use super::product::{combinations, corner, digits, within};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "oft",
    summary: "orthogonal fat tree: no contention; N - 1 phases for one side or both, with some places on all leaves or all",
    source: "construction and proof: kasuri_workload, schedule::oft; for routing `minimal` with tie = \"destination\"",
    fits: |network| shape(network).is_some(),
    choose,
    build,
};

/// The order and the sides.
fn shape(network: &Network) -> Option<[u32; 2]> {
    network.labels().attribute("oft")?.try_into().ok()
}

fn leaves(order: u32) -> u32 {
    order * order + order + 1
}

/// The same places on all leaves of a side or of both where that gives the number, else the first so many.
fn choose(network: &Network, count: u32) -> Result<Vec<TerminalId>, ScheduleError> {
    let [order, sides] = shape(network).unwrap_or([1, 1]);
    let (degree, leaves) = (order + 1, leaves(order));
    let places = |side: u32| count.is_multiple_of(side * leaves).then_some(count / (side * leaves)).filter(|&places| places <= degree);
    if let Some((side, places)) = (1..=sides).find_map(|side| Some((side, places(side)?))) {
        return Ok(corner(&[degree, leaves, sides], &[places, leaves, side]));
    }
    super::contract::first(network, count)
}

/// All leaves of the job's sides, with the places that occur in the job.
fn build(network: &Network, _: &dyn Routing, job: &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError> {
    let [order, sides] = shape(network).unwrap_or([1, 1]);
    let (degree, leaves) = (order + 1, leaves(order));
    let radices = [degree, leaves, sides];
    let mut digits = digits(job, &radices);
    digits[1] = (0..leaves).collect();
    let differences = network.labels().attribute("difference_set").unwrap_or_default().to_vec();
    let planes = Planes { leaves, degree, sides: digits[2].len() as u32, places: digits[0].len() as u32, differences };
    Ok(within(Box::new(planes), &combinations(&radices, &digits), job))
}

/// n leaves a side with p <= d terminals each, d = q + 1. Rank = (side n + leaf) p + place.
///
/// For each shift of sides s, rank (side, i, x) sends
/// 1. to the leaf of its number: (side + s, i, x + y), y = 0..p-1, but not to itself;
/// 2. to other leaves: (side + s, i + D\[a\] - D\[b\], x + y), y = 0..p-1, e = 1..d-1, u = 0..d-1, a = (x + u) mod d,
///    b = (a + e) mod d;
///
/// sums modulo the sides, n and p: `sides` p (1 + d (d - 1)) - 1 = N - 1 phases, the fewest that there can be. D is the
/// difference set: up by port a and down by port b is the only path of two hops between these leaves. In a phase of part 2
/// different x take different a, and different a different b, so that neither the ports up of a leaf nor those by which a leaf
/// is reached are used twice; each pair (a, b) belongs to one e, so that every shift of leaves comes once for each x and y.
#[derive(Debug)]
struct Planes {
    leaves: u32,
    degree: u32,
    sides: u32,
    places: u32,
    differences: Vec<u32>,
}

/// What happens in a phase.
struct Phase {
    sides: u32,
    /// The place at which the destination is further.
    place: u32,
    /// For another leaf: how far up ports are turned, and down ports against them.
    turn: Option<(u32, u32)>,
}

impl Planes {
    fn phase(&self, phase: u32) -> Phase {
        // The first of all would send to itself.
        let number = phase + 1;
        let (sides, rest) = (number / (self.places * self.leaves), number % (self.places * self.leaves));
        let (place, rest) = (rest % self.places, rest / self.places);
        let turn = rest.checked_sub(1).map(|rest| (rest % self.degree, 1 + rest / self.degree));
        Phase { sides, place, turn }
    }

    /// How many leaves further place x sends.
    fn leaf_shift(&self, place: u32, turn: Option<(u32, u32)>) -> u32 {
        let Some((up, down)) = turn else { return 0 };
        let a = (place + up) % self.degree;
        let b = (a + down) % self.degree;
        (self.differences[a as usize] + self.leaves - self.differences[b as usize]) % self.leaves
    }

    fn split(&self, rank: u32) -> (u32, u32, u32) {
        let leaf = rank / self.places;
        (leaf / self.leaves, leaf % self.leaves, rank % self.places)
    }

    fn rank(&self, side: u32, leaf: u32, place: u32) -> u32 {
        (side % self.sides * self.leaves + leaf % self.leaves) * self.places + place % self.places
    }
}

impl Schedule for Planes {
    fn phases(&self) -> u32 {
        self.sides * self.leaves * self.places - 1
    }

    fn destination(&self, rank: u32, phase: u32) -> Option<u32> {
        let (side, leaf, x) = self.split(rank);
        let Phase { sides, place, turn } = self.phase(phase);
        Some(self.rank(side + sides, leaf + self.leaf_shift(x, turn), x + place))
    }

    fn source(&self, rank: u32, phase: u32) -> Option<u32> {
        let (side, leaf, there) = self.split(rank);
        let Phase { sides, place, turn } = self.phase(phase);
        let x = (there + self.places - place) % self.places;
        Some(self.rank(side + self.sides - sides, leaf + self.leaves - self.leaf_shift(x, turn), x))
    }
}
