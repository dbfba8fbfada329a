//! The layout for plain routers on processors with AVX-512: each counter is one byte, 64 virtual channels are one register.
//!
//! A *unit* of `W` words holds the virtual channels of one router of up to 512, or of several small routers side by side. One
//! visit of a unit takes its arrivals and credits, matches inputs and outputs by iSLIP of one iteration and moves the winners
//! without a branch that depends on the data; round-robin picks are minima of rotated addresses over the bytes of a port.
//! What is done once per packet uses the same code as the plain layout, after the visits of a block: the matching looks at
//! nothing that this code changes within the cycle.
//!
//! Limits (see `support.rs`): wormhole switching, release at the tail, switch allocation in the cycle after virtual-channel
//! allocation, a flit a cycle on every channel, at most 8 virtual channels, buffers and packets of at most 255 flits, a routing
//! that does not look at congestion (it would see the credits a few instructions later than in the plain layout).

use crate::fabric::cycle::RouterCycle;
use crate::record::links::Links;
use crate::record::list::put_back;
use crate::record::marks::NONE;
use crate::record::options::LayoutName;
use crate::record::prefetch::{FLITS_AHEAD, POSTS_AHEAD, prefetch};
use crate::record::rings::Queue;
use crate::record::slots::{InputSlot, OutputSlot};
use crate::record::vc_mask::VcMask;
use crate::record::wheel::{BitWheel, Wheel};
use crate::state::layout::RouterState;
use crate::state::parameters::Parameters;
use crate::state::tile::Tile;
use kasuri_network::memory::{Column, filled};
use std::arch::x86_64::*;

/// A byte for each of 64 virtual channels.
type Bytes = [u8; 64];

/// The virtual channels of one large or several small routers. An index is that of the slot within the unit: a byte, and in units of more
/// than four words a ninth bit, which stands in a word of its own.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Unit<const W: usize> {
    /// By input slot: flits in the buffer, flits of the front packet that have not left, and the output slot that it holds.
    flits: [Bytes; W],
    left: [Bytes; W],
    output: [Bytes; W],
    output_high: [u64; W],
    /// By output slot: free places downstream, and the input slot that holds it.
    credits: [Bytes; W],
    holder: [Bytes; W],
    holder_high: [u64; W],
    /// Round-robin pointers, equal for all slots of a port. Of an output port: the input port. Of an input port: the output
    /// port, and in the low bits, which the port's number leaves free, the virtual channel.
    grant: [Bytes; W],
    accept: [Bytes; W],
    accept_high: [u64; W],
    /// Input slots whose front packet holds an output slot.
    active: [u64; W],
    /// Output slots that nobody holds, and those that exist.
    free: [u64; W],
    connected: [u64; W],
    /// Output slots that have all but a credit: only for these does a credit alone ask for a visit.
    stalled: [u64; W],
}

/// Places for packets behind the front one that stand beside an [`InputSlot`]: as many as fill the record to half a cache line.
const PLACES_BEHIND: usize = 2;

/// What is done once per packet at an input slot needs this: 32 bytes.
#[derive(Clone, Copy, Debug, Default)]
struct InputRecord {
    packet: InputSlot,
    behind: [u32; PLACES_BEHIND],
}

/// The records of two neighbours: a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct InputPair([InputRecord; 2]);

/// The units and the scratch lists of a block.
pub(crate) struct Avx512<M, const W: usize> {
    units: Box<[Unit<W>]>,
    /// By unit: its words up to the last one that has a connected slot.
    used: Box<[u8]>,
    input: Column<InputPair>,
    output: Column<OutputSlot>,
    /// Units that have work without a new event.
    busy: Box<[bool]>,
    block_busy: Box<[bool]>,
    units_per_block_shift: u32,
    /// Within a cycle of a block: input slots and output slots of the flits that move, input slots of tails.
    leaving: Box<[u32]>,
    entering: Box<[u32]>,
    tails: Vec<u32>,
    destinations: Destinations,
    mask: std::marker::PhantomData<M>,
}

/// Where moves go.
enum Destinations {
    /// As each port says: what of its [`Links`] every move needs.
    PerPort(Column<Ends>),
    /// Every flit and every credit takes the same time, and a port's flits go where its credits go, as on links of two equal
    /// channels: one address per port says it all.
    Uniform { link: Column<u32>, flit_delay: u32, credit_delay: u32 },
}

/// Where the flits and the credits of a port go, to the slot of its first virtual channel, and how long they take, cycles. 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Ends {
    flit_link: u32,
    credit_link: u32,
    flit_delay: u16,
    credit_delay: u16,
}

impl Ends {
    const NOWHERE: Self = Self { flit_link: NONE, credit_link: NONE, flit_delay: 0, credit_delay: 0 };
}

impl<M: VcMask, const W: usize> Avx512<M, W> {
    /// log2 of the slots that a unit takes in the address space: `W` words, rounded up to a power of two.
    const UNIT_SHIFT: u32 = 6 + (W as u32).next_power_of_two().trailing_zeros();

