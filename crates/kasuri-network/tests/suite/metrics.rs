//! Counts, distances and bisections against closed forms.

use crate::common::network;
use kasuri_network::network::metrics::{Basis, Bisection, Metrics};

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "found {found}, expected {expected}");
}

/// Sum of |a - b| over ordered pairs of k coordinates: k (k^2 - 1) / 3; round a ring: k times floor(k^2 / 4).
#[test]
fn grids_have_the_distances_of_their_dimensions() {
    for dimensions in [vec![8u32, 8], vec![4, 3], vec![5], vec![3, 2, 4], vec![7, 6]] {
        let routers: u32 = dimensions.iter().product();
        let pairs = f64::from(routers) * f64::from(routers - 1);
        for wrap in [false, true] {
            let name = if wrap { "torus" } else { "mesh" };
            let metrics = Metrics::of(&network(name, &format!("dimensions = {dimensions:?}")));
            let sum: f64 = dimensions
                .iter()
                .map(|&k| {
                    let one = if wrap { f64::from(k * (k * k / 4)) } else { f64::from(k * (k * k - 1)) / 3.0 };
                    one * f64::from(routers / k).powi(2)
                })
                .sum();
            assert_close(metrics.distances.average, sum / pairs);
            let diameter: u32 = dimensions.iter().map(|&k| if wrap { k / 2 } else { k - 1 }).sum();
            assert_eq!(metrics.distances.diameter, diameter);
            let links: u32 = dimensions.iter().map(|&k| routers / k * if wrap { k } else { k - 1 }).sum();
            assert_eq!((metrics.links, metrics.router_channels), (links.into(), 2 * u64::from(links)));
            assert_eq!((metrics.distances.walked, metrics.distances.unreachable), (routers, None));
        }
    }
}

/// A pair of terminals whose nearest common ancestor is at level L is 2 (L - 1) hops apart; E[L] = r q^r / (q^r - 1) - 1 / (q - 1).
#[test]
fn fat_trees_have_the_distances_of_their_levels() {
    for (p, q, r) in [(4, 4, 3), (2, 4, 2), (3, 2, 4), (16, 16, 2)] {
        let metrics = Metrics::of(&network("fat-tree", &format!("up = {p}\ndown = {q}\nlevels = {r}")));
        let (base, levels) = (f64::from(q), f64::from(r));
        let terminals = base.powi(r);
        let level = levels * terminals / (terminals - 1.0) - 1.0 / (base - 1.0);
        assert_close(metrics.distances.average, 2.0 * (level - 1.0));
        assert_eq!(metrics.distances.diameter, 2 * (r as u32 - 1));
    }
    let tree = Metrics::of(&network("fat-tree", "up = 4\ndown = 4\nlevels = 3"));
    assert_eq!((tree.terminals, tree.routers, tree.links, tree.radix), (64, 48, 128, 8));
    assert_eq!(tree.bisection.unwrap().channels, 64);
    let two_levels = Metrics::of(&network("fat-tree", "up = 16\ndown = 16\nlevels = 2"));
    assert_eq!((two_levels.terminals, two_levels.routers, two_levels.links), (256, 32, 256));
}

/// One hop to every other router; a butterfly crosses stages - 1 channels whatever the pair.
#[test]
fn full_meshes_and_butterflies() {
    let mesh = Metrics::of(&network("full-mesh", "routers = 6\nconcentration = 3"));
    assert_close(mesh.distances.average, 15.0 / 17.0);
    assert_eq!((mesh.links, mesh.radix, mesh.bisection.unwrap().channels), (15, 8, 18));
    let fly = Metrics::of(&network("butterfly", "radix = 3\nstages = 3"));
    assert_close(fly.distances.average, 2.0);
    assert_eq!((fly.distances.diameter, fly.routers, fly.router_channels, fly.links), (2, 27, 54, 54));
}

#[test]
fn the_heuristic_finds_the_closed_forms() {
    for (name, parameters, channels) in [
        ("mesh", "dimensions = [8, 8]", 16),
        ("mesh", "dimensions = [4, 3]", 6),
        ("mesh", "dimensions = [6]\nconcentration = 4", 2),
        ("torus", "dimensions = [8, 8]", 32),
        ("torus", "dimensions = [4, 4, 4]", 64),
        ("torus", "dimensions = [2]", 4),
        ("fat-tree", "up = 4\ndown = 4\nlevels = 3", 64),
        ("fat-tree", "up = 2\ndown = 2\nlevels = 4", 16),
        ("fat-tree", "up = 3\ndown = 3\nlevels = 2\nsides = 2", 18),
        ("full-mesh", "routers = 7", 24),
    ] {
        let network = network(name, parameters);
        let exact = Bisection::of(&network).unwrap();
        assert!(matches!(exact.basis, Basis::ClosedForm(_)), "{}", network.name());
        assert_eq!(exact.channels, channels, "{}", network.name());
        assert_close(exact.bandwidth, channels as f64);
        let found = Bisection::heuristic(&network).unwrap();
        assert_eq!((found.channels, found.basis), (channels, Basis::UpperBound), "{}", network.name());
    }
}

/// Odd radices have no simple formula here: the heuristic's bound is at least the bound by the narrower even mesh.
#[test]
fn without_a_formula_the_bound_is_named_as_one() {
    let odd = Bisection::of(&network("mesh", "dimensions = [5, 5]")).unwrap();
    assert_eq!(odd.basis, Basis::UpperBound);
    // The bisection width of an odd k x k mesh is k + 1 links.
    assert_eq!(odd.channels, 2 * 6);
    assert_eq!(Bisection::of(&network("fat-tree", "up = 4\ndown = 4\nlevels = 1")), None);
}
