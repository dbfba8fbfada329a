//! The program of an NPU: which node starts when, and what that means.

use super::super::cluster::Pattern;
use super::super::trace::{Collective, Kind, Message, Node, Operation, Trace, whole_ns};
use super::algorithm::{Algorithm, Custom};
use super::graph::Graph;
use super::meetings::TAGS;
use super::messages::Done;
use super::phases::{NOBODY, Phase, Scope, pattern};
use super::streams::Stream;
use super::{COMMUNICATION, COMPUTE, Group, HOST, Item, Npus, Outside, PLACES};
use std::sync::Arc;

/// What a collective is made of on one NPU.
pub(super) enum Course {
    /// Nothing; it takes its time.
    Silent,
    /// Nothing, in no time: the NPU is the only member.
    Alone,
    /// A trace of its own.
    Trace { trace: Arc<Trace>, graph: Graph, group: Option<Group> },
    /// So many chunks of so many bytes, each in phases.
    Phases { scope: Scope, chunks: u64, chunk: u64, group: Option<Group> },
}

/// What a node of a trace asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task<'a> {
    /// Nothing, in no time.
    Nothing,
    /// Communicator groups of its NPU.
    Defines(&'a [(u32, Box<[u32]>)]),
    /// So many nanoseconds.
    Takes(u64),
    /// A message to another NPU.
    Sends { to: u32, tag: u32, bytes: u64 },
    /// A message from another NPU.
    Receives { from: u32, tag: u32, bytes: u64 },
    /// A collective.
    Gathers(&'a Collective),
}

/// Streams of a group are numbered from its number times this.
const STREAMS_OF_A_GROUP: i32 = 1_000_000;

/// The place that a node takes; a receive takes none.
fn place(node: &Node) -> usize {
    match node.kind {
        _ if node.on_host => HOST,
        Kind::Compute { .. } => COMPUTE,
        Kind::Receive(_) => PLACES,
        _ => COMMUNICATION,
    }
}

impl<'a, O: Outside> Npus<'a, O> {
    fn node(&self, npu: u32, node: u32) -> &Node {
        &self.job.traces[npu as usize].nodes[node as usize]
    }

    /// A node waits for nothing any more.
    pub(super) fn set_free(&mut self, npu: u32, node: u32) {
        let place = place(self.node(npu, node));
        let state = &mut self.npus[npu as usize];
        if state.starting {
            state.freed.push(node);
        } else {
            state.free[place].insert(node);
        }
    }

    /// Starts all nodes that can start, in ascending order of ids, then those that these free. In ASTRA-sim the latter wait for the next
    /// event.
    pub(super) fn start_free_nodes(&mut self, npu: u32) {
        while self.start_ready_nodes(npu) && !self.outside.is_astra_sim() {}
        let state = &mut self.npus[npu as usize];
        if !state.starting && state.graph.is_done() && !std::mem::replace(&mut state.is_finished, true) {
            self.outside.finished(npu);
        }
    }

    /// Starts the nodes that can start now. Have others become free meanwhile?
    fn start_ready_nodes(&mut self, npu: u32) -> bool {
        self.npus[npu as usize].starting = true;
        loop {
            let state = &mut self.npus[npu as usize];
            let open = |&place: &usize| place == PLACES || !state.busy[place];
            let next = (0..=PLACES).filter(open).filter_map(|place| Some((*state.free[place].first()?, place))).min();
            let Some((node, place)) = next else { break };
            state.free[place].remove(&node);
            state.running += 1;
            if place < PLACES {
                state.busy[place] = true;
            }
            if let Err(problem) = self.start_node(npu, node) {
                let item = self.node(npu, node);
                let text = format!("NPU {npu}: node {} (`{}`): {problem}", item.id, item.name);
                self.refuse(text);
                return false;
            }
        }
        let state = &mut self.npus[npu as usize];
        state.starting = false;
        let freed = std::mem::take(&mut state.freed);
        let has_freed = !freed.is_empty();
        freed.into_iter().for_each(|node| self.set_free(npu, node));
        has_freed
    }

    /// A node has ended; others may start.
    pub(super) fn node_ends(&mut self, npu: u32, node: u32) {
        self.release(npu, node);
        self.start_free_nodes(npu);
    }

    fn release(&mut self, npu: u32, node: u32) {
        let place = place(self.node(npu, node));
        let state = &mut self.npus[npu as usize];
        if place < PLACES {
            state.busy[place] = false;
        }
        state.running -= 1;
        let freed = state.graph.end(node);
        freed.into_iter().for_each(|node| self.set_free(npu, node));
    }

    fn start_node(&mut self, npu: u32, node: u32) -> Result<(), String> {
        match self.task(npu, node)? {
            Task::Nothing => self.release(npu, node),
            Task::Defines(groups) => {
                self.define_groups(npu, groups);
                self.release(npu, node);
            }
            Task::Takes(time) => self.outside.set(npu, time, Item::Node(node)),
            Task::Sends { to, tag, bytes } => self.send_to(npu, to, tag, bytes, Done::Node(node)),
            Task::Receives { from, tag, bytes } => self.receive(npu, from, tag, bytes, Done::Node(node), None),
            Task::Gathers(collective) => self.start_collective(npu, node, collective)?,
        }
        Ok(())
    }

    /// What a node asks for.
    pub(super) fn task(&self, npu: u32, node: u32) -> Result<Task<'a>, String> {
        let job = self.job;
        let item = &job.traces[npu as usize].nodes[node as usize];
        if job.system.replay_only {
            return Ok(Task::Takes(recorded(item)));
        }
        Ok(match &item.kind {
            Kind::Invalid => Task::Nothing,
            Kind::Metadata { groups } => Task::Defines(groups),
            Kind::Memory { .. } => {
                return Err("is a memory node; without memory expansion ASTRA-sim stops at it, and no other memory is modelled".to_owned());
            }
            Kind::Compute { .. } if !job.system.roofline || item.on_host => Task::Takes(recorded(item)),
            Kind::Compute { operations, bytes } => self.roofline(*operations, *bytes)?.map_or(Task::Nothing, Task::Takes),
            _ if item.on_host && self.outside.is_astra_sim() => {
                return Err("is a communication on the host (is_cpu_op), at which ASTRA-sim stops".to_owned());
            }
            Kind::Send(message) => send(npu, message, self.outside.is_astra_sim())?,
            Kind::Receive(message) => receive(npu, message, self.outside.is_astra_sim())?,
            Kind::Collective(collective) => Task::Gathers(collective),
        })
    }

    /// The time of a computation by the roofline; `None` for one that takes none.
    fn roofline(&self, operations: Option<u64>, bytes: Option<u64>) -> Result<Option<u64>, String> {
        let missing = |what: &str| format!("has no {what}, which the roofline needs");
        let operations = operations.ok_or_else(|| missing("num_ops"))? as f64;
        let bytes = bytes.ok_or_else(|| missing("tensor_size"))? as f64;
        if bytes == 0.0 {
            return Ok(None);
        }
        let memory = self.job.system.memory_gb_s.unwrap_or(0.0) * 1e9;
        if operations == 0.0 && self.outside.is_astra_sim() {
            return Err("has num_ops 0, of which ASTRA-sim's roofline makes no time (0 divided by 0)".to_owned());
        }
        if operations == 0.0 {
            return whole_ns(bytes / memory * 1e9).map(Some);
        }
        let peak = self.job.system.peak_tflops.unwrap_or(0.0) * 1e12;
        let rate = (memory * (operations / bytes)).min(peak);
        whole_ns(operations / rate * 1e9).map(Some)
    }

    pub(super) fn define_groups(&mut self, npu: u32, groups: &[(u32, Box<[u32]>)]) {
        for (number, members) in groups {
            let members: Arc<[u32]> = if members.is_empty() { (0..self.npu_count).collect() } else { members.as_ref().into() };
            self.npus[npu as usize].own_groups.insert(*number, Group { base: number.wrapping_add(1), members });
        }
    }

    fn start_collective(&mut self, npu: u32, node: u32, collective: &Collective) -> Result<(), String> {
        match self.course(npu, node, collective)? {
            Course::Silent => {
                self.outside.set(npu, recorded(self.node(npu, node)), Item::Collective(node));
                Ok(())
            }
            Course::Trace { trace, graph, group } => {
                self.start_trace(npu, node, group, trace, graph);
                Ok(())
            }
            Course::Alone => {
                self.release(npu, node);
                Ok(())
            }
            Course::Phases { scope, chunks, chunk, group } => {
                self.npus[npu as usize].chunks_left.insert(node, chunks);
                for _ in 0..chunks {
                    let phases = self.phases(npu, &scope, chunk)?;
                    let tag = self.stream_tag(npu, group.as_ref());
                    self.add_stream(Stream { npu, tag, node, phases: phases.into(), now: None });
                }
                Ok(())
            }
        }
    }

    /// The phases of the next chunk of a collective.
    pub(super) fn phases(&mut self, npu: u32, scope: &Scope, chunk: u64) -> Result<Vec<Phase>, String> {
        scope.phases(&mut self.npus[npu as usize].turns, self.job.system.optimization, chunk)
    }

    /// What a collective is made of on one NPU.
    pub(super) fn course(&self, npu: u32, node: u32, collective: &Collective) -> Result<Course, String> {
        let operation = collective.operation.ok_or("has no comm_type")?;
        let bytes = collective.bytes.ok_or("has no comm_size")?;
        let group = self.group(npu, collective.group)?;
        let pattern = match (operation, pattern(operation)) {
            (_, Some(pattern)) => pattern,
            (Operation::Broadcast, None) => return Ok(Course::Silent),
            (other, None) => return Err(format!("is a collective of the kind {}, at which ASTRA-sim stops", other.name())),
        };
        let own = self.job.traces[npu as usize].nodes[node as usize].id;
        let custom = self.job.system.custom_nodes.get(&own).or_else(|| self.job.system.custom.get(&pattern));
        if let Some(prefix) = custom {
            return self.course_of_trace(npu, group, prefix);
        }
        let plan = self.plans.get(&pattern).ok_or_else(|| format!("needs {}-implementation in the system file", pattern.name()))?;
        let scope = match &group {
            Some(group) if group.members.len() < self.npu_count as usize => {
                Scope::of_group(plan, pattern, npu, group.members.clone(), self.outside.is_astra_sim())?
            }
            Some(_) => Scope::of_all(plan, pattern, npu, None)?,
            None => Scope::of_all(plan, pattern, npu, collective.dimensions.as_deref())?,
        };
        if scope.is_empty() {
            return if self.outside.is_astra_sim() { Err(NOBODY.to_owned()) } else { Ok(Course::Alone) };
        }
        let (chunks, chunk) = self.chunks(pattern, bytes)?;
        Ok(Course::Phases { scope, chunks, chunk, group })
    }

    fn group(&self, npu: u32, number: u32) -> Result<Option<Group>, String> {
        if number == 0 {
            return Ok(None);
        }
        let found = self.npus[npu as usize].own_groups.get(&number).or_else(|| self.groups.get(&number));
        found.cloned().map(Some).ok_or_else(|| format!("names the communicator group {number}, which is not defined (--groups)"))
    }

    /// Into how many chunks a collective is cut, and their bytes.
    fn chunks(&self, pattern: Pattern, bytes: u64) -> Result<(u64, u64), String> {
        let splits = self.job.system.splits.ok_or("needs preferred-dataset-splits in the system file")?;
        let npus = u64::from(self.npu_count);
        let (mut bytes, mut chunk) = (bytes, bytes / splits);
        if pattern != Pattern::AllGather && npus > chunk {
            chunk = npus;
            bytes = splits * npus;
        }
        if chunk == 0 && !self.outside.is_astra_sim() {
            (bytes, chunk) = (bytes.max(1), 1);
        }
        if chunk == 0 {
            return Err(format!(
                "is an all-gather of {bytes} bytes in {splits} chunks (preferred-dataset-splits); ASTRA-sim never ends it"
            ));
        }
        Ok((bytes.div_ceil(chunk), chunk))
    }

    /// The number under which the messages of the next stream are known.
    fn stream_tag(&mut self, npu: u32, group: Option<&Group>) -> u32 {
        let state = &mut self.npus[npu as usize];
        let (counter, base) = match group {
            None => (&mut state.streams_made, 0),
            Some(group) => (state.group_streams.entry(group.base).or_default(), group.base as i32),
        };
        let number = base.wrapping_mul(STREAMS_OF_A_GROUP).wrapping_add(*counter as i32);
        *counter += 1;
        (number % TAGS as i32 + TAGS as i32) as u32
    }

    fn course_of_trace(&self, npu: u32, group: Option<Group>, prefix: &str) -> Result<Course, String> {
        // ASTRA-sim counts places in the sorted list, but ranks of the trace in the list as it is.
        let position = match &group {
            None => npu as usize,
            Some(group) if !group.members.contains(&npu) => return Err("is a collective of a group in which its NPU is not".to_owned()),
            Some(group) => group.members.iter().filter(|&&member| member < npu).count(),
        };
        let (trace, graph) = match self.custom.get(prefix).and_then(|traces| traces.get(position)) {
            Some((trace, graph)) => (trace.clone(), graph.clone()),
            None => return Err(format!("has no trace `{prefix}.{position}.et` for its collective")),
        };
        if let Some(problem) = trace.missing_dependency() {
            return Err(format!("`{prefix}.{position}.et`: {problem}"));
        }
        Ok(Course::Trace { trace, graph, group })
    }

    fn start_trace(&mut self, npu: u32, node: u32, group: Option<Group>, trace: Arc<Trace>, graph: Graph) {
        let tag = self.stream_tag(npu, group.as_ref());
        let custom = Custom { trace, graph, running: 0, group: group.map(|group| group.members) };
        let phase = Phase { queue: 0, algorithm: Algorithm::Custom(Box::new(custom)), exchanged: false };
        self.npus[npu as usize].chunks_left.insert(node, 1);
        self.add_stream(Stream { npu, tag, node, phases: [phase].into(), now: None });
    }

    /// A chunk of a collective has ended.
    pub(super) fn chunk_ends(&mut self, npu: u32, node: u32) {
        let left = &mut self.npus[npu as usize].chunks_left;
        if let Some(count) = left.get_mut(&node) {
            *count -= 1;
            if *count == 0 {
                left.remove(&node);
                self.node_ends(npu, node);
            }
        }
    }
}

