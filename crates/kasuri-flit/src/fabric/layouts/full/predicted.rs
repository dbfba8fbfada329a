//! Flits that pass on predictions through routers in the full layout.
//!
//! A place of the switch is a step of one of its inputs and outputs, of which a port may have several. Where flits wait for their channel
//! behind the switch, a flit that passes on needs the cycle of the channel, too: it joins no queue. It takes no place in an output buffer,
//! holds no path of the switch, and its credit goes upstream in a message of its own.

use crate::fabric::features::passing::{Head, Predicts};
use crate::fabric::layouts::full::{Allocators, Full, Unit};
use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::blocks::Block;
use crate::state::prediction::{CONNECTED, COUNTED, Early, PredictionUnit, WRONG};
use crate::state::routing::Route;
use crate::state::tile::Tile;
use kasuri_model::router::VcRelease;
use kasuri_network::routing::{Candidate, VirtualChannels};

impl<M: VcMask> Tile<'_, Full<M>> {
    /// Flits enter their buffers, or pass on at once. Credits of this cycle have been taken before.
    pub(super) fn take_predicted_arrivals(&mut self, block: u32, now: u64, events: &mut Vec<u32>) {
        let Some(mut unit) = self.prediction.take() else { return };
        let mut lists = self.blocks.take(block);
        self.take_copies_back(&mut unit, block, now, &mut lists);
        self.in_flight.arrivals.take(now, block, events);
        let mut possible = std::mem::take(&mut unit.sorting.possible);
        for &slot in events.iter() {
            let is_new = self.layout.input[slot].output == NONE && self.layout.input[slot].flits == 0;
            if is_new || unit.flags[slot] & (CONNECTED | WRONG) != 0 {
                possible.push(slot);
            } else {
                self.take_arrival(slot, now);
            }
        }
        events.clear();
        // Where two predictions meet at an output, the lower input port goes first, whatever the order of the events.
        possible.sort_unstable();
        for slot in possible.drain(..) {
            if !self.passes_on(&mut unit, slot, now, &mut lists) {
                self.take_arrival(slot, now);
            }
        }
        unit.sorting.possible = possible;
        self.blocks.put_back(lists);
        self.prediction = Some(unit);
    }

    fn early(&self, unit: &PredictionUnit<'_>, now: u64) -> Early {
        unit.early(self.layout.clock, self.layout.full.traversal_steps, now)
    }

    /// What a routing that offers several ports offers a head, best first; what has been decided ahead of it, if anything has.
    fn find_offers(&mut self, head: &Head) -> (u32, Vec<Candidate>) {
        let ahead = self.routing.lookahead.as_ref().map(|lookahead| lookahead.known(head.packet, &mut self.routing.candidates));
        let state = ahead.unwrap_or_else(|| self.find_candidates(head.slot, head.packet).0);
        let mut offers = self.routing.candidates.clone();
        offers.sort_by_key(|offer| std::cmp::Reverse(offer.priority));
        (state, offers)
    }

    /// A guess is right if it is among several ports that the routing offers: the best candidate there of which a virtual channel is free.
    fn offered_route(&mut self, unit: &PredictionUnit<'_>, head: &Head, guess: Option<u16>, now: u64) -> Option<Route> {
        let (state, mut offers) = self.find_offers(head);
        if !unit.predictor.knows() {
            offers.retain(|offer| Some(offer.port) == guess);
        }
        let base = self.layout.units[self.layout.unit_of_port[head.slot >> M::SHIFT] as usize].base;
        let mut is_open =
            |offer: &&Candidate| self.free_channel(unit, head, base + u32::from(offer.port), offer.virtual_channels, now).is_some();
        let best = offers.iter().find(&mut is_open).or(offers.first());
        best.map(|&candidate| Route { candidate, state })
    }

    /// The tail has gone on a prediction. Heads that have waited for its virtual channel ask for it in the next step; one that begins to
    /// ask in this step finds it free, and so do all others then.
    fn end_early(&mut self, unit: &mut PredictionUnit<'_>, slot: u32, output: u32) {
        unit.flags[slot] = 0;
        let port = output >> M::SHIFT;
        let number = self.layout.unit_of_port[port] as usize;
        self.leave_router(number, slot, output);
        if self.parameters.release == VcRelease::Tail {
            if self.layout.port[port].free.is_empty() {
                self.layout.units[number].late.push(output);
            } else {
                self.layout.set_free_channel(output);
            }
        }
        self.layout.wake(port);
    }
}

impl<M: VcMask> Full<M> {
    /// Before virtual channels are allocated, frees those whose tails have just gone on a prediction and for which a head begins to ask.
    /// `at_once`: heads ask as they arrive; one that comes to others which wait asks with them, in the next step.
    #[inline(always)]
    pub(super) fn free_wanted(&mut self, number: usize, step: u64, at_once: bool) {
        if !self.units[number].late.is_empty() {
            self.free_wanted_of_late(number, step, at_once);
        }
    }

