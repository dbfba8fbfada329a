//! Packets that were lost are sent again by their sources.
//!
//! They go before everything else that a terminal has to send, once they may. The feed underneath has drawn them once and does not hear of
//! them again before they arrive.

use crate::record::drawn::{Attempt, Drawn};
use crate::record::event::HeadAtRouter;
use crate::state::feed::{
    Arrival, Ask, Backlog, Completions, Drain, EdgeMessage, Left, Moves, Next, OneQueue, PacketFeed, Report, SendRequest,
};
use crate::state::queues::Queues;
use crate::state::share::Share;
use kasuri_model::engine::EngineError;
use kasuri_model::scenario::Scenario;
use std::collections::{BTreeMap, VecDeque};

/// A feed whose packets are sent again.
pub(crate) struct Resending<'a> {
    feed: Box<dyn PacketFeed + 'a>,
    /// Cycles from the loss of a packet until its source may send it again.
    after: u64,
    /// The number of the first terminal in the network; log2 of the terminals of a block.
    first_terminal: u32,
    block_shift: u32,
    /// By block of terminals: packets that are to be sent again, by the cycle from which they may, their source, and their number there.
    due: Vec<BTreeMap<(u64, u32, u32), Drawn>>,
    /// By terminal: those that may.
    ready: Vec<VecDeque<Drawn>>,
    /// By terminal: was the packet at the head of its queue lost before?
    sends_again: Vec<bool>,
    resent: u64,
}

impl<'a> Resending<'a> {
    /// The feed, whose packets are sent again if those of the scenario are.
    pub(crate) fn over(feed: Box<dyn PacketFeed + 'a>, scenario: &Scenario, share: &Share, block_shift: u32) -> Box<dyn PacketFeed + 'a> {
        let Some(after) = scenario.failure.as_ref().and_then(|failure| failure.resend_after) else { return feed };
        let terminals = share.terminals.len();
        Box::new(Self {
            feed,
            after: u64::from(after).max(1),
            first_terminal: share.terminals.start,
            block_shift,
            due: vec![BTreeMap::new(); terminals.div_ceil(1 << block_shift)],
            ready: vec![VecDeque::new(); terminals],
            sends_again: vec![false; terminals],
            resent: 0,
        })
    }

    fn place(&self, terminal: u32) -> usize {
        (terminal - self.first_terminal) as usize
    }

    /// What is to be sent again and has no number yet.
    fn pending(&self) -> impl Iterator<Item = &Drawn> {
        self.due.iter().flat_map(BTreeMap::values).chain(self.ready.iter().flatten())
    }
}

impl PacketFeed for Resending<'_> {
    fn start(&mut self, queues: &mut Queues) {
        self.feed.start(queues);
    }

    fn next_packet(&mut self, ask: Ask<'_>) -> Next {
        let place = self.place(ask.terminal);
        let lost = self.ready[place].pop_front();
        self.sends_again[place] = lost.is_some();
        self.resent += u64::from(lost.is_some());
        lost.map_or_else(|| self.feed.next_packet(ask), Next::Packet)
    }

    fn next_answer(&mut self, terminal: u32, now: u64, queue: Option<OneQueue<'_>>) -> Option<Drawn> {
        self.feed.next_answer(terminal, now, queue)
    }

    fn next_passing(&mut self, terminal: u32, queue: Option<OneQueue<'_>>) -> Option<Drawn> {
        self.feed.next_passing(terminal, queue)
    }

    fn has_pending_reply(&self, terminal: u32) -> bool {
        self.feed.has_pending_reply(terminal)
    }

    fn began(&mut self, drawn: &Drawn, terminal: u32, now: u64) {
        if drawn.again == Attempt::First {
            self.feed.began(drawn, terminal, now);
        }
    }

    fn dropped(&mut self, drawn: &Drawn, terminal: u32, now: u64) {
        self.feed.dropped(drawn, terminal, now);
    }

    fn tail_left(&mut self, left: &Left) -> bool {
        let place = self.place(left.terminal);
        if self.sends_again[place] {
            return true;
        }
        self.feed.tail_left(left) || !self.ready[place].is_empty()
    }

    fn prefetch_tail_left(&self, terminal: u32) {
        self.feed.prefetch_tail_left(terminal);
    }

