//! The time of a collective in closed form: alpha-beta, phase by phase.
//!
//! A step takes the latency of its longest path, and as long as its busiest link has to carry what the step puts on it. Between steps the
//! endpoint waits and reduces. Source of the algorithms' steps: Thakur, Rabenseifner and Gropp, Optimization of Collective Communication
//! Operations in MPICH, IJHPCA 19 (2005); of their times: Hockney, The communication challenge for MPP, Parallel Computing 20 (1994).

use super::links::{ANY, Link, Links, Loads};
use kasuri_workload::execution::cluster::{Implementation, Pattern, System};
use kasuri_workload::execution::npus::{Form, GROUP_DELAY, PhaseForm, Step};
use std::collections::{BTreeMap, VecDeque};

/// A phase of a chunk in one dimension, alone on the network.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTime {
    /// The dimension; none for a communicator group and a ring over all NPUs.
    pub dimension: Option<usize>,
    /// What is done.
    pub pattern: Pattern,
    /// By which algorithm.
    pub implementation: Implementation,
    /// NPUs that take part.
    pub npus: u32,
    /// Steps that follow each other.
    pub steps: u64,
    /// Latency of all steps.
    pub latency_ns: f64,
    /// What the busiest link of each step carries, over its rate, in all steps.
    pub serialisation_ns: f64,
    /// What the endpoint waits before messages, and to reduce.
    pub endpoint_ns: f64,
    /// All of it.
    pub time_ns: f64,
}

/// A collective alone on the network.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveTime {
    /// Chunks that follow each other through the phases.
    pub chunks: u64,
    /// The phases of the first chunk.
    pub phases: Vec<PhaseTime>,
    /// From when all are ready to when the last has ended.
    pub time_ns: f64,
}

/// A phase: its time, and what it puts on links.
#[derive(Debug)]
struct Phase {
    time: PhaseTime,
    loads: Loads,
}

/// What the messages of a step take.
#[derive(Clone, Copy, Debug, Default)]
struct StepTime {
    latency_ns: f64,
    serialisation_ns: f64,
}

/// The time of a collective whose phases are given, and what each link carries of it ([`ANY`]: that of each of its members).
pub(super) fn collective(form: &Form, links: Links<'_>, system: &System, queues: u32) -> Result<(CollectiveTime, Loads), String> {
    let phases: Vec<Phase> = form.phases.iter().map(|phase| Phase::of(phase, links, system)).collect::<Result<_, _>>()?;
    let mut loads = Loads::new();
    for &(kind, _) in form.chunks.iter().flatten() {
        phases[kind].loads.iter().for_each(|(&link, bytes)| *loads.entry(link).or_default() += bytes);
    }
    let most = system.active_chunks.div_ceil(queues).max(1) as usize;
    let stages = form.chunks.iter().map(|chunk| chunk.iter().map(|&(kind, queue)| (queue, phases[kind].time.time_ns)).collect());
    // Chunks that are under way at once share the links, whatever they have to wait for otherwise.
    let busiest = links.busiest(&loads).map_or(0.0, |(_, busy)| busy);
    let time_ns = pipeline(stages.collect(), most).max(busiest);
    let first = form.chunks.first().into_iter().flatten().map(|&(kind, _)| phases[kind].time.clone()).collect();
    Ok((CollectiveTime { chunks: form.chunks.len() as u64, phases: first, time_ns }, loads))
}

impl Phase {
    fn of(form: &PhaseForm, links: Links<'_>, system: &System) -> Result<Self, String> {
        let delay = if form.grouped { GROUP_DELAY } else { system.endpoint_delay_ns } as f64;
        let reduction = |bytes: Option<u64>| bytes.map_or(Ok(0), |bytes| system.reduction_ns(bytes)).map(|ns| ns as f64);
        let (mut loads, mut steps, mut network) = (Loads::new(), 0, StepTime::default());
        let mut endpoint_ns = delay + reduction(form.reduces)?;
        for step in &form.steps {
            let times = step.times as f64;
            let one = step_time(step, form, links, &mut loads);
            network.latency_ns += times * one.latency_ns;
            network.serialisation_ns += times * one.serialisation_ns;
            endpoint_ns += times * (delay + reduction(step.reduces)?);
            steps += step.times;
        }
        let mut time_ns = endpoint_ns + network.latency_ns + network.serialisation_ns;
        if form.dimension.is_none() && form.steps.iter().all(Step::is_to_next) {
            let (chain, pace) = uneven_ring(form, links, steps);
            // The delays of a ring hide behind a slow link, where that sets the pace.
            time_ns = (endpoint_ns + chain).max(pace + 2.0 * delay);
        }
        let time = PhaseTime {
            dimension: form.dimension,
            pattern: form.pattern,
            implementation: form.implementation,
            npus: form.members.len() as u32,
            steps,
            latency_ns: network.latency_ns,
            serialisation_ns: network.serialisation_ns,
            endpoint_ns,
            time_ns,
        };
        Ok(Self { time, loads })
    }
}