    /// Unit, word and bit of a slot.
    #[inline(always)]
    fn place(slot: u32) -> (usize, usize, u32) {
        let within = slot & ((1 << Self::UNIT_SHIFT) - 1);
        ((slot >> Self::UNIT_SHIFT) as usize, (within >> 6) as usize, within & 63)
    }

    #[inline(always)]
    fn first_slot(slot: u32) -> u32 {
        slot & !((1 << Self::UNIT_SHIFT) - 1)
    }

    #[inline(always)]
    fn byte(&self, column: impl Fn(&Unit<W>) -> &[Bytes; W], slot: u32) -> u32 {
        let (unit, word, bit) = Self::place(slot);
        // Units of three words take the addresses of four, and of six those of eight.
        column(&self.units[unit]).get(word).map_or(0, |bytes| u32::from(bytes[bit as usize]))
    }

    #[inline(always)]
    fn record_mut(&mut self, slot: u32) -> &mut InputRecord {
        &mut self.input[slot >> 1].0[(slot & 1) as usize]
    }

    /// The slot of the same unit that two columns name.
    #[inline(always)]
    fn slot_in(&self, low: impl Fn(&Unit<W>) -> &[Bytes; W], high: impl Fn(&Unit<W>) -> &[u64; W], slot: u32) -> u32 {
        let (unit, word, bit) = Self::place(slot);
        let ninth = if W > 4 { high(&self.units[unit]).get(word).map_or(0, |bits| bits >> bit & 1) } else { 0 };
        Self::first_slot(slot) | self.byte(low, slot) | (ninth as u32) << 8
    }

    /// Notes that a slot is connected, and returns its place.
    fn use_slot(&mut self, slot: u32) -> (usize, usize, u32) {
        let (unit, word, bit) = Self::place(slot);
        self.used[unit] = self.used[unit].max(word as u8 + 1);
        (unit, word, bit)
    }

    /// The output slot that the front packet of an input slot holds, if it holds one.
    #[inline(always)]
    fn output_of(&self, slot: u32) -> u32 {
        self.slot_in(|unit| &unit.output, |unit| &unit.output_high, slot)
    }
}

impl<M: VcMask, const W: usize> RouterState for Avx512<M, W> {
    type Mask = M;
    type Wheel = BitWheel;
    const LAYOUT: LayoutName = LayoutName::Avx512;
    /// Twice as many as elsewhere, since its state is smaller: trees of up to a million terminals and tori run 1.02 to 1.12 times as fast.
    const BLOCK_SLOTS_SHIFT: u32 = 15;

    /// Routers of up to 64 slots share units, so they lie at multiples of a power of two; larger ones have a unit each.
    fn reserved_slots(_slots: u32, widest: u32) -> u32 {
        if W == 1 { widest.next_power_of_two() } else { 1 << Self::UNIT_SHIFT }
    }

    fn new(parameters: &Parameters, ports: u32, all_ports: u32) -> Self {
        let empty = Unit {
            flits: [[0; 64]; W],
            left: [[0; 64]; W],
            output: [[0; 64]; W],
            output_high: [0; W],
            credits: [[0; 64]; W],
            holder: [[0; 64]; W],
            holder_high: [0; W],
            grant: [[0; 64]; W],
            accept: [[0; 64]; W],
            accept_high: [0; W],
            active: [0; W],
            free: [0; W],
            connected: [0; W],
            stalled: [0; W],
        };
        let units = ((ports << M::SHIFT) >> Self::UNIT_SHIFT) as usize;
        let block_slots = (1usize << parameters.block_shift).min((ports as usize) << M::SHIFT);
        Self {
            units: filled(units, empty),
            used: vec![0; units].into_boxed_slice(),
            input: Column::filled(((all_ports as usize) << M::SHIFT).div_ceil(2), InputPair::default()),
            output: Column::filled((ports as usize) << M::SHIFT, OutputSlot::default()),
            busy: vec![false; units].into_boxed_slice(),
            block_busy: vec![false; parameters.router_blocks as usize].into_boxed_slice(),
            units_per_block_shift: parameters.block_shift - Self::UNIT_SHIFT,
            // Vectors of 16 addresses are stored whole, so the lists have room for some beyond their end.
            leaving: vec![0; block_slots + 64].into_boxed_slice(),
            entering: vec![0; block_slots + 64].into_boxed_slice(),
            tails: Vec::new(),
            destinations: Destinations::PerPort(Column::filled(0, Ends::NOWHERE)),
            mask: std::marker::PhantomData,
        }
    }

    fn bytes(parameters: &Parameters, ports: u32, all_ports: u32) -> usize {
        let (slots, all_slots) = ((ports as usize) << M::SHIFT, (all_ports as usize) << M::SHIFT);
        let units = (slots >> Self::UNIT_SHIFT) * (size_of::<Unit<W>>() + 2);
        let lists = 8 * ((1usize << parameters.block_shift).min(slots) + 64);
        units
            + all_slots.div_ceil(2) * size_of::<InputPair>()
            + slots * size_of::<OutputSlot>()
            + lists
            + size_of::<Ends>() * all_ports as usize
    }

