//! Routings: which output ports and virtual channels a packet may take next.
//!
//! A routing sees the network, where the packet is, its own 32 bits of state in the packet, and a [`Choice`]; never a router.
//! Whatever it draws or weighs it draws and weighs through [`Choice`], so one text serves an engine (which draws at random and
//! measures congestion) and the analysis (which takes every branch, see [`crate::routing::every_hop`]).
//!
//! To add one: a file here that implements [`RoutingAlgorithm`] and [`Member`](crate::registry::Member), a `mod` line, and its
//! line in [`ROUTINGS`].

pub mod accepting;
pub mod apart;
pub mod destination_tag;
mod detour;
pub mod dijkstra;
pub mod dimension_order;
mod divisor;
pub mod dragonfly_groups;
pub mod dragonfly_phases;
pub mod ecmp;
pub mod extents;
mod formula;
pub mod forwarding;
mod grid;
mod grid_paths;
mod group_paths;
mod hashed;
pub mod hxmesh_order;
pub mod minimal;
pub mod minimal_adaptive;
pub mod nca;
mod nca_levels;
pub mod o1turn;
pub mod per_destination;
pub mod per_output;
pub mod planar_adaptive;
pub mod regional;
mod shortest;
pub mod shortest_vector;
mod survival;
mod table;
mod tag_table;
pub mod two_phase;
pub mod ugal;
pub mod ugal_ordered;
pub mod up_down;
pub mod valiant;
pub mod vector;
pub mod walk;

pub use hashed::{HashedChoice, NoView, SourceChoice, packet_key};
pub use survival::check_survival;

use crate::files::Files;
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use crate::registry;
use crate::rng::Stream;
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

registry! {
    /// All routings, in the order in which `kasuri list routings` shows them.
    pub ROUTINGS: dyn RoutingAlgorithm = [
        dimension_order::DimensionOrder,
        nca::Nca,
        destination_tag::DestinationTag,
        minimal::Minimal,
        minimal_adaptive::MinimalAdaptive,
        planar_adaptive::PlanarAdaptive,
        up_down::UpDown,
        valiant::Valiant,
        ugal::Ugal,
        vector::VectorRouting,
        dijkstra::Dijkstra,
        dragonfly_phases::DragonflyPhases,
        o1turn::O1Turn,
        two_phase::TwoPhase,
        ugal_ordered::UgalOrdered,
        dragonfly_groups::DragonflyGroups,
        shortest_vector::ShortestVector,
        hxmesh_order::HxMeshOrder,
        ecmp::Ecmp,
    ]
}

/// A routing for one network.
pub trait Routing: Send + Sync + std::fmt::Debug {
    /// The number of virtual channels that a traffic class must have to be free of deadlock. With fewer the routing still
    /// finds its path, but keeps its promise no more.
    fn virtual_channels_required(&self) -> u32 {
        1
    }

    /// What of a hop `route` looks at. Analyses that walk all routes merge the hops that differ in nothing else.
    fn reads(&self) -> Reads {
        Reads::EVERYTHING
    }

    /// Does the routing promise that no set of packets can wait for each other in a cycle, given the virtual channels that it
    /// requires? The family's tests hold it to its promise, which covers the ports that it accepts.
    fn is_deadlock_free(&self) -> bool {
        true
    }

    /// Are its paths found by a search over the channels that the network has? Then they lead round what is down. Those of other routings
    /// follow from numbers, coordinates or digits; [`check_survival`] looks at them all.
    fn searches_paths(&self) -> bool {
        false
    }

    /// May packets go from this terminal to that one? A routing that keeps users apart knows no path between them.
    fn connects(&self, _source: TerminalId, _destination: TerminalId) -> bool {
        true
    }

    /// The packet's routing state when it is created. 0 unless the routing decides something at the source.
    fn initial_state(&self, _source: TerminalId, _destination: TerminalId, _choice: &mut dyn Choice) -> u32 {
        0
    }

    /// May [`Routing::route`] ask [`Choice::least`]? Engines that would show such a routing a later moment ask this first.
    fn observes_congestion(&self) -> bool {
        true
    }

    /// The key that makes packets of one message take different paths, for a routing that spreads them.
    fn spreading_key(&self) -> &'static str {
        "routing.algorithm"
    }

    /// May [`Routing::route`] offer several output ports at a hop, of which the router takes the one that it gets?
    fn offers_several(&self) -> bool {
        false
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

    /// Does [`Routing::entering`] ever say another range than that of the packet's class?
    fn restricts_entry(&self) -> bool {
        false
    }

    /// Is [`Routing::entering`] asked again, with other draws, in each cycle in which the packet has found no virtual channel?
    fn redraws_entry(&self) -> bool {
        false
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

    /// Bytes of the tables that it keeps, where they grow faster than the network.
    fn table_bytes(&self) -> u64 {
        0
    }

    /// Bytes that these tables took at most while they were made.
    fn making_bytes(&self) -> u64 {
        self.table_bytes()
    }

    /// Adds to `candidates` (empty on entry) what the packet may take next. At the destination's router this is the
    /// terminal's port. Called once per packet and router.
    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>);
}

