//! Further up: the i-th port from below is connected with the i-th up (modulo their number). Nothing else is predicted.

use super::contract::{Built, PredictorEntry, fixed};
use super::options::Options;
use super::tree::Tree;
use crate::id::Port;
use crate::network::Network;

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "up-priority",
    summary: "fat trees: packets from below go further up; no guess for those from above and at the top",
    source: "the static choice that needs no more than hint bits: a packet from below goes up or has reached its top",
    takes: &[],
    build,
};

fn build(network: &Network, _options: &Options) -> Built {
    let Some(tree) = Tree::of(network) else { return Err("it knows fat trees only".to_owned()) };
    Ok(Box::new(fixed(network, |router, input| {
        let input = u32::from(input);
        (!tree.is_top(router) && input < tree.down).then(|| (tree.down + input % tree.up) as Port)
    })))
}
