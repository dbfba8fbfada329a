//! What feeds the terminals' queues with packets, as one trait.

use crate::record::drawn::{Attempt, Drawn};
use crate::record::event::HeadAtRouter;
use crate::record::packet::Packet;
use crate::record::tag::Tag;
use crate::state::queues::Queues;
use kasuri_model::engine::{EngineError, Interfaces, TranslationCounts, UserOutcome};
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Stream;
use kasuri_workload::timeline::Span;
use kasuri_workload::translation::Table;
use std::ops::Range;

/// What a feed says when it is asked for a terminal's next packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// This one.
    Packet(Drawn),
    /// There may be one in the next cycle: ask again then.
    Later,
    /// None, until the feed wakes the terminal.
    Nothing,
}

impl Next {
    /// The packet if there is one; else nothing, or later if `later` says so.
    pub(crate) fn or_later(drawn: Option<Drawn>, later: impl FnOnce() -> bool) -> Self {
        match drawn {
            Some(drawn) => Self::Packet(drawn),
            None if later() => Self::Later,
            None => Self::Nothing,
        }
    }
}

/// Names the destinations of packets in the place of their classes' patterns.
pub(crate) trait Naming {
    /// Where the next packet of a class goes from a terminal. `None` if the terminal will never send another.
    fn destination(&mut self, class: usize, terminal: u32, stream: &mut Stream) -> Option<TerminalId>;
}

/// Where a terminal has a queue for each class: the queue of each class, and the queue that is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneQueue<'q> {
    pub(crate) queue_of_class: &'q [usize],
    pub(crate) queue: usize,
}

impl OneQueue<'_> {
    /// Does the queue hold packets of a class?
    pub(crate) fn has(&self, class: u8) -> bool {
        self.queue_of_class[usize::from(class)] == self.queue
    }
}

/// Logical nodes of a user have moved to other terminals. None of their accesses is under way.
pub(crate) struct Moves<'m> {
    /// The classes of the user.
    pub(crate) classes: Range<usize>,
    /// Terminals that have become each other.
    pub(crate) exchanged: &'m [[TerminalId; 2]],
    /// The user's table as it is now.
    pub(crate) table: &'m Table,
    /// The cycle that begins.
    pub(crate) cycle: u64,
}

impl Moves<'_> {
    /// Which terminal one has become, if it has become another.
    pub(crate) fn becomes(&self, terminal: u32) -> Option<u32> {
        self.exchanged.iter().find_map(|&[one, other]| match terminal {
            terminal if terminal == one.0 => Some(other.0),
            terminal if terminal == other.0 => Some(one.0),
            _ => None,
        })
    }
}

/// The question for a terminal's next packet.
pub(crate) struct Ask<'q> {
    pub(crate) terminal: u32,
    pub(crate) now: u64,
    /// Which of the terminal's queues is meant, where it has several.
    pub(crate) queue: Option<OneQueue<'q>>,
    /// Who names destinations, if not the patterns.
    pub(crate) naming: Option<&'q mut dyn Naming>,
}

/// A packet whose tail has arrived.
pub(crate) struct Arrival<'p> {
    pub(crate) record: &'p Packet,
    /// The sink's slot, counted from the first.
    pub(crate) slot: u32,
    /// The cycle in which it arrives.
    pub(crate) now: u64,
    /// The cycle that decides whether an answer to it is measured.
    pub(crate) asked: u64,
    /// Is it measured, and do its flits count towards the rates?
    pub(crate) counted: bool,
    pub(crate) rates: bool,
    pub(crate) tag: Tag,
}

/// A packet whose tail has left its terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) class: u8,
    pub(crate) terminal: u32,
    pub(crate) now: u64,
    pub(crate) tag: Tag,
}

/// A message of a closed workload that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendRequest {
    pub(crate) source: TerminalId,
    pub(crate) destination: TerminalId,
    pub(crate) flits: u32,
    pub(crate) packets: u32,
    /// The class of its packets.
    pub(crate) class: u8,
    /// The record under which its packets go.
    pub(crate) record: u32,
    /// Since when it is to be sent.
    pub(crate) since: u64,
}

/// Messages of a closed workload of which a tile has seen the end since it was last asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Completions {
    /// The records of those whose last tail has left its terminal.
    pub(crate) left: Vec<u32>,
    /// Those that have arrived in whole: terminal and record.
    pub(crate) arrived: Vec<(u32, u32)>,
}

/// Packets that are created and not drawn, one at most of each class and terminal: enough to say at any time how long they have waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    packets: i64,
    /// The sum of the cycles of their creation.
    created: i64,
}

impl Backlog {
    /// One more packet waits, created in this cycle.
    #[inline(always)]
    pub(crate) fn add(&mut self, created: u64) {
        self.packets += 1;
        self.created = self.created.wrapping_add(created as i64);
    }

