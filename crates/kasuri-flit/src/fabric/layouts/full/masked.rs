//! The step of a small router whose requests all stand alike: who asks for what stands in masks.
//!
//! The same as the steps in `cycle`, where there are no priorities and no speculative bids.

use crate::fabric::layouts::full::{Allocators, Full, InputVc, Unit};
use crate::record::allocators::allocator::RouterShape;
use crate::record::allocators::masks::{MaskAllocator, RequestMasks, first_from, members};
use crate::record::marks::{NEVER, NONE};
use crate::record::vc_mask::VcMask;
use crate::state::full_parameters::FullParameters;
use crate::state::tile::Tile;

/// The virtual channels of a router, as a set: one bit for each of all its ports.
pub(super) type Places = u128;

/// The lists of a step, and tables in place of divisions.
pub(super) struct Masks {
    /// Who asks for virtual channels, and for the switch.
    heads: RequestMasks<Places>,
    requests: RequestMasks<u64>,
    granted: Vec<(u32, u32)>,
    /// Inputs and outputs of the switch whose paths are kept for others in this step.
    taken_rows: u64,
    taken_columns: u64,
    /// By pair of an input and an output of the switch: the virtual channels that bid. Only of pairs that are asked for.
    bidding: Box<[u64]>,
    /// The slot within the router of an input or output of virtual-channel allocation.
    slot_of_place: Box<[u32]>,
    /// The port within the router of an input of the switch.
    port_of_row: Box<[u32]>,
    /// Which of its port's inputs and outputs of the switch a virtual channel, or an input port, takes.
    input_of_channel: Box<[u32]>,
    output_of_port: Box<[u32]>,
    input_speedup: u32,
    output_speedup: u32,
}

impl Masks {
    /// For routers of up to so many ports.
    pub(super) fn new<M: VcMask>(ports: u32, full: &FullParameters) -> Self {
        let (inputs, outputs) = (full.router.input_speedup, full.router.output_speedup);
        let channels = full.router.virtual_channels;
        let table = |length: u32, entry: &dyn Fn(u32) -> u32| (0..length).map(entry).collect::<Box<[u32]>>();
        Self {
            heads: RequestMasks::new(),
            requests: RequestMasks::new(),
            granted: Vec::new(),
            taken_rows: 0,
            taken_columns: 0,
            bidding: vec![0; (ports * inputs * ports * outputs) as usize].into_boxed_slice(),
            slot_of_place: table(ports * channels, &|place| ((place / channels) << M::SHIFT) | (place % channels)),
            port_of_row: table(ports * inputs, &|row| row / inputs),
            input_of_channel: table(channels, &|vc| vc % inputs),
            output_of_port: table(ports, &|port| port % outputs),
            input_speedup: inputs,
            output_speedup: outputs,
        }
    }

    /// Have the masks room for the virtual channels of such a router, and for its switch?
    pub(super) fn have_room([channels, switch]: [RouterShape; 2], virtual_channels: u32) -> bool {
        MaskAllocator::has_room::<Places>(channels) && MaskAllocator::has_room::<u64>(switch) && virtual_channels <= u64::BITS
    }

    /// Input and output of the switch by which a virtual channel of a port within the router sends to another port.
    #[inline(always)]
    fn pair(&self, from: u32, vc: u32, to: u32) -> (u32, u32) {
        let row = from * self.input_speedup + self.input_of_channel[vc as usize];
        (row, to * self.output_speedup + self.output_of_port[from as usize])
    }

    /// A virtual channel bids for a pair of the switch, unless a kept path is in the way. `columns`: outputs of the router's switch.
    #[inline(always)]
    fn bid(&mut self, (row, column): (u32, u32), vc: u32, columns: u32) {
        if (self.taken_rows >> row | self.taken_columns >> column) & 1 == 1 {
            return;
        }
        let bidding = &mut self.bidding[(row * columns + column) as usize];
        let before = if self.requests.add(row, column) { 0 } else { *bidding };
        *bidding = before | 1 << vc;
    }
}

