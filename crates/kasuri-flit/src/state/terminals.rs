//! The terminals' virtual channels.

use crate::record::links::Links;
use crate::record::marks::NONE;
use crate::record::packet::Gaps;
use crate::record::vc_mask::VcMask;
use crate::state::memories::Memories;
use crate::state::parameters::Parameters;
use kasuri_network::memory::Column;
use std::ops::Range;

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

/// The source's side of a virtual channel between a terminal and its router. 32 bytes, within one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Injection {
    /// Cycle in which the last flit entered (its low 32 bits: only differences are used).
    pub(crate) last: u32,
    /// The packet that enters.
    pub(crate) packet: u32,
    /// Input slot of the router.
    pub(crate) to: u32,
    /// Cycles until a flit can be used there.
    pub(crate) delay: u16,
    /// Flits that have entered, that have not, and those that `Links::sent` holds already.
    pub(crate) index: u16,
    pub(crate) left: u16,
    pub(crate) settled: u16,
    /// Free places in the router's buffer.
    pub(crate) credits: u16,
    /// What is known of the packet's gaps.
    pub(crate) gaps: Gaps,
}

/// The sink's side of a virtual channel between a router and a terminal. 32 bytes, within one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Ejection {
    /// Cycle in which the flit that arrived last was injected (its low 32 bits).
    pub(crate) clock: u32,
    /// The packet that arrives.
    pub(crate) packet: u32,
    /// Output slot of the router.
    pub(crate) to: u32,
    /// Cycles until a credit can be used there.
    pub(crate) delay: u16,
    /// Flits that have arrived, that have not, and those that `Statistics::accepted` holds already.
    pub(crate) index: u16,
    pub(crate) left: u16,
    pub(crate) settled: u16,
    /// Does the present phase count the packet?
    pub(crate) counted: bool,
    /// Does it stay in the buffer until an interface takes it?
    pub(crate) held: bool,
    /// What is known of the packet's gaps.
    pub(crate) gaps: Gaps,
}
