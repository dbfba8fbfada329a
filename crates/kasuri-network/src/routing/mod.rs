//! Routings: which output ports and virtual channels a packet may take next.
//!
//! A routing sees the network, where the packet is, its own 32 bits of state in the packet, and a [`Choice`]; never a router.
//! Whatever it draws or weighs it draws and weighs through [`Choice`], so one text serves an engine (which draws at random and
//! measures congestion) and the analysis (which takes every branch, see [`crate::routing::every_hop`]).
//!
//! Knows no traffic, no buffers and no time. Members import the contract (`contract.rs`, `hop.rs`, `choice.rs`), never this file.
//!
//! To add one: a file here that implements [`RoutingAlgorithm`] and [`Member`](crate::registry::Member), a `mod` line, and its
//! line in [`ROUTINGS`].

pub mod accepting;
mod branches;
mod choice;
mod contract;
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
mod hashed;
mod hop;
pub mod hxmesh_order;
mod metric;
pub mod minimal;
pub mod minimal_adaptive;
pub mod nca;
mod nca_levels;
pub mod o1turn;
pub mod per_destination;
pub mod per_output;
pub mod per_plane;
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
mod up_port;
pub mod valiant;
pub mod vector;
pub mod walk;

pub use branches::{Branches, every_hop, every_initial_state};
pub use choice::{Choice, CongestionView, MeasuredChoice};
pub use contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
pub use hashed::{HashedChoice, NoView, SourceChoice, packet_key};
pub use hop::{Candidate, Hop, Reads, VirtualChannels};
pub use survival::check_survival;

use crate::registry;

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
