use super::PathFormula;
use crate::id::RouterId;
use crate::network::Network;
use crate::routing::metric::Metric;
use crate::routing::shortest::Shortest;

/// Panics unless a formula gives the ports, hops and diameter that a search from each target finds.
pub(super) fn agrees_with_a_search(network: &Network, metric: Metric, formula: &dyn PathFormula) {
    let targets: Vec<_> = (0..network.router_count()).map(|router| vec![router]).collect();
    let table = Shortest::search(network, metric, &targets, true).unwrap();
    assert_eq!(formula.diameter(), table.diameter);
    for (router, target) in (0..network.router_count()).flat_map(|one| (0..network.router_count()).map(move |other| (one, other))) {
        assert_eq!(formula.ports(RouterId(router), RouterId(target)), table.ports(RouterId(router), target));
        assert_eq!(formula.hops(RouterId(router), RouterId(target)), table.hops(RouterId(router), target));
    }
}