    fn free_wanted_of_late(&mut self, number: usize, step: u64, at_once: bool) {
        let mut late = std::mem::take(&mut self.units[number].late);
        late.retain(|&output| {
            let port = output >> M::SHIFT;
            let is_wanted = self.is_wanted_from(number, port, |ready| ready == step)
                && !(at_once && self.is_wanted_from(number, port, |ready| ready < step));
            if is_wanted {
                self.set_free_channel(output);
            }
            !is_wanted
        });
        self.units[number].late = late;
    }

    /// After virtual channels have been allocated, frees the others. Were there any?
    pub(super) fn free_late(&mut self, number: usize) -> bool {
        if self.units[number].late.is_empty() {
            return false;
        }
        let mut late = std::mem::take(&mut self.units[number].late);
        late.drain(..).for_each(|output| self.set_free_channel(output));
        self.units[number].late = late;
        true
    }

    /// Does a head wait for a virtual channel of a port, which bids from a step of which something is true?
    fn is_wanted_from(&self, number: usize, port: u32, is_true: impl Fn(u64) -> bool) -> bool {
        let Unit { base, waiting, .. } = &self.units[number];
        let asks = |slot: u32| self.candidates(slot).iter().any(|candidate| base + u32::from(candidate.port) == port);
        waiting.iter().any(|&slot| is_true(self.input[slot].ready) && asks(slot))
    }

    /// Input and output of the switch, counted over all routers, between an input slot and an output port.
    pub(super) fn switch_places(&self, slot: u32, port: u32) -> (u32, u32) {
        let number = self.unit_of_port[port] as usize;
        let (row, column) = self.crossing(number, slot, port << M::SHIFT);
        let base = self.units[number].base;
        (base * self.full.router.input_speedup + row, base * self.full.router.output_speedup + column)
    }

    /// An input and an output of virtual-channel allocation within their router.
    fn allocation_places(&self, number: usize, slot: u32, output: u32) -> (u32, u32) {
        let place = |slot: u32| ((slot >> M::SHIFT) - self.units[number].base) * self.full.router.virtual_channels + (slot & (M::BITS - 1));
        (place(slot), place(output))
    }
}

impl<M: VcMask> Predicts for Full<M> {
    fn is_open(tile: &Tile<'_, Self>, unit: &PredictionUnit<'_>, slot: u32, port: u32, now: u64) -> bool {
        let (layout, early) = (&tile.layout, tile.early(unit, now));
        let (input, output) = layout.switch_places(slot, port);
        let is_slow = tile.parameters.periodic && tile.wiring.period[port] > 1;
        let has_channel =
            if is_slow { layout.port[port].next_departure <= early.departure } else { unit.is_channel_open(port, early.departure) };
        let number = layout.unit_of_port[port] as usize;
        has_channel && unit.is_open(input, output, early.place) && layout.units[number].traversal.begins(early.step)
    }

    fn is_wanted(tile: &Tile<'_, Self>, port: u32, now: u64) -> bool {
        let (layout, step) = (&tile.layout, tile.layout.clock.first_step(now));
        layout.is_wanted_from(layout.unit_of_port[port] as usize, port, |ready| ready <= step)
    }

    fn has_turn(tile: &Tile<'_, Self>, unit: &PredictionUnit<'_>, output: u32, now: u64) -> bool {
        tile.room(output) > 0 && unit.keeps_order(output, tile.early(unit, now).order())
    }

    /// The first by the pointer of the virtual-channel allocator, if it is iSLIP, else by one of the head's own.
    fn choose_channel(
        tile: &mut Tile<'_, Self>,
        unit: &PredictionUnit<'_>,
        slot: u32,
        port: u32,
        channels: VirtualChannels,
        now: u64,
    ) -> Option<u32> {
        let layout = &tile.layout;
        let number = layout.unit_of_port[port] as usize;
        let base = layout.units[number].base;
        let candidate = Candidate::new((port - base) as u16, channels);
        let (prefers_empty, pointer) = (layout.full.router.vc_prefer_empty, layout.input[slot].packet.accept_pointer);
        let is_filled = |output: u32| prefers_empty && layout.output[output].credits < u32::from(tile.parameters.buffer_flits);
        let distance = |output: u32| {
            let (row, column) = layout.allocation_places(number, slot, output);
            let by_allocator = match &layout.units[number].allocators {
                Allocators::OnMasks { channels, .. } => channels.distance(row, column),
                Allocators::OnRequests { channels, .. } => channels.distance(row, column),
            };
            by_allocator.unwrap_or_else(|| output.wrapping_sub(pointer).into())
        };
        let mut open = tile.open_channels(slot, port, &candidate);
        let mut best = None;
        while !open.is_empty() {
            let output = port << M::SHIFT | open.first();
            open = open.rest();
            let key = (is_filled(output), distance(output));
            if Self::has_turn(tile, unit, output, now) && best.is_none_or(|(known, _)| key < known) {
                best = Some((key, output));
            }
        }
        best.map(|(_, output)| output)
    }

