//! A running workload: what terminals have still to send, and what happens when. Each engine drives one by its own clock.

use super::notes::Notes;
use super::{Action, Event, Execution, Message, Token, Workload};
use crate::endpoint::RunningInterfaces;
use crate::timeline::Span;
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Streams;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// An event that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Due {
    time: f64,
    event: Event,
}

impl Eq for Due {}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.time.total_cmp(&other.time).then(self.event.cmp(&other.event))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What has happened and what is due, of a whole workload or at some of the terminals.
#[derive(Debug, Default)]
pub struct Events {
    due: BinaryHeap<Reverse<Due>>,
    /// Events of the present moment; are they not in their order?
    happened: Vec<Event>,
    is_unordered: bool,
    /// The end of the last computation.
    pub last_done: f64,
}

impl Events {
    /// Notes an event; they mostly come in order.
    #[inline]
    pub fn happen(&mut self, event: Event) {
        self.is_unordered |= self.happened.last().is_some_and(|&last| last > event);
        self.happened.push(event);
    }

    /// An event will happen at a time.
    pub fn will_happen(&mut self, time: f64, event: Event) {
        self.due.push(Reverse(Due { time, event }));
    }

    /// When the next event is due; infinity if none is.
    pub fn next_due(&self) -> f64 {
        self.due.peek().map_or(f64::INFINITY, |Reverse(due)| due.time)
    }

    /// Is nothing due by now, and has the execution heard of everything?
    #[inline]
    pub fn is_quiet(&self, now: f64) -> bool {
        self.happened.is_empty() && self.due.peek().is_none_or(|Reverse(due)| due.time > now)
    }

    /// Events that are due, or of which the execution has not heard.
    pub fn count(&self) -> usize {
        self.due.len() + self.happened.len()
    }

    /// What is due by now happens.
    pub fn ripen(&mut self, now: f64) {
        while let Some(&Reverse(due)) = self.due.peek()
            && due.time <= now
        {
            self.due.pop();
            self.happen(due.event);
            if matches!(due.event, Event::Computed(_)) {
                self.last_done = self.last_done.max(due.time);
            }
        }
    }

    /// Tells an execution what has happened, in the events' order. False if nothing has.
    pub fn tell(&mut self, execution: &mut dyn Execution, actions: &mut Vec<Action>) -> bool {
        if std::mem::take(&mut self.is_unordered) {
            self.happened.sort_unstable();
        }
        self.happened.iter().for_each(|&event| execution.happened(event, actions));
        let any = !self.happened.is_empty();
        self.happened.clear();
        any
    }
}

/// A running workload: the queues of all terminals, first come, first served.
#[derive(Debug)]
pub struct Agenda<'a> {
    workload: &'a dyn Workload,
    execution: Box<dyn Execution + 'a>,
    hears_arrivals: bool,
    /// By terminal, as far as some terminal has had to wait.
    queues: Vec<VecDeque<(Message, f64)>>,
    /// Messages in all queues.
    queued: u64,
    events: Events,
    actions: Vec<Action>,
    /// Messages that are to be sent from now on, in no queue yet.
    ready: Vec<Message>,
    /// What messages go through on their way to the queues and from their arrival to the execution, if anything.
    interfaces: Option<Box<dyn RunningInterfaces>>,
    /// What is noted of messages and computations, if that is asked for.
    notes: Option<Notes>,
    /// When ranks have finished, as far as the execution says so.
    finished: Vec<(u32, f64)>,
}

impl<'a> Agenda<'a> {
    /// Begins a workload at time 0. All its messages go through the interfaces, if there are any.
    pub fn begin(workload: &'a dyn Workload, streams: &Streams, interfaces: Option<Box<dyn RunningInterfaces>>) -> Self {
        Self::of(workload, workload.begin(streams), interfaces)
    }

