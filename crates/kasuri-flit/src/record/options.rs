//! The engine's own section of the experiment file, `[flit]`: how it computes, never what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// The keys of `[flit]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlitOptions {
    /// Vector instructions: the best that the processor has, or none. The results are the same, bit for bit.
    pub simd: Simd,
    /// How the state of the routers lies in memory; the fastest layout that has all that the routers need unless given. One that lacks
    /// something is refused. The results are the same, bit for bit.
    pub layout: Option<LayoutName>,
    /// Tiles into which the network is cut, at most; each owns its state, and they exchange what crosses their borders. Machines and users
    /// have all terminals in one, lookahead that decides on departure has one alone. The results are the same, bit for bit.
    pub tiles: Option<NonZeroU32>,
    /// Threads for one run, at most: a number, or "auto" for as many as the size of the network is worth. Runs of a sweep come first: one gets
    /// several threads where fewer runs than cores are left. The results are the same, bit for bit, and kept under the same key.
    pub threads: ThreadCount,
}

/// A number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "threads is a number, at least 1, or \"auto\"")]
pub enum ThreadCount {
    /// As many as are worth it.
    Auto(Auto),
    /// So many.
    Fixed(NonZeroU32),
    /// Nothing is said: as `Auto`.
    #[default]
    #[serde(skip)]
    Unsaid,
}

/// The word "auto".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Auto {
    /// It.
    #[serde(rename = "auto")]
    Auto,
}

impl ThreadCount {
    /// The number that was asked for, if one was.
    pub(crate) fn asked(self) -> Option<usize> {
        match self {
            Self::Fixed(count) => Some(count.get() as usize),
            Self::Auto(_) | Self::Unsaid => None,
        }
    }
}

/// Which vector instructions may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Simd {
    /// The fastest for the scenario and the processor.
    #[default]
    Auto,
    /// None.
    Portable,
    /// The vector layout wherever the scenario allows it, also where it is expected to be slower.
    Always,
}

/// How the state of the routers lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutName {
    /// One byte for each counter and 64 virtual channels in a vector register: canonical routers, on processors with AVX-512.
    Avx512,
    /// A record for each virtual channel: canonical routers, with predictors or without, and crosspoint routers.
    Plain,
    /// A router as a whole, step by step: every allocator, priorities, speed-ups, shared and output buffers.
    Full,
}

impl LayoutName {
    /// All, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Plain, Self::Full];

    /// The name in the experiment file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Plain => "plain",
            Self::Full => "full",
        }
    }
}
