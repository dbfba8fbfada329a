//! One packet alone in the network, cycle by cycle.
//!
//! With buffers at least as long as the round trip of a credit a lone packet of M flits takes
//! `1 + L_inj + R P + sum of L + L_ej + (M - 1)` cycles over R routers of P cycles each. Shorter buffers stall it, in a way that
//! the first flits and the last channel decide, so the flits are followed here, each over all routers, by the rules of the flit
//! engine. The cost is flits times routers.

use kasuri_model::router::{Architecture, Pipeline, RouterParameters, Switching};
use kasuri_network::network::Link;

/// The path of a packet and the routers on it.
#[derive(Clone, Copy, Debug)]
pub struct LonePacket<'a> {
    /// Its channels: injection, between routers, ejection; at least two.
    pub channels: &'a [Link],
    /// Its length in flits, at least 1.
    pub flits: u32,
    /// The routers.
    pub router: &'a RouterParameters,
    /// Their stages.
    pub pipeline: &'a Pipeline,
}

/// Cycles from the creation of the packet to the arrival of its tail.
pub fn lone_packet_latency(packet: &LonePacket<'_>) -> u64 {
    match packet.router.switching {
        Switching::StoreAndForward => store_and_forward(packet),
        Switching::Wormhole | Switching::VirtualCutThrough => flit_by_flit(packet),
    }
}

impl LonePacket<'_> {
    /// Cycles from the sending decision at stage `hop` (0 is the source) to the flit being seen at the other end of its channel.
    fn flight(&self, hop: usize) -> u64 {
        let traversal = if hop == 0 { 0 } else { self.pipeline.traversal_cycles };
        let last = hop + 1 == self.channels.len();
        // Switch allocation beyond its first cycle delays each flit once per router.
        let extra = if last { 0 } else { self.pipeline.switch_extra_cycles };
        u64::from(traversal + self.channels[hop].latency + self.router.total_hint_cycles() + 1 + extra)
    }

    /// Cycles from the freeing of a buffer at the far end of stage `hop` to the use of its credit.
    fn credit_flight(&self, hop: usize) -> u64 {
        let delay = if hop == 0 { 0 } else { self.router.credit_delay };
        u64::from(self.channels[hop].latency + 1 + delay)
    }

    /// Cycles from the arrival of a flit at a router to its first possible switch grant: 0 for flits after the head, but output-queued
    /// routers delay each flit.
    pub(super) fn decision(&self, flit: usize) -> u64 {
        if flit > 0 && self.router.architecture != Architecture::OutputQueued {
            return 0;
        }
        u64::from(self.pipeline.decision_cycles())
    }
}

/// Each flit goes on as soon as it is there, its predecessor is gone, the channel is free and a credit is back.
fn flit_by_flit(packet: &LonePacket<'_>) -> u64 {
    let stages = packet.channels.len();
    let buffer = packet.router.channel_depth() as usize;
    // The cycle in which each of the last `buffer` flits was sent on, by stage; the last column is the arrival at the terminal.
    let depth = buffer.min(packet.flits as usize);
    let mut sent = vec![vec![0u64; stages + 1]; depth];
    let mut before = vec![0u64; stages];
    let mut arrival = 0;
    for flit in 0..packet.flits as usize {
        arrival = 0;
        for stage in 0..stages {
            let mut now = if stage > 0 { arrival + packet.decision(flit) } else { arrival };
            if flit > 0 {
                now = now.max(before[stage] + u64::from(packet.channels[stage].period));
            }
            if flit >= buffer {
                // The flit that had this buffer left it in the stage after this one.
                now = now.max(sent[flit % depth][stage + 1] + packet.credit_flight(stage));
            }
            before[stage] = now;
            arrival = now + packet.flight(stage);
        }
        sent[flit % depth][..stages].copy_from_slice(&before);
        sent[flit % depth][stages] = arrival;
    }
    arrival
}

/// Each router waits for the whole packet; its buffers hold it, so no credit is missing.
fn store_and_forward(packet: &LonePacket<'_>) -> u64 {
    let mut tail = 0;
    for (stage, channel) in packet.channels.iter().enumerate() {
        let head = if stage == 0 { 0 } else { tail + packet.decision(0) };
        tail = head + u64::from(packet.flits - 1) * u64::from(channel.period) + packet.flight(stage);
    }
    tail
}
