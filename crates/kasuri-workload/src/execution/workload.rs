//! Execution traces as a closed workload: every engine runs them on its own network.
//!
//! What the NPUs do, and which message follows which, is that of [`npus`](super::npus): the places of an NPU, the chunks and phases of
//! collectives, endpoint delays and reductions. How long messages take says the engine. A message of 0 bytes takes one flit, and one from an
//! NPU to itself no time, where ASTRA-sim stops at both.

use super::alike::mirrored;
use super::cluster::{Cluster, Groups, System};
use super::npus::{Done, Item, Job, Npus, Outside, Sending, Silence, Volley, Volume, groups_as_rings};
use super::trace::Trace;
use crate::units::Units;
use crate::workload::{Action, Event, Execution, Message, Token, Workload};
use kasuri_network::cluster;
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Streams;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// All that a job is made of.
#[derive(Clone, Debug)]
pub struct Traces {
    /// The dimensions of the network, which shape the collectives.
    pub cluster: Cluster,
    /// How collectives become messages.
    pub system: System,
    /// Communicator groups.
    pub groups: Groups,
    /// What each NPU does.
    pub traces: Vec<Trace>,
    /// Collectives that are traces of their own, by the prefix of their files: a trace for each place.
    pub algorithms: BTreeMap<String, Vec<Trace>>,
    /// Queues of a dimension, at least 1.
    pub queues: u32,
    /// What files say besides that is not modelled, in words.
    pub besides: Vec<String>,
}

impl Traces {
    /// The job, for whoever runs it.
    pub fn job(&self) -> Job<'_> {
        let Self { cluster, system, groups, traces, algorithms, queues, .. } = self;
        Job { cluster, system, groups, traces, algorithms, queues: *queues }
    }

    /// Parts of the files that are not modelled: each attribute with the number of its nodes, each ignored key of the system file, and
    /// communicator groups that do not follow the system file (by ASTRA-sim's rules, or by those of Kasuri).
    pub fn unmodelled(&self, is_astra_sim: bool) -> Vec<String> {
        let mut nodes: BTreeMap<&str, u64> = BTreeMap::new();
        for (attribute, count) in self.traces.iter().flat_map(|trace| &trace.unmodelled) {
            *nodes.entry(attribute).or_default() += count;
        }
        let attributes = nodes
            .into_iter()
            .map(|(attribute, count)| format!("the attribute `{attribute}` of {count} node{}", if count == 1 { "" } else { "s" }));
        let keys = self.system.ignored.iter().map(|key| format!("the key `{key}` of the system file"));
        let groups = groups_as_rings(&self.job(), is_astra_sim);
        attributes.chain(keys).chain(groups).chain(self.besides.iter().cloned()).collect()
    }
}

/// Where the NPUs are.
#[derive(Clone, Debug)]
pub enum Places {
    /// Each on a terminal.
    Terminals(Vec<TerminalId>),
    /// Each with a terminal for each link of a cluster.
    Links(cluster::Cluster),
}

impl Places {
    /// The terminals between which a message goes.
    fn between(&self, source: u32, destination: u32) -> (TerminalId, TerminalId) {
        match self {
            Self::Terminals(terminals) => (terminals[source as usize], terminals[destination as usize]),
            Self::Links(cluster) => cluster.terminals(source, destination),
        }
    }
}

/// Execution traces on terminals.
#[derive(Debug)]
pub struct TraceWorkload {
    traces: Traces,
    places: Places,
    flit_bytes: u64,
    cycles_per_ns: f64,
    /// Messages that a terminal is given to send before the first of them has left.
    ahead: u32,
    messages: u64,
    longest: u32,
    /// Where one NPU stands for all: by channel, the one that counts for it.
    folded: Option<Vec<u32>>,
}

