//! What the NPUs of a cluster do: their traces node by node, collectives chunk by chunk, messages matched with receives.
//!
//! [`Npus`] knows neither time nor network: it asks its [`Outside`] to send messages and to wait, and is told what has arrived and what is
//! due. So ASTRA-sim's rules of time (`kasuri_flow::astra`) and the engines of Kasuri run the same programs.

mod algorithm;
mod graph;
mod issue;
mod job;
mod meetings;
mod messages;
mod outline;
mod phases;
mod streams;
mod traffic;

pub use algorithm::{Sends, Step, Volley};
pub use job::Job;
pub use messages::{Done, Sending};
pub use outline::{Asks, Gathering, Outline, Silence};
pub use phases::{Form, PhaseForm, groups_as_rings, pattern};
pub use streams::GROUP_DELAY;
pub use traffic::{Planned, Volume};

use super::cluster::Pattern;
use super::trace::Trace;
use graph::Graph;
use meetings::Meetings;
use phases::{Plan, Turns};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use streams::{Queue, Stream};

/// Something that an NPU has set itself for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// So many packets of a stream are ready, all that begin a phase.
    Packets {
        /// The stream.
        stream: u32,
        /// How many.
        count: u32,
    },
    /// A packet of a stream is ready, or its reduction begins, which takes so long.
    Packet {
        /// The stream.
        stream: u32,
        /// Nanoseconds of the reduction.
        reduces: Option<u64>,
    },
    /// A node of the trace ends.
    Node(u32),
    /// A collective without messages ends.
    Collective(u32),
    /// A node of a collective that is a trace ends.
    Custom {
        /// The stream of the collective.
        stream: u32,
        /// The node.
        node: u32,
    },
}

/// The time and the network around the NPUs.
pub trait Outside: Debug {
    /// An NPU sets itself something for so many nanoseconds from now: [`Npus::due`] then.
    fn set(&mut self, npu: u32, delay: u64, item: Item);

    /// Sends a message now: [`Npus::arrived`] when it is there.
    ///
    /// # Errors
    /// A sentence that says why that cannot be sent.
    fn send(&mut self, message: Sending) -> Result<(), String>;

    /// Sends a message of an NPU to each of others now, in their order.
    ///
    /// # Errors
    /// As [`Outside::send`].
    fn send_volley(&mut self, volley: &Volley) -> Result<(), String> {
        (0..volley.count()).try_for_each(|number| self.send(volley.message(number)))
    }

    /// Do ASTRA-sim's rules apply: its order of simultaneous events, and its limits? Otherwise events that change no time may be left out,
    /// nodes start as soon as they can, and groups follow the system file.
    fn is_astra_sim(&self) -> bool;

    /// A receive ends at once, because its message was there before: [`Npus::tell`] still at this time.
    fn received(&mut self, npu: u32, done: Done);

    /// All nodes of an NPU have ended.
    fn finished(&mut self, npu: u32);
}

/// Places of an NPU; a receive needs none.
const PLACES: usize = 3;
const HOST: usize = 0;
const COMPUTE: usize = 1;
const COMMUNICATION: usize = 2;

/// A communicator group: what its streams are numbered from, and its NPUs.
#[derive(Clone, Debug)]
struct Group {
    base: u32,
    members: Arc<[u32]>,
}

/// An NPU.
///
/// Many fields, because an NPU has a program, places, streams, queues and what it waits for.
#[derive(Debug)]
struct Npu {
    graph: Graph,
    /// Nodes that may start, by place; the last list is of receives.
    free: [BTreeSet<u32>; PLACES + 1],
    /// Nodes that may start, but became free while others were started.
    freed: Vec<u32>,
    starting: bool,
    running: u32,
    busy: [bool; PLACES],
    is_finished: bool,
    /// Chunks of a collective that are left, by its node.
    chunks_left: BTreeMap<u32, u64>,
    streams_made: u32,
    group_streams: BTreeMap<u32, u32>,
    /// Groups that the trace itself defines.
    own_groups: BTreeMap<u32, Group>,
    queues: Vec<Queue>,
    turns: Turns,
    meetings: Meetings,
}

/// All NPUs of a job, at some moment of its run.
#[derive(Debug)]
pub struct Npus<'a, O> {
    job: Job<'a>,
    npu_count: u32,
    /// Time and network.
    pub outside: O,
    npus: Vec<Npu>,
    streams: Vec<Option<Stream>>,
    free_streams: Vec<u32>,
    plans: BTreeMap<Pattern, Plan>,
    groups: BTreeMap<u32, Group>,
    custom: BTreeMap<&'a str, Vec<(Arc<Trace>, Graph)>>,
    problem: Option<String>,
}

