//! Wrong copies that have left their router, as their sender accounts for them; how they are lent and come back: `fabric/features/copies.rs`.

use crate::state::share::Share;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{Port, RouterId};
use kasuri_network::memory::Column;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Cycles from the arrival of a flit until it has been routed.
const ROUTED: u32 = 1;

/// The copies of a tile that are away.
#[derive(Debug)]
pub(crate) struct Copies {
    /// By block: the cycle in which the credit of each is back, and its output slot.
    away: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
    /// By output port: cycles from the arrival of a copy at the other end until its credit can be used here.
    back: Column<u32>,
    /// By output slot: copies that are away. Empty where copies do not leave.
    held: Column<u16>,
}

impl Copies {
    /// None yet. `ports` are the port addresses, of `slots` slots in all, and `router_port` the first of each router.
    pub(crate) fn new(scenario: &Scenario, share: &Share, router_port: &[u32], ports: usize, slots: usize) -> Self {
        let network = &scenario.network;
        let mut back = vec![0; ports];
        for (&router, &base) in share.routers.iter().zip(router_port) {
            for port in 0..network.port_count(RouterId(router)) {
                let channel = network.output_channel(RouterId(router), port as Port);
                let latency = channel.map_or(0, |channel| network.link(channel).latency);
                back[(base + port) as usize] = ROUTED + latency + 1 + scenario.router.credit_delay;
            }
        }
        Self { away: Vec::new(), back: back.into(), held: Column::filled(slots, 0) }
    }

    /// Do copies hold this output slot?
    pub(crate) fn hold(&self, output: u32) -> bool {
        !self.held.is_empty() && self.held[output] > 0
    }

    /// A copy has left, and arrives at the other end in a cycle.
    pub(crate) fn send(&mut self, block: u32, port: u32, output: u32, arrival: u64) {
        if self.away.len() <= block as usize {
            self.away.resize_with(block as usize + 1, BinaryHeap::new);
        }
        self.away[block as usize].push(Reverse((arrival + u64::from(self.back[port]), output)));
        self.held[output] += 1;
    }

    /// The output slot of a copy whose credit is back, and whether none is left there.
    pub(crate) fn next(&mut self, block: u32, now: u64) -> Option<(u32, bool)> {
        if self.none_due(block, now) {
            return None;
        }
        let Reverse((_, output)) = self.away[block as usize].pop()?;
        self.held[output] -= 1;
        Some((output, self.held[output] == 0))
    }

    /// Is none due in a block before the end of a cycle?
    pub(crate) fn none_due(&self, block: u32, now: u64) -> bool {
        self.away.get(block as usize).and_then(BinaryHeap::peek).is_none_or(|Reverse((time, _))| *time > now)
    }

    /// Is none away?
    pub(crate) fn is_empty(&self) -> bool {
        self.away.iter().all(BinaryHeap::is_empty)
    }

    /// The output slots of all that are away, for the checks of `paranoid` runs.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = u32> {
        self.away.iter().flatten().map(|Reverse((_, output))| *output)
    }
}