/// What a virtual channel that may bid for the switch finds in a step.
enum Standing {
    /// It has no flit, no output or no credit: an arrival or a credit notes it again. Room in shared buffers comes from other packets, too.
    Nothing {
        may_bid: bool,
    },
    /// Its flit waits for a later step.
    Early,
    /// Its channel, or a place behind the switch, is to be had from a cycle on.
    Waits(u64),
    Bids {
        slot: u32,
        output: u32,
    },
}

impl<M: VcMask> Tile<'_, Full<M>> {
    /// One step: route computation, virtual-channel allocation, switch allocation and traversal, each for those that were there before.
    pub(super) fn masked_step(&mut self, number: usize, step: u64, now: u64, masks: &mut Masks) -> bool {
        let at_once = self.parameters.route_cycles == 0;
        if at_once {
            self.compute_routes(number, step);
        }
        self.layout.free_wanted(number, step, at_once);
        let mut asked = self.allocate_channels_on_masks(number, step, masks);
        asked |= self.layout.free_late(number);
        if !at_once {
            self.compute_routes(number, step);
        }
        if !self.layout.units[number].kept.is_empty() {
            self.note_kept_paths(number, now, masks);
            asked = true;
        }
        asked |= self.cross_on_masks(number, step, now, masks);
        // Who has just got a virtual channel has asked for it.
        asked || self.has_heads_to_come(number, step)
    }

    /// Paths through the switch that are kept are taken in this step, and those that are used win.
    #[cold]
    fn note_kept_paths(&mut self, number: usize, now: u64, masks: &mut Masks) {
        self.cross_on_kept_paths(number, now);
        for &slot in &self.layout.step.holders {
            let (row, column) = self.layout.crossing(number, slot, self.layout.input[slot].output);
            masks.taken_rows |= 1 << row;
            masks.taken_columns |= 1 << column;
        }
    }

    /// Heads bid for the free virtual channels of their port. Did any?
    fn allocate_channels_on_masks(&mut self, number: usize, step: u64, masks: &mut Masks) -> bool {
        let Unit { base, waiting, .. } = &self.layout.units[number];
        if waiting.is_empty() {
            return false;
        }
        let (base, channels) = (*base, self.layout.full.router.virtual_channels);
        masks.heads.clear();
        for &slot in waiting {
            let InputVc { ready, candidate, .. } = self.layout.input[slot];
            if ready > step {
                continue;
            }
            let port = u32::from(candidate.port);
            let open = Places::from(self.open_channels(slot, base + port, &candidate).bits());
            if open != 0 {
                masks.heads.set_row(((slot >> M::SHIFT) - base) * channels + (slot & (M::BITS - 1)), open << (port * channels));
            }
        }
        if masks.heads.is_empty() {
            return false;
        }
        masks.granted.clear();
        if let Allocators::OnMasks { channels, .. } = &mut self.layout.units[number].allocators {
            channels.allocate(&mut masks.heads, &mut masks.granted);
        }
        let first = base << M::SHIFT;
        for &(row, column) in &masks.granted {
            let (head, output) = (masks.slot_of_place[row as usize], masks.slot_of_place[column as usize]);
            self.hold_channel(number, first + head, first + output, step);
        }
        self.leave_waiting(number);
        true
    }

    /// How a virtual channel that may bid for the switch stands, by its number within the router.
    #[inline(always)]
    fn standing(&self, first: u32, place: u32, step: u64, now: u64, masks: &Masks) -> Standing {
        let slot = first + masks.slot_of_place[place as usize];
        let InputVc { output, flits, ready, .. } = self.layout.input[slot];
        if output == NONE || flits == 0 || self.room(output) == 0 {
            return Standing::Nothing { may_bid: output != NONE && flits != 0 && self.buffers.shared.is_some() };
        }
        debug_assert!(self.has_room_for_rest(slot), "a packet that waits as a whole has a virtual channel with room for all of it");
        if ready > step {
            return Standing::Early;
        }
        match self.place_from(output >> M::SHIFT, now) {
            from if from <= now => Standing::Bids { slot, output },
            from => Standing::Waits(from),
        }
    }

    /// Flits with a virtual channel and a credit bid for the switch, and who wins crosses. Did any bid?
    fn cross_on_masks(&mut self, number: usize, step: u64, now: u64, masks: &mut Masks) -> bool {
        let may_bid = self.layout.units[number].may_bid;
        if may_bid & may_bid.wrapping_sub(1) == 0 && masks.taken_rows == 0 {
            return may_bid != 0 && self.cross_alone(number, may_bid.trailing_zeros(), step, now, masks);
        }
        let asked = self.allocate_crossing_on_masks(number, step, now, masks);
        if masks.taken_rows != 0 {
            (masks.taken_rows, masks.taken_columns) = (0, 0);
            self.traverse_all(number, step, now);
        }
        if asked {
            self.cross_granted(number, step, now, masks);
        }
        asked
    }

    /// The only virtual channel that may bid has what it bids for.
    fn cross_alone(&mut self, number: usize, place: u32, step: u64, now: u64, masks: &Masks) -> bool {
        let first = self.layout.units[number].base << M::SHIFT;
        let standing = self.standing(first, place, step, now, masks);
        let unit = &mut self.layout.units[number];
        unit.due = NEVER;
        match standing {
            Standing::Nothing { may_bid } => unit.may_bid &= Places::from(may_bid) << place,
            Standing::Early => {}
            Standing::Waits(from) => unit.due = from,
            Standing::Bids { slot, output } => {
                let (from, vc) = (slot - first, slot & (M::BITS - 1));
                let (row, column) = masks.pair(from >> M::SHIFT, vc, (output - first) >> M::SHIFT);
                if let Allocators::OnMasks { switch, .. } = &mut unit.allocators {
                    switch.match_pair(row, column);
                }
                self.statistics.flit_hops += 1;
                self.cross(number, slot, row, step, now);
                return true;
            }
        }
        false
    }

    /// Flits bid for the switch. Did any? `masks.granted` holds who won.
    fn allocate_crossing_on_masks(&mut self, number: usize, step: u64, now: u64, masks: &mut Masks) -> bool {
        masks.requests.clear();
        masks.granted.clear();
        let Unit { base, ports, may_bid, .. } = self.layout.units[number];
        let (first, columns) = (base << M::SHIFT, ports * masks.output_speedup);
        let (mut due, mut bidders) = (NEVER, may_bid);
        for place in members(may_bid) {
            match self.standing(first, place, step, now, masks) {
                Standing::Nothing { may_bid: false } => bidders &= !(1 << place),
                Standing::Nothing { may_bid: true } | Standing::Early => {}
                Standing::Waits(from) => due = due.min(from),
                Standing::Bids { slot, output } => {
                    let vc = slot & (M::BITS - 1);
                    let pair = masks.pair((slot - first) >> M::SHIFT, vc, (output - first) >> M::SHIFT);
                    masks.bid(pair, vc, columns);
                }
            }
        }
        let unit = &mut self.layout.units[number];
        (unit.due, unit.may_bid) = (due, bidders);
        if masks.requests.is_empty() {
            return false;
        }
        if let Allocators::OnMasks { switch, .. } = &mut self.layout.units[number].allocators {
            switch.allocate(&mut masks.requests, &mut masks.granted);
        }
        true
    }

    /// For each pair that the switch joins, the first virtual channel by its input's pointer sends a flit.
    fn cross_granted(&mut self, number: usize, step: u64, now: u64, masks: &Masks) {
        self.statistics.flit_hops += masks.granted.len() as u64;
        let Unit { base, ports, .. } = self.layout.units[number];
        let columns = ports * masks.output_speedup;
        for &(row, column) in &masks.granted {
            let pointer = self.layout.units[number].vc_pointer[row as usize];
            let vc = first_from(masks.bidding[(row * columns + column) as usize], pointer);
            let port = base + masks.port_of_row[row as usize];
            self.cross(number, port << M::SHIFT | vc, row, step, now);
        }
    }
}
