//! The model in numbers: how long everything takes that recurs with each packet, as many times as long as a parcel has packets.

use super::options::{Grain, Mechanism};
use crate::paths::{Paths, Request, Walk};
use kasuri_model::engine::EngineError;
use kasuri_model::router::{Architecture, Switching};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use kasuri_network::memory::Column;
use kasuri_network::network::Link;
use kasuri_network::routing::VirtualChannels;
use kasuri_workload::workload::{Message, Token};

/// Parcels of a message at least, if the grain is automatic.
const PARCELS: u64 = 8;
/// Messages whose lengths and paths decide on an automatic grain, at most.
const SAMPLES: u64 = 4096;
/// Parcels of a buffer that are told apart: with more, hardly anybody ever waits for room.
const MOST_ROOM: u32 = 255;

/// Of a kind of channel, cycles.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelTiming {
    /// From beginning to cross to asking for the next one.
    pub(super) head: u32,
    /// From a place that is free to the sender's knowing it.
    pub(super) credit: u32,
    /// Of each flit.
    pub(super) period: u32,
    pub(super) latency: u32,
    /// From the sending of a flit to that of another one in its place of the buffer, if a buffer is shorter than that; else 0. It holds
    /// back flits and not parcels, so a grain does not stretch it.
    pub(super) credit_loop: u32,
}

/// What the model knows of routers and packets. Many fields, because it is the one list of all that the model is made of.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    /// Packets of a parcel.
    pub(super) grain: u32,
    /// Flits of the scenario's packets.
    pub(super) packet: u32,
    pub(super) lanes: u32,
    /// Flits that one buffer holds; of a parcel.
    pub(super) buffer: u32,
    pub(super) part: u32,
    /// Parcels that one buffer holds.
    pub(super) room: u16,
    /// Cycles between a tail and the next head: of the same lane, and beyond that of the same buffer.
    pub(super) lane_gap: u32,
    pub(super) buffer_gap: u32,
    /// Packets wait for room for all of them; for all of themselves.
    pub(super) cuts_through: bool,
    pub(super) stores: bool,
    pub(super) oldest_first: bool,
    pub(super) has_input_ports: bool,
    /// By kind of link.
    pub(super) channels: Column<ChannelTiming>,
}

impl Timing {
    pub(super) fn new(scenario: &Scenario, grain: Grain, without: &[Mechanism]) -> Result<Self, EngineError> {
        let has = |mechanism| !without.contains(&mechanism);
        let (router, pipeline) = (&scenario.router, &scenario.pipeline);
        let packet = packet_flits(scenario);
        let room = most_room(scenario);
        let grain = match grain {
            Grain::Packets(packets) => packets,
            Grain::Auto => automatic_grain(scenario, packet, room)?,
        };
        let is_queued = router.architecture == Architecture::OutputQueued;
        let gap = if has(Mechanism::Gap) && !is_queued { pipeline.decision_cycles() } else { 0 };
        let lane_gap = gap.min(1);
        let stores = router.switching == Switching::StoreAndForward;
        // The queues of outputs take all that comes, from all inputs at once.
        let blocks = has(Mechanism::Blocking) && !is_queued;
        let timing_of = |link: &Link| {
            let packet_head = link.latency + pipeline.head_cycles();
            let credit = link.latency + 1 + router.credit_delay;
            let credit_loop = pipeline.credit_loop(link.latency, router.credit_delay);
            let stalls = blocks && credit_loop > u64::from(router.buffer_flits) * u64::from(link.period);
            ChannelTiming {
                head: packet_head.saturating_mul(grain),
                credit: credit.saturating_mul(grain),
                period: link.period,
                latency: link.latency,
                credit_loop: if stalls { credit_loop as u32 } else { 0 },
            }
        };
        Ok(Self {
            grain,
            packet,
            lanes: router.virtual_channels,
            buffer: router.buffer_flits,
            part: if blocks { router.buffer_flits.saturating_mul(grain) } else { u32::MAX },
            room: if blocks { room as u16 } else { 0 },
            lane_gap: lane_gap * grain,
            buffer_gap: (gap - lane_gap) * grain,
            cuts_through: router.switching != Switching::Wormhole,
            stores,
            oldest_first: !has(Mechanism::RoundRobin),
            has_input_ports: has(Mechanism::InputPorts) && !is_queued,
            channels: scenario.network.links().iter().map(timing_of).collect(),
        })
    }

    /// Buffers over which a parcel of so many flits is spread while its head waits.
    #[inline(always)]
    pub(super) fn span(&self, flits: u32) -> usize {
        // The most frequent cases without a division.
        if flits <= self.part {
            1
        } else if flits - self.part <= self.part {
            2
        } else {
            flits.div_ceil(self.part) as usize
        }
    }

