//! Several feeds as one: each has classes of packets of its own, and they take turns at a terminal.

use crate::record::drawn::Drawn;
use crate::record::event::HeadAtRouter;
use crate::state::feed::{
    Arrival, Ask, Backlog, Completions, Drain, EdgeMessage, Left, Moves, Next, OneQueue, PacketFeed, Report, SendRequest,
};
use crate::state::queues::Queues;
use kasuri_model::engine::EngineError;

/// Feeds that run together. The run ends with those that end.
pub(crate) struct Combined<'a> {
    feeds: Vec<Box<dyn PacketFeed + 'a>>,
    /// By class: whose packets they are.
    feed_of_class: Vec<u8>,
    /// By terminal: the feed that is asked first next time.
    turn: Vec<u8>,
}

impl<'a> Combined<'a> {
    /// These feeds, each with so many classes, in the order of the classes. One alone stays what it is.
    pub(crate) fn of(mut feeds: Vec<(Box<dyn PacketFeed + 'a>, usize)>, terminals: u32) -> Box<dyn PacketFeed + 'a> {
        if feeds.len() == 1 {
            return feeds.remove(0).0;
        }
        let feed_of_class = feeds.iter().zip(0..).flat_map(|((_, classes), feed)| vec![feed; *classes]).collect();
        // At first the last one: what ends goes before what does not.
        let turn = vec![feeds.len() as u8 - 1; terminals as usize];
        Box::new(Self { feeds: feeds.into_iter().map(|(feed, _)| feed).collect(), feed_of_class, turn })
    }

    fn of_class(&mut self, class: u8) -> &mut (dyn PacketFeed + 'a) {
        let feed = self.feed_of_class[usize::from(class)];
        &mut *self.feeds[usize::from(feed)]
    }
}

impl PacketFeed for Combined<'_> {
    fn start(&mut self, queues: &mut Queues) {
        self.feeds.iter_mut().for_each(|feed| feed.start(queues));
    }

    fn next_packet(&mut self, ask: Ask<'_>) -> Next {
        let Ask { terminal, now, queue, mut naming } = ask;
        if let Some(answer) = self.next_answer(terminal, now, queue) {
            return Next::Packet(answer);
        }
        let (count, first) = (self.feeds.len(), usize::from(self.turn[terminal as usize]));
        let mut answer = Next::Nothing;
        for turn in 0..count {
            let feed = (first + turn) % count;
            // A shorter borrow for each feed.
            let naming = naming.as_mut().map(|naming| &mut **naming as _);
            match self.feeds[feed].next_packet(Ask { terminal, now, queue, naming }) {
                Next::Packet(drawn) => {
                    self.turn[terminal as usize] = ((feed + 1) % count) as u8;
                    return Next::Packet(drawn);
                }
                Next::Later => answer = Next::Later,
                Next::Nothing => {}
            }
        }
        answer
    }

    fn next_answer(&mut self, terminal: u32, now: u64, queue: Option<OneQueue<'_>>) -> Option<Drawn> {
        self.feeds.iter_mut().find_map(|feed| feed.next_answer(terminal, now, queue))
    }

    fn next_passing(&mut self, terminal: u32, queue: Option<OneQueue<'_>>) -> Option<Drawn> {
        self.feeds.iter_mut().find_map(|feed| feed.next_passing(terminal, queue))
    }

    fn has_pending_reply(&self, terminal: u32) -> bool {
        self.feeds.iter().any(|feed| feed.has_pending_reply(terminal))
    }

    fn began(&mut self, drawn: &Drawn, terminal: u32, now: u64) {
        self.of_class(drawn.class).began(drawn, terminal, now);
    }

    fn dropped(&mut self, drawn: &Drawn, terminal: u32, now: u64) {
        self.of_class(drawn.class).dropped(drawn, terminal, now);
    }

    fn tail_left(&mut self, left: &Left) -> bool {
        self.feeds.iter_mut().fold(false, |more, feed| feed.tail_left(left) || more)
    }

    fn on_head_at_router(&mut self, head: &HeadAtRouter) {
        self.feeds.iter_mut().for_each(|feed| feed.on_head_at_router(head));
    }

    fn wants_head_events(&self) -> bool {
        self.feeds.iter().any(|feed| feed.wants_head_events())
    }

    fn packet_arrived(&mut self, arrival: &Arrival<'_>, queues: &mut Queues) {
        self.of_class(arrival.record.class).packet_arrived(arrival, queues);
    }

    fn begin_cycle(&mut self, block: u32, now: u64, queues: &mut Queues) {
        self.feeds.iter_mut().for_each(|feed| feed.begin_cycle(block, now, queues));
    }

    fn end_cycle(&mut self, block: u32, next: u64, queues: &mut Queues) {
        self.feeds.iter_mut().for_each(|feed| feed.end_cycle(block, next, queues));
    }

    fn take_message(&mut self, message: &EdgeMessage, queues: &mut Queues) {
        self.feeds.iter_mut().for_each(|feed| feed.take_message(message, queues));
    }

    fn take_request(&mut self, order: &SendRequest, queues: &mut Queues) {
        self.of_class(order.class).take_request(order, queues);
    }

    fn report_completions(&mut self, into: &mut Completions) {
        self.feeds.iter_mut().for_each(|feed| feed.report_completions(into));
    }

    fn proceeds(&self) -> bool {
        self.feeds.iter().any(|feed| feed.proceeds())
    }

    fn proceed(&mut self, now: u64, queues: &mut Queues) {
        self.feeds.iter_mut().for_each(|feed| feed.proceed(now, queues));
    }

    fn nodes_moved(&mut self, moves: &Moves<'_>, queues: &mut Queues) {
        // What a user sends is open traffic or a workload.
        self.of_class(moves.classes.start as u8).nodes_moved(moves, queues);
    }

    fn next_due(&self, now: u64, limit: u64) -> Result<u64, EngineError> {
        self.feeds.iter().try_fold(limit, |due, feed| Ok(due.min(feed.next_due(now, limit)?)))
    }

    fn is_idle(&self) -> bool {
        self.feeds.iter().all(|feed| feed.is_idle())
    }

    fn will_free_sink(&self) -> bool {
        self.feeds.iter().any(|feed| feed.will_free_sink())
    }

    fn has_pending_timer(&self) -> bool {
        self.feeds.iter().any(|feed| feed.has_pending_timer())
    }

    fn ends(&self) -> bool {
        self.feeds.iter().any(|feed| feed.ends())
    }

    fn outstanding(&self) -> i64 {
        self.feeds.iter().filter(|feed| feed.ends()).map(|feed| feed.outstanding()).sum()
    }

    fn outstanding_flits(&self) -> i64 {
        self.feeds.iter().map(|feed| feed.outstanding_flits()).sum()
    }

    fn has_first_finished(&self) -> bool {
        self.feeds.iter().any(|feed| feed.has_first_finished())
    }

    fn backlog(&self, now: u64) -> Backlog {
        let mut backlog = Backlog::default();
        self.feeds.iter().for_each(|feed| backlog.absorb(feed.backlog(now)));
        backlog
    }

    fn drain(&mut self, drain: Drain) -> u64 {
        self.feeds.iter_mut().map(|feed| feed.drain(drain)).sum()
    }

    fn undrained(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.undrained()).sum()
    }

    fn held(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.held()).sum()
    }

    fn redraw_phases(&mut self, now: u64) {
        self.feeds.iter_mut().for_each(|feed| feed.redraw_phases(now));
    }

    fn clear(&mut self) {
        self.feeds.iter_mut().for_each(|feed| feed.clear());
    }

    fn held_flits(&self, slots: usize) -> Option<Vec<u32>> {
        // Packets of one feed at most stay in sinks.
        self.feeds.iter().find_map(|feed| feed.held_flits(slots))
    }

    fn broken(&self, now: u64) -> Option<String> {
        self.feeds.iter().find_map(|feed| feed.broken(now))
    }

    fn report(&mut self, report: &mut Report) {
        self.feeds.iter_mut().for_each(|feed| feed.report(report));
    }
}
