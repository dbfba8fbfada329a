//! Source queues of open traffic for event-driven engines: the next message of a terminal, and its time. The draws are those of the flit
//! engine, so all engines send the same messages.

use crate::scenario::{Joint, Scenario, TrafficClass};
use kasuri_network::id::TerminalId;
use kasuri_network::memory::{fetch_ahead, large_vec};
use kasuri_network::rng::{Purpose, Stream};
use kasuri_workload::traffic::process::Process;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Never.
const NEVER: u64 = u64::MAX;

/// A message at the head of a queue.
#[derive(Clone, Copy, Debug)]
pub struct SourceMessage {
    /// Sources create in whole cycles; a closed workload at any event.
    pub created: f64,
    /// The cycle that decides whether it is measured: `created`, or for an answer that of its request.
    pub asked: u64,
    /// Where it goes to.
    pub destination: TerminalId,
    /// Its length.
    pub flits: u32,
    /// Its class.
    pub class: u8,
    /// Is it an answer?
    pub is_reply: bool,
}

impl SourceMessage {
    /// A message that is not an answer.
    fn new(created: u64, (destination, flits): (TerminalId, u32), class: u8) -> Self {
        Self { created: created as f64, asked: created, destination, flits, class, is_reply: false }
    }
}

/// The creations of one class at one terminal.
#[derive(Clone, Debug)]
struct Creations {
    next: u64,
    index: u32,
    /// Of the first class: messages that the terminal has begun.
    begun: u32,
    destinations: Stream,
}

impl Creations {
    /// The creations of an entry of `[classes, terminals]`, beginning in cycle `next`.
    fn new(scenario: &Scenario, entry: u32, next: u64) -> Self {
        Self { next, index: 0, begun: 0, destinations: scenario.streams.get(Purpose::Destination, entry) }
    }

    /// Draws the next message, if there is one: its destination and its length. Also returns the creation of the one after it.
    #[inline(always)]
    fn draw(
        &mut self,
        class: &TrafficClass,
        process: &dyn Process,
        terminal: TerminalId,
        gaps: &mut Stream,
    ) -> (Option<(TerminalId, u32)>, u64) {
        let destination = class.pattern.destination(terminal, &mut self.destinations);
        let flits = class.sizes.draw(&mut self.destinations);
        self.index += 1;
        let following = destination.and_then(|_| process.next(u64::from(self.index), Some(self.next), gaps));
        (destination.map(|destination| (destination, flits)), following.unwrap_or(NEVER))
    }
}

/// A message that has been drawn before its terminal's turn.
#[derive(Clone, Copy, Debug)]
pub struct ForecastMessage {
    /// Its destination and length; `None` if the terminal sends nothing.
    pub message: Option<(TerminalId, u32)>,
    /// The creation of the terminal's next message; the greatest number without one.
    pub following: u64,
}

/// State-independent draws of the batches of all terminals, for callers that look ahead of [`Sources`].
#[derive(Debug)]
pub struct Forecast {
    creations: Vec<Creations>,
    /// Batches draw no gaps.
    gaps: Stream,
}

impl Forecast {
    /// True if messages can be drawn ahead: batches of a single class without answers and windows.
    pub fn is_possible(scenario: &Scenario) -> bool {
        let [class] = &*scenario.classes else { return false };
        let is_alone = class.joint.is_none() && class.reply.is_none() && class.window.outstanding.is_none();
        is_alone && scenario.workload.is_none() && scenario.has_only_batches()
    }

    /// The messages of a scenario that can be drawn ahead.
    pub fn new(scenario: &Scenario) -> Self {
        let mut gaps = scenario.streams.get(Purpose::Creation, 0);
        let creations = (0..scenario.network.terminal_count()).map(|terminal| {
            let first = scenario.classes[0].process_at(TerminalId(terminal)).next(0, None, &mut gaps);
            Creations::new(scenario, terminal, first.unwrap_or(NEVER))
        });
        Self { creations: creations.collect(), gaps }
    }

    /// The next message of a terminal with messages left, and its running number.
    pub fn draw(&mut self, scenario: &Scenario, terminal: TerminalId) -> (u32, ForecastMessage) {
        let (creations, class) = (&mut self.creations[terminal.index()], &scenario.classes[0]);
        let serial = creations.index;
        let (message, following) = creations.draw(class, class.process_at(terminal), terminal, &mut self.gaps);
        creations.next = following;
        (serial, ForecastMessage { message, following })
    }
}

