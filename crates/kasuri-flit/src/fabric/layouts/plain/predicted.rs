//! Arrivals at plain routers that predict, and what passes on there.

use crate::fabric::features::passing::{Head, Predicts};
use crate::fabric::layouts::plain::{InputVc, Plain};
use crate::record::list::List;
use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::blocks::Block;
use crate::state::layout::RouterState;
use crate::state::prediction::{Addresses, CONNECTED, COUNTED, PredictionUnit, WRONG};
use crate::state::routing::Route;
use crate::state::tile::Tile;
use kasuri_model::router::Switching;
use kasuri_network::routing::VirtualChannels;

impl<M: VcMask> Tile<'_, Plain<M>> {
    /// Flits enter their buffers, or pass on at once. Credits of this cycle have been taken before. Compiled for the processor at
    /// hand, as windows are, and apart from those, which most runs go through without it.
    #[inline(always)]
    pub(super) fn take_predicted_arrivals(&mut self, block: u32, now: u64, active: &mut List, lists: &mut Block) {
        #[cfg(target_arch = "x86_64")]
        if self.parameters.modern {
            // SAFETY: `modern` says that the processor has these features.
            return unsafe { self.take_predicted_arrivals_modern(block, now, active, lists) };
        }
        self.take_predicted_arrivals_portably(block, now, active, lists);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt,avx2")]
    #[inline(never)]
    fn take_predicted_arrivals_modern(&mut self, block: u32, now: u64, active: &mut List, lists: &mut Block) {
        self.take_predicted_arrivals_portably(block, now, active, lists);
    }

    #[inline(always)]
    fn take_predicted_arrivals_portably(&mut self, block: u32, now: u64, active: &mut List, lists: &mut Block) {
        let Some(mut unit) = self.prediction.take() else { return };
        if unit.rules.is_express {
            for position in 0..self.in_flight.arrivals.events(now, block).len() {
                let slot = self.in_flight.arrivals.events(now, block)[position];
                self.enter_buffer(slot, active, lists);
            }
            self.in_flight.arrivals.clear(now, block);
            self.let_express_flits_pass(&mut unit, block, now + 1, lists);
            self.prediction = Some(unit);
            return;
        }
        self.take_copies_back(&mut unit, block, now, lists);
        let mut ordinary = std::mem::take(&mut unit.sorting.ordinary);
        let mut possible = std::mem::take(&mut unit.sorting.possible);
        // Which flits are which nobody can foretell: no branch before they are told apart.
        let is_possible = |slot: u32| {
            let InputVc { output, flits, .. } = self.layout.input[slot];
            (unit.flags[slot] & (CONNECTED | WRONG) != 0) | (output == NONE) & (flits == 0)
        };
        // Where two predictions meet at an output, the lower input port goes first, whatever the order of the events.
        let shift = self.parameters.block_shift;
        let addresses = Addresses { first: block << shift, span: 1 << shift };
        let count =
            unit.sorting.sorter.part(self.in_flight.arrivals.events(now, block), addresses, is_possible, &mut possible, &mut ordinary);
        self.in_flight.arrivals.clear(now, block);
        for &slot in &ordinary[..count] {
            self.enter_buffer(slot, active, lists);
        }
        for &slot in &possible {
            if !self.passes_on(&mut unit, slot, now, lists) {
                self.enter_buffer(slot, active, lists);
            }
        }
        possible.clear();
        (unit.sorting.possible, unit.sorting.ordinary) = (possible, ordinary);
        self.prediction = Some(unit);
    }

    /// Lets flits pass that arrive in the next cycle, before anybody gets a virtual channel or a place of the switch in this one.
    fn let_express_flits_pass(&mut self, unit: &mut PredictionUnit<'_>, block: u32, next: u64, lists: &mut Block) {
        let mut possible = std::mem::take(&mut unit.sorting.possible);
        possible.extend_from_slice(self.in_flight.arrivals.events(next, block));
        // Where two meet at an output, the lower input port goes first, whatever the order of the events.
        possible.sort_unstable();
        for slot in possible.drain(..) {
            let is_possible = unit.flags[slot] & CONNECTED != 0 || self.layout.input[slot].output == NONE;
            if is_possible && self.passes_on(unit, slot, next, lists) {
                self.in_flight.arrivals.remove(next, slot);
            }
        }
        unit.sorting.possible = possible;
    }

    /// Gives back what express packets held whose tails have passed in this cycle.
    #[inline(always)]
    pub(super) fn end_express_packets(&mut self, lists: &mut Block) {
        if self.prediction.as_ref().is_some_and(|unit| !unit.sorting.ended.is_empty()) {
            self.release_express_packets(lists);
        }
    }

    /// The part of [`Self::end_express_packets`] for cycles in which there are some.
    fn release_express_packets(&mut self, lists: &mut Block) {
        let Some(unit) = &mut self.prediction else { return };
        let mut ended = std::mem::take(&mut unit.sorting.ended);
        for (slot, output) in ended.drain(..) {
            self.release(slot, output, lists);
        }
        if let Some(unit) = &mut self.prediction {
            unit.sorting.ended = ended;
        }
    }

    /// Does nothing arrive in the next cycle that may pass before others?
    #[inline(always)]
    pub(super) fn expects_nothing(&self, block: u32, now: u64) -> bool {
        self.prediction.as_ref().is_none_or(|unit| !unit.rules.is_express || self.in_flight.arrivals.is_empty_at(now + 1, block))
    }

    /// Have express flits taken an input or an output of the switch in this cycle?
    #[inline(always)]
    pub(super) fn is_promised(&self, input_port: u32, port: u32, now: u64) -> bool {
        self.prediction.as_ref().is_some_and(|unit| unit.is_promised(input_port, port, now))
    }

    /// The ready virtual channels of a port for which express flits have left input and output of the switch.
    pub(super) fn ready_beside_express(&self, port: u32, now: u64) -> M {
        let mut ready = self.layout.output_port[port].ready;
        let mut left = ready;
        while !ready.is_empty() {
            let vc = ready.first();
            ready = ready.rest();
            if self.is_promised(self.layout.output[port << M::SHIFT | vc].holder >> M::SHIFT, port, now) {
                left = left.without(M::bit(vc));
            }
        }
        left
    }

    /// The ordinary arrival, as in `Pointers::take_arrivals`.
    #[inline(always)]
    fn enter_buffer(&mut self, slot: u32, active: &mut List, lists: &mut Block) {
        let input = &mut self.layout.input[slot];
        let (before, output) = (input.flits, input.output);
        input.flits = before + 1;
        if self.parameters.switching == Switching::StoreAndForward && output == NONE {
            self.arrive_store_and_forward(slot, lists);
        } else if before == 0 {
            if output == NONE {
                lists.heads.push(slot);
            } else if self.layout.output[output].credits > 0 {
                self.pointers().set_ready(output, active);
            }
        }
    }

    /// A flit keeps a channel of several cycles busy from its early place on.
    fn occupy_early(&mut self, unit: &PredictionUnit<'_>, port: u32, is_tail: bool, now: u64) {
        let busy = u64::from(self.wiring.period[port]) + self.parameters.cycles_after(is_tail);
        let end = (now + busy).saturating_sub(u64::from(unit.rules.advance));
        self.layout.busy_until[port] = self.layout.busy_until[port].max(end);
    }
}

