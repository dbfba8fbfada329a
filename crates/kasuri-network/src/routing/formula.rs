//! Shortest paths by formula: on regular networks they follow from where the routers are, and need no table.
//!
//! To add one: a file here that implements [`PathFormula`], a `mod` line, and its line in [`FORMULAS`].

use super::grid_paths::GridPaths;
use super::group_paths::GroupPaths;
use super::shortest::Metric;
use crate::id::{Port, RouterId};
use crate::network::Network;

/// What a table of shortest paths between all routers would say.
pub(super) trait PathFormula: Send + Sync + std::fmt::Debug {
    /// The ports on shortest paths, ascending; none at the target itself.
    fn ports(&self, router: RouterId, target: RouterId) -> &[Port];

    /// Hops between two routers.
    fn hops(&self, router: RouterId, target: RouterId) -> u32;

    /// The most hops between two routers.
    fn diameter(&self) -> u32;

    /// Bytes in memory.
    fn bytes(&self) -> u64;
}

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
pub(super) mod tests {
    use super::super::shortest::Shortest;
    use super::*;

    /// Panics unless a formula gives the ports, hops and diameter that a search from each target finds.
    pub(in crate::routing) fn agrees_with_a_search(network: &Network, metric: Metric, formula: &dyn PathFormula) {
        let targets: Vec<_> = (0..network.router_count()).map(|router| vec![router]).collect();
        let table = Shortest::search(network, metric, &targets, true).unwrap();
        assert_eq!(formula.diameter(), table.diameter);
        for (router, target) in (0..network.router_count()).flat_map(|one| (0..network.router_count()).map(move |other| (one, other))) {
            assert_eq!(formula.ports(RouterId(router), RouterId(target)), table.ports(RouterId(router), target));
            assert_eq!(formula.hops(RouterId(router), RouterId(target)), table.hops(RouterId(router), target));
        }
    }
}
