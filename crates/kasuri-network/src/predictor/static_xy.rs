//! Meshes and tori with dimension-order routing: the output that most pairs of terminals need.
//!
//! A packet that travels in dimension d has corrected the dimensions below it and may have any coordinate above it. So the share
//! of the destinations behind each output is a product of radices; the port with the greatest share is the guess, the lowest
//! port if several are equal.

use super::contract::{Built, PredictorEntry, fixed};
use super::grid::Grid;
use super::options::Options;
use crate::id::{Port, RouterId};
use crate::network::Network;

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "static-xy",
    summary: "meshes and tori: the output that most destinations need under dimension-order routing",
    source: super::contract::MATSUTANI,
    takes: &[],
    build,
};

fn build(network: &Network, _options: &Options) -> Built {
    let Some(grid) = Grid::of(network) else { return Err("it knows meshes and tori only".to_owned()) };
    Ok(Box::new(fixed(network, |router, input| {
        let terminals = network.port_count(router) as usize - 2 * grid.radix.len();
        most_likely(&grid, router, input, terminals as u64)
    })))
}

/// The output with the most destinations behind it.
fn most_likely(grid: &Grid<'_>, router: RouterId, input: Port, terminals: u64) -> Option<Port> {
    let mut shares: Vec<(Port, u64)> = Vec::new();
    let behind = |dimension: usize| terminals * grid.radix[dimension + 1..].iter().map(|&radix| u64::from(radix)).product::<u64>();
    let (first, weight) = match grid.dimension(input) {
        None => (0, 1),
        Some(dimension) => {
            let (straight, turn) = on_paths(grid, router, input, dimension);
            shares.push((input ^ 1, straight * behind(dimension)));
            (dimension + 1, turn)
        }
    };
    for dimension in first..grid.radix.len() {
        let [up, down] = ahead(grid, router, dimension);
        shares.push((2 * dimension as Port, weight * up * behind(dimension)));
        shares.push((2 * dimension as Port + 1, weight * down * behind(dimension)));
    }
    shares.push((2 * grid.radix.len() as Port, weight));
    // The last of equal maxima wins: so from the highest port down.
    shares.sort_unstable();
    shares.into_iter().rev().max_by_key(|&(_, share)| share).map(|(port, _)| port)
}

/// Of the pairs of coordinates whose path leads through an input port of a dimension: how many go on, how many end, up to a
/// common factor.
fn on_paths(grid: &Grid<'_>, router: RouterId, input: Port, dimension: usize) -> (u64, u64) {
    if grid.wraps {
        // Paths of m = 1 to h hops: each has m - 1 inner routers and one end.
        let most = u64::from(grid.radix[dimension] / 2);
        return (most * (most - 1), 2 * most);
    }
    (ahead(grid, router, dimension)[usize::from(input ^ 1) % 2], 1)
}

/// The other coordinates of a dimension that lie up and down from a router, in the shorter direction.
fn ahead(grid: &Grid<'_>, router: RouterId, dimension: usize) -> [u64; 2] {
    let radix = u64::from(grid.radix[dimension]);
    if grid.wraps {
        return [radix / 2, (radix - 1) / 2];
    }
    let here = u64::from(grid.coordinate(router, dimension));
    [radix - 1 - here, here]
}
