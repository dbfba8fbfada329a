//! A closed workload of which each terminal goes on by what happens at itself: whose messages have left, arrived, or been computed.
//!
//! Such a workload needs nobody who looks at all terminals. Each tile runs a pass of its own and tells it of events at its terminals alone,
//! and each block of terminals answers at the end of each cycle. So a window may be as long as the latencies allow, and nothing is left to do
//! between two windows. Packets carry the names of their messages, so that a tile knows what arrives from another.

use crate::facts;
use crate::record::drawn::{Attempt, Drawn};
use crate::record::tag::Tag;
use crate::state::feed::{Arrival, Ask, Left, Next, PacketFeed, Report};
use crate::state::queues::Queues;
use crate::state::share::Share;
use foldhash::fast::FixedState;
use kasuri_model::engine::EngineError;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use kasuri_workload::workload::agenda::Events;
use kasuri_workload::workload::{Action, Event, Execution, Message, Token, Workload};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// The messages that a terminal has to send, and since when.
#[derive(Clone, Debug, Default)]
struct Outgoing {
    messages: VecDeque<(Message, u64)>,
    /// Flits of the first one for which there is a packet already.
    drawn: u32,
}

/// Packets that have passed of messages of several packets, as long as some are missing.
#[derive(Debug, Default)]
struct Counts(HashMap<Token, u32, FixedState>);

impl Counts {
    /// Counts a packet of a message. Was it the last one?
    #[inline(always)]
    fn is_last(&mut self, tag: Tag) -> bool {
        if tag.packets == 1 {
            return true;
        }
        let count = self.0.entry(tag.token()).or_insert(0);
        *count += 1;
        let is_last = *count == tag.packets;
        if is_last {
            self.0.remove(&tag.token());
        }
        is_last
    }
}

/// What a tile's terminals do of a workload.
#[derive(Debug)]
pub(crate) struct LocalWorkload<'a> {
    workload: &'a dyn Workload,
    packet_flits: u32,
    class: u8,
    terminals: Range<u32>,
    block_shift: u32,
    execution: Box<dyn Execution + 'a>,
    hears_arrivals: bool,
    /// What the execution wants; memory to use.
    actions: Vec<Action>,
    /// By block of terminals.
    events: Vec<Events>,
    /// By terminal of the tile.
    outgoing: Vec<Outgoing>,
    leaving: Counts,
    arriving: Counts,
    /// Messages of the whole workload, in the first tile, less those that have arrived in this one.
    outstanding_messages: i64,
    /// Flits that are sure to arrive, in the same way. Of many messages it is not known how long they are until they are sent: each has one at
    /// least.
    outstanding_flits: i64,
    are_flits_known: bool,
}

/// So many messages are looked at before the run to know their flits.
const MOST_MESSAGES_COUNTED: u64 = 1 << 16;

impl<'a> LocalWorkload<'a> {
    /// A tile's part of a scenario's workload, if it is local. Blocks have `2^block_shift` terminals.
    pub(crate) fn new(scenario: &'a Scenario, share: &Share, block_shift: u32) -> Option<Self> {
        let closed = scenario.workload.as_ref().filter(|_| facts::is_local(scenario))?;
        let execution = closed.workload.begin(&scenario.streams);
        let (messages, is_first) = (closed.workload.messages(), share.terminals.contains(&0));
        let are_flits_known = messages <= MOST_MESSAGES_COUNTED;
        let mut flits = messages as i64;
        if are_flits_known && is_first {
            closed.workload.each_message(&mut |message| flits += i64::from(message.flits) - 1);
        }
        Some(Self {
            workload: &*closed.workload,
            packet_flits: closed.parts[0].packet_flits,
            class: scenario.classes.len() as u8,
            terminals: share.terminals.clone(),
            block_shift,
            hears_arrivals: execution.hears_arrivals(),
            execution,
            actions: Vec::new(),
            events: (0..share.terminals.len().div_ceil(1 << block_shift)).map(|_| Events::default()).collect(),
            outgoing: vec![Outgoing::default(); share.terminals.len()],
            leaving: Counts::default(),
            arriving: Counts::default(),
            outstanding_messages: if is_first { messages as i64 } else { 0 },
            outstanding_flits: if is_first { flits } else { 0 },
            are_flits_known,
        })
    }

    /// The block of a terminal.
    fn block_of(&self, terminal: u32) -> usize {
        ((terminal - self.terminals.start) >> self.block_shift) as usize
    }