/// Where a packet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The router that decides.
    pub router: RouterId,
    /// The port by which the packet came in.
    pub input: Port,
    /// The virtual channel on which it came in.
    pub virtual_channel: u16,
    /// Where it comes from.
    pub source: TerminalId,
    /// Where it goes to.
    pub destination: TerminalId,
    /// The virtual channels that its traffic class may use, all of them in most runs.
    pub available: VirtualChannels,
}

/// What of a [`Hop`] a routing looks at, apart from the router, the available virtual channels and the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads {
    /// The packet's source (in `initial_state` too).
    pub source: bool,
    /// The input port.
    pub input: bool,
    /// The virtual channel on which it came in.
    pub virtual_channel: bool,
    /// More of the destination than its router, before it is there (in `initial_state` too).
    pub terminal: bool,
}

impl Reads {
    /// Anything: always right, and the dearest for those who walk all routes.
    pub const EVERYTHING: Self = Self { source: true, input: true, virtual_channel: true, terminal: true };
    /// The destination's router alone.
    pub const DESTINATION_ROUTER: Self = Self { source: false, input: false, virtual_channel: false, terminal: false };
}

/// A half-open range of virtual channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VirtualChannels {
    /// The first.
    pub begin: u16,
    /// One past the last.
    pub end: u16,
}

impl VirtualChannels {
    /// The one that belongs to a terminal where each terminal has its own (`router.vc_per_destination`).
    pub fn only(destination: TerminalId) -> Self {
        // The configuration allows this for at most 256 terminals.
        let begin = destination.0 as u16;
        Self { begin, end: begin + 1 }
    }

    /// How many there are.
    pub fn count(self) -> u16 {
        self.end - self.begin
    }

    /// Class `class` of `classes` equal parts. A remainder goes to the lowest classes: 3 channels in 2 classes are 2 and 1.
    /// Fewer channels than classes are shared, which may bring back the deadlock that the classes prevent.
    pub fn class(self, class: u16, classes: u16) -> Self {
        if self.count() < classes {
            let begin = self.begin + class % self.count().max(1);
            return Self { begin, end: begin + 1 };
        }
        let at = |part: u16| self.begin + ((u32::from(self.count()) * u32::from(part)).div_ceil(u32::from(classes))) as u16;
        Self { begin: at(class), end: at(class + 1) }
    }
}

/// One output port and the virtual channels that may be used there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The output port.
    pub port: Port,
    /// The virtual channels of that port.
    pub virtual_channels: VirtualChannels,
    /// A higher number is preferred by allocators that know priorities.
    pub priority: u8,
}

impl Candidate {
    /// A candidate of the normal priority.
    pub fn new(port: Port, virtual_channels: VirtualChannels) -> Self {
        Self { port, virtual_channels, priority: 0 }
    }
}

/// What a routing may know of congestion: the state of the router that it stands at.
pub trait CongestionView {
    /// Flits of downstream buffer space in use, summed over these virtual channels of an output port of the deciding router.
    fn occupied(&self, port: Port, virtual_channels: VirtualChannels) -> u32;

    /// A packet gets on equally well at ports whose occupied flits differ by less; at least 1.
    fn grain(&self) -> u32 {
        1
    }
}

/// How a routing decides where it may decide.
pub trait Choice {
    /// One of `0..alternatives`, each equally likely. `alternatives` is positive.
    fn uniform(&mut self, alternatives: u32) -> u32;

    /// The alternative of `0..alternatives` whose cost is least; equal costs are drawn.
    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32;

    /// The port of `0..alternatives` that is least occupied, among ports at which a packet gets on equally well: those within the
    /// [grain](CongestionView::grain) of the least are drawn.
    fn least_occupied(&mut self, alternatives: u32, occupied: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        self.least(alternatives, occupied)
    }

    /// Draws from here on what will be drawn at the packet's next router: who decides one router ahead draws the same there again.
    fn draw_ahead(&mut self) {}

    /// The packet's number among those of its source, in their order, where that is known: to an engine in `initial_state`.
    fn serial(&mut self) -> Option<u32> {
        None
    }
}

/// The choice of an engine: random draws from a stream, costs from a view of the deciding router.
pub struct MeasuredChoice<'a> {
    /// Draws ties and uniform choices.
    pub stream: &'a mut Stream,
    /// The deciding router.
    pub view: &'a dyn CongestionView,
}

impl std::fmt::Debug for MeasuredChoice<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("MeasuredChoice")
    }
}