/// The first creation from cycle `from` on, with a newly drawn phase.
fn next_in_phase(process: &dyn Process, from: u64, stream: &mut Stream) -> u64 {
    process.next(0, None, stream).map_or(NEVER, |phase| from.saturating_add(phase))
}

/// The window of one class at one terminal.
#[derive(Clone, Debug)]
struct Window {
    /// Unused places.
    unused: u32,
    /// The times at which the others become free.
    free: BinaryHeap<Reverse<u64>>,
    /// The creation of the next message if it did not wait for a place, while it waits.
    wanted: Option<u64>,
}

impl Window {
    /// Drops the waiting message.
    fn give_up(&mut self) {
        self.wanted = None;
    }

    /// Takes a place for a message that the process creates in cycle `wanted`. Returns its creation, [`NEVER`] until a place becomes free.
    fn enter(&mut self, wanted: u64) -> u64 {
        if wanted == NEVER {
            return NEVER;
        }
        if self.unused > 0 {
            self.unused -= 1;
            return wanted;
        }
        match self.free.pop() {
            Some(Reverse(free)) => wanted.max(free),
            None => {
                self.wanted = Some(wanted);
                NEVER
            }
        }
    }

    /// Frees a place from cycle `at` on. Returns the creation of the message that waited for it, if there is one.
    fn release_slot(&mut self, at: u64) -> Option<u64> {
        match self.wanted.take() {
            Some(wanted) => Some(wanted.max(at)),
            None => {
                self.free.push(Reverse(at));
                None
            }
        }
    }
}

/// The queues of all terminals. They are virtual: a message is drawn when it comes to the head.
#[derive(Debug)]
pub struct Sources {
    terminals: usize,
    /// Shape `[classes, terminals]`.
    creations: Vec<Creations>,
    /// The gaps between creations, shape `[classes, terminals]`; one unused stream if all classes are batches.
    gaps: Vec<Stream>,
    /// Answers, each with its earliest cycle of sending.
    replies: Vec<VecDeque<(u64, SourceMessage)>>,
    /// Shape `[classes, terminals]`; empty if there are none.
    windows: Vec<Window>,
    /// The groups of classes with a common batch, if any.
    joint: Vec<Joint>,
    /// The class to serve next; empty if there is one only.
    next_class: Vec<u8>,
    /// Messages that each terminal has begun, for workloads without creations.
    begun: Vec<u32>,
    /// True once nothing new is created.
    pub closed: bool,
    /// The cycle from which on the last drawn phases hold.
    phases_from: u64,
}

impl Sources {
    /// The sources of a scenario's open traffic.
    pub fn new(scenario: &Scenario) -> Self {
        let terminals = scenario.network.terminal_count();
        let joint = if scenario.has_only_batches() { scenario.joint() } else { Vec::new() };
        let is_kept_elsewhere = |class: usize| Joint::leader_of(&joint, class as u32) != class as u32;
        let mut creations = large_vec(scenario.classes.len() * terminals as usize);
        let mut all_gaps = Vec::new();
        let mut windows = Vec::new();
        let has_windows = scenario.classes.iter().any(|class| class.window.outstanding.is_some());
        for (class, traffic) in scenario.classes.iter().enumerate() {
            for terminal in 0..terminals {
                let entry = class as u32 * terminals + terminal;
                let mut gaps = scenario.streams.get(Purpose::Creation, entry);
                let mut first = || traffic.process_at(TerminalId(terminal)).next(0, None, &mut gaps);
                let mut next = if is_kept_elsewhere(class) { NEVER } else { first().unwrap_or(NEVER) };
                if has_windows {
                    let unused = traffic.window.outstanding.unwrap_or(u32::MAX);
                    let mut window = Window { unused, free: BinaryHeap::new(), wanted: None };
                    next = window.enter(next);
                    windows.push(window);
                }
                creations.push(Creations::new(scenario, entry, next));
                if !scenario.has_only_batches() || entry == 0 {
                    all_gaps.push(gaps);
                }
            }
        }
        let replies = scenario.classes.iter().any(|class| class.reply.is_some());
        Self {
            terminals: terminals as usize,
            creations,
            gaps: all_gaps,
            replies: vec![VecDeque::new(); if replies { terminals as usize } else { 0 }],
            windows,
            joint,
            next_class: vec![0; if scenario.classes.len() > 1 { terminals as usize } else { 0 }],
            begun: vec![0; if scenario.classes.is_empty() { terminals as usize } else { 0 }],
            closed: false,
            phases_from: 0,
        }
    }

