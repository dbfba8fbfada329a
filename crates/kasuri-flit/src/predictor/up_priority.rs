//! Further up: the i-th port from below is connected with the i-th up (modulo their number). Nothing else is predicted.

use super::tree::Tree;
use super::{Built, fixed};
use kasuri_model::id::Port;
use kasuri_model::network::Network;

pub(super) fn build(network: &Network) -> Built {
    let Some(tree) = Tree::of(network) else { return Err("it knows fat trees only".to_owned()) };
    Ok(Box::new(fixed(network, |router, input| {
        let input = u32::from(input);
        (!tree.is_top(router) && input < tree.down).then(|| (tree.down + input % tree.up) as Port)
    })))
}