    /// Cycles that a parcel takes in one lane of a channel of this kind: where the loop of credits is longer than the buffer, flits wait.
    #[inline(always)]
    pub(super) fn cycles(&self, kind: &ChannelTiming, flits: u32) -> u32 {
        if kind.credit_loop == 0 || flits <= self.buffer {
            return flits * kind.period;
        }
        let before = flits - 1;
        before / self.buffer * kind.credit_loop + before % self.buffer * kind.period + kind.period
    }

    /// The places of its path that a parcel of so many flits has to remember: those over which it is spread, and those that its head gets
    /// over while it crosses one channel.
    pub(super) fn places(&self, flits: u32) -> usize {
        let quickest = self.channels.iter().map(|channel| channel.head).min().unwrap_or(1).max(1);
        let slowest = self.channels.iter().map(|channel| self.cycles(channel, flits)).max().unwrap_or(1);
        slowest.div_ceil(quickest) as usize + self.span(flits) + 2
    }

    /// Cycles within which most happens that a parcel of so many flits brings about.
    pub(super) fn horizon(&self, flits: u32) -> u64 {
        let slowest = self.channels.iter().map(|channel| u64::from(self.cycles(channel, flits))).max().unwrap_or(1);
        let longest = self.channels.iter().map(|channel| u64::from(channel.head.max(channel.credit))).max().unwrap_or(1);
        2 * (slowest + longest) + u64::from(self.lane_gap + self.buffer_gap)
    }

    /// Cycles by which a parcel of packets of `packet` flits follows its head at each router, if routers wait for whole packets.
    #[inline(always)]
    pub(super) fn waits(&self, packet: u32, period: u32) -> u32 {
        if self.stores { ((packet - 1) * period).saturating_mul(self.grain) } else { 0 }
    }
}

/// Packets that a buffer holds, and so parcels.
pub(super) fn most_room(scenario: &Scenario) -> u32 {
    (scenario.router.buffer_flits / packet_flits(scenario)).clamp(1, MOST_ROOM)
}

/// Flits of the packets that buffers hold: of the closed workload's, or the mean of those of the open traffic.
fn packet_flits(scenario: &Scenario) -> u32 {
    if let Some(closed) = &scenario.workload {
        return closed.longest_packet().max(1);
    }
    let replies = scenario.classes.iter().filter_map(|class| class.reply.as_ref()).map(|reply| reply.sizes.mean());
    let means: Vec<f64> = scenario.classes.iter().map(|class| class.sizes.mean()).chain(replies).collect();
    (means.iter().sum::<f64>() / means.len().max(1) as f64).round().max(1.0) as u32
}

/// As many packets to a parcel that a message, by flits the median, has as many parcels as its path has channels, at least [`PARCELS`],
/// times the packets that a buffer holds: with coarser ones more of a message would stand in the network than there is room for.
fn automatic_grain(scenario: &Scenario, packet: u32, room: u32) -> Result<u32, EngineError> {
    let Some(closed) = &scenario.workload else { return Ok(1) };
    let mut sample: Vec<Message> = Vec::new();
    let every = closed.workload.messages().div_ceil(SAMPLES).max(1);
    let mut number = 0u64;
    closed.workload.each_message(&mut |message| {
        if number.is_multiple_of(every) {
            sample.push(*message);
        }
        number += 1;
    });
    sample.sort_by_key(|message| message.flits);
    let total: u64 = sample.iter().map(|message| u64::from(message.flits)).sum();
    let mut below = 0;
    let is_median = |message: &&Message| {
        below += u64::from(message.flits);
        below >= total / 2
    };
    let Some(median) = sample.iter().find(is_median).map(|message| message.flits) else { return Ok(1) };
    let least = u64::from(packet) * u64::from(room) * PARCELS;
    if u64::from(median) < 2 * least {
        return Ok(1);
    }
    let channels = path_channels(scenario, &sample)?;
    let parcels = (channels / total.max(1)).max(PARCELS);
    Ok((u64::from(median) / (u64::from(packet) * u64::from(room) * parcels)).clamp(1, u64::from(Grain::MOST)) as u32)
}

/// Flits times channels of their paths, all messages together.
fn path_channels(scenario: &Scenario, messages: &[Message]) -> Result<u64, EngineError> {
    let mut paths = Paths::new(scenario);
    let mut sum = 0;
    let mut memory = Vec::new();
    for (message, serial) in messages.iter().zip(0..) {
        let available = available(scenario, message.token, message.destination);
        let request = Request { source: message.source, destination: message.destination, serial, available };
        let mut walk = [Walk::new(request, memory)];
        paths.find(scenario, &mut walk, &|_| 0)?;
        let [walk] = walk;
        sum += u64::from(message.flits) * walk.channels.len() as u64;
        memory = walk.channels;
    }
    Ok(sum)
}

/// The virtual channels that a message of a closed workload may use.
pub(super) fn available(scenario: &Scenario, token: Token, destination: TerminalId) -> VirtualChannels {
    let of_part = scenario.workload.as_ref().map(|closed| closed.parts[closed.part_of(token)].virtual_channels);
    scenario.router.entering(destination, of_part.unwrap_or(VirtualChannels { begin: 0, end: 1 }))
}
