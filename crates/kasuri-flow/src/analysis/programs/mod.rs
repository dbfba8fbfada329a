//! What formulas say of an execution trace on its cluster: the time of each collective in closed form, the longest path through the
//! programs, and the busiest link.
//!
//! [`answer`] follows no message. Its finish times are those of a network on which only the messages of one step of a collective, and the
//! chunks of one collective, take links from each other; [`LEFT_OUT`] says what is missing. Its bound leaves out all waiting, and no run on
//! these links can end before.

mod collective;
mod links;
mod path;
#[cfg(test)]
mod tests;

pub use collective::{CollectiveTime, PhaseTime};
pub use links::Link;

use kasuri_workload::execution::npus::{Asks, Gathering, Job, Outline};
use kasuri_workload::execution::trace::whole_ns;
use links::{ANY, Links, Loads};
use path::{Name, Part};
use std::collections::BTreeMap;

/// What the finish times leave out.
pub const LEFT_OUT: [&str; 4] = [
    "contention between messages and collectives that are under way at the same time",
    "what an NPU's places for one computation and one communication at a time do to their order",
    "that members of a collective who come early may begin before the last has come",
    "what several chunks of a collective that are under way wait for: they take the time of the busiest link, if not longer one by one",
];

/// What formulas say.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Each NPU.
    pub npus: Vec<NpuTimes>,
    /// Each kind of collective that occurs.
    pub collectives: Vec<Occurring>,
    /// The link that carries the most, over its rate; none if nothing is sent.
    pub busiest: Option<Busiest>,
    /// No run ends before: that of the busiest link, and of the NPU that computes longest.
    pub bound_ns: f64,
}

/// An NPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NpuTimes {
    /// When it has ended its last node: the longest path, or all that one of its places has to do.
    pub finish_ns: f64,
    /// All computations of its accelerator.
    pub compute_ns: f64,
    /// All computations of its host.
    pub host_ns: f64,
    /// All collectives, alone on the network.
    pub collective_ns: f64,
    /// All messages that it sends by itself, alone on the network.
    pub message_ns: f64,
}

/// A kind of collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurring {
    /// What it is, and who takes part in the first.
    pub gathering: Gathering,
    /// So many times it occurs, among the same members or others at the same places.
    pub times: u64,
    /// How long it takes.
    pub time: CollectiveTime,
}

/// The busiest link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busiest {
    /// Which.
    pub link: Link,
    /// How long it is busy, in nanoseconds.
    pub busy_ns: f64,
}

/// What formulas say of a job.
///
/// # Errors
/// A node that cannot be run or has no formula, with its NPU; an NPU that never finishes.
pub fn answer(job: Job<'_>) -> Result<Answer, String> {
    job.check()?;
    if let Some((npu, problem)) = (0_u32..).zip(job.traces).find_map(|(npu, trace)| Some((npu, trace.describe_cycle()?))) {
        return Err(format!("NPU {npu} {problem}"));
    }
    let mut study = Study { job, links: Links(job.cluster), outline: Outline::new(job)?, known: BTreeMap::new(), names: BTreeMap::new() };
    let mut sums = Sums { npus: vec![NpuTimes::default(); job.traces.len()], loads: Loads::new() };
    let mut parts = Vec::with_capacity(job.traces.len());
    for (npu, trace) in (0..).zip(job.traces) {
        let of_node = |(node, item): (usize, &kasuri_workload::execution::trace::Node)| {
            study
                .part(npu, node as u32, item.on_host, &mut sums)
                .map_err(|problem| format!("NPU {npu}: node {} (`{}`): {problem}", item.id, item.name))
        };
        parts.push(trace.nodes.iter().enumerate().map(of_node).collect::<Result<Vec<_>, String>>()?);
    }
    let finished = path::longest(job.traces, &parts)?;
    study.add_collectives(&mut sums);
    let busiest = study.links.busiest(&sums.loads).map(|(link, busy_ns)| Busiest { link, busy_ns });
    let mut bound_ns = busiest.map_or(0.0, |busiest| busiest.busy_ns);
    for (npu, path) in sums.npus.iter_mut().zip(finished) {
        let computing = npu.compute_ns.max(npu.host_ns);
        npu.finish_ns = path.max(computing).max(npu.collective_ns + npu.message_ns);
        bound_ns = bound_ns.max(computing);
    }
    let latest = sums.npus.iter().map(|npu| npu.finish_ns).fold(bound_ns, f64::max);
    if let Err(problem) = whole_ns(latest) {
        let npu =
            sums.npus.iter().position(|npu| npu.finish_ns == latest).map_or("the busiest link".to_owned(), |npu| format!("NPU {npu}"));
        return Err(format!("{npu}: its work {problem}"));
    }
    Ok(Answer { npus: sums.npus, collectives: study.occurring(), busiest, bound_ns })
}

