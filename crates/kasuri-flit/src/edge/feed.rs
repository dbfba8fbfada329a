//! What feeds the terminals' queues with packets, as one trait.

use super::queues::Queues;
use crate::tile::Packet;
use kasuri_model::engine::{EngineError, Interfaces, UserOutcome};
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Stream;
use kasuri_workload::timeline::Span;
use kasuri_workload::translation::Table;
use std::ops::Range;

/// What translation calls the access that a packet belongs to: its place, and how often that place has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessId {
    pub(crate) place: u32,
    pub(crate) generation: u32,
}

/// A packet that was drawn for the head of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) created: u64,
    /// The cycle that decides whether it is measured: `created` or, of an answer, that of the packet that it answers.
    pub(crate) asked: u64,
    pub(crate) destination: TerminalId,
    pub(crate) flits: u32,
    pub(crate) class: u8,
    pub(crate) is_reply: bool,
    /// The access that it belongs to, where node numbers are translated.
    pub(crate) access: AccessId,
    /// The record of the message that it is a part of, or [`NONE`](crate::tile::NONE).
    pub(crate) message: u32,
}

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
    pub(crate) packet: u32,
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
    /// The access that it belongs to, where node numbers are translated.
    pub(crate) access: AccessId,
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
    /// Is a drawn packet waited for, and not yet? Answers are waited for since what they answer has been.
    #[inline(always)]
    pub(crate) fn covers(&self, drawn: &Drawn) -> bool {
        drawn.created < self.before && drawn.created >= self.from && !drawn.is_reply
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
    pub(crate) timeline: Vec<Span>,
    pub(crate) interfaces: Option<Interfaces>,
    pub(crate) users: Vec<UserOutcome>,
}

/// What feeds the queues of all terminals with packets, and hears what becomes of them. A feed knows no router. What it is told in a cycle
/// has consequences in the next one.
///
/// A feed that does not care about a question leaves the answer that stands here.
pub(crate) trait PacketFeed {
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
    fn owes_answer(&self, _terminal: u32) -> bool {
        false
    }

    /// A packet of this feed stands at the head of a terminal's queue under this number from now on.
    fn began(&mut self, _packet: u32, _drawn: &Drawn, _terminal: u32, _now: u64) {}

    /// A packet that this feed has drawn will not be sent, nor answered.
    fn dropped(&mut self, _drawn: &Drawn, _terminal: u32, _now: u64) {}

    /// The tail of a packet, of this feed or of another, has left a terminal. May the terminal have another packet before the feed wakes it?
    fn tail_left(&mut self, packet: u32, terminal: u32, now: u64) -> bool;

    /// A head has come to a router. Told only if [`Self::hears_heads`].
    fn head_came(&mut self, _router: u32, _record: &Packet, _now: u64) {}

    /// Does the feed ask for [`Self::head_came`]?
    fn hears_heads(&self) -> bool {
        false
    }

    /// The tail of a packet of this feed has arrived.
    fn packet_arrived(&mut self, arrival: &Arrival<'_>, queues: &mut Queues);

    /// A cycle of a block of terminals begins: wakes those that have a packet from this cycle on.
    fn begin_cycle(&mut self, _block: u32, _now: u64, _queues: &mut Queues) {}

    /// Answers to what has happened before cycle `now`: wakes terminals, and frees places in sinks ([`Queues::freed`]).
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
    fn frees_later(&self) -> bool {
        false
    }

    /// Does the feed end by itself, so that the run ends with it?
    fn ends(&self) -> bool;

    /// Has everything arrived and ended?
    fn is_done(&self) -> bool;

    /// Batches: have all packets of some terminal arrived? One that has none to send does not count.
    fn has_first_finished(&self) -> bool {
        false
    }

    /// Sum over all terminals of the cycles by which their next packet's creation lies before `now`.
    fn backlog_cycles(&self, _now: u64) -> u64 {
        0
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

    /// A law of its own that the feed has broken, if any.
    fn broken(&self) -> Option<String> {
        None
    }

    /// What is to be told at the end.
    fn report(&mut self, _report: &mut Report) {}
}