    #[inline(always)]
    fn input_slot(&self, slot: u32) -> &InputSlot {
        &self.input[slot >> 1].0[(slot & 1) as usize].packet
    }

    #[inline(always)]
    fn input_slot_mut(&mut self, slot: u32) -> &mut InputSlot {
        &mut self.record_mut(slot).packet
    }

    #[inline(always)]
    fn queue_mut(&mut self, slot: u32) -> (&mut Queue, &mut [u32]) {
        let record = self.record_mut(slot);
        (&mut record.packet.queue, &mut record.behind)
    }

    #[inline(always)]
    fn output_slot(&self, slot: u32) -> &OutputSlot {
        &self.output[slot]
    }

    #[inline(always)]
    fn output_slot_mut(&mut self, slot: u32) -> &mut OutputSlot {
        &mut self.output[slot]
    }

    fn connect_output(&mut self, port: u32, first: u32, parameters: &Parameters) {
        let local_first = ((first << M::SHIFT) - Self::first_slot(first << M::SHIFT)) >> M::SHIFT;
        for vc in 0..M::BITS {
            let (unit, word, bit) = self.use_slot(port << M::SHIFT | vc);
            let unit = &mut self.units[unit];
            unit.grant[word][bit as usize] = local_first as u8;
            if vc < parameters.virtual_channels {
                unit.connected[word] |= 1 << bit;
                unit.free[word] |= 1 << bit;
                unit.credits[word][bit as usize] = parameters.buffer_flits as u8;
            }
        }
    }

    fn connect_input(&mut self, port: u32, first: u32) {
        let local_first = ((first << M::SHIFT) - Self::first_slot(first << M::SHIFT)) >> M::SHIFT;
        for vc in 0..M::BITS {
            let (unit, word, bit) = self.use_slot(port << M::SHIFT | vc);
            let pointer = local_first << M::SHIFT;
            let unit = &mut self.units[unit];
            unit.accept[word][bit as usize] = pointer as u8;
            set_bit(&mut unit.accept_high[word], bit, pointer > 255);
        }
    }

    fn connect_links(&mut self, links: &Column<Links>) {
        let ports = (self.units.len() << Self::UNIT_SHIFT) >> M::SHIFT;
        let connected = || links.iter().take(ports).filter(|link| link.flit_link != NONE || link.credit_link != NONE);
        let Some(first) = connected().next() else { return };
        let same = |link: &Links| {
            link.flit_link == link.credit_link && link.flit_delay == first.flit_delay && link.credit_delay == first.credit_delay
        };
        if connected().all(same) {
            let mut link = Column::filled(ports, NONE);
            link.iter_mut().zip(links.iter()).for_each(|(link, links)| *link = links.flit_link);
            let (flit_delay, credit_delay) = (u32::from(first.flit_delay), u32::from(first.credit_delay));
            self.destinations = Destinations::Uniform { link, flit_delay, credit_delay };
        } else {
            let mut ends = Column::filled(ports, Ends::NOWHERE);
            for (ends, &Links { flit_link, credit_link, flit_delay, credit_delay, .. }) in ends.iter_mut().zip(links.iter()) {
                *ends = Ends { flit_link, credit_link, flit_delay, credit_delay };
            }
            self.destinations = Destinations::PerPort(ends);
        }
    }

    fn collect_sent(&mut self, links: &mut Column<Links>) {
        for unit in 0..self.units.len() {
            for word in 0..W {
                let mut active = self.units[unit].active[word];
                while active != 0 {
                    let slot = (unit << Self::UNIT_SHIFT) as u32 + 64 * word as u32 + active.trailing_zeros();
                    active &= active - 1;
                    let output = self.output_of(slot);
                    let left = self.left(slot) as u16;
                    let input = self.input_slot_mut(slot);
                    let gone = input.length - left;
                    links[output >> M::SHIFT].sent += u32::from(gone - input.settled);
                    input.settled = gone;
                }
            }
        }
    }

    fn flits(&self, slot: u32) -> u32 {
        self.byte(|unit| &unit.flits, slot)
    }

    fn held_output(&self, slot: u32) -> u32 {
        let (unit, word, bit) = Self::place(slot);
        if word >= W || self.units[unit].active[word] >> bit & 1 == 0 {
            return NONE;
        }
        self.output_of(slot)
    }

    fn left(&self, slot: u32) -> u32 {
        self.byte(|unit| &unit.left, slot)
    }

    #[inline(always)]
    fn set_left(&mut self, slot: u32, flits: u16) {
        let (unit, word, bit) = Self::place(slot);
        self.units[unit].left[word][bit as usize] = flits as u8;
    }

    fn credits(&self, slot: u32) -> u32 {
        self.byte(|unit| &unit.credits, slot)
    }

    fn holder(&self, slot: u32) -> u32 {
        let (unit, word, bit) = Self::place(slot);
        if word >= W {
            return NONE;
        }
        let held = self.units[unit].connected[word] & !self.units[unit].free[word];
        if held >> bit & 1 == 0 {
            return NONE;
        }
        self.slot_in(|unit| &unit.holder, |unit| &unit.holder_high, slot)
    }

