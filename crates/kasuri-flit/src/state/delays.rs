//! How long flits and credits travel.

use crate::state::prediction::{advance, leaves_router};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::ChannelId;
use kasuri_network::network::{Endpoint, Network};

/// Cycles that flits and credits are on their way.
///
/// A flit granted in cycle `S` is sent in `S + traversal` and seen in `S + traversal + latency + 1`. A switch allocation of more
/// than one cycle delays each flit once per router: it is added to the path into the router. A credit is sent in `S`, seen in
/// `S + latency + 1`, and usable by a router after its credit delay; a source uses it at once (booksim-model 2.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    traversal: u32,
    switch_extra: u32,
    credit_delay: u32,
    /// The bits in front of a packet go the way of its flits, which all are so much later; credits go back without them.
    hint: u32,
    pub(crate) least: u32,
    pub(crate) greatest: u32,
}

impl Delays {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, Refusal> {
        let mut delays = Self {
            traversal: scenario.pipeline.traversal_cycles,
            switch_extra: scenario.pipeline.switch_extra_cycles,
            credit_delay: scenario.router.credit_delay,
            hint: scenario.router.total_hint_cycles(),
            least: u32::MAX,
            greatest: 0,
        };
        let network = &scenario.network;
        let predicts = scenario.router.predictor != kasuri_network::predictor::NONE;
        let takes_steps = scenario.router.internal_speedup > 1.0;
        // A router that takes several steps in a cycle may send a flit in the cycle in which it is granted, and one that passes on a
        // prediction before its end has arrived.
        let ahead = match (takes_steps, predicts) {
            (true, true) => delays.traversal + scenario.pipeline.front_cycles(scenario.router.hit_saves),
            (true, false) => delays.traversal,
            (false, true) => advance(scenario),
            (false, false) => 0,
        };
        for channel in (0..network.channel_count()).map(ChannelId) {
            let (flit, credit) = (delays.flit(network, channel), delays.credit(network, channel));
            let passing_on = if leaves_router(network, channel) { flit - ahead } else { flit };
            delays.least = delays.least.min(passing_on).min(credit);
            delays.greatest = delays.greatest.max(flit).max(credit);
        }
        if delays.greatest > u32::from(u16::MAX) {
            let reason =
                format!("a flit or credit is {} cycles on its channel; the flit engine takes at most {}", delays.greatest, u16::MAX);
            return Err(Refusal::new("network.channel_latency", reason));
        }
        Ok(delays)
    }

    pub(crate) fn flit(&self, network: &Network, channel: ChannelId) -> u32 {
        let from_router = matches!(network.source(channel), Endpoint::Router(..));
        let to_router = matches!(network.destination(channel), Endpoint::Router(..));
        let traversal = if from_router { self.traversal } else { 0 };
        let extra = if to_router { self.switch_extra } else { 0 };
        traversal + network.link(channel).latency + self.hint + 1 + extra
    }

    pub(crate) fn credit(&self, network: &Network, channel: ChannelId) -> u32 {
        let to_router = matches!(network.source(channel), Endpoint::Router(..));
        network.link(channel).latency + 1 + if to_router { self.credit_delay } else { 0 }
    }
}
