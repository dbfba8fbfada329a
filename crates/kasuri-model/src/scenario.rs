//! The one thing that an engine receives: everything that is simulated, immutable.

use crate::network::Network;
use crate::rng::Streams;
use crate::router::{Pipeline, RouterParameters};
use crate::routing::{Routing, VirtualChannels};
use crate::traffic::PacketSizes;
use crate::traffic::pattern::Pattern;
use crate::traffic::process::Process;
use std::sync::Arc;

/// A network, its routing, its routers and its traffic.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Routers, terminals, channels.
    pub network: Arc<Network>,
    /// Where packets go next.
    pub routing: Arc<dyn Routing>,
    /// The routers.
    pub router: RouterParameters,
    /// The router's stages, worked out of `router`.
    pub pipeline: Pipeline,
    /// The traffic, at least one class.
    pub classes: Vec<TrafficClass>,
    /// The random streams of this run.
    pub streams: Streams,
    /// No run goes beyond this many cycles.
    pub max_cycles: u64,
    /// The engine's own section of the experiment file (`[flit]`, `[flow]`, `[analysis]`).
    pub engine_options: toml::Table,
    /// Check conservation of flits and credits while running (`--paranoid`).
    pub paranoid: bool,
}

impl Scenario {
    /// The ranges of virtual channels that the classes and their replies use, each once, in order.
    pub fn virtual_channel_ranges(&self) -> Vec<VirtualChannels> {
        let mut ranges = Vec::new();
        for class in &self.classes {
            for range in [Some(class.virtual_channels), class.reply.as_ref().map(|reply| reply.virtual_channels)].into_iter().flatten() {
                if !ranges.contains(&range) {
                    ranges.push(range);
                }
            }
        }
        ranges
    }
}

/// One class of open traffic.
#[derive(Clone, Debug)]
pub struct TrafficClass {
    /// Where its packets go.
    pub pattern: Arc<dyn Pattern>,
    /// When they are created.
    pub process: Arc<dyn Process>,
    /// Packets of each terminal if the process ends by itself (a batch).
    pub packets_per_terminal: Option<u64>,
    /// Offered load, flits/terminal/cycle.
    pub load: f64,
    /// How long they are.
    pub sizes: PacketSizes,
    /// The virtual channels that they may use.
    pub virtual_channels: VirtualChannels,
    /// Does the arrival of a packet make its destination send one back?
    pub reply: Option<Reply>,
}

/// The answers to the packets of a class.
#[derive(Clone, Debug)]
pub struct Reply {
    /// How long they are.
    pub sizes: PacketSizes,
    /// The virtual channels that they may use, apart from the requests' lest requests and replies block each other.
    pub virtual_channels: VirtualChannels,
}
