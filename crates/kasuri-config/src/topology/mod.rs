//! Topologies that are read from files, and the table of all.
//!
//! To add one: a file here that implements [`Topology`] and [`Member`](kasuri_network::registry::Member), a `mod` line, and its line in
//! [`ALL_TOPOLOGIES`].

pub mod anynet;
pub mod file;

use kasuri_network::registry;
use kasuri_network::topology::{TOPOLOGIES, Topology};

registry! {
    /// All topologies that an experiment file can name, in the order in which `kasuri list topologies` shows them.
    pub ALL_TOPOLOGIES: dyn Topology = [..TOPOLOGIES, file::File, anynet::AnyNet]
}
