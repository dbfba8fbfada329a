//! Jellyfish: a random regular graph.

use super::contract::{BuildContext, Topology};
use super::{adjacency, sizes};
use crate::draws::SplitMix64;
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Draws for each link before another seed is tried.
const DRAWS_PER_EDGE: u64 = 1000;

/// Seeds that are tried, one after the other.
const SEEDS: u64 = 100;

/// A random graph in which every router has `degree` links to different routers.
///
/// `degree` stubs for each router, in the order of the routers, are shuffled and joined two by two. While there is a link that begins and ends
/// at the same router, or stands twice, the first such link changes ends with a random one, if both are then right. If that takes more than
/// 1000 draws for each link, or the graph is not connected, all begins again with the next seed. Draws are those of SplitMix64, so that a seed
/// gives the same graph on any machine. Ports: the neighbours in ascending order, then the terminals.
///
/// Attributes `jellyfish` = [routers, degree, concentration], `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jellyfish {
    /// Routers.
    pub routers: u32,
    /// Links of each router, at least 2 and at most half of `routers`; routers times degree is even.
    pub degree: u32,
    /// Terminals on each router.
    #[serde(default = "one")]
    pub concentration: u32,
    /// The seed of the draws.
    #[serde(default)]
    pub seed: u64,
}

fn one() -> u32 {
    1
}

impl Member for Jellyfish {
    const NAME: &'static str = "jellyfish";
    const SUMMARY: &'static str = "random regular graph, by a seed";
    const SOURCE: &'static str = "Singla, Hong, Popa and Godfrey, Jellyfish: Networking Data Centers Randomly, NSDI 2012, section 3; drawn by \
                                  pairing stubs (Bollobas 1980) with SplitMix64";
    const EXAMPLE: &'static str = "routers = 10\ndegree = 3\nseed = 1";
}

impl Topology for Jellyfish {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        self.check()?;
        context.channels.check(1)?;
        let Self { routers, degree, concentration, seed } = *self;
        let drawn = (0..SEEDS).find_map(|more| draw(routers, degree, seed.wrapping_add(more)));
        let neighbours = drawn.ok_or_else(|| {
            let problem =
                format!("is {seed}; neither it nor the {SEEDS} after it give a connected graph of {routers} routers of degree {degree}");
            NetworkError::parameter("seed", problem)
        })?;
        let mut builder = NetworkBuilder::new(format!("jellyfish ({routers}, {degree}) x {concentration} seed {seed}"));
        adjacency::attach(&mut builder, &neighbours, concentration, context)?;
        builder.set_attribute("jellyfish", vec![routers, degree, concentration]);
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

impl Jellyfish {
    fn check(&self) -> Result<(), NetworkError> {
        let Self { routers, degree, concentration, .. } = *self;
        sizes::at_least("routers", routers, 4)?;
        sizes::at_least("degree", degree, 2)?;
        if u64::from(degree) * 2 > u64::from(routers) {
            let problem = format!("is {degree} of {routers} routers; near the complete graph draws do not end: at most {}", routers / 2);
            return Err(NetworkError::parameter("degree", problem));
        }
        adjacency::check(routers, degree, concentration)?;
        if u64::from(degree) * u64::from(routers) % 2 == 1 {
            let problem = format!("is {degree} with {routers} routers; each link has two ends, so that one of the two must be even");
            return Err(NetworkError::parameter("degree", problem));
        }
        Ok(())
    }
}

/// A link with the smaller end first.
fn ordered(one: u32, other: u32) -> (u32, u32) {
    (one.min(other), one.max(other))
}

/// The neighbours of each router, if this seed gives a graph.
fn draw(routers: u32, degree: u32, seed: u64) -> Option<Vec<Vec<u32>>> {
    let mut draws = SplitMix64::new(seed);
    let mut stubs: Vec<u32> = (0..routers * degree).map(|stub| stub / degree).collect();
    draws.shuffle(&mut stubs);
    let mut links: Vec<(u32, u32)> = stubs.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let mut count: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    links.iter().for_each(|&(one, other)| *count.entry(ordered(one, other)).or_default() += 1);
    let mut left = DRAWS_PER_EDGE * links.len() as u64;
    // A change makes two links that are right, and takes away one that others may have repeated: no link becomes wrong, and those before the
    // first wrong one stay right.
    for first in 0..links.len() {
        let is_bad = |links: &[(u32, u32)], count: &BTreeMap<(u32, u32), u32>| {
            let (one, other) = links[first];
            one == other || count[&ordered(one, other)] > 1
        };
        while is_bad(&links, &count) {
            left = left.checked_sub(1)?;
            let second = draws.below(links.len() as u64) as usize;
            if second != first {
                exchange(&mut links, &mut count, first, second);
            }
        }
    }
    let neighbours = adjacency::of_edges(routers, links.into_iter());
    is_connected(&neighbours).then_some(neighbours)
}

/// Lets two links change ends, if both are then right.
fn exchange(links: &mut [(u32, u32)], count: &mut BTreeMap<(u32, u32), u32>, first: usize, second: usize) {
    let ((a, b), (c, d)) = (links[first], links[second]);
    let (one, other) = (ordered(a, d), ordered(c, b));
    if a == d
        || c == b
        || one == other
        || count.get(&one).is_some_and(|&count| count > 0)
        || count.get(&other).is_some_and(|&count| count > 0)
    {
        return;
    }
    for gone in [ordered(a, b), ordered(c, d)] {
        *count.entry(gone).or_default() -= 1;
    }
    for new in [one, other] {
        *count.entry(new).or_default() += 1;
    }
    (links[first], links[second]) = ((a, d), (c, b));
}

fn is_connected(neighbours: &[Vec<u32>]) -> bool {
    let mut seen = vec![false; neighbours.len()];
    let mut open = vec![0u32];
    seen[0] = true;
    let mut count = 0;
    while let Some(router) = open.pop() {
        count += 1;
        for &next in &neighbours[router as usize] {
            if !std::mem::replace(&mut seen[next as usize], true) {
                open.push(next);
            }
        }
    }
    count == neighbours.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(routers: u32, degree: u32, concentration: u32, seed: u64) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        Jellyfish { routers, degree, concentration, seed }.build(&context)
    }

    /// Every router has `degree` links to different others, and all are connected, whatever the seed.
    #[test]
    fn every_seed_gives_a_connected_regular_graph() {
        for seed in 0..20 {
            for (routers, degree) in [(10, 3), (20, 4), (16, 8), (64, 7)] {
                let summary = Summary::of(&build(routers, degree, 1, seed).unwrap());
                assert_eq!((summary.min_ports, summary.max_ports, summary.components), (degree + 1, degree + 1, 1));
                assert_eq!(summary.links, u64::from(routers * degree / 2));
            }
            assert_ne!(Summary::of(&build(64, 7, 1, seed).unwrap()), Summary::of(&build(64, 7, 1, seed + 1000).unwrap()));
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (routers, degree, concentration, key) in
            [(0, 3, 1, "routers"), (10, 0, 1, "degree"), (10, 6, 1, "degree"), (11, 3, 1, "degree"), (10, 3, 0, "concentration")]
        {
            assert!(matches!(build(routers, degree, concentration, 1), Err(NetworkError::Parameter { key: found, .. }) if found == key));
        }
        assert!(build(11, 3, 1, 1).unwrap_err().to_string().contains("must be even"));
        assert!(matches!(build(u32::MAX, 1000, 1, 1), Err(NetworkError::TooLarge(_))));
        assert!(matches!(build(2000, 600, 1, 1), Err(NetworkError::TooLarge(_))));
    }
}
