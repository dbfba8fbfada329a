//! The feed of a tile without terminals, where one tile has them all.

use crate::state::feed::{Arrival, Ask, Left, Next, PacketFeed};
use crate::state::queues::Queues;
use kasuri_model::engine::EngineError;

/// Sends nothing. Heads that come to its tile's routers are told to the tile that has the terminals.
pub(crate) struct NullFeed;

impl PacketFeed for NullFeed {
    fn next_packet(&mut self, _ask: Ask<'_>) -> Next {
        Next::Nothing
    }

    fn tail_left(&mut self, _left: &Left) -> bool {
        false
    }

    fn wants_head_events(&self) -> bool {
        true
    }

    fn packet_arrived(&mut self, _arrival: &Arrival<'_>, _queues: &mut Queues) {}

    fn next_due(&self, _now: u64, limit: u64) -> Result<u64, EngineError> {
        Ok(limit)
    }

    fn ends(&self) -> bool {
        false
    }

    fn outstanding(&self) -> i64 {
        0
    }
}