/// The places of the switch are those of the ports, one in each cycle.
impl<M: VcMask> Predicts for Plain<M> {
    #[inline(always)]
    fn is_open(tile: &Tile<'_, Self>, unit: &PredictionUnit<'_>, slot: u32, port: u32, now: u64) -> bool {
        let Tile { layout, wiring, parameters, .. } = tile;
        // Channels on which a flit, or the bits in front of a packet, take several cycles are busy that long after each of them.
        let is_slow = || wiring.period[port] > 1 || parameters.hint_cycles > 0;
        let is_busy = || is_slow() && layout.busy_until[port] > now.saturating_sub(unit.rules.advance.into());
        !(parameters.periodic && is_busy()) && unit.is_open(slot >> M::SHIFT, port, unit.place(now))
    }

    #[inline(always)]
    fn is_wanted(tile: &Tile<'_, Self>, port: u32, _now: u64) -> bool {
        tile.wiring.links[port].request_head != NONE
    }

    #[inline(always)]
    fn has_turn(tile: &Tile<'_, Self>, unit: &PredictionUnit<'_>, output: u32, now: u64) -> bool {
        tile.layout.output[output].credits > 0 && unit.keeps_order(output, unit.place(now))
    }

    #[inline(always)]
    fn choose_channel(
        tile: &mut Tile<'_, Self>,
        unit: &PredictionUnit<'_>,
        slot: u32,
        port: u32,
        channels: VirtualChannels,
        now: u64,
    ) -> Option<u32> {
        let input = tile.layout.input_slot_mut(slot);
        (input.request_first, input.request_last) = (channels.begin as u8, (channels.end - 1) as u8);
        let (begin, pointer) = (port << M::SHIFT, input.accept_pointer);
        let mut eligible = tile.eligible(port, slot);
        let (mut best, mut best_distance) = (None, u32::MAX);
        while !eligible.is_empty() {
            let output = begin | eligible.first();
            eligible = eligible.rest();
            let distance = output.wrapping_sub(pointer);
            if Self::has_turn(tile, unit, output, now) && (best.is_none() || distance < best_distance) {
                (best, best_distance) = (Some(output), distance);
            }
        }
        best
    }

