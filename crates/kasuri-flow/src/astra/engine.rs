//! The state of a run, and its loop.

use super::Input;
use super::algorithm::Members;
use super::calendar::{Calendar, Event};
use super::graph::Graph;
use super::messages::{Done, Key, Meeting, Message};
use super::phases::{Plan, Turns};
use super::streams::{Queue, Stream};
use super::wires::Wires;
use kasuri_workload::execution::cluster::Pattern;
use kasuri_workload::execution::trace::Trace;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// Something that an NPU has set itself for a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// A packet of a stream is ready, or its reduction begins, which takes so long.
    Packet { stream: u32, reduces: Option<u64> },
    /// A node of the trace ends.
    Node(u32),
    /// A collective without messages ends.
    Collective(u32),
    /// A node of a collective that is a trace ends.
    Custom { stream: u32, node: u32 },
}

/// All that an NPU has set itself for one time.
#[derive(Debug)]
struct Batch {
    time: u64,
    items: Vec<Item>,
}

/// Places of an NPU; a receive needs none.
pub(super) const PLACES: usize = 3;
pub(super) const HOST: usize = 0;
pub(super) const COMPUTE: usize = 1;
pub(super) const COMMUNICATION: usize = 2;

/// A communicator group: what its streams are numbered from, and its NPUs.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) base: u32,
    pub(super) members: Rc<[u32]>,
}

/// An NPU.
///
/// Many fields, because an NPU has a program, places, streams, queues and what it waits for.
#[derive(Debug)]
pub(super) struct Npu {
    pub(super) graph: Graph,
    /// Nodes that may start, by place; the last list is of receives.
    pub(super) free: [BTreeSet<u32>; PLACES + 1],
    /// Nodes that may start, but became free while others were started.
    pub(super) freed: Vec<u32>,
    pub(super) starting: bool,
    pub(super) running: u32,
    pub(super) busy: [bool; PLACES],
    pub(super) finished: Option<u64>,
    /// Chunks of a collective that are left, by its node.
    pub(super) chunks_left: BTreeMap<u32, u64>,
    pub(super) streams_made: u32,
    pub(super) group_streams: BTreeMap<u32, u32>,
    /// Groups that the trace itself defines.
    pub(super) own_groups: BTreeMap<u32, Group>,
    pub(super) queues: Vec<Queue>,
    pub(super) turns: Turns,
    pub(super) meetings: BTreeMap<Key, Meeting>,
    batches: VecDeque<Batch>,
}

/// A run.
///
/// Many fields, because they are the whole state of a run.
#[derive(Debug)]
pub(super) struct Engine<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) npu_count: u32,
    /// NPU 0 stands for all.
    pub(super) alike: bool,
    pub(super) calendar: Calendar,
    pub(super) wires: Wires,
    pub(super) npus: Vec<Npu>,
    pub(super) messages: Vec<Message>,
    pub(super) free_messages: Vec<u32>,
    /// Receives that end in this nanosecond.
    pub(super) late: Vec<(u32, Done)>,
    pub(super) streams: Vec<Option<Stream>>,
    pub(super) free_streams: Vec<u32>,
    pub(super) plans: BTreeMap<Pattern, Plan>,
    pub(super) groups: BTreeMap<u32, Group>,
    pub(super) custom: BTreeMap<&'a str, Vec<(Rc<Trace>, Graph)>>,
    spare: Vec<Vec<Item>>,
    problem: Option<String>,
}

impl<'a> Engine<'a> {
    pub(super) fn new(input: &'a Input<'a>, alike: bool) -> Result<Self, String> {
        let npu_count = input.cluster.npus();
        let wires = Wires::new(input.cluster, input.backend, alike)?;
        let of_group = |(&number, members): (&u32, &Vec<u32>)| (number, Group { base: number, members: members.as_slice().into() });
        let custom = input.algorithms.iter().map(|(prefix, traces)| {
            let traces = traces.iter().map(|trace| (Rc::new(trace.clone()), Graph::new(trace)));
            (prefix.as_str(), traces.collect())
        });
        let own = if alike { 1 } else { npu_count as usize };
        let mut engine = Self {
            input,
            npu_count,
            alike,
            calendar: Calendar::new(),
            wires,
            npus: Vec::with_capacity(own),
            messages: Vec::new(),
            free_messages: Vec::new(),
            late: Vec::new(),
            streams: Vec::new(),
            free_streams: Vec::new(),
            plans: super::phases::plans(input),
            groups: input.groups.iter().map(of_group).collect(),
            custom: custom.collect(),
            spare: Vec::new(),
            problem: None,
        };
        for (number, trace) in input.traces.iter().take(own).enumerate() {
            if let Some(problem) = trace.missing_dependency() {
                return Err(format!("NPU {number}: {problem}"));
            }
            engine.add_npu(trace);
        }
        Ok(engine)
    }