    #[inline(always)]
    fn free(&self, port: u32) -> M {
        let (unit, word, bit) = Self::place(port << M::SHIFT);
        M::from_bits(self.units[unit].free[word] >> bit)
    }

    #[inline(always)]
    fn hold(&mut self, head: u32, output: u32) {
        let (unit, head_word, head_bit) = Self::place(head);
        let (_, word, bit) = Self::place(output);
        let record = &mut self.units[unit];
        record.free[word] &= !(1 << bit);
        record.active[head_word] |= 1 << head_bit;
        let (head, output) = (head - Self::first_slot(head), output - Self::first_slot(output));
        record.holder[word][bit as usize] = head as u8;
        record.output[head_word][head_bit as usize] = output as u8;
        if W > 4 {
            set_bit(&mut record.holder_high[word], bit, head > 255);
            set_bit(&mut record.output_high[head_word], head_bit, output > 255);
        }
        self.busy[unit] = true;
        self.block_busy[unit >> self.units_per_block_shift] = true;
    }

    #[inline(always)]
    fn set_free(&mut self, output: u32) {
        let (unit, word, bit) = Self::place(output);
        self.units[unit].free[word] |= 1 << bit;
    }

    fn is_ready(&self, _output: u32) -> Option<bool> {
        None
    }

    #[inline(always)]
    fn is_idle(&self, block: u32) -> bool {
        !self.block_busy[block as usize]
    }
}

impl<M: VcMask, const W: usize> RouterCycle for Avx512<M, W> {
    #[inline(always)]
    fn router_cycle(tile: &mut Tile<'_, Self>, block: u32, now: u64) {
        // SAFETY: this layout is chosen only where `facts::can_use_vectors()`.
        unsafe { tile.vector_cycle(block, now) }
    }
}

