//! The messages of a closed workload at the terminals of a tile, cut into packets: which of them have left and arrived.

use crate::feeds::ranks::Ranks;
use crate::record::drawn::{Attempt, Drawn};
use crate::record::tag::Tag;
use crate::state::feed::{Arrival, Ask, Completions, Left, Moves, Next, PacketFeed, SendRequest};
use crate::state::queues::Queues;
use crate::state::share::Share;
use kasuri_model::engine::EngineError;
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use std::collections::VecDeque;

/// The messages that a terminal has to send, or a rank that moves.
#[derive(Clone, Debug, Default)]
struct Outgoing {
    messages: VecDeque<SendRequest>,
    /// Flits of the first one for which there is a packet already.
    drawn: u32,
}

/// Packets of a message that have left this tile, and that have arrived in it.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    left: u32,
    arrived: u32,
}

/// The messages at the terminals of a tile.
#[derive(Debug)]
pub(crate) struct Messages<'a> {
    closed: &'a ClosedWorkload,
    /// The class of the first part's packets.
    first_class: u8,
    /// The number of the tile's first terminal in the network.
    first: u32,
    ranks: Ranks,
    /// By terminal of the tile, then of each rank that moves.
    outgoing: Vec<Outgoing>,
    /// By record of a message.
    passed: Vec<Passed>,
    progress: Completions,
}

impl<'a> Messages<'a> {
    /// Those of a scenario's workload, if it has one.
    pub(crate) fn new(scenario: &'a Scenario, share: &Share) -> Option<Self> {
        let closed = scenario.workload.as_ref()?;
        let first_class = scenario.classes.len() as u8;
        let ranks = Ranks::new(scenario, first_class..first_class + closed.parts.len() as u8);
        Some(Self {
            closed,
            first_class,
            first: share.terminals.start,
            outgoing: vec![Outgoing::default(); share.terminals.len() + ranks.count()],
            ranks,
            passed: Vec::new(),
            progress: Completions::default(),
        })
    }

    /// Are packets of a class parts of these messages?
    fn is_own(&self, class: u8) -> bool {
        (self.first_class..self.first_class + self.closed.parts.len() as u8).contains(&class)
    }

    /// Since when the message at the head of a queue has been there.
    fn head_since(&self, queue: usize) -> Option<u64> {
        self.outgoing[queue].messages.front().map(|order| order.since)
    }

    /// The next packet of a terminal: its own, or that of a rank that is there at present, first come, first served.
    fn draw(&mut self, terminal: u32) -> Option<Drawn> {
        let mut queue = (terminal - self.first) as usize;
        for &of_rank in self.ranks.here(terminal) {
            let of_rank = (of_rank - self.first) as usize;
            let since = self.head_since(of_rank);
            if since.is_some_and(|since| self.head_since(queue).is_none_or(|other| since < other)) {
                queue = of_rank;
            }
        }
        self.draw_from(queue)
    }

    /// The next packet of the message at the head of a queue.
    fn draw_from(&mut self, queue: usize) -> Option<Drawn> {
        let outgoing = &mut self.outgoing[queue];
        let order = *outgoing.messages.front()?;
        let part = usize::from(order.class - self.first_class);
        let flits = (order.flits - outgoing.drawn).min(self.closed.parts[part].packet_flits);
        outgoing.drawn += flits;
        if outgoing.drawn == order.flits {
            outgoing.drawn = 0;
            outgoing.messages.pop_front();
        }
        let SendRequest { since, destination, class, record, packets, .. } = order;
        let tag = Tag { packets, ..Tag::of_record(record) };
        Some(Drawn { created: since, asked: since, destination, flits, class, is_reply: false, again: Attempt::First, tag })
    }

    /// What has passed of the message of a packet.
    fn passed(&mut self, tag: Tag) -> &mut Passed {
        let record = tag.record as usize;
        if record >= self.passed.len() {
            self.passed.resize(record + 1, Passed::default());
        }
        &mut self.passed[record]
    }
}

/// Counts a packet of a message. Was it the last one?
fn is_last(count: &mut u32, packets: u32) -> bool {
    *count += 1;
    let is_last = *count == packets;
    if is_last {
        *count = 0;
    }
    is_last
}

impl PacketFeed for Messages<'_> {
    fn next_packet(&mut self, ask: Ask<'_>) -> Next {
        // All parts share a queue.
        if ask.queue.is_some_and(|queue| !queue.has(self.first_class)) {
            return Next::Nothing;
        }
        Next::or_later(self.draw(ask.terminal), || false)
    }

    fn tail_left(&mut self, left: &Left) -> bool {
        if self.is_own(left.class) && is_last(&mut self.passed(left.tag).left, left.tag.packets) {
            self.progress.left.push(left.tag.record);
        }
        true
    }

    fn packet_arrived(&mut self, arrival: &Arrival<'_>, _queues: &mut Queues) {
        if is_last(&mut self.passed(arrival.tag).arrived, arrival.tag.packets) {
            self.progress.arrived.push((arrival.record.destination, arrival.tag.record));
        }
    }

    fn take_request(&mut self, order: &SendRequest, queues: &mut Queues) {
        let (queue, place) = self.ranks.queue_of(order.class, order.source);
        self.outgoing[(queue - self.first) as usize].messages.push_back(*order);
        queues.wake(place.0);
    }

    fn report_completions(&mut self, into: &mut Completions) {
        into.left.append(&mut self.progress.left);
        into.arrived.append(&mut self.progress.arrived);
    }

    fn nodes_moved(&mut self, moves: &Moves<'_>, queues: &mut Queues) {
        self.ranks.moved(moves, queues);
    }

    fn next_due(&self, _now: u64, limit: u64) -> Result<u64, EngineError> {
        // What is due is the dispatcher's to know.
        Ok(limit)
    }

    fn ends(&self) -> bool {
        true
    }

    fn outstanding(&self) -> i64 {
        // So is what is still to come.
        0
    }
}
