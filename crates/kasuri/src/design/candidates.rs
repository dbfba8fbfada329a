//! The smallest instance of each topology for a number of terminals and of ports per router, by closed forms.

use std::cmp::Reverse;
use toml::Table;

/// An instance, described by the closed forms of its topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The family, for people: `fat tree, 2 levels`.
    pub family: &'static str,
    /// `network.topology`.
    pub topology: &'static str,
    /// Its keys.
    pub parameters: Table,
    /// Terminals.
    pub terminals: u64,
    /// Routers.
    pub routers: u64,
    /// Ports of the widest router.
    pub ports: u64,
}

impl Candidate {
    fn new(family: &'static str, topology: &'static str, keys: &[(&str, u64)], [terminals, routers, ports]: [u64; 3]) -> Self {
        let parameters = keys.iter().map(|&(key, value)| (key.to_owned(), (value as i64).into())).collect();
        Self { family, topology, parameters, terminals, routers, ports }
    }

    /// Smaller is better: routers, then ports of the widest, then terminals.
    fn size(&self) -> (u64, u64, u64) {
        (self.routers, self.ports, self.terminals)
    }
}

/// The size to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SizeTarget {
    /// At least this many terminals.
    AtLeast(u64),
    /// As many terminals as its routers can serve.
    Most,
}

impl SizeTarget {
    /// Terminals on each of `routers` routers with room for `most`; `None` if that is too few.
    fn share(self, routers: u64, most: u64) -> Option<u64> {
        let share = match self {
            Self::AtLeast(terminals) => terminals.div_ceil(routers),
            Self::Most => most,
        };
        (1..=most).contains(&share).then_some(share)
    }
}

/// The smallest instance of each family with at least `terminals` terminals on routers of at most `ports` ports; `None` for a family
/// without one. Fat trees have 4 levels where 3 are too few. Except for meshes and tori, all instances carry the uniform traffic that their
/// family is designed for: no more terminals on a router than links for them.
pub fn smallest(terminals: u64, ports: u64) -> Vec<(&'static str, Option<Candidate>)> {
    let wanted = SizeTarget::AtLeast(terminals);
    let grids = [(MESH_2, "mesh", 2), (MESH_3, "mesh", 3), (TORUS_2, "torus", 2), (TORUS_3, "torus", 3)];
    let grids = grids.map(|(family, topology, dimensions)| (family, meshes(family, topology, dimensions, terminals)));
    let fits = |candidate: &Candidate| candidate.terminals >= terminals && candidate.ports <= ports;
    let all = families(wanted, ports).into_iter().chain(grids);
    let mut found: Vec<_> = all.map(|(family, all)| (family, all.into_iter().filter(fits).min_by_key(Candidate::size))).collect();
    // Superfluous levels only cost.
    if found.iter().any(|(family, tree)| *family == TREE_3 && tree.is_some()) {
        found.retain(|(family, _)| *family != TREE_4);
    }
    found
}

/// The instance of each family with the most terminals on routers of at most `ports` ports. Meshes and tori have none: they grow without
/// more ports.
pub fn largest(ports: u64) -> Vec<(&'static str, Option<Candidate>)> {
    let most = |all: Vec<Candidate>| {
        let fitting = all.into_iter().filter(|candidate| candidate.ports <= ports);
        fitting.max_by_key(|candidate| (candidate.terminals, Reverse(candidate.routers)))
    };
    families(SizeTarget::Most, ports).into_iter().map(|(family, all)| (family, most(all))).collect()
}

