//! What is asked of terminals, as it is asked of their ports, where they have several: in engines each port sends and receives by itself.

mod pattern;
mod workload;

pub use pattern::PortPattern;
pub use workload::PortWorkload;

use kasuri_network::id::TerminalId;
use kasuri_network::rng::split_mix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a terminal chooses among its ports. Only those count from which the destination can be reached: of the same number there where a pair of
/// the same number is joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortChoice {
    /// Packet by packet: those of a message in turn, so that each port gets an equal part of it; those of open traffic at random.
    #[default]
    ByPacket,
    /// Message by message in turn; packets of open traffic as with `by-packet`.
    ByMessage,
    /// By a hash of source and destination: all that one terminal sends to another takes one port.
    ByDestination,
}

impl PortChoice {
    /// What experiments call them, the default first.
    pub const NAMES: [&'static str; 3] = ["by-packet", "by-message", "by-destination"];

    /// The way, of so many, that all from one terminal to another takes.
    fn by_hash(source: TerminalId, destination: TerminalId, ways: usize) -> usize {
        (split_mix(u64::from(source.0) << 32 | u64::from(destination.0)) % ways as u64) as usize
    }
}

/// A port that sends and one that receives.
type Way = (TerminalId, TerminalId);