    #[inline(always)]
    fn right_route(tile: &mut Tile<'_, Self>, unit: &mut PredictionUnit<'_>, head: &Head, guess: Option<u16>, _now: u64) -> Option<Route> {
        let accepted = tile.accepted_route(unit, head, guess);
        if accepted.is_some() { accepted } else { tile.only_route(unit, head, guess) }
    }

    #[inline(always)]
    fn connect_head(tile: &mut Tile<'_, Self>, head: &Head, output: u32, flits: u16, _now: u64) {
        let layout = &mut tile.layout;
        let input = layout.input_slot_mut(head.slot);
        (input.length, input.accept_pointer) = (flits, output + 1);
        layout.output_slot_mut(output).grant_pointer = head.slot + 1;
        layout.take(head.slot, output);
    }

    #[inline(always)]
    fn cross_early(tile: &mut Tile<'_, Self>, unit: &mut PredictionUnit<'_>, slot: u32, output: u32, now: u64, lists: &mut Block) {
        let (input_port, port, place) = (slot >> M::SHIFT, output >> M::SHIFT, unit.place(now));
        unit.take_place(input_port, port, place);
        unit.note_sent(output, place);
        unit.counters.speculative_traversals += u64::from(unit.flags[slot] & COUNTED != 0);
        if tile.parameters.periodic {
            let is_tail = tile.layout.input[slot].left == 1;
            tile.occupy_early(unit, port, is_tail, now);
        }
        tile.statistics.flit_hops += 1;
        tile.layout.output[output].credits -= 1;
        let upstream = tile.wiring.links[input_port];
        let credit = upstream.credit_link + (slot & (M::BITS - 1));
        tile.in_flight.credits.post((now as u32).wrapping_add(u32::from(upstream.credit_delay)), credit);
        let downstream = &mut tile.wiring.links[port];
        downstream.sent += 1;
        let time = (now as u32).wrapping_add(u32::from(downstream.flit_delay - unit.rules.advance));
        tile.in_flight.arrivals.post(time, downstream.flit_link + (output & (M::BITS - 1)));
        let buffer = &mut tile.layout.input[slot];
        buffer.left -= 1;
        if buffer.left == 0 {
            buffer.output = NONE;
            tile.layout.output[output].holder = NONE;
            unit.flags[slot] = 0;
            if unit.rules.is_express {
                unit.sorting.ended.push((slot, output));
            } else {
                tile.release(slot, output, lists);
            }
        }
    }

    fn copy(tile: &mut Tile<'_, Self>, unit: &mut PredictionUnit<'_>, slot: u32, port: u32, now: u64) -> u64 {
        unit.take_place(slot >> M::SHIFT, port, unit.place(now));
        if tile.parameters.periodic && unit.forwards() {
            tile.occupy_early(unit, port, false, now);
        }
        now + u64::from(tile.wiring.links[port].flit_delay - unit.rules.advance)
    }

    fn lend(tile: &mut Tile<'_, Self>, output: u32) {
        let port = &mut tile.layout.output_port[output >> M::SHIFT];
        port.free = port.free.without(M::bit(output & (M::BITS - 1)));
        tile.layout.output[output].credits -= 1;
        tile.wiring.links[output >> M::SHIFT].sent += 1;
    }

    fn take_back(tile: &mut Tile<'_, Self>, output: u32, is_last: bool, lists: &mut Block) {
        tile.layout.output[output].credits += 1;
        if is_last {
            tile.layout.set_free(output);
            tile.list_for_allocation(output >> M::SHIFT, &mut lists.allocate);
        }
    }
}