impl<M: VcMask, const W: usize> Tile<'_, Avx512<M, W>> {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx512bitalg,bmi1,bmi2,popcnt,lzcnt")]
    fn vector_cycle(&mut self, block: u32, now: u64) {
        let mut lists = self.blocks.take(block);
        let moved = self.visit_units(block, now, &mut lists);
        self.post_moves(moved, now as u32);
        self.statistics.flit_hops += moved as u64;
        if self.parameters.route_cycles == 0 {
            self.route_heads(now, &mut lists);
            self.allocate_virtual_channels(&mut lists);
        } else {
            self.post_delayed_requests(now, &mut lists);
            self.allocate_virtual_channels(&mut lists);
            self.route_heads(now, &mut lists);
        }
        // Only now: what a tail frees in this cycle can be allocated in the next.
        let mut tails = std::mem::take(&mut self.layout.tails);
        for (position, &slot) in tails.iter().enumerate() {
            self.prefetch_release(&tails, position);
            let output = self.layout.output_of(slot);
            let settled = std::mem::take(&mut self.layout.input_slot_mut(slot).settled);
            self.wiring.links[output >> M::SHIFT].sent += u32::from(self.layout.input_slot(slot).length - settled);
            self.release(slot, output, &mut lists);
        }
        tails.clear();
        put_back(&mut self.layout.tails, tails);
        lists.turn();
        self.blocks.put_back(lists);
    }

    /// Fetches an input slot whose head or tail has been put on a list, which is worked on after all visits of the block.
    #[inline(always)]
    fn prefetch_listed(&self, slot: u32) {
        if self.parameters.is_far {
            self.layout.prefetch_input(slot);
        }
    }

    /// Fetches what the release of later tails of a list will look at, once their input slots are here: the packet behind in the queue, and
    /// the port.
    #[inline(always)]
    fn prefetch_release(&self, tails: &[u32], position: usize) {
        if !self.parameters.is_far {
            return;
        }
        if let Some(&slot) = tails.get(position + 2 * FLITS_AHEAD) {
            self.buffers.rings.prefetch_first(&self.layout.input_slot(slot).queue, PLACES_BEHIND, slot);
            let output = self.layout.output_of(slot);
            self.wiring.links[output >> M::SHIFT].prefetch();
        }
    }

    /// Visits the units of a block that have something to do. Returns the number of flits that move.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx512bitalg,bmi1,bmi2,popcnt,lzcnt")]
    fn visit_units(&mut self, block: u32, now: u64, lists: &mut crate::state::blocks::Block) -> usize {
        let shift = self.layout.units_per_block_shift;
        let first = (block as usize) << shift;
        let last = ((block as usize + 1) << shift).min(self.layout.units.len());
        let mut moves = Moves::default();
        let mut block_busy = false;
        for unit in first..last {
            if W > 1 {
                prefetch_unit(self.layout.units.get(unit + 1));
            }
            // Few routers fill all words: the widest ones may need one word less, and those at the top of a tree have half as many ports.
            // Each number of words is a visit of its own, so that its loops are unrolled.
            let used = self.layout.used[unit];
            block_busy |= match W {
                2 if used <= 1 => self.visit_unit::<1>(unit, now, lists, &mut moves),
                3 | 4 if used <= 2 => self.visit_unit::<2>(unit, now, lists, &mut moves),
                4 | 6 if used <= 3 => self.visit_unit::<3>(unit, now, lists, &mut moves),
                8 if used <= 4 => self.visit_unit::<4>(unit, now, lists, &mut moves),
                6 if used <= 5 => self.visit_unit::<5>(unit, now, lists, &mut moves),
                8 if used <= 7 => self.visit_unit::<7>(unit, now, lists, &mut moves),
                _ => self.visit_unit::<W>(unit, now, lists, &mut moves),
            };
        }
        debug_assert_eq!(moves.leaving, moves.entering, "every flit that leaves a buffer enters a channel");
        self.layout.block_busy[block as usize] = block_busy;
        moves.leaving
    }

    /// Visits a unit of which `N` words are used, if it has something to do. Has it something to do in the next cycle, too?
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx512bitalg,bmi1,bmi2,popcnt,lzcnt")]
    fn visit_unit<const N: usize>(&mut self, unit: usize, now: u64, lists: &mut crate::state::blocks::Block, moves: &mut Moves) -> bool {
        let first_word = unit << (Avx512::<M, W>::UNIT_SHIFT - 6);
        let (arrivals, credits) = (self.in_flight.arrivals.cycle_words(now), self.in_flight.credits.cycle_words(now));
        let (mut arrived, mut returned) = ([0u64; N], [0u64; N]);
        let (mut any_arrived, mut any_returned, mut wanted) = (0, 0, 0);
        for word in 0..N {
            // SAFETY: the wheels have a word for every 64 slots of the units.
            unsafe {
                let (arrival, credit) = (arrivals.add(first_word + word), credits.add(first_word + word));
                (arrived[word], returned[word]) = (*arrival, *credit);
                (*arrival, *credit) = (0, 0);
            }
            any_arrived |= arrived[word];
            any_returned |= returned[word];
            wanted |= returned[word] & self.layout.units[unit].stalled[word];
        }
        if !self.layout.busy[unit] && any_arrived | wanted == 0 {
            if any_returned != 0 {
                add_credits(&mut self.layout.units[unit], &returned);
            }
            return false;
        }
        let visit = visit::<M, W, N>(&mut self.layout.units[unit], &arrived, &returned);
        self.layout.busy[unit] = visit.busy;
        let base = (unit << Avx512::<M, W>::UNIT_SHIFT) as u32;
        for word in 0..N {
            let slots = base + 64 * word as u32;
            moves.leaving = compress(visit.winners[word], slots, &mut self.layout.leaving, moves.leaving);
            moves.entering = compress(visit.winning_outputs[word], slots, &mut self.layout.entering, moves.entering);
            let mut heads = visit.heads[word];
            while heads != 0 {
                self.prefetch_listed(slots + heads.trailing_zeros());
                lists.heads.push(slots + heads.trailing_zeros());
                heads &= heads - 1;
            }
            let mut tails = visit.tails[word];
            while tails != 0 {
                self.prefetch_listed(slots + tails.trailing_zeros());
                self.layout.tails.push(slots + tails.trailing_zeros());
                tails &= tails - 1;
            }
        }
        visit.busy
    }

    /// Posts the credits and flits of the moves found by `visit_units`.
    #[inline(always)]
    fn post_moves(&mut self, moved: usize, now: u32) {
        let layout = &self.layout;
        let (leaving, entering) = (&layout.leaving[..moved], &layout.entering[..moved]);
        let is_far = self.parameters.is_far;
        match &layout.destinations {
            Destinations::Uniform { link, flit_delay, credit_delay } => {
                let words = self.in_flight.credits.cycle_words(u64::from(now.wrapping_add(*credit_delay)));
                post_all::<M>(words, leaving, link, is_far);
                let words = self.in_flight.arrivals.cycle_words(u64::from(now.wrapping_add(*flit_delay)));
                post_all::<M>(words, entering, link, is_far);
            }
            Destinations::PerPort(ends) => {
                let credit = |ends: Ends| (now.wrapping_add(u32::from(ends.credit_delay)), ends.credit_link);
                post_each::<M>(&mut self.in_flight.credits, leaving, (ends, is_far), credit);
                let flit = |ends: Ends| (now.wrapping_add(u32::from(ends.flit_delay)), ends.flit_link);
                post_each::<M>(&mut self.in_flight.arrivals, entering, (ends, is_far), flit);
            }
        }
    }
}

/// Sets, in the words of one cycle, the bits of the slots at the other ends; where these are far, their words are fetched ahead.
#[inline(always)]
fn post_all<M: VcMask>(words: *mut u64, slots: &[u32], link: &Column<u32>, is_far: bool) {
    let address = |slot: u32| link[slot >> M::SHIFT] + (slot & (M::BITS - 1));
    for (position, &slot) in slots.iter().enumerate() {
        if let (true, Some(&later)) = (is_far, slots.get(position + POSTS_AHEAD)) {
            prefetch(words.wrapping_add((address(later) >> 6) as usize));
        }
        let address = address(slot);
        // SAFETY: the wheels have a word for every 64 slots of a cycle, and links lead to slots.
        unsafe { *words.add((address >> 6) as usize) |= 1 << (address & 63) };
    }
}