    fn right_route(tile: &mut Tile<'_, Self>, unit: &mut PredictionUnit<'_>, head: &Head, guess: Option<u16>, now: u64) -> Option<Route> {
        let accepted = tile.accepted_route(unit, head, guess);
        if accepted.is_some() {
            return accepted;
        }
        if tile.layout.full.offers_several || tile.routing.lookahead.is_some() {
            tile.offered_route(unit, head, guess, now)
        } else {
            tile.only_route(unit, head, guess)
        }
    }

    /// The head has a virtual channel without having bid for it. Flits that do not pass on bid for the switch from this cycle on.
    fn connect_head(tile: &mut Tile<'_, Self>, head: &Head, output: u32, _flits: u16, now: u64) {
        let number = tile.layout.unit_of_port[output >> M::SHIFT] as usize;
        let (row, column) = tile.layout.allocation_places(number, head.slot, output);
        match &mut tile.layout.units[number].allocators {
            Allocators::OnMasks { channels, .. } => channels.matched(row, column),
            Allocators::OnRequests { channels, .. } => channels.matched(row, column),
        }
        tile.layout.input[head.slot].packet.accept_pointer = output + 1;
        tile.note_urgency(number, head.slot, head.packet);
        let step = tile.layout.clock.first_step(now);
        tile.take_channel(number, head.slot, output, step);
    }

    fn cross_early(tile: &mut Tile<'_, Self>, unit: &mut PredictionUnit<'_>, slot: u32, output: u32, now: u64, _lists: &mut Block) {
        unit.note_passed(output, tile.early(unit, now), unit.flags[slot] & COUNTED != 0);
        let (input_port, port) = (slot >> M::SHIFT, output >> M::SHIFT);
        tile.occupy_switch(unit, slot, port, now);
        let departure = tile.occupy_channel_early(unit, port, now);
        tile.statistics.flit_hops += 1;
        let layout = &mut tile.layout;
        layout.port[port].sent.add(departure);
        layout.output[output].credits -= 1;
        layout.input[slot].left -= 1;
        let left = layout.input[slot].left;
        tile.note_departure(slot, output, left);
        if let Some(buffers) = &mut tile.buffers.shared {
            buffers.send(output, left == 0);
        }
        let upstream = &tile.wiring.links[input_port];
        let credit = upstream.credit_link + (slot & (M::BITS - 1));
        tile.in_flight.credits.post((now as u32).wrapping_add(u32::from(upstream.credit_delay)), credit);
        tile.post_flit(output, departure);
        if left == 0 {
            tile.end_early(unit, slot, output);
        }
    }

    fn copy(tile: &mut Tile<'_, Self>, unit: &mut PredictionUnit<'_>, slot: u32, port: u32, now: u64) -> u64 {
        tile.occupy_switch(unit, slot, port, now);
        if !unit.forwards() {
            return now;
        }
        let departure = tile.occupy_channel_early(unit, port, now);
        tile.layout.port[port].sent.add(departure);
        departure + u64::from(tile.wiring.links[port].flit_delay) - u64::from(tile.layout.full.traversal_steps)
    }

    /// In shared buffers it is a packet of one flit.
    fn lend(tile: &mut Tile<'_, Self>, output: u32) {
        let port = &mut tile.layout.port[output >> M::SHIFT];
        port.free = port.free.without(M::bit(output & (M::BITS - 1)));
        tile.layout.output[output].credits -= 1;
        tile.wiring.links[output >> M::SHIFT].sent += 1;
        if let Some(buffers) = &mut tile.buffers.shared {
            buffers.take(output, 1);
            buffers.send(output, true);
        }
    }

    fn take_back(tile: &mut Tile<'_, Self>, output: u32, is_last: bool, _lists: &mut Block) {
        tile.layout.output[output].credits += 1;
        if let Some(buffers) = &mut tile.buffers.shared {
            buffers.free(output, false);
        }
        if is_last {
            tile.layout.set_free_channel(output);
        }
        tile.layout.wake(output >> M::SHIFT);
    }
}

impl<M: VcMask> Tile<'_, Full<M>> {
    /// A flit that has not won it, or a copy of one, takes a place of the switch.
    fn occupy_switch(&mut self, unit: &mut PredictionUnit<'_>, slot: u32, port: u32, now: u64) {
        let early = self.early(unit, now);
        let (input, output) = self.layout.switch_places(slot, port);
        unit.take_place(input, output, early.place);
        let number = self.layout.unit_of_port[port] as usize;
        self.layout.units[number].traversal.wait(early.step);
    }

    /// The same of the channel. Returns the cycle in which it is sent there.
    fn occupy_channel_early(&mut self, unit: &mut PredictionUnit<'_>, port: u32, now: u64) -> u64 {
        let departure = self.early(unit, now).departure;
        unit.take_channel(port, departure);
        let period = if self.parameters.periodic { u64::from(self.wiring.period[port]) } else { 1 };
        let state = &mut self.layout.port[port];
        state.next_departure = state.next_departure.max(departure + period);
        departure
    }
}
