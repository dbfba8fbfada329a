//! One cycle of a block of terminals: sinks take flits, sources take credits, create packets and send one flit each.
//!
//! What happens once per flit is a flat loop over a list of slots and touches one record of 32 bytes; what happens once per
//! packet (drawing it, choosing its virtual channel) is done for the terminals in a list.

use crate::edge::ejection::Ejection;
use crate::edge::injection::Injection;
use crate::edge::memories::Memories;
use crate::record::prefetch::prefetch;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::compiled::Parameters;
use crate::state::layout::RouterLayout;
use crate::state::packets::Gaps;
use crate::state::tile::{Links, NONE, Tile, put_back};
use kasuri_network::memory::Column;
use std::ops::Range;

/// Events between asking for a cache line and its use: a memory access takes as long as a few of them.
pub(crate) const PREFETCH_DISTANCE: usize = 12;

/// The terminals' virtual channels. Slots are counted from the first terminal's.
pub(crate) struct Terminals<M> {
    pub(crate) injection: Column<Injection>,
    pub(crate) ejection: Column<Ejection>,
    /// One bit per slot: has it a packet to send? has it a credit?
    pub(crate) sending: Column<u64>,
    pub(crate) creditable: Column<u64>,
    /// Senders of each block, and whether one of them can send in the next cycle without a new event.
    pub(crate) senders: Vec<u32>,
    pub(crate) ready: Vec<bool>,
    /// By terminal: virtual channels of the injection port that no packet holds.
    pub(crate) free: Column<M>,
    /// By terminal: does the head of its queue find no virtual channel?
    pub(crate) blocked: Column<bool>,
    /// By terminal: cycle from which the injection channel is free; empty unless some channel needs several cycles for a flit.
    pub(crate) busy_until: Column<u64>,
    /// Words of a block.
    pub(crate) block_words: u32,
    /// What the hosts of the terminals share, if they do.
    pub(crate) memories: Option<Box<Memories>>,
}

impl<M: VcMask> Terminals<M> {
    pub(crate) fn new(terminals: u32, parameters: &Parameters, memories: Option<Box<Memories>>) -> Self {
        let slots = (terminals as usize) << M::SHIFT;
        let blocks = (parameters.blocks - parameters.router_blocks) as usize;
        let injection = Injection {
            last: 0,
            packet: NONE,
            to: NONE,
            delay: 0,
            index: 0,
            left: 0,
            settled: 0,
            credits: parameters.buffer_flits,
            gaps: Gaps::Usual,
        };
        let ejection = Ejection {
            clock: 0,
            packet: NONE,
            to: NONE,
            delay: 0,
            index: 0,
            left: 0,
            settled: 0,
            counted: false,
            held: false,
            gaps: Gaps::Usual,
        };
        Self {
            injection: Column::filled(slots, injection),
            ejection: Column::filled(slots, ejection),
            sending: Column::filled(slots.div_ceil(64), 0),
            creditable: Column::filled(slots.div_ceil(64), u64::MAX),
            senders: vec![0; blocks],
            ready: vec![false; blocks],
            free: Column::filled(terminals as usize, M::range(0, parameters.virtual_channels)),
            blocked: Column::filled(terminals as usize, false),
            busy_until: Column::filled(if parameters.periodic { terminals as usize } else { 0 }, 0),
            block_words: 1 << (parameters.block_shift - 6),
            memories,
        }
    }

    /// Bytes of such terminals.
    pub(crate) fn bytes(terminals: u32) -> usize {
        let slots = (terminals as usize) << M::SHIFT;
        slots * (size_of::<Injection>() + size_of::<Ejection>()) + slots / 4 + terminals as usize * (size_of::<M>() + 9)
    }

    /// Copies the links of a terminal's port into its slots.
    pub(crate) fn connect(&mut self, terminal: u32, links: &Links) {
        for vc in 0..M::BITS {
            let slot = terminal << M::SHIFT | vc;
            (self.injection[slot].to, self.injection[slot].delay) = (links.flit_link.wrapping_add(vc), links.flit_delay);
            (self.ejection[slot].to, self.ejection[slot].delay) = (links.credit_link.wrapping_add(vc), links.credit_delay);
        }
    }

