//! Times that need no simulation: a flow that is alone, and the least time in which all flows could be done.
//!
//! **A lone flow** of n packets over H queues, queue j needing t_j picoseconds a byte, where Lat is the latency of all links and switches:
//! the packet before the last has left queue j at full_j = mtu (t_1 + … + t_j) + (n - 2) mtu max(t_1 … t_j), the last at
//! tail_j = max(tail_(j-1), full_j) + last t_j, with tail_0 = (n - 1) mtu t_1. It is received at tail_H + Lat and acknowledged
//! header (t_1 + … + t_H) + Lat later.
//!
//! **The bound** is the latest of: each packet of each flow alone, after those that its host has sent before; all bytes that a host
//! receives or sends, or that leave or enter a ToR or a pod over links between switches, at the rate of those links together, after the
//! first packet's path to them and before the last one's path from them. Packets may take any paths and overtake each other, so the short
//! last packet of a flow may be the first or the last on a link; if there is only one path, a flow takes its time as above. Flows that
//! start later count from their start, and flows that a trigger starts from the least time of the flows that set it off. No network without
//! losses can be faster.

use super::{Input, MAX_TIME, Options};
use crate::flows::Triggers;
use kasuri_workload::ethernet::fabric::Fabric;
use kasuri_workload::ethernet::matrix::{Begin, Connection, Matrix};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// When a lone flow's last byte is received and when its sender has all acknowledged, in picoseconds after its start. The second is later by up
/// to the time of an acknowledgement on the slowest link, where one is still on its way when a short last packet arrives.
pub fn lone_flow(fabric: &Fabric, options: &Options, connection: &Connection) -> (u64, u64) {
    let queues = fabric.picoseconds_per_byte(connection.source, connection.destination);
    let latency = fabric.latency_ps(connection.source, connection.destination);
    let (packets, last) = options.packets(connection.bytes);
    let mtu = u64::from(options.mtu);
    let gap = options.interface_mbps.map_or(mtu * queues[0], |rate| mtu * 8_000_000 / u64::from(rate.max(1)));
    let (mut sum, mut slowest, mut tail) = (0, gap, (packets - 1) * gap);
    for &queue in &queues {
        sum += queue;
        slowest = slowest.max(mtu * queue);
        let full = if packets > 1 { mtu * sum + (packets - 2) * slowest } else { 0 };
        tail = tail.max(full) + last * queue;
    }
    let received = tail + latency;
    (received, received + u64::from(options.header) * sum + latency)
}

/// When a flow starts, is received and acknowledged, in picoseconds; `None` if it never starts.
pub type Times = Option<[u64; 3]>;

/// Each flow as if it were alone with all its packets on one path, and triggers were set off then.
pub fn lone(input: &Input<'_>) -> Vec<Times> {
    started(input.matrix, &|connection| lone_flow(input.fabric, &input.options, connection))
}

/// Least times.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Those of each flow.
    pub flows: Vec<Times>,
    /// The least time until all flows that start are acknowledged, in picoseconds.
    pub all_ps: u64,
}

/// The least times, whatever paths packets take.
pub fn bound(input: &Input<'_>) -> Bound {
    let Input { fabric, matrix, options } = input;
    let flows = started(matrix, &|connection| least(fabric, options, connection));
    let mut parts: BTreeMap<Part, Vec<Work>> = BTreeMap::new();
    for (connection, times) in matrix.connections.iter().zip(&flows) {
        if let Some([start, ..]) = *times {
            work(fabric, options, connection, start).for_each(|(part, work)| parts.entry(part).or_default().push(work));
        }
    }
    let alone = flows.iter().flatten().map(|times| times[2]).max().unwrap_or(0);
    let shared = parts.into_iter().map(|(part, work)| done(work, capacity(fabric, options, part)));
    Bound { all_ps: shared.fold(alone, u64::max), flows }
}