    fn on_head_at_router(&mut self, head: &HeadAtRouter) {
        self.feed.on_head_at_router(head);
    }

    fn wants_head_events(&self) -> bool {
        self.feed.wants_head_events()
    }

    fn lost(&mut self, drawn: Drawn, terminal: u32, serial: u32, now: u64) -> bool {
        let block = self.place(terminal) >> self.block_shift;
        self.due[block].insert((now + self.after, terminal, serial), drawn);
        true
    }

    fn packet_arrived(&mut self, arrival: &Arrival<'_>, queues: &mut Queues) {
        self.feed.packet_arrived(arrival, queues);
    }

    fn begin_cycle(&mut self, block: u32, now: u64, queues: &mut Queues) {
        while let Some(first) = self.due[block as usize].first_entry().filter(|first| first.key().0 <= now) {
            let ((_, terminal, _), drawn) = first.remove_entry();
            let place = self.place(terminal);
            self.ready[place].push_back(drawn);
            queues.wake(terminal);
        }
        self.feed.begin_cycle(block, now, queues);
    }

    fn end_cycle(&mut self, block: u32, next: u64, queues: &mut Queues) {
        self.feed.end_cycle(block, next, queues);
    }

    fn take_message(&mut self, message: &EdgeMessage, queues: &mut Queues) {
        self.feed.take_message(message, queues);
    }

    fn take_request(&mut self, order: &SendRequest, queues: &mut Queues) {
        self.feed.take_request(order, queues);
    }

    fn report_completions(&mut self, into: &mut Completions) {
        self.feed.report_completions(into);
    }

    fn proceeds(&self) -> bool {
        self.feed.proceeds()
    }

    fn proceed(&mut self, now: u64, queues: &mut Queues) {
        self.feed.proceed(now, queues);
    }

    fn nodes_moved(&mut self, moves: &Moves<'_>, queues: &mut Queues) {
        self.feed.nodes_moved(moves, queues);
    }

    fn next_due(&self, now: u64, limit: u64) -> Result<u64, EngineError> {
        let first = self.due.iter().filter_map(|due| due.first_key_value()).map(|(key, _)| key.0.max(now)).min();
        match (first, self.feed.next_due(now, limit)) {
            (Some(first), Ok(due)) => Ok(first.min(due)),
            // What the feed waits for is to be sent again.
            (Some(first), Err(_)) => Ok(first.min(limit)),
            (None, due) => due,
        }
    }

    fn is_idle(&self) -> bool {
        self.feed.is_idle()
    }

    fn will_free_sink(&self) -> bool {
        self.feed.will_free_sink()
    }

    fn has_pending_timer(&self) -> bool {
        self.has_retransmissions() || self.feed.has_pending_timer()
    }

    fn has_retransmissions(&self) -> bool {
        self.pending().next().is_some()
    }

    fn ends(&self) -> bool {
        self.feed.ends()
    }

    fn outstanding(&self) -> i64 {
        self.feed.outstanding()
    }

    fn outstanding_flits(&self) -> i64 {
        self.feed.outstanding_flits()
    }

    fn has_first_finished(&self) -> bool {
        self.feed.has_first_finished()
    }

    fn backlog(&self, now: u64) -> Backlog {
        self.feed.backlog(now)
    }

    fn drain(&mut self, drain: Drain) -> u64 {
        let is_waited_for = |drawn: &&Drawn| {
            drawn.asked < drain.before
                && (drawn.asked >= drain.measured_from || drawn.again == Attempt::Retransmission { has_waited: true })
        };
        let waited_for = self.pending().filter(is_waited_for).count() as u64;
        waited_for + self.feed.drain(drain)
    }

    fn undrained(&self) -> u64 {
        self.feed.undrained()
    }

    fn held(&self) -> u64 {
        self.pending().count() as u64 + self.feed.held()
    }

    fn redraw_phases(&mut self, now: u64) {
        self.feed.redraw_phases(now);
    }

    fn clear(&mut self) {
        self.feed.clear();
    }

    fn held_flits(&self, slots: usize) -> Option<Vec<u32>> {
        self.feed.held_flits(slots)
    }

    fn broken(&self, now: u64) -> Option<String> {
        self.feed.broken(now)
    }

    fn report(&mut self, report: &mut Report) {
        report.resent = self.resent;
        self.feed.report(report);
    }
}
