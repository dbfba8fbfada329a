//! The contract of routings: their parameters, and a routing that knows its network.

use super::choice::Choice;
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use crate::files::Files;
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use std::sync::Arc;
use thiserror::Error;

/// The parameters of a routing, before it knows its network.
pub trait RoutingAlgorithm: Send + Sync + std::fmt::Debug {
    /// Prepares the routing for a network.
    ///
    /// # Errors
    /// The network is not of a kind that this routing knows.
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError>;

    /// Reads the files that its parameters name, before [`Self::compile`].
    ///
    /// # Errors
    /// One of them cannot be read.
    fn read(&mut self, _files: &dyn Files) -> Result<(), RoutingError> {
        Ok(())
    }

    /// No tables that [`Self::compile`] makes for this network take more bytes. 0 for a routing without tables that grow faster than the
    /// network.
    fn most_table_bytes(&self, _network: &Network) -> u64 {
        0
    }
}

/// The facts of a routing: they hold for all packets, and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingFacts {
    /// The number of virtual channels that a traffic class must have to be free of deadlock. With fewer the routing still
    /// finds its path, but keeps its promise no more.
    pub virtual_channels_required: u32,
    /// What of a hop [`Routing::route`] looks at. Analyses that walk all routes merge the hops that differ in nothing else.
    pub reads: Reads,
    /// Does the routing promise that no set of packets can wait for each other in a cycle, given the virtual channels that it
    /// requires? The family's tests hold it to its promise, which covers the ports that it accepts.
    pub is_deadlock_free: bool,
    /// Are its paths found by a search over the channels that the network has? Then they lead round what is down. Those of other routings
    /// follow from numbers, coordinates or digits; `check_survival` looks at them all.
    pub searches_paths: bool,
    /// May [`Routing::route`] ask [`Choice::least`]? Engines that would show such a routing a later moment ask this first.
    pub observes_congestion: bool,
    /// The key that makes packets of one message take different paths, for a routing that spreads them.
    pub spreading_key: &'static str,
    /// May [`Routing::route`] offer several output ports at a hop, of which the router takes the one that it gets?
    pub offers_several: bool,
    /// Does [`Routing::entering`] ever say another range than that of the packet's class?
    pub restricts_entry: bool,
    /// Is [`Routing::entering`] asked again, with other draws, in each cycle in which the packet has found no virtual channel?
    pub redraws_entry: bool,
    /// Bytes of the tables that it keeps, where they grow faster than the network.
    pub table_bytes: u64,
    /// Bytes that these tables took at most while they were made, at least [`Self::table_bytes`].
    pub build_peak_bytes: u64,
}

impl Default for RoutingFacts {
    /// A routing with one virtual channel and no tables, free of deadlock, that may look at everything.
    fn default() -> Self {
        Self {
            virtual_channels_required: 1,
            reads: Reads::EVERYTHING,
            is_deadlock_free: true,
            searches_paths: false,
            observes_congestion: true,
            spreading_key: "routing.algorithm",
            offers_several: false,
            restricts_entry: false,
            redraws_entry: false,
            table_bytes: 0,
            build_peak_bytes: 0,
        }
    }
}

/// A routing for one network.
pub trait Routing: Send + Sync + std::fmt::Debug {
    /// What holds for all packets. Callers that ask for each packet keep the answer.
    fn facts(&self) -> RoutingFacts {
        RoutingFacts::default()
    }

    /// May packets go from this terminal to that one? A routing that keeps users apart knows no path between them.
    fn connects(&self, _source: TerminalId, _destination: TerminalId) -> bool {
        true
    }

    /// The packet's routing state when it is created. 0 unless the routing decides something at the source.
    fn initial_state(&self, _source: TerminalId, _destination: TerminalId, _choice: &mut dyn Choice) -> u32 {
        0
    }

    /// Of a routing that offers several ports: virtual channels one of which it offers at every hop, and which a packet that has taken one
    /// never leaves. If no packets can wait for each other in a cycle of these, none can in the others (Duato 1993).
    fn escape_channels(&self, _available: VirtualChannels) -> Option<VirtualChannels> {
        None
    }

    /// Would this output port serve the packet as well as the one that [`Routing::route`] chooses? The virtual channels that it
    /// may take there, if so. A routing that leaves the choice among equal paths to chance or congestion says yes to each of
    /// them; predictors ask. By default nothing but the answer of `route` will do.
    fn accepts(&self, _hop: &Hop, _state: u32, _port: Port) -> Option<VirtualChannels> {
        None
    }

    /// The virtual channels by which a packet may enter the network: `hop` is at its first router.
    fn entering(&self, hop: &Hop, _state: u32, _choice: &mut dyn Choice) -> VirtualChannels {
        hop.available
    }

    /// The output port by which every packet to a destination leaves a router, of a routing to which nothing else matters: not where the
    /// packet comes from, nor its state, nor chance. [`Routing::route`] then offers this port with all available virtual channels and
    /// leaves the state as it is. `None` at one place is `None` at all. Who follows millions of messages asks this first.
    fn port_to(&self, _router: RouterId, _destination: TerminalId) -> Option<Port> {
        None
    }

    /// Adds to `candidates` (empty on entry) what the packet may take next. At the destination's router this is the
    /// terminal's port. Called once per packet and router.
    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>);
}

/// Why a routing does not fit its network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RoutingError {
    /// The network is of another kind. Choose a routing that knows it, or `minimal` or `up-down`, which know every network.
    #[error("routing `{routing}` does not fit {network}: {problem}")]
    Mismatch {
        /// The routing's name.
        routing: &'static str,
        /// The network's one-line form.
        network: String,
        /// What is missing.
        problem: String,
    },
    /// A parameter is outside its range. Change the named key.
    #[error("{key}: {problem}")]
    Parameter {
        /// The key of `[routing]`.
        key: String,
        /// What was found and what would be right.
        problem: String,
    },
}
