//! The contract of endpoint models: their keys make a machine, or interfaces between a workload and the network.

use super::running::RunningMachine;
use crate::timeline::Span;
use crate::translation::sharing::Sharing;
use crate::units::Units;
use crate::workload::{Event, Message, Token};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::rng::Streams;
use kasuri_network::routing::{Routing, VirtualChannels};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use std::any::Any;
use std::sync::Arc;
use toml::Table;

/// The keys of `[endpoint]`: a model and its constants.
pub trait EndpointModel: Send + Sync + std::fmt::Debug {
    /// The keys of `[workload]` that this model reads; `None` if they are those of all closed workloads.
    fn workload_schema(&self) -> Option<Schema>;

    /// Puts the machine and the programs of its nodes together, or its interfaces.
    ///
    /// # Errors
    /// A value of `[endpoint]` or `[workload]` is impossible, or at odds with the network or the routers.
    fn prepare(&self, context: &EndpointContext<'_>) -> Result<Prepared, EndpointError>;

    /// Puts the machines of several users, each prepared on the logical network of its user, together on the machine's network.
    ///
    /// # Errors
    /// Why users cannot share such a machine, or not so.
    fn join(
        &self,
        _parts: Vec<UserMachine>,
        _network: &Network,
        _sharing: Sharing,
        _streams: &Streams,
    ) -> Result<Arc<dyn Endpoint>, String> {
        Err("it is the machine of one user".to_owned())
    }

    /// Can several users have it at a time?
    ///
    /// # Errors
    /// Why not.
    fn serves_users(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// The nodes that these terminals are, in their order: each with its terminals among them.
    ///
    /// # Errors
    /// A key of the model does not suit the network, and why.
    fn nodes(&self, _network: &Network, terminals: &[TerminalId]) -> Result<Vec<Vec<TerminalId>>, (&'static str, String)> {
        Ok(terminals.iter().map(|&terminal| vec![terminal]).collect())
    }

    /// Do its nodes translate node numbers themselves, and tell the logical nodes on them apart?
    fn translates(&self) -> bool {
        false
    }

    /// What keeps a program on its terminal, though the table of its user changes.
    fn binds(&self) -> &'static str {
        "it belongs to its terminal"
    }

    /// Of the virtual channels that a user has, those that open traffic beside the machine takes unless it says otherwise.
    fn channels_beside(&self, own: VirtualChannels) -> VirtualChannels {
        own
    }
}

/// One user's machine with its program, in logical nodes.
#[derive(Clone, Debug)]
pub struct UserMachine {
    /// What [`EndpointModel::prepare`] has made for the user, as though its virtual channels were numbered from 0.
    pub machine: Arc<dyn Endpoint>,
    /// The user's number: that of its table.
    pub user: u16,
    /// The space that its accesses name nodes of.
    pub space: Space,
    /// Is it the operating system, that may name all nodes?
    pub is_supervisor: bool,
    /// The user's first virtual channel.
    pub first_channel: u16,
}

/// What the nodes of an access are numbers of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// Logical nodes of the user's table.
    #[default]
    Own,
    /// Physical nodes: the table of the operating system.
    System,
}

/// What a model has made of its keys.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// A machine with its programs, in place of traffic.
    Machine(Arc<dyn Endpoint>),
    /// Interfaces between a closed workload and the network.
    Interfaces(Arc<dyn Interfaces>),
}

/// A machine with its programs: what engines [begin](Self::begin), or cast to the type of a model that they know.
pub trait Endpoint: Any + Send + Sync + std::fmt::Debug {
    /// The name in the experiment file.
    fn model(&self) -> &'static str;

    /// The least and the greatest length of its packets in flits, if they go through routers with virtual channels: then a feed of the flit
    /// engine sends them (`kasuri-flit/src/edge/`).
    fn packet_flits(&self) -> Option<[u32; 2]> {
        None
    }

    /// Begins a run of a machine that has interfaces before which its packets wait, and whose packets go through routers. `None` of one that
    /// the engine knows by its type.
    fn begin(&self) -> Option<Box<dyn RunningMachine + '_>> {
        None
    }

    /// The virtual channels of its packets and of the replies to them: of each of its users, if it has some.
    fn class_channels(&self) -> Vec<[VirtualChannels; 2]> {
        Vec::new()
    }
}

/// Network interfaces of all terminals, between the programs of a closed workload and the network. Immutable; each run begins them anew.
pub trait Interfaces: Send + Sync + std::fmt::Debug {
    /// The name in the experiment file.
    fn model(&self) -> &'static str;

    /// Begins a run in which the messages of each part of the workload are cut into packets of this many flits. `timeline`: keep what was done
    /// when.
    fn begin(self: Arc<Self>, packet_flits: Vec<u32>, timeline: bool) -> Box<dyn RunningInterfaces>;
}

/// Network interfaces while they run. They are told the time, in cycles, which never goes back.
pub trait RunningInterfaces: Send + std::fmt::Debug {
    /// A program wants a message sent, which belongs to this part of the workload.
    fn post(&mut self, message: Message, part: usize, now: f64);

    /// The last flit of a message arrives at its destination at this time, now or later. `name` is the token by which [`Self::proceed`] let it
    /// enter the network.
    fn arrives(&mut self, name: Token, time: f64);

    /// When the next thing is due, if any is; else infinity.
    fn next_due(&self) -> f64;

    /// Does what is due by now. Messages that enter the network, with names of their own of the same part, are added to `entering`; what programs see is added
    /// to `happened`. Returns when a program last saw something, if one did.
    fn proceed(&mut self, now: f64, entering: &mut Vec<Message>, happened: &mut Vec<Event>) -> Option<f64>;

    /// When the programs of a part of the workload last saw something; 0 if they have not.
    fn last_seen(&self, part: usize) -> f64;

    /// What was done when, if that was asked for; empty afterwards.
    fn take_timeline(&mut self) -> Vec<Span>;
}

/// What a model gets besides its own parameters.
#[derive(Clone, Copy)]
pub struct EndpointContext<'a> {
    /// The network whose terminals are the nodes.
    pub network: &'a Network,
    /// The paths of packets.
    pub routing: &'a dyn Routing,
    /// The routers.
    pub routers: Routers,
    /// What flits and cycles are.
    pub units: Units,
    /// The random streams of the run.
    pub streams: &'a Streams,
    /// `[workload]`, whose keys have the types that the schema says.
    pub workload: &'a Table,
    /// The user's space, if the network is that of a user's logical nodes.
    pub space: Option<UserSpace>,
}

/// What a user's program can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserSpace {
    /// Its logical nodes: those of the network may be more where it has fewer than two.
    pub nodes: u32,
    /// The nodes that its accesses name.
    pub homes: u32,
}

/// What models ask of the machine's routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routers {
    /// Are they crosspoints, with a queue for each input and output in place of virtual channels?
    pub are_crosspoints: bool,
    /// Virtual channels of each port.
    pub virtual_channels: u32,
    /// Has each terminal a virtual channel of its own?
    pub vc_per_destination: bool,
    /// The buffer of a virtual channel, or of a crosspoint, in flits.
    pub buffer_flits: u32,
    /// Has each virtual channel a buffer of its own? Otherwise those of a port share one.
    pub buffers_are_private: bool,
    /// Shared buffers: all flits of a port.
    pub port_buffer_flits: u32,
    /// Shared buffers: places that only the virtual channel itself may take.
    pub private_flits: u32,
    /// Shared buffers: the most flits that a virtual channel may hold while all are in use.
    pub most_held_flits: u32,
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
