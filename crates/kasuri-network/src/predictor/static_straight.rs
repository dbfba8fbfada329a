//! Straight on.
//!
//! Fat trees: the i-th port from below is connected with the i-th up, the j-th from above with the j-th down. The top folds
//! back ([`Fold`]): input i with output i + 1, since no packet leaves by the port that it came in, unless `predictor_fold` says
//! otherwise. Where p = q all connections of a router form a one-to-one map, so predictions never meet. Meshes and tori: along the
//! dimension. Butterflies: by number.

use super::contract::{Built, Fixed, PredictorEntry, fixed};
use super::grid::Grid;
use super::options::{Fold, Options};
use super::tree::Tree;
use crate::id::{Port, RouterId};
use crate::network::Network;

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "static-straight",
    summary: "straight on: in trees up and down by the number of the input port, folding back at the top; in grids along the dimension",
    source: super::contract::MATSUTANI,
    takes: &["predictor_fold"],
    build,
};

fn build(network: &Network, options: &Options) -> Built {
    if let Some(tree) = Tree::of(network) {
        return Ok(Box::new(in_tree(network, &tree, options.fold.unwrap_or_default())?));
    }
    if options.fold.is_some() {
        return Err("predictor_fold is what the top of a fat tree predicts; leave it out".to_owned());
    }
    if let Some(grid) = Grid::of(network) {
        return Ok(Box::new(fixed(network, |_, input| grid.straight(input))));
    }
    if network.labels().router("stage").is_some() {
        return Ok(Box::new(fixed(network, |_, input| Some(input))));
    }
    Err("it knows what is straight on in fat trees, meshes, tori and butterflies".to_owned())
}

fn in_tree(network: &Network, tree: &Tree<'_>, fold: Fold) -> Result<Fixed, String> {
    let is_top = |router: &RouterId| tree.is_top(*router);
    let folded = |router| (0..network.port_count(router)).map(move |input| fold.of(input, network.port_count(router)));
    (0..network.router_count()).map(RouterId).filter(is_top).flat_map(folded).try_for_each(|output| output.map(|_| ()))?;
    Ok(fixed(network, |router, input| {
        let input = u32::from(input);
        let output = if tree.is_top(router) {
            fold.of(input, network.port_count(router)).ok()?
        } else if input < tree.down {
            tree.down + input % tree.up
        } else {
            (input - tree.down) % tree.down
        };
        Some(output as Port)
    }))
}