    /// Begins a part of a workload alone at time 0, without interfaces; `None` of a workload that is all one.
    pub fn begin_part(workload: &'a dyn Workload, part: usize, streams: &Streams) -> Option<Self> {
        Some(Self::of(workload, workload.begin_part(part, streams)?, None))
    }

    fn of(workload: &'a dyn Workload, execution: Box<dyn Execution + 'a>, interfaces: Option<Box<dyn RunningInterfaces>>) -> Self {
        let mut agenda = Self {
            hears_arrivals: execution.hears_arrivals() || interfaces.is_some(),
            workload,
            execution,
            queues: Vec::new(),
            queued: 0,
            events: Events::default(),
            actions: Vec::new(),
            ready: Vec::new(),
            interfaces,
            notes: None,
            finished: Vec::new(),
        };
        agenda.execution.start(&mut agenda.actions);
        agenda.act(0.0);
        agenda
    }

    /// Notes when each message joins its queue, leaves and arrives, and when terminals compute, in a network whose cycles last so many
    /// nanoseconds. For a workload without interfaces, which note themselves; asked for before anything happens.
    pub fn note(&mut self, cycle_ns: f64) {
        if self.interfaces.is_some() {
            return;
        }
        let mut notes = Notes::new(cycle_ns);
        self.ready.iter().for_each(|message| notes.joins(message, 0.0));
        for Reverse(due) in &self.events.due {
            if let Event::Computed(token) = due.event
                && let Some(terminal) = self.execution.computes_at(token)
            {
                notes.computes(terminal, 0.0, due.time);
            }
        }
        self.notes = Some(notes);
    }

    /// When the next event is due, if any is.
    pub fn next_due(&self) -> f64 {
        let due = self.events.next_due();
        self.interfaces.as_ref().map_or(due, |interfaces| due.min(interfaces.next_due()))
    }

    /// The last flit of a message has left its source.
    pub fn sent(&mut self, token: Token) {
        // Interfaces say themselves when a program may use a buffer again.
        if self.interfaces.is_none() {
            self.events.happen(Event::Sent(token));
        }
    }

    /// Does a message that leaves bring about at most the next one of its source? Then [`Self::follow`] may be asked for that in place of
    /// [`Self::sent`].
    pub fn follows(&self) -> bool {
        self.interfaces.is_none() && self.notes.is_none() && self.execution.follows()
    }

    /// The message that follows one that has left, at once.
    pub fn follow(&mut self, sent: Token) -> Option<Message> {
        self.execution.follow(sent)
    }

    /// The last flit of a message arrives at this time, now or later.
    pub fn arrives(&mut self, token: Token, time: f64, now: f64) {
        if let Some(notes) = &mut self.notes {
            notes.arrives(token, time);
        }
        if !self.hears_arrivals {
            return;
        }
        if let Some(interfaces) = &mut self.interfaces {
            interfaces.arrives(token, time);
        } else if !self.execution.hears_arrival_of(token) {
            // Nobody waits for it, and so the run does not either.
        } else if time > now {
            self.events.will_happen(time, Event::Arrived(token));
        } else {
            self.events.happen(Event::Arrived(token));
        }
    }

    /// Lets everything happen that is due by now, and what follows at once from it. What is to be sent is in
    /// [`Self::take_ready`] then.
    pub fn proceed(&mut self, now: f64) {
        loop {
            self.events.ripen(now);
            if let Some(interfaces) = &mut self.interfaces
                && let Some(seen) = interfaces.proceed(now, &mut self.ready, &mut self.events.happened)
            {
                self.events.last_done = self.events.last_done.max(seen);
                self.events.is_unordered = true;
            }
            if let Some(notes) = &mut self.notes {
                for event in &self.events.happened {
                    if let Event::Sent(token) = *event {
                        notes.left(token, now);
                    }
                }
            }
            if !self.events.tell(&mut *self.execution, &mut self.actions) {
                return;
            }
            self.act(now);
        }
    }