impl Choice for MeasuredChoice<'_> {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        if alternatives == 1 { 0 } else { self.stream.below(alternatives) }
    }

    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        let (mut best, mut best_cost, mut equal) = (0, i64::MAX, 0);
        for alternative in 0..alternatives {
            let cost = cost(self.view, alternative);
            if cost < best_cost {
                (best, best_cost, equal) = (alternative, cost, 1);
            } else if cost == best_cost {
                // Reservoir sampling: the i-th of equal alternatives replaces the earlier ones with probability 1/i.
                equal += 1;
                if self.stream.below(equal) == 0 {
                    best = alternative;
                }
            }
        }
        best
    }
}

/// Every outcome of one routing decision: the candidates and the packet's state after it, in a fixed order, without repeats.
///
/// The routing is asked again and again with a [`Choice`] that replays a prefix of decisions and then takes the first
/// alternative, until no branch is left. See [`Branches`] for the probabilities.
pub fn every_hop(routing: &dyn Routing, hop: &Hop, state: u32) -> Vec<(Vec<Candidate>, u32)> {
    let mut outcomes = Vec::new();
    Branches::default().of_hop(routing, hop, state, |candidates, after, _| {
        let outcome = (candidates.to_vec(), after);
        if !outcomes.contains(&outcome) {
            outcomes.push(outcome);
        }
    });
    outcomes
}

/// Every initial state that the routing may give a packet.
pub fn every_initial_state(routing: &dyn Routing, source: TerminalId, destination: TerminalId) -> Vec<u32> {
    let mut states = Vec::new();
    Branches::default().of_initial_state(routing, source, destination, |state, _| {
        if !states.contains(&state) {
            states.push(state);
        }
    });
    states
}

/// Takes every branch of a routing's decisions, each with its probability; reused, it allocates nothing.
///
/// A uniform choice gives each alternative the same probability, and so does a choice by congestion, of which nothing is known; or the
/// network is idle ([`Branches::idle`]), and congestion leaves the alternatives of the least cost.
#[derive(Debug, Default)]
pub struct Branches {
    replay: Replay,
    candidates: Vec<Candidate>,
}

impl Branches {
    /// The branches of a packet that is alone in the network: no buffer holds anything.
    pub fn idle() -> Self {
        Self { replay: Replay { idle: true, ..Replay::default() }, candidates: Vec::new() }
    }

    /// Calls `visit` with the candidates, the state after the hop and the probability of each branch. The probabilities sum to
    /// 1; branches with the same outcome are not merged.
    pub fn of_hop(&mut self, routing: &dyn Routing, hop: &Hop, state: u32, mut visit: impl FnMut(&[Candidate], u32, f64)) {
        loop {
            let mut after = state;
            self.replay.position = 0;
            self.candidates.clear();
            routing.route(hop, &mut after, &mut self.replay, &mut self.candidates);
            visit(&self.candidates, after, self.replay.probability());
            if !self.replay.advance() {
                return;
            }
        }
    }

    /// Calls `visit` with each initial state and its probability.
    pub fn of_initial_state(
        &mut self,
        routing: &dyn Routing,
        source: TerminalId,
        destination: TerminalId,
        mut visit: impl FnMut(u32, f64),
    ) {
        loop {
            self.replay.position = 0;
            let state = routing.initial_state(source, destination, &mut self.replay);
            visit(state, self.replay.probability());
            if !self.replay.advance() {
                return;
            }
        }
    }
}

/// The decisions of one branch: which alternative of how many.
#[derive(Debug, Default)]
struct Replay {
    decisions: Vec<(u32, u32)>,
    position: usize,
    /// Are costs those of empty buffers, and not unknown?
    idle: bool,
}

impl Replay {
    fn probability(&self) -> f64 {
        self.decisions.iter().map(|&(_, alternatives)| 1.0 / f64::from(alternatives)).product()
    }

    /// Odometer: raises the last decision that has an alternative left and forgets what came after it. Is there one?
    fn advance(&mut self) -> bool {
        while let Some((taken, alternatives)) = self.decisions.pop() {
            if taken + 1 < alternatives {
                self.decisions.push((taken + 1, alternatives));
                return true;
            }
        }
        false
    }
}

impl Choice for Replay {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        if self.position == self.decisions.len() {
            self.decisions.push((0, alternatives));
        }
        self.position += 1;
        self.decisions[self.position - 1].0
    }

    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        if !self.idle {
            return self.uniform(alternatives);
        }
        let least = (0..alternatives).map(|alternative| cost(&NoView, alternative)).min();
        let best: Vec<u32> = (0..alternatives).filter(|&alternative| Some(cost(&NoView, alternative)) == least).collect();
        let taken = self.uniform(best.len() as u32);
        best[taken as usize]
    }
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