/// Posts what leaves each slot at the time and the first slot that its port says; where these are far, first what the ports say and then
/// the words are fetched ahead.
#[inline(always)]
fn post_each<M: VcMask>(wheel: &mut BitWheel, slots: &[u32], (ends, is_far): (&Column<Ends>, bool), of: impl Fn(Ends) -> (u32, u32)) {
    let post_of = |slot: u32| {
        let (time, first) = of(ends[slot >> M::SHIFT]);
        (time, first + (slot & (M::BITS - 1)))
    };
    for (position, &slot) in slots.iter().enumerate() {
        if is_far {
            if let Some(&later) = slots.get(position + 2 * POSTS_AHEAD) {
                prefetch(&ends[later >> M::SHIFT]);
            }
            if let Some(&later) = slots.get(position + POSTS_AHEAD) {
                let (time, address) = post_of(later);
                wheel.prefetch_post(time, address);
            }
        }
        let (time, address) = post_of(slot);
        wheel.post(time, address);
    }
}

/// Asks for the lines of a unit ahead of its visit: the units of a large network are in no near cache.
#[inline(always)]
fn prefetch_unit<const W: usize>(unit: Option<&Unit<W>>) {
    if let Some(unit) = unit {
        for line in 0..size_of::<Unit<W>>() / 64 {
            // SAFETY: prefetching has no effect on the program's state; the address lies within the unit.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(unit).cast::<i8>().add(64 * line)) };
        }
    }
}

/// Lengths of the lists `leaving` and `entering` while the units of a block are visited.
#[derive(Default)]
struct Moves {
    leaving: usize,
    entering: usize,
}

/// What one visit of a unit did, of which `N` words are used.
struct Visit<const N: usize> {
    /// Input slots that sent a flit, and the output slots by which it went.
    winners: [u64; N],
    winning_outputs: [u64; N],
    /// Input slots with a new head, and those whose tail left.
    heads: [u64; N],
    tails: [u64; N],
    /// Is there work in the next cycle whatever arrives?
    busy: bool,
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(bytes: &Bytes) -> __m512i {
    // SAFETY: 64 bytes are read from a reference to 64 bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store(bytes: &mut Bytes, value: __m512i) {
    // SAFETY: 64 bytes are written to a reference to 64 bytes.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), value) }
}

/// Replaces the bytes under a mask.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn replace(bytes: &mut Bytes, mask: u64, value: __m512i) {
    let old = load(bytes);
    store(bytes, _mm512_mask_mov_epi8(old, mask, value));
}

/// Credits that nobody waits for.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn add_credits<const W: usize, const N: usize>(unit: &mut Unit<W>, returned: &[u64; N]) {
    for (credits, &returned) in unit.credits.iter_mut().zip(returned) {
        let before = load(credits);
        store(credits, _mm512_mask_add_epi8(before, returned, before, _mm512_set1_epi8(1)));
    }
}

/// Sets or clears a bit of a word.
#[inline(always)]
fn set_bit(word: &mut u64, bit: u32, is_set: bool) {
    *word = *word & !(1 << bit) | u64::from(is_set) << bit;
}

/// A slot for each byte of a word of a unit of which `N` words are used: its low eight bits, and its ninth where these are more than four.
#[derive(Clone, Copy)]
struct Slots<const N: usize> {
    low: __m512i,
    high: u64,
}

impl<const N: usize> Slots<N> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn of<const W: usize>(low: &[Bytes; W], high: &[u64; W], word: usize) -> Self {
        Self { low: load(&low[word]), high: if N > 4 { high[word] } else { 0 } }
    }

    /// Adds to those whose ninth bit is set.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn add_high(self, value: __m512i, step: u32) -> __m512i {
        if N > 4 { _mm512_mask_add_epi8(value, self.high, value, _mm512_set1_epi8(step as i8)) } else { value }
    }

    /// The port of each slot.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn ports<M: VcMask>(self) -> __m512i {
        let count = _mm_cvtsi32_si128(M::SHIFT as i32);
        let ports = _mm512_and_si512(_mm512_srl_epi16(self.low, count), _mm512_set1_epi8((255u8 >> M::SHIFT) as i8));
        self.add_high(ports, 256 >> M::SHIFT)
    }

    /// Those whose bit is set out of the bits of all slots of the unit.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512bitalg")]
    fn bits_of(self, bits: __m512i) -> u64 {
        if N == 1 {
            return _mm512_bitshuffle_epi64_mask(bits, self.low);
        }
        // The byte in which the bit of a slot stands, and the bit within it.
        let byte = _mm512_and_si512(_mm512_srli_epi16(self.low, 3), _mm512_set1_epi8(31));
        let found = _mm512_permutexvar_epi8(self.add_high(byte, 32), bits);
        let powers = _mm512_set1_epi64(i64::from_le_bytes(std::array::from_fn(|bit| 1 << bit)));
        _mm512_test_epi8_mask(found, _mm512_shuffle_epi8(powers, _mm512_and_si512(self.low, _mm512_set1_epi8(7))))
    }

    /// The byte of each slot out of those of all slots of the unit.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn bytes_of(self, bytes: &[Bytes]) -> __m512i {
        let first = bytes_at(&bytes[..N.min(4)], self.low);
        if N > 4 { _mm512_mask_mov_epi8(first, self.high, bytes_at(&bytes[4..N], self.low)) } else { first }
    }
}

