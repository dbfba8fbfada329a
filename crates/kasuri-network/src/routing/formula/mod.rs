//! Shortest paths by formula: on regular networks they follow from where the routers are, and need no table.
//!
//! Knows no table of paths: a search takes over where no formula recognises the network.
//!
//! To add one: a file here that implements [`PathFormula`], a `mod` line, and its line in [`FORMULAS`].

mod grid_paths;
mod group_paths;
mod path_formula;

pub(super) use path_formula::PathFormula;

use super::metric::Metric;
use crate::network::Network;
use grid_paths::GridPaths;
use group_paths::GroupPaths;

/// Looks whether a network is of the kind that a formula knows, channel by channel.
type Recognise = fn(&Network, Metric) -> Option<Box<dyn PathFormula>>;

/// All formulas; the first that knows a network is taken.
const FORMULAS: [Recognise; 2] = [GridPaths::of, GroupPaths::of];

/// The shortest paths of a network by formula, if it is of a kind that one knows.
pub(super) fn recognise(network: &Network, metric: Metric) -> Option<Box<dyn PathFormula>> {
    // A formula knows whole networks alone.
    let is_whole = network.damage().is_none();
    FORMULAS.iter().filter(|_| is_whole).find_map(|recognise| recognise(network, metric))
}

#[cfg(test)]
mod tests;
