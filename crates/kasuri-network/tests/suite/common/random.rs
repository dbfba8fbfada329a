//! Networks of random shape.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use crate::common::{network, wired};
use kasuri_network::network::Network;
use proptest::prelude::*;
use std::sync::Arc;

fn grid() -> impl Strategy<Value = Arc<Network>> {
    (any::<bool>(), proptest::collection::vec(2u32..6, 1..4), 1u32..3).prop_map(|(wrap, dimensions, concentration)| {
        let name = if wrap { "torus" } else { "mesh" };
        network(name, &format!("dimensions = {dimensions:?}\nconcentration = {concentration}"))
    })
}

fn tree() -> impl Strategy<Value = Arc<Network>> {
    (1u32..5, 2u32..5, 1u32..4, 1u32..3).prop_map(|(up, down, levels, sides)| {
        let up = if sides == 2 { down } else { up };
        network("fat-tree", &format!("up = {up}\ndown = {down}\nlevels = {levels}\nsides = {sides}"))
    })
}

fn other() -> impl Strategy<Value = Arc<Network>> {
    prop_oneof![
        (2u32..9, 1u32..3).prop_map(|(routers, each)| network("full-mesh", &format!("routers = {routers}\nconcentration = {each}"))),
        (2u32..5, 1u32..4).prop_map(|(radix, stages)| network("butterfly", &format!("radix = {radix}\nstages = {stages}"))),
    ]
}

/// A connected network without any structure: a random tree, more links at random, terminals anywhere.
pub(crate) fn unstructured() -> impl Strategy<Value = Arc<Network>> {
    let links = proptest::collection::vec((any::<u32>(), any::<u32>(), 0u32..4), 0..20);
    (proptest::collection::vec(any::<u32>(), 1..14), links, proptest::collection::vec(any::<u32>(), 2..12)).prop_map(
        |(parents, links, homes)| {
            let routers = parents.len() as u32 + 1;
            let tree = (1..routers).zip(&parents).map(|(child, parent)| (child, parent % child, 2));
            let more = links.into_iter().map(|(one, other, latency)| (one % routers, other % routers, latency));
            let all = tree.chain(more.filter(|(one, other, _)| one != other));
            let wires: Vec<_> = all.map(|(one, other, latency)| (one, other, latency, Some(latency))).collect();
            let homes: Vec<_> = homes.into_iter().map(|home| (home % routers, home % routers)).collect();
            Arc::new(wired(routers, &wires, &homes))
        },
    )
}

/// A grid, a tree, a full mesh or butterfly, or a network without structure.
pub(crate) fn any_network() -> impl Strategy<Value = Arc<Network>> {
    prop_oneof![grid(), tree(), other(), unstructured()]
}