impl<'a, O: Outside> Npus<'a, O> {
    /// The first `own` NPUs of a job (the others do what the first does), before anything happens.
    ///
    /// # Errors
    /// A node waits for one that is not there.
    pub fn new(job: Job<'a>, own: u32, outside: O) -> Result<Self, String> {
        let of_group = |(&number, members): (&u32, &Vec<u32>)| (number, Group { base: number, members: members.as_slice().into() });
        let custom = job.algorithms.iter().map(|(prefix, traces)| {
            let traces = traces.iter().map(|trace| (Arc::new(trace.clone()), Graph::new(trace)));
            (prefix.as_str(), traces.collect())
        });
        let mut npus = Self {
            job,
            npu_count: job.cluster.npus(),
            outside,
            npus: Vec::with_capacity(own as usize),
            streams: Vec::new(),
            free_streams: Vec::new(),
            plans: phases::plans(&job),
            groups: job.groups.iter().map(of_group).collect(),
            custom: custom.collect(),
            problem: None,
        };
        for (number, trace) in job.traces.iter().take(own as usize).enumerate() {
            if let Some(problem) = trace.missing_dependency() {
                return Err(format!("NPU {number}: {problem}"));
            }
            npus.add_npu(trace);
        }
        Ok(npus)
    }

    fn add_npu(&mut self, trace: &Trace) {
        let graph = Graph::new(trace);
        let dimensions = self.job.cluster.dimensions.len();
        let roots = graph.roots();
        self.npus.push(Npu {
            graph,
            free: Default::default(),
            freed: Vec::new(),
            starting: false,
            running: 0,
            busy: [false; PLACES],
            is_finished: false,
            chunks_left: BTreeMap::new(),
            streams_made: 0,
            group_streams: BTreeMap::new(),
            own_groups: BTreeMap::new(),
            queues: vec![Queue::default(); dimensions * self.job.queues as usize],
            turns: Turns::new(dimensions, self.job.queues),
            meetings: Meetings::default(),
        });
        let npu = self.npus.len() as u32 - 1;
        roots.into_iter().for_each(|node| self.set_free(npu, node));
    }

    /// Starts what can start at the beginning.
    pub fn start(&mut self) {
        (0..self.npus.len() as u32).for_each(|npu| self.start_free_nodes(npu));
    }

    /// Something is due that an NPU has set itself.
    pub fn due(&mut self, npu: u32, item: Item) {
        match item {
            Item::Packet { stream, reduces: Some(delay) } => self.outside.set(npu, delay, Item::Packet { stream, reduces: None }),
            Item::Packet { stream, reduces: None } => self.packet_is_ready(stream),
            Item::Packets { stream, count } => self.packets_are_ready(stream, count),
            Item::Node(node) | Item::Collective(node) => self.node_ends(npu, node),
            Item::Custom { stream, node } => self.custom_ends(stream, node),
        }
    }

    /// Why the run cannot go on; what was found first.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    fn refuse(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    fn send(&mut self, message: Sending) {
        if let Err(problem) = self.outside.send(message) {
            self.refuse(problem);
        }
    }

    /// A message that nobody matches but a receive from its sender.
    fn send_to(&mut self, source: u32, destination: u32, tag: u32, bytes: u64, sent: Done) {
        self.send(Sending { source, destination, tag, bytes, sent, exchanged: false, anonymous: None });
    }

    /// What keeps the NPUs from finishing, if some are unfinished and nothing is under way any more: the first of them and its node.
    pub fn unfinished(&self) -> Option<String> {
        let unfinished: Vec<usize> = (0..self.npus.len()).filter(|&npu| !self.npus[npu].is_finished).collect();
        let &first = unfinished.first()?;
        let trace = &self.job.traces[first];
        let reason = trace.describe_cycle().unwrap_or_else(|| format!("never finishes: {}", self.waiting(first)));
        let count = unfinished.len();
        let rest = if count > 1 { format!(" ({count} NPUs in all are unfinished)") } else { String::new() };
        Some(format!("NPU {first} {reason}{rest}"))
    }

    /// What an NPU that is not finished still has to do.
    fn waiting(&self, npu: usize) -> String {
        use super::trace::Kind;
        let (state, trace) = (&self.npus[npu], &self.job.traces[npu]);
        let may_start = |node: usize| state.free.iter().any(|free| free.contains(&(node as u32)));
        let left = (0..trace.nodes.len()).filter(|&node| !state.graph.ended[node]);
        let mut waits_for: Vec<usize> = left.collect();
        waits_for.retain(|&node| trace.nodes[node].waits_for.iter().all(|&on| trace.position(on).is_none_or(|on| state.graph.ended[on])));
        let Some(&node) = waits_for.first() else { return "nothing is left that could start".to_owned() };
        let item = &trace.nodes[node];
        let what = match &item.kind {
            _ if may_start(node) => "could start, but no event comes that lets ASTRA-sim look for it",
            Kind::Receive(_) => "waits for a message that never comes with the same tag, source and size",
            Kind::Send(_) => "is a message that never arrives",
            Kind::Collective(_) => "is a collective that never ends: others do not take part, or its messages do not match",
            _ => "never ends",
        };
        format!("node {} (`{}`) {what}", item.id, item.name)
    }
}