    /// Draws new phases for sources that have one; they apply to creations from cycle `now` on. Waiting messages keep their creation.
    pub fn redraw_phases(&mut self, scenario: &Scenario, now: u64) {
        self.phases_from = now;
        for (entry, creations) in self.creations.iter_mut().enumerate() {
            let process = scenario.classes[entry / self.terminals].process_at(TerminalId((entry % self.terminals) as u32));
            if process.has_phase() && creations.next >= now && creations.next != NEVER {
                let gaps = if self.gaps.len() == 1 { &mut self.gaps[0] } else { &mut self.gaps[entry] };
                creations.next = next_in_phase(process, now, gaps);
            }
        }
    }

    /// Takes the message at the head of a terminal's queue at time `now`, if one has been created.
    pub fn draw(&mut self, scenario: &Scenario, terminal: TerminalId, now: f64) -> Option<SourceMessage> {
        self.draw_answer(terminal, now).or_else(|| self.draw_new(scenario, terminal, now))
    }

    /// Takes the answer that a terminal may send next at time `now`, if there is one.
    #[inline(always)]
    pub fn draw_answer(&mut self, terminal: TerminalId, now: f64) -> Option<SourceMessage> {
        let queue = self.replies.get_mut(terminal.index())?;
        if queue.front().is_some_and(|&(from, _)| from as f64 <= now) { queue.pop_front().map(|(_, reply)| reply) } else { None }
    }

    /// Takes the next message that is not an answer, if one has been created.
    #[inline(always)]
    pub fn draw_new(&mut self, scenario: &Scenario, terminal: TerminalId, now: f64) -> Option<SourceMessage> {
        let classes = if self.closed { 0 } else { scenario.classes.len() };
        let first = self.next_class.get(terminal.index()).map_or(0, |&class| usize::from(class));
        (0..classes).find_map(|turn| self.draw_of_class(scenario, terminal, (first + turn) % classes, now))
    }

    /// Counts a message that a terminal begins. Returns its running number.
    pub fn number(&mut self, terminal: TerminalId) -> u32 {
        let begun = match self.creations.get_mut(terminal.index()) {
            Some(creations) => &mut creations.begun,
            None => &mut self.begun[terminal.index()],
        };
        *begun += 1;
        *begun - 1
    }

    /// Prefetches the data of a terminal's next message.
    pub fn fetch(&self, terminal: u32) {
        fetch_ahead(&self.creations, terminal as usize);
    }

    fn draw_of_class(&mut self, scenario: &Scenario, terminal: TerminalId, class: usize, now: f64) -> Option<SourceMessage> {
        let entry = class * self.terminals + terminal.index();
        let creations = &mut self.creations[entry];
        let gaps = if self.gaps.len() == 1 { &mut self.gaps[0] } else { &mut self.gaps[entry] };
        let created = creations.next;
        if created == NEVER || created as f64 > now {
            return None;
        }
        let joint = Joint::of_leader(&self.joint, class as u32);
        let class = joint.map_or(class, |joint| joint.draw(&mut creations.destinations) as usize);
        let traffic = &scenario.classes[class];
        let process = joint.map_or_else(|| traffic.process_at(terminal), |joint| &*joint.process);
        let (message, mut following) = creations.draw(traffic, process, terminal, gaps);
        if created < self.phases_from && following >= self.phases_from && following != NEVER && process.has_phase() {
            following = next_in_phase(process, self.phases_from, gaps);
        }
        creations.next = self.windows.get_mut(entry).map_or(following, |window| window.enter(following));
        if let Some(turn) = self.next_class.get_mut(terminal.index()) {
            *turn = ((class + 1) % scenario.classes.len()) as u8;
        }
        message.map(|message| SourceMessage::new(created, message, class as u8))
    }

    /// The running number of a terminal's next message of a batch, if it would be drawn at time `now`.
    pub fn due(&self, terminal: TerminalId, now: f64) -> Option<u32> {
        let Creations { next, index, .. } = self.creations[terminal.index()];
        (!self.closed && next != NEVER && next as f64 <= now).then_some(index)
    }

    /// Takes the message at the head of a terminal's queue, which is due and has been drawn ahead.
    pub fn take(&mut self, terminal: TerminalId, foreseen: &ForecastMessage) -> Option<SourceMessage> {
        let creations = &mut self.creations[terminal.index()];
        creations.index += 1;
        let created = std::mem::replace(&mut creations.next, foreseen.following);
        foreseen.message.map(|message| SourceMessage::new(created, message, 0))
    }