impl TraceWorkload {
    /// Bytes and nanoseconds become flits and cycles by `units`.
    ///
    /// # Errors
    /// No units; a job that does not fit; a node that cannot be run, with its NPU and what is wrong with it; nodes that wait for each other in
    /// a cycle; a message of 2^32 flits or more.
    pub fn new(traces: Traces, places: Places, units: Units) -> Result<Self, String> {
        let (Some(flit_bytes), Some(cycle_ns)) = (units.flit_bytes, units.cycle_ns) else {
            return Err("counts bytes and nanoseconds; say with network.flit_bytes and network.cycle_ns (or \
                        channel_gbit_per_second) what a flit and a cycle are"
                .to_owned());
        };
        let job = traces.job();
        job.check()?;
        if let Some((npu, problem)) = (0..).zip(&traces.traces).find_map(|(npu, trace): (u32, _)| Some((npu, trace.describe_cycle()?))) {
            return Err(format!("NPU {npu} {problem}"));
        }
        let mut own = 0;
        let mut count_own = |planned: super::npus::Planned| own += u64::from(planned.source == planned.destination);
        let has_sends = traces.traces.iter().flat_map(|trace| &trace.nodes).any(|node| matches!(node.kind, super::trace::Kind::Send(_)));
        let each: Option<&mut dyn FnMut(super::npus::Planned)> = if has_sends { Some(&mut count_own) } else { None };
        let volume = planning(&traces)?.plan(each)?;
        let flits = volume.longest.div_ceil(u64::from(flit_bytes)).max(1);
        let longest = u32::try_from(flits).map_err(|_| {
            let problem = "a message has 2^32 flits at most; take longer flits";
            format!("has a message of {} bytes, which are {flits} flits; {problem}", volume.longest)
        })?;
        let (flit_bytes, cycles_per_ns) = (u64::from(flit_bytes), 1.0 / cycle_ns);
        Ok(Self { places, flit_bytes, cycles_per_ns, ahead: 1, messages: volume.messages - own, longest, folded: None, traces })
    }

    /// Gives a terminal so many messages to send before the first of them has left, for engines that hear of that later than it happens.
    pub fn ahead(self, messages: u32) -> Self {
        Self { ahead: messages.max(1), ..self }
    }

    /// Folds symmetric NPUs ([`is_symmetric`](super::alike::is_symmetric)) into NPU 0: it alone acts, and the flits that a channel of the
    /// network would carry count on the channel that `channels` gives for it.
    #[must_use]
    pub fn fold_symmetric(self, channels: Vec<u32>) -> Self {
        let messages = self.messages / u64::from(self.npus());
        Self { folded: Some(channels), messages, ..self }
    }

    /// How many NPUs act.
    fn acting(&self) -> u32 {
        if self.folded.is_some() { 1 } else { self.npus() }
    }

    /// How many NPUs there are.
    pub fn npus(&self) -> u32 {
        self.traces.cluster.npus()
    }

    fn flits(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.flit_bytes).clamp(1, u64::from(u32::MAX)) as u32
    }
}

/// How much is sent.
///
/// # Errors
/// A node that cannot be run.
pub fn volume(traces: &Traces) -> Result<Volume, String> {
    planning(traces)?.plan(None)
}

/// The NPUs before anything happens, only to be planned.
fn planning(traces: &Traces) -> Result<Npus<'_, Silence>, String> {
    Npus::new(traces.job(), traces.cluster.npus(), Silence)
}

impl Workload for TraceWorkload {
    fn unmodelled(&self) -> Vec<String> {
        self.traces.unmodelled(false)
    }

    fn messages(&self) -> u64 {
        self.messages
    }

    fn each_message(&self, each: &mut dyn FnMut(&Message)) {
        let mut tell = |planned: super::npus::Planned| {
            if planned.source != planned.destination {
                let (source, destination) = self.places.between(planned.source, planned.destination);
                each(&Message { token: 0, source, destination, flits: self.flits(planned.bytes) });
            }
        };
        // It was planned before, when the workload was made.
        let _ = planning(&self.traces).and_then(|npus| npus.plan(Some(&mut tell)));
    }

    fn longest_message(&self) -> u32 {
        self.longest
    }

    fn folded(&self) -> Option<&[u32]> {
        self.folded.as_deref()
    }

    fn placement(&self) -> Option<&[TerminalId]> {
        match &self.places {
            Places::Terminals(terminals) => Some(terminals),
            Places::Links(_) => None,
        }
    }