    /// Can no source send in the next cycle without a new event, and waits nothing for a memory?
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        !self.ready.iter().any(|&ready| ready) && self.memories.as_ref().is_none_or(|memories| memories.is_idle())
    }

    #[inline(always)]
    pub(crate) fn start_sending(&mut self, slot: u32) {
        self.sending[slot >> 6] |= 1 << (slot & 63);
        self.senders[(slot >> 6 >> self.block_words.trailing_zeros()) as usize] += 1;
    }

    #[inline(always)]
    pub(crate) fn stop_sending(&mut self, slot: u32) {
        self.sending[slot >> 6] &= !(1 << (slot & 63));
        self.senders[(slot >> 6 >> self.block_words.trailing_zeros()) as usize] -= 1;
    }

    /// The slots of a block that have a flit and a credit, appended to `into`.
    #[inline(always)]
    pub(crate) fn list_ready(&self, block: u32, into: &mut Vec<u32>) {
        for word in block * self.block_words..((block + 1) * self.block_words).min(self.sending.len() as u32) {
            let mut bits = self.sending[word] & self.creditable[word];
            while bits != 0 {
                into.push(word << 6 | bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// May one of these slots, or of those beside them, send? If not, none can.
    #[inline(always)]
    pub(crate) fn may_send(&self, slots: Range<u32>) -> bool {
        (slots.start >> 6..slots.end.div_ceil(64)).any(|word| self.sending[word] & self.creditable[word] != 0)
    }

    /// Has the buffer behind a slot room for a flit?
    #[inline(always)]
    pub(crate) fn has_credit(&self, slot: u32) -> bool {
        self.creditable[slot >> 6] & 1 << (slot & 63) != 0
    }

    /// Of some virtual channels of a terminal, at least those whose buffer has room for a flit. Only for buffers that are not shared.
    #[inline(always)]
    pub(crate) fn with_credit(&self, terminal: u32, channels: M) -> M {
        if M::BITS > u64::BITS {
            return channels;
        }
        let slot = terminal << M::SHIFT;
        channels.and(M::from_bits(self.creditable[slot >> 6] >> (slot & 63)))
    }

    /// Is a terminal's channel into the network still taken by the flit before?
    pub(crate) fn is_busy(&self, terminal: u32, now: u64) -> bool {
        self.busy_until.len() > terminal as usize && self.busy_until[terminal] > now
    }

    /// Notes whether a terminal waits for a credit.
    pub(crate) fn set_blocked(&mut self, terminal: u32, blocked: bool) {
        self.blocked[terminal] = blocked;
    }

    /// Notes whether a source of the block can send again in the next cycle.
    #[inline(always)]
    pub(crate) fn note_ready(&mut self, block: u32) {
        let words = block * self.block_words..((block + 1) * self.block_words).min(self.sending.len() as u32);
        self.ready[block as usize] = words.into_iter().any(|word| self.sending[word] & self.creditable[word] != 0);
    }
}

impl<L: RouterLayout> Tile<'_, L> {
    /// Advances a block of terminals, counted from the first such block, through cycle `now`.
    #[inline(always)]
    pub(crate) fn terminal_cycle(&mut self, block: u32, now: u64) {
        let mut events = std::mem::take(&mut self.in_flight.due);
        self.in_flight.arrivals.take(now, self.parameters.router_blocks + block, &mut events);
        self.statistics.interval.accepted_flits += events.len() as u64 * u64::from(!self.statistics.counts_whole_packets);
        self.statistics.balance.flits_inside -= events.len() as i64;
        self.statistics.balance.flits_in_flight -= events.len() as i64;
        let first_slot = self.first_terminal_slot();
        for position in 0..events.len() {
            self.prefetch_sink(&events, position);
            let slot = events[position] - first_slot;
            if self.parameters.enters_at_once { self.sink_at_once(slot, now) } else { self.sink(slot, now) }
        }
        events.clear();
        self.credit_sources(block, now, &mut events);
        self.edge.begin_cycle(block, now);
        if self.edge.queues.by_class.is_some() {
            self.serve_class_queues(block, now);
        } else {
            self.serve_queues(block, now);
            self.send_flits(block, now, &mut events);
        }
        self.edge.end_cycle(block, now + 1);
        put_back(&mut self.in_flight.due, events);
    }

    /// The sources of a block take the credits of cycle `now`. `events` is memory to use.
    #[inline(always)]
    pub(crate) fn credit_sources(&mut self, block: u32, now: u64, events: &mut Vec<u32>) {
        let first_slot = self.first_terminal_slot();
        self.in_flight.credits.take(now, self.parameters.router_blocks + block, events);
        for position in 0..events.len() {
            if let Some(&slot) = events.get(position + 3 * PREFETCH_DISTANCE) {
                prefetch(&self.terminals.injection[slot - first_slot]);
            }
            self.credit_source(events[position] - first_slot);
        }
        events.clear();
    }

    /// Adds the flits of packets that have entered or left in part to the counters. What has passed since then is added at the
    /// tail, so that a flit touches no counter of its own.
    pub(crate) fn settle_terminals(&mut self) {
        for slot in 0..self.terminals.injection.len() as u32 {
            let terminal = slot >> L::Mask::SHIFT;
            let source = &mut self.terminals.injection[slot];
            self.wiring.links[self.parameters.first_terminal_port + terminal].sent += u32::from(source.index - source.settled);
            source.settled = source.index;
            self.settle_sink(slot);
        }
    }
}