/// When each flow starts and ends if it `takes` these times until it is received and acknowledged.
fn started(matrix: &Matrix, takes: &dyn Fn(&Connection) -> (u64, u64)) -> Vec<Times> {
    let mut times: Vec<Times> = vec![None; matrix.connections.len()];
    let mut triggers = Triggers::new(matrix);
    let mut ends = BinaryHeap::new();
    let mut start = |flow: u32, at: u64, ends: &mut BinaryHeap<Reverse<(u64, u32)>>| {
        let (received, finished) = takes(&matrix.connections[flow as usize]);
        // What lies beyond the last picosecond stays there.
        let [received, finished] = [received, finished].map(|after| at.saturating_add(after).min(MAX_TIME));
        times[flow as usize] = Some([at, received, finished]);
        ends.push(Reverse((finished, flow)));
    };
    for (flow, index) in matrix.connections.iter().zip(0..) {
        if let Begin::At(time) = flow.begin {
            start(index, time, &mut ends);
        }
    }
    while let Some(Reverse((now, flow))) = ends.pop() {
        let Some(trigger) = matrix.connections[flow as usize].tells else { continue };
        triggers.tell(trigger).iter().for_each(|&flow| start(flow, now, &mut ends));
    }
    times
}

/// A flow between two hosts, as the bound sees it.
struct FlowShape {
    /// Picoseconds a byte of each queue.
    queues: Vec<u64>,
    latency: u64,
    packets: u64,
    /// Bytes of a full packet and of the last one.
    full: u64,
    last: u64,
    /// From the beginning of one packet to that of the next at the source's link, at least.
    gap: u64,
    /// From the arrival of the last byte to the acknowledgement.
    acknowledged: u64,
}

impl FlowShape {
    fn new(fabric: &Fabric, options: &Options, connection: &Connection) -> Self {
        let queues = fabric.picoseconds_per_byte(connection.source, connection.destination);
        let latency = fabric.latency_ps(connection.source, connection.destination);
        let (packets, last) = options.packets(connection.bytes);
        let full = u64::from(options.mtu);
        let of_interface = options.interface_mbps.map_or(0, |rate| full * 8_000_000 / u64::from(rate.max(1)));
        let acknowledged = latency + u64::from(options.header) * queues.iter().sum::<u64>();
        Self { gap: of_interface.max(full * queues[0]), queues, latency, packets, full, last, acknowledged }
    }

    /// The first time when any of its packets can join a queue, without latencies: the first full packet, or a short last one by another path.
    fn first_at(&self, queue: usize) -> u64 {
        let sum: u64 = self.queues[..queue].iter().sum();
        let last = (self.packets - 1) * self.gap + self.last * sum;
        if self.packets > 1 { last.min(self.full * sum) } else { last }
    }
}

/// The least time until a flow is received and acknowledged: the latest of the last packet and the full one before it, each alone once its
/// host has sent those before, and of the flow's bytes on the links that it takes.
pub(crate) fn least(fabric: &Fabric, options: &Options, connection: &Connection) -> (u64, u64) {
    if fabric.has_one_path(connection.source, connection.destination) {
        return lone_flow(fabric, options, connection);
    }
    let flow = FlowShape::new(fabric, options, connection);
    let sum: u64 = flow.queues.iter().sum();
    let last = (flow.packets - 1) * flow.gap + flow.last * sum;
    let before = if flow.packets > 1 { (flow.packets - 2) * flow.gap + flow.full * sum } else { 0 };
    let packets = last.max(before) + flow.latency + flow.acknowledged;
    let shared = work(fabric, options, connection, 0).map(|(part, work)| done(vec![work], capacity(fabric, options, part)));
    let finished = shared.fold(packets, u64::max);
    (finished - flow.acknowledged, finished)
}

/// Links that share work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The link to a host, from a host.
    Into(u32),
    OutOf(u32),
    /// The links between a ToR (tier 1) or a pod (tier 2) and the tier above: into it, out of it.
    IntoTier(usize, u32),
    OutOfTier(usize, u32),
}

/// The part of one flow.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// When its first packet can be there.
    from: u64,
    bytes: u64,
    /// From its last byte's leaving to the acknowledgement.
    after: u64,
}

