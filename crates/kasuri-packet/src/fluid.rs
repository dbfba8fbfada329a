//! Flows without packets: each has a rate, and those that share links share them fairly.
//!
//! At any time rates are max-min fair: none can be raised without lowering one that is no higher. A flow on one path uses the links on
//! which its packets would be; one that is sprayed uses all links between a ToR or pod and the tier above evenly, as if they were one.
//! What is left of a flow drains at its rate; it is received as much later as the last packet of a lone flow comes behind its bytes, so
//! that flows that are alone, and incasts, take the same time as their packets.

use super::{FlowTimes, Input, MAX_TIME, Options, Spray, check};
use crate::bounds::{Part, bound, least, lone_flow, parts_of, rate};
use crate::flows::Triggers;
use crate::packets::Packet;
use crate::paths::Paths;
use crate::wiring::Wiring;
use kasuri_workload::ethernet::fabric::Fabric;
use kasuri_workload::ethernet::matrix::{Begin, Connection};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A flow that drains.
#[derive(Clone, Copy, Debug)]
struct Draining {
    flow: u32,
    /// Bytes on the wire that are left.
    bytes: f64,
    /// Bytes per picosecond.
    rate: f64,
}

/// What happens at a time: first flows end, then others start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Finish(u32),
    Start(u32),
}

/// Links as flows share them.
#[derive(Debug, Default)]
struct Links {
    /// Bytes per picosecond of each.
    rates: Vec<f64>,
    /// Those of each flow.
    of_flows: Vec<Vec<u32>>,
}

/// When each flow starts, is received and finished.
///
/// # Errors
/// A sentence that says why the run cannot be made.
pub fn share(input: &Input<'_>) -> Result<Vec<FlowTimes>, String> {
    check(input)?;
    let links = links(input);
    let matrix = input.matrix;
    let mut times = vec![FlowTimes::default(); matrix.connections.len()];
    let mut triggers = Triggers::new(matrix);
    let mut events: BinaryHeap<Reverse<(u64, Event)>> = BinaryHeap::new();
    for (flow, index) in matrix.connections.iter().zip(0..) {
        if let Begin::At(time) = flow.begin {
            events.push(Reverse((time, Event::Start(index))));
        }
    }
    let mut draining: Vec<Draining> = Vec::new();
    let mut now = 0;
    loop {
        let drained = draining.iter().map(|one| one.bytes / one.rate).fold(f64::INFINITY, f64::min);
        let due = events.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
        let next = due.min(now + drained.ceil().min(MAX_TIME as f64) as u64);
        if next >= MAX_TIME {
            keep_bound(input, &mut times);
            return Ok(times);
        }
        // Less than a picosecond is left of what drains now.
        let elapsed = if drained <= (next - now) as f64 { drained } else { (next - now) as f64 };
        draining.iter_mut().for_each(|one| one.bytes -= one.rate * elapsed);
        now = next;
        draining.retain(|one| {
            let is_left = one.bytes > one.rate;
            if !is_left {
                let connection = &matrix.connections[one.flow as usize];
                let times = &mut times[one.flow as usize];
                let [received, finished] = behind(input, connection).map(|after| now + after);
                // The bytes of a packet are not spread over several links.
                let least = least(input.fabric, &input.options, connection);
                let started = times.started.unwrap_or(0);
                let (received, finished) = (received.max(started + least.0), finished.max(started + least.1));
                times.received = Some(received);
                events.push(Reverse((finished, Event::Finish(one.flow))));
            }
            is_left
        });
        while let Some(&Reverse((time, event))) = events.peek().filter(|Reverse((time, _))| *time == now) {
            events.pop();
            match event {
                Event::Start(flow) => {
                    times[flow as usize].started = Some(time);
                    let bytes = wire_bytes(&input.options, &matrix.connections[flow as usize]) as f64;
                    draining.push(Draining { flow, bytes, rate: 0.0 });
                }
                Event::Finish(flow) => {
                    times[flow as usize].finished = Some(time);
                    let told = matrix.connections[flow as usize].tells.map_or(&[][..], |trigger| triggers.tell(trigger));
                    told.iter().for_each(|&flow| events.push(Reverse((time, Event::Start(flow)))));
                }
            }
        }
        fill(&links, &mut draining);
    }
}

/// Fluid is faster than packets if several flows share a link after slow ones, which the first packet of each must cross first. So the last
/// flow ends no sooner than the bound of all.
fn keep_bound(input: &Input<'_>, times: &mut [FlowTimes]) {
    let least = bound(input).all_ps;
    if let Some(last) = times.iter_mut().max_by_key(|times| times.finished)
        && let (Some(received), Some(finished)) = (last.received, last.finished)
        && finished < least
    {
        (last.received, last.finished) = (Some(received + least - finished), Some(least));
    }
}

fn wire_bytes(options: &Options, connection: &Connection) -> u64 {
    connection.bytes + options.packets(connection.bytes).0 * u64::from(options.header)
}

/// How long after its bytes have drained at full rate a lone flow is received and finished.
fn behind(input: &Input<'_>, connection: &Connection) -> [u64; 2] {
    let (received, finished) = lone_flow(input.fabric, &input.options, connection);
    let slowest = input.fabric.picoseconds_per_byte(connection.source, connection.destination).into_iter().max().unwrap_or(0);
    let alone = wire_bytes(&input.options, connection) as f64 / fastest(input, slowest);
    [received, finished].map(|time| time.saturating_sub(alone as u64))
}

