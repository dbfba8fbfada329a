//! Shortest vectors on twisted tori, one dimension after the other.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::hop::{Candidate, Hop, Reads};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Draws one of the shortest vectors from source to destination, each equally likely, and follows it one dimension after the other.
///
/// A vector says how many steps a packet takes in each dimension, and in which direction; on a twisted torus the vectors between two routers
/// differ by the lattice of the twists. Two classes of virtual channels: class 1 from the seam of a dimension on, the seam included, and class 0
/// again in the next dimension. A ring of a twisted dimension crosses its seam several times; a vector of at most as many steps as the dimension
/// has positions crosses it once, so that no cycle of channels can close.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShortestVector {}

impl Member for ShortestVector {
    const NAME: &'static str = "shortest-vector";
    const SUMMARY: &'static str = "twisted torus: one of the shortest vectors, drawn for each packet, then dimension by dimension";
    const SOURCE: &'static str = "Camara et al., Twisted Torus Topologies for Enhanced Interconnection Networks, IEEE Trans. Parallel Distrib. \
                                  Syst. 21 (2010); classes by datelines: Dally and Seitz, IEEE Trans. Comput. C-36 (1987)";
    const EXAMPLE: &'static str = "";
}

/// Vectors that are compared for all offsets together.
const MOST_COMPARED: u64 = 1 << 26;

/// Bits of the state that hold steps; below them is whether the seam of the dimension has been crossed, and that a vector has been drawn.
const STEP_BITS: u32 = 30;

impl RoutingAlgorithm for ShortestVector {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let mismatch =
            |problem: &str| RoutingError::Mismatch { routing: Self::NAME, network: network.name().to_owned(), problem: problem.to_owned() };
        let labels = network.labels();
        let (Some(dimensions), Some(twist)) = (labels.attribute("twisted_torus"), labels.attribute("twist")) else {
            return Err(mismatch("it needs a twisted torus"));
        };
        let lattice = Lattice::new(dimensions, twist).map_err(|problem| mismatch(&problem))?;
        let routers = network.router_count();
        let (mut vectors, mut starts) = (Vec::new(), vec![0]);
        for offset in 0..routers {
            lattice.shortest(&coordinates(offset, dimensions), &mut vectors);
            starts.push((vectors.len() / dimensions.len()) as u32);
        }
        let longest = vectors.iter().map(|steps| steps.unsigned_abs()).max().unwrap_or(0);
        let bits = STEP_BITS / dimensions.len() as u32;
        if bits < 2 || longest >= 1 << (bits - 1) {
            return Err(mismatch("its vectors have more steps than a packet's state can hold"));
        }
        let is_safe = vectors
            .chunks(dimensions.len())
            .all(|vector| vector.iter().zip(dimensions).all(|(steps, radix)| steps.unsigned_abs() <= *radix));
        let homes = (0..network.terminal_count()).map(|terminal| network.ejection_port(TerminalId(terminal))).collect();
        Ok(Box::new(Compiled { dimensions: dimensions.to_vec(), lattice, vectors, starts, bits, is_safe, homes }))
    }

    fn most_table_bytes(&self, network: &Network) -> u64 {
        // Of a dimension that is half round both directions are as short; the twists of the literature give at most six vectors.
        let dimensions = network.labels().attribute("twisted_torus").map_or(0, <[u32]>::len) as u32;
        u64::from(network.router_count()) * (8 + 4 * u64::from(dimensions) * (8 << dimensions.min(20)))
    }
}

/// The coordinates of a router, the first dimension fastest.
fn coordinates(router: u32, dimensions: &[u32]) -> Vec<i64> {
    let mut rest = router;
    dimensions
        .iter()
        .map(|&radix| {
            let here = rest % radix;
            rest /= radix;
            i64::from(here)
        })
        .collect()
}

/// The vectors that lead from a router back to it.
#[derive(Debug)]
struct Lattice {
    dimensions: Vec<i64>,
    /// By dimension: what its seam adds to the coordinates.
    twist: Vec<Vec<i64>>,
    /// By dimension: seams that make a whole turn of all that it twists; 1 without a twist.
    order: Vec<i64>,
}

