//! Topologies: each builds a [`Network`] from its parameters and is then gone.
//!
//! To add one: a file here that implements [`Topology`] and [`Member`](crate::registry::Member), a `mod` line, and its line in
//! [`TOPOLOGIES`]. Coordinates, levels or groups that a routing needs are left as labels in the network. The attribute
//! `hops_per_class` = [h] says that shortest paths are free of deadlock if their hops use virtual-channel classes that change
//! after every h hops: 1 where nothing else is known, the whole diameter where shortest paths cannot close a cycle.

mod adjacency;
pub mod butterfly;
pub mod cenju4;
pub mod concentrated_mesh;
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

use crate::network::{Link, MAX_CHANNEL_CYCLES, Network, NetworkError};
use crate::registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule that builds a network.
pub trait Topology: Send + Sync + std::fmt::Debug {
    /// Builds the network.
    ///
    /// # Errors
    /// Parameters outside their range, or a network too large for 32-bit numbers.
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError>;
}

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

/// What a topology gets besides its own parameters.
#[derive(Clone, Copy)]
pub struct BuildContext<'a> {
    /// How fast the channels are.
    pub channels: &'a ChannelParameters,
    /// Reads a file that a parameter names (relative to the experiment file).
    pub files: &'a dyn Files,
    /// The seed for structure that is drawn (`measure.seed` does not enter: the same file gives the same network).
    pub structure_seed: u64,
}

impl std::fmt::Debug for BuildContext<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BuildContext").field("channels", &self.channels).finish_non_exhaustive()
    }
}

/// A number for all dimensions, or one for each.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PerDimension {
    /// The same in every dimension.
    All(u32),
    /// One number per dimension (for a tree: per level of links, leaf upwards).
    Each(Vec<u32>),
}

impl PerDimension {
    /// The number for one dimension. Check the length first with [`PerDimension::check`].
    pub fn at(&self, dimension: usize) -> u32 {
        match self {
            Self::All(value) => *value,
            Self::Each(values) => values[dimension],
        }
    }

    /// The least of the numbers; 0 of none.
    pub fn least(&self) -> u32 {
        match self {
            Self::All(value) => *value,
            Self::Each(values) => values.iter().copied().min().unwrap_or(0),
        }
    }

    /// The greatest of the numbers; 0 of none.
    pub fn greatest(&self) -> u32 {
        match self {
            Self::All(value) => *value,
            Self::Each(values) => values.iter().copied().max().unwrap_or(0),
        }
    }

    /// Refuses a list of the wrong length.
    ///
    /// # Errors
    /// The list's length is not `dimensions`.
    pub fn check(&self, key: &str, dimensions: usize) -> Result<(), NetworkError> {
        match self {
            Self::Each(values) if values.len() != dimensions => Err(NetworkError::parameter(
                key,
                format!("has {} numbers, but the network has {dimensions} dimensions; give one number, or one for each", values.len()),
            )),
            _ => Ok(()),
        }
    }
}

/// The keys of `[network]` that say how fast its channels are, whatever the topology.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChannelParameters {
    /// Latency of the channels between routers, in cycles: a flit is seen by the receiver `latency + 1` cycles after sending.
    pub channel_latency: PerDimension,
    /// Cycles that a flit occupies a channel between routers; as with latencies, topologies with several kinds of links take a list.
    pub channel_period: PerDimension,
    /// Latency of the injection and ejection channels, in cycles.
    pub terminal_channel_latency: u32,
    /// Cycles that a flit occupies an injection or ejection channel.
    pub terminal_channel_period: u32,
}

impl Default for ChannelParameters {
    fn default() -> Self {
        Self {
            channel_latency: PerDimension::All(1),
            channel_period: PerDimension::All(1),
            terminal_channel_latency: 1,
            terminal_channel_period: 1,
        }
    }
}

impl ChannelParameters {
    /// The channel between routers in this dimension.
    pub fn link(&self, dimension: usize) -> Link {
        Link { latency: self.channel_latency.at(dimension), period: self.channel_period.at(dimension) }
    }

    /// The channel between a terminal and its router.
    pub fn terminal_link(&self) -> Link {
        Link { latency: self.terminal_channel_latency, period: self.terminal_channel_period }
    }

    /// Refuses a period of 0 and whatever is beyond [`MAX_CHANNEL_CYCLES`].
    ///
    /// # Errors
    /// A latency or period outside its range, or a list of latencies of the wrong length.
    pub fn check(&self, dimensions: usize) -> Result<(), NetworkError> {
        self.channel_latency.check("channel_latency", dimensions)?;
        self.channel_period.check("channel_period", dimensions)?;
        for (key, period) in [("channel_period", self.channel_period.least()), ("terminal_channel_period", self.terminal_channel_period)] {
            if period == 0 {
                return Err(NetworkError::parameter(key, "is 0; a flit occupies a channel for at least 1 cycle"));
            }
        }
        for (key, cycles) in [
            ("channel_latency", self.channel_latency.greatest()),
            ("channel_period", self.channel_period.greatest()),
            ("terminal_channel_latency", self.terminal_channel_latency),
            ("terminal_channel_period", self.terminal_channel_period),
        ] {
            if cycles > MAX_CHANNEL_CYCLES {
                return Err(NetworkError::parameter(key, format!("is {cycles}; it must be at most {MAX_CHANNEL_CYCLES} cycles")));
            }
        }
        Ok(())
    }
}