    /// The creation of a terminal's next message, if there is one.
    pub fn next(&self, terminal: TerminalId) -> Option<f64> {
        let reply = self.replies.get(terminal.index()).and_then(|queue| queue.front()).map(|&(from, _)| from);
        let classes = if self.closed { 0 } else { self.creations.len() / self.terminals };
        let creations = (0..classes).map(|class| self.creations[class * self.terminals + terminal.index()].next);
        creations.chain(reply).min().filter(|&next| next != NEVER).map(|next| next as f64)
    }

    /// True if a terminal will create no more messages, answers excepted.
    pub fn is_exhausted(&self, terminal: TerminalId) -> bool {
        let mut of_terminal = self.creations.iter().skip(terminal.index()).step_by(self.terminals);
        let mut windows = self.windows.iter().skip(terminal.index()).step_by(self.terminals);
        of_terminal.all(|creations| creations.next == NEVER) && windows.all(|window| window.wanted.is_none())
    }

    /// True if a class has a window.
    pub fn has_windows(&self) -> bool {
        !self.windows.is_empty()
    }

    /// A message of a class from `terminal` is complete: its place in the window, if there is one, is free from cycle `at` on.
    pub fn release_slot(&mut self, class: u8, terminal: TerminalId, at: u64) {
        let entry = self.entry_of(class, terminal);
        if let Some(created) = self.windows.get_mut(entry).and_then(|window| window.release_slot(at)) {
            self.creations[entry].next = created;
        }
    }

    /// The creations of a class at a terminal; classes with a common batch share those of the first.
    fn entry_of(&self, class: u8, terminal: TerminalId) -> usize {
        let class = u32::from(class);
        Joint::leader_of(&self.joint, class) as usize * self.terminals + terminal.index()
    }

    /// A terminal begins to send an answer in cycle `now`. Returns whether it counts in the terminal's batch and exceeds it.
    pub fn begin_answer(&mut self, scenario: &Scenario, answer: &SourceMessage, terminal: TerminalId, now: u64) -> bool {
        let class = &scenario.classes[usize::from(answer.class)];
        if !class.window.counts_answers {
            return false;
        }
        let entry = self.entry_of(answer.class, terminal);
        let creations = &mut self.creations[entry];
        let gaps = if self.gaps.len() == 1 { &mut self.gaps[0] } else { &mut self.gaps[entry] };
        let mut has_another = |index: u32| class.process_at(terminal).next(u64::from(index), Some(now), gaps).is_some();
        let is_beyond = !has_another(creations.index) || class.pattern.is_silent(terminal);
        creations.index += 1;
        if !has_another(creations.index) {
            creations.next = NEVER;
            self.windows.get_mut(entry).into_iter().for_each(Window::give_up);
        }
        is_beyond
    }

    /// Queues the answer to a message of a class that arrives at `terminal` in cycle `now`; `asked` decides whether both are measured.
    pub fn reply(&mut self, scenario: &Scenario, terminal: TerminalId, to: TerminalId, class: u8, now: u64, asked: u64) {
        let Some(reply) = &scenario.classes[usize::from(class)].reply else { return };
        let flits = reply.sizes.draw(&mut self.creations[usize::from(class) * self.terminals + terminal.index()].destinations);
        let answer = SourceMessage { created: now as f64, asked, destination: to, flits, class, is_reply: true };
        self.replies[terminal.index()].push_back((now + u64::from(reply.delay), answer));
    }

    /// Messages created before `cycle` and not drawn yet, one for each queue of a class, and answers to them.
    pub fn waiting(&self, from: u64, cycle: u64) -> u64 {
        let drawable = |creations: &&Creations| (from..cycle).contains(&creations.next);
        let new = if self.closed { 0 } else { self.creations.iter().filter(drawable).count() };
        let replies = self.replies.iter().flatten().filter(|(_, reply)| (from..cycle).contains(&reply.asked)).count();
        (new + replies) as u64
    }

    /// True if the next message of a class at a terminal is created before this cycle.
    pub fn has_next_before(&self, terminal: TerminalId, class: u8, cycle: u64) -> bool {
        self.creations[self.entry_of(class, terminal)].next < cycle
    }

    /// Sum over all queues of the age of their next creation at `now`, cycles.
    pub fn backlog_cycles(&self, now: u64) -> u64 {
        self.creations.iter().map(|creations| now.saturating_sub(creations.next)).sum()
    }

    /// True if an answer waits to be sent.
    pub fn has_replies(&self) -> bool {
        self.replies.iter().any(|queue| !queue.is_empty())
    }
}
