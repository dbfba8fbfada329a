//! The queues of a tile's terminals and what feeds them.
//!
//! Each tile has feeds for its own terminals. Their messages for feeds of other tiles are delivered at the end of a window. Users and machines
//! look at terminals all over the network: one tile has all terminals then, and the others' feed sends nothing.

use crate::facts;
use crate::record::drawn::Drawn;
use crate::record::event::HeadAtRouter;
use crate::record::tag::Tag;
use crate::state::feed::{Arrival, Ask, Drain, EdgeMessage, Left, Next, OneQueue, PacketFeed, Report, SendRequest};
use crate::state::queues::Queues;
use crate::state::share::Share;
use kasuri_model::scenario::Scenario;

/// The queues of a tile's terminals and what feeds them. Feeds know terminals by their number in the network, the rest of the engine by
/// their number in the tile.
pub(crate) struct Edge<'a> {
    first_terminal: u32,
    pub(crate) queues: Queues,
    feed: Box<dyn PacketFeed + 'a>,
    pub(crate) drain: Drain,
    /// Do feeds ask for [`PacketFeed::proceed`]?
    proceeds: bool,
    /// And for [`PacketFeed::end_cycle`]?
    answers_by_block: bool,
    /// And for [`PacketFeed::began`] and [`PacketFeed::packet_arrived`]?
    wants_packet_events: bool,
    /// Do feeds want to hear of heads that come to routers? Are these in another tile?
    pub(crate) wants_head_events: bool,
    is_remote: bool,
    /// Packets of these classes stay in the buffers of sinks until an interface takes them.
    pub(crate) first_held_class: u8,
    /// The cycle in which each terminal's last packet arrived, where the run ends by itself, and the first class that counts for it.
    completion_cycles: Vec<u64>,
    first_ending_class: u8,
    /// Does the run end by itself?
    ends: bool,
}

impl<'a> Edge<'a> {
    /// The edge of a tile, in blocks of `2^block_shift` terminals.
    pub(crate) fn new(scenario: &'a Scenario, share: &Share, block_shift: u32, mut feed: Box<dyn PacketFeed + 'a>) -> Self {
        let mut queues = Queues::new(scenario, share, block_shift);
        feed.start(&mut queues);
        let open_classes = scenario.classes.len() as u8;
        let has_others = scenario.workload.is_some() || scenario.endpoint.is_some();
        Self {
            first_terminal: share.terminals.start,
            queues,
            drain: Drain::default(),
            proceeds: feed.proceeds(),
            answers_by_block: facts::is_local(scenario),
            wants_packet_events: feed.wants_packet_events(),
            wants_head_events: feed.wants_head_events(),
            is_remote: facts::needs_central_edge(scenario) && share.terminals.is_empty(),
            first_held_class: if scenario.endpoint.as_ref().is_some_and(|machine| machine.begin().is_some()) {
                open_classes
            } else {
                u8::MAX
            },
            completion_cycles: vec![0; if feed.ends() { share.terminals.len() } else { 0 }],
            first_ending_class: if has_others { open_classes } else { 0 },
            ends: feed.ends(),
            feed,
        }
    }

    /// The packet at the head of a terminal's queue, drawn now.
    #[inline(always)]
    pub(crate) fn next_packet(&mut self, terminal: u32, now: u64) -> Next {
        self.feed.next_packet(Ask { terminal: self.first_terminal + terminal, now, queue: None, naming: None })
    }

    /// The packet at the head of one of a terminal's queues, where it has one for each class.
    pub(crate) fn next_packet_of_queue(&mut self, terminal: u32, queue: usize, now: u64) -> Next {
        let queue = self.queues.by_class.as_ref().map(|queues| OneQueue { queue_of_class: &queues.queue_of_class, queue });
        self.feed.next_packet(Ask { terminal: self.first_terminal + terminal, now, queue, naming: None })
    }

    /// Has a terminal an answer to send, now or later?
    pub(crate) fn has_pending_reply(&self, terminal: u32) -> bool {
        self.feed.has_pending_reply(self.first_terminal + terminal)
    }

    /// A packet stands at the head of a terminal's queue.
    #[inline(always)]
    pub(crate) fn began(&mut self, drawn: &Drawn, terminal: u32, now: u64) {
        if self.wants_packet_events {
            self.feed.began(drawn, self.first_terminal + terminal, now);
        }
    }