/// Bits of all slots of a unit as a table: those of one word in each of its parts, or one word after the other.
#[inline]
#[target_feature(enable = "avx512f")]
fn table<const N: usize>(bits: &[u64; N]) -> __m512i {
    let word = |word: usize| if N == 1 { bits[0] as i64 } else { bits.get(word).map_or(0, |&bits| bits as i64) };
    _mm512_set_epi64(word(7), word(6), word(5), word(4), word(3), word(2), word(1), word(0))
}

/// For each byte index, the byte of that number out of up to 256.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn bytes_at(bytes: &[Bytes], indices: __m512i) -> __m512i {
    let pair = |bytes: &[Bytes]| match bytes {
        [] => _mm512_setzero_si512(),
        [only] => _mm512_permutexvar_epi8(indices, load(only)),
        [first, second, ..] => _mm512_permutex2var_epi8(load(first), indices, load(second)),
    };
    if bytes.len() <= 2 {
        return pair(bytes);
    }
    _mm512_mask_mov_epi8(pair(bytes), _mm512_movepi8_mask(indices), pair(&bytes[2..]))
}

/// Byte indices with one bit of the lane's number within its 16 bytes turned.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn neighbour(distance: u8) -> __m512i {
    let indices: Bytes = std::array::from_fn(|lane| (lane as u8 % 16) ^ distance);
    load(&indices)
}

/// The least byte of each port, in all its layout.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn port_min<M: VcMask>(mut value: __m512i) -> __m512i {
    for step in 0..M::SHIFT {
        value = _mm512_min_epu8(value, _mm512_shuffle_epi8(value, neighbour(1 << step)));
    }
    value
}

/// The greatest byte of each port, in all its layout.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn port_max<M: VcMask>(mut value: __m512i) -> __m512i {
    for step in 0..M::SHIFT {
        value = _mm512_max_epu8(value, _mm512_shuffle_epi8(value, neighbour(1 << step)));
    }
    value
}

/// The ports of which some bit is set, with all their bits.
#[inline(always)]
fn spread<M: VcMask>(mut bits: u64) -> u64 {
    for step in 0..M::SHIFT {
        bits |= bits >> (1 << step);
    }
    let first_of_port = u64::MAX / ((1 << M::BITS) - 1);
    (bits & first_of_port) * ((1 << M::BITS) - 1)
}

/// The low bytes of the slots of virtual channels, modulo their number, at the ports that follow.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn low_slots<M: VcMask>(ports: __m512i, vc: __m512i) -> __m512i {
    let count = _mm_cvtsi32_si128(M::SHIFT as i32);
    // Whole words are shifted; what passes from one byte into its neighbour is cut off.
    let slots = _mm512_and_si512(_mm512_sll_epi16(ports, count), _mm512_set1_epi8((255u8 << M::SHIFT) as i8));
    _mm512_or_si512(slots, _mm512_and_si512(vc, _mm512_set1_epi8((M::BITS - 1) as i8)))
}

/// Keys whose least is the first port at or after the pointer, cyclically: how far the port lies behind it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn rotated(ports: __m512i, pointer: __m512i) -> __m512i {
    _mm512_sub_epi8(ports, pointer)
}