    /// One packet less waits.
    #[inline(always)]
    pub(crate) fn remove(&mut self, created: u64) {
        self.packets -= 1;
        self.created = self.created.wrapping_sub(created as i64);
    }

    /// What has changed since it was another.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { packets: self.packets - before.packets, created: self.created.wrapping_sub(before.created) }
    }

    /// Adds those of another feed, or what has changed elsewhere.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.packets += other.packets;
        self.created = self.created.wrapping_add(other.created);
    }

    /// The sum of the cycles for which they have waited, at cycle `now`.
    pub(crate) fn cycles(self, now: u64) -> u64 {
        self.packets.wrapping_mul(now as i64).wrapping_sub(self.created) as u64
    }
}

/// What one tile has for the feed of another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EdgeMessage {
    /// A packet of open traffic has arrived that a terminal there has sent: for its batch and its window.
    Delivered { class: u8, source: u32, now: u64, of_batch: bool, opens_window: bool },
    /// A head has come to a router.
    HeadAtRouter(HeadAtRouter),
}

impl EdgeMessage {
    /// A terminal of the tile that it is for.
    pub(crate) fn terminal(&self) -> u32 {
        match self {
            Self::Delivered { source, .. } => *source,
            Self::HeadAtRouter(head) => head.destination.0,
        }
    }
}

/// Which packets draining waits for: those created in these cycles. None before draining begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drain {
    /// Answers are waited for if what they answer was created in or after this cycle.
    pub(crate) measured_from: u64,
    pub(crate) from: u64,
    pub(crate) before: u64,
    /// Is nothing new created any more?
    pub(crate) closes: bool,
}

impl Drain {
    /// Is a drawn packet waited for, and not yet? Answers are waited for since what they answer has been, and so is what was lost.
    #[inline(always)]
    pub(crate) fn covers(&self, drawn: &Drawn) -> bool {
        drawn.created < self.before && drawn.created >= self.from && !drawn.is_reply && drawn.again == Attempt::First
    }
}

/// What feeds had to say when the run ended.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The last cycle, and whether the run has ended by itself.
    pub(crate) now: u64,
    pub(crate) completed: bool,
    /// The cycle in which the last computation ended, or a program last saw something.
    pub(crate) last_done: u64,
    /// The cycle in which everything ended, where a feed knows better than the last packet.
    pub(crate) ended: Option<u64>,
    /// By class: the end of the cycle in which the last of its messages has arrived.
    pub(crate) class_ends: Vec<(usize, Option<u64>)>,
    /// By class of a machine: what its nodes have translated.
    pub(crate) translations: Vec<(usize, TranslationCounts)>,
    pub(crate) timeline: Vec<Span>,
    /// When the ranks of a workload have finished, if it says so.
    pub(crate) finished: Vec<Option<f64>>,
    /// What is left to do where nothing is under way any more.
    pub(crate) standstill: Vec<String>,
    pub(crate) interfaces: Option<Interfaces>,
    pub(crate) users: Vec<UserOutcome>,
    /// Packets that were lost and that their sources have sent again.
    pub(crate) resent: u64,
}

/// What feeds the queues of all terminals with packets, and hears what becomes of them. A feed knows no router. What it is told in a cycle
/// has consequences in the next one.
///
/// A feed that does not care about a question leaves the answer that stands here.
pub(crate) trait PacketFeed: Send {
    /// The run begins.
    fn start(&mut self, _queues: &mut Queues) {}