fn families(wanted: SizeTarget, ports: u64) -> [(&'static str, Vec<Candidate>); 11] {
    [
        (FULL_MESH, full_meshes(wanted, ports)),
        (FLAT_2, flattened_butterflies(FLAT_2, 2, wanted, ports)),
        (FLAT_3, flattened_butterflies(FLAT_3, 3, wanted, ports)),
        (SLIM_FLY, slim_flies(wanted, ports)),
        (DRAGONFLY, dragonflies(wanted, ports)),
        (MLFM, multi_layer_full_meshes(wanted, ports)),
        (OFT_1, orthogonal_fat_trees(OFT_1, 1, ports)),
        (OFT_2, orthogonal_fat_trees(OFT_2, 2, ports)),
        (TREE_2, fat_trees(TREE_2, 2, ports)),
        (TREE_3, fat_trees(TREE_3, 3, ports)),
        (TREE_4, fat_trees(TREE_4, 4, ports)),
    ]
}

const FULL_MESH: &str = "full mesh";
const FLAT_2: &str = "flattened butterfly, 2 dimensions";
const FLAT_3: &str = "flattened butterfly, 3 dimensions";
const SLIM_FLY: &str = "slim fly";
const DRAGONFLY: &str = "dragonfly";
const MLFM: &str = "multi-layer full mesh";
const OFT_1: &str = "orthogonal fat tree";
const OFT_2: &str = "orthogonal fat tree, two-sided";
const TREE_2: &str = "fat tree, 2 levels";
const TREE_3: &str = "fat tree, 3 levels";
const TREE_4: &str = "fat tree, 4 levels";
const MESH_2: &str = "mesh, 2 dimensions";
const MESH_3: &str = "mesh, 3 dimensions";
const TORUS_2: &str = "torus, 2 dimensions";
const TORUS_3: &str = "torus, 3 dimensions";

/// R routers of R - 1 + c ports, c at most R - 1.
fn full_meshes(wanted: SizeTarget, ports: u64) -> Vec<Candidate> {
    let mesh = |routers: u64| {
        let concentration = wanted.share(routers, (routers - 1).min((ports + 1).saturating_sub(routers)))?;
        let keys = [("routers", routers), ("concentration", concentration)];
        Some(Candidate::new(FULL_MESH, "full-mesh", &keys, [routers * concentration, routers, routers - 1 + concentration]))
    };
    (2..=ports).filter_map(mesh).collect()
}

/// k^n routers of n (k - 1) + c ports, c at most k.
fn flattened_butterflies(family: &'static str, dimensions: u32, wanted: SizeTarget, ports: u64) -> Vec<Candidate> {
    let flat = |radix: u64| {
        let (routers, links) = (radix.pow(dimensions), u64::from(dimensions) * (radix - 1));
        let concentration = wanted.share(routers, radix.min(ports.saturating_sub(links)))?;
        let size = [routers * concentration, routers, links + concentration];
        let mut candidate = Candidate::new(family, "flattened-butterfly", &[("concentration", concentration)], size);
        candidate.parameters.insert("dimensions".to_owned(), vec![radix as i64; dimensions as usize].into());
        Some(candidate)
    };
    (2..=ports).filter_map(flat).collect()
}

/// 2 q^2 routers of k + c ports, k = (3 q - e) / 2, c at most k / 2 rounded up.
fn slim_flies(wanted: SizeTarget, ports: u64) -> Vec<Candidate> {
    let fly = |order: u64| {
        let links = match order % 4 {
            1 => (3 * order - 1) / 2,
            3 => (3 * order).div_ceil(2),
            _ => 3 * order / 2,
        };
        let routers = 2 * order * order;
        let concentration = wanted.share(routers, links.div_ceil(2).min(ports.saturating_sub(links)))?;
        let size = [routers * concentration, routers, links + concentration];
        (order % 4 != 2 && is_prime_power(order))
            .then(|| Candidate::new(SLIM_FLY, "slim-fly", &[("order", order), ("concentration", concentration)], size))
    };
    (3..=ports).filter_map(fly).collect()
}

/// a (a h + 1) routers of p + a + h - 1 ports, with channels for all terminals: p <= h, 2 h <= a.
fn dragonflies(wanted: SizeTarget, ports: u64) -> Vec<Candidate> {
    let fly = |a: u64, h: u64| {
        let routers = a * (a * h + 1);
        let p = wanted.share(routers, h.min((ports + 1).saturating_sub(a + h)))?;
        let keys = [("terminals_per_router", p), ("routers_per_group", a), ("global_channels", h)];
        Some(Candidate::new(DRAGONFLY, "dragonfly", &keys, [p * routers, routers, p + a + h - 1]))
    };
    (1..=ports).flat_map(|a| (1..=a / 2).filter_map(move |h| fly(a, h))).collect()
}

/// L m leaves of p + m - 1 ports and m (m - 1) / 2 spines of 2 L, p at most m - 1.
fn multi_layer_full_meshes(wanted: SizeTarget, ports: u64) -> Vec<Candidate> {
    let mesh = |layers: u64, positions: u64| {
        let p = wanted.share(layers * positions, (positions - 1).min((ports + 1).saturating_sub(positions)))?;
        let keys = [("layers", layers), ("positions", positions), ("terminals_per_leaf", p)];
        let routers = layers * positions + positions * (positions - 1) / 2;
        let size = [layers * positions * p, routers, (p + positions - 1).max(2 * layers)];
        Some(Candidate::new(MLFM, "mlfm", &keys, size))
    };
    (1..=ports / 2).flat_map(|layers| (2..=ports).filter_map(move |positions| mesh(layers, positions))).collect()
}

/// (sides + 1) n routers of 2 (q + 1) ports, n = q^2 + q + 1.
fn orthogonal_fat_trees(family: &'static str, sides: u64, ports: u64) -> Vec<Candidate> {
    let tree = |order: u64| {
        let leaves = order * order + order + 1;
        let size = [sides * (order + 1) * leaves, (sides + 1) * leaves, 2 * (order + 1)];
        is_prime_power(order).then(|| Candidate::new(family, "oft", &[("order", order), ("sides", sides)], size))
    };
    (2..=ports / 2).filter_map(tree).collect()
}

/// Two-sided: 2 d^r terminals on (2 r - 1) d^(r-1) routers of 2 d ports.
fn fat_trees(family: &'static str, levels: u32, ports: u64) -> Vec<Candidate> {
    let tree = |d: u64| {
        let size = [2 * d.pow(levels), u64::from(2 * levels - 1) * d.pow(levels - 1), 2 * d];
        Candidate::new(family, "fat-tree", &[("up", d), ("down", d), ("levels", levels.into()), ("sides", 2)], size)
    };
    (2..=ports / 2).map(tree).collect()
}

/// A terminal on each router of 2 n + 1 ports; sides of 3 or more that differ by 2 at most. The longest side is even, so the network can be
/// halved.
fn meshes(family: &'static str, topology: &'static str, dimensions: usize, terminals: u64) -> Vec<Candidate> {
    let side = (terminals as f64).powf(1.0 / dimensions as f64) as u64;
    let mesh = |longest: u64, shorter: &[u64]| {
        let sides: Vec<u64> = shorter.iter().copied().chain([longest]).collect();
        let routers = sides.iter().product();
        let mut candidate = Candidate::new(family, topology, &[], [routers, routers, 2 * dimensions as u64 + 1]);
        candidate.parameters.insert("dimensions".to_owned(), sides.iter().map(|&side| side as i64).collect::<Vec<_>>().into());
        candidate
    };
    let choices = |longest: u64| {
        let near = (longest - 2).max(3)..=longest;
        match dimensions {
            2 => near.map(|one| mesh(longest, &[one])).collect::<Vec<_>>(),
            _ => near
                .clone()
                .flat_map(|one| near.clone().map(move |other| [one.min(other), one.max(other)]))
                .map(|two| mesh(longest, &two))
                .collect(),
        }
    };
    (side.max(4)..=side + 4).filter(|longest| longest.is_multiple_of(2)).flat_map(choices).collect()
}

fn is_prime_power(number: u64) -> bool {
    let Some(prime) = (2..=number).find(|&divisor| number.is_multiple_of(divisor)) else { return false };
    let mut rest = number;
    while rest.is_multiple_of(prime) {
        rest /= prime;
    }
    rest == 1
}