/// One cycle of a unit of which `N` words are used.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx512bitalg,bmi1,bmi2,popcnt,lzcnt")]
fn visit<M: VcMask, const W: usize, const N: usize>(unit: &mut Unit<W>, arrived: &[u64; N], returned: &[u64; N]) -> Visit<N> {
    let one = _mm512_set1_epi8(1);
    let none = _mm512_set1_epi8(-1);
    let low_bits = _mm512_set1_epi8((M::BITS - 1) as i8);
    let lane_vc: Bytes = std::array::from_fn(|lane| lane as u8 & (M::BITS - 1) as u8);
    let mut visit = Visit { winners: [0; N], winning_outputs: [0; N], heads: [0; N], tails: [0; N], busy: false };
    let active = unit.active;
    let mut held = [0; N];
    let (mut waiting, mut creditable) = ([0; N], [0; N]);
    let (mut flits, mut credits) = ([one; N], [one; N]);
    // Arrivals and credits.
    for word in 0..N {
        held[word] = unit.connected[word] & !unit.free[word];
        let before = load(&unit.flits[word]);
        visit.heads[word] = arrived[word] & !active[word] & _mm512_testn_epi8_mask(before, before);
        flits[word] = _mm512_mask_add_epi8(before, arrived[word], before, one);
        waiting[word] = _mm512_test_epi8_mask(flits[word], flits[word]) & active[word];
        let before = load(&unit.credits[word]);
        credits[word] = _mm512_mask_add_epi8(before, returned[word], before, one);
        creditable[word] = _mm512_test_epi8_mask(credits[word], credits[word]) & held[word];
    }
    // Each output port grants the first input port at or after its pointer, and of its virtual channels the first by rank.
    let mut granted = [0; N];
    let waiting = table(&waiting);
    for word in 0..N {
        let holder = Slots::<N>::of(&unit.holder, &unit.holder_high, word);
        let ready = holder.bits_of(waiting) & creditable[word];
        let key = _mm512_mask_mov_epi8(none, ready, rotated(holder.ports::<M>(), load(&unit.grant[word])));
        let of_port = ready & _mm512_cmpeq_epi8_mask(key, port_min::<M>(key));
        // How far the holder's virtual channel lies behind its port's pointer.
        let distance = _mm512_sub_epi8(holder.low, holder.bytes_of(&unit.accept));
        let rank = _mm512_mask_mov_epi8(none, of_port, _mm512_and_si512(distance, low_bits));
        granted[word] = of_port & _mm512_cmpeq_epi8_mask(rank, port_min::<M>(rank));
    }
    // Each input port accepts the first output port at or after its pointer, and sends.
    let mut waiting_after = [0; N];
    let offers = table(&granted);
    for word in 0..N {
        let output = Slots::<N>::of(&unit.output, &unit.output_high, word);
        let offered = output.bits_of(offers) & active[word];
        let output_port = output.ports::<M>();
        let pointer = Slots::<N>::of(&unit.accept, &unit.accept_high, word).ports::<M>();
        let key = _mm512_mask_mov_epi8(none, offered, rotated(output_port, pointer));
        let winners = offered & _mm512_cmpeq_epi8_mask(key, port_min::<M>(key));
        // The pointer moves to the successors of the output port and of the virtual channel.
        let next_port = _mm512_add_epi8(output_port, one);
        let next = low_slots::<M>(next_port, _mm512_add_epi8(load(&lane_vc), one));
        let ports = spread::<M>(winners);
        replace(&mut unit.accept[word], ports, port_max::<M>(_mm512_maskz_mov_epi8(winners, next)));
        if N > 4 {
            let high = _mm512_test_epi8_mask(next_port, _mm512_set1_epi8((256 >> M::SHIFT) as i8));
            unit.accept_high[word] = unit.accept_high[word] & !ports | spread::<M>(winners & high);
        }
        let left = load(&unit.left[word]);
        let left = _mm512_mask_sub_epi8(left, winners, left, one);
        store(&mut unit.left[word], left);
        let after = _mm512_mask_sub_epi8(flits[word], winners, flits[word], one);
        store(&mut unit.flits[word], after);
        let tails = winners & _mm512_testn_epi8_mask(left, left);
        unit.active[word] = active[word] & !tails;
        waiting_after[word] = _mm512_test_epi8_mask(after, after) & unit.active[word];
        (visit.winners[word], visit.tails[word]) = (winners, tails);
    }
    // The outputs' side of the moves.
    let mut busy = 0;
    let (senders, waiting_after) = (table(&visit.winners), table(&waiting_after));
    for word in 0..N {
        let holder = Slots::<N>::of(&unit.holder, &unit.holder_high, word);
        let moved = holder.bits_of(senders) & granted[word];
        visit.winning_outputs[word] = moved;
        let after = _mm512_mask_sub_epi8(credits[word], moved, credits[word], one);
        store(&mut unit.credits[word], after);
        let next_port = _mm512_maskz_add_epi8(moved, holder.ports::<M>(), one);
        replace(&mut unit.grant[word], spread::<M>(moved), port_max::<M>(next_port));
        let has_flit = holder.bits_of(waiting_after) & held[word];
        let has_credit = _mm512_test_epi8_mask(after, after);
        unit.stalled[word] = has_flit & !has_credit;
        busy |= has_flit & has_credit;
    }
    visit.busy = busy != 0;
    visit
}

/// Appends `first + bit` for every bit that is set, 16 at a time; returns the new length.
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn compress(bits: u64, first: u32, list: &mut [u32], mut length: usize) -> usize {
    let mut slots =
        _mm512_add_epi32(_mm512_set1_epi32(first as i32), _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
    for part in 0..4 {
        let mask = (bits >> (16 * part)) as u16;
        debug_assert!(length + 16 <= list.len());
        // SAFETY: the lists have room for 64 addresses beyond one per port of the block.
        unsafe { _mm512_storeu_si512(list.as_mut_ptr().add(length).cast(), _mm512_maskz_compress_epi32(mask, slots)) };
        length += mask.count_ones() as usize;
        slots = _mm512_add_epi32(slots, _mm512_set1_epi32(16));
    }
    length
}