/// The time of a node where it was recorded, in nanoseconds.
pub(super) fn recorded(node: &Node) -> u64 {
    node.duration_ns.max(1)
}

/// The tag of a message, 0 without one. ASTRA-sim requires one.
fn tag(message: &Message, is_astra_sim: bool) -> Result<u32, String> {
    match message.tag {
        None if is_astra_sim => Err("has no comm_tag, on which ASTRA-sim insists".to_owned()),
        tag => Ok(tag.unwrap_or(0)),
    }
}

fn send<'a>(npu: u32, message: &Message, is_astra_sim: bool) -> Result<Task<'a>, String> {
    if message.source.is_some_and(|source| source != npu) {
        return Err("is sent by another NPU (comm_src); a send stands in the trace of its sender".to_owned());
    }
    let to = message.destination.ok_or("has no comm_dst")?;
    let bytes = message.bytes.ok_or("has no comm_size")?;
    let tag = tag(message, is_astra_sim)?;
    Ok(Task::Sends { to, tag: tag % TAGS, bytes })
}

fn receive<'a>(npu: u32, message: &Message, is_astra_sim: bool) -> Result<Task<'a>, String> {
    if message.destination.is_some_and(|destination| destination != npu) {
        return Err("is received by another NPU (comm_dst); a receive stands in the trace of its receiver".to_owned());
    }
    let from = message.source.ok_or("has no comm_src")?;
    let bytes = message.bytes.filter(|&bytes| bytes > 0).ok_or("has no comm_size, or one of 0 bytes")?;
    let tag = tag(message, is_astra_sim)?;
    Ok(Task::Receives { from, tag: tag % TAGS, bytes })
}
