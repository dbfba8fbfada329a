//! A cluster as ASTRA-sim's files describe it: a network in dimensions, and how collectives become messages.

use super::trace::whole_ns;
use std::collections::BTreeMap;

/// The wiring of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Each NPU is linked to the one before and the one behind it.
    Ring,
    /// Each is linked to each.
    FullyConnected,
    /// Each is linked to one switch.
    Switch,
}

impl Topology {
    /// All, in the order in which messages name them.
    pub const ALL: [Self; 3] = [Self::Ring, Self::FullyConnected, Self::Switch];

    /// Its name in a network file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "Ring",
            Self::FullyConnected => "FullyConnected",
            Self::Switch => "Switch",
        }
    }
}

/// One dimension of the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dimension {
    /// How its NPUs are wired.
    pub topology: Topology,
    /// How many there are, at least 2.
    pub npus: u32,
    /// Of a link in one direction, in 2^30 bytes per second.
    pub bandwidth: f64,
    /// Of a link, in nanoseconds.
    pub latency_ns: f64,
}

impl Dimension {
    /// Bytes per nanosecond of a link.
    pub fn bytes_per_ns(&self) -> f64 {
        self.bandwidth * f64::from(1_u32 << 30) / 1e9
    }
}

/// The network: NPU x has the address x mod n0, (x / n0) mod n1, …
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// At least one.
    pub dimensions: Vec<Dimension>,
}

/// The most NPUs of a cluster.
pub const MAX_NPUS: u32 = 1 << 20;

impl Cluster {
    /// All NPUs; at most [`MAX_NPUS`], which whoever makes a cluster checks.
    pub fn npus(&self) -> u32 {
        self.dimensions.iter().map(|dimension| dimension.npus).product()
    }
}

/// How a collective is made of messages in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// From each to the next, step by step.
    Ring,
    /// From each to each.
    Direct {
        /// How many are under way at once; `None` stands for all.
        window: Option<u32>,
    },
    /// Exchanges with partners at distances of powers of two.
    HalvingDoubling,
    /// Up and down two trees in turn.
    DoubleBinaryTree,
}

/// An implementation, and whether it takes all NPUs as one ring whatever the dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which.
    pub implementation: Implementation,
    /// One ring over all NPUs.
    pub over_all: bool,
}

/// The four collectives for which a system file chooses implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// All-reduce.
    AllReduce,
    /// All-gather.
    AllGather,
    /// Reduce-scatter.
    ReduceScatter,
    /// All-to-all.
    AllToAll,
}

impl Pattern {
    /// All four.
    pub const ALL: [Self; 4] = [Self::AllReduce, Self::AllGather, Self::ReduceScatter, Self::AllToAll];

    /// Its name in a system file.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllToAll => "all-to-all",
        }
    }
}

/// How an all-reduce goes over several dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Optimization {
    /// An all-reduce of everything in each dimension.
    #[default]
    Baseline,
    /// Reduce-scatter up the dimensions, all-reduce in the last, all-gather down.
    LocalBandwidthAware,
}

/// The settings of a system file.
#[derive(Clone, Debug, Default, PartialEq)]
// Many fields, because the file has as many settings.
pub struct System {
    /// What a rank waits before it sends, in whole nanoseconds.
    pub endpoint_delay_ns: u64,
    /// How many chunks of a collective are worked on at once in a dimension.
    pub active_chunks: u32,
    /// Into how many chunks a collective is cut.
    pub splits: Option<u64>,
    /// The implementations of a collective, one a dimension.
    pub implementations: BTreeMap<Pattern, Vec<Choice>>,
    /// Collectives that are traces of their own: the prefix of their files.
    pub custom: BTreeMap<Pattern, String>,
    /// Nodes of the workload that are traces of their own: the prefix of their files.
    pub custom_nodes: BTreeMap<u64, String>,
    /// How an all-reduce goes over several dimensions.
    pub optimization: Optimization,
    /// Of the memory of an NPU, in 10^9 bytes per second.
    pub memory_gb_s: Option<f64>,
    /// Of an NPU, in 10^12 operations per second.
    pub peak_tflops: Option<f64>,
    /// Whether computations take the time of a roofline.
    pub roofline: bool,
    /// Whether every node takes the time that was recorded.
    pub replay_only: bool,
    /// Keys of the file that mean nothing here.
    pub ignored: Vec<String>,
}

impl System {
    /// How long it takes to reduce so many bytes, in whole nanoseconds: two reads and a write.
    ///
    /// # Errors
    /// The file has no memory bandwidth, or the time is too long to be simulated.
    pub fn reduction_ns(&self, bytes: u64) -> Result<u64, String> {
        let missing = || "local-mem-bw is missing in the system file, but a collective has to reduce".to_owned();
        let bandwidth = self.memory_gb_s.ok_or_else(missing)?;
        let ns = 3 * whole_ns(bytes as f64 / (bandwidth * 1e9) * 1e9)?;
        whole_ns(ns as f64).map(|_| ns)
    }
}

/// Communicator groups by their number: the NPUs in the order of their ring.
pub type Groups = BTreeMap<u32, Vec<u32>>;