/// The work of a flow in the parts that it shares with others.
fn work(fabric: &Fabric, options: &Options, connection: &Connection, start: u64) -> impl Iterator<Item = (Part, Work)> {
    let flow = FlowShape::new(fabric, options, connection);
    let height = flow.queues.len() / 2;
    let bytes = connection.bytes + flow.packets * u64::from(options.header);
    parts_of(fabric, connection).into_iter().map(move |part| {
        let queue = match part {
            Part::Into(_) => 2 * height - 1,
            Part::OutOf(_) => 0,
            Part::OutOfTier(tier, _) => tier,
            Part::IntoTier(tier, _) => 2 * height - 1 - tier,
        };
        let before = latency_before(fabric, height, queue);
        let after = flow.latency - before + flow.acknowledged + flow.last * flow.queues[queue + 1..].iter().sum::<u64>();
        (part, Work { from: start.saturating_add(flow.first_at(queue) + before), bytes, after })
    })
}

/// Picoseconds of the links and switches before a queue of a path over `height` tiers: up to the top switch, and down again.
fn latency_before(fabric: &Fabric, height: usize, queue: usize) -> u64 {
    let tiers = &fabric.tiers;
    let up = tiers[..queue.min(height)].iter().map(|tier| tier.link_latency_ns + tier.switch_latency_ns);
    // A link down from the switches of a tier is that of the tier below, and leads to its switches.
    let down =
        (height..queue).map(|before| 2 * height - 1 - before).map(|tier| tiers[tier].link_latency_ns + tiers[tier - 1].switch_latency_ns);
    1000 * up.chain(down).sum::<u64>()
}

/// All that a flow shares with others.
pub(crate) fn parts_of(fabric: &Fabric, connection: &Connection) -> Vec<Part> {
    let Connection { source, destination, .. } = *connection;
    let mut parts = vec![Part::Into(destination), Part::OutOf(source)];
    for tier in 1..fabric.height(source, destination) {
        let place = |host: u32| if tier == 1 { fabric.tor(host) } else { fabric.pod(host) };
        parts.extend([Part::OutOfTier(tier, place(source)), Part::IntoTier(tier, place(destination))]);
    }
    parts
}

/// Bytes per picosecond of the links of a part together.
pub(crate) fn rate(fabric: &Fabric, options: &Options, part: Part) -> f64 {
    let (quarters, picoseconds) = capacity(fabric, options, part);
    quarters as f64 / 4.0 / picoseconds as f64
}

/// The links of a part in quarters, and the picoseconds of a byte on a whole one.
fn capacity(fabric: &Fabric, options: &Options, part: Part) -> (u64, u64) {
    match part {
        Part::Into(_) | Part::OutOf(_) => (4, fabric.tiers[0].picoseconds_per_byte()),
        Part::IntoTier(tier, _) | Part::OutOfTier(tier, _) => {
            let lower = fabric.tiers[tier - 1];
            let switches = if tier == 1 { 1 } else { fabric.aggregations_per_pod() };
            let links = u64::from(switches) * u64::from(lower.up);
            // The slow links of two tiers, at a quarter of the rate; those of three tiers are counted as fast.
            let slow = if fabric.tiers.len() == 2 { options.slow_links.min(fabric.aggregations_per_pod()) } else { 0 };
            let slow = u64::from(slow) * u64::from(fabric.tiers[tier].bundle);
            (4 * links - 3 * slow, fabric.tiers[tier].picoseconds_per_byte())
        }
    }
}

/// The earliest time when all work of a part is done, in whole picoseconds: for each start, that of the flows that start then or later.
fn done(mut work: Vec<Work>, (quarters, picoseconds): (u64, u64)) -> u64 {
    work.sort_unstable_by_key(|work| Reverse(work.from));
    let (mut bytes, mut after, mut latest) = (0, u64::MAX, 0);
    for part in work {
        bytes += u128::from(part.bytes);
        after = after.min(part.after);
        let takes = (bytes * u128::from(4 * picoseconds)).div_ceil(u128::from(quarters));
        latest = latest.max(part.from.saturating_add(u64::try_from(takes).unwrap_or(MAX_TIME)).saturating_add(after));
    }
    latest.min(MAX_TIME)
}
