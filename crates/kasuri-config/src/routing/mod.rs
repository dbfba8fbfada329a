//! Routings that are read from files, and the table of all.
//!
//! To add one: a file here that implements [`RoutingAlgorithm`] and [`Member`](kasuri_network::registry::Member), a `mod` line, and its
//! line in [`ALL_ROUTINGS`].

pub mod tables;

use kasuri_network::registry;
use kasuri_network::routing::{ROUTINGS, RoutingAlgorithm};

registry! {
    /// All routings that an experiment file can name, in the order in which `kasuri list routings` shows them.
    pub ALL_ROUTINGS: dyn RoutingAlgorithm = [..ROUTINGS, tables::Tables]
}