    fn begin(&self, _streams: &Streams) -> Box<dyn Execution + '_> {
        let requests = Requests {
            workload: self,
            actions: Vec::new(),
            under_way: Slots::default(),
            waiting: Slots::default(),
            queues: Vec::new(),
            due_now: Vec::new(),
        };
        let npus = Npus::new(self.traces.job(), self.acting(), requests);
        Box::new(Pass { npus })
    }
}

/// Things that are named by where they stand.
#[derive(Debug)]
struct Slots<T> {
    list: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { list: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Slots<T> {
    fn put(&mut self, item: T) -> Token {
        if let Some(place) = self.free.pop() {
            self.list[place as usize] = item;
            return Token::from(place);
        }
        self.list.push(item);
        self.list.len() as Token - 1
    }

    fn take(&mut self, token: Token) -> T {
        self.free.push(token as u32);
        self.list[token as usize]
    }
}

/// What the NPUs ask for: actions of the engine.
#[derive(Debug)]
struct Requests<'a> {
    workload: &'a TraceWorkload,
    actions: Vec<Action>,
    under_way: Slots<Sending>,
    waiting: Slots<(u32, Item)>,
    /// By terminal, as far as some has sent.
    queues: Vec<Queue>,
    /// What happens at once, when the NPUs have done what they do now.
    due_now: Vec<Now>,
}

/// What a terminal has to send, first come, first served: an all-to-all of thousands is a few words for each of them.
#[derive(Debug, Default)]
struct Queue {
    /// Messages that it has been given and that have not left.
    given: u32,
    waiting: VecDeque<Piece>,
}

/// Messages that follow each other in a queue.
#[derive(Clone, Debug)]
enum Piece {
    One(Sending),
    /// Some of a volley.
    Some {
        volley: Arc<Volley>,
        next: u32,
        end: u32,
    },
}

impl Requests<'_> {
    fn queue(&mut self, terminal: TerminalId) -> &mut Queue {
        let place = terminal.index();
        if place >= self.queues.len() {
            self.queues.resize_with(place + 1, Queue::default);
        }
        &mut self.queues[place]
    }

    /// Gives a terminal what it may be given.
    fn give(&mut self, terminal: TerminalId) {
        let ahead = self.workload.ahead;
        loop {
            let queue = self.queue(terminal);
            if queue.given >= ahead {
                return;
            }
            let message = match queue.waiting.front_mut() {
                None => return,
                Some(Piece::Some { volley, next, end }) if *next + 1 < *end => {
                    *next += 1;
                    volley.message(*next - 1)
                }
                Some(Piece::Some { volley, next, .. }) => {
                    let message = volley.message(*next);
                    queue.waiting.pop_front();
                    message
                }
                Some(Piece::One(message)) => {
                    let message = *message;
                    queue.waiting.pop_front();
                    message
                }
            };
            queue.given += 1;
            self.enqueue(message);
        }
    }

    fn enqueue(&mut self, message: Sending) {
        let flits = self.workload.flits(message.bytes);
        let (source, destination) = self.workload.places.between(message.source, message.destination);
        let token = self.under_way.put(message);
        self.actions.push(Action::Send(Message { token, source, destination, flits }));
    }

    /// A message has left its terminal.
    fn leaves(&mut self, token: Token) {
        let Sending { source, destination, .. } = self.under_way.list[token as usize];
        let (terminal, _) = self.workload.places.between(source, destination);
        self.queue(terminal).given -= 1;
        self.give(terminal);
    }
}

/// Something that happens at once.
#[derive(Clone, Copy, Debug)]
enum Now {
    Received(u32, Done),
    ToItself(Sending),
}

