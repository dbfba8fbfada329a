//! Closed-form answers about a scenario.
//!
//! Each walks all routes of the scenario's traffic as a graph ([`kasuri_network::routing::walk`]) and lets the pattern's
//! probabilities flow through it. Choices by congestion count as equally likely, but at zero load,
//! where they find every buffer empty.

mod channel_load;
mod exchange;
mod flow;
mod formulas;
pub(crate) mod lone_packet;
mod memory;
mod prediction;
pub mod programs;
mod tails;
mod totals;
mod waiting;
mod workload;
mod zero_load;

pub use channel_load::{ChannelLoads, channel_loads};
pub use exchange::is_counted_by_routers;
pub(crate) use formulas::refuse;
pub use formulas::{AnalysisEngine, AnalysisOptions, formulas};
pub use lone_packet::{LonePacket, lone_packet_latency};
pub(crate) use prediction::Guided;
pub use prediction::{HitRates, hit_rates};
pub use zero_load::{ZeroLoad, zero_load};

use kasuri_network::id::{RouterId, TerminalId};
use thiserror::Error;

/// What no formula here looks at.
const NOT_MODELLED: &[&str] = &["router.virtual_channels", "router.vc_allocator", "router.switch_allocator", "router.vc_release"];

/// Why a scenario has no answer in formulas.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnalysisError {
    /// A packet does not arrive. `kasuri check` says the same.
    #[error("a packet from terminal {from} to terminal {to} does not arrive: {problem}")]
    Lost {
        /// Its source.
        from: TerminalId,
        /// Its destination.
        to: TerminalId,
        /// What happens to it.
        problem: String,
    },
    /// Routes lead back to where they came from, so that no finite sum describes them.
    #[error("packets to terminal {destination} can come back to router {router}, and the analysis needs routes that do not")]
    Circular {
        /// The destination.
        destination: TerminalId,
        /// A router on the cycle.
        router: RouterId,
    },
    /// The routers predict, and no formula tells how often they are right.
    #[error("predictor {problem}")]
    Prediction {
        /// Which predictor, and why.
        problem: String,
    },
    /// The traffic between all pairs does not fit into memory.
    #[error("the traffic between {sources} groups of sources and {destinations} of destinations takes too much memory")]
    TooLarge {
        /// Groups of sources that a route tells apart.
        sources: usize,
        /// Groups of destinations.
        destinations: usize,
    },
    /// No terminal sends anything.
    #[error("no terminal sends anything in this traffic")]
    NoTraffic,
}
