//! Straight on.
//!
//! Fat trees: the i-th port from below is connected with the i-th up, the j-th from above with the j-th down. The top folds
//! back: input i with output i + 1, since no packet leaves by the port that it came in. Where p = q all connections of a router
//! form a one-to-one map, so predictions never meet. Meshes and tori: along the dimension. Butterflies: by number.

use super::grid::Grid;
use super::tree::Tree;
use super::{Built, PredictorEntry, fixed};
use crate::id::Port;
use crate::network::Network;

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "static-straight",
    summary: "straight on: in trees up and down by the number of the input port, folding back at the top; in grids along the dimension",
    source: super::MATSUTANI,
    build,
};

fn build(network: &Network) -> Built {
    if let Some(tree) = Tree::of(network) {
        return Ok(Box::new(fixed(network, |router, input| {
            let input = u32::from(input);
            let output = if tree.is_top(router) {
                (input + 1) % network.port_count(router)
            } else if input < tree.down {
                tree.down + input % tree.up
            } else {
                (input - tree.down) % tree.down
            };
            Some(output as Port)
        })));
    }
    if let Some(grid) = Grid::of(network) {
        return Ok(Box::new(fixed(network, |_, input| grid.straight(input))));
    }
    if network.labels().router("stage").is_some() {
        return Ok(Box::new(fixed(network, |_, input| Some(input))));
    }
    Err("it knows what is straight on in fat trees, meshes, tori and butterflies".to_owned())
}