    fn add_npu(&mut self, trace: &Trace) {
        let graph = Graph::new(trace);
        let dimensions = self.input.cluster.dimensions.len();
        let roots = graph.roots();
        self.npus.push(Npu {
            graph,
            free: Default::default(),
            freed: Vec::new(),
            starting: false,
            running: 0,
            busy: [false; PLACES],
            finished: None,
            chunks_left: BTreeMap::new(),
            streams_made: 0,
            group_streams: BTreeMap::new(),
            own_groups: BTreeMap::new(),
            queues: vec![Queue::default(); dimensions * self.input.queues as usize],
            turns: Turns::new(dimensions, self.input.queues),
            meetings: BTreeMap::new(),
            batches: VecDeque::new(),
        });
        let npu = self.npus.len() as u32 - 1;
        roots.into_iter().for_each(|node| self.set_free(npu, node));
    }

    /// Runs to the end: when each NPU has finished.
    pub(super) fn run(mut self) -> Result<Vec<u64>, String> {
        for npu in 0..self.npus.len() as u32 {
            self.start_free_nodes(npu);
        }
        while self.problem.is_none() {
            let Some(event) = self.calendar.next() else { break };
            match event {
                Event::Batch(npu) => self.do_batch(npu),
                Event::Arrival(message) => self.arrive(message),
                Event::Free(link) => self.free(link),
                Event::Received(place) => {
                    let (npu, done) = self.late[place as usize];
                    if place as usize + 1 == self.late.len() {
                        self.late.clear();
                    }
                    self.tell(npu, done);
                }
            }
        }
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        self.finished()
    }

    /// Enters an event. ASTRA-sim cannot have one at the very beginning.
    pub(super) fn enter(&mut self, time: u64, event: Event) {
        if time == 0 {
            let problem =
                "something ends at 0 ns, at which ASTRA-sim stops by an assertion; it needs an endpoint-delay, a duration or a latency";
            self.refuse(problem.to_owned());
        }
        self.calendar.enter(time, event);
    }

    /// The run cannot go on; what is found first counts.
    pub(super) fn refuse(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    /// An NPU sets itself something for a time from now. What is set for the same time is done together, when the first was entered.
    pub(super) fn set(&mut self, npu: u32, delay: u64, item: Item) {
        let time = self.calendar.now().saturating_add(delay);
        let batches = &mut self.npus[npu as usize].batches;
        let place = if batches.back().is_none_or(|last| last.time < time) {
            batches.len()
        } else {
            batches.partition_point(|batch| batch.time < time)
        };
        if let Some(batch) = batches.get_mut(place).filter(|batch| batch.time == time) {
            batch.items.push(item);
            return;
        }
        let mut items = self.spare.pop().unwrap_or_default();
        items.push(item);
        batches.insert(place, Batch { time, items });
        self.enter(time, Event::Batch(npu));
    }

    /// Does what an NPU has set itself for now, and what it adds to that meanwhile.
    fn do_batch(&mut self, npu: u32) {
        let mut next = 0;
        while let Some(&item) = self.npus[npu as usize].batches.front().and_then(|batch| batch.items.get(next)) {
            next += 1;
            match item {
                Item::Packet { stream, reduces: Some(delay) } => self.set(npu, delay, Item::Packet { stream, reduces: None }),
                Item::Packet { stream, reduces: None } => self.packet_is_ready(stream),
                Item::Node(node) => self.node_ends(npu, node),
                Item::Collective(node) => self.node_ends(npu, node),
                Item::Custom { stream, node } => self.custom_ends(stream, node),
            }
        }
        if let Some(mut batch) = self.npus[npu as usize].batches.pop_front() {
            batch.items.clear();
            self.spare.push(batch.items);
        }
    }

    /// The members of the default group in one dimension of a plan.
    pub(super) fn members(base: u32, stride: u32) -> Members {
        Members::Strided { base, stride }
    }

    fn finished(&self) -> Result<Vec<u64>, String> {
        let unfinished: Vec<usize> = (0..self.npus.len()).filter(|&npu| self.npus[npu].finished.is_none()).collect();
        let Some(&first) = unfinished.first() else {
            return Ok(self.npus.iter().filter_map(|npu| npu.finished).collect());
        };
        let trace = &self.input.traces[first];
        let reason = match trace.circle() {
            Some(circle) => {
                let shown: Vec<String> = circle.iter().take(8).map(u64::to_string).collect();
                format!("its nodes {} wait for each other in a cycle", shown.join(", "))
            }
            None => self.waiting(first),
        };
        let count = unfinished.len();
        let rest = if count > 1 { format!(" ({count} NPUs in all are unfinished)") } else { String::new() };
        Err(format!("NPU {first} never finishes, about which ASTRA-sim says nothing: {reason}{rest}"))
    }

    /// What an NPU that is not finished still has to do.
    fn waiting(&self, npu: usize) -> String {
        use kasuri_workload::execution::trace::Kind;
        let (state, trace) = (&self.npus[npu], &self.input.traces[npu]);
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
