//! Express virtual channels: packets that go straight on over two routers or more pass those between.
//!
//! Meshes and tori: straight on is along a dimension. Fat trees: upwards, by the ports of static-straight. A packet's path is known before
//! it comes, so only packets that go on there are let through, and nothing is guessed of others, of those that come from a terminal, nor of
//! the way down. Such a packet is announced to the router a cycle ahead and has its virtual channel and its turn at the switch before all
//! that wait there.

use super::contract::{Built, Fixed, Predictor, PredictorEntry, fixed};
use super::grid::Grid;
use super::options::Options;
use super::tree::Tree;
use crate::id::{Port, RouterId};
use crate::network::Network;

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: super::contract::EXPRESS,
    summary: "express virtual channels: packets that go straight on, in trees upwards, pass the routers between before all others",
    source: "Kumar, Peh, Kundu and Jha, Express Virtual Channels: Towards the Ideal Interconnection Fabric (ISCA 2007)",
    takes: &[],
    build,
};

struct Express(Fixed);

fn build(network: &Network, _options: &Options) -> Built {
    if let Some(tree) = Tree::of(network) {
        return Ok(Box::new(Express(fixed(network, |router, input| upwards(&tree, router, input)))));
    }
    match Grid::of(network) {
        Some(grid) => Ok(Box::new(Express(fixed(network, |_, input| grid.straight(input))))),
        None => Err("it knows what is straight on in fat trees, meshes and tori".to_owned()),
    }
}

/// Below the leaves there are terminals, and above the top nothing.
fn upwards(tree: &Tree<'_>, router: RouterId, input: Port) -> Option<Port> {
    let is_between = tree.level(router) > 1 && !tree.is_top(router);
    (is_between && u32::from(input) < tree.down).then(|| (tree.down + u32::from(input) % tree.up) as Port)
}

impl Predictor for Express {
    fn predict(&self, input: usize) -> Option<Port> {
        self.0.predict(input)
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn is_express(&self) -> bool {
        true
    }
}