    /// The packet at the head of a terminal's queue, drawn now.
    fn next_packet(&mut self, ask: Ask<'_>) -> Next;

    /// The answer at the head of a terminal's queue, if there is one and it may be sent: answers go before new packets.
    fn next_answer(&mut self, _terminal: u32, _now: u64, _queue: Option<OneQueue<'_>>) -> Option<Drawn> {
        None
    }

    /// An answer that may pass the access at the head of a terminal's queue, while that waits for its translation.
    fn next_passing(&mut self, _terminal: u32, _queue: Option<OneQueue<'_>>) -> Option<Drawn> {
        None
    }

    /// Has a terminal an answer to send, now or later?
    fn has_pending_reply(&self, _terminal: u32) -> bool {
        false
    }

    /// Fetches what the cycles of a window look at for a block of terminals whose state is far.
    fn prefetch_block(&self, _block: u32) {}

    /// A packet of this feed stands at the head of a terminal's queue from now on. Told only if [`Self::wants_packet_events`].
    fn began(&mut self, _drawn: &Drawn, _terminal: u32, _now: u64) {}

    /// Does the feed ask for [`Self::began`] and [`Self::packet_arrived`]?
    fn wants_packet_events(&self) -> bool {
        true
    }

    /// A packet that this feed has drawn will not be sent, nor answered.
    fn dropped(&mut self, _drawn: &Drawn, _terminal: u32, _now: u64) {}

    /// The tail of a packet, of this feed or of another, has left a terminal. May the terminal have another packet before the feed wakes it?
    fn tail_left(&mut self, left: &Left) -> bool;

    /// Fetches what [`Self::tail_left`] will look at for a terminal.
    fn prefetch_tail_left(&self, _terminal: u32) {}

    /// A head has come to a router. Told only if [`Self::wants_head_events`].
    fn on_head_at_router(&mut self, _head: &HeadAtRouter) {}

    /// Does the feed ask for [`Self::on_head_at_router`]?
    fn wants_head_events(&self) -> bool {
        false
    }

    /// A packet that a terminal has sent is lost. Will the feed have it sent again? `serial` is the packet's running number there.
    fn lost(&mut self, _drawn: Drawn, _terminal: u32, _serial: u32, _now: u64) -> bool {
        false
    }

    /// The tail of a packet of this feed has arrived. Told only if [`Self::wants_packet_events`].
    fn packet_arrived(&mut self, arrival: &Arrival<'_>, queues: &mut Queues);

    /// A cycle of a block of terminals begins: wakes those that have a packet from this cycle on.
    fn begin_cycle(&mut self, _block: u32, _now: u64, _queues: &mut Queues) {}

    /// A cycle of a block of terminals has ended: answers to what has happened there before cycle `next`, if the feed does so block by block.
    fn end_cycle(&mut self, _block: u32, _next: u64, _queues: &mut Queues) {}

    /// A message from another tile has come, in the window in which it was written.
    fn take_message(&mut self, _letter: &EdgeMessage, _queues: &mut Queues) {}

    /// A message of the closed workload is to be sent.
    fn take_request(&mut self, _order: &SendRequest, _queues: &mut Queues) {}

    /// Appends the messages of the closed workload that have left and arrived since the last time.
    fn report_completions(&mut self, _into: &mut Completions) {}

    /// Does the feed ask for [`Self::proceed`]?
    fn proceeds(&self) -> bool {
        false
    }

    /// Answers to what has happened before cycle `now`, if it asks for that: wakes terminals, and frees places in sinks ([`Queues::freed`]).
    fn proceed(&mut self, _now: u64, _queues: &mut Queues) {}

    /// Logical nodes have moved: what is theirs and not drawn goes with them. Only users with a workload or with batches are told of.
    fn nodes_moved(&mut self, _moves: &Moves<'_>, _queues: &mut Queues) {}

    /// The next cycle from `now` on in which the feed does something by itself, at most `limit`, in an idle network.
    ///
    /// # Errors
    /// It waits for what will never happen.
    fn next_due(&self, now: u64, limit: u64) -> Result<u64, EngineError>;

    /// Does the feed do nothing before a packet moves, or the next thing is due?
    fn is_idle(&self) -> bool {
        true
    }

    /// Will places in sinks become free, although no packet moves?
    fn will_free_sink(&self) -> bool {
        false
    }

    /// Will the feed have something sent again that was lost?
    fn has_retransmissions(&self) -> bool {
        false
    }

    /// Will the feed do something by itself, at whatever time?
    fn has_pending_timer(&self) -> bool {
        false
    }

    /// Does the feed end by itself, so that the run ends with it?
    fn ends(&self) -> bool;

    /// What has to arrive or to end before the run ends: 0 over all tiles when everything has. Negative where a tile has taken more than it
    /// sends.
    fn outstanding(&self) -> i64;

    /// Flits that are sure to arrive before [`Self::outstanding`] is 0, over all tiles.
    fn outstanding_flits(&self) -> i64 {
        0
    }

    /// Batches: have all packets of some terminal arrived? One that has none to send does not count.
    fn has_first_finished(&self) -> bool {
        false
    }

    /// The packets that were created before cycle `now`, which begins, and that are next to be drawn.
    fn backlog(&self, _now: u64) -> Backlog {
        Backlog::default()
    }

    /// Begins to wait for packets: counts those that are created and not drawn ([`Self::undrained`]), and returns how many answers are
    /// waited for that are not drawn.
    fn drain(&mut self, _drain: Drain) -> u64 {
        0
    }

    /// Packets that draining waits for and that have no number yet, answers excepted.
    fn undrained(&self) -> u64 {
        0
    }

    /// Packets that are drawn and have no number yet.
    fn held(&self) -> u64 {
        0
    }

    /// Draws the phases of sources that have one anew, from cycle `now` on.
    fn redraw_phases(&mut self, _now: u64) {}

    /// Throws away what is counted while measuring.
    fn clear(&mut self) {}

    /// By sink's slot, counted from the first: flits that have arrived and stay in its buffer. `None` where none stay.
    fn held_flits(&self, _slots: usize) -> Option<Vec<u32>> {
        None
    }

    /// A law of its own that the feed has broken before cycle `now`, if any.
    fn broken(&self, _now: u64) -> Option<String> {
        None
    }

    /// What is to be told at the end.
    fn report(&mut self, _report: &mut Report) {}
}