impl Lattice {
    fn new(dimensions: &[u32], twist: &[u32]) -> Result<Self, String> {
        let count = dimensions.len();
        let twist: Vec<Vec<i64>> = twist.chunks(count).map(|list| list.iter().map(|&step| i64::from(step)).collect()).collect();
        let dimensions: Vec<i64> = dimensions.iter().map(|&radix| i64::from(radix)).collect();
        let turns = |dimension: usize| (0..count).any(|other| twist[dimension][other] % dimensions[other] != 0);
        if (0..count).any(|one| turns(one) && (0..count).any(|other| twist[one][other] % dimensions[other] != 0 && turns(other))) {
            return Err(
                "a dimension that is twisted by another one twists others itself: such a torus has no lattice of vectors".to_owned()
            );
        }
        let order_in =
            |dimension: usize, other: usize| dimensions[other] / gcd(dimensions[other], twist[dimension][other] % dimensions[other]);
        let order: Vec<i64> = (0..count)
            .map(|one| (0..count).fold(1, |order, other| order / gcd(order, order_in(one, other)) * order_in(one, other)))
            .collect();
        let compared = order.iter().chain(&dimensions).try_fold(1u64, |product, &factor| product.checked_mul(2 * factor as u64));
        if compared.is_none_or(|compared| compared > MOST_COMPARED << count) {
            return Err("it has too many vectors to compare".to_owned());
        }
        Ok(Self { dimensions, twist, order })
    }

    /// Adds the shortest of the vectors that differ from this one by the lattice.
    fn shortest(&self, offset: &[i64], vectors: &mut Vec<i32>) {
        let count = offset.len();
        let mut turns: Vec<i64> = self.order.iter().map(|&order| if order == 1 { 0 } else { -order }).collect();
        let (mut best, mut found): (i64, Vec<Vec<i64>>) = (i64::MAX, Vec::new());
        loop {
            self.with_turns(offset, &turns, &mut |vector| {
                let length: i64 = vector.iter().map(|steps| steps.abs()).sum();
                if length < best {
                    (best, found) = (length, Vec::new());
                }
                if length == best && !found.iter().any(|known| known == vector) {
                    found.push(vector.to_vec());
                }
            });
            let Some(place) = (0..count).find(|&place| self.order[place] > 1 && turns[place] < self.order[place]) else { break };
            turns[place] += 1;
            (0..place).filter(|&before| self.order[before] > 1).for_each(|before| turns[before] = -self.order[before]);
        }
        found.sort_unstable();
        vectors.extend(found.into_iter().flatten().map(|steps| steps as i32));
    }

    /// The vectors whose twisted dimensions make these turns: of every other dimension the steps up and the steps down.
    fn with_turns(&self, offset: &[i64], turns: &[i64], take: &mut dyn FnMut(&[i64])) {
        let count = offset.len();
        let mut choices: Vec<Vec<i64>> = Vec::with_capacity(count);
        for (place, &radix) in self.dimensions.iter().enumerate() {
            if self.order[place] > 1 {
                choices.push(vec![offset[place] + turns[place] * radix]);
                continue;
            }
            let twisted: i64 = (0..count).map(|other| turns[other] * self.twist[other][place]).sum();
            let up = (offset[place] - twisted).rem_euclid(radix);
            choices.push(if up == 0 { vec![0] } else { vec![up, up - radix] });
        }
        let mut vector: Vec<i64> = choices.iter().map(|steps| steps[0]).collect();
        for pick in 0..choices.iter().map(Vec::len).product::<usize>() {
            let mut rest = pick;
            for (place, steps) in choices.iter().enumerate() {
                vector[place] = steps[rest % steps.len()];
                rest /= steps.len();
            }
            take(&vector);
        }
    }

    /// The coordinates to which the vector leads that takes a router to another one, seen from router 0.
    fn offset(&self, from: &[i64], to: &[i64]) -> Vec<i64> {
        // A difference below 0 in a twisted dimension goes over its seam once.
        let mut offset: Vec<i64> = to.iter().zip(from).map(|(to, from)| to - from).collect();
        for place in 0..offset.len() {
            if self.order[place] > 1 && offset[place] < 0 {
                offset[place] += self.dimensions[place];
                let twist = &self.twist[place];
                (0..offset.len()).filter(|&other| other != place).for_each(|other| offset[other] -= twist[other]);
            }
        }
        offset.iter().zip(&self.dimensions).map(|(steps, radix)| steps.rem_euclid(*radix)).collect()
    }
}

fn gcd(one: i64, other: i64) -> i64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[derive(Debug)]
struct Compiled {
    dimensions: Vec<u32>,
    lattice: Lattice,
    /// The shortest vectors of all offsets, one after the other, and where those of each begin.
    vectors: Vec<i32>,
    starts: Vec<u32>,
    /// Bits of a dimension's steps in a packet's state.
    bits: u32,
    is_safe: bool,
    /// Each terminal's router and port.
    homes: Vec<(RouterId, Port)>,
}

impl Compiled {
    /// Steps that remain in a dimension.
    fn steps(&self, state: u32, dimension: usize) -> i32 {
        let field = state >> (2 + self.bits * dimension as u32) & ((1 << self.bits) - 1);
        (field << (32 - self.bits)) as i32 >> (32 - self.bits)
    }