impl Outside for Requests<'_> {
    fn set(&mut self, npu: u32, delay: u64, item: Item) {
        let token = self.waiting.put((npu, item));
        self.actions.push(Action::Compute { token, cycles: delay as f64 * self.workload.cycles_per_ns });
    }

    fn send(&mut self, message: Sending) -> Result<(), String> {
        let Sending { source, destination, .. } = message;
        if destination >= self.workload.npus() {
            return Err(format!("NPU {source} sends to NPU {destination}, but there are {}", self.workload.npus()));
        }
        if source == destination {
            self.due_now.push(Now::ToItself(message));
            return Ok(());
        }
        let (terminal, _) = self.workload.places.between(source, destination);
        self.queue(terminal).waiting.push_back(Piece::One(message));
        self.give(terminal);
        Ok(())
    }

    fn send_volley(&mut self, volley: &Volley) -> Result<(), String> {
        let volley = Arc::new(volley.clone());
        let terminal_of = |number: u32| {
            let Sending { source, destination, .. } = volley.message(number);
            self.workload.places.between(source, destination).0
        };
        let mut pieces: Vec<(TerminalId, u32, u32)> = Vec::new();
        for number in 0..volley.count() {
            let terminal = terminal_of(number);
            match pieces.last_mut().filter(|piece| piece.0 == terminal) {
                Some(piece) => piece.2 = number + 1,
                None => pieces.push((terminal, number, number + 1)),
            }
        }
        for (terminal, next, end) in pieces {
            self.queue(terminal).waiting.push_back(Piece::Some { volley: Arc::clone(&volley), next, end });
            self.give(terminal);
        }
        Ok(())
    }

    fn is_astra_sim(&self) -> bool {
        false
    }

    fn received(&mut self, npu: u32, done: Done) {
        self.due_now.push(Now::Received(npu, done));
    }

    fn finished(&mut self, npu: u32) {
        self.actions.push(Action::Finished(npu));
    }
}

/// A message has arrived: at its destination or, where one NPU stands for all, at that one from another.
fn arrive(npus: &mut Npus<'_, Requests<'_>>, message: &Sending) {
    let workload = npus.outside.workload;
    match &workload.folded {
        None => npus.arrived(message.destination, message),
        Some(_) => npus.arrived(0, &mirrored(message, &workload.traces.cluster)),
    }
}

/// One pass through the traces.
#[derive(Debug)]
struct Pass<'a> {
    npus: Result<Npus<'a, Requests<'a>>, String>,
}

impl<'a> Pass<'a> {
    /// Lets the NPUs do something, and hands on what they ask for.
    fn act(&mut self, actions: &mut Vec<Action>, what: impl FnOnce(&mut Npus<'a, Requests<'a>>)) {
        let Ok(npus) = &mut self.npus else { return };
        what(npus);
        let mut next = 0;
        while let Some(&now) = npus.outside.due_now.get(next) {
            next += 1;
            match now {
                Now::Received(npu, done) => npus.tell(npu, done),
                Now::ToItself(message) => arrive(npus, &message),
            }
        }
        npus.outside.due_now.clear();
        actions.append(&mut npus.outside.actions);
    }
}

impl Execution for Pass<'_> {
    fn computes_at(&self, computation: Token) -> Option<TerminalId> {
        let outside = &self.npus.as_ref().ok()?.outside;
        let &(npu, item) = outside.waiting.list.get(computation as usize)?;
        match (&outside.workload.places, item) {
            (Places::Terminals(terminals), Item::Node(_)) => terminals.get(npu as usize).copied(),
            _ => None,
        }
    }

    fn start(&mut self, actions: &mut Vec<Action>) {
        self.act(actions, Npus::start);
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            // A send keeps its place among the NPU's until the message has arrived; its terminal goes on.
            Event::Sent(token) => self.act(actions, |npus| npus.outside.leaves(token)),
            Event::Arrived(token) => self.act(actions, |npus| {
                let message = npus.outside.under_way.take(token);
                arrive(npus, &message);
            }),
            Event::Computed(token) => self.act(actions, |npus| {
                let (npu, item) = npus.outside.waiting.take(token);
                npus.due(npu, item);
            }),
        }
    }

    fn standstill(&self) -> Option<String> {
        match &self.npus {
            Ok(npus) => npus.problem().map(str::to_owned).or_else(|| npus.unfinished()),
            Err(problem) => Some(problem.clone()),
        }
    }
}