/// A collective of given members that was met before.
#[derive(Debug)]
struct Known {
    name: Name,
    time: CollectiveTime,
    loads: Loads,
    /// How many nodes there are of it, of all NPUs.
    nodes: u64,
}

/// What is known while the nodes are looked at.
struct Study<'a> {
    job: Job<'a>,
    links: Links<'a>,
    outline: Outline<'a>,
    known: BTreeMap<Gathering, Known>,
    names: BTreeMap<(u32, u32, u32, u64), Name>,
}

/// What adds up.
struct Sums {
    npus: Vec<NpuTimes>,
    loads: Loads,
}

impl Study<'_> {
    /// What a node means for the longest path.
    fn part(&mut self, npu: u32, node: u32, on_host: bool, sums: &mut Sums) -> Result<Part, String> {
        let own = &mut sums.npus[npu as usize];
        Ok(match self.outline.asks(npu, node)? {
            Asks::Nothing => Part::Alone { ns: 0.0 },
            Asks::Time(ns) => {
                let ns = ns as f64;
                *(if on_host { &mut own.host_ns } else { &mut own.compute_ns }) += ns;
                Part::Alone { ns }
            }
            Asks::Send { to, tag, bytes } => {
                let npus = self.job.cluster.npus();
                if to >= npus {
                    return Err(format!("sends to NPU {to}, but there are {npus}"));
                }
                let path = self.links.path(npu, to, &mut |link| *sums.loads.entry(link).or_default() += bytes as f64);
                let ns = path.latency_ns + bytes as f64 / path.bytes_per_ns;
                own.message_ns += ns;
                Part::Send { ns, name: self.message((tag, npu, to, bytes)) }
            }
            Asks::Receive { from, tag, bytes } => Part::Receive { name: self.message((tag, from, npu, bytes)) },
            Asks::Gathering(gathering) => {
                let members = gathering.members.len() as u32;
                let (name, ns) = self.gathering(npu, node, gathering)?;
                own.collective_ns += ns;
                Part::Meet { ns, name, members }
            }
        })
    }

    /// Even numbers are messages, odd ones collectives.
    fn message(&mut self, key: (u32, u32, u32, u64)) -> Name {
        let next = 2 * self.names.len() as Name;
        *self.names.entry(key).or_insert(next)
    }

    fn gathering(&mut self, npu: u32, node: u32, gathering: Gathering) -> Result<(Name, f64), String> {
        if !self.known.contains_key(&gathering) {
            let form = self.outline.form(npu, node)?;
            let (time, loads) = collective::collective(&form, self.links, self.job.system, self.job.queues)?;
            let name = 2 * self.known.len() as Name + 1;
            self.known.insert(gathering.clone(), Known { name, time, loads, nodes: 0 });
        }
        let known = self.known.get_mut(&gathering).ok_or("is unknown")?;
        known.nodes += 1;
        Ok((known.name, known.time.time_ns))
    }

    /// Adds what collectives put on links.
    fn add_collectives(&self, sums: &mut Sums) {
        for (gathering, known) in &self.known {
            let times = (known.nodes / gathering.members.len().max(1) as u64) as f64;
            for (&link, bytes) in &known.loads {
                let mut add = |npu| *sums.loads.entry(Link { npu, ..link }).or_default() += times * bytes;
                if link.npu == ANY { gathering.members.iter().copied().for_each(&mut add) } else { add(link.npu) }
            }
        }
    }

    /// The kinds of collectives: those of other members with the same times count as one.
    fn occurring(&self) -> Vec<Occurring> {
        let mut all: Vec<Occurring> = Vec::new();
        for (gathering, known) in &self.known {
            let times = known.nodes / gathering.members.len().max(1) as u64;
            let what = |of: &Gathering| (of.operation, of.bytes, of.members.len());
            match all.iter_mut().find(|one| what(&one.gathering) == what(gathering) && one.time == known.time) {
                Some(one) => one.times += times,
                None => all.push(Occurring { gathering: gathering.clone(), times, time: known.time.clone() }),
            }
        }
        all
    }
}
