//! The smallest instance of each topology for so many terminals and ports, by closed forms.

use toml::Table;

/// One instance, by what the closed forms of its topology say.
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

/// The smallest instance of each family that has at least so many terminals on routers of at most so many ports; `None` for a
/// family in which there is none. Fat trees of 4 levels are there where 3 are too few. Only instances that carry uniform traffic as well as their family is meant to are looked at:
/// no more terminals on a router than links for them.
pub fn smallest(terminals: u64, ports: u64) -> Vec<(&'static str, Option<Candidate>)> {
    let families: [(&'static str, Vec<Candidate>); 11] = [
        (FULL_MESH, full_meshes(terminals, ports)),
        (FLAT_2, flattened_butterflies(FLAT_2, 2, terminals, ports)),
        (FLAT_3, flattened_butterflies(FLAT_3, 3, terminals, ports)),
        (SLIM_FLY, slim_flies(terminals, ports)),
        (DRAGONFLY, dragonflies(terminals, ports)),
        (MLFM, multi_layer_full_meshes(terminals, ports)),
        (OFT_1, orthogonal_fat_trees(OFT_1, 1, ports)),
        (OFT_2, orthogonal_fat_trees(OFT_2, 2, ports)),
        (TREE_2, fat_trees(TREE_2, 2, ports)),
        (TREE_3, fat_trees(TREE_3, 3, ports)),
        (TREE_4, fat_trees(TREE_4, 4, ports)),
    ];
    let fits = |candidate: &Candidate| candidate.terminals >= terminals && candidate.ports <= ports;
    let mut found: Vec<_> =
        families.into_iter().map(|(family, all)| (family, all.into_iter().filter(fits).min_by_key(Candidate::size))).collect();
    // More levels than are needed only cost.
    if found.iter().any(|(family, tree)| *family == TREE_3 && tree.is_some()) {
        found.retain(|(family, _)| *family != TREE_4);
    }
    found
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

/// R routers of R - 1 + c ports, c at most R - 1.
fn full_meshes(terminals: u64, ports: u64) -> Vec<Candidate> {
    let mesh = |routers: u64| {
        let concentration = terminals.div_ceil(routers);
        let keys = [("routers", routers), ("concentration", concentration)];
        (concentration < routers)
            .then(|| Candidate::new(FULL_MESH, "full-mesh", &keys, [routers * concentration, routers, routers - 1 + concentration]))
    };
    (2..=ports).filter_map(mesh).collect()
}

/// k^n routers of n (k - 1) + c ports, c at most k.
fn flattened_butterflies(family: &'static str, dimensions: u32, terminals: u64, ports: u64) -> Vec<Candidate> {
    let flat = |radix: u64| {
        let routers = radix.pow(dimensions);
        let concentration = terminals.div_ceil(routers);
        let size = [routers * concentration, routers, u64::from(dimensions) * (radix - 1) + concentration];
        let mut candidate = Candidate::new(family, "flattened-butterfly", &[("concentration", concentration)], size);
        candidate.parameters.insert("dimensions".to_owned(), vec![radix as i64; dimensions as usize].into());
        (concentration <= radix).then_some(candidate)
    };
    (2..=ports).filter_map(flat).collect()
}

/// 2 q^2 routers of k + c ports, k = (3 q - e) / 2, c at most k / 2 rounded up.
fn slim_flies(terminals: u64, ports: u64) -> Vec<Candidate> {
    let fly = |order: u64| {
        let links = match order % 4 {
            1 => (3 * order - 1) / 2,
            3 => (3 * order).div_ceil(2),
            _ => 3 * order / 2,
        };
        let concentration = terminals.div_ceil(2 * order * order);
        let size = [2 * order * order * concentration, 2 * order * order, links + concentration];
        let fits = order % 4 != 2 && is_prime_power(order) && concentration <= links.div_ceil(2);
        fits.then(|| Candidate::new(SLIM_FLY, "slim-fly", &[("order", order), ("concentration", concentration)], size))
    };
    (3..=ports).filter_map(fly).collect()
}

/// a (a h + 1) routers of p + a + h - 1 ports, with channels for all terminals: p <= h, 2 h <= a.
fn dragonflies(terminals: u64, ports: u64) -> Vec<Candidate> {
    let fly = |a: u64, h: u64| {
        let routers = a * (a * h + 1);
        let p = terminals.div_ceil(routers);
        let keys = [("terminals_per_router", p), ("routers_per_group", a), ("global_channels", h)];
        (p <= h).then(|| Candidate::new(DRAGONFLY, "dragonfly", &keys, [p * routers, routers, p + a + h - 1]))
    };
    (1..=ports).flat_map(|a| (1..=a / 2).filter_map(move |h| fly(a, h))).collect()
}

/// L m leaves of p + m - 1 ports and m (m - 1) / 2 spines of 2 L, p at most m - 1.
fn multi_layer_full_meshes(terminals: u64, ports: u64) -> Vec<Candidate> {
    let mesh = |layers: u64, positions: u64| {
        let p = terminals.div_ceil(layers * positions);
        let keys = [("layers", layers), ("positions", positions), ("terminals_per_leaf", p)];
        let routers = layers * positions + positions * (positions - 1) / 2;
        let size = [layers * positions * p, routers, (p + positions - 1).max(2 * layers)];
        (p < positions).then(|| Candidate::new(MLFM, "mlfm", &keys, size))
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

fn is_prime_power(number: u64) -> bool {
    let Some(prime) = (2..=number).find(|&divisor| number.is_multiple_of(divisor)) else { return false };
    let mut rest = number;
    while rest.is_multiple_of(prime) {
        rest /= prime;
    }
    rest == 1
}
