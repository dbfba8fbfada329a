//! Endpoints: what stands between a processor and the network, its meaning without time.
//!
//! Without `[endpoint]` a terminal is an ideal source with a queue. A model here is a machine of its own: tables, memories,
//! protection, and programs that run on it, described by `[workload]`. The engine that knows the model's timing runs it.
//!
//! To add one: a file (or folder) here that implements [`EndpointModel`] and [`Member`](crate::registry::Member), its line in
//! [`ENDPOINTS`], and its timed side in the engine (`kasuri-flit/src/endpoint/`).

pub mod cenju4;
pub mod dsm;
pub mod tlb;

use crate::network::Network;
use crate::registry;
use crate::rng::Streams;
use crate::router::RouterParameters;
use crate::routing::VirtualChannels;
use crate::scenario::Units;
use schemars::Schema;
use std::any::Any;
use std::sync::Arc;
use toml::Table;

/// The keys of `[endpoint]`: a model and its constants.
pub trait EndpointModel: Send + Sync + std::fmt::Debug {
    /// The keys of `[workload]` that this model reads.
    fn workload_schema(&self) -> Schema;

    /// Puts the machine and the programs of its nodes together.
    ///
    /// # Errors
    /// A value of `[endpoint]` or `[workload]` is impossible, or at odds with the network or the routers.
    fn prepare(&self, context: &EndpointContext<'_>) -> Result<Arc<dyn Endpoint>, EndpointError>;
}

/// A machine with its programs: what the engine casts to the type of the model that it knows.
pub trait Endpoint: Any + Send + Sync + std::fmt::Debug {
    /// The name in the experiment file.
    fn model(&self) -> &'static str;

    /// The least and the greatest length of its packets in flits, if they go through routers with virtual channels.
    fn packet_flits(&self) -> Option<[u32; 2]> {
        None
    }

    /// The ranges of virtual channels that its packets use: of each kind of packet one.
    fn virtual_channels(&self) -> Vec<VirtualChannels> {
        Vec::new()
    }
}

registry! {
    /// All endpoint models.
    pub ENDPOINTS: dyn EndpointModel = [
        cenju4::Cenju4,
        dsm::Dsm,
    ]
}

/// What a model gets besides its own parameters.
#[derive(Clone, Copy)]
pub struct EndpointContext<'a> {
    /// The network whose terminals are the nodes.
    pub network: &'a Network,
    /// The routers.
    pub router: &'a RouterParameters,
    /// What flits and cycles are.
    pub units: Units,
    /// The random streams of the run.
    pub streams: &'a Streams,
    /// `[workload]`, whose keys have the types that the schema says.
    pub workload: &'a Table,
}

impl std::fmt::Debug for EndpointContext<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EndpointContext").field("network", &self.network.name()).finish_non_exhaustive()
    }
}

/// Why a machine cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{section}.{key} {problem}")]
pub struct EndpointError {
    /// The section of the experiment file.
    pub section: &'static str,
    /// The key in it.
    pub key: String,
    /// What was found and what would be right.
    pub problem: String,
}

impl EndpointError {
    /// An error at a key.
    pub fn new(section: &'static str, key: &str, problem: impl Into<String>) -> Self {
        Self { section, key: key.to_owned(), problem: problem.into() }
    }
}

/// A collective operation's schedule that the machine of an endpoint model runs itself, for `kasuri list schedules`.
#[derive(Clone, Copy, Debug)]
pub struct EndpointSchedule {
    /// The model.
    pub model: &'static str,
    /// `workload.collective`.
    pub collective: &'static str,
    /// `workload.schedule`.
    pub schedule: &'static str,
    /// One line for `kasuri list`.
    pub summary: &'static str,
    /// Where its definition stands.
    pub source: &'static str,
}