    fn act(&mut self, now: f64) {
        for action in self.actions.drain(..) {
            match action {
                Action::Send(message) => match &mut self.interfaces {
                    None => {
                        if let Some(notes) = &mut self.notes {
                            notes.joins(&message, now);
                        }
                        self.ready.push(message);
                    }
                    Some(interfaces) => interfaces.post(message, self.workload.part_of(message.token), now),
                },
                Action::Finished(rank) => self.finished.push((rank, now)),
                Action::Compute { token, cycles } => {
                    if let Some(notes) = &mut self.notes
                        && let Some(terminal) = self.execution.computes_at(token)
                    {
                        notes.computes(terminal, now, cycles.max(0.0));
                    }
                    self.events.will_happen(now + cycles.max(0.0), Event::Computed(token));
                }
            }
        }
    }

    /// The messages that [`Self::take_ready`] would take.
    pub fn ready(&self) -> &[Message] {
        &self.ready
    }

    /// Takes the messages that the last [`Self::proceed`] has brought. Each goes to [`Self::queue`], or on its way if its source
    /// sends nothing and has nothing queued. [`Self::put_ready`] gives the list's memory back.
    pub fn take_ready(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.ready)
    }

    /// Gives the memory of the list back.
    pub fn put_ready(&mut self, mut list: Vec<Message>) {
        list.clear();
        self.ready = list;
    }

    /// A message joins the queue of its source.
    pub fn queue(&mut self, message: Message, since: f64) {
        let terminal = message.source.index();
        if terminal >= self.queues.len() {
            self.queues.resize(terminal + 1, VecDeque::new());
        }
        self.queues[terminal].push_back((message, since));
        self.queued += 1;
    }

    /// Has any terminal something to send?
    pub fn has_any_queued(&self) -> bool {
        self.queued > 0
    }

    /// Has a terminal something to send?
    pub fn has_queued(&self, terminal: TerminalId) -> bool {
        self.queues.get(terminal.index()).is_some_and(|queue| !queue.is_empty())
    }

    /// Takes the message at the head of a terminal's queue, and when it joined it.
    pub fn draw(&mut self, terminal: TerminalId) -> Option<(Message, f64)> {
        let message = self.queues.get_mut(terminal.index())?.pop_front();
        self.queued -= u64::from(message.is_some());
        message
    }

    /// Is nothing due and nothing queued?
    pub fn is_idle(&self) -> bool {
        self.next_due() == f64::INFINITY && self.events.happened.is_empty() && self.ready.is_empty()
    }

    /// The end of the last computation; with interfaces also when a program last saw something.
    pub fn last_done(&self) -> f64 {
        self.events.last_done
    }

    /// When the programs of a part of the workload last saw something through interfaces; 0 without any.
    pub fn last_seen(&self, part: usize) -> f64 {
        self.interfaces.as_ref().map_or(0.0, |interfaces| interfaces.last_seen(part))
    }

    /// When each rank has finished, by its number, if the execution says so; empty afterwards, and empty if it does not. `None` of one that
    /// has not.
    pub fn take_finished(&mut self) -> Vec<Option<f64>> {
        let mut times = Vec::new();
        for (rank, time) in std::mem::take(&mut self.finished) {
            let rank = rank as usize;
            times.resize(times.len().max(rank + 1), None);
            times[rank] = Some(time);
        }
        times
    }

    /// What is left to do waits for this, where nothing is under way any more.
    pub fn standstill(&self) -> Option<String> {
        self.execution.standstill()
    }

    /// What interfaces did when, or what terminals computed and sent, if that was asked for; empty afterwards.
    pub fn take_timeline(&mut self) -> Vec<Span> {
        if let Some(notes) = &mut self.notes {
            return notes.take();
        }
        self.interfaces.as_mut().map(|interfaces| interfaces.take_timeline()).unwrap_or_default()
    }
}