    /// Does what the execution wants at cycle `now`, as far as it is at a terminal of this tile.
    fn act(&mut self, now: u64, queues: &mut Queues) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Send(message) if self.terminals.contains(&message.source.0) => self.queue(message, now, queues),
                Action::Compute { token, cycles } => {
                    let place = self.workload.place_of(token).filter(|place| self.terminals.contains(&place.0));
                    let Some(TerminalId(terminal)) = place else { continue };
                    let block = self.block_of(terminal);
                    self.events[block].will_happen(now as f64 + cycles.max(0.0), Event::Computed(token));
                }
                // Elsewhere; and no local workload tells of its ranks.
                Action::Send(_) | Action::Finished(_) => {}
            }
        }
        self.actions = actions;
    }

    /// A message joins the queue of its source.
    fn queue(&mut self, message: Message, now: u64, queues: &mut Queues) {
        if !self.are_flits_known {
            self.outstanding_flits += i64::from(message.flits) - 1;
        }
        self.outgoing[(message.source.0 - self.terminals.start) as usize].messages.push_back((message, now));
        queues.wake(message.source.0);
    }

    /// Lets the terminals of a block answer to what has happened there before cycle `now`, and to what is due by then.
    #[inline]
    fn answer(&mut self, block: usize, now: u64, queues: &mut Queues) {
        let time = now as f64;
        if self.events[block].is_quiet(time) {
            return;
        }
        loop {
            self.events[block].ripen(time);
            if !self.events[block].tell(&mut *self.execution, &mut self.actions) {
                return;
            }
            self.act(now, queues);
        }
    }

    /// The next packet of a terminal.
    fn draw(&mut self, terminal: u32) -> Option<Drawn> {
        let outgoing = &mut self.outgoing[(terminal - self.terminals.start) as usize];
        let &(message, since) = outgoing.messages.front()?;
        let flits = (message.flits - outgoing.drawn).min(self.packet_flits);
        outgoing.drawn += flits;
        if outgoing.drawn == message.flits {
            outgoing.drawn = 0;
            outgoing.messages.pop_front();
        }
        let tag = Tag::of_message(message.token, message.flits.div_ceil(self.packet_flits));
        Some(Drawn {
            created: since,
            asked: since,
            destination: message.destination,
            flits,
            class: self.class,
            is_reply: false,
            again: Attempt::First,
            tag,
        })
    }
}

impl PacketFeed for LocalWorkload<'_> {
    fn start(&mut self, queues: &mut Queues) {
        let mut actions = std::mem::take(&mut self.actions);
        self.execution.start(&mut actions);
        self.actions = actions;
        self.act(0, queues);
        (0..self.events.len()).for_each(|block| self.answer(block, 0, queues));
    }

    fn next_packet(&mut self, ask: Ask<'_>) -> Next {
        if ask.queue.is_some_and(|queue| !queue.has(self.class)) {
            return Next::Nothing;
        }
        Next::or_later(self.draw(ask.terminal), || false)
    }

    fn tail_left(&mut self, left: &Left) -> bool {
        if left.class == self.class && self.leaving.is_last(left.tag) {
            let block = self.block_of(left.terminal);
            self.events[block].happen(Event::Sent(left.tag.token()));
        }
        true
    }

    fn packet_arrived(&mut self, arrival: &Arrival<'_>, _queues: &mut Queues) {
        self.outstanding_flits -= i64::from(arrival.record.flits);
        if self.arriving.is_last(arrival.tag) {
            self.outstanding_messages -= 1;
            if self.hears_arrivals {
                let block = self.block_of(arrival.record.destination);
                self.events[block].happen(Event::Arrived(arrival.tag.token()));
            }
        }
    }

    fn end_cycle(&mut self, block: u32, next: u64, queues: &mut Queues) {
        self.answer(block as usize, next, queues);
    }

    fn proceeds(&self) -> bool {
        true
    }

    /// Idle cycles that are skipped do not end one by one.
    fn proceed(&mut self, now: u64, queues: &mut Queues) {
        (0..self.events.len()).for_each(|block| self.answer(block, now, queues));
    }

    fn next_due(&self, now: u64, limit: u64) -> Result<u64, EngineError> {
        let due = self.events.iter().map(Events::next_due).fold(f64::INFINITY, f64::min);
        Ok((due.ceil() as u64).clamp(now, limit.max(now)))
    }

    fn has_pending_timer(&self) -> bool {
        self.events.iter().any(|events| events.count() > 0)
    }

    fn ends(&self) -> bool {
        true
    }

    fn outstanding(&self) -> i64 {
        self.outstanding_messages + self.events.iter().map(|events| events.count() as i64).sum::<i64>()
    }

    fn outstanding_flits(&self) -> i64 {
        self.outstanding_flits
    }

    fn report(&mut self, report: &mut Report) {
        let last_done = self.events.iter().map(|events| events.last_done).fold(0.0, f64::max);
        report.last_done = report.last_done.max(last_done.ceil() as u64);
    }
}