    /// The tail of a packet of a class has left a terminal.
    #[inline(always)]
    pub(crate) fn tail_left(&mut self, class: u8, tag: Tag, terminal: u32, now: u64) {
        if self.has_next(class, tag, terminal, now) {
            self.queues.wake_own(terminal);
        }
    }

    /// The tail of a packet of a class has left a terminal. Must the terminal be looked at in the next cycle?
    #[inline(always)]
    pub(crate) fn has_next(&mut self, class: u8, tag: Tag, terminal: u32, now: u64) -> bool {
        self.feed.tail_left(&Left { class, terminal: self.first_terminal + terminal, now, tag })
    }

    /// The tail of a packet has arrived.
    #[inline(always)]
    pub(crate) fn packet_arrived(&mut self, arrival: &Arrival<'_>) {
        if let Some(completion) = self.completion_cycles.get_mut((arrival.record.destination - self.first_terminal) as usize)
            && arrival.record.class >= self.first_ending_class
        {
            *completion = arrival.now + 1;
        }
        if self.wants_packet_events {
            self.feed.packet_arrived(arrival, &mut self.queues);
        }
    }

    /// A packet that a terminal of the tile has sent is lost. Will it be sent again?
    pub(crate) fn lost(&mut self, drawn: Drawn, terminal: u32, serial: u32, now: u64) -> bool {
        self.feed.lost(drawn, terminal, serial, now)
    }

    /// A head has come to a router of the tile.
    pub(crate) fn on_head_at_router(&mut self, head: HeadAtRouter) {
        if self.is_remote {
            self.queues.messages.push(EdgeMessage::HeadAtRouter(head));
        } else {
            self.feed.on_head_at_router(&head);
        }
    }

    /// A message from another tile has come.
    pub(crate) fn take_message(&mut self, message: &EdgeMessage) {
        self.feed.take_message(message, &mut self.queues);
    }

    /// A message of the closed workload is to be sent.
    pub(crate) fn take_request(&mut self, order: &SendRequest) {
        self.feed.take_request(order, &mut self.queues);
    }

    /// A cycle of a block of terminals begins.
    #[inline(always)]
    pub(crate) fn begin_cycle(&mut self, block: u32, now: u64) {
        self.feed.begin_cycle(block, now, &mut self.queues);
    }

    /// A cycle of a block of terminals has ended.
    #[inline(always)]
    pub(crate) fn end_cycle(&mut self, block: u32, next: u64) {
        if self.answers_by_block {
            self.feed.end_cycle(block, next, &mut self.queues);
        }
    }

    /// Lets the feeds answer to what has happened before cycle `now`.
    #[inline(always)]
    pub(crate) fn proceed(&mut self, now: u64) {
        if self.proceeds {
            self.feed.proceed(now, &mut self.queues);
        }
    }

    /// Is no terminal active, and does no feed do anything before a packet moves or the next thing is due?
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.queues.are_idle() && self.feed.is_idle()
    }

    /// Does the run end with what this edge sends?
    pub(crate) fn ends(&self) -> bool {
        self.ends
    }

    /// Batches: has a terminal finished its own?
    #[inline(always)]
    pub(crate) fn has_first_finished(&self) -> bool {
        self.ends && self.feed.has_first_finished()
    }

    /// Begins to wait for packets. Returns how many answers are waited for that are not drawn.
    pub(crate) fn drain(&mut self, from: u64, measured_from: u64, before: u64, closes: bool) -> u64 {
        self.drain = Drain { measured_from, from, before, closes: closes || self.drain.closes };
        self.feed.drain(self.drain)
    }

    /// Everything else that is asked of the feeds.
    pub(crate) fn feed(&self) -> &(dyn PacketFeed + 'a) {
        &*self.feed
    }

    /// The same, where it changes them.
    pub(crate) fn feed_mut(&mut self) -> &mut (dyn PacketFeed + 'a) {
        &mut *self.feed
    }

    /// What the feeds have to say at the end of a run: into the report. Returns the cycle of each terminal's last packet.
    pub(crate) fn report(&mut self, report: &mut Report) -> &[u64] {
        self.feed.report(report);
        &self.completion_cycles
    }
}
