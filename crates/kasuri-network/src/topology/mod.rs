//! Topologies: each builds a [`Network`] from its parameters and is then gone.
//!
//! Knows no routing and no traffic. Members import the contract (`contract.rs`), never this file: `planes`, which copies
//! another topology, is given the table.
//!
//! To add one: a file here that implements [`Topology`] and [`Member`](crate::registry::Member), a `mod` line, and its line in
//! [`TOPOLOGIES`]. Coordinates, levels or groups that a routing needs are left as labels in the network. The attribute
//! `hops_per_class` = [h] says that shortest paths are free of deadlock if their hops use virtual-channel classes that change
//! after every h hops: 1 where nothing else is known, the whole diameter where shortest paths cannot close a cycle.

mod adjacency;
pub mod butterfly;
pub mod cenju4;
mod channels;
pub mod concentrated_mesh;
mod contract;
pub mod cubes;
pub mod dragonfly;
pub mod dragonfly_plus;
pub mod fat_tree;
pub mod flattened_butterfly;
pub mod full_mesh;
mod galois;
pub mod hpn_pod;
pub mod hxmesh;
pub mod hyperx;
pub mod jellyfish;
pub mod leaf_spine;
pub mod mesh;
pub mod mlfm;
pub mod oft;
pub mod omega;
pub mod on_chip_flattened_butterfly;
pub mod planes;
pub mod polarfly;
pub mod polarstar_paley;
pub mod rail_only;
pub mod rail_optimised;
pub mod rdt;
mod sizes;
pub mod slim_fly;
pub mod torus;
pub mod tree4;
pub mod twisted_torus;
pub mod xgft;
pub mod xpander;
pub mod yes_no;

pub use crate::files::{Files, NoFiles};
pub use channels::{ChannelParameters, PerDimension};
pub use contract::{BuildContext, Topology};

use crate::network::{Network, NetworkError};
use crate::registry;

/// A network by the name and the keys of its topology, for tests.
#[cfg(test)]
pub(crate) fn built(topology: &str, keys: &str) -> Network {
    let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
    let entry = crate::registry::find(TOPOLOGIES, topology).expect("a topology of this name");
    (entry.parse)(toml::from_str(keys).expect("TOML")).expect("its keys").build(&context).expect("a network")
}

registry! {
    /// All topologies that are built by a rule, in the order in which `kasuri list topologies` shows them; those that are read from files
    /// follow in `kasuri-config`.
    pub TOPOLOGIES: dyn Topology = [
        mesh::Mesh,
        torus::Torus,
        fat_tree::FatTree,
        full_mesh::FullMesh,
        butterfly::Butterfly,
        omega::Omega,
        cenju4::Cenju4Network,
        mlfm::Mlfm,
        oft::Oft,
        slim_fly::SlimFly,
        dragonfly::Dragonfly,
        flattened_butterfly::FlattenedButterfly,
        on_chip_flattened_butterfly::OnChipFlattenedButterfly,
        concentrated_mesh::ConcentratedMesh,
        tree4::Tree4,
        rdt::Rdt,
        xgft::Xgft,
        leaf_spine::LeafSpine,
        rail_optimised::RailOptimised,
        rail_only::RailOnly,
        hpn_pod::HpnPod,
        planes::Planes,
        dragonfly_plus::DragonflyPlus,
        hyperx::HyperX,
        twisted_torus::TwistedTorus,
        cubes::Cubes,
        hxmesh::HxMesh,
        polarfly::PolarFly,
        polarstar_paley::PolarStarPaley,
        jellyfish::Jellyfish,
        xpander::Xpander,
    ]
}

impl Topology for planes::Planes {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        self.build_of(TOPOLOGIES, context)
    }
}