    fn with_steps(&self, state: u32, dimension: usize, steps: i32) -> u32 {
        let (shift, mask) = (2 + self.bits * dimension as u32, (1u32 << self.bits) - 1);
        state & !(mask << shift) | (steps as u32 & mask) << shift
    }

    /// A vector to the destination, as the state of a packet that has made no step.
    fn draw(&self, from: RouterId, to: RouterId, choice: &mut dyn Choice) -> u32 {
        let [from, to] = [from, to].map(|router| coordinates(router.0, &self.dimensions));
        let offset = self.lattice.offset(&from, &to);
        let number = offset.iter().zip(&self.dimensions).rev().fold(0, |number, (&at, &radix)| number * radix + at as u32);
        let (begin, end) = (self.starts[number as usize], self.starts[number as usize + 1]);
        let drawn = (begin + choice.uniform(end - begin)) as usize;
        let count = self.dimensions.len();
        let vector = &self.vectors[drawn * count..(drawn + 1) * count];
        vector.iter().enumerate().fold(DRAWN, |state, (dimension, &steps)| self.with_steps(state, dimension, steps))
    }
}

/// The bit of the state that says that a vector has been drawn, and the one that says that the seam of this dimension has been crossed.
const DRAWN: u32 = 1;
const CROSSED: u32 = 2;

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        let table_bytes = (size_of::<i32>() * (self.vectors.len() + self.starts.len())) as u64;
        RoutingFacts {
            virtual_channels_required: 2,
            reads: Reads::DESTINATION_ROUTER,
            is_deadlock_free: self.is_safe,
            observes_congestion: false,
            table_bytes,
            build_peak_bytes: table_bytes,
            ..RoutingFacts::default()
        }
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, eject) = self.homes[hop.destination.index()];
        if router == hop.router {
            candidates.push(Candidate::new(eject, hop.available));
            return;
        }
        if *state & DRAWN == 0 {
            *state = self.draw(hop.router, router, choice);
        }
        let Some(dimension) = (0..self.dimensions.len()).find(|&dimension| self.steps(*state, dimension) != 0) else { return };
        let steps = self.steps(*state, dimension);
        let here = coordinates(hop.router.0, &self.dimensions)[dimension];
        let seam = if steps > 0 { i64::from(self.dimensions[dimension]) - 1 } else { 0 };
        let crossed = *state & CROSSED != 0 || here == seam;
        let left = steps - steps.signum();
        *state = self.with_steps(*state, dimension, left) & !CROSSED;
        // The next dimension begins in class 0 again.
        if crossed && left != 0 {
            *state |= CROSSED;
        }
        let port = 2 * dimension as Port + Port::from(steps < 0);
        candidates.push(Candidate::new(port, hop.available.class(u16::from(crossed), 2)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths and vectors of `tests/data/fabrics/vectors.csv`, and how many destinations have so many shortest vectors.
    #[test]
    fn shortest_vectors_are_the_known_ones() {
        for (k, counts) in [
            (2, vec![(1, 7), (2, 6), (4, 2), (6, 1)]),
            (3, vec![(1, 33), (2, 12), (3, 8), (6, 1)]),
            (4, vec![(1, 87), (2, 30), (3, 8), (4, 2), (6, 1)]),
        ] {
            let lattice = Lattice::new(&[k, k, 2 * k], &[0, 0, k, 0, 0, k, 0, 0, 0]).unwrap();
            let mut found = std::collections::BTreeMap::new();
            for offset in 0..2 * k * k * k {
                let mut vectors = Vec::new();
                lattice.shortest(&coordinates(offset, &[k, k, 2 * k]), &mut vectors);
                *found.entry(vectors.len() / 3).or_insert(0) += 1;
            }
            assert_eq!(found.into_iter().collect::<Vec<_>>(), counts, "k = {k}");
        }
        let lattice = Lattice::new(&[4, 4, 8], &[0, 0, 4, 0, 0, 4, 0, 0, 0]).unwrap();
        for (offset, wanted) in [
            ([1, 0, 4], vec![[-3, 0, 0]]),
            ([2, 2, 4], vec![[-2, 2, 0], [2, -2, 0]]),
            ([3, 1, 6], vec![[-1, 1, 2]]),
            ([2, 0, 3], vec![[-2, 0, -1]]),
        ] {
            let mut vectors = Vec::new();
            lattice.shortest(&offset, &mut vectors);
            assert_eq!(
                vectors.chunks(3).map(<[i32]>::to_vec).collect::<Vec<_>>(),
                wanted.iter().map(|vector| vector.to_vec()).collect::<Vec<_>>()
            );
        }
    }
}
