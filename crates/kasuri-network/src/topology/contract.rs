//! The contract of topologies: their parameters build a network in a context.

use super::channels::ChannelParameters;
use crate::files::Files;
use crate::network::{Network, NetworkError};

/// A rule that builds a network.
pub trait Topology: Send + Sync + std::fmt::Debug {
    /// Builds the network.
    ///
    /// # Errors
    /// Parameters outside their range, or a network too large for 32-bit numbers.
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError>;
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
