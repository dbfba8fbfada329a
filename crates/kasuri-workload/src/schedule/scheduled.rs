//! A schedule as a collective operation.

use super::contract::Schedule;
use crate::collective::{Block, Collective, Transfer};
use std::sync::Arc;

/// A schedule as an all-to-all of messages of one length.
#[derive(Debug)]
pub struct Scheduled {
    schedule: Arc<dyn Schedule>,
    flits: u32,
}

impl Scheduled {
    /// Messages of so many flits, at least 1.
    pub fn new(schedule: Arc<dyn Schedule>, flits: u32) -> Self {
        Self { schedule, flits: flits.max(1) }
    }
}

impl Collective for Scheduled {
    fn rounds(&self) -> u32 {
        self.schedule.phases()
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(Transfer { peer: self.schedule.destination(rank, round)?, flits: self.flits })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        self.schedule.source(rank, round)
    }

    fn needs_receive(&self) -> bool {
        false
    }

    fn is_direct(&self) -> bool {
        true
    }

    fn volume(&self, ranks: u32) -> Option<(u64, u32)> {
        self.schedule.is_full().then(|| (u64::from(ranks) * u64::from(self.rounds()), self.flits))
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        self.schedule.destination(rank, round).map(|part| Block { origin: rank, part }).into_iter().collect()
    }
}
