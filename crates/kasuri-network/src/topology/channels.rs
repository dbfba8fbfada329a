//! The latency and bandwidth of a topology's channels: keys that all topologies share.

use crate::network::{Link, MAX_CHANNEL_CYCLES, NetworkError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
