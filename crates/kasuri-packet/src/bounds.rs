//! Times that need no simulation: a flow that is alone, and the least time in which all flows could be done.
//!
//! **A lone flow** of n packets over H queues, queue j needing t_j picoseconds a byte, where Lat is the latency of all links and switches:
//! the packet before the last has left queue j at full_j = mtu (t_1 + … + t_j) + (n - 2) mtu max(t_1 … t_j), the last at
//! tail_j = max(tail_(j-1), full_j) + last t_j, with tail_0 = (n - 1) mtu t_1. It is received at tail_H + Lat and acknowledged
//! header (t_1 + … + t_H) + Lat later.
//!
//! **The bound** is the latest of: each flow alone; all bytes that a host receives or sends, or that leave or enter a ToR or a pod over
//! links between switches, at the rate of those links together, behind the first packet's way to them and before the last one's way from
//! them. Flows that start later are counted from their start. No network without losses can be done sooner, whatever its paths.

use super::{Input, MAX_TIME, Options};
use crate::flows::Triggers;
use kasuri_workload::ethernet::fabric::{Fabric, Tier};
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

/// What is known of each flow, and of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The earliest start of each flow, if it starts at all, with the time when it is received and acknowledged if it is alone then.
    pub flows: Vec<Option<[u64; 3]>>,
    /// The least time until all flows that start are acknowledged, in picoseconds.
    pub all_ps: f64,
}

/// The least time.
pub fn bound(input: &Input<'_>) -> Bound {
    let Input { fabric, matrix, options } = input;
    let flows = earliest(fabric, matrix, options);
    let mut parts: BTreeMap<Part, Vec<Work>> = BTreeMap::new();
    for (connection, start) in matrix.connections.iter().zip(flows.iter().map(|times| times.map(|[start, ..]| start))) {
        if let Some(start) = start {
            add(fabric, options, connection, start, &mut parts);
        }
    }
    let lone = flows.iter().flatten().map(|times| times[2] as f64).fold(0.0, f64::max);
    let shared = parts.into_iter().map(|(part, work)| done(work, rate(fabric, options, part)));
    Bound { all_ps: shared.fold(lone, f64::max), flows }
}

/// When each flow starts at the earliest, and ends if it is alone.
fn earliest(fabric: &Fabric, matrix: &Matrix, options: &Options) -> Vec<Option<[u64; 3]>> {
    let mut times: Vec<Option<[u64; 3]>> = vec![None; matrix.connections.len()];
    let mut triggers = Triggers::new(matrix);
    let mut ends = BinaryHeap::new();
    let mut start = |flow: u32, at: u64, ends: &mut BinaryHeap<Reverse<(u64, u32)>>| {
        let (received, finished) = lone_flow(fabric, options, &matrix.connections[flow as usize]);
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

fn add(fabric: &Fabric, options: &Options, connection: &Connection, start: u64, parts: &mut BTreeMap<Part, Vec<Work>>) {
    let Connection { source, destination, bytes, .. } = *connection;
    let queues = fabric.picoseconds_per_byte(source, destination);
    let latency = fabric.latency_ps(source, destination);
    let (packets, last) = options.packets(bytes);
    let first = if packets > 1 { u64::from(options.mtu) } else { last };
    let bytes = bytes + packets * u64::from(options.header);
    let acknowledged = latency + u64::from(options.header) * queues.iter().sum::<u64>();
    let height = queues.len() / 2;
    // Latencies before a queue on the way up; before the last one, all but that of its link.
    let before = |queue: usize| {
        let up = |tier: &Tier| 1000 * (tier.link_latency_ns + tier.switch_latency_ns);
        let last = latency - 1000 * fabric.tiers[0].link_latency_ns;
        if queue < height { fabric.tiers[..queue].iter().map(up).sum() } else { last }
    };
    // Full packets come before, the last one behind.
    let work = |queue: usize| Work {
        from: start.saturating_add(first * queues[..queue].iter().sum::<u64>() + before(queue)),
        bytes,
        after: latency - before(queue) + acknowledged + last * queues[queue + 1..].iter().sum::<u64>(),
    };
    let height = queues.len() / 2;
    for part in parts_of(fabric, connection) {
        let queue = match part {
            Part::Into(_) => 2 * height - 1,
            Part::OutOf(_) => 0,
            Part::IntoTier(tier, _) | Part::OutOfTier(tier, _) => tier,
        };
        parts.entry(part).or_default().push(work(queue));
    }
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
    let one = |tier: &Tier| 1.0 / tier.picoseconds_per_byte() as f64;
    match part {
        Part::Into(_) | Part::OutOf(_) => one(&fabric.tiers[0]),
        Part::IntoTier(tier, _) | Part::OutOfTier(tier, _) => {
            let lower = fabric.tiers[tier - 1];
            let switches = if tier == 1 { 1 } else { fabric.aggregations_per_pod() };
            let links = f64::from(switches * lower.up);
            // The slow links of two tiers, at a quarter of the rate; those of three tiers are counted as fast.
            let slow = if fabric.tiers.len() == 2 { options.slow_links.min(fabric.aggregations_per_pod()) } else { 0 };
            (links - 0.75 * f64::from(slow * fabric.tiers[tier].bundle)) * one(&fabric.tiers[tier])
        }
    }
}

/// When all work of a part is done at the earliest: for each start, that of the flows that start then or later.
fn done(mut work: Vec<Work>, rate: f64) -> f64 {
    work.sort_unstable_by_key(|work| Reverse(work.from));
    let (mut bytes, mut after, mut latest) = (0, u64::MAX, 0.0_f64);
    for part in work {
        bytes += part.bytes;
        after = after.min(part.after);
        latest = latest.max(part.from as f64 + bytes as f64 / rate + after as f64);
    }
    latest
}