/// Bytes per picosecond of a lone flow.
fn fastest(input: &Input<'_>, slowest: u64) -> f64 {
    let link = 1.0 / slowest.max(1) as f64;
    input.options.interface_mbps.map_or(link, |rate| link.min(f64::from(rate) / 8e6))
}

/// The links of each flow.
fn links(input: &Input<'_>) -> Links {
    let Input { fabric, matrix, options } = *input;
    if options.spray == Spray::Hash && options.paths == 1 {
        return single_links(input);
    }
    let mut links = Links::default();
    let mut numbers: BTreeMap<Part, u32> = BTreeMap::new();
    for flow in &matrix.connections {
        let of_flow = parts_of(fabric, flow).into_iter().map(|part| {
            *numbers.entry(part).or_insert_with(|| {
                let limit = if matches!(part, Part::OutOf(_)) { fastest(input, 1) } else { f64::INFINITY };
                links.rates.push(even_rate(fabric, &options, part).min(limit));
                links.rates.len() as u32 - 1
            })
        });
        let of_flow = of_flow.collect();
        links.of_flows.push(of_flow);
    }
    links
}

/// Bytes per picosecond of the links of a part that are used evenly: all as slow as the slowest.
fn even_rate(fabric: &Fabric, options: &Options, part: Part) -> f64 {
    let is_slow = options.slow_links > 0 && fabric.tiers.len() == 2 && matches!(part, Part::IntoTier(..) | Part::OutOfTier(..));
    if is_slow { rate(fabric, &Options { slow_links: 0, ..*options }, part) / 4.0 } else { rate(fabric, options, part) }
}

/// The ports on the path of each flow's packets.
fn single_links(input: &Input<'_>) -> Links {
    let Input { fabric, matrix, options } = *input;
    let wiring = Wiring::new(fabric);
    let ends = wiring.ends(options.slow_links);
    let mut paths = Paths::new(&options, &wiring, matrix.connections.iter().map(|flow| flow.id).collect());
    let rates = ends.iter().zip(0..).map(|(end, port)| {
        let rate = 1.0 / end.picoseconds_per_byte(fabric) as f64;
        if port < fabric.hosts { rate.min(fastest(input, 1)) } else { rate }
    });
    let rates = rates.collect();
    let mut of_flows = Vec::with_capacity(matrix.connections.len());
    for (flow, index) in matrix.connections.iter().zip(0..) {
        of_flows.push(ports(fabric, &wiring, &mut paths, flow, index, &|port| ends[port as usize].node));
    }
    Links { rates, of_flows }
}

fn ports(fabric: &Fabric, wiring: &Wiring, paths: &mut Paths, flow: &Connection, index: u32, node: &dyn Fn(u32) -> u32) -> Vec<u32> {
    let packet = Packet::new(index, 0, flow.destination, 0, 0, false);
    let mut ports = vec![flow.source];
    let mut at = node(flow.source);
    while at >= fabric.hosts {
        let switch = at - fabric.hosts;
        let port = paths.choose(switch, wiring.choice(switch, flow.destination), &packet);
        ports.push(port);
        at = node(port);
    }
    ports
}

/// Max-min fair rates: the link with the least for each of its flows decides theirs, again and again.
fn fill(links: &Links, draining: &mut [Draining]) {
    let mut users: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, one) in draining.iter_mut().enumerate() {
        one.rate = 0.0;
        for &link in &links.of_flows[one.flow as usize] {
            users.entry(link).or_default().push(index);
        }
    }
    // Of each link what is left, and for how many.
    let mut left: BTreeMap<u32, (f64, u32)> =
        users.iter().map(|(&link, users)| (link, (links.rates[link as usize], users.len() as u32))).collect();
    let key = |link: u32, (rate, count): (f64, u32)| Reverse(((rate / f64::from(count)).max(0.0).to_bits(), link));
    let mut shares: BinaryHeap<_> = left.iter().map(|(&link, &state)| key(link, state)).collect();
    while let Some(Reverse((bits, link))) = shares.pop() {
        let state = left[&link];
        if state.1 == 0 {
            continue;
        }
        // Shares only rise: one that is out of date comes again.
        let present = key(link, state);
        if present != Reverse((bits, link)) {
            shares.push(present);
            continue;
        }
        let share = f64::from_bits(bits);
        for &index in &users[&link] {
            if draining[index].rate > 0.0 {
                continue;
            }
            draining[index].rate = share;
            for other in &links.of_flows[draining[index].flow as usize] {
                if let Some((rate, count)) = left.get_mut(other) {
                    *rate -= share;
                    *count -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_max_min_fair() {
        // Three flows on link 0 of rate 3; one of them on link 1 of rate 0.5, too.
        let links = Links { rates: vec![3.0, 0.5], of_flows: vec![vec![0], vec![0, 1], vec![0]] };
        let mut draining: Vec<Draining> = (0..3).map(|flow| Draining { flow, bytes: 1.0, rate: 0.0 }).collect();
        fill(&links, &mut draining);
        assert_eq!(draining.iter().map(|one| one.rate).collect::<Vec<_>>(), [1.25, 0.5, 1.25]);
    }
}
