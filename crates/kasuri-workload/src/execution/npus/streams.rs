//! Streams: the chunks of a collective on one NPU, on their way from phase to phase through the queues of the dimensions.

use super::super::trace::{Kind, Message};
use super::algorithm::{Algorithm, Exchange, TreeState};
use super::meetings::TAGS;
use super::messages::{Done, Sending};
use super::phases::Phase;
use super::{Item, Npus, Outside};
use std::collections::VecDeque;

/// What a rank of a communicator group waits in place of the endpoint's delay, in nanoseconds.
pub const GROUP_DELAY: u64 = 10;

/// A chunk of a collective.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) npu: u32,
    /// By which its messages are known.
    pub(super) tag: u32,
    /// The node of the trace.
    pub(super) node: u32,
    /// What is still to come.
    pub(super) phases: VecDeque<Phase>,
    pub(super) now: Option<Phase>,
}

/// The streams of a queue: those that run stand first.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    list: VecDeque<u32>,
    running: usize,
}

impl<O: Outside> Npus<'_, O> {
    /// A new stream begins its first phase, or waits for it.
    pub(super) fn add_stream(&mut self, stream: Stream) {
        let place = match self.free_streams.pop() {
            Some(place) => {
                self.streams[place as usize] = Some(stream);
                place
            }
            None => {
                self.streams.push(Some(stream));
                self.streams.len() as u32 - 1
            }
        };
        self.proceed(place);
    }

    /// The phase of a stream has ended, or it has none yet: on to the next.
    fn proceed(&mut self, place: u32) {
        let Some(stream) = self.streams[place as usize].as_mut() else { return };
        let (npu, node) = (stream.npu, stream.node);
        let before = stream.now.take().map(|phase| phase.queue);
        let next = stream.phases.pop_front();
        if next.is_none() {
            self.chunk_ends(npu, node);
        }
        if let Some(queue) = before {
            self.npus[npu as usize].queues[queue].list.retain(|&other| other != place);
        }
        let Some(phase) = next else {
            self.streams[place as usize] = None;
            self.free_streams.push(place);
            before.into_iter().for_each(|queue| self.leave(npu, queue));
            return;
        };
        let queue = phase.queue;
        if let Some(stream) = self.streams[place as usize].as_mut() {
            stream.now = Some(phase);
        }
        self.npus[npu as usize].queues[queue].list.push_back(place);
        before.into_iter().for_each(|queue| self.leave(npu, queue));
        self.start_waiting(npu, queue);
    }

    fn leave(&mut self, npu: u32, queue: usize) {
        self.npus[npu as usize].queues[queue].running -= 1;
        self.start_waiting(npu, queue);
    }

    /// Starts the streams of a queue that wait, as many as may run.
    fn start_waiting(&mut self, npu: u32, queue: usize) {
        let most = self.job.system.active_chunks.div_ceil(self.job.queues) as usize;
        loop {
            let state = &mut self.npus[npu as usize].queues[queue];
            if state.running >= most {
                return;
            }
            let Some(&stream) = state.list.get(state.running) else { return };
            state.running += 1;
            self.begin(stream);
        }
    }

    fn algorithm(&mut self, stream: u32) -> Option<&mut Algorithm> {
        Some(&mut self.streams[stream as usize].as_mut()?.now.as_mut()?.algorithm)
    }

    /// A stream begins its phase.
    fn begin(&mut self, stream: u32) {
        match self.algorithm(stream) {
            Some(Algorithm::Tree(_)) => self.tree_step(stream, false),
            Some(Algorithm::Custom(custom)) => {
                let roots = custom.graph.roots();
                self.start_custom(stream, &roots);
            }
            Some(algorithm) => {
                let count = algorithm.at_once();
                self.insert_first(stream, count);
            }
            None => {}
        }
    }

    /// Inserts the packets that begin a phase: none of them is charged with a reduction.
    fn insert_first(&mut self, stream: u32, count: u32) {
        let Some(state) = self.streams[stream as usize].as_mut() else { return };
        let Some(algorithm) = state.now.as_mut().map(|phase| &mut phase.algorithm) else { return };
        let mut grouped = false;
        for _ in 0..count {
            let packet = algorithm.insert();
            debug_assert_eq!(packet.reduces, None);
            grouped = packet.grouped;
        }
        let (npu, delay) = (state.npu, if grouped { GROUP_DELAY } else { self.job.system.endpoint_delay_ns });
        self.outside.set(npu, delay, Item::Packets { stream, count });
    }

    fn insert(&mut self, stream: u32) {
        let Some(packet) = self.algorithm(stream).map(Algorithm::insert) else { return };
        self.set_packet(stream, packet.grouped, packet.reduces);
    }

    /// A packet becomes ready after its delay, and the time of its reduction.
    fn set_packet(&mut self, stream: u32, grouped: bool, reduces: Option<u64>) {
        let Some(npu) = self.streams[stream as usize].as_ref().map(|stream| stream.npu) else { return };
        let reduces = reduces.map(|bytes| self.reduction(stream, bytes));
        let delay = if grouped { GROUP_DELAY } else { self.job.system.endpoint_delay_ns };
        self.outside.set(npu, delay, Item::Packet { stream, reduces });
    }

    fn reduction(&mut self, stream: u32, bytes: u64) -> u64 {
        self.job.system.reduction_ns(bytes).unwrap_or_else(|problem| {
            let of_node = self.streams[stream as usize].as_ref().map(|stream| {
                let node = &self.job.traces[stream.npu as usize].nodes[stream.node as usize];
                format!("NPU {}: node {} (`{}`): a reduction of {bytes} bytes: ", stream.npu, node.id, node.name)
            });
            self.refuse(of_node.unwrap_or_default() + &problem);
            0
        })
    }

    /// The packets that begin a phase are ready.
    pub(super) fn packets_are_ready(&mut self, stream: u32, count: u32) {
        if self.send_volley(stream, count) {
            return;
        }
        // The phase goes on to the next as soon as the last of its messages has come, which may be now.
        for _ in 0..count {
            self.packet_is_ready(stream);
        }
    }

    /// Sends all messages with which a direct collective begins at once, if it is one.
    fn send_volley(&mut self, stream: u32, count: u32) -> bool {
        let Some(state) = self.streams[stream as usize].as_mut() else { return false };
        let (npu, tag, left) = (state.npu, state.tag, state.phases.len() as u32);
        let Some(Algorithm::Ring(ring)) = state.now.as_mut().map(|phase| &mut phase.algorithm) else { return false };
        let Some(volley) = ring.volley(npu, (tag, left), count) else { return false };
        let bytes = volley.bytes();
        if let Err(problem) = self.outside.send_volley(&volley) {
            self.refuse(problem);
        }
        for number in 0..count {
            self.receive(npu, volley.sender(number), tag, bytes, Done::Stream(stream), Some(left));
        }
        true
    }

    /// A packet is ready: what can be sent is sent.
    pub(super) fn packet_is_ready(&mut self, stream: u32) {
        let Some(algorithm) = self.algorithm(stream) else { return };
        if matches!(algorithm, Algorithm::Tree(_)) {
            self.tree_step(stream, false);
            return;
        }
        let Some(tries) = algorithm.tries() else { return };
        for _ in 0..tries {
            if !self.exchange(stream) {
                break;
            }
        }
        if self.algorithm(stream).is_some_and(|algorithm| algorithm.is_done()) {
            self.proceed(stream);
        }
    }

    fn exchange(&mut self, stream: u32) -> bool {
        let Some(state) = self.streams[stream as usize].as_mut() else { return false };
        let Some(phase) = state.now.as_mut() else { return false };
        let Some(exchange) = phase.algorithm.exchange() else { return false };
        let (npu, tag, exchanged, left) = (state.npu, state.tag, phase.exchanged, state.phases.len() as u32);
        let Exchange { to, from, bytes, anonymous } = exchange;
        let anonymous = anonymous.then_some(left);
        self.send(Sending { source: npu, destination: to, tag, bytes, sent: Done::Silent, exchanged, anonymous });
        self.receive(npu, from, tag, bytes, Done::Stream(stream), anonymous);
        true
    }

    /// A message of a stream has come.
    pub(super) fn stream_receives(&mut self, stream: u32) {
        let Some(algorithm) = self.algorithm(stream) else { return };
        if matches!(algorithm, Algorithm::Tree(_)) {
            self.tree_step(stream, true);
            return;
        }
        algorithm.receive();
        if !self.outside.is_astra_sim() && self.algorithm(stream).is_some_and(Algorithm::counts) {
            return;
        }
        self.insert(stream);
    }

    /// A node of a tree goes on: because a message has come, or because a packet is ready.
    fn tree_step(&mut self, stream: u32, received: bool) {
        let Some(state) = self.streams[stream as usize].as_mut() else { return };
        let (npu, tag) = (state.npu, state.tag);
        let Some(Algorithm::Tree(tree)) = state.now.as_mut().map(|phase| &mut phase.algorithm) else { return };
        let (bytes, parent, inner) = (tree.bytes, tree.parent, tree.parent.is_some() && !tree.children.is_empty());
        let reduces = Some(bytes);
        let (next, packet): (TreeState, Option<Option<u64>>) = match (tree.state, parent) {
            (TreeState::Begin, Some(_)) if !inner => (TreeState::ToParent, Some(None)),
            (TreeState::Begin, _) => (TreeState::Children(tree.children.len() as u8), None),
            (TreeState::Children(count), _) if received || !inner => {
                let next = if parent.is_none() { TreeState::ToChildren } else { TreeState::ToParent };
                (if count > 1 { TreeState::Children(count - 1) } else { next }, Some(reduces))
            }
            (_, _) if inner && !received && !tree.reduced => {
                tree.reduced = true;
                return;
            }
            (TreeState::ToParent, _) => (TreeState::FromParent, None),
            (TreeState::FromParent, _) if !inner => (TreeState::End, Some(None)),
            (TreeState::FromParent, _) if received => (TreeState::ToChildren, Some(reduces)),
            (TreeState::ToChildren | TreeState::End, _) => (TreeState::End, None),
            _ => return,
        };
        let before = std::mem::replace(&mut tree.state, next);
        let children = tree.children.clone();
        if let Some(reduces) = packet {
            self.set_packet(stream, false, reduces);
            return;
        }
        match (before, parent) {
            (TreeState::Begin, _) => children.iter().for_each(|&child| self.receive(npu, child, tag, bytes, Done::Stream(stream), None)),
            (TreeState::ToParent, Some(parent)) => {
                self.send_to(npu, parent, tag, bytes, Done::Silent);
                self.receive(npu, parent, tag, bytes, Done::Stream(stream), None);
            }
            _ => {
                if before == TreeState::ToChildren {
                    children.iter().for_each(|&child| self.send_to(npu, child, tag, bytes, Done::Silent));
                }
                self.proceed(stream);
            }
        }
    }

    /// Starts nodes of a collective that is a trace.
    fn start_custom(&mut self, stream: u32, nodes: &[u32]) {
        for &node in nodes {
            let Some(npu) = self.streams[stream as usize].as_ref().map(|stream| stream.npu) else { return };
            let Some(Algorithm::Custom(custom)) = self.algorithm(stream) else { return };
            custom.running += 1;
            let (trace, group) = (custom.trace.clone(), custom.group.clone());
            let item = &trace.nodes[node as usize];
            let real = |rank: Option<u32>| match (&group, rank) {
                (None, rank) => rank,
                (Some(group), rank) => group.get(rank? as usize).copied(),
            };
            let done = Done::Custom(stream, node);
            match item.kind {
                Kind::Send(Message { destination, bytes: Some(bytes), tag: Some(tag), .. }) if real(destination).is_some() => {
                    self.send_to(npu, real(destination).unwrap_or(0), tag % TAGS, bytes, done);
                }
                Kind::Receive(Message { source, bytes: Some(bytes), tag: Some(tag), .. }) if real(source).is_some() => {
                    self.receive(npu, real(source).unwrap_or(0), tag % TAGS, bytes, done, None);
                }
                Kind::Send(_) | Kind::Receive(_) => {
                    let problem = "of a collective's trace needs comm_src or comm_dst (a rank of it), comm_size and comm_tag";
                    self.refuse(format!("NPU {npu}: node {} (`{}`) {problem}", item.id, item.name));
                }
                Kind::Compute { .. } => self.outside.set(npu, item.duration_ns.max(1), Item::Custom { stream, node }),
                _ => {}
            }
        }
    }

    /// A node of a collective that is a trace has ended.
    pub(super) fn custom_ends(&mut self, stream: u32, node: u32) {
        let Some(Algorithm::Custom(custom)) = self.algorithm(stream) else { return };
        custom.running -= 1;
        let freed = custom.graph.end(node);
        self.start_custom(stream, &freed);
        let ended = matches!(self.algorithm(stream), Some(Algorithm::Custom(custom)) if custom.running == 0);
        if ended {
            self.proceed(stream);
        }
    }
}