/// One step: the longest latency, and the busiest link. Adds what all its repetitions put on links.
fn step_time(step: &Step, form: &PhaseForm, links: Links<'_>, loads: &mut Loads) -> StepTime {
    let (mut own, mut time) = (Loads::new(), StepTime::default());
    let (bytes, count) = (step.bytes as f64, form.members.len() as u32);
    let (mut messages, mut is_alike) = (Vec::new(), false);
    if form.dimension.is_some() {
        is_alike = step.each_of_one(count, &mut |from, to| messages.push((from, to)));
    }
    let mut add = |from: u32, to: u32| {
        let (source, destination) = (form.members[from as usize], form.members[to as usize]);
        let path = links.path(source, destination, &mut |link| {
            let link = if is_alike { Link { npu: ANY, ..link } } else { link };
            *own.entry(link).or_default() += bytes;
        });
        time.latency_ns = time.latency_ns.max(path.latency_ns);
    };
    if is_alike {
        messages.into_iter().for_each(|(from, to)| add(from, to))
    } else {
        step.each_message(count, &mut add)
    }
    time.serialisation_ns = links.busiest(&own).map_or(0.0, |(_, busy)| busy);
    own.into_iter().for_each(|(link, bytes)| *loads.entry(link).or_default() += step.times as f64 * bytes);
    time
}

/// A ring whose messages take different paths: the longest chain of so many messages each of which waits for the one before, and how long the
/// slowest of its paths needs for all that goes over it.
fn uneven_ring(form: &PhaseForm, links: Links<'_>, steps: u64) -> (f64, f64) {
    let Some(first) = form.steps.first() else { return (0.0, 0.0) };
    let (mut hops, mut own) = (Vec::new(), Loads::new());
    let mut latency = 0.0_f64;
    first.each_message(form.members.len() as u32, &mut |from, to| {
        let path = links.path(form.members[from as usize], form.members[to as usize], &mut |link| {
            *own.entry(link).or_default() += first.bytes as f64;
        });
        latency = latency.max(path.latency_ns);
        hops.push(path.latency_ns + first.bytes as f64 / path.bytes_per_ns);
    });
    let (rounds, rest) = (steps / hops.len() as u64, (steps % hops.len() as u64) as usize);
    let window = |begin: usize| (0..rest).map(|hop| hops[(begin + hop) % hops.len()]).sum::<f64>();
    let longest = (0..hops.len()).map(window).fold(0.0, f64::max);
    let busiest = links.busiest(&own).map_or(0.0, |(_, busy)| busy);
    (rounds as f64 * hops.iter().sum::<f64>() + longest, steps as f64 * busiest + latency)
}

/// When the last chunk has been through its stages. A queue works on at most so many at once, first come, first served.
fn pipeline(chunks: Vec<Vec<(usize, f64)>>, most: usize) -> f64 {
    let mut queues: BTreeMap<usize, (usize, VecDeque<usize>)> = BTreeMap::new();
    // Times are not negative: their bits are in their order.
    let (mut ends, mut number) = (BTreeMap::new(), 0_u64);
    let mut next = vec![0; chunks.len()];
    let (mut arrivals, mut now): (VecDeque<usize>, f64) = ((0..chunks.len()).collect(), 0.0);
    loop {
        while let Some(chunk) = arrivals.pop_front() {
            let Some(&(queue, _)) = chunks[chunk].get(next[chunk]) else { continue };
            queues.entry(queue).or_default().1.push_back(chunk);
        }
        for (running, waiting) in queues.values_mut() {
            while *running < most
                && let Some(chunk) = waiting.pop_front()
            {
                *running += 1;
                number += 1;
                ends.insert(((now + chunks[chunk][next[chunk]].1).to_bits(), number), chunk);
            }
        }
        let Some(((end, _), chunk)) = ends.pop_first() else { return now };
        now = f64::from_bits(end);
        let (queue, _) = chunks[chunk][next[chunk]];
        next[chunk] += 1;
        if let Some((running, _)) = queues.get_mut(&queue) {
            *running -= 1;
        }
        arrivals.push_back(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stages of a pipeline: the first chunk takes all of them, each further one the longest.
    #[test]
    fn chunks_follow_each_other_through_queues() {
        let chunk = vec![(0, 3.0), (1, 5.0), (2, 2.0)];
        for count in [1, 2, 7] {
            assert_eq!(pipeline(vec![chunk.clone(); count], 1), 10.0 + 5.0 * (count - 1) as f64);
        }
        // Two at once in the longest: the one before it sets the pace then.
        assert_eq!(pipeline(vec![vec![(0, 4.0)]; 5], 2), 12.0);
        assert_eq!(pipeline(Vec::new(), 1), 0.0);
    }
}
